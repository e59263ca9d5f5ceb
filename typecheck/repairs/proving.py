"""Checks whether a change removes a finding and causes no other, by proof and by runs at examples."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.language import tensors
from ...constraints.ir.program import Node
from ...constraints.ir.spec import Spec
from ...constraints.ir.system import Path, System
from ...constraints.terms.formula import all_of, implies, negate
from ...solver.decide import Decision, DomainOracle, decide, requirements
from ...solver.tactics.judge import Budget, Judge
from ...tracer.patches.edits import CannotApply, Edit, applied
from ...tracer.recording.binding import NotCallable
from ...tracer.recording.record import record
from ..replay.replay import Ran, Replayer
from ..report.findings import outputs
from ..report.report import Finding
from .places import calls, line

MAX_PATHS: Final = 64


class Prover:
    """Judges changes of one program."""

    def __init__(
        self, target: Any, spec: Spec, rules: Rules, system: System, before: Decision,
        fails_at: Mapping[str, int] | None,
    ) -> None:  # fmt: skip
        self.target, self.spec, self.rules, self.system = target, spec, rules, system
        self.before, self.fails_at = before, fails_at
        self.replayer = Replayer(target, spec)
        self.lines = {line(r.origin) for r in before.residual}
        """The lines that refuse something as the program stands."""

    def recorded(self, target: Any, spec: Spec, until: float) -> System | None:
        """Returns the constraint system of the changed target; None where it is not known in full."""
        seconds = until - time.monotonic()
        if seconds <= 0:
            return None
        oracle = DomainOracle(spec.domain, Budget(seconds))
        try:
            system, _ = record(target, spec, self.rules, oracle, max_paths=MAX_PATHS, budget_s=seconds)
        except (NotCallable, CannotApply):
            return None
        gave_up = any(path.end.how == "gave-up" for path in system.paths)
        return None if system.incomplete or gave_up else system

    def gone(self, edit: Edit, finding: Finding, until: float) -> int | None:
        """Returns a number if the change removes the finding and causes no other, by proof and by runs at
        examples; else None.

        The number is the length of the outputs' text: of two similar changes, the one with simpler results is
        likelier.
        """
        try:
            with applied(self.target, edit):
                system = self.recorded(self.target, self.spec, until)
                if system is None:
                    return None
                if not self._may_work(system, finding, until) or self._outgrows(system, finding):
                    return None
                decision = decide(system, left(until))
                if not self._better(decision, finding) or not self._runs(decision):
                    return None
                return sum(len(output.value.text) for output in outputs(system))
        except CannotApply:
            return None

    def _may_work(self, system: System, finding: Finding, until: float) -> bool:
        """Returns whether all requirements are at lines that had some before, or always hold. This is found
        faster than a verdict.
        """
        judge = Judge(left(until))
        asked = requirements(system, judge)
        others, given = self.lines - {line(finding.origin)}, self.spec.domain.assumptions
        return asked is not None and all(
            line(r.origin) in others or judge.follows(r.needs, given) for r in asked
        )

    def _outgrows(self, system: System, finding: Finding) -> bool:
        """Returns whether an elementwise call of this line gives more dimensions than any of its operands has
        now.

        Such a change only makes everything broadcast with everything, and does not count as a repair.
        """
        if finding.op not in _ELEMENTWISE:
            return False
        before = [r for node, path in calls(self.system, finding) for r in _ranks(path, node, False)]
        after = [r for node, path in calls(system, finding) for r in _ranks(path, node, True)]
        return max(after, default=0) > max(before, default=0)

    def _better(self, decision: Decision, finding: Finding) -> bool:
        """Nothing is refused at this line, nor where nothing was before, nor what was accepted before."""
        if decision.verdict == "proved":
            return True
        now = {line(r.origin) for r in decision.residual}
        if decision.verdict not in ("refined", "refuted") or not now <= self.lines - {line(finding.origin)}:
            return False
        if decision.verdict == "refuted":
            return _failing(decision) < _failing(self.before)
        if self.before.verdict == "refuted":
            return True
        kept = implies(self.before.accepted, decision.accepted)
        given = all_of(self.spec.domain.assumptions)
        return Judge(Budget(1.0)).satisfiable((given, negate(kept))) == "unsat"

    def _runs(self, decision: Decision) -> bool:
        """Returns whether the changed program runs at the examples that are claimed to run, the refused sizes
        among them.
        """
        if decision.verdict == "refuted":  # for another reason, at another line
            return True
        examples = [e for e in (decision.inside, self.fails_at) if e and decision.holds(e)]
        return bool(examples) and all(isinstance(self.replayer.run(e, True), Ran) for e in examples)


_ELEMENTWISE: Final = frozenset({"add", "sub", "mul", "div", "masked_fill", "where", "addcmul", "lerp"})


def left(until: float) -> Budget:
    """Returns the budget that is left until then, and at least 0.1 seconds."""
    return Budget(max(until - time.monotonic(), 0.1))


def _failing(decision: Decision) -> set[tuple[str, int]]:
    """The lines that no input gets past."""
    return {line(r.origin) for core in decision.cores for r in core.requirements}


def _ranks(path: Path, node: Node, results: bool) -> Iterator[int]:
    """Returns the ranks of the results of a call, or of its operands."""
    ids = node.results if results else [r.id for r in node.refs]
    yield from (t.rank for id in ids for t in tensors(path.values[id]))
