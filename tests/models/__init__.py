"""Real models, whole and broken, each with its accepted set worked out by hand."""
