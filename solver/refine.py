"""The accepted set as people say it: a fact per dim, the relations that are left, and both as a line of text.

A symbol that shares no formula with another is described by the set of its values, exactly and without
z3. For the rest facts are guessed from examples and proved: a bound is attained and nothing lies beyond
it, a divisor that an example breaks shrinks to what divides that example as well.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import gcd, inf, lcm
from typing import TYPE_CHECKING

from ..constraints.dims import Dim, Symbol, Term, evaluate, lone_atom, substitute, sym, symbols, total
from ..constraints.formula import (
    And,
    Compare,
    Formula,
    all_of,
    any_of,
    comparisons,
    conjuncts,
    eq,
    free_symbols,
    ge,
    ne,
    rewrite,
)
from ..constraints.intervals import interval
from ..constraints.language import Fact
from ..constraints.system import Answer, Domain
from .judge import Judge, Satisfiable, connected
from .periodic import IntegerSet, solutions
from .shorten import RUNS, between, simplify

if TYPE_CHECKING:
    from .decide import Decision

__all__ = ["Summary", "condition", "fact", "fact_formula", "fact_text", "facts", "simplify", "summary"]

FAR = 1 << 40
"""Of a term that gets beyond this we find no bound."""
FEW = 48
"""Up to so many values are asked for one by one."""
EFFORT = 300_000
"""Z3's resource units for a question about a fact: facts that are hard to prove are not worth waiting for."""
LINE = "n_"
"""How far along a line."""


# --- facts -------------------------------------------------------------------------------------------------


def facts(judge: Judge, domain: Domain, accepted: Formula, exact: bool = True) -> dict[str, Fact]:
    """A fact for each symbol of the domain. The accepted set is not empty; it is `exact` or holds more."""
    formulas = [*conjuncts(all_of((*domain.assumptions, accepted)))]
    found = {}
    for index, name in enumerate(domain.symbols):
        equals = _equal_to(judge, name, domain.symbols[:index], formulas)
        found[name] = fact(judge, formulas, sym(name), exact, equals)
    return found


def fact(
    judge: Judge, formulas: Sequence[Formula], dim: Dim, exact: bool = True, equals: Dim | None = None
) -> Fact:
    """What the formulas, which hold together, say of a dim."""
    if isinstance(dim, int):
        return Fact(dim, dim, 0, dim, None, ((dim, dim),), exact)
    relevant = connected(formulas, symbols(dim))
    if defined := judge.known(relevant).equal:
        with suppress(ZeroDivisionError):
            others = conjuncts(all_of(rewrite(f, defined) for f in relevant))
            simpler = substitute(dim, defined)
            if (others, simpler) != (relevant, dim):
                return replace(fact(judge, others, simpler, exact), equals=equals)
    atom = lone_atom(dim)
    if isinstance(atom, Symbol) and all(free_symbols(f) == {atom.name} for f in relevant):
        values = solutions(all_of(relevant), atom.name)
        if values:
            return of_set(values, exact, equals)
    return _Search(judge, relevant, dim).fact(exact, equals)


def of_set(values: IntegerSet, exact: bool = True, equals: Dim | None = None) -> Fact:
    """A set that is not empty, as a fact."""
    low, high = values.min, values.max
    step, residue = values.congruence()
    bounds = None if low == -inf else int(low), None if high == inf else int(high)
    return Fact(*bounds, step, residue, equals, values.runs(RUNS), exact)


class _Search:
    """Guesses from examples what holds of a dim where formulas hold, and proves it."""

    def __init__(self, judge: Judge, formulas: tuple[Formula, ...], dim: Term) -> None:
        self.judge = judge
        self.formulas = formulas
        self.dim = dim
        self.seen: set[int] = set()
        self.points: list[dict[str, int]] = []
        self.proved = True

    def fact(self, exact: bool, equals: Dim | None) -> Fact:
        """Bounds, then the step between values, then the values themselves where they are few."""
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
        """Is there an example under these conditions? If that is not known, not everything is proved."""
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
        """A bound of sign*dim, the greatest value if all is proved: found by growing steps, then by
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
        """On some line through an example the formulas hold again and again, and sign*dim grows.

        On a line x + n*d the formulas are over n alone, and hold on a set that is periodic from some n
        on, with a period P (periodic.py). If dim(n + P) - dim(n) >= 1 for all those n, there is no
        bound.
        """
        together, n = all_of(self.formulas), sym(LINE)
        for point in self.points[:2]:
            for line in _lines(point):
                moved = {s: v + line.get(s, 0) * n for s, v in point.items()}
                try:
                    held = solutions(rewrite(together, moved), LINE)
                    there = sign * substitute(self.dim, moved)
                    if held is None or held.max != inf or isinstance(there, int):
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
        """The greatest m such that dim is one residue modulo m: a value that breaks a guess is an
        example more.
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
        """The values as intervals, each value asked for, where they are few enough."""
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
        return tuple(runs) if len(runs) <= RUNS else None


def _lines(point: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Directions: along each symbol, along two at once, evenly or as the point scales them, and along all."""
    names = sorted(point)
    for sign in (1, -1):
        yield from ({name: sign} for name in names)
        for one, other in combinations(names, 2):
            yield {one: sign, other: sign}
            yield {one: sign * point[one], other: sign * point[other]}
        yield dict.fromkeys(names, sign)


def _divisors(formula: Formula) -> int:
    """A common multiple of the integer divisors in a formula."""
    found = 1
    queue: list[Dim] = [c.term for c in comparisons(formula)]
    while queue:
        dim = queue.pop()
        for mono, _ in dim.terms if isinstance(dim, Term) else ():
            for atom in mono:
                if not isinstance(atom, Symbol):
                    queue += atom.args
                    if atom.op in ("//", "%") and isinstance(atom.args[1], int):
                        found = lcm(found, atom.args[1])
    return found


def _equal_to(judge: Judge, name: str, earlier: Sequence[str], formulas: Sequence[Formula]) -> Dim | None:
    """A term over earlier symbols that the symbol always equals: from an equation, or a*t + c through
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
            if judge.ask(eq(s, guess), relevant) is Answer.ALWAYS:
                return guess
    return None


# --- the accepted set as text ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summary:
    """The accepted set within its domain: facts, and the relations between symbols that they do not say."""

    facts: Mapping[str, Fact]
    relations: tuple[Formula, ...]

    def __str__(self) -> str:
        if False in self.relations:
            return "no sizes"
        said = [fact_text(name, fact) for name, fact in self.facts.items()]
        said += [f"({r})" if isinstance(r, And) else str(r) for r in self.relations]
        return ", ".join(filter(None, said)) or "any sizes"


def summary(judge: Judge, domain: Domain, accepted: Formula, facts: Mapping[str, Fact]) -> Summary:
    """Facts, and of the formulas those that do not follow from the facts."""
    said = [f for name, fact in facts.items() for f in conjuncts(fact_formula(name, fact))]
    kept = [*conjuncts(all_of((*domain.assumptions, accepted)))]
    for part in sorted(kept, key=lambda f: -len(str(f))):
        if judge.exhausted:
            break
        others = [p for p in kept if p is not part]
        if judge.ask(part, (*said, *others)) is Answer.ALWAYS:
            kept = others
    return Summary(facts, tuple(kept))


def fact_formula(name: str, fact: Fact) -> Formula:
    """What a fact says of a symbol."""
    s = sym(name)
    if fact.divisor == 0:
        return eq(s, fact.remainder)
    parts = [between(s, fact.min, fact.max), eq(s % fact.divisor, fact.remainder)]
    if fact.values is not None:
        parts.append(any_of(between(s, a, b) for a, b in fact.values))
    if fact.equals is not None:
        parts.append(eq(s, fact.equals))
    return all_of(parts)


def fact_text(name: str, fact: Fact) -> str:
    """`h = 64*_h` (with _h at least 1), `h = 64*_h + 32` (with _h at least 0), `2 <= b <= 64`, `w = h`,
    `c = 3`.

    A bound that the first form does not imply is said as well; nothing is said of a symbol that is free.
    """
    if fact.divisor == 0:
        return f"{name} = {fact.remainder}"
    if fact.equals is not None:
        return f"{name} = {_text(fact.equals)}"
    parts = []
    low = fact.min
    if fact.divisor > 1:
        parts.append(f"{name} = {fact.divisor * sym('_' + name) + fact.remainder}")
        if low == (fact.remainder or fact.divisor):
            low = None
    holes = _holes(fact)
    if holes is None and fact.values is not None:
        parts.append(" or ".join(_range_text(name, a, b) for a, b in fact.values))
    elif low is not None or fact.max is not None:
        parts.append(_range_text(name, low, fact.max))
    parts += [f"{name} != {v}" for v in holes or ()]
    return ", ".join(parts)


def _holes(fact: Fact) -> list[int] | None:
    """The values that are missing between a fact's intervals, if those are at most two."""
    holes: list[int] = []
    for (_, end), (start, _) in pairwise(fact.values or ()):
        assert end is not None and start is not None, "only the outer ends of intervals are open"
        holes += range(end + fact.divisor, start, fact.divisor)
    return holes if len(holes) <= 2 else None


def _text(dim: Dim) -> str:
    """The dim with what is added first: `32 - a`."""
    if isinstance(dim, int) or dim.terms[0][1] > 0:
        return str(dim)
    added = total(Term((term,), dim.modular) if term[0] else term[1] for term in dim.terms if term[1] > 0)
    taken = added - dim
    alone = isinstance(taken, int) or len(taken.terms) == 1
    return str(dim) if added == 0 else f"{added} - {taken if alone else f'({taken})'}"


def _range_text(name: str, low: int | None, high: int | None) -> str:
    if low is not None and low == high:
        return f"{name} = {low}"
    return f"{'' if low is None else f'{low} <= '}{name}{'' if high is None else f' <= {high}'}"


def condition(decision: Decision) -> str:
    """The accepted sizes of a decision in one line."""
    return str(decision.summary)
