"""Bounds that are linear in sizes, and what is known of the elements of a tensor by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction
from itertools import product, zip_longest
from typing import Final, TypeAlias

from ..lookups.computed import NotComputed

FARTHEST: Final = 1 << 25
"""A number that integers of 64 bits hold for all sizes up to this one is assumed to fit at larger sizes, too.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A bound at all sizes n from N on, which is linear in each size.

    It is `at` for n = N. Each further one of a size adds the size's slope in `slopes`. A size has as many
    further ones as `spans` says, or any number if that is None.
    """

    at: Fraction
    slopes: tuple[Fraction, ...] = ()
    spans: tuple[int | None, ...] = ()

    def plus(self, other: Line) -> Line:
        pairs = zip_longest(self.slopes, other.slopes, fillvalue=NONE)
        slopes = tuple([a + b if a and b else a or b for a, b in pairs])
        return Line(self.at + other.at, slopes, self.spans or other.spans)

    def times(self, factor: Fraction | int) -> Line:
        if factor == 1:
            return self
        return Line(self.at * factor, tuple([slope and slope * factor for slope in self.slopes]), self.spans)

    @property
    def negated(self) -> Line:
        return self.times(-1)

    def minus(self, other: Line) -> Line:
        return self.plus(other.times(-1))

    def is_below(self, other: Line) -> bool:
        """Returns whether it is at most the other, for all n."""
        least = other.minus(self).least
        return least is not None and least >= 0

    @property
    def constant(self) -> bool:
        return not any(self.slopes)

    @property
    def rises(self) -> bool:
        """Whether it does not fall as a size grows."""
        return all(slope >= 0 for slope in self.slopes)

    @property
    def least(self) -> Fraction | None:
        """The least that it is for any n; None where it falls without end."""
        least = self.at
        for slope, span in zip(self.slopes, self.spans, strict=True):
            if slope < 0:
                if span is None:
                    return None
                least += slope * span
        return least

    @property
    def most(self) -> Fraction | None:
        least = self.times(-1).least
        return None if least is None else -least


NONE: Final = Fraction(0)
Bound: TypeAlias = "Line | None"


def flat(number: Fraction | int | float) -> Line:
    return Line(Fraction(number))


def upper(a: Bound, b: Bound) -> Bound:
    """Returns a bound that is at least two others; None is infinite."""
    if a is None or b is None:
        return None
    slopes = tuple(map(max, zip_longest(a.slopes, b.slopes, fillvalue=NONE)))
    return Line(max(a.at, b.at), slopes, a.spans or b.spans)


def lower(a: Bound, b: Bound) -> Bound:
    found = None if a is None or b is None else upper(a.times(-1), b.times(-1))
    return found and found.times(-1)


def greater(a: Bound, b: Bound) -> Bound:
    """Returns one of two bounds, the greater one where one is: both hold, and None says nothing."""
    if a is None or b is None:
        return b if a is None else a
    return b if a.is_below(b) or (not b.is_below(a) and sum(b.slopes) > sum(a.slopes)) else a


def less(a: Bound, b: Bound) -> Bound:
    found = b if a is None else a if b is None else greater(a.times(-1), b.times(-1))
    return found if found is None or a is None or b is None else found.times(-1)


def product_below(a: Bound, b: Bound) -> Bound:
    """Returns a bound below the product of two numbers that are at least these natural ones: (p + q*k)*(r +
    s*l) is at least p*r + p*s*l + q*r*k where q and s have one sign.
    """
    if a is None or b is None or any(q * s < 0 for q in a.slopes for s in b.slopes):
        return None
    return _straight(a, b)


def product_above(a: Bound, b: Bound) -> Bound:
    """Returns a bound above: k*l is at most k times the last l, or the farthest."""
    if a is None or b is None:
        return None
    found = _straight(a, b)
    if a.constant or b.constant:
        return found
    if not (a.rises and b.rises):
        return None
    slopes = [*found.slopes]
    steps = [FARTHEST if span is None else span for span in found.spans]
    for i, q in enumerate(a.slopes):
        for j, s in enumerate(b.slopes):
            here, last = (i, steps[j]) if steps[j] <= steps[i] else (j, steps[i])
            slopes[here] += q * s * last
    return Line(found.at, tuple(slopes), found.spans)


def _straight(a: Line, b: Line) -> Line:
    """Returns the part of a product of lines that is one."""
    if not (a.slopes or b.slopes):
        return Line(a.at * b.at)
    return b.times(a.at).plus(Line(NONE, tuple([q and q * b.at for q in a.slopes]), a.spans))


class Growth(IntEnum):
    """The part of the elements that stays as n grows."""

    NOTHING = 0
    NUMBERS = 1
    """Each number that is among the elements stays so."""
    BAG = 2
    """Each stays as often."""
    PLACES = 3
    """Each element stays at its place."""


class Sameness(IntEnum):
    """The relation between the elements that the data choose."""

    NO = 0
    EACH = 1
    """A number that the data may choose for one element they may choose for any."""
    ALL = 2
    """They may choose it for all elements at once."""
    FREE = 3
    """The data choose each element independently of the others."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Bounds of the elements of a tensor: all are at least `low` and at most `high`, some one is `top` or
    more, and some one is `bottom` or less. With `wild`, some may be floats that no integer represents, or
    made from such.
    """

    low: Bound = None
    high: Bound = None
    top: Bound = None
    bottom: Bound = None
    growth: Growth = Growth.NOTHING
    root: int | None = None
    """The tensor at whose places the elements are made from its own, one by one."""
    wild: bool = False
    chosen: bool = False
    """Whether the data choose the elements, which reach `top` and `bottom` for some data."""
    alike: Sameness = Sameness.NO

    def mapped(self, law: Callable[[Line], Bound]) -> Ends:
        """Returns the bounds of a function of the elements that does not fall, which takes bounds to bounds.
        """
        found = (None if one is None else law(one) for one in (self.low, self.high, self.top, self.bottom))
        low, high, top, bottom = found
        return replace(self, low=low, high=high, top=top, bottom=bottom)

    def within(self, least: Line, most: Line) -> bool:
        return (
            self.low is not None
            and self.high is not None
            and least.is_below(self.low)
            and self.high.is_below(most)
        )

    @property
    def up_to_farthest(self) -> Ends:
        """Returns the bounds for sizes up to the farthest: larger ones are not distinguished from these."""
        return self.mapped(_up_to_farthest)

    @property
    def natural(self) -> bool:
        return self.low is not None and flat(0).is_below(self.low)

    @property
    def negated(self) -> Ends:
        low, high, top, bottom = (
            None if one is None else one.times(-1) for one in (self.high, self.low, self.bottom, self.top)
        )
        return replace(self, low=low, high=high, top=top, bottom=bottom)

    @property
    def loose(self) -> Ends:
        """Returns the bounds of some of the elements."""
        found = replace(self, growth=Growth.NOTHING, root=None)
        return replace(found, chosen=True) if self.alike else replace(found, top=None, bottom=None)


def constant(number: Fraction | int | float) -> Ends:
    one = flat(number)
    return Ends(one, one, one, one, Growth.PLACES)


def single(ends: Ends) -> Fraction | None:
    """Returns the number that all elements are, whatever n is; else None."""
    low, high = ends.low, ends.high
    same = low is not None and low == high and low.constant
    return low.at if same and low is not None else None


def scaled(ends: Ends, factor: Fraction | int) -> Ends:
    found = ends if factor >= 0 else ends.negated
    size = abs(Fraction(factor))
    return found.mapped(lambda one: one.times(size))


def _up_to_farthest(one: Line) -> Line:
    return replace(one, spans=tuple([FARTHEST if span is None else span for span in one.spans]))


def quotient(one: Ends, other: Ends) -> Ends:
    """Returns the bounds of a division by positive numbers. The quotient of two lines lies between those at
    the first n and at the last, or in the limit.
    """
    low, high = other.low, other.high
    if one.wild or other.wild or low is None or high is None or not (low.at > 0 and low.rises):
        raise NotComputed
    if low == high and low.constant:
        return scaled(one, 1 / low.at)
    if low != high and not (one.natural and high is not None and high.rises):
        raise NotComputed
    least, most = high if low != high and high is not None else low, low
    return Ends(
        _ratio(one.low, least, -1),
        _ratio(one.high, most, 1),
        _ratio(one.top, least, -1),
        _ratio(one.bottom, most, 1),
    )


def _ratio(over: Bound, under: Line, sign: int) -> Bound:
    """Returns the greatest quotient of two lines, or the least one, for a negative sign. It is at some first
    or last n, or what it comes close to as a size grows: (p + q*k)/(r + s*k) lies between p/r and q/s.
    """
    if over is None:
        return None
    found: list[Fraction] = []
    sides = list(zip_longest(over.slopes, under.slopes, over.spans or under.spans, fillvalue=NONE))
    for q, s, span in sides:
        if span is None and s:
            found.append(q / s)
        elif span is None and q * sign > 0:
            return None
    for corner in product(*((0, span or 0) for *_, span in sides)):
        top = over.at + sum(q * k for (q, *_), k in zip(sides, corner, strict=True))
        bottom = under.at + sum(s * k for (_, s, _), k in zip(sides, corner, strict=True))
        found.append(top / bottom)
    return flat(max(found) if sign > 0 else min(found))
