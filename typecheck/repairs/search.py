"""The search for the repairs of the findings of a report, within a time.

The line of the finding is searched first, then the lines that led to it. A literal there may be replaced:
where it is a size, the solver computes which values are right (`solver/repair.py`); where it is an axis or a
stride, its neighbours are tried. An operand may also be transposed, or lack a dimension. For every change,
the changed program is recorded anew, decided, and run at examples before the repair is reported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.language import Tensor
from ...constraints.ir.spec import Spec
from ...constraints.ir.system import System
from ...solver.decide import decide, requirements
from ...solver.repair import fillings
from ...solver.tactics.judge import Budget, Judge
from ...tracer.patches.edits import CannotApply, Edit, WithOpenNumbers, closed
from ..facade import Report
from ..report.codes import Code
from ..report.report import Finding, Link, Repair, Verdict
from .changes import Changes, RankedChange
from .declarations import declared, leaves_most, redeclared, widened
from .places import calls, line, places
from .proving import Prover, left
from .wording import told

SECONDS: Final = 6.0
"""Seconds for all findings of a program together."""
SECONDS_EACH: Final = 3.0
"""Seconds for one finding."""
SECONDS_NATURAL: Final = 1.0
"""Seconds for a finding that only asks for multiples or least sizes, which is usually intended."""
MAX_REPAIRS: Final = 3
MAX_FILLINGS: Final = 2
ALTERNATIVES: Final = 1
"""A repair is reported beside the first one if its rank is at most this much worse."""
REPAIRABLE: Final = frozenset({Code.SHAPE_MISMATCH, Code.CONDITION, Code.RAISES})


def repaired(report: Report, target: Any, spec: Spec, system: System, rules: Rules) -> Report:
    """The report with repairs at those of its findings that have one."""
    if not any(finding.code in REPAIRABLE for finding in report.findings):
        return report
    until = time.monotonic() + SECONDS
    search = _RepairSearch(report, target, spec, system, rules)
    findings: list[Finding] = []
    for finding in report.findings:
        same = next((f for f in findings if f.origin == finding.origin and f.code == finding.code), None)
        if same is not None:
            finding = replace(finding, repairs=same.repairs)
        elif finding.code in REPAIRABLE and time.monotonic() < until and search.possible:
            natural = bool(finding.condition) and leaves_most(finding.condition)
            limit = min(until, time.monotonic() + (SECONDS_NATURAL if natural else SECONDS_EACH))
            finding = replace(finding, repairs=tuple(search.repairs(finding, limit)))
        findings.append(finding)
    return replace(report, findings=tuple(findings))


class _RepairSearch:
    """Looks for repairs of one program."""

    def __init__(self, report: Report, target: Any, spec: Spec, system: System, rules: Rules) -> None:
        self.report, self.target, self.spec, self.system = report, target, spec, system
        self.before = decide(system, Budget(SECONDS_EACH))
        self.prover = Prover(target, spec, rules, system, self.before, report.fails_at)

    @property
    def possible(self) -> bool:
        refused = self.report.verdict in (Verdict.REFINED, Verdict.REFUTED)
        return refused and self.before.verdict in ("refined", "refuted")

    def repairs(self, finding: Finding, until: float) -> Iterator[Repair]:
        """Yields the repairs that remove the finding, the most likely change first."""
        found: dict[object, tuple[int, int, int, Repair]] = {}
        best = 99
        postponed: list[tuple[RankedChange, Edit]] = []
        for candidate in sorted(self._candidates(finding), key=lambda c: c.rank):
            if len(found) >= MAX_REPAIRS or candidate.rank > best + ALTERNATIVES or time.monotonic() > until:
                break
            if candidate.place in found:
                continue
            for edit in self._concrete(candidate.edit, finding, until):
                if _is_trivial(edit):
                    postponed.append((candidate, edit))
                elif (length := self.prover.gone(edit, finding, until)) is not None:
                    repair = told(self.target, edit, candidate.origin)
                    found[candidate.place] = candidate.rank, length, len(found), repair
                    best = min(best, candidate.rank)
                    break
        declaration = declared(finding, self.before, bool(found))
        for candidate, edit in postponed if declaration is None or not leaves_most(finding.condition) else ():
            if not found and self.prover.gone(edit, finding, until) is not None:
                found[candidate.place] = candidate.rank, 0, 0, told(self.target, edit, candidate.origin)
        yield from (repair for _, _, _, repair in sorted(found.values(), key=lambda f: f[:3]))
        if declaration is not None:
            yield declaration
        if self.before.verdict == "refuted" and len(found) < MAX_REPAIRS:
            yield from redeclared(self.prover, until)

    def _candidates(self, finding: Finding) -> Iterator[RankedChange]:
        for distance, link in enumerate(places(finding, self.report)):
            yield from Changes(self.target, link, distance).candidates()
        shapes = [
            value.shape
            for node, path in calls(self.system, finding)
            for ref in node.refs
            if isinstance(value := path.values[ref.id], Tensor)
        ]
        yield from Changes(self.target, Link(finding.op, "", finding.origin), 0).projections(shapes)

    def _concrete(self, edit: Edit, finding: Finding, until: float) -> Iterator[Edit]:
        """The change with each number that it leaves open filled in, in the ways that are right."""
        try:
            target = WithOpenNumbers(self.target, edit)
        except CannotApply:
            return
        if not target.numbers:
            yield edit
            return
        holes = {n.name: n.now for n in target.numbers}
        domain = self.spec.domain
        spec = Spec((*self.spec.inputs, *target.inputs()), widened(domain, holes))
        judge = Judge(left(until))
        system = self.prover.recorded(target, spec, until)
        asked = None if system is None else requirements(system, judge)
        if asked is None:
            return
        others = self.prover.lines - {line(finding.origin)}
        every = [r.needs for r in asked]
        these = [r.needs for r in asked if line(r.origin) not in others]
        seen: list[dict[str, int]] = []
        for needs in (every, these) if len(these) < len(every) else (every,):
            for values in islice(fillings(needs, domain, holes, judge), MAX_FILLINGS):
                if values not in seen:
                    seen.append(values)
                    yield closed(edit, values)


def _is_trivial(edit: Edit) -> bool:
    """Returns whether the change is a size of 1 or a stride of 1, which may undo the purpose of the code."""
    value = getattr(edit, "value", None)
    if getattr(edit, "text", "") == "1":
        return True
    return type(value) is int and value == _LEAST.get(getattr(edit, "parameter", ""), 1)


_LEAST: Final = {"padding": 0}
"""Values, other than 1, that undo the purpose of an argument: their repairs are reported last."""
