"""Bits of integers: `&`, `|`, `^` and shifts, where one operand is the same number everywhere."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...ir.language import UNTRACKED, Elements, Piece, Pieces
from ...terms.dims import minimum
from ..elements.cycles import is_run, modulo, two_ends
from ..elements.dtypes import INTEGRAL
from ..elements.functions import AtLeast, corners, divided, number, settled
from .arithmetic import is_rounded
from .calls import Law, NamedCall

FURTHEST: Final = 32
"""A number is shifted by less than this; an integer of 64 bits that holds a size then holds the result."""


def _by_number(
    law: Callable[[Piece, int, AtLeast], list[Piece] | None], of_two: Callable[[int, int], int]
) -> Law:
    """Returns the law of a call with a tensor of integers and a number, in either order if the operator is
    commutative; `of_two` computes the result for two numbers.
    """

    def by_piece(piece: Piece, by: int, at_least: AtLeast) -> list[Piece] | None:
        if isinstance(piece.term, int) and piece.doubt is False and 0 <= by < FURTHEST:
            return [replace(piece, term=of_two(piece.term, by))]
        return law(piece, by, at_least)

    def by_number(call: NamedCall) -> Elements | Pieces:
        sides = [call.operand("input"), call.operand("other")]
        if call.result.dtype not in INTEGRAL or any(map(is_rounded, sides)):
            return UNTRACKED
        if "shift" not in call.op and _number(sides[1]) is None:
            sides.reverse()
        pieces, by = sides[0], _number(sides[1])
        if pieces is None or by is None:
            return UNTRACKED
        if law not in IN_DOUBT:
            pieces = settled(pieces)
        return divided(pieces, lambda piece: by_piece(piece, by, call.at_least)) or UNTRACKED

    return by_number


def _number(pieces: Pieces | None) -> int | None:
    match pieces:
        case Pieces((Piece(int() as value, 1, (), True),), False):
            return value
    return None


def _shifted_left(piece: Piece, by: int, at_least: AtLeast) -> list[Piece] | None:
    if not 0 <= by < FURTHEST:
        return None
    return [replace(piece, term=number(piece) * (1 << by), least=piece.least << by)]


def _shifted_right(piece: Piece, by: int, at_least: AtLeast) -> list[Piece] | None:
    """Returns the floor of the quotient by a power of 2, for negative numbers, too."""
    if not 0 <= by < FURTHEST:
        return None
    return [replace(piece, term=number(piece) // (1 << by), least=piece.least >> by)]


def _masked(piece: Piece, mask: int, at_least: AtLeast) -> list[Piece] | None:
    """Returns the remainder by 2**k for the mask 2**k - 1, and the number less that for -2**k; for another
    non-negative mask some numbers up to it.
    """
    if mask >= 0 and mask & (mask + 1) == 0:
        return modulo(piece, 0, mask + 1, at_least)
    if mask < 0 and -mask & (-mask - 1) == 0:
        return [replace(piece, term=number(piece) // -mask * -mask)]
    return [replace(two_ends(piece, 0, mask), attained=False)] if mask >= 0 else None


IN_DOUBT: Final = (_masked, _shifted_left, _shifted_right)
"""Laws that handle elements in doubt."""


def _flipped(piece: Piece, bits: int, at_least: AtLeast) -> list[Piece] | None:
    """Returns the numbers with bits flipped. With 1, an even number is swapped with the next one.

    The greatest of a run from a to b is then b + 1 if b is even, else b, unless b is the only one, and
    likewise the least. With other bits, non-negative numbers give numbers with no more bits than these, or at
    most their sum.
    """
    term = number(piece)
    if bits == 1 and not piece.indices:
        return [replace(piece, term=term + 1 - term % 2 * 2)]
    ends = corners(term, piece.indices, at_least)
    if ends is None or len(ends[0]) > 1 or len(ends[1]) > 1:
        return None
    ((low,), (high,)) = ends
    if bits == 1:
        several = minimum(1, high - low)
        least = low - low % 2 + (1 - low % 2) * (1 - several)
        most = high + 1 - high % 2 - high % 2 * (1 - several)
        return [replace(two_ends(piece, least, most), attained=is_run(piece))]
    if bits < 0 or not at_least(low, 0):
        return None
    return [replace(two_ends(piece, 0, high + bits), attained=False)]


def _joined(piece: Piece, bits: int, at_least: AtLeast) -> list[Piece] | None:
    """Returns numbers no less than either operand, and at most their sum, for non-negative numbers."""
    ends = corners(number(piece), piece.indices, at_least)
    if ends is None or bits < 0 or not all(at_least(low, 0) for low in ends[0]) or len(ends[1]) > 1:
        return None
    return [replace(two_ends(piece, bits, ends[1][0] + bits), attained=False)]


shifted_left = _by_number(_shifted_left, operator.lshift)
shifted_right = _by_number(_shifted_right, operator.rshift)
masked = _by_number(_masked, operator.and_)
flipped = _by_number(_flipped, operator.xor)
joined = _by_number(_joined, operator.or_)
