"""Services that tests talk to: within the test's own process, and as a process."""

from __future__ import annotations

import atexit
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import httpx
from starlette.testclient import TestClient

from anyshape.typecheck.service.app import create_app
from anyshape.typecheck.service.http.core import Service
from anyshape.typecheck.service.ops.settings import Settings
from anyshape.typecheck.service.work.workers import CheckLimits, Executor, Outcome, Watch, Worker

FIXTURES = Path(__file__).parent / "tracer/fixtures"


class Lent:
    """A worker that the services of this process hand on to each other, since its start takes seconds."""

    idle: ClassVar[list[Worker]] = []

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def ask(
        self, form: str, content: bytes, question: Mapping[str, Any], limits: CheckLimits, watch: Watch
    ) -> Outcome:
        if self._worker is None:
            self._worker = self.idle.pop() if self.idle else Worker()
        return self._worker.ask(form, content, question, limits, watch)

    def close(self) -> None:
        """Keeps the worker for the next service."""
        if self._worker is not None:
            self.idle.append(self._worker)
        self._worker = None


@atexit.register
def end_idle() -> None:
    """Ends the processes that no service has any more."""
    while Lent.idle:
        Lent.idle.pop().close()


def in_process(settings: Settings, make: Callable[[], Executor] = Lent) -> TestClient:
    """A client of a service in this process; it runs within `with`."""
    return TestClient(create_app(settings, make), base_url="http://localhost")


def service_of(client: TestClient) -> Service:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    return service


def ended(client: TestClient | httpx.Client, id: str, seconds: float = 60.0) -> dict[str, Any]:
    """The check once it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        check = client.get(f"/v1/checks/{id}", params={"wait": 5}).json()
        if check["state"] not in ("queued", "running"):
            return check
    raise AssertionError(f"{check} has not ended within {seconds} s")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Running:
    """`anyshape serve`, and a client of it."""

    def __init__(self, folder: Path, port: int, *options: str) -> None:
        self.log = (folder / "log").open("ab")
        command = [sys.executable, "-m", "anyshape.typecheck", "serve", "--port", str(port), "--workers", "1"]
        self.process = subprocess.Popen([*command, *options], cwd=folder, stderr=self.log)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
        for _ in range(300):
            try:
                if self.client.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                assert self.process.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        raise AssertionError((folder / "log").read_text())

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(60)
        self.client.close()
        self.log.close()
