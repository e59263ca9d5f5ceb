"""Masks whose elements sizes decide: whether some are true, and whether all are.

An example is a mask that the program makes from constants: `torch.ones(b, t).bool()` is true everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import Any, Final

from msgspec import structs

from ...ir.language import Affine, Comparison, Elements, Piece, Ratio, Tensor, Truths, product
from ...terms.dims import Dim, Term, ceildiv, maximum, minimum
from ...terms.formula import Formula, all_of, any_of, eq, ge, gt, le, lt, ne, negate
from ..elements.cycles import is_run
from ..elements.dtypes import INTEGRAL
from ..elements.functions import corners, settled
from ..elements.values import extremes, pieces_of, surely
from .calls import NamedCall
from .images import placed
from .transfers import LAWS, followed

MADE = frozenset("ones ones_like new_ones zeros zeros_like new_zeros full full_like new_full".split())
KEPT = frozenset(
    "to _to_copy type bool clone contiguous detach alias expand expand_as unsqueeze squeeze view reshape "
    "flatten transpose permute getitem slice select narrow repeat".split()
)
IN_PLACE = frozenset("to _to_copy type bool clone contiguous detach alias".split())
PARTS = frozenset("getitem slice select narrow".split())
COMPARISONS: Mapping[str, Callable[[Dim, Dim], Formula]] = {
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "le": le,
    "gt": gt,
    "ge": ge,
}
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
NEGATIONS = frozenset({"logical_not", "bitwise_not"})
CONNECTIVES: Mapping[str, Callable[[Iterable[Formula]], Formula]] = {
    **dict.fromkeys(("logical_and", "bitwise_and"), all_of),
    **dict.fromkeys(("logical_or", "bitwise_or"), any_of),
}


def one_value(tensor: Any) -> int | None:
    """Returns the common value of all elements, where it is a number; a number is its own value."""
    found = one_dim(tensor)
    return int(found) if isinstance(found, int) else None


def one_dim(tensor: Any) -> Dim | None:
    """Returns the common value of all elements, where sizes decide it; a size is its own value.

    In floats only numbers are certain.
    """
    match tensor:
        case int() | Term():
            return tensor
        case float() if tensor.is_integer():
            return int(tensor)
        case Tensor(_, dtype, _, Affine(value, ())) if dtype == "int64" or isinstance(value, int):
            return value
    return None


def truths_of(tensor: Any) -> Truths | None:
    """Returns whether some and whether all elements are true, or other than 0, if sizes decide that; else
    None.
    """
    if isinstance(tensor, Tensor) and isinstance(tensor.elements, Truths):
        return tensor.elements
    value = one_dim(tensor)
    if value is None and isinstance(tensor, Tensor) and tensor.dtype != "bool":
        return _compared("ne", tensor, 0)
    return None if value is None else Truths(ne(value, 0), ne(value, 0))


def number_of_true(mask: Tensor) -> Dim | None:
    """Returns how many elements are true, where they are those of a range of indices along an axis."""
    if not isinstance(mask.elements, Truths) or mask.elements.within is None:
        return None
    axis, first, last = mask.elements.within
    size = mask.shape[axis]
    ends = 0 if first is None else first, size if last is None else last
    low, high = (minimum(maximum(end, 0), size) for end in ends)
    rest = product([n for at, n in enumerate(mask.shape) if at != axis % mask.rank])
    return maximum(high - low, 0) * rest


def whether_some(tensor: Tensor) -> Formula | None:
    """Returns the condition that some element is true; None where it is not known."""
    found = truths_of(tensor)
    return None if found is None else found.some


def truths(call: NamedCall) -> Truths | None:
    """Returns the facts about the elements of a mask that sizes decide; None where data decide them, or it is
    not known how.
    """
    op, named, result = call.op, call.named, call.result
    tensors = [*given_tensors(named.values())]
    if op in MADE:
        return truths_of(structs.replace(result, elements=followed(call, LAWS[op](call), result)))
    if op in KEPT and len(tensors) == 1:
        found = truths_of(tensors[0])
        if found is None or (op in PARTS and found.some != found.every):
            return None
        return found if op in IN_PLACE else replace(found, within=None, compares=None)
    if op in COMPARISONS:
        return _compared(op, named["input"], named["other"])
    if op in NEGATIONS:
        found = truths_of(named["input"])
        if found is None:
            return None
        opposite = found.compares and replace(found.compares, below=not found.compares.below)
        return Truths(negate(found.every), negate(found.some), _complement(found.within), opposite)
    if op in CONNECTIVES:
        return _joined(CONNECTIVES[op], *(truths_of(named[name]) for name in ("input", "other")))
    if op == "all" and result.rank:
        found = truths_of(named["input"])
        return Truths(True, True) if found is not None and found.every is True else None
    if op in ("all", "any", "_is_all_true", "_is_any_true") and len(tensors) == 1 and result.rank == 0:
        found, count = truths_of(tensors[0]), product(tensors[0].shape)
        if found is not None:
            every, some = any_of((found.every, eq(count, 0))), all_of((found.some, ge(count, 1)))
            return Truths(every, every) if op in ("all", "_is_all_true") else Truths(some, some)
    return None


def _compared(op: str, left: Any, right: Any) -> Truths | None:
    """Returns the truths of an inequality with a constant operand, which the extremes of the other side
    decide.
    """
    a, b = one_dim(left), one_dim(right)
    if a is not None and b is not None:
        return Truths(COMPARISONS[op](a, b), COMPARISONS[op](a, b))
    if (outcome := _of_fractions(op, left, right)) is not None:
        return Truths(outcome, outcome)
    if b is None and a is not None:
        op, left, b = MIRRORED[op], right, a
    if op in ("eq", "ne"):
        return None if b is None or not isinstance(left, Tensor) else _equal(op, left, b)
    span = extremes(left) if isinstance(left, Tensor) and left.dtype in INTEGRAL else None
    if b is None or span is None:
        return None
    decided = span.attained and not span.by_data
    within = _crossing(op, left.elements, b)
    low, high = COMPARISONS[op](span.low, b), COMPARISONS[op](span.high, b)
    some, every = (low, high) if op in ("lt", "le") else (high, low)
    found = Truths(some, every, within, _comparison(op, left, b))
    certain = found.every is True or found.some is False
    return found if decided or certain else None


def _of_fractions(op: str, left: Any, right: Any) -> bool | None:
    """Returns the comparison of two numbers; each may be given as a tensor whose elements are all that
    number. Returns None where it is not known, as for numbers so close to each other that a conversion may
    make them equal.
    """
    a, b = _fraction(left), _fraction(right)
    if a is None or b is None or max(abs(a), abs(b)) < Fraction(1, FAR):
        return None
    if abs(a - b) <= max(abs(a), abs(b)) / CLOSE:
        return None
    outcome = COMPARISONS[op](0, 1) if a < b else COMPARISONS[op](1, 0)
    return bool(outcome)


CLOSE: Final = 8
"""No float is off by this part of a number that it stands for, not even one of 16 bits."""
FAR: Final = 1 << 14
"""Numbers up to this, and the inverses of such, are neither infinite nor 0 in floats of 16 bits."""


def _fraction(value: Any) -> Fraction | None:
    """Returns a number as a fraction, or the number that all elements of a tensor are; None of one that has
    been rounded, or is very large or small.
    """
    match value:
        case int() | float() if isfinite(value):
            return Fraction(value)
        case Tensor(_, _, _, Affine(int() as number, ())):
            found = Fraction(number)
        case Tensor(_, _, _, Ratio(int() as over, under, 0)):
            found = Fraction(over, under)
        case _:
            return None
    return found if found == 0 or Fraction(1, FAR) <= abs(found) <= FAR else None


def _comparison(op: str, left: Tensor, number: Dim) -> Comparison | None:
    """Returns the comparison of a number at each index: `x <= b` is `x < b + 1`, and `x > b` is `x >= b + 1`.
    """
    piece = placed(pieces_of(left.elements, left.shape))
    if piece is None or piece.over != 1 or piece.doubt is not False or not isinstance(number, int):
        return None
    return Comparison(piece, number + (op in ("le", "gt")), op in ("lt", "le"))


def _equal(op: str, left: Tensor, number: Dim) -> Truths | None:
    """Returns the truths of `==`: some elements are equal if some of a piece are, all if all of each are."""
    pieces = pieces_of(left.elements, left.shape) if left.dtype in INTEGRAL else None
    if pieces is None or pieces.by_data or pieces.and_data or pieces.slack or pieces.roundings:
        return None
    some, every = [], []
    apart = [_unlike_rounded(piece, number) for piece in pieces.pieces]
    for piece in settled(replace(pieces, pieces=tuple(apart))).pieces:
        found = _equal_of(piece, number)
        if found is None:
            return None
        some.append(all_of((piece.given, found[0])))
        every.append(any_of((negate(piece.given), found[1])))
    if op == "eq":
        return Truths(any_of(some), all_of(every))
    return Truths(negate(all_of(every)), negate(any_of(some)))


def _unlike_rounded(piece: Piece, number: Dim) -> Piece:
    """Returns the piece without doubt, if numbers that have been rounded differ from the number before and
    after that.
    """
    unlike = isinstance(number, int) and abs(number) < piece.least
    return replace(piece, doubt=False, least=0) if unlike else piece


def _equal_of(piece: Piece, number: Dim) -> tuple[Formula, Formula] | None:
    """Returns whether some values of a piece are equal to a number, and whether all are; else None.

    Of integers that follow each other some are where it lies between the ends, of others where it is an end.
    """
    ends = None if piece.term is None else corners(piece.term, piece.indices, surely)
    if ends is None or piece.over != 1 or not piece.attained:
        return None
    low, high = minimum(*ends[0]), maximum(*ends[1])
    every = all_of((eq(low, number), eq(high, number)))
    if is_run(piece) or not piece.indices:
        return all_of((le(low, number), ge(high, number))), every
    return (True, every) if number in (low, high) else None


def _crossing(op: str, elements: Elements, bound: Dim) -> tuple[int, Dim | None, Dim | None] | None:
    """Returns the indices between which `start + step*i` satisfies a comparison with a bound: i < (bound -
    start)/step.
    """
    if not isinstance(elements, Affine) or len(elements.steps) != 1:
        return None
    ((axis, step),) = elements.steps
    beyond = bound + 1 if op in ("le", "gt") else bound
    if step < 0:
        # start - s*i < beyond where s*i > start - beyond
        first = (elements.start - beyond) // -step + 1
        return (axis, first, None) if op in ("lt", "le") else (axis, None, first)
    last = ceildiv(beyond - elements.start, step)
    return (axis, None, last) if op in ("lt", "le") else (axis, last, None)


def _complement(
    within: tuple[int, Dim | None, Dim | None] | None,
) -> tuple[int, Dim | None, Dim | None] | None:
    """Returns the complement of a range of indices that is open at one end; None for other ranges."""
    if within is None or (within[1] is not None and within[2] is not None):
        return None
    axis, first, last = within
    return axis, last, first


def _joined(
    connective: Callable[[Iterable[Formula]], Formula], first: Truths | None, second: Truths | None
) -> Truths | None:
    """Returns the truths of two masks combined, where one of them has the same element everywhere; else None.
    """
    if first is None or second is None or (first.some != first.every and second.some != second.every):
        return None
    return Truths(connective((first.some, second.some)), connective((first.every, second.every)))


def given_tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yields the tensors among the arguments of a call, those in lists included."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple):
            yield from given_tensors(value)
