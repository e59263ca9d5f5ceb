"""Reductions, scans and sorts: `[*a, n, *b] -> [*a, *b]`, or `[*a, 1, *b]` with keepdim.

Laws of dtypes are those of `elementwise`: four letters for bool, integral, floating and complex.
"""
from __future__ import annotations

from functools import partial
from typing import Any, Final

from ..engine.memory import is_contiguous
from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Layout, Refused, Shape, Tensor, Value
from ..terms.dims import Dim, Term, maximum
from ..terms.formula import Formula, all_of, any_of, eq, ge, le, lt, ne
from .common import axes, axis, broadcast, broadcast_dim, category, promote, same_dim
from .elementwise import apply_law, clone, dense, pointwise, pointwise_layout, same_dtype
from .layout import empty
from .numbers import lacks_of_nothing
from .repeating import expand
from .strides import laid_out, preserved

Axes = int | tuple[int, ...] | None
Pair = tuple[Tensor, Tensor]


def reduced(shape: Shape, at: tuple[int, ...], keepdim: Value) -> Shape:
    """The shape without the axes in `at`, or with 1 in their place."""
    if keepdim:
        return tuple(1 if i in at else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in at)


def not_empty(
    c: Context, input: Tensor, at: tuple[int, ...], operation: str, error: type[Exception] = IndexError
) -> None:
    """Requires an element along every axis that is reduced, since the maximum of no elements does not exist.
    """
    for i in at:
        if i < input.rank:  # a tensor of rank 0 has an axis to name, of one element
            size = input.shape[i]
            told = f"{operation} over axis {i} needs an element there, and its size is {size}"
            c.require(ne(size, 0), told, error)


def wanted_dtype(c: Context, law: str, input: Tensor, dtype: str | None, operation: str) -> str | None:
    """Returns the dtype asked for, to which the input is converted first, or else the one that the law gives.
    """
    if dtype is None:
        return apply_law(c, law, input.dtype, operation)
    apply_law(c, law, dtype, operation)  # it may refuse the dtype
    return dtype


# Reductions to numbers. The first table reduces several axes, the second a single one.


def reduce_axes(
    c: Context, name: str, law: str, choice: bool, input: Tensor, dim: Axes, keepdim: Value, dtype: str | None
) -> Tensor:
    """[*a, n, *b] -> [*a, *b]; of no axes or an empty list, all"""
    if choice and isinstance(dim, tuple):  # which is looked at before it is asked whether one appears twice
        not_empty(c, input, tuple(axis(c, d, input.rank) for d in dim), name, _of_nothing(name, dim))
    at = axes(c, dim, input.rank) if input.shape else axes(c, dim, 0 if dim in (None, ()) else 1)
    if input.rank > 64:
        c.refuse(f"{name} takes tensors of rank 64 at most, not {input.rank}")
    result = wanted_dtype(c, law, input, dtype, name)
    if choice:
        not_empty(c, input, at, name, _of_nothing(name, dim))
    return Tensor(reduced(input.shape, at, keepdim), result)


def _of_nothing(name: str, dim: Axes) -> type[Exception]:
    """Returns the exception that torch raises where no elements are reduced to at least one."""
    of_all = dim in (None, ()) and not name.startswith("arg")
    return RuntimeError if of_all or name == "normalize" else IndexError


def reductions(
    law: str, names: str, parameters: str, choice: bool = False, one: bool = False, required: str = "input"
) -> dict[str, Rule]:
    """Returns a row of the table: reductions with this law.

    With `choice`, reducing no elements is refused; with `one`, the call takes a single axis or all.
    """

    def rule(name: str, c: Context, input: Tensor, **given: Any) -> Tensor:
        dim = given.get("dim")
        if one and isinstance(dim, tuple):
            c.refuse(f"{name} takes one dimension, not {dim}")
        return reduce_axes(c, name, law, choice, input, dim, given.get("keepdim"), given.get("dtype"))

    positional = ("input", *parameters.split())
    return {
        name: Rule(partial(rule, name), positional, "", frozenset(positional), frozenset(required.split()))
        for name in names.split()
    }


REDUCTIONS: Final[dict[str, Rule]] = {
    **reductions("ii==", "sum", "dim keepdim dtype"),
    **reductions("ii=x", "nansum", "dim keepdim dtype"),
    **reductions("xx==", "mean", "dim keepdim dtype"),
    **reductions("===x", "amax amin", "dim keepdim", choice=True),
    **reductions("ii==", "prod", "dim keepdim dtype", one=True),
    **reductions("xiix", "argmax argmin", "dim keepdim", choice=True, one=True),
}


def count_nonzero(c: Context, input: Tensor, dim: Axes = None, *more: int) -> Tensor:
    """[*a, n, *b] -> int64[*a, *b]; the method takes axes one by one, too"""
    dims = (dim, *more) if more else dim
    return reduce_axes(c, "count_nonzero", "iiii", False, input, dims, None, None)  # type: ignore[arg-type]


def all_true(c: Context, input: Tensor) -> Tensor:
    """bool[*a] -> bool[]"""
    if input.dtype not in (None, "bool"):
        c.refuse(f"it takes bool, not {input.dtype}")
    return Tensor((), "bool")


def grad_sum_to_size(c: Context, input: Tensor, size: Shape | None = None) -> Tensor:
    """[*a, *n] -> [*m], each m being n or 1; without a size, the tensor itself"""
    return input if size is None else sum_to_size(c, input, *size)


def logsumexp(c: Context, input: Tensor, dim: Axes, keepdim: Value = False) -> Tensor:
    """[*a, n, *b] -> [*a, *b]; of an empty list all, but the largest elements keep their dims there"""
    result = reduce_axes(c, "logsumexp", "ff==", False, input, dim, keepdim, None)
    if dim == () and input.shape and not keepdim:
        nothing = any_of(eq(n, 0) for n in input.shape)
        c.require(nothing, "logsumexp of no dims gives one element, whose shape torch takes for another")
    return result


def hash_tensor(c: Context, input: Tensor, dim: Axes = None, keepdim: Value = False, mode: int = 0) -> Tensor:
    """[*a, n, *b] -> uint64[*a, *b], where n is not 0"""
    apply_law(c, "===x", input.dtype, "hash_tensor")
    if mode != 0:
        c.refuse(f"hash_tensor knows mode 0 alone, not {mode}")
    result = reduce_axes(c, "hash_tensor", "====", True, input, dim, keepdim, None)
    return Tensor(result.shape, "uint64", result.layout)


def nanmean(
    c: Context, input: Tensor, dim: Axes = None, keepdim: Value = False, dtype: str | None = None
) -> Tensor:
    """[*a, n, *b] -> [*a, *b]; the input is floating, whatever dtype is asked for"""
    apply_law(c, "xx==", input.dtype, "nanmean")
    return reduce_axes(c, "nanmean", "xx=x", False, input, dim, keepdim, dtype)


def truth(name: str) -> RuleFunction:
    """Returns the rule of `any` and `all`. An empty list of axes means no axis here: nothing is reduced."""

    def rule(c: Context, input: Tensor, dim: Axes = None, keepdim: Value = False) -> Tensor:
        """[*a, n, *b] -> bool[*a, *b]; uint8 stays uint8"""
        dtype = "uint8" if input.dtype == "uint8" else None if input.dtype is None else "bool"
        if dim == ():
            return Tensor(input.shape, dtype, pointwise_layout(c, (input,), input.shape))
        return Tensor(reduce_axes(c, name, "bbbb", False, input, dim, keepdim, None).shape, dtype)

    return rule


def spread(count: int, law: str) -> RuleFunction:
    """The rule of std and var (one result) and of std_mean and var_mean (two)."""

    def rule(
        c: Context, input: Tensor, dim: Axes | bool = None, unbiased: Value = True, keepdim: Value = False,
        correction: Value = None,
    ) -> Tensor | Pair:  # fmt: skip
        """[*a, n, *b] -> [*a, *b]; `std(unbiased)` is a form of its own"""
        at: Axes = None if isinstance(dim, bool) else dim
        first = reduce_axes(c, "std", law, False, input, at, keepdim, None)
        return first if count == 1 else (first, Tensor(first.shape, input.dtype))

    return rule


# Reductions that tell where: (values, indices).


def choice_of(name: str, law: str, nowhere: bool = False) -> RuleFunction:
    """The rule of median and nanmedian (of nothing: nan), and of max and min for one tensor."""

    def rule(c: Context, input: Tensor, dim: int | None = None, keepdim: Value = False) -> Tensor | Pair:
        """[*a, n, *b] -> [*a, *b], int64[*a, *b]; of no axis [*a] -> []"""
        if dim is None:
            if not nowhere:
                not_empty(c, input, tuple(range(input.rank)), name, RuntimeError)
            elif input.dtype == "bool" or category(input.dtype or "") == 3:
                nothing = any_of(eq(n, 0) for n in input.shape)
                c.require(nothing, f"{name} does not take {input.dtype}", NotImplementedError)
                return Tensor((), input.dtype)
            return Tensor((), apply_law(c, law, input.dtype, name))
        return values_and_indices(c, name, law, input, dim, keepdim)

    return rule


def extreme_of(name: str) -> RuleFunction:
    """The rule of max and min, for one tensor or two."""
    of_one = choice_of(name, "===x")

    def rule(
        c: Context, input: Tensor, dim: int | Tensor | None = None, keepdim: Value = False,
        other: Value = None,
    ) -> Tensor | Pair:
        """[*a, n, *b] -> [*a, *b], int64[*a, *b]; of no axis [*a] -> []; [*a], [*b] -> [*broadcast(a, b)]"""
        second = dim if isinstance(dim, Tensor) else other
        if isinstance(second, Tensor):
            return pointwise(c, "===x", input, second, operation=f"{name}imum")
        return of_one(c, input, dim, keepdim)  # type: ignore[no-any-return]

    return rule


def values_and_indices(c: Context, name: str, law: str, input: Tensor, dim: Any, keepdim: Value) -> Pair:
    """[*a, n, *b] -> values: [*a, *b], indices: int64[*a, *b], where n >= 1"""
    if not isinstance(dim, int | Term):
        c.refuse(f"{name} takes one dimension, not {dim}")
    at = (axis(c, dim, input.rank),)
    not_empty(c, input, at, name)
    shape = reduced(input.shape, at, keepdim)
    dtype = apply_law(c, law, input.dtype, f"{name} along a dim")
    return Tensor(shape, dtype), Tensor(shape, "int64")


def _ordered(c: Context, name: str, input: Tensor) -> None:
    """Refuses complex numbers, unless there are no dims, or no elements."""
    if input.shape and category(input.dtype or "") == 3:
        nothing = any_of(eq(n, 0) for n in input.shape)
        c.require(nothing, f"{name} does not take {input.dtype}", NotImplementedError)


def mode(c: Context, input: Tensor, dim: int = -1, keepdim: Value = False) -> Pair:
    """[*a, n, *b] -> values: [*a, *b], indices: int64[*a, *b]; any dtype without dims"""
    found = values_and_indices(c, "mode", "====", input, dim, keepdim)
    _ordered(c, "mode", input)
    return found


def kthvalue(c: Context, input: Tensor, k: Dim, dim: int = -1, keepdim: Value = False) -> Pair:
    """[*a, n, *b] -> values: [*a, *b], indices: int64[*a, *b], where 1 <= k <= n; any dtype without dims"""
    result = values_and_indices(c, "kthvalue", "x==x" if input.shape else "====", input, dim, keepdim)
    size = _size(input, axis(c, dim, input.rank))
    c.require(
        all_of((ge(k, 1), le(k, size))), f"kthvalue takes k from 1 to {size}, the size of dim {dim}, not {k}"
    )
    return result


def aminmax(c: Context, input: Tensor, dim: int | None = None, keepdim: Value = False) -> Pair:
    """[*a, n, *b] -> min: [*a, *b], max: [*a, *b], where n >= 1"""
    result = reduce_axes(c, "aminmax", "===x", True, input, dim, keepdim, None)
    return result, result


def quantile(
    c: Context, input: Tensor, q: Value, dim: int | None = None, keepdim: Value = False,
    interpolation: str = "linear",
) -> Tensor:
    """[*a, n, *b], q: [] or [k] -> [*a, *b] or [k, *a, *b]; the k values of one quantile are neighbours"""
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        c.refuse(f"quantile does not know the interpolation {interpolation!r}")
    dtype = apply_law(c, "xx=x", input.dtype, "quantile")
    if isinstance(q, Tensor):
        same_dtype(c, "quantile", input, q)
        if q.rank > 1:
            c.refuse(f"quantile takes q of rank 0 or 1, not {q.rank}")
    not_empty(c, input, tuple(range(input.rank)), "quantile", RuntimeError)
    at = tuple(range(input.rank)) if dim is None else (axis(c, dim, input.rank),)
    shape = reduced(input.shape, at, keepdim)
    if isinstance(q, Tensor) and q.shape:
        shape = (*q.shape, *shape)
        return Tensor(shape, dtype, laid_out(shape, dense(shape, (*range(1, len(shape)), 0))))
    return Tensor(shape, dtype)


def _size(input: Tensor, at: int) -> Dim:
    """Returns the size along an axis; the one axis that a scalar counts as having has size 1."""
    return input.shape[at] if input.shape else 1


# Scans: [*a, n, *b] -> [*a, n, *b].


def scans(law: str, names: str, parameters: str = "dim dtype") -> dict[str, Rule]:
    """A row: scans with this law, whose result is contiguous."""

    def rule(name: str, c: Context, input: Tensor, dim: int, dtype: str | None = None) -> Tensor:
        axis(c, dim, input.rank)
        return Tensor(input.shape, wanted_dtype(c, law, input, dtype, name))

    positional = ("input", *parameters.split())
    return {
        name: Rule(partial(rule, name), positional, "", frozenset(positional), frozenset(("input", "dim")))
        for name in names.split()
    }


def scan_in_place(c: Context, input: Tensor, dim: int, dtype: str | None = None) -> Tensor:
    """[*a, n, *b] -> [*a, n, *b]; of bool there are no dims, or no elements"""
    axis(c, dim, input.rank)
    if dtype not in (None, input.dtype):
        c.refuse(f"a scan in place makes {input.dtype}, not {dtype}")
    if input.dtype == "bool" and input.shape:
        nothing = any_of(eq(n, 0) for n in input.shape)
        c.require(nothing, "no scan of bool is made in place", NotImplementedError)
    return input


SCANS: Final[dict[str, Rule]] = {
    **scans("ii==", "cumsum cumprod"),
    **scans("xx==", "logcumsumexp", "dim"),
}


def cummax(c: Context, input: Tensor, dim: int) -> Pair:
    """[*a, n, *b] -> values: [*a, n, *b], indices: int64[*a, n, *b]; any dtype without dims"""
    limit = max(input.rank, 1)
    known: Formula = all_of((ge(dim, -limit), lt(dim, limit)))
    if not c.since(2, 14):  # the axis of an empty tensor was not looked at
        known = any_of((known, *(eq(n, 0) for n in input.shape)))
    c.require(known, f"dimension {dim} is out of range for a tensor of rank {input.rank}", IndexError)
    _ordered(c, "cummax", input)
    return Tensor(input.shape, input.dtype), Tensor(input.shape, "int64")


def softmax(
    c: Context, input: Tensor, dim: int | None = None, variant: Value = None, dtype: str | None = None,
    _stacklevel: Value = 3, half_to_float: Value = False,
) -> Tensor:  # fmt: skip
    """[*a, n, *b] -> [*a, n, *b], contiguous.

    The argument after the axis is a dtype in torch.softmax, a stack level in the functional form, and in
    ATen's _softmax a flag that CPU refuses.
    """
    if half_to_float is True or variant is True:
        c.refuse("softmax does not convert half to float on the CPU")
    if dim is not None:  # the old form without an axis picks 0 or 1 by rank, which is always there
        axis(c, dim, input.rank)
    wanted = variant if isinstance(variant, str) else dtype
    try:
        return Tensor(input.shape, wanted_dtype(c, "xx=x", input, wanted, "softmax"))
    except Refused as refusal:  # no kernel is asked for where there are no elements
        nothing = empty(c, input.shape)
        c.require(nothing, str(refusal), refusal.error)
        return Tensor(input.shape, wanted or input.dtype)


def gumbel_softmax(
    c: Context, logits: Tensor, tau: Value = 1, hard: Value = False, eps: Value = 1e-10, dim: int = -1
) -> Tensor:
    """[*a, n, *b] -> [*a, n, *b]; a hard sample needs n >= 1"""
    at = axis(c, dim, logits.rank)
    if hard:
        not_empty(c, logits, (at,), "gumbel_softmax")
    return Tensor(logits.shape, apply_law(c, "xx=x", logits.dtype, "gumbel_softmax"))


def normalize(
    c: Context, input: Tensor, p: Value = 2.0, dim: Axes = 1, eps: Value = 1e-12, out: Value = None
) -> Tensor:
    """[*a, n, *b] -> [*a, n, *b], where n >= 1 for norms that no elements have no value of"""
    norm = reduce_axes(c, "normalize", "xx==", lacks_of_nothing(c, p), input, dim, True, None)
    return pointwise(c, "====", input, expand(c, norm, *input.shape))


def renorm(c: Context, input: Tensor, p: Value, dim: int, maxnorm: Value) -> Tensor:
    """[*a, n, *b] -> [*a, n, *b], of rank 2 or more"""
    if input.rank < 2:
        c.refuse(f"renorm takes a tensor of rank 2 or more, not {input.rank}")
    at = axis(c, dim, input.rank)
    if isinstance(p, int | float) and p == float("inf"):
        for size in (*input.shape[:at], *input.shape[at + 1 :]):
            c.require(ge(size, 1), f"renorm by the greatest element needs one, and the input is {input}")
    return Tensor(input.shape, apply_law(c, "xx==", input.dtype, "renorm"))


# Sorting.


def sort(
    c: Context, input: Tensor, dim: int | bool | None = -1, descending: Value = False, stable: Value = False
) -> Pair:
    """[*a, n, *b] -> values: [*a, n, *b], indices: int64[*a, n, *b], laid out as the input"""
    axis(c, -1 if dim is None else dim, input.rank)
    values = Tensor(
        input.shape, apply_law(c, "===x", input.dtype, "sort"), preserved(c, input.shape, input.layout)
    )
    return values, Tensor(values.shape, "int64", values.layout)


def argsort(
    c: Context, input: Tensor, dim: int = -1, descending: Value = False, stable: Value = False
) -> Tensor:
    """[*a, n, *b] -> int64[*a, n, *b]"""
    return sort(c, input, dim)[1]


def msort(c: Context, input: Tensor) -> Tensor:
    """[n, *a] -> [n, *a]"""
    return sort(c, input, 0)[0]


def topk(
    c: Context, input: Tensor, k: Dim, dim: int = -1, largest: Value = True, sorted: Value = True
) -> Pair:
    """[*a, n, *b] -> values: [*a, k, *b], indices: int64[*a, k, *b], where 0 <= k <= n"""
    at = axis(c, dim, input.rank)
    size = _size(input, at)
    c.require(
        all_of((ge(k, 0), le(k, size))), f"topk takes k from 0 to {size}, the size of dim {dim}, not {k}"
    )
    shape = (*input.shape[:at], k, *input.shape[at + 1 :]) if input.shape else ()
    return Tensor(shape, apply_law(c, "x==x", input.dtype, "topk")), Tensor(shape, "int64")


def searchsorted(
    c: Context, sorted_sequence: Tensor, input: Value, out_int32: Value = False, right: Value = False,
    side: Value = None, sorter: Value = None,
) -> Tensor:  # fmt: skip
    """[n], [*a] -> int64[*a]; [*a, n], [*a, m] -> int64[*a, m]"""
    dtype = "int32" if out_int32 is True else "int64"
    if side not in (None, "left", "right") or (side == "left" and right is True):
        c.refuse(f"searchsorted takes the side left or right, not {side!r} and right={right}")
    if isinstance(sorter, Tensor):
        for n, m in _paired(
            c, sorter.shape, sorted_sequence.shape, "the sorter and the boundaries of searchsorted"
        ):
            c.require(eq(n, m), f"the sorter of searchsorted must have the shape of the boundaries: {n}, {m}")
    if not isinstance(input, Tensor):
        if sorted_sequence.rank != 1:
            c.refuse(f"searchsorted of a number takes boundaries of rank 1, not {sorted_sequence.rank}")
        return Tensor((), dtype)
    if not sorted_sequence.shape:
        c.refuse("searchsorted takes boundaries of rank 1 or more")
    if sorted_sequence.rank != 1:
        if not input.shape:
            c.refuse(
                f"searchsorted of a tensor of rank 0 takes boundaries of rank 1, not {sorted_sequence.rank}"
            )
        for n, m in _paired(c, sorted_sequence.shape[:-1], input.shape[:-1], "the batches of searchsorted"):
            c.require(
                eq(n, m), f"the batches of searchsorted must agree: {n} in the boundaries, {m} in the input"
            )
    return Tensor(input.shape, dtype)


def _paired(c: Context, a: Shape, b: Shape, what: str) -> zip[tuple[Dim, Dim]]:
    if len(a) != len(b):
        c.refuse(f"{what} must have one rank, not {len(a)} and {len(b)}")
    return zip(a, b, strict=True)


def bucketize(
    c: Context, input: Value, boundaries: Tensor, out_int32: Value = False, right: Value = False
) -> Tensor:
    """[*a], [n] -> int64[*a]"""
    if boundaries.rank != 1:
        c.refuse(f"bucketize takes boundaries of rank 1, not {boundaries.rank}")
    return searchsorted(c, boundaries, input, out_int32)


# Differences and integrals.


def diff(
    c: Context, input: Tensor, n: Dim = 1, dim: int = -1, prepend: Value = None, append: Value = None
) -> Tensor:
    """[*a, m, *b] with p before and q after it -> [*a, max(p + m + q - n, 0), *b]"""
    if not input.shape:
        c.refuse("diff takes a tensor of rank 1 or more")
    c.require(ge(n, 0), f"diff takes n >= 0, not {n}")
    if n == 0 and prepend is None and append is None:
        return clone(c, input)
    at = axis(c, dim, input.rank)
    parts = [p for p in (prepend, input, append) if isinstance(p, Tensor)]
    for part in parts:
        if part.rank != input.rank:
            c.refuse(f"diff takes prepend and append of rank {input.rank} as its input, not {part.rank}")
        for i, (a, b) in enumerate(zip(part.shape, input.shape, strict=True)):
            if i != at:
                same_dim(
                    c, a, b, f"diff joins tensors that agree but along axis {at}: axis {i} has {a} and {b}"
                )
    if n == 0:
        return clone(c, input)
    length = sum((p.shape[at] for p in parts), start=0)
    shape = (*input.shape[:at], maximum(length - n, 0), *input.shape[at + 1 :])
    layout = Layout.CONTIGUOUS if all(is_contiguous(p) for p in parts) else Layout.UNKNOWN
    return Tensor(shape, promote(parts), layout)


def _intervals(c: Context, y: Tensor, x: Value, dim: int, name: str) -> tuple[int, Shape, str | None]:
    """y: [*a, n, *b], x: [n] or any that broadcasts -> [*a, max(n - 1, 0), *b], a value for each interval.

    An x of rank 1 lies along the axis; any other is aligned at the last axis and cut along the same axis as
    y. Without samples, trapezoid does not look at it.
    """
    if not y.shape:
        c.refuse(f"{name} takes a tensor of rank 1 or more", IndexError)
    at = axis(c, dim, y.rank)
    size = y.shape[at]
    dtype = apply_law(c, "xf==", promote((y, x)), name)
    shape = _cut(y.shape, at)
    looks = isinstance(x, Tensor) or dtype != y.dtype
    if name == "trapezoid" and looks and not c.at_least(size, 1) and c.choose(eq(size, 0), "the result"):
        return at, shape, y.dtype
    if isinstance(x, Tensor):
        if x.rank == 1:
            fits = eq(x.shape[0], size)
            c.require(fits, f"{name} takes a point for each of {size} samples, not {x.shape[0]}")
        else:
            points = (*(1,) * (y.rank - x.rank), *x.shape)
            shape = broadcast(c, shape, _cut(points, at))
    return at, shape, dtype


def _cut(shape: Shape, at: int) -> Shape:
    return (*shape[:at], maximum(shape[at] - 1, 0), *shape[at + 1 :])


def gradient(
    c: Context, input: Tensor, spacing: Value = None, dim: Axes = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """[*a] -> one [*a] for each axis asked for, whose size is at least edge_order + 1"""
    at = axes(c, dim, input.rank)
    if isinstance(spacing, tuple) and len(spacing) != len(at):
        c.refuse(f"gradient takes a spacing for each of {len(at)} dimensions, not {len(spacing)}")
    if edge_order not in (1, 2):
        c.refuse(f"gradient takes edge_order 1 or 2, not {edge_order}")
    if at and not input.shape:
        c.refuse(f"gradient takes axes {list(at)} of a tensor that has none")
    for i in at:
        least = edge_order + 1
        c.require(
            ge(input.shape[i], least), f"gradient takes {least} elements or more along axis {i}, not {input}"
        )
    dtype = apply_law(c, "xf==", input.dtype, "gradient")
    layout = Layout.CONTIGUOUS if is_contiguous(input) else Layout.UNKNOWN
    points = spacing if isinstance(spacing, tuple) else (None,) * len(at)
    shapes = (_along(c, input.shape, i, given, edge_order) for i, given in zip(at, points, strict=True))
    return tuple(Tensor(shape, dtype, layout) for shape in shapes)


def _along(c: Context, shape: Shape, at: int, points: Value, edge_order: int) -> Shape:
    """[*a, n, *z], points [k] -> [*a, m, *z]: differences are taken inside, and their sizes broadcast, before
    those at the ends are asked for.

    m - 2 is the broadcast of n - 2 and max(k - 2, 0), which is meant for n == k.
    """
    if not isinstance(points, Tensor) or not points.shape:
        return shape
    count, least = points.shape[0], edge_order + 1
    told = f"gradient takes {least} points or more, not {points}"
    c.require(any_of((ge(count, 2), le(shape[at], 3))), told)  # no differences broadcast with one or none
    c.require(ge(count, 2), told, IndexError)
    inside = broadcast_dim(c, shape[at] - 2, count - 2)
    c.require(ge(count, least), told, IndexError)
    return (*shape[:at], inside + 2, *shape[at + 1 :])


def sum_to_size(c: Context, input: Tensor, *size: Dim) -> Tensor:
    """[*a, *n] -> [*m], each m being n or 1; the tensor itself where no size changes, a sum elsewhere"""
    if len(size) > input.rank:
        c.refuse(f"sum_to_size does not make {list(size)} of {input}, which has fewer axes")
    for have, want in zip(reversed(input.shape), reversed(size), strict=False):
        c.require(
            any_of((eq(have, want), eq(want, 1))), f"sum_to_size does not make size {want} of size {have}"
        )
    kept = input.shape[input.rank - len(size) :]
    if input.shape == size and size:
        return input
    dtype = apply_law(c, "ii==", input.dtype, "sum_to_size")
    if dtype != input.dtype and size and len(size) == input.rank:
        summed = any_of(ne(have, want) for have, want in zip(kept, size, strict=True))
        dtype = dtype if c.choose(summed, "whether there is a sum") else input.dtype
    layout = Layout.CONTIGUOUS if is_contiguous(input) else Layout.UNKNOWN
    return Tensor(size, dtype, layout)


def trapezoid(c: Context, y: Tensor, x: Value = None, dim: int = -1, dx: Value = 1) -> Tensor:
    """[*a, n, *b] -> [*a, *b]"""
    at, shape, dtype = _intervals(c, y, x, dim, "trapezoid")
    return Tensor(reduced(shape, (at,), False), dtype)


def cumulative_trapezoid(c: Context, y: Tensor, x: Value = None, dim: int = -1, dx: Value = 1) -> Tensor:
    """[*a, n, *b] -> [*a, max(n - 1, 0), *b]"""
    _, shape, dtype = _intervals(c, y, x, dim, "cumulative_trapezoid")
    return Tensor(shape, dtype)


# Counting and sampling.


def multinomial(c: Context, input: Tensor, num_samples: Dim, replacement: Value = False) -> Tensor:
    """[n] or [b, n] -> int64[k] or int64[b, k], where 1 <= k, and k <= n without replacement"""
    apply_law(c, "xx=x", input.dtype, "multinomial")
    if input.rank not in (1, 2):
        c.refuse(f"multinomial takes probabilities of rank 1 or 2, not {input.rank}")
    *rows, size = input.shape
    c.require(le(size, 2**24), f"multinomial chooses from 2**24 categories at most, not from {size}")
    c.require(ge(num_samples, 1), f"multinomial takes one sample or more, not {num_samples}")
    if replacement is True:
        something = any_of((ge(size, 1), *(eq(n, 0) for n in rows)))
        c.require(something, "multinomial needs at least one category to choose from")
    else:
        c.require(
            le(num_samples, size), f"multinomial cannot take {num_samples} of {size} without replacement"
        )
    return Tensor((*rows, num_samples), "int64")


# Statistics.


def dist(c: Context, input: Tensor, other: Tensor, p: Value = 2) -> Tensor:
    """[*a], [*b] -> [], where a and b broadcast"""
    difference = pointwise(c, "x===", input, other, operation="dist")
    return Tensor((), apply_law(c, "xx=r", difference.dtype, "dist"))


def cov(
    c: Context, input: Tensor, correction: Value = 1, fweights: Value = None, aweights: Value = None
) -> Tensor:
    """[v, n] -> [v, v], or [] where v == 1; [n] or [] -> []; weights are [n]"""
    if input.rank > 2:
        c.refuse(f"cov takes a tensor of rank 2 at most, not {input.rank}")
    count = input.shape[-1] if input.shape else 1
    for weights in (fweights, aweights):
        if isinstance(weights, Tensor):
            if weights.rank > 1:
                c.refuse(f"cov takes weights of rank 1 at most, not {weights.rank}")
            c.require(eq(weights.numel, count), f"cov takes a weight for each of {count} observations")
    dtype = apply_law(c, "xf==", input.dtype, "cov")
    if input.rank < 2 or c.choose(eq(input.shape[0], 1), "the rank of a matrix of covariances"):
        return Tensor((), dtype)
    return Tensor((input.shape[0],) * 2, dtype, Layout.UNKNOWN)


def corrcoef(c: Context, input: Tensor) -> Tensor:
    """[v, n] -> [v, v], or [] where v == 1; [n] or [] -> []"""
    return cov(c, input)


CHOICES: Final[dict[str, RuleFunction]] = {
    **dict.fromkeys(("cumsum_", "cumprod_"), scan_in_place),
    "max": extreme_of("max"),
    "median": choice_of("median", "x==x", nowhere=True),
    "min": extreme_of("min"),
    "nanmedian": choice_of("nanmedian", "x==x", nowhere=True),
}
CLAUSES: Final[dict[str, RuleFunction]] = {
    "all": truth("all"),
    "aminmax": aminmax,
    "any": truth("any"),
    "argsort": argsort,
    "bucketize": bucketize,
    "corrcoef": corrcoef,
    "cov": cov,
    "_grad_sum_to_size": grad_sum_to_size,
    "_is_all_true": all_true,
    "_is_any_true": all_true,
    "count_nonzero": count_nonzero,
    "hash_tensor": hash_tensor,
    "logsumexp": logsumexp,
    "cummax": cummax,
    "cummin": cummax,
    "cumulative_trapezoid": cumulative_trapezoid,
    "diff": diff,
    "dist": dist,
    "gradient": gradient,
    "gumbel_softmax": gumbel_softmax,
    "kthvalue": kthvalue,
    "log_softmax": softmax,
    "mode": mode,
    "msort": msort,
    "multinomial": multinomial,
    "nanmean": nanmean,
    "nanquantile": quantile,
    "normalize": normalize,
    "quantile": quantile,
    "renorm": renorm,
    "searchsorted": searchsorted,
    "softmax": softmax,
    "softmin": softmax,
    "sort": sort,
    "std": spread(1, "xx=r"),
    "std_mean": spread(2, "xx=r"),
    "sum_to_size": sum_to_size,
    "topk": topk,
    "trapezoid": trapezoid,
    "trapz": trapezoid,
    "var": spread(1, "xx=r"),
    "var_mean": spread(2, "xx=r"),
}

RULES: Final[dict[str, RuleFunction | Rule]] = {**REDUCTIONS, **SCANS, **CHOICES, **CLAUSES}
