"""Loops and calls that are looked at whole: the abstract state and its laws."""
