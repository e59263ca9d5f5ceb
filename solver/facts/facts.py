"""Derives facts about a dim from formulas: its bounds, its step, its values, and another term that it equals.

A dim over one symbol that shares no formula with another is described by the set of its values, exactly and
without z3. For the rest facts are guessed from examples and proved: a bound is attained and nothing lies
beyond it, a divisor that an example breaks shrinks to one that divides that example as well.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from math import gcd, inf, lcm

from ...constraints.ir.language import Fact
from ...constraints.ir.system import Domain
from ...constraints.terms.dims import Dim, Term, applications, evaluate, substitute, sym, symbols
from ...constraints.terms.formula import (
    Compare,
    Formula,
    all_of,
    comparisons,
    conjuncts,
    eq,
    free_symbols,
    ge,
    ne,
    rewrite,
)
from ...constraints.terms.intervals import interval
from ...constraints.terms.parts import rank
from ...constraints.terms.rows import belongs, is_relation
from ..tactics.judge import Judge, Satisfiable, connected
from ..theory.integer_sets import IntegerSet
from ..theory.periodic import image, solutions
from .shorten import RUNS

FAR = 1 << 40
"""A term that exceeds this gets no bound."""
LONG = 16
"""A fact lists at most this many intervals."""
FEW = 48
"""At most this many values are tested one by one."""
EFFORT = 300_000
"""Z3's resource units for a question about a fact: facts that are hard to prove are not worth waiting for."""
LINE = "n_"
"""The symbol for the position along a line."""


def facts(judge: Judge, domain: Domain, accepted: Formula, exact: bool = True) -> dict[str, Fact]:
    """Returns a fact for each symbol of the domain.

    The accepted set is not empty; if it is not `exact`, it may contain more sizes than are accepted.
    """
    formulas = [*conjuncts(all_of((*domain.assumptions, accepted)))]
    found = {}
    for index, name in enumerate(_worth_telling(domain, accepted)):
        equals = _equal_to(judge, name, domain.symbols[:index], formulas)
        found[name] = fact(judge, formulas, sym(name), exact, equals)
    return found


def _worth_telling(domain: Domain, accepted: Formula) -> tuple[str, ...]:
    """Returns the symbols worth a fact: all ordinary ones; those of rows that the accepted set restricts,
    with the ranks of these rows; and the ranks of the other rows.
    """
    if not domain.rows:
        return domain.symbols
    named = free_symbols(accepted)
    related = any(map(is_relation, named))
    free = {str(rank(row)) for row in domain.rows if not any(belongs(name, (row,)) for name in named)}
    alone = {min(names) for f in conjuncts(accepted) if len(names := free_symbols(f)) == 1}
    alone = {name for name in alone if not is_relation(name)}
    long = {str(rank(row)) for row in domain.rows if any(belongs(name, (row,)) for name in alone)}
    wanted = alone | long | (set() if related else free)
    return tuple(name for name in domain.symbols if name in wanted or not belongs(name, domain.rows))


def fact(
    judge: Judge, formulas: Sequence[Formula], dim: Dim, exact: bool = True, equals: Dim | None = None
) -> Fact:
    """Returns the fact about a dim that follows from the formulas, which are satisfiable."""
    if isinstance(dim, int):
        return Fact(dim, dim, 0, dim, None, ((dim, dim),), exact)
    relevant = connected(formulas, symbols(dim))
    if defined := judge.known(relevant).equal:
        with suppress(ZeroDivisionError):
            others = conjuncts(all_of(rewrite(f, defined) for f in relevant))
            simpler = substitute(dim, defined)
            if (others, simpler) != (relevant, dim):
                return replace(fact(judge, others, simpler, exact), equals=equals)
    if len(names := symbols(dim)) == 1 and all(free_symbols(f) == names for f in relevant):
        values = solutions(all_of(relevant), name := min(names))
        taken = image(values, dim, name) if values else None
        if taken:
            return of_set(taken, exact, equals)
    return _FactSearch(judge, relevant, dim).fact(exact, equals)


def of_set(values: IntegerSet, exact: bool = True, equals: Dim | None = None) -> Fact:
    """Returns a set that is not empty as a fact."""
    low, high = values.min, values.max
    step, residue = values.congruence()
    bounds = None if low == -inf else int(low), None if high == inf else int(high)
    runs = values.runs(RUNS)
    residues = None if runs else values.residues(RUNS)
    return Fact(*bounds, step, residue, equals, runs if residues else values.runs(LONG), exact, residues)


class _FactSearch:
    """Guesses facts about a dim from examples, and proves them."""

    def __init__(self, judge: Judge, formulas: tuple[Formula, ...], dim: Term) -> None:
        self.judge = judge
        self.formulas = formulas
        self.dim = dim
        self.seen: set[int] = set()
        self.points: list[dict[str, int]] = []
        self.proved = True

    def fact(self, exact: bool, equals: Dim | None) -> Fact:
        """Returns the fact: bounds first, then the step between values, then the values themselves where they
        are few.
        """
        known = self.judge.known(self.formulas)
        if self._some() != "sat":
            low, high = interval(self.dim, known.ranges)
            return Fact(None if low == -inf else int(low), None if high == inf else int(high), exact=False)
        low, high = -self._greatest(-1), self._greatest(1)
        step, residue = self._congruence()
        values = self._values(low, high, step)
        bounds = None if low == -inf else int(low), None if high == inf else int(high)
        return Fact(*bounds, step, residue, equals, values, exact and self.proved)

    def _some(self, *conditions: Formula) -> Satisfiable:
        """Returns `sat` if an example satisfies these conditions, `unsat` if none does.

        If it is `unknown`, `proved` becomes False.
        """
        if self.judge.exhausted:
            self.proved = False
            return "unknown"
        names = sorted(symbols(self.dim))
        answer = self.judge.satisfiable((*self.formulas, *conditions), names, EFFORT)
        if answer == "unknown":
            self.proved = False
        elif answer == "sat":
            self.points.append(dict(self.judge.model))
            self.seen.add(evaluate(self.dim, self.judge.model))
        return answer

    def _greatest(self, sign: int) -> int | float:
        """Returns a bound of sign*dim, the greatest value if all is proved: found by growing steps, then by
        bisection.
        """
        term = sign * self.dim
        known = max(sign * v for v in self.seen)
        limit = interval(term, self.judge.known(self.formulas).ranges)[1]
        if limit == inf and self._unbounded(sign):
            return inf
        step = 1
        while known < limit:
            if limit == inf:
                tried, step = known + step, step * 16
            else:
                tried, step = (int(limit) if step == 1 else -(-(known + int(limit)) // 2)), 2
            answer = self._some(ge(term, tried))
            if answer == "unknown" or step > FAR:
                self.proved = False
                break
            if answer == "sat":
                known = max(sign * v for v in self.seen)
            else:
                limit = tried - 1
        return limit

    def _unbounded(self, sign: int) -> bool:
        """Returns whether sign*dim is shown to have no bound: on some line through an example the formulas
        hold again and again while it grows.

        On a line x + n*d the formulas are over n alone, and hold on a set that is periodic from some n on,
        with a period P (periodic.py). If dim(n + P) - dim(n) >= 1 for all those n, there is no bound.
        """
        together, n = all_of(self.formulas), sym(LINE)
        for point in self.points[:2]:
            for line in _lines(point):
                moved = {s: v + line.get(s, 0) * n for s, v in point.items()}
                try:
                    there = sign * substitute(self.dim, moved)
                    if isinstance(there, int):
                        continue
                    held = solutions(rewrite(together, moved), LINE)
                    if held is None or held.max != inf:
                        continue
                    later = ge(n, max(held.cuts, default=0))
                    grown = substitute(there, {LINE: n + held.period * _divisors(eq(there, 0))}) - there
                except ZeroDivisionError:
                    continue
                tail, grows = solutions(later, LINE), solutions(ge(grown, 1), LINE)
                if tail is not None and grows is not None and held & tail <= grows:
                    return True
        return False

    def _congruence(self) -> tuple[int, int]:
        """Returns the greatest m such that dim is one residue modulo m, and the residue: each value that
        refutes a guess is a new example.
        """
        while True:
            base = min(self.seen)
            step = gcd(*(v - base for v in self.seen))
            if step == 1:
                return 1, 0
            other = ne((self.dim - base) % step, 0) if step else ne(self.dim, base)
            count = len(self.seen)
            answer = self._some(other)
            if answer == "unknown":
                return 1, 0
            if answer == "unsat" or len(self.seen) == count:
                return step, base % step if step else base

    def _values(self, low: float, high: float, step: int) -> tuple[tuple[int | None, int | None], ...] | None:
        """Returns the values as intervals, each value tested, where they are few enough; else None."""
        if step == 0:
            return ((int(low), int(high)),)
        if inf in (-low, high) or (high - low) // step >= FEW or not self.proved:
            return None
        runs: list[tuple[int | None, int | None]] = []
        for value in range(int(low), int(high) + 1, step):
            if value not in self.seen:
                answer = self._some(eq(self.dim, value))
                if answer == "unknown":
                    return None
                if answer == "unsat":
                    continue
            previous = runs.pop() if runs and runs[-1][1] == value - step else (value, value)
            runs.append((previous[0], value))
        return tuple(runs) if len(runs) <= LONG else None


def _lines(point: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yields directions: along each symbol, along all, along two at once, evenly or as the point scales them.
    """
    names = sorted(point)
    for sign in (1, -1):
        yield from ({name: sign} for name in names)
        yield dict.fromkeys(names, sign)
        for one, other in combinations(names, 2):
            yield {one: sign, other: sign}
            yield {one: sign * point[one], other: sign * point[other]}


def _divisors(formula: Formula) -> int:
    """Returns a common multiple of the integer divisors in a formula."""
    found = applications(*(comparison.term for comparison in comparisons(formula)))
    divisors = [atom.args[1] for atom in found if atom.op in ("//", "%")]
    return lcm(*(divisor for divisor in divisors if isinstance(divisor, int)))


def _equal_to(judge: Judge, name: str, earlier: Sequence[str], formulas: Sequence[Formula]) -> Dim | None:
    """Returns a term over earlier symbols that always equals the symbol: from an equation, or a*t + c through
    two examples.
    """
    s = sym(name)
    relevant = connected(formulas, (name,)) if not judge.exhausted else ()
    for part in relevant:
        if isinstance(part, Compare) and part.op == "==":
            for sign in (1, -1):
                other = s - sign * part.term
                if name not in symbols(other) and symbols(other) and symbols(other) <= {*earlier}:
                    return other
    reached = free_symbols(all_of(relevant))
    if len(reached) < 2 or judge.satisfiable(relevant, (name,)) != "sat":
        return None
    first = dict(judge.model)
    for root in (n for n in earlier if n in reached):
        if judge.satisfiable((*relevant, ne(sym(root), first[root])), (name,)) != "sat":
            continue
        second = dict(judge.model)
        rise, run = second[name] - first[name], second[root] - first[root]
        if rise and rise % run == 0:
            guess = rise // run * (sym(root) - first[root]) + first[name]
            if judge.follows(eq(s, guess), relevant):
                return guess
    return None
