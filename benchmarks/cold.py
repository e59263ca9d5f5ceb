"""What a command costs from a cold start: wall time, processor time and peak memory of the whole process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STARTER = Path(__file__).with_name("starter.py")


@dataclass(frozen=True, slots=True)
class Process:
    """One run of a command."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    code: int


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Process:
    """Runs a command to its end. Raises FileNotFoundError where there is no such command."""
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(command[0])
    told = subprocess.run(
        [sys.executable, "-I", str(STARTER), *command],
        stdout=subprocess.PIPE,
        env=environment and dict(environment),
        check=True,
    ).stdout
    wall, cpu, peak_kb, code = json.loads(told)
    return Process(wall, cpu, peak_kb / 1024, code)


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
