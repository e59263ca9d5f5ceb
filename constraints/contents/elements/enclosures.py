"""Intervals that floats lie in: the images of intervals under non-decreasing functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final

Function = Callable[[float, float], float]

WIDER: Final = 1e-5
"""The amount by which an interval is widened after a step, relative to its ends, and absolute. A float32 is
rounded within 6e-8 of itself; torch's kernels err by a few roundings.
"""
WHOLE_UP_TO: Final = 2.0**53
"""Integers up to which this arithmetic and that of int64 agree."""
MOST: Final = 1e30
"""Floats beyond are not tracked, and might be infinite."""
FUNCTIONS: Final[Mapping[str, Callable[[float], float]]] = {
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "log1p": math.log1p,
    "exp": math.exp,
    "exp2": math.exp2,
    "expm1": math.expm1,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "atan": math.atan,
    "asinh": math.asinh,
    "sinh": math.sinh,
    "erf": math.erf,
    "sigmoid": lambda x: (1 + math.tanh(x / 2)) / 2,
}
"""Non-decreasing operators on floats, as real functions; an error of the function means that there is no
value.
"""
ARITHMETIC: Final[Mapping[str, Function]] = {
    "add": lambda x, n: x + n,
    "mul": lambda x, n: x * n,
    "div": lambda x, n: x / n,
    "ceil": lambda x, n: math.ceil(x),
    "floor": lambda x, n: math.floor(x),
    "round": lambda x, n: round(x),
}
EXACT: Final[Mapping[str, Function]] = {
    "trunc": lambda x, n: math.trunc(x),
    "long": lambda x, n: math.trunc(x),
    "minimum": min,
    "maximum": max,
}
"""Operators whose results are not rounded."""


def _of_one(law: Callable[[float], float]) -> Function:
    return lambda x, n: law(x)


STEPS: Final[Mapping[str, Function]] = {
    **{op: _of_one(law) for op, law in FUNCTIONS.items()},
    **ARITHMETIC,
    **EXACT,
}


def image(low: Fraction, high: Fraction, steps: Iterable[tuple[str, float]]) -> tuple[float, float] | None:
    """Returns bounds of the results of the steps for all numbers between two others, with all roundings of
    floats; None where some have no value, or one that is too great.
    """
    ends = (-WIDER * abs(float(low)) + float(low), float(high) + WIDER * abs(float(high)))
    whole = False
    for op, number in steps:
        try:
            first, last = (float(STEPS[op](end, number)) for end in ends)
        except (ValueError, OverflowError):
            return None
        whole = whole or op == "long"
        if op not in EXACT and not whole:
            first, last = (end + sign * WIDER * (abs(end) + 1) for end, sign in ((first, -1), (last, 1)))
        ends = first, last
        if not all(abs(end) < (WHOLE_UP_TO if whole else MOST) for end in ends):
            return None
    return ends
