"""Work in a child process, with limits of seconds and memory: what torch or the checker does there ends with
it.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Generic, TypeVar

import torch

Task = TypeVar("Task")
Answer = TypeVar("Answer")

FORK = multiprocessing.get_context("fork")
GIB = 2.0
LIFE = 600
"""Tasks after which a process is replaced, so that nothing piles up in it."""


@dataclass(frozen=True)
class Died:
    """The process has not answered: it crashed, or was ended at a limit."""

    why: str


class Servant(Generic[Task, Answer]):
    """A child process that answers one task after another. It is forked when the first comes, and anew after
    it died, so that tasks neither see each other's crashes nor pay for an import.
    """

    def __init__(self, work: Callable[[Task], Answer], seconds: float) -> None:
        self._work, self._seconds = work, seconds
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._done = 0

    def ask(self, task: Task) -> Answer | Died:
        if self._process is None or self._done >= LIFE:
            self.close()
            self._start()
        assert self._pipe is not None and self._process is not None
        self._done += 1
        try:
            self._pipe.send(task)
            if not self._pipe.poll(self._seconds):
                self.close()
                return Died(f"no answer within {self._seconds:g} s")
            answer: Answer | Died = self._pipe.recv()
            if isinstance(answer, Died):
                self.close()
            return answer
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            self.close()
            return Died(f"the process died, exit code {code}")

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            assert self._pipe is not None
            self._pipe.close()
        self._process = self._pipe = None

    def _start(self) -> None:
        ours, theirs = FORK.Pipe()
        process = FORK.Process(target=self._serve, args=(ours, theirs), daemon=True)
        process.start()
        theirs.close()
        self._process, self._pipe, self._done = process, ours, 0

    def _serve(self, ours: Connection, pipe: Connection) -> None:
        gc.freeze()  # a collection would copy the pages that the two processes share
        ours.close()
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, sys.stdout.fileno())
        os.dup2(silence, sys.stderr.fileno())
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)  # tensors are small, and threads do not survive a fork
        _limit_memory(GIB)
        while True:
            try:
                task = pipe.recv()
            except EOFError:
                os._exit(0)
            try:
                answer: Answer | Died = self._work(task)
            except BaseException as error:
                frames = traceback.extract_tb(error.__traceback__)
                at = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-6:]))
                pipe.send(Died(f"{type(error).__name__}: {error}, at {at}"))
                raise
            pipe.send(answer)


def _limit_memory(gib: float) -> None:
    """Private memory from here on: what the process has now, and so much more."""
    statm = Path("/proc/self/statm")  # the sixth number is what RLIMIT_DATA limits, in pages
    pages = int(statm.read_text().split()[5]) if statm.exists() else 0
    limit = pages * resource.getpagesize() + int(gib * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
