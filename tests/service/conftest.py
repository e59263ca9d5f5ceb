"""Services to test: one within the test's process, one that is a process of its own, and databases."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from serving import Running, free_port, in_process
from starlette.testclient import TestClient

from anyshape.typecheck.service.ops.settings import Settings
from anyshape.typecheck.service.queue.database import Database
from benchmarks.postgres import NotInstalled, new_database
from benchmarks.postgres import postgres as postgres_server


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data", workers=1, drain_s=5.0, log_level="error")


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """A client of a service with one worker and no tokens."""
    with in_process(settings) as client:
        yield client


# ---- databases


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, without databases."""
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(postgres_server())
        except NotInstalled as reason:
            pytest.fail(str(reason)) if os.environ.get("CI") else pytest.skip(str(reason))
        yield url


@pytest.fixture
def new_postgres(request: pytest.FixtureRequest) -> str:
    """The URL of a new database."""
    return new_database(request.getfixturevalue("postgres"))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database with tables, of either kind."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/test.db"
    else:
        url = request.getfixturevalue("new_postgres")
    made = Database(url)
    made.migrate()
    yield made
    made.close()


# ---- a service as a process


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts services in a folder of their own."""
    port, started = free_port(), []

    def start(*options: str, port: int = port) -> Running:
        started.append(Running(tmp_path, port, *options))
        return started[-1]

    yield start
    for one in started:
        one.end()
