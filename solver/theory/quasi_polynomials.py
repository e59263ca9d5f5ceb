"""Terms over one symbol, of symbols, `//` and `%` by integers, are polynomials on each residue class of a
period, so their signs change at finitely many values.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import combinations, pairwise
from math import gcd, inf, lcm

from ...constraints.terms.dims import Apply, Dim, Symbol, applications, coefficients, evaluate
from .integer_sets import MAX_PERIOD, TooLarge


def plain_period(dim: Dim) -> int | None:
    """Returns P > 0 such that a dim over one symbol, without min and max, is a polynomial on each residue
    class modulo P; None where this is not decided here.
    """
    try:
        return None if differences(dim) else period(dim)
    except TooLarge:
        return None


def period(dim: Dim, k: int = 1) -> int:
    """Returns P > 0 such that dim(s + P) - dim(s) is a multiple of k, and every `//` in dim shifts by a whole
    number.

    Of s itself P = k; of x//m it is that of x modulo m*k; of x % m that of x modulo m, and then the
    difference is 0; of c*y that of y modulo k/gcd(c, k); of sums and products the least common multiple; of
    min and max as well, between the values where the least or greatest argument changes. Raises TooLarge
    where P would exceed the limit.
    """
    found = 1
    for mono, c in coefficients(dim):
        rest = k // gcd(c, k)
        for atom in mono:
            found = lcm(found, rest if isinstance(atom, Symbol) else _period_of(atom, rest))
            if found > MAX_PERIOD:
                raise TooLarge
    return found


@lru_cache(maxsize=1 << 14)
def _period_of(atom: Apply, k: int) -> int:
    if atom.op in ("isqrt", "rounded", "**"):
        raise TooLarge
    if atom.op in ("min", "max"):
        return lcm(*(period(arg, k) for arg in atom.args))
    x, m = atom.args
    if not isinstance(m, int):
        raise TooLarge
    return period(x, m * k if atom.op == "//" else m)


def degree(dim: Dim) -> int:
    """Returns the degree of the polynomial that the dim is on a residue class of its period, or an upper
    bound of it.
    """
    return max((sum(map(_degree_of, mono)) for mono, _ in coefficients(dim)), default=0)


@lru_cache(maxsize=1 << 14)
def _degree_of(atom: Symbol | Apply) -> int:
    if isinstance(atom, Symbol):
        return 1
    if atom.op in ("isqrt", "rounded", "**"):
        raise TooLarge
    return 0 if atom.op == "%" else max(map(degree, atom.args))


def sign_changes(dims: Iterable[Dim], name: str, residue: int, period: int) -> list[int]:
    """Returns all n, perhaps among others, at which the sign of term(residue + n*period) is not that at n -
    1. The term is the last of the dims, those before it are the differences of its min and max.

    The term is a polynomial in n but for min and max, whose arguments swap their order where the sign of a
    difference changes; so the stretches are cut there first, innermost differences first.
    """
    cuts: list[int] = []
    for dim in dims:
        most = degree(dim)

        @cache
        def value(n: int, dim: Dim = dim) -> int:
            return evaluate(dim, {name: residue + n * period})

        ends = (-inf, *cuts, inf)
        found = {n for low, high in pairwise(ends) for n in _changes(value, most, low, high - 1)}
        cuts = sorted({*cuts, *found})
    return cuts


def differences(dim: Dim) -> tuple[Dim, ...]:
    """Returns x - y for the arguments x, y of every min and max in the dim, innermost first, each once."""
    extrema = (atom for atom in applications(dim) if atom.op in ("min", "max"))
    return (*dict.fromkeys(x - y for atom in extrema for x, y in combinations(atom.args, 2)),)


def _changes(value: Callable[[int], int], degree: int, low: float, high: float) -> list[int]:
    """Returns all n with low < n <= high at which the sign of a polynomial is not that at n - 1.

    Where the sign of value(n + 1) - value(n) does not change, value is monotone, and bisection finds its
    zero. On an unbounded stretch it then moves by at least 1 a step, or not at all.
    """
    if degree == 0 or low >= high:
        return []
    if degree == 1:
        cuts: list[int] = []
    else:
        # kept, or a value of the k-th difference would take 2**k values
        cuts = _changes(cache(lambda n: value(n + 1) - value(n)), degree - 1, low, high - 1)
    found = []
    for a, b in pairwise((low, *cuts, high)):
        found += _crossings(value, a, b)
    return found


def _crossings(value: Callable[[int], int], low: float, high: float) -> list[int]:
    """Returns all n with low < n <= high at which the sign of a function that is monotone from low to high
    changes.
    """
    if low == -inf and high == inf:
        return [*_crossings(value, -inf, 0), *_crossings(value, 0, inf)]
    if low == -inf:
        # of value(-n) a change at m is one of value at 1 - m
        return sorted(1 - m for m in _crossings(lambda n: value(-n), -high, inf))
    start = int(low)
    end = start + 1 if high == inf else int(high)
    if end <= start:
        return []
    if high == inf:
        slope = value(start + 1) - value(start)
        if slope == 0:
            return []
        target = _sign(slope)
        while _sign(value(end)) != target:
            end = start + 2 * (end - start)
    else:
        target = _sign(value(end))
    found = []
    at = start
    while (before := _sign(value(at))) != target:
        below, above = at, end
        while above - below > 1:
            middle = (below + above) // 2
            if _sign(value(middle)) == before:
                below = middle
            else:
                above = middle
        found.append(above)
        at = above
    return found


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
