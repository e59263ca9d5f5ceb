"""What operators ask of the elements of operands that are no indices: that none is negative, that a
probability is one, that integers are not divided by zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..dims import Term
from ..formula import Formula, all_of, any_of, eq, ge, le, ne, negate
from ..language import Context, Piece, Tensor, product
from .calls import of_number
from .cycles import is_run
from .dtypes import INTEGRAL
from .functions import Corners, corners, settled
from .values import of, pieces_of

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
DIVISIONS: Final = frozenset("floor_divide remainder fmod".split())


def require_operands(c: Context, op: str, named: Named, result: Any) -> None:
    """Elements that sizes decide must be such as the operator takes."""
    if op in RANGES:
        name, low, high = RANGES[op]
        if isinstance(operand := named.get(name), Tensor) and not (op == "bernoulli" and "p" in named):
            _require_between(c, op, operand, low, high)
    divides = op in DIVISIONS or (op == "div" and named.get("rounding_mode") is not None)
    if divides and isinstance(result, Tensor) and result.dtype in INTEGRAL:
        _require_divisor(c, op, named.get("other"), result)


def _require_between(c: Context, op: str, operand: Tensor, low: int, high: int | None) -> None:
    for piece, ends, nowhere in _parts(c, op, operand, operand):
        inside = all_of(
            (
                *(ge(end, low * piece.over) for end in ends[0]),
                *(le(end, high * piece.over) for end in ends[1] if high is not None),
            )
        )
        limits = f"{low} or more" if high is None else f"from {low} to {high}"
        _require(c, any_of((inside, *nowhere)), piece.attained, f"{op} takes elements of {limits}", operand)


def _require_divisor(c: Context, op: str, divisor: Any, result: Tensor) -> None:
    """No divisor is 0. Numbers that follow each other without a gap are 0 nowhere just where all are
    positive, or all are negative.
    """
    for piece, ends, nowhere in _parts(c, op, divisor, result):
        one_sign = any_of(
            (all_of(ge(end, 1) for end in ends[0]), all_of(le(end, -1) for end in ends[1]))
        )
        exact = piece.attained if not piece.indices else is_run(piece)
        needed = one_sign if piece.indices else all_of(ne(end, 0) for end in ends[0])
        _require(c, any_of((needed, *nowhere)), exact, f"{op} of integers by zero", divisor)


def _parts(
    c: Context, op: str, operand: Any, shaped: Tensor
) -> list[tuple[Piece, Corners, tuple[Formula, ...]]]:
    """The pieces of an operand that are known, with their extremes and where there is none of it; of others
    it is told that nothing is known. What floats have been rounded to is great, of the sign that it had.
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
    known = pieces if all(p.doubt is False or p.least > 1 for p in pieces.pieces) else settled(pieces)
    for piece in known.pieces:
        nowhere = (*empty, negate(piece.given))
        ends = None if piece.term is None else corners(piece.term, piece.indices, c.at_least)
        if ends is not None:
            found.append((piece, ends, nowhere))
        elif not _is_certain(c, any_of(nowhere)):
            c.approximate(reason, "accept", negate(any_of(nowhere)))
    return found


def _require(c: Context, needed: Formula, exact: bool, reason: str, operand: Any) -> None:
    if _is_certain(c, needed):
        return
    if exact:
        known = of(operand) if isinstance(operand, Tensor) else None
        c.require(needed, reason, by_data=bool(getattr(known, "by_data", False)))
    else:
        c.approximate(f"{reason}: some elements may be such", "accept", negate(needed))


def _is_certain(c: Context, formula: Formula) -> bool:
    return formula is True or c.certain(formula)
