"""Evaluation and training: the two modes of modules, in which those with batch norms or dropout behave
differently.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from ...constraints.terms.formula import Formula, conjuncts
from ...solver.tactics.judge import Budget, Judge
from ..report.report import ConditionPart, InTraining, ReportData, Verdict
from ..targets.target import is_module

SECONDS: Final = 2.0
"""The time to compare two conditions."""


@contextlib.contextmanager
def in_mode(target: Any, training: bool) -> Iterator[None]:
    """Sets a module and its submodules to a mode inside the block; what is no module stays as it is."""
    before = [(module, module.training) for module in target.modules()] if is_module(target) else []
    if before:
        target.train(training)
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


def depends_on_mode(target: Any) -> bool:
    """Returns whether a target is a module, and the code of a class of its submodules reads the mode."""
    return is_module(target) and any(map(_reads_mode, map(type, target.modules())))


@cache
def _reads_mode(kind: type) -> bool:
    own = (vars(one) for one in kind.__mro__ if (one.__module__, one.__name__) not in _BASES)
    codes = (getattr(member, "__code__", None) for members in own for member in members.values())
    return any(code is not None and "training" in code.co_names for code in codes)


_BASES: Final = {("torch.nn.modules.module", "Module"), ("builtins", "object")}


def difference(evaluated: ReportData, trained: ReportData) -> InTraining | None:
    """Returns what is otherwise in training than in evaluation; None where the same inputs run."""
    judge, now, before = Judge(Budget(SECONDS)), trained.accepts, evaluated.accepts
    declared = conjuncts(now.domain)
    fewer = _beyond(judge, now.formula, (*declared, *conjuncts(before.formula)))
    more = _beyond(judge, before.formula, (*declared, *conjuncts(now.formula)))
    alike = (trained.verdict, now.exact) == (evaluated.verdict, before.exact)
    if trained.verdict is evaluated.verdict is Verdict.REFUTED or (alike and not fewer and not more):
        return None
    imposed = {part.condition: part for part in trained.parts}
    adds = tuple([imposed.get(str(part), ConditionPart(str(part), ())) for part in fewer])
    ends = trained.verdict in (Verdict.REFUTED, Verdict.UNKNOWN)
    why = trained.findings[0] if ends and trained.findings else None
    return InTraining(trained.verdict, now, () if more or ends else adds, why)


def _beyond(judge: Judge, formula: Formula, given: tuple[Formula, ...]) -> list[Formula]:
    """Returns the parts of a condition that do not follow from what is given."""
    return [part for part in conjuncts(formula) if not judge.follows(part, given)]
