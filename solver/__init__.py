"""Decides whether the constraints hold, and derives their consequences."""
