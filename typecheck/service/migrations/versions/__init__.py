"""The steps of the migration, a file for each."""
