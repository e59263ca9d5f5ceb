"""A file per command: its options, and what it does."""
