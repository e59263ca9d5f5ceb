"""Bounds that are linear in a size, and what is known of the elements of a tensor by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction
from typing import Final, TypeAlias

from ..computed import NotComputed

FARTHEST: Final = 1 << 25
"""Sizes from this one on are not told apart."""


@dataclass(frozen=True, slots=True)
class Line:
    """A bound: `at` for n = N, and `slope` more for each further one, of which there are `span`, or more than
    any number.
    """

    at: Fraction
    slope: Fraction = Fraction(0)
    span: int | None = None

    def plus(self, other: Line) -> Line:
        return Line(self.at + other.at, self.slope + other.slope, self.within(other))

    def times(self, factor: Fraction | int) -> Line:
        return Line(self.at * factor, self.slope * factor, self.span)

    def within(self, other: Line) -> int | None:
        return other.span if self.span is None else self.span

    def is_below(self, other: Line) -> bool:
        """Returns whether it is at most the other, for all n."""
        span, slope = self.within(other), other.slope - self.slope
        return self.at <= other.at and (slope >= 0 if span is None else self.at <= other.at + slope * span)

    @property
    def constant(self) -> bool:
        return self.slope == 0

    @property
    def end(self) -> Fraction | None:
        """The bound for the last n."""
        return None if self.span is None and self.slope else self.at + self.slope * (self.span or 0)


Bound: TypeAlias = "Line | None"


def flat(number: Fraction | int | float) -> Line:
    return Line(Fraction(number))


def upper(a: Bound, b: Bound) -> Bound:
    """Returns a bound that is at least two others; None is infinite."""
    return None if a is None or b is None else Line(max(a.at, b.at), max(a.slope, b.slope), a.within(b))


def lower(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else Line(min(a.at, b.at), min(a.slope, b.slope), a.within(b))


def greater(a: Bound, b: Bound) -> Bound:
    """Returns one of two bounds, the greater one where one is: both hold, and None says nothing."""
    if a is None or b is None:
        return b if a is None else a
    return b if a.is_below(b) or (not b.is_below(a) and b.slope > a.slope) else a


def less(a: Bound, b: Bound) -> Bound:
    if a is None or b is None:
        return b if a is None else a
    return b if b.is_below(a) or (not a.is_below(b) and b.slope < a.slope) else a


def product_below(a: Bound, b: Bound) -> Bound:
    """Returns a bound below the product of two numbers that are at least these natural ones."""
    if a is None or b is None:
        return None
    span = a.within(b)
    if a.slope * b.slope < 0:
        return None
    return Line(a.at * b.at, a.at * b.slope + b.at * a.slope, span)


def product_above(a: Bound, b: Bound) -> Bound:
    """Returns a bound above: the line through the products at the first n, and at the last or the farthest.
    """
    if a is None or b is None:
        return None
    span = a.within(b)
    if a.constant or b.constant:
        return Line(a.at * b.at, a.at * b.slope + b.at * a.slope, span)
    if a.slope < 0 or b.slope < 0:
        return None
    steps = FARTHEST if span is None else span
    return Line(a.at * b.at, a.at * b.slope + b.at * a.slope + steps * a.slope * b.slope, span)


class Growth(IntEnum):
    """What stays as n grows."""

    NOTHING = 0
    NUMBERS = 1
    """Each number that is among the elements stays so."""
    BAG = 2
    """Each stays as often."""
    PLACES = 3
    """Each element stays at its place."""


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
        """Returns the bounds for sizes up to the farthest: larger ones are not told apart from these."""
        return self.mapped(lambda one: replace(one, span=FARTHEST) if one.span is None else one)

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
        return replace(self, top=None, bottom=None, growth=Growth.NOTHING, root=None)


def constant(number: Fraction | int | float) -> Ends:
    one = flat(number)
    return Ends(one, one, one, one, Growth.PLACES)


def single(ends: Ends) -> Fraction | None:
    """Returns the number that all elements are, whatever n is; None where there is none."""
    low, high = ends.low, ends.high
    same = low is not None and low == high and low.constant
    return low.at if same and low is not None else None


def scaled(ends: Ends, factor: Fraction | int) -> Ends:
    found = ends if factor >= 0 else ends.negated
    size = abs(Fraction(factor))
    return found.mapped(lambda one: one.times(size))


def quotient(one: Ends, other: Ends) -> Ends:
    """Returns the bounds of a division by positive numbers. The quotient of two lines lies between those at
    the first n and at the last, or in the limit.
    """
    low, high = other.low, other.high
    if one.wild or other.wild or low is None or high is None or not (low.at > 0 and low.slope >= 0):
        raise NotComputed
    if low == high and low.constant:
        return scaled(one, 1 / low.at)
    if low != high:
        if not one.natural:
            raise NotComputed
        found = one.high and one.high.constant and flat(one.high.at / low.at)
        return Ends(flat(0), found or None)

    def ratio(pick: Callable[[Fraction, Fraction], Fraction]) -> Callable[[Bound], Bound]:
        def of(a: Bound) -> Bound:
            if a is None:
                return None
            last = a.slope / low.slope if low.span is None else (a.at + a.slope * low.span) / (low.end or 1)
            return flat(pick(a.at / low.at, last))

        return of

    return Ends(ratio(min)(one.low), ratio(max)(one.high), ratio(min)(one.top), ratio(max)(one.bottom))
