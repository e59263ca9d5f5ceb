"""Non-decreasing functions of positions, computed in floats: `log`, `sqrt`, and their compositions.

The element at each index is traced back to the integer that it is computed from there, so that a mask's
condition on that integer bounds the element where `where` selects it: T5's `where(x < 8, x, 8 + log(x / 8) *
…)` takes the logarithm of x >= 8 only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import Any, Final

from ...ir.language import UNTRACKED, Affine, Comparison, Elements, Image, Piece, Pieces, Tensor, Truths
from ...terms.dims import Apply, Dim, maximum, minimum
from ..elements.dtypes import SMALL
from ..elements.functions import corners, number, renamed
from ..elements.values import pieces_of
from .calls import CASTS, NamedCall

FLOATS: Final = ("float32", "float64")
SIZES: Final = 1 << 63
"""No size, and no element of int64, reaches this number."""
GREATEST: Final = 1 << 90
"""Floats beyond this number are not tracked."""
LEAST: Final = 1e-30
"""Factors and divisors of floats are greater."""
EXTREMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("min", "minimum"), "minimum"),
    **dict.fromkeys(("max", "maximum"), "maximum"),
}
CLAMPS: Final = frozenset("clamp clamp_min clamp_max".split())


def placed(pieces: Pieces | None) -> Piece | None:
    """Returns the only piece, if it gives the element at every index; else None."""
    if pieces is None or pieces.slack or pieces.by_data or pieces.and_data or len(pieces.pieces) != 1:
        return None
    (piece,) = pieces.pieces
    there = piece.term is not None and piece.given is True and not piece.fixed
    return renamed(piece) if there and all(i.ordered and i.axis is not None for i in piece.indices) else None


def made_of(call: NamedCall) -> Elements:
    """Returns the elements as a function of floats, or of integers, that sizes decide."""
    before = _start(call) or (_of_several(call) if call.op == "sqrt" else None)
    if call.result.dtype not in FLOATS:
        return UNTRACKED
    if before is None or before.piece.indices == ():
        squares = _roots_of_squares(call)
        if squares is not None or before is None:
            return squares or UNTRACKED
    return replace(before, steps=(*before.steps, (call.op, 0.0)))


def _roots_of_squares(call: NamedCall) -> Pieces | None:
    """Returns the roots of small squares, 0 and 1 above all, which are exact."""
    pieces = call.pieces
    if call.op != "sqrt" or pieces is None or pieces.slack or pieces.roundings:
        return None
    roots = [_root_of_square(piece) for piece in pieces.pieces]
    known = [root for root in roots if root is not None]
    return replace(pieces, pieces=tuple(known)) if len(known) == len(roots) else None


def _root_of_square(piece: Piece) -> Piece | None:
    small = isinstance(piece.term, int) and piece.over == 1 and 0 <= piece.term <= SMALL
    root = isqrt(piece.term) if small and isinstance(piece.term, int) else None
    return replace(piece, term=root) if root is not None and root * root == piece.term else None


def _start(call: NamedCall) -> Image | None:
    """Returns the input as an image, or None.

    Elements in doubt are greater than the least end. Floats that were rounded once differ from the exact
    numbers by less than the margin of an interval.
    """
    if isinstance(call.input.elements, Image):
        return call.input.elements
    pieces = call.pieces
    piece = placed(pieces)
    if pieces is None or piece is None or pieces.roundings > 1 or not isinstance(piece.over, int):
        return None
    ends, most = corners(number(piece), piece.indices, call.at_least), _magnitude(number(piece))
    if ends is None or most > GREATEST or not 1 <= piece.over <= SMALL:
        return None
    least = next((n for n in (1, 0) if all(call.at_least(low, n) for low in ends[0])), -most)
    if piece.doubt is not False and (least < 0 or piece.least < SMALL):
        return None
    return Image(piece, Fraction(least, piece.over), Fraction(most), ())


def _of_several(call: NamedCall) -> Image | None:
    """Returns an input of several natural numbers, in any order, as an image; None where it has others."""
    pieces = call.pieces
    if pieces is None or pieces.slack or pieces.by_data or pieces.and_data or pieces.roundings:
        return None
    several = tuple(renamed(p) for p in pieces.pieces if p.term is not None)
    ends = [corners(number(p), p.indices, call.at_least) for p in several]
    exact = len(several) == len(pieces.pieces) and all(p.over == 1 and p.doubt is False for p in several)
    natural = all(end is not None and all(call.at_least(low, 0) for low in end[0]) for end in ends)
    most = max(_magnitude(number(p)) for p in several) if exact and several else GREATEST
    if not natural or most >= GREATEST:
        return None
    return Image(several[0], Fraction(0), Fraction(most), (), several[1:])


def _magnitude(term: Dim) -> int:
    """Returns an upper bound of the absolute value of a term, for sizes below `SIZES`."""
    if isinstance(term, int):
        return abs(term)
    total = 0
    for mono, factor in term.terms:
        most = abs(factor)
        for atom in mono:
            most *= max(map(_magnitude, atom.args)) + 1 if isinstance(atom, Apply) else SIZES
        total += most
    return total


def stepped(call: NamedCall) -> Elements:
    """Returns the image after a call with an image as operand, and None if no operand is one, or if it has
    pieces that tell more: those of roots that are made integers.

    The call must be non-decreasing with a number as its other operand, or else the result is untracked.
    """
    second = call.named.get("dim") if call.op in ("min", "max") else call.named.get("other")
    operands: list[Any] = [call.named.get("input"), second]
    images = [isinstance(v, Tensor) and isinstance(v.elements, Image) for v in operands]
    reduces = call.op in EXTREMES and not isinstance(second, Tensor)
    if not any(images) or reduces or call.op not in STEPPING:
        return None
    before, other = operands if images[0] else operands[::-1]
    cast = call.op in CASTS
    rooted = [op for op, _ in before.elements.steps] == ["sqrt", "long"]
    if rooted and call.op not in CLAMPS | EXTREMES.keys():
        return None
    if all(images) or before.shape != call.result.shape or (before.dtype != call.result.dtype and not cast):
        return UNTRACKED
    steps = _cast(before.dtype, call.result.dtype) if cast else _steps(call, other, images[0])
    if steps is None:
        return UNTRACKED
    found: Image = before.elements
    return replace(found, steps=(*found.steps, *steps))


ROUNDINGS: Final = frozenset("ceil floor round trunc".split())
STEPPING: Final = CASTS | CLAMPS | EXTREMES.keys() | ROUNDINGS | frozenset("add sub rsub mul div".split())


def _cast(before: str, after: str) -> list[tuple[str, float]] | None:
    if before == after:
        return []
    return [("long", 0.0)] if before in FLOATS and after == "int64" else None


def _steps(call: NamedCall, other: Any, first: bool) -> list[tuple[str, float]] | None:
    op, named, whole = call.op, call.named, call.result.dtype == "int64"
    if call.result.dtype not in FLOATS and not whole:
        return None
    if op in CLAMPS:
        bounds = [("maximum", _number(named.get("min"))), ("minimum", _number(named.get("max")))]
        asked = [named.get(name) is not None for name in ("min", "max")]
        held = [b for b, given in zip(bounds, asked, strict=True) if given]
        return None if any(n is None for _, n in held) else held  # type: ignore[return-value]
    if op in ROUNDINGS:
        return None if named.get("decimals") not in (0, None) else [(op, 0.0)]
    n, alpha = _number(other), named.get("alpha", 1)
    if n is None or alpha != 1 or named.get("rounding_mode") is not None:
        return None
    if op in EXTREMES:
        return [(EXTREMES[op], n)]
    match op:
        case "add":
            return [(op, n)]
        case "sub" if first:
            return [("add", -n)]
        case "mul" if n > LEAST:
            return [(op, n)]
        case "div" if n > LEAST and first and not whole:
            return [(op, n)]
    return None


def _number(value: Any) -> float | None:
    """Returns a number, or the common value of all elements of a tensor; else None."""
    if isinstance(value, Tensor) and isinstance(value.elements, Affine) and not value.elements.steps:
        value = value.elements.start
    return float(value) if isinstance(value, int | float) and abs(value) < SIZES else None


def chosen_where(call: NamedCall, name: str, wanted: bool) -> Pieces | None:
    """Returns an operand of `where` at the indices where the condition is as wanted."""
    condition, value, there = call.named.get("condition"), call.named.get(name), call.operand(name)
    match condition, value:
        case Tensor(shape, _, _, Truths(_, _, None, Comparison() as asked)), Tensor() if (
            shape == value.shape == call.result.shape
        ):
            below = asked.below == wanted
            if isinstance(value.elements, Image):
                return pieces_of(_restricted(value.elements, asked, below), value.shape)
            piece = placed(there)
            if there is not None and piece is not None and piece.over == 1 and _is_of(piece, asked):
                x = number(piece)
                term = minimum(x, asked.bound - 1) if below else maximum(x, asked.bound)
                return replace(there, pieces=(replace(piece, term=term, attained=False),))
    return there


def _is_of(piece: Piece, asked: Comparison) -> bool:
    return (piece.term, piece.indices) == (asked.piece.term, asked.piece.indices)


def _restricted(found: Image, asked: Comparison, below: bool) -> Image:
    """Returns the image where the number that it is computed from is below the bound, or is not."""
    over = found.piece.over
    if not isinstance(over, int) or found.others or not _is_of(found.piece, asked):
        return found
    low, high = found.low, found.high
    if below:
        high = min(high, Fraction(asked.bound - 1, over))
    else:
        low = max(low, Fraction(asked.bound, over))
    return replace(found, low=min(low, high), high=max(low, high))
