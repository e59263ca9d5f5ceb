"""Requirements on elements that few sizes decide, found size by size: `torch.zeros(9)[arange(n).sum()]`.

For a box of sizes, bounds show that all elements are valid, or that one of them is not (`tails`). A box for
which they show neither is cut in two, down to a few sizes; for each of these the elements are computed
(`arrays`). So `arange(n).sum()` is less than 9 for n up to 4, which is computed, and at least n - 1 for all
n, which is at least 9 for n from 10 on.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, product
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from ...ir.language import Affine, Quotient, Slice, Tensor
from ...ir.program import Argument, Ref
from ...terms.dims import Dim, Symbol, Term, evaluate, lone, symbols
from ...terms.formula import Formula, all_of, any_of, ge, le
from ..lookups.computed import NotComputed
from ..lookups.places import Places
from .arrays import CHOICES, MOST, Array, Arrays, DoesNotRun
from .bounds import LAWS
from .lines import Bound, Ends, Growth, Line, Sameness, flat
from .tails import Box, Tail

ANCHORS: Final = (140, 70, 36, 20, 6)
"""Sizes at which elements are computed, to know of some that they stay as the size grows."""
FEW_NUMBERS: Final = 256
"""At most this many elements are computed at sizes greater than these."""
FEW: Final = 8
"""At most this many sizes in a row are examined one by one."""
MOST_GROUPS: Final = 72
"""At most this many boxes of sizes are distinguished in a requirement."""
LAST_CUT: Final = 1 << 40
"""Sizes from this one on are not distinguished."""
MOST_BOXES: Final = 400
"""At most so many are looked at."""
MOST_SIZES: Final = 3
"""At most this many sizes are searched together."""
SEVERAL: Final = 3
"""Stands for a number of elements that the data decide."""
BEYOND: Final = 1 << 59
"""No tensor has so many elements."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the greatest number that is valid, None for no limit, and one that always is. If
    they are `sizes`, 64 bits have to hold the strides of a tensor of these, and its bytes. With `counted`,
    the limits are those of the number of `true` or `distinct` elements.
    """

    low: Dim | None
    high: Dim | None
    ignored: int | None = None
    sizes: bool = False
    counted: str = ""


Case: TypeAlias = "tuple[Box, Formula]"
"""Sizes, and when the elements are valid there."""
Firsts: TypeAlias = "tuple[int, ...]"


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
    every = _sizes(places, ref, time, set())
    if every is None:
        return None
    names = tuple(sorted(name for name in every if name not in data))
    counts = dict.fromkeys(every - {*names}, SEVERAL)
    try:
        return _Search(places, ref, time, limits, names, counts).all() if len(names) <= MOST_SIZES else None
    except NotComputed:
        return None


def _sizes(places: Places, ref: int, time: int, seen: set[tuple[int, int]]) -> frozenset[str] | None:
    """Returns the symbols that the elements of a value are made from, as it is when the call number `time` is
    made; None where the user gives them.
    """
    made = places.written_over(ref, time) or places.program.made(ref)
    value = places.program.value(ref)
    if not isinstance(value, Tensor):
        return None
    time = -1 if made is None else made.time
    if (ref, time) in seen:
        return frozenset()
    seen.add((ref, time))
    found = frozenset().union(*map(symbols, value.shape))
    if isinstance(value.elements, Affine):
        found |= symbols(value.elements.start)
    if made is None:
        return found
    for part in _parts(tuple(places.args(made).values())):
        if isinstance(part, Ref):
            if (inner := _sizes(places, part.id, time, seen)) is None:
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
    names: tuple[str, ...]
    counts: Mapping[str, int]
    left: int = MOST
    choices: int = CHOICES
    boxes: int = MOST_BOXES
    by_data: bool = False
    anchors: dict[Firsts, tuple[Arrays, bool] | None] = field(default_factory=dict)

    def all(self) -> Needed | None:
        """Returns the requirement for all sizes."""
        least = {name: self._least(lone(Symbol(name))) for name in self.names}
        found = self._over({name: (first, None) for name, first in least.items()})
        if found is None:
            return None
        cases = _merged(found, self.names)
        outside = (
            [side for name, (first, last) in box.items() for side in _outside(name, first, last)]
            for box, _ in cases
        )
        if len(cases) > MOST_GROUPS:
            return None
        told = (any_of((*sides, condition)) for sides, (_, condition) in zip(outside, cases, strict=True))
        return Needed(all_of(told), self.by_data)

    def _least(self, size: Term) -> int:
        return max(n for n in range(FEW) if n == 0 or self.places.at_least(size, n))

    def _over(self, box: Box) -> list[Case] | None:
        """Returns parts of a box of sizes, each with the condition under which the elements are valid."""
        self.boxes -= 1
        if self.boxes < 0:
            return None
        if all(last is not None and last - first < FEW and first < 1 << 12 for first, last in box.values()):
            return self._one_by_one(box)
        if (found := self._told(Tail(self.places, LAWS, box, self._anchor(box)))) is not None:
            return [(box, found)]
        name = max(box, key=lambda name: _urgency(*box[name]))
        first, last = box[name]
        cut = max(4 * first, FEW) if last is None else max(first + 1, math.isqrt(max(first, 1) * last))
        if first == last:
            return self._one_by_one(box)
        if last is None and cut > LAST_CUT:
            return None
        rest = self._over({**box, name: (cut, last)})
        before = None if rest is None else self._over({**box, name: (first, cut - 1)})
        return None if rest is None or before is None else before + rest

    def _one_by_one(self, box: Box) -> list[Case] | None:
        """Returns the sizes in a box, each with the condition under which the elements are valid."""
        alone: list[Case] = []
        for point in product(*(range(first, (last or 0) + 1) for first, last in box.values())):
            if (one := self._alone(dict(zip(box, point, strict=True)))) is None:
                return None
            alone.append(({name: (n, n) for name, n in zip(box, point, strict=True)}, one))
        return alone

    def _alone(self, sizes: Mapping[str, int]) -> Formula | None:
        """Returns the condition under which the elements are valid at some sizes."""
        try:
            return self._of(sizes, self._numbers(sizes))
        except NotComputed:
            self.boxes -= 1
            if self.boxes < 0:
                return None
            box = {name: (n, n) for name, n in sizes.items()}
            return self._told(Tail(self.places, LAWS, box, self._anchor(box)))

    def _told(self, tail: Tail) -> Formula | None:
        """Returns the condition that bounds tell, if they do."""
        ends = tail.of(self.ref, self.time)
        found = None if self.counts and not ends.chosen else self._of_tail(ends, tail)
        self.by_data |= found is not None and ends.chosen
        return found

    def _anchor(self, box: Box) -> tuple[Arrays, ...]:
        """Returns the elements at sizes that are not greater than the first ones of a box: all that the value
        is made from, after those of operands that are computed at greater sizes.
        """
        firsts = tuple([first for first, _ in box.values()])
        capped = [tuple([min(first, most) for first in firsts]) for most in ANCHORS]
        partial = []
        for at in dict.fromkeys([firsts, *capped]):
            if at not in self.anchors:
                most = MOST // 8 if max(at, default=0) <= ANCHORS[0] else FEW_NUMBERS
                self.anchors[at] = self._found(dict(zip(box, at, strict=True)), most)
            if (found := self.anchors[at]) is not None:
                partial.append(found[0])
                if found[1]:
                    break
        return tuple(partial)

    def _found(self, sizes: Mapping[str, int], most: int) -> tuple[Arrays, bool] | None:
        """Returns elements at some sizes, and whether those of the value are among them."""
        arrays = Arrays(self.places, {**self.counts, **sizes}, most, self.choices, self.counts)
        try:
            arrays.of(self.ref, self.time)
        except NotComputed:
            return arrays, False
        except DoesNotRun:
            return None
        finally:
            self.choices = arrays.choices
        return arrays, True

    def _numbers(self, sizes: Mapping[str, int]) -> Array | None:
        """Returns the elements at some sizes; None where there are none."""
        arrays = Arrays(self.places, {**self.counts, **sizes}, self.left, self.choices, self.counts)
        try:
            found = arrays.of(self.ref, self.time)
            if self.counts and not found.loose:
                raise NotComputed
            self.by_data |= found.loose
            return found
        except DoesNotRun:
            return None
        finally:
            self.left, self.choices = arrays.left, arrays.choices

    def _of(self, sizes: Mapping[str, int], array: Array | None) -> Formula:
        """Returns the condition under which the elements at some sizes are valid."""
        numbers = () if array is None else array.numbers
        if self.limits.counted and array is not None:
            array = Array((), (self._count(array),), "int64")
            numbers = array.numbers
        if self.limits.sizes and array is not None:
            together = array.loose and array.alike >= Sameness.ALL and not self.counts
            if len(array.shape) != 1 or (array.source is not None and not together):
                raise NotComputed
            worst = (max(numbers, default=0),) * array.shape[0] if together else numbers
            if not are_sizes(tuple(map(int, worst))):
                return False
        kept = [x for x in numbers if x != self.limits.ignored]
        if not kept or array is None or 0 in array.shape:
            return True
        low, high = (_at(sizes, dim) for dim in (self.limits.low, self.limits.high))
        return all_of(
            (
                *(ge(int(min(kept)), dim) for dim in (low,) if dim is not None),
                *(le(int(max(kept)), dim) for dim in (high,) if dim is not None),
            )
        )

    def _count(self, array: Array) -> int:
        """Returns how many elements are counted at some sizes."""
        if array.loose:
            raise NotComputed
        return len({*array.numbers}) if self.limits.counted == "distinct" else sum(map(bool, array.numbers))

    def _ends_of_count(self, ends: Ends, tail: Tail) -> Ends:
        """Returns the bounds of the number of elements that are counted: those that stay as n grows, and at
        most all.
        """
        value, distinct = self.places.program.value(self.ref), self.limits.counted == "distinct"
        if ends.chosen or ends.wild or not isinstance(value, Tensor):
            raise NotComputed
        low, (least, high) = flat(0), tail.lines(value.numel)
        if ends.growth >= (Growth.NUMBERS if distinct else Growth.BAG):
            there = tail.numbers(Ref(self.ref), self.time)
            low = flat(len({*there}) if distinct else sum(map(bool, there)))
        if not distinct and ends.low is not None and flat(1).is_below(ends.low):
            low = least or low
        if not distinct and ends.high is not None and ends.natural and ends.high.is_below(flat(0)):
            high = flat(0)
        return Ends(low, high, low, high)

    def _of_tail(self, ends: Ends, tail: Tail) -> Formula | None:
        """Returns the condition under which the elements are valid at all sizes from a number on; None where
        bounds do not tell it.
        """
        if self.limits.counted:
            ends = self._ends_of_count(ends, tail)
        if self.limits.sizes and not (ends.high is not None and ends.high.is_below(flat(1))):
            return False if self._are_too_many(ends, tail) else None
        sides = (self._of_side(ends.high, ends.top, self.limits.high, 1, tail),
                 self._of_side(ends.low, ends.bottom, self.limits.low, -1, tail))
        if False in sides:
            return False
        if ends.wild or None in sides:
            return None
        return all_of(side for side in sides if side is not None)

    def _are_too_many(self, ends: Ends, tail: Tail) -> bool:
        """Returns whether the first stride of a tensor of these sizes exceeds 64 bits: it is the product of
        all but one, in whatever order, which are 2 or more, or among which some stay.
        """
        value = self.places.program.value(self.ref)
        if ends.wild or not isinstance(value, Tensor) or len(value.shape) != 1:
            return False
        count = tail.lines(value.shape[0])[0]
        least = ends.top if ends.chosen and ends.alike >= Sameness.ALL else ends.low
        twos = least is not None and flat(2).is_below(least)
        if twos and count is not None and flat(64).is_below(count):
            return True
        there = tail.numbers(Ref(self.ref), self.time)
        if ends.growth < Growth.BAG:
            there = [*{*there}] if ends.growth == Growth.NUMBERS and not ends.chosen else ()
        sizes = sorted(max(int(size), 1) for size in there)
        return math.prod(sizes[:-1]) >= 1 << 63

    def _of_side(self, all_: Bound, some: Bound, limit: Dim | None, sign: int, tail: Tail) -> Formula | None:
        """Returns the condition under which no element lies beyond a limit."""
        if limit is None:
            return True
        limit, ignored = sign * limit, self.limits.ignored
        bound, reached = (None if one is None else one.times(sign) for one in (all_, some))
        if reached is not None and ignored is not None and not flat(sign * ignored + 1).is_below(reached):
            reached = None  # what is reached may be the number that is ignored
        if reached is not None and flat(BEYOND).is_below(reached):
            return False
        if symbols(limit) <= set(self.names):
            low, high = tail.lines(limit)
            if bound is not None and low is not None and bound.is_below(low):
                return True
            if reached is not None and high is not None and high.plus(flat(1)).is_below(reached):
                return False
        greatest = None if bound is None else _term(bound, tail.box)
        if bound is None or greatest is None:
            return None
        inside = ge(limit, greatest)
        exact = reached is not None and bound.is_below(reached)
        return inside if exact or self.places.certain(inside) else None


def are_sizes(sizes: Sequence[int]) -> bool:
    """Returns whether 64 bits hold the strides and the bytes of a tensor of floats of these sizes. The first
    stride is the product of all but the first, with 1 in place of 0; torch counts elements from the first
    size on, so that what comes before a 0 has to fit, and up to 2**63 bytes.
    """
    counts = [*accumulate(sizes, int.__mul__, initial=1)]
    stride = math.prod(max(size, 1) for size in sizes[1:])
    return min(sizes, default=0) >= 0 and stride < 1 << 63 and max(counts) < 1 << 64 and counts[-1] < 1 << 61


def _term(line: Line, box: Box) -> Dim | None:
    """Returns a line as a term of sizes; None unless it has integers alone."""
    if any(number.denominator != 1 for number in (line.at, *line.slopes)):
        return None
    found: Dim = int(line.at)
    for slope, (name, (first, _)) in zip(line.slopes, box.items(), strict=False):
        found = found + int(slope) * (lone(Symbol(name)) - first)
    return found


def _at(sizes: Mapping[str, int], dim: Dim | None) -> Dim | None:
    return evaluate(dim, sizes) if dim is not None and symbols(dim) <= sizes.keys() else dim


def _urgency(first: int, last: int | None) -> tuple[int, float]:
    """Returns which range is cut first: those without an end down to where most things repeat, then those
    that are long for their size.
    """
    if last is None:
        return (2 if first < ANCHORS[0] else 0, -first)
    if first == last:
        return -1, 0
    return 1, math.inf if last - first < FEW else (last + 1) / (first + 1)


def _outside(name: str, first: int, last: int | None) -> Iterator[Formula]:
    yield le(lone(Symbol(name)), first - 1)
    if last is not None:
        yield ge(lone(Symbol(name)), last + 1)


def _merged(cases: Sequence[Case], names: Iterable[str]) -> list[Case]:
    """Returns the cases after those that are next to each other and have the same condition were merged."""
    found = [*cases]
    for name in names:
        rows: dict[tuple[Any, Formula], list[tuple[int, int | None]]] = {}
        for box, condition in found:
            rest = tuple((other, ends) for other, ends in box.items() if other != name)
            rows.setdefault((rest, condition), []).append(box[name])
        found = [({name: ends, **dict(rest)}, condition) for (rest, condition), row in rows.items()
                 for ends in _joined(row)]
    return [case for case in found if case[1] is not True]


def _joined(ranges: Iterable[tuple[int, int | None]]) -> Iterator[tuple[int, int | None]]:
    """Yields the ranges after those that follow each other without a gap were joined."""
    found: list[tuple[int, int | None]] = []
    for first, last in sorted(ranges, key=itemgetter(0)):
        before = found[-1][1] if found else None
        found[-1:] = [(found[-1][0], last)] if before == first - 1 else [*found[-1:], (first, last)]
    yield from found
