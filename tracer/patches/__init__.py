"""Stand-ins for functions of torch and Python while a program is recorded."""
