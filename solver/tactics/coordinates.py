"""Assignments found by solving for one symbol at a time.

Where all symbols but one have values, a formula determines exactly which values that one may have
(periodic.py), however great they are. So from a few small assignments each symbol in turn is moved to a value
at which all formulas that mention it hold; if no such value exists, to one at which the first formulas hold.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ...constraints.terms.formula import Formula, rewrite
from ..theory.bounds import Consequences, names_of
from ..theory.integer_sets import EVERY, NONE, IntegerSet, TooLarge
from ..theory.periodic import solutions
from . import examples

STARTS = 6
"""The search starts from this many assignments."""
ROUNDS = 2
"""Each symbol is moved this many times from one start."""


def find(known: Consequences, formulas: Sequence[Formula]) -> dict[str, int] | None:
    """Returns an assignment to all symbols of the formulas that satisfies them; None where none was found.

    `known` is their conjunction.
    """
    facts = [*known.facts]
    free = sorted(frozenset().union(*map(names_of, facts)))
    numbers = examples.constants(facts)
    pools = {n: examples.candidates(known, n, numbers) for n in free}
    if not all(pools.values()):
        return None
    for start in islice(examples.assignments(pools), STARTS):
        for found in _moves(known, facts, start):
            if (whole := examples.completed(known, found, formulas)) is not None:
                return whole
    return None


def _moves(
    known: Consequences, facts: Sequence[Formula], start: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yields the assignments reached from a start at which the facts hold."""
    at = dict(start)
    if examples.satisfies(facts, at):
        yield dict(at)
    for _ in range(ROUNDS):
        for name in at:
            value = _best(known.sets.get(name, EVERY), facts, at, name)
            if value is not None and value != at[name]:
                at[name] = value
                if examples.satisfies(facts, at):
                    yield dict(at)


def _best(possible: IntegerSet, facts: Sequence[Formula], at: Mapping[str, int], name: str) -> int | None:
    """Returns a value for the symbol at which all facts about it hold, with the other symbols unchanged.

    If no such value exists, facts are added in order as long as a value satisfies all of them together.
    """
    others = {n: v for n, v in at.items() if n != name}
    for fact in facts:
        if name not in names_of(fact):
            continue
        try:
            left = rewrite(fact, others)
            values = EVERY if left is True else NONE if left is False else solutions(left, name, possible)
            if values is not None and (narrower := possible & values):
                possible = narrower
        except (TooLarge, ZeroDivisionError):
            continue
    if at[name] in possible:
        return at[name]
    return next((v for v in (possible.at_least(at[name]), possible.at_most(at[name])) if v is not None), None)
