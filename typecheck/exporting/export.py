"""`export`: an ExportedProgram that takes exactly the sizes that the model takes.

The accepted sizes are known before torch traces, so the example, the `dynamic_shapes` and the checks of the
program follow from them:

1. The example has sizes that the tracer does not mistake for something special (example_sizes.py).
2. torch traces (tracing.py), loops over sizes as scans where that is possible (scans.py). Its input is
   which sizes vary and between which bounds, and it finds the relations between them itself: named dims
   that share or derive add no new fact, and make torch give up where it cannot follow the proof.
3. The graph is checked under the sizes of its inputs alone (program_needs.py): where it needs more than the
   model does, the trace has added a requirement, and the sizes it excludes are given up and reported.
4. The same holds for equations that torch made of sizes, since the graph may hold a number in place of a
   size. Other guards of torch's that the model does not need are dropped, unless step 6 finds that they
   matter.
5. The program gets the checks that follow, in place of those that torch made (program_checks.py).
6. It is run next to the model, at the ends of the ranges and where torch's own guards would have refused it.
   Where the two differ, all of torch's guards stay.
"""

from __future__ import annotations

import copy
import gc
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from torch.export import ExportedProgram

from ...constraints.engine.generate import Rules
from ...constraints.ir.language import Fact
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import Inputs, SpecError
from ...constraints.ir.system import Answer, Path
from ...constraints.terms.dims import Dim
from ...constraints.terms.formula import Formula, all_of, any_of, comparisons, conjuncts, negate
from ...solver.facts.refine import simplify
from ...solver.tactics.judge import Budget, Judge
from ...tracer.host.exports import checks_of, set_checks
from ...tracer.readers.exported import GraphError
from ..checking.api import Examined, default_rules, examine
from ..checking.clock import Progress
from ..checking.target import TargetError
from ..checking.trial import show
from ..dim_specs.dynamic_shapes import DynamicShapes, GivenUp, of_report, tree_of
from ..dim_specs.specs import DimSpec, Hint, Size
from ..dim_specs.torch_dims import to_torch
from ..facade import Report
from .attempts.comparing import Comparison
from .attempts.program_needs import Needs, ProgramRequirement, needs
from .attempts.second_traces import SecondTraces, same
from .attempts.wanted import Wanted
from .attempts.ways import WAYS, may_scan, ways_apart
from .examples import example_inputs
from .examples.example_sizes import example_sizes, inner_terms
from .graphs.inner_sizes import bounding, inner_sizes, paths_of
from .graphs.program_checks import install
from .tracing.broadcasting import never, unsure
from .tracing.tracing import Trace, traced

SECONDS: Final = 20.0
"""The time limit, in seconds, of a batch of questions to the solver."""
PATIENCE: Final = 8.0
"""A second trace may take this many times as long as the first: at size 1 torch is slower."""

Sizes: TypeAlias = Mapping[str, int]

_HOW: Final = (
    ("loops are scans, and no size is special", True, True),
    ("no size is special", True, False),
    ("0 and 1 are special", False, False),
)
"""The attempts, in order: a name, whether 0 and 1 are like other sizes, and whether loops become scans."""


@dataclass(frozen=True, slots=True)
class ExtraRequirements:
    """The requirements on sizes beyond those of the wanted sizes."""

    found: Needs
    """All known requirements of the program."""
    graph: list[ProgramRequirement]
    """The requirements of its graph."""
    trace: list[ProgramRequirement]
    """The requirements of the checks that the trace has added."""
    kept: list[ProgramRequirement]
    """Those of `trace` that have to stay."""


class ExportError(TargetError):
    """Raised where torch cannot trace the model, whichever sizes it is given, with torch's message at each
    attempt.
    """


class _NotWider(ExportError):
    """A trace of another way than the first is no better."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of `torch.export.export`."""

    how: str
    example: Mapping[str, int]
    error: str = ""
    """torch's error; empty where it exported."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A program, and what is known of it."""

    program: ExportedProgram
    report: Report
    """The report on the model before it was exported."""
    shapes: DynamicShapes
    """The largest spec in torch's language; the program may take more than it says."""
    accepts: Formula
    """The sizes that the program takes, among those that the assumptions declare: exactly, unless `given_up`
    names a check that formulas cannot say.
    """
    exact: bool
    """True if those are all the sizes that the model takes."""
    given_up: tuple[GivenUp, ...]
    """The sizes that the model takes and the program refuses, with the reasons."""
    checks: tuple[str, ...]
    """The program's checks of its inputs, as Python over `L['x'].size()[0]`."""
    example: Mapping[str, int]
    """The sizes that it was traced with."""
    attempts: tuple[Attempt, ...]
    tried: tuple[Mapping[str, int], ...] = ()
    """The sizes at which it was run next to the model, with the same results."""
    refused: tuple[Mapping[str, int], ...] = ()
    """The sizes at which it was run and refused its inputs."""
    sizes: Mapping[str, Fact] = field(default_factory=dict)
    """The known facts about each size inside the program, where finite bounds were requested."""


def export(
    model: Any,
    inputs: Inputs | None = None,
    assume: str | Iterable[str] = (),
    *,
    finite: int | Mapping[str, int] | None = None,
    budget_s: float = 60.0,
    rules: Rules | None = None,
    progress: Progress | None = None,
) -> Exported:
    """The model as an ExportedProgram that takes all sizes that the model takes, and refuses all others.

    - `model`, `inputs`, `assume`, `rules`: as for `check`.
    - `finite`: the largest value of symbols that have no upper bound, for consumers that need one; then
      `sizes` says what every size inside the program is bounded by.

    Raises SpecError and TargetError as `check` does; TargetError where no declared sizes run; ExportError
    where torch cannot trace the model.
    """
    if isinstance(model, ExportedProgram) or str(model).endswith(".pt2"):
        raise TargetError("this is exported already", "export takes a model or a function")
    tell = progress or (lambda step: None)
    assumed = [assume] if isinstance(assume, str) else [*assume]
    examined = _examined(model, inputs, assumed, budget_s, rules, tell)
    if finite is not None:
        assumed += bounding(examined.report, finite)
        examined = _examined(model, inputs, assumed, budget_s, rules, tell)
    tell("export")
    found = _Exporting(examined, default_rules() if rules is None else rules, tell).exported()
    gc.collect()  # torch leaves knots that hold all weights, and Python looks for them far too rarely
    if finite is None:
        return found
    return replace(found, sizes=inner_sizes(examined.system, Judge(Budget(SECONDS)), found.accepts))


def _examined(
    model: Any,
    inputs: Inputs | None,
    assume: list[str],
    budget_s: float,
    rules: Rules | None,
    tell: Progress,
) -> Examined:
    """Examines the model with its paths kept separate, if there are not too many, since a graph holds one
    path.
    """
    return examine(model, inputs, assume, budget_s=budget_s, rules=rules, progress=tell, ways=WAYS)


# ---- from the model to the program


class _Exporting:
    def __init__(self, examined: Examined, rules: Rules, tell: Progress) -> None:
        self.examined, self.rules, self.tell = examined, rules, tell
        self.spec: Spec = examined.spec
        self.model = examined.target.value
        self.judge = Judge(Budget(4 * SECONDS))
        self.report = report = examined.report
        shapes = of_report(report)
        if shapes is None:
            raise TargetError(f"{report.target} runs for none of the declared inputs", "check says why")
        self.shapes = shapes
        self.wanted = Wanted(self.spec, self.judge, report.supposed, shapes.way)

    def exported(self) -> Exported:
        paths = self._paths(self.shapes)
        self.wanted.inner = inner_terms(self.spec, paths)
        sizes = example_sizes(self.shapes.box, self.spec, paths, self.wanted.candidates())
        if any(path.turns for path in self.examined.system.paths):
            self._tell_ways(sizes)
            sizes = example_sizes(self.shapes.box, self.spec, paths, self.wanted.candidates())
        fill = self._fill(sizes)
        attempts: list[Attempt] = []
        spec = DimSpec(tree_of(self.spec, self._varies, self._varies))
        loops_over_sizes = any(map(may_scan, self.examined.system.paths))
        for how, oblivious, loops in _HOW if loops_over_sizes else _HOW[1:]:

            def trace(
                sizes: Sizes,
                seconds: float = math.inf,
                oblivious: bool = oblivious,
                loops: bool = loops,
            ) -> Trace:
                given = example_inputs.arguments(self.model, self.spec, sizes, fill)
                either, certain = (self.wanted.either, self.wanted.certain) if oblivious else (never, unsure)
                shapes = to_torch(spec, *given, self.model)[0]
                with self.judge.resting():
                    return traced(self.model, given, shapes, oblivious, either, certain, loops, seconds)

            way, started = (self.wanted.way, self.wanted.recorded), time.monotonic()
            try:
                found = trace(sizes)
                patience = max(SECONDS, PATIENCE * (time.monotonic() - started))
            except Exception as error:  # noqa: BLE001 (torch raises anything; it is told)
                attempts.append(Attempt(how, sizes, f"{type(error).__name__}: {error}"))
                continue
            second = SecondTraces(self.spec, self.judge, self.wanted, self._needs, trace, patience)
            try:
                try:
                    return self._finished(found, second, sizes, fill, how, attempts, others=True)
                except _NotWider:
                    self.wanted.way, self.wanted.recorded = way
                    return self._finished(found, second, sizes, fill, how, attempts, others=False)
            except ExportError as error:
                if not found.scans:
                    raise
                self.wanted.way, self.wanted.recorded = way
                attempts.append(Attempt(how, sizes, f"{type(error).__name__}: {error}"))
        said_by_torch = "; ".join(f"{a.how}: {a.error.splitlines()[0]}" for a in attempts)
        raise ExportError(f"torch.export cannot trace {self.report.target}", said_by_torch)

    def _paths(self, shapes: DynamicShapes) -> list[Path]:
        """Returns the recorded paths that these sizes take."""
        return paths_of(self.examined.system, self.judge, shapes.formula)

    def _tell_ways(self, sizes: Sizes) -> None:
        """Selects the best of some paths, where the model has too many to keep them separate.

        The path of these sizes is among them.
        """
        ways = ways_apart(self.model, self.wanted, self.rules, sizes)
        shapes = of_report(replace(self.report, ways=ways)) if ways else None
        if shapes is not None:
            self.shapes = shapes
            self.wanted.go(shapes.way)

    def _fill(self, sizes: Sizes) -> str:
        """Returns the fill of the inputs with which the model runs, at these sizes or at smaller ones, which
        cost less.
        """
        failed = ""
        known = sizes, self.report.runs_at or sizes
        sizes = min(known, key=lambda at: example_inputs.elements(self.spec, at))
        for fill in example_inputs.FILLS:
            try:
                example_inputs.run(self.model, example_inputs.arguments(self.model, self.spec, sizes, fill))
            except Exception as error:  # noqa: BLE001 (the user's program may raise anything; it is told)
                failed = failed or f"{type(error).__name__}: {error}"
                continue
            return fill
        raise TargetError(f"{self.report.target} fails at {show(sizes)}: {failed}")

    def _varies(self, dim: Dim) -> Size:
        """Returns the size as torch is to treat it: its bounds, or the number that it always is."""
        if (fixed := self.wanted.fact(self.wanted.all)(dim)).divisor == 0:
            return fixed.remainder
        known = self.wanted.fact(self.wanted.accepted)(dim)
        return Hint("AUTO", max(known.min or 0, 0), known.max)

    # --- what the program takes

    def _finished(
        self,
        trace: Trace,
        second: SecondTraces,
        example: Sizes,
        fill: str,
        how: str,
        attempts: Sequence[Attempt],
        others: bool,
    ) -> Exported:
        """The program with its checks: of this trace, or one that holds for more, if `others` may be taken.
        Raises ExportError where it is not the model, _NotWider where the other is not, or holds for less.
        """
        self.tell("verify")
        way, given = self.wanted.recorded, trace
        trace, sizes = self._widest(given, example, second, others)
        failure = ExportError if trace is given else _NotWider  # the one that was given is as it was
        try:
            asked = self._asked(trace, second, fill)
            kept = asked.kept
            if trace is not given and not self._goes(way, (*asked.graph, *kept)):
                raise failure("a trace of another way through the model asks for more on this one")
        except (GraphError, SpecError) as error:
            raise failure(f"the exported program cannot be read: {error}") from error
        found, program, certain = asked.found, trace.program, self._certain(asked.found)
        unchecked = copy.deepcopy(program.graph_module.graph)
        while True:
            taken = [*asked.graph, *kept]
            dropped = [r for r in asked.trace if r not in kept]
            accepted = simplify(self.judge, self.spec.domain, [*self.wanted.all, *(r.formula for r in taken)])
            whole = all_of((*self.wanted.domain, *conjuncts(accepted)))
            try:
                checks = install(program, self.spec, whole, self.wanted.fact([accepted]), found.unread)
            except GraphError as error:
                raise failure(f"the exported program cannot be given its checks: {error}") from error
            trial = Comparison(self.model, self.spec, program, accepted, fill, not certain, self.judge)
            back = [r for r in dropped if not trial.agree_where(negate(r.formula))]
            if not back and not trial.wrong:
                trial.at_the_ends(trace.scans > 0)
            if trial.wrong and not dropped:
                raise failure(f"the exported program is not the model: {trial.wrong}")
            if not back and not trial.wrong:
                break
            kept += dropped if trial.wrong else back
            program.graph_module.graph = copy.deepcopy(unchecked)
        given_up = (*self._given_up(self.wanted.needed(taken)), *_uncertain(found))
        exact = certain and self.wanted.is_all(accepted)
        return Exported(
            program, self.report, self.shapes, accepted, exact, given_up, checks, sizes,
            (*attempts, Attempt(how, sizes)), tuple(trial.same), tuple(trial.refused),
        )  # fmt: skip

    def _asked(self, trace: Trace, second: SecondTraces, fill: str) -> ExtraRequirements:
        """Returns the requirements of the trace, on the wanted path or on more paths than that."""
        straight = bool(self.wanted.way) and self._straight(trace)
        self._few_more(trace, second, fill, straight)
        return self._asked_of_all(trace, second, straight)

    def _goes(self, way: Formula, asked: Sequence[ProgramRequirement]) -> bool:
        """Returns whether the requirements hold for all sizes that take this path."""
        known = (*self.wanted.domain, *self.wanted.accepted, way)
        return self.judge.ask(all_of(r.formula for r in asked), known) is Answer.ALWAYS

    def _asked_of_all(self, trace: Trace, second: SecondTraces, straight: bool) -> ExtraRequirements:
        """Returns the requirements of the trace on all sizes that are wanted now."""
        found = self._needs(trace, self.wanted.all)
        asked = self.wanted.new(found.graph, self.wanted.all)
        extra = self.wanted.new(found.checks, [*self.wanted.all, *(r.formula for r in asked)])
        certain, together = self._certain(found), [r.formula for r in extra]
        kept = [r for r in extra if not certain or self.wanted.fixes(r.formula, together)]
        if straight and certain:
            way = self.wanted.recorded
            kept += [replace(r, formula=any_of((way, r.formula))) for r in extra if r not in kept]
        return ExtraRequirements(found, asked, extra, second.not_accidental(kept, asked, trace))

    def _needs(self, trace: Trace, given: Sequence[Formula]) -> Needs:
        with self.judge.resting():  # it has a judge and a budget of its own
            return needs(trace, self.spec, given, self.rules, SECONDS)

    def _certain(self, found: Needs) -> bool:
        return found.certain and self.report.accepts.exact and not found.unread

    def _widest(
        self, trace: Trace, sizes: Sizes, second: SecondTraces, others: bool
    ) -> tuple[Trace, Sizes]:
        """Returns the trace, or one at other sizes that holds where this one does and on other paths of the
        model as well.

        A trace with a padding does, for example, where the padding may be 0. The paths that such a trace
        covers count as one path. `others`: whether another trace may be returned.
        """
        started, known = time.monotonic(), (*self.wanted.domain, *self.wanted.accepted)
        covered = [self.wanted.recorded]
        for way in sorted(self.report.ways, key=_strictness) if self.wanted.way else ():
            if time.monotonic() - started > 2 * SECONDS:  # to find sizes of one way may take half of that
                break
            if way == self.shapes.way:
                continue
            beyond = [*map(negate, covered)]
            shapes = of_report(replace(self.report, ways=(way,)), beyond)
            if shapes is None:
                continue
            at = example_sizes(shapes.box, self.spec, self._paths(shapes))
            if (other := second.at(at)) is None:
                continue
            if same(trace, other) or second.same_where((*known, way, *beyond), trace, other):
                covered.append(way)
            elif others and second.same_where((*known, any_of(covered)), trace, other):
                covered.append(way)
                trace, sizes = other, at
        self.wanted.go(any_of(covered))
        return trace, sizes

    def _few_more(self, trace: Trace, second: SecondTraces, fill: str, straight: bool) -> None:
        """Runs the program for the few values of a size for which the model branches, such as `t == 1`. If it
        does the same as the model for all of them, the path's condition on that size is dropped.
        """
        few = {formula: values for formula in self.wanted.way if (values := self.wanted.exceptions(formula))}
        if not few:
            return
        way, program = self.wanted.way, trace.program
        graph, checks = copy.deepcopy(program.graph_module.graph), checks_of(program)
        self.wanted.way = [formula for formula in way if formula not in few]
        asked = self._asked_of_all(trace, second, straight)
        taken = [r.formula for r in (*asked.graph, *asked.kept)]
        whole = all_of((*self.wanted.domain, *self.wanted.all, *taken))
        install(program, self.spec, whole, self.wanted.fact([whole]), asked.found.unread)
        trial = Comparison(self.model, self.spec, program, whole, fill, True, self.judge)
        agreed = self._certain(asked.found) and all(
            trial.meet_where(region) for values in few.values() for region in values
        )
        program.graph_module.graph = graph
        set_checks(program, *checks)
        if not agreed or trial.wrong:
            self.wanted.way = way

    def _straight(self, trace: Trace) -> bool:
        """Returns whether the trace went straight on where the recorded model branched: at `max(n, 1)`, for
        example.

        torch has a guard for each of its decisions. So a condition of the path that no guard implies is
        dropped from the wanted ones. Outside the path the guards stay, since one may be a branch of the
        model; on the path itself no guard is a branch.
        """
        found = self._needs(trace, self.wanted.accepted)
        decided = [r.formula for r in (*found.graph, *found.checks)]
        known = (*self.wanted.domain, *self.wanted.accepted, *decided)
        kept = [formula for formula in self.wanted.way if self.judge.ask(formula, known) is Answer.ALWAYS]
        straight = len(kept) < len(self.wanted.way)
        self.wanted.way = kept
        return straight

    def _given_up(self, taken: Sequence[ProgramRequirement]) -> Iterator[GivenUp]:
        yield from (g for g in self.shapes.given_up if g.cause == "way" and self.wanted.way)
        for requirement in taken:
            where = f" ({requirement.origin}: {requirement.origin.code})" if requirement.origin.file else ""
            reason = f"the trace holds only where {requirement.formula}: {requirement.reason}{where}"
            yield GivenUp("trace", str(requirement.formula), str(requirement.formula), reason)


def _strictness(way: Formula) -> int:
    """Less where more differs, as where more has a remainder."""
    return -sum(comparison.op == "!=" for comparison in comparisons(way))


def _uncertain(found: Needs) -> Iterator[GivenUp]:
    """Yields the conditions under which the program may refuse inputs, and which formulas cannot express."""
    for guard in found.unread:
        yield GivenUp("trace", "", guard, f"the trace holds only where {guard}")
    if not found.certain:
        yield GivenUp("trace", "", "", "the graph may need more of its sizes than is known")
