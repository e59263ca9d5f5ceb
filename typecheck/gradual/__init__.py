"""The questions of gradual typing: which types fit a program, and which ways its branches go."""
