"""The elements of a tensor after a part of it has been written: `x[:, 0] += 1`, `x[:, 0] = y`, `x[...] = 0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..ir.language import UNTRACKED, Dots, Elements, Piece, Pieces, Slice, Tensor
from ..terms.dims import Dim
from ..terms.formula import Formula, all_of, le
from .elements.dtypes import INTEGRAL, WHOLE
from .elements.functions import MOST_PIECES, AtLeast, without
from .elements.shaping import is_permutation, moved, shuffled, spread, stretched
from .elements.values import fitted, is_data, of, pieces_of, stored
from .laws.arithmetic import beside_data, is_given, union
from .laws.calls import of_number
from .requirements.indices import consumed

FEW: Final = 8
"""At most this many indices of an axis are distinguished."""


def assigned(base: Tensor, index: Any, value: Any, at_least: AtLeast) -> Elements:
    """Returns the elements of `base` after `base[index] = value`.

    They are exact for an index that takes all of `base`, perhaps in another order, or one index of an axis
    with few. For other indices the elements are old or new.
    """
    everywhere = is_permutation(index, base.shape)
    if base.elements is None and not everywhere:
        return _among_data(value, base, at_least)
    items = (Slice(),) * base.rank if everywhere else _items(index, base)
    placed = UNTRACKED if items is None else _placed(base, items, everywhere, value, at_least)
    return _old_or_new(base, value, at_least) if placed is UNTRACKED else placed


def _placed(
    base: Tensor, items: tuple[Any, ...], everywhere: bool, value: Any, at_least: AtLeast
) -> Elements:
    """Returns the elements where all are overwritten, or those at one index of an axis."""
    places = [(axis, item) for axis, item in enumerate(items, -base.rank) if isinstance(item, int)]
    if len(places) > 1:
        return UNTRACKED
    part = tuple(n for n, item in zip(base.shape, items, strict=True) if not isinstance(item, int))
    if isinstance(value, Tensor):
        found = pieces_of(of(value), value.shape)
        fits = value.rank <= len(part)
        found = stretched(found, value.shape, part) if found is not None and fits else None
    else:
        found = of_number(value)
    found = _held(found, base, at_least)
    if found is None or found.roundings:
        return UNTRACKED
    if not places:
        return stored(shuffled(found, {-base.rank}) if everywhere else found, base.shape, at_least)
    ((axis, place),) = places
    return _beside(base, found, axis, place, at_least)


def _held(found: Pieces | None, base: Tensor, at_least: AtLeast) -> Pieces | None:
    """Returns the elements as `base` holds them after they are written into it; None where that is not known.
    """
    if found is None or (base.dtype in WHOLE and any(p.over != 1 for p in found.pieces)):
        return None
    return fitted(found, base.dtype, at_least)


def _old_or_new(base: Tensor, value: Any, at_least: AtLeast) -> Elements:
    """Returns some of the former elements, and some that are written."""
    parts = [pieces_of(of(base), base.shape)]
    if not is_given(value):
        new = pieces_of(of(value), value.shape) if isinstance(value, Tensor) else of_number(value)
        parts.append(_held(new, base, at_least))
    if base.dtype not in INTEGRAL or not all(parts):
        return UNTRACKED
    mixed = union([spread(part) for part in parts if part is not None], attained=False)
    if not isinstance(mixed, Pieces):
        return UNTRACKED
    return stored(beside_data(mixed, attained=False) if is_given(value) else mixed, base.shape, at_least)


def _among_data(value: Any, base: Tensor, at_least: AtLeast) -> Elements:
    """Returns the elements that the user gives, some of them overwritten."""
    if base.dtype not in INTEGRAL or is_given(value):
        return None
    found = pieces_of(of(value), value.shape) if isinstance(value, Tensor) else of_number(value)
    held = _held(found and spread(found), base, at_least)
    return UNTRACKED if held is None else beside_data(held, attained=False)


def seen_in(other: Tensor, part: Tensor, at_least: AtLeast) -> Elements:
    """The elements of a tensor that the user gives, after a tensor of its memory has become `part`."""
    return _among_data(part, other, at_least)


def takes_all(index: Any, base: Tensor) -> Formula:
    """The sizes at which an index may take all of a tensor, whatever the data are."""
    items = index if isinstance(index, tuple) else (index,)
    taken = [consumed(item) for item in items]
    axes: list[int] = []
    axis = 0
    for item, many in zip(items, taken, strict=True):
        axis = base.rank - sum(taken[len(axes) + 1 :]) if item is Dots else axis
        axes.append(axis)
        axis += many
    return all_of(
        _takes_axis(item, base.shape[axis])
        for item, axis in zip(items, axes, strict=True)
        if item is not None and item is not Dots and axis < base.rank
    )


def _takes_axis(item: Any, size: Dim) -> Formula:
    match item:
        case Slice(start, stop, step):
            ends: list[Formula] = [le(size, 1)] if step not in (None, 1) else []
            ends += [le(size, 0)] if isinstance(start, int) and start > 0 else []
            if isinstance(stop, int):
                ends.append(le(size, stop if stop >= 0 else 0))
            return all_of(ends)
        case Tensor():
            return item.dtype != "bool" or not is_data(item)
        case int():
            return le(size, 1)
    return True


def written_through(
    base: Tensor, op: str, named: Mapping[str, Any], part: Tensor, at_least: AtLeast
) -> Elements:
    """Returns the elements of `base` after a view of it, the result of an operator, has become `part`."""
    match op:
        case "getitem":
            return assigned(base, named["index"], part, at_least)
        case "select" if isinstance(named.get("dim"), int):
            before = (Slice(),) * (named["dim"] % base.rank)
            return assigned(base, (*before, named["index"]), part, at_least)
        case "detach" | "alias":
            return part.elements
        case "view" if part.dtype == base.dtype:
            found = pieces_of(of(part), part.shape)
            alike = found is not None and not any(p.indices or p.fixed for p in found.pieces)
            return part.elements if alike else UNTRACKED
    return UNTRACKED


def _items(index: Any, base: Tensor) -> tuple[Any, ...] | None:
    """Returns an item for each axis, a whole slice or a number; None for other indices."""
    items = index if isinstance(index, tuple) else (index,)
    if items.count(Dots) > 1 or not all(
        i is Dots or _from_first(i) or (isinstance(i, int) and not isinstance(i, bool)) for i in items
    ):
        return None
    at = items.index(Dots) if Dots in items else len(items)
    missing = base.rank - sum(i is not Dots for i in items)
    if missing < 0:
        return None
    every = (*items[:at], *(Slice(),) * missing, *items[at + 1 :])
    whole = (i == Slice() or n == 1 for i, n in zip(every, base.shape, strict=True) if isinstance(i, Slice))
    return tuple(Slice() if isinstance(i, Slice) else i for i in every) if all(whole) else None


def _from_first(item: Any) -> bool:
    """Returns whether a slice takes the first index, and others at steps from it, up to the end: of a single
    index it takes all.
    """
    return isinstance(item, Slice) and item.start is None and item.stop is None


def _beside(base: Tensor, found: Pieces, axis: int, place: int, at_least: AtLeast) -> Elements:
    """Returns the elements after a write at one index of an axis; the elements at the other indices stay."""
    size = base.shape[axis]
    old = pieces_of(of(base), base.shape)
    if old is None or not isinstance(size, int) or size > FEW or old.by_data or old.slack or old.roundings:
        return UNTRACKED
    place %= size
    kept: list[Piece] = []
    for piece in old.pieces:
        parts = _apart(piece, axis, size)
        if parts is None:
            return UNTRACKED
        kept += [part for part in parts if dict(part.fixed)[axis] != place]
    new = moved(found, {at: at - (at <= axis) for at in range(-base.rank, 0)})
    put = [
        p if p.term is None else replace(p, fixed=tuple(sorted((*p.fixed, (axis, place)))))
        for p in new.pieces
    ]
    if len(kept) + len(put) > MOST_PIECES:
        return UNTRACKED
    return stored(replace(found, pieces=(*kept, *put)), base.shape, at_least)


def _apart(piece: Piece, axis: int, size: int) -> list[Piece] | None:
    """Returns a piece as one for each index of an axis; None where the positions of its elements are not
    known.
    """
    if piece.term is None:
        return None
    if axis in dict(piece.fixed):
        return [piece]
    here = [i for i in piece.indices if i.axis == axis]
    if len(here) > 1 or any(i.axis is None for i in piece.indices) or not all(i.ordered for i in here):
        return None
    at: list[dict[str, Dim]] = [{i.name: place for i in here} for place in range(size)]
    return [
        replace(without(piece, values), fixed=tuple(sorted((*piece.fixed, (axis, place)))))
        for place, values in enumerate(at)
    ]
