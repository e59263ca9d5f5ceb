"""The accepted set as people say it: a short formula, a fact per dim, and both as a line of text.

A symbol that shares no formula with another is described by the set of its values, exactly and without
z3. For the rest facts are guessed from examples and proved: a bound is attained and nothing lies beyond
it, a divisor that an example breaks shrinks to what divides that example as well.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    Or,
    all_of,
    any_of,
    comparisons,
    conjuncts,
    eq,
    free_symbols,
    ge,
    le,
    ne,
    rewrite,
)
from ..constraints.intervals import interval
from ..constraints.language import Fact
from ..constraints.system import Answer, Domain
from .judge import Judge
from .periodic import EVERY, IntegerSet, TooLarge, solutions

if TYPE_CHECKING:
    from .decide import Decision

RUNS = 4
"""How many intervals, holes or residues a description may list."""
FAR = 1 << 40
"""A term that gets beyond this has no bound that we would find."""
FEW_VALUES = 2
"""Up to so many values are listed one by one, where a range with a step would say as much."""
FEW = 48
"""Up to so many values are asked for one by one."""


# --- the accepted set as a formula -------------------------------------------------------------------------


def simplify(judge: Judge, domain: Domain, requirements: Iterable[Formula]) -> Formula:
    """A formula that is equivalent to all requirements within the domain, as short as we can say it.

    What is said of one symbol alone is said anew from the set of its values; of the rest, what follows
    is dropped.
    """
    alone: dict[str, list[Formula]] = {}
    related: list[Formula] = []
    for part in conjuncts(all_of(requirements)):
        names = free_symbols(part)
        if len(names) == 1:
            alone.setdefault(min(names), []).append(part)
        else:
            related.append(part)
    said: list[Formula] = []
    for name in (n for n in (*domain.symbols, *sorted(alone.keys() - {*domain.symbols})) if n in alone):
        said.append(_restated(name, domain, all_of(alone[name])))
    kept = [*conjuncts(all_of((*said, *related)))]
    for part in kept.copy():
        kept[kept.index(part)] = _shortened(judge, part, (*domain.assumptions, *kept))
    kept = [*conjuncts(all_of(kept))]
    for part in sorted(kept, key=lambda f: -len(str(f))):
        others = [p for p in kept if p is not part]
        if judge.ask(part, (*domain.assumptions, *others)) is Answer.ALWAYS:
            kept = others
    return all_of(kept)


def _shortened(judge: Judge, formula: Formula, given: Sequence[Formula]) -> Formula:
    """A disjunction without the parts that it does not need, by what is given, itself included."""
    parts = list(formula.parts) if isinstance(formula, Or) else []
    for part in parts.copy():
        fewer = any_of(p for p in parts if p is not part)
        if judge.ask(fewer, given) is Answer.ALWAYS:
            parts.remove(part)
    return any_of(parts) if parts else formula


def _restated(name: str, domain: Domain, formula: Formula) -> Formula:
    possible = _alone(name, domain.assumptions)
    values = solutions(formula, name)
    try:
        shorter = None if values is None else describe(name, values & possible, possible)
    except TooLarge:
        shorter = None
    return formula if shorter is None else shorter


def _alone(name: str, formulas: Iterable[Formula]) -> IntegerSet:
    """What formulas over the symbol alone leave to it."""
    found = EVERY
    for part in conjuncts(all_of(formulas)):
        if free_symbols(part) == {name} and (values := solutions(part, name)) is not None:
            found = found & values
    return found


def describe(name: str, values: IntegerSet, possible: IntegerSet) -> Formula | None:
    """The shortest formula found that picks the values out of what is possible."""
    best: Formula | None = None
    for formula in _descriptions(name, values, possible):
        if best is None or _length(formula) < _length(best):
            said = solutions(formula, name)
            if said is not None and said & possible <= values and values <= said:
                best = formula
    return best


def _length(formula: Formula) -> int:
    return len([*comparisons(formula)])


def _descriptions(name: str, values: IntegerSet, possible: IntegerSet) -> Iterator[Formula]:
    """Candidates: nothing, a range with a step, intervals, holes, residues."""
    s = sym(name)
    yield True
    if not values:
        yield False
        return
    step, residue = values.congruence()
    if step == 0:
        yield eq(s, residue)
        return
    low, high = values.min, values.max
    lower = ge(s, int(low)) if low > possible.min else True
    upper = le(s, int(high)) if high < possible.max else True
    stepped = eq(s % step, residue)
    yield from (lower, upper, stepped)
    if len(few := [*_members(values, FEW_VALUES + 1)]) <= FEW_VALUES:
        yield any_of(eq(s, v) for v in few)
    for one, other in combinations((lower, upper, stepped), 2):
        yield all_of((one, other))
    yield all_of((lower, upper, stepped))
    if runs := values.runs(RUNS):
        ends = [(None if a == possible.min else a, None if b == possible.max else b) for a, b in runs]
        yield all_of((any_of(_between(s, a, b) for a, b in ends), stepped))
    holes = possible & ~values & _range(low, high)
    gaps = [*_members(holes, RUNS + 1)]
    if len(gaps) <= RUNS:
        yield all_of((lower, upper, *(ne(s, v) for v in gaps)))
    tail = values.masks[-1] or values.masks[0] or max(values.masks)
    for wanted, compare, join in ((1, eq, any_of), (0, ne, all_of)):
        residues = [r for r in range(values.period) if tail >> r & 1 == wanted]
        if len(residues) <= RUNS:
            yield all_of((lower, upper, join([compare(s % values.period, r) for r in residues])))


def _members(values: IntegerSet, limit: int) -> Iterator[int]:
    """The first members of a set that is bounded below; the limit of them if there are more."""
    at = None if values.min in (-inf, inf) else values.at_least(int(values.min))
    while at is not None and limit:
        yield at
        at, limit = values.at_least(at + 1), limit - 1


def _range(low: float, high: float) -> IntegerSet:
    s = sym("s")
    parts = [ge(s, int(low)) if low != -inf else True, le(s, int(high)) if high != inf else True]
    return solutions(all_of(parts), "s") or EVERY


def _between(s: Dim, low: int | None, high: int | None) -> Formula:
    if low is not None and low == high:
        return eq(s, low)
    return all_of((True if low is None else ge(s, low), True if high is None else le(s, high)))


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
    relevant = tuple(_connected(formulas, symbols(dim)))
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


def _connected(formulas: Sequence[Formula], names: Iterable[str]) -> list[Formula]:
    """The formulas that speak of the names, directly or through others."""
    reached = set(names)
    left = [(f, free_symbols(f)) for f in formulas]
    chosen: dict[Formula, None] = {}
    grew = True
    while grew:
        grew = False
        for formula, over in left:
            if formula not in chosen and not over.isdisjoint(reached):
                chosen[formula] = None
                reached |= over
                grew = True
    return [f for f in formulas if f in chosen]


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
        if not self._some(True):
            low, high = interval(self.dim, self.judge.known(self.formulas).ranges)
            return Fact(None if low == -inf else int(low), None if high == inf else int(high), exact=False)
        low, high = -self._greatest(-1), self._greatest(1)
        step, residue = self._congruence()
        values = self._values(low, high, step)
        bounds = None if low == -inf else int(low), None if high == inf else int(high)
        return Fact(*bounds, step, residue, equals, values, exact and self.proved)

    def _some(self, *conditions: Formula) -> bool:
        """Is there an example under these conditions? What is not known counts as no, and nothing is
        proved then.
        """
        answer = self.judge.satisfiable((*self.formulas, *conditions), sorted(symbols(self.dim)))
        if answer == "unknown":
            self.proved = False
        if answer != "sat":
            return False
        self.points.append(dict(self.judge.model))
        self.seen.add(evaluate(self.dim, self.judge.model))
        return True

    def _greatest(self, sign: int) -> int | float:
        """The greatest value of sign*dim: by doubling steps until none is beyond, then by bisection."""
        term = sign * self.dim
        known = max(sign * v for v in self.seen)
        limit = interval(term, self.judge.known(self.formulas).ranges)[1]
        step = 1
        while limit == inf:
            if step > FAR:
                self.proved = self.proved and self._unbounded(sign)
                return inf
            if self._some(ge(term, known + step)):
                known = max(sign * v for v in self.seen)
                step *= 16
            else:
                limit = known + step - 1
        while known < limit:
            middle = -(-(known + int(limit)) // 2) if step > 1 else int(limit)
            step = 2
            if self._some(ge(term, middle)):
                known = max(sign * v for v in self.seen)
            else:
                limit = middle - 1
        return known

    def _unbounded(self, sign: int) -> bool:
        """From every point where the formulas hold, a step d leads to another, with more of sign*dim on
        the way.

        By induction there is no bound then. Steps tried: between the examples nearest and farthest, and
        along one symbol or all by a multiple of every divisor.
        """
        together = all_of(self.formulas)
        names = sorted(free_symbols(together) | symbols(self.dim))
        whole = _divisors(together)
        steps = [dict.fromkeys(names, d) for d in (whole, -whole)]
        steps += [{n: d} for n in names for d in (whole, -whole)]
        if len(self.points) > 1:
            near, far = (pick(self.points, key=lambda p: sign * evaluate(self.dim, p)) for pick in (min, max))
            d = {n: far.get(n, 0) - near.get(n, 0) for n in names}
            common = gcd(*d.values()) or 1
            steps.insert(0, {n: v // common * whole for n, v in d.items()})
        for step in steps:
            moved = {n: sym(n) + v for n, v in step.items()}
            try:
                grown = substitute(self.dim, moved) - self.dim
                there = rewrite(together, moved)
            except ZeroDivisionError:
                continue
            if self.judge.ask(all_of((there, ge(sign * grown, 1))), self.formulas) is Answer.ALWAYS:
                return True
        return False

    def _congruence(self) -> tuple[int, int]:
        """The greatest m such that dim is one residue modulo m: a value that breaks a guess is an
        example more.
        """
        while True:
            base = min(self.seen)
            step = gcd(*(v - base for v in self.seen))
            if step == 0:
                other = ne(self.dim, base)
            elif step == 1:
                return 1, 0
            else:
                other = ne((self.dim - base) % step, 0)
            count = len(self.seen)
            if not self._some(other) or len(self.seen) == count:
                return step, base % step if step else base

    def _values(self, low: float, high: float, step: int) -> tuple[tuple[int | None, int | None], ...] | None:
        """The values as intervals, each value asked for, where they are few enough."""
        if step == 0:
            return ((int(low), int(high)),)
        if inf in (-low, high) or (high - low) // step >= FEW:
            return None
        runs: list[tuple[int | None, int | None]] = []
        for value in range(int(low), int(high) + 1, step):
            if value in self.seen or self._some(eq(self.dim, value)):
                previous = runs.pop() if runs and runs[-1][1] == value - step else (value, value)
                runs.append((previous[0], value))
        return tuple(runs) if len(runs) <= RUNS else None


def _divisors(formula: Formula) -> int:
    """A common multiple of the integer divisors in a formula, or 1 where it would be large."""
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
    return found if found < FAR else 1


def _equal_to(judge: Judge, name: str, earlier: Sequence[str], formulas: Sequence[Formula]) -> Dim | None:
    """A term over earlier symbols that the symbol always equals: from an equation, or a*t + c through
    two examples.
    """
    s = sym(name)
    relevant = tuple(_connected(formulas, (name,)))
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
        others = [p for p in kept if p is not part]
        if judge.ask(part, (*said, *others)) is Answer.ALWAYS:
            kept = others
    return Summary(facts, tuple(kept))


def fact_formula(name: str, fact: Fact) -> Formula:
    """What a fact says of a symbol."""
    s = sym(name)
    if fact.divisor == 0:
        return eq(s, fact.remainder)
    parts = [_between(s, fact.min, fact.max), eq(s % fact.divisor, fact.remainder)]
    if fact.values is not None:
        parts.append(any_of(_between(s, a, b) for a, b in fact.values))
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
