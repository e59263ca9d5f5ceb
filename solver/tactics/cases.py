"""Disjunctions case by case: what is impossible, and what all cases have in common.

Of `p or q or r` a case is dropped that contradicts what is known (from K and p follows false: K says q or r),
and a part is known that follows in every other case (K and q => p, K and r => p: K says p). So two tensors
that broadcast, `b == c or b == 1 or c == 1`, into a shape that has to be `b` are known to have `b == c`.
This is the dilemma rule of Stålmarck's method, for the parts of disjunctions that are there.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ...constraints.terms.dims import depth
from ...constraints.terms.formula import Compare, Formula, Or, any_of, negate
from ..theory.bounds import Known, names_of

CASES = 4
"""Disjunctions with more parts are left alone."""
DISJUNCTIONS = 4
"""Where more disjunctions speak of the same symbols they are left alone as well."""
ROUNDS = 2
GAINED = 8
"""For a disjunction that said something, so many more are looked at."""
MANY = 3
"""A comparison in so many disjunctions is worth two questions: where it holds, and where it does not."""


@dataclass(slots=True)
class Patience:
    """How often disjunctions are still looked at: one that says nothing costs 1, one that does gives more."""

    left: int = 16

    def after(self, success: bool) -> None:
        self.left += GAINED if success else -1


def settle(known: Known, names: frozenset[str], patience: Patience) -> None:
    """Teaches the conjunction what follows from its disjunctions, those that speak of these symbols."""
    for _ in range(ROUNDS):
        found = [
            f for f in known.facts
            if isinstance(f, Or) and not names.isdisjoint(names_of(f)) and _is_worth_it(f)
        ]
        if len(found) > DISJUNCTIONS:
            break
        for formula in found:
            if formula in known.facts and not known.contradictory and patience.left > 0:
                shorter = _common(known, formula)
                patience.after(shorter != formula)
                known.learn(shorter)
        if all(f in known.facts for f in found):
            break


def _is_worth_it(formula: Or) -> bool:
    """Are there few parts, all of them equations of products of symbols? Of those, most can be made."""
    return len(formula.parts) <= CASES and all(
        isinstance(p, Compare) and p.op == "==" and depth(p.term) == 0 for p in formula.parts
    )


def _common(known: Known, formula: Or) -> Formula:
    """What is left of a disjunction that is known to hold."""
    possible: dict[Formula, Known] = {}
    for part in formula.parts:
        case = known.copy()
        case.learn(part)
        if not case.contradictory:
            possible[part] = case
    for part in possible:
        if all(other == part or case.ask(part) is True for other, case in possible.items()):
            return part
    return any_of(possible)


def deciding(formulas: Iterable[Formula]) -> Formula | None:
    """A comparison that is a part of many disjunctions, or whose negation is: the most frequent one."""
    times: Counter[Formula] = Counter()
    for formula in formulas:
        if isinstance(formula, Or):
            for part in formula.parts:
                times[part if negate(part) not in times else negate(part)] += 1
    if not times:
        return None
    part, count = times.most_common(1)[0]
    return part if count >= MANY and isinstance(part, Compare) else None


def under(premise: Formula, formula: Formula) -> Formula:
    """What a disjunction says where the premise holds, if that is one of its parts, or its negation is."""
    if not isinstance(formula, Or):
        return formula
    return premise in formula.parts or any_of(p for p in formula.parts if p != negate(premise))
