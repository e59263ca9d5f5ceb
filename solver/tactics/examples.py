"""Small assignments by trying: most questions have an example among few numbers, and no solver is
needed to find it.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf
from random import Random

from ...constraints.terms.dims import Dim, applications, coefficients, evaluate, symbols
from ...constraints.terms.formula import Formula, comparisons, free_symbols, holds
from ..theory.bounds import Consequences
from ..theory.integer_sets import EVERY, IntegerSet

FAVOURITES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32, 64, 1, 0)
"""Numbers that people try, best first."""
GREAT = 1 << 20
"""Sizes above this are greater than those that people try."""
STRETCHED = 12
"""This many assignments with one great size are tried."""
ATTEMPTS = 48
VALUES = 24
"""This many assignments are tried, and this many values of each symbol."""


def satisfies(formulas: Iterable[Formula], values: Mapping[str, int]) -> bool:
    """Returns whether all formulas hold. False where a divisor is zero."""
    try:
        return all(holds(f, values) for f in formulas)
    except ZeroDivisionError:
        return False


def find(
    known: Consequences, formulas: Sequence[Formula], names: Sequence[str] = (),
    wanted: Callable[[Mapping[str, int]], object] = lambda values: True,
) -> dict[str, int] | None:
    """Returns an assignment to the names and all symbols of the formulas that satisfies them.

    `known` is their conjunction.
    """
    every = list(dict.fromkeys((*names, *sorted(frozenset().union(*map(free_symbols, formulas))))))
    free = [n for n in every if n not in known.equal]
    free += sorted(frozenset().union(*(symbols(known.equal[n]) for n in every if n in known.equal)) - {*free})
    numbers = constants(formulas)
    pools = {n: candidates(known, n, numbers) for n in free}
    if not all(pools.values()):
        return None
    for trial in itertools.chain(assignments(pools), _stretched(known, pools, formulas)):
        try:
            trial |= {n: evaluate(known.equal[n], trial) for n in every if n in known.equal}
        except ZeroDivisionError:
            continue
        if satisfies(formulas, trial) and wanted(found := {n: trial[n] for n in every}):
            return found
    return None


def completed(
    known: Consequences, values: Mapping[str, int], formulas: Sequence[Formula]
) -> dict[str, int] | None:
    """Returns the values, extended to all other symbols of the formulas: by the known values, and by possible
    ones for the rest. None where the result does not satisfy the formulas.
    """
    found = dict(values)
    names = frozenset().union(*map(free_symbols, formulas))
    needed = names.union(*(symbols(known.equal[n]) for n in names if n in known.equal))
    try:
        for name in needed - known.equal.keys() - found.keys():
            possible = known.sets.get(name, EVERY)
            found[name] = next(v for v in (possible.at_least(2), possible.at_most(2)) if v is not None)
        found |= {n: evaluate(known.equal[n], found) for n in sorted(names) if n in known.equal}
    except (StopIteration, ZeroDivisionError):
        return None
    return found if satisfies(formulas, found) else None


def candidates(known: Consequences, name: str, numbers: Iterable[int]) -> list[int]:
    """Returns values of the symbol worth trying: favourites and the numbers in the formulas, moved to
    possible values.
    """
    return [*_candidates(known.sets.get(name, EVERY), tuple(numbers))]


@lru_cache(maxsize=1 << 10)
def _candidates(possible: IntegerSet, numbers: tuple[int, ...]) -> tuple[int, ...]:
    low = possible.min
    wanted = [*FAVOURITES, *(n + d for n in numbers for d in (0, 1, -1))]
    if low != -inf:
        wanted += [int(low) + d for d in (0, 1)]
    large: dict[int, None] = {}
    small: dict[int, None] = {}
    for move in (possible.at_least, possible.at_most):
        for w in wanted:
            if w > 1 and len(large) >= VALUES:
                continue  # what a number above 1 is moved to is large, or what 1 is moved to
            if (value := move(w)) is not None:
                (large if value > 1 else small)[value] = None
    return (*[*large][:VALUES], *[*small][:4])


def constants(formulas: Iterable[Formula]) -> list[int]:
    """Returns the numbers near which a formula over sums, quotients and remainders may change."""
    return sorted(frozenset().union(*map(_constants, formulas)))


@lru_cache(maxsize=1 << 14)
def _constants(formula: Formula) -> frozenset[int]:
    found: set[int] = set()
    for compare in comparisons(formula):
        numbers = {abs(n) for n in _numbers(compare.term)}
        lead = abs(compare.term.terms[0][1])
        found |= numbers | {-(-n // lead) for n in numbers}
    return frozenset(n for n in found if n < 1 << 40)


def _numbers(dim: Dim) -> set[int]:
    """Returns the integers that are added anywhere in the dim, those that are arguments of its applications,
    and the first ones that are rounded up to floats, by 1, 2, 4 and 8.
    """
    parts = (dim, *(arg for atom in applications(dim) for arg in atom.args))
    digits = (atom.args[1] for atom in applications(dim) if atom.op == "rounded")
    floats = {(1 << d) + 3 << k for d in digits if isinstance(d, int) for k in range(4)}
    return floats | {c for part in parts for mono, c in coefficients(part) if not mono}


def assignments(pools: Mapping[str, list[int]]) -> Iterator[dict[str, int]]:
    """Yields assignments: distinct favourites, then the same rank for all, then a repeatable random mixture.
    """
    distinct: dict[str, int] = {}
    for name, pool in pools.items():
        distinct[name] = next((v for v in pool if v not in distinct.values()), pool[0])
    yield distinct
    longest = max(map(len, pools.values()), default=0)
    for rank in range(min(longest, ATTEMPTS // 2)):
        yield {n: pool[rank % len(pool)] for n, pool in pools.items()}
    if len(pools) > 1:
        random = Random(0)
        for _ in range(ATTEMPTS):
            yield {n: random.choice(pool) for n, pool in pools.items()}


def _stretched(
    known: Consequences, pools: Mapping[str, list[int]], formulas: Sequence[Formula]
) -> Iterator[dict[str, int]]:
    """Yields assignments with one size as great as a great number in a formula, and small ones besides."""
    great = max((n for f in formulas for c in comparisons(f) for n in map(abs, _numbers(c.term))), default=0)
    if great <= GREAT:
        return
    for base in itertools.islice(assignments(pools), STRETCHED):
        for name in pools:
            if (value := known.sets.get(name, EVERY).at_least(great + 1)) is not None:
                yield {**base, name: value}


def polished(
    values: Mapping[str, int], formulas: Sequence[Formula], known: Consequences, names: Sequence[str]
) -> dict[str, int]:
    """Returns a nicer assignment that satisfies the formulas as well: small values that differ from symbol to
    symbol, so that mixed-up sizes are visible.
    """
    best, numbers = dict(values), constants(formulas)
    for name in reversed(names):
        others = {v for n, v in best.items() if n != name}
        about = [f for f in formulas if name in free_symbols(f)]
        limit = inf if best[name] in others else best[name]
        for value in sorted(v for v in candidates(known, name, numbers) if 1 < v < limit and v not in others):
            if satisfies(about, trial := {**best, name: value}):
                best = trial
                break
    return best


def neighbour(
    inside: Mapping[str, int], domain: Sequence[Formula], outside: Formula, known: Consequences,
    names: Sequence[str],
) -> dict[str, int] | None:
    """Returns an assignment in the domain where `outside` holds, and which differs from the inside one in a
    single symbol.
    """
    for name in reversed(names):
        pool = candidates(known, name, constants((outside,)))
        near = sorted({*pool, inside[name] + 1, inside[name] - 1}, key=lambda v: (abs(v - inside[name]), v))
        for value in near:
            trial = {**inside, name: value}
            if satisfies(domain, trial) and satisfies((outside,), trial):
                return trial
    return None
