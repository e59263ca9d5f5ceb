"""The bits of integers that operators take."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from ...ir.language import Context
from ...terms.dims import Dim, Mono, Term
from ...terms.formula import all_of, ge, lt

LEAST: Final = -(2**63)
_BITS_OF_A_SIZE: Final = 20


def require_64_bits(c: Context, value: Any, signed: bool) -> None:
    """Requires that each integer of an argument, which may be a tuple, has at most 64 bits.

    `signed` are sizes, axes and places, and the elements of a new tensor; other integers may also be those
    without a sign of 64 bits, and beyond them torch raises OverflowError.
    """
    if type(value) is tuple:
        for part in value:
            require_64_bits(c, part, signed)
    elif type(value) in (int, Term) and not fits(value, 63):
        held = all_of((ge(value, LEAST), lt(value, 2**63 if signed else 2**64)))
        c.require(held, f"{value} has more than 64 bits", Exception if signed else OverflowError)


def has_64_bits(value: Any) -> bool:
    """Returns whether 64 bits hold every integer of an argument, which may be a tuple, as signed numbers."""
    if type(value) is tuple:
        return all(map(has_64_bits, value))
    return type(value) not in (int, Term) or fits(value, 63)


def fits(value: Dim, bits: int) -> bool:
    """Returns whether the value lies from -(2**bits) to 2**bits - 1.

    A term over sizes that does so where its sizes are at most 2**20, and 1 but for one of them, is assumed to
    do so: products of different sizes are numbers of elements, as a rule, of tensors that exist.
    """
    if isinstance(value, int):
        return -(1 << bits) <= value < 1 << bits
    return all(_bits(atoms, coefficient) <= bits for atoms, coefficient in value.terms)


def _bits(atoms: Mono, coefficient: int) -> int:
    """Returns how many bits the product has where one of its sizes has 20, and the others are 1."""
    most = len(atoms) if len(atoms) < 2 else max(Counter(atoms).values())
    return coefficient.bit_length() + _BITS_OF_A_SIZE * most
