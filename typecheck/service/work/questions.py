"""The questions to a worker, and their answers: a model's content and a question give plain data.

Nothing here reads a file or runs a model. torch is imported only for examples that are tried on its kernels.
A kind of question is a function in `KINDS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from ....constraints.engine.collector import collector_at_rest
from ....constraints.ir import program
from ....constraints.ir.language import Tensor
from ....constraints.ir.program import IllFormed, Program
from ....constraints.ir.spec_text import SpecError, parse_spec
from ....constraints.terms.dims import Term
from ....constraints.terms.syntax import DimSyntaxError
from ....tracer.readers import archive, pt2
from ....tracer.readers.archive import ArchiveError
from ....tracer.readers.exported import GraphError
from ....tracer.readers.graph import Traced
from ...checking.api import Examined, examine
from ...checking.clock import Clock
from ...checking.recorded import Recorded, RecordedSource
from ...checking.sources import Source, TracedSource
from ...checking.suspicions import suspected
from ...dim_specs.dynamic_shapes import of_report
from ...facade import Report
from ...report.report import Verdict
from ...targets.target import Target
from ...targets.target_error import TargetError
from . import comparing

NAME: Final = "the model"
"""The name of a model in an answer, which may be for several tenants who call it by different names."""
SPEC_SECONDS: Final = 5.0
"""The time limit, in seconds, of choosing the spec of dynamic shapes in a check."""

Tell = Callable[[str], None]
Reader = Callable[[bytes], Any]
"""Returns the content of an upload as a Target, or as two answers. Raises ArchiveError, GraphError,
IllFormed, SpecError.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a model."""

    kind: str = "check"
    inputs: tuple[str, ...] | None = None
    assume: tuple[str, ...] = ()
    budget_s: float = 30.0
    replay: bool = True
    finite: int | None = None
    """Of `refine`: the bound of symbols that have none."""
    suspect: tuple[str, ...] = ()
    """Suspicions to look for besides the usual ones."""
    kernels: bool = False
    """Try examples on torch's kernels for tensors without data, too: of a program that was sent."""
    second_solver: str | None = None
    """Another solver that the verdict is put to."""
    device: str | None = None
    """The type of the device to run on; None for that of the program's tensors."""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "inputs": None if self.inputs is None else list(self.inputs),
            "assume": list(self.assume),
            "budget_s": self.budget_s,
            "replay": self.replay,
            "finite": self.finite,
            "suspect": list(self.suspect),
            "kernels": self.kernels,
            "second_solver": self.second_solver,
            "device": self.device,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Question:
        inputs = data["inputs"]
        return Question(
            data["kind"],
            None if inputs is None else tuple(inputs),
            tuple(data["assume"]),
            data["budget_s"],
            data["replay"],
            data["finite"],
            tuple(data.get("suspect", ())),  # which questions of before did not have,
            data.get("kernels", False),  # nor this,
            data.get("second_solver"),  # nor this,
            data.get("device"),  # nor this
        )


def answer(
    form: str, content: bytes, question: Question, tell: Tell, forms: Mapping[str, Form] | None = None
) -> dict[str, Any]:
    """The answer as plain data: the verdict, the report, and what the kind of question adds.

    Or `{"failed": {"kind", "problem", "hint"}}`: `input` where what was sent cannot be used, `memory` where
    it does not fit, `crash` where anyshape itself failed.
    """
    try:
        tell("read")
        with collector_at_rest():
            read, kinds = (FORMS if forms is None else forms)[form]
            target = read(content)
        return kinds[question.kind](target, question, tell)
    except SpecError as error:
        where = f" at column {error.column} of {error.text!r}" if error.text and error.column else ""
        return _failed("input", f"{error.problem}{where}", error.hint)
    except TargetError as error:
        where = f" ({error.origin})" if error.origin.file else ""
        return _failed("input", f"{error.problem}{where}", error.hint)
    except (ArchiveError, GraphError, IllFormed) as error:
        return _failed("input", str(error))
    except RecursionError:
        return _failed("input", "the program is nested too deeply to be read")
    except MemoryError:
        return _failed("memory", "the program does not fit into the memory of a check")
    except Exception as error:  # noqa: BLE001 (a defect of ours is told, and is the end of one check alone)
        return _failed("crash", f"anyshape failed: {type(error).__name__}: {error}", "please report it")


def _failed(kind: str, problem: str, hint: str = "") -> dict[str, Any]:
    return {"failed": {"kind": kind, "problem": problem[:2000], "hint": hint[:2000]}}


# ---- models


def _pt2(content: bytes) -> Target:
    return Target(NAME, "traced", pt2.program_of(archive.parse_json(content, NAME), NAME))


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise IllFormed(f"the program is no JSON: {str(error)[:100]}") from None


def _recorded(content: bytes) -> Target:
    return Recorded.from_json(_json(content)).target(NAME)


def _program(content: bytes) -> Target:
    return Target(NAME, "traced", traced(program.from_json(_json(content))))


def _pair(content: bytes) -> comparing.Pair:
    return comparing.Pair.from_json(_json(content))


def traced(given: Program) -> Traced:
    """Returns a program as a trace that declares its own inputs."""
    lines = []
    for value in given.inputs:
        if not value.parameter and isinstance(value.type, Tensor):
            lines.append(f"{value.name}: {value.type}")
        elif not value.parameter and isinstance(value.type, Term):
            lines.append(f"{value.name}: int = {value.type}")
    return Traced(given, parse_spec(lines), ())


# ---- kinds of questions


def _examined(target: Target, question: Question, tell: Tell) -> Examined:
    return examine(
        target,
        question.inputs,
        question.assume,
        budget_s=question.budget_s,
        replay=question.replay,
        progress=tell,
        trying=_on_kernels if question.kernels else None,
        second_solver=question.second_solver,
        device=question.device,
    )


def _on_kernels(source: Source) -> Source:
    from .kernels import OnKernels

    assert isinstance(source, TracedSource | RecordedSource), "a service runs no code of users"
    return OnKernels(source)


def _answered(report: Report, **more: Any) -> dict[str, Any]:
    """Raises SpecError where nobody could read the report again: formulas are read up to a length."""
    told = _carrying(report).to_json()
    try:
        Report.from_json(told)
    except DimSyntaxError as error:
        problem = f"the conditions of the report are longer than can be read: {error.problem}"
        raise SpecError(problem, hint="ask with fewer assumptions, or simpler ones") from None
    return {"verdict": report.verdict.value, "report": told, **more}


def _carrying(report: Report) -> Report:
    """The report with the question of a second solver itself in place of the file that it is in, which is on
    this machine.
    """
    opinion = report.second_opinion
    if opinion is None or not opinion.query:
        return report
    path = Path(opinion.query)
    script = path.read_text(encoding="utf-8")
    path.unlink()
    path.parent.rmdir()
    first, *more = report.findings or (None,)
    if first is not None:
        first = replace(first, message=first.message.replace(opinion.query, "second_opinion.query"))
    findings = () if first is None else (first, *more)
    return replace(report, findings=findings, second_opinion=replace(opinion, query=script))


def _check(target: Target, question: Question, tell: Tell) -> dict[str, Any]:
    found = _examined(target, question, tell)
    report = suspected(found.report, found.system, question.suspect)
    tell("spec")
    return _answered(report, spec=_spec(report))


def _refine(target: Target, question: Question, tell: Tell) -> dict[str, Any]:
    """As a check, with symbols bounded, and what that says of each size inside."""
    from ....solver.tactics.judge import Budget, Judge
    from ...exporting.graphs.inner_sizes import bounding, inner_sizes
    from ...render.json import fact_json

    examined = _examined(target, question, tell)
    if question.finite is not None:
        assume = (*question.assume, *bounding(examined.report, question.finite))
        examined = _examined(target, replace(question, assume=assume), tell)
    tell("spec")
    shapes = of_report(examined.report, seconds=SPEC_SECONDS)
    sizes: dict[str, Any] = {}
    if question.finite is not None and shapes is not None:
        found = inner_sizes(examined.system, Judge(Budget(SPEC_SECONDS)), shapes.formula)
        sizes = {size: fact_json(known) for size, known in found.items()}
    report = suspected(examined.report, examined.system, question.suspect)
    return _answered(report, spec=_spec(report), inner_sizes=sizes)


def _branches(target: Target, question: Question, tell: Tell) -> dict[str, Any]:
    """As a check, with what each condition on sizes is for the declared inputs."""
    from ...gradual.branching import branches_of

    found = _examined(target, question, tell)
    tell("branches")
    conditions = branches_of(found.system, Clock(tell, question.budget_s))
    return _answered(
        suspected(found.report, found.system, question.suspect),
        spec=_spec(found.report),
        branches=[one.to_json() for one in conditions],
    )


def _migrate(target: Target, question: Question, tell: Tell) -> dict[str, Any]:
    """As a check, with a static migration, and what type of each value all of them share."""
    from ...gradual.migrating import migrate

    found = migrate(target, question.inputs, question.assume, budget_s=question.budget_s, progress=tell)
    told = found.to_json()
    kept = {key: told[key] for key in ("static", "principal", "types")}
    return _answered(found.report, spec=_spec(found.report), migration=kept)


def _spec(report: Report) -> dict[str, Any] | None:
    if report.verdict is Verdict.REFUTED:
        return None
    shapes = of_report(report, seconds=SPEC_SECONDS)
    return None if shapes is None else {"json": shapes.to_json(), "python": shapes.to_python()}


def _compare(pair: comparing.Pair, question: Question, tell: Tell) -> dict[str, Any]:
    tell("solve")
    return {"verdict": "", "comparison": comparing.compare(pair, question.budget_s)}


def _job(asked: Any, question: Question, tell: Tell) -> dict[str, Any]:
    """Returns the job in the form that `anyshape check` caches."""
    from ...project.cache import Cache, default_folder
    from ...project.config import ConfiguredJob
    from ...project.jobs import answer as answered

    job = ConfiguredJob(
        asked["target"],
        question.inputs,
        question.assume,
        question.budget_s,
        question.replay,
        question.suspect,
        question.second_solver,
        question.device,
    )
    found = answered(job, Cache(default_folder()) if asked["cache"] else None, tell)
    return _answered(found.report)


Kinds: TypeAlias = Mapping[str, Callable[[Any, Question, Tell], dict[str, Any]]]
Form: TypeAlias = tuple[Reader, Kinds]
"""The reader of a content, and the kinds of questions about it."""

KINDS: Final[Kinds] = {"check": _check, "refine": _refine, "branches": _branches, "migrate": _migrate}

FORMS: Final[Mapping[str, Form]] = {
    "pt2": (_pt2, KINDS),
    "recorded": (_recorded, KINDS),
    "program": (_program, KINDS),
    comparing.FORM: (_pair, {"compare": _compare}),
}
"""The JSON of a `.pt2`, a recorded target, a program of ours, two answers."""

TARGETS: Final[Mapping[str, Form]] = {"target": (json.loads, {"check": _job})}
"""The questions of `anyshape check-many` to its workers: targets of the user's own, as text. No service asks
them.
"""
