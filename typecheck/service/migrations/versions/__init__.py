"""A file per step."""
