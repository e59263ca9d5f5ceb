"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "models",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("form", sa.String(16), nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_table(
        "works",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("model", sa.String(64), sa.ForeignKey("models.digest"), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("client", sa.String(64), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("tag", sa.Integer, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("started", sa.Float),
        sa.Column("finished", sa.Float),
        sa.Column("starts", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("lease", sa.Float, nullable=False),
        sa.Column("step", sa.String(64), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("answer", sa.LargeBinary),
    )
    op.create_index("ix_works_model", "works", ["model"])
    op.create_index("works_turn", "works", ["state", "priority", "tag"])
    op.create_index("works_client", "works", ["client", "state"])
    op.create_index("works_finished", "works", ["finished"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("token", sa.String(32), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("work", sa.String(64), sa.ForeignKey("works.digest"), nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("cancelled", sa.Boolean, nullable=False),
        sa.UniqueConstraint("tenant", "work", name="jobs_once"),
    )
    op.create_index("ix_jobs_work", "jobs", ["work"])
    op.create_index("jobs_history", "jobs", ["tenant", "created", "id"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(64), nullable=False, unique=True),
        sa.Column("tenant", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("revoked", sa.Float),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("per_minute", sa.Integer),
        sa.Column("upload_mb", sa.Float),
    )


def downgrade() -> None:
    for table in ("tokens", "jobs", "works", "models"):
        op.drop_table(table)
