"""The program itself, run at concrete sizes to test an example."""
