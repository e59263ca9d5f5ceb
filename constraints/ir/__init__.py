"""Programs, specs and constraint systems as plain data."""
