"""What dtypes hold of numbers: integers wrap at their width, floats are whole up to the bits of their
significand.
"""

from __future__ import annotations

from typing import Final

INTEGRAL: Final = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
WHOLE: Final = INTEGRAL | {"bool"}
DIGITS: Final = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to 2 to that power are floats."""
SPARE: Final = 6
"""Fractions are followed up to a number with so many bits less, so that roundings add up to less than 1."""


def width(dtype: str) -> tuple[int, int] | None:
    """The least and the greatest number of an integer dtype, None of another. Integers of 64 bits are taken
    to hold all numbers.
    """
    if dtype not in INTEGRAL or dtype in ("int64", "uint64"):
        return None
    bits = int(dtype.lstrip("uint"))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def limits(dtype: str | None, fractions: bool) -> tuple[int, int] | None:
    """Between what numbers a dtype holds all integers, or, with `fractions`, holds fractions with an error
    below the one that `SPARE` allows for; None where that is everywhere. Of a dtype that is not known, or of
    another kind, that is nowhere but at 0 and 1.
    """
    if dtype in ("int64", "uint64"):
        return None
    if dtype in INTEGRAL:
        return width(dtype)
    if dtype in DIGITS:
        most = 1 << DIGITS[dtype] - (SPARE if fractions else 0)
        return -most, most
    return 0, 1
