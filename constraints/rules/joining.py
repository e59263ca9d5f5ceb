"""Joining and splitting along a dim: cat, stack, split, chunk, unbind and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine.memory import is_contiguous
from ..engine.ruleset import BadCall
from ..ir.language import Context, Layout, Shape, Tensor, product
from ..terms.dims import Dim, Term, ceildiv, maximum, minimum, total
from ..terms.formula import divides, eq, ge
from .common import axis, channels_innermost, channels_last, promote, same_dim, text
from .indexing import a_dim, one_dim, slice_length
from .layout import at_least_rank, copied, nonnegative, unsqueeze, with_strides
from .strides import Strides, quotient, strides_of

# --- joining ---------------------------------------------------------------------------------------------


def cat(c: Context, tensors: tuple[Tensor, ...], dim: int = 0) -> Tensor:
    """`[*a, n, *z], [*a, m, *z], … -> [*a, n + m + …, *z]`

    torch skips tensors of shape [0], whatever the rank of the others: so next to tensors of another rank, a
    vector has to be empty, and along a dim that vectors do not have, all of them.
    """
    if not tensors:
        c.refuse("cat takes at least one tensor", ValueError)
    ranks = {t.rank for t in tensors}
    if 0 in ranks:
        c.refuse("a scalar cannot be concatenated")
    dtype = promote(tensors)
    vectors = ranks == {1}
    first = next((i for i, t in enumerate(tensors) if t.rank != 1), len(tensors))
    _skipped(c, tensors[:first], dim, vectors)
    if vectors:
        return Tensor((total(t.shape[0] for t in tensors),), dtype)
    at = axis(c, dim, tensors[first].rank)
    if len(ranks - {1}) > 1:
        c.refuse(f"cat takes tensors of one rank, not {sorted(ranks)}")
    _skipped(c, tensors[first:], 0, vectors)
    parts = [t for t in tensors if t.rank != 1]
    shape = list(parts[0].shape)
    for part in parts[1:]:
        for i, size in enumerate(part.shape):
            if i != at:
                reason = f"cat along dim {at} takes equal sizes in dim {i}, not {shape[i]} and {size}"
                shape[i] = same_dim(c, shape[i], size, reason)
    shape[at] = total(part.shape[at] for part in parts)
    return Tensor(tuple(shape), dtype, joined_layout(c, tensors, tuple(shape)))


def _skipped(c: Context, tensors: Sequence[Tensor], dim: int, vectors: bool) -> None:
    """Requires the vectors that cannot be joined to be empty.

    The first tensor that is not empty decides the dims.
    """
    for vector in (t for t in tensors if t.rank == 1 and not (vectors and dim in (0, -1))):
        what = f"along dim {dim}" if vectors else "with tensors of rank 2 or more"
        told = f"a vector of size {vector.shape[0]} cannot be concatenated {what}"
        c.require(eq(vector.shape[0], 0), told, RuntimeError if dim in (0, -1) else IndexError)


def joined_layout(c: Context, tensors: Sequence[Tensor], shape: Shape) -> Layout | Strides:
    """Contiguous, unless all tensors are laid out with their channels innermost."""
    row_major = [t.layout is Layout.CONTIGUOUS for t in tensors]
    if len(shape) not in (4, 5) or all(row_major) or any(t.rank != len(shape) for t in tensors):
        return Layout.CONTIGUOUS
    answers = [channels_innermost(c, t) for t in tensors]
    if False in answers:
        return Layout.CONTIGUOUS
    return channels_last(shape) if all(answers) else Layout.UNKNOWN


def stack(c: Context, tensors: tuple[Tensor, ...], dim: int = 0) -> Tensor:
    """`[*a, *z], [*a, *z], … -> [*a, k, *z]` for k tensors"""
    if not tensors:
        c.refuse("stack takes at least one tensor")
    first = tensors[0]
    at = axis(c, dim, first.rank + 1)
    shape = list(first.shape)
    for other in tensors[1:]:
        if other.rank != first.rank:
            c.refuse(f"stack takes tensors of equal shapes, not {text(first.shape)} and {text(other.shape)}")
        for i, size in enumerate(other.shape):
            reason = f"stack takes tensors of equal shapes, not {text(first.shape)} and {text(other.shape)}"
            shape[i] = same_dim(c, shape[i], size, reason)
    dtype, count = promote(tensors), len(tensors)
    if at == first.rank:
        joined = (*shape, count)
        return Tensor(joined, dtype, joined_layout(c, [unsqueeze(c, t, at) for t in tensors], joined))
    joined = (*shape[:at], count * shape[at], *shape[at + 1 :])
    whole = Tensor(joined, dtype, joined_layout(c, tensors, joined))
    # Where the channels are innermost, axes of size 1 have other strides after the view that makes k tensors.
    is_known = is_contiguous(whole) or all(c.at_least(n, 2) for n in shape)
    steps = strides_of(whole) if is_known else None
    split = steps and (*steps[:at], steps[at] * shape[at], *steps[at:])
    return with_strides(whole, (*shape[:at], count, *shape[at:]), split)


def _lifted(c: Context, tensors: tuple[Tensor, ...], rank: int) -> tuple[Tensor, ...]:
    lift = at_least_rank(rank)
    return tuple(lift(c, t) for t in tensors)  # type: ignore[misc]


def hstack(c: Context, tensors: tuple[Tensor, ...]) -> Tensor:
    """Vectors `[n], [m], … -> [n + m + …]`, others `[a, n, *z], [a, m, *z], … -> [a, n + m + …, *z]`"""
    lifted = _lifted(c, tensors, 1)
    return cat(c, lifted, 0 if lifted and lifted[0].rank == 1 else 1)


def vstack(c: Context, tensors: tuple[Tensor, ...]) -> Tensor:
    """`[n, *z], [m, *z], … -> [n + m + …, *z]`, a vector counting as a row"""
    return cat(c, _lifted(c, tensors, 2), 0)


def dstack(c: Context, tensors: tuple[Tensor, ...]) -> Tensor:
    """`[a, b, n, *z], [a, b, m, *z], … -> [a, b, n + m + …, *z]`, a matrix counting as `[a, b, 1]`"""
    return cat(c, _lifted(c, tensors, 3), 2)


def column_stack(c: Context, tensors: tuple[Tensor, ...]) -> Tensor:
    """`[a, n, *z], [a, m, *z], … -> [a, n + m + …, *z]`, a vector counting as a column"""
    columns = tuple(unsqueeze(c, t, -1) if t.rank < 2 else t for t in _lifted(c, tensors, 1))
    return cat(c, columns, 1)


def block_diag(c: Context, *tensors: Tensor) -> Tensor:
    """`[n0, m0], [n1, m1], … -> [n0 + n1 + …, m0 + m1 + …]`, a vector counting as a row; of none, [1, 0]"""
    if not tensors:
        return Tensor((1, 0))
    if any(t.rank > 2 for t in tensors):
        c.refuse("block_diag takes tensors of rank 2 or less")
    blocks = _lifted(c, tensors, 2)
    return Tensor((total(b.shape[0] for b in blocks), total(b.shape[1] for b in blocks)), promote(tensors))


def chunk_cat(c: Context, tensors: tuple[Tensor, ...], dim: int, num_chunks: Dim) -> Tensor:
    """`[*a, n, *y], [*a, m, *z], …, k -> [*a, k, ⌈n / k⌉*∏y + ⌈m / k⌉*∏z + …]`; no size may be 0"""
    if not tensors:
        c.refuse("_chunk_cat takes at least one tensor")
    c.require(ge(num_chunks, 1), f"_chunk_cat into {num_chunks} chunks")
    if len({t.dtype for t in tensors} - {None}) > 1:
        c.refuse("_chunk_cat takes tensors of one dtype")
    if not all(t.shape for t in tensors):
        c.refuse("_chunk_cat does not take scalars")
    width: Dim = 0
    at = axis(c, dim, tensors[0].rank)
    for tensor in tensors:
        same = dim % tensor.rank if -tensor.rank <= dim < tensor.rank else None
        if same != at:
            c.refuse(f"_chunk_cat along dim {dim} of tensors of different rank")
        for n in tensor.shape:
            c.require(ge(n, 1), f"_chunk_cat takes tensors with elements, not {tensor}")
        for a, b in zip(tensors[0].shape[:at], tensor.shape[:at], strict=True):
            same_dim(c, a, b, f"_chunk_cat along dim {at} takes equal sizes before it: {a} and {b}")
        width = width + ceildiv(tensor.shape[at], maximum(num_chunks, 1)) * product(tensor.shape[at + 1 :])
    return Tensor((*tensors[0].shape[:at], num_chunks, width), tensors[0].dtype)


def flatten_dense_tensors(c: Context, tensors: tuple[Tensor, ...]) -> Tensor:
    """`[*a], [*b], … -> [∏a + ∏b + …]`"""
    return cat(c, tuple(Tensor((t.numel,), t.dtype) for t in tensors))


# --- splitting -------------------------------------------------------------------------------------------


def pieces(c: Context, input: Tensor, dim: int, sizes: Sequence[Dim]) -> tuple[Tensor, ...]:
    """`[*a, n, *z] -> [*a, n0, *z], [*a, n1, *z], …`, views"""
    at, _, stride = a_dim(c, input, dim)
    return tuple(one_dim(input, at, (size,), (stride,)) for size in sizes)


def split(
    c: Context, input: Tensor, split_size_or_sections: Dim | tuple[Dim, ...], dim: int = 0
) -> tuple[Tensor, ...]:
    """`[*a, n, *z] -> [*a, s, *z], …, [*a, n - (k-1)*s, *z]` with k = max(1, ⌈n / s⌉); by sizes,
    `split_with_sizes`

    A size s of 0 is taken where n is 0, for one piece.
    """
    size = split_size_or_sections
    if isinstance(size, tuple):
        return split_with_sizes(c, input, size, dim)
    whole = _whole(c, input, dim)
    nonnegative(c, size, "the size of split")
    if not (c.at_least(size, 1) or c.choose(ge(size, 1), "the number of results of split")):
        c.require(eq(whole, 0), f"split of {whole} into pieces of size 0")
        return pieces(c, input, dim, [whole])
    count = ceildiv(whole, size)
    k = c.number(count if c.at_least(whole, 1) else maximum(1, count))
    return pieces(c, input, dim, [size] * (k - 1) + [whole - (k - 1) * size])


def _whole(c: Context, input: Tensor, dim: int) -> Dim:
    """Returns the size of the dim that is cut into pieces."""
    if not input.shape:
        c.refuse("a scalar cannot be cut into pieces")
    return a_dim(c, input, dim)[1]


def split_with_sizes(
    c: Context, input: Tensor, split_sizes: tuple[Dim, ...] | Tensor, dim: int = 0
) -> tuple[Tensor, ...]:
    """`[*a, n0 + n1 + …, *z] -> [*a, n0, *z], [*a, n1, *z], …`

    A tensor contains the sizes of a list whose length is not known; its sum and the pieces are for others.
    """
    whole = _whole(c, input, dim)
    if isinstance(split_sizes, Tensor):
        return ()
    for size in split_sizes:
        nonnegative(c, size, "a size of split")
    c.require(eq(total(split_sizes), whole), f"the sizes {text(split_sizes)} must add up to {whole}")
    return pieces(c, input, dim, split_sizes)


def unflatten_dense_tensors(c: Context, flat: Tensor, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """`[∏a + ∏b + … or more], [*a], [*b], … -> [*a], [*b], …`, of the dtype of the first"""
    if flat.rank != 1:
        c.refuse(f"the elements of the tensors come as one vector, not as {flat}")
    needed = total(t.numel for t in tensors)
    c.require(ge(flat.shape[0], needed), f"{flat} has fewer than the {needed} elements of the tensors")
    return tuple(Tensor(t.shape, flat.dtype) for t in tensors)


def chunk(c: Context, input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`[*a, n, *z] -> [*a, s, *z], …, [*a, rest, *z]` with s = ⌈n / chunks⌉

    These are ⌈n / s⌉ pieces, which may be fewer than asked for; and of n = 0 as many empty ones as asked for.
    """
    whole = _whole(c, input, dim)
    wanted = c.number(chunks)
    if wanted < 1:
        c.refuse(f"chunk into {wanted} pieces")
    size = ceildiv(whole, wanted)
    rest = whole // 2 if wanted == 2 else whole - (wanted - 1) * size
    if quotient(whole, wanted) is not None or c.at_least(rest, 1):
        return pieces(c, input, dim, [size] * (wanted - 1) + [rest])
    k = c.number(_chunks(c, whole, wanted))
    return pieces(c, input, dim, [size] * (k - 1) + [rest if k == wanted else whole - (k - 1) * size])


def _chunks(c: Context, n: Dim, wanted: int) -> Dim:
    """⌈n / ⌈n / wanted⌉⌉, which for two is min(n, 2); and `wanted` for n = 0"""
    some = c.at_least(n, 1)
    size = ceildiv(n, wanted)
    count = minimum(n, 2) if wanted == 2 else ceildiv(n, size if some else maximum(1, size))
    return count if some else count + wanted * (1 - minimum(1, n))


def tensor_split(
    c: Context, input: Tensor, indices_or_sections: Dim | tuple[Dim, ...] | Tensor, dim: int = 0
) -> tuple[Tensor, ...]:
    """Returns `[*a, n, *z]` in k pieces, where piece i has size ⌊(n + k - 1 - i) / k⌋: the first n % k pieces
    are larger by 1. With indices i, j, … the pieces are the slices `:i`, `i:j`, …
    """
    if not input.shape:
        c.refuse("a scalar cannot be cut into pieces")
    _, whole, _ = a_dim(c, input, dim)
    by = indices_or_sections
    if isinstance(by, Tensor) and (by.dtype not in (None, "int64") or by.rank > 1):
        c.refuse(f"tensor_split takes int64 tensors of rank 0 or 1, not {by}")
    if isinstance(by, Tensor) and by.shape:
        many = c.number(by.shape[0]) + 1
        return pieces(c, input, dim, [c.fresh("piece", 0, whole) for _ in range(many)])
    if isinstance(by, tuple):
        starts, stops = (None, *by), (*by, None)
        bounds = zip(starts, stops, strict=True)
        return pieces(c, input, dim, [slice_length(c, whole, start, stop, 1) for start, stop in bounds])
    count = c.fresh("sections", 1, None) if isinstance(by, Tensor) else by
    if not c.at_least(count, 1):
        c.require(ge(count, 1), f"tensor_split into {count} pieces")
    k = max(1, c.number(count))
    return pieces(c, input, dim, [(whole + k - 1 - i) // k for i in range(k)])


def split_dim(name: str, at: int, least: int) -> Callable[..., tuple[Tensor, ...]]:
    """`hsplit`, `vsplit`, `dsplit`: along dim `at` of a tensor whose rank is `least` or more"""

    def split_evenly(
        c: Context, input: Tensor, indices_or_sections: Dim | tuple[Dim, ...], *more: Dim
    ) -> tuple[Tensor, ...]:
        """`[*a, k*n, *z] -> [*a, n, *z], …, [*a, n, *z]`, or as `tensor_split` does it by indices"""
        if input.rank < least:
            c.refuse(f"{name} takes a tensor of rank {least} or more, not {input}")
        dim = min(at, input.rank - 1)
        if any(isinstance(n, Tensor) for n in (indices_or_sections, *more)):
            raise BadCall(f"{name} takes a tensor for a number where it has one element")
        by = (indices_or_sections, *more) if more else indices_or_sections
        if isinstance(by, int | Term):
            if by == 0:
                c.refuse(f"{name} into 0 pieces")
            whole = input.shape[dim]
            c.require(divides(by, whole), f"{name} into {by} equal pieces of {whole}")
        return tensor_split(c, input, by, dim)  # type: ignore[arg-type]

    return split_evenly


def unbind(c: Context, input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """`[*a, n, *z] -> [*a, *z], …, [*a, *z]`, n of them"""
    at, size, _ = a_dim(c, input, dim)
    return (one_dim(input, at, (), ()),) * c.number(size)


RULES: dict[str, Callable[..., Any]] = {
    "_chunk_cat": chunk_cat,
    "flatten_dense_tensors": flatten_dense_tensors,
    "unflatten_dense_tensors": unflatten_dense_tensors,
    "cat": cat,
    "stack": stack,
    "hstack": hstack,
    "vstack": vstack,
    "dstack": dstack,
    "column_stack": column_stack,
    "block_diag": block_diag,
    "split": split,
    "split_with_sizes": split_with_sizes,
    "chunk": chunk,
    "tensor_split": tensor_split,
    "hsplit": split_dim("hsplit", 1, 1),
    "vsplit": split_dim("vsplit", 0, 2),
    "dsplit": split_dim("dsplit", 2, 3),
    "unbind": unbind,
    "split_copy": copied(split),
    "split_with_sizes_copy": copied(split_with_sizes),
    "unbind_copy": copied(unbind),
}
