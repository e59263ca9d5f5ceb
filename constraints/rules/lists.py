"""Operators on lists of tensors (`_foreach_add`), which apply an operator to each tensor of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Tensor, Value, product
from ..terms.formula import eq, ge
from .common import category, rank_is
from .elementwise import RULES as POINTWISE
from .elementwise import apply_law, clone, copy
from .layout import empty
from .linalg import mm
from .matrices import vector_norm


def each(name: str, rule: RuleFunction | Rule, parameters: str, scalar: str = "") -> dict[str, Rule]:
    """Returns the rule of `_foreach_<name>`: `rule` for the i-th members of the lists, with other arguments
    unchanged.

    The parameter named by `scalar` may be a tensor: one number for all, or (`packed`) a vector of them.
    """
    names = ("input", *parameters.split())
    of_one = rule if isinstance(rule, Rule) else Rule.of(rule)

    def of_all(c: Context, **given: Any) -> tuple[Value, ...]:
        """[*a], [*b], … -> the results, one for each"""
        lengths = [len(value) for value in given.values() if isinstance(value, tuple)]
        if 0 in lengths:
            c.refuse("a list of tensors has one at least")
        if len(set(lengths)) != 1:
            c.refuse(f"lists of tensors and numbers have one length, not {sorted(set(lengths))}")
        number = given.get(scalar)
        if isinstance(number, Tensor):
            given[scalar] = Tensor((), number.dtype)
            if name in PACKED:
                rank_is(c, number, "a tensor of numbers", 1)
                c.require(eq(number.shape[0], lengths[0]), f"{number} is not a number for each tensor")
            else:
                rank_is(c, number, "a tensor that stands for a number", 0)
        return tuple(
            of_one(c, of_one.bind(tuple(v[i] if isinstance(v, tuple) else v for v in given.values()), {}))
            for i in range(lengths[0])
        )

    op = f"_foreach_{name}"
    return {op: Rule(of_all, names, "", frozenset(names), frozenset(names[:1]))}


PACKED: Final = ("addcdiv", "addcmul")
"""Operators that take their numbers as a vector."""

UNARY: Final = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2
neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zero""".split()


def foreach_max(c: Context, input: Tensor) -> Tensor:
    """[*a] -> [], where there is an element"""
    c.require(ge(product(input.shape), 1), f"there is no maximum of {input}, which has no elements")
    return Tensor((), apply_law(c, "===x", input.dtype, "a maximum"))


def foreach_norm(c: Context, input: Tensor, ord: Any = 2, dtype: str | None = None) -> Tensor:
    """[*a] -> []"""
    return vector_norm(c, input, ord, None, False, dtype)


def foreach_powsum(c: Context, input: Tensor, ord: Any = 2, dtype: str | None = None) -> Tensor:
    """[*a] -> [], the sum of powers; only of a tensor without elements it may be one of integers"""
    if dtype is None and input.dtype is not None and category(input.dtype) < 2:
        told = f"a sum of powers is of floats, not of {input.dtype}"
        c.require(empty(c, input.shape), told, NotImplementedError)
    return Tensor((), dtype or apply_law(c, "ii=r", input.dtype))


def foreach_copy(c: Context, input: Tensor, src: Tensor, non_blocking: Value = False) -> Tensor:
    """[*a], [*b] -> [*a], where b broadcasts to a"""
    return copy(c, input, src)


def foreach_clone(c: Context, input: Tensor, memory_format: str | None = None) -> Tensor:
    """[*a] -> [*a]"""
    return clone(c, input, memory_format)


RULES: Final[Mapping[str, Rule]] = {
    **{op: rule for name in UNARY for op, rule in each(name, POINTWISE[name], "").items()},
    **each("add", POINTWISE["add"], "other alpha", "other"),
    **each("addcdiv", POINTWISE["addcdiv"], "tensor1 tensor2 value", "value"),
    **each("addcmul", POINTWISE["addcmul"], "tensor1 tensor2 value", "value"),
    **each("clamp_max", POINTWISE["clamp_max"], "other"),
    **each("clamp_min", POINTWISE["clamp_min"], "other"),
    **each("clone", foreach_clone, "memory_format"),
    **each("copy", foreach_copy, "src non_blocking"),
    **each("div", POINTWISE["div"], "other", "other"),
    **each("lerp", POINTWISE["lerp"], "tensors1 weights"),
    **each("max", foreach_max, ""),
    **each("maximum", POINTWISE["clamp_min"], "other"),
    **each("minimum", POINTWISE["clamp_max"], "other"),
    **each("mm", mm, "mat2"),
    **each("mul", POINTWISE["mul"], "other", "other"),
    **each("norm", foreach_norm, "ord dtype"),
    **each("pow", POINTWISE["pow"], "exponent"),
    **each("powsum", foreach_powsum, "ord dtype"),
    **each("sub", POINTWISE["sub"], "other alpha"),
}
