"""Integers that operators take: they have at most 64 bits."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from ..ir.language import Context
from ..terms.dims import Term
from ..terms.formula import all_of, ge, lt

LEAST: Final = -(2**63)
LIMIT: Final = 2**64
"""An operator takes an integer n with LEAST <= n < LIMIT: signed, or without a sign."""
_BITS_OF_A_SIZE: Final = 20


def require_64_bits(c: Context, value: Any) -> None:
    """Requires that an argument which is an integer has at most 64 bits; torch raises OverflowError.

    A term over sizes that fits where its sizes are at most 2**20, and 1 but for one of them, is assumed to
    fit: products of different sizes are numbers of elements, as a rule, of tensors that exist.
    """
    if _may_be_great(value):
        fits = all_of((ge(value, LEAST), lt(value, LIMIT)))
        c.require(fits, f"{value} has more than 64 bits", OverflowError)


def _may_be_great(value: Any) -> bool:
    if type(value) is int:
        return not LEAST <= value < LIMIT
    return type(value) is Term and any(
        coefficient.bit_length() + _BITS_OF_A_SIZE * max(Counter(atoms).values(), default=0) > 63
        for atoms, coefficient in value.terms
    )
