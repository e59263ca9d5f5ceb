"""Knowledge about a float that depends on sizes: enough to express comparisons and roundings as formulas.

A *ratio* is a fraction of dims that float arithmetic reproduces so well that comparing and rounding it is
comparing and rounding the float. Any other float may still *rise* with a size: it is computed from one size
and constants, and each operation is monotone, so it passes a number at one size, which is found by bisection.
For any other product or quotient of sizes a bound on the distance to the fraction is known, so that the float
is *near* it; this decides all comparisons but the closest.

Sizes are taken to be no greater than `LARGEST`, where an eager run has no memory for a tensor.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from ...constraints.contents.outcomes.scalars import Computed, Sizes
from ...constraints.terms import formula as logic
from ...constraints.terms.dims import Dim, Term, divide, evaluate, symbols
from ...constraints.terms.formula import Formula

LARGEST: Final = 2**40

Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]

PLAIN: Final[Mapping[Comparison, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPERATORS: Final[Mapping[Comparison, str]] = {
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
}  # fmt: skip
OVER_DIMS: Final[Mapping[Comparison, Callable[[Dim, Dim], Formula]]] = {
    "==": logic.eq,
    "!=": logic.ne,
    "<": logic.lt,
    "<=": logic.le,
    ">": logic.gt,
    ">=": logic.ge,
}

# --- fractions that floats reproduce ---------------------------------------------------------------------

Ratio: TypeAlias = tuple[Dim, Dim]


def ratio_of(value: float) -> Ratio | None:
    """Returns the fraction of small numbers that a constant of the program is meant to be, if sizes times the
    constant are rounded as with the exact fraction; else None.

    A multiple of a power of two near 1 is exact, and so is a product of it with a size below 2**40. Of any
    other, let f be the double nearest to p/q, and g = q*f - p. Where q does not divide n, n*p/q is at least
    1/q from an integer, further than n*f is from it. For n = q*t, n*f = v + t*g with v = p*t; where |g| <= p
    * 2**-54, that is at most half the distance from v to the doubles beside it, and is rounded to v.
    """
    if not math.isfinite(value):
        return None
    near = Fraction(value).limit_denominator(1024)
    p, q = near.numerator, near.denominator
    gap = q * Fraction(value) - p
    small = abs(p) < 2**12 and float(near) == value
    return (p, q) if small and abs(gap) <= abs(p) * Fraction(1, 2**54) else None


def lowest(p: Dim, q: Dim) -> Ratio | None:
    """Returns p/q with a positive integer below, the form in which comparisons and rounding are exact."""
    if not isinstance(q, int):
        return p, q
    if q == 0:
        return None
    if q < 0:
        p, q = -p, -q
    return (p, q) if q <= 2**20 else None


def sum_of(a: Ratio, b: Ratio) -> Ratio | None:
    """Returns the sum, exact in floats only where both denominators are powers of two; else None."""
    return lowest(a[0] * b[1] + b[0] * a[1], a[1] * b[1]) if _exact(a, b) else None


def difference(a: Ratio, b: Ratio) -> Ratio | None:
    return sum_of(a, (-b[0], b[1]))


def product(a: Ratio, b: Ratio) -> Ratio | None:
    """Returns the product: exact where both denominators are powers of two, rounded well where a size meets a
    constant; else None.
    """
    if (a[1] == 1 and isinstance(b[0], int)) or (b[1] == 1 and isinstance(a[0], int)) or _exact(a, b):
        return lowest(a[0] * b[0], a[1] * b[1])
    return None


def quotient(a: Ratio, b: Ratio) -> Ratio | None:
    """Returns the quotient of exact operands, which is rounded only once; else None."""
    return lowest(a[0] * b[1], a[1] * b[0]) if _exact(a, b) else None


def floor_quotient(a: Ratio, b: Ratio) -> Ratio | None:
    """Returns the exact integer quotient that Python gives for exact operands; `b` is not zero."""
    return ((a[0] * b[1]) // (a[1] * b[0]), 1) if _exact(a, b) and isinstance(b[0], int) else None


def remainder(a: Ratio, b: Ratio) -> Ratio | None:
    """Returns the remainder, exact for exact operands, as `fmod` is; `b` is not zero."""
    if not (_exact(a, b) and isinstance(b[0], int)):
        return None
    return lowest((a[0] * b[1]) % (b[0] * a[1]), a[1] * b[1])


def _exact(a: Ratio, b: Ratio) -> bool:
    return power_of_two(a[1]) and power_of_two(b[1])


def power_of_two(q: Dim) -> bool:
    return isinstance(q, int) and q > 0 and (q & (q - 1)) == 0


def root_against(compare: Callable[[Dim, Dim], Formula], n: Dim, p: Dim) -> Formula:
    """`compare(√n, p)`: two numbers that are not negative compare as their squares; a root is greater than
    any negative number.
    """
    return logic.any_of(
        (logic.all_of((logic.ge(p, 0), compare(n, p * p))), logic.all_of((logic.lt(p, 0), compare(1, 0))))
    )


# --- floats that rise with a size ------------------------------------------------------------------------

LOWEST: Final = -(2**63)
HIGHEST: Final = 2**63 - 1
MOST: Final = 64
"""Rounding a float splits into at most this many cases, one for each integer."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A float that is computed from one dim and constants, and never falls, or never rises, as the dim grows.

    Correctly rounded operations are monotone: x <= y gives fl(x) <= fl(y). So are functions of the C library
    that err by less than their results differ from one size to the next.
    """

    of: Term
    at: Callable[[int], float]
    """Computes the float for a number in place of the dim, exactly as the program does."""
    rising: bool = True
    low: int = LOWEST
    high: int = HIGHEST
    """The dim is known to lie between `low` and `high`, ends included; the float is computed only there."""

    def then(self, step: Callable[[float], float], rising: bool = True) -> Rise | None:
        """Returns the float after one more monotone step; None where that overflows somewhere."""
        after = replace(self, at=lambda n: step(self.at(n)), rising=self.rising == rising)
        finite = self.low <= self.high and all(math.isfinite(after.at(n)) for n in (self.low, self.high))
        return after if finite else None

    def where(self, reached: Callable[[float], bool], holds: bool) -> Rise:
        """Returns the same float on the part of the range where the property holds, or does not hold."""
        place = self._place(reached)
        if holds == self.rising:
            return replace(self, low=max(self.low, place))
        return replace(self, high=min(self.high, place - 1))

    def passes(self, reached: Callable[[float], bool]) -> Formula:
        """Returns the condition on the dim under which the float has a property that all greater floats have,
        too.
        """
        place = self._place(reached)
        if place <= self.low:
            return self.rising
        if place > self.high:
            return not self.rising
        return logic.ge(self.of, place) if self.rising else logic.lt(self.of, place)

    def _place(self, reached: Callable[[float], bool]) -> int:
        """Returns the least number from which on the property holds (for a falling float: does not hold).

        If no such number exists, this is one more than the highest.
        """
        low, high = self.low, self.high + 1
        while low < high:
            middle = (low + high) // 2
            beyond = reached(self.at(middle)) == self.rising
            low, high = (low, middle) if beyond else (middle + 1, high)
        return low

    def compared(self, how: Comparison, number: float) -> Formula:
        """Returns `float how number` as a formula."""
        if math.isnan(number):
            return how == "!="
        reaches = self.passes(lambda value: value >= number)
        exceeds = self.passes(lambda value: value > number)
        match how:
            case ">=":
                return reaches
            case ">":
                return exceeds
            case "<":
                return logic.negate(reaches)
            case "<=":
                return logic.negate(exceeds)
        equal = logic.all_of((reaches, logic.negate(exceeds)))
        return equal if how == "==" else logic.negate(equal)

    def whole(self, rounding: Callable[[float], int], truth: Callable[[Formula], bool]) -> int | None:
        """Returns the float rounded to an integer, found by branches that bisect the possible values; None
        where these are too many.
        """
        ends = self.at(self.low), self.at(self.high)
        if not all(map(math.isfinite, ends)):
            return None
        least, most = sorted(map(rounding, ends))
        if most - least >= MOST:
            return None
        while least < most:
            middle = (least + most + 1) // 2
            if truth(self.passes(lambda value: rounding(value) >= middle)):  # noqa: B023 (asked at once)
                least = middle
            else:
                most = middle - 1
        return least


# --- floats that are near a fraction ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Near:
    """A float v with |v - p/q| <= steps * 2**-52 * |p/q|, computed by so many operations that each round by
    2**-53 at most. Sizes have less than 64 bits, so that a few products of them stay among the floats.
    """

    p: Dim
    q: Dim
    steps: int = 0
    exact: Formula = True
    """The condition under which the float is p/q."""
    nearest: Formula = True
    """The condition under which it is the float nearest to p/q."""

    @classmethod
    def of(cls, value: float) -> Near | None:
        """Returns a constant that is neither very large nor very small; else None."""
        if not math.isfinite(value) or not (value == 0 or 2**-60 < abs(value) < 2**60):
            return None
        whole = Fraction(value)
        return cls(whole.numerator, whole.denominator)

    def times(self, other: Near) -> Near | None:
        """Returns the product: exact for integers, and the float nearest to it for exact factors."""
        nearest = logic.all_of((self.exact, other.exact))
        exact = logic.all_of((nearest, logic.divides(self.q, self.p), logic.divides(other.q, other.p)))
        return _made(self.p * other.p, self.q * other.q, self.steps + other.steps + 1, exact, nearest)

    def over(self, other: Near) -> Near | None:
        """Returns the quotient, exact where it is an integer. The other float is not zero."""
        p, q = self.p * other.q, self.q * other.p
        nearest = logic.all_of((self.exact, other.exact))
        exact = logic.all_of((nearest, logic.divides(q, p)))
        return _made(p, q, self.steps + other.steps + 1, exact, nearest)

    def positive(self) -> Formula:
        """Returns the condition that p/q is at least zero, and q more."""
        return logic.all_of((logic.ge(self.p, 0), logic.gt(self.q, 0)))

    def against(self, other: Near, certain: Callable[[Formula], bool]) -> tuple[Formula, Formula, Formula]:
        """Returns the conditions under which the float is certainly greater than the other, less, and equal
        to it. Neither is negative. Equality needs that both are the floats nearest to their fractions.

        With P = p*s and R = r*q, p/q and r/s compare as P and R do. The floats compare so, too, where P*(1 -
        e) > R*(1 + e), e = k * 2**-52 with k for the steps of both. Of integers with k*(P + R) < 2**52 one
        that is greater is greater by enough. Where P = R, floats that are nearest to them are one.
        """
        mine, theirs, k = self.p * other.q, other.p * self.q, self.steps + other.steps
        nearest = self.nearest is True and other.nearest is True
        equal = nearest and logic.eq(mine, theirs)
        if certain(logic.lt(k * (mine + theirs), 2**52)):
            return logic.gt(mine, theirs), logic.lt(mine, theirs), equal
        less, more = 2**52 - k, 2**52 + k
        return logic.gt(mine * less, theirs * more), logic.lt(mine * more, theirs * less), equal


def _made(p: Dim, q: Dim, steps: int, exact: Formula, nearest: Formula) -> Near | None:
    """Returns the float in lowest terms, where the divisor divides exactly; None for more steps than surely
    stay among finite floats.
    """
    if steps >= 8:
        return None
    whole, rest = divide(p, q)
    return Near(whole, 1, steps, exact, nearest) if rest == 0 else Near(p, q, steps, exact, nearest)


# --- floats that the data decide -------------------------------------------------------------------------


def element(ref: int) -> Computed:
    """Returns the only element of a tensor."""
    return Computed((ref,), lambda numbers, sizes: numbers[0])


def fraction(ratio: Ratio) -> Computed:
    """Returns a fraction of dims."""
    return Computed((), lambda numbers, sizes: _at(ratio[0], sizes) / _at(ratio[1], sizes))


def constant(number: float) -> Computed:
    """Returns a number that the program wrote."""
    return Computed((), lambda numbers, sizes: number)


def _at(dim: Dim, sizes: Sizes) -> int:
    return evaluate(dim, sizes.of(symbols(dim)))
