"""Arithmetic progressions of sizes, and the largest one within a set of integers."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, lcm
from typing import Final

from ...constraints.terms.dims import Dim
from ...constraints.terms.formula import Formula, all_of, eq, ge, le
from ..theory.integer_sets import MAX_PERIOD, IntegerSet

HORIZON: Final = 1 << 10
"""The number of values that an endless progression counts as having: sizes beyond it are rarer than those
that a choice excludes.
"""
RUNS: Final = 32
"""At most this many intervals of one residue class are examined."""
CLASSES: Final = 1 << 10
"""At most this many residue classes of a set are examined, those of small moduli first."""


@dataclass(frozen=True, slots=True)
class Progression:
    """The numbers `start, start + step, …, last`.

    A single value where start equals last; endless where last is None.
    """

    start: int
    last: int | None
    step: int = 1

    @staticmethod
    def single(value: int) -> Progression:
        return Progression(value, value)

    def __contains__(self, value: int) -> bool:
        below_end = self.last is None or value <= self.last
        return self.start <= value and below_end and (value - self.start) % self.step == 0

    @property
    def is_single(self) -> bool:
        return self.start == self.last

    @property
    def count(self) -> int:
        """Returns the number of values, at least 1; only those up to the horizon if endless."""
        last = max(self.start, HORIZON) if self.last is None else self.last
        return (last - self.start) // self.step + 1

    def formula(self, dim: Dim) -> Formula:
        """Returns the condition that the dim is one of the values."""
        if self.is_single:
            return eq(dim, self.start)
        bounds = [ge(dim, self.start), True if self.last is None else le(dim, self.last)]
        return all_of((*bounds, eq(dim % self.step, self.start % self.step)))

    def at(self, index: int) -> int:
        """Returns the value at an index, or the last one where there are fewer."""
        value = self.start + index * self.step
        return value if self.last is None else min(value, self.last)

    def split(self, index: int) -> tuple[Progression, Progression] | None:
        """Returns the first so many values and the rest; None where one of the two would be empty."""
        cut = self.start + index * self.step
        if index < 1 or (self.last is not None and cut > self.last):
            return None
        return Progression(self.start, cut - self.step, self.step), Progression(cut, self.last, self.step)


def rank(progression: Progression) -> tuple[bool, int, bool, int, int]:
    """Returns a measure of a progression; larger is better. Endless ones come first, then more values, then
    small steps and small starts.

    Multiples of the step, `k*n` rather than `k*n + r`, may have one value less, if they are several.
    """
    p = progression
    multiples = p.start % p.step == 0 and not p.is_single
    return p.last is None, p.count + multiples, multiples, -p.step, -p.start


def largest(values: IntegerSet, modulus: int = 1, consecutive: bool = False) -> Progression | None:
    """Returns the largest progression within a set that is bounded below, its step a multiple of the modulus.

    With `consecutive`, its step is 1. Among the progressions that are longest in their residue class, it is
    the best by `rank`; a class whose members form endlessly many runs has none. None for the empty set.
    """
    if not values or values.min == -inf:
        return None
    found = [*_candidates(values, modulus, consecutive)]
    return max(found, key=rank) if found else Progression.single(int(values.min))


def _candidates(values: IntegerSet, modulus: int, consecutive: bool) -> Iterator[Progression]:
    period = lcm(values.period, modulus)
    if period > MAX_PERIOD:
        return
    looked = 0
    for m in range(modulus, period + 1, modulus):
        if period % m or (looked := looked + m) > CLASSES or (consecutive and m > 1):
            continue
        for residue in range(m):
            members = values & IntegerSet(m, (), (1 << residue,))
            if not members:
                continue
            step = members.congruence()[0] or m
            for low, high in members.runs(RUNS) or ():
                if low is not None and (step == 1 or not consecutive):
                    yield Progression(low, high, 1 if low == high else step)
