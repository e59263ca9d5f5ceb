"""What dtypes hold of numbers: integers wrap at their width, floats are whole up to the bits of their
significand.
"""

from __future__ import annotations

from typing import Final

INTEGRAL: Final = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
WHOLE: Final = INTEGRAL | {"bool"}
DIGITS: Final = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to 2 to that power are floats."""
SMALL: Final = 1 << 10
"""The largest number by which fractions are moved and divided."""
SPARE: Final = 5
"""Bits that are left to the errors of roundings."""
LARGE: Final = 1 << 15
"""A size, and a position, for which integers of 32 bits and more are taken to hold what is made of these."""


def width(dtype: str) -> tuple[int, int] | None:
    """The least and the greatest number of an integer dtype; None of another, and of integers of 32 bits and
    more, which are taken to hold every position in a tensor.
    """
    if dtype not in INTEGRAL or dtype.endswith(("32", "64")):
        return None
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def wide(dtype: str | None) -> tuple[int, int] | None:
    """The least and the greatest number of an integer dtype of 32 bits or more."""
    if dtype not in INTEGRAL or not dtype.endswith(("32", "64")):
        return None
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def limits(dtype: str | None, roundings: int | None, small: int | None) -> tuple[int, int] | None:
    """Between what a dtype holds all integers, or, where `roundings` are given, the numerators of fractions
    whose floor is right after so many; None where that is everywhere. Of a dtype that is not known, or of
    another kind, that is nowhere but at 0 and 1.

    Rounded to the nearest float, n/d with |n| < 2**b is on the same side of every integer: if it is none it
    is 1/d away. Each further rounding errs by less than 2**-b * |n|/d, so that 2**SPARE of them together,
    with |n| < 2**(b - SPARE), err by less than 1/d. With a `small` d, and nothing but numbers up to SMALL
    added, r roundings err by less than r * 2**-b * (|n|/d + 2*SMALL*r), which is below 1/d where
    r * (|n| + 2*SMALL*r*d) < 2**b.
    """
    if dtype in INTEGRAL:
        return width(dtype or "")
    if dtype in DIGITS:
        spare = 0 if roundings is None else 1 if roundings <= 1 else SPARE
        most = 1 << DIGITS[dtype] - spare
        if roundings and small:
            most = max(most, ((1 << DIGITS[dtype]) - 1) // roundings - 2 * SMALL * roundings * small)
        return -most, most
    return 0, 1
