"""What a check found, as plain data."""
