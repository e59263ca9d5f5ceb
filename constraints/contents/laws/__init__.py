"""The effects of operators on elements: the table of operators, and their laws by kind."""
