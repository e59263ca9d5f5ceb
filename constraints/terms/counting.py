"""Counts and lists the numbers from `first` up to `end`, without it, that satisfy a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from .dims import Dim, Term, ceildiv, floordiv, maximum, minimum, substitute, sym, symbols, total
from .formula import Compare, Formula, rewrite

PERIODS: Final = range(2, 13)


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected numbers: how many there are, and `at`, which gives the j-th of them, counted from 0, or
    None where no dim expresses it.
    """

    count: Dim
    at: Callable[[Dim], Dim] | None


def chosen(formula: Formula, k: str, first: int, end: Dim) -> Selection | None:
    """Returns the numbers k with first <= k < end that satisfy the formula; None where no dims express them.

    `end` is at least `first`.
    """
    return _periodic(formula, k, first, end) or _bounded(formula, k, first, end)


def _periodic(formula: Formula, k: str, first: int, end: Dim) -> Selection | None:
    """Returns the numbers that satisfy a formula of period m, one that is true of k + m exactly where it is
    true of k.

    For each f among the first m numbers that satisfies it, so do f + m, f + 2*m, …, ⌈(end - f)/m⌉ numbers. No
    count is negative, since `end - f > -m`. None where the formula has no such period.
    """
    for m in PERIODS:
        if rewrite(formula, {k: sym(k) + m}) == formula:
            truths = {f: rewrite(formula, {k: f}) for f in range(first, first + m)}
            if not all(isinstance(truth, bool) for truth in truths.values()):
                return None
            starts = [f for f, truth in truths.items() if truth]
            count = total(ceildiv(end - f, m) for f in starts)
            return Selection(count, _in_turn(starts, m) if starts else None)
    return None


def _in_turn(starts: list[int], step: int) -> Callable[[Dim], Dim]:
    """f, g, …, f + m, g + m, …: with s of them in turn, `f + m*(j//s)`, and `g - f` more where j modulo s is
    1 or more, which is `(j + s - 1)//s - j//s`; and so on.
    """
    s, more = len(starts), [after - before for before, after in pairwise(starts)]

    def at(j: Dim) -> Dim:
        turn = floordiv(j, s)
        further = (by * (floordiv(j + s - i, s) - turn) for i, by in enumerate(more, 1))
        return starts[0] + step * turn + total(further)

    return at


def _bounded(formula: Formula, k: str, first: int, end: Dim) -> Selection | None:
    """Returns the numbers that satisfy bounds: `k + c >= 0` holds from -c on, `c - k >= 0` up to c."""
    if not isinstance(formula, Compare) or formula.op != ">=" or not isinstance(formula.term, Term):
        return None
    low: Dim = first
    rest, high = substitute(formula.term, {k: 0}), end
    if k in symbols(rest):
        return None
    if formula.term == sym(k) + rest:
        low = maximum(first, -rest)
    elif formula.term == rest - sym(k):
        high = minimum(end, rest + 1)
    else:
        return None
    return Selection(maximum(0, high - low), lambda j: low + j)
