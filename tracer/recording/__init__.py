"""The recorder, and what it keeps of a program's state."""
