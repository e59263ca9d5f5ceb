"""Sums and extremes of elements along axes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ...ir.language import UNTRACKED, Affine, Elements, Piece, Pieces, Span, Tensor, product
from ...terms.dims import maximum, minimum, substitute
from ..functions import (
    AtLeast,
    along,
    are_exclusive,
    combined,
    corners,
    is_partition,
    mapped,
    number,
    symbol_of,
)
from ..shaping import moved
from ..values import extremes, extremes_of, of
from .arithmetic import is_rounded, of_two, sum_of_two
from .calls import Call, Law


def running_sums(call: Call) -> Elements | Pieces:
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


def _of_mask(call: Call) -> Span | None:
    """Returns the range of a mask of data, or of counts that the data decide, none negative; else None."""
    found = of(call.input)
    return found if isinstance(found, Span) and found.low == 0 and found.by_data else None


def sums(call: Call) -> Elements | Pieces:
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
    """Returns the sum along an axis of few indices, each with a piece of its own; else None."""
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
        total = part if total is None else combined(total, part, sum_of_two)
        if total is None:
            return None
    return total


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

    def extreme(call: Call) -> Elements | Pieces:
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
        span = extremes_of(pieces, call.at_least)
        if span is None:
            return UNTRACKED
        whole = len(gone) == rank and span.attained and not span.by_data
        if whole:
            return Affine(span.high if greatest else span.low)
        return replace(span, attained=span.attained and span.by_data)

    return extreme


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
