"""Views and reshapes: the same elements in the same number under other axes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final

from ..engine.memory import is_contiguous
from ..ir.language import Context, Layout, Shape, Tensor, product, tensors
from ..terms.dims import Dim, maximum, sym, symbols, total
from ..terms.formula import And, Compare, Formula, Or, all_of, any_of, divides, eq, ge, ne, negate
from ..terms.formula_text import stated
from .common import axes, axis, contiguous_strides, counted, given_or_left_out, rank_is, text
from .strides import (
    Strides,
    cancelled,
    channels_last,
    contiguous_under,
    copied_if_needed,
    is_refuted,
    laid_out,
    lies_so,
    same_numel,
    strides_of,
    unsqueezed,
    view_of,
)


def nonnegative(c: Context, size: Dim, what: str) -> None:
    """Requires a size that was given to be at least 0."""
    if isinstance(size, int) and size < 0:
        c.refuse(f"{what} is {size}, which is negative")
    if not c.at_least(size, 0):
        c.require(ge(size, 0), f"{what} is {size}, which must not be negative")


def empty(c: Context, shape: Shape) -> Formula:
    """Returns the condition that the tensor has no element: one of its sizes is 0."""
    return any_of(eq(size, 0) for size in shape if not c.at_least(size, 1))


def with_strides(tensor: Tensor, shape: Shape, strides: Strides | None) -> Tensor:
    """A view of the tensor."""
    return Tensor(shape, tensor.dtype, laid_out(shape, strides))


# --- view and its kin ------------------------------------------------------------------------------------


def inferred_sizes(c: Context, old: Shape, sizes: Sequence[Dim]) -> tuple[Shape, int | None]:
    """`[d0, …] as (e0, …, -1, …) -> [e0, …, ∏d // ∏e, …]`, and the position of the -1.

    The sizes given multiply to the number of elements. A -1 is replaced by the quotient, where the other
    sizes do not multiply to 0 and divide the number of elements.
    """
    sizes = [
        n if n in old else given_or_left_out(c, n, f"size {i} of {text(sizes)}") for i, n in enumerate(sizes)
    ]
    unknown = [i for i, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1:
        c.refuse(f"only one size can be inferred, and {text(sizes)} leaves out {len(unknown)}")
    for i, size in enumerate(sizes):
        if i not in unknown and size not in old:
            nonnegative(c, size, f"size {i} of {text(sizes)}")
    if not unknown:
        reason = f"{text(old)} and {text(sizes)} have different numbers of elements"
        c.require(same_numel(c, old, sizes), reason)
        return tuple(sizes), None
    at = unknown[0]
    rest, others, common = cancelled(old, [*sizes[:at], *sizes[at + 1 :]])
    nonzero = all_of(ne(f, 0) for f in (*common, others) if not c.at_least(f, 1))
    if nonzero is False:
        c.refuse(f"the -1 in {text(sizes)} is ambiguous: the other sizes multiply to 0")
    c.require(nonzero, f"the -1 in {text(sizes)} is ambiguous where the other sizes multiply to 0")
    if others == 1:
        return (*sizes[:at], rest, *sizes[at + 1 :]), at
    c.require(divides(others, rest), f"{text(old)} cannot be {text(sizes)}: {others} must divide {rest}")
    return (*sizes[:at], rest // others, *sizes[at + 1 :]), at


_UNKNOWN_STRIDE: Final = "stride_in_question__"


def _strides_or_placeholders(tensor: Tensor) -> Strides:
    """Returns the strides, or one unconstrained symbol for each stride where they are unknown: a statement
    proved of these symbols holds for any strides.
    """
    return strides_of(tensor) or tuple(sym(f"{_UNKNOWN_STRIDE}{i}") for i in range(tensor.rank))


def _whatever_the_strides(formula: Formula) -> Formula:
    """Returns a formula that implies the given one and mentions no unknown stride."""
    match formula:
        case And(parts):
            return all_of(map(_whatever_the_strides, parts))
        case Or(parts):
            return any_of(map(_whatever_the_strides, parts))
        case Compare(_, term) if any(name.startswith(_UNKNOWN_STRIDE) for name in symbols(term)):
            return False
    return formula


def view(c: Context, input: Tensor, *size: Dim | str, dtype: str | None = None) -> Tensor:
    """`[*d] -> [*e]` with ∏d == ∏e, where the strides allow it (`strides.view_of`); with a dtype,
    `view_dtype`.
    """
    if dtype is None and len(size) == 1 and isinstance(size[0], str):
        dtype = size[0]
    if dtype is not None:
        return view_dtype(c, input, dtype)
    new, inferred = inferred_sizes(c, input.shape, size)  # type: ignore[arg-type]
    if is_contiguous(input) and not isinstance(input.layout, tuple):
        return Tensor(new, input.dtype, input.layout)
    possible, layout = view_of(c, input.shape, _strides_or_placeholders(input), new, inferred)
    if input.layout is Layout.UNKNOWN:
        if possible is not True:
            anyway = any_of((_whatever_the_strides(possible), empty(c, input.shape)))
            _require_in_cases(c, input, new, inferred, anyway)
        return Tensor(new, input.dtype, Layout.UNKNOWN)
    if possible is not True:
        c.require(
            any_of((possible, empty(c, input.shape))),
            f"{text(input.shape)} with strides {text(_strides_or_placeholders(input))} cannot be viewed as "
            f"{text(new)}: it is not contiguous there, and would have to be copied (reshape, contiguous)",
        )
    return Tensor(new, input.dtype, layout)


def _require_in_cases(c: Context, input: Tensor, new: Shape, inferred: int | None, anyway: Formula) -> None:
    """Requires, in each case of sizes, what the view needs there. The view is possible for any strides where
    `anyway` holds; elsewhere it is approximate if the cases are not known.
    """
    cases = c.layouts(input)
    if cases is None:
        reason = f"whether strides let {text(input.shape)} be viewed as {text(new)} is not known"
        c.approximate(reason, "accept", negate(anyway))
    for case, tensor in cases or ():
        shape = case.here(new)
        strides = _strides_or_placeholders(tensor)
        contiguous = tensor.layout is Layout.CONTIGUOUS
        possible = contiguous or view_of(case, tensor.shape, strides, shape, inferred).possible
        if possible is not True:
            where = stated(case.condition, "where {}", "at some sizes")
            reason = f"{text(input.shape)} cannot be viewed as {text(new)} {where}: it is not "
            reason += "contiguous there, and would have to be copied (reshape, contiguous)"
            elsewhere = negate(case.condition)
            c.require(any_of((elsewhere, possible, empty(case, tensor.shape))), reason)


BYTES = {
    **dict.fromkeys("bool uint8 int8 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz".split(), 1),
    **dict.fromkeys("int16 uint16 float16 bfloat16".split(), 2),
    **dict.fromkeys("int32 uint32 float32 complex32".split(), 4),
    **dict.fromkeys("int64 uint64 float64 complex64".split(), 8),
    "complex128": 16,
}
"""The size of an element."""


def view_dtype(c: Context, input: Tensor, dtype: str) -> Tensor:
    """`[*d, n] -> [*d, n*k // m]`, the elements being k bytes before and m bytes after.

    Where k != m the elements of the last dim lie side by side. Where k < m the dim is a multiple of m // k,
    and so is every other stride; torch calculates strides as if a size 0 were 1, so then the dim must not be
    0 either. What strides views of no elements have is not followed.
    """
    if input.dtype not in BYTES or dtype not in BYTES:
        c.approximate(f"the sizes of elements of {input.dtype} and {dtype} are not known")
        return Tensor(input.shape, dtype, input.layout)
    before, after = BYTES[input.dtype], BYTES[dtype]
    if before == after:
        return Tensor(input.shape, dtype, input.layout)
    if not input.shape:
        c.refuse(f"a scalar of {input.dtype} cannot be viewed as {dtype}, whose elements have another size")
    *outer, last = input.shape
    strides = strides_of(input)
    plain = input.layout is Layout.CONTIGUOUS
    nothing = False if plain else empty(c, input.shape)
    c.approximate("which strides a view of no elements has is not followed", "accept", nothing)
    if strides is None:
        c.approximate("whether elements can be viewed in another size depends on unknown strides", "accept")
    else:
        side_by_side = any_of((eq(strides[-1], 1), nothing))
        c.require(side_by_side, f"viewing as {dtype} needs a last stride of 1, not {strides[-1]}")
    if before > after:
        ratio = before // after
        shape: Shape = (*outer, last * ratio)
        if plain and not c.at_least(last, 1):
            strides = contiguous_strides((*outer, maximum(last, 1)))
        return Tensor(shape, dtype, laid_out(shape, strides and (*(s * ratio for s in strides[:-1]), 1)))
    ratio = after // before
    what = f"viewing {input.dtype} as {dtype} needs"
    c.require(divides(ratio, last), f"{what} a last size divisible by {ratio}, not {last}")
    shape = (*outer, last // ratio)
    if plain:
        if outer and not c.at_least(last, 1):
            c.require(ne(last, 0), f"{what} strides divisible by {ratio}, and that of a size 0 is 1")
        return Tensor(shape, dtype)
    for stride in strides[:-1] if strides else ():
        told = f"{what} strides divisible by {ratio}, not {stride}"
        c.require(any_of((divides(ratio, stride), nothing)), told)
    return Tensor(shape, dtype, laid_out(shape, strides and (*(s // ratio for s in strides[:-1]), 1)))


def reshape_to(c: Context, input: Tensor, new: Shape, inferred: int | None = None) -> Tensor:
    """The tensor in a shape that has as many elements: a view where one is possible, else a contiguous copy.

    A view is contiguous where the tensor is, for both run through memory in the same order. So the result is
    not contiguous only where the view is possible and the tensor is not contiguous. Where that depends on
    sizes, in a way that `contiguous_under` cannot exclude, the layout is unknown.
    """
    strides = strides_of(input)
    if strides is None or input.layout is Layout.CONTIGUOUS:
        return Tensor(new, input.dtype, input.layout)
    possible, layout = view_of(c, input.shape, strides, new, inferred)
    if possible is True:
        return Tensor(new, input.dtype, layout)
    settled = contiguous_under(possible, input.shape, strides)
    return Tensor(new, input.dtype, Layout.CONTIGUOUS if settled else Layout.UNKNOWN)


def reshape(c: Context, input: Tensor, *shape: Dim, size: Shape | None = None) -> Tensor:
    """`[*d] -> [*e]` with ∏d == ∏e, copied where the strides ask for it."""
    return reshape_to(c, input, *inferred_sizes(c, input.shape, shape if size is None else size))


def reshape_alias(c: Context, input: Tensor, size: Shape, stride: Shape) -> Tensor:
    """`[*d] -> [*e]` with ∏d == ∏e; the strides are those that the view has anyway."""
    return reshape(c, input, *size)


def view_as(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """`[*d], [*e] -> [*e]`, a view"""
    return view(c, input, *other.shape)


def reshape_as(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """`[*d], [*e] -> [*e]`, copied where the strides ask for it"""
    return reshape(c, input, *other.shape)


def flatten(c: Context, input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """`[*a, *m, *z] -> [*a, ∏m, *z]`; a scalar becomes [1]"""
    start, end = axis(c, start_dim, input.rank), axis(c, end_dim, input.rank)
    if start > end:
        c.refuse(f"flatten's start_dim {start_dim} comes after its end_dim {end_dim}")
    if start == end and input.shape:
        return input
    merged = product(input.shape[start : end + 1])
    return reshape_to(c, input, (*input.shape[:start], merged, *input.shape[end + 1 :]))


def ravel(c: Context, input: Tensor) -> Tensor:
    """`[*d] -> [∏d]`, contiguous"""
    return Tensor((input.numel,), input.dtype)


def unflatten(c: Context, input: Tensor, dim: int, sizes: Shape | int) -> Tensor:
    """`[*a, n, *z] -> [*a, *e, *z]` with n == ∏e; one of the e may be -1"""
    if not input.shape:
        c.refuse("unflatten needs a tensor of rank 1 or more")
    at = axis(c, dim, input.rank)
    given = sizes if isinstance(sizes, tuple) else (sizes,)
    if not given:
        c.refuse("unflatten needs at least one size")
    new, _ = inferred_sizes(c, (input.shape[at],), given)
    shape = (*input.shape[:at], *new, *input.shape[at + 1 :])
    if not isinstance(input.layout, tuple):
        return Tensor(shape, input.dtype, input.layout)
    return Tensor(shape, input.dtype, view_of(c, input.shape, input.layout, shape).layout)


# --- dims of size 1 --------------------------------------------------------------------------------------


def squeeze(c: Context, input: Tensor, dim: int | Sequence[int] | None = None, *more: int) -> Tensor:
    """`[*a, 1, *z] -> [*a, *z]`, and `[*a, n, *z]` stays as it is where n != 1; without a dim, for every dim.

    The rank of the result depends on the sizes, so it has to be known of each whether it is 1.
    """
    if dim is None:
        chosen: Sequence[int] = range(input.rank)
    else:
        chosen = axes(c, (dim, *more) if more else dim, input.rank) if dim != () else ()  # type: ignore[arg-type]
    gone = {i for i in chosen if input.shape and _is_one(c, input.shape[i])}
    kept = [i for i in range(input.rank) if i not in gone]
    return permuted(input, kept)


def _is_one(c: Context, size: Dim) -> bool:
    return not c.at_least(size, 2) and c.choose(eq(size, 1), f"whether squeeze removes a dim of size {size}")


def permuted(input: Tensor, order: Sequence[int]) -> Tensor:
    """A view of these dims in this order; those left out are of size 1."""
    shape = tuple(input.shape[i] for i in order)
    if input.layout is Layout.ROW_MAJOR and [*order] == sorted(order):
        return Tensor(shape, input.dtype, input.layout)
    strides = strides_of(input)
    return with_strides(input, shape, strides and tuple(strides[i] for i in order))


def unsqueeze(c: Context, input: Tensor, dim: int) -> Tensor:
    """`[*a, *z] -> [*a, 1, *z]`"""
    return unsqueezed(input, axis(c, dim, input.rank + 1))


def at_least_rank(rank: int) -> Callable[..., Tensor | tuple[Tensor, ...]]:
    """`atleast_1d`, `atleast_2d`, `atleast_3d`"""

    def atleast(c: Context, *tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
        """`[*d] -> [1, …, *d]`, and of rank 3 `[n] -> [1, n, 1]`, `[n, m] -> [n, m, 1]`"""
        results = []
        for tensor in tensors:
            while tensor.rank < rank:
                tensor = unsqueeze(c, tensor, -1 if rank == 3 and tensor.rank == 2 else 0)
            results.append(tensor)
        return results[0] if len(tensors) == 1 else tuple(results)

    return atleast


# --- the order of dims -----------------------------------------------------------------------------------


def permute(c: Context, input: Tensor, *dims: int) -> Tensor:
    """`[d0, d1, …] -> [d(p0), d(p1), …]` for a permutation p"""
    if len(dims) != input.rank:
        c.refuse(f"permute to {counted(len(dims), 'dim')} of a tensor of rank {input.rank}")
    return permuted(input, axes(c, dims, input.rank) if dims else ())


def transpose(c: Context, input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`[*a, n, *m, k, *z] -> [*a, k, *m, n, *z]`"""
    i, j = axis(c, dim0, input.rank), axis(c, dim1, input.rank)
    order = list(range(input.rank))
    if order:
        order[i], order[j] = order[j], order[i]
    return permuted(input, order)


def t(c: Context, input: Tensor) -> Tensor:
    """`[n, m] -> [m, n]`; vectors and scalars stay as they are"""
    rank_is(c, input, "the operand of t", 0, 1, 2)
    return permuted(input, range(input.rank)[::-1])


def reversed_dims(c: Context, input: Tensor) -> Tensor:
    """`[d0, …, dn] -> [dn, …, d0]`, the attribute `T`"""
    return permuted(input, range(input.rank)[::-1])


def matrix_transpose(c: Context, input: Tensor) -> Tensor:
    """`[*batch, n, m] -> [*batch, m, n]`, the attributes `mT` and `mH`; a scalar stays as it is"""
    if input.rank == 1:
        c.refuse(f"a matrix is transposed here, not a tensor of rank 1 ({input})")
    return transpose(c, input, -2, -1) if input.shape else input


def conjugate_transpose(c: Context, input: Tensor) -> Tensor:
    """`[n, m] -> [m, n]`, the attribute `H`; a scalar stays as it is"""
    rank_is(c, input, "the operand of H", 0, 2)
    return permuted(input, range(input.rank)[::-1])


def movedim(
    c: Context, input: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> Tensor:
    """Dim source[i] becomes dim destination[i]; the others keep their order in the positions that are left.
    """
    sources, places = (p if isinstance(p, tuple) else (p,) for p in (source, destination))
    if len(sources) != len(places):
        c.refuse(f"movedim from {counted(len(sources), 'dim')} to {len(places)}")
    if not sources:
        return input
    moved = dict(zip(axes(c, places, input.rank), axes(c, sources, input.rank), strict=True))
    rest = iter([i for i in range(input.rank) if i not in moved.values()])
    return permuted(input, [moved[i] if i in moved else next(rest) for i in range(input.rank)])


# --- memory ----------------------------------------------------------------------------------------------


def contiguous(c: Context, input: Tensor, memory_format: str = "contiguous_format") -> Tensor:
    """`[*d] -> [*d]`, row-major, or with the channels innermost: the tensor itself where it lies so already,
    axes of size 1 aside, which then keep their strides
    """
    match memory_format.removeprefix("torch."):
        case "channels_last" | "channels_last_3d" as name:
            rank = 4 if name == "channels_last" else 5
            rank_is(c, input, f"a tensor in the format {name}", rank)
            strides, wanted = strides_of(input), channels_last(input.shape)
            already = None if strides is None else lies_so(input.shape, strides, wanted)
            if already is True or strides == wanted:
                return input
            nowhere = already is not None and is_refuted(c, already)
            return Tensor(input.shape, input.dtype, wanted if nowhere else Layout.UNKNOWN)
        case "preserve_format" if not is_contiguous(input):
            c.refuse("contiguous does not take preserve_format")
    return copied_if_needed(c, input)


def as_strided(
    c: Context, input: Tensor, size: Shape, stride: Shape, storage_offset: Dim | None = None
) -> Tensor:
    """`storage -> [*size]`, element i of it being at storage_offset + Σ i·stride.

    The last element has to lie in the storage; without an offset, the first lies where the tensor begins.
    Where it is not known how much storage there is, it is taken to be the tensor's own elements, which a view
    of a larger tensor is not limited to.
    """
    if len(size) != len(stride):
        c.refuse(f"as_strided with {counted(len(size), 'size')} and {counted(len(stride), 'stride')}")
    for i, dims in enumerate(zip(size, stride, strict=True)):
        nonnegative(c, dims[0], f"size {i}")
        nonnegative(c, dims[1], f"stride {i}")
    known = c.memory_of(input)
    room, start = known or (input.numel, 0)
    first = start if storage_offset is None else storage_offset
    nonnegative(c, first, "the offset into the storage")
    last = first + total((n - 1) * s for n, s in zip(size, stride, strict=True))
    if known is None and not is_contiguous(input):
        c.approximate("the storage behind a view is not known", "accept")
    else:
        fits = any_of((empty(c, size), ge(room, last + 1)))
        if fits is not True and known is None:
            reason = "the storage behind the tensor is taken to hold its own elements and no more"
            c.approximate(reason, "refuse")
        c.require(fits, f"as_strided reaches element {last} of a storage of {room}")
    return with_strides(input, size, stride)


def alias(c: Context, input: Tensor) -> Tensor:
    """`[*d] -> [*d]`, the tensor itself"""
    return input


def replaced(c: Context, input: Tensor, part: Tensor, src: Tensor) -> Tensor:
    """The rule of `slice_scatter` and its kin, which write `src` into a view of a copy: `[*d], [*v] -> [*d]`

    The source has the very shape of the view. The result keeps the strides, but where elements share memory.
    """
    reason = f"a source of shape {text(src.shape)} replaces a part of shape {text(part.shape)}"
    if src.rank != part.rank:
        c.refuse(reason)
    c.require(all_of(eq(m, n) for m, n in zip(src.shape, part.shape, strict=True)), reason)
    shared = isinstance(input.layout, tuple) and 0 in input.layout
    return Tensor(input.shape, input.dtype, Layout.UNKNOWN if shared else input.layout)


def as_strided_scatter(
    c: Context, input: Tensor, src: Tensor, size: Shape, stride: Shape, storage_offset: Dim | None = None
) -> Tensor:
    """`[*d], [*size] -> [*d]`"""
    return replaced(c, input, as_strided(c, input, size, stride, storage_offset), src)


def copied(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of `view_copy`, `slice_copy`, …: the same results, contiguous in memory of their own."""

    @wraps(rule)
    def copy(c: Context, *args: Any, **kwargs: Any) -> Any:
        result = rule(c, *args, **kwargs)
        if isinstance(result, tuple):
            return tuple(Tensor(part.shape, part.dtype) for part in tensors(result))
        return Tensor(result.shape, result.dtype)

    return copy


def view_copy(c: Context, input: Tensor, *size: Dim | str, dtype: str | None = None) -> Tensor:
    """`[*d] -> [*e]` with ∏d == ∏e, contiguous; with a dtype, as `view_dtype`"""
    if dtype is None and len(size) == 1 and isinstance(size[0], str):
        dtype = size[0]
    result = reshape(c, input, *size) if dtype is None else view_dtype(c, input, dtype)  # type: ignore[arg-type]
    return Tensor(result.shape, result.dtype)


RULES: dict[str, Callable[..., Any]] = {
    "view": view,
    "reshape": reshape,
    "_reshape_alias": reshape_alias,
    "view_as": view_as,
    "reshape_as": reshape_as,
    "flatten": flatten,
    "ravel": ravel,
    "unflatten": unflatten,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
    "atleast_1d": at_least_rank(1),
    "atleast_2d": at_least_rank(2),
    "atleast_3d": at_least_rank(3),
    "permute": permute,
    "transpose": transpose,
    "t": t,
    "T": reversed_dims,
    "numpy_T": reversed_dims,
    "mT": matrix_transpose,
    "mH": matrix_transpose,
    "adjoint": matrix_transpose,
    "H": conjugate_transpose,
    "movedim": movedim,
    "contiguous": contiguous,
    "as_strided": as_strided,
    "as_strided_scatter": as_strided_scatter,
    "alias": alias,
    "lift_fresh": alias,
    "view_copy": view_copy,
    "_reshape_alias_copy": copied(reshape_alias),
    "_reshape_copy": copied(reshape),
    "squeeze_copy": copied(squeeze),
    "unsqueeze_copy": copied(unsqueeze),
    "permute_copy": copied(permute),
    "transpose_copy": copied(transpose),
    "t_copy": copied(t),
    "as_strided_copy": copied(as_strided),
    "alias_copy": copied(alias),
    "lift_fresh_copy": copied(alias),
}
