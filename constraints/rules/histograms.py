"""Histograms: numbers counted by value, or by the bins that they fall into."""

from __future__ import annotations

from typing import Final

from ..contents.elements.values import bounds_of, greatest
from ..engine.ruleset import RuleFunction
from ..ir.language import Context, Shape, Tensor, Value
from ..terms.dims import Dim, Term, maximum, minimum
from ..terms.formula import any_of, eq, ge
from .common import category, rank_is
from .elementwise import apply_law, same_dtype
from .layout import empty


def histc(c: Context, input: Tensor, bins: Dim = 100, min: Value = 0, max: Value = 0) -> Tensor:
    """[*a] -> [bins], where bins >= 1"""
    c.require(ge(bins, 1), f"histc takes one bin or more, not {bins}")
    return Tensor((bins,), apply_law(c, "xx=x", input.dtype, "histc"))


def bincount(c: Context, input: Tensor, weights: Value = None, minlength: Dim = 0) -> Tensor:
    """[n] -> [m], where m >= minlength depends on the greatest number; for weights [n], their sums"""
    apply_law(c, "x=xx", input.dtype, "bincount")
    if input.rank != 1:
        c.refuse(f"bincount takes a tensor of rank 1, not {input.rank}")
    dtype: str | None = "int64"
    if isinstance(weights, Tensor):
        if weights.rank != 1:
            c.refuse(f"bincount takes weights of rank 1, not {weights.rank}")
        fits = eq(weights.shape[0], input.shape[0])
        c.require(
            any_of((eq(input.shape[0], 0), fits)),
            f"bincount takes a weight for each of {input.shape[0]} numbers",
        )
        if c.choose(ge(input.shape[0], 1), "the dtype of bincount"):
            dtype = weights.dtype if weights.dtype in (None, "float32", "float64") else "float64"
    c.require(ge(minlength, 0), f"bincount takes minlength >= 0, not {minlength}")
    size = input.shape[0]
    if (most := greatest(input)) is not None:
        some = c.at_least(size, 1) or most + 1 == size or c.choose(ge(size, 1), "bins")
        return Tensor((maximum(minlength, most + 1 if some else 0),), dtype)
    low, high = bounds_of(input)
    first = 1 if low is None else maximum(low, 0) + 1
    least = maximum(minlength, first if c.at_least(size, 1) else minimum(first, size))
    return Tensor((c.fresh("bins", least, None if high is None else maximum(least, high + 1)),), dtype)


# --- by bins: a number of them, or their edges -----------------------------------------------------------


def _bins(c: Context, input: Tensor, bins: Value) -> tuple[Dim, Tensor]:
    """Returns the number of bins along a dimension, and their edges, one more than there are bins."""
    if isinstance(bins, Tensor):
        rank_is(c, bins, "the edges of bins", 1)
        same_dtype(c, "a histogram", input, bins)
        c.require(ge(bins.shape[0], 2), f"the edges of bins are two or more, not {bins.shape[0]}")
        return bins.shape[0] - 1, bins
    assert isinstance(bins, int | Term)
    c.require(ge(bins, 1), f"a histogram takes one bin or more, not {bins}")
    return bins, Tensor((bins + 1,), input.dtype)


def _counted(
    c: Context, input: Tensor, dims: int, bins: Value, range: Value, weight: Tensor | None
) -> tuple[Shape, tuple[Tensor, ...]]:
    """The numbers of bins along each of the dimensions, and their edges."""
    given = bins if isinstance(bins, tuple) else (bins,) * dims
    if len(given) != dims:
        c.refuse(f"a histogram of {dims} dimensions takes bins for each, not for {len(given)}")
    if isinstance(range, tuple) and len(range) != 2 * dims:
        c.refuse(f"a histogram of {dims} dimensions takes a range of {2 * dims} numbers, not {len(range)}")
    if weight is not None:
        same_dtype(c, "a histogram", input, weight)
    found = [_bins(c, input, b) for b in given]
    if input.dtype is not None and category(input.dtype) != 2:
        c.refuse(f"a histogram is of floats, not of {input.dtype}", NotImplementedError)
    if input.dtype in ("float16", "bfloat16") and range is None and not isinstance(given[0], Tensor):
        told = f"the least and the greatest of {input.dtype} are not found for the edges of a histogram"
        c.require(empty(c, input.shape), told, NotImplementedError)
    return tuple(count for count, _ in found), tuple(edges for _, edges in found)


def histogram(
    c: Context, input: Tensor, bins: Value = 100, range: Value = None, weight: Tensor | None = None,
    density: Value = False,
) -> tuple[Tensor, Tensor]:
    """[*a], k bins or [k + 1] edges, weights of as many numbers as there are -> [k], [k + 1]"""
    counts, (edges,) = _counted(c, input, 1, bins, range, weight)
    edges = Tensor(edges.shape, edges.dtype)
    if weight is not None:
        c.require(eq(weight.numel, input.numel), f"there is a weight for each number of {input}: {weight}")
    return Tensor(counts, input.dtype), edges


def histogramdd(
    c: Context, input: Tensor, bins: Value, range: Value = None, weight: Tensor | None = None,
    density: Value = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """[*a, d], bins or edges for each of d dimensions, weight [*a] -> [k1, …, kd], d times [k + 1]"""
    if input.rank < 2:
        c.refuse(f"histogramdd takes a tensor of rank 2 or more, not {input}")
    size = input.shape[-1]
    dims = len(bins) if isinstance(bins, tuple) else c.number(size)
    c.require(eq(size, dims), f"there are bins for {dims} dimensions, not for {size}")
    counts, edges = _counted(c, input, dims, bins, range, weight)
    if weight is not None:
        if weight.rank != input.rank - 1:
            c.refuse(f"there is a weight for each point of {input}, not {weight}")
        for n, m in zip(weight.shape, input.shape, strict=False):
            c.require(eq(n, m), f"there is a weight for each point of {input}, not {weight}")
    return Tensor(counts, input.dtype), edges


def histogramdd_counts(
    c: Context, input: Tensor, bins: Value, range: Value = None, weight: Tensor | None = None,
    density: Value = False,
) -> Tensor:
    """The first result of `histogramdd`."""
    return histogramdd(c, input, bins, range, weight, density)[0]


def histogramdd_edges(
    c: Context, input: Tensor, bins: Value, range: Value = None, weight: Tensor | None = None,
    density: Value = False,
) -> tuple[Tensor, ...]:
    """The other results of `histogramdd`."""
    return histogramdd(c, input, bins, range, weight, density)[1]


RULES: Final[dict[str, RuleFunction]] = {
    "_histogramdd_bin_edges": histogramdd_edges,
    "_histogramdd_from_bin_cts": histogramdd_counts,
    "_histogramdd_from_bin_tensors": histogramdd_counts,
    "bincount": bincount,
    "histc": histc,
    "histogram": histogram,
    "histogramdd": histogramdd,
}
