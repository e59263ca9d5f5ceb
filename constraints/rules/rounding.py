"""Sizes times floats, as floating-point arithmetic rounds them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, isfinite
from typing import cast

from ..ir.language import Context, Number
from ..terms.dims import Dim, Term, ceildiv
from ..terms.formula import Formula, all_of, any_of, divides, ge, le, ne

DENOMINATOR = 4096
"""The largest denominator that is looked for behind a float such as 0.333…"""

CHECKED = 1 << 14
"""The size up to which sizes are tried one by one where no argument covers them all."""


def scaled(c: Context, size: Dim, factor: float | Number | Term) -> Dim:
    """`n, f -> floor(float(n) * f)`, the product rounded to a double, as torch computes sizes from scales.

    With f the double nearest to p/q and g = q*f - p, n*f = n*p/q + n*g/q. Where q does not divide n, n*p/q
    is at least 1/q from an integer, errors are below that (n*p < 2**52), and the result is n*p // q. For
    n = q*t the product is p*t + t*g, and the result is p*t = n*p // q
    - where g >= 0, since rounding is monotone and p*t is a double;
    - where |g| <= p * 2**-54: doubles below v = p*t, 2**e < v <= 2**(e + 1), are 2**(e - 52) apart, and
      t*|g| <= v * 2**-54 <= 2**(e - 53) is at most half of it. A tie is v = 2**(e + 1), to which it rounds.
    Else the sizes that the domain allows are tried one by one, as far as `CHECKED`.
    """
    if isinstance(factor, Number):
        c.approximate("a size times a number that is not known", "accept")
        return c.fresh("scaled", 0, None)
    if isinstance(factor, int | Term):
        return size * factor
    if not isfinite(factor):
        c.refuse(f"a size times {factor}")
    if isinstance(size, int):
        return floor(size * factor)
    ratio = Fraction(factor).limit_denominator(DENOMINATOR)
    if float(ratio) != factor:
        ratio = Fraction(factor)
    p, q = ratio.numerator, ratio.denominator
    gap = q * Fraction(factor) - p
    if q > DENOMINATOR or (gap < 0 and -gap > p * Fraction(1, 2**54)):
        whole: Formula = divides(q, size) if q <= DENOMINATOR else True
        wrong = next((n for n in range(CHECKED + 1) if floor(n * factor) != n * p // q), None)
        if wrong is not None and not c.at_least(-size, 1 - wrong):
            reason = f"floor({size} * {factor}) is computed as {p}*n // {q}, which differs at {wrong}"
            c.approximate(reason, where=any_of((all_of((ge(size, wrong), whole)), le(size, -1))))
        elif wrong is None and not c.at_least(-size, -CHECKED):
            reason = f"floor({size} * {factor}) is computed as {p}*n // {q}, compared up to {CHECKED}"
            c.approximate(reason, where=any_of((ge(size, CHECKED + 1), le(size, -1))))
    return size * p // q


def steps(c: Context, start: float | Term, end: float | Term, step: float | Term) -> Dim:
    """`start, end, step -> ceil((end - start) / step)`, in doubles; the end may not lie against the step.

    With start, end and step ratios of small numbers, the difference is exact, and the quotient, unless it is
    an integer, is further from the next one than the error of the division: both have the same ceiling.
    """
    if all(isinstance(n, int | float) for n in (start, end, step)):
        return _count(c, cast(float, start), cast(float, end), cast(float, step))
    (a, b), (e, d), (p, q) = (_ratio(c, n) for n in (start, end, step))
    if p == 0:
        c.refuse("step must not be 0", Exception)
    c.require(ne(p, 0), "step must not be 0", Exception)
    over = e * b - a * d  # (end - start) = over / (b*d)
    c.require(
        any_of((all_of((ge(p, 0), ge(over, 0))), all_of((le(p, 0), le(over, 0))))),
        f"{end} cannot be reached from {start} by {step}",
    )
    return ceildiv(over * q, p * b * d)


def _count(c: Context, start: float, end: float, step: float) -> int:
    """As `steps`, where all three are numbers."""
    if not all(map(isfinite, (start, end, step))):
        c.refuse(f"no range is from {start} to {end} by {step}")
    if step == 0:
        c.refuse("step must not be 0", Exception)
    if (end - start) * step < 0:
        c.refuse(f"{end} cannot be reached from {start} by {step}")
    return ceil((end - start) / step)


def _ratio(c: Context, value: float | Term) -> tuple[Dim, int]:
    """Returns numerator and denominator of a bound.

    Marks the result as approximate where the bound is not a ratio of small numbers.
    """
    if not isinstance(value, float):
        return value, 1
    if not isfinite(value):
        c.refuse(f"{value} is not a bound of a range")
    ratio = Fraction(value)
    if ratio.denominator > DENOMINATOR or abs(ratio.numerator) > CHECKED:
        near = ratio.limit_denominator(DENOMINATOR)
        c.approximate(f"the rounding of {value} is not followed: it is taken to be {near}")
        return near.numerator, near.denominator
    return ratio.numerator, ratio.denominator
