"""Seconds: what each step took, and what is left of the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...tracer.host.alone import TURN

Progress = Callable[[str], None]
"""Called with what is being done, whenever that changes."""


@dataclass(slots=True)
class Clock:
    """Seconds spent on each step, and what is left of the budget."""

    progress: Progress
    budget_s: float
    spent: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds left of the budget. Importing torch and the user's program does not count, nor does waiting
        for other threads.
        """
        idle = self.spent.get("load_s", 0.0) + self.spent.get("wait_s", 0.0)
        return max(self.budget_s - (self.elapsed - idle), 0.0)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Inside, no other thread records a program."""
        before = time.monotonic()
        with TURN:
            self.spent["wait_s"] = time.monotonic() - before
            yield

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.progress(name)
        before = time.monotonic()
        try:
            yield
        finally:
            self.spent[f"{name}_s"] = time.monotonic() - before
