"""A report in the forms in which it leaves: text for people, JSON for tools."""
