"""Operators that only move elements: the axes along which the indices of elements run afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

from ...ir.language import Dots, Index, Piece, Pieces, Shape, Slice, Tensor, product
from ...terms.dims import Dim, Term, maximum, minimum, substitute
from ...terms.formula import all_of
from .dtypes import INTEGRAL
from .functions import AtLeast, corners, is_partition, mapped, number, renamed, symbol_of, without
from .values import of, pieces_of

Group: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Axes of a shape, and axes of another shape with as many elements in the same order."""


def moved(pieces: Pieces, places: Mapping[int, int]) -> Pieces:
    """Returns the pieces with axis k, counted from the end, moved to axis `places[k]`."""

    def one(piece: Piece) -> Piece:
        indices = tuple(i if i.axis is None else replace(i, axis=places[i.axis]) for i in piece.indices)
        return replace(
            piece, indices=indices, fixed=tuple(sorted((places[axis], at) for axis, at in piece.fixed))
        )

    return replace(pieces, pieces=tuple(p if p.term is None else one(p) for p in pieces.pieces))


def stretched(pieces: Pieces, shape: Shape, target: Shape) -> Pieces | None:
    """Returns the pieces broadcast to a shape: along an axis of size 1 that is stretched one element is
    repeated.

    Along an axis that may be stretched, or may have the size already, all elements occur, at unknown indices.
    None where some of the elements lie at one index of such an axis.
    """
    ones = {axis for axis in range(-len(shape), 0) if shape[axis] == 1 and shape[axis] != target[axis]}
    others = {axis for axis in range(-len(shape), 0) if shape[axis] not in (1, target[axis])}

    def one(piece: Piece) -> Piece | None:
        if others & {axis for axis, _ in piece.fixed}:
            return None
        piece = without(piece, {i.name: 0 for i in piece.indices if i.axis in ones})
        indices = tuple(
            replace(i, axis=None, ordered=False) if i.axis in others else i for i in piece.indices
        )
        return replace(piece, indices=indices, fixed=tuple(f for f in piece.fixed if f[0] not in ones))

    return mapped(pieces, one, keeping=True)


def shuffled(pieces: Pieces, axes: Collection[int] | None) -> Pieces:
    """Returns the same elements in another order along some axes, or, for None, anywhere."""

    def one(piece: Piece) -> Piece:
        if axes is None:
            return replace(
                piece,
                indices=tuple(replace(i, axis=None, ordered=False) for i in piece.indices),
                fixed=(),
            )
        indices = tuple(replace(i, ordered=False) if i.axis in axes else i for i in piece.indices)
        return replace(piece, indices=indices, fixed=tuple(f for f in piece.fixed if f[0] not in axes))

    return replace(pieces, pieces=tuple(p if p.term is None else one(p) for p in pieces.pieces))


def spread(pieces: Pieces) -> Pieces:
    return shuffled(pieces, None)


# --- reshaping -------------------------------------------------------------------------------------------


def regrouped(pieces: Pieces, shape: Shape, target: Shape) -> Pieces:
    """Returns the same elements, in their order, as a tensor of another shape with as many."""
    groups = _groups(shape, target)
    if groups is None:
        return shuffled(pieces, None)

    def one(piece: Piece) -> Piece:
        ones = {i.name: 0 for i in piece.indices if i.axis is not None and shape[i.axis] == 1}
        piece = without(piece, dict(ones))
        fixed: list[tuple[int, int]] = []
        loose = [i for i in piece.indices if i.axis is None]
        placed: list[Index] = []
        for olds, news in groups:
            piece, indices, there = _regroup(piece, olds, news, shape, target)
            placed += indices
            fixed += there
        return replace(piece, indices=(*loose, *placed), fixed=tuple(sorted(fixed)))

    return replace(pieces, pieces=tuple(p if p.term is None else one(p) for p in pieces.pieces))


def _groups(shape: Shape, target: Shape) -> list[Group] | None:
    """Returns the shortest runs of axes that have as many elements on either side; None where there are none.
    """
    olds = [axis for axis in range(-len(shape), 0) if shape[axis] != 1]
    news = [axis for axis in range(-len(target), 0) if target[axis] != 1]
    groups: list[Group] = []
    while olds and news:
        found = next(
            (
                (i, total - i)
                for total in range(2, len(olds) + len(news) + 1)
                for i in range(max(1, total - len(news)), min(len(olds), total - 1) + 1)
                if product([shape[a] for a in olds[:i]]) == product([target[a] for a in news[: total - i]])
            ),
            None,
        )
        if found is None:
            return None
        i, j = found
        groups.append((tuple(olds[:i]), tuple(news[:j])))
        olds, news = olds[i:], news[j:]
    return groups if not olds and not news else None


def _regroup(
    piece: Piece, olds: tuple[int, ...], news: tuple[int, ...], shape: Shape, target: Shape
) -> tuple[Piece, list[Index], list[tuple[int, int]]]:
    """Returns the piece, with its indices and its fixed positions along the new axes."""
    here = [i for i in piece.indices if i.axis in olds]
    fixed = [(axis, at) for axis, at in piece.fixed if axis in olds]
    if len(olds) == len(news) == 1:
        return piece, [replace(i, axis=news[0]) for i in here], [(news[0], at) for _, at in fixed]
    if not here and not fixed:
        return piece, [], []
    orderly = all(i.ordered for i in here) and not fixed
    if len(news) == 1:
        indices = [_filled_up(here, axis, shape[axis]) for axis in olds]
        joined = [replace(i, axis=news[0], ordered=orderly) for part in indices for i in part]
        return piece, joined if orderly else [i for i in joined if i in _renewed(here, news[0])], []
    if len(olds) == 1 and orderly:
        sizes = [target[axis] for axis in news]
        if [i.size for i in here] == sizes:
            return piece, [replace(i, axis=axis) for i, axis in zip(here, news, strict=True)], []
        if len(here) == 1:
            parts = [
                Index(f"{here[0].name}_{k}", n, axis)
                for k, (n, axis) in enumerate(zip(sizes, news, strict=True))
            ]
            value: Dim = 0
            for part in parts:
                value = value * part.size + symbol_of(part)
            return replace(piece, term=substitute(number(piece), {here[0].name: value})), parts, []
    if len(olds) == 1 and len(fixed) == 1 and all(isinstance(target[axis], int) for axis in news):
        return piece, [], [*_digits(fixed[0][1], news, [int(str(target[axis])) for axis in news])]
    return piece, [replace(i, axis=None, ordered=False) for i in here], []


def _renewed(indices: list[Index], axis: int) -> list[Index]:
    return [replace(i, axis=axis, ordered=False) for i in indices]


def _filled_up(indices: list[Index], axis: int, size: Dim) -> list[Index]:
    """Returns the indices along an axis; if there are none, one that the term does not contain."""
    return [i for i in indices if i.axis == axis] or [Index(f"#d{-axis}", size, axis)]


def _digits(place: int, axes: tuple[int, ...], sizes: list[int]) -> Iterator[tuple[int, int]]:
    for k, axis in enumerate(axes):
        yield axis, place // prod(sizes[k + 1 :]) % sizes[k]


# --- indexing --------------------------------------------------------------------------------------------


def indexed(
    pieces: Pieces, shape: Shape, items: tuple[Any, ...], target: Shape, at_least: AtLeast
) -> Pieces | None:
    """Returns the elements under slices, integers, None, an ellipsis and at most one tensor, of indices or a
    mask; None for other items.
    """
    rank = len(shape)
    spoken = sum(map(_spoken, items))
    if any(isinstance(i, bool) for i in items) or sum(i is Dots for i in items) > 1:
        return None
    if spoken > rank or sum(isinstance(i, Tensor) for i in items) > 1:
        return None
    at = next((place for place, item in enumerate(items) if item is Dots), len(items))
    filled = (*items[:at], *(Slice() for _ in range(rank - spoken)), *items[at + 1 :])
    parts = _partial(filled, shape)
    pieces = _mixed(pieces, parts) if parts else pieces
    found: list[Piece] = []
    by_data = pieces.by_data
    for piece in pieces.pieces:
        if piece.term is None:
            found.append(piece)
            continue
        old, new = -rank, -len(target)
        kept: list[Step] = [(piece, (), {})]
        for item in filled:
            if item is None:
                new += 1
                continue
            stepped: list[Step] = []
            for part, fixed, where in kept:
                steps = _step(part, old, new, item, shape, target, at_least)
                if steps is None:
                    return None
                stepped += [(p, (*fixed, *f), {**where, **w}) for p, f, w in steps]
            kept = stepped
            if isinstance(item, Tensor):
                by_data |= is_any(item) or getattr(of(item), "by_data", False)
            new += _landed(item)
            old += _spoken(item)
        for part, fixed, where in kept:
            indices = tuple(where.get(i.name, i) for i in part.indices)
            found.append(renamed(replace(part, indices=indices, fixed=tuple(sorted(fixed)))))
    return replace(pieces, pieces=tuple(found), by_data=by_data) if found else None


def _partial(items: tuple[Any, ...], shape: Shape) -> set[int]:
    """Returns the axes where only a part may be taken: at one index, from some index on, or as a tensor
    says, unless the data choose any part, or it names each index once.
    """
    axis, parts = -len(shape), set[int]()
    for item in items:
        if isinstance(item, Tensor):
            whole = is_any(item) or is_permutation(item, shape[axis:])
            parts |= set() if whole else {*range(axis, axis + _spoken(item))}
        elif isinstance(item, int | Term) or (isinstance(item, Slice) and item != Slice()):
            parts.add(axis)
        axis += _spoken(item)
    return parts


def is_permutation(index: Any, shape: Shape) -> bool:
    """Returns whether an index takes each position of the first axis once: n valid indices in a row of n are
    all of them, in whatever order, negative ones among them or not.
    """
    if not isinstance(index, Tensor) or index.dtype not in INTEGRAL - {"uint8"} or not shape:
        return False
    pieces = pieces_of(of(index), index.shape)
    if index.shape != shape[:1] or pieces is None or len(pieces.pieces) != 1:
        return False
    (piece,) = pieces.pieces
    if piece.term is None or len(piece.indices) != 1:
        return False
    (runs,) = piece.indices
    whole = pieces == Pieces((Piece(piece.term, indices=(runs,)),))  # nothing is left open of it
    return whole and runs.dense and runs.size == shape[0] and _is_by_one(piece.term, runs)


def _is_by_one(term: Dim, index: Index) -> bool:
    """Returns whether each number is greater by one than the one before, or smaller by one."""
    apart = term - substitute(term, {index.name: 0})
    return apart in (symbol_of(index), -symbol_of(index))


def _mixed(pieces: Pieces, axes: set[int]) -> Pieces:
    """Returns the pieces where only a part of some axes is left.

    Elements in no known order, and several pieces that share their indices, then perhaps no longer take all
    values.
    """
    apart = is_partition(pieces)

    def one(piece: Piece) -> Piece:
        loose = not apart or any(i.axis is None for i in piece.indices)
        return replace(piece, attained=False) if loose and axes - {axis for axis, _ in piece.fixed} else piece

    return replace(pieces, pieces=tuple(p if p.term is None else one(p) for p in pieces.pieces))


def _spoken(item: Any) -> int:
    """Returns how many axes an item consumes."""
    if isinstance(item, Tensor) and item.dtype == "bool":
        return item.rank
    return int(item is not None and item is not Dots)


def _landed(item: Any) -> int:
    """Returns how many axes of the result an item makes."""
    if isinstance(item, Tensor):
        return 1 if item.dtype == "bool" else item.rank
    return int(isinstance(item, Slice))


def is_any(item: Tensor) -> bool:
    """Returns whether the data choose the index freely among the valid ones. A mask counts if it may be true
    at any place for some data.
    """
    return item.elements is None


Step: TypeAlias = tuple[Piece, tuple[tuple[int, int], ...], dict[str, Index]]
"""A piece, its fixed positions along the new axes, and its indices as they run along these."""


def _step(
    piece: Piece, old: int, new: int, item: Any, shape: Shape, target: Shape, at_least: AtLeast
) -> list[Step] | None:
    """Returns the pieces that one item of an index makes of a piece along one axis; empty where the piece
    does not lie there.
    """
    here = [i for i in piece.indices if i.axis == old]
    place = dict(piece.fixed).get(old)
    match item:
        case Slice(None, None, None | 1):
            fixed = () if place is None else ((new, place),)
            return [(piece, fixed, {i.name: replace(i, axis=new) for i in here})]
        case Slice(begin, _, stride):
            if place is not None:
                return _sliced_place(piece, place, new, item, shape[old])
            if not here:
                return [(piece, (), {})]
            offset: Dim = begin if isinstance(begin, int | Term) else 0
            step: Dim = stride if isinstance(stride, int) and stride else 1
            plain = begin in (None, offset) and stride in (None, step)
            if not plain or len(here) > 1 or not here[0].ordered:
                return [_loosened(piece, here)]
            if not at_least(offset, 0):
                offset = maximum(from_front(offset, shape[old], at_least), 0)
            index = replace(here[0], name=f"{here[0].name}s", axis=new, size=target[new])
            term = substitute(number(piece), {here[0].name: offset + step * symbol_of(index)})
            return [_with(piece, here[0], term, (index,))]
        case int() | Term():
            if place is not None:
                size = shape[old]
                if not isinstance(item, int) or not isinstance(size, int):
                    return None
                return [(piece, (), {})] if place == item % size else []
            if not here:
                return [(piece, (), {})]
            if len(here) > 1 or not here[0].ordered:
                return [_loosened(piece, here)]
            value = from_front(item, shape[old], at_least)
            return [(_surely(without(piece, {here[0].name: value}), at_least), (), {})]
        case Tensor():
            axes = range(old, old + _spoken(item))
            if item.dtype != "bool" and (picked := _picked(piece, here, item, new, at_least)) is not None:
                return picked
            return [_scattered(piece, axes, is_any(item))]
    return None


def _surely(piece: Piece, at_least: AtLeast) -> Piece:
    """Returns the piece without doubt where its numbers are smaller than any that was rounded."""
    if piece.doubt is False:
        return piece
    ends = corners(number(piece), piece.indices, at_least)
    small = ends is not None and all(
        at_least(piece.least * piece.over - 1 - sign * end, 0)
        for sign, side in zip((-1, 1), ends, strict=True)
        for end in side
    )
    return replace(piece, doubt=False, least=0) if small else piece


def _scattered(piece: Piece, axes: range, any_of_them: bool) -> Step:
    """Returns the elements that a tensor picks along some axes, in an unknown order: with `any_of_them`, any
    may be picked.
    """
    here = [i for i in piece.indices if i.axis in axes]
    fixed = [place for place in piece.fixed if place[0] in axes]
    part = replace(piece, attained=piece.attained and (any_of_them or not (here or fixed)))
    return part, (), {i.name: replace(i, axis=None, ordered=False) for i in here}


def _with(piece: Piece, index: Index, term: Dim, new: tuple[Index, ...]) -> Step:
    indices = (*(i for i in piece.indices if i is not index), *new)
    return replace(piece, term=term, indices=indices), (), {i.name: i for i in new}


def _loosened(piece: Piece, here: list[Index]) -> Step:
    """Returns some of the elements along an axis, in an unknown order."""
    return replace(piece, attained=False), (), {i.name: replace(i, axis=None, ordered=False) for i in here}


def _sliced_place(piece: Piece, place: int, new: int, item: Slice, size: Dim) -> list[Step] | None:
    bounds = [b for b in (item.start, item.stop, item.step) if isinstance(b, int | None)]
    if not isinstance(size, int) or len(bounds) < 3:
        return None
    left = range(size)[slice(*bounds)]
    return [(piece, ((new, left.index(place)),), {})] if place in left else []


def _picked(
    piece: Piece, here: list[Index], item: Tensor, new: int, at_least: AtLeast
) -> list[Step] | None:
    """Returns the elements at indices that are themselves a function of indices, none negative; or None."""
    if piece.fixed and not here:
        return None
    if not here:
        return [(piece, (), {})]
    places = pieces_of(of(item), item.shape)
    if places is None or places.slack or places.roundings or len(here) > 1 or not here[0].ordered:
        return None
    steps: list[Step] = []
    for place in places.pieces:
        ends = None if place.term is None else corners(place.term, place.indices, at_least)
        if ends is None or place.over != 1 or not all(at_least(low, 0) for low in ends[0]):
            return None
        other = renamed(place, {i.name for i in piece.indices})
        shift = new + item.rank  # its last axis is the one before this in the result
        where = {
            i.name: i if i.axis is None else replace(i, axis=i.axis + shift) for i in other.indices
        }
        fixed = tuple((axis + shift, at) for axis, at in other.fixed)
        term = substitute(number(piece), {here[0].name: number(other)})
        whole, _, _ = _with(piece, here[0], term, other.indices)
        whole = replace(
            whole, given=all_of((piece.given, place.given)), attained=piece.attained and place.attained
        )
        steps.append((whole, fixed, where))
    return steps


def from_front(at: Dim, size: Dim, at_least: AtLeast) -> Dim:
    """Returns `at` where it is not negative, else at + size: min(1, max(0, -at)) is 1 if it is negative, else
    0.
    """
    if at_least(at, 0):
        return at
    return at + size * (1 if at_least(-at, 1) else minimum(1, maximum(0, -at)))
