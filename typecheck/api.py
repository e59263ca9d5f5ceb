"""`check`: the one question, from a target and a spec to a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..constraints.formula import all_of, negate
from ..constraints.generate import Rules
from ..constraints.language import Fact
from ..constraints.spec import Spec
from ..constraints.spec_text import Inputs, SpecError, parse_spec, write_spec
from ..constraints.system import System
from ..solver.decide import Decision, Oracle, Requirement, decide
from ..solver.judge import Budget
from ..solver.refine import simplify
from . import findings
from .codes import Code
from .replay import Failed, Outcome, Ran, Refused, Replayer
from .report import Accepts, Finding, Report, Verdict
from .target import Target, TargetError, resolve

MAX_WITNESSES = 8
"""How many findings get a witness of their own."""

Progress = Callable[[str], None]
"""Called with what is being done, whenever that changes."""


def check(
    target: Any,
    inputs: Inputs | None = None,
    assume: str | Iterable[str] = (),
    *,
    budget_s: float = 30.0,
    replay: bool = True,
    rules: Rules | None = None,
    progress: Progress | None = None,
) -> Report:
    """For which of the declared inputs does the target run?

    - `target`: an `nn.Module`, a function, an `fx.GraphModule`, an `ExportedProgram`, the path of a `.pt2`,
      or a text that names one of these: `file.py:Name`, `package.module:Name`.
    - `inputs`: a spec, such as `"x: float32[b, 3, h, w]; n: int"`. Where it is left out, the jaxtyping
      annotations of the target serve, and of a traced program the inputs that it was traced with.
    - `assume`: conditions on the symbols, such as `"h % 32 == 0"`.
    - `budget_s`: seconds for tracing and solving. What is not answered by then is `unknown`.
    - `replay`: try the examples on the real program before they are shown.
    - `rules`: the rules of the operators; `default_rules + {"mylib::op": rule}` adds one.

    Raises SpecError where the spec or an assumption cannot be used, TargetError where the target cannot.
    """
    clock = _Clock(progress or _silent, budget_s)
    with clock.step("load"):
        spec = None if inputs is None else parse_spec(inputs, assume)
        found = resolve(target, [str(d.path[0]) for d in spec.inputs] if spec else ())
        source = _source(found, spec, assume)
    with clock.step("trace"):
        oracle = Oracle(source.spec.domain, Budget(clock.left))
        _has_inputs(source.spec, oracle)
        system, changed = source.system(rules or _default_rules(), oracle, clock)
    with clock.step("solve"):
        decision = decide(system, Budget(clock.left))
    trial = _Trial(source, system) if replay else None
    with clock.step("replay"):
        report = _report(found.name, source.spec, system, decision, changed, oracle, trial)
    return replace(report, stats=_stats(clock, system, decision, oracle))


def _silent(step: str) -> None:
    pass


def _default_rules() -> Rules:
    from ..constraints.rules import default_rules

    return default_rules


@dataclass(slots=True)
class _Clock:
    """Seconds spent on each step, and what is left of the budget."""

    progress: Progress
    budget_s: float
    spent: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return max(self.budget_s - self.elapsed, 0.0)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.progress(name)
        before = time.monotonic()
        try:
            yield
        finally:
            self.spent[f"{name}_s"] = time.monotonic() - before


# ---- where the system comes from


class _Source(Protocol):
    """A target with its spec: gives the constraint system, and runs the program at concrete sizes."""

    spec: Spec

    def system(self, rules: Rules, oracle: Oracle, clock: _Clock) -> tuple[System, list[str]]:
        """All that the program asks of its inputs, and the attributes that a run of it assigns."""

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """What the program does at these sizes; `accepted` is what is expected."""


class _PythonSource:
    """A Python program, recorded as it runs."""

    def __init__(self, target: Target, spec: Spec) -> None:
        self.target, self.spec = target.value, spec
        self._replayer = Replayer(self.target, spec)

    def system(self, rules: Rules, oracle: Oracle, clock: _Clock) -> tuple[System, list[str]]:
        from ..tracer.record import TargetError as DoesNotFit
        from ..tracer.record import record

        def tell(paths: int) -> None:
            clock.progress(f"trace, {paths} paths" if paths > 1 else "trace")

        try:
            return record(self.target, self.spec, rules, oracle, budget_s=clock.left, progress=tell)
        except DoesNotFit as error:
            raise TargetError(str(error)) from None

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        return self._replayer.run(values, accepted)


def _source(target: Target, spec: Spec | None, assume: str | Iterable[str]) -> _Source:
    if spec is None:
        from .annotations import spec_of

        spec = parse_spec(spec_of(target.value), assume)
    return _PythonSource(target, spec)


def _has_inputs(spec: Spec, oracle: Oracle) -> None:
    """Raises SpecError where the assumptions leave no input at all."""
    given = spec.domain.assumptions
    if oracle.judge.satisfiable(given, spec.domain.symbols) == "unsat":
        core = oracle.judge.core(given)
        raise SpecError(
            f"no input meets the assumptions: {all_of(core)}",
            hint="a symbol is at least 1 unless an assumption states another lower bound",
        )


# ---- the report


def _report(
    name: str,
    spec: Spec,
    system: System,
    decision: Decision,
    changed: list[str],
    oracle: Oracle,
    trial: _Trial | None,
) -> Report:
    """The decision in the user's words. An example that fails to do what was claimed makes it unknown."""
    inside, outside = decision.inside, decision.outside
    if trial is not None:
        inside = inside if inside is None or trial.confirms(inside, True) else None
        outside = outside if outside is None or trial.confirms(outside, False) else None
    witnesses = _Witnesses(spec, decision, outside, oracle, trial)
    told = findings.findings(
        system, decision, changed, lambda parts: simplify(oracle.judge, spec.domain, parts), witnesses.show
    )
    mistakes = tuple(trial.mistakes) if trial else ()
    verdict = Verdict.UNKNOWN if mistakes else Verdict(decision.verdict)
    return Report(
        name,
        write_spec(spec),
        verdict,
        Accepts(
            decision.accepted,
            all_of(spec.domain.assumptions),
            spec.domain.symbols,
            exact=verdict is not Verdict.UNKNOWN and decision.exact,
        ),
        {n: decision.facts.get(n, Fact(None, None, exact=False)) for n in spec.domain.symbols},
        (*mistakes, *told, *(trial.remarks if trial else ())),
        findings.shapes(system),
        findings.outputs(system),
        findings.branches(system),
        inside,
        outside,
        trial.how if trial else "",
    )


class _Witnesses:
    """Finds, for one line after the other, sizes that it refuses and those before it do not."""

    def __init__(
        self,
        spec: Spec,
        decision: Decision,
        outside: Mapping[str, int] | None,
        oracle: Oracle,
        trial: _Trial | None,
    ) -> None:
        self.given, self.residual = spec.domain.assumptions, decision.residual
        self.refuted = decision.verdict == "refuted"
        self.outside, self.oracle, self.trial = outside, oracle, trial
        self.left = MAX_WITNESSES

    def show(self, group: findings.Group) -> findings.Witness:
        """Sizes that break the last of the group, if they are refused indeed, and what the program raised."""
        if self.left == 0:
            return None, ""
        self.left -= 1
        requirement = group.requirements[-1]
        witness = self.outside if self.refuted else self._example(requirement)
        if witness is None or self.trial is None:
            return witness, ""
        if not self.trial.confirms(witness, False):
            return None, ""
        outcome = self.trial.run(witness, False)
        if isinstance(outcome, Refused) and outcome.origin.line == requirement.origin.line:
            return witness, f"{outcome.exception}: {outcome.reason}" if outcome.exception else outcome.reason
        return witness, ""

    def _example(self, requirement: Requirement) -> Mapping[str, int] | None:
        """Sizes that are refused here and no earlier, or else that are refused here."""
        before = [r.needs for r in self.residual[: self.residual.index(requirement)]]
        refused = negate(requirement.needs)
        for given in ((*self.given, *before, refused), (*self.given, refused)):
            if (found := self.oracle.example(given)) is not None:
                return found
        return None


def _stats(clock: _Clock, system: System, decision: Decision, oracle: Oracle) -> dict[str, float]:
    spent = [decision.stats, oracle.judge.stats]
    return {
        **{
            step: clock.spent.get(step, 0.0)
            for step in ("load_s", "trace_s", "generate_s", "solve_s", "replay_s")
        },
        "total_s": clock.elapsed,
        "paths": len(system.paths),
        "nodes": sum(len(p.program.nodes) for p in system.paths),
        "constraints": sum(len(p.constraints) for p in system.paths),
        "questions": sum(s.questions for s in spent),
        "z3_queries": sum(s.z3_queries for s in spent),
        "z3_units": sum(s.z3_units for s in spent),
    }


# ---- replay


class _Trial:
    """Replays claims and gathers what came of it."""

    def __init__(self, source: _Source, system: System) -> None:
        self.source = source
        self.on_data = any(p.on_data or p.unbacked for p in system.paths)
        self.approximate = any(p.notes for p in system.paths)
        self.mistakes: list[Finding] = []
        self.remarks: list[Finding] = []
        self.how = ""
        self.outcomes: dict[tuple[tuple[str, int], ...], Outcome] = {}

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """What the program does there; each assignment is tried once."""
        key = tuple(values.items())
        if key not in self.outcomes:
            self.outcomes[key] = self.source.run(values, accepted)
        return self.outcomes[key]

    def confirms(self, values: Mapping[str, int], accepted: bool) -> bool:
        """Does the program do there what was claimed? If not, it is told why, or that the claim is wrong."""
        outcome = self.run(values, accepted)
        if isinstance(outcome, Failed):
            self._remark(f"the example {_show(values)} could not be tried: {outcome.reason}")
            return True
        self.how = self.how or outcome.how
        if isinstance(outcome, Ran) == accepted:
            return True
        did = "runs" if isinstance(outcome, Ran) else f"is refused: {outcome.exception}: {outcome.reason}"
        claim = f"{_show(values)} was found to be {'accepted' if accepted else 'refused'}, and it {did}"
        if self.on_data:
            self._remark(f"{claim} ({outcome.how}); the data decides which way the program goes")
            return False
        finding = (
            findings.make(Code.APPROXIMATE, f"{claim}; an operator whose law is not known exactly misled us")
            if self.approximate
            else findings.make(Code.INTERNAL_ERROR, f"{claim}. This is a defect of anyshape; please report it")
        )
        origin = outcome.origin if isinstance(outcome, Refused) else finding.origin
        self.mistakes.append(replace(finding, origin=origin, witness=dict(values)))
        return False

    def _remark(self, message: str) -> None:
        finding = findings.make(Code.APPROXIMATE, message)
        if finding not in self.remarks:
            self.remarks.append(finding)


def _show(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "the one input"
