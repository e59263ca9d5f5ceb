"""What operators make of elements: the table of operators, and their laws by kind."""
