"""Of the numbers from `first` up to `end`, without it, those that fulfil a formula: how many, and which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from .dims import Dim, Term, ceildiv, floordiv, maximum, minimum, substitute, sym, symbols, total
from .formula import Compare, Formula, rewrite

PERIODS: Final = range(2, 13)


@dataclass(frozen=True, slots=True)
class Chosen:
    """So many numbers; `at` gives the j-th of them, counted from 0, None where no dim says it."""

    count: Dim
    at: Callable[[Dim], Dim] | None


def chosen(formula: Formula, k: str, first: int, end: Dim) -> Chosen | None:
    """The numbers k with first <= k < end of which the formula holds; None where that is not said by dims.

    `end` is at least `first`.
    """
    return _periodic(formula, k, first, end) or _bounded(formula, k, first, end)


def _periodic(formula: Formula, k: str, first: int, end: Dim) -> Chosen | None:
    """A formula that says of k + m what it says of k holds of ⌈(end - f)/m⌉ numbers for each f it holds of
    among the first m: of f, f + m, f + 2*m, … None where it is not of that kind.

    `end - f > -m`, so that no count is negative.
    """
    for m in PERIODS:
        if rewrite(formula, {k: sym(k) + m}) == formula:
            truths = {f: rewrite(formula, {k: f}) for f in range(first, first + m)}
            if not all(isinstance(truth, bool) for truth in truths.values()):
                return None
            starts = [f for f, truth in truths.items() if truth]
            count = total(ceildiv(end - f, m) for f in starts)
            return Chosen(count, _in_turn(starts, m) if starts else None)
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


def _bounded(formula: Formula, k: str, first: int, end: Dim) -> Chosen | None:
    """`k + c >= 0` holds from -c on, `c - k >= 0` up to c."""
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
    return Chosen(maximum(0, high - low), lambda j: low + j)
