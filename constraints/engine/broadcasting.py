"""Broadcasting: the common size, and the common shape, of several."""

from __future__ import annotations

from ..ir.language import Context, Shape
from ..terms.dims import Dim, maximum, minimum
from ..terms.formula import any_of, eq


def broadcast_dim(c: Context, a: Dim, b: Dim, error: type[Exception] = RuntimeError) -> Dim:
    """`a, b -> a if b == 1 else b`, where a == b or one of them is 1.

    Where neither side is known to differ from 1 the result is max(a, b) * min(a, b, 1): equal sizes n >= 1
    give n, 1 and n give n, and a 0 on either side gives 0.
    """
    if a is b or a == b:
        return a
    if a == 1:
        return b
    if b == 1:
        return a
    a_is_1, b_is_1 = eq(a, 1), eq(b, 1)
    told = f"sizes {a} and {b} do not broadcast (equal, or one is 1)"
    c.require(any_of((eq(a, b), a_is_1, b_is_1)), told, error)
    if a_is_1 is False or c.at_least(a, 2):
        return a
    if b_is_1 is False or c.at_least(b, 2):
        return b
    if c.at_least(a, 1) and c.at_least(b, 1):
        return maximum(a, b)
    return maximum(a, b) * minimum(a, b, 1)


def broadcast(c: Context, *shapes: Shape, error: type[Exception] = RuntimeError) -> Shape:
    """`[*a], [*b], … -> [*broadcast]`, aligned at the last axis; a missing axis counts as 1."""
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result:
            continue
        short, long = sorted((result, shape), key=len)
        split = len(long) - len(short)
        left = result[max(len(result) - len(short), 0) :]
        right = shape[max(len(shape) - len(short), 0) :]
        pairs = zip(left, right, strict=True)
        result = long[:split] + tuple(broadcast_dim(c, a, b, error) for a, b in pairs)
    return result
