"""A check: from a target and a spec to a report, with examples."""
