"""One dim for several cases: candidates for a term that equals one dim where one condition holds, and another
where another holds. A solver has to prove which of them does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from math import lcm
from operator import mul
from typing import Final

from .dims import (
    Apply,
    Atom,
    Dim,
    Symbol,
    Term,
    ceildiv,
    coefficients,
    evaluate,
    lone,
    maximum,
    minimum,
    modulo,
    sym,
    total,
)
from .formula import And, Compare, Formula, Or

SMALL: Final = 8
"""Dividends are raised by less than this, by a divisor of the divisor, or by the divisor less one of these.
"""


LONGEST_PERIOD: Final = 1 << 10


def proposals(cases: Sequence[tuple[Formula, Dim]]) -> Iterator[Dim]:
    """Dims that may be equal to each case's where its condition holds; of two conditions one holds at most.

    First the dims themselves. Then floor divisions that are rounded otherwise: `h//2` where h is even and
    `h//2 + 1` where it is odd are `(h + 1)//2`. At last the dim that the conditions choose, which is equal to
    each by construction: `b + [c]*(a - b)` for a where c holds and b elsewhere.
    """
    dims = dict.fromkeys(dim for _, dim in cases)
    proposed = [*dims, *dict.fromkeys(shifted for dim in dims for shifted in _shifted(dim))]
    yield from filter(is_total, (*proposed, _chosen(cases)))


def is_total(dim: Dim) -> bool:
    """Returns whether the dim has a value for all values of its symbols, which is so if no divisor is
    symbolic.
    """
    for mono, _ in coefficients(dim):
        for atom in mono:
            if isinstance(atom, Apply):
                if atom.op == "isqrt" or (atom.op in ("//", "%") and isinstance(atom.args[1], Term)):
                    return False
                if not all(map(is_total, atom.args)):
                    return False
    return True


def plain(dim: Dim) -> Dim:
    """Returns the dim with its floor divisions by numbers written as those of linear terms in one symbol,
    where they are equal to such: `(w % 2 + w)//2` is `(w + 1)//2`.
    """
    return total(reduce(mul, map(_plain, mono), c) for mono, c in coefficients(dim))


@lru_cache(maxsize=1 << 12)
def _plain(atom: Atom) -> Dim:
    """Returns the atom as a floor division of a linear term, where it equals one.

    Where f(s + P) = f(s) + p, with the period P, the only such term can be `(p'*s + k)//q'` with p'/q' = p/P;
    and the two are equal everywhere if they are equal over a period.
    """
    itself = lone(atom)
    period = _period(itself)
    if not isinstance(atom, Apply) or atom.op != "//" or len(atom.symbols) != 1 or period is None:
        return itself
    (name,) = atom.symbols
    values = [evaluate(itself, {name: at}) for at in range(period + 1)]
    slope = Fraction(values[-1] - values[0], period)
    p, q = slope.numerator, slope.denominator
    for k in range(values[0] * q, values[0] * q + q):
        if all((p * at + k) // q == value for at, value in enumerate(values)):
            return (p * sym(name) + k) // q
    return itself


def _period(dim: Dim) -> int | None:
    """Returns a P > 0 with f(s + P) = f(s) + p for a fixed p; None where no such P exists, or only a large
    one.

    The period of f//m and f % m is m times that of f, that of a sum the least common multiple.
    """
    period = 1
    for mono, _ in coefficients(dim):
        match mono:
            case () | (Symbol(),):
                pass
            case (Apply(op="//" | "%", args=(inner, int(divisor))),) if divisor > 0:
                of_inner = _period(inner)
                if of_inner is None:
                    return None
                period = lcm(period, of_inner * divisor)
            case _:
                return None
    return period if period <= LONGEST_PERIOD else None


def _shifted(dim: Dim) -> Iterator[Dim]:
    """Yields the dim with the dividend of one floor division raised, and the dim with all of them rounded up.
    """
    for mono, c in coefficients(dim):
        match mono:
            case (Apply(op="//", args=(dividend, int(divisor))),) if divisor > 1:
                rest = dim - c * (dividend // divisor)
                for k in _shifts(divisor):
                    yield rest + c * ((dividend + k) // divisor)
    yield total(reduce(mul, map(_rounded_up, mono), c) for mono, c in coefficients(dim))


def _rounded_up(atom: Atom) -> Dim:
    match atom:
        case Apply(op="//", args=(dividend, int(divisor))) if divisor > 0:
            return ceildiv(dividend, divisor)
    return lone(atom)


def _shifts(divisor: int) -> list[int]:
    """Returns the numbers to add to a dividend: rounding up the outer division of `(u//a)//b`, which is
    `u//(a*b)`, adds `a*(b - 1)`.
    """
    parts = [k for k in range(1, min(divisor, 1 << 10)) if divisor % k == 0]
    return sorted({*range(1, min(divisor, SMALL)), *parts, *(divisor - k for k in parts)})


def indicator(formula: Formula) -> Dim:
    """Returns a dim that is 1 where the formula holds and 0 elsewhere."""
    match formula:
        case bool():
            return int(formula)
        case Compare(">=", term):
            return minimum(1, maximum(0, term + 1))
        case Compare(op, term):
            apart = _apart(term)
            return apart if op == "!=" else 1 - apart
        case And(parts):
            return reduce(mul, map(indicator, parts))
        case Or(parts):
            return 1 - reduce(mul, (1 - indicator(part) for part in parts))


def _apart(term: Term) -> Dim:
    """Returns a dim that is 1 where the term is not 0, and 0 elsewhere."""
    match term.terms:
        case (((Apply(op="%", args=(divided, int(modulus))),), 1),) if modulus > 0:
            remainder = modulo(divided, modulus)
            return remainder if modulus == 2 else minimum(1, remainder)
    return minimum(1, maximum(term, -term))


def _chosen(cases: Sequence[tuple[Formula, Dim]]) -> Dim:
    """Returns a dim equal to that of the case whose condition holds, and to that of the last case where none
    does.
    """
    *others, (_, last) = cases
    return total((last, *(indicator(condition) * (dim - last) for condition, dim in others if dim != last)))
