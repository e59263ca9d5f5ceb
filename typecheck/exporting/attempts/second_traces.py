"""Second traces of a model, at other sizes, and what they show of the first.

Where a second trace is the same graph, nothing in it is there for the sizes of the first: an equation that
its example happened to fulfil, a bound that torch has put in front, or another way through the model.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

import sympy

from ....constraints.ir.spec import Spec
from ....constraints.terms.dims import Dim, Term, substitute, symbols
from ....constraints.terms.formula import Formula, all_of, eq, holds, negate
from ....solver.tactics.judge import Judge
from ...feedback.terms import dim_of
from ..graphs import same_graph
from ..graphs.program_checks import symbols_of
from ..tracing.tracing import Trace
from .goal import Goal
from .program_needs import Needs, ProgramRequirement

SECONDS: Final = 60.0
"""The time limit, in seconds, of traces that may show a requirement to be an accident."""

Sizes: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SecondTraces:
    """Traces a model again, and compares."""

    spec: Spec
    judge: Judge
    needs: Callable[[Trace, Sequence[Formula]], Needs]
    """Returns the requirements of a trace where formulas hold."""
    again: Callable[[Sizes, float], Trace]
    """Traces the model at other sizes, within so many seconds."""
    patience: float
    """The time limit of one of them, in seconds."""
    _failed: set[frozenset[tuple[str, int]]] = field(default_factory=set)
    """Sizes at which the model cannot be traced."""

    def at(self, sizes: Sizes) -> Trace | None:
        """A trace at these sizes; None where torch cannot trace there, or takes far longer than before."""
        if (asked := frozenset(sizes.items())) in self._failed:
            return None
        try:
            return self.again(sizes, self.patience)
        except Exception:  # noqa: BLE001 (torch raises anything: then there is no second trace)
            self._failed.add(asked)
            return None

    def same_where(self, given: Sequence[Formula], one: Trace, other: Trace) -> bool:
        """Returns whether two traces give the same graph where these formulas hold. A size may be a symbol in
        one of them and a number in the other, or be written differently, as long as both are equal there.
        """

        @functools.cache
        def equal(size: Any, as_other: Any) -> bool:
            if size == as_other:
                return True
            known = isinstance(size, int | Term) and isinstance(as_other, int | Term)
            return known and self.judge.follows(eq(size, as_other), given)

        def described(trace: Trace) -> Any:
            known = symbols_of(trace.program, self.spec)
            return same_graph.described(trace.program, partial(_in_spec, known), equal)

        return same_graph.agree(described(one), described(other), equal)

    def not_accidental(
        self, goal: Goal, fixing: list[ProgramRequirement], asked: Sequence[ProgramRequirement], trace: Trace
    ) -> list[ProgramRequirement]:
        """Without the equations that the example happened to fulfil, and what nobody knows the graph to need:
        where they do not hold, a second trace gives the same graph, or several do, so nothing in it is there
        for their sake.
        """
        needed = (*goal.domain, *goal.all, *(r.formula for r in asked))
        kept, until = [*fixing], time.monotonic() + SECONDS
        for requirement in fixing:
            if requirement not in kept or time.monotonic() > until:
                continue
            failing = negate(requirement.formula)
            ordinary = goal.ordinary(*(r.formula for r in asked), failing)
            others: list[Trace] = []
            for sizes in chain(ordinary, goal.apart((*needed, failing))):
                other = self.at(sizes) if requirement in kept else None
                if other is None:
                    continue
                if same(trace, other):
                    kept = [r for r in kept if holds(r.formula, sizes)]
                elif self.same_where((*needed, failing), trace, other):
                    kept.remove(requirement)
                else:
                    others.append(other)
            if requirement in kept and self._same_together(goal, (*needed, failing), trace, others, until):
                kept.remove(requirement)
        return kept

    def _same_together(
        self, goal: Goal, given: Sequence[Formula], trace: Trace, others: Sequence[Trace], until: float
    ) -> bool:
        """Returns whether these traces, and more if they are needed, give the same graph where these formulas
        hold, each where its own guards hold.

        Where the guards of a trace hold, torch traces the same graph.
        """
        left, names = [*given], self.spec.domain.symbols
        waiting = [*others]
        while time.monotonic() < until:
            sizes = None
            if not waiting:
                if (sizes := next(goal.some((*left,)), None)) is None:
                    break
                if (other := self.at(sizes)) is None:
                    return False
                waiting.append(other)
            other = waiting.pop()
            found = self.needs(other, goal.all)
            where = all_of(r.formula for r in (*found.graph, *found.checks))
            if found.unread or (sizes is not None and not holds(where, sizes)):
                return False
            if self.judge.satisfiable((*left, where), names) == "unsat":
                continue  # others hold there, too
            if not self.same_where((*left, where), trace, other):
                return False
            left.append(negate(where))
        return self.judge.satisfiable((*left,), names) == "unsat"


def same(one: Trace, other: Trace) -> bool:
    """Returns whether both are the same graph."""
    return same_graph.described(one.program) == same_graph.described(other.program)


def _in_spec(known: Mapping[str, Dim], size: sympy.Expr) -> Dim | sympy.Expr:
    """Returns a size of a trace in terms of the spec, given the spec's terms for the trace's symbols;
    unchanged where they do not suffice.
    """
    dim = dim_of(size)
    return size if dim is None or not symbols(dim) <= known.keys() else substitute(dim, known)
