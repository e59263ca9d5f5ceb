"""How things are timed: contenders in turn, round by round, and ratios within a round.

The machine that a benchmark runs on may be slow now and fast a minute later. Two contenders of one round ran
next to each other, so their ratio says more than either time; what is quoted is the median over the rounds.
Seconds are processor time of the calling thread, which other programs on the machine disturb least; ours and
every rival are single-threaded, for no kernel runs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

now = time.thread_time

Contender = Callable[[], "float | Mapping[str, float]"]
"""Does its work once; returns the seconds that it took, or the seconds of each of its stages."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some numbers, with the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        return cls(median(numbers), min(numbers), max(numbers))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def seconds(work: Callable[[], object]) -> float:
    """Returns the seconds that the work takes, once."""
    started = now()
    work()
    return now() - started


def rounds(contenders: Mapping[str, Contender], repeat: int) -> dict[str, list[float]]:
    """Seconds by contender, or by `contender.stage`, a number per round.

    One more round comes first and does not count: it imports and fills caches. Garbage of one contender is
    collected before the next begins.
    """
    found: dict[str, list[float]] = {}
    for turn in range(repeat + 1):
        for name, contender in contenders.items():
            gc.collect()
            told = contender()
            stages = {f"{name}.{stage}": s for stage, s in told.items()} if isinstance(told, Mapping) else {}
            if turn:
                for key, took in (stages or {name: told}).items():
                    found.setdefault(key, []).append(took)  # type: ignore[arg-type]
    return found


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """above / below, round by round."""
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def total(*parts: Sequence[float]) -> list[float]:
    """Sums, round by round."""
    return [sum(numbers) for numbers in zip(*parts, strict=True)]
