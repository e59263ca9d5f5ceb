"""Services to test: one within the test's process, one that is a process of its own, and databases."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from serving import Running, free_port, in_process
from starlette.testclient import TestClient

from anyshape.typecheck.service.database import Database
from anyshape.typecheck.service.settings import Settings


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
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, without databases."""
    initdb, server = (_program(name) for name in ("initdb", "postgres"))
    if initdb is None or server is None:
        told = "PostgreSQL is not installed: apt-get install postgresql"
        pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder = Path(tmp_path_factory.mktemp("postgres"))
    if as_user:  # the server refuses to run as root
        if subprocess.run(["id", "postgres"], capture_output=True).returncode:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        folder = Path("/tmp") / f"anyshape-test-postgres-{os.getpid()}"
        folder.mkdir(mode=0o700)
        shutil.chown(folder, "postgres")
    port = free_port()
    try:
        init = [initdb, "-D", folder / "data", "-U", "anyshape", "--auth=trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*as_user, *map(str, init)], check=True, capture_output=True, cwd="/")
        run = [server, "-D", folder / "data", "-p", port, "-h", "127.0.0.1", "-k", folder, "-c", "fsync=off"]
        process = subprocess.Popen([*as_user, *map(str, run)], stderr=subprocess.DEVNULL, cwd="/")
        try:
            url = f"postgresql+psycopg://anyshape@127.0.0.1:{port}/"
            _until_it_answers(url + "postgres")
            yield url
        finally:
            process.terminate()
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


def _until_it_answers(url: str) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(url)
    for _ in range(200):
        try:
            with engine.connect():
                engine.dispose()
                return
        except sa.exc.OperationalError:
            time.sleep(0.1)
    raise AssertionError("PostgreSQL does not answer")


@pytest.fixture
def new_postgres(request: pytest.FixtureRequest) -> str:
    """The URL of a new database."""
    import sqlalchemy as sa

    server = request.getfixturevalue("postgres")
    name = f"d{os.urandom(6).hex()}"
    engine = sa.create_engine(server + "postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"create database {name}"))
    engine.dispose()
    return server + name


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
