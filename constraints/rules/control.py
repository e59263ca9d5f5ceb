"""Control flow: the results of higher-order operators, computed from those of the functions that they run.

The functions themselves are sub-programs, whose nodes precede the operator's own in the program, once each
(tracer/patches/control.py). The rules here relate an operator's operands, the results of its functions and
its own results: a loop returns the shapes that it was given, and the branches of a `cond` agree. A node in a
branch on a size carries the condition (`Node.given`), and its requirements apply under it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ..ir.language import Context, Dyn, Dynamic, Layout, Number, Tensor, Value
from ..terms.dims import Dim, Term, maximum, minimum
from ..terms.formula import And, Compare, Or, all_of, any_of, eq, ge
from .common import axis
from .strides import strides_of


def row(c: Context, input: Tensor, dim: int = 0) -> Tensor:
    """`[*a, n, *z] -> [*a, *z]`: any one of the n slices; n may be 0"""
    at = dim % input.rank
    layout = input.layout
    if isinstance(layout, tuple):
        layout = layout[:at] + layout[at + 1 :]
    elif at:
        layout = Layout.UNKNOWN
    return Tensor(input.shape[:at] + input.shape[at + 1 :], input.dtype, layout)


def stack_rows(c: Context, input: Tensor, size: Dim, dim: int = 0, in_order: bool = True) -> Tensor:
    """`[*a, *z] -> [*a, n, *z]`: n results like the one that is given, side by side. `in_order` they lie one
    after the other in memory.
    """
    at = axis(c, dim, input.rank + 1)
    layout = Layout.CONTIGUOUS if in_order and not at else Layout.UNKNOWN
    return Tensor((*input.shape[:at], size, *input.shape[at:]), input.dtype, layout)


def carried(c: Context, input: Value, listed: bool = False) -> Value:
    """`[*d] -> [*d]`: the value that a loop carries, in any of its iterations; an integer may have become any
    other. A list of numbers is `listed` once, outside of any iteration.
    """
    return Number("int") if isinstance(input, int | Term) else input


def shaped_by(c: Context, sizes: Tensor) -> Dynamic:
    """`[r] -> [*d]`, with r dims: a tensor whose sizes are the elements of another, from a list of any length
    """
    return Dyn


def cond(c: Context, pred: Value, true: tuple[Value, ...], false: tuple[Value, ...]) -> tuple[Value, ...]:
    """`[1], ([*d], …), ([*d'], …) -> ([*u], …)`, where d_i and d'_i bound u_i from both sides"""
    if isinstance(pred, bool):
        return true if pred else false
    if isinstance(pred, Tensor):
        c.require(eq(pred.numel, 1), f"a condition is one element, not {pred}")
    return _pairs(c, _either, true, false, "the branches of cond")


def switch(c: Context, index: Value, results: tuple[tuple[Value, ...], ...]) -> tuple[Value, ...]:
    """`[1], ([*d], …), … -> ([*u], …)`, where the results of the branches bound u_i from both sides"""
    if isinstance(index, int):
        return results[index]
    if isinstance(index, Tensor):
        c.require(eq(index.numel, 1), f"an index of branches is one element, not {index}")
    return reduce(lambda some, more: _pairs(c, _either, some, more, "the branches of switch"), results)


def while_loop(
    c: Context, condition: Value, before: tuple[Value, ...], after: tuple[Value, ...]
) -> tuple[Value, ...]:
    """`[], ([*d], …), ([*d], …) -> ([*d], …)`: the body returns the shapes and dtypes that it was given"""
    if isinstance(condition, Tensor) and condition.shape:
        c.refuse(f"the condition of while_loop is {condition}, not one element without dims")
    return _pairs(c, _carried_on, before, after, "what while_loop carries and what its body returns")


def scan(
    c: Context, init: tuple[Value, ...], carry: tuple[Value, ...], xs: tuple[Tensor, ...],
    ys: tuple[Tensor, ...],
) -> tuple[Value, ...]:
    """`([*c], …), ([*c], …), ([n, *x], …), ([*y], …) -> ([*c], …, [n, *y], …)`, where n >= 1"""
    size = _length(c, xs, "scan", same=False)
    last = _pairs(c, _carried_on, init, carry, "what scan carries and what its function returns")
    return (*last, *(stack_rows(c, y, size) for y in ys))


def map_rows(c: Context, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """`([n, *x], …), ([*y], …) -> ([n, *y], …)`, where n >= 1"""
    size = _length(c, xs, "map", same=True)
    return tuple(stack_rows(c, y, size) for y in ys)


def associative_scan(c: Context, xs: tuple[Tensor, ...], combined: tuple[Value, ...]) -> tuple[Value, ...]:
    """`([n, *d], …), ([*d], …) -> ([n, *d], …)`, where n >= 1"""
    _length(c, xs, "associative_scan", same=True)
    rows = tuple(row(c, x) for x in xs)
    _pairs(c, _same, rows, combined, "the operands of associative_scan and what its function returns")
    return tuple(Tensor(x.shape, x.dtype, Layout.UNKNOWN) for x in xs)


def _length(c: Context, xs: tuple[Tensor, ...], name: str, *, same: bool) -> Dim:
    """The common first size; scan takes as many slices as the first operand has, and leaves others over."""
    if not xs or not all(x.rank for x in xs):
        c.refuse(f"{name} runs over the first dim of tensors")
    size = xs[0].shape[0]
    compare = eq if same else ge
    c.require(ge(size, 1), f"{name} runs over {size} slices")
    c.require(all_of(compare(x.shape[0], size) for x in xs), f"{name} runs over {', '.join(map(str, xs))}")
    return size


def _pairs(
    c: Context, law: Callable[[Context, Value, Value, str], Value], left: tuple[Value, ...],
    right: tuple[Value, ...], what: str,
) -> tuple[Value, ...]:
    if len(left) != len(right):
        c.refuse(f"{what} differ in number: {len(left)} and {len(right)}")
    return tuple(law(c, a, b, what) for a, b in zip(left, right, strict=True))


def _same(c: Context, before: Value, after: Value, what: str) -> Value:
    """Returns the value before the loop; the value after any iteration must agree with it in all but the
    elements.
    """
    if isinstance(before, Tensor) and isinstance(after, Tensor):
        told = f"{what} differ: {before} and {after}"
        if before.rank != after.rank or before.dtype != after.dtype:
            c.refuse(told)
        c.require(all_of(map(eq, before.shape, after.shape)), told)
        return Tensor(before.shape, before.dtype, _common(before, after))
    if isinstance(before, int | Term | Number) and isinstance(after, int | Term | Number):
        return Number("int")
    return before if before == after else Dyn


def _carried_on(c: Context, before: Value, after: Value, what: str) -> Value:
    """Returns the value before the loop, which the value after an iteration must resemble in its strides,
    too.
    """
    result = _same(c, before, after, what)
    if isinstance(before, Tensor) and isinstance(after, Tensor):
        told, had, have = f"{what} differ in their strides", strides_of(before), strides_of(after)
        if had is None or have is None:
            c.approximate(f"{told}, perhaps", "accept")
        elif had != have:
            empty = any_of(eq(n, 0) for n in before.shape if not c.at_least(n, 1))
            c.require(any_of((empty, all_of(map(eq, had, have)))), told)
            c.approximate(f"{told}, perhaps, where there are no elements", "accept", empty)
    return result


def _either(c: Context, true: Value, false: Value, what: str) -> Value:
    """Returns a value that covers the results of both branches; where sizes differ it has a size between the
    two.
    """
    if isinstance(true, Tensor) and isinstance(false, Tensor):
        if true.rank != false.rank or true.dtype != false.dtype:
            c.refuse(f"{what} differ: {true} and {false}")
        shape = tuple(_between(c, a, b) for a, b in zip(true.shape, false.shape, strict=True))
        return Tensor(shape, true.dtype, _common(true, false))
    if isinstance(true, int | Term) and isinstance(false, int | Term):
        return _between(c, true, false)
    if isinstance(true, bool | Compare | And | Or) and true != false:
        return Number("bool")
    return true if true == false else Dyn


def _common(a: Tensor, b: Tensor) -> Layout | tuple[Dim, ...]:
    return a.layout if a.layout == b.layout else Layout.UNKNOWN


def _between(c: Context, a: Dim, b: Dim) -> Dim:
    if c.at_least(a - b, 0) and c.at_least(b - a, 0):
        return b
    return c.fresh("either", minimum(a, b), maximum(a, b))


RULES = {
    "row": row,
    "stack_rows": stack_rows,
    "carried": carried,
    "shaped_by": shaped_by,
    "cond": cond,
    "switch": switch,
    "while_loop": while_loop,
    "scan": scan,
    "map": map_rows,
    "associative_scan": associative_scan,
}
