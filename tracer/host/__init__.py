"""Knowledge about the internals of torch and CPython, and the means to replace them for a while."""
