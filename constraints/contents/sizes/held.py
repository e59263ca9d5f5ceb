"""Bounds of numbers as tensors of a dtype hold them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final

from ..elements.dtypes import DIGITS, GREATEST_HALF, INTEGRAL, LARGEST_HALF
from ..lookups.computed import NotComputed, held
from .lines import Bound, Ends, Line, flat, less, single

INFINITY: Final = 1 << 200
"""Stands for infinity."""


def rounded(ends: Ends, dtype: str, exact: bool = True, whole: bool = False) -> Ends:
    """Returns the bounds of floats that are rounded to the nearest, which keeps order: a float stays a bound.
    Those made from rounded operands, by up to three roundings, are not `exact`. Those of `whole` numbers that
    a float can be are not rounded. From half a unit beyond the greatest half on, halves are infinite.
    """
    err = Fraction(1, 1 << DIGITS[dtype] - 2)

    def wider(one: Bound, sign: int) -> Bound:
        if one is None:
            return None
        if one.constant and exact and abs(one.at) < 1 << 15 and held(float(one.at), dtype) == one.at:
            return one
        return one.plus(Line(abs(one.at), tuple(map(abs, one.slopes)), one.spans).times(sign * err))

    if whole and ends.within(flat(-(1 << DIGITS[dtype])), flat(1 << DIGITS[dtype])):
        return ends
    most = flat(LARGEST_HALF)
    infinite = flat(GREATEST_HALF + 1)
    if dtype == "float16" and ends.top is not None and infinite.is_below(ends.top):
        ends = replace(ends, top=flat(INFINITY))
    if dtype == "float16" and ends.bottom is not None and ends.bottom.is_below(infinite.times(-1)):
        ends = replace(ends, bottom=flat(-INFINITY))
    wild = ends.wild or (dtype == "float16" and not ends.within(most.times(-1), most))
    return replace(
        ends,
        low=None if wild else wider(ends.low, -1),
        high=None if wild else wider(ends.high, 1),
        top=wider(ends.top, -1),
        bottom=wider(ends.bottom, 1),
        wild=wild,
    )


def wrapped(ends: Ends, dtype: str) -> Ends:
    """Returns the bounds of integers that wrap at the width of the dtype, unless it holds all of them. If
    none is too low, one that is low enough does not wrap.
    """
    if dtype == "bool":
        return ends
    if dtype not in INTEGRAL:
        raise NotComputed
    bits, signed = int(dtype.lstrip("uint")), not dtype.startswith("u")
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    far = ends.up_to_farthest
    if far.within(flat(least), flat(most)):
        return ends
    if (one := single(ends)) is not None and one.denominator == 1 and not ends.wild:
        same = flat(int(held(int(one), dtype)))
        return replace(ends, low=same, high=same, top=same, bottom=same)
    if ends.wild:
        raise NotComputed
    above = far.low is not None and flat(least).is_below(far.low)
    below = far.high is not None and far.high.is_below(flat(most))
    top = ends.top if below and ends.top is not None and flat(least).is_below(ends.top) else None
    bottom = ends.bottom if above and ends.bottom is not None and ends.bottom.is_below(flat(most)) else None
    if ends.top is not None and ends.high is not None and far.high is not None:
        once = flat(most + 1).is_below(ends.top) and far.high.is_below(flat(most + (1 << bits)))
        bottom = far.high.plus(flat(-(1 << bits))) if once else bottom
    high = less(flat(most), ends.high) if ends.natural else flat(most)  # what wraps becomes less
    return replace(ends, low=flat(least), high=high, top=top, bottom=bottom)


def stored(ends: Ends, dtype: str) -> Ends:
    """Returns the bounds of numbers as the result's dtype holds them."""
    return rounded(ends, dtype) if dtype in DIGITS else wrapped(ends, dtype)
