"""A process per model, with a limit on its seconds and on its memory: what a model does ends with it.

The parent imports the packages once and forks, so that a model costs what it costs itself.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from . import shims
from .measure import Result
from .row import Row

# What makes importing a package useful: its top level alone imports next to nothing where it is lazy.
INSIDE = {
    "transformers": "transformers.modeling_utils",
    "diffusers": "diffusers.models.modeling_utils",
    "monai": "monai.networks.nets",
    "pytorchcv": "pytorchcv.model_provider",
    "torch_geometric": "torch_geometric.nn",
    "torchaudio": "torchaudio.models",
}
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Limits:
    """Of one model: seconds of wall clock, and GiB of memory on top of what the parent has."""

    seconds: float
    gib: float


@dataclass
class Worker:
    row: Row
    process: ForkProcess
    results: Connection
    deadline: float


def preload(rows: Sequence[Row]) -> dict[str, str]:
    """Imports the packages of these rows; says why of those that cannot be imported."""
    shims.install()
    missing = {}
    for package in dict.fromkeys(row.package for row in rows):
        try:
            import_module(INSIDE.get(package, package))
        except (ImportError, OSError) as error:
            missing[package] = f"{type(error).__name__}: {error}"
    return missing


def run(rows: Sequence[Row], jobs: int, limits: Limits, work: Callable[[Row], Result]) -> Iterator[Result]:
    """Results as they come. A model that crashes, or passes a limit, has a result that says so."""
    waiting = list(reversed(rows))
    running: list[Worker] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_start(waiting.pop(), limits, work))
            patience = max(0.0, min(w.deadline for w in running) - time.monotonic())
            wait([w.results for w in running], patience)
            for worker in list(running):
                result = _result(worker, limits)
                if result is not None:
                    running.remove(worker)
                    worker.process.join()
                    yield result
    finally:
        for worker in running:
            worker.process.kill()


def _start(row: Row, limits: Limits, work: Callable[[Row], Result]) -> Worker:
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_inside, args=(row, limits, work, theirs))
    process.start()
    theirs.close()
    return Worker(row, process, ours, time.monotonic() + limits.seconds)


def _result(worker: Worker, limits: Limits) -> Result | None:
    """The worker's result, or what became of it; None while it works."""
    if worker.results.poll():
        try:
            result: Result = worker.results.recv()
            return result
        except EOFError:
            worker.process.join()
            return _failed(worker.row, f"the process died, exit code {worker.process.exitcode}")
    if time.monotonic() >= worker.deadline:
        worker.process.kill()
        return _failed(worker.row, f"time-out after {limits.seconds:g} s")
    return None


def _failed(row: Row, why: str) -> Result:
    return Result(row.name, row.package, failure=why)


def _inside(row: Row, limits: Limits, work: Callable[[Row], Result], results: Connection) -> None:
    """The life of a worker. Whatever it fails with is its result."""
    gc.freeze()  # a collection would copy the pages that all workers share
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stdout.fileno())
    os.dup2(silence, sys.stderr.fileno())
    _limit_memory(limits.gib)
    try:
        result = work(row)
    except BaseException as error:  # noqa: BLE001 (a model's failure is a row of the table, not the end of it)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        told = " ".join(str(error).split())[:300]
        result = _failed(row, f"{type(error).__name__}: {told} [{frame.filename}:{frame.lineno}]")
    results.send(result)


def _limit_memory(gib: float) -> None:
    """Private memory from here on: what a process has now, and so much more."""
    statm = Path("/proc/self/statm")  # the sixth number is what RLIMIT_DATA limits, in pages
    pages = int(statm.read_text().split()[5]) if statm.exists() else 0
    limit = pages * resource.getpagesize() + int(gib * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
