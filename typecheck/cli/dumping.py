"""The constraint system of a target as text, for people and for other solvers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.spec_text import Inputs
from ...solver.smtlib import NotExact, as_smt2, as_text
from ..checking.api import default_rules, question, resolved_in_mode
from ..checking.clock import Clock, Progress
from ..targets.target_error import TargetError

Form = Literal["constraints", "smt2"]


def dump(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), form: Form = "constraints",
    *, budget_s: float = 30.0, rules: Rules | None = None, progress: Progress | None = None,
    training: bool | None = None,
) -> str:
    """Returns the constraint system of a target: `constraints` for people, `smt2` as two questions in SMT-LIB
    2.

    Raises the exceptions of `check`, and TargetError where `smt2` could not express the whole system.
    """
    clock = Clock(progress or (lambda step: None), budget_s)
    with resolved_in_mode(target, inputs, assume, training) as found:
        system = question(found, inputs, assume, clock, rules or default_rules(), replay=False).system
    if form == "constraints":
        return as_text(system)
    try:
        return as_smt2(system)
    except NotExact as reason:
        hint = "--dump constraints has what is known"
        raise TargetError(f"there is no exact system: {reason}", hint) from None
