"""Pointwise operators: `[*a], [*b], … -> [*broadcast]`. Tables say which dtypes each takes and gives.

A *law* is four letters, one for each category that the promoted operands may have (bool, integral, floating,
complex):

    =  the promoted dtype itself          b  bool           i  int64
    f  torch's default dtype, float32     r  the real dtype of a complex one
    d  the double of its kind             x  refused
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cmp_to_key, partial
from itertools import pairwise
from math import ceil
from types import MappingProxyType
from typing import Any, Final

from ..engine.memory import dense as lies_dense
from ..engine.memory import is_contiguous
from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Dyn, Layout, Number, Shape, Tensor, Value, product
from ..terms.dims import Dim, Term
from ..terms.formula import Formula, all_of, any_of, eq, ge, le, lt, ne, negate
from .common import (
    CATEGORY,
    COMPLEX_OF,
    COMPLEX_SINCE_2_14,
    KINDS,
    REAL_OF,
    axis,
    broadcast,
    category,
    channels_innermost,
    channels_last,
    contiguous_strides,
    dtype_error,
    promote,
)
from .sizes import ARITHMETIC
from .strides import (
    Strides,
    by_stride,
    is_flat,
    is_refuted,
    laid_out,
    lies_so,
    preserved,
    quotient,
    require_flat,
    strides_of,
)

COMPLEX = MappingProxyType({real: dtype for dtype, real in REAL_OF.items()})


def apply_law(c: Context, law: str, dtype: str | None, operation: str = "the operator") -> str | None:
    """The dtype of a result by the law, for operands promoted to `dtype`."""
    if dtype is None:
        # Only what does not depend on the operands is known.
        return "bool" if set(law) <= set("bx") else "int64" if set(law) <= set("ix") else None
    kind = category(dtype)
    match law[kind]:
        case "x":
            c.refuse(f"{operation} does not take {dtype}", dtype_error(c, operation, dtype))
        case "f":
            return c.floats
        case "b":
            return "bool"
        case "i":
            return "int64"
        case "d":
            return "complex128" if kind == 3 else "float64"
        case "r":
            return REAL_OF[dtype]
        case _:
            return dtype


# Layout.


def dense(shape: Shape, order: Sequence[int]) -> Strides:
    """Strides of a tensor without gaps whose axes, slowest first, come in this order."""
    strides: list[Dim] = [1] * len(shape)
    step: Dim = 1
    for i in reversed(order):
        strides[i] = step
        step = step * shape[i]
    return tuple(strides)


def pointwise_layout(c: Context, operands: Iterable[Value], shape: Shape) -> Layout | Strides:
    """The strides that TensorIterator gives a new result of this shape: no gaps, axes ordered by stride.

    Operands of one shape that share a format pass it on (`_shared_format`). Otherwise it starts from
    row-major order and sorts by insertion. Of two axes the first operand with an opinion says which is
    faster: one whose strides along both are not 0 (as they are where it is broadcast) and differ. Axes
    without an opinion are skipped, and a decided order ends the insertion, so that the order is hard to
    predict where several operands decide. But:

    1. If no operand asks for a change on any pair of axes, the result is contiguous.
    2. If all operands have an opinion on every pair, and the same, their order is that of the result.
    3. If all comparisons of strides are decided, the insertion can be followed (`by_stride`).

    All need proof that one stride is at least another for all sizes; without it the layout is unknown. Sizes
    are taken to be at least 1, as an empty tensor has no layout worth the name.
    """
    operands = tuple(operands)
    vocal = [o for o in operands if isinstance(o, Tensor) and not _is_silent(c, o, shape)]
    if all(_is_row_major(c, t) for t in vocal):
        return Layout.CONTIGUOUS
    if all(_is_row_major(c, t) or t.layout is Layout.ROW_MAJOR for t in vocal):
        alike = all(isinstance(o, Tensor) and o.shape == shape and is_contiguous(o) for o in operands)
        return Layout.CONTIGUOUS if alike else Layout.ROW_MAJOR
    shared = _shared_format(c, operands, shape)
    if shared not in (None, Layout.UNKNOWN):
        return shared
    tensors = [o for o in operands if isinstance(o, Tensor) and o.shape]
    orders = {axes_by_stride(c, t) if t.shape == shape else None for t in tensors}
    order = orders.pop() if len(orders) == 1 else None
    if order is None:
        order = by_stride(c, shape, [_seen(c, t, shape) for t in tensors])
    # Operands in row-major order share no other format; one that is shared decides sizes of 1 elsewhere.
    if order is None or (shared is Layout.UNKNOWN and order != tuple(range(len(shape)))):
        return Layout.UNKNOWN
    return laid_out(shape, dense(shape, order))


def _shared_format(c: Context, operands: Sequence[Value], shape: Shape) -> Layout | Strides | None:
    """The layout that TensorIterator takes over at once from operands that all have the result's shape:
    row-major or with the channels innermost, sizes of 1 aside, or the very same strides without gaps. This
    gives axes of size 1 their strides, too. A number among tensors is an operand without axes.

    None where the operands share no such format, UNKNOWN where sizes decide whether they do.
    """
    tensors = [o for o in operands if isinstance(o, Tensor)]
    if len(tensors) < len(operands) or any(_differ(c, t.shape, shape) for t in tensors):
        return None
    strides = [s for s in map(strides_of, tensors) if s is not None]
    if len(strides) < len(tensors):
        return Layout.UNKNOWN
    alike = all_of(all_of(map(eq, t.shape, shape)) for t in tensors)
    formats = [contiguous_strides(shape), *([channels_last(shape)] if len(shape) == 4 else [])]
    for wanted in formats:
        fit = all_of((alike, *(lies_so(shape, s, wanted) for s in strides)))
        if not is_refuted(c, fit):
            return laid_out(shape, wanted) if fit is True else Layout.UNKNOWN
    first, *others = strides
    gapless = lies_dense(tensors[0])
    if gapless is None:
        return Layout.UNKNOWN
    fit = all_of((alike, gapless, *(all_of(map(eq, first, s)) for s in others)))
    return None if is_refuted(c, fit) else laid_out(shape, first) if fit is True else Layout.UNKNOWN


def _differ(c: Context, shape: Shape, other: Shape) -> bool:
    """Returns whether the shapes certainly differ."""
    return len(shape) != len(other) or is_refuted(c, all_of(map(eq, shape, other)))


def _seen(c: Context, operand: Tensor, shape: Shape) -> Strides | None:
    """Returns the strides of an operand along the axes of the result, 0 where it is broadcast.

    None where they are not known.
    """
    strides = strides_of(operand)
    missing = len(shape) - operand.rank
    if strides is None or missing < 0:
        return None
    found: list[Dim] = [0] * missing
    for stride, size, wanted in zip(strides, operand.shape, shape[missing:], strict=True):
        grows = size == 1 and c.at_least(wanted, 2)
        stays = size == wanted or c.at_least(size, 2)
        if not (grows or stays) and stride != 0:
            return None
        found.append(0 if grows else stride)
    return tuple(found)


def _is_silent(c: Context, tensor: Tensor, shape: Shape) -> bool:
    """Returns whether the tensor has a stride other than 0 along at most one axis of the result.

    Such an operand decides no order of axes. Its stride along an axis of size 1 counts as 0 where the result
    is larger there.
    """
    strides = tensor.layout if isinstance(tensor.layout, tuple) else (None,) * tensor.rank
    axes = zip(strides, tensor.shape, shape[len(shape) - tensor.rank :], strict=True)
    return sum(s != 0 and not (n == 1 and c.at_least(m, 2)) for s, n, m in axes) < 2


def _is_row_major(c: Context, tensor: Tensor) -> bool:
    """Returns whether each axis with a stride other than 0 is slower than the next such axis."""
    if not isinstance(tensor.layout, tuple):
        return tensor.layout is Layout.CONTIGUOUS
    axes = [i for i, s in enumerate(tensor.layout) if s != 0]
    return all(_slower(c, tensor, i, j) for i, j in pairwise(axes))


def axes_by_stride(c: Context, tensor: Tensor) -> tuple[int, ...] | None:
    """The axes, slowest first, if the strides decide their order for all sizes."""
    if not isinstance(tensor.layout, tuple):
        return tuple(range(tensor.rank)) if tensor.layout is Layout.CONTIGUOUS else None
    if 0 in tensor.layout:
        return None
    if 1 in tensor.shape:
        return by_stride(c, tensor.shape, (tensor.layout,))  # the strides along such axes have a say, too
    order = [*range(tensor.rank)]

    def compare(i: int, j: int) -> int:
        return -1 if _slower(c, tensor, i, j) else 1

    order.sort(key=cmp_to_key(compare))
    # What has been sorted by an order that is not known on all pairs needs a proof: slower-than is
    # transitive.
    if not all(_slower(c, tensor, i, j) for i, j in pairwise(order)):
        return None
    return tuple(order)


def _slower(c: Context, tensor: Tensor, i: int, j: int) -> bool:
    """Returns whether `stride[i] >= stride[j] * size[j]` for all sizes >= 1.

    Then the two strides are equal only where size[j] is 1.
    """
    assert isinstance(tensor.layout, tuple)
    slow, fast = tensor.layout[i], tensor.layout[j] * tensor.shape[j]
    if slow == fast:
        return True
    if isinstance(slow, int) and isinstance(fast, int):
        return slow >= fast
    ratio = quotient(slow, fast)
    if ratio is not None:
        for size in tensor.shape:  # a product of sizes is at least 1, whatever intervals say
            rest = quotient(ratio, size)
            ratio = ratio if rest is None else rest
        if c.at_least(ratio, 1):
            return True
    return c.at_least(slow - fast, 0)


# The one law of shapes.

PARAMETRIC: Final = frozenset("clamp clamp_max clamp_min float_power lerp pow".split())
"""Operators whose numbers are parameters of the kernel; for others a number is an operand."""


POWERS: Final = frozenset({"pow", "float_power"})
"""Operators whose result is contiguous if the base is a number."""
PRESERVING: Final = frozenset(
    "relu6 hardtanh _conj_physical conj_physical nan_to_num deg2rad rad2deg isreal frexp".split()
)
"""Operators whose kernels write into a tensor like the operand (`empty_like`)."""
COMPOSED: Final[Mapping[str, Callable[[Tensor, Callable[..., Tensor]], Tensor]]] = {
    "isfinite": lambda x, call: call(call(x, x), call(call(x), 1)),
    "isinf": lambda x, call: call(call(x), 1),
    "softsign": lambda x, call: call(x, call(call(x), 1)),
    "special_ndtr": lambda x, call: call(call(call(call(x, 1)), 1), 1),
}
"""Operators that torch composes of others, of tensors and numbers: how, as far as layouts are concerned."""


def pointwise(c: Context, law: str, *operands: Value, operation: str = "the operator") -> Tensor:
    """[*a], [*b], … -> [*broadcast(a, b, …)]"""
    shape = broadcast(c, *(o.shape for o in operands if isinstance(o, Tensor)))
    dtype = apply_law(c, law, _promoted(c, operands, operation), operation)
    seen = [o for o in operands if isinstance(o, Tensor)] if operation in PARAMETRIC else operands

    def made(*given: Value) -> Tensor:
        return Tensor(shape, dtype, pointwise_layout(c, given, shape))

    if operation in POWERS and not isinstance(operands[0], Tensor):
        return Tensor(shape, dtype)
    if operation in PRESERVING and isinstance(operands[0], Tensor):
        return Tensor(shape, dtype, preserved(c, shape, operands[0].layout))
    if operation in COMPOSED and isinstance(operands[0], Tensor):
        return COMPOSED[operation](operands[0], made)
    return made(*seen)


def _promoted(c: Context, operands: Sequence[Value], operation: str) -> str | None:
    """Returns the dtype of the operands together; None where it is not known."""
    dtype = promote(operands, c.floats, COMPLEX_SINCE_2_14 if c.since(2, 14) else COMPLEX_OF)
    if dtype != "bcomplex32":
        return dtype
    c.approximate(f"{operation} may not take complex numbers as short as bfloat16", "accept")
    return None


def same_dtype(c: Context, operation: str, *operands: Value) -> None:
    """Refuses tensors of different dtypes, where torch does not promote."""
    dtypes = {o.dtype for o in operands if isinstance(o, Tensor)} - {None}
    if len(dtypes) > 1:
        c.refuse(f"{operation} takes tensors of one dtype, not {' and '.join(sorted(map(str, dtypes)))}")


def operators(law: str, names: str, operands: str = "input", parameters: str = "") -> dict[str, Rule]:
    """Returns one row of a table: operators with this law, the names of their operands, which broadcast, and
    of the parameters that they ignore.

    Every operand and parameter but the first may be left out.
    """
    inputs, positional = operands.split(), (*operands.split(), *parameters.split())

    def rule(name: str, c: Context, **given: Any) -> Value:
        values = [given[o] for o in inputs if given.get(o) is not None]
        if name in TENSORS_ONLY and not all(isinstance(v, Tensor) for v in values):
            c.refuse(f"{name} takes tensors, not numbers")
        if name in ONE_DTYPE:
            same_dtype(c, name, *values)
        if not any(isinstance(v, Tensor) for v in values):
            return on_numbers(c, name, *values)
        return pointwise(c, law, *values, operation=name)

    return {
        name: Rule(partial(rule, name), positional, "", frozenset(positional), frozenset(positional[:1]))
        for name in names.split()
    }


# Operators on plain numbers and sizes: a graph writes `mul` for both `x * y` and `h * w`.

ON_NUMBERS: Final[Mapping[str, RuleFunction]] = MappingProxyType(
    {name: ARITHMETIC[name] for name in "abs add eq ge gt le lt mul ne neg pow sub".split()}
    | {
        "bitwise_and": ARITHMETIC["and"],
        "bitwise_or": ARITHMETIC["or"],
        "div": ARITHMETIC["truediv"],
        "floor_divide": ARITHMETIC["floordiv"],
        "positive": ARITHMETIC["pos"],
        "remainder": ARITHMETIC["mod"],
    }
)


def on_numbers(c: Context, name: str, *values: Value) -> Value:
    """The operator without a tensor."""
    if name not in ON_NUMBERS:
        c.refuse(f"{name} takes a tensor")
    result: Value = ON_NUMBERS[name](c, *values)
    return result


TENSORS_ONLY: Final = frozenset(
    """atan2 fmax fmin gcd heaviside hypot igamma igammac isclose lcm logaddexp logaddexp2 logical_and
    logical_or logical_xor maximum minimum nextafter""".split()
)
"""Binary operators that have no overload for a number."""

ONE_DTYPE: Final = frozenset("heaviside isclose".split())
"""Operators that do not promote."""

UNARY: Final[dict[str, Rule]] = {
    **operators("x==r", "abs"),
    **operators("ff==", "acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2"),
    **operators("ff==", "reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh"),
    **operators("ff=r", "angle"),
    **operators("==xx", "bitwise_not"),
    **operators("x==x", "ceil floor trunc"),
    **operators("x==x", "relu relu6", "input", "inplace"),
    **operators("x==x", "threshold", "input", "threshold value inplace"),
    **operators("====", "sgn _conj_physical"),
    **operators("====", "nan_to_num", "input", "nan posinf neginf"),
    **operators("ff=x", "deg2rad digamma erf erfc erfinv i0 lgamma rad2deg"),
    **operators("ff=x", "special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr"),
    **operators("ff=x", "special_ndtr special_ndtri"),
    **operators("ff=x", "special_airy_ai special_spherical_bessel_j0", "x"),
    **operators("ff=x", "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1", "x"),
    **operators("ff=x", "special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1"),
    **operators("ff=x", "special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0"),
    **operators("ff=x", "special_modified_bessel_k1"),
    **operators("ff=x", "logit", "input", "eps"),
    **operators("xx=x", "frac hardswish hardsigmoid mish selu", "input", "inplace"),
    **operators("xx=x", "hardshrink softshrink", "input", "lambd"),
    **operators("xx=x", "leaky_relu", "input", "negative_slope inplace"),
    **operators("xx=x", "celu", "input", "alpha inplace"),
    **operators("xx=x", "elu", "input", "alpha scale input_scale inplace"),
    **operators("xx=x", "softplus", "input", "beta threshold"),
    **operators("xx==", "silu", "input", "inplace"),
    **operators("xf==", "softsign tanhshrink"),
    **operators("bbbb", "isfinite isinf isnan isreal logical_not"),
    **operators("bbbx", "isneginf isposinf signbit"),
    **operators("x===", "neg"),
    **operators("===x", "sign"),
    **operators("i===", "square"),
}

POLYNOMIALS: Final = " ".join(
    f"special_{name}"
    for name in """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w""".split()
)
BINARY: Final[dict[str, Rule]] = {
    **operators("====", "mul", "input other"),
    **operators("x==x", "floor_divide remainder fmod", "input other"),
    **operators("ff=x", "atan2 copysign xlogy special_xlog1py special_zeta", "input other"),
    **operators("ff=x", POLYNOMIALS, "x n"),
    **operators("xx=x", "igamma igammac", "input other"),
    **operators("dddd", "float_power", "input exponent"),
    **operators("xx=x", "hypot nextafter logaddexp2", "input other"),
    **operators("xx==", "logaddexp", "input other"),
    **operators("===x", "maximum minimum fmax fmin", "input other"),
    **operators("===x", "heaviside", "input values"),
    **operators("x=xx", "gcd lcm lshift rshift", "input other"),
    **operators("==xx", "bitwise_and bitwise_or bitwise_xor", "input other"),
    **operators("bbbb", "logical_and logical_or logical_xor eq ne", "input other"),
    **operators("bbbx", "lt le gt ge", "input other"),
    **operators("bbbb", "isclose", "input other", "rtol atol equal_nan"),
}
"""Both operands count for the dtype; a law applies to the promoted one."""


# Binary operators with a clause of their own.


def add(c: Context, input: Value, other: Value, alpha: Value = 1) -> Value:
    """[*a], [*b] -> [*broadcast(a, b)]"""
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(c, "add", input, other)
    result = pointwise(c, "====", input, other, operation="add")
    if result.dtype is not None:
        if isinstance(alpha, bool) and result.dtype != "bool":
            c.refuse("a boolean alpha is for boolean tensors")
        if isinstance(alpha, float) and category(result.dtype) < 2:
            c.refuse(f"alpha must be an integer for {result.dtype}")
    return result


def sub(c: Context, input: Value, other: Value, alpha: Value = 1) -> Value:
    """[*a], [*b] -> [*broadcast(a, b)]; neither may be boolean."""
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(c, "sub", input, other)
    for operand in (input, other):
        if isinstance(operand, bool) or (isinstance(operand, Tensor) and operand.dtype == "bool"):
            told = "subtraction does not take a boolean; use ~ or logical_xor"
            c.refuse(told, dtype_error(c, "sub", "bool"))
    return add(c, input, other, alpha)


def div(c: Context, input: Value, other: Value, rounding_mode: str | None = None) -> Value:
    """[*a], [*b] -> [*broadcast(a, b)]; of integers, a float unless the quotient is rounded."""
    if rounding_mode not in (None, "floor", "trunc"):
        c.refuse(f"rounding_mode must be None, 'trunc' or 'floor', not {rounding_mode!r}")
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(c, "floor_divide" if rounding_mode == "floor" else "div", input, other)
    return pointwise(c, "x==x" if rounding_mode else "ff==", input, other, operation="div")


def pow(c: Context, input: Value, exponent: Value) -> Value:
    """[*a], [*b] -> [*broadcast(a, b)]; an integer has no negative integer power."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        return on_numbers(c, "pow", input, exponent)
    dtype = promote((input,), c.floats)
    if isinstance(exponent, int) and exponent < 0 and dtype is not None and category(dtype) < 2:
        c.refuse("integers to negative integer powers are not allowed")
    return pointwise(c, "x===" if isinstance(exponent, Tensor) else "====", input, exponent, operation="pow")


def ldexp(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)], which is input * 2.0 ** other."""
    if not isinstance(other, Tensor):
        c.refuse("ldexp takes tensors, not numbers")
    power = Tensor(other.shape, apply_law(c, "ff==", other.dtype), other.layout)
    return pointwise(c, "====", input, power, operation="ldexp")


def rsub(c: Context, input: Value, other: Value, alpha: Value = 1) -> Value:
    """[*a], [*b] -> [*broadcast(b, a)], which is b - a"""
    return sub(c, other, input, alpha)


def rdiv(c: Context, input: Value, other: Value) -> Value:
    """[*a], [*b] -> [*broadcast(b, a)], which is b / a"""
    return div(c, other, input)


def hardtanh(
    c: Context, input: Tensor, min_val: Value = -1, max_val: Value = 1, inplace: Value = False
) -> Tensor:
    """[*a] -> [*a]; until torch 2.14 unsigned numbers are between limits that are not negative"""
    below = any(isinstance(v, int | float) and v <= -1 for v in (min_val, max_val))
    if input.dtype == "uint8" and below and not c.since(2, 15):
        c.refuse("hardtanh has negative limits, and unsigned numbers")
    return pointwise(c, "x==x", input, operation="hardtanh")


def rpow(c: Context, input: Value, other: Value) -> Value:
    """[*a], [*b] -> [*broadcast(b, a)], which is b ** a"""
    return pow(c, other, input)


def swapped(operation: str) -> RuleFunction:
    """The rule of an operator on (b, a) whose rule for (a, b) is a row of the table."""

    def rule(c: Context, input: Value, other: Value) -> Value:
        """[*a], [*b] -> [*broadcast(b, a)]"""
        return BINARY[operation](c, {"input": other, "other": input})

    return rule


# Three operands and more.


def where(c: Context, condition: Tensor, input: Value = None, other: Value = None) -> Value:
    """[*a], [*b], [*c] -> [*broadcast(a, b, c)]; of a condition alone, rank times [n] with n <= numel."""
    if input is None and other is None:
        count = c.trues(condition)
        return tuple(Tensor((count,), "int64", Layout.UNKNOWN) for _ in range(max(condition.rank, 1)))
    if not isinstance(condition, Tensor):
        c.refuse("where takes a tensor as its condition")
    if condition.dtype not in ("bool", "uint8", None):
        c.refuse(f"where takes a boolean condition, not {condition.dtype}")
    values = (input, other)
    shape = broadcast(c, *(o.shape for o in (condition, *values) if isinstance(o, Tensor)))
    return Tensor(shape, promote(values, c.floats), pointwise_layout(c, (condition, *values), shape))


def clamp(c: Context, input: Tensor, min: Value = None, max: Value = None) -> Tensor:
    """[*a], [*b], [*c] -> [*broadcast(a, b, c)]"""
    bounds: list[Value] = [b for b in (min, max) if b is not None]
    if not bounds:
        c.refuse("clamp takes min or max, or both")
    if len({isinstance(b, Tensor) for b in bounds}) > 1:  # one is a number, so a 0-dim tensor counts as one
        bounds = [_number(b) for b in bounds]
        if any(isinstance(b, Tensor) and b.shape for b in bounds):
            c.refuse("clamp takes two tensors or two numbers, not one of each")
    return pointwise(c, "x==x", input, *bounds, operation="clamp")


def _number(value: Value) -> Value:
    """Returns the value that torch reads where it expects a number: for a 0-dim tensor, its element."""
    if isinstance(value, Tensor) and value.shape == () and value.dtype is not None:
        return Number(KINDS[category(value.dtype)])
    return value


def clamp_min(c: Context, input: Tensor, min: Value) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)]"""
    return pointwise(c, "===x" if isinstance(min, Tensor) else "x==x", input, min, operation="clamp_min")


def clamp_max(c: Context, input: Tensor, max: Value) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)]"""
    return clamp_min(c, input, max)


def lerp(c: Context, input: Tensor, end: Tensor, weight: Value) -> Tensor:
    """[*a], [*b], [*c] -> [*broadcast(a, b, c)], all of one floating dtype."""
    # The kernel reads a 0-dim weight as a number.
    tensors = [t for t in (input, end, weight) if isinstance(t, Tensor) and (t is not weight or t.shape)]
    same_dtype(c, "lerp", *tensors)
    result = pointwise(c, "xx==", *(input, end, weight), operation="lerp")
    return Tensor(result.shape, input.dtype, result.layout)


def addcmul(c: Context, input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Value = 1) -> Tensor:
    """[*a], [*b], [*c] -> [*broadcast(a, b, c)]"""
    return pointwise(c, "x===", input, tensor1, tensor2, operation="addcmul")


def addcdiv(c: Context, input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Value = 1) -> Tensor:
    """[*a], [*b], [*c] -> [*broadcast(a, b, c)]; one of the two that are divided must be floating."""
    dtypes = [t.dtype for t in (tensor1, tensor2) if t.dtype is not None]
    if len(dtypes) == 2 and all(category(d) < 2 for d in dtypes):
        c.refuse("addcdiv does not divide integers")
    return pointwise(c, "xx==", input, tensor1, tensor2, operation="addcdiv")


def masked_fill(c: Context, input: Tensor, mask: Tensor, value: Value) -> Tensor:
    """[*a], mask: bool[*b] -> [*broadcast(a, b)], contiguous and of the dtype of a."""
    if mask.dtype not in ("bool", None):
        c.refuse(f"masked_fill takes a boolean mask, not {mask.dtype}")
    if isinstance(value, Tensor) and value.shape:
        c.refuse(f"masked_fill takes a number or a tensor of rank 0 as its value, not {value}")
    return Tensor(broadcast(c, input.shape, mask.shape), input.dtype)


def glu(c: Context, input: Tensor, dim: int = -1) -> Tensor:
    """[*a, 2*n, *b] -> [*a, n, *b]"""
    if not input.shape:
        c.refuse("glu halves an axis, and a tensor of rank 0 has none")
    at = axis(c, dim, input.rank)
    size = input.shape[at]
    c.require(eq(size % 2, 0), f"glu halves axis {at}, so its size {size} must be even")
    shape = (*input.shape[:at], size // 2, *input.shape[at + 1 :])
    half = Tensor(shape, input.dtype, input.layout)
    return Tensor(shape, apply_law(c, "xx=x", input.dtype, "glu"), pointwise_layout(c, (half,), shape))


def prelu(c: Context, input: Tensor, weight: Tensor) -> Tensor:
    """[n, k, *s], weight: [k] or [1] or [] -> [n, k, *s]; a vector has one channel."""
    same_dtype(c, "prelu", input, weight)
    if weight.rank > 1:
        c.refuse(f"prelu takes a weight of rank 0 or 1, not {weight.rank}")
    if weight.shape:
        (count,) = weight.shape
        if not input.shape:
            c.require(eq(count, 1), f"a tensor of rank 0 takes a prelu weight of size 1, not {count}")
        else:
            channels = input.shape[1] if input.rank > 1 else 1
            c.require(
                any_of((eq(count, 1), eq(count, channels))),
                f"prelu has {count} parameters for {channels} channels",
            )
    dtype = apply_law(c, "xx=x", input.dtype, "prelu")
    return Tensor(input.shape, dtype, preserved(c, input.shape, input.layout))


def prelu_kernel(c: Context, input: Tensor, weight: Tensor) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)]"""
    same_dtype(c, "prelu", input, weight)
    result = pointwise(c, "xx=x", input, weight, operation="prelu")
    return Tensor(result.shape, result.dtype, preserved(c, result.shape, input.layout))


def gelu(c: Context, input: Tensor, approximate: str = "none") -> Tensor:
    """[*a] -> [*a]"""
    if approximate not in ("none", "tanh"):
        c.refuse(f"gelu knows approximate='none' and 'tanh', not {approximate!r}")
    return pointwise(c, "xx=x", input, operation="gelu")


def logsigmoid(c: Context, input: Tensor) -> Tensor:
    """[*a] -> [*a], contiguous"""
    return Tensor(input.shape, apply_law(c, "xx=x", input.dtype, "logsigmoid"))


def log_sigmoid_forward(c: Context, input: Tensor) -> tuple[Tensor, Tensor]:
    """[*a] -> [*a] and a buffer for the derivative: [*a]"""
    result = logsigmoid(c, input)
    return result, result


def rrelu(
    c: Context, input: Tensor, lower: Value = 0.125, upper: Value = 0.25, training: Value = False,
    inplace: Value = False,
) -> Tensor:
    """[*a] -> [*a], contiguous"""
    return Tensor(input.shape, apply_law(c, "xx=x", input.dtype, "rrelu"))


def rrelu_with_noise(
    c: Context, input: Tensor, noise: Tensor, lower: Value = 0.125, upper: Value = 0.25,
    training: Value = False, generator: Value = None,
) -> Tensor:  # fmt: skip
    """[*a], [*a] -> [*a], contiguous; the noise is written"""
    if input.rank != noise.rank:
        c.refuse(f"the noise has the shape of the input: {noise} and {input}")
    same = all_of(map(eq, input.shape, noise.shape))
    c.require(same, f"the noise has the shape of the input: {noise} and {input}")
    return rrelu(c, input, lower, upper)


def rrelu_with_noise_functional(
    c: Context, input: Tensor, noise: Tensor, lower: Value = 0.125, upper: Value = 0.25,
    training: Value = False, generator: Value = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """[*a], [*a] -> [*a] and the noise: [*a]"""
    return rrelu(c, input), clone(c, noise)


def round(c: Context, input: Tensor, decimals: int | None = None) -> Tensor:
    """[*a] -> [*a]; the kernel with decimals takes floating numbers alone, even for 0 decimals"""
    return pointwise(c, "x==x" if decimals is None else "xx=x", input, operation="round")


def polygamma(c: Context, n: Value, input: Value) -> Tensor:
    """[*a] -> [*a]; the method has the order last"""
    return pointwise(c, "ff=x", n if isinstance(n, Tensor) else input, operation="polygamma")


def mvlgamma(c: Context, input: Tensor, p: Value) -> Tensor:
    """[*a] -> [*a], the sum of p pointwise results"""
    return Tensor(input.shape, apply_law(c, "xf=x", input.dtype, "mvlgamma"))


def frexp(c: Context, input: Tensor) -> tuple[Tensor, Tensor]:
    """[*a] -> mantissa: [*a], exponent: int32[*a]"""
    mantissa = pointwise(c, "xx=x", input, operation="frexp")
    return mantissa, Tensor(mantissa.shape, "int32", mantissa.layout)


def isin(
    c: Context, elements: Value, test_elements: Value, assume_unique: Value = False, invert: Value = False
) -> Tensor:
    """[*a], [*b] -> bool[*a]; either may be a number

    Few test elements are compared with each element, and are viewed as a vector for that; many are sorted.
    """
    shape = elements.shape if isinstance(elements, Tensor) else ()
    if isinstance(test_elements, Tensor) and not is_flat(test_elements):
        require_flat(c, test_elements, unless=negate(_few(c, test_elements.numel, product(shape))))
    return Tensor(shape, "bool")


def _few(c: Context, m: Dim, n: Dim) -> Formula:
    """Returns the condition m < ⌊10 n^0.145⌋, under which `isin` does not sort m elements to find n others.

    The right side is at least k from n = ⌈(k / 10)^(1 / 0.145)⌉ on. For open m and n, k goes up to 20; where
    m is n, the condition holds up to 13.
    """
    if isinstance(n, int):
        return lt(m, int(10 * n**0.145))
    if m == n:
        return le(m, 13)
    ks = [m + 1] if isinstance(m, int) else range(10, 21)
    least = {k: max(1, ceil((k / 10) ** (1 / 0.145))) for k in ks}
    if not isinstance(m, int):
        many = all_of((ge(n, least[20]), ge(m, 20)))
        c.approximate("whether isin sorts so many elements is not known", "accept", many)
    return any_of(all_of((ge(n, least[k]), lt(m, k))) for k in ks)


def equal(c: Context, input: Tensor, other: Tensor) -> Number:
    """[*a], [*b] -> a truth that the data decides; other shapes are just not equal."""
    return Number("bool")


def allclose(
    c: Context, input: Tensor, other: Tensor, rtol: Value = 1e-5, atol: Value = 1e-8, equal_nan: Value = False
) -> Number:
    """[*a], [*b] -> a truth that the data decides, where a and b broadcast."""
    same_dtype(c, "allclose", input, other)
    broadcast(c, input.shape, other.shape)
    return Number("bool")


# Copies and conversions.

DTYPES: Final = frozenset(CATEGORY) | {"quint8", "qint8", "qint32", "float8_e4m3fn", "float8_e5m2"}
CONVERSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bfloat16": "bfloat16",
        "bool": "bool",
        "byte": "uint8",
        "cdouble": "complex128",
        "cfloat": "complex64",
        "chalf": "complex32",
        "char": "int8",
        "double": "float64",
        "float": "float32",
        "half": "float16",
        "int": "int32",
        "long": "int64",
        "short": "int16",
    }
)
TENSOR_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {f"{name.capitalize()}Tensor": dtype for name, dtype in CONVERSIONS.items() if name[0] != "c"}
    | {f"Complex{name}Tensor": f"complex{n}" for name, n in (("Half", 32), ("Float", 64), ("Double", 128))}
    | {f"UInt{n}Tensor": f"uint{n}" for n in (16, 32, 64)}
    | {"BFloat16Tensor": "bfloat16", "CharTensor": "int8"}
)
"""The dtypes of torch's types of tensors, by their names."""
CHANNELS_LAST: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}
)


def _formatted(c: Context, input: Tensor, dtype: str | None, memory_format: str | None) -> Tensor:
    """A copy in the memory format: that of the input (`preserve_format`), row-major or channels last."""
    name = "preserve_format" if memory_format is None else memory_format.removeprefix("torch.")
    if name == "contiguous_format":
        return Tensor(input.shape, dtype)
    if name in CHANNELS_LAST:
        order = CHANNELS_LAST[name]
        if input.rank != len(order):
            c.refuse(f"{name} is a format of tensors of rank {len(order)}, not {input.rank}")
        return Tensor(input.shape, dtype, dense(input.shape, order))
    return Tensor(input.shape, dtype, preserved(c, input.shape, input.layout))


def clone(c: Context, input: Tensor, memory_format: str | None = None) -> Tensor:
    """[*a] -> [*a]"""
    return _formatted(c, input, input.dtype, memory_format)


def identity(c: Context, input: Tensor) -> Tensor:
    """[*a] -> [*a], the same memory"""
    return input


def requires_grad_(c: Context, input: Tensor, requires_grad: Value = True) -> Tensor:
    """[*a] -> [*a], the tensor itself"""
    return input


def convert(
    c: Context, input: Tensor, dtype: str | None, copy: Value = False, memory_format: str | None = None
) -> Tensor:
    """[*a] -> dtype[*a]; the tensor itself where nothing changes, and its strides suggest the format."""
    copied = _formatted(c, input, dtype, memory_format)
    if dtype != input.dtype or dtype is None or copy:
        return copied
    suggested = _suggests(c, input, (memory_format or "preserve_format").removeprefix("torch."))
    if suggested is None:
        return Tensor(input.shape, dtype, Layout.UNKNOWN)
    return input if suggested else copied


def _suggests(c: Context, input: Tensor, name: str) -> bool | None:
    """Returns whether a tensor's `suggest_memory_format` is this one; None where that depends on sizes."""
    if name == "preserve_format":
        return True
    innermost = channels_innermost(c, input) if input.rank in (4, 5) else False
    if innermost is None:
        return None
    return innermost == (name in CHANNELS_LAST)


def to(
    c: Context, input: Tensor, *args: Value, dtype: Value = None, other: Value = None, copy: Value = False,
    memory_format: str | None = None,
) -> Tensor:
    """[*a] -> dtype[*a]; `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(tensor)`."""
    if isinstance(input, Tensor):
        wanted: str | None = input.dtype
        for argument in (*args, dtype, other):
            if isinstance(argument, Tensor):
                wanted = argument.dtype
            elif isinstance(argument, str) and argument.removeprefix("torch.") in DTYPES:
                wanted = argument.removeprefix("torch.")
        return convert(c, input, wanted, copy, memory_format)
    c.refuse("to takes a tensor")


def cpu(c: Context, input: Tensor, memory_format: str | None = None) -> Tensor:
    """[*a] -> [*a]; the tensor itself where nothing changes"""
    return convert(c, input, input.dtype, False, memory_format)


def to_copy(c: Context, input: Tensor, dtype: str | None = None, memory_format: str | None = None) -> Tensor:
    """[*a] -> dtype[*a]"""
    return convert(c, input, input.dtype if dtype is None else dtype, True, memory_format)


def type(c: Context, input: Tensor, dtype: str | None = None, non_blocking: Value = False) -> Value:
    """[*a] -> dtype[*a]; without a dtype, the name of the tensor's type."""
    if dtype is None:
        return next((f"torch.{name}" for name, kind in TENSOR_TYPES.items() if kind == input.dtype), Dyn)
    name = dtype.rpartition(".")[2].rstrip("'>")  # a dtype, `torch.DoubleTensor`, `<class 'torch.Tensor'>`
    found = c.floats if name == "Tensor" else TENSOR_TYPES.get(name, name)
    if found not in DTYPES:
        c.refuse(f"invalid type: {dtype!r}", ValueError)
    return convert(c, input, found)


def type_as(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """[*a], dtype[*b] -> dtype[*a]"""
    return convert(c, input, other.dtype)


def conversion(dtype: str) -> RuleFunction:
    """The rule of `x.float()` and its like; a graph writes Python's `float(n)` the same way."""
    kind = {2: "float", 3: "complex"}.get(category(dtype), "bool" if dtype == "bool" else "int")

    def rule(c: Context, input: Value, memory_format: str | None = None) -> Value:
        """[*a] -> dtype[*a]"""
        if isinstance(input, Tensor):
            return convert(c, input, dtype, False, memory_format)
        if kind == "int" and isinstance(input, int | Term):
            return input
        return Number(kind)  # type: ignore[arg-type]

    return rule


# Writes into a tensor; all other in-place operators are their functional forms and a check by the generator.


def _into(c: Context, input: Tensor, source: Tensor, operation: str) -> Tensor:
    """[*a], [*b] -> [*a], where b broadcasts to a without changing it."""
    if source.rank > input.rank:
        c.refuse(f"{operation} does not fit {source} into {input}")
    for have, want in zip(reversed(input.shape), reversed(source.shape), strict=False):
        c.require(
            any_of((eq(want, have), eq(want, 1))), f"{operation} does not fit size {want} into size {have}"
        )
    return input


def copy_(c: Context, input: Tensor, src: Tensor | Number, non_blocking: Value = False) -> Tensor:
    """[*a], [*b] or number -> [*a], where b broadcasts to a."""
    return _into(c, input, src, "copy_") if isinstance(src, Tensor) else input


def copy(c: Context, input: Tensor, src: Tensor, non_blocking: Value = False) -> Tensor:
    """[*a], [*b] -> [*a], where b broadcasts to a; a new tensor of the same strides, gaps and all, where no
    two elements of a have one place.
    """
    result = _into(c, input, src, "copy")
    if not isinstance(input.layout, tuple):
        return result
    apart = all_of(any_of((le(n, 1), ne(s, 0))) for n, s in zip(input.shape, input.layout, strict=True))
    if apart is True or c.certain(apart):
        return result
    return clone(c, result) if is_refuted(c, apart) else Tensor(result.shape, result.dtype, Layout.UNKNOWN)


def fill_(c: Context, input: Tensor, value: Value) -> Tensor:
    """[*a], number or [] -> [*a]"""
    if isinstance(value, Tensor) and value.shape:
        c.refuse(f"fill_ takes a number or a tensor of rank 0, not {value}")
    return input


def fill(c: Context, input: Tensor, value: Value) -> Tensor:
    """[*a], number or [] -> [*a]; a new tensor."""
    return clone(c, fill_(c, input, value))


def float_power_(c: Context, input: Tensor, exponent: Value) -> Tensor:
    """float64 or complex128 [*a], [*b] -> [*a], where b broadcasts to a."""
    result = pointwise(c, "dddd", input, exponent, operation="float_power_")
    if None not in (input.dtype, result.dtype) and input.dtype != result.dtype:
        c.refuse(f"float_power_ writes {result.dtype}, and {input} does not hold it")
    return _into(c, input, result, "float_power_")


def zero_(c: Context, input: Tensor) -> Tensor:
    """[*a] -> [*a]"""
    return input


def zero(c: Context, input: Tensor) -> Tensor:
    """[*a] -> [*a]; a new tensor."""
    return clone(c, input)


# Complex numbers.


def complex(c: Context, real: Tensor, imag: Tensor) -> Tensor:
    """[*a], [*b] -> complex[*broadcast(a, b)]"""
    for dtype in (real.dtype, imag.dtype):
        if dtype is not None and dtype not in COMPLEX:
            error = NotImplementedError if c.since(2, 15) else RuntimeError
            c.refuse(f"a complex tensor is made of float16, float32 or float64, not {dtype}", error)
    same_dtype(c, "complex", real, imag)
    result = pointwise(c, "====", real, imag)
    return Tensor(result.shape, None if result.dtype is None else COMPLEX[result.dtype], result.layout)


def polar(c: Context, abs: Tensor, angle: Tensor) -> Tensor:
    """[*a], [*b] -> complex[*broadcast(a, b)]"""
    return complex(c, abs, angle)


def real(c: Context, input: Tensor) -> Tensor:
    """[*a] -> [*a]; of a complex tensor a view with strides 2*s, of any other the tensor itself"""
    if input.dtype is None:
        return Tensor(input.shape, None, Layout.UNKNOWN)
    return imag(c, input) if input.dtype in REAL_OF else input


def imag(c: Context, input: Tensor) -> Tensor:
    """complex[*a] -> [*a], a view with strides 2*s"""
    dtype = apply_law(c, "xxxr", input.dtype, "imag")
    strides = strides_of(input)
    return Tensor(input.shape, dtype, Layout.UNKNOWN if strides is None else tuple(s * 2 for s in strides))


def conj_physical(c: Context, input: Tensor) -> Tensor:
    """[*a] -> [*a]; the tensor itself if it is not complex"""
    return input if input.dtype is not None and input.dtype not in REAL_OF else clone(c, input)


def positive(c: Context, input: Value) -> Value:
    """[*a] -> [*a], the tensor itself"""
    if not isinstance(input, Tensor):
        return on_numbers(c, "positive", input)
    apply_law(c, "x===", input.dtype, "positive")
    return input


CLAUSES: Final[dict[str, RuleFunction]] = {
    "_prelu_kernel": prelu_kernel,
    "_conj": identity,
    "_to_copy": to_copy,
    "add": add,
    "addcdiv": addcdiv,
    "addcmul": addcmul,
    "allclose": allclose,
    "clamp": clamp,
    "clamp_max": clamp_max,
    "clamp_min": clamp_min,
    "clone": clone,
    "complex": complex,
    "conj": identity,
    "conj_physical": conj_physical,
    "copy": copy,
    "copy_": copy_,
    "detach": identity,
    "detach_": identity,
    "cpu": cpu,
    "detach_copy": clone,
    "div": div,
    "equal": equal,
    "fill": fill,
    "fill_": fill_,
    "float_power_": float_power_,
    "frexp": frexp,
    "gelu": gelu,
    "glu": glu,
    "imag": imag,
    "isin": isin,
    "ldexp": ldexp,
    "lerp": lerp,
    "log_sigmoid_forward": log_sigmoid_forward,
    "logsigmoid": logsigmoid,
    "masked_fill": masked_fill,
    "mvlgamma": mvlgamma,
    "polar": polar,
    "polygamma": polygamma,
    "positive": positive,
    "pow": pow,
    "prelu": prelu,
    "rdiv": rdiv,
    "real": real,
    "requires_grad_": requires_grad_,
    "resolve_conj": identity,
    "resolve_neg": identity,
    "rfloordiv": swapped("floor_divide"),
    "round": round,
    "hardtanh": hardtanh,
    "rpow": rpow,
    "rremainder": swapped("remainder"),
    "rrelu": rrelu,
    "rrelu_with_noise": rrelu_with_noise,
    "rrelu_with_noise_functional": rrelu_with_noise_functional,
    "rsub": rsub,
    "sub": sub,
    "to": to,
    "type": type,
    "type_as": type_as,
    "where": where,
    "zero": zero,
    "zero_": zero_,
    **{name: conversion(dtype) for name, dtype in CONVERSIONS.items()},
}
RULES: Final[dict[str, RuleFunction | Rule]] = {**UNARY, **BINARY, **CLAUSES}
