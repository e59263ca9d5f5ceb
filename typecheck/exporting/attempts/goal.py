"""The sizes that a program is to take, and what is asked of them while it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from ....constraints.ir.language import Fact
from ....constraints.ir.spec import Spec
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
from ...dim_specs.specs import Hint, Size
from ..examples import example_inputs
from ..examples.example_sizes import mixed_sizes
from .comparing import LARGE
from .program_needs import ProgramRequirement, formula_of

EFFORT: Final = 300_000
"""Z3's resource units for sizes."""
FEW: Final = 8
"""Values of a size for which a program is run one by one."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The sizes that a program has to take: those that the model accepts and that take the traced path."""

    spec: Spec
    judge: Judge
    accepted: tuple[Formula, ...]
    recorded: Formula
    """The condition of the path, as it was recorded."""
    way: tuple[Formula, ...]
    """The parts of this condition that the program depends on."""
    inner: Sequence[Term] = ()
    """The sizes inside the program."""
    _answers: dict[tuple[str, ...], bool] = field(default_factory=dict, init=False, compare=False)
    """The answers of `either` and `certain`."""

    @property
    def domain(self) -> tuple[Formula, ...]:
        return self.spec.domain.assumptions

    @property
    def all(self) -> tuple[Formula, ...]:
        """All conditions on sizes beyond the declared ones."""
        return *self.accepted, *self.way

    def along(self, way: Formula) -> Goal:
        """Returns the goal of another path through the model. Conditions of it that all accepted sizes meet
        are dropped.
        """
        left = tuple(f for f in conjuncts(way) if not self.follows(f, self.accepted))
        return replace(self, recorded=all_of(left), way=left)

    def follows(self, formula: Formula, given: Iterable[Formula]) -> bool:
        """Returns whether the formula is proved at all declared sizes at which the given ones hold."""
        return self.judge.follows(formula, (*self.domain, *given))

    # ---- what is so of all of them

    def either(self, one: str, other: str) -> bool:
        """Returns whether two sizes of at least 1, which the model broadcasts, may differ while one of them
        is 1.
        """
        if (one, other) not in self._answers:
            told = [f"{one} == {other}", f"{one} == 1", f"{other} == 1", f"{one} >= 1", f"{other} >= 1"]
            read = [formula for text in told if (formula := formula_of(text, self.spec)) is not None]
            self._answers[one, other] = (
                len(read) == len(told)
                and not self.follows(read[0], self.all)
                and self.follows(all_of((any_of(read[:3]), *read[3:])), self.all)
            )
        return self._answers[one, other]

    def certain(self, condition: str) -> bool:
        """Returns whether the condition holds at all sizes that the model takes, on every path."""
        if (condition,) not in self._answers:
            read = formula_of(condition, self.spec)
            self._answers[condition,] = read is not None and self.follows(read, self.accepted)
        return self._answers[condition,]

    def fact(self, formulas: Sequence[Formula]) -> Callable[[Dim], Fact]:
        """Returns a function from a size to the known facts about it where these formulas hold."""
        return lambda dim: fact(self.judge, (*self.domain, *formulas), dim)

    def varies(self, dim: Dim) -> Size:
        """Returns the size as torch is to treat it: its bounds, or the number that it always is."""
        if (fixed := self.fact(self.all)(dim)).divisor == 0:
            return fixed.remainder
        known = self.fact(self.accepted)(dim)
        return Hint("AUTO", max(known.min or 0, 0), known.max)

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
            if not self.follows(requirement.formula, (*given, *(r.formula for r in found))):
                found.append(requirement)
        return found

    def needed(self, taken: Sequence[ProgramRequirement]) -> list[ProgramRequirement]:
        """Without those that follow from the others, long ones first."""
        kept = [*taken]
        for requirement in sorted(taken, key=lambda r: -len(str(r.formula))):
            others = [r.formula for r in kept if r is not requirement]
            if self.follows(requirement.formula, (*self.all, *others)):
                kept.remove(requirement)
        return kept

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
        """Yields small sizes that satisfy these formulas, and others that satisfy them and share no value
        with the former.
        """
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
