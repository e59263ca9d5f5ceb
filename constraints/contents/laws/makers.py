"""The elements of tensors that operators create: positions, constants, random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ...ir.language import UNTRACKED, Affine, Elements, Index, Piece, Pieces, Span, Tensor, product
from ...terms.dims import Dim, Term, ceildiv, maximum, minimum, substitute
from ...terms.formula import all_of, ge
from ..elements.functions import along, mapped, number, symbol_of
from ..elements.values import ANY_CHOICE, between, is_data, is_float, of, pieces_of
from .arithmetic import is_rounded
from .calls import Law, NamedCall, of_number, one_value


def arange(call: NamedCall) -> Elements | Pieces:
    start, end, step = call.named.get("start", 0), call.named.get("end"), call.named.get("step", 1)
    if end is None:
        start, end = 0, start
    first, by = of_number(start), of_number(step)
    if first is None or by is None or not all(map(_is_exact, (first, by))):
        return UNTRACKED
    (size,) = call.result.shape
    index = along(-1, size)
    parts = (first.pieces[0], by.pieces[0])
    over = maximum(*(p.over for p in parts))  # powers of 2
    a, b = (number(p) * (over // p.over) for p in parts)
    return Pieces((Piece(a + b * symbol_of(index), over, (index,)),))


def _is_exact(pieces: Pieces) -> bool:
    return not is_rounded(pieces) and all(map(is_float, pieces.pieces))


def filled_with(name: str) -> Law:
    def filled(call: NamedCall) -> Elements | Pieces:
        value = call.named.get(name)
        if isinstance(value, Tensor):
            return of(value)
        return of_number(value) or UNTRACKED

    return filled


def given_data(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of `torch.tensor(data)`: every number, at its index."""
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


def linspace(call: NamedCall) -> Elements | Pieces:
    """Returns numbers from the start to the end. Both occur if there are two numbers or more; a single number
    is the start.
    """
    start, end, (count,) = call.named.get("start"), call.named.get("end"), call.result.shape
    if call.op == "logspace":
        base = call.named.get("base", 10.0)
        powers = [_power_of(base, side) for side in (start, end)]
        if any(power is None for power in powers):
            return UNTRACKED
        start, end = powers
    low, high = _whole_number(start), _whole_number(end)
    if low is None or high is None:
        return UNTRACKED
    index = Index("#0", 2, None, ordered=False, dense=False)
    several = Piece(low + symbol_of(index) * (high - low), 1, (index,), ge(count, 2))
    one = Piece(low, given=all_of((ge(count, 1), ge(1, count))))
    return Pieces(tuple(p for p in (one, several) if p.given is not False))


def _whole_number(value: Any) -> Dim | None:
    if isinstance(value, float) and value == int(value):
        return int(value)
    return value if isinstance(value, int | Term) else None


def _power_of(base: Any, exponent: Any) -> int | None:
    """Returns a power that floats represent exactly; else None."""
    whole = isinstance(exponent, int) and 0 <= exponent <= 10 and isinstance(base, int | float)
    whole = whole and base == int(base)
    return int(base) ** exponent if whole else None


def eye(call: NamedCall) -> Elements | Pieces:
    """Returns ones on the diagonal, and zeros elsewhere."""
    rows, columns = call.result.shape
    zero = Piece(0, given=ge(maximum(rows, columns), 2))
    return Pieces((zero, Piece(1)))


def triangle(call: NamedCall) -> Elements | Pieces:
    """Returns `[2, entries]`: rows, and below them columns, of the entries of an n by m matrix below a
    diagonal.

    On or below diagonal k, the first row with an entry is max(-k, 0) and the last is n - 1, the first column
    is 0 and the last min(m - 1, n - 1 + k); on or above it rows and columns swap their roles, with -k.
    """
    rows, columns = call.named["row"], call.named["col"]
    offset = call.named.get("offset", 0)
    if call.op == "triu_indices":
        columns, rows, offset = rows, columns, -offset
    first: tuple[Dim, Dim] = (maximum(-offset, 0), rows - 1)
    second: tuple[Dim, Dim] = (0, minimum(columns - 1, rows - 1 + offset))
    far = (second, first) if call.op == "triu_indices" else (first, second)
    pieces = []
    for place, (low, high) in enumerate(far):
        index = Index("#0", high - low + 1, None, ordered=False, dense=True)
        pieces.append(Piece(low + symbol_of(index), 1, (index,), fixed=((-2, place),)))
    return Pieces(tuple(pieces))


def drawn_between(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of `randint`: independent numbers from low to high - 1."""
    bounds = [v for v in call.named.get("bounds", ()) if not isinstance(v, tuple)]
    low, high = call.named.get("low", 0), call.named.get("high")
    if high is None and bounds:
        high = bounds.pop()
    if bounds:
        low = bounds.pop()
    if not isinstance(low, int | Term) or not isinstance(high, int | Term):
        return ANY_CHOICE
    return between(low, high - 1, by_data=True)


def up_to(size: Callable[[NamedCall], Dim], *, all_occur: bool = False) -> Law:
    """Returns indices of the elements along an axis: all of them, or some that the data choose.

    For some data any of them occurs, if the user gives these.
    """
    return lambda call: chosen(call, size(call), all_occur)


def chosen(call: NamedCall, size: Dim, all_occur: bool) -> Elements | Pieces:
    if all_occur and (places := _places_of_progression(call)) is not None:
        return places
    if all_occur and call.input.rank:
        return places_along(sorted_axis(call), size)
    equal = call.op == "multinomial" and one_value(call.input) is not None
    occur = all_occur or call.is_free(call.input) or equal
    return between(0, size - 1, attained=occur, by_data=not all_occur)


def _places_of_progression(call: NamedCall) -> Affine | None:
    """Returns the places of numbers that rise or fall by the same step, in their order; else None."""
    falling = call.named.get("descending", call.op == "topk" and call.named.get("largest", True))
    match call.input:
        case Tensor((n,), elements=Affine(_, ((_, step),))) if call.named.get("sorted", True):
            backwards = (step < 0) != bool(falling)
            return Affine(n - 1, ((-1, -1),)) if backwards else Affine(0, ((-1, 1),))
    return None


def places_along(axis: int, size: Dim) -> Pieces:
    """Returns all indices along an axis, in an unknown order."""
    index = replace(along(axis, size), ordered=False)
    return Pieces((Piece(symbol_of(index), 1, (index,)),))


def size_along(call: NamedCall) -> Dim:
    """Returns the size of the dim that the call names, of all elements where it names none."""
    dim, shape = call.named.get("dim"), call.input.shape
    if dim is None or dim == ():
        return product(shape)
    dims = dim if isinstance(dim, tuple) else (dim,)
    return product([shape[axis] for axis in dims if -len(shape) <= axis < len(shape)])


def sorted_axis(call: NamedCall) -> int:
    """Returns the axis that the call names, or the last, counted from the end; the last if the axis does not
    exist, and torch refuses.
    """
    dim, rank = call.named.get("dim"), call.input.rank
    return dim % rank - rank if isinstance(dim, int) and -rank <= dim < rank and rank else -1


def sorted_size(call: NamedCall) -> Dim:
    """Returns the size of the axis that is sorted, and 1 for a scalar."""
    return call.input.shape[sorted_axis(call)] if call.input.rank else 1


def counted(call: NamedCall) -> Elements | Pieces:
    """Returns the counts of `bincount`: for 0, 1, … up to the last, each once; else no more often than there
    are numbers.
    """
    tensor = call.input
    if call.named.get("weights") is not None:
        return UNTRACKED
    if tensor.elements == Affine(0, ((-1, 1),)) and call.named.get("minlength", 0) == 0:
        return Affine(1)
    return Span(0, tensor.numel, attained=False)


def one_hot(call: NamedCall) -> Elements | Pieces:
    """Returns a one for each number, and zeros elsewhere if there are several classes."""
    return Pieces((Piece(0, given=ge(call.result.shape[-1], 2)), Piece(1)))


def bucket(call: NamedCall) -> Elements | Pieces:
    """Returns how many boundaries a number exceeds: none, all, or any number between.

    For rising boundaries `start + step*j`, x exceeds ceil((x - start) / step), or, with `right`, one more
    than the floor. Arbitrary numbers of the user's may exceed none and all, unless the boundaries
    are the user's, too. In the order of a `sorter` they may rise or not.
    """
    is_sorted = call.named.get("sorter") is None
    boundaries = call.named.get("boundaries", call.named.get("sorted_sequence"))
    if not isinstance(boundaries, Tensor) or not boundaries.shape:
        return UNTRACKED
    size, right = boundaries.shape[-1], call.named.get("right", False) or call.named.get("side") == "right"
    value = call.named.get("input")
    pieces = pieces_of(of(value), value.shape) if isinstance(value, Tensor) else of_number(value)
    match boundaries.elements:
        case Affine(start, ((-1, step),)) if (
            is_sorted and step > 0 and pieces is not None and not is_rounded(pieces)
        ):

            def beyond(piece: Piece) -> Piece | None:
                if piece.over != 1:
                    return None
                above = number(piece) - start
                count = above // step + 1 if right else ceildiv(above, step)
                return replace(piece, term=minimum(maximum(count, 0), size))

            if (found := mapped(pieces, beyond)) is not None and boundaries.rank == 1:
                return found
    free = isinstance(value, Tensor) and call.is_free(value) and not is_data(boundaries)
    return Span(0, size, attained=free and is_sorted, by_data=True)


def product_of(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of `cartesian_prod`: column k has every element of the k-th vector."""
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
        term = substitute(number(piece), {i.name: symbol_of(indices[k]) for i in here})
        pieces.append(replace(piece, term=term, indices=tuple(indices), fixed=((-1, k),)))
    return Pieces(tuple(pieces))


def combinations(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of `combinations`: column k of r has, in order, the elements from the k-th to the
    one before the last r - 1 - k.
    """
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
        moved_on = {i.name: symbol_of(i) + first for i in piece.indices}
        indices = tuple(
            replace(i, size=i.size - (0 if repeated else r - 1), axis=None, ordered=False)
            for i in piece.indices
        )
        pieces.append(
            replace(piece, term=substitute(number(piece), moved_on), indices=indices, fixed=((-1, k),))
        )
    return replace(found, pieces=tuple(pieces))
