"""`export`: an ExportedProgram that takes exactly the sizes that the model takes.

The accepted sizes are known before torch traces, so the example, the `dynamic_shapes` and the checks of the
program follow from them:

1. The example has sizes that the tracer does not mistake for something special (example_sizes.py).
2. torch traces (tracing.py), loops over sizes as scans where that is possible (scans.py). It is told which
   sizes vary and between which bounds, and is left to find out how they hang together: named dims that share
   or derive add nothing that is not known already, and make torch give up where it cannot follow the proof.
3. The graph is checked under the sizes of its inputs alone (program_needs.py): where it needs more than the
   model does, the trace has put something in, and that much is given up and told.
4. So are equations that torch made of sizes: a number may stand in the graph for one of them. Other guards
   of torch's that the model does not ask for are dropped, unless step 6 finds that they matter.
5. The program gets the checks that follow, in place of those that torch made (program_checks.py).
6. It is run next to the model, at the ends of the ranges and where torch's own guards would have refused it.
   Where the two differ, all of torch's guards stay.
"""

from __future__ import annotations

import copy
import functools
import gc
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, TypeAlias

import sympy
from torch.export import ExportedProgram

from ...constraints.dims import Dim, Term, modulo, substitute, sym, symbols
from ...constraints.formula import (
    Compare,
    Formula,
    all_of,
    any_of,
    conjuncts,
    eq,
    free_symbols,
    ge,
    holds,
    negate,
)
from ...constraints.generate import Rules
from ...constraints.language import Fact, tensors
from ...constraints.program import Node
from ...constraints.spec import Spec
from ...constraints.spec_text import Inputs, SpecError
from ...constraints.system import Answer, Path
from ...solver import examples
from ...solver.decide import Oracle
from ...solver.facts import fact
from ...solver.judge import Budget, Judge
from ...solver.refine import simplify
from ...tracer.exported import GraphError
from ...tracer.record import record
from ..api import Examined, default_rules, examine
from ..clock import Progress
from ..dim_specs.dynamic_shapes import DynamicShapes, GivenUp, of_report, tree_of
from ..dim_specs.specs import DimSpec, Hint, Size
from ..dim_specs.torch_dims import to_torch
from ..feedback.terms import dim_of
from ..report import Report
from ..target import TargetError
from ..trial import show
from . import example_inputs, same_graph
from .broadcasting import never, unsure
from .comparing import LARGE, Comparison
from .example_sizes import example_sizes, inner_terms, mixed_sizes
from .inner_sizes import bounding, inner_sizes, paths_of
from .program_checks import install, symbols_of
from .program_needs import Needs, Requirement, formula_of, needs
from .tracing import Trace, traced

SECONDS: Final = 20.0
"""What questions to the solver may take, each time."""
TRACING: Final = 60.0
"""What second traces may take, that find out which equations of torch's are an accident."""
EFFORT: Final = 300_000
"""Z3's resource units for the sizes of the example."""
WAYS: Final = 128
"""Through a model, up to which they are told apart."""
EVEN: Final = (1024, 64, 16)
"""Of what sizes are multiples that go the usual way, as a rule."""
FEW: Final = 8
"""Values of a size for which a program is run one by one."""


Again: TypeAlias = Callable[[Mapping[str, int], float], Trace]
"""Traces the model at other sizes, within so many seconds."""

_HOW: Final = (
    ("loops are scans, and no size is special", True, True),
    ("no size is special", True, False),
    ("0 and 1 are special", False, False),
)
"""What is tried, in order: its name, whether 0 and 1 are like other sizes, and whether loops become scans."""


class ExportError(TargetError):
    """torch cannot trace the model, whatever sizes it is told: what it said at each attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of `torch.export.export`."""

    how: str
    example: Mapping[str, int]
    error: str = ""
    """What torch raised; empty where it exported."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A program, and what is known of it."""

    program: ExportedProgram
    report: Report
    """What was found about the model before it was exported."""
    shapes: DynamicShapes
    """The largest spec in torch's language; the program may take more than it says."""
    accepts: Formula
    """The sizes that the program takes, among those that the assumptions declare: exactly, unless `given_up`
    names a check that formulas cannot say.
    """
    exact: bool
    """Are those all the sizes that the model takes?"""
    given_up: tuple[GivenUp, ...]
    """What the model takes and the program refuses, and why."""
    checks: tuple[str, ...]
    """What the program asks of its inputs, as Python over `L['x'].size()[0]`."""
    example: Mapping[str, int]
    """The sizes that it was traced with."""
    attempts: tuple[Attempt, ...]
    tried: tuple[Mapping[str, int], ...] = ()
    """The sizes at which it was run next to the model, with the same results,"""
    refused: tuple[Mapping[str, int], ...] = ()
    """and those at which it was seen to refuse its inputs."""
    sizes: Mapping[str, Fact] = field(default_factory=dict)
    """What is known of each size inside the program, where finite bounds were asked for."""


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
    """A graph holds one way through the model, so the ways are told apart, if there are not too many."""
    return examine(model, inputs, assume, budget_s=budget_s, rules=rules, progress=tell, ways=WAYS)


# ---- from the model to the program


class _Exporting:
    def __init__(self, examined: Examined, rules: Rules, tell: Progress) -> None:
        self.examined, self.rules, self.tell = examined, rules, tell
        self.spec: Spec = examined.spec
        self.domain = (*self.spec.domain.assumptions,)
        self.model = examined.target.value
        self.judge = Judge(Budget(4 * SECONDS))
        self.report = report = examined.report
        shapes = of_report(report)
        if shapes is None:
            raise TargetError(f"{report.target} runs for none of the declared inputs", "check says why")
        self.shapes = shapes
        self.accepted = [*conjuncts(report.accepts.formula)]
        self.way = [*conjuncts(shapes.way)]
        self.recorded = all_of(self.way)
        """The way that the example takes through the model, as it was recorded."""
        self.wanted = [*self.accepted, *self.way]
        """What the program should take: accepted sizes that go the way that is traced."""
        self.inner: list[Term] = []
        """The sizes inside the program."""
        self.broadcasts: dict[tuple[str, str], bool] = {}
        """The answers of `_either`."""
        self.known: dict[str, bool] = {}
        """The answers of `_surely`."""
        self.patience = SECONDS
        """What a second trace may take."""

    def exported(self) -> Exported:
        paths = paths_of(self.examined.system, self.judge, self.shapes.formula)
        self.inner = inner_terms(paths)
        sizes = example_sizes(self.shapes.box, self.spec, paths, self._other_sizes())
        if any(path.turns for path in self.examined.system.paths):
            self._tell_way(sizes)
            sizes = example_sizes(self.shapes.box, self.spec, paths, self._other_sizes())
        fill = self._fill(sizes)
        attempts: list[Attempt] = []
        spec = DimSpec(tree_of(self.spec, self._varies, self._varies))
        loops_over_sizes = any(map(_may_scan, self.examined.system.paths))
        for how, oblivious, loops in _HOW if loops_over_sizes else _HOW[1:]:

            def trace(
                sizes: Mapping[str, int],
                seconds: float = math.inf,
                oblivious: bool = oblivious,
                loops: bool = loops,
            ) -> Trace:
                given = example_inputs.arguments(self.model, self.spec, sizes, fill)
                either, certain = (self._either, self._surely) if oblivious else (never, unsure)
                shapes = to_torch(spec, *given, self.model)[0]
                return traced(self.model, given, shapes, oblivious, either, certain, loops, seconds)

            wanted, started = (self.way, self.recorded, self.wanted), time.monotonic()
            try:
                found = trace(sizes)
                self.patience = max(SECONDS, 2 * (time.monotonic() - started))
            except Exception as error:  # noqa: BLE001 (torch raises anything; it is told)
                attempts.append(Attempt(how, sizes, f"{type(error).__name__}: {error}"))
                continue
            try:
                return self._finished(found, trace, sizes, fill, (*attempts, Attempt(how, sizes)))
            except ExportError as error:
                if not found.scans:
                    raise
                self.way, self.recorded, self.wanted = wanted
                attempts.append(Attempt(how, sizes, f"{type(error).__name__}: {error}"))
        said_by_torch = "; ".join(f"{a.how}: {a.error.splitlines()[0]}" for a in attempts)
        raise ExportError(f"torch.export cannot trace {self.report.target}", said_by_torch)

    def _tell_way(self, sizes: Mapping[str, int]) -> None:
        """There are too many ways through the model to tell them apart: those of these sizes, and of sizes
        that are multiples of a power of two, are told alone, and the best is taken.
        """
        known = (*self.domain, *self.accepted)
        even = ([eq(modulo(sym(name), step), 0) for name in self.spec.domain.symbols] for step in EVEN)
        usual = chain.from_iterable(self._sizes((*known, *multiples)) for multiples in even)
        ways = tuple(dict.fromkeys(way for at in (*usual, sizes) if (way := self._way_of(at)) is not None))
        shapes = of_report(replace(self.report, ways=ways)) if ways else None
        if shapes is not None:
            self.shapes = shapes
            self.way = [f for f in conjuncts(shapes.way) if self.judge.ask(f, known) is not Answer.ALWAYS]
            self.recorded, self.wanted = all_of(self.way), [*self.accepted, *self.way]

    def _way_of(self, sizes: Mapping[str, int]) -> Formula | None:
        """The sizes that take the way through the model that these sizes take."""
        oracle = Oracle(self.spec.domain, Budget(SECONDS))
        system, _ = record(self.model, self.spec, self.rules, oracle, budget_s=SECONDS, along=sizes)
        (path,) = system.paths
        names = {*self.spec.domain.symbols}
        of_sizes = [part for part in conjuncts(path.premise) if free_symbols(part) <= names]
        returned = path.end.how == "returned"
        return simplify(self.judge, self.spec.domain, of_sizes) if returned else None

    def _either(self, one: str, other: str) -> bool:
        """Of two sizes of at least 1 that the model broadcasts: may they differ, one of them being 1?"""
        if (one, other) not in self.broadcasts:
            given = (*self.domain, *self.wanted)
            told = [f"{one} == {other}", f"{one} == 1", f"{other} == 1", f"{one} >= 1", f"{other} >= 1"]
            read = [formula for text in told if (formula := formula_of(text, self.spec)) is not None]
            self.broadcasts[one, other] = (
                len(read) == len(told)
                and self.judge.ask(read[0], given) is not Answer.ALWAYS
                and self.judge.ask(all_of((any_of(read[:3]), *read[3:])), given) is Answer.ALWAYS
            )
        return self.broadcasts[one, other]

    def _surely(self, condition: str) -> bool:
        """Does it hold of all sizes that the model takes, whichever way?"""
        if condition not in self.known:
            read = formula_of(condition, self.spec)
            given = (*self.domain, *self.accepted)
            self.known[condition] = read is not None and self.judge.ask(read, given) is Answer.ALWAYS
        return self.known[condition]

    def _other_sizes(self) -> list[dict[str, int]]:
        """Sizes to try besides those of the box, which may be small ones."""
        found = [*self._ordinary()]
        return found or [*mixed_sizes(self.spec.domain.symbols, (*self.domain, *self.wanted))]

    def _ordinary(self, *given: Formula) -> Iterator[dict[str, int]]:
        """Sizes, within the box or not, for which none inside the program is 0 or 1, but where what is given
        speaks of its symbols, or leaves no other.
        """
        names = frozenset().union(*map(free_symbols, given))
        usual: dict[frozenset[str], list[Formula]] = {}
        for term in self.inner:
            if names.isdisjoint(symbols(term)):
                usual.setdefault(frozenset(symbols(term)), []).append(ge(term, 2))
        known = [*self.domain, *self.wanted, *given]
        found = [*self._sizes((*known, *chain.from_iterable(usual.values())))]
        if not found and given:
            for several in usual.values():
                if self.judge.satisfiable((*known, *several), (), EFFORT) == "sat":
                    known += several
            found = [*self._sizes((*known,))]
        yield from found

    def _fill(self, sizes: Mapping[str, int]) -> str:
        """What inputs have to hold for the model to run, at these sizes or at smaller ones, which cost less.
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
        """What torch is told of a size: its bounds, or the number that it always is."""
        if (fixed := self._fact(self.wanted)(dim)).divisor == 0:
            return fixed.remainder
        known = self._fact(self.accepted)(dim)
        return Hint("AUTO", max(known.min or 0, 0), known.max)

    def _fact(self, formulas: Sequence[Formula]) -> Callable[[Dim], Fact]:
        return lambda dim: fact(self.judge, (*self.domain, *formulas), dim)

    # --- what the program takes

    def _finished(
        self,
        trace: Trace,
        again: Again,
        sizes: Mapping[str, int],
        fill: str,
        attempts: tuple[Attempt, ...],
    ) -> Exported:
        self.tell("verify")
        program = trace.program
        try:
            self._same_ways(trace, again)
            straight = bool(self.way) and self._straight(trace)
            self._few_more(trace, again, fill, straight)
            found, asked, extra, kept = self._asked(trace, again, straight)
        except (GraphError, SpecError) as error:
            raise ExportError(f"the exported program cannot be read: {error}") from error
        certain = self._certain(found)
        before = copy.deepcopy(program.graph_module.graph)
        while True:
            taken = [*asked, *kept]
            dropped = [r for r in extra if r not in kept]
            accepted = simplify(self.judge, self.spec.domain, [*self.wanted, *(r.formula for r in taken)])
            whole = all_of((*self.domain, *conjuncts(accepted)))
            checks = install(program, self.spec, whole, self._fact([accepted]), found.unread)
            trial = Comparison(self.model, self.spec, program, accepted, fill, not certain, self.judge)
            back = [r for r in dropped if not trial.agree_where(negate(r.formula))]
            if not back and not trial.wrong:
                trial.at_the_ends(trace.scans > 0)
            if trial.wrong and not dropped:
                raise ExportError(f"the exported program is not the model: {trial.wrong}")
            if not back and not trial.wrong:
                break
            kept += dropped if trial.wrong else back
            program.graph_module.graph = copy.deepcopy(before)
        given_up = (*self._given_up(self._needed(taken)), *_uncertain(found))
        exact = certain and self._is_all(accepted)
        return Exported(
            program, self.report, self.shapes, accepted, exact, given_up, checks, sizes, attempts,
            tuple(trial.same), tuple(trial.refused),
        )  # fmt: skip

    def _asked(
        self, trace: Trace, again: Again, straight: bool
    ) -> tuple[Needs, list[Requirement], list[Requirement], list[Requirement]]:
        """What is known of the program, what its graph asks, what its trace asks, and what of this stays."""
        found = needs(trace, self.spec, self.wanted, self.rules, SECONDS)
        asked = self._new(found.graph, self.wanted)
        extra = self._new(found.checks, [*self.wanted, *(r.formula for r in asked)])
        certain, together = self._certain(found), [r.formula for r in extra]
        kept = [r for r in extra if not certain or self._fixes(r.formula, together)]
        if straight and certain:
            kept += [replace(r, formula=any_of((self.recorded, r.formula))) for r in extra if r not in kept]
        return found, asked, extra, self._not_accidental(kept, asked, trace, again)

    def _certain(self, found: Needs) -> bool:
        return found.certain and self.report.accepts.exact and not found.unread

    def _same_ways(self, trace: Trace, again: Again) -> None:
        """Other ways through the model are no other ways where a trace of them gives the same graph."""
        if not self.way:
            return
        started = time.monotonic()
        same = [self.recorded]
        for way in self.report.ways:
            elsewhere = (*self.domain, *self.accepted, way, *map(negate, same))
            for sizes in self._sizes(elsewhere) if time.monotonic() - started < SECONDS else ():
                other = self._trace_at(sizes, again)
                if other is None:
                    continue
                if _same(trace, other) or self._same_where(elsewhere, trace, other):
                    same.append(way)
        joined = any_of(same)
        known = (*self.domain, *self.accepted)
        self.way = [f for f in conjuncts(joined) if self.judge.ask(f, known) is not Answer.ALWAYS]
        self.recorded, self.wanted = all_of(self.way), [*self.accepted, *self.way]

    def _trace_at(self, sizes: Mapping[str, int], again: Again) -> Trace | None:
        """A trace at these sizes; None where torch cannot trace there, or takes far longer than before."""
        try:
            return again(sizes, self.patience)
        except Exception:  # noqa: BLE001 (torch raises anything: then there is no second trace)
            return None

    def _same_where(self, given: Sequence[Formula], one: Trace, other: Trace) -> bool:
        """Do two traces give the same graph where this is given? A size may be a symbol in one of them, and
        in the other a number, or written in another way, as long as it is the same there.
        """
        known = [symbols_of(trace.program, self.spec) for trace in (one, other)]

        @functools.cache
        def equal(size: sympy.Expr, as_other: sympy.Expr) -> bool:
            first, second = _in_spec(known[0], size), _in_spec(known[1], as_other)
            if first is None or second is None:
                return False
            return self.judge.ask(eq(first, second), given) is Answer.ALWAYS

        described = [same_graph.described(trace.program.graph_module) for trace in (one, other)]
        return same_graph.agree(described[0], described[1], equal)

    def _few_more(self, trace: Trace, again: Again, fill: str, straight: bool) -> None:
        """Where the model branches for a few values of a size alone, such as `t == 1`, the program is run for
        all of them. If it does what the model does, the way through the model is no longer asked for.
        """
        few = {formula: values for formula in self.way if (values := self._others(formula))}
        if not few:
            return
        way, wanted, program = self.way, self.wanted, trace.program
        checks = copy.deepcopy(program.graph_module.graph), program._guards_code, program._range_constraints
        self.way = [formula for formula in way if formula not in few]
        self.wanted = [*self.accepted, *self.way]
        found, asked, _, kept = self._asked(trace, again, straight)
        whole = all_of((*self.domain, *self.wanted, *(r.formula for r in (*asked, *kept))))
        install(program, self.spec, whole, self._fact([whole]), found.unread)
        trial = Comparison(self.model, self.spec, program, whole, fill, True, self.judge)
        agreed = self._certain(found) and all(
            trial.meet_where(region) for values in few.values() for region in values
        )
        program.graph_module.graph, program._guards_code, program._range_constraints = checks
        if not agreed or trial.wrong:
            self.way, self.wanted = way, wanted

    def _others(self, formula: Formula) -> list[Formula]:
        """The values of its symbols for which a formula does not hold, one by one, if there are but a few."""
        names = sorted(free_symbols(formula))
        found: list[Formula] = []
        given = [*self.domain, *self.accepted, negate(formula)]
        while len(found) <= FEW:
            answer = self.judge.satisfiable((*given, *map(negate, found)), names, EFFORT)
            if answer != "sat":
                return found if answer == "unsat" else []
            found.append(all_of(eq(sym(name), self.judge.model[name]) for name in names))
        return []

    def _straight(self, trace: Trace) -> bool:
        """Has the trace gone on where the model, as it was recorded, branched: at `max(n, 1)`, for example?

        torch has a guard for whatever it decides. So what the way asks, and no guard does, is wanted no more.
        There the guards stay, for one may be a branch of the model's; on the way itself none is.
        """
        found = needs(trace, self.spec, self.accepted, self.rules, SECONDS)
        decided = [r.formula for r in (*found.graph, *found.checks)]
        known = (*self.domain, *self.accepted, *decided)
        kept = [formula for formula in self.way if self.judge.ask(formula, known) is Answer.ALWAYS]
        straight = len(kept) < len(self.way)
        self.way, self.wanted = kept, [*self.accepted, *kept]
        return straight

    def _new(self, asked: Sequence[Requirement], given: Sequence[Formula]) -> list[Requirement]:
        """Those that do not follow from what is given, and those before them."""
        found: list[Requirement] = []
        for requirement in asked:
            known = (*self.domain, *given, *(r.formula for r in found))
            if self.judge.ask(requirement.formula, known) is not Answer.ALWAYS:
                found.append(requirement)
        return found

    def _needed(self, taken: Sequence[Requirement]) -> list[Requirement]:
        """Without those that follow from the others, long ones first."""
        kept = [*taken]
        for requirement in sorted(taken, key=lambda r: -len(str(r.formula))):
            others = [r.formula for r in kept if r is not requirement]
            known = (*self.domain, *self.wanted, *others)
            if self.judge.ask(requirement.formula, known) is Answer.ALWAYS:
                kept.remove(requirement)
        return kept

    def _fixes(self, formula: Formula, together: Sequence[Formula]) -> bool:
        """Does a check of the trace, with all others, make a number of a size, or one size of two? Then the
        graph may have it so.
        """
        if not isinstance(formula, Compare) or formula.op == "==":
            return True
        if formula.op == "!=":
            return False
        not_at_its_end = (*self.domain, *self.wanted, *together, negate(eq(formula.term, 0)))
        return self.judge.satisfiable(not_at_its_end) != "sat"

    def _not_accidental(
        self,
        fixing: list[Requirement],
        asked: Sequence[Requirement],
        trace: Trace,
        again: Again,
    ) -> list[Requirement]:
        """Without the equations that the example happened to fulfil, and what nobody knows the graph to need:
        where they do not hold, a second trace gives the same graph, so nothing in it is there for their sake.
        """
        needed = (*self.domain, *self.wanted, *(r.formula for r in asked))
        kept, started = [*fixing], time.monotonic()
        for requirement in fixing:
            if requirement not in kept or time.monotonic() - started > TRACING:
                continue
            failing = negate(requirement.formula)
            for sizes in chain(
                self._ordinary(*(r.formula for r in asked), failing), self._apart((*needed, failing))
            ):
                other = self._trace_at(sizes, again) if requirement in kept else None
                if other is not None and _same(trace, other):
                    kept = [r for r in kept if holds(r.formula, sizes)]
                elif other is not None and self._same_where((*needed, failing), trace, other):
                    kept.remove(requirement)
        return kept

    def _apart(self, given: tuple[Formula, ...]) -> Iterator[dict[str, int]]:
        """Small sizes that fulfil these formulas, and others that have none of them in common."""
        for sizes in self._sizes(given):
            yield sizes
            yield from self._sizes((*given, *(negate(eq(sym(name), n)) for name, n in sizes.items())))

    def _sizes(self, given: tuple[Formula, ...]) -> Iterator[dict[str, int]]:
        """Small sizes that fulfil all of these formulas, if there are any that can be tried."""
        names = self.spec.domain.symbols
        if self.judge.satisfiable(given, names, EFFORT) == "sat":
            model = {name: self.judge.model[name] for name in names}
            sizes = examples.polished(model, given, self.judge.known(given), names)
            if example_inputs.elements(self.spec, sizes) <= LARGE:
                yield sizes

    def _is_all(self, accepted: Formula) -> bool:
        known = (*self.domain, *conjuncts(self.report.accepts.formula))
        return self.judge.ask(accepted, known) is Answer.ALWAYS

    def _given_up(self, taken: Sequence[Requirement]) -> Iterator[GivenUp]:
        yield from (g for g in self.shapes.given_up if g.cause == "way" and self.way)
        for requirement in taken:
            where = f" ({requirement.origin}: {requirement.origin.code})" if requirement.origin.file else ""
            reason = f"the trace holds only where {requirement.formula}: {requirement.reason}{where}"
            yield GivenUp("trace", str(requirement.formula), str(requirement.formula), reason)


def _may_scan(path: Path) -> bool:
    """Does it loop over a size, and could each iteration be the same graph? Not where the data decide sizes
    anew in each.
    """
    decided, nodes = {name for name, _ in path.unbacked}, path.program.nodes

    def sizes(some: Iterable[Node]) -> set[str]:
        values = (path.values[id] for node in some for id in node.results)
        shapes = (tensor.shape for value in values for tensor in tensors(value))
        return decided & {name for shape in shapes for dim in shape for name in symbols(dim)}

    loops = path.program.iterations
    return bool(loops) and all(
        not decided or sizes(nodes[loop.start : loop.stop]) <= sizes(nodes[: loop.start]) for loop in loops
    )


def _in_spec(known: Mapping[str, Dim], size: sympy.Expr) -> Dim | None:
    """A size of a trace, whose symbols are these, in terms of the spec; None where it cannot be told."""
    dim = dim_of(size)
    return None if dim is None or not symbols(dim) <= known.keys() else substitute(dim, known)


def _same(one: Trace, other: Trace) -> bool:
    """Are they the same graph?"""
    return same_graph.described(one.program.graph_module) == same_graph.described(other.program.graph_module)


def _uncertain(found: Needs) -> Iterator[GivenUp]:
    """What the program may refuse, and formulas cannot say."""
    for guard in found.unread:
        yield GivenUp("trace", "", guard, f"the trace holds only where {guard}")
    if not found.certain:
        yield GivenUp("trace", "", "", "the graph may need more of its sizes than is known")
