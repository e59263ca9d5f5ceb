"""A solver behind torch's ShapeEnvs: asked where their own reasoning does not know, while it is open.

A ShapeEnv knows ranges and single conditions, and does not combine them: that `a < b` and `b <= 64` leave
`a < 64`, or that a multiple of 4 is even, it cannot tell. Of an input's size it then makes a guard; of a size
that data decides the trace fails. Whatever is answered here follows from what the ShapeEnv itself holds to be
true, which it enforces by guards and runtime asserts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import sympy
from sympy.logic.boolalg import Boolean
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ...constraints.ir.system import Answer
from ...constraints.terms.formula import Formula, free_symbols, holds, negate
from ...solver.tactics.judge import Budget, Judge
from ...solver.theory.bounds import names_of
from ...tracer.host.patches import Patch
from ...tracer.host.symbolic_shapes import EVALUATED, forget_answers
from .knowledge import hints_of, known
from .terms import formula_of

KEPT: Final = 4096
"""This many answers are remembered."""
MOST: Final = 96
"""This many conditions are considered for one answer."""
FIRST: Final = 12
"""This many conditions, the nearest ones, are considered first."""
STEPS: Final = (0, *(sign * step for step in (1, 2, 3, 4, 6, 8, 12, 16, 24, 64) for sign in (1, -1)))
ENDS: Final = (1, 2, 4, 12, 1 << 20, 3 << 20)
"""Sizes next to those that are known, and others, at which a condition may fail."""


class Solver:
    """Answers the questions of one ShapeEnv, or of all."""

    def __init__(self, shape_env: ShapeEnv | None, seconds: float) -> None:
        self.shape_env, self.seconds = shape_env, seconds
        self.answered: dict[Formula, bool] = {}
        """The questions that were answered, in order."""
        self._answers: dict[tuple[Formula, tuple[Formula, ...]], bool | None] = {}
        self._known: tuple[Any, tuple[Formula, ...]] = (None, ())

    def answer(self, shape_env: ShapeEnv, question: sympy.Basic) -> Any:
        """`sympy.true` or `sympy.false`, None where neither follows from what the ShapeEnv knows."""
        if not isinstance(question, Boolean):
            return None
        formula = formula_of(shape_env.replace(question))
        if formula is None or isinstance(formula, bool):
            return None
        given = _near(self._knowledge(shape_env), free_symbols(formula))
        if (formula, given) not in self._answers:
            if len(self._answers) >= KEPT:
                self._answers.clear()
            self._answers[formula, given] = self._decide(formula, given, hints_of(shape_env))
        truth = self._answers[formula, given]
        if truth is None:
            return None
        self.answered[formula] = truth
        return sympy.true if truth else sympy.false

    def _decide(self, formula: Formula, given: tuple[Formula, ...], hints: dict[str, int]) -> bool | None:
        judge = Judge(Budget(self.seconds))
        if not hints.keys() >= free_symbols(formula):
            return {Answer.ALWAYS: True, Answer.NEVER: False}.get(judge.ask(formula, given))
        try:
            truth = holds(formula, hints)
        except ZeroDivisionError:
            return None
        likely = formula if truth else negate(formula)
        if _fails_nearby(likely, given, hints):
            return None
        follows = judge.follows(likely, given[:FIRST]) or (
            len(given) > FIRST and judge.follows(likely, given)
        )
        return truth if follows else None

    def _knowledge(self, shape_env: ShapeEnv) -> tuple[Formula, ...]:
        """Returns the facts that the ShapeEnv knows, collected again whenever it has learnt something."""
        learnt = len(shape_env.guards), shape_env.num_deferred_runtime_asserts, len(shape_env.replacements)
        state = id(shape_env), *learnt, tuple(shape_env.var_to_range.items())
        if self._known[0] != state:
            self._known = state, known(shape_env)
        return self._known[1]


def _fails_nearby(formula: Formula, given: Iterable[Formula], hints: dict[str, int]) -> bool:
    """Returns whether some size, tried in place of its hint, meets all given formulas and violates the
    formula.

    Most questions have no definite answer, and this shows it without the solver.
    """
    for name in free_symbols(formula):
        about = [f for f in given if name in names_of(f)]
        if not all(names_of(f) <= hints.keys() for f in about):
            continue
        near = {other for f in (formula, *about) for other in names_of(f)}
        tried = {hints[other] + step for other in near for step in STEPS} | {*ENDS}
        for value in tried:
            point = {**hints, name: value}
            with suppress(ZeroDivisionError):
                if not holds(formula, point) and all(holds(f, point) for f in about):
                    return True
    return False


def _near(formulas: Iterable[Formula], names: frozenset[str]) -> tuple[Formula, ...]:
    """Returns the formulas that mention the names, then those that share symbols with these, and so on, up to
    MOST.

    Fewer known formulas give fewer answers, and no wrong ones.
    """
    left = sorted(formulas, key=lambda formula: len(names_of(formula)))
    found: list[Formula] = []
    while len(found) < MOST and (layer := [f for f in left if not names.isdisjoint(names_of(f))]):
        found += layer
        left = [f for f in left if names.isdisjoint(names_of(f))]
        names = names.union(*map(names_of, layer))
    return tuple(found[:MOST])


@contextmanager
def oracle(shape_env: ShapeEnv | None = None, budget_ms: float = 200.0) -> Iterator[Solver]:
    """While this is open, a ShapeEnv that does not know an answer asks anyshape's solver.

    `shape_env` is the one that asks; by default it is any, also such as `torch.export` makes for itself. The
    last of several that are open is asked, and none by other threads. A question takes about `budget_ms` at
    most, and is asked once. What is yielded has `answered`, the questions that got an answer. On exit, in
    whatever way, all is as it was.
    """
    solver = Solver(shape_env, budget_ms / 1000)
    reason = "ShapeEnvs ask a solver of anyshape's"
    patch = Patch(*EVALUATED, partial(_EvaluationPatch.before, solver), reason)
    try:
        with patch.in_force():
            forget_answers()
            yield solver
    finally:
        forget_answers()


@dataclass(frozen=True, slots=True)
class _EvaluationPatch:
    """A patch of torch's `_maybe_evaluate_static` that asks solvers if torch has no answer."""

    plain: Callable[..., Any]
    solvers: tuple[Solver, ...]
    """The last one that was opened comes first."""

    @classmethod
    def before(cls, solver: Solver, asked: Callable[..., Any]) -> _EvaluationPatch:
        """Returns a wrapper that asks this solver before those that are asked already."""
        return cls(asked.plain, (solver, *asked.solvers)) if isinstance(asked, cls) else cls(asked, (solver,))

    def __call__(self, shape_env: ShapeEnv, expression: sympy.Basic, **options: Any) -> Any:
        """Returns torch's answer, or else that of the solver that was opened last for the ShapeEnv.

        A question with special axioms is left to torch: whether a guard follows from ranges alone
        (`axioms=()`) decides whether it is needed at all.
        """
        answer = self.plain(shape_env, expression, **options)
        if answer is not None or any(options.get(special) not in (None, False) for special in _SPECIAL):
            return answer
        solver = next((s for s in self.solvers if s.shape_env in (None, shape_env)), None)
        return None if solver is None else solver.answer(shape_env, expression)


_SPECIAL: Final = ("axioms", "var_to_range", "compute_hint", "unbacked_only")
