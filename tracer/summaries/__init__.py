"""Loops and calls that are summarised as a whole: the abstract state and its laws."""
