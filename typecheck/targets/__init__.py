"""Targets: what a text or an object names, how it is built, and what its annotations declare."""
