"""Changes and comparisons of exported graphs."""
