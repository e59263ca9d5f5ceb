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
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

import torch.export
from torch.export import ExportedProgram

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.language import Fact
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import Inputs, SpecError
from ...constraints.terms.formula import Formula, all_of, any_of, comparisons, conjuncts, negate
from ...solver.facts.refine import simplify
from ...solver.tactics.judge import Budget, Judge
from ...tracer.host.exports import checks_of, set_checks
from ...tracer.host.releases import unknown
from ...tracer.readers.exported import GraphError
from ..checking.api import Examined, default_rules, examine
from ..checking.clock import Progress
from ..checking.releases import known_release
from ..checking.trial import show
from ..dim_specs.dynamic_shapes import DynamicShapes, GivenUp, of_report, tree_of
from ..dim_specs.specs import DimSpec
from ..dim_specs.torch_dims import to_torch
from ..facade import Report
from ..targets.target_error import TargetError
from .attempts.comparing import Comparison
from .attempts.goal import Goal
from .attempts.program_needs import Needs, ProgramRequirement, needs
from .attempts.second_traces import SecondTraces, same
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


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to call `torch.export.export`."""

    name: str
    oblivious: bool
    """True if sizes of 0 and 1 are treated like others."""
    loops: bool
    """True if loops over sizes become scans."""


STRATEGIES: Final = (
    Strategy("loops are scans, and no size is special", oblivious=True, loops=True),
    Strategy("no size is special", oblivious=True, loops=False),
    Strategy("0 and 1 are special", oblivious=False, loops=False),
)
"""In the order in which they are tried: the first that gives a program wins."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trace of the model, which may become the program."""

    trace: Trace
    example: Sizes
    """The sizes that it was traced with."""
    goal: Goal
    straight: bool = False
    """True if torch went straight on where the recorded model branched: at `max(n, 1)`, for example."""


@dataclass(frozen=True, slots=True)
class ExtraRequirements:
    """The requirements on sizes beyond those of the goal."""

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

    def save(self, file: str | os.PathLike[str]) -> None:
        """Saves the program as a `.pt2`."""
        torch.export.save(self.program, os.fspath(file))


@known_release()
def export(
    model: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *,
    finite: int | Mapping[str, int] | None = None, budget_s: float = 60.0, rules: Rules | None = None,
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
    found = _exporting(examined, default_rules() if rules is None else rules, tell).exported()
    gc.collect()  # torch leaves knots that hold all weights, and Python looks for them far too rarely
    if finite is None:
        return found
    return replace(found, sizes=inner_sizes(examined.system, Judge(Budget(SECONDS)), found.accepts))


def _examined(
    model: Any, inputs: Inputs | None, assume: list[str], budget_s: float, rules: Rules | None,
    tell: Progress,
) -> Examined:
    """Examines the model with its paths kept separate, if there are not too many, since a graph holds one
    path.
    """
    return examine(model, inputs, assume, budget_s=budget_s, rules=rules, progress=tell, ways=WAYS)


# ---- from the model to the program


def _exporting(examined: Examined, rules: Rules, tell: Progress) -> _Exporting:
    """Returns the goal of an export, with an example. Raises TargetError where no declared sizes run."""
    spec, report, model = examined.spec, examined.report, examined.target.value
    judge = Judge(Budget(4 * SECONDS))
    shapes = of_report(report)
    if shapes is None:
        raise TargetError(f"{report.target} runs for none of the declared inputs", "check says why")
    paths = paths_of(examined.system, judge, shapes.formula)
    accepted, inner = conjuncts(report.supposed), inner_terms(spec, paths)
    goal = Goal(spec, judge, accepted, shapes.way, conjuncts(shapes.way), inner)
    example = example_sizes(shapes.box, spec, paths, goal.candidates())
    if any(path.turns for path in examined.system.paths):  # too many paths to keep them separate
        ways = ways_apart(model, goal, rules, example)
        if ways and (best := of_report(replace(report, ways=ways))) is not None:
            shapes, goal = best, goal.along(best.way)
        example = example_sizes(shapes.box, spec, paths, goal.candidates())
    fill = _fill(model, spec, report, example)
    inputs = DimSpec(tree_of(spec, goal.varies, goal.varies))
    return _Exporting(examined, model, spec, report, rules, tell, judge, shapes, goal, example, fill, inputs)


def _fill(model: Any, spec: Spec, report: Report, example: Sizes) -> str:
    """Returns the fill of the inputs with which the model runs, at these sizes or at smaller ones, which cost
    less.
    """
    failed = ""
    sizes = min((example, report.runs_at or example), key=lambda at: example_inputs.elements(spec, at))
    for fill in example_inputs.FILLS:
        try:
            example_inputs.run(model, example_inputs.arguments(model, spec, sizes, fill))
        except Exception as error:  # noqa: BLE001 (the user's program may raise anything; it is told)
            failed = failed or f"{type(error).__name__}: {error}"
            continue
        return fill
    raise TargetError(f"{report.target} fails at {show(sizes)}: {failed}")


@dataclass(frozen=True, slots=True)
class _Exporting:
    """A model, the goal of its export, and what all strategies share."""

    examined: Examined
    model: Any
    spec: Spec
    report: Report
    rules: Rules
    tell: Progress
    judge: Judge
    shapes: DynamicShapes
    goal: Goal
    example: Sizes
    fill: str
    inputs: DimSpec
    """The sizes of the inputs as torch is to treat them."""

    def exported(self) -> Exported:
        """Returns the program of the first strategy that gives one. Raises ExportError where none does."""
        attempts: list[Attempt] = []
        loops_over_sizes = any(map(may_scan, self.examined.system.paths))
        for strategy in STRATEGIES if loops_over_sizes else STRATEGIES[1:]:
            started, again = time.monotonic(), partial(self._traced, strategy)
            try:
                trace = again(self.example)
                patience = max(SECONDS, PATIENCE * (time.monotonic() - started))
            except Exception as error:  # torch raises anything; it is told
                if unknown(error):
                    raise
                attempts.append(Attempt(strategy.name, self.example, f"{type(error).__name__}: {error}"))
                continue
            second = SecondTraces(self.spec, self.judge, self._needs, again, patience)
            try:
                found = self._best(Candidate(trace, self.example, self.goal), second)
            except ExportError as error:
                if not trace.scans:
                    raise
                attempts.append(Attempt(strategy.name, self.example, f"{type(error).__name__}: {error}"))
            else:
                return replace(found, attempts=(*attempts, Attempt(strategy.name, found.example)))
        said_by_torch = "; ".join(f"{a.how}: {a.error.splitlines()[0]}" for a in attempts)
        raise ExportError(f"torch.export cannot trace {self.report.target}", said_by_torch)

    def _traced(self, strategy: Strategy, sizes: Sizes, seconds: float = math.inf) -> Trace:
        """Returns the trace at these sizes. Raises anything that torch raises, and TimeoutError."""
        given = example_inputs.arguments(self.model, self.spec, sizes, self.fill)
        oblivious, goal = strategy.oblivious, self.goal
        either, certain = (goal.either, goal.certain) if oblivious else (never, unsure)
        shapes = to_torch(self.inputs, *given, self.model)[0]
        with self.judge.resting():
            return traced(self.model, given, shapes, oblivious, either, certain, strategy.loops, seconds)

    # --- what the program takes

    def _best(self, first: Candidate, second: SecondTraces) -> Exported:
        """Returns the program of a trace that holds for more paths than the first, or else that of the first.
        Raises ExportError where neither is the model.
        """
        self.tell("verify")
        wider = self._widest(first, second, others=True)
        try:
            return self._checked(wider, first, second)
        except ExportError:
            if wider.trace is first.trace:
                raise
        return self._checked(self._widest(first, second, others=False), first, second)

    def _checked(self, candidate: Candidate, first: Candidate, second: SecondTraces) -> Exported:
        """Returns the candidate's program with its checks. Raises ExportError where it is not the model, or
        holds for less than the first.
        """
        try:
            candidate = self._few_more(self._straight(candidate), second)
            asked = self._asked(candidate, second)
            if candidate.trace is not first.trace and not self._goes(first.goal.recorded, asked):
                raise ExportError("a trace of another path through the model requires more on this one")
        except (GraphError, SpecError) as error:
            raise ExportError(f"the exported program cannot be read: {error}") from error
        trace, goal, kept = candidate.trace, candidate.goal, asked.kept
        found, program, certain = asked.found, trace.program, self._certain(asked.found)
        unchecked = copy.deepcopy(program.graph_module.graph)
        while True:
            taken = [*asked.graph, *kept]
            dropped = [r for r in asked.trace if r not in kept]
            accepted = simplify(self.judge, self.spec.domain, [*goal.all, *(r.formula for r in taken)])
            whole = all_of((*goal.domain, *conjuncts(accepted)))
            try:
                checks = install(program, self.spec, whole, goal.fact([accepted]), found.unread)
            except GraphError as error:
                raise ExportError(f"the exported program cannot be given its checks: {error}") from error
            trial = Comparison(self.model, self.spec, program, accepted, self.fill, not certain, self.judge)
            back = [r for r in dropped if not trial.agree_where(negate(r.formula))]
            if not back and not trial.wrong:
                trial.at_the_ends(trace.scans > 0)
            if trial.wrong and not dropped:
                raise ExportError(f"the exported program differs from the model: {trial.wrong}")
            if not back and not trial.wrong:
                break
            kept += dropped if trial.wrong else back
            program.graph_module.graph = copy.deepcopy(unchecked)
        given_up = (*self._given_up(goal, taken), *_uncertain(found))
        exact = certain and goal.follows(accepted, goal.accepted)
        return Exported(
            program, self.report, self.shapes, accepted, exact, given_up, checks, candidate.example,
            (), tuple(trial.same), tuple(trial.refused),
        )  # fmt: skip

    def _goes(self, way: Formula, asked: ExtraRequirements) -> bool:
        """Returns whether the requirements hold for all sizes that take this path."""
        needed = all_of(r.formula for r in (*asked.graph, *asked.kept))
        return self.goal.follows(needed, (*self.goal.accepted, way))

    def _asked(self, candidate: Candidate, second: SecondTraces) -> ExtraRequirements:
        """Returns the requirements of the trace on all sizes of its goal."""
        goal, trace = candidate.goal, candidate.trace
        found = self._needs(trace, goal.all)
        asked = goal.new(found.graph, goal.all)
        extra = goal.new(found.checks, [*goal.all, *(r.formula for r in asked)])
        certain, together = self._certain(found), [r.formula for r in extra]
        kept = [r for r in extra if not certain or goal.fixes(r.formula, together)]
        if candidate.straight and certain:
            way = goal.recorded
            kept += [replace(r, formula=any_of((way, r.formula))) for r in extra if r not in kept]
        return ExtraRequirements(found, asked, extra, second.not_accidental(goal, kept, asked, trace))

    def _needs(self, trace: Trace, given: Sequence[Formula]) -> Needs:
        with self.judge.resting():  # it has a judge and a budget of its own
            return needs(trace, self.spec, given, self.rules, SECONDS)

    def _certain(self, found: Needs) -> bool:
        return found.certain and self.report.accepts.exact and not found.unread

    def _widest(self, first: Candidate, second: SecondTraces, others: bool) -> Candidate:
        """Returns the trace, or one at other sizes that holds where this one does and on other paths of the
        model as well.

        A trace with a padding does, for example, where the padding may be 0. The paths that such a trace
        covers count as one path. `others`: whether another trace may be returned.
        """
        started, goal, trace, sizes = time.monotonic(), first.goal, first.trace, first.example
        known = (*goal.domain, *goal.accepted)
        covered = [goal.recorded]
        for way in sorted(self.report.ways, key=_strictness) if goal.way else ():
            if time.monotonic() - started > 2 * SECONDS:  # to find sizes of one way may take half of that
                break
            if way == self.shapes.way:
                continue
            beyond = [*map(negate, covered)]
            shapes = of_report(replace(self.report, ways=(way,)), beyond)
            if shapes is None:
                continue
            paths = paths_of(self.examined.system, self.judge, shapes.formula)
            at = example_sizes(shapes.box, self.spec, paths)
            if (other := second.at(at)) is None:
                continue
            if same(trace, other) or second.same_where((*known, way, *beyond), trace, other):
                covered.append(way)
            elif others and second.same_where((*known, any_of(covered)), trace, other):
                covered.append(way)
                trace, sizes = other, at
        return Candidate(trace, sizes, goal.along(any_of(covered)))

    def _few_more(self, candidate: Candidate, second: SecondTraces) -> Candidate:
        """Runs the program for the few values of a size for which the model branches, such as `t == 1`. If it
        does the same as the model for all of them, the path's condition on that size is dropped.
        """
        goal, program = candidate.goal, candidate.trace.program
        few = {formula: values for formula in goal.way if (values := goal.exceptions(formula))}
        if not few:
            return candidate
        graph, checks = copy.deepcopy(program.graph_module.graph), checks_of(program)
        wider = replace(candidate, goal=replace(goal, way=tuple(f for f in goal.way if f not in few)))
        asked = self._asked(wider, second)
        whole = all_of((*goal.domain, *wider.goal.all, *(r.formula for r in (*asked.graph, *asked.kept))))
        install(program, self.spec, whole, wider.goal.fact([whole]), asked.found.unread)
        trial = Comparison(self.model, self.spec, program, whole, self.fill, True, self.judge)
        agreed = self._certain(asked.found) and all(
            trial.meet_where(region) for values in few.values() for region in values
        )
        program.graph_module.graph = graph
        set_checks(program, *checks)
        return wider if agreed and not trial.wrong else candidate

    def _straight(self, candidate: Candidate) -> Candidate:
        """Returns the candidate without those conditions of the path that torch has not decided by a guard.

        torch has a guard for each of its decisions. So a condition of the path that no guard implies is
        dropped from the goal. Outside the path the guards stay, since one may be a branch of the model; on
        the path itself no guard is a branch.
        """
        goal = candidate.goal
        if not goal.way:
            return candidate
        found = self._needs(candidate.trace, goal.accepted)
        decided = [r.formula for r in (*found.graph, *found.checks)]
        way = tuple(f for f in goal.way if goal.follows(f, (*goal.accepted, *decided)))
        return replace(candidate, goal=replace(goal, way=way), straight=len(way) < len(goal.way))

    def _given_up(self, goal: Goal, taken: Sequence[ProgramRequirement]) -> Iterator[GivenUp]:
        yield from (g for g in self.shapes.given_up if g.cause == "way" and goal.way)
        for requirement in goal.needed(taken):
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
        yield GivenUp("trace", "", "", "the graph may require more of its sizes than is known")
