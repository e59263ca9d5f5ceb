"""Lemmas: answers to a program's questions about sizes that follow from its assumptions.

`torch.compile` takes assumptions (`ShapesSpec(…, assumptions=[P < Q])`), passes each to its ShapeEnv, and
fails on a question that is not one of them: from `P < Q` it does not conclude `P < Q + 5`. Lemmas are passed
as further assumptions. Since they follow from the others, they assume nothing more.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import torch

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.spec_text import Inputs
from ...constraints.ir.system import Answer, System, ranges_of
from ...constraints.terms.dims import Atom, Dim, Symbol, coefficients
from ...constraints.terms.formula import And, Compare, Formula, Or, conjuncts, free_symbols, negate, sides
from ...solver.tactics.judge import Budget, Judge
from ...solver.theory.bounds import Consequences
from ...tracer.readers.expressions import NotRead
from ..checking.api import examine


@dataclass(frozen=True, slots=True)
class Lemmas:
    """Conditions over the symbols of an input spec, and what follows from them."""

    given: tuple[Formula, ...]
    proved: tuple[Formula, ...]

    def for_torch(self, variables: Mapping[str, Any]) -> list[torch.SymBool]:
        """Returns all of them for `ShapesSpec(assumptions=…)`; `variables` has its `ShapeVar`s by the symbols
        used here.

        A lemma that torch cannot express is left out.
        """
        return [*_conditions((*self.given, *self.proved), variables)]


def lemmas(
    target: Any, inputs: Inputs, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    rules: Rules | None = None,
) -> Lemmas:
    """Returns the conditions that the target tests and that follow from the assumptions, but not from ranges
    alone.

    The arguments are those of `check`, and it raises what `check` raises.
    """
    examined = examine(target, inputs, assume, budget_s=budget_s, replay=False, rules=rules)
    domain = examined.spec.domain
    names = frozenset(domain.symbols)
    given = tuple(f for f in domain.assumptions if names.isdisjoint(ranges_of((f,))))
    judge = Judge(Budget(budget_s))
    obvious = Consequences(f for f in domain.assumptions if f not in given)
    proved: dict[Formula, None] = {}
    for question in _questions(examined.system):
        if free_symbols(question) <= names and obvious.ask(question) is None:
            answer = judge.ask(question, domain.assumptions)
            if answer in (Answer.ALWAYS, Answer.NEVER):
                proved[question if answer is Answer.ALWAYS else negate(question)] = None
    return Lemmas(given, tuple(f for f in proved if f not in given))


def _questions(system: System) -> Iterator[Formula]:
    """Yields the requirements of nodes and the conditions of branches."""
    for path in system.paths:
        for constraint in path.constraints:
            yield from conjuncts(constraint.formula)
        for asked in path.conditions:
            if asked.formula is not None:
                yield from conjuncts(asked.formula)


# ---- in torch's terms


def _conditions(formulas: Iterable[Formula], variables: Mapping[str, Any]) -> Iterator[torch.SymBool]:
    for formula in formulas:
        try:
            built = _condition(formula, variables)
        except NotRead:
            continue
        if isinstance(built, torch.SymBool):
            yield built


def _condition(formula: Formula, variables: Mapping[str, Any]) -> Any:
    """The condition as `ShapeVar`s write it."""
    match formula:
        case bool():
            return formula
        case And(parts):
            return reduce(operator.and_, (_condition(part, variables) for part in parts))
        case Or(parts):
            return reduce(operator.or_, (_condition(part, variables) for part in parts))
        case Compare(op, term):
            return _COMPARE[op](*(_size(side, variables) for side in sides(term)))


def _size(dim: Dim, variables: Mapping[str, Any]) -> Any:
    terms = coefficients(dim)
    products = (reduce(lambda size, atom: size * _atom(atom, variables), mono, c) for mono, c in terms)
    return reduce(operator.add, products, 0)


def _atom(atom: Atom, variables: Mapping[str, Any]) -> Any:
    if isinstance(atom, Symbol):
        if atom.name not in variables:
            raise NotRead(f"no variable is given for {atom.name}")
        return variables[atom.name]
    if atom.op not in _APPLY:
        raise NotRead(f"{atom.op} cannot be expressed in torch")
    return reduce(_APPLY[atom.op], (_size(arg, variables) for arg in atom.args))


_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge,
}
_APPLY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "//": operator.floordiv, "%": operator.mod, "min": torch.sym_min, "max": torch.sym_max,
}
