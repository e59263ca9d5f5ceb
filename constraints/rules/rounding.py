"""Sizes times floats, as floating-point arithmetic rounds them."""

from __future__ import annotations

from fractions import Fraction
from math import floor, isfinite

from ..dims import Dim, Term
from ..language import Context, Number

DENOMINATOR = 4096
"""The largest denominator that is looked for behind a float such as 0.333…"""

CHECKED = 1 << 14
"""How far sizes are tried one by one where no argument covers them all."""


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
        c.approximate("a size times a number that is not known")
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
        wrong = next((n for n in range(CHECKED + 1) if floor(n * factor) != n * p // q), None)
        if wrong is not None and not c.at_least(-size, 1 - wrong):
            c.approximate(f"floor({size} * {factor}) is taken for {p}*n // {q}, which differs at {wrong}")
        elif wrong is None and not c.at_least(-size, -CHECKED):
            c.approximate(f"floor({size} * {factor}) is taken for {p}*n // {q}, tried up to {CHECKED} only")
    return size * p // q
