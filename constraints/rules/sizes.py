"""Sizes as numbers: reading them off tensors, arithmetic and comparisons, and assertions about them.

Integers stay exact. A float that depends on sizes is a `Number`, whose value is unknown. Quotients and square
roots of sizes are remembered, since rounding turns them into sizes again.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from ..contents.laws.masks import whether_some
from ..engine.memory import is_contiguous
from ..ir.language import Context, Layout, Number, Quotient, Tensor, Value
from ..terms.dims import (
    MOST_BASE,
    MOST_EXPONENT,
    Dim,
    Term,
    exponential,
    maximum,
    minimum,
    square_root,
    total,
)
from ..terms.formula import Formula, all_of, any_of, eq, ge, gt, le, lt, ne, negate
from .common import axis, category, contiguous_strides
from .strides import channels_last, lies_so, strides_of

Scalar: TypeAlias = "Dim | float | Formula | Number"

# --- reading sizes ---------------------------------------------------------------------------------------


def sym_size(c: Context, input: Tensor, dim: int | None = None) -> Dim | tuple[Dim, ...]:
    """`[d0, …] -> d(dim)`, or all of them"""
    if dim is None:
        return input.shape
    if not input.shape:
        c.refuse("a scalar has no sizes")
    return input.shape[axis(c, dim, input.rank)]


def sym_numel(c: Context, input: Tensor) -> Dim:
    """`[d0, …] -> ∏d`"""
    return input.numel


def sym_stride(c: Context, input: Tensor, dim: int | None = None) -> Dim | tuple[Dim, ...]:
    """The strides; of a contiguous tensor they count a size of 0 as 1."""
    strides: tuple[Dim, ...] | None
    if isinstance(input.layout, tuple):
        strides = input.layout
    else:
        shape = tuple(size if c.at_least(size, 1) else maximum(1, size) for size in input.shape)
        strides = strides_of(Tensor(shape, input.dtype, input.layout))
    if strides is None:
        c.approximate("the strides of this tensor are not known", "accept")
        strides = tuple(c.fresh("stride", 0, None) for _ in input.shape)
    return strides if dim is None else strides[axis(c, dim, input.rank)]


def sym_is_contiguous(c: Context, input: Tensor, memory_format: str = "contiguous_format") -> Formula:
    """Returns the condition that the elements of `[*d]` lie in row-major order, or those of `[n, c, *s]` with
    the channels innermost.
    """
    strides, name = strides_of(input), memory_format.removeprefix("torch.")
    if name == "contiguous_format" and is_contiguous(input):
        return True
    if strides is None:
        c.approximate("a value whose layout is not known is taken as contiguous")
        return name == "contiguous_format"
    if name == "contiguous_format":
        return any_of((eq(input.numel, 0), lies_so(input.shape, strides, contiguous_strides(input.shape))))
    rank = {"channels_last": 4, "channels_last_3d": 5}.get(name)
    return input.rank == rank and lies_so(input.shape, strides, channels_last(input.shape))


def sym_storage_offset(c: Context, input: Tensor) -> Dim:
    """Returns an unknown offset: where a tensor starts in its storage is not tracked."""
    c.approximate("where in its storage a tensor starts is not tracked", "accept")
    return c.fresh("offset", 0, None)


def item(c: Context, input: Tensor) -> Term | Number:
    """`[*d] -> the one element`, where ∏d == 1"""
    c.require(eq(input.numel, 1), f"one element is taken from {input}")
    return first_element(c, input)


def first_element(c: Context, input: Tensor) -> Term | Number:
    """`[*d] -> the first element`, where ∏d >= 1"""
    c.require(ge(input.numel, 1), f"an element is taken from {input}")
    if input.dtype is not None and category(input.dtype) == 1:
        return c.fresh("item", None, None)
    return Number("bool" if input.dtype == "bool" else "complex" if is_complex(input.dtype) else "float")


def is_complex(dtype: str | None) -> bool:
    """Returns whether the dtype is certainly complex; False for an unknown dtype."""
    return dtype is not None and category(dtype) == 3


# --- arithmetic ------------------------------------------------------------------------------------------


def is_dim(value: object) -> bool:
    """Returns whether the value is an integer, symbolic or not."""
    return isinstance(value, int | Term)


def is_known(value: object) -> bool:
    """Returns whether the value is a number that Python can calculate with."""
    return isinstance(value, int | float | complex)


def _kind(*values: object) -> Number:
    """Returns a number of unknown value, of the kind that a calculation with these values gives."""
    kinds = {value.kind if isinstance(value, Number) else type(value).__name__ for value in values}
    return Number("complex" if "complex" in kinds else "float" if "float" in kinds else "int")


def _divisor(c: Context, b: Any) -> None:
    """Requires that the divisor is not 0."""
    if is_dim(b) and not c.at_least(b, 1):
        nonzero = ne(b, 0)
        if nonzero is False:
            c.refuse("a division by zero")
        c.require(nonzero, f"a division by {b}, which must not be zero")


def binary(calculate: Callable[[Any, Any], Any], divides: bool = False) -> Callable[..., Any]:
    """Returns the rule of an operator on two numbers: on integers the dims' own operation, on other known
    numbers Python's, which is the same function.
    """

    def rule(c: Context, a: Scalar, b: Scalar) -> Scalar:
        """`a, b -> a ∘ b`"""
        if divides:
            _divisor(c, b)
        if (is_dim(a) and is_dim(b)) or (is_known(a) and is_known(b)):
            result: Scalar = calculate(a, b)
            return result
        return _kind(a, b)

    return rule


def unary(calculate: Callable[[Any], Any]) -> Callable[..., Any]:
    """As `binary`, for one number."""

    def rule(c: Context, a: Scalar) -> Scalar:
        """`a -> ∘a`"""
        if is_dim(a) or is_known(a):
            result: Scalar = calculate(a)
            return result
        return _kind(a)

    return rule


def unknown(c: Context, what: str) -> Term:
    """Returns a fresh integer, and marks the result as approximate, since the value could not be followed."""
    c.approximate(f"{what} is not followed, and may be any integer", "accept")
    return c.fresh("unknown", None, None)


@dataclass(frozen=True, slots=True)
class FloatRoot(Number):
    """The float nearest to the square root of a size."""

    of: Dim


def _scaled(value: Scalar) -> tuple[Dim, int] | None:
    """`(n, 2**k)` for n / 2**k, which a float is exactly; None for all else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Term):
        return value, 1
    if isinstance(value, Quotient) and isinstance(value.under, int) and value.under > 0:
        return (value.over, value.under) if value.under & (value.under - 1) == 0 else None
    return None


def sym_pow(c: Context, a: Scalar, b: Scalar) -> Scalar:
    """`a, b -> a**b`, an integer where a is an integer and b a non-negative integer"""
    if b == 0.5 and (scaled := _scaled(a)) is not None and scaled[1] == 1 and isinstance(scaled[0], Term):
        return FloatRoot("float", scaled[0])
    if is_known(a) and is_known(b):
        return a**b  # type: ignore[operator]
    if isinstance(a, Term) and isinstance(b, int) and b >= 0:
        return a**b
    if is_dim(a) and isinstance(b, Term) and c.at_least(b, 0):
        if isinstance(a, int) and 2 <= a <= MOST_BASE and c.at_least(MOST_EXPONENT - b, 0):
            return exponential(a, b)
        return unknown(c, f"{a} to the power of {b}")
    return Number("float")


def sym_lshift(c: Context, a: Scalar, b: Scalar) -> Scalar:
    """`a, b -> a * 2**b`"""
    return a * 2**b if is_dim(a) and isinstance(b, int) and b >= 0 else unknown(c, f"{a} << {b}")


def sym_rshift(c: Context, a: Scalar, b: Scalar) -> Scalar:
    """`a, b -> a // 2**b`"""
    return a // 2**b if is_dim(a) and isinstance(b, int) and b >= 0 else unknown(c, f"{a} >> {b}")


def sym_truediv(c: Context, a: Scalar, b: Scalar) -> Scalar:
    """`a, b -> a / b`, a float"""
    _divisor(c, b.over if isinstance(b, Quotient) else b)
    over, under = _scaled(a), _scaled(b)
    if over is not None and under is not None and not (is_known(a) and is_known(b)):
        return Quotient("float", over[0] * under[1], under[0] * over[1])
    return a / b if is_known(a) and is_known(b) else _kind(a, b, 0.0)  # type: ignore[operator]


def sym_abs(c: Context, a: Scalar) -> Scalar:
    """`a -> max(a, -a)`"""
    if isinstance(a, Term):
        return a if c.at_least(a, 0) else maximum(a, -a)
    return abs(a) if is_known(a) else _kind(a)  # type: ignore[arg-type]


def extremum(of_dims: Callable[..., Dim], of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    """`sym_max`, `sym_min`: a float is the result where one of two is a float, as in torch"""

    def rule(c: Context, a: Scalar, b: Scalar) -> Scalar:
        """`a, b -> extremum(a, b)`, simplified to one of the two where the order is known"""
        if is_dim(a) and is_dim(b):
            pairs: tuple[tuple[Any, Any], ...] = ((a, b), (b, a))
            for one, other in pairs:
                if c.at_least(one - other, 0):
                    return one if of_dims is maximum else other  # type: ignore[no-any-return]
            return of_dims(a, b)
        if is_known(a) and is_known(b):
            result: Scalar = of_numbers(float(a), float(b))  # type: ignore[arg-type]
            return result
        return _kind(a, b)

    return rule


def sym_sum(c: Context, args: tuple[Dim, ...]) -> Dim:
    """`a, b, … -> a + b + …`"""
    return total(args)


def sym_float(c: Context, a: Scalar) -> Scalar:
    """`a -> float(a)`"""
    if isinstance(a, Term):
        return Quotient("float", a, 1)
    if isinstance(a, Quotient | FloatRoot):
        return a
    return float(a) if is_known(a) else Number("float")  # type: ignore[arg-type]


def rounded(calculate: Callable[[Any], int]) -> Callable[..., Any]:
    """`int`, `floor`, `ceil`, `round`: an integer stays unchanged"""

    def rule(c: Context, a: Scalar, ndigits: None = None) -> Scalar:
        """`a -> ∘a`, an integer"""
        if isinstance(a, Term):
            return a
        if isinstance(a, Quotient | FloatRoot) and (found := _rounded(c, calculate, a)) is not None:
            return found
        return calculate(a) if is_known(a) else unknown(c, "a rounded float")

    return rule


def _rounded(c: Context, calculate: Callable[[Any], int], value: Quotient | FloatRoot) -> Dim | None:
    """⌊√n⌋ is `isqrt(n)`. ⌊a/b⌋ is `a // b`, ⌈a/b⌉ is `-(-a // b)`; towards zero is down where a/b >= 0.

    The nearest integer, the even one of two: q = (2a + b)//2b, less 1 where it is odd and 2b divides 2a + b.
    """
    down = calculate in (math.floor, math.trunc, int)
    if isinstance(value, FloatRoot):
        return square_root(value.of) if down and c.at_least(value.of, 0) else None
    over, under = value.over, value.under
    positive = c.at_least(over, 0) and c.at_least(under, 1)
    if calculate is math.floor or (down and positive):
        return over // under
    if calculate is round and positive:
        nearest, rest = (2 * over + under) // (2 * under), (2 * over + under) % (2 * under)
        return nearest - nearest % 2 * (1 - minimum(1, rest))
    return -(-over // under) if calculate is math.ceil else None


def of_float(calculate: Callable[[float], float]) -> Callable[..., Any]:
    """`sqrt` and the like"""

    def rule(c: Context, a: Scalar) -> Scalar:
        """`a -> ∘a`, a float"""
        scaled = _scaled(a) if calculate is math.sqrt else None
        if scaled is not None and scaled[1] == 1 and isinstance(scaled[0], Term):
            return FloatRoot("float", scaled[0])
        return calculate(a) if is_known(a) else Number("float")  # type: ignore[arg-type]

    return rule


# --- conditions ------------------------------------------------------------------------------------------

COMPARE: dict[str, tuple[Callable[[Any, Any], bool], Callable[[Dim, Dim], Formula], str]] = {
    "eq": (operator.eq, eq, "eq"),
    "ne": (operator.ne, ne, "ne"),
    "lt": (operator.lt, lt, "gt"),
    "le": (operator.le, le, "ge"),
    "gt": (operator.gt, gt, "lt"),
    "ge": (operator.ge, ge, "le"),
}
"""For each comparison: Python's function, the one that builds a formula, and the name of its converse."""


def comparison(name: str) -> Callable[..., Any]:
    """The rule of `sym_eq`, `sym_lt`, …"""
    known, formula, converse = COMPARE[name]

    def rule(c: Context, a: Scalar, b: Scalar) -> Formula | Number:
        """`a, b -> a ∘ b`, a condition on sizes"""
        if is_known(a) and is_known(b):
            return known(a, b)
        if is_dim(a) and is_dim(b):
            return formula(a, b)  # type: ignore[arg-type]
        if isinstance(a, Term) and isinstance(b, float):
            return to_float(name, a, b)
        if isinstance(a, float) and isinstance(b, Term):
            return to_float(converse, b, a)
        if isinstance(a, bool) and not isinstance(b, Number | Term):
            a, b = b, a
        if isinstance(b, bool) and name in ("eq", "ne") and not isinstance(a, Number | Term):
            return a if b is (name == "eq") else negate(a)  # type: ignore[return-value, arg-type]
        return Number("bool")

    return rule


def to_float(name: str, n: Term, f: float) -> Formula:
    """n < f is n < ⌈f⌉, n <= f is n <= ⌊f⌋; infinities and NaN compare with every integer in the same way."""
    known, formula, _ = COMPARE[name]
    if not math.isfinite(f):
        return known(0, f)
    if name in ("eq", "ne"):
        return formula(n, int(f)) if f == int(f) else name == "ne"
    return formula(n, math.ceil(f) if name in ("lt", "ge") else math.floor(f))


def is_condition(value: object) -> bool:
    """Returns whether the value is a condition on sizes, whether or not its truth is known."""
    return not isinstance(value, Number | Term | float | complex | str | Tensor | tuple) and (
        isinstance(value, bool) or not isinstance(value, int)
    )


def _masks_the_last_bits(b: Scalar) -> TypeGuard[int]:
    return isinstance(b, int) and not isinstance(b, bool) and b >= 0 and not b & (b + 1)


def logic(of_formulas: Callable[[Any], Formula], of_ints: Callable[[int, int], int]) -> Callable[..., Any]:
    """`and`, `or`; of integers, bit by bit"""

    def rule(c: Context, a: Scalar, b: Scalar) -> Scalar:
        """`a, b -> a ∘ b`"""
        if is_condition(a) and is_condition(b):
            return of_formulas((a, b))
        if isinstance(a, int) and isinstance(b, int):
            return of_ints(a, b)
        if of_ints is operator.and_ and isinstance(a, Term) and _masks_the_last_bits(b):
            return a % (b + 1)
        absorbing = of_formulas((True, False))
        if absorbing in (a, b) and (is_condition(a) or is_condition(b)):
            return absorbing
        return Number("int" if is_dim(a) or is_dim(b) else "bool")

    return rule


def sym_not(c: Context, a: Scalar) -> Scalar:
    """`a -> not a`"""
    if isinstance(a, Number):
        return Number("bool")
    return eq(a, 0) if isinstance(a, int | Term) and not isinstance(a, bool) else negate(a)  # type: ignore[arg-type]


def sym_ite(c: Context, b: Formula | Number, t: Value, f: Value) -> Value:
    """`b, t, f -> t if b else f`"""
    if isinstance(b, Number):
        return t if t == f else _kind(t, f)
    return t if t == f or c.choose(b, "which of two sizes is taken") else f


# --- assertions ------------------------------------------------------------------------------------------


def assert_scalar(c: Context, input: Formula | Number | Dim, assert_msg: str = "") -> tuple[()]:
    """Requires the condition. A condition on data does not restrict sizes."""
    if is_condition(input):
        c.require(input, assert_msg or f"the program asserts {input}")  # type: ignore[arg-type]
    elif is_dim(input):
        c.require(ne(input, 0), assert_msg or f"the program asserts {input}")  # type: ignore[arg-type]
    return ()


def check(c: Context, cond: Formula | Number, message: object = None) -> tuple[()]:
    """`torch._check(condition)`"""
    return assert_scalar(c, cond, message if isinstance(message, str) else "")


def check_is_size(c: Context, i: Dim, message: object = None, max: Dim | None = None) -> tuple[()]:
    """`0 <= i`, and `i <= max` if that is given"""
    inside = all_of((ge(i, 0), True if max is None else le(i, max)))
    c.require(inside, f"the program checks that {i} is a size" + ("" if max is None else f" up to {max}"))
    return ()


def constrain_range(
    c: Context, size: Dim | Number, min: int | None = None, max: int | None = None
) -> tuple[()]:
    """`min <= size <= max`"""
    if min is not None and max is not None and min > max:
        c.refuse(f"a range from {min} to {max}")
    if not isinstance(size, Number):
        inside = all_of((True if min is None else ge(size, min), True if max is None else le(size, max)))
        c.require(inside, f"the program checks that {size} is from {min} to {max}")
    return ()


def constrain_range_for_size(
    c: Context, size: Dim | Number, min: int | None = None, max: int | None = None
) -> tuple[()]:
    """`min <= size <= max`, and `0 <= size`; torch takes no max below 3"""
    if max is not None and max <= 2:
        c.refuse(f"the maximum of a size must be greater than 2, not {max}")
    return constrain_range(c, size, 0 if min is None else min, max)


def assert_data(c: Context, input: Tensor, assert_msg: str = "") -> tuple[()]:
    """A truth that the data decide is taken to hold; one that sizes decide is required."""
    condition = whether_some(input)
    told = assert_msg or "the program asserts that an element is true"
    if condition is not None:
        c.require(condition, told)
    elif input.elements is not None:
        c.approximate(f"{told}, which sizes decide in a way that is not followed", "accept")
    return ()


def functional_assert(c: Context, input: Value, assert_msg: str, dep_token: Tensor) -> Tensor:
    """An assertion as a function: the token that it is given says when it was made."""
    if isinstance(input, Tensor):
        assert_data(c, input, assert_msg)
    else:
        assert_scalar(c, input, assert_msg)  # type: ignore[arg-type]
    return Tensor(dep_token.shape, dep_token.dtype, Layout.UNKNOWN)


def functional_range(
    c: Context, size: Dim | Number, min: int | None, max: int | None, dep_token: Tensor
) -> Tensor:
    """`min <= size <= max`, and the token"""
    constrain_range(c, size, min, max)
    return Tensor(dep_token.shape, dep_token.dtype, Layout.UNKNOWN)


def functional_range_for_size(
    c: Context, size: Dim | Number, min: int | None, max: int | None, dep_token: Tensor
) -> Tensor:
    """`min <= size <= max` and `0 <= size`, and the token"""
    constrain_range_for_size(c, size, min, max)
    return Tensor(dep_token.shape, dep_token.dtype, Layout.UNKNOWN)


def tensor_metadata(
    c: Context, a: Tensor, size: object = None, stride: object = None, dtype: object = None,
    device: object = None, layout: object = None,
) -> tuple[()]:
    """Returns nothing and requires nothing: the facts that the trace recorded of a tensor are no condition of
    the model.
    """
    return ()


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": binary(operator.add),
    "sub": binary(operator.sub),
    "mul": binary(operator.mul),
    "floordiv": binary(operator.floordiv, divides=True),
    "mod": binary(operator.mod, divides=True),
    "truediv": sym_truediv,
    "pow": sym_pow,
    "lshift": sym_lshift,
    "rshift": sym_rshift,
    "neg": unary(operator.neg),
    "pos": unary(operator.pos),
    "abs": sym_abs,
    "max": extremum(maximum, max),
    "min": extremum(minimum, min),
    "sum": sym_sum,
    "float": sym_float,
    "int": rounded(int),
    "index": rounded(int),
    "trunc": rounded(math.trunc),
    "floor": rounded(math.floor),
    "ceil": rounded(math.ceil),
    "round": rounded(round),
    "sqrt": of_float(math.sqrt),
    "log2": of_float(math.log2),
    **{name: comparison(name) for name in COMPARE},
    "and": logic(all_of, operator.and_),
    "or": logic(any_of, operator.or_),
    "not": sym_not,
    "ite": sym_ite,
}

SIZE_RULES: dict[str, Callable[..., Any]] = {
    "sym_size": sym_size,
    "sym_numel": sym_numel,
    "sym_stride": sym_stride,
    "sym_is_contiguous": sym_is_contiguous,
    "sym_storage_offset": sym_storage_offset,
    "item": item,
    "_local_scalar_dense": first_element,
    **{f"sym_{name}": rule for name, rule in ARITHMETIC.items()},
    "_assert_scalar": assert_scalar,
    "_assert_async": assert_data,
    "_assert_tensor_metadata": tensor_metadata,
    "_check": check,
    "_check_is_size": check_is_size,
    "_functional_assert_async": functional_assert,
    "_functional_assert_scalar": functional_assert,
    "_functional_sym_constrain_range": functional_range,
    "_functional_sym_constrain_range_for_size": functional_range_for_size,
    "sym_constrain_range": constrain_range,
    "sym_constrain_range_for_size": constrain_range_for_size,
}
