"""The command line: the table of commands, and a file per command."""
