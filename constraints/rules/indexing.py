"""Indexing: reading and writing `x[…]`, and the operators that it consists of: select, slice, narrow, index,
…
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import length_hint
from typing import Any

from ..contents.elements.shaping import from_front
from ..engine.memory import require_apart
from ..ir.dtypes import category
from ..ir.language import (
    Affine,
    Context,
    Dyn,
    Ellipses,
    Layout,
    Number,
    Proportion,
    Quotient,
    Shape,
    Slice,
    Tensor,
    Value,
    product,
)
from ..terms.dims import Dim, Term, ceildiv, maximum, minimum
from ..terms.formula import And, Compare, Formula, Or, all_of, any_of, eq, ge, le, lt, negate
from .common import axis, broadcast, contiguous_strides, text
from .layout import copied, empty, nonnegative, replaced, with_strides
from .strides import by_stride, dense_in, laid_out, preserved, quotient, strides_of

# --- positions and slices --------------------------------------------------------------------------------

FAR = 2**62
"""A bound beyond this number means "to the end" in ATen."""


def from_end(c: Context, at: Dim, size: Dim) -> Dim:
    """`at` where at >= 0, else at + size"""
    return from_front(at, size, c.at_least)


def in_range(c: Context, index: Dim, size: Dim, unless: Formula = False) -> None:
    """-size <= index < size"""
    low: Formula = True if c.at_least(index, 0) else le(-size, index)
    high: Formula = True if c.at_least(-index, 1) else lt(index, size)
    inside = all_of((low, high))
    c.require(any_of((inside, unless)), f"index {index} is out of range for a dim of size {size}", IndexError)


def slice_length(c: Context, size: Dim, start: Dim | None, stop: Dim | None, step: Dim) -> Dim:
    """The number of elements that `start:stop:step` selects from n: ⌈max(0, min(n, t, n - s, t - s)) / step⌉

    s and t are start and stop, counted from the end where negative, not yet clamped. A term is left out of
    the minimum where it is known to be no less than another one.
    """
    begin = from_end(c, 0 if start is None else start, size)
    end = size if stop is None or (isinstance(stop, int) and stop > FAR) else from_end(c, stop, size)
    if c.at_least(size - end, 0):
        ends = [end]
    else:
        ends = [size] if c.at_least(end - size, 0) else [size, end]
    if c.at_least(begin, 0):
        begins = [begin]
    else:
        begins = [0] if c.at_least(-begin, 0) else [0, begin]
    lengths = [t - s for t in ends for s in begins]
    length = minimum(*lengths)
    if any(n != size and not c.at_least(n, 0) for n in lengths):
        length = maximum(0, length)
    return length if step == 1 else ceildiv(length, step)


def sliced(
    c: Context, size: Dim, stride: Dim | None, start: Dim | None, stop: Dim | None, step: Dim | None,
    error: type[Exception] = RuntimeError,
) -> tuple[Dim, Dim | None]:
    """The size and the stride of a dim after `start:stop:step`, where step > 0"""
    every = 1 if step is None else step
    if isinstance(every, int) and every < 1:
        c.refuse(f"the step of a slice is {every}, and must be positive", error)
    if not c.at_least(every, 1):
        c.require(ge(every, 1), f"the step of a slice is {every}, and must be positive", error)
    return slice_length(c, size, start, stop, every), None if stride is None else stride * every


def one_dim(tensor: Tensor, at: int, sizes: Shape, strides: Sequence[Dim | None]) -> Tensor:
    """Returns a view with other dims in place of one: none after a selection, one after a slice."""
    shape = (*tensor.shape[:at], *sizes, *tensor.shape[at + 1 :])
    if not at and not sizes and tensor.layout is Layout.ROW_MAJOR:
        return Tensor(shape, tensor.dtype, tensor.layout)
    old = strides_of(tensor)
    new = tuple(s for s in strides if s is not None)
    return with_strides(tensor, shape, old and (*old[:at], *new, *old[at + 1 :]))


def a_dim(c: Context, input: Tensor, dim: int) -> tuple[int, Dim, Dim | None]:
    """The axis, its size and its stride. A scalar has none."""
    if not input.shape:
        c.refuse("a scalar has no dim to select from", IndexError)
    at = axis(c, dim, input.rank)
    strides = strides_of(input)
    return at, input.shape[at], None if strides is None else strides[at]


def select(c: Context, input: Tensor, dim: int, index: Dim | Tensor | Number) -> Tensor:
    """`[*a, n, *z] -> [*a, *z]`, where -n <= index < n, which may be a tensor of one element"""
    at, size, _ = a_dim(c, input, dim)
    if isinstance(index, Tensor) and index.dtype == "bool":
        c.refuse("select takes an integer, not a truth value")
    if isinstance(index, Tensor) and isinstance(index.elements, Affine):
        c.require(all_of(eq(n, 1) for n in index.shape), f"select needs one index, not {index}", TypeError)
        index = index.elements.start
    elif isinstance(index, Tensor) and index.elements is not None:
        c.approximate("which index a tensor with dims selects is not followed", "accept")
    if isinstance(index, int | Term):
        in_range(c, index, size)
    else:
        c.require(ge(size, 1), f"no index is in range for dim {at} of size {size}", IndexError)
    return one_dim(input, at, (), ())


def slice_(
    c: Context, input: Tensor, dim: int = 0, start: Dim | None = None, end: Dim | None = None, step: Dim = 1
) -> Tensor:
    """`[*a, n, *z] -> [*a, slice_length(n, start, end, step), *z]`"""
    at, size, stride = a_dim(c, input, dim)
    new, by = sliced(c, size, stride, start, end, step)
    return one_dim(input, at, (new,), (by,))


def narrow(c: Context, input: Tensor, dim: int, start: Dim | Tensor, length: Dim) -> Tensor:
    """`[*a, n, *z] -> [*a, length, *z]`, where -n <= start <= n, and start + length <= n from the front"""
    if not input.shape:
        c.refuse("narrow does not take a scalar")
    at, size, stride = a_dim(c, input, dim)
    nonnegative(c, length, "the length of narrow")
    if isinstance(start, Tensor) and start.dtype != "bool" and not start.rank:
        start = start.elements.start if isinstance(start.elements, Affine) else start
    if isinstance(start, Tensor):
        if start.rank or start.dtype == "bool":
            c.refuse(f"narrow takes its start from an integer tensor of rank 0, not {start}")
        # The start may be out of range, which it is for other data than those for which the length is.
        c.require(le(length, size), f"narrow to {length} of {size}", Exception)
    else:
        reason = f"narrow to {length} from {start}, of a dim of size {size}"
        low: Formula = True if c.at_least(start, 0) else le(-size, start)
        c.require(all_of((low, le(start, size))), reason, IndexError)
        first = start if c.at_least(1 - length, 0) else from_end(c, start, size)  # one fits where it begins
        c.require(le(first + length, size), reason)
    return one_dim(input, at, (length,), (stride,))


def narrow_copy(c: Context, input: Tensor, dim: int, start: Dim | Tensor, length: Dim) -> Tensor:
    """`[*a, n, *z] -> [*a, length, *z]`, as `narrow`, contiguous"""
    if input.shape and dim >= input.rank:
        c.refuse(f"narrow_copy along dim {dim} of {input}")
    result = narrow(c, input, dim, start, length)
    return Tensor(result.shape, result.dtype)


def select_scatter(c: Context, input: Tensor, src: Tensor, dim: int, index: Dim | Tensor | Number) -> Tensor:
    """`[*a, n, *z], [*a, *z] -> [*a, n, *z]`"""
    return replaced(c, input, select(c, input, dim, index), src)


def slice_scatter(
    c: Context, input: Tensor, src: Tensor, dim: int = 0, start: Dim | None = None, end: Dim | None = None,
    step: Dim = 1,
) -> Tensor:
    """`[*a, n, *z], [*a, slice_length(n, start, end, step), *z] -> [*a, n, *z]`"""
    return replaced(c, input, slice_(c, input, dim, start, end, step), src)


# --- the index expression --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptDim:
    """A dim of the result that comes from a slice, an ellipsis or None."""

    size: Dim
    stride: Dim | None


@dataclass(frozen=True, slots=True)
class Picked:
    """An index tensor of this shape.

    `size` is the dim that it picks from, unless a mask has checked it already. Its values are known only
    where they were written out.
    """

    shape: Shape
    size: Dim | None = None
    row_major: bool = True
    values: tuple[Dim, ...] = ()
    dtype: str | None = "int64"


Part = KeptDim | Picked


def indexed(
    c: Context, input: Tensor, items: Sequence[Any], fills: bool = False
) -> tuple[list[Part], Tensor]:
    """Returns the fate of each dim, and the result of `input[items]`; `fills` if a number is put there.

    An int takes its dim away, a slice cuts it, None and a bool are a new dim, an ellipsis keeps all dims that
    no other item consumes. A tensor or a sequence of integers replaces its dim, a mask of rank k replaces k
    dims. These broadcast together, and their common shape B takes their position if nothing is kept between
    them, else it comes first:

        [a, n, m, z] with indices at n, m -> [a, *B, z]        [n, a, m, z] with indices at n, m -> [*B, a, z]
    """
    items = [_sequence(c, item) if isinstance(item, tuple) else item for item in items]
    spoken = sum(_consumed(item) for item in items)
    if spoken > input.rank:
        c.refuse(f"{spoken} indices are too many for a tensor of rank {input.rank}", IndexError)
    strides: Sequence[Dim | None] = strides_of(input) or [None] * input.rank
    source = iter(list(zip(input.shape, strides, strict=True)))
    parts: list[Part] = []
    first = next((i for i, item in enumerate(items) if isinstance(item, Ellipses)), None)
    for place, item in enumerate(items):
        if isinstance(item, Ellipses):
            if place == first:
                parts += (KeptDim(*next(source)) for _ in range(input.rank - spoken))
            elif input.rank > spoken and not all(isinstance(i, Ellipses) for i in items[place:]):
                c.refuse("a second ellipsis leaves no dims for what follows", IndexError)
        elif item is None:  # a new dim has the stride of a contiguous tensor around the next one
            at = input.rank - length_hint(source)
            parts.append(KeptDim(1, 1 if at == input.rank else _times(input.shape[at], strides[at])))
        else:
            parts += _part(c, item, source)
    parts += (KeptDim(*dim) for dim in source)
    picked = [i for i, part in enumerate(parts) if isinstance(part, Picked)]
    if not picked and [*map(type, items)] in ([int], [int, Ellipses]):
        return parts, one_dim(input, 0, (), ())
    if not picked:
        kept = [part for part in parts if isinstance(part, KeptDim)]
        steps = tuple(p.stride for p in kept if p.stride is not None)
        shape = tuple(p.size for p in kept)
        return parts, with_strides(input, shape, steps if len(steps) == len(shape) else None)
    return parts, _gathered(c, input, parts, picked, fills)


def _times(size: Dim, stride: Dim | None) -> Dim | None:
    return None if stride is None else size * stride


def _consumed(item: Any) -> int:
    """Returns how many dims of the source an item consumes."""
    if isinstance(item, Mask) or (isinstance(item, Tensor) and item.dtype in MASKS):
        return len(item.shape)
    return 0 if item is None or isinstance(item, bool | Ellipses) or _is_condition(item) else 1


MASKS = ("bool", "uint8")
INDICES = ("int32", "int64", None)


def _is_condition(item: Any) -> bool:
    """Returns whether the item is a bool whose value is not known."""
    return isinstance(item, Compare | And | Or) or (isinstance(item, Number) and item.kind == "bool")


@dataclass(frozen=True, slots=True)
class Mask:
    """A sequence of bools that was written out: its shape, and how many of them are true."""

    shape: Shape
    true: int


@dataclass(frozen=True, slots=True)
class Indices:
    """A sequence of integers that was written out: its shape and its values."""

    shape: Shape
    values: tuple[Dim, ...]


def _sequence(c: Context, item: tuple[Value, ...]) -> Mask | Indices:
    """`[0, 1]`, `[[True], [False]]`: a tensor that is written out, of the integer parts where it has floats.
    """
    shape: list[Dim] = []
    level: list[Value] = [item]
    while level and isinstance(level[0], tuple):
        lengths = {len(part) if isinstance(part, tuple) else -1 for part in level}
        if len(lengths) > 1:
            c.refuse("an index written as nested lists must have lists of equal length", ValueError)
        shape.append(lengths.pop())
        level = [v for part in level if isinstance(part, tuple) for v in part]
    if level and all(isinstance(v, bool) for v in level):
        return Mask(tuple(shape), sum(v is True for v in level))
    level = [int(v) if isinstance(v, float) and math.isfinite(v) else v for v in level]
    for v in level:
        if not (isinstance(v, int | Term | Number) or (isinstance(v, Tensor) and not v.shape)):
            c.refuse(f"{v} is not an index")
        if isinstance(v, Quotient | Proportion):
            c.approximate("an index that is a fraction of sizes is not followed", "accept")
    return Indices(tuple(shape), tuple(v for v in level if isinstance(v, int | Term)))


def _part(c: Context, item: Any, source: Iterator[tuple[Dim, Dim | None]]) -> Iterator[Part]:
    """Yields the dims of the result that an item makes of the dims that it takes from the source."""
    match item:
        case bool():
            yield Picked((int(item),))
        case Compare() | And() | Or() | Number("bool"):
            yield Picked((c.fresh("true", 0, 1),))
        case Slice():
            yield _slice_part(c, item, *next(source))
        case Mask(shape, true):
            yield _mask_part(c, shape, true, source)
        case Tensor(shape, dtype) if dtype in MASKS:
            yield _mask_part(c, shape, c.trues(item), source)
        case Indices(shape, values):
            yield Picked(shape, next(source)[0], values=values)
        case Tensor(shape, dtype, layout) if dtype in INDICES and shape:
            yield Picked(shape, next(source)[0], layout is Layout.CONTIGUOUS, dtype=dtype)
        case int() | Term():
            in_range(c, item, next(source)[0])
        case Number("int") | Tensor((), "int8" | "int16" | "int32" | "int64" | None):
            size, _ = next(source)
            c.require(ge(size, 1), f"no index is in range for a dim of size {size}", IndexError)
        case _:
            c.refuse(f"{item} is not an index: it is neither integral nor boolean", IndexError)


def _slice_part(c: Context, item: Slice, size: Dim, stride: Dim | None) -> KeptDim:
    start, stop, step = (_bound(c, bound) for bound in (item.start, item.stop, item.step))
    if UNKNOWN in (start, stop, step):
        return KeptDim(c.fresh("slice", 0, size), None)
    return KeptDim(*sliced(c, size, stride, start, stop, step, ValueError))  # type: ignore[arg-type]


UNKNOWN = Number("int")


def _bound(c: Context, bound: Value) -> Dim | Number | None:
    """A bound of a slice, if it is known."""
    if bound is None or isinstance(bound, int | Term):
        return bound
    whole = isinstance(bound, Tensor) and category(bound.dtype or "int64") <= 1
    if whole or (isinstance(bound, Number) and bound.kind in ("bool", "int")):
        return UNKNOWN
    c.refuse(f"the bounds of a slice must be integers, and {bound} is not one", TypeError)


def _mask_part(c: Context, shape: Shape, true: Dim, source: Iterator[tuple[Dim, Dim | None]]) -> Picked:
    """A mask has the sizes of the dims that it picks from; its true elements become one dim."""
    for i, masked in enumerate(shape):
        size, _ = next(source)
        told = f"dim {i} of a mask has size {masked}, and the dim that it masks {size}"
        c.require(eq(masked, size), told, IndexError)
    return Picked((true,))


def _gathered(c: Context, input: Tensor, parts: list[Part], picked: list[int], fills: bool) -> Tensor:
    """The result of index tensors.

    Where the result is empty torch checks no index, except that it refuses indices into a dim of size 0:
    unless `fills`, for what `index_fill_` does: there is one index tensor, of int64.

    torch lays it out in the order of the dims that are kept, which is row-major where their strides fall from
    left to right and the index tensors are row-major. For other strides TensorIterator decides (`by_stride`);
    for it the source has a stride of 0 along the dims of the indices, and these have one of 0 along the dims
    that are kept, unless these are of size 1.
    """
    indices = [part for part in parts if isinstance(part, Picked)]
    shape = broadcast(c, *(part.shape for part in indices), error=IndexError)
    first, last = picked[0], picked[-1]
    together = last - first + 1 == len(picked)
    kept = [part for part in parts if isinstance(part, KeptDim)]
    before = kept[:first] if together else []
    after = kept[len(before) :]
    result = (*(p.size for p in before), *shape, *(p.size for p in after))
    fills = fills and len(indices) == 1
    c.unchecked(empty(c, result))
    for part in indices:
        if part.size is None:
            continue
        if not c.at_least(part.size, 1):
            nothing = empty(c, shape)
            error: type[Exception] = IndexError
            if fills and part.dtype != "int32":
                error = RuntimeError if part.dtype else Exception
                if part.dtype is None:
                    without = all_of((eq(part.size, 0), empty(c, result), negate(nothing)))
                    c.approximate("the dtype of the index is not known", "accept", without)
                nothing = empty(c, result)
            some = any_of((ge(part.size, 1), nothing))
            c.require(some, f"no index is in range for a dim of size {part.size}", error)
        for value in part.values:
            in_range(c, value, part.size, unless=empty(c, result))
    if not all(part.row_major for part in indices):
        return Tensor(result, input.dtype, Layout.UNKNOWN)
    if all(_falls(a, b) for a, b in combinations(kept, 2)):
        return Tensor(result, input.dtype)
    read = (*(p.stride for p in before), *(0,) * len(shape), *(p.stride for p in after))
    picks = []
    for part in indices:
        size = product(shape) if part.shape == shape else None
        outer = [_stride_beside(c, p.size, size) for p in before]
        inner = [_stride_beside(c, p.size, 1) for p in after]
        picks.append((*outer, *_index_strides(c, part.shape, shape), *inner))
    known = [tuple(s for s in strides if s is not None) for strides in (read, *picks)]
    order = by_stride(c, result, known) if all(len(strides) == len(result) for strides in known) else None
    layout = Layout.UNKNOWN if order is None else laid_out(result, dense_in(result, order))
    return Tensor(result, input.dtype, layout)


def _index_strides(c: Context, part: Shape, whole: Shape) -> Sequence[Dim | None]:
    """The strides of a row-major index tensor that is expanded, None for those that are not known."""
    found: list[Dim | None] = [0] * (len(whole) - len(part))
    for size, wanted, stride in zip(part, whole[len(found) :], contiguous_strides(part), strict=True):
        grows = size == 1 and c.at_least(wanted, 2)
        found.append(stride if size == wanted else 0 if grows else None)
    return found


def _stride_beside(c: Context, size: Dim, own: Dim | None) -> Dim | None:
    """Returns the stride of an index tensor along a dim that is kept, None if that is not known: its `own`
    where the dim has the size 1.
    """
    return own if size == 1 else 0 if c.at_least(size, 2) else None


def _falls(outer: KeptDim, inner: KeptDim) -> bool:
    """Returns whether one stride is surely no less than the other.

    A stride of 0 does not restrict the order.
    """
    if outer.stride is None or inner.stride is None:
        return False
    return outer.stride == 0 or inner.stride == 0 or quotient(outer.stride, inner.stride) is not None


def getitem(c: Context, input: Tensor | tuple[Value, ...], index: Value) -> Value:
    """`input[index]`, of a tensor or of a tuple. The index is one item, or a tuple of items.

    A list among the items arrives as a tuple; a list that is the whole index arrives as a tuple of one tuple.
    """
    if isinstance(input, tuple):
        return _of_tuple(c, input, index)
    return indexed(c, input, index if isinstance(index, tuple) else (index,))[1]


def _of_tuple(c: Context, values: tuple[Value, ...], index: Value) -> Value:
    """One of several results, or a part of them."""
    if isinstance(index, Slice):
        start, stop, step = index.start, index.stop, index.step
        if isinstance(start, int | None) and isinstance(stop, int | None) and isinstance(step, int | None):
            return values[start:stop:step]
    if not isinstance(index, int):
        c.approximate(f"which of {len(values)} results {index} stands for depends on sizes", "accept")
        return Dyn
    if not -len(values) <= index < len(values):
        c.refuse(f"index {index} is out of range for {len(values)} results")
    return values[index]


def broadcasts_into(c: Context, value: Shape, target: Shape, spare: bool) -> None:
    """`[*value]` expands to `[*target]`; `spare` allows more dims in front, of size 1."""
    extra = len(value) - len(target)
    if extra > 0 and not spare:
        c.refuse(f"a value of shape {text(value)} does not fit into {text(target)}")
    for i, size in enumerate(value):
        goal = target[i - extra] if i >= extra else 1
        reason = f"a value of shape {text(value)} does not fit into {text(target)}"
        c.require(any_of((eq(size, goal), eq(size, 1))), reason)


def setitem(c: Context, input: Tensor, index: Value, value: Value) -> tuple[Value, ...]:
    """`input[index] = value`: the value, its leading dims of size 1 dropped, expands to `input[index]`

    Since torch 2.15, a number is put there as `fill_` does, which writes into any memory.

    Nothing is written, or looked at, where the index is False.
    """
    if isinstance(value, str | tuple | None):
        c.refuse(f"{value} cannot be assigned to elements of a tensor", TypeError)
    if index is False:
        return ()
    fills = c.since(2, 15) and not isinstance(value, Tensor)
    parts, target = indexed(c, input, index if isinstance(index, tuple) else (index,), fills)
    picks = any(isinstance(part, Picked) for part in parts)
    if not picks and not fills:
        require_apart(c, "setitem", target, {})
    if isinstance(value, Tensor):
        if picks:
            same_dtype(c, input, value)
        broadcasts_into(c, value.shape, target.shape, spare=True)
    return ()


def same_dtype(c: Context, input: Tensor, source: Tensor) -> None:
    """Requires that values written through index tensors have the dtype of the tensor written to."""
    if input.dtype and source.dtype and input.dtype != source.dtype:
        c.refuse(f"elements of {source.dtype} cannot be written through an index into {input.dtype}")


# --- the ATen forms --------------------------------------------------------------------------------------


def _items(c: Context, indices: tuple[Tensor | None, ...]) -> list[Any]:
    """ATen writes None where Python writes `:`, and a scalar is an index tensor of shape [], not an int."""
    if all(i is None for i in indices):
        c.refuse("at least one index tensor is needed")
    scalar = Indices((), ())
    return [Slice() if i is None else i if i.shape or i.dtype in MASKS else scalar for i in indices]


def index(c: Context, input: Tensor, indices: tuple[Tensor | None, ...]) -> Tensor:
    """`input[indices]`, an index tensor or None for each dim from the first on"""
    return indexed(c, input, _items(c, indices))[1]


def index_put(
    c: Context, input: Tensor, indices: tuple[Tensor | None, ...], values: Tensor, accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    """`[*d] -> [*d]`; the values expand to the shape of `input[indices]`"""
    _, target = indexed(c, input, _items(c, indices))
    same_dtype(c, input, values)
    broadcasts_into(c, values.shape, target.shape, spare=False)
    return Tensor(input.shape, input.dtype, preserved(c, input.shape, input.layout))


def unsafe_masked_index(
    c: Context, input: Tensor, mask: Tensor, indices: tuple[Tensor | None, ...], fill: Value
) -> Tensor:
    """`input[indices]`, each index being clamped to its range, where the mask, which broadcasts, is true.

    The mask is not used where the input is empty.
    """
    result = _clamped(c, input, indices)
    if c.choose(empty(c, input.shape), "what is picked from an input that may be empty"):
        return result
    return Tensor(broadcast(c, result.shape, mask.shape), input.dtype, result.layout)


def unsafe_masked_index_put_accumulate(
    c: Context, input: Tensor, mask: Tensor, indices: tuple[Tensor | None, ...], values: Tensor
) -> Tensor:
    """`input[indices] += values`, each index being clamped to its range, where the mask is true"""
    nothing = empty(c, input.shape)
    if nothing is not True:
        part = _clamped(c, input, indices)
        for tensor in (values, mask):
            _broadcasts_to(c, tensor, part, nothing)
    return Tensor(input.shape, input.dtype, preserved(c, input.shape, input.layout))


def _broadcasts_to(c: Context, part: Tensor, whole: Tensor, unless: Formula) -> None:
    """The part broadcasts to the whole, which keeps its shape."""
    if part.rank > whole.rank:
        c.require(unless, f"{part} cannot be broadcast to {whole}")
    for have, want in zip(reversed(part.shape), reversed(whole.shape), strict=False):
        fits = any_of((eq(have, want), eq(have, 1), unless))
        c.require(fits, f"{part} cannot be broadcast to {whole}")


def _clamped(c: Context, input: Tensor, indices: tuple[Tensor | None, ...]) -> Tensor:
    """`input[indices]` where no index is out of range, also of a dim of size 0."""
    at = {i for i, item in enumerate(indices) if item is not None}
    shape = tuple(maximum(n, 1) if i in at else n for i, n in enumerate(input.shape))
    return index(c, Tensor(shape, input.dtype), indices)


RULES: dict[str, Callable[..., Any]] = {
    "_unsafe_masked_index": unsafe_masked_index,
    "_unsafe_masked_index_put_accumulate": unsafe_masked_index_put_accumulate,
    "select": select,
    "slice": slice_,
    "narrow": narrow,
    "getitem": getitem,
    "setitem": setitem,
    "index": index,
    "index_put": index_put,
    "select_copy": copied(select),
    "slice_copy": copied(slice_),
    "narrow_copy": narrow_copy,
    "select_scatter": select_scatter,
    "slice_scatter": slice_scatter,
}
