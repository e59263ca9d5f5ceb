"""Requirements on elements that one size decides, found size by size: `torch.zeros(9)[arange(n).sum()]`.

For a range of sizes, bounds tell that all elements are valid, or that some one is not (`tails`). A range of
which they tell neither is cut in two, down to a few sizes, for each of which the elements are computed
(`arrays`). So `arange(n).sum()` is less than 9 for n up to 4, which is computed, and at least n - 1 for all
n, which is more for n from 10 on.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from ...ir.language import Quotient, Slice, Tensor
from ...ir.program import Argument, Ref
from ...terms.dims import Dim, Symbol, Term, evaluate, lone, symbols
from ...terms.formula import Formula, all_of, any_of, ge, le
from ..computed import NotComputed
from ..places import Places
from .arrays import MOST, Array, Arrays, DoesNotRun
from .bounds import LAWS
from .lines import FARTHEST, Bound, Ends, flat
from .tails import Tail

ANCHORS: Final = (140, 70, 36, 20, 6)
"""Sizes at which elements are computed, to know of some that they stay as the size grows."""
FEW: Final = 8
"""At most so many sizes in a row are looked at one by one."""
MOST_GROUPS: Final = 72
"""At most this many ranges of sizes are told apart in a requirement."""
SEVERAL: Final = 3
"""Stands for a number of elements that the data decide."""
BEYOND: Final = 1 << 59
"""No tensor has so many elements."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the greatest number that is valid, None where there is none, and one that always is."""

    low: Dim | None
    high: Dim | None
    ignored: int | None = None


Case: TypeAlias = "tuple[int, int | None, Formula]"
"""Sizes from the first to the last, or all from the first on, and when the elements are valid there."""


class Needed(NamedTuple):
    """The sizes at which all elements are valid. With `by_data`, the data choose them."""

    condition: Formula
    by_data: bool


def needed(
    places: Places, ref: int, time: int, limits: Limits, data: Container[str] = ()
) -> Needed | None:
    """Returns the requirement that all elements of a value lie within limits; None where it is not found.

    Numbers in `data`, which the data decide, are the sizes of dims: what the data choose for an element of
    several does not depend on how many there are, as long as the laws take them all alike.
    """
    every = _sizes(places, ref, set())
    names = frozenset[str]() if every is None else {name for name in every if name not in data}
    if every is None or len(names) > 1:
        return None
    counts = dict.fromkeys(every - names, SEVERAL)
    try:
        return _Search(places, ref, time, limits, "".join(names), counts).all()
    except NotComputed:
        return None


def _sizes(places: Places, ref: int, seen: set[int]) -> frozenset[str] | None:
    """Returns the symbols that the elements of a value are made from; None where the user gives them."""
    made, value = places.program.made(ref), places.program.value(ref)
    if not isinstance(value, Tensor):
        return None
    seen.add(ref)
    found = frozenset().union(*map(symbols, value.shape))
    if made is None:
        return found
    for part in _parts(tuple(places.args(made).values())):
        if isinstance(part, Ref):
            inner = frozenset[str]() if part.id in seen else _sizes(places, part.id, seen)
            if inner is None:
                return None
            found |= inner
        else:
            found |= symbols(part)
    return found


def _parts(argument: Argument | tuple[Argument, ...]) -> Iterator[Ref | Dim]:
    """Yields the references and the sizes in an argument."""
    match argument:
        case tuple():
            for part in argument:
                yield from _parts(part)
        case Slice(start, stop, step):
            yield from _parts((start, stop, step))
        case Quotient(_, over, under):
            yield from (over, under)
        case Ref() | Term():
            yield argument


@dataclass(slots=True)
class _Search:
    places: Places
    ref: int
    time: int
    limits: Limits
    name: str
    counts: Mapping[str, int]
    left: int = MOST
    by_data: bool = False
    anchors: dict[int, Arrays | None] = field(default_factory=dict)

    @property
    def size(self) -> Term:
        return lone(Symbol(self.name))

    def all(self) -> Needed | None:
        """Returns the requirement for all sizes."""
        if not self.name:
            return Needed(self._of(0, self._numbers(0)), self.by_data)
        least = max(n for n in range(FEW) if n == 0 or self.places.at_least(self.size, n))
        found = self._between(least, None)
        if found is None:
            return None
        cases: list[Formula] = []
        for condition, group in groupby(found, lambda one: one[2]):
            several = [*group]
            first, last = several[0][0], several[-1][1]
            beyond = False if last is None else ge(self.size, last + 1)
            cases.append(any_of((le(self.size, first - 1), beyond, condition)))
        return Needed(all_of(cases), self.by_data) if len(cases) <= MOST_GROUPS else None

    def _between(self, first: int, last: int | None) -> list[Case] | None:
        """Returns ranges of sizes, each with the condition under which the elements are valid there."""
        if last is not None and last - first < FEW and first < 1 << 12:
            alone = [(n, self._alone(n)) for n in range(first, last + 1)]
            known: list[Case] = [(n, n, one) for n, one in alone if one is not None]
            return known if len(known) == len(alone) else None
        tail = Tail(self.places, LAWS, self.name, first, last, self._anchor(first))
        if (found := self._told(tail)) is not None:
            return [(first, last, found)]
        if last is None:
            cut = max(4 * first, FEW)
            if cut > FARTHEST:
                return None
        elif last - first < FEW:
            return None
        else:
            cut = max(first + 1, math.isqrt(max(first, 1) * last))
        rest = self._between(cut, last)
        before = None if rest is None else self._between(first, cut - 1)
        return None if rest is None or before is None else before + rest

    def _alone(self, n: int) -> Formula | None:
        """Returns the condition under which the elements are valid at a size."""
        try:
            return self._of(n, self._numbers(n))
        except NotComputed:
            return self._told(Tail(self.places, LAWS, self.name, n, n, None))

    def _told(self, tail: Tail) -> Formula | None:
        """Returns the condition that bounds tell, if they do."""
        ends = tail.of(self.ref, self.time)
        found = None if self.counts and not ends.chosen else self._of_tail(ends, tail)
        self.by_data |= found is not None and ends.chosen
        return found

    def _anchor(self, first: int) -> Arrays | None:
        """Returns the elements at a size that is not greater than another."""
        for n in (*((first,) if first < ANCHORS[0] else ()), *ANCHORS):
            if n <= first and n not in self.anchors:
                arrays = Arrays(self.places, {**self.counts, self.name: n}, MOST // 8)
                try:
                    arrays.of(self.ref, self.time)
                except (NotComputed, DoesNotRun):
                    self.anchors[n] = None
                else:
                    self.anchors[n] = arrays
            if n <= first and self.anchors[n] is not None:
                return self.anchors[n]
        return None

    def _numbers(self, n: int) -> Array | None:
        """Returns the elements at a size; None where there are none."""
        arrays = Arrays(self.places, {**self.counts, self.name: n}, self.left)
        try:
            found = arrays.of(self.ref, self.time)
            if self.counts and not found.loose:
                raise NotComputed
            self.by_data |= found.loose
            return found
        except DoesNotRun:
            return None
        finally:
            self.left = arrays.left

    def _of(self, n: int, array: Array | None) -> Formula:
        """Returns the condition under which the elements at a size are valid."""
        numbers = () if array is None else array.numbers
        kept = [x for x in numbers if x != self.limits.ignored]
        if not kept or array is None or 0 in array.shape:
            return True
        low, high = (self._at(n, dim) for dim in (self.limits.low, self.limits.high))
        return all_of(
            (
                *(ge(int(min(kept)), dim) for dim in (low,) if dim is not None),
                *(le(int(max(kept)), dim) for dim in (high,) if dim is not None),
            )
        )

    def _at(self, n: int, dim: Dim | None) -> Dim | None:
        return evaluate(dim, {self.name: n}) if dim is not None and symbols(dim) == {self.name} else dim

    def _of_tail(self, ends: Ends, tail: Tail) -> Formula | None:
        """Returns the condition under which the elements are valid at all sizes from a number on; None where
        bounds do not tell it.
        """
        if self.limits.ignored is not None and not (ends.natural and self.limits.ignored < 0):
            return None
        sides = (self._of_side(ends.high, ends.top, self.limits.high, 1, tail),
                 self._of_side(ends.low, ends.bottom, self.limits.low, -1, tail))
        if False in sides:
            return False
        if ends.wild or None in sides:
            return None
        return all_of(side for side in sides if side is not None)

    def _of_side(self, all_: Bound, some: Bound, limit: Dim | None, sign: int, tail: Tail) -> Formula | None:
        """Returns the condition under which no element lies beyond a limit."""
        if limit is None:
            return True
        limit = sign * limit
        bound, reached = (None if one is None else one.times(sign) for one in (all_, some))
        if reached is not None and flat(BEYOND).is_below(reached):
            return False
        if symbols(limit) <= {self.name}:
            low, high = tail.lines(limit)
            if bound is not None and low is not None and bound.is_below(low):
                return True
            if reached is not None and high is not None and high.plus(flat(1)).is_below(reached):
                return False
            return None
        if bound is None or bound != reached or not bound.constant or bound.at.denominator != 1:
            return None
        return ge(limit, int(bound.at))
