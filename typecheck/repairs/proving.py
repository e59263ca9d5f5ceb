"""Checks whether a change removes a finding and causes no other, by proof and by runs at examples."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.claims import listening
from ...constraints.ir.language import tensors
from ...constraints.ir.program import Node
from ...constraints.ir.spec import Spec
from ...constraints.ir.system import Path, System
from ...constraints.terms.dims import Dim, evaluate
from ...constraints.terms.formula import all_of, eq, implies, negate
from ...solver.decide import Decision, DomainOracle, Requirement, decide, requirements
from ...solver.tactics.judge import Budget, Judge
from ...tracer.host.alone import TURN
from ...tracer.patches.edits import CannotApply, Edit, applied
from ...tracer.readers.fx import listen
from ...tracer.recording.binding import NotCallable
from ...tracer.recording.held import Held
from ...tracer.recording.record import record
from ..replay.replay import Ran, Replayer
from ..report.findings import outputs
from ..report.report import Finding, Output
from .places import calls, is_usual, leaves_most, line

MAX_PATHS: Final = 64


@dataclass(frozen=True, slots=True)
class Proved:
    """A change that removes a finding and causes no other, by proof and by runs at examples."""

    left: int
    """The number of lines that refuse something still."""
    length: int
    """The length of the outputs' text: of two similar changes, the one with simpler results is likelier."""
    outputs: tuple[str, ...]
    """The outputs that it gives other shapes."""
    strange: int
    """The number of outputs that it gives another rank, or another first size, which is that of a batch."""
    keeps: bool
    """Whether the outputs have the same shapes for all inputs that were accepted before."""


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
        oracle, held = DomainOracle(spec.domain, Budget(seconds)), Held(target)
        try:
            with TURN, listening(listen), self.replayer.annotations.reported():
                system, _ = record(
                    target, spec, self.rules, oracle, max_paths=MAX_PATHS, budget_s=seconds, held=held
                )
        except (NotCallable, CannotApply):
            return None
        gave_up = any(path.end.how == "gave-up" for path in system.paths)
        return None if system.incomplete or gave_up else system

    def gone(self, edit: Edit, finding: Finding, until: float) -> Proved | None:
        """Returns what is proved of a change that removes the finding; else None."""
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
                return self._proved(system, decision)
        except CannotApply:
            return None

    def removed_by(self, spec: Spec, finding: Finding, until: float) -> bool:
        """Returns whether the finding is gone, and no other there, with another spec."""
        system = self.recorded(self.target, spec, until)
        decision = None if system is None else decide(system, left(until))
        if decision is None or decision.verdict == "unknown":
            return False
        if not all(self._remains(requirement, finding) for requirement in decision.residual):
            return False
        if decision.verdict == "refuted":
            return _failing(decision) < _failing(self.before)
        runs = decision.inside and Replayer(self.target, spec).run(decision.inside, True)
        return isinstance(runs, Ran)

    def _proved(self, system: System, decision: Decision) -> Proved | None:
        now = outputs(system)
        if not now and outputs(self.system):
            return None
        left = {line(r.origin) for r in decision.residual}
        changed = self._changed(outputs(self.system), now)
        keeps = not changed or self.before.verdict == "refuted"
        length = sum(len(output.value.text) for output in now)
        return Proved(len(left), length, changed, _strange(outputs(self.system), now), keeps)

    def _changed(self, before: Sequence[Output], now: Sequence[Output]) -> tuple[str, ...]:
        """Returns the outputs whose shapes differ for inputs that were accepted before, or, where none were,
        that are written in another way.
        """
        if [o.name for o in before] != [o.name for o in now]:
            texts = _texts(before), _texts(now)
            return (" -> ".join(texts),) if before and texts[0] != texts[1] else ()
        return tuple(
            f"{new.name}: {old.value} -> {new.value}"
            for old, new in zip(before, now, strict=True)
            if old.value.text not in ("?", new.value.text) and not self._alike(old, new)
        )

    def _alike(self, old: Output, new: Output) -> bool:
        """Returns whether two outputs are equal for all inputs that were accepted before."""
        was, now = old.value, new.value
        if self.before.verdict == "refuted" or was.dims is None or now.dims is None:
            return False
        if was.dtype != now.dtype or len(was.dims) != len(now.dims):
            return False
        same = all_of(map(eq, was.dims, now.dims))
        given = (*self.spec.domain.assumptions, self.before.accepted)
        return Judge(Budget(1.0)).follows(same, given)

    def _may_work(self, system: System, finding: Finding, until: float) -> bool:
        """Returns whether all requirements are at lines that had some before, or always hold. This is found
        faster than a verdict.
        """
        judge = Judge(left(until))
        asked = requirements(system, judge)
        given = self.spec.domain.assumptions
        return asked is not None and all(
            self._remains(r, finding) or judge.follows(r.needs, given) for r in asked
        )

    def _remains(self, requirement: Requirement, finding: Finding) -> bool:
        """Returns whether a requirement of the changed program is no matter of the finding: one at another
        line that had some before, or a least size where the finding asks for more than such.
        """
        if line(requirement.origin) in self.lines - {line(finding.origin)}:
            return True
        return not leaves_most(finding.condition) and is_usual(requirement.needs)

    def _outgrows(self, system: System, finding: Finding) -> bool:
        """Returns whether an elementwise call of this line gives more dimensions than any of its operands has
        now, or a tensor that is larger than all of its operands.

        Such a change only makes everything broadcast with everything, and does not count as a repair.
        """
        if finding.op not in ELEMENTWISE:
            return False
        before = [len(s) for node, path in calls(self.system, finding) for s in _shapes(path, node, False)]
        after = [len(s) for node, path in calls(system, finding) for s in _shapes(path, node, True)]
        if max(after, default=0) > max(before, default=0):
            return True
        return any(self._is_outer(path, node) for node, path in calls(system, finding))

    def _is_outer(self, path: Path, node: Node) -> bool:
        """Returns whether a call gives a tensor larger than all of its operands, at the sizes that are
        refused now.
        """
        given = [*_shapes(path, node, False)]
        results = [shape for shape in _shapes(path, node, True) if shape not in given]
        if not results or self.fails_at is None:
            return False
        try:
            large = max(prod(evaluate(d, self.fails_at) for d in shape) for shape in given)
            return any(prod(evaluate(d, self.fails_at) for d in shape) > large for shape in results)
        except (KeyError, ZeroDivisionError):  # of a size that data decide
            return False

    def _better(self, decision: Decision, finding: Finding) -> bool:
        """Nothing is refused at this line, nor where nothing was before, nor what was accepted before."""
        if decision.verdict == "proved":
            return True
        if decision.verdict not in ("refined", "refuted"):
            return False
        if not all(self._remains(requirement, finding) for requirement in decision.residual):
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


ELEMENTWISE: Final = frozenset({"add", "sub", "mul", "div", "masked_fill", "where", "addcmul", "lerp"})


def left(until: float) -> Budget:
    """Returns the budget that is left until then, and at least 0.1 seconds."""
    return Budget(max(until - time.monotonic(), 0.1))


def _failing(decision: Decision) -> set[tuple[str, int]]:
    """The lines that no input gets past."""
    return {line(r.origin) for core in decision.cores for r in core.requirements}


def _shapes(path: Path, node: Node, results: bool) -> Iterator[tuple[Dim, ...]]:
    """Returns the shapes of the results of a call, or of its operands, as far as their ranks are known."""
    ids = node.results if results else [r.id for r in node.refs]
    yield from (t.shape for id in ids for t in tensors(path.values[id]))


def _strange(before: Sequence[Output], now: Sequence[Output]) -> int:
    """Returns the number of outputs that have another rank or another first size than before."""
    sizes = [(old.value.dims, new.value.dims) for old, new in zip(before, now, strict=False)]
    return sum(
        len(was) != len(here) or was[:1] != here[:1]
        for was, here in sizes
        if was is not None and here is not None
    )


def _texts(outputs: Sequence[Output]) -> str:
    values: dict[str, dict[str, None]] = {}
    for output in outputs:
        values.setdefault(output.name, {})[output.value.text] = None
    return ", ".join(f"{name}: {' or '.join(texts)}" for name, texts in values.items())
