"""The findings, results and verdict of a check, as plain data."""
