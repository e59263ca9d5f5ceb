"""The tables: models by content, works (questions to solve, once for all who ask them), jobs and tokens.

A job is a tenant's view of a work. Works are found by a digest of everything that their answer depends on, so
that two jobs about the same thing share one.
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import Boolean, Float, ForeignKey, Index, Integer, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class State(StrEnum):
    """The progress of a work. `done` has a report; `failed` has the reason why it has none."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self not in (State.QUEUED, State.RUNNING)


class Base(DeclarativeBase):
    """All tables."""


class Model(Base):
    """A program, without weights."""

    __tablename__ = "models"
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    form: Mapped[str] = mapped_column(String(16))
    content: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    """Compressed by zlib."""
    size: Mapped[int] = mapped_column(Integer)
    """Of what was compressed, in bytes."""
    created: Mapped[float] = mapped_column(Float)


class Work(Base):
    """A question about a model, where it stands, and its answer."""

    __tablename__ = "works"
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    model: Mapped[str] = mapped_column(ForeignKey("models.digest"), index=True)
    question: Mapped[str] = mapped_column(Text)
    """As JSON: inputs, assumptions, budget, replay."""
    state: Mapped[str] = mapped_column(String(16))
    client: Mapped[str] = mapped_column(String(64))
    """Whose turn it takes: the tenant that asked first."""
    priority: Mapped[int] = mapped_column(Integer, default=0)
    tag: Mapped[int] = mapped_column(Integer, default=0)
    """The turn among those of the same priority."""
    created: Mapped[float] = mapped_column(Float)
    started: Mapped[float | None] = mapped_column(Float)
    finished: Mapped[float | None] = mapped_column(Float)
    starts: Mapped[int] = mapped_column(Integer, default=0)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    """Attempts that ended without an answer, by what they did themselves."""
    owner: Mapped[str] = mapped_column(String(64), default="")
    lease: Mapped[float] = mapped_column(Float, default=0.0)
    """Until when the owner is taken to be alive."""
    step: Mapped[str] = mapped_column(String(64), default="")
    verdict: Mapped[str] = mapped_column(String(16), default="")
    problem: Mapped[str] = mapped_column(Text, default="")
    """The reason for its failure, as JSON."""
    answer: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    """The report and what belongs to it, as JSON, compressed by zlib."""

    __table_args__ = (
        Index("works_turn", "state", "priority", "tag"),
        Index("works_client", "client", "state"),
        Index("works_finished", "finished"),
    )


class Job(Base):
    """A tenant's request: its view of a work."""

    __tablename__ = "jobs"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    token: Mapped[str] = mapped_column(String(32), default="")
    name: Mapped[str] = mapped_column(String(200))
    work: Mapped[str] = mapped_column(ForeignKey("works.digest"), index=True)
    created: Mapped[float] = mapped_column(Float)
    cancelled: Mapped[bool] = mapped_column(Boolean, default=False)

    __table_args__ = (
        UniqueConstraint("tenant", "work", name="jobs_once"),
        Index("jobs_history", "tenant", "created", "id"),
    )


class TokenRow(Base):
    """A token: the right to send requests. Its secret is not kept."""

    __tablename__ = "tokens"
    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    tenant: Mapped[str] = mapped_column(String(64))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256: of 256 random bits, no slower hash is called for."""
    created: Mapped[float] = mapped_column(Float)
    revoked: Mapped[float | None] = mapped_column(Float)
    priority: Mapped[int] = mapped_column(Integer, default=0)
    """The highest that it may ask for."""
    per_minute: Mapped[int | None] = mapped_column(Integer)
    """Requests, where it is not the number of the settings."""
    upload_mb: Mapped[float | None] = mapped_column(Float)
