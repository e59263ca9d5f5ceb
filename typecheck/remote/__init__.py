"""Checks that a service answers: what is sent, and the clients."""
