"""What operators ask of the elements of their operands: that indices are in range, that none is negative,
that a probability is one, that integers are not divided by zero, that roundings are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..dims import Term
from ..formula import Formula, all_of, any_of, eq, ge, le, ne, negate
from ..language import Context, Piece, Pieces, Tensor, product
from .arithmetic import require_exact
from .calls import CASTS, of_number
from .dtypes import INTEGRAL
from .functions import Corners, corners, settled
from .indices import INDICES, approximate, require_in_range
from .values import of, pieces_of, step_of

Named = Mapping[str, Any]

RANGES: Final[Mapping[str, tuple[str, int, int | None]]] = {
    "bincount": ("input", 0, None),
    "one_hot": ("input", 0, None),
    "repeat_interleave": ("repeats", 0, None),
    "multinomial": ("input", 0, None),
    "poisson": ("input", 0, None),
    "bernoulli": ("input", 0, 1),
}
"""Operator -> an operand, the least that its elements may be, and the greatest."""
DIVISIONS: Final = frozenset("div floor_divide remainder fmod".split())
ASKING: Final = INDICES.keys() | RANGES.keys() | DIVISIONS | CASTS | {"ceil", "floor", "round", "trunc"}


def require_elements(c: Context, op: str, named: Named, result: Any, unchecked: Formula) -> None:
    """Elements that sizes decide must be such as the operator takes. Indices are not looked at where they are
    `unchecked`.
    """
    if op not in ASKING:
        return
    if op in INDICES:
        require_in_range(c, op, named, unchecked)
    if op in RANGES:
        _require_between(c, op, named)
    elif op in DIVISIONS:
        _require_divisor(c, op, named, result)
    else:
        require_exact(c, op, named, result)


def _require_between(c: Context, op: str, named: Named) -> None:
    name, low, high = RANGES[op]
    operand = named.get(name)
    if not isinstance(operand, Tensor) or (op == "bernoulli" and "p" in named):
        return
    for piece, ends, nowhere in _parts(c, op, operand, operand):
        inside = all_of(
            (
                *(ge(end, low * piece.over) for end in ends[0]),
                *(le(end, high * piece.over) for end in ends[1] if high is not None),
            )
        )
        limits = f"{low} or more" if high is None else f"from {low} to {high}"
        _require(c, any_of((inside, *nowhere)), piece.attained, f"{op} takes elements of {limits}", operand)


def _require_divisor(c: Context, op: str, named: Named, result: Any) -> None:
    """No divisor of integers is 0. Numbers that follow each other without a gap are 0 nowhere just where all
    are positive, or all are negative.
    """
    divisor = named.get("other")
    true_division = op == "div" and named.get("rounding_mode") is None
    if true_division or not isinstance(result, Tensor) or result.dtype not in INTEGRAL:
        return
    for piece, ends, nowhere in _parts(c, op, divisor, result):
        one_sign = any_of(
            (all_of(ge(end, 1) for end in ends[0]), all_of(le(end, -1) for end in ends[1]))
        )
        exact = piece.attained and (not piece.indices or _runs(piece))
        needed = one_sign if piece.indices else all_of(ne(end, 0) for end in ends[0])
        _require(c, any_of((needed, *nowhere)), exact, f"{op} of integers by zero", divisor)


def _runs(piece: Piece) -> bool:
    return len(piece.indices) == 1 and piece.indices[0].dense and step_of(piece) in (1, -1)


def _parts(
    c: Context, op: str, operand: Any, shaped: Tensor
) -> list[tuple[Piece, Corners, tuple[Formula, ...]]]:
    """The pieces of an operand that are known, with their extremes and where there is none of it; of others
    it is told that nothing is known.
    """
    if isinstance(operand, Tensor):
        if operand.elements is None:
            return []
        pieces = pieces_of(of(operand), operand.shape)
    elif isinstance(operand, int | Term):
        pieces = of_number(operand)
    else:
        return []
    empty = () if all(c.at_least(n, 1) for n in shaped.shape) else (eq(product(shaped.shape), 0),)
    reason = f"{op} is given elements that the sizes decide, in a way that is not followed"
    if pieces is None or pieces.slack:
        c.approximate(reason, "accept", negate(any_of(empty)))
        return []
    found = []
    for piece in settled(Pieces(pieces.pieces)).pieces:
        nowhere = (*empty, negate(piece.given))
        ends = None if piece.term is None else corners(piece.term, piece.indices, c.at_least)
        if ends is not None:
            found.append((piece, ends, nowhere))
        else:
            approximate(c, reason, any_of(nowhere))
    return found


def _require(c: Context, needed: Formula, exact: bool, reason: str, operand: Any) -> None:
    if exact and not c.certain(needed):
        known = of(operand) if isinstance(operand, Tensor) else None
        c.require(needed, reason, by_data=bool(getattr(known, "by_data", False)))
    elif not exact:
        approximate(c, f"{reason}: some elements may be such", needed)
