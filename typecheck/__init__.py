"""What the user sees: the API, the command line, reports and the feedback to torch."""
