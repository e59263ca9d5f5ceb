"""Jobs in the database: the tables, the queue, and its events."""
