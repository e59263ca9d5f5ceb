"""Other people's solvers, each named in its own file alone."""
