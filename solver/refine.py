"""The accepted set as people say it: a short formula, and a fact per dim."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from ..constraints.dims import Dim, sym, symbols
from ..constraints.formula import Formula, all_of, any_of, conjuncts, eq, free_symbols, ge, le, ne, negate
from ..constraints.language import Fact
from ..constraints.system import Answer, Domain
from .judge import Judge
from .periodic import EVERY, IntegerSet, TooLarge, solutions

RUNS = 4
"""How many intervals, holes or residues a formula over one symbol may list."""


def simplify(judge: Judge, domain: Domain, requirements: Sequence[Formula]) -> Formula:
    """A formula that is equivalent to all requirements within the domain, as short as we can say it.

    What is said of one symbol alone is said anew from the set of its values; of the rest, what follows is dropped.
    """
    parts = [*conjuncts(all_of(requirements))]
    alone: dict[str, list[Formula]] = {}
    related: list[Formula] = []
    for part in parts:
        names = free_symbols(part)
        if len(names) == 1:
            alone.setdefault(*names, []).append(part)
        else:
            related.append(part)
    said: list[Formula] = []
    order = [*domain.symbols, *sorted(alone.keys() - {*domain.symbols})]
    for name in (n for n in order if n in alone):
        shorter = _restated(name, domain, all_of(alone[name]))
        if shorter is None:
            related = [*alone[name], *related]
        else:
            said.append(shorter)
    kept = [*conjuncts(all_of(said)), *related]
    for part in reversed(kept.copy()):
        others = [p for p in kept if p is not part]
        if judge.ask(part, (*domain.assumptions, *others)) is Answer.ALWAYS:
            kept = others
    return all_of(kept)


def _restated(name: str, domain: Domain, formula: Formula) -> Formula | None:
    possible = _domain_set(name, domain)
    values = solutions(formula, name)
    try:
        return None if values is None else describe(name, values & possible, possible)
    except TooLarge:
        return None


def _domain_set(name: str, domain: Domain) -> IntegerSet:
    """What assumptions about the symbol alone leave to it."""
    found = EVERY
    for part in conjuncts(all_of(domain.assumptions)):
        if free_symbols(part) == {name} and (values := solutions(part, name)) is not None:
            found = found & values
    return found


def describe(name: str, values: IntegerSet, possible: IntegerSet) -> Formula | None:
    """The simplest formula found that picks the values from what is possible."""
    for formula in _descriptions(name, values, possible):
        said = solutions(formula, name)
        if said is not None and said & possible <= values and values <= said:
            return formula
    return None


def _descriptions(name: str, values: IntegerSet, possible: IntegerSet) -> Iterable[Formula]:
    """Candidates, simplest first: nothing, a range with a step, intervals, holes, residues."""
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
    stepped = eq((s - residue) % step, 0)
    yield from (lower, upper, stepped)
    yield all_of((lower, stepped))
    yield all_of((lower, upper, stepped))
    runs = values.runs(RUNS)
    if runs is not None:
        yield all_of((any_of(_between(s, a, b) for a, b in runs), stepped))
    holes = possible & ~values
    bounded = _bounded(low, high)
    inner = (holes & bounded).runs(RUNS) if holes & bounded else None
    if inner is not None and sum(b - a + 1 for a, b in inner if a is not None and b is not None) <= RUNS:
        gaps = [ne(s, v) for a, b in inner if a is not None and b is not None for v in range(a, b + 1)]
        yield all_of((lower, upper, *gaps))
    period = values.period
    tail = values.masks[-1] or values.masks[0] or max(values.masks)
    present = [r for r in range(period) if tail >> r & 1]
    absent = [r for r in range(period) if not tail >> r & 1]
    if len(absent) <= RUNS:
        yield all_of((lower, upper, *(ne(s % period, r) for r in absent)))
    if len(present) <= RUNS:
        yield all_of((lower, upper, any_of(eq(s % period, r) for r in present)))


def _between(s: Dim, low: int | None, high: int | None) -> Formula:
    if low == high and low is not None:
        return eq(s, low)
    return all_of((True if low is None else ge(s, low), True if high is None else le(s, high)))


def _bounded(low: float, high: float) -> IntegerSet:
    cuts: list[int] = []
    masks = [1]
    if low != -inf:
        cuts, masks = [int(low)], [0, 1]
    if high != inf:
        cuts, masks = [*cuts, int(high) + 1], [*masks, 0]
    return IntegerSet(1, tuple(cuts), tuple(masks))


def facts(judge: Judge, domain: Domain, accepted: Formula) -> dict[str, Fact]:
    """A fact for each symbol of the domain."""
    known = judge.known((*domain.assumptions, *conjuncts(accepted)))
    found = {}
    for name in domain.symbols:
        if name in known.sets and known.sets[name]:
            found[name] = of_set(known.sets[name], exact=False)
    return found


def of_set(values: IntegerSet, exact: bool) -> Fact:
    """What a set of values says as a fact."""
    low, high = values.min, values.max
    step, residue = values.congruence()
    return Fact(
        None if low == -inf else int(low), None if high == inf else int(high), step, residue, None,
        values.runs(RUNS), exact,
    )
