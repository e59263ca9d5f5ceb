"""Operators that only move elements: reshape, flip, repeat, choose, concatenate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...ir.language import UNTRACKED, Affine, Elements, Piece, Pieces, Slice, Span, Tensor, product, tensors
from ...terms.dims import Dim, substitute
from ...terms.formula import all_of, any_of, ge
from ..elements.functions import along, mapped, number, symbol_of
from ..elements.shaping import indexed, moved, regrouped, shuffled
from ..elements.values import constant, extremes_of, of, pieces_of
from .arithmetic import beside_data, is_given, is_rounded, union
from .calls import Law, NamedCall, of_number


def kept(call: NamedCall) -> Elements | Pieces:
    return of(call.input)


def expanded(call: NamedCall) -> Elements | Pieces:
    return call.operand("input") or UNTRACKED


def permuted(order: Callable[[NamedCall, int], tuple[int, ...]]) -> Law:
    """Returns the law of a permutation: axis k of the result is axis order[k] of the input."""

    def permuted(call: NamedCall) -> Elements | Pieces:
        pieces, rank = call.pieces, call.input.rank
        if pieces is None:
            return UNTRACKED
        return moved(pieces, {old - rank: new - rank for new, old in enumerate(order(call, rank))})

    return permuted


def transposed(call: NamedCall, rank: int) -> tuple[int, ...]:
    order = list(range(rank))
    if rank:
        a, b = call.named["dim0"] % rank, call.named["dim1"] % rank
        order[a], order[b] = order[b], order[a]
    return tuple(order)


def given_order(call: NamedCall, rank: int) -> tuple[int, ...]:
    return tuple(d % rank for d in call.named["dims"])


def last_two(call: NamedCall, rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2) if rank >= 2 else tuple(range(rank))


def moved_axes(call: NamedCall, rank: int) -> tuple[int, ...]:
    if not rank:
        return ()  # of a scalar, whose only axis is moved to its own place
    source, target = (
        [d % rank for d in (v if isinstance(v, tuple) else (v,))]
        for v in (call.named["source"], call.named["destination"])
    )
    order: list[int | None] = [None] * rank
    for s, t in zip(source, target, strict=True):
        order[t] = s
    left = iter([axis for axis in range(rank) if axis not in source])
    return tuple(next(left) if axis is None else axis for axis in order)


def reshaped(call: NamedCall) -> Elements | Pieces:
    pieces = call.pieces
    if pieces is None or call.result.dtype != call.input.dtype:  # `x.view(dtype)` reads other numbers
        return UNTRACKED
    return regrouped(pieces, call.input.shape, call.result.shape)


def reordered(call: NamedCall) -> Elements | Pieces:
    """Returns all the elements, in another order along the axes that a call names, or everywhere."""
    pieces = call.pieces
    if pieces is None:
        return UNTRACKED
    dims, rank = call.named.get("dims", call.named.get("dim")), call.input.rank
    if dims in (None, ()) or rank == 0:
        return shuffled(pieces, None)
    several = dims if isinstance(dims, tuple) else (dims,)
    return shuffled(pieces, {axis % rank - rank for axis in several if type(axis) is int})


def flipped_along(call: NamedCall) -> Elements | Pieces:
    """Returns element n - 1 - i as element i of n."""
    pieces, rank = call.pieces, call.input.rank
    if pieces is None:
        return UNTRACKED
    dims: Any = {"fliplr": (1,), "flipud": (0,)}.get(call.op, call.named.get("dims", ()))
    several = dims if isinstance(dims, tuple) else (dims,)
    axes = {axis % rank - rank for axis in several} if rank else set()

    def flipped(piece: Piece) -> Piece | None:
        here = [i for i in piece.indices if i.axis in axes and i.ordered]
        turned = {i.name: i.size - 1 - symbol_of(i) for i in here}
        fixed = tuple(
            (axis, place)
            for axis, at in piece.fixed
            if (place := _turned(call.input.shape[axis], at, axis in axes)) is not None
        )
        return replace(piece, term=substitute(number(piece), turned), fixed=fixed)

    return mapped(pieces, flipped, keeping=True) or UNTRACKED


def _turned(size: Dim, place: int, flipped: bool) -> int | None:
    """Returns the index of an axis after a flip; None where the size is not a number."""
    if not flipped:
        return place
    return size - 1 - place if isinstance(size, int) else None


def all_of_them(call: NamedCall) -> Elements | Pieces:
    """Returns each element at least once, anywhere."""
    pieces = call.pieces
    return UNTRACKED if pieces is None else shuffled(pieces, None)


def some_of_them(call: NamedCall) -> Elements | Pieces:
    """Returns some of the elements, each any number of times."""
    pieces = call.pieces
    return UNTRACKED if pieces is None else some(pieces)


def some(pieces: Pieces) -> Pieces:
    loose = shuffled(pieces, None)
    if len(loose.pieces) < 2 and all(p.term is not None and not p.indices for p in loose.pieces):
        return loose  # all are the same, or there are none
    return replace(loose, pieces=tuple(replace(p, attained=False) for p in loose.pieces))


def tiled(call: NamedCall) -> Elements | Pieces:
    """Returns the whole tensor several times along some axes, where it is constant along these."""
    tensor, repeats = call.input, call.named.get("repeats", call.named.get("dims"))
    pieces = call.pieces
    if pieces is None:
        return UNTRACKED
    if isinstance(repeats, tuple):
        times = dict(zip(range(-1, -len(repeats) - 1, -1), reversed(repeats), strict=True))
        axes = {i.axis for p in pieces.pieces for i in p.indices}
        axes |= {axis for p in pieces.pieces for axis, _ in p.fixed}
        if all(axis is not None and times.get(axis, 1) == 1 for axis in axes):
            return pieces
    return shuffled(pieces, None) if tensor.rank else pieces


def repeated_each(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of `repeat_interleave`: all, if repeated by a number; some, if by a tensor.

    With k times each, element i of a vector is element i // k of the input.
    """
    repeats, pieces, shape = call.named.get("repeats"), call.pieces, call.input.shape
    if isinstance(repeats, Tensor):
        return some_of_them(call)
    if pieces is None or len(shape) != 1 or not isinstance(repeats, int) or repeats < 1:
        return all_of_them(call)
    longer = along(-1, shape[0] * repeats)

    def each(piece: Piece) -> Piece | None:
        if piece.fixed or [(i.axis, i.ordered, i.size) for i in piece.indices] != [(-1, True, shape[0])]:
            return None
        (index,) = piece.indices
        term = substitute(number(piece), {index.name: symbol_of(longer) // repeats})
        return replace(piece, term=term, indices=(longer,))

    return mapped(pieces, each, keeping=True) or all_of_them(call)


def side_by_side(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of several tensors, one after the other along an axis, or along a new one."""
    tensors = next(v for v in call.named.values() if isinstance(v, tuple))
    parts: list[Pieces] = []
    axis = call.named.get("dim", 0)
    new = call.op == "stack"
    given = any(map(is_given, tensors))
    for place, tensor in enumerate(tensors):
        if is_given(tensor):
            continue
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
    together = union(parts) if parts else UNTRACKED
    return beside_data(together, attained=True) if given and isinstance(together, Pieces) else together


def _beside(found: Pieces, tensor: Tensor, axis: int, call: NamedCall) -> Pieces | None:
    """Returns the elements of one of several tensors along an axis, all along the others."""
    given = () if all(call.at_least(n, 1) for n in tensor.shape) else (ge(product(tensor.shape), 1),)
    loose = shuffled(found, {axis})
    pieces = tuple(
        replace(
            p, given=all_of((p.given, *given)), fixed=tuple(f for f in p.fixed if f[0] != axis)
        )
        for p in loose.pieces
    )
    return replace(found, pieces=pieces) if all_of(given) is not False else None


def overwritten(name: str) -> Law:
    """Returns the law of a write: the elements of the input, some of them overwritten."""

    def overwritten(call: NamedCall) -> Elements | Pieces:
        return _among(call, call.named.get(name))

    return overwritten


def _among(call: NamedCall, value: Any) -> Elements | Pieces:
    old = None if is_given(call.input) else spread_of(call.input)
    if is_given(value):
        unknown = None if is_given(call.input) else UNTRACKED
        return unknown if old is None else beside_data(old, attained=False)
    new = spread_of(value) if isinstance(value, Tensor) else of_number(value)
    if new is None:
        return UNTRACKED
    if is_given(call.input):
        return beside_data(new, attained=False)
    return UNTRACKED if old is None else union([old, new], attained=False)


def spread_of(tensor: Tensor) -> Pieces | None:
    """Returns the same elements at unknown indices."""
    found = pieces_of(of(tensor), tensor.shape)
    return None if found is None else shuffled(found, None)


def anywhere(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of several tensors, at unknown indices."""
    several = [*tensors(tuple(call.named.values()))]
    sized = [spread_of(t) for t in several if not is_given(t)]
    if not sized or any(part is None for part in sized):
        return UNTRACKED if sized else None
    together = union([part for part in sized if part is not None], attained=False)
    if len(sized) < len(several) and isinstance(together, Pieces):
        return beside_data(together, attained=False)
    return together


def padded(call: NamedCall) -> Elements | Pieces:
    """Returns the elements, surrounded by a number, or by elements again.

    Negative padding crops the elements.
    """
    sides = call.named["pad"]
    grows = all(call.at_least(side, 0) for side in sides)
    if call.named.get("mode", "constant") != "constant":
        return None if is_given(call.input) else all_of_them(call) if grows else some_of_them(call)
    value = call.named.get("value")
    number = of_number(0 if value is None else value)
    if number is None:
        return UNTRACKED
    around = replace(number.pieces[0], given=any_of(ge(side, 1) for side in sides))
    if around.given is False:
        return of(call.input) if grows else None if is_given(call.input) else some_of_them(call)
    if is_given(call.input):
        return beside_data(replace(number, pieces=(around,)), attained=True)
    pieces = call.pieces
    if pieces is None:
        return UNTRACKED
    there = () if all(call.at_least(n, 1) for n in call.input.shape) else (ge(product(call.input.shape), 1),)
    kept = shuffled(pieces, {-1 - i // 2 for i in range(len(sides))})
    inside = tuple(
        replace(p, given=all_of((p.given, *there)), attained=p.attained and grows) for p in kept.pieces
    )
    return union([replace(kept, pieces=inside), replace(number, pieces=(around,))])


def padded_together(call: NamedCall) -> Elements | Pieces:
    """Returns the elements of several tensors, and perhaps a number where some are shorter than others."""
    number = of_number(call.named.get("padding_value", 0))
    sequences: tuple[Tensor, ...] = call.named["sequences"]
    parts = [pieces_of(of(one), one.shape) for one in sequences if not is_given(one)]
    if number is None or not all(parts):
        return UNTRACKED
    known = [shuffled(part, None) for part in parts if part is not None]
    together = union([*known, replace(number, pieces=(replace(number.pieces[0], attained=False),))])
    if len(parts) == len(sequences) or not isinstance(together, Pieces):
        return together
    return beside_data(together, attained=True)


def getitem(call: NamedCall) -> Elements | Pieces:
    index = call.named.get("index", call.named.get("indices"))
    return items_of(call, index if isinstance(index, tuple) else (index,))


def items_of(call: NamedCall, items: tuple[Any, ...]) -> Elements | Pieces:
    pieces = call.pieces
    if pieces is None:
        return UNTRACKED
    found = indexed(pieces, call.input.shape, items, call.result.shape, call.at_least)
    if found is not None:
        return found
    return some(pieces)


def _along_axis(call: NamedCall, item: Any) -> Elements | Pieces:
    if not call.input.rank:
        return kept(call)
    return items_of(call, (*(Slice(),) * (call.named.get("dim", 0) % call.input.rank), item))


def sliced(call: NamedCall) -> Elements | Pieces:
    named = call.named
    return _along_axis(call, Slice(named.get("start"), named.get("end"), named.get("step", 1)))


def selected(call: NamedCall) -> Elements | Pieces:
    return _along_axis(call, call.named["index"])


def narrowed(call: NamedCall) -> Elements | Pieces:
    return _along_axis(call, Slice(call.named["start"], None, 1))


def index_select(call: NamedCall) -> Elements | Pieces:
    return _along_axis(call, call.named["index"])


def scattered(call: NamedCall) -> Elements | Pieces:
    """Returns the written elements where the indices are 0, 1, … up to the last, which overwrites everything;
    else some of the written and some of the former elements.
    """
    index, source = call.named["index"], call.named["src"] if "src" in call.named else call.named.get("value")
    if call.named.get("reduce") is not None:
        return UNTRACKED
    if call.result.rank != 1 or index.shape != call.result.shape or index.elements != Affine(0, ((-1, 1),)):
        return _among(call, source)
    if isinstance(source, Tensor):
        return of(source) if source.shape == call.result.shape else UNTRACKED
    return of_number(source) or UNTRACKED


def on_diagonal(call: NamedCall) -> Elements | Pieces:
    """Returns, for a vector, its elements surrounded by zeros; for a matrix, some of its elements."""
    pieces = call.pieces
    if pieces is None or call.input.rank != 1 or call.named.get("diagonal", 0) != 0:
        return UNTRACKED if pieces is None else some(pieces)
    zero = Piece(0, given=ge(call.input.shape[0], 2))
    return union([shuffled(pieces, None), Pieces((zero,))])


def beside_zeros(call: NamedCall) -> Elements | Pieces:
    """Returns some of the elements, and perhaps zeros."""
    pieces = call.pieces
    return UNTRACKED if pieces is None else union([some(pieces), constant(0)], attained=False)


def differences(call: NamedCall) -> Elements | Pieces:
    """Returns the difference of each element to the one before, where it is the same everywhere."""
    pieces, rank = call.pieces, call.input.rank
    if pieces is None or is_rounded(pieces) or call.named.get("n", 1) != 1 or len(call.named) > 3:
        return UNTRACKED
    span = extremes_of(pieces, call.at_least)
    far = UNTRACKED if span is None else Span(span.low - span.high, span.high - span.low, attained=False)
    if len(pieces.pieces) > 1:
        return far
    axis = call.named.get("dim", -1) % rank - rank

    def step(piece: Piece) -> Piece | None:
        here = [i for i in piece.indices if i.axis == axis]
        placed = all(i.axis is not None and i.ordered for i in piece.indices) and not piece.fixed
        if not placed or len(here) > 1 or piece.given is not True:
            return None
        if not here:
            return replace(piece, term=0, indices=())
        i = symbol_of(here[0])
        by = substitute(number(piece), {here[0].name: i + 1}) - number(piece)
        index = replace(here[0], size=here[0].size - 1)
        return replace(piece, term=by, indices=tuple(index if j is here[0] else j for j in piece.indices))

    return mapped(pieces, step) or far
