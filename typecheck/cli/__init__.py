"""The command line: the table of commands, and what they share."""
