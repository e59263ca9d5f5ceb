"""Disjunctions case by case: drops impossible cases, and learns the common consequences of the others.

From `p or q or r` a case that contradicts the known facts K is dropped (K and p imply false, so K implies q
or r), and a part that follows in every other case is learnt (K and q => p, K and r => p, so K implies p). So
two tensors that broadcast, `b == c or b == 1 or c == 1`, into a shape that has to be `b` are known to have
`b == c`. This is the dilemma rule of Stålmarck's method, applied to the parts of the given disjunctions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ...constraints.terms.dims import depth
from ...constraints.terms.formula import Compare, Formula, Or, any_of, negate
from ..theory.bounds import Consequences, names_of

CASES = 4
"""Disjunctions with more parts are ignored."""
DISJUNCTIONS = 4
"""Where more disjunctions than this mention the same symbols, they are ignored."""
ROUNDS = 2
GAINED = 8
"""A disjunction that taught something allows this many more to be examined."""
MANY = 3
"""A comparison in so many disjunctions is worth two questions: one where it holds, and one where it does not.
"""


@dataclass(slots=True)
class Patience:
    """The rest of `Budget.disjunctions`: one that teaches nothing costs 1, one that does adds `GAINED`.

    It is apart from the Budget, whose limits never change and which judges share: this is the balance of one
    judge.
    """

    left: int

    def after(self, success: bool) -> None:
        self.left += GAINED if success else -1


def settle(known: Consequences, names: frozenset[str], patience: Patience) -> None:
    """Teaches the conjunction the consequences of its disjunctions, of those that mention these symbols."""
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
    """Returns whether the disjunction has few parts, all of them equations of products of symbols.

    From such equations most can be learnt.
    """
    return len(formula.parts) <= CASES and all(
        isinstance(p, Compare) and p.op == "==" and depth(p.term) == 0 for p in formula.parts
    )


def _common(known: Consequences, formula: Or) -> Formula:
    """Returns the consequence of a disjunction that holds: a part that follows in all possible cases, or else
    the possible parts.
    """
    possible: dict[Formula, Consequences] = {}
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
    """Returns the comparison that most disjunctions contain, it or its negation, if many do; else None."""
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
    """Returns what remains of a disjunction under the premise, where the premise or its negation is one of
    its parts.
    """
    if not isinstance(formula, Or):
        return formula
    return premise in formula.parts or any_of(p for p in formula.parts if p != negate(premise))
