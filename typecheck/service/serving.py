"""Runs the service in this process until a signal ends it."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from types import FrameType
from typing import IO

import uvicorn
from fastapi import FastAPI

from ..project.config import ConfigError
from .app import create_app
from .http.core import Service
from .ops.logs import set_up
from .ops.settings import Settings
from .work.workers import Executor, Worker

KEEP_ALIVE_S = 75
"""Seconds for which a connection may be idle: longer than proxies and clients keep theirs, so that none of
them sends a request into a connection that is being closed.
"""
CLOSING_S = 5
"""Seconds for requests that are being answered, when the service ends."""


class _Server(uvicorn.Server):
    """Ends the streams of those who follow, so that they do not hold up the end; the second signal does not
    wait for anything.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.service.hub.end()
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(settings: Settings) -> None:
    """Raises ConfigError where the settings do not go together, or the address is taken."""
    set_up(settings.log_format, settings.log_level)
    with _alone(settings):
        app = create_app(settings, executor_of(settings))
        service: Service = app.state.service
        service.database.migrate()
        if not (settings.loopback or settings.insecure or settings.require_tokens or service.tokens.exist()):
            raise ConfigError(
                f"{settings.host} can be reached from other machines, and no token is asked for",
                "make one with `anyshape token create NAME`, or pass --insecure",
            )
        _listen(app, service, settings)


def _listen(app: FastAPI, service: Service, settings: Settings) -> None:
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=4096,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=CLOSING_S,
    )
    server = _Server(config, service)
    with _bound(settings.host, settings.port) as listening:
        host, port = listening.getsockname()[:2]
        print(f"anyshape: http://{_shown(host)}:{port}/", file=sys.stderr, flush=True)
        server.run(sockets=[listening])


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _bound(host: str, port: int) -> socket.socket:
    """A socket at an address. Raises ConfigError where it cannot be had."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        told = f"{_shown(host)}:{port} cannot be listened on: {error.strerror}"
        raise ConfigError(told, "name another with --host and --port") from None
    return found


def executor_of(settings: Settings) -> type[Executor]:
    """Returns the executor that runs checks. Raises ConfigError where the cluster cannot be joined, and
    ModuleNotFoundError without Ray.
    """
    if settings.executor == "local":
        return Worker
    from .work.ray_executor import RayExecutor, connect

    connect(settings.ray_address)
    return RayExecutor


@contextlib.contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """The embedded database is one service's. Raises ConfigError where another has it."""
    if settings.database:
        yield
        return
    settings.data.mkdir(parents=True, exist_ok=True)
    with open(settings.data / "lock", "a+b") as file:
        if not _lock(file):
            hint = "name another folder with --data, or use PostgreSQL, which services can share"
            raise ConfigError(f"another service is at work in {settings.data}", hint)
        yield


def _lock(file: IO[bytes]) -> bool:
    """Takes the file for this process, until that ends in whichever way; says whether it could be had."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
