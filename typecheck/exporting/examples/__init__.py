"""Example inputs that a trace starts from."""
