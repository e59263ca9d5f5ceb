"""Elements looked up backwards, from a result to the calls that made it: those at one place, the extremes."""
