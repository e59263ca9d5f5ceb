"""The rules: for each operator, what it requires of its arguments and the shape it returns."""
