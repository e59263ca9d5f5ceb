"""Many checks of one project: its settings, what is known already, and what has changed."""
