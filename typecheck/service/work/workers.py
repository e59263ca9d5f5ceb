"""A worker from outside: starts the process, asks it, and ends it where it takes too long or too much."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from .worker import read, write

LOOK_S: Final = 0.1
"""The interval, in seconds, at which a worker is examined."""
MOST_ANSWERS: Final = 200
"""After so many a worker is replaced: what z3 and Python keep does not add up."""
START_S: Final = 120.0
_PASSED: Final = "PATH PYTHONPATH HOME LANG LC_ALL TMPDIR LD_LIBRARY_PATH SYSTEMROOT TZ".split()
"""The environment variables that a worker gets to see: no secrets."""


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """The limits of a check."""

    seconds: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """The answer of a worker."""

    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Broke:
    """The worker did not live to answer."""

    kind: Literal["time", "memory", "crash", "stopped"]
    reason: str


Outcome: TypeAlias = "WorkerAnswer | Broke"
Watch: TypeAlias = Callable[[str], bool]
"""Told at every look which step the check is at; says whether it is to go on."""


class Executor(Protocol):
    """Runs one check at a time."""

    def ask(
        self, form: str, content: bytes, question: Mapping[str, Any], limits: CheckLimits, watch: Watch
    ) -> Outcome:
        """The answer, or how the process ended. `content` is compressed."""

    def close(self) -> None:
        """Ends the process."""


class Worker:
    """A process of this machine, started when it is first needed and again after it ended."""

    def __init__(self, *, targets: bool = False) -> None:
        """With `targets` it is asked about targets of this machine, whose code it runs: by no service."""
        self.targets = targets
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._heard: queue.Queue[Mapping[str, Any] | None] = queue.Queue()
        self._answers = 0
        self._memory_mb = 0

    def ask(
        self, form: str, content: bytes, question: Mapping[str, Any], limits: CheckLimits, watch: Watch
    ) -> Outcome:
        if self._answers >= MOST_ANSWERS or self._memory_mb != limits.memory_mb:
            self.close()
        try:
            process = self._ready(limits, watch)
            if process is None:
                return self._broke("stopped", "it was cancelled")
            assert process.stdin is not None
            write(process.stdin, {"form": form, "question": question, "seconds": limits.seconds}, content)
        except (OSError, TimeoutError) as error:
            return self._broke("crash", f"the process of the check did not start: {error}")
        until, step = time.monotonic() + limits.seconds, ""
        while True:
            try:
                said = self._heard.get(timeout=LOOK_S)
            except queue.Empty:
                said = {"step": step}
            if said is None:
                return self._broke("crash", self._how_it_ended(process))
            if "step" not in said:
                self._answers += 1
                if said.get("failed", {}).get("kind") == "memory":
                    return self._broke("memory", _memory_told(limits))
                return WorkerAnswer(said)
            step = said["step"]
            if not watch(step):
                return self._broke("stopped", "it was cancelled")
            if time.monotonic() > until:
                return self._broke("time", f"it took more than {limits.seconds:.0f} s")
            if _memory_mb(process.pid) > limits.memory_mb:
                return self._broke("memory", _memory_told(limits))

    def close(self) -> None:
        process, self._process = self._process, None
        self._answers = 0
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    _close_quietly(stream)

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return None if self._process is None else self._process.pid

    def _broke(self, kind: Literal["time", "memory", "crash", "stopped"], reason: str) -> Broke:
        self.close()
        return Broke(kind, reason)

    def _ready(self, limits: CheckLimits, watch: Watch) -> subprocess.Popen[bytes] | None:
        """A process that waits for a question; None where none is wanted any more.

        Raises OSError, TimeoutError.
        """
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self.starts += 1
        self._memory_mb = limits.memory_mb
        self._heard = queue.Queue()
        seen = {name: os.environ[name] for name in _PASSED if name in os.environ}
        process = self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", f"{__package__}.worker", *self._arguments(limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=None if self.targets else seen,
            cwd=None if self.targets else tempfile.gettempdir(),
            start_new_session=True,  # a Ctrl-C at the service's terminal is the service's to deal with
        )
        threading.Thread(target=_hear, args=(process, self._heard), daemon=True).start()
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with contextlib.suppress(queue.Empty):
                if self._heard.get(timeout=LOOK_S) is None:
                    raise OSError(self._how_it_ended(process))
                return process
            if not watch(""):
                return None
        raise TimeoutError(f"it did not answer within {START_S:.0f} s")

    def _arguments(self, limits: CheckLimits) -> list[str]:
        return ["targets"] if self.targets else ["models", str(limits.memory_mb)]

    def _how_it_ended(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait()
        if code < 0:
            name = signal.Signals(-code).name if -code in [*signal.Signals] else str(-code)
            return f"its process was ended by the signal {name}"
        return f"its process ended with the code {code}"


def _memory_told(limits: CheckLimits) -> str:
    return f"it took more than {limits.memory_mb} MB of memory"


def _hear(process: subprocess.Popen[bytes], heard: queue.Queue[Mapping[str, Any] | None]) -> None:
    """Passes on what a worker says, and that it says no more."""
    assert process.stdout is not None
    try:
        while (frame := read(process.stdout)) is not None:
            heard.put(frame[0])
    except (OSError, ValueError):  # the stream was closed, or it holds no frames
        pass
    heard.put(None)


def _close_quietly(stream: Any) -> None:
    with contextlib.suppress(OSError):  # the other end is gone
        stream.close()


def _memory_mb(pid: int) -> float:
    """Returns the memory that a process uses, where the system reports it (Linux); else 0, and the process's
    own limit applies.
    """
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
