"""torch's primitives (`prims::add`), which decompositions leave in a graph.

They compute the same as the ATen operators that they replace, but are explicit: operands of one shape and one
dtype, axes counted from the front, no size to infer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Number, Shape, Tensor, Value, product
from ..terms.dims import Dim, maximum
from ..terms.formula import divides, eq, ge, ne
from .common import category
from .creation import empty_permuted, empty_strided, full, full_like, scalar_tensor, zeros
from .elementwise import RULES as POINTWISE
from .elementwise import apply_law, clone, convert, copy_, identity, operators, same_dtype
from .joining import cat as joined
from .layout import as_strided, as_strided_scatter, flatten, permuted, reshape, view, view_dtype
from .loss import same_shape
from .matrices import linalg_svd
from .reduction import not_empty, reduced
from .repeating import expand, flip
from .sizes import item
from .spectral import RULES as FOURIER
from .storage import resize


def plain(c: Context, dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """Distinct axes, counted from the front."""
    for dim in dims:
        if not 0 <= dim < max(rank, 1):
            c.refuse(f"dimension {dim} is not one of {rank}, counted from the front")
    if len(set(dims)) != len(dims):
        c.refuse(f"a dimension appears twice in {tuple(dims)}")
    return tuple(dims)


# --- pointwise -------------------------------------------------------------------------------------------

SAME_NAME: Final = """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or
bitwise_xor ceil cos cosh digamma div eq erf erfc exp exp2 expm1 fill floor fmax fmin fmod frexp gcd ge
gt hypot igamma igammac isfinite le lgamma log log10 log1p log2 lt maximum minimum mul ne neg nextafter
pow reciprocal remainder round rsqrt sign signbit sin sinh sqrt sub tan tanh trunc""".split()
RENAMED: Final = {
    "bessel_i0": "i0",
    "bessel_i0e": "special_i0e",
    "bessel_i1": "special_i1",
    "bessel_i1e": "special_i1e",
    "bessel_j0": "special_bessel_j0",
    "bessel_j1": "special_bessel_j1",
    "erf_inv": "erfinv",
    "erfcx": "special_erfcx",
    "ndtri": "special_ndtri",
    "shift_left": "lshift",
    "shift_right_arithmetic": "rshift",
    "spherical_bessel_j0": "special_spherical_bessel_j0",
    "zeta": "special_zeta",
}


def strict(name: str, rule: RuleFunction | Rule) -> RuleFunction:
    """The rule of a primitive that does what `rule` says; a scalar on the CPU counts as a number."""
    of = rule if isinstance(rule, Rule) else Rule.of(rule)

    def primitive(c: Context, input: Tensor, other: Value = None) -> Value:
        """[*a], [*a] -> [*a]"""
        operands = [input] if other is None else [input, other]
        agree(c, name, *operands)
        return of(c, of.bind(tuple(operands), {}))

    return primitive


def agree(c: Context, name: str, *operands: Value) -> None:
    """The tensors have one shape, scalars aside, and one dtype."""
    tensors = [o for o in operands if isinstance(o, Tensor)]
    same_dtype(c, name, *tensors)
    large = [t for t in tensors if t.shape]
    for tensor in large[1:]:
        same_shape(c, large[0], tensor, f"{name} takes tensors of one shape")


def where(c: Context, pred: Tensor, a: Tensor, b: Tensor) -> Value:
    """bool[*a], [*a], [*a] -> [*a]"""
    agree(c, "where", a, b)
    agree(c, "where", pred, Tensor(a.shape or b.shape, pred.dtype))
    of = Rule.of(POINTWISE["where"])
    return of(c, of.bind((pred, a, b), {}))


# --- reductions ------------------------------------------------------------------------------------------


def reduction(law: str, some: bool = False, of_all: bool = True) -> RuleFunction:
    """Returns the rule of sum, prod, amax, amin or var over dims. No dims mean all of them, unless `of_all`
    is False.

    With `some`, the reduction of no elements is refused.
    """

    def rule(
        c: Context, inp: Tensor, dims: Sequence[int], correction: Value = 1, output_dtype: str | None = None
    ) -> Tensor:
        """[*a, n, *b] -> [*a, *b]"""
        at = plain(c, dims, inp.rank) or (tuple(range(inp.rank)) if of_all else ())
        if some:
            not_empty(c, inp, at, "the reduction")
        return Tensor(reduced(inp.shape, at, False), apply_law(c, law, inp.dtype, "the reduction"))

    return rule


# --- views -----------------------------------------------------------------------------------------------


def transpose(c: Context, input: Tensor, permutation: Sequence[int]) -> Tensor:
    """`[d0, d1, …] -> [d(p0), d(p1), …]` for a permutation p"""
    if sorted(permutation) != list(range(input.rank)):
        c.refuse(f"{tuple(permutation)} is not a permutation of {input.rank} dims")
    return permuted(input, permutation)


def squeeze(c: Context, input: Tensor, dimensions: Sequence[int]) -> Tensor:
    """`[*a, 1, *z] -> [*a, *z]`"""
    gone = plain(c, dimensions, input.rank)
    for i in gone:
        if input.shape:
            told = f"a dim of size {input.shape[i]} cannot be squeezed"
            c.require(eq(input.shape[i], 1), told, AssertionError)
    return permuted(input, [i for i in range(input.rank) if i not in gone])


def split_dim(c: Context, input: Tensor, dim: int, outer_length: Dim) -> Tensor:
    """`[*a, k*n, *z] -> [*a, k, n, *z]`"""
    (at,) = plain(c, (dim,), input.rank)
    if not input.shape:
        c.refuse("a scalar has no dim to split")
    c.require(ge(outer_length, 1), f"a dim is split into {outer_length}")
    size = input.shape[at]
    parts = maximum(outer_length, 1)
    c.require(divides(parts, size), f"{outer_length} does not divide {size}")
    return view(c, input, *input.shape[:at], parts, size // parts, *input.shape[at + 1 :])


def collapse(c: Context, input: Tensor, start: int, end: int) -> Tensor:
    """`[*a, *m, *z] -> [*a, ∏m, *z]`, contiguous in memory of its own"""
    result = flatten(c, input, *_ends(c, input, start, end))
    return Tensor(result.shape, result.dtype)


def collapse_view(c: Context, input: Tensor, start: int, end: int) -> Tensor:
    """`[*a, *m, *z] -> [*a, ∏m, *z]`, where strides allow it"""
    start, end = _ends(c, input, start, end)
    middle = product(input.shape[start : end + 1])
    return view(c, input, *input.shape[:start], middle, *input.shape[end + 1 :])


def _ends(c: Context, input: Tensor, start: int, end: int) -> tuple[int, int]:
    for dim in (start, end):
        plain(c, (dim,), input.rank)
    if end < start:
        c.refuse(f"dims from {start} to {end} cannot be collapsed")
    return start, end


def broadcast_in_dim(c: Context, input: Tensor, shape: Shape, broadcast_dimensions: Sequence[int]) -> Tensor:
    """`[*d] -> [*e]`, dim i becoming dim b(i), with the b ascending, and d(i) equal to e(b(i)) or 1"""
    places = tuple(broadcast_dimensions)
    if len(places) != input.rank or sorted(set(places)) != list(places):
        c.refuse(f"{places} are not the ascending places of {input.rank} dims")
    plain(c, places, len(shape))
    size_of = dict(zip(places, range(input.rank), strict=True))
    spread = _with_ones(input, [size_of.get(i) for i in range(len(shape))])
    return expand(c, spread, *shape)


def _with_ones(input: Tensor, source: Sequence[int | None]) -> Tensor:
    """A view with dims of size 1 where there is no source."""
    layout = input.layout
    if isinstance(layout, tuple):
        layout = tuple(0 if i is None else layout[i] for i in source)
    return Tensor(tuple(1 if i is None else input.shape[i] for i in source), input.dtype, layout)


def view_of_dtype(c: Context, input: Tensor, dtype: str) -> Tensor:
    """`[*d, n] -> [*d, m]` of as many bytes"""
    return view_dtype(c, input, dtype)


def rev(c: Context, input: Tensor, dims: Sequence[int]) -> Tensor:
    """`[*d] -> [*d]`"""
    return flip(c, input, *plain(c, dims, input.rank))


# --- new tensors -----------------------------------------------------------------------------------------


def iota(
    c: Context, length: Dim, start: Dim, step: Dim, dtype: str = "int64", requires_grad: bool = False
) -> Tensor:
    """`n -> [n]`, which is start, start + step, …"""
    if category(dtype) != 1:
        c.refuse(f"iota makes integers, not {dtype}")
    c.require(ne(step, 0), "the step of iota is not 0")
    return zeros(c, length, dtype=dtype)


def sized(c: Context, shape: Shape, dtype: str | None = None) -> Tensor:
    """`*n -> [*n]`"""
    return zeros(c, *shape, dtype=dtype)


def uniform(c: Context, shape: Shape, low: Value, high: Value, dtype: str, stride: Shape) -> Tensor:
    """`*n -> [*n]`, with the strides given"""
    return empty_strided(c, shape, stride, dtype)


def normal(c: Context, shape: Shape, mean: Value, std: Value, dtype: str) -> Tensor:
    """`*n -> [*n]`"""
    return zeros(c, *shape, dtype=dtype)


def copy_to(c: Context, input: Tensor, b: Tensor) -> Tensor:
    """`[*d], [*e] -> [*d]` with as many elements"""
    c.require(eq(input.numel, b.numel), f"{b} must have as many elements as {input}")
    return copy_(c, input, b)


def copy_strided(c: Context, input: Tensor, stride: Shape) -> Tensor:
    """`[*d] -> [*d]`, with the strides given"""
    return empty_strided(c, input.shape, stride, input.dtype)


def plain_reshape(c: Context, input: Tensor, shape: Shape) -> Tensor:
    """`[*d] -> [*e]` with ∏d == ∏e, contiguous in memory of its own"""
    for size in shape:
        c.require(ge(size, 0), f"a size is {size}")
    result = reshape(c, input, *(0 if size == -1 else size for size in shape))
    return Tensor(result.shape, result.dtype)


def plain_cat(c: Context, tensors: tuple[Tensor, ...], dim: int) -> Tensor:
    """`[*a, n, *z], [*a, m, *z], … -> [*a, n + m + …, *z]`"""
    if len({t.rank for t in tensors}) > 1:
        c.refuse("cat takes tensors of one rank")
    if tensors:
        plain(c, (dim,), tensors[0].rank)
    return joined(c, tensors, dim)


def device_put(c: Context, input: Tensor, device: Value, non_blocking: bool = False) -> Tensor:
    """`[*d] -> [*d]`"""
    return input


def limit(c: Context, dtype: str) -> Number:
    """The least or greatest number of a dtype"""
    return Number({0: "bool", 1: "int"}.get(category(dtype), "float"))  # type: ignore[arg-type]


def fourier(name: str, normalization: int = 0) -> RuleFunction:
    """The rule of `_fft_<name>`, whose normalization is a parameter of its own."""
    of = FOURIER[f"_fft_{name}"]

    def rule(c: Context, input: Tensor, dim: tuple[int, ...], last: Any) -> Value:
        """`[*d] -> [*e]`, as `_fft_c2c`, `_fft_r2c` and `_fft_c2r` have it"""
        result: Value = of(c, input, dim, normalization, last)
        return result

    return rule


RULES: Final[dict[str, RuleFunction | Rule]] = {
    f"prims::{name}": rule
    for name, rule in {
        **{name: strict(name, POINTWISE[name]) for name in SAME_NAME},
        **{name: strict(name, POINTWISE[of]) for name, of in RENAMED.items()},
        **operators("xf=x", "cbrt"),
        **operators("xxx=", "conj_physical"),
        "amax": reduction("===x", some=True),
        "amin": reduction("===x", some=True),
        "as_strided": as_strided,
        "as_strided_scatter": as_strided_scatter,
        "broadcast_in_dim": broadcast_in_dim,
        "cat": plain_cat,
        "clone": clone,
        "collapse": collapse,
        "collapse_view": collapse_view,
        "conj": identity,
        "convert_element_type": convert,
        "copy_strided": copy_strided,
        "copy_to": copy_to,
        "device_put": device_put,
        "empty": sized,
        "empty_permuted": empty_permuted,
        "empty_strided": empty_strided,
        "fft_c2c": fourier("c2c"),
        "fft_c2r": fourier("c2r"),
        "fft_r2c": fourier("r2c"),
        "full": full,
        "full_like": full_like,
        "imag": POINTWISE["imag"],
        "iota": iota,
        "item": item,
        "maximum_value": limit,
        "minimum_value": limit,
        "normal": normal,
        "prod": reduction("ii==", of_all=False),
        "real": POINTWISE["real"],
        "reshape": plain_reshape,
        "resize": resize,
        "rev": rev,
        "scalar_tensor": scalar_tensor,
        "split_dim": split_dim,
        "squeeze": squeeze,
        "sum": reduction("ii=="),
        "svd": linalg_svd,
        "transpose": transpose,
        "uniform": uniform,
        "var": reduction("xx=r"),
        "view_of": identity,
        "view_of_dtype": view_of_dtype,
        "where": where,
    }.items()
}
