"""The accepted set as a short formula: the conditions on one symbol are restated, and implied parts are
dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from math import inf

from ...constraints.ir.system import Domain
from ...constraints.terms.dims import Dim, applications, sym
from ...constraints.terms.formula import (
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
)
from ...constraints.terms.rows import is_dim
from ..tactics.examples import satisfies
from ..tactics.judge import Judge
from ..theory.integer_sets import EVERY, IntegerSet, TooLarge
from ..theory.periodic import solutions

RUNS = 4
"""A description lists at most this many intervals, holes or residues."""
FEW = 2
"""At most this many values are listed one by one, where a range with a step would express the same."""
MANY = 5
"""At most this many symbols are tried in every combination of sizes."""
CASES = 16
"""Two disjunctions are combined into at most this many cases."""
ROUNDS = 3
"""The formula is shortened again at most this many times."""


def simplify(judge: Judge, domain: Domain, requirements: Iterable[Formula]) -> Formula:
    """Returns a formula that is equivalent to all requirements within the domain, as short as possible.

    A division by zero has an arbitrary value for the solver, but none when it is evaluated. So a formula that
    divides by sizes is compared with its short form at small sizes, and kept where the two differ.
    """
    whole = all_of(requirements)
    short = _shortened(judge, domain, conjuncts(whole))
    return short if not _divides(whole) or _alike(domain, whole, short) else whole


def _divides(formula: Formula) -> bool:
    """Returns whether the formula divides by a size."""
    found = applications(*(comparison.term for comparison in comparisons(formula)))
    return any(atom.op in ("//", "%") and not isinstance(atom.args[1], int) for atom in found)


def _alike(domain: Domain, one: Formula, other: Formula) -> bool:
    """Returns whether the two formulas agree at the smallest sizes and those next to them."""
    names = sorted(free_symbols(one) | free_symbols(other))
    many = len(names) > MANY
    grid = ((n,) * len(names) for n in range(3)) if many else product(range(3), repeat=len(names))
    points = (dict(zip(names, values, strict=True)) for values in grid)
    inside = (p for p in points if satisfies((f for f in domain.assumptions if free_symbols(f) <= {*p}), p))
    return all(satisfies((one,), point) == satisfies((other,), point) for point in inside)


def _shortened(
    judge: Judge, domain: Domain, requirements: Iterable[Formula], rounds: int = ROUNDS
) -> Formula:
    known = judge.known(domain.assumptions)
    alone: dict[str, list[Formula]] = {}
    related: list[Formula] = []
    parts = (_described_alone(domain, part) for part in conjuncts(all_of(requirements)))
    for part in conjuncts(all_of(map(known.shorten, parts))):
        names = free_symbols(part)
        if len(names) == 1:
            alone.setdefault(min(names), []).append(part)
        else:
            related.append(part)
    order = [n for n in (*domain.symbols, *sorted(alone.keys() - {*domain.symbols})) if n in alone]
    said = [_restated(name, domain, all_of(alone[name])) for name in order]
    kept = [*conjuncts(all_of((*said, *_factored(domain, related))))]
    for part in kept.copy():
        if judge.exhausted:
            break
        if domain.rows and _relates_dims(part):
            continue
        given = (*domain.assumptions, *kept)
        near = _about(free_symbols(part), given) if domain.rows else given  # rows come with many axioms
        kept[kept.index(part)] = _without_idle_parts(judge, part, near)
    kept = needed(judge, domain, _joined(judge, domain, [*conjuncts(all_of(kept))]))
    found = [part for part in kept if len(free_symbols(part)) == 1]
    if rounds == 1 or judge.exhausted or {*found} <= {*conjuncts(all_of(said))}:
        return all_of(kept)
    return _shortened(judge, domain, kept, rounds - 1)  # what related symbols has come to be about one


def needed(
    judge: Judge, domain: Domain, parts: Sequence[Formula], known: Sequence[Formula] = ()
) -> list[Formula]:
    """Returns the parts that do not follow from the domain, from the known formulas and from the other parts.

    Relations among dims of related rows, which a broadcast introduces by the dozen, are all kept.
    """
    related = [p for p in parts if domain.rows and _relates_dims(p)]
    asked = [p for p in parts if p not in related]
    kept = judge.irredundant(asked, (*domain.assumptions, *known, *related))
    return [p for p in parts if p in related or p in kept]


def _relates_dims(part: Formula) -> bool:
    names = free_symbols(part)
    return len(names) > 1 and all(map(is_dim, names))


def _without_idle_parts(judge: Judge, formula: Formula, given: Sequence[Formula]) -> Formula:
    """Returns a disjunction without the parts that it does not need, given these formulas and itself."""
    parts = list(formula.parts) if isinstance(formula, Or) else []
    for part in parts.copy():
        fewer = any_of(p for p in parts if p is not part)
        if judge.follows(fewer, given):
            parts.remove(part)
    return any_of(parts) if parts else formula


def length(formula: Formula) -> int:
    """Returns how many comparisons a formula contains."""
    return len([*comparisons(formula)])


# --- disjunctions ------------------------------------------------------------------------------------------


def _factored(domain: Domain, parts: list[Formula]) -> list[Formula]:
    """Rewrites `(x or c) and (y or c)` as `(x and y) or c`, for x and y over one symbol, which are restated
    together.

    So `(t != 2 or b == c) and (t != 3 or b == c)`, from two branches, are one condition on t.
    """
    groups: dict[tuple[str, Formula], list[tuple[Formula, Formula]]] = {}
    for part in parts:
        about: dict[frozenset[str], list[Formula]] = {}
        for p in part.parts if isinstance(part, Or) else ():
            about.setdefault(free_symbols(p), []).append(p)
        for names, alone in about.items():
            if len(names) == 1 and isinstance(part, Or):
                rest = any_of(p for p in part.parts if p not in alone)
                groups.setdefault((min(names), rest), []).append((part, any_of(alone)))
    for (name, rest), members in groups.items():
        if len(members) > 1 and all(part in parts for part, _ in members):
            joined = any_of((_restated(name, domain, all_of(alone for _, alone in members)), rest))
            replaced = {part for part, _ in members[1:]}
            parts = [joined if p == members[0][0] else p for p in parts if p not in replaced]
    return parts


def _joined(judge: Judge, domain: Domain, parts: list[Formula]) -> list[Formula]:
    """Replaces two disjunctions about the same symbols by one, where the combinations of their cases need
    fewer comparisons.

    `(b <= c or c == 1) and (c <= b or b == 1)` is `b == c or b == 1 or c == 1` for sizes from 1.
    """
    for one, other in combinations([p for p in parts if isinstance(p, Or) and not _relates_dims(p)], 2):
        if judge.exhausted:
            break
        if one not in parts or other not in parts or free_symbols(one).isdisjoint(free_symbols(other)):
            continue
        if len(one.parts) * len(other.parts) > CASES:
            continue
        near = _about(free_symbols(one) | free_symbols(other), domain.assumptions)
        together = _cases(judge, near, one, other)
        simple = length(together) == len(together.parts if isinstance(together, Or) else (together,))
        if simple and length(together) < length(one) + length(other):
            parts[parts.index(one)] = together
            parts.remove(other)
    return [*conjuncts(all_of(parts))]


def _about(names: frozenset[str], formulas: Iterable[Formula]) -> tuple[Formula, ...]:
    """Returns the formulas that mention these symbols only."""
    return tuple(f for f in formulas if free_symbols(f) <= names)


def _cases(judge: Judge, given: tuple[Formula, ...], one: Or, other: Or) -> Formula:
    """Returns the disjunction of all pairs of parts, each as short as the fast path makes it, none within
    another.
    """
    cases = [_case(judge, given, all_of(pair)) for pair in product(one.parts, other.parts)]
    cases = [*dict.fromkeys(c for c in cases if c is not False)]
    for case in sorted(cases, key=length, reverse=True):
        within = judge.known((*given, case))
        if any(within.ask(wider) for wider in cases if wider != case):
            cases.remove(case)
    return any_of(cases)


def _case(judge: Judge, given: tuple[Formula, ...], case: Formula) -> Formula:
    """Returns a conjunction without the parts that the rest of it implies; x <= y and y <= x become x == y.
    """
    if judge.known((*given, case)).contradictory:
        return False
    parts = [*conjuncts(case)]
    for part in sorted(parts, key=length, reverse=True):
        others = [p for p in parts if p is not part]
        if judge.known((*given, *others)).ask(part):
            parts = others
    for one, other in combinations([p for p in parts if isinstance(p, Compare) and p.op == ">="], 2):
        if one.term == -other.term:
            return all_of((eq(one.term, 0), *(p for p in parts if p not in (one, other))))
    return all_of(parts)


# --- one symbol --------------------------------------------------------------------------------------------


def _described_alone(domain: Domain, part: Formula) -> Formula:
    """Returns a part about one symbol as the values that it selects. To split each min and max in it into
    cases would take time exponential in their number.
    """
    names = free_symbols(part)
    return _restated(min(names), domain, part) if len(names) == 1 else part


def _restated(name: str, domain: Domain, formula: Formula) -> Formula:
    possible = _alone(name, domain.assumptions)
    values = solutions(formula, name, possible)
    try:
        shorter = None if values is None else describe(name, values & possible, possible)
    except TooLarge:
        shorter = None
    return formula if shorter is None else shorter


def _alone(name: str, formulas: Iterable[Formula]) -> IntegerSet:
    """Returns the values of the symbol that satisfy the formulas over it alone."""
    found = EVERY
    for part in conjuncts(all_of(formulas)):
        if free_symbols(part) == {name} and (values := solutions(part, name, found)) is not None:
            found = found & values
    return found


def describe(name: str, values: IntegerSet, possible: IntegerSet) -> Formula | None:
    """Returns the shortest formula found that selects the values from the possible ones."""
    best: Formula | None = None
    for formula in _descriptions(name, values, possible):
        if best is None or length(formula) < length(best):
            said = solutions(formula, name)
            if said is not None and said & possible <= values and values <= said:
                best = formula
    return best


def _descriptions(name: str, values: IntegerSet, possible: IntegerSet) -> Iterator[Formula]:
    """Yields candidates: nothing, a range with a step, single values, intervals, holes, residues."""
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
    for one, other in combinations((lower, upper, stepped), 2):
        yield all_of((one, other))
    yield all_of((lower, upper, stepped))
    if few := values.members(FEW):
        yield any_of(eq(s, v) for v in few)
    if runs := values.runs(RUNS):
        ends = [(None if a == possible.min else a, None if b == possible.max else b) for a, b in runs]
        yield all_of((any_of(between(s, a, b) for a, b in ends), stepped))
    gaps = (possible & ~values & _range(low, high)).members(RUNS)
    if gaps is not None:
        yield all_of((lower, upper, *(ne(s, v) for v in gaps)))
    for pattern in _patterns(s, values):
        yield all_of((lower, upper, pattern))
        regular = solutions(pattern, name) or EVERY
        more, fewer = (values & ~regular).members(FEW), (regular & possible & ~values).members(FEW)
        if more is not None and fewer is not None:
            yield any_of((*(eq(s, v) for v in more), all_of((pattern, *(ne(s, v) for v in fewer)))))


def _patterns(s: Dim, values: IntegerSet) -> Iterator[Formula]:
    """Yields the residues on the last stretch that has members, as formulas."""
    period = values.period
    tail = next((mask for mask in reversed(values.masks) if mask), 0)
    for wanted, compare, join in ((1, eq, any_of), (0, ne, all_of)):
        residues = [r for r in range(period) if tail >> r & 1 == wanted]
        if len(residues) <= RUNS:
            yield join([compare(s % period, r) for r in residues])


def _range(low: float, high: float) -> IntegerSet:
    s = sym("s")
    parts = [ge(s, int(low)) if low != -inf else True, le(s, int(high)) if high != inf else True]
    return solutions(all_of(parts), "s") or EVERY


def between(s: Dim, low: int | None, high: int | None) -> Formula:
    """Returns low <= s <= high, where None is no bound."""
    if low is not None and low == high:
        return eq(s, low)
    return all_of((True if low is None else ge(s, low), True if high is None else le(s, high)))
