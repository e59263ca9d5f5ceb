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
"""Of an endless progression so much counts: sizes beyond it are rarer than those that a choice excludes."""
RUNS: Final = 32
"""How many intervals of one residue class are looked at."""
CLASSES: Final = 1 << 10
"""How many residue classes of a set are looked at, those of small moduli first."""


@dataclass(frozen=True, slots=True)
class Progression:
    """`start, start + step, …, last`; one value where start is last, no end where last is None."""

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
        """How many values there are, up to the horizon where there is no end; at least 1."""
        last = max(self.start, HORIZON) if self.last is None else self.last
        return (last - self.start) // self.step + 1

    def formula(self, dim: Dim) -> Formula:
        """The dim is one of the values."""
        if self.is_single:
            return eq(dim, self.start)
        bounds = [ge(dim, self.start), True if self.last is None else le(dim, self.last)]
        return all_of((*bounds, eq(dim % self.step, self.start % self.step)))

    def at(self, index: int) -> int:
        """The value at an index, or the last one where there are not so many."""
        value = self.start + index * self.step
        return value if self.last is None else min(value, self.last)

    def split(self, index: int) -> tuple[Progression, Progression] | None:
        """The first so many values and the rest; None where one of the two would be empty."""
        cut = self.start + index * self.step
        if index < 1 or (self.last is not None and cut > self.last):
            return None
        return Progression(self.start, cut - self.step, self.step), Progression(cut, self.last, self.step)


def rank(progression: Progression) -> tuple[bool, int, bool, int, int]:
    """Larger is better: endless, then the number of values, then small steps, small starts. Multiples of
    the step, `k*n` and not `k*n + r`, may have one value less, if they are several.
    """
    p = progression
    multiples = p.start % p.step == 0 and not p.is_single
    return p.last is None, p.count + multiples, multiples, -p.step, -p.start


def largest(values: IntegerSet, modulus: int = 1, consecutive: bool = False) -> Progression | None:
    """The largest progression within a set that is bounded below, its step a multiple of the modulus.

    `consecutive`: its step is 1. Of the progressions that are longest in their residue class the best by
    `rank`; a class whose members form endlessly many runs has none here. None of the empty set.
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
