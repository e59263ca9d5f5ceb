"""Elements that are computed of elements, place by place; fractions, and how they are rounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ..dims import Apply, Dim, ceildiv, lone_atom, maximum, minimum, substitute
from ..formula import all_of, any_of, ge
from ..language import (
    UNTRACKED,
    Affine,
    Elements,
    Index,
    Piece,
    Pieces,
    Ratio,
    Span,
    Tensor,
    Truths,
)
from .calls import CASTS, Call, Law, Named
from .dtypes import DIGITS, INTEGRAL, SMALL, limits
from .functions import combined, corners, gathered, is_partition, mapped, number, symbol_of
from .values import (
    constant,
    is_float,
    of,
    pieces_of,
    scaled,
    step_of,
)


def _arithmetic(operation: Callable[[Call, Piece, Piece], tuple[Dim, Dim] | None]) -> Law:
    def law(call: Call) -> Elements | Pieces:
        a, b = call.operand("input"), call.operand("exponent" if call.op == "pow" else "other")
        if a is None or b is None:
            return UNTRACKED
        found = combined(a, b, partial(operation, call))
        return UNTRACKED if found is None else found

    return law


def plus(sign: int, swapped: bool = False) -> Law:
    """`input + sign * alpha * other`; of `rsub`, `other - alpha * input`."""

    def add(call: Call) -> Elements | Pieces:
        alpha = call.named.get("alpha", 1)
        names = ("other", "input") if swapped else ("input", "other")
        a, b = map(call.operand, names)
        if a is None or b is None or not isinstance(alpha, int):
            return UNTRACKED
        b = scaled(b, sign * alpha)
        found = combined(a, b, sum_of_two, _is_small_number)
        if found is None or (any((a.roundings, b.roundings)) and len(_divisors(a, b)) > 1):
            return UNTRACKED
        rounded = [side.roundings > 0 for side in (a, b)]
        beside_small = any(_is_small(side) for side in (a, b))
        loses = all(rounded) or (any(rounded) and not beside_small)
        return replace(found, roundings=found.roundings + any(rounded), slack=found.slack or loses)

    return add


def _is_small(pieces: Pieces) -> bool:
    return all(isinstance(p.term, int) and abs(p.term) <= SMALL for p in pieces.pieces)


def _is_small_number(piece: Piece) -> bool:
    return not piece.indices and isinstance(piece.term, int) and piece.over == 1 and abs(piece.term) <= SMALL


def _is_factor(piece: Piece) -> bool:
    """Whether a product with the number is no smaller."""
    return not piece.indices and isinstance(piece.term, int) and piece.over == 1 and abs(piece.term) >= 1


def _divisors(a: Pieces, b: Pieces) -> set[Dim]:
    return {p.over for p in (*a.pieces, *b.pieces) if p.over != 1}


def sum_of_two(p: Piece, q: Piece) -> tuple[Dim, Dim]:
    """The sum of two fractions."""
    if p.over == q.over:
        return number(p) + number(q), p.over
    return number(p) * q.over + number(q) * p.over, p.over * q.over


def _rounded(found: Pieces) -> Pieces:
    """After a product or a quotient: rounded, unless its fractions are floats."""
    exact = found.roundings == 0 and all(is_float(p) for p in found.pieces if p.term is not None)
    return found if exact else replace(found, roundings=found.roundings + 1)


def times(call: Call) -> Elements | Pieces:
    if (grown := _grown_together(call)) is not None:
        return grown
    a, b = call.operand("input"), call.operand("other")
    if a is None or b is None or a.slack or b.slack:
        return UNTRACKED
    found = combined(a, b, lambda p, q: (number(p) * number(q), p.over * q.over), _is_factor)
    if found is None:
        return UNTRACKED
    negation = any(side in (constant(1), constant(-1)) for side in (a, b))
    rounded = bool(a.roundings or b.roundings)
    return found if negation else replace(_rounded(found), slack=found.slack or rounded)


def _grown_together(call: Call) -> Span | None:
    """Products of counts that the data decide, from 0 on, which grow with the same data."""
    match [of(t) for t in (call.named.get("input"), call.named.get("other")) if isinstance(t, Tensor)]:
        case [Span(0, most, attained, True), Span(0, others, too, True)]:
            return Span(0, most * others, attained and too, by_data=True)
    return None


def _true_quotient(call: Call) -> Elements | Pieces:
    a, b = call.operand("input"), call.operand("other")
    if a is None or b is None or a.slack or b.slack or a.roundings or b.roundings:
        return UNTRACKED

    def quotient(p: Piece, q: Piece) -> tuple[Dim, Dim] | None:
        divisor = number(q)
        if q.indices or not call.at_least(divisor, 1):
            return None
        return number(p) * q.over, p.over * divisor

    found = combined(a, b, quotient)
    return UNTRACKED if found is None else _rounded(found)


def _floor_quotient(call: Call, p: Piece, q: Piece) -> tuple[Dim, Dim] | None:
    """floor(p / q), for a divisor that is positive and the same everywhere."""
    if q.indices or not call.at_least(number(q), 1) or p.over != 1 or q.over != 1:
        return None
    return number(p) // number(q), 1


def _modulus(call: Call, p: Piece, q: Piece) -> tuple[Dim, Dim] | None:
    """`p % q`, of the sign of q, which is positive and the same everywhere."""
    if q.indices or not call.at_least(number(q), 1) or p.over != 1 or q.over != 1:
        return None
    return number(p) % number(q), 1


def remainder(call: Call) -> Elements | Pieces:
    """`0, …, b` modulo n: all numbers up to the least of b and n - 1 occur. Of other numbers the remainders
    are some from 0 to n - 1.
    """
    if is_rounded(call.operand("input")) or call.result.dtype not in INTEGRAL:
        return UNTRACKED
    found = _arithmetic(_modulus)(call)
    return (mapped(found, _within_modulus) or UNTRACKED) if isinstance(found, Pieces) else found


def _within_modulus(piece: Piece) -> Piece | None:
    atom = lone_atom(number(piece))
    if not piece.indices:
        return piece
    if not isinstance(atom, Apply) or atom.op != "%":
        return None
    inner, limit = atom.args
    if runs_from_zero(inner, piece.indices):
        index = replace(piece.indices[0], size=minimum(limit, piece.indices[0].size))
        return replace(piece, term=symbol_of(index), indices=(replace(index, axis=None, ordered=False),))
    index = Index("#0", limit, None, ordered=False, dense=False)
    return replace(piece, term=symbol_of(index), indices=(index,), attained=False)


def runs_from_zero(term: Dim, indices: tuple[Index, ...]) -> bool:
    """Whether the values are 0, 1, … up to the greatest."""
    return len(indices) == 1 and indices[0].dense and term == symbol_of(indices[0])


def is_rounded(pieces: Pieces | None) -> bool:
    return pieces is None or bool(pieces.roundings or pieces.slack)


def _power(call: Call, p: Piece, q: Piece) -> tuple[Dim, Dim] | None:
    exponent = q.term
    if not isinstance(exponent, int) or q.over != 1 or not 0 <= exponent <= 4:
        return None
    return number(p) ** exponent, p.over**exponent


def power(call: Call) -> Elements | Pieces:
    if is_rounded(call.operand("input")) or not isinstance(call.named.get("input"), Tensor):
        return UNTRACKED
    found = _arithmetic(_power)(call)
    return _rounded(found) if isinstance(found, Pieces) else found


def quotient(call: Call) -> Elements | Pieces:
    """A quotient, an integer if it is to be rounded. Of what is not negative, rounding to zero is rounding
    down.
    """
    rounding = call.named.get("rounding_mode")
    if rounding is None:
        return _true_quotient(call)
    if any(is_rounded(call.operand(name)) for name in ("input", "other")):
        return UNTRACKED
    if rounding == "floor" or (rounding == "trunc" and _is_never_negative(call.operand("input"), call)):
        return _arithmetic(_floor_quotient)(call)
    return UNTRACKED


def floor_divide(call: Call) -> Elements | Pieces:
    rounded = any(is_rounded(call.operand(name)) for name in ("input", "other"))
    return UNTRACKED if rounded else _arithmetic(_floor_quotient)(call)


def _is_never_negative(pieces: Pieces | None, call: Call) -> bool:
    if pieces is None:
        return False
    ends = [corners(p.term, p.indices, call.at_least) for p in pieces.pieces if p.term is not None]
    return all(e is not None and all(call.at_least(low, 0) for low in e[0]) for e in ends)


def absolute(call: Call) -> Elements | Pieces:
    """-x where nothing is positive, x where nothing is negative. Of numbers from a to b the greatest is that
    of -a and b, and the least that of a, -b and 0, if they follow each other without a gap.
    """
    pieces = call.pieces
    if pieces is None or is_rounded(pieces):
        return UNTRACKED
    if _is_never_negative(pieces, call):
        return pieces
    if _is_never_negative(scaled(pieces, -1), call):
        return scaled(pieces, -1)

    def one(piece: Piece) -> Piece | None:
        ends = corners(number(piece), piece.indices, call.at_least)
        if ends is None or piece.over != 1:
            return None
        if not piece.indices:
            return replace(piece, term=maximum(number(piece), -number(piece)))
        low, high = minimum(*ends[0]), maximum(*ends[1])
        runs = len(piece.indices) == 1 and piece.indices[0].dense and step_of(piece) in (1, -1)
        least, most = maximum(low, -high, 0), maximum(high, -low)
        index = Index("#0", 2, None, ordered=False, dense=False)
        term = least + symbol_of(index) * (most - least)
        return replace(piece, term=term, indices=(index,), attained=piece.attained and runs)

    return mapped(pieces, one) or UNTRACKED


def clamped_between(call: Call) -> Elements | Pieces:
    """`min(max(x, low), high)`, with bounds that may be tensors."""
    found = call.operand("input")
    for name, law in (("min", maximum), ("max", minimum)):
        if call.named.get(name) is not None:
            found = _extreme(law, found, call.operand(name))
    return found or UNTRACKED


def of_two(law: Callable[..., Dim]) -> Law:
    return lambda call: _extreme(law, call.operand("input"), call.operand("other")) or UNTRACKED


def _extreme(law: Callable[..., Dim], a: Pieces | None, b: Pieces | None) -> Pieces | None:
    """The greater or the lesser of the elements at each place."""
    if a is None or b is None or a.slack or b.slack:
        return None

    def extreme(p: Piece, q: Piece) -> tuple[Dim, Dim]:
        if p.over == q.over:
            return law(number(p), number(q)), p.over
        return law(number(p) * q.over, number(q) * p.over), p.over * q.over

    return combined(a, b, extreme)


def where_chosen(call: Call) -> Elements | Pieces:
    """Elements of either of two operands; each of both, where the data choose."""
    condition = call.named.get("condition")
    sized = [name for name in ("input", "other") if not is_given(call.named.get(name))]
    if len(sized) == 1:
        (name,) = sized
        found = call.operand(name)
        return UNTRACKED if found is None else beside_data(found, attained=False)
    a, b = call.operand("input"), call.operand("other")
    if a is None or b is None or not isinstance(condition, Tensor) or a.slack or b.slack:
        return UNTRACKED
    on_data = condition.elements is None
    same = of(condition)
    if isinstance(same, Affine) and not same.steps:
        return a if same.start else b
    match condition.elements:
        case Truths(_, _, (axis, first, last)) if condition.shape[axis] == call.result.shape[axis]:
            size = call.result.shape[axis]
            taken = _between(a, axis, first, last, size)
            others = _between(b, axis, last, first, size)
            return union([taken, others])
    return union([a, b], attained=on_data, by_data=on_data)


def _between(pieces: Pieces, axis: int, first: Dim | None, last: Dim | None, size: Dim) -> Pieces:
    """The elements from a first place of an axis on, up to before a last, of so many places."""
    start = 0 if first is None else maximum(first, 0)
    count = (size if last is None else minimum(last, size)) - start

    apart = is_partition(pieces)

    def one(piece: Piece) -> Piece:
        there = [i for i in piece.indices if i.axis == axis]
        given = all_of((piece.given, ge(count, 1)))
        loose = any(i.axis is None for i in piece.indices) or any(at == axis for at, _ in piece.fixed)
        if loose or not apart or len(there) > 1 or not all(i.ordered for i in there):
            return replace(piece, given=given, attained=False)
        term = substitute(number(piece), {i.name: start + symbol_of(i) for i in there})
        part = {i: replace(i, size=count, axis=None, ordered=False) for i in there}
        return replace(piece, term=term, given=given, indices=tuple(part.get(i, i) for i in piece.indices))

    return mapped(pieces, one) or pieces


def is_given(value: Any) -> bool:
    """Whether the user gives the elements."""
    return isinstance(value, Tensor) and of(value) is None


def beside_data(pieces: Pieces, *, attained: bool) -> Pieces:
    """The elements, and others that the user gives, which are taken to be valid wherever they are indices."""
    kept = tuple(p if attained else replace(p, attained=False) for p in pieces.pieces)
    return replace(pieces, pieces=kept, by_data=True, and_data=True)


def union(parts: list[Pieces], *, attained: bool = True, by_data: bool = False) -> Elements | Pieces:
    known = [p for part in parts for p in part.pieces if p.term is not None]
    unknown = [p.given for part in parts for p in part.pieces if p.term is None]
    by_data = by_data or any(part.by_data for part in parts)
    found = gathered(
        [p if attained else replace(p, attained=False) for p in known],
        any_of(unknown),
        by_data,
        max(part.roundings for part in parts),
        any(part.slack for part in parts),
    )
    if found is None:
        return UNTRACKED
    return replace(found, and_data=any(part.and_data for part in parts))


def negated(call: Call) -> Elements | Pieces:
    pieces = call.pieces
    return UNTRACKED if pieces is None else scaled(pieces, -1)


def whole(pieces: Pieces | None, law: Callable[[Dim, Dim], Dim]) -> Pieces | None:
    """Fractions rounded to integers by a law of numerator and denominator. A fraction that was rounded once,
    to the nearest float, is on the same side of every integer; one that was rounded more often, perhaps not.
    """
    if pieces is None:
        return None
    fractions = any(p.over != 1 for p in pieces.pieces if p.term is not None)
    found = mapped(
        pieces, lambda p: replace(p, term=law(number(p), p.over), over=1) if p.over != 1 else p, keeping=True
    )
    if found is None:
        return None
    slack = pieces.slack or (fractions and pieces.roundings > 1 and not _is_constant(pieces))
    return replace(found, roundings=0, slack=slack)


def _is_constant(pieces: Pieces) -> bool:
    """One fraction that has been moved by small numbers, of which `require_exact` asks that it is exact."""
    return len(pieces.pieces) == 1 and not pieces.pieces[0].indices and isinstance(pieces.pieces[0].over, int)


def floored(call: Call) -> Elements | Pieces:
    found = whole(call.pieces, lambda n, d: n // d)
    return UNTRACKED if found is None or found.slack else found


def ceiled(call: Call) -> Elements | Pieces:
    found = whole(call.pieces, ceildiv)
    return UNTRACKED if found is None or found.slack else found


def nearest(call: Call) -> Elements | Pieces:
    """Half to even: r = floor(x + 1/2), less one where x + 1/2 is an integer, and odd."""

    def law(n: Dim, d: Dim) -> Dim:
        up, rest = (2 * n + d) // (2 * d), (2 * n + d) % (2 * d)
        return up - (1 - minimum(1, rest)) * (up % 2)

    pieces = call.pieces
    if pieces is None or call.named.get("decimals") or pieces.slack or pieces.roundings > 1:
        return UNTRACKED
    if not any(p.over != 1 and p.indices for p in pieces.pieces):
        return whole(pieces, law) or UNTRACKED

    def ends(piece: Piece) -> Piece | None:
        """Rounding rises with what it rounds, so that the extremes are those of the ends."""
        found = corners(number(piece), piece.indices, call.at_least)
        if found is None or len(found[0]) > 1 or len(found[1]) > 1:
            return None
        low, high = (law(side[0], piece.over) for side in found)
        index = Index("#0", high - low + 1, None, ordered=False, dense=False)
        return replace(piece, term=low + symbol_of(index), over=1, indices=(index,))

    found = mapped(pieces, ends)
    return UNTRACKED if found is None else replace(found, roundings=0)


def cast(call: Call) -> Elements | Pieces:
    """The same numbers in another dtype. A fraction is cut to an integer, upwards or downwards as its sign
    is.
    """
    elements = of(call.input)
    if call.result.dtype == call.input.dtype and not isinstance(elements, Pieces):
        return elements
    pieces = pieces_of(elements, call.input.shape)
    if pieces is None or call.result.dtype not in INTEGRAL:
        return elements if pieces is None else pieces
    if not _has_fractions(pieces):
        return replace(pieces, roundings=0, slack=pieces.slack or pieces.roundings > 0)
    if _is_never_negative(pieces, call):
        return whole(pieces, lambda n, d: n // d) or UNTRACKED
    if _is_never_negative(scaled(replace(pieces, roundings=0), -1), call):
        return whole(pieces, ceildiv) or UNTRACKED
    return UNTRACKED


def _has_fractions(pieces: Pieces) -> bool:
    return any(p.over != 1 for p in pieces.pieces)


def require_exact(c: Any, op: str, named: Named, result: Any) -> None:
    """Says where a single fraction of sizes may be rounded to another integer (`dtypes.limits`)."""
    cast = op in CASTS and isinstance(result, Tensor) and result.dtype in INTEGRAL
    if op not in ("ceil", "floor", "round", "trunc") and not cast:
        return
    match named.get("input"):
        case Tensor(_, dtype, _, Ratio(n, d, r)) if dtype in DIGITS:
            r = max(r, 1)
        case Tensor(_, dtype, _, Affine(n, ())) if dtype in DIGITS:
            d, r = 1, 1
        case _:
            return
    _, most = limits(dtype, r, d) or (0, 0)
    if not c.at_least(most - n, 0) or not c.at_least(most + n, 0):
        beyond = any_of((ge(n, most + 1), ge(-most - 1, n)))
        reason = f"the rounding of {n} / {d} is left aside, which matters beyond {most}"
        c.approximate(reason, where=beyond)
