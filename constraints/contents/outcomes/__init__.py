"""Facts about elements, conditions and counts that are the same for all data."""
