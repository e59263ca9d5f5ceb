"""A check: from a target and a spec to a report, and the runs that show it by example."""
