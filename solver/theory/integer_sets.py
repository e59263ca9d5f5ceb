"""Sets of integers that are periodic between finitely many cuts, as masks of residues."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from math import gcd, inf, lcm

from msgspec import Struct

MAX_PERIOD = 1 << 12
MAX_CUTS = 1 << 12
"""Sets of longer periods, or with more cuts, are not represented."""


class IntegerSet(Struct, frozen=True):
    """The integers s for which bit `s % period` of a mask is set; between two cuts one mask holds.

    `masks[i]` applies to `cuts[i-1] <= s < cuts[i]`, with infinities at both ends.
    """

    period: int
    cuts: tuple[int, ...]
    masks: tuple[int, ...]

    def __contains__(self, value: int) -> bool:
        index = sum(cut <= value for cut in self.cuts)
        return bool(self.masks[index] >> value % self.period & 1)

    def __bool__(self) -> bool:
        return self.min != inf

    def __and__(self, other: IntegerSet) -> IntegerSet:
        return _common(self, other)

    def __or__(self, other: IntegerSet) -> IntegerSet:
        return self._combine(other, int.__or__)

    def __invert__(self) -> IntegerSet:
        full = (1 << self.period) - 1
        return IntegerSet(self.period, self.cuts, tuple(mask ^ full for mask in self.masks))

    def __le__(self, other: IntegerSet) -> bool:
        return not self & ~other

    def lies_in(self, other: IntegerSet) -> bool | None:
        """Returns whether all members are in the other set, True for the empty set; None where only some are.
        """
        both = self & other
        return True if both == self else None if both else False

    def _combine(self, other: IntegerSet, join: Callable[[int, int], int]) -> IntegerSet:
        period = lcm(self.period, other.period)
        cuts = sorted({*self.cuts, *other.cuts})
        if period > MAX_PERIOD or len(cuts) > MAX_CUTS:
            raise TooLarge
        masks: list[int] = []
        i = j = 0
        for low in (None, *cuts):
            i += i < len(self.cuts) and self.cuts[i] == low
            j += j < len(other.cuts) and other.cuts[j] == low
            one = repeated(self.masks[i], self.period, period)
            masks.append(join(one, repeated(other.masks[j], other.period, period)))
        return joined(period, cuts, masks)

    def stretches(self) -> Iterator[tuple[int, float, float]]:
        """Yields `(mask, low, high)` for each stretch, both ends included."""
        ends = (-inf, *self.cuts, inf)
        for mask, (low, high) in zip(self.masks, pairwise(ends), strict=True):
            yield mask, low, high - 1

    def _first(self, mask: int, low: float, high: float) -> int | None:
        """Returns the least member of a stretch from `low` on; some member where `low` is minus infinity."""
        if not mask or low > high:
            return None
        if low == -inf:
            return self._last(mask, low, high)
        at = int(low) % self.period
        turned = (mask >> at) | (mask & ((1 << at) - 1)) << (self.period - at)
        found = int(low) + (turned & -turned).bit_length() - 1
        return found if found <= high else None

    def _last(self, mask: int, low: float, high: float) -> int | None:
        """Returns the greatest member of a stretch up to `high`; some member where `high` is infinity."""
        if not mask or low > high:
            return None
        if high == inf:
            return self._first(mask, 0 if low == -inf else low, high)
        at = (int(high) + 1) % self.period
        turned = (mask >> at) | (mask & ((1 << at) - 1)) << (self.period - at)
        found = int(high) - (self.period - turned.bit_length())
        return found if found >= low else None

    def at_least(self, value: int) -> int | None:
        """Returns the least member that is not below the value; None where there are no such members."""
        for mask, low, high in self.stretches():
            if high >= value and (found := self._first(mask, max(low, value), high)) is not None:
                return found
        return None

    def at_most(self, value: int) -> int | None:
        """Returns the greatest member that is not above the value; None where there are no such members."""
        for mask, low, high in reversed([*self.stretches()]):
            if low <= value and (found := self._last(mask, low, min(high, value))) is not None:
                return found
        return None

    @property
    def min(self) -> int | float:
        """Returns the least member; minus infinity for a set without lower bound, infinity for the empty set.
        """
        return _ends(self)[0]

    @property
    def max(self) -> int | float:
        """Returns the greatest member; infinity for a set without upper bound, minus infinity for the empty
        set.
        """
        return _ends(self)[1]

    def congruence(self) -> tuple[int, int]:
        """Returns `(m, r)` with the greatest m such that every member is r modulo m, 0 <= r < m; (0, r) if r
        is the only member.
        """
        found = _congruence(self)
        assert found is not None, "the empty set has no congruence"
        return found

    def _least(self) -> int | float:
        for mask, low, high in self.stretches():
            if (found := self._first(mask, low, high)) is not None:
                return -inf if low == -inf else found
        return inf

    def _greatest(self) -> int | float:
        for mask, low, high in reversed([*self.stretches()]):
            if (found := self._last(mask, low, high)) is not None:
                return inf if high == inf else found
        return -inf

    def _residue(self) -> tuple[int, int] | None:
        step, base = 0, None
        for mask, low, high in self.stretches():
            for residue in range(self.period):
                if not mask >> residue & 1:
                    continue
                first = self._first(1 << residue, low, high)
                if first is None:
                    continue
                base = first if base is None else base
                step = gcd(step, first - base)
                if first + self.period <= high or first - self.period >= low:
                    step = gcd(step, self.period)
        return None if base is None else (step, base % step if step else base)

    def scaled(self, modulus: int, residue: int) -> IntegerSet:
        """Returns modulus*n + residue for the members n, where 0 <= residue < modulus. Raises TooLarge."""
        period = self.period * modulus
        if period > MAX_PERIOD:
            raise TooLarge
        masks = [
            sum(1 << (modulus * n + residue) for n in range(self.period) if mask >> n & 1)
            for mask in self.masks
        ]
        return joined(period, [modulus * cut + residue for cut in self.cuts], masks)

    def runs(self, limit: int) -> tuple[tuple[int | None, int | None], ...] | None:
        """Returns the set as intervals, where None is no bound; None instead where there are more than the
        limit.

        Members count as neighbours when they differ by the modulus of `congruence`.
        """
        step = self.congruence()[0] or 1
        found: list[tuple[int | None, int | None]] = []
        try:
            for mask, low, high in self.stretches():
                for start, end in self._pieces(mask, low, high, step):
                    if found and start is not None and found[-1][1] == start - step:
                        start = found.pop()[0]
                    found.append((start, end))
                    if len(found) > limit:
                        return None
        except TooLarge:
            return None
        return tuple(found)

    def members(self, limit: int) -> list[int] | None:
        """Returns all members in order, if there are no more than the limit; else None."""
        found: list[int] = []
        if not self:
            return found
        if inf in (-self.min, self.max):
            return None
        at = self.at_least(int(self.min))
        while at is not None and len(found) <= limit:
            found.append(at)
            at = self.at_least(at + 1)
        return found if len(found) <= limit else None

    def residues(self, limit: int) -> tuple[int, tuple[int, ...]] | None:
        """Returns `(m, rs)` where the members are all integers from the least to the greatest that are one of
        rs modulo m.

        None where the set has no such form, where rs would be all residues, or where both the residues that
        occur and those that do not are more than the limit.
        """
        for mask in dict.fromkeys(self.masks):
            count = mask.bit_count()
            regular = bounded(self.period, mask, self.min, self.max)
            if 0 < min(count, self.period - count) <= limit and regular <= self and self <= regular:
                return self.period, tuple(r for r in range(self.period) if mask >> r & 1)
        return None

    def _pieces(
        self, mask: int, low: float, high: float, step: int
    ) -> Iterator[tuple[int | None, int | None]]:
        """Yields the intervals of a stretch, None where it is unbounded.

        Raises TooLarge for endlessly many.
        """
        if mask.bit_count() * step == self.period:
            first, last = self._first(mask, low, high), self._last(mask, low, high)
            if first is not None:
                yield None if low == -inf else first, None if high == inf else last
            return
        if mask and inf in (-low, high):
            raise TooLarge
        start = self._first(mask, low, high)
        while start is not None:
            end = start
            while end + step <= high and mask >> (end + step) % self.period & 1:
                end += step
            yield start, end
            start = self._first(mask, end + 1, high)


class TooLarge(Exception):
    """Raised for a set with a period or a number of cuts beyond the limits."""


EVERY = IntegerSet(1, (), (1,))
NONE = IntegerSet(1, (), (0,))


@lru_cache(maxsize=1 << 12)
def _ends(values: IntegerSet) -> tuple[int | float, int | float]:
    return values._least(), values._greatest()


@lru_cache(maxsize=1 << 12)
def _congruence(values: IntegerSet) -> tuple[int, int] | None:
    return values._residue()


@lru_cache(maxsize=1 << 12)
def _common(one: IntegerSet, other: IntegerSet) -> IntegerSet:
    """Returns the members of both, from a cache: programs ask for the same few sets again and again."""
    return one._combine(other, int.__and__)


def of_members(values: Iterable[int]) -> IntegerSet:
    """Returns the set of these numbers."""
    cuts: list[int] = []
    for value in sorted({*values}):
        if cuts and cuts[-1] == value:
            cuts[-1] += 1
        else:
            cuts += [value, value + 1]
    return IntegerSet(1, tuple(cuts), tuple(i % 2 for i in range(len(cuts) + 1)))


def bounded(period: int, mask: int, low: float, high: float) -> IntegerSet:
    """Returns the integers from low to high, either perhaps infinite, whose residues are in the mask."""
    cuts = [*([] if low == -inf else [int(low)]), *([] if high == inf else [int(high) + 1])]
    return joined(period, cuts, [*([] if low == -inf else [0]), mask, *([] if high == inf else [0])])


def repeated(mask: int, period: int, longer: int) -> int:
    """Returns the mask over a multiple of its period."""
    return mask * (((1 << longer) - 1) // ((1 << period) - 1))


def joined(period: int, cuts: list[int], masks: list[int]) -> IntegerSet:
    """Returns a set with neighbouring stretches joined where one mask serves both, and with the least period
    that distinguishes them.

    A stretch shorter than the period does not determine the residues that do not occur in it, so those bits
    are free.
    """
    full = (1 << period) - 1
    kept: list[int] = []
    said: list[tuple[int, int]] = []  # mask, and the residues it speaks of
    old = spoken = 0  # those of the stretches so far that one mask serves
    ends = (-inf, *cuts, inf)
    for mask, (low, high) in zip(masks, pairwise(ends), strict=True):
        cares = full
        if high - low < period:
            run = ((1 << int(high) - int(low)) - 1) << int(low) % period
            cares = (run | run >> period) & full
        if (old ^ mask) & spoken & cares:
            kept.append(int(low))
            said.append((old, spoken))
            old = spoken = 0
        old, spoken = old | (mask & cares), spoken | cares
    said.append((old, spoken))
    for prime in _primes(period):
        while period % prime == 0:
            folded = [_fold(mask, cares, period, period // prime) for mask, cares in said]
            if any(f is None for f in folded):
                break
            said = [f for f in folded if f is not None]
            period //= prime
    return IntegerSet(period, tuple(kept), tuple(mask for mask, _ in said))


def _fold(mask: int, cares: int, period: int, shorter: int) -> tuple[int, int] | None:
    """Returns the mask over a divisor of its period, if it is consistent for each residue; else None."""
    part = (1 << shorter) - 1
    yes = no = 0
    for at in range(0, period, shorter):
        yes |= (mask & cares) >> at & part
        no |= (~mask & cares) >> at & part
    return None if yes & no else (yes, yes | no)


def _primes(number: int) -> list[int]:
    found, p = [], 2
    while number > 1:
        if number % p == 0:
            found.append(p)
            while number % p == 0:
                number //= p
        p += 1
    return found
