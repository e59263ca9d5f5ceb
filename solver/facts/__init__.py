"""Short descriptions of the sizes in an accepted set."""
