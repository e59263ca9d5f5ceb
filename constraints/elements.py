"""What sizes say of the elements of index tensors.

`torch.arange(t)` as positions into an embedding of 1024 rows asks that t <= 1024: a condition on sizes that
no shape shows. So tensors whose elements the sizes decide carry them along: as an affine function of the
index, or as a range. Elements that come from the user's data carry nothing, and are taken to be valid.

This stands beside the rules and not in them: `ELEMENTS` says for an operator what becomes of the elements,
`INDICES` which of its arguments are indices into what. An operator in neither leaves integers behind that are
`UNTRACKED`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from msgspec import structs

from . import subscripts
from .dims import Apply, Dim, Term, ceildiv, lone_atom, maximum, minimum
from .formula import Formula, all_of, any_of, eq, ge, gt, le, lt, ne, negate
from .language import (
    UNTRACKED,
    Affine,
    Context,
    Dots,
    Elements,
    Ratio,
    Slice,
    Span,
    Subscripts,
    Tensor,
    Truths,
    product,
)

Named: TypeAlias = Mapping[str, Any]
ElementLaw: TypeAlias = Callable[[Named, Tensor], Elements]
INTEGRAL = frozenset("int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
FOLLOWED = INTEGRAL | {"float32", "float64"}  # positions are counted in floats too, and cast
DIGITS = {"float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to 2 to that power are floats."""


def extremes(tensor: Tensor) -> Span | None:
    """The least and the greatest element, where there is one; None where nothing is known of them.

    An affine function over a box is extreme at a corner: each axis adds step * (n - 1) to one of the two.
    """
    found = elements_of(tensor)
    if isinstance(found, Subscripts):
        return Span(found.added, maximum(*found.shape) - 1 + found.added, attained=False, by_data=True)
    if not isinstance(found, Affine):
        return found if isinstance(found, Span) else None
    low = high = found.start
    for axis, step in found.steps:
        reach = step * (tensor.shape[axis] - 1)
        low, high = (low, high + reach) if step > 0 else (low + reach, high)
    return Span(low, high, attained=True)


def elements_of(tensor: Tensor) -> Elements:
    """What is known of the elements; a condition on data is 0 for some data and 1 for others, one on sizes
    either.
    """
    if tensor.dtype != "bool" or isinstance(tensor.elements, Affine):
        return tensor.elements
    return Span(0, 1, attained=tensor.elements is None)


# --- what becomes of elements ----------------------------------------------------------------------------


def constant(value: Any) -> Elements:
    return Affine(value) if isinstance(value, int | Term) else UNTRACKED


def _arange(named: Named, result: Tensor) -> Elements:
    start, end, step = named.get("start", 0), named.get("end"), named.get("step", 1)
    if end is None:
        start, end = 0, start
    if not isinstance(start, int | Term) or not isinstance(step, int | Term):
        return UNTRACKED
    if isinstance(step, int):
        return Affine(start, ((-1, step),))
    if not isinstance(end, int | Term):
        return UNTRACKED
    # From the start upwards or downwards, as the sign of the step is.
    return Span(minimum(start, end + 1), maximum(start, end - 1), attained=False)


def _same(named: Named, result: Tensor) -> Elements:
    """Also in another dtype. A fraction is cut to an integer, upwards or downwards as its sign is."""
    elements = elements_of(_first(named))
    return UNTRACKED if isinstance(elements, Ratio) and result.dtype in INTEGRAL else elements


def _first(named: Named) -> Tensor:
    found = named.get("input")
    return found if isinstance(found, Tensor) else next(v for v in named.values() if isinstance(v, Tensor))


def _scalar(value: Any) -> Elements:
    """A number, or a tensor, as an operand."""
    if isinstance(value, Tensor):
        return elements_of(value)
    return Affine(value) if isinstance(value, int | Term) else UNTRACKED


def _scaled(elements: Elements, factor: int) -> Elements:
    match elements:
        case Affine(start, steps):
            return Affine(start * factor, tuple((a, s * factor) for a, s in steps if s * factor))
        case Span(low, high, attained):
            return Span(
                *((low * factor, high * factor) if factor >= 0 else (high * factor, low * factor)), attained
            )
        case Ratio(numerator, denominator, roundings):
            return Ratio(numerator * factor, denominator, roundings) if factor in (1, -1) else UNTRACKED
    return elements


def _sum(a: Elements, b: Elements) -> Elements:
    """Axes count from the end, so broadcasting keeps them. The sum of two affine functions is affine."""
    if isinstance(a, Affine) and isinstance(b, Affine):
        steps = dict(a.steps)
        for axis, step in b.steps:
            steps[axis] = steps.get(axis, 0) + step
        return Affine(a.start + b.start, tuple((k, s) for k, s in sorted(steps.items()) if s))
    if isinstance(b, Span | Ratio):
        a, b = b, a
    if isinstance(a, Ratio):
        match b:
            case Affine(int() as more, ()) if abs(more) <= SMALL:
                return Ratio(a.numerator + more * a.denominator, a.denominator, a.roundings + 1)
        return UNTRACKED
    if isinstance(a, Span) and isinstance(b, Affine) and not b.steps:
        return Span(a.low + b.start, a.high + b.start, a.attained)
    return UNTRACKED


def _stretched(tensor: Tensor, result: Tensor) -> Elements:
    """Broadcasting: along an axis of size 1 that is stretched there is only one element to repeat."""
    elements = elements_of(tensor)
    if isinstance(elements, Affine):
        kept = tuple((a, s) for a, s in elements.steps if result.shape[a] == tensor.shape[a])
        if all(tensor.shape[a] == 1 for a, s in elements.steps if (a, s) not in kept):
            return Affine(elements.start, kept)
        return UNTRACKED
    return elements


def _add(sign: int) -> Callable[[Named, Tensor], Elements]:
    def add(named: Named, result: Tensor) -> Elements:
        alpha = named.get("alpha", 1)
        if not isinstance(alpha, int):
            return UNTRACKED
        input, other = (_operand(named[name], result) for name in ("input", "other"))
        other = _scaled(other, sign * alpha)
        found = _sum(input, other)
        return _between(input, other, result) if found is UNTRACKED else found

    return add


def _between(a: Elements, b: Elements, result: Tensor) -> Elements:
    """Between what a sum of integers lies; which of them meet which is not known."""
    if result.dtype not in INTEGRAL:
        return UNTRACKED
    one, other = (extremes(structs.replace(result, elements=side)) for side in (a, b))
    if one is None or other is None:
        return UNTRACKED
    return Span(one.low + other.low, one.high + other.high, attained=False)


def _operand(value: Any, result: Tensor) -> Elements:
    return _stretched(value, result) if isinstance(value, Tensor) else _scalar(value)


def _mul(named: Named, result: Tensor) -> Elements:
    a, b = (_operand(named[name], result) for name in ("input", "other"))
    for x, y in ((a, b), (b, a)):
        if isinstance(y, Affine) and not y.steps and isinstance(y.start, int):
            return _scaled(x, y.start)
    match a, b:
        case Affine(this, ()), Affine(that, ()) if result.dtype == "int64":
            return Affine(this * that)
    if isinstance(a, Span) and isinstance(b, Span) and a.low == b.low == 0:
        return Span(0, a.high * b.high, a.attained and b.attained)  # both grow with the data from 0
    return UNTRACKED


def _cumsum(named: Named, result: Tensor) -> Elements:
    """Sums of the first i + 1 elements: of a constant, c + c*i; of elements between 0 and h, from 0 to h*n.
    """
    tensor = _first(named)
    elements, dim = elements_of(tensor), named["dim"]
    if not tensor.shape:
        return elements
    if isinstance(elements, Affine) and not elements.steps and isinstance(elements.start, int):
        return Affine(elements.start, ((dim % tensor.rank - tensor.rank, elements.start),))
    if isinstance(elements, Span) and elements.low == 0:
        return Span(0, elements.high * tensor.shape[dim], elements.attained)
    return UNTRACKED


def _monotone(law: Callable[[Dim], Dim]) -> Callable[[Tensor], Elements]:
    """A growing function takes extremes to extremes."""

    def apply(tensor: Tensor) -> Elements:
        span = extremes(tensor)
        if span is None:
            return UNTRACKED
        if span.low == span.high:
            return Affine(law(span.low))
        return Span(law(span.low), law(span.high), span.attained)

    return apply


def _floor_divide(named: Named, result: Tensor) -> Elements:
    tensor, divisor = named["input"], named["other"]
    if isinstance(tensor, Tensor) and isinstance(divisor, int) and divisor > 0:
        return _monotone(lambda d: d // divisor)(tensor)
    return UNTRACKED


def _summed(named: Named, result: Tensor) -> Elements:
    """A sum of n elements between 0 and h is between 0 and n*h: a count of what a mask takes, for one. Of
    integers that are all h it is n*h; floats are rounded.
    """
    tensor = _first(named)
    span, dim = extremes(tensor), named.get("dim")
    if span is None or tensor.rank == 0:
        return UNTRACKED
    axes = range(tensor.rank) if dim in (None, ()) else dim if isinstance(dim, tuple) else (dim,)
    count = product([tensor.shape[axis] for axis in axes])
    if span.low == span.high and result.dtype == "int64" and tensor.dtype in (*INTEGRAL, "bool"):
        return Affine(span.low * count)
    return Span(0, span.high * count, span.attained) if span.low == 0 else UNTRACKED


def _greatest(named: Named, result: Tensor) -> Elements:
    """The greatest element, or the least, is between them."""
    span = extremes(_first(named))
    return UNTRACKED if span is None else Span(span.low, span.high, attained=False)


def _extreme(greatest: bool) -> ElementLaw:
    """The greatest element, or the least, along some axes or all of them. `start + sum of step * i` has it at
    a corner: each axis that goes adds step * (n - 1), or nothing, whichever is more. Of no elements there is
    none, and torch refuses.
    """

    def extreme(named: Named, result: Tensor) -> Elements:
        tensor, dim = _first(named), named.get("dim")
        rank, elements = tensor.rank, tensor.elements
        if isinstance(dim, Tensor):  # `torch.max(x, y)`
            return _of_two(greatest)({"input": tensor, "other": dim}, result)
        if not isinstance(elements, Affine):
            return _greatest(named, result)
        axes = range(rank) if dim in (None, ()) else dim if isinstance(dim, tuple) else (dim,)
        gone = {axis % rank for axis in axes} if rank else set()
        kept = [axis for axis in range(rank) if axis not in gone]
        start, steps = elements.start, []
        for axis, step in elements.steps:
            at = axis % rank
            if at not in gone:
                steps.append((axis if result.rank == rank else kept.index(at) - len(kept), step))
            elif (step > 0) == greatest:
                start = start + step * (tensor.shape[at] - 1)
        return Affine(start, tuple(steps))

    return extreme


def _div(named: Named, result: Tensor) -> Elements:
    """Of what is not negative, a quotient rounded to zero is rounded down, too."""
    span = extremes(named["input"]) if isinstance(named["input"], Tensor) else None
    rounding = named.get("rounding_mode")
    if rounding is None:
        return _quotient(_scalar(named["input"]), one_value(named["other"]))
    if rounding == "floor" or (rounding == "trunc" and span is not None and not _from_the_end(span.low)):
        return _floor_divide(named, result)
    return UNTRACKED


def _quotient(elements: Elements, divisor: int | None) -> Elements:
    """Of sizes that are floats, or become such, and a number."""
    match elements:
        case Affine(start, ()) if divisor is not None and 0 < divisor <= SMALL:
            return Ratio(start, divisor, roundings=2)
    return UNTRACKED


SMALL = 1 << 10
"""The largest number by which fractions are moved and divided."""


def _whole(law: Callable[[Dim, int], Dim]) -> ElementLaw:
    """An integer next to a fraction. An integer is itself, in whatever dtype."""

    def whole(named: Named, result: Tensor) -> Elements:
        match _first(named).elements:
            case Ratio(numerator, denominator):
                return Affine(law(numerator, denominator))
            case Affine() | Span() as elements:
                return elements
        return UNTRACKED

    return whole


def require_exact(c: Context, op: str, named: Named) -> None:
    """Rounded r times, n/d has the floor and the ceiling of n/d, if r * (|n| + 2*SMALL*r*d) < 2**b.

    Each rounding errs by 2**-b of a number that is at most |n|/d + 2*SMALL*r, since what is added is at most
    SMALL. All together that is less than 1/d, as far as n/d is from an integer, if it is none; and if it is
    one, nothing is rounded: it is below 2**b, with all that it came from.
    """
    if op not in ("ceil", "floor"):
        return
    match _first(named):
        case Tensor(_, dtype, _, Ratio(n, d, r)) if dtype in DIGITS:
            most = ((1 << DIGITS[dtype]) - 1) // r - 2 * SMALL * r * d
            if not c.at_least(most - n, 0) or not c.at_least(most + n, 0):
                c.approximate(f"the rounding of {n} / {d} is left aside, which matters beyond {most}")


def _drawn(named: Named, result: Tensor) -> Elements:
    """`multinomial`: which of the categories, by chance."""
    return Span(0, _first(named).shape[-1] - 1, attained=False)


def _given(named: Named, result: Tensor) -> Elements:
    """`torch.tensor(n)`"""
    value = named["data"] if "data" in named else named.get("s")
    return elements_of(value) if isinstance(value, Tensor) else constant(value)


def _remainder(named: Named, result: Tensor) -> Elements:
    """0 <= x % k <= k - 1; not every value need occur."""
    divisor = named["other"]
    return Span(0, divisor - 1, attained=False) if isinstance(divisor, int) and divisor > 0 else UNTRACKED


def _clamp(named: Named, result: Tensor) -> Elements:
    low, high = named.get("min"), named.get("max")
    if not all(isinstance(bound, int | Term | None) for bound in (low, high)):
        return UNTRACKED

    def law(d: Dim) -> Dim:
        raised = d if low is None else maximum(d, low)
        return raised if high is None else minimum(raised, high)

    return _monotone(law)(_first(named))


def _united(named: Named, result: Tensor) -> Elements:
    """The elements of several tensors side by side (`cat`, `stack`)."""
    spans = [
        extremes(t) for t in next(v for v in named.values() if isinstance(v, tuple)) if isinstance(t, Tensor)
    ]
    known = [s for s in spans if s is not None]
    if len(known) < len(spans):
        return UNTRACKED
    attained = all(s.attained for s in known)
    return Span(minimum(*(s.low for s in known)), maximum(*(s.high for s in known)), attained)


def _chosen(named: Named, result: Tensor) -> Elements:
    """Elements of either of two operands (`where`, `minimum`, `maximum`): between the outermost of all."""
    operands = [named.get("input"), named.get("other")]
    spans = [
        extremes(v) if isinstance(v, Tensor) else Span(v, v, True)
        for v in operands
        if isinstance(v, int | Term | Tensor)
    ]
    known = [s for s in spans if s is not None]
    if len(known) < 2:
        return UNTRACKED
    return Span(minimum(*(s.low for s in known)), maximum(*(s.high for s in known)), attained=False)


def _of_two(greatest: bool) -> ElementLaw:
    """The greater of two elements, or the lesser; with one that is the same everywhere it grows with the
    other.
    """
    law = maximum if greatest else minimum

    def of_two(named: Named, result: Tensor) -> Elements:
        for this, that in (("input", "other"), ("other", "input")):
            limit, tensor = _scalar(named[that]), named[this]
            if isinstance(limit, Affine) and not limit.steps and isinstance(tensor, Tensor):
                return _monotone(partial(law, limit.start))(tensor)
        return _chosen(named, result)

    return of_two


def _moved(order: Callable[[Named, int], tuple[int, ...]]) -> Callable[[Named, Tensor], Elements]:
    """Permutations: axis k of the result is axis order[k] of the input."""

    def move(named: Named, result: Tensor) -> Elements:
        tensor = _first(named)
        if not isinstance(tensor.elements, Affine):
            return tensor.elements
        rank = tensor.rank
        places = {old: new for new, old in enumerate(order(named, rank))}
        steps = ((places[axis % rank] - rank, step) for axis, step in tensor.elements.steps)
        return Affine(tensor.elements.start, tuple(sorted(steps)))

    return move


def _transposed(named: Named, rank: int) -> tuple[int, ...]:
    order = list(range(rank))
    a, b = named["dim0"] % rank, named["dim1"] % rank
    order[a], order[b] = order[b], order[a]
    return tuple(order)


def _permuted(named: Named, rank: int) -> tuple[int, ...]:
    return tuple(d % rank for d in named["dims"])


def _reshaped(named: Named, result: Tensor) -> Elements:
    """Axes of size 1 come and go; a reshape that mixes other axes leaves an affine function only if it is
    constant.
    """
    tensor = _first(named)
    elements = tensor.elements
    if not isinstance(elements, Affine) or not elements.steps:
        return elements
    old = [i for i, n in enumerate(tensor.shape) if n != 1]
    new = [i for i, n in enumerate(result.shape) if n != 1]
    if [tensor.shape[i] for i in old] == [result.shape[i] for i in new]:
        places = dict(zip(old, new, strict=True))
        steps = (
            (places[a % tensor.rank] - result.rank, s) for a, s in elements.steps if a % tensor.rank in places
        )
        return Affine(elements.start, tuple(steps))
    span = extremes(tensor)
    return span if span is not None else UNTRACKED


def _repeated(named: Named, result: Tensor) -> Elements:
    return extremes(_first(named)) or UNTRACKED


def _some(named: Named, result: Tensor) -> Elements:
    """Some of the elements, each as often as may be."""
    match extremes(_first(named)):
        case Span(low, high):
            return Affine(low) if low == high else Span(low, high, attained=False)
    return UNTRACKED


def _tiled(named: Named, result: Tensor) -> Elements:
    """The whole several times along some axes, where it is the same all along these."""
    tensor, repeats = _first(named), named.get("repeats", named.get("dims"))
    if isinstance(tensor.elements, Affine) and isinstance(repeats, tuple):
        times = dict(zip(range(-1, -len(repeats) - 1, -1), reversed(repeats), strict=True))
        steps = tuple((a, step) for a, step in tensor.elements.steps if tensor.shape[a] != 1)
        if all(times.get(axis, 1) == 1 for axis, _ in steps):
            return Affine(tensor.elements.start, steps)
    return _repeated(named, result)


def indexed_elements(tensor: Tensor, items: tuple[Any, ...]) -> Elements:
    """`start + step * i` under slices, integers, None and an ellipsis. Other items leave a range.

    A slice `a:` with a >= 0 moves the start by a steps (where a is beyond the end, nothing is left to speak
    of); `-k:` starts at max(n - k, 0).
    """
    elements = tensor.elements
    if not isinstance(elements, Affine):
        if all(map(_is_whole, items)) or not isinstance(elements, Span):
            return elements
        return replace(elements, attained=False)
    steps = {axis % tensor.rank: step for axis, step in elements.steps}
    spoken = sum(i is not None and i is not Dots for i in items)
    if Dots in items:
        at = items.index(Dots)
        items = (*items[:at], *(Slice() for _ in range(tensor.rank - spoken)), *items[at + 1 :])
    items = (*items, *(Slice() for _ in range(tensor.rank - spoken if Dots not in items else 0)))
    start, axis, kept = elements.start, 0, []
    for item in items:
        if item is None:
            kept.append(0)
            continue
        if axis >= tensor.rank:
            break
        step, size = steps.get(axis, 0), tensor.shape[axis]
        axis += 1
        match item:
            case Slice(begin, _, stride) if isinstance(begin, int | Term | None) and isinstance(
                stride, int | None
            ):
                offset: Dim = 0 if begin is None else begin
                if _from_the_end(offset):
                    offset = maximum(size + offset, 0)
                start = start + step * offset
                kept.append(step * (stride or 1))
            case int() | Term() if not isinstance(item, bool):
                start = start + step * (size + item if _from_the_end(item) else item)
            case _:
                return UNTRACKED
    rank = len(kept)
    return Affine(start, tuple((i - rank, step) for i, step in enumerate(kept) if step))


def _from_the_end(index: Dim) -> bool:
    """Is the index negative? Of a term over sizes, where each of its coefficients is (`-t`)."""
    return index < 0 if isinstance(index, int) else all(factor < 0 for _, factor in index.terms)


def _getitem(named: Named, result: Tensor) -> Elements:
    index = named["index"]
    items = index if isinstance(index, tuple) else (index,)
    found = indexed_elements(_first(named), items)
    if found is not UNTRACKED:
        return found
    # A mask of data is true at any place for some data.
    masked = all(_is_whole(item) or _is_mask_of_data(item) for item in items)
    return _repeated(named, result) if masked else _some(named, result)


def _scattered(named: Named, result: Tensor) -> Elements:
    """Written to place i is element i: those that are written, and no others."""
    index, source = named["index"], named["src"] if "src" in named else named.get("value")
    if result.rank != 1 or index.shape != result.shape or index.elements != Affine(0, ((-1, 1),)):
        return UNTRACKED
    if named.get("reduce") is not None or (isinstance(source, Tensor) and source.shape != result.shape):
        return UNTRACKED
    return _operand(source, result)


def _is_whole(item: object) -> bool:
    """Does an item of an index leave out nothing?"""
    return item is None or item is Dots or item == Slice()


def _is_mask_of_data(item: object) -> bool:
    return isinstance(item, Tensor) and item.dtype == "bool" and item.elements is None


def _slice(named: Named, result: Tensor) -> Elements:
    tensor = _first(named)
    before = (Slice(),) * (named.get("dim", 0) % tensor.rank)
    return indexed_elements(
        tensor, (*before, Slice(named.get("start"), named.get("end"), named.get("step", 1)))
    )


def _select(named: Named, result: Tensor) -> Elements:
    tensor = _first(named)
    return indexed_elements(tensor, (*(Slice(),) * (named["dim"] % tensor.rank), named["index"]))


def _narrow(named: Named, result: Tensor) -> Elements:
    tensor = _first(named)
    return indexed_elements(
        tensor, (*(Slice(),) * (named["dim"] % tensor.rank), Slice(named["start"], None, 1))
    )


def _meshed(named: Named, results: tuple[Tensor, ...]) -> Iterator[Elements]:
    """Of the n-th vector along the n-th axis, but for `xy`, with which the first two change places."""
    tensors: tuple[Tensor, ...] = named["tensors"]
    axes = list(range(-len(tensors), 0))
    if named.get("indexing") == "xy" and len(tensors) > 1:
        axes[:2] = axes[1], axes[0]
    for tensor, axis in zip(tensors, axes, strict=True):
        found = elements_of(tensor)
        if isinstance(found, Affine):
            found = Affine(found.start, tuple((axis, step) for _, step in found.steps))
        yield found


def _split(named: Named, results: tuple[Tensor, ...]) -> Iterator[Elements]:
    """Each piece goes on where the one before it ends."""
    tensor = _first(named)
    axis, start = named.get("dim", 0) % tensor.rank - tensor.rank, 0
    for piece in results:
        found = elements_of(tensor)
        if isinstance(found, Affine):
            yield Affine(found.start + dict(found.steps).get(axis, 0) * start, found.steps)
        else:
            yield replace(found, attained=False) if isinstance(found, Span) else found
        start += piece.shape[axis]


def _unbound(named: Named, results: tuple[Tensor, ...]) -> Iterator[Elements]:
    """As `select` has each of them."""
    tensor = _first(named)
    before = (Slice(),) * (named.get("dim", 0) % tensor.rank)
    return (indexed_elements(tensor, (*before, place)) for place in range(len(results)))


PIECES: Mapping[str, Callable[[Named, tuple[Tensor, ...]], Iterable[Elements]]] = {
    "meshgrid": _meshed,
    "broadcast_tensors": lambda named, results: map(_stretched, named["tensors"], results),
    **dict.fromkeys("split split_with_sizes chunk".split(), _split),
    "unbind": _unbound,
}
"""Operators with several results, whose elements are those of their arguments."""


ELEMENTS: Mapping[str, ElementLaw] = {
    "arange": _arange,
    **dict.fromkeys("tensor as_tensor scalar_tensor".split(), _given),
    **dict.fromkeys("zeros zeros_like new_zeros".split(), lambda named, result: Affine(0)),
    **dict.fromkeys("ones ones_like new_ones".split(), lambda named, result: Affine(1)),
    **dict.fromkeys(
        "full full_like new_full".split(), lambda named, result: constant(named.get("fill_value"))
    ),
    **dict.fromkeys(
        "to _to_copy type type_as long int short float double clone contiguous detach alias lift_fresh_copy "
        "cpu".split(),
        _same,
    ),
    "ceil": _whole(ceildiv),
    "floor": _whole(operator.floordiv),
    **dict.fromkeys(
        "expand expand_as broadcast_to".split(), lambda named, result: _stretched(_first(named), result)
    ),
    **dict.fromkeys(
        "unsqueeze squeeze view reshape view_as reshape_as flatten unflatten ravel".split(), _reshaped
    ),
    "transpose": _moved(_transposed),
    "permute": _moved(_permuted),
    **dict.fromkeys(("repeat", "tile"), _tiled),
    **{f"upsample_nearest{n}d": _some for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": _some for n in (1, 2, 3)},
    "repeat_interleave": lambda named, result: (
        _some(named, result) if isinstance(named.get("repeats"), Tensor) else _repeated(named, result)
    ),
    **dict.fromkeys("index_select gather take_along_dim".split(), _some),
    "scatter": _scattered,
    **dict.fromkeys(("T", "t"), _moved(lambda named, rank: tuple(range(rank))[::-1])),
    **dict.fromkeys("flip roll mT movedim".split(), _repeated),
    "add": _add(1),
    "sub": _add(-1),
    "rsub": lambda named, result: _sum(
        _operand(named["other"], result), _scaled(_operand(named["input"], result), -named.get("alpha", 1))
    ),
    "mul": _mul,
    "cumsum": _cumsum,
    "multinomial": _drawn,
    "one_hot": lambda named, result: Span(0, 1, attained=False),
    "sum": _summed,
    **dict.fromkeys("amax max".split(), _extreme(greatest=True)),
    **dict.fromkeys("amin min".split(), _extreme(greatest=False)),
    "neg": lambda named, result: _scaled(_first(named).elements, -1),
    "floor_divide": _floor_divide,
    "div": _div,
    "remainder": _remainder,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "where": _chosen,
    "maximum": _of_two(greatest=True),
    "minimum": _of_two(greatest=False),
    **dict.fromkeys("cat stack".split(), _united),
    "getitem": _getitem,
    "slice": _slice,
    "select": _select,
    "narrow": _narrow,
    "prims::iota": lambda named, result: Affine(named["start"], ((-1, named["step"]),)),
    "prims::convert_element_type": _same,
}


DRAWN = frozenset("rand randn normal empty".split())
"""What makes data of sizes."""


SHAPED_AS = frozenset("expand_as view_as reshape_as type_as".split())
"""What takes a shape, or a dtype, of its other argument, and nothing else."""
TAKING = frozenset("getitem index_select gather take_along_dim masked_select".split())
"""What gives some of the elements of its first argument, as its other arguments say."""


# A mask that the program itself makes of constants: `torch.ones(b, t).bool()` is true everywhere.

MADE = frozenset("ones ones_like new_ones zeros zeros_like new_zeros full full_like new_full".split())
KEPT = frozenset(
    "to _to_copy type bool clone contiguous detach alias expand expand_as unsqueeze squeeze view reshape "
    "flatten transpose permute getitem slice select narrow repeat".split()
)
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
    """What all elements are, where that is a number; a number is itself."""
    found = _one_dim(tensor)
    return int(found) if isinstance(found, int) else None


def _one_dim(tensor: Any) -> Dim | None:
    """What all elements are, where sizes say it; a size is itself. In floats only numbers are certain."""
    match tensor:
        case int() | Term():
            return tensor
        case Tensor(_, dtype, _, Affine(value, ())) if dtype == "int64" or isinstance(value, int):
            return value
    return None


def _truths_of(tensor: Any) -> Truths | None:
    """Whether the elements are true, or other than 0, where sizes decide it."""
    if isinstance(tensor, Tensor) and isinstance(tensor.elements, Truths):
        return tensor.elements
    value = _one_dim(tensor)
    return None if value is None else Truths(ne(value, 0), ne(value, 0))


def whether_some(tensor: Tensor) -> Formula | None:
    """Is some element true, of those that there are? None where that is not known."""
    found = _truths_of(tensor)
    return None if found is None else found.some


def _truths(op: str, named: Named, result: Tensor) -> Truths | None:
    """What sizes say of the elements of a mask; None where data decide them, or it is not known how."""
    tensors = [*_tensors(named.values())]
    if op in MADE:
        return _truths_of(structs.replace(result, elements=ELEMENTS[op](named, result)))
    if op in KEPT and len(tensors) == 1:
        found = _truths_of(tensors[0])
        return None if found is None or (op in PARTS and found.some != found.every) else found
    if op in COMPARISONS:
        return _compared(op, named["input"], named["other"])
    if op in NEGATIONS:
        found = _truths_of(named["input"])
        return None if found is None else Truths(negate(found.every), negate(found.some))
    if op in CONNECTIVES:
        return _joined(CONNECTIVES[op], *(_truths_of(named[name]) for name in ("input", "other")))
    if op in ("all", "any") and len(tensors) == 1 and result.rank == 0:
        found, count = _truths_of(tensors[0]), product(tensors[0].shape)
        if found is not None:
            every, some = any_of((found.every, eq(count, 0))), all_of((found.some, ge(count, 1)))
            return Truths(every, every) if op == "all" else Truths(some, some)
    return None


def _compared(op: str, left: Any, right: Any) -> Truths | None:
    """An inequality with what is the same everywhere has its say at the extremes of the other side."""
    a, b = _one_dim(left), _one_dim(right)
    if a is not None and b is not None:
        return Truths(COMPARISONS[op](a, b), COMPARISONS[op](a, b))
    if b is None and a is not None:
        op, left, b = MIRRORED[op], right, a
    span = extremes(left) if isinstance(left, Tensor) and left.dtype == "int64" else None
    if b is None or span is None or op in ("eq", "ne"):
        return None
    low, high = COMPARISONS[op](span.low, b), COMPARISONS[op](span.high, b)
    found = Truths(low, high) if op in ("lt", "le") else Truths(high, low)
    certain = found.every is True or found.some is False
    return found if span.attained or certain else None


def _joined(
    connective: Callable[[Iterable[Formula]], Formula], first: Truths | None, second: Truths | None
) -> Truths | None:
    """Of two masks, one of which has the same element everywhere."""
    if first is None or second is None or (first.some != first.every and second.some != second.every):
        return None
    return Truths(connective((first.some, second.some)), connective((first.every, second.every)))


def with_elements(op: str, named: Named, result: Any) -> Any:
    """The result with what is known of its elements, where sizes alone decide them, or bound them."""
    places = subscripts.follow(op, named, result)
    if places is not None:
        return places
    known = type(result) is Tensor and result.elements is not None
    if known and any(result is value for value in named.values()):
        result = structs.replace(result, elements=None)  # a rule has given an argument back as it was
    if isinstance(result, Tensor) and result.dtype == "bool":
        truths = _truths(op, named, result)
        if truths is not None:
            some, every = truths.some, truths.every
            same = isinstance(some, bool) and some == every
            return structs.replace(result, elements=Affine(int(some is True)) if same else truths)
        sources = [*_tensors(named.values())]
        decided = bool(sources) and not any(map(_is_data, sources))
        return structs.replace(result, elements=UNTRACKED) if decided else result
    several = isinstance(result, tuple) and any(isinstance(r, Tensor) and r.dtype in FOLLOWED for r in result)
    if not several and (not isinstance(result, Tensor) or result.dtype not in FOLLOWED):
        return result
    if several and op in PIECES:
        return tuple(map(_holding, result, PIECES[op](named, result)))
    input = named.get("input")
    template = input if op in MADE else named.get("other") if op in SHAPED_AS else None
    if op in DRAWN and result.dtype not in INTEGRAL:
        return result
    on_data = type(input) is Tensor and input is not template and elements_of(input) is None
    law = ELEMENTS.get(op)
    sources = [] if on_data else [t for t in _tensors(named.values()) if t is not template]
    if on_data or any(elements_of(t) is None for t in sources):
        one = _taken_from(op, named)
        return result if one is None else structs.replace(result, elements=Affine(one))
    if (several or law is None) and all(t.dtype == "bool" and _is_data(t) for t in sources):
        return result  # places in a mask
    if several:
        return tuple(_untracked(part) for part in result) if sources else result
    found = UNTRACKED if law is None or any(t.elements is UNTRACKED for t in sources) else law(named, result)
    if isinstance(found, Span) and any(map(_is_data, sources)):
        found = replace(found, by_data=True)
    return Tensor(result.shape, result.dtype, result.layout, found)


def _taken_from(op: str, named: Named) -> Dim | None:
    """What all elements are that a call takes from among those of its first argument, where these are all
    the same: that data decide which of them are taken makes no difference.
    """
    one = _one_dim(named.get("input")) if op in TAKING else None
    return one if isinstance(one, int) else None


def _is_data(tensor: Tensor) -> bool:
    """Does the data decide the elements, within bounds perhaps?"""
    known = tensor.elements
    return known is None or isinstance(known, Subscripts) or (isinstance(known, Span) and known.by_data)


def _holding(part: Tensor, elements: Elements) -> Tensor:
    """One of several results, with elements of which this is known."""
    return structs.replace(part, elements=elements) if part.dtype in FOLLOWED else part


def _untracked(part: Any) -> Any:
    """One of several results, of which nothing is followed."""
    follows = isinstance(part, Tensor) and part.dtype in FOLLOWED and part.elements is None
    return structs.replace(part, elements=UNTRACKED) if follows else part


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple):
            yield from _tensors(value)


# --- indices into something ------------------------------------------------------------------------------


def _embedding(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    weight = named["weight"]
    if weight.shape:
        yield named["input"] if "input" in named else named["indices"], weight.shape[0], False


def _bags(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    """Offsets are places in the indices, or their end."""
    yield from _embedding(named)
    offsets, indices = named.get("offsets"), named["input"] if "input" in named else named["indices"]
    if isinstance(offsets, Tensor) and indices.rank == 1:
        yield offsets, indices.shape[0] + 1, False


def _renormed(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    if named["input"].shape:
        yield named["indices"], named["input"].shape[0], False


def _along_dim(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    tensor = _first(named)
    index = named.get("index", named.get("indices"))
    dim = named.get("dim")
    if isinstance(index, Tensor) and isinstance(dim, int) and -tensor.rank <= dim < tensor.rank:
        yield index, tensor.shape[dim], False


def _flat(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    """All elements are counted, whatever the dims (`take`, `put`)."""
    yield named["index"], _first(named).numel, True


def _hot(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    classes = named.get("num_classes", -1)
    if isinstance(classes, int | Term) and classes != -1:
        yield named["input"], classes, False


def _margins(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    if named["input"].shape:
        yield named["target"], named["input"].shape[-1], False


def _classes(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    """Classes of a loss, but for the one that it ignores."""
    input, target, ignored = named["input"], named["target"], named.get("ignore_index", -100)
    if target.dtype not in INTEGRAL or not input.shape or one_value(target) == ignored:
        return
    span = extremes(target)
    if span is None or not isinstance(span.low, int) or not isinstance(ignored, int) or ignored < span.low:
        yield target, input.shape[min(1, input.rank - 1)], False


def _items(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    tensor = named.get("input")
    if not isinstance(tensor, Tensor):
        return
    index = named["index"] if "index" in named else named["indices"]
    items = index if isinstance(index, tuple) else (index,)
    axis = 0
    for place, item in enumerate(items):
        if item is Dots:
            axis = tensor.rank - sum(map(_consumed, items[place + 1 :]))
        elif isinstance(item, Tensor) and item.dtype == "bool":
            axis += item.rank
        elif item is not None or "indices" in named:
            if isinstance(item, Tensor) and 0 <= axis < tensor.rank:
                yield item, tensor.shape[axis], True
            axis += 1


def _consumed(item: object) -> int:
    """How many dims an item of an index stands for."""
    return item.rank if isinstance(item, Tensor) and item.dtype == "bool" else int(item is not None)


INDICES: Mapping[str, Callable[[Named], Iterator[tuple[Tensor, Dim, bool]]]] = {
    **dict.fromkeys("embedding aten_embedding".split(), _embedding),
    **dict.fromkeys("embedding_bag _embedding_bag".split(), _bags),
    "embedding_renorm": _renormed,
    **dict.fromkeys(
        "index_select gather scatter scatter_add scatter_reduce index_add index_copy "
        "index_reduce".split(),
        _along_dim,
    ),
    "index_fill": lambda named: ((index, size, True) for index, size, _ in _along_dim(named)),
    **dict.fromkeys(("take", "put"), _flat),
    "one_hot": _hot,
    "multi_margin_loss": _margins,
    **dict.fromkeys("cross_entropy nll_loss cross_entropy_loss nll_loss_nd".split(), _classes),
    **dict.fromkeys("getitem setitem index index_put".split(), _items),
}
"""Operator -> its index tensors, each with the size that it indexes, and whether -1 counts from the end."""


def require_in_range(c: Context, op: str, named: Named, unchecked: Formula) -> None:
    """Index tensors whose elements the sizes decide must stay within what they index, but for where the rule
    says that this is `unchecked`: into nothing. An index without dims is looked at as a number is.
    """
    indices = INDICES.get(op)
    if indices is None:
        return
    for index, size, wraps in indices(named):
        if index.elements is None:
            continue
        span = extremes(index)
        if span is None:
            c.approximate(f"{op} is given indices that the sizes decide, in a way that is not followed")
            continue
        inside: Formula = all_of((ge(span.low, -size if wraps else 0), lt(span.high, size)))
        empty = [] if all(c.at_least(n, 1) for n in index.shape) else [eq(product(index.shape), 0)]
        chosen = op in ("getitem", "setitem") and not index.shape
        needed = any_of((inside, *empty, False if chosen else unchecked))
        if needed is True or _certain(c, span, size, wraps):
            continue
        if not span.attained:
            c.approximate(f"{op} is given indices between {span.low} and {span.high}, for a size of {size}")
            continue
        c.require(needed, f"indices from {span.low} to {span.high} into a size of {size}")


def _certain(c: Context, span: Span, size: Dim, wraps: bool) -> bool:
    lowest = all(c.at_least(low + (size if wraps else 0), 0) for low in _arguments("min", span.low))
    return lowest and all(c.at_least(size - 1 - high, 0) for high in _arguments("max", span.high))


def _arguments(op: str, dim: Dim) -> tuple[Dim, ...]:
    """Of `op(x, y, …)` its arguments; any other dim itself."""
    atom = lone_atom(dim)
    return atom.args if isinstance(atom, Apply) and atom.op == op else (dim,)
