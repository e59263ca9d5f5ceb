"""The recorder, and the code that preserves a program's state."""
