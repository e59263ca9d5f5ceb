"""What becomes of the elements of tensors: a law for each operator.

`torch.arange(t)` as positions into an embedding of 1024 rows asks that t <= 1024: a condition on sizes that
no shape shows. So tensors whose elements the sizes decide carry what is known of them (`language.Elements`),
and `LAWS` says for an operator what it makes of that. Of what an operator without a law makes of such elements
nothing is known. Elements that come from the user's data carry nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from ..dims import Apply, Dim, Term, ceildiv, lone, lone_atom, maximum, minimum, substitute
from ..dims import Symbol as Name
from ..formula import all_of, any_of, ge
from ..language import (
    UNTRACKED,
    Affine,
    Elements,
    Index,
    Piece,
    Pieces,
    Proportion,
    Quotient,
    Ratio,
    Slice,
    Span,
    Tensor,
    Truths,
    product,
)
from .dtypes import DIGITS, INTEGRAL, SMALL, WHOLE, limits
from .functions import AtLeast, along, combined, corners, gathered, is_partition, mapped, number, without
from .shaping import indexed, moved, regrouped, shuffled, stretched
from .values import (
    ANY_CHOICE,
    between,
    constant,
    extremes,
    extremes_of,
    fitted,
    is_float,
    of,
    pieces_of,
    scaled,
    step_of,
    stored,
)

Named: TypeAlias = Mapping[str, Any]
@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator, by the names of its arguments, with its result before anything is known of the
    elements of that.
    """

    op: str
    named: Named
    result: Any
    at_least: AtLeast
    is_free: Callable[[Tensor], bool] = lambda tensor: False
    """Whether the user gives the elements of a tensor, each for itself: any occur."""

    @property
    def input(self) -> Tensor:
        found = self.named.get("input")
        if isinstance(found, Tensor):
            return found
        return next(value for value in self.named.values() if isinstance(value, Tensor))

    @property
    def pieces(self) -> Pieces | None:
        """The elements of the input."""
        return pieces_of(of(self.input), self.input.shape)

    def operand(self, name: str) -> Pieces | None:
        """An operand of arithmetic, broadcast to the shape of the result."""
        value = self.named.get(name)
        if isinstance(value, Tensor):
            pieces = pieces_of(of(value), value.shape)
            return None if pieces is None else stretched(pieces, value.shape, self.result.shape)
        return of_number(value)


Law: TypeAlias = Callable[[Call], "Elements | Pieces"]
"""What is known of the elements of a result; pieces are not yet held against its dtype."""


def one_value(tensor: Tensor) -> int | None:
    """What all elements are, where that is a number."""
    match tensor.elements:
        case Affine(int() as value, ()):
            return value
    return None


def of_number(value: Any) -> Pieces | None:
    """A number as an operand. Of floats those are known that are fractions with a small denominator."""
    match value:
        case bool():
            return constant(int(value))
        case int() | Term():
            return constant(value)
        case float() if value == value and abs(value) < 1 << 53:
            over, under = value.as_integer_ratio()
            return constant(over, under) if under <= SMALL else None
        case Quotient("float", over, under):
            return constant(over, under, roundings=1)
        case Proportion("float", over, under):
            return constant(over, under, roundings=2)
    return None


# --- makers ----------------------------------------------------------------------------------------------


def _arange(call: Call) -> Elements | Pieces:
    start, end, step = call.named.get("start", 0), call.named.get("end"), call.named.get("step", 1)
    if end is None:
        start, end = 0, start
    if not isinstance(start, int | Term) or not isinstance(step, int | Term):
        return UNTRACKED
    (size,) = call.result.shape
    index = along(-1, size)
    return Pieces((Piece(start + step * _symbol(index), 1, (index,)),))


def _symbol(index: Index) -> Term:
    return lone(Name(index.name))


def _filled(name: str) -> Law:
    def filled(call: Call) -> Elements | Pieces:
        value = call.named.get(name)
        if isinstance(value, Tensor):
            return of(value)
        return of_number(value) or UNTRACKED

    return filled


def _given(call: Call) -> Elements | Pieces:
    """`torch.tensor(data)`: every number, at its place."""
    value = call.named["data"] if "data" in call.named else call.named.get("s")
    if isinstance(value, Tensor):
        return of(value)
    numbers = [*_flat(value, ())]
    if len(numbers) > 64:
        return UNTRACKED
    pieces: list[Piece] = []
    for place, each in numbers:
        found = pieces_of(of(each), ()) if isinstance(each, Tensor) else of_number(each)
        if found is None or found.roundings or found.by_data or len(found.pieces) > 1:
            return UNTRACKED
        fixed = tuple((axis - len(place), at) for axis, at in enumerate(place))
        pieces.append(replace(found.pieces[0], fixed=fixed))
    if len(pieces) > 12:  # few tables are taken apart again
        if all(isinstance(p.term, int) and p.over == 1 for p in pieces):
            values = [int(p.term) for p in pieces if isinstance(p.term, int)]
            return Span(min(values), max(values), attained=True)
        return UNTRACKED
    return Pieces(tuple(pieces)) if pieces else UNTRACKED


def _flat(value: Any, place: tuple[int, ...]) -> Iterable[tuple[tuple[int, ...], Any]]:
    if isinstance(value, tuple):
        for at, part in enumerate(value):
            yield from _flat(part, (*place, at))
    else:
        yield place, value


def _linspace(call: Call) -> Elements | Pieces:
    """From the start to the end, both of which occur where there are two numbers or more; of one number there
    is the start.
    """
    start, end, (count,) = call.named.get("start"), call.named.get("end"), call.result.shape
    if call.op == "logspace":
        base = call.named.get("base", 10.0)
        powers = [_power_of(base, side) for side in (start, end)]
        if any(power is None for power in powers):
            return UNTRACKED
        start, end = powers
    match start, end:
        case int() | Term() | float(), int() | Term() | float():
            ends = [side if isinstance(side, int | Term) else _integer(side) for side in (start, end)]
        case _:
            return UNTRACKED
    if ends[0] is None or ends[1] is None:
        return UNTRACKED
    low, high = ends
    index = Index("#0", 2, None, ordered=False, dense=False)
    several = Piece(low + _symbol(index) * (high - low), 1, (index,), ge(count, 2))
    one = Piece(low, given=all_of((ge(count, 1), ge(1, count))))
    return Pieces(tuple(p for p in (one, several) if p.given is not False))


def _integer(value: float) -> int | None:
    return int(value) if value == int(value) else None


def _power_of(base: Any, exponent: Any) -> int | None:
    """A power that floats have exactly."""
    whole = isinstance(exponent, int) and 0 <= exponent <= 10 and base == int(base)
    return int(base) ** exponent if whole else None


def _eye(call: Call) -> Elements | Pieces:
    """Ones on the diagonal, and zeros beside it."""
    rows, columns = call.result.shape
    zero = Piece(0, given=ge(maximum(rows, columns), 2))
    return Pieces((zero, Piece(1)))


def _triangle(call: Call) -> Elements | Pieces:
    """`[2, places]`: rows, and below them columns, of the places of an n by m matrix below a diagonal.

    On or below diagonal k, the first row with a place is max(-k, 0) and the last is n - 1, the first column
    is 0 and the last min(m - 1, n - 1 + k); on or above it rows and columns change parts, with -k.
    """
    rows, columns = call.named["row"], call.named["col"]
    offset = call.named.get("offset", 0)
    if call.op == "triu_indices":
        columns, rows, offset = rows, columns, -offset
    far = (maximum(-offset, 0), rows - 1), (0, minimum(columns - 1, rows - 1 + offset))
    if call.op == "triu_indices":
        far = far[1], far[0]
    pieces = []
    for place, (low, high) in enumerate(far):
        index = Index("#0", high - low + 1, None, ordered=False, dense=True)
        pieces.append(Piece(low + _symbol(index), 1, (index,), fixed=((-2, place),)))
    return Pieces(tuple(pieces))


def _random(call: Call) -> Elements | Pieces:
    """`randint`: any number from low to high - 1, each for itself."""
    bounds = [v for v in call.named.get("bounds", ()) if not isinstance(v, tuple)]
    low, high = call.named.get("low", 0), call.named.get("high")
    if high is None and bounds:
        high = bounds.pop()
    if bounds:
        low = bounds.pop()
    if not isinstance(low, int | Term) or not isinstance(high, int | Term):
        return ANY_CHOICE
    return between(low, high - 1, by_data=True)


def _up_to(size: Callable[[Call], Dim], *, all_occur: bool = False) -> Law:
    """Indices of the elements along an axis: all of them, or some that the data choose. Any of them for some
    data, if the user gives these.
    """
    return lambda call: chosen(call, size(call), all_occur)


def chosen(call: Call, size: Dim, all_occur: bool) -> Elements:
    occur = all_occur or call.is_free(call.input) or one_value(call.input) is not None
    return between(0, size - 1, attained=occur, by_data=not all_occur)


def _along_dim(call: Call) -> Dim:
    """The size of the dim that the call names, of all elements where it names none."""
    dim, shape = call.named.get("dim"), call.input.shape
    if dim is None:
        return product(shape)
    return shape[dim] if shape else 1


def _sorted_size(call: Call) -> Dim:
    dim, shape = call.named.get("dim"), call.input.shape
    return shape[-1 if dim is None else dim] if shape else 1


# --- arithmetic ------------------------------------------------------------------------------------------


def _arithmetic(operation: Callable[[Call, Piece, Piece], tuple[Dim, Dim] | None]) -> Law:
    def law(call: Call) -> Elements | Pieces:
        a, b = call.operand("input"), call.operand("exponent" if call.op == "pow" else "other")
        if a is None or b is None:
            return UNTRACKED
        found = combined(a, b, partial(operation, call))
        return UNTRACKED if found is None else found

    return law


def _add(sign: int, swapped: bool = False) -> Law:
    """`input + sign * alpha * other`; of `rsub`, `other - alpha * input`."""

    def add(call: Call) -> Elements | Pieces:
        alpha = call.named.get("alpha", 1)
        names = ("other", "input") if swapped else ("input", "other")
        a, b = map(call.operand, names)
        if a is None or b is None or not isinstance(alpha, int):
            return UNTRACKED
        b = scaled(b, sign * alpha)
        found = combined(a, b, _total)
        if found is None or (any((a.roundings, b.roundings)) and len(_divisors(a, b)) > 1):
            return UNTRACKED
        rounded = [side.roundings > 0 for side in (a, b)]
        beside_small = any(_is_small(side) for side in (a, b))
        loses = all(rounded) or (any(rounded) and not beside_small)
        return replace(found, roundings=found.roundings + any(rounded), slack=found.slack or loses)

    return add


def _is_small(pieces: Pieces) -> bool:
    return all(isinstance(p.term, int) and abs(p.term) <= SMALL for p in pieces.pieces)


def _divisors(a: Pieces, b: Pieces) -> set[Dim]:
    return {p.over for p in (*a.pieces, *b.pieces) if p.over != 1}


def _total(p: Piece, q: Piece) -> tuple[Dim, Dim]:
    """The sum of two fractions."""
    if p.over == q.over:
        return number(p) + number(q), p.over
    return number(p) * q.over + number(q) * p.over, p.over * q.over


def _rounded(found: Pieces) -> Pieces:
    """After a product or a quotient: rounded, unless its fractions are floats."""
    exact = found.roundings == 0 and all(is_float(p) for p in found.pieces if p.term is not None)
    return found if exact else replace(found, roundings=found.roundings + 1)


def _mul(call: Call) -> Elements | Pieces:
    if (grown := _grown_together(call)) is not None:
        return grown
    a, b = call.operand("input"), call.operand("other")
    if a is None or b is None or a.slack or b.slack:
        return UNTRACKED
    found = combined(a, b, lambda p, q: (number(p) * number(q), p.over * q.over))
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


def _remainder(call: Call) -> Elements | Pieces:
    """`a, …, b` modulo n: of numbers in a row all up to the least of b and n - 1 occur where a is 0; of others
    some from 0 to n - 1.
    """
    if _is_rounded(call.operand("input")) or call.result.dtype not in INTEGRAL:
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
        return replace(piece, term=_symbol(index), indices=(replace(index, axis=None, ordered=False),))
    index = Index("#0", limit, None, ordered=False, dense=False)
    return replace(piece, term=_symbol(index), indices=(index,), attained=False)


def runs_from_zero(term: Dim, indices: tuple[Index, ...]) -> bool:
    """Whether the values are 0, 1, … up to the greatest."""
    return len(indices) == 1 and indices[0].dense and term == _symbol(indices[0])


def _is_rounded(pieces: Pieces | None) -> bool:
    return pieces is None or bool(pieces.roundings or pieces.slack)


def _power(call: Call, p: Piece, q: Piece) -> tuple[Dim, Dim] | None:
    exponent = q.term
    if not isinstance(exponent, int) or q.over != 1 or not 0 <= exponent <= 4:
        return None
    return number(p) ** exponent, p.over**exponent


def _pow(call: Call) -> Elements | Pieces:
    if _is_rounded(call.operand("input")) or not isinstance(call.named.get("input"), Tensor):
        return UNTRACKED
    found = _arithmetic(_power)(call)
    return _rounded(found) if isinstance(found, Pieces) else found


def _div(call: Call) -> Elements | Pieces:
    """A quotient, whole if it is to be rounded; of what is not negative, rounding to zero is rounding down."""
    rounding = call.named.get("rounding_mode")
    if rounding is None:
        return _true_quotient(call)
    if any(_is_rounded(call.operand(name)) for name in ("input", "other")):
        return UNTRACKED
    if rounding == "floor" or (rounding == "trunc" and _is_never_negative(call.operand("input"), call)):
        return _arithmetic(_floor_quotient)(call)
    return UNTRACKED


def _floor_divide(call: Call) -> Elements | Pieces:
    rounded = any(_is_rounded(call.operand(name)) for name in ("input", "other"))
    return UNTRACKED if rounded else _arithmetic(_floor_quotient)(call)


def _is_never_negative(pieces: Pieces | None, call: Call) -> bool:
    if pieces is None:
        return False
    ends = [corners(p.term, p.indices, call.at_least) for p in pieces.pieces if p.term is not None]
    return all(e is not None and all(call.at_least(low, 0) for low in e[0]) for e in ends)


def _abs(call: Call) -> Elements | Pieces:
    """-x where nothing is positive, x where nothing is negative. Of numbers from a to b the greatest is that
    of -a and b, and the least that of a, -b and 0, if they follow each other without a gap.
    """
    pieces = call.pieces
    if pieces is None or _is_rounded(pieces):
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
        term = least + _symbol(index) * (most - least)
        return replace(piece, term=term, indices=(index,), attained=piece.attained and runs)

    return mapped(pieces, one) or UNTRACKED


def _clamp(call: Call) -> Elements | Pieces:
    low, high = call.named.get("min"), call.named.get("max")
    pieces = call.pieces
    bounds = [None if b is None else of_number(b) for b in (low, high)]
    if isinstance(low, Tensor) or isinstance(high, Tensor) or pieces is None:
        return UNTRACKED
    if any(b is not None and n is None for b, n in zip((low, high), bounds, strict=True)):
        return UNTRACKED

    def clamped(piece: Piece) -> Piece | None:
        term, over = number(piece), piece.over
        for bound, law in zip(bounds, (maximum, minimum), strict=True):
            if bound is not None:
                value, under = number(bound.pieces[0]), bound.pieces[0].over
                if bound.roundings or (under != 1 and under != over):
                    return None
                term = law(term, value if under == over and over != 1 else value * over)
        return replace(piece, term=term)

    found = mapped(pieces, clamped)
    return UNTRACKED if found is None or pieces.slack else found


def _of_two(law: Callable[..., Dim]) -> Law:
    def of_two(call: Call) -> Elements | Pieces:
        a, b = call.operand("input"), call.operand("other")
        if a is None or b is None or a.slack or b.slack:
            return UNTRACKED


        def extreme(p: Piece, q: Piece) -> tuple[Dim, Dim]:
            if p.over == q.over:
                return law(number(p), number(q)), p.over
            return law(number(p) * q.over, number(q) * p.over), p.over * q.over

        found = combined(a, b, extreme)
        return UNTRACKED if found is None else found

    return of_two


def _where(call: Call) -> Elements | Pieces:
    """Elements of either of two operands; each of both, where the data choose."""
    condition = call.named.get("condition")
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
            return _union([taken, others])
    return _union([a, b], attained=on_data, by_data=on_data)


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
        term = substitute(number(piece), {i.name: start + _symbol(i) for i in there})
        part = {i: replace(i, size=count, axis=None, ordered=False) for i in there}
        return replace(piece, term=term, given=given, indices=tuple(part.get(i, i) for i in piece.indices))

    return mapped(pieces, one) or pieces


def _union(parts: list[Pieces], *, attained: bool = True, by_data: bool = False) -> Elements | Pieces:
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
    return UNTRACKED if found is None else found


def _neg(call: Call) -> Elements | Pieces:
    pieces = call.pieces
    return UNTRACKED if pieces is None else scaled(pieces, -1)


def _cumsum(call: Call) -> Elements | Pieces:
    """Sums of the first i + 1 elements: of `a + s*k`, that is a*(i + 1) + s*i*(i + 1)/2. Of a mask that the
    data decide, up to as many as there are.
    """
    tensor, dim = call.input, call.named["dim"]
    if not tensor.shape:
        return of(tensor)
    axis = dim % tensor.rank - tensor.rank
    if (span := _of_mask(call)) is not None:
        return replace(span, high=span.high * tensor.shape[axis])
    pieces = call.pieces

    def summed(piece: Piece) -> Piece | None:
        if piece.over != 1 or not piece.attained or any(at == axis for at, _ in piece.fixed):
            return None
        if any(i.axis is None for i in piece.indices):
            return None
        there = [i for i in piece.indices if i.axis == axis]
        index = there[0] if there else along(axis, tensor.shape[axis])
        if len(there) > 1 or not index.ordered or index.size != tensor.shape[axis]:
            return None
        if not there:
            index = replace(index, name="#sum")
        i, term = _symbol(index), number(piece)
        start = substitute(term, {index.name: 0})
        step = substitute(term, {index.name: 1}) - start
        if term - start - step * i != 0:
            return None
        total = start * (i + 1) + step * i * (i + 1) // 2 if step != 0 else start * (i + 1)
        if step != 0:
            total = (2 * start * (i + 1) + step * i * (i + 1)) // 2
        others = tuple(j for j in piece.indices if j is not index)
        return replace(piece, term=total, indices=(*others, index))

    found = None if pieces is None or _is_rounded(pieces) or not is_partition(pieces) else mapped(pieces, summed)
    if found is not None:
        return found
    span = extremes(tensor)
    if span is not None and span.low == 0:
        return Span(0, span.high * tensor.shape[dim], attained=False, by_data=span.by_data)
    return UNTRACKED


def _of_mask(call: Call) -> Span | None:
    """A mask of data, or counts that the data decide, none of them negative."""
    found = of(call.input)
    return found if isinstance(found, Span) and found.low == 0 and found.by_data else None


def _summed(call: Call) -> Elements | Pieces:
    """A sum of n elements that are all the same is n times as much; of a mask of the data it is up to as many
    as there are. Along an axis with pieces of their own it is the sum of these.
    """
    tensor, dim = call.input, call.named.get("dim")
    if tensor.rank == 0:
        return of(tensor)
    axes = range(tensor.rank) if dim in (None, ()) else dim if isinstance(dim, tuple) else (dim,)
    count = product([tensor.shape[axis] for axis in axes])
    if (span := _of_mask(call)) is not None:
        return replace(span, high=span.high * count)
    pieces = call.pieces
    if pieces is None or _is_rounded(pieces) or call.named.get("dtype") not in (None, call.result.dtype):
        return UNTRACKED
    gone = {axis % tensor.rank - tensor.rank for axis in axes}
    found = _summed_apart(pieces, gone, tensor)
    if found is None and is_partition(pieces):
        found = mapped(pieces, partial(_summed_along, gone, tensor))
    if found is not None and all(p.over == 1 for p in found.pieces):
        kept = call.result.rank == tensor.rank
        return found if kept else _closed_up(found, gone, tensor.rank)
    span = extremes(tensor)
    if span is not None and span.low == 0:
        return Span(0, span.high * count, attained=False, by_data=span.by_data)
    return UNTRACKED


def _summed_apart(pieces: Pieces, gone: set[int], tensor: Tensor) -> Pieces | None:
    """The sum along an axis of few places, each with a piece of its own."""
    if len(gone) != 1 or not all(p.term is not None and len(p.fixed) == 1 for p in pieces.pieces):
        return None
    (axis,) = gone
    size = tensor.shape[axis]
    places = sorted(p.fixed[0] for p in pieces.pieces)
    if not isinstance(size, int) or places != [(axis, place) for place in range(size)]:
        return None
    total: Pieces | None = None
    for piece in pieces.pieces:
        part = Pieces((replace(piece, fixed=()),), pieces.by_data)
        total = part if total is None else combined(total, part, _total)
        if total is None:
            return None
    return total


def _summed_along(gone: set[int], tensor: Tensor, piece: Piece) -> Piece | None:
    """Each index along the axes that go has to be one that the term is linear in: its sum over 0 to n - 1 is
    n*a + s*n*(n - 1)/2.
    """
    if piece.over != 1 or any(axis in gone for axis, _ in piece.fixed) or not piece.attained:
        return None
    if any(i.axis is None for i in piece.indices):
        return None
    term = number(piece)
    for axis in gone:
        here = [i.size for i in piece.indices if i.axis == axis]
        if here and product(here) != tensor.shape[axis]:  # some values occur more than once
            return None
    for index in (i for i in piece.indices if i.axis in gone):
        if not index.dense:
            return None
        start = substitute(term, {index.name: 0})
        step = substitute(term, {index.name: 1}) - start
        if term - start - step * _symbol(index) != 0:
            return None
        n = index.size
        term = (2 * n * start + step * n * (n - 1)) // 2
    for axis in gone:
        if not any(i.axis == axis for i in piece.indices):
            term = term * tensor.shape[axis]
    return replace(piece, term=term, indices=tuple(i for i in piece.indices if i.axis not in gone))


def _closed_up(pieces: Pieces, gone: set[int], rank: int) -> Pieces:
    """The same with the axes that are gone left out."""
    kept = [axis for axis in range(-rank, 0) if axis not in gone]
    places = {old: new - len(kept) for new, old in enumerate(kept)}
    return moved(pieces, places)


def _extreme(greatest: bool) -> Law:
    """The greatest element, or the least, along some axes or all of them: where the corner is. Of no elements
    there is none, and torch refuses.
    """

    def extreme(call: Call) -> Elements | Pieces:
        tensor, dim = call.input, call.named.get("dim")
        if isinstance(dim, Tensor):  # `torch.max(x, y)`
            other = replace(call, named={"input": tensor, "other": dim})
            return _of_two(maximum if greatest else minimum)(other)
        pieces, rank = call.pieces, tensor.rank
        if pieces is None or pieces.slack:
            return UNTRACKED
        axes = range(rank) if dim in (None, ()) else dim if isinstance(dim, tuple) else (dim,)
        gone = {axis % rank - rank for axis in axes} if rank else set()
        found = None
        if len(pieces.pieces) == 1 and not pieces.by_data:
            found = mapped(pieces, partial(_at_corner, gone, greatest, call.at_least))
        if found is not None:
            return found if call.result.rank == rank else _closed_up(found, gone, rank)
        span = extremes_of(pieces, call.at_least)
        if span is None:
            return UNTRACKED
        whole = len(gone) == rank and span.attained and not span.by_data
        if whole:
            return Affine(span.high if greatest else span.low)
        return replace(span, attained=span.attained and span.by_data)

    return extreme


def _at_corner(gone: set[int], greatest: bool, at_least: AtLeast, piece: Piece) -> Piece | None:
    if any(axis in gone for axis, _ in piece.fixed) or not piece.attained or piece.given is not True:
        return None
    inner = [i for i in piece.indices if i.axis in gone]
    if any(i.axis is None for i in piece.indices):
        return None
    ends = corners(number(piece), inner, at_least) if inner else None
    if inner and ends is None:
        return None
    term = number(piece)
    if ends is not None:
        term = maximum(*ends[1]) if greatest else minimum(*ends[0])
    return replace(piece, term=term, indices=tuple(i for i in piece.indices if i.axis not in gone))


# --- roundings and casts ---------------------------------------------------------------------------------


def whole(pieces: Pieces | None, law: Callable[[Dim, Dim], Dim]) -> Pieces | None:
    """Fractions rounded to integers by a law of numerator and denominator. A fraction that was rounded once,
    to the nearest float, is on the same side of every integer; one that was rounded more often, perhaps not.
    """
    if pieces is None:
        return None
    fractions = any(p.over != 1 for p in pieces.pieces if p.term is not None)
    found = mapped(pieces, lambda p: replace(p, term=law(number(p), p.over), over=1) if p.over != 1 else p)
    if found is None:
        return None
    slack = pieces.slack or (fractions and pieces.roundings > 1 and not _is_constant(pieces))
    return replace(found, roundings=0, slack=slack)


def _is_constant(pieces: Pieces) -> bool:
    """One fraction that has been moved by small numbers, of which `require_exact` asks that it is exact."""
    return len(pieces.pieces) == 1 and not pieces.pieces[0].indices and isinstance(pieces.pieces[0].over, int)


def _floor(call: Call) -> Elements | Pieces:
    found = whole(call.pieces, lambda n, d: n // d)
    return UNTRACKED if found is None or found.slack else found


def _ceil(call: Call) -> Elements | Pieces:
    found = whole(call.pieces, ceildiv)
    return UNTRACKED if found is None or found.slack else found


def _round(call: Call) -> Elements | Pieces:
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
        return replace(piece, term=low + _symbol(index), over=1, indices=(index,))

    found = mapped(pieces, ends)
    return UNTRACKED if found is None else replace(found, roundings=0)


def _cast(call: Call) -> Elements | Pieces:
    """The same numbers in another dtype. A fraction is cut to an integer, upwards or downwards as its sign
    is.
    """
    elements = of(call.input)
    if call.result.dtype == call.input.dtype and not isinstance(elements, Pieces):
        return elements
    pieces = pieces_of(elements, call.input.shape)
    if pieces is None or call.result.dtype not in INTEGRAL or not _has_fractions(pieces):
        return elements if pieces is None else pieces
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


# --- places ----------------------------------------------------------------------------------------------


def _kept(call: Call) -> Elements | Pieces:
    return of(call.input)


def _expanded(call: Call) -> Elements | Pieces:
    return call.operand("input") or UNTRACKED


def _permuted(order: Callable[[Call, int], tuple[int, ...]]) -> Law:
    """Axis k of the result is axis order[k] of the input."""

    def permuted(call: Call) -> Elements | Pieces:
        pieces, rank = call.pieces, call.input.rank
        if pieces is None:
            return UNTRACKED
        return moved(pieces, {old - rank: new - rank for new, old in enumerate(order(call, rank))})

    return permuted


def _transposed(call: Call, rank: int) -> tuple[int, ...]:
    order = list(range(rank))
    if rank:
        a, b = call.named["dim0"] % rank, call.named["dim1"] % rank
        order[a], order[b] = order[b], order[a]
    return tuple(order)


def _order(call: Call, rank: int) -> tuple[int, ...]:
    return tuple(d % rank for d in call.named["dims"])


def _last_two(call: Call, rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2) if rank >= 2 else tuple(range(rank))


def _moved_axes(call: Call, rank: int) -> tuple[int, ...]:
    source, target = (
        [d % rank for d in (v if isinstance(v, tuple) else (v,))]
        for v in (call.named["source"], call.named["destination"])
    )
    order: list[int | None] = [None] * rank
    for s, t in zip(source, target, strict=True):
        order[t] = s
    left = iter([axis for axis in range(rank) if axis not in source])
    return tuple(next(left) if axis is None else axis for axis in order)


def _reshaped(call: Call) -> Elements | Pieces:
    pieces = call.pieces
    if pieces is None or call.result.dtype != call.input.dtype:  # `x.view(dtype)` reads other numbers
        return UNTRACKED
    return regrouped(pieces, call.input.shape, call.result.shape)


def _shuffled(call: Call) -> Elements | Pieces:
    """All the elements, in another order along the axes that a call names, or all over."""
    pieces = call.pieces
    if pieces is None:
        return UNTRACKED
    dims, rank = call.named.get("dims", call.named.get("dim")), call.input.rank
    if dims in (None, ()) or rank == 0:
        return shuffled(pieces, None)
    several = dims if isinstance(dims, tuple) else (dims,)
    return shuffled(pieces, {axis % rank - rank for axis in several if type(axis) is int})


def _flipped(call: Call) -> Elements | Pieces:
    """Element i of n is element n - 1 - i."""
    pieces, rank = call.pieces, call.input.rank
    if pieces is None:
        return UNTRACKED
    dims = {"fliplr": (1,), "flipud": (0,)}.get(call.op, call.named.get("dims", ()))
    several = dims if isinstance(dims, tuple) else (dims,)
    axes = {axis % rank - rank for axis in several} if rank else set()

    def flipped(piece: Piece) -> Piece:
        here = [i for i in piece.indices if i.axis in axes and i.ordered]
        turned = {i.name: i.size - 1 - _symbol(i) for i in here}
        fixed = tuple(
            (axis, call.input.shape[axis] - 1 - at if axis in axes else at) for axis, at in piece.fixed
        )
        return replace(piece, term=substitute(number(piece), turned), fixed=fixed)

    return mapped(pieces, flipped) or UNTRACKED


def _all_of_them(call: Call) -> Elements | Pieces:
    """Each element at least once, anywhere."""
    pieces = call.pieces
    return UNTRACKED if pieces is None else shuffled(pieces, None)


def _some(call: Call) -> Elements | Pieces:
    """Some of the elements, each as often as may be."""
    pieces = call.pieces
    return UNTRACKED if pieces is None else some(pieces)


def some(pieces: Pieces) -> Pieces:
    loose = shuffled(pieces, None)
    return replace(
        loose,
        pieces=tuple(
            p if p.term is not None and not p.indices and len(loose.pieces) == 1 else replace(p, attained=False)
            for p in loose.pieces
        ),
    )


def _tiled(call: Call) -> Elements | Pieces:
    """The whole several times along some axes, where it is the same all along these."""
    tensor, repeats = call.input, call.named.get("repeats", call.named.get("dims"))
    pieces = call.pieces
    if pieces is None:
        return UNTRACKED
    if isinstance(repeats, tuple):
        times = dict(zip(range(-1, -len(repeats) - 1, -1), reversed(repeats), strict=True))
        axes = {i.axis for p in pieces.pieces for i in p.indices} | {a for p in pieces.pieces for a, _ in p.fixed}
        if all(axis is not None and times.get(axis, 1) == 1 for axis in axes):
            return pieces
    return shuffled(pieces, None) if tensor.rank else pieces


def _repeated_each(call: Call) -> Elements | Pieces:
    """`repeat_interleave`, by a number, all elements; by a tensor, some."""
    return _some(call) if isinstance(call.named.get("repeats"), Tensor) else _all_of_them(call)


def _side_by_side(call: Call) -> Elements | Pieces:
    """The elements of several tensors, one after the other along an axis, or along a new one."""
    tensors = next(v for v in call.named.values() if isinstance(v, tuple))
    parts: list[Pieces] = []
    axis = call.named.get("dim", 0)
    new = call.op == "stack"
    for place, tensor in enumerate(tensors):
        found = pieces_of(of(tensor), tensor.shape) if isinstance(tensor, Tensor) else None
        if found is None:
            return UNTRACKED
        rank = tensor.rank + new
        at = axis % rank - rank if rank else -1
        if new:
            found = moved(found, {old: old - (old <= at) for old in range(-tensor.rank, 0)})
            found = replace(
                found, pieces=tuple(replace(p, fixed=(*p.fixed, (at, place))) for p in found.pieces)
            )
        elif len(tensors) > 1:
            found = _beside(found, tensor, at, call)
        if found is not None:
            parts.append(found)
    return _union(parts) if parts else UNTRACKED


def _beside(found: Pieces, tensor: Tensor, axis: int, call: Call) -> Pieces | None:
    """One of several tensors along an axis: its elements, where it has any, all along the others."""
    given = () if all(call.at_least(n, 1) for n in tensor.shape) else (ge(product(tensor.shape), 1),)
    loose = shuffled(found, {axis})
    pieces = tuple(
        replace(
            p, given=all_of((p.given, *given)), fixed=tuple(f for f in p.fixed if f[0] != axis)
        )
        for p in loose.pieces
    )
    return replace(found, pieces=pieces) if all_of(given) is not False else None


def _getitem(call: Call) -> Elements | Pieces:
    index = call.named.get("index", call.named.get("indices"))
    return _item(call, index if isinstance(index, tuple) else (index,))


def _item(call: Call, items: tuple[Any, ...]) -> Elements | Pieces:
    pieces = call.pieces
    if pieces is None:
        return UNTRACKED
    found = indexed(pieces, call.input.shape, items, call.result.shape, call.at_least)
    if found is not None:
        return found
    return some(pieces)


def _along_axis(call: Call, item: Any) -> Elements | Pieces:
    if not call.input.rank:
        return _kept(call)
    return _item(call, (*(Slice(),) * (call.named.get("dim", 0) % call.input.rank), item))


def _slice(call: Call) -> Elements | Pieces:
    named = call.named
    return _along_axis(call, Slice(named.get("start"), named.get("end"), named.get("step", 1)))


def _select(call: Call) -> Elements | Pieces:
    return _along_axis(call, call.named["index"])


def _narrow(call: Call) -> Elements | Pieces:
    return _along_axis(call, Slice(call.named["start"], None, 1))


def _index_select(call: Call) -> Elements | Pieces:
    return _along_axis(call, call.named["index"])


def _scattered(call: Call) -> Elements | Pieces:
    """Written to place i is element i: those that are written, and no others."""
    index, source = call.named["index"], call.named["src"] if "src" in call.named else call.named.get("value")
    if call.result.rank != 1 or index.shape != call.result.shape or index.elements != Affine(0, ((-1, 1),)):
        return UNTRACKED
    if call.named.get("reduce") is not None:
        return UNTRACKED
    if isinstance(source, Tensor):
        return of(source) if source.shape == call.result.shape else UNTRACKED
    return of_number(source) or UNTRACKED


def _diff(call: Call) -> Elements | Pieces:
    """What each element is more than the one before, where that is the same everywhere."""
    pieces, rank = call.pieces, call.input.rank
    if pieces is None or _is_rounded(pieces) or call.named.get("n", 1) != 1 or len(call.named) > 3:
        return UNTRACKED
    if len(pieces.pieces) > 1:
        return UNTRACKED
    axis = call.named.get("dim", -1) % rank - rank

    def step(piece: Piece) -> Piece | None:
        here = [i for i in piece.indices if i.axis == axis]
        placed = all(i.axis is not None and i.ordered for i in piece.indices) and not piece.fixed
        if not placed or len(here) > 1 or piece.given is not True:
            return None
        if not here:
            return replace(piece, term=0, indices=())
        i = _symbol(here[0])
        by = substitute(number(piece), {here[0].name: i + 1}) - number(piece)
        index = replace(here[0], size=here[0].size - 1)
        return replace(piece, term=by, indices=tuple(index if j is here[0] else j for j in piece.indices))

    return mapped(pieces, step) or UNTRACKED


def _one_hot(call: Call) -> Elements | Pieces:
    return Span(0, 1, attained=False)


def _bucket(call: Call) -> Elements | Pieces:
    """Of how many boundaries a number is beyond: of none, or of all, or of any number between. Of boundaries
    `start + step*j` that rise, x is beyond ceil((x - start) / step), or, with `right`, one more than the floor.
    """
    boundaries = call.named.get("boundaries", call.named.get("sorted_sequence"))
    if not isinstance(boundaries, Tensor) or not boundaries.shape:
        return UNTRACKED
    size, right = boundaries.shape[-1], call.named.get("right", False) or call.named.get("side") == "right"
    value = call.named.get("input")
    pieces = pieces_of(of(value), value.shape) if isinstance(value, Tensor) else of_number(value)
    match boundaries.elements:
        case Affine(start, ((-1, step),)) if step > 0 and pieces is not None and not _is_rounded(pieces):

            def beyond(piece: Piece) -> Piece | None:
                if piece.over != 1:
                    return None
                above = number(piece) - start
                count = above // step + 1 if right else ceildiv(above, step)
                return replace(piece, term=minimum(maximum(count, 0), size))

            if (found := mapped(pieces, beyond)) is not None and boundaries.rank == 1:
                return found
    return Span(0, size, attained=False, by_data=True)


def _product_of(call: Call) -> Elements | Pieces:
    """`cartesian_prod`: column k has every element of the k-th vector."""
    given = call.named["tensors"]
    vectors = given[0] if len(given) == 1 and isinstance(given[0], tuple) else given
    if len(vectors) == 1:
        return of(vectors[0])
    indices = [Index(f"#v{k}", v.shape[0], -2) for k, v in enumerate(vectors)]
    pieces: list[Piece] = []
    for k, vector in enumerate(vectors):
        found = pieces_of(of(vector), vector.shape)
        plain = found is not None and len(found.pieces) == 1 and found.pieces[0].term is not None
        if found is None or not plain or found.roundings or found.by_data or found.pieces[0].fixed:
            return UNTRACKED
        piece = found.pieces[0]
        here = [i for i in piece.indices if i.axis is not None and i.ordered]
        if len(here) != len(piece.indices) or len(here) > 1:
            return UNTRACKED
        term = substitute(number(piece), {i.name: _symbol(indices[k]) for i in here})
        pieces.append(replace(piece, term=term, indices=tuple(indices), fixed=((-1, k),)))
    return Pieces(tuple(pieces))


def _combinations(call: Call) -> Elements | Pieces:
    """Column k of r, of elements in their order: from the k-th to the one before the last r - 1 - k."""
    r, repeated = call.named.get("r", 2), call.named.get("with_replacement", False)
    found = call.pieces
    if found is None or not isinstance(r, int) or r < 1 or len(found.pieces) != 1 or found.roundings:
        return UNTRACKED
    (piece,) = found.pieces
    if piece.term is None or len(piece.indices) > 1 or not all(i.ordered for i in piece.indices):
        return UNTRACKED
    pieces: list[Piece] = []
    for k in range(r):
        first = 0 if repeated else k
        moved_on = {i.name: _symbol(i) + first for i in piece.indices}
        indices = tuple(
            replace(i, size=i.size - (0 if repeated else r - 1), axis=None, ordered=False)
            for i in piece.indices
        )
        pieces.append(
            replace(piece, term=substitute(number(piece), moved_on), indices=indices, fixed=((-1, k),))
        )
    return replace(found, pieces=tuple(pieces))


# --- operators with several results ----------------------------------------------------------------------


def _meshed(call: Call) -> Iterable[Elements | Pieces]:
    """Of the n-th vector along the n-th axis, but for `xy`, with which the first two change places."""
    tensors: tuple[Tensor, ...] = call.named["tensors"]
    axes = list(range(-len(tensors), 0))
    if call.named.get("indexing") == "xy" and len(tensors) > 1:
        axes[:2] = axes[1], axes[0]
    for tensor, axis in zip(tensors, axes, strict=True):
        found = pieces_of(of(tensor), tensor.shape)
        yield UNTRACKED if found is None else moved(found, {-1: axis})


def _together(call: Call) -> Iterable[Elements | Pieces]:
    for tensor, result in zip(call.named["tensors"], call.result, strict=True):
        found = pieces_of(of(tensor), tensor.shape)
        yield UNTRACKED if found is None else stretched(found, tensor.shape, result.shape) or UNTRACKED


def _split(call: Call) -> Iterable[Elements | Pieces]:
    """Each piece goes on where the one before it ends."""
    tensor = call.input
    axis, start = call.named.get("dim", 0) % tensor.rank, 0
    for part in call.result:
        item = (*(Slice(),) * axis, Slice(start, start + part.shape[axis], 1))
        yield _item(replace(call, result=part), item)
        start += part.shape[axis]


def _unbound(call: Call) -> Iterable[Elements | Pieces]:
    """As `select` has each of them."""
    before = (Slice(),) * (call.named.get("dim", 0) % call.input.rank)
    for place, part in enumerate(call.result):
        yield _item(replace(call, result=part), (*before, place))


def _with_indices(size: Callable[[Call], Dim], values: Law, *, all_occur: bool) -> Callable[[Call], Any]:
    """Values and where they were: any place along the dim; each of them, where all are returned."""

    def law(call: Call) -> Iterable[Elements | Pieces]:
        known = of(call.input)
        yield None if known is None else values(replace(call, result=call.result[0]))
        yield chosen(call, size(call), all_occur)

    return law


def _axes_of(call: Call) -> Iterable[Elements | Pieces]:
    """`unravel_index`: of a flat index, its place along each axis; all of them, of all flat indices."""
    shape = call.named.get("shape")
    found = call.pieces
    sizes = shape if isinstance(shape, tuple) else (shape,)
    below: Dim = 1
    laws: list[Elements | Pieces] = []
    for n in reversed(sizes):
        laws.append(
            UNTRACKED if found is None or _is_rounded(found) else _digit(found, below, n, call.at_least)
        )
        below = below * n
    return reversed(laws)


def _digit(found: Pieces, below: Dim, size: Dim, at_least: AtLeast) -> Elements | Pieces:
    """`x // below % size`. Of numbers in a row from 0 to m - 1, all up to the least of size and ceil(m/below)
    occur; of others, some.
    """
    (piece, *others) = found.pieces
    if others or piece.term is None or not at_least(below, 1):
        return UNTRACKED
    if not piece.indices:
        return replace(found, pieces=(replace(piece, term=piece.term // below % size),))
    runs = runs_from_zero(piece.term, piece.indices)
    top = minimum(size, ceildiv(piece.indices[0].size, below)) if runs else size
    index = Index("#0", top, None, ordered=False, dense=runs)
    attained = piece.attained and runs
    return replace(found, pieces=(Piece(_symbol(index), 1, (index,), piece.given, attained, piece.fixed),))


def _unique(call: Call) -> Iterable[Elements | Pieces]:
    """The different elements; where each was found among them, if asked for; how often each occurs."""
    known = of(call.input)
    first, *others = call.result if isinstance(call.result, tuple) else (call.result,)
    yield None if known is None else _all_of_them(replace(call, result=first))
    for _ in others:
        yield ANY_CHOICE


SEVERAL: Mapping[str, Callable[[Call], Iterable[Elements | Pieces]]] = {
    "meshgrid": _meshed,
    "broadcast_tensors": _together,
    **dict.fromkeys("split split_with_sizes chunk tensor_split hsplit vsplit dsplit".split(), _split),
    "unbind": _unbound,
    "unravel_index": _axes_of,
    "sort": _with_indices(_sorted_size, _shuffled, all_occur=True),
    "topk": _with_indices(_sorted_size, _some, all_occur=False),
    "kthvalue": _with_indices(_sorted_size, _some, all_occur=False),
    "mode": _with_indices(_sorted_size, _some, all_occur=False),
    "median": _with_indices(_sorted_size, _some, all_occur=False),
    "nanmedian": _with_indices(_sorted_size, _some, all_occur=False),
    "cummax": _with_indices(_sorted_size, _some, all_occur=False),
    "cummin": _with_indices(_sorted_size, _some, all_occur=False),
    "max": _with_indices(_sorted_size, _extreme(greatest=True), all_occur=False),
    "min": _with_indices(_sorted_size, _extreme(greatest=False), all_occur=False),
    "aminmax": lambda call: (_extreme(greatest=False)(call), _extreme(greatest=True)(call)),
    **dict.fromkeys("unique unique2 _unique2 unique_consecutive _unique_consecutive unique_dim".split(), _unique),
}
"""Operators with several results; what is known of each."""

CASTS: Final = frozenset(
    "to _to_copy type type_as long int short float double half bfloat16 char byte bool "
    "prims::convert_element_type".split()
)

LAWS: Mapping[str, Law] = {
    # makers
    "arange": _arange,
    "prims::iota": lambda call: Affine(call.named["start"], ((-1, call.named["step"]),)),
    **dict.fromkeys("linspace logspace".split(), _linspace),
    **dict.fromkeys("tensor as_tensor scalar_tensor new_tensor asarray".split(), _given),
    **dict.fromkeys("zeros zeros_like new_zeros".split(), lambda call: Affine(0)),
    **dict.fromkeys("ones ones_like new_ones".split(), lambda call: Affine(1)),
    **dict.fromkeys("full full_like new_full".split(), _filled("fill_value")),
    "fill": _filled("value"),
    "zero": lambda call: Affine(0),
    "eye": _eye,
    **dict.fromkeys("tril_indices triu_indices".split(), _triangle),
    **dict.fromkeys("randint randint_like".split(), _random),
    "randperm": lambda call: between(0, call.result.shape[0] - 1),
    "multinomial": _up_to(lambda call: call.input.shape[-1]),
    "argsort": _up_to(_sorted_size, all_occur=True),
    **dict.fromkeys("argmax argmin".split(), _up_to(_along_dim)),
    **dict.fromkeys("bucketize searchsorted".split(), _bucket),
    "count_nonzero": _up_to(lambda call: _along_dim(call) + 1),
    "one_hot": _one_hot,
    "cartesian_prod": _product_of,
    "combinations": _combinations,
    # arithmetic
    "add": _add(1),
    "sub": _add(-1),
    "rsub": _add(-1, swapped=True),
    "mul": _mul,
    "div": _div,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "pow": _pow,
    "neg": _neg,
    "abs": _abs,
    **dict.fromkeys("clamp clamp_min clamp_max".split(), _clamp),
    "where": _where,
    "maximum": _of_two(maximum),
    "minimum": _of_two(minimum),
    "cumsum": _cumsum,
    "sum": _summed,
    "diff": _diff,
    **dict.fromkeys("amax max".split(), _extreme(greatest=True)),
    **dict.fromkeys("amin min".split(), _extreme(greatest=False)),
    # roundings and casts
    "ceil": _ceil,
    "floor": _floor,
    "round": _round,
    **dict.fromkeys(CASTS, _cast),
    # places
    **dict.fromkeys("clone contiguous detach alias lift_fresh_copy cpu".split(), _kept),
    **dict.fromkeys("expand expand_as broadcast_to".split(), _expanded),
    **dict.fromkeys(
        "unsqueeze squeeze view reshape view_as reshape_as flatten unflatten ravel".split(), _reshaped
    ),
    "transpose": _permuted(_transposed),
    "permute": _permuted(_order),
    **dict.fromkeys(("T", "t"), _permuted(lambda call, rank: tuple(range(rank))[::-1])),
    "mT": _permuted(_last_two),
    "movedim": _permuted(_moved_axes),
    **dict.fromkeys("flip fliplr flipud".split(), _flipped),
    **dict.fromkeys("roll rot90 msort".split(), _all_of_them),
    **dict.fromkeys(("repeat", "tile"), _tiled),
    "repeat_interleave": _repeated_each,
    **dict.fromkeys("cat stack".split(), _side_by_side),
    "getitem": _getitem,
    "index": _getitem,
    "slice": _slice,
    "select": _select,
    "narrow": _narrow,
    "index_select": _index_select,
    **dict.fromkeys("gather take_along_dim take masked_select".split(), _some),
    "scatter": _scattered,
    **{f"upsample_nearest{n}d": _some for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": _some for n in (1, 2, 3)},
}
"""Operator -> what it makes of elements. What is not here makes something that is not known."""


def followed(call: Call, elements: Elements | Pieces, result: Tensor) -> Elements:
    """What a law says of a result, as its dtype holds it."""
    if elements is UNTRACKED or elements is None:
        return elements
    pieces = pieces_of(elements, result.shape)
    if pieces is None:
        return elements
    if result.dtype in WHOLE and any(p.over != 1 for p in pieces.pieces):
        return UNTRACKED
    held = fitted(pieces, result.dtype, call.at_least)
    if held is pieces and not isinstance(elements, Pieces):
        return elements
    return stored(held, result.shape, call.at_least)


__all__ = ["CASTS", "LAWS", "SEVERAL", "Call", "followed", "require_exact", "without"]
