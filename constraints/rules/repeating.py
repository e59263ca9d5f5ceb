"""Expanding, repeating and moving elements: the same elements repeated, or in other positions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from msgspec import structs

from ..contents.elements.values import bounds_of
from ..contents.laws.masks import one_dim
from ..ir.language import Affine, Context, Layout, Shape, Tensor
from ..terms.dims import Dim, Term, maximum, minimum
from ..terms.formula import all_of, any_of, eq, ge, le, lt
from ..terms.sums import triangle
from .common import axes, axis, broadcast, counted, given_or_left_out, rank_is, text
from .joining import joined_layout
from .layout import copied, empty, nonnegative, replaced, transpose, with_strides
from .strides import Strides, laid_out, preserved, strides_of

# --- expand ----------------------------------------------------------------------------------------------


def expand(c: Context, input: Tensor, *size: Dim, implicit: bool = False) -> Tensor:
    """`[*d] -> [*n, *e]`, where each e(i) is d(i) or -1, or d(i) is 1; a -1 keeps d(i)"""
    new = len(size) - input.rank
    if new < 0:
        c.refuse(f"expand to {counted(len(size), 'dim')} of a tensor of rank {input.rank}")
    shape: list[Dim] = []
    for i, wanted in enumerate(size):
        if i < new:
            _may_be_negative(c, wanted, (*size[:i], *size[i + 1 :], *input.shape))
            nonnegative(c, wanted, f"size {i} of {text(size)}, a new dim,")
            shape.append(wanted)
            continue
        old = input.shape[i - new]
        if wanted != old:
            wanted = given_or_left_out(c, wanted, f"size {i} of {text(size)}")
        if wanted == -1 or wanted == old:
            shape.append(old)
            continue
        lone = False if c.at_least(old, 2) else eq(old, 1)
        wide = True if c.at_least(wanted, 0) else ge(wanted, 0)
        fits = any_of((eq(old, wanted), all_of((lone, wide))))
        c.require(fits, f"size {old} expands to {wanted} only where it is 1")
        shape.append(wanted)
    for i, n in enumerate(shape):
        _may_be_negative(c, n, (*shape[:i], *shape[i + 1 :]))
    return expanded(c, input, tuple(shape))


def _may_be_negative(c: Context, size: Dim, others: Sequence[Dim]) -> None:
    """Tells that torch may take a size below -1 where another size is 0."""
    if not c.at_least(size, 0):
        reason = f"torch may expand to a size below -1, {size}, what has no elements"
        c.approximate(reason, "refuse", all_of((le(size, -2), empty(c, tuple(others)))))


def expanded(c: Context, input: Tensor, shape: Shape) -> Tensor:
    """The view of the tensor in a shape that it broadcasts to: stride 0 along a dim that is new, or was 1
    and is more. A dim that stays as it is keeps its stride, and a new one of size 1 has that of a contiguous
    tensor around the next one.
    """
    strides = strides_of(input)
    if strides is None:
        return Tensor(shape, input.dtype, Layout.UNKNOWN)
    missing = len(shape) - input.rank
    steps: list[Dim] = []
    for old, new, stride in zip(input.shape, shape[missing:], strides, strict=True):
        if old == 1:
            steps.append(stride if new == 1 else 0)
        elif old == new or c.at_least(old, 2) or eq(old, 1) is False:
            steps.append(stride)
        else:
            several = minimum(old - 1 if c.at_least(old, 1) else maximum(old - 1, 0), 1)
            steps.append(stride * several)
    for at in reversed(range(missing)):
        steps.insert(0, shape[at + 1] * steps[0] if shape[at] == 1 and steps else 0)
    return Tensor(shape, input.dtype, laid_out(shape, tuple(steps)))


def expand_as(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """`[*d], [*e] -> [*e]`"""
    return expand(c, input, *other.shape)


def broadcast_to(c: Context, input: Tensor, *size: Any, shape: Shape = ()) -> Tensor:
    """`[*d] -> [*size]`"""
    return expand(c, input, *(size or shape))


def broadcast_tensors(c: Context, *tensors: Tensor) -> tuple[Tensor, ...]:
    """`[*a], [*b], … -> [*broadcast], [*broadcast], …`"""
    if not tensors:
        return ()
    shape = broadcast(c, *(t.shape for t in tensors))
    return tuple(expanded(c, t, shape) for t in tensors)


def broadcast_shapes(c: Context, *shapes: Dim | Shape) -> Shape:
    """`(*a), (*b), … -> (*broadcast)`; a number is a shape of rank 1"""
    return broadcast(c, *(s if isinstance(s, tuple) else (s,) for s in shapes)) if shapes else ()


def meshgrid(c: Context, *tensors: Tensor, indexing: str | None = None) -> tuple[Tensor, ...]:
    """`[n0], [n1], … -> [n0, n1, …], [n0, n1, …], …`; with the indexing xy the first two dims are swapped"""
    if not tensors:
        c.refuse("meshgrid takes at least one tensor")
    for tensor in tensors:
        rank_is(c, tensor, "an operand of meshgrid", 0, 1)
    if len({t.dtype for t in tensors if t.dtype}) > 1:
        c.refuse("meshgrid takes tensors of one dtype")
    if indexing not in (None, "ij", "xy"):
        c.refuse(f"meshgrid does not know the indexing {indexing!r}")
    order = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        order[:2] = 1, 0
    shape = tuple(tensors[i].shape[0] if tensors[i].shape else 1 for i in order)
    grids: list[Tensor] = []
    for at, tensor in zip(order, tensors, strict=True):
        strides = strides_of(tensor)
        step = None if strides is None else strides[0] if strides else 1
        layout = None if step is None else tuple(step if i == at else 0 for i in range(len(shape)))
        grids.append(Tensor(shape, tensor.dtype, laid_out(shape, layout)))
    return tuple(grids)


# --- repeat ----------------------------------------------------------------------------------------------


def repeat(c: Context, input: Tensor, *repeats: Dim) -> Tensor:
    """`[*d] -> [*n, *d(i)*n(i)]`"""
    if len(repeats) < input.rank:
        c.refuse(f"repeat with {len(repeats)} numbers of a tensor of rank {input.rank}")
    old = (1,) * (len(repeats) - input.rank) + input.shape
    shape = tuple(n * r for n, r in zip(old, repeats, strict=True))
    for i, (n, r) in enumerate(zip(shape, repeats, strict=True)):
        if not c.at_least(r, 0):
            nonnegative(c, n, f"size {i} after repeat")
    return Tensor(shape, input.dtype)


def tile(c: Context, input: Tensor, *dims: Dim) -> Tensor:
    """`[*d] -> [*d(i)*n(i)]`; the shorter of the two is filled up with ones on its left"""
    return repeat(c, input, *(1,) * (input.rank - len(dims)), *dims)


def repeat_interleave(
    c: Context,
    input: Tensor | None = None,
    repeats: Dim | Tensor | None = None,
    dim: int | None = None,
    output_size: Dim | None = None,
) -> Tensor:
    """`[*a, n, *z] -> [*a, n*repeats, *z]`, over all elements without a dim; with a tensor, its sum, which
    data decides

    A tensor has a number for each of the n, or one for all. A single tensor argument is taken as repeats, and
    the result holds the repeated indices.
    """
    if input is None and isinstance(repeats, Tensor):
        input, repeats = repeats, None
    if input is None:
        c.refuse("repeat_interleave takes a tensor")
    if repeats is None:
        rank_is(c, input, "the repeats of repeat_interleave", 1)
        _integral(c, input)
        if output_size is not None:
            return Tensor((output_size,), input.dtype)
        total = _sum(input)
        return Tensor((_by_data(c, input, input.numel) if total is None else total,), input.dtype)
    if dim is not None and input.rank == 0:
        c.refuse("repeat_interleave along a dim takes a tensor that has dims", IndexError)
    shape = (input.numel,) if dim is None else input.shape
    at = 0 if dim is None else axis(c, dim, input.rank)
    size = shape[at]
    if isinstance(repeats, Tensor):
        total = _total(c, repeats, size, output_size)
    else:
        nonnegative(c, repeats, "the number of repeats")
        total = size * repeats
        if output_size is not None:
            reason = f"output_size is {output_size}, and {size} * {repeats} elements come out"
            c.require(eq(output_size, total), reason)
    return Tensor((*shape[:at], total, *shape[at + 1 :]), input.dtype)


def _integral(c: Context, repeats: Tensor) -> None:
    if repeats.dtype not in ("int32", "int64", None):
        c.refuse(f"repeats are int32 or int64, not {repeats.dtype}", NotImplementedError)


def _total(c: Context, repeats: Tensor, size: Dim, output_size: Dim | None) -> Dim:
    """Σ repeats"""
    rank_is(c, repeats, "repeats", 0, 1)
    _integral(c, repeats)
    count = repeats.shape[0] if repeats.shape else 1
    one_for_all = eq(count, 1)
    c.require(any_of((eq(count, size), one_for_all)), f"there are {count} repeats for {size} elements")
    if output_size is not None:
        return output_size if c.choose(ge(size, 1), "the size of the result") else 0
    if (each := one_dim(repeats)) is not None:
        return size * each
    if count == size and (total := _sum(repeats)) is not None:
        return total
    if one_for_all is True:
        return size * _by_data(c, repeats, 1)
    return _by_data(c, repeats, size)


def _by_data(c: Context, repeats: Tensor, count: Dim) -> Dim:
    """Returns Σ repeats, of so many, which the data decide: from `count * low` up to `count * high`."""
    low, high = bounds_of(repeats)
    least = 0 if low is None else count * maximum(low, 0)
    return c.fresh("repeated", least, None if high is None else maximum(least, count * high))


def _sum(repeats: Tensor) -> Dim | None:
    """Returns the sum of a vector, where its elements are a linear function of their indices; else None."""
    match repeats:
        case Tensor((n,), _, _, Affine(start, steps)):
            return n * start + sum(step for _, step in steps) * triangle(n)
    return None


# --- roll, flip, rotate ----------------------------------------------------------------------------------


def roll(
    c: Context, input: Tensor, shifts: Dim | tuple[Dim, ...], dims: int | tuple[int, ...] | None = ()
) -> Tensor:
    """`[*d] -> [*d]`; without dims, over all elements. Of no elements torch rolls along any dim, existing or
    not. Along a dim, two parts of it are concatenated (`cat`) in the other order.
    """
    many = shifts if isinstance(shifts, tuple) else (shifts,)
    along = dims if isinstance(dims, tuple) else () if dims is None else (dims,)
    if len(many) != (len(along) or 1):
        c.refuse(f"roll with {counted(len(many), 'shift')} along {counted(len(along), 'dim')}")
    there = all_of(chain.from_iterable((ge(d, -input.rank), lt(d, input.rank)) for d in along))
    told = f"roll along {text(along)} of a tensor of rank {input.rank}"
    c.require(any_of((there, empty(c, input.shape))), told, IndexError)
    if input.layout is Layout.CONTIGUOUS or input.rank not in (4, 5) or not along:
        return Tensor(input.shape, input.dtype)
    for shift, dim in zip(many, along, strict=True):
        input = structs.replace(input, layout=_rolled(c, input, shift, dim))
    return Tensor(input.shape, input.dtype, input.layout)


def _rolled(c: Context, input: Tensor, shift: Dim, dim: int) -> Layout | Strides:
    """Returns the layout after a roll along one dim of size n, which puts its last s elements before the
    others, where s is the shift modulo n.

    Of a tensor that is contiguous but for strides along sizes of 1 the result is such a tensor. Torch lays it
    out with the channels innermost only if these lie so in both parts, whose strides along sizes beyond 1 are
    those of the whole: then the channels have a size of 1, or all of the dims after them, and both orders of
    the rest are one.
    """
    if input.layout is Layout.ROW_MAJOR:
        return Layout.ROW_MAJOR
    at, strides = dim % max(input.rank, 1), strides_of(input)
    size = input.shape[at]
    if strides is None or not c.at_least(size, 1):
        return Layout.UNKNOWN
    last = shift if c.at_least(shift, 0) and c.at_least(size - shift, 1) else shift % size
    parts = [
        Tensor((*input.shape[:at], part, *input.shape[at + 1 :]), input.dtype, strides)
        for part in (last, size - last)
    ]
    return joined_layout(c, parts, input.shape)


def flip(c: Context, input: Tensor, *dims: int) -> Tensor:
    """`[*d] -> [*d]`, reversed along some dims"""
    if dims:
        axes(c, dims, input.rank)
    return Tensor(input.shape, input.dtype, preserved(c, input.shape, input.layout))


def fliplr(c: Context, input: Tensor) -> Tensor:
    """`[n, m, *d] -> [n, m, *d]`, reversed along m"""
    return _flipped(c, input, 1)


def flipud(c: Context, input: Tensor) -> Tensor:
    """`[n, *d] -> [n, *d]`, reversed along n"""
    return _flipped(c, input, 0)


def _flipped(c: Context, input: Tensor, dim: int) -> Tensor:
    if input.rank <= dim:
        c.refuse(f"a tensor of rank {dim + 1} or more is needed here, not {input}")
    return flip(c, input, dim)


def rot90(c: Context, input: Tensor, k: Dim = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """`[n, m, *d] -> [m, n, *d]` for odd k: a quarter turn is a flip and a transposition"""
    if len(dims) != 2 or input.rank < 2:
        c.refuse(f"rot90 turns two dims of a tensor of rank 2 or more, not {text(dims)} of {input}")
    first, second = axes(c, dims, input.rank)
    if isinstance(k, Term):
        k = next(i for i in range(4) if i == 3 or c.choose(eq(k % 4, i), f"how far {k} quarters turn"))
    if k % 4 == 0:
        return Tensor(input.shape, input.dtype)
    turned = flip(c, input, second)
    return turned if k % 4 == 2 else transpose(c, turned, first, second)


# --- diagonals -------------------------------------------------------------------------------------------


def diagonal(c: Context, input: Tensor, offset: Dim = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`[*a, n, *b, m, *z] -> [*a, *b, *z, k]` with k = max(0, min(n, m, n + offset, m - offset)), a view"""
    i, j = _two_axes(c, dim1, dim2, input.rank)
    n, m = input.shape[i], input.shape[j]
    length = _diagonal_size(c, n, m, offset)
    rest = [at for at in range(input.rank) if at not in (i, j)]
    strides = strides_of(input)
    steps = strides and (*(strides[at] for at in rest), strides[i] + strides[j])
    return with_strides(input, (*(input.shape[at] for at in rest), length), steps)


def linalg_diagonal(c: Context, input: Tensor, offset: Dim = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """`diagonal` of the last two dims, unless others are given."""
    return diagonal(c, input, offset, dim1, dim2)


def _two_axes(c: Context, dim1: int, dim2: int, rank: int) -> tuple[int, int]:
    if rank < 2:
        c.refuse(f"a diagonal needs a tensor of rank 2 or more, not {rank}", IndexError)
    i, j = axis(c, dim1, rank), axis(c, dim2, rank)
    if i == j:
        c.refuse(f"the two dims of a diagonal are the same: {dim1} and {dim2}")
    return i, j


def _diagonal_size(c: Context, n: Dim, m: Dim, offset: Dim) -> Dim:
    """The elements `[i, i + offset]` of an n by m matrix run from row max(0, -offset) up to row min(n, m -
    offset).
    """
    if c.at_least(offset, 0):
        n, m = n, m - offset
    elif c.at_least(-offset, 0):
        n, m = n + offset, m
    else:
        return maximum(0, minimum(n, m, n + offset, m - offset))
    least = minimum(n, m)
    return least if offset == 0 or (c.at_least(n, 0) and c.at_least(m, 0)) else maximum(0, least)


def diagonal_scatter(
    c: Context, input: Tensor, src: Tensor, offset: Dim = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """`[*a, n, *b, m, *z], [*a, *b, *z, k] -> [*a, n, *b, m, *z]`"""
    return replaced(c, input, diagonal(c, input, offset, dim1, dim2), src)


def diag_embed(c: Context, input: Tensor, offset: Dim = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """`[*d, k] -> [*d, n, n]` with n = k + |offset|, the two new dims standing at dim1 and dim2"""
    i, j = _two_axes(c, dim1, dim2, input.rank + 1)
    *rest, length = input.shape
    size = length + (offset if c.at_least(offset, 0) else maximum(offset, -offset))
    others = iter(rest)
    shape = tuple(size if at in (i, j) else next(others) for at in range(input.rank + 1))
    return Tensor(shape, input.dtype)


def diag(c: Context, input: Tensor, diagonal: Dim = 0) -> Tensor:
    """`[k] -> [n, n]` with n = k + |diagonal|, `[n, m] -> [k]`, a copy"""
    rank_is(c, input, "the operand of diag", 1, 2)
    if input.rank == 1:
        return diag_embed(c, input, diagonal)
    n, m = input.shape
    return Tensor((_diagonal_size(c, n, m, diagonal),), input.dtype)


def diagflat(c: Context, input: Tensor, offset: Dim = 0) -> Tensor:
    """`[*d] -> [n, n]` with n = ∏d + |offset|"""
    return diag_embed(c, Tensor((input.numel,), input.dtype), offset)


RULES: dict[str, Callable[..., Any]] = {
    "expand": expand,
    "expand_as": expand_as,
    "broadcast_to": broadcast_to,
    "broadcast_shapes": broadcast_shapes,
    "broadcast_tensors": broadcast_tensors,
    "meshgrid": meshgrid,
    "repeat": repeat,
    "tile": tile,
    "repeat_interleave": repeat_interleave,
    "roll": roll,
    "flip": flip,
    "fliplr": fliplr,
    "flipud": flipud,
    "rot90": rot90,
    "diagonal": diagonal,
    "linalg_diagonal": linalg_diagonal,
    "diagonal_scatter": diagonal_scatter,
    "diag": diag,
    "diag_embed": diag_embed,
    "diagflat": diagflat,
    "expand_copy": copied(expand),
    "diagonal_copy": copied(diagonal),
}
