"""External solvers; each is imported in one file only."""
