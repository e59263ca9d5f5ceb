"""Picking and placing elements by tensors of indices or masks: gather, scatter, index_add, embedding, …"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contents.elements.dtypes import INTEGRAL
from ..contents.elements.values import bounds_of, greatest
from ..ir.language import Affine, Context, Number, Shape, Tensor, product
from ..terms.dims import Dim, maximum, minimum
from ..terms.formula import Formula, all_of, any_of, eq, ge, le, lt, ne
from ..terms.rows import rank_of
from .common import axis, broadcast, contiguous_strides, given_or_left_out, is_floating, rank_is, text
from .common import axis as axis_of
from .indexing import same_dtype
from .layout import empty, nonnegative
from .strides import laid_out, preserved, require_flat, strides_of

BOTH = ("int64", "int32")
LONG = ("int64",)


def integral(c: Context, index: Tensor, kinds: tuple[str, ...] = BOTH, unless: Formula = False) -> None:
    """Requires that an index tensor has one of these dtypes."""
    if index.dtype is not None and index.dtype not in kinds:
        c.require(unless, f"indices are {' or '.join(kinds)} here, not {index.dtype}")


def as_vector(shape: Shape) -> Shape:
    """A scalar counts as a vector of one element."""
    return shape or (1,)


def reachable(c: Context, size: Dim, *unless: Formula, error: type[Exception] = RuntimeError) -> None:
    """No index is in range for a dim of size 0."""
    if not c.at_least(size, 1):
        some = any_of((ge(size, 1), *unless))
        c.require(some, f"no index is in range for a dim of size {size}", error)


# --- index_select, index_add, index_copy, index_fill -----------------------------------------------------


def index_vector(c: Context, index: Tensor, kinds: tuple[str, ...] = BOTH) -> Dim:
    """The number of indices in a vector; a scalar is one."""
    integral(c, index, kinds)
    if index.rank > 1:
        c.refuse(f"an index is a vector or a scalar, not {index}", IndexError)
    return as_vector(index.shape)[0]


def index_select(c: Context, input: Tensor, dim: int, index: Tensor) -> Tensor:
    """`[*a, n, *z], [k] -> [*a, k, *z]`, n not being 0 unless k is; of a scalar, k is 1"""
    count = index_vector(c, index)
    at = axis(c, dim, input.rank)
    if not input.shape:
        c.require(eq(count, 1), f"{count} indices are selected from a scalar, which has one element")
        return Tensor((), input.dtype)
    error = IndexError if input.rank == 1 else RuntimeError
    reachable(c, input.shape[at], eq(count, 0), error=error)
    return Tensor((*input.shape[:at], count, *input.shape[at + 1 :]), input.dtype)


def index_add(
    c: Context, input: Tensor, dim: int, index: Tensor, source: Tensor, alpha: object = 1
) -> Tensor:
    """`[*a, n, *z], [k], [*a, k, *z] -> [*a, n, *z]`; nothing is added to nothing, whatever the indices"""
    result = _added(c, input, dim, index, source)
    if input.rank == 1:
        reachable(c, input.shape[0], eq(as_vector(index.shape)[0], 0), error=IndexError)
    c.unchecked(any_of((empty(c, input.shape), empty(c, source.shape))))
    return result


def _added(c: Context, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    count = index_vector(c, index)
    same_dtype(c, input, source)
    at = axis(c, dim, input.rank)
    if source.rank != input.rank:
        c.refuse(f"the source has rank {source.rank}, the destination {input.rank}")
    reason = f"a source {text(source.shape)} for {count} indices in dim {at} of {text(input.shape)}"
    # A message of torch's tells the size of the source along the dim, which a scalar has not.
    c.require(eq(as_vector(source.shape)[at], count), reason, RuntimeError if source.shape else IndexError)
    pairs = enumerate(zip(source.shape, input.shape, strict=True))
    c.require(all_of(eq(m, n) for i, (m, n) in pairs if i != at), reason)
    return Tensor(input.shape, input.dtype)


def index_reduce(
    c: Context, input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """`[*a, n, *z], [k], [*a, k, *z] -> [*a, n, *z]`"""
    if reduce not in ("prod", "mean", "amax", "amin"):
        c.refuse(f"index_reduce does not know the reduction {reduce!r}")
    result = _added(c, input, dim, index, source)
    size, count = as_vector(input.shape)[axis(c, dim, input.rank)], as_vector(index.shape)[0]
    if not include_self:  # the first value is written at each index, wherever there is one
        reachable(c, size, empty(c, source.shape))
    reachable(c, size, eq(count, 0), error=IndexError)
    return result


def index_copy(c: Context, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`[*a, n, *z], [k], [*a, k, *z] -> [*a, n, *z]`; a scalar source goes to the one index that there is"""
    count = index_vector(c, index, LONG)
    same_dtype(c, input, source)
    at = axis(c, dim, input.rank)
    if source.rank != input.rank and source.shape and input.shape:
        c.refuse(f"the source has rank {source.rank}, the destination {input.rank}")
    reason = f"a source {text(source.shape)} for {count} indices in dim {at} of {text(input.shape)}"
    if not source.shape and len(input.shape) > 1:
        c.refuse(reason)
    place = min(at, max(source.rank - 1, 0))
    rest, kept = (s[:at] + s[at + 1 :] for s in (source.shape, input.shape))
    if len(rest) != len(kept):
        c.refuse(reason)
    c.require(all_of(eq(m, n) for m, n in zip(rest, kept, strict=True)), reason)
    c.require(eq(as_vector(source.shape)[place], count), reason, IndexError)
    _writable(c, input, at, count)
    return Tensor(input.shape, input.dtype)


def index_fill(c: Context, input: Tensor, dim: int, index: Tensor, value: object) -> Tensor:
    """`[*a, n, *z], [k], [] -> [*a, n, *z]`"""
    count = index_vector(c, index, LONG)
    at = axis(c, dim, input.rank)
    if isinstance(value, Tensor):
        rank_is(c, value, "the value of index_fill", 0)
    _writable(c, input, at, count)
    return Tensor(input.shape, input.dtype, preserved(c, input.shape, input.layout))


def _writable(c: Context, input: Tensor, at: int, count: Dim) -> None:
    """There is an element at each index, unless there are no indices, or nothing to write."""
    if input.shape:
        nothing = empty(c, (*input.shape[:at], *input.shape[at + 1 :]))
        reachable(c, input.shape[at], eq(count, 0), nothing)
        c.unchecked(nothing)


# --- gather, scatter, take -------------------------------------------------------------------------------


def fits(c: Context, index: Tensor, into: Shape, name: str, free: int | None) -> None:
    """The index tensor is no larger than `into` in any dim but the free one, or it has no elements."""
    nothing = empty(c, index.shape)
    small, large = as_vector(index.shape), as_vector(into)
    if len(small) != len(large):
        c.require(nothing, f"an index of rank {len(small)} for {name} of rank {len(large)}")
        return
    for i, (k, n) in enumerate(zip(small, large, strict=True)):
        if i != free and k != n and not c.at_least(n - k, 0):
            reason = f"the index {text(index.shape)} is larger than {name} {text(into)} in dim {i}"
            c.require(any_of((le(k, n), nothing)), reason)


def gather(c: Context, input: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    """`[*a, n, *z], [*b, k, *y] -> [*b, k, *y]`, where each of b, y is at most that of a, z"""
    integral(c, index, unless=empty(c, index.shape))
    at = axis(c, dim, input.rank)
    fits(c, index, input.shape, "the tensor", at)
    reachable(c, as_vector(input.shape)[at], empty(c, index.shape))
    return Tensor(index.shape, input.dtype)


def scatter(
    c: Context,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    reduce: str | None = None,
    include_self: bool = True,
    value: object = None,
) -> Tensor:
    """`[*a, n, *z], [*b, k, *y], [*c, m, *x] -> [*a, n, *z]`, where each of b, y is at most that of a, z, and
    each of b, k, y at most that of c, m, x; without indices, anything goes
    """
    if reduce not in (None, "add", "multiply"):
        c.refuse(f"scatter reduces by add or multiply, not {reduce!r}")
    integral(c, index, unless=empty(c, index.shape))
    at = axis(c, dim, input.rank)
    fits(c, index, input.shape, "the tensor", at)
    if isinstance(src, Tensor):
        same_dtype(c, input, src)
        fits(c, index, src.shape, "the source", None)
    reachable(c, as_vector(input.shape)[at], empty(c, index.shape))
    return Tensor(input.shape, input.dtype)


def scatter_add(c: Context, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """As `scatter`."""
    return scatter(c, input, dim, index, src)


def scatter_reduce(
    c: Context, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """As `scatter`."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        c.refuse(f"scatter_reduce does not know the reduction {reduce!r}")
    return scatter(c, input, dim, index, src)


def take(c: Context, input: Tensor, index: Tensor) -> Tensor:
    """`[*a], [*k] -> [*k]`, taken from all elements; if there is an index, there must be an element"""
    integral(c, index, LONG)
    some = all_of(ne(size, 0) for size in input.shape if not c.at_least(size, 1))
    found = any_of((some, empty(c, index.shape)))
    c.require(found, f"nothing can be taken from {text(input.shape)}", IndexError)
    return Tensor(index.shape, input.dtype)


def put(c: Context, input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`[*a], [*k], [*l] -> [*a]` with ∏k = ∏l, counted through all elements; if there is an index, there must
    be an element
    """
    integral(c, index, LONG)
    same_dtype(c, input, source)
    told = f"put takes an element for each index of {index}, not {source}"
    c.require(eq(index.numel, source.numel), told, IndexError)
    some = all_of(ne(size, 0) for size in input.shape if not c.at_least(size, 1))
    found = any_of((some, empty(c, index.shape)))
    c.require(found, f"nothing can be put into {text(input.shape)}", IndexError)
    return Tensor(input.shape, input.dtype, preserved(c, input.shape, input.layout))


def take_along_dim(c: Context, input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`[*a, n, *z], [*b, k, *y] -> [*broadcast(a, b), k, *broadcast(z, y)]`; without a dim,
    `[*a], [*k] -> [∏k]`, of tensors that can be viewed as vectors
    """
    if dim is None:
        for tensor in (input, indices):
            require_flat(c, tensor)
        flat = Tensor((indices.numel,), indices.dtype)
        return gather(c, Tensor((input.numel,), input.dtype), 0, flat)
    integral(c, indices, LONG)
    if input.rank != indices.rank:
        c.refuse(f"take_along_dim takes indices of rank {input.rank}, not {indices.rank}")
    if not input.shape:
        c.refuse("take_along_dim does not take scalars", IndexError)
    at = axis(c, dim, input.rank)
    n, k = input.shape[at], indices.shape[at]
    open_at = ((*shape[:at], 1, *shape[at + 1 :]) for shape in (input.shape, indices.shape))
    common = broadcast(c, *open_at)
    shape = (*common[:at], k, *common[at + 1 :])
    reachable(c, n, empty(c, shape))
    return Tensor(shape, input.dtype)


# --- masks -----------------------------------------------------------------------------------------------


def boolean(c: Context, mask: Tensor) -> None:
    """Requires that a mask has the dtype bool."""
    if mask.dtype not in ("bool", None):
        c.refuse(f"a mask is bool here, not {mask.dtype}")


def masked_select(c: Context, input: Tensor, mask: Tensor) -> Tensor:
    """`[*a], [*b] -> [k]`, where data decides k <= ∏broadcast(a, b)"""
    boolean(c, mask)
    shape = broadcast(c, input.shape, mask.shape)
    size = c.trues(mask) if shape == mask.shape else c.fresh("selected", 0, product(shape))
    return Tensor((size,), input.dtype)


def left_aligned(c: Context, t: Tensor, mask: Tensor, mask_check: bool = True) -> Number:
    """`[b, n, d], bool[b, n]` -> whether the true elements of each row come first, which the data decides"""
    boolean(c, mask)
    rank_is(c, t, "the input", 3)
    rank_is(c, mask, "the mask", 2)
    for i in range(2):
        c.require(eq(mask.shape[i], t.shape[i]), f"a mask {mask} of {t}: sizes {i} must agree")
    c.require(ge(mask.shape[1], 1), "the rows of the mask are empty", IndexError)
    return Number("bool")


def masked_scatter(c: Context, input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`[*a], [*b], [*c] -> [*broadcast(a, b)]`; data decide whether the source has enough elements"""
    boolean(c, mask)
    same_dtype(c, input, source)
    return Tensor(broadcast(c, input.shape, mask.shape), input.dtype)


def nonzero(c: Context, input: Tensor, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """`[*d] -> [k, r]` for r dims, or r times `[k]`, where data decides k <= ∏d; of a scalar, `[k]`

    A column of the result lies in memory as one.
    """
    size = c.trues(input)
    if as_tuple:
        return (Tensor((size,), "int64"),) * max(input.rank, 1)
    shape = (size, rank_of(input.shape))
    return Tensor(shape, "int64", laid_out(shape, (1, size)))


def nonzero_numpy(c: Context, input: Tensor) -> Tensor | tuple[Tensor, ...]:
    """`[*d] -> [k]`, r times for r dims, where data decides k <= ∏d"""
    return nonzero(c, input, True)


def nonzero_static(c: Context, input: Tensor, size: Dim, fill_value: int = -1) -> Tensor:
    """`[*d] -> [size, r]` for r dims"""
    nonnegative(c, size, "the size of nonzero_static")
    return Tensor((size, input.rank), "int64")


# --- segments --------------------------------------------------------------------------------------------


def segment_reduce(
    c: Context,
    data: Tensor,
    reduce: str,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: object = None,
) -> Tensor:
    """`[*a, n, *z], lengths [*a, k] or offsets [*a, k + 1] -> [*a, k, *z]`; data decides if they fit n"""
    if reduce not in ("sum", "prod", "mean", "max", "min"):
        c.refuse(f"segment_reduce does not know the reduction {reduce!r}")
    segments = lengths if lengths is not None else offsets
    if segments is None:
        c.refuse("segment_reduce takes lengths or offsets")
    at = axis_of(c, axis, data.rank)
    if segments.rank - 1 != at or not data.shape:
        c.refuse(f"the last of {segments.rank} dims of the segments is the axis that is reduced, not {axis}")
    if data.dtype is not None and not is_floating(data.dtype):
        told = f"segment_reduce does not take {data.dtype}"
        c.require(empty(c, data.shape), told, NotImplementedError)
    for n, m in zip(data.shape[:at], segments.shape[:at], strict=True):
        c.require(eq(n, m), f"there are segments {text(segments.shape)} for {text(data.shape)}")
    count = segments.shape[at] if lengths is not None else segments.shape[at] - 1
    c.require(ge(count, 0), f"{text(segments.shape)} are not offsets: the last one says where segments end")
    if lengths is not None and not unsafe:
        some = all_of(ne(size, 0) for size in lengths.shape if not c.at_least(size, 1))
        c.require(some, "segment_reduce takes one segment or more")
    return Tensor((*data.shape[:at], count, *data.shape[at + 1 :]), data.dtype)


# --- unique ----------------------------------------------------------------------------------------------


def _distinct(c: Context, input: Tensor, size: Dim) -> Dim:
    """Returns the number of distinct elements among this many: of equal ones, and of integers in a row, they
    are known; else a fresh symbol.
    """
    match input.elements:
        case Affine(_, ()):
            return minimum(size, 1)
        case Affine(_, (_,)) if input.rank == 1 and input.dtype in INTEGRAL:
            return size
    counted = input if size == input.numel else None
    count = c.fresh("distinct", 1 if c.at_least(size, 1) else minimum(1, size), size, counted=counted)
    if not c.may_differ(input):
        c.approximate("elements may be equal, or differ, for all data", number=str(count))
    return count


def unique_all(c: Context, input: Tensor, dim: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """`[*d] -> [k], [*d], [k]`, and along a dim `[*a, n, *z] -> [*a, k, *z], [n], [k]`, where data decides k:
    the different elements, which of them each element is, and how often each occurs

    Along a dim the other dims are not of size 0. There the result is laid out with that dim first.
    """
    if dim is None:
        count = _distinct(c, input, input.numel)
        return Tensor((count,), input.dtype), Tensor(input.shape, "int64"), Tensor((count,), "int64")
    if not input.shape:
        c.refuse("unique along a dim of a scalar, which has none", IndexError)
    at = axis(c, dim, input.rank)
    rest = (*input.shape[:at], *input.shape[at + 1 :])
    some = all_of(ne(size, 0) for size in rest if not c.at_least(size, 1))
    c.require(some, f"unique along dim {at} of {text(input.shape)}: no other size may be 0")
    count = _distinct(c, input, input.shape[at])
    first, *others = contiguous_strides((count, *rest))
    shape = (*rest[:at], count, *rest[at:])
    layout = laid_out(shape, (*others[:at], first, *others[at:]))
    return Tensor(shape, input.dtype, layout), Tensor((input.shape[at],), "int64"), Tensor((count,), "int64")


def unique(
    c: Context,
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Returns those results of `unique_all` that the call requests."""
    values, inverse, counts = unique_all(c, input, dim)
    if not (return_inverse or return_counts):
        return values
    return (values, *(inverse,) * return_inverse, *(counts,) * return_counts)


def unique_consecutive(
    c: Context,
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The parts of `unique_all` that are asked for."""
    return unique(c, input, True, return_inverse, return_counts, dim)


def unique2(
    c: Context, input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    """`unique_all` as ATen returns it: results that are not asked for are `[0]`"""
    values, inverse, counts = unique_all(c, input, None)
    none = Tensor((0,), "int64")
    return values, inverse if return_inverse else none, counts if return_counts else none


def aten_unique_consecutive(
    c: Context,
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Tensor, ...]:
    """`unique_all`; without a dim, results that are not asked for are `[0]`"""
    if dim is None:
        return unique2(c, input, True, return_inverse, return_counts)
    return unique_all(c, input, dim)


def unique_without_counts(
    c: Context, input: Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[Tensor, Tensor]:
    """`unique_all` without the last part; a second one that is not asked for is `[0]`"""
    values, inverse, _ = unique2(c, input, sorted, return_inverse)
    return values, inverse


def unique_dim_consecutive(
    c: Context, input: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    """`unique_all` along a dim: all of it"""
    return unique_all(c, input, dim)


def unique_dim(
    c: Context,
    input: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, ...]:
    """`unique_all` as ATen gives it along a dim: all of it"""
    return unique_all(c, input, dim)


# --- embedding -------------------------------------------------------------------------------------------


def embedding(
    c: Context,
    input: Tensor,
    weight: Tensor,
    padding_idx: Dim | None = None,
    max_norm: object = None,
    norm_type: object = 2.0,
    scale_grad_by_freq: object = False,
    sparse: object = False,
) -> Tensor:
    """`[*k], [v, d] -> [*k, d]`, where v is not 0 if there are indices; a padding_idx p has -v <= p < v"""
    _table(c, input, weight)
    if padding_idx is not None:
        v = weight.shape[0]
        inside = all_of((any_of((le(padding_idx, v - 1), le(padding_idx, 0))), le(-v, padding_idx)))
        c.require(inside, f"the padding_idx {padding_idx} is out of range for {v} embeddings")
    return Tensor((*input.shape, weight.shape[1]), weight.dtype)


def aten_embedding(
    c: Context,
    weight: Tensor,
    indices: Tensor,
    padding_idx: Dim = -1,
    scale_grad_by_freq: object = False,
    sparse: object = False,
) -> Tensor:
    """`[v, d], [*k] -> [*k, d]`, where v is not 0 if there are indices; any padding_idx will do"""
    return embedding(c, indices, weight)


def _table(
    c: Context,
    indices: Tensor,
    weight: Tensor,
    unread: Formula = False,
    error: type[Exception] = RuntimeError,
) -> None:
    integral(c, indices)
    rank_is(c, weight, "the weight of an embedding", 2)
    reachable(c, weight.shape[0], empty(c, indices.shape), unread, error=error)


def embedding_renorm(
    c: Context, input: Tensor, indices: Tensor, max_norm: object, norm_type: object
) -> Tensor:
    """`[v, d], [*k] -> [v, d]`, where v is not 0 if there are indices"""
    _table(c, indices, input, error=IndexError)
    if input.dtype is not None and not is_floating(input.dtype):
        c.require(empty(c, indices.shape), f"embeddings with a norm are floating, not {input.dtype}")
    return input


MODES = ("sum", "mean", "max")


def embedding_bag(
    c: Context,
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: object = None,
    norm_type: object = 2.0,
    scale_grad_by_freq: object = False,
    mode: str = "mean",
    sparse: object = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: Dim | None = None,
) -> Tensor:
    """`[b, k], [v, d] -> [b, d]`, or `[n], [v, d], [b] -> [b, d]` with the start of each bag, and maybe the
    end of the last; per_sample_weights are shaped as the indices
    """
    if mode not in MODES:
        c.refuse(f"embedding_bag does not know the mode {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        c.refuse("embedding_bag takes weights of samples where it sums")
    rank_is(c, input, "the indices of embedding_bag", 1, 2)
    if per_sample_weights is not None:
        if per_sample_weights.rank != input.rank:
            c.refuse("the weights of samples must have the shape of the indices")
        for m, n in zip(per_sample_weights.shape, input.shape, strict=True):
            c.require(eq(m, n), f"weights {text(per_sample_weights.shape)} for indices {text(input.shape)}")
        same_dtype(c, weight, per_sample_weights)
    unread: Formula = False
    if input.rank == 2:
        if offsets is not None:
            c.refuse("embedding_bag takes offsets with a vector of indices only")
        bags, per_bag = input.shape
        c.require(ge(per_bag, 1), "embedding_bag takes at least one index for a bag")
    elif offsets is None:
        c.refuse("embedding_bag takes offsets with a vector of indices")
    else:
        bags = _bags(c, offsets, include_last_offset)
        unread = _unread(bags, mode == "max", include_last_offset)
    _bag_table(c, input, weight, unread)
    if padding_idx is not None:
        v = weight.shape[0]
        inside = all_of((le(-v, padding_idx), lt(padding_idx, v)))
        c.require(inside, f"the padding_idx {padding_idx} is out of range for {v} embeddings")
    return Tensor((bags, weight.shape[1]), weight.dtype)


def _bags(c: Context, offsets: Tensor, include_last_offset: bool) -> Dim:
    rank_is(c, offsets, "offsets", 1)
    integral(c, offsets)
    if not include_last_offset:
        return offsets.shape[0]
    c.require(ge(offsets.shape[0], 1), "the last offset has to be there")
    return offsets.shape[0] - 1


def _unread(bags: Dim, largest: bool, include_last_offset: bool) -> Formula:
    """Returns the condition under which perhaps no index is looked up: there are no bags, or the data may end
    the last bag at once.
    """
    return False if largest else include_last_offset or eq(bags, 0)


def _bag_table(c: Context, indices: Tensor, weight: Tensor, unread: Formula) -> None:
    _table(c, indices, weight, unread)
    if weight.dtype is not None and not is_floating(weight.dtype):
        c.refuse(f"the weight of embedding_bag is floating, not {weight.dtype}")


def aten_embedding_bag(
    c: Context,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: Dim | None = -1,
) -> tuple[Tensor, ...]:
    """`[v, d], [n], [b] -> [b, d]`, and tensors for the gradient: the bag of each index (not to sum), the
    sizes of the bags, and (to find the maximum) the index that each element is from
    """
    rank_is(c, indices, "the indices of embedding_bag", 1)
    if per_sample_weights is not None:
        reason = f"weights {text(per_sample_weights.shape)} for indices {text(indices.shape)}"
        c.require(eq(per_sample_weights.numel, indices.numel), reason)
    if padding_idx not in (None, -1) and weight.shape:
        inside = all_of((le(-weight.shape[0], padding_idx), lt(padding_idx, weight.shape[0])))
        c.require(inside, f"the padding_idx {padding_idx} is out of range for {weight.shape[0]} embeddings")
    bags = _bags(c, offsets, include_last_offset)
    _bag_table(c, indices, weight, _unread(bags, mode == 2, include_last_offset))
    result = (bags, weight.shape[1])
    return (
        Tensor(result, weight.dtype),
        Tensor((_noted_bags(c, weight, indices, per_sample_weights, mode, padding_idx),), offsets.dtype),
        Tensor((bags,), offsets.dtype),
        Tensor(result if mode == 2 else (bags,), offsets.dtype),
    )


def _noted_bags(
    c: Context, weight: Tensor, indices: Tensor, scales: Tensor | None, mode: int, padding_idx: Dim | None
) -> Dim:
    """Returns of how many indices the bag is noted: of none where a fast kernel sums, for floats of 32 bits
    or less that lie one after another, and without padding.
    """
    (count,) = indices.shape
    steps = [strides_of(t) for t in (weight, scales) if t is not None]
    if mode != 0 or padding_idx not in (None, -1) or any(s is not None and s[-1] == 0 for s in steps):
        return count
    if weight.dtype not in ("float32", "float16", "bfloat16", None):
        return count
    if weight.dtype is not None and all(s is not None and s[-1] == 1 for s in steps):
        return 0
    if any(s is not None and c.at_least(s[-1], 2) for s in steps):
        return count
    return c.fresh("noted", 0, count)


def one_hot(c: Context, input: Tensor, num_classes: Dim = -1) -> Tensor:
    """`[*k] -> [*k, num_classes]`; without a number of classes data decides it, and there are indices"""
    integral(c, input, LONG)
    nothing = empty(c, input.shape)
    given = num_classes
    num_classes = given_or_left_out(c, given, f"the number of classes, {given},")
    if num_classes == -1:
        if given != -1:  # no index is compared with a number of classes
            c.unchecked(True)
        if nothing is not False:
            some = all_of(ne(size, 0) for size in input.shape if not c.at_least(size, 1))
            c.require(some, "one_hot cannot infer the number of classes from no indices")
        if (most := greatest(input)) is not None:
            return Tensor((*input.shape, most + 1), "int64")
        low, high = bounds_of(input)
        first = 1 if low is None else maximum(low, 0) + 1
        classes = c.fresh("classes", first, None if high is None else maximum(first, high + 1))
        return Tensor((*input.shape, classes), "int64")
    if not c.at_least(num_classes, 1):
        c.require(ge(num_classes, 1), f"one_hot into {num_classes} classes")
    return Tensor((*input.shape, num_classes), "int64")


RULES: dict[str, Callable[..., Any]] = {
    "_nested_tensor_from_mask_left_aligned": left_aligned,
    "index_select": index_select,
    "index_add": index_add,
    "index_reduce": index_reduce,
    "index_copy": index_copy,
    "index_fill": index_fill,
    "gather": gather,
    "scatter": scatter,
    "scatter_add": scatter_add,
    "scatter_reduce": scatter_reduce,
    "take": take,
    "put": put,
    "segment_reduce": segment_reduce,
    "take_along_dim": take_along_dim,
    "masked_select": masked_select,
    "masked_scatter": masked_scatter,
    "nonzero": nonzero,
    "argwhere": nonzero,
    "nonzero_numpy": nonzero_numpy,
    "nonzero_static": nonzero_static,
    "unique": unique,
    "unique_consecutive": unique_consecutive,
    "_unique2": unique2,
    "_unique": unique_without_counts,
    "unique_dim": unique_dim,
    "unique_dim_consecutive": unique_dim_consecutive,
    "_unique_consecutive": aten_unique_consecutive,
    "embedding": embedding,
    "aten_embedding": aten_embedding,
    "embedding_renorm": embedding_renorm,
    "_embedding_bag": aten_embedding_bag,
    "_embedding_bag_forward_only": aten_embedding_bag,
    "embedding_bag": embedding_bag,
    "one_hot": one_hot,
}
