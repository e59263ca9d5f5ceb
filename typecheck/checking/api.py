"""`check`: the one question, from a target and a spec to a report."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING, Any

from ...constraints.engine.ruleset import BadRules, Rules
from ...constraints.ir.language import Fact
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import Inputs, SpecError, parse_spec, write_spec
from ...constraints.ir.system import Domain, System
from ...constraints.terms.formula import all_of, comparisons, conjuncts
from ...constraints.terms.formula_text import defined
from ...constraints.terms.rows import is_dim, is_relation
from ...solver.decide import Decision, DomainOracle, decide
from ...solver.explain import imposed
from ...solver.facts.refine import simplify
from ...solver.tactics.familiar import familiar
from ...solver.tactics.judge import Budget
from ..facade import Answered, Report
from ..replay.replay import Inconclusive
from ..report import findings
from ..report.codes import Code, Severity
from ..report.later import Later
from ..report.report import Accepts, Finding, Verdict
from ..targets.at_import import RaisedAtImport
from ..targets.near_names import key_hint
from ..targets.target import Target, known_device, resolve
from ..targets.target_error import TargetError
from .clock import Clock, Progress
from .dtypes import SECONDS, Dtypes, Recording, failure, led_by_dtypes, lines_of, refusals, suited
from .guessing import guessed, guesses
from .modes import depends_on_mode, difference, in_mode
from .output_sizes import with_numbers
from .recorded import Recorded
from .releases import known_release, require_known, untested
from .rule_packages import packaged_rule
from .sources import Source, source_of
from .suspicions import suspected
from .trial import Trial, Witnesses, show

if TYPE_CHECKING:
    pass


def check(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    replay: bool = True, rules: Rules | None = None, repairs: bool = False, suspect: Collection[str] = (),
    second_solver: str | None = None, device: str | None = None, training: bool | None = None,
    progress: Progress | None = None, answered: Answered | None = None,
) -> Report:
    """For which of the declared inputs does the target run?

    - `target`: an `nn.Module`, a function, an `fx.GraphModule`, an `ExportedProgram`, the path of a `.pt2`,
      or a text that names one of these: `file.py:Name`, `package.module:Name`.
    - `inputs`: a spec, such as `"x: float32[b, 3, h, w]; n: int"`. Where it is left out, the jaxtyping
      annotations of the target serve, and of a traced program the inputs that it was traced with.
    - `assume`: conditions on the symbols, such as `"h % 32 == 0"`.
    - `budget_s`: seconds for tracing and solving. What is not answered by then is `unknown`.
    - `replay`: try the examples on the real program before they are shown.
    - `rules`: the rules of the operators; `default_rules + {"mylib::op": rule}` adds one. Where it is left
      out, the default rules serve, and those that installed packages bring for operators of their own.
    - `repairs`: look for changes of the program after which a finding is gone, for some seconds more. Only
      Python programs are changed; each change is tried on the program itself, and taken back.
    - `suspect`: codes of suspicions to look for in addition to the usual ones, or `"all"` among them.
    - `second_solver`: another solver, `"cvc5"`, that is asked all on which the verdict rests. Where it
      contradicts, the verdict is `unknown`; `Report.second_opinion` has what it says.
    - `device`: the type of the device that the program is to run on, `"cpu"` or `"cuda"`, since their kernels
      take different dtypes. Where it is left out, it is that of the target's tensors. Repairs are not looked
      for where it is given.
    - `training`: whether a module is looked at in training, or in evaluation. Where it is left out, a module
      is looked at as it stands, and one that the check builds, since the target is a class or a text that
      names a class or a function, in evaluation; `Report.training` has what is otherwise in training.
    - `answered`: is called with the report, as yet without findings, once its verdict is known and its two
      examples have run. Where more examples contradict it, the report that is returned is `unknown`.

    Raises SpecError where the spec or an assumption cannot be used, TargetError where the target cannot, and
    ReleaseError, which is a TargetError, where anyshape does not know the installed torch.
    """
    try:
        if training is None:
            return _checked(
                target, inputs, assume, budget_s, replay, rules, repairs, suspect, second_solver, device,
                progress, answered, both=True,
            )  # fmt: skip
        with resolved_in_mode(target, inputs, assume, training) as found:
            return _checked(
                found, inputs, assume, budget_s, replay, rules, repairs, suspect, second_solver, device,
                progress, answered,
            )  # fmt: skip
    except RaisedAtImport as error:
        return _without_target(target, inputs, error.finding)


def _checked(
    target: Any, inputs: Inputs | None, assume: str | Iterable[str], budget_s: float, replay: bool,
    rules: Rules | None, repairs: bool, suspect: Collection[str], second_solver: str | None,
    device: str | None, progress: Progress | None, answered: Answered | None, both: bool = False,
) -> Report:
    """Returns the report on a target in the mode that it has; if `both`, with what is otherwise in training.
    """
    clock = Clock(progress or _silent, budget_s)
    found = examine(
        target, inputs, assume, budget_s=budget_s, replay=replay, rules=rules, progress=progress,
        second_solver=second_solver, device=device, answered=answered,
    )  # fmt: skip
    report = suspected(found.report, found.system, suspect)
    report = _with_right_dtypes(report, found, assume, clock, rules, device)
    wrong = any(one.code is Code.DTYPE for one in report.findings)
    if both and found.target.built and not wrong and depends_on_mode(found.target.value):
        declared = found.report.inputs  # what was guessed is not guessed again
        with in_mode(found.target.value, True):
            trained = examine(
                found.target, declared, assume, budget_s=max(clock.left, 0.1), replay=replay, rules=rules,
                progress=progress, device=device,
            )  # fmt: skip
        report = replace(report, training=difference(report, trained.report))
    if found.target.kind != "python":
        return report
    from ..repairs import repaired, with_constructors

    if not repairs or device is not None:  # repairs are tried here
        return with_constructors(report, found.target.value)
    clock.progress("repair")
    rules = default_rules() if rules is None else rules
    return repaired(report, found.target.value, found.spec, found.system, rules)


def _without_target(target: Any, inputs: Inputs | None, finding: Finding) -> Report:
    """Returns the report on a target that is not defined, since its file raises an error about sizes first.
    """
    lines = () if inputs is None else write_spec(parse_spec(inputs))
    return Report(str(target), lines, Verdict.UNKNOWN, Accepts(True, True, (), False, False), {}, (finding,))


def _with_right_dtypes(
    report: Report, found: Examined, assume: str | Iterable[str], clock: Clock, rules: Rules | None,
    device: str | None,
) -> Report:
    """Returns a report whose first finding says which declared dtypes are wrong, where some are."""
    if found.target.kind != "python" or report.verdict is Verdict.PROVED:
        return report
    dtypes = found.spec.dtypes()
    refused = refusals(found.system, [*dtypes])
    if not refused:
        return report
    retry = _recorder(found.target, found.spec, rules, device)
    right = suited(refused, dtypes, [one.name for one in found.spec.inputs], retry)
    if not right:
        return report
    spec = found.spec.with_dtypes(right)
    repaired = examine(
        found.target, write_spec(spec), assume, budget_s=max(clock.left, 1.0), rules=rules, device=device
    )
    return replace(report, findings=led_by_dtypes(report, refused, spec, repaired.report))


@contextlib.contextmanager
def resolved_in_mode(
    target: Any, inputs: Inputs | None, assume: str | Iterable[str], training: bool | None
) -> Iterator[Any]:
    """Yields the target, resolved, in training or in evaluation inside the block; as it is, where neither is
    asked for. Raises what `check` raises.
    """
    if training is None:
        yield target
        return
    names = [] if inputs is None else [str(d.path[0]) for d in parse_spec(inputs, assume).inputs]
    found = resolve(target, names, training)
    with in_mode(found.value, training):
        yield found


@dataclass(frozen=True, slots=True)
class Examined:
    """A check with what it was made from, for those who ask further."""

    report: Report
    target: Target
    spec: Spec
    system: System


@known_release()
def examine(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    replay: bool = True, rules: Rules | None = None, progress: Progress | None = None,
    trying: Callable[[Source], Source] | None = None, ways: float | None = None,
    second_solver: str | None = None, device: str | None = None, answered: Answered | None = None,
) -> Examined:
    """Does the work of `check`, and returns the report with the program and its constraints.

    `trying` returns the source on which examples are run. At most `ways` paths through a Python program are
    kept separate; where there are more, the paths within calls are merged.
    """
    if second_solver is not None:
        from .second_solver import named, reviewed

        named(second_solver)
    clock = Clock(progress or _silent, budget_s)
    rules = default_rules() if rules is None else rules
    asked = question(target, inputs, assume, clock, replay=replay, rules=rules, ways=ways, device=device)
    rules = rules.of_torch(asked.source.release, asked.source.floats)
    found, source, spec, oracle, system, changed = (
        asked.target, asked.source, asked.spec, asked.oracle, asked.system, asked.changed,
    )  # fmt: skip
    with clock.step("solve"):
        decision = decide(system, Budget(clock.left), tried=replay, prefer=partial(familiar, spec))
        decision.told()
    trial = Trial(trying(source) if trying else source, system, decision) if replay else None
    with clock.step("replay"):
        early = None if second_solver is not None else answered  # which may make it unknown
        report = _report(found.name, spec, system, decision, rules, changed, oracle, trial, early)
    if second_solver is not None:
        with clock.step("second opinion"):
            report = reviewed(report, system, decision, second_solver, clock.left)
    tried = len(trial.outcomes) if trial else 0
    stats = {**_stats(clock, system, decision, oracle), "replays": tried}
    told = (*report.findings, *guesses(asked.guessed, asked.chosen), *untested(found))
    raised = [one for one in found.remarks if one.severity is Severity.ERROR]
    told = (*raised, *told, *(one for one in found.remarks if one not in raised))
    report = replace(report, findings=told, stats=stats)
    return Examined(report, found, spec, system)


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """A target read and traced, so that all that is left is to decide."""

    target: Target
    source: Source
    spec: Spec
    """The declared inputs; of those of unknown rank as much is declared as the program asks for."""
    oracle: DomainOracle
    system: System
    changed: list[str]
    """The attributes that a run assigns."""
    guessed: list[str]
    """The spec, where it was guessed; else nothing."""
    chosen: tuple[str, ...] = ()
    """The lines whose dtype the spec leaves out and the program needs to be another than float32."""

    @property
    def recorded(self) -> Recorded:
        """Returns the question in a form that can be sent elsewhere to be decided. Raises TargetError for a
        program with another default dtype than float32, which that form does not name.
        """
        if (floats := self.source.floats) != "float32":
            told = f"a program with the default dtype {floats} cannot be decided elsewhere"
            raise TargetError(told, "check it here")
        return Recorded(self.source.spec, self.system, tuple(self.changed))


@known_release()
def question(
    target: Any, inputs: Inputs | None, assume: str | Iterable[str], clock: Clock, rules: Rules, *,
    replay: bool = True, ways: float | None = None, device: str | None = None,
) -> ReadTarget:
    """The part of a check that needs the program itself, and `source_of` with the rest. Raises what `check`
    raises.
    """
    known_device(device)
    with clock.step("load"):
        spec = None if inputs is None else parse_spec(inputs, assume)
        found = resolve(target, [str(d.path[0]) for d in spec.inputs] if spec else ())
        require_known(found)
        lines = _guessed(found, rules, device) if spec is None and found.kind == "python" else []
        if lines:
            spec = parse_spec(lines, assume)
        source = source_of(found, spec, assume, ways=ways, device=device)
    open = source.spec.dtypes(only_open=True) if found.kind == "python" else {}
    names = [one.name for one in source.spec.inputs]
    asked: ReadTarget | TargetError
    try:
        asked = _traced(found, source, rules, clock, replay)
        refused = refusals(asked.system, names) if open else []
    except TargetError as error:
        asked, refused = error, failure(error, names)
    right = suited(refused, open, names, _recorder(found, source.spec, rules, device))
    if right:
        chosen = source.spec.with_dtypes(right)
        source = source_of(found, chosen, assume, ways=ways, device=device)
        asked = replace(_traced(found, source, rules, clock, replay), chosen=lines_of(chosen, right))
    if isinstance(asked, TargetError):
        raise asked
    if inputs is None:
        system = _within_its_limits(asked.system, asked.oracle)
        asked = replace(asked, system=system, spec=replace(asked.spec, domain=system.domain))
    return replace(asked, guessed=lines)


def _traced(target: Target, source: Source, rules: Rules | None, clock: Clock, replay: bool) -> ReadTarget:
    """Returns a target with its requirements. Raises what `check` raises."""
    with clock.turn(), clock.step("trace"):
        oracle = DomainOracle(source.spec.domain, Budget(clock.left))
        _has_inputs(source.spec, oracle)
        try:
            system, changed = source.system(default_rules() if rules is None else rules, oracle, clock)
        except BadRules as error:
            raise TargetError(str(error), error.hint) from error
    if replay and all(path.end.how == "gave-up" for path in system.paths):
        _works_at_all(target, source, oracle)
    spec = replace(source.spec, domain=system.domain)
    return ReadTarget(target, source, spec, oracle, system, changed, [])


def _recorder(target: Target, spec: Spec, rules: Rules | None, device: str | None) -> Recording:
    """Returns a function that records a target with other dtypes of some inputs."""

    def record(dtypes: Dtypes) -> System:
        source = source_of(target, spec.with_dtypes(dtypes), (), device=device)
        return _traced(target, source, rules, Clock(_silent, SECONDS), False).system

    return record


def _within_its_limits(system: System, oracle: DomainOracle) -> System:
    """Returns the system of a traced program with the limits of the trace among its assumptions, unless they
    contradict: what a file declares itself are the inputs that it takes.
    """
    domain = system.domain
    known = oracle.judge.known(domain.assumptions)
    told = [
        replace(path, constraints=tuple(
            c for c in path.constraints if c.kind == "model" or known.ask(c.formula) is not True
        ))
        for path in system.paths
    ]  # fmt: skip
    system = replace(system, paths=tuple(told))
    limits = [c.formula for path in system.paths for c in path.constraints if c.kind == "trace"]
    if not limits or oracle.judge.satisfiable((*domain.assumptions, *limits), domain.symbols) == "unsat":
        return system
    declared = [
        part
        for limit in conjuncts(simplify(oracle.judge, domain, limits))
        for part in conjuncts(all_of((*(defined(c.term) for c in comparisons(limit)), limit)))
    ]
    return replace(system, domain=Domain(domain.symbols, (*domain.assumptions, *dict.fromkeys(declared))))


def _guessed(target: Target, rules: Rules, device: str | None) -> list[str]:
    """Returns a spec for inputs that neither the user nor an annotation declares; none where all are."""
    from ..targets.annotations import spec_of, undeclared

    names = undeclared(target.value)
    if not names:
        return []
    declared = spec_of(target.value, dict.fromkeys(names, "[...]"))

    def spec(lines: Iterable[str]) -> list[str]:
        """Returns the whole spec with these lines for the undeclared inputs."""
        found = [*lines]
        own = {name: [one for one in found if re.match(rf"{name}\b", one)] for name in names}
        return [part for line in declared for part in own.get(line.partition(":")[0], [line])]

    def tried(lines: Iterable[str], seconds: float) -> tuple[Report, System]:
        found = examine(target, spec(lines), budget_s=seconds, replay=False, rules=rules, device=device)
        return found.report, found.system

    return spec(guessed(target.value, names, tried))


def recorded(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    rules: Rules | None = None, progress: Progress | None = None,
) -> Recorded:
    """The program and its constraints, traced as `check` traces it, without a decision. Raises what `check`
    raises.
    """
    clock = Clock(progress or _silent, budget_s)
    return question(target, inputs, assume, clock, default_rules() if rules is None else rules).recorded


def _silent(step: str) -> None:
    pass


@cache
def default_rules() -> Rules:
    from ...constraints.rules import default_rules

    return default_rules.or_else(packaged_rule)


def _has_inputs(spec: Spec, oracle: DomainOracle) -> None:
    """Raises SpecError where the assumptions leave no input at all."""
    given = spec.domain.assumptions
    if oracle.judge.satisfiable(given, spec.domain.symbols) == "unsat":
        core = oracle.judge.core(given)
        raise SpecError(
            f"no input meets the assumptions: {all_of(core)}",
            hint="a symbol is at least 1 unless an assumption states another lower bound",
        )


def _works_at_all(target: Target, source: Source, oracle: DomainOracle) -> None:
    """Raises TargetError where the program fails at an example for a reason that does not depend on sizes."""
    example = oracle.example(source.spec.domain.assumptions)
    outcome = None if example is None else source.run(example, True)
    if isinstance(outcome, Inconclusive) and outcome.raised:
        raise TargetError(
            f"{target.name} fails for a reason other than sizes: {outcome.reason}",
            key_hint(outcome.reason, source.spec.inputs) or f"it was run with {show(example or {})}",
            outcome.origin,
        )


# ---- the report


def _report(
    name: str, spec: Spec, system: System, decision: Decision, rules: Rules, changed: list[str],
    oracle: DomainOracle, trial: Trial | None, answered: Answered | None,
) -> Report:
    """The decision in the user's words. An example that fails to do what was claimed makes it unknown.

    `answered` is called once the two examples of the report have done it, before more are tried.
    """
    inside, outside = decision.inside, decision.outside
    verdict = Verdict(decision.verdict)
    exact = verdict is not Verdict.UNKNOWN and decision.exact
    domain = spec.domain
    sure = None if exact or decision.certain == decision.accepted else decision.certain
    accepts = Accepts(decision.accepted, all_of(domain.declared), domain.symbols, exact, sure)
    facts = {name: decision.facts.get(name) or _declared(domain, name) for name in domain.symbols}
    if trial is not None:
        inside = inside if inside is None or trial.confirms(inside, True) else None
        outside = outside if outside is None or trial.confirms(outside, False) else None
    refined = verdict is Verdict.REFINED
    imposing = imposed(oracle.judge, domain, decision.accepted, decision.residual) if refined else ()
    report = Report(
        name,
        write_spec(spec),
        verdict,
        accepts,
        _worth_telling(decision, facts),
        (),
        Later(lambda: findings.shapes(system)),
        findings.outputs(system),
        findings.branches(system),
        inside,
        outside,
        trial.how if trial else "",
        ways=Later(lambda: findings.ways(system, inside)),
        parts=findings.parts(system, imposing),
    )
    if answered is not None and not (trial and trial.mistakes):
        answered(report)
    if trial is not None and verdict is not Verdict.UNKNOWN and not trial.mistakes:
        trial.sample(accepts, facts)
        trial.ends()
    witnesses = Witnesses(spec, decision, outside, oracle, trial)
    told = findings.findings(
        system, decision, rules, changed, lambda parts: simplify(oracle.judge, domain, parts), witnesses.show
    )
    mistakes = tuple(trial.mistakes) if trial else ()
    remarks = tuple(trial.remarks) if trial else ()
    report = replace(report, findings=(*mistakes, *told, *remarks), replayed=trial.how if trial else "")
    if not mistakes:
        return replace(report, outputs=with_numbers(report, oracle.judge)) if refined else report
    facts = {name: _declared(domain, name) for name in domain.symbols}
    open_ = replace(accepts, formula=True, exact=False, sure=False)
    return replace(
        report, verdict=Verdict.UNKNOWN, accepts=open_, dims=_worth_telling(decision, facts), parts=()
    )


def _worth_telling(decision: Decision, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {n: f for n, f in facts.items() if n in decision.facts or not (is_dim(n) or is_relation(n))}


def _declared(domain: Domain, name: str) -> Fact:
    """Returns the range that the assumptions give to a symbol, for use where nothing more is known."""
    low, high = domain.ranges.get(name, (-inf, inf))
    return Fact(None if low == -inf else int(low), None if high == inf else int(high), exact=False)


def _stats(clock: Clock, system: System, decision: Decision, oracle: DomainOracle) -> dict[str, float]:
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
