"""The ranges of dtypes: integers wrap at their width, floats represent integers up to the bits of their
significand.
"""

from __future__ import annotations

from typing import Final

INTEGRAL: Final = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
WHOLE: Final = INTEGRAL | {"bool"}
DIGITS: Final = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to 2 to that power are floats."""
LARGEST_HALF: Final = 65504
GREATEST_HALF: Final = 65519
"""Integers up to this one are rounded to the largest half, greater ones to infinity."""
SMALL: Final = 1 << 10
"""The largest number that fractions may be shifted and divided by."""
SINGLE: Final = 1 << 22
"""Lower bounds of numbers in doubt that are at least this great are those of singles, which do not become
infinite: short floats are in doubt from smaller numbers on.
"""
SPARE: Final = 5
"""Bits left for the errors of roundings."""
LARGE: Final = 1 << 20
"""Integers of 32 bits and more, and doubles, are checked to hold the results at sizes and positions up to
this one: those of a tensor of a million elements.
"""


def width(dtype: str) -> tuple[int, int] | None:
    """Returns the least and the greatest number of an integer dtype.

    None for another dtype, and for integers of 32 bits and more, which are assumed to hold every position in
    a tensor.
    """
    if dtype not in INTEGRAL or dtype.endswith(("32", "64")):
        return None
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def wide(dtype: str | None) -> tuple[int, int] | None:
    """Returns the least and the greatest number of an integer dtype of 32 bits or more, and those up to which
    doubles represent all integers; else None.
    """
    if dtype == "float64":
        return -(1 << DIGITS[dtype]), 1 << DIGITS[dtype]
    if dtype not in INTEGRAL or not dtype.endswith(("32", "64")):
        return None
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def limits(dtype: str | None, roundings: int | None, small: int | None) -> tuple[int, int] | None:
    """Returns bounds between which a dtype holds all integers, or, where `roundings` are given, the
    numerators of fractions whose floor is right after so many; None where there are no bounds. For an unknown
    dtype, or one of another kind, they are 0 and 1.

    Rounded to the nearest float, n/d with |n| < 2**b stays on the same side of every integer: if it is not an
    integer it is 1/d away. Each further rounding errs by less than 2**-b * |n|/d, so that 2**SPARE of them
    together, with |n| < 2**(b - SPARE), err by less than 1/d. With a `small` d, and nothing but numbers up to
    SMALL added, r roundings err by less than r * 2**-b * (|n|/d + 2*SMALL*r), which is below 1/d where r *
    (|n| + 2*SMALL*r*d) < 2**b.
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
