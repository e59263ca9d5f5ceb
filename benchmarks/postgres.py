"""A PostgreSQL server for a while, for tests and benchmarks: one of our own, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path


class NotInstalled(Exception):
    """There is no PostgreSQL here, or none that can be started; the message says what to do."""


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server without databases, less the name of one. Raises NotInstalled."""
    initdb, server = (_program(name) for name in ("initdb", "postgres"))
    if initdb is None or server is None:
        raise NotInstalled("PostgreSQL is not installed: apt-get install postgresql")
    as_user = _as_user()
    made = tempfile.TemporaryDirectory(prefix="anyshape-postgres-", dir="/tmp", ignore_cleanup_errors=True)
    with made as name:
        folder = Path(name)
        if as_user:
            shutil.chown(folder, "postgres")
        init = [initdb, "-D", folder / "data", "-U", "anyshape", "--auth=trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*as_user, *map(str, init)], check=True, capture_output=True, cwd="/")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        run = [server, "-D", folder / "data", "-p", port, "-h", "127.0.0.1", "-k", folder, "-c", "fsync=off"]
        process = subprocess.Popen([*as_user, *map(str, run)], stderr=subprocess.DEVNULL, cwd="/")
        try:
            url = f"postgresql+psycopg://anyshape@127.0.0.1:{port}/"
            _until_it_answers(url + "postgres")
            yield url
        finally:
            process.terminate()
            process.wait()


def new_database(server: str) -> str:
    """The URL of a new database of a server."""
    import sqlalchemy as sa

    name = f"d{os.urandom(6).hex()}"
    engine = sa.create_engine(server + "postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"create database {name}"))
    engine.dispose()
    return server + name


def drop_connections(database: str) -> None:
    """Ends all connections to a database but the one that this takes."""
    import sqlalchemy as sa

    engine = sa.create_engine(database, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(
            sa.text(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        )
    engine.dispose()


def _as_user() -> Sequence[str]:
    """The server refuses to run as root. Raises NotInstalled."""
    if os.geteuid():
        return ()
    if subprocess.run(["id", "postgres"], capture_output=True).returncode:
        raise NotInstalled("PostgreSQL does not run as root, and there is no user postgres")
    return "runuser", "-u", "postgres", "--"


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
