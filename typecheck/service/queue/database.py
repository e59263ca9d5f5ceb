"""The connection to the database, and its tables brought up to date."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from ...project.config import ConfigError
from .tables import Base

MIGRATIONS = Path(__file__).parents[1] / "migrations"


class Database:
    """Sessions to read and to write with. SQLite waits for its one writer; PostgreSQL has many."""

    def __init__(self, url: str) -> None:
        try:
            parsed = sa.make_url(url)
            if parsed.get_backend_name() == "sqlite" and parsed.database:
                Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
            # What is in a statement is nobody's to read in a log.
            self.engine = sa.create_engine(parsed, hide_parameters=True, **_options(parsed))
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ModuleNotFoundError) as error:
            raise ConfigError(f"the database cannot be used: {error}", "see docs/service.md") from None
        except OSError as error:
            raise ConfigError(f"the folder of the database cannot be made: {error.strerror}") from None
        self.embedded = self.engine.dialect.name == "sqlite"
        if self.embedded:
            sa.event.listen(self.engine, "connect", _prepare)
            sa.event.listen(self.engine, "begin", _begin)

    def migrate(self) -> None:
        """Makes the tables, or brings them up to date. Raises ConfigError where there is no database."""
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        try:
            with self.engine.connect() as connection:
                if not self.embedded:  # services that start together take turns
                    connection.execute(sa.text("select pg_advisory_lock(820217)"))
                config.attributes |= {"connection": connection, "tables": Base.metadata}
                command.upgrade(config, "head")
                connection.commit()
                if not self.embedded:
                    connection.execute(sa.text("select pg_advisory_unlock(820217)"))
        except sa.exc.OperationalError as error:
            raise ConfigError(f"the database cannot be reached: {str(error.orig).strip()}") from None

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction, which is kept unless the block raises."""
        engine = self.engine.execution_options(write=True)
        with Session(engine, expire_on_commit=False) as session, session.begin():
            yield session

    def clock(self, session: Session) -> float:
        """Seconds by which leases are measured: one clock for all who share the database;
        of an embedded database, which is one service's, a clock that nobody sets.
        """
        if self.embedded:
            return time.monotonic()
        return float(session.scalar(sa.text("select extract(epoch from clock_timestamp())")) or 0.0)

    def close(self) -> None:
        self.engine.dispose()


def _options(url: sa.URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"connect_args": {"timeout": 30.0, "check_same_thread": False}, "pool_size": 32}
    return {"pool_size": 20, "max_overflow": 40, "pool_pre_ping": True}


def _prepare(connection: Any, record: Any) -> None:
    """WAL: readers do not wait for the writer. FULL: what was accepted outlives a power cut, too."""
    connection.isolation_level = None  # transactions begin where `_begin` says so
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    """A transaction that writes takes its turn at once, so that none has to give up half way."""
    write = connection.get_execution_options().get("write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def is_full(error: BaseException) -> bool:
    """Returns whether the error means that the disk or the database is full."""
    text = str(error).lower()
    return "is full" in text or "no space left" in text or "disk i/o" in text


def hostname() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "?")
