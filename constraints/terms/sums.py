"""Sums of a dim over an index, without the index."""

from __future__ import annotations

from .dims import Apply, Dim, Term, ceildiv, lone, maximum, minimum, symbols
from .forall import affine


def triangle(n: Dim) -> Dim:
    """0 + 1 + … + (n - 1)"""
    return n * (n - 1) // 2


def summed(dim: Dim, index: str, n: Dim) -> Dim | None:
    """Returns the sum of a dim for 0 <= index < n, where n is not negative; None where none is known.

    The sum of a*k + c is a*triangle(n) + c*n. Of two dims u and v, the greater is v + max(u - v, 0), and the
    less u - max(u - v, 0).
    """
    if (parts := affine(dim, index)) is not None:
        return parts[0] * triangle(n) + parts[1] * n
    assert isinstance(dim, Term)
    whole: Dim = 0
    rest: Dim = dim
    for mono, times in dim.terms:
        match mono:
            case (Apply(op="max" | "min" as op, args=(u, v)) as atom,) if index in symbols(lone(atom)):
                one = summed(v if op == "max" else u, index, n)
                above = _above_zero(u - v, index, n)
                if one is None or above is None:
                    return None
                whole = whole + times * (one + above if op == "max" else one - above)
                rest = rest - times * lone(atom)
    others = None if rest is dim or affine(rest, index) is None else summed(rest, index, n)
    return None if others is None else whole + others


def _above_zero(dim: Dim, index: str, n: Dim) -> Dim | None:
    """Returns the sum of max(dim, 0) for 0 <= index < n. Returns None for a dim that is not linear in the
    index, unless it is the minimum or maximum of two dims and one of these is the same throughout.

    Backwards if the dim rises, its values are d - q*k with q >= 0. Those above 0 are the first m of them,
    where m is n or, if that is less, d/q rounded up.
    """
    parts = affine(dim, index)
    if parts is None:
        return _above_zero_of_two(dim, index, n)
    a, c = parts
    if not isinstance(a, int):
        return None
    if a == 0:
        return n * maximum(c, 0)
    q, d = abs(a), c + a * (n - 1) if a > 0 else c
    m = minimum(n, maximum(ceildiv(d, q), 0))
    return m * d - q * triangle(m)


def _above_zero_of_two(dim: Dim, index: str, n: Dim) -> Dim | None:
    """Returns the sum of max(min(w, g), 0), or of max(max(w, g), 0), where g is the same throughout.

    With h = max(g, 0), the former is max(w, 0) - max(w - h, 0): that is 0 if h is 0, and else w, up to h,
    wherever w is above 0. The latter is h + max(w - h, 0).
    """
    assert isinstance(dim, Term)
    for mono, times in dim.terms:
        match mono:
            case (Apply(op="max" | "min" as op, args=(_, _)) as atom,) if times in (1, -1):
                rest, is_greater = dim - times * lone(atom), (op == "max") == (times == 1)
                g, w = sorted((rest + times * arg for arg in atom.args), key=lambda d: index in symbols(d))
                h = maximum(g, 0)
                above = None if index in symbols(g) else _above_zero(w - h, index, n)
                beside = n * h if is_greater or above is None else _above_zero(w, index, n)
                if above is not None and beside is not None:
                    return beside + above if is_greater else beside - above
    return None
