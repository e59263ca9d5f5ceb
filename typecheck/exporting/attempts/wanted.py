"""The sizes that a program is to take, and what is asked of them while it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

from ....constraints.ir.language import Fact
from ....constraints.ir.spec import Spec
from ....constraints.ir.system import Answer
from ....constraints.terms.dims import Dim, Term, sym, symbols
from ....constraints.terms.formula import (
    Compare,
    Formula,
    all_of,
    any_of,
    conjuncts,
    eq,
    free_symbols,
    ge,
    negate,
)
from ....solver.facts.facts import fact
from ....solver.tactics import examples
from ....solver.tactics.judge import Judge
from ..examples import example_inputs
from ..examples.example_sizes import mixed_sizes
from .comparing import LARGE
from .program_needs import ProgramRequirement, formula_of

EFFORT: Final = 300_000
"""Z3's resource units for sizes."""
FEW: Final = 8
"""Values of a size for which a program is run one by one."""


class Wanted:
    """The sizes that the model accepts, and that take the traced path."""

    def __init__(self, spec: Spec, judge: Judge, accepted: Formula, way: Formula) -> None:
        self.spec, self.judge = spec, judge
        self.domain = (*spec.domain.assumptions,)
        self.accepted = [*conjuncts(accepted)]
        self.way = [*conjuncts(way)]
        self.recorded = way
        """The way that the example takes through the model, as it was recorded."""
        self.inner: Sequence[Term] = ()
        """The sizes inside the program."""
        self._broadcasts: dict[tuple[str, str], bool] = {}
        """The answers of `either`."""
        self._known: dict[str, bool] = {}
        """The answers of `certain`."""

    @property
    def all(self) -> list[Formula]:
        """All that is asked of sizes."""
        return [*self.accepted, *self.way]

    def go(self, way: Formula) -> None:
        """Selects another path through the model. Conditions of it that all accepted sizes meet anyway are
        dropped.
        """
        known = (*self.domain, *self.accepted)
        self.way = [f for f in conjuncts(way) if self.judge.ask(f, known) is not Answer.ALWAYS]
        self.recorded = all_of(self.way)

    # ---- what is so of all of them

    def either(self, one: str, other: str) -> bool:
        """Returns whether two sizes of at least 1, which the model broadcasts, may differ while one of them
        is 1.
        """
        if (one, other) not in self._broadcasts:
            given = (*self.domain, *self.all)
            told = [f"{one} == {other}", f"{one} == 1", f"{other} == 1", f"{one} >= 1", f"{other} >= 1"]
            read = [formula for text in told if (formula := formula_of(text, self.spec)) is not None]
            self._broadcasts[one, other] = (
                len(read) == len(told)
                and self.judge.ask(read[0], given) is not Answer.ALWAYS
                and self.judge.ask(all_of((any_of(read[:3]), *read[3:])), given) is Answer.ALWAYS
            )
        return self._broadcasts[one, other]

    def certain(self, condition: str) -> bool:
        """Returns whether the condition holds at all sizes that the model takes, on every path."""
        if condition not in self._known:
            read = formula_of(condition, self.spec)
            given = (*self.domain, *self.accepted)
            self._known[condition] = read is not None and self.judge.ask(read, given) is Answer.ALWAYS
        return self._known[condition]

    def fact(self, formulas: Sequence[Formula]) -> Callable[[Dim], Fact]:
        """Returns a function from a size to the known facts about it where these formulas hold."""
        return lambda dim: fact(self.judge, (*self.domain, *formulas), dim)

    def fixes(self, formula: Formula, together: Sequence[Formula]) -> bool:
        """Returns whether a check of the trace, with all others, turns a size into a number, or two sizes
        into one. If so, the graph may rely on that.
        """
        if not isinstance(formula, Compare) or formula.op == "==":
            return True
        if formula.op == "!=":
            return False
        not_at_its_end = (*self.domain, *self.all, *together, negate(eq(formula.term, 0)))
        return self.judge.satisfiable(not_at_its_end) != "sat"

    def new(self, asked: Sequence[ProgramRequirement], given: Sequence[Formula]) -> list[ProgramRequirement]:
        """Those that do not follow from what is given, and those before them."""
        found: list[ProgramRequirement] = []
        for requirement in asked:
            known = (*self.domain, *given, *(r.formula for r in found))
            if self.judge.ask(requirement.formula, known) is not Answer.ALWAYS:
                found.append(requirement)
        return found

    def needed(self, taken: Sequence[ProgramRequirement]) -> list[ProgramRequirement]:
        """Without those that follow from the others, long ones first."""
        kept = [*taken]
        for requirement in sorted(taken, key=lambda r: -len(str(r.formula))):
            others = [r.formula for r in kept if r is not requirement]
            known = (*self.domain, *self.all, *others)
            if self.judge.ask(requirement.formula, known) is Answer.ALWAYS:
                kept.remove(requirement)
        return kept

    def is_all(self, accepted: Formula) -> bool:
        """Returns whether the formula holds at all sizes that the model takes, on every path."""
        known = (*self.domain, *self.accepted)
        return self.judge.ask(accepted, known) is Answer.ALWAYS

    # ---- some of them

    def candidates(self) -> list[dict[str, int]]:
        """Sizes to try besides those of the box, which may be small ones."""
        found = [*self.ordinary()]
        return found or [*mixed_sizes(self.spec.domain.symbols, (*self.domain, *self.all))]

    def ordinary(self, *given: Formula) -> Iterator[dict[str, int]]:
        """Yields sizes, within the box or not, at which no size inside the program is 0 or 1. Sizes whose
        symbols the given formulas mention, or for which they leave no other value, are exempt.
        """
        names = frozenset().union(*map(free_symbols, given))
        usual: dict[frozenset[str], list[Formula]] = {}
        for term in self.inner:
            if names.isdisjoint(symbols(term)):
                usual.setdefault(frozenset(symbols(term)), []).append(ge(term, 2))
        known = [*self.domain, *self.all, *given]
        found = [*self.some((*known, *chain.from_iterable(usual.values())))]
        if not found and given:
            for several in usual.values():
                if self.judge.satisfiable((*known, *several), (), EFFORT) == "sat":
                    known += several
            found = [*self.some((*known,))]
        yield from found

    def apart(self, given: tuple[Formula, ...]) -> Iterator[dict[str, int]]:
        """Small sizes that fulfil these formulas, and others that have none of them in common."""
        for sizes in self.some(given):
            yield sizes
            yield from self.some((*given, *(negate(eq(sym(name), n)) for name, n in sizes.items())))

    def some(self, given: tuple[Formula, ...]) -> Iterator[dict[str, int]]:
        """Small sizes that fulfil all of these formulas, if there are any that can be tried."""
        names = self.spec.domain.symbols
        if self.judge.satisfiable(given, names, EFFORT) == "sat":
            model = {name: self.judge.model[name] for name in names}
            sizes = examples.polished(model, given, self.judge.known(given), names)
            if example_inputs.elements(self.spec, sizes) <= LARGE:
                yield sizes

    def exceptions(self, formula: Formula) -> list[Formula]:
        """The values of its symbols for which a formula does not hold, one by one, if there are but a few."""
        names = sorted(free_symbols(formula))
        found: list[Formula] = []
        given = [*self.domain, *self.accepted, negate(formula)]
        while len(found) <= FEW:
            answer = self.judge.satisfiable((*given, *map(negate, found)), names, EFFORT)
            if answer != "sat":
                return found if answer == "unsat" else []
            found.append(all_of(eq(sym(name), self.judge.model[name]) for name in names))
        return []
