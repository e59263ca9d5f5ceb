"""What a command costs from a cold start: wall time, processor time and peak memory of the whole process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Process:
    """One run of a command."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    code: int


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Process:
    """Runs a command to its end. Raises FileNotFoundError where there is no such command."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment and dict(environment)
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    return Process(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode)


def rounds(commands: Mapping[str, Sequence[str]], repeat: int) -> dict[str, list[Process]]:
    """Runs of all commands in turn, as on a machine where they have run before: modules are compiled."""
    with tempfile.TemporaryDirectory() as compiled:
        environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled
        found: dict[str, list[Process]] = {name: [] for name in commands}
        for turn in range(repeat + 1):
            for name, command in commands.items():
                process = run(command, environment)
                if turn:
                    found[name].append(process)
    return found


def checking(*arguments: str) -> list[str]:
    """The command line `anyshape check …`."""
    return [sys.executable, "-m", "anyshape.typecheck", "check", *arguments]


def building(*arguments: str) -> list[str]:
    """The command line of `benchmarks.peak`."""
    return [sys.executable, "-m", "benchmarks.peak", *arguments]


NOTHING = [sys.executable, "-c", "pass"]
IMPORT_TORCH = [sys.executable, "-c", "import torch"]
