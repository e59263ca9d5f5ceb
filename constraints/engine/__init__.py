"""The engine that applies rules to the calls of a program."""
