"""What operators ask of the elements of operands that are no indices: that none is negative, that a
probability is one, that integers are not divided by zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..dims import Term
from ..formula import Formula, all_of, any_of, eq, ge, le, ne, negate
from ..language import Affine, Context, Piece, Pieces, Proportion, Quotient, Tensor, product
from .calls import of_number
from .dtypes import INTEGRAL, WHOLE
from .functions import Corners, corners, settled
from .values import of, pieces_of, step_of

Named = Mapping[str, Any]
NUMBER: Final = Tensor((), None)
"""Any number has the shape of."""

RANGES: Final[Mapping[str, tuple[tuple[str, int | None, int | None], ...]]] = {
    "bincount": (("input", 0, None),),
    "one_hot": (("input", 0, None),),
    "repeat_interleave": (("repeats", 0, None),),
    "multinomial": (("input", 0, None),),
    "poisson": (("input", 0, None),),
    "bernoulli": (("p", 0, 1), ("input", 0, 1)),
    "bernoulli_": (("p", 0, 1),),
    **dict.fromkeys("normal normal_".split(), (("std", 0, None),)),
    "binary_cross_entropy": (("input", 0, 1), ("target", 0, 1)),
    **dict.fromkeys("quantile nanquantile".split(), (("q", 0, 1),)),
    "multilabel_margin_loss": (("target", -1, None),),
}
"""Operator -> operands, with the least that elements of each may be, and the greatest. Where one is given that is
a number, those after it are not looked at.
"""
ABOVE: Final[Mapping[str, tuple[str, str | int]]] = {
    "uniform_": ("to", "from"),
    "histc": ("max", "min"),
    "random_": ("to", "from"),
}
"""Operator -> a number that is no less than another."""
POSITIVE: Final[Mapping[str, str]] = {"exponential_": "lambd", "cauchy_": "sigma", "log_normal_": "std"}
"""Operator -> a number that is greater than 0."""
CHECKED: Final[Mapping[str, tuple[str, ...]]] = {
    "multinomial": ("input",),
    "searchsorted": ("sorter",),
    **dict.fromkeys("ctc_loss _ctc_loss".split(), ("input_lengths", "target_lengths")),
    **dict.fromkeys("embedding_bag _embedding_bag".split(), ("offsets",)),
    "segment_reduce": ("lengths", "offsets"),
    "_pack_padded_sequence": ("lengths",),
    "masked_scatter": ("mask",),
    "multilabel_margin_loss": ("target",),
    **dict.fromkeys(
        "inverse linalg_inv linalg_inv_ex cholesky linalg_cholesky cholesky_inverse linalg_lu_factor linalg_ldl_factor "
        "linalg_matrix_power matrix_power linalg_tensorinv linalg_tensorsolve linalg_solve linalg_eigh linalg_eig "
        "linalg_eigvals linalg_eigvalsh linalg_svd linalg_svdvals linalg_cond linalg_lstsq lu svd".split(),
        ("input", "A"),
    ),
}
"""Operator -> operands of which it refuses some, in a way that is not followed."""
DIVISIONS: Final = frozenset("floor_divide remainder fmod".split())


def require_operands(c: Context, op: str, named: Named, result: Any) -> None:
    """Elements that sizes decide must be such as the operator takes."""
    for name, low, high in RANGES.get(op, ()):
        operand = named.get(name)
        if operand is not None:
            _require_between(c, op, operand, low, high)
            if not isinstance(operand, Tensor):
                break
    if op == "repeat_interleave" and named.get("repeats") is None:
        _require_between(c, op, named.get("input"), 0, None)
    if op in ABOVE:
        more, less = (named.get(name, 0) for name in ABOVE[op])
        if all(isinstance(side, int | Term) for side in (more, less)):
            c.require(ge(more, less), f"{op} from {less} to {more}")
    number = named.get(POSITIVE.get(op, ""))
    if isinstance(number, int | Term):
        c.require(ge(number, 1), f"{op} takes numbers greater than 0")
    if op == "pow" and isinstance(named.get("exponent"), int | Term) and isinstance(result, Tensor):
        if result.dtype in WHOLE:
            c.require(ge(named["exponent"], 0), "integers to a negative power")
    for name in CHECKED.get(op, ()):
        _doubt(c, op, named.get(name))
    divides = op in DIVISIONS or (op == "div" and named.get("rounding_mode") is not None)
    if divides and isinstance(result, Tensor) and result.dtype in INTEGRAL:
        _require_divisor(c, op, named.get("other"), result)


def _doubt(c: Context, op: str, operand: Any) -> None:
    """Elements that sizes decide may be such as the operator refuses, unless they are plainly not."""
    if not isinstance(operand, Tensor) or operand.elements is None or _is_fine(op, operand):
        return
    c.approximate(f"{op} is given elements that the sizes decide, some of which it refuses", "accept")


def _is_fine(op: str, operand: Tensor) -> bool:
    """Numbers that are all positive are probabilities; a diagonal of ones has an inverse."""
    known = operand.elements
    if op == "multinomial":
        if isinstance(known, Affine):
            return not known.steps and isinstance(known.start, int) and known.start > 0
        return bool(getattr(known, "by_data", False))
    return False


def _require_between(c: Context, op: str, operand: Any, low: int | None, high: int | None) -> None:
    for piece, ends, nowhere in _parts(c, op, operand, operand):
        inside = all_of(
            (
                *(ge(end, low * piece.over) for end in ends[0] if low is not None),
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
        exact = piece.attained and (not piece.indices or _runs(piece))
        needed = one_sign if piece.indices else all_of(ne(end, 0) for end in ends[0])
        _require(c, any_of((needed, *nowhere)), exact, f"{op} of integers by zero", divisor)


def _runs(piece: Piece) -> bool:
    return len(piece.indices) == 1 and piece.indices[0].dense and step_of(piece) in (1, -1)


def _parts(
    c: Context, op: str, operand: Any, shaped: Any
) -> list[tuple[Piece, Corners, tuple[Formula, ...]]]:
    """The pieces of an operand that are known, with their extremes and where there is none of it; of others
    it is told that nothing is known.
    """
    if isinstance(operand, Tensor):
        if operand.elements is None:
            return []
        pieces = pieces_of(of(operand), operand.shape)
    elif isinstance(operand, int | float | Term | Quotient | Proportion):
        pieces = of_number(operand)
    else:
        return []
    if not isinstance(shaped, Tensor):
        shaped = NUMBER
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
