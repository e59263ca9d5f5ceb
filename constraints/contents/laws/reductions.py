"""Sums and extremes of elements along axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, combinations, pairwise, takewhile
from operator import mul
from typing import Final

from ...ir.language import UNTRACKED, Affine, Elements, Index, Piece, Pieces, Span, Tensor, product
from ...terms.dims import Dim, maximum, minimum, substitute, total
from ...terms.formula import Formula, all_of, eq, ge, le, negate
from ..elements.cycles import two_ends
from ..elements.functions import (
    AtLeast,
    Operation,
    along,
    are_exclusive,
    combined,
    corners,
    is_partition,
    mapped,
    number,
    parts_of,
    symbol_of,
    tightest,
)
from ..elements.shaping import moved
from ..elements.values import constant, extremes, extremes_of, of
from .arithmetic import is_rounded, of_two, product_of_two, sum_of_two
from .calls import Law, NamedCall, one_value


def running_sums(call: NamedCall) -> Elements | Pieces:
    """Returns sums of the first i + 1 elements: for `a + s*k`, a*(i + 1) + s*i*(i + 1)/2.

    For a mask that the data decide, they are at most the number of elements.
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
        i, term = symbol_of(index), number(piece)
        start = substitute(term, {index.name: 0})
        step = substitute(term, {index.name: 1}) - start
        if term - start - step * i != 0:
            return None
        total = start * (i + 1) + step * i * (i + 1) // 2 if step != 0 else start * (i + 1)
        if step != 0:
            total = (2 * start * (i + 1) + step * i * (i + 1)) // 2
        others = tuple(j for j in piece.indices if j is not index)
        return replace(piece, term=total, indices=(*others, index))

    if pieces is not None and not is_rounded(pieces) and is_partition(pieces):
        found = mapped(pieces, summed)
        if found is not None:
            return found
    span = extremes(tensor)
    if span is not None and span.low == 0:
        return Span(0, span.high * tensor.shape[dim], attained=False, by_data=span.by_data)
    return UNTRACKED


def running_products(call: NamedCall) -> Elements | Pieces:
    """Products of the first i + 1 elements. All elements are positive, and all but a few are the same number.

    Those that are small are a function of i. Of greater ones the first few are known, and the last one that
    64 bits hold.
    """
    tensor, dim = call.input, call.named["dim"]
    if not tensor.shape or (grown := _products(call, dim % tensor.rank - tensor.rank)) is None:
        return UNTRACKED
    if not grown.later:
        return Pieces((grown.piece,))
    n, few = grown.index.size, len(grown.small)
    many = two_ends(grown.piece, grown.small[0], grown.small[-1])
    last = few + len(grown.later)
    pieces = [
        replace(grown.piece, given=le(n, few)),
        replace(many, given=ge(n, few + 1)),
        *(Piece(value, given=ge(n, few + 1 + k)) for k, value in enumerate(grown.later[:TOLD])),
        Piece(None, given=ge(n, few + 1 + TOLD)),
        Piece(grown.later[-1], given=ge(n, last)),
        *(Piece(value, given=ge(n, last + 1 + k)) for k, value in enumerate(grown.wrapped)),
    ]
    return Pieces(tuple(pieces))


def products(call: NamedCall) -> Elements | Pieces:
    """Returns the product of all elements, or of those along the only axis: the last running product."""
    tensor, dim = call.input, call.named.get("dim")
    pieces = call.pieces
    if tensor.rank == 0 or pieces is None or tensor.rank > (1 if dim is not None else tensor.rank):
        return UNTRACKED
    if (found := _combined_apart(pieces, {-1}, tensor, product_of_two)) is not None and tensor.rank == 1:
        return found
    if (grown := _products(call, -1)) is None or (tensor.rank > 1 and pieces.pieces[0].indices):
        return UNTRACKED
    n = tensor.numel
    few, most = len(grown.small), len(grown.small) + len(grown.later)
    none = Piece(1, given=eq(n, 0))
    if not grown.later:
        one, more = grown.small[0], grown.small[-1]
        return Pieces((none, Piece(one, given=eq(n, 1)), Piece(more, given=ge(n, 2))))
    exact = [Piece(value, given=eq(n, k)) for k, value in enumerate(grown.small, 1)]
    least = grown.later[0]
    any_great = Index("#0", grown.later[-1] - least + 1, None, ordered=False)
    within = all_of((ge(n, few + 1), le(n, most)))
    great = Piece(least + symbol_of(any_great), indices=(any_great,), given=within, attained=False)
    *first, always = (Piece(value, given=eq(n, k)) for k, value in enumerate(grown.wrapped, most + 1))
    rest = replace(always, given=ge(n, most + len(grown.wrapped)))
    return Pieces((none, *exact, great, *first, rest))


@dataclass(frozen=True, slots=True)
class _Products:
    """Products of the first numbers along an index."""

    index: Index
    piece: Piece
    """Those that are small, as a function of the index."""
    small: tuple[int, ...]
    later: tuple[int, ...]
    """Those after the small ones that 64 bits hold; none if the products do not grow."""
    wrapped: tuple[int | None, ...]
    """Those that 64 bits do not hold, as they wrap, up to one that all later ones equal; None for unknown
    numbers.
    """


def _products(call: NamedCall, axis: int) -> _Products | None:
    tensor, pieces = call.input, call.pieces
    if pieces is None or is_rounded(pieces) or len(pieces.pieces) > 1 or pieces.by_data:
        return None
    (piece,) = pieces.pieces
    factors = _first_factors(piece, axis, call.at_least)
    if factors is None or call.result.dtype != "int64":
        return None
    known = [*takewhile(lambda n: n < 1 << 63, accumulate(factors, mul))]
    small = [n for n in known if n <= MOST_PRODUCT]
    index = next((i for i in piece.indices if i.axis == axis), along(axis, tensor.shape[axis]))
    rises = (b - a for a, b in pairwise(small))
    steps = (by * minimum(maximum(symbol_of(index) - k, 0), 1) for k, by in enumerate(rises))
    grows = len(small) < len(factors)
    later = tuple(known[len(small) :]) if grows else ()
    over = known[-1] * factors[-1]
    wrapped: tuple[int | None, ...] = (None,)
    if over % (1 << 63) == 0:
        wrapped = (-(1 << 63), 0) if over % (1 << 64) else (0,)
    return _Products(index, Piece(small[0] + total(steps), indices=(index,)), tuple(small), later, wrapped)


MOST_PRODUCT: Final = 1 << 12
"""The number of products that are distinguished from greater ones."""
TOLD: Final = 3
"""Greater products that are known."""


def _first_factors(piece: Piece, axis: int, at_least: AtLeast) -> list[int] | None:
    """Positive numbers along an axis, as many as have small products: two that may be any, and then always
    the same. None where the elements are not such.
    """
    indices = piece.indices
    plain = piece.given is True and piece.attained and piece.doubt is False and not piece.fixed
    if piece.term is None or piece.over != 1 or not plain or len(indices) > 1:
        return None
    if not all(i.axis == axis and i.ordered for i in indices):
        return None

    def from_place(place: int) -> int | None:
        moved_on = {i.name: symbol_of(i) + place for i in indices}
        ends = corners(substitute(number(piece), moved_on), indices, at_least)
        if ends is None:
            return None
        same = (c for c in (1, 2, 3, 4) if all(at_least(low - c, 0) for low in ends[0]))
        return next((c for c in same if all(at_least(c - high, 0) for high in ends[1])), None)

    own = [substitute(number(piece), {i.name: place for i in indices}) for place in range(2)]
    rest = from_place(len(own))
    first = [n for n in own if isinstance(n, int) and n > 0] if indices else [rest] * len(own)
    if rest is None or len(first) < len(own):
        return None
    return [n for n in first if n is not None] + [rest] * 64


def _of_mask(call: NamedCall) -> Span | None:
    """Returns the range of a mask of data, or of counts that the data decide, none negative; else None.

    All of a mask may be true, but counts may be such that not all are the greatest, as places that are all
    different are.
    """
    found = of(call.input)
    if not isinstance(found, Span) or found.low != 0 or not found.by_data:
        return None
    return replace(found, attained=found.attained and found.high == 1)


def sums(call: NamedCall) -> Elements | Pieces:
    """Returns sums: n times the element, for n equal ones; for a mask of the data at most the number of
    elements.

    Along an axis where each index has a piece of its own it is the sum of these.
    """
    tensor, dim = call.input, call.named.get("dim")
    if tensor.rank == 0:
        return of(tensor)
    axes = range(tensor.rank) if dim in (None, ()) else dim if isinstance(dim, tuple) else (dim,)
    count = product([tensor.shape[axis] for axis in axes])
    if (span := _of_mask(call)) is not None:
        return replace(span, high=span.high * count)
    pieces = call.pieces
    if pieces is None or is_rounded(pieces) or call.named.get("dtype") not in (None, call.result.dtype):
        return UNTRACKED
    gone = {axis % tensor.rank - tensor.rank for axis in axes}
    found = _combined_apart(pieces, gone, tensor, sum_of_two)
    if found is None and is_partition(pieces):
        found = mapped(pieces, partial(_summed_along, gone, tensor))
    if found is not None and all(p.over == 1 for p in found.pieces):
        kept = call.result.rank == tensor.rank
        return found if kept else _closed_up(found, gone, tensor.rank)
    span = extremes(tensor)
    if span is not None and span.low == 0:
        return Span(0, span.high * count, attained=False, by_data=span.by_data)
    return UNTRACKED


def contracted(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of a matrix product of tensors that are one integer each: n times the product of
    the two, for a contracted dim of size n.
    """
    first, second = (value for value in call.named.values() if isinstance(value, Tensor))
    a, b = one_value(first), one_value(second)
    if a is None or b is None or not first.rank or call.result.dtype in ("float16", "bfloat16"):
        return UNTRACKED
    return constant(a * b * first.shape[-1])


def _combined_apart(
    pieces: Pieces, gone: set[int], tensor: Tensor, operation: Operation
) -> Pieces | None:
    """Returns the sum, or the product, along an axis of few indices, each with a piece of its own; else
    None.
    """
    if len(gone) != 1 or not all(p.term is not None and len(p.fixed) == 1 for p in pieces.pieces):
        return None
    (axis,) = gone
    size = tensor.shape[axis]
    places = sorted(p.fixed[0] for p in pieces.pieces)
    if not isinstance(size, int) or places != [(axis, place) for place in range(size)]:
        return None
    found: Pieces | None = None
    for piece in pieces.pieces:
        part = Pieces((replace(piece, fixed=()),), pieces.by_data)
        found = part if found is None else combined(found, part, operation)
        if found is None:
            return None
    return found


def _summed_along(gone: set[int], tensor: Tensor, piece: Piece) -> Piece | None:
    """Returns the sum along axes whose indices the term is linear in: over 0 to n - 1 it is n*a + s*n*(n -
    1)/2; else None.
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
        if term - start - step * symbol_of(index) != 0:
            return None
        n = index.size
        term = (2 * n * start + step * n * (n - 1)) // 2
    for axis in gone:
        if not any(i.axis == axis for i in piece.indices):
            term = term * tensor.shape[axis]
    return replace(piece, term=term, indices=tuple(i for i in piece.indices if i.axis not in gone))


def _closed_up(pieces: Pieces, gone: set[int], rank: int) -> Pieces:
    """Returns the pieces without the reduced axes."""
    kept = [axis for axis in range(-rank, 0) if axis not in gone]
    places = {old: new - len(kept) for new, old in enumerate(kept)}
    return moved(pieces, places)


def extreme_of(greatest: bool) -> Law:
    """Returns the law of the greatest element, or the least, along some axes or all of them: it lies at a
    corner. No elements have no extreme, and torch refuses.
    """

    def extreme(call: NamedCall) -> Elements | Pieces:
        tensor, dim = call.input, call.named.get("dim")
        if isinstance(dim, Tensor):  # `torch.max(x, y)`
            other = replace(call, named={"input": tensor, "other": dim})
            return of_two(maximum if greatest else minimum)(other)
        pieces, rank = call.pieces, tensor.rank
        if pieces is None or pieces.slack:
            return UNTRACKED
        axes = range(rank) if dim in (None, ()) else dim if isinstance(dim, tuple) else (dim,)
        gone = {axis % rank - rank for axis in axes} if rank else set()
        found = None
        if not rank:
            return pieces
        if are_exclusive(pieces) and not pieces.by_data:
            found = mapped(
                pieces, partial(_at_corner, gone, len(gone) == rank, greatest, call.at_least), keeping=True
            )
        if found is not None:
            return found if call.result.rank == rank else _closed_up(found, gone, rank)
        if len(gone) == rank and (found := _of_those_there(pieces, greatest, call.at_least)) is not None:
            return found
        span = extremes_of(pieces, call.at_least)
        if span is None:
            return UNTRACKED
        whole = len(gone) == rank and span.attained and not span.by_data
        if whole:
            return Affine(span.high if greatest else span.low)
        if span.by_data and span.attained and tensor.numel != 1:
            return _of_choices(span, greatest)
        return replace(span, attained=span.attained and span.by_data)

    return extreme


def _of_choices(span: Span, greatest: bool) -> Pieces:
    """Returns the extremes of numbers that data choose: for some data it is the last number of their range.
    Whether it may be any other one is not known, since they may have to differ.
    """
    some = Index("#0", span.high - span.low + 1, None, ordered=False, dense=False)
    others = Piece(span.low + symbol_of(some), indices=(some,), attained=False)
    return Pieces((Piece(span.high if greatest else span.low), others), by_data=True)


def _of_those_there(pieces: Pieces, greatest: bool, at_least: AtLeast) -> Pieces | None:
    """The extreme of several pieces is that of the pieces which have elements; the sizes decide which these
    are.

    For pieces that occur at the same sizes it is the extreme of their ends.
    """
    several = pieces.pieces
    if pieces.by_data or pieces.and_data or len(several) < 2:
        return None
    if any(p.term is None or not p.attained or p.doubt is not False for p in several):
        return None
    if len({p.over for p in several}) > 1:
        return None
    ends: dict[frozenset[Formula], list[Dim]] = {}
    for piece in several:
        if (end := corners(number(piece), piece.indices, at_least)) is None:
            return None
        ends.setdefault(frozenset(parts_of(piece.given)), []).extend(end[1] if greatest else end[0])
    occur = {parts: tightest(all_of(parts)) for parts in ends}
    apart = all(tightest(all_of(pair)) is False for pair in combinations(occur.values(), 2))
    if not apart and len(ends) > MOST_TOGETHER:
        return None
    law = maximum if greatest else minimum
    found: list[Piece] = []
    together = (1,) if apart else range(1, len(ends) + 1)
    for case in chain.from_iterable(combinations(ends, k) for k in together):
        others = () if apart else (negate(occur[p]) for p in ends if p not in case)
        given = tightest(all_of((*(occur[p] for p in case), *others)))
        if given is not False:
            term = law(*(end for p in case for end in ends[p]))
            found.append(Piece(term, several[0].over, given=given))
    return replace(pieces, pieces=tuple(found))


MOST_TOGETHER: Final = 3
"""Up to this many pieces the cases are distinguished by which pieces have elements."""


def _at_corner(
    gone: set[int], whole: bool, greatest: bool, at_least: AtLeast, piece: Piece
) -> Piece | None:
    if any(axis in gone for axis, _ in piece.fixed) or not piece.attained:
        return None
    inner = [i for i in piece.indices if whole or i.axis in gone]
    if any(i.axis is None for i in piece.indices) and not whole:
        return None
    ends = corners(number(piece), inner, at_least) if inner else None
    if inner and ends is None:
        return None
    term = number(piece)
    if ends is not None:
        term = maximum(*ends[1]) if greatest else minimum(*ends[0])
    return replace(piece, term=term, indices=tuple(i for i in piece.indices if i not in inner))
