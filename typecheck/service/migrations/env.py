"""Connects Alembic to the database: by the connection and the tables that the service hands it."""

from __future__ import annotations

from alembic import context

given = context.config.attributes
context.configure(
    connection=given["connection"], target_metadata=given["tables"], render_as_batch=True, compare_type=True
)
with context.begin_transaction():
    context.run_migrations()
