"""Facts about the elements of several results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...ir.language import UNTRACKED, Affine, Elements, Pieces, Slice, Span, Tensor
from ...terms.dims import Dim, maximum
from ..elements.cycles import modulo
from ..elements.functions import AtLeast, corners, divided
from ..elements.shaping import moved, stretched
from ..elements.values import of, pieces_of
from .arithmetic import is_rounded
from .calls import Law, NamedCall
from .makers import chosen, sorted_size
from .moves import all_of_them, items_of, reordered, some_of_them
from .reductions import extreme_of


def _meshed(call: NamedCall) -> Iterable[Elements | Pieces]:
    """Yields the n-th vector along the n-th axis, except that with `xy` the first two are swapped."""
    tensors: tuple[Tensor, ...] = call.named["tensors"]
    axes = list(range(-len(tensors), 0))
    if call.named.get("indexing") == "xy" and len(tensors) > 1:
        axes[:2] = axes[1], axes[0]
    for tensor, axis in zip(tensors, axes, strict=True):
        found = pieces_of(of(tensor), tensor.shape)
        if of(tensor) is None:
            yield None
        else:
            yield UNTRACKED if found is None else moved(found, {-1: axis} if tensor.rank else {})


def _together(call: NamedCall) -> Iterable[Elements | Pieces]:
    for tensor, result in zip(call.named["tensors"], call.result, strict=True):
        found = pieces_of(of(tensor), tensor.shape)
        if of(tensor) is None:
            yield None
        else:
            yield UNTRACKED if found is None else stretched(found, tensor.shape, result.shape) or UNTRACKED


def _split(call: NamedCall) -> Iterable[Elements | Pieces]:
    """Yields consecutive pieces: each begins where the one before it ends."""
    tensor = call.input
    axis, start = call.named.get("dim", 0) % tensor.rank, 0
    for part in call.result:
        item = (*(Slice(),) * axis, Slice(start, start + part.shape[axis], 1))
        yield items_of(replace(call, result=part), item)
        start += part.shape[axis]


def _unbound(call: NamedCall) -> Iterable[Elements | Pieces]:
    """Yields the results of `select` for each index."""
    before = (Slice(),) * (call.named.get("dim", 0) % call.input.rank)
    for place, part in enumerate(call.result):
        yield items_of(replace(call, result=part), (*before, place))


def _with_indices(
    size: Callable[[NamedCall], Dim], values: Law, *, all_occur: bool
) -> Callable[[NamedCall], Any]:
    """Returns a law for values and their indices: any along the dim; each of them, where all are returned."""

    def law(call: NamedCall) -> Iterable[Elements | Pieces]:
        known = of(call.input)
        yield None if known is None else values(replace(call, result=call.result[0]))
        whole = call.op == "topk" and call.result[1].shape == call.input.shape
        yield chosen(call, size(call), all_occur or whole)

    return law


def _axes_of(call: NamedCall) -> Iterable[Elements | Pieces]:
    """Yields the results of `unravel_index`: the index along each axis of a flat index; all of them, for all
    flat indices.
    """
    shape = call.named.get("shape")
    found = call.pieces
    sizes = shape if isinstance(shape, tuple) else (shape,)
    below: Dim = 1
    laws: list[Elements | Pieces] = []
    for n in reversed(sizes):
        laws.append(
            UNTRACKED if found is None or is_rounded(found) else _digit(found, below, n, call.at_least)
        )
        below = below * n
    return reversed(laws)


def _digit(found: Pieces, below: Dim, size: Dim, at_least: AtLeast) -> Elements | Pieces:
    """Returns `x // below % size`."""
    (piece, *others) = found.pieces
    if others or piece.term is None:
        return UNTRACKED
    below, size = (n if at_least(n, 1) else maximum(n, 1) for n in (below, size))  # of 0 there are none
    whole = replace(found, pieces=(replace(piece, term=piece.term // below),))
    ends = corners(piece.term, piece.indices, at_least)
    small = ends is not None and all(at_least(low, 0) for low in ends[0])
    if small and ends is not None and all(at_least(size - 1 - high, 0) for high in ends[1]):
        return whole  # the quotients are no greater
    return divided(whole, lambda p: modulo(p, 0, size, at_least)) or UNTRACKED


def _unique(call: NamedCall) -> Iterable[Elements | Pieces]:
    """Yields the distinct elements; the index of each element among them, if asked for; the number of
    occurrences, which is 1 where all are distinct.
    """
    known = of(call.input)
    first, *others = call.result if isinstance(call.result, tuple) else (call.result,)
    yield None if known is None else all_of_them(replace(call, result=first))
    dim = call.named.get("dim")
    count, distinct = (t.numel if dim is None else t.shape[dim] for t in (call.input, first))
    apart = known is not None and count == distinct
    dense = apart or (call.is_free(call.input) and dim is None)
    indices = Span(0, count - 1, attained=dense, by_data=known is None, dense=dense)
    occurrences = Affine(1) if apart else Span(1, count, attained=False, by_data=known is None)
    only_counts = call.named.get("return_counts") and not call.named.get("return_inverse")
    yield from (occurrences,) if len(others) == 1 and only_counts else (indices, occurrences)[: len(others)]


def _extremes(call: NamedCall) -> Iterable[Elements | Pieces]:
    """Yields the least elements, and the greatest."""
    for part, greatest in zip(call.result, (False, True), strict=True):
        yield extreme_of(greatest)(replace(call, result=part))


SEVERAL: Mapping[str, Callable[[NamedCall], Iterable[Elements | Pieces]]] = {
    "meshgrid": _meshed,
    "broadcast_tensors": _together,
    **dict.fromkeys("split split_with_sizes chunk tensor_split hsplit vsplit dsplit".split(), _split),
    "unbind": _unbound,
    "unravel_index": _axes_of,
    "sort": _with_indices(sorted_size, reordered, all_occur=True),
    "topk": _with_indices(sorted_size, some_of_them, all_occur=False),
    "kthvalue": _with_indices(sorted_size, some_of_them, all_occur=False),
    "mode": _with_indices(sorted_size, some_of_them, all_occur=False),
    "median": _with_indices(sorted_size, some_of_them, all_occur=False),
    "nanmedian": _with_indices(sorted_size, some_of_them, all_occur=False),
    "cummax": _with_indices(sorted_size, some_of_them, all_occur=False),
    "cummin": _with_indices(sorted_size, some_of_them, all_occur=False),
    "max": _with_indices(sorted_size, extreme_of(greatest=True), all_occur=False),
    "min": _with_indices(sorted_size, extreme_of(greatest=False), all_occur=False),
    "aminmax": _extremes,
    **dict.fromkeys(
        "unique unique2 _unique2 unique_consecutive _unique_consecutive unique_dim".split(), _unique
    ),
}
"""Operators with several results, with the facts about each."""
