"""The search for the repairs of the findings of a report, within a time.

The line of the finding is searched first, then the lines that led to it. A literal there may be replaced:
where it is a size, the solver computes which values are right (`solver/repair.py`); where it is an axis or a
stride, its neighbours are tried. An operand may also be transposed, or lack a dimension. For every change,
the changed program is recorded anew, decided, and run at examples before the repair is reported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.language import Tensor
from ...constraints.ir.program import Origin
from ...constraints.ir.spec import Spec
from ...constraints.ir.system import System
from ...constraints.terms.dims import Dim
from ...constraints.terms.formula import Formula, all_of, free_symbols
from ...constraints.terms.formula_text import parse_formula
from ...solver.decide import decide, requirements
from ...solver.repair import fillings
from ...solver.tactics.judge import Budget, Judge
from ...tracer.patches.edits import CannotApply, Edit, Resized, Rewritten, WithOpenNumbers, closed
from ..facade import Report
from ..report.codes import Code
from ..report.report import Finding, Link, Repair, Verdict
from .changes import Changes, RankedChange
from .constructors import where_numbers_stand, with_constructors
from .declarations import assumed, declared, redeclared, relation, sizes, widened, with_dtypes
from .places import call, calls, leaves_most, line, places
from .proving import Proved, Prover, left
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
UNTIDY: Final = 4
"""A change that leaves other lines refusing something is reported unless one leaves fewer, of a rank at most
this much worse.
"""
REPAIRABLE: Final = frozenset({Code.SHAPE_MISMATCH, Code.CONDITION, Code.RAISES})


def repaired(report: Report, target: Any, spec: Spec, system: System, rules: Rules) -> Report:
    """The report with repairs at those of its findings that have one."""
    report = with_constructors(report, target)
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


@dataclass(frozen=True, slots=True)
class _Found:
    """A change of the program that removes a finding."""

    rank: int
    edit: Edit
    proved: Proved
    nth: int
    repair: Repair

    @property
    def order(self) -> tuple[int, ...]:
        proved = self.proved
        return not self.repair.safe, proved.left, self.rank, proved.strange, proved.length, self.nth

    @property
    def unsafe(self) -> _Found:
        return replace(self, repair=replace(self.repair, safe=False))


class _RepairSearch:
    """Looks for repairs of one program."""

    def __init__(self, report: Report, target: Any, spec: Spec, system: System, rules: Rules) -> None:
        self.report, self.target, self.spec, self.system = report, target, spec, system
        self.relation: Formula = True
        """The equations between sizes of inputs whose declaration removed a finding."""
        self.before = decide(system, Budget(SECONDS_EACH))
        self.prover = Prover(target, spec, rules, system, self.before, report.fails_at)

    @property
    def possible(self) -> bool:
        refused = self.report.verdict in (Verdict.REFINED, Verdict.REFUTED)
        return refused and self.before.verdict in ("refined", "refuted")

    def repairs(self, finding: Finding, until: float) -> list[Repair]:
        """Returns the repairs that remove the finding. Those that keep the meaning of the program come first,
        and one that may change it is never alone.
        """
        first = [*self._of_the_spec(finding, until)]
        if self.relation is not True and not first and self._follows(finding, self.relation):
            return [Repair(f"declare {self.relation}", Origin())]
        found = [*self._of_the_program(finding, until)]
        unsure = not found or not found[0].repair.safe or isinstance(found[0].edit, Resized)
        sized = assumed(sizes(finding, self.spec), finding, self.prover, until) if unsure else None
        refused = self.before.verdict == "refuted" and len(found) < MAX_REPAIRS and not first
        other = [*redeclared(self.prover, until)] if refused else []
        alone = not any(f.repair.safe for f in found) and sized is None and not first
        plain = declared(finding, self.before, alone)
        safe = [f.repair for f in found if f.repair.safe]
        unsafe = [f.repair for f in found if not f.repair.safe]
        last = [plain] if plain is not None and sized is None and not first else []
        if sized is not None or (unsure and other):
            told = [*first, *([sized] if sized else []), *other, *safe, *last]
        else:
            told = [*first, *safe, *last, *other]
        return [*told, *unsafe] if told else []

    def _of_the_spec(self, finding: Finding, until: float) -> Iterator[Repair]:
        """Yields declarations that correct a spec that is wider than the author can have meant, or of another
        dtype.
        """
        equations = relation(finding, self.spec)
        if (declaration := assumed(equations, finding, self.prover, until)) is not None:
            self.relation = all_of((self.relation, equations))
            yield declaration
        elif finding.code is Code.SHAPE_MISMATCH:
            yield from with_dtypes(finding, self.prover, until)

    def _follows(self, finding: Finding, given: Formula) -> bool:
        """Returns whether what the finding asks for follows from a declaration."""
        if not finding.condition:
            return False
        domain = self.spec.domain.assumptions
        return Judge(Budget(1.0)).follows(parse_formula(finding.condition), (*domain, given))

    def _of_the_program(self, finding: Finding, until: float) -> list[_Found]:
        """Returns changes of the program, the most likely first."""
        found: dict[object, _Found] = {}
        best = 99
        postponed: list[tuple[RankedChange, Edit]] = []
        for candidate in sorted(self._candidates(finding), key=lambda c: c.rank):
            if len(found) >= MAX_REPAIRS or candidate.rank > best + ALTERNATIVES or time.monotonic() > until:
                break
            if candidate.place in found:
                continue
            for edit in self._concrete(candidate.edit, finding, until):
                if _is_trivial(candidate, edit):
                    postponed.append((candidate, edit))
                elif (proved := self.prover.gone(edit, finding, until)) is not None:
                    found[candidate.place] = self._found(candidate, edit, proved, finding, len(found))
                    best = min(best, candidate.rank + (UNTIDY if proved.left else 0))
                    break
        natural = declared(finding, self.before, False) is not None
        for candidate, edit in () if found or natural else postponed:
            if not found and (proved := self.prover.gone(edit, finding, until)) is not None:
                found[candidate.place] = self._found(candidate, edit, proved, finding, 0)
        keeping = any(f.proved.keeps and f.repair.safe for f in found.values())
        judged = [f if f.proved.keeps or not keeping else f.unsafe for f in found.values()]
        return sorted(judged, key=lambda f: f.order)

    def _found(
        self, candidate: RankedChange, edit: Edit, proved: Proved, finding: Finding, nth: int
    ) -> _Found:
        safe = not _is_trivial(candidate, edit) and not _drops(edit) and not self._resamples(edit, finding)
        repair = replace(told(self.target, edit, candidate.origin), safe=safe, outputs=proved.outputs)
        return _Found(candidate.rank, edit, proved, nth, repair)

    def _resamples(self, edit: Edit, finding: Finding) -> bool:
        """Returns whether the change interpolates what may be no picture, such as the features of tokens."""
        resamples = isinstance(edit, Rewritten) and ".interpolate(" in edit.text
        return resamples and max(map(len, self._shapes(finding)), default=0) < 4

    def _shapes(self, finding: Finding) -> list[tuple[Dim, ...]]:
        """Returns the shapes of the operands of the call that is refused."""
        return [
            value.shape
            for node, path in calls(self.system, finding)
            for ref in node.refs
            if isinstance(value := path.values[ref.id], Tensor)
        ]

    def _candidates(self, finding: Finding) -> Iterator[RankedChange]:
        for distance, link in enumerate(places(finding, self.report)):
            yield from Changes(self.target, link, distance).candidates()
        refused = Changes(self.target, Link(finding.op, "", finding.origin), 0)
        yield from refused.projections(self._shapes(finding))

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
        asked = tuple(r for r in asked if not holes.keys().isdisjoint(free_symbols(r.needs)))
        these = tuple(r for r in asked if line(r.origin) not in others)
        refused = tuple(r for r in asked if call(r.origin) == call(finding.origin))
        seen: list[dict[str, int]] = []
        for wanted in dict.fromkeys(filter(None, (asked, these, refused))):
            needs = [r.needs for r in wanted]
            for values in islice(fillings(needs, domain, holes, judge), MAX_FILLINGS):
                if values not in seen:
                    seen.append(values)
                    yield where_numbers_stand(self.target, closed(edit, values))


def _is_trivial(candidate: RankedChange, edit: Edit) -> bool:
    """Returns whether the change is a size of 1 or a stride of 1, which may undo the purpose of the code."""
    if candidate.is_axis:
        return False
    value = getattr(edit, "value", None)
    if getattr(edit, "text", "") == "1":
        return True
    return type(value) is int and value == _LEAST.get(getattr(edit, "parameter", ""), 1)


def _drops(edit: Edit) -> bool:
    """Returns whether the change averages elements that the program had."""
    return isinstance(edit, Rewritten) and ".mean(" in edit.text


_LEAST: Final = {"padding": 0}
"""Values, other than 1, that undo the purpose of an argument: their repairs are reported last."""
