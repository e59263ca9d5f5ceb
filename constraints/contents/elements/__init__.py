"""Elements as functions of indices, within the ranges of dtypes, and arithmetic on them."""
