"""Where each factor enters but once, a term is extreme at the corners of the box that its factors lie in.

Intervals bound each product of a sum alone, and so learn nothing from `(1 + x)*(4*y - n) >= 0`, which implies
4*y >= n. A term without squares is linear in each of its factors, the others held fixed; so its greatest
value is found where each factor has its least or its greatest one.
"""
from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from ...constraints.terms.dims import (
    Atom,
    Dim,
    Mono,
    Term,
    coefficients,
    evaluate,
    lone,
    substitute,
    sym,
    symbols,
    total,
)
from ...constraints.terms.formula import Compare, Formula, compare, ge, le
from ...constraints.terms.intervals import Bound, Interval, interval
from ..theory.bounds import SHIFTED, Consequences, names_of

FACTORS = 5
PRODUCTS = 24
"""Terms of more factors or products are ignored."""
FAR = 1 << 62
"""Bounds are searched up to this number."""
Polynomial: TypeAlias = "dict[Mono, int]"
Box: TypeAlias = "dict[Atom, Interval]"


def greatest(term: Dim, box: Box) -> Bound:
    """Returns the greatest value of a term without squares, where each factor lies in its interval.

    With f = a*x + b, linear in x from l to u: f is greatest at x = l or at x = u, and where u is infinite at
    l if a <= 0 everywhere; otherwise the result is infinite.
    """
    if isinstance(term, int):
        return term
    return _greatest(dict(term.terms), [*box], box)


def _greatest(terms: Polynomial, factors: list[Atom], box: Box) -> Bound:
    if not terms or [*terms] == [()]:
        return terms.get((), 0)
    x, *others = factors
    slope = {tuple(f for f in mono if f is not x and f != x): c for mono, c in terms.items() if x in mono}
    if not slope:
        return _greatest(terms, others, box)
    rest = {mono: c for mono, c in terms.items() if x not in mono}
    low, high = box[x]
    if high == inf and _greatest(slope, others, box) > 0:
        return inf
    if low == -inf and _greatest({m: -c for m, c in slope.items()}, others, box) > 0:
        return inf
    ends = {int(end) for end in (low, high) if end not in (inf, -inf)}
    if not ends:  # the slope is 0
        return _greatest(rest, others, box)
    return max(_greatest(_plus(rest, slope, end), others, box) for end in ends)


def _plus(rest: Polynomial, slope: Polynomial, x: int) -> Polynomial:
    """Returns rest + x*slope."""
    found = dict(rest)
    if x:
        for mono, c in slope.items():
            found[mono] = found.get(mono, 0) + c * x
    return found


def contract(known: Consequences, names: frozenset[str]) -> None:
    """Teaches the conjunction bounds of symbols that follow from single inequalities, those that mention
    these symbols.
    """
    for fact in [f for f in known.facts if isinstance(f, Compare)]:
        if known.contradictory:
            return
        if len(names_of(fact)) < 2 or names.isdisjoint(names_of(fact)):
            continue
        rest = _without_factor(known, fact.term)
        found = [] if rest is None else [compare(fact.op, rest)]
        if fact.op != "!=":
            found += _bounds(known, fact.term)
        if fact.op == "==":
            found += _bounds(known, -fact.term)
        known.learn(*found)


def _negative(known: Consequences, term: Dim) -> bool:
    """Returns whether the term is surely less than 0.

    With t = a*x + b, for a symbol x from 0 to n, it is where b and b + a*n are; where n is infinite, where b
    is and a <= 0. For terms over one symbol the answer is exact.
    """
    if isinstance(term, int):
        return term < 0
    if len(symbols(term)) == 1:
        return known.ask(ge(term, 0)) is False
    for name in sorted(symbols(term)):
        if (parts := _linear(known, term, name)) is not None:
            slope, rest = parts
            most = known.ranges[SHIFTED + name][1]
            other = slope - 1 if isinstance(most, float) else rest + slope * most
            return _negative(known, rest) and _negative(known, other)
    return False


def _without_factor(known: Consequences, term: Term) -> Dim | None:
    """Returns a, for the term a*x + b that is a*(x + r) with a rational r > 0, for a symbol x >= 0."""
    for name in sorted(symbols(term)):
        parts = _linear(known, term, name)
        if parts is None or 0 in parts:
            continue
        slope, rest = parts
        (mono, c), *_ = coefficients(slope)
        other = dict(coefficients(rest)).get(mono, 0)
        if c * other > 0 and rest * c == slope * other:
            return slope
    return None


def _linear(known: Consequences, term: Dim, name: str) -> tuple[Dim, Dim] | None:
    """Returns (a, b) with the term a*x + b, where x >= 0 and the symbol is its least or greatest value and a
    multiple of x; None where the term has no such form.
    """
    if name not in known.shifts:
        return None
    inner = SHIFTED + name
    slope: list[Dim] = []
    rest: list[Dim] = []
    try:
        whole = substitute(term, {name: known.shifts[name]})
    except ZeroDivisionError:  # the ranges leave one value, at which a divisor is 0
        return None
    for mono, c in coefficients(whole):
        others = tuple(a for a in mono if a.text != inner)
        if any(inner in a.symbols for a in others) or len(mono) > len(others) + 1:
            return None
        part: Dim = Term(((others, c),), isinstance(whole, Term) and whole.modular) if others else c
        (slope if len(others) < len(mono) else rest).append(part)
    return total(slope), total(rest)


def _bounds(known: Consequences, term: Term) -> list[Formula]:
    """Returns the bounds that term >= 0 implies for each symbol, given the known ranges of the others."""
    if _negative(known, term):
        return [False]
    seen = known.view.of(term)
    if isinstance(seen, int):
        return [] if seen >= 0 else [False]
    factors = dict.fromkeys(atom for mono, _ in seen.terms for atom in mono)
    if (
        len(factors) > FACTORS
        or len(seen.terms) > PRODUCTS
        or any(len({*mono}) < len(mono) for mono, _ in seen.terms)
    ):
        return []
    box = {atom: interval(lone(atom), known.ranges) for atom in factors}
    if greatest(seen, box) < 0:
        return [False]
    found: list[Formula] = []
    for name, value in known.shifts.items():
        inner = SHIFTED + name
        atom = next((a for a in box if a.text == inner), None)
        if atom is None:
            continue
        low, high = box[atom]

        def refused(a: Bound, b: Bound, atom: Atom = atom) -> bool:
            return greatest(seen, box | {atom: (a, b)}) < 0

        least, most = _least(low, high, refused), _most(low, high, refused)
        rising = evaluate(value, {inner: 1}) > evaluate(value, {inner: 0})
        if least > low:
            found.append((ge if rising else le)(sym(name), evaluate(value, {inner: int(least)})))
        if most < high:
            found.append((le if rising else ge)(sym(name), evaluate(value, {inner: int(most)})))
    return found


def _least(low: Bound, high: Bound, refused: Callable[[Bound, Bound], bool]) -> Bound:
    """Returns the least value, from `low` on, that is in no refused stretch."""
    if low == -inf or not refused(low, low):
        return low
    good, bad, step = min(high, FAR), int(low), 1  # up to `bad` all is refused
    if refused(low, good):
        return low
    while bad + step < good and refused(low, bad + step):
        bad, step = bad + step, 2 * step
    good = min(good, bad + step)
    while good - bad > 1:
        middle = int(good + bad) // 2
        good, bad = (good, middle) if refused(low, middle) else (middle, bad)
    return good


def _most(low: Bound, high: Bound, refused: Callable[[Bound, Bound], bool]) -> Bound:
    """Returns the greatest value, up to `high`, that is in no refused stretch."""
    if low == -inf:
        return high
    bad = FAR if high == inf else int(high)
    if not refused(bad, high) or refused(low, high):
        return high
    good, step = int(low), 1  # from `bad` on all is refused, from `good` on it is not
    while good + step < bad and not refused(good + step, high):
        good, step = good + step, 2 * step
    bad = min(bad, good + step)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if refused(middle, high) else (middle, bad)
    return good
