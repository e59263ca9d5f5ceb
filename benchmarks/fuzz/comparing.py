"""Compares the checker's report on a program with eager PyTorch, and lists the contradictions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal, TypeAlias
from unittest import mock

from anyshape.constraints.ir.language import Fact
from anyshape.constraints.terms import dims
from anyshape.constraints.terms.formula import holds
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import DimSyntaxError, parse_dim
from anyshape.solver.tactics import judge
from anyshape.tracer.recording import record
from anyshape.tracer.summaries import merging
from anyshape.typecheck.checking import clock
from anyshape.typecheck.checking.api import check
from anyshape.typecheck.facade import Report
from anyshape.typecheck.report.codes import Code
from anyshape.typecheck.targets.target_error import TargetError

from .eager import Outcome
from .program import Program, Sizes, split

Kind: TypeAlias = Literal[
    "proved-refused", "refuted-ran", "accepts-refused", "refuses-ran", "certain-refused", "shape",
    "internal-error",
    "exception", "died"
]  # fmt: skip
"""The kinds of errors of a report. `accepts-refused`: the exact condition holds for sizes that eager refuses,
and so on.
"""


LARGEST = 5000
"""Sizes beyond this are not tried."""


@dataclass(frozen=True)
class Wrong:
    """One contradiction: where, and what either side says."""

    kind: Kind
    sizes: Sizes | None
    said: str
    eager: str = ""


@dataclass(frozen=True)
class Checked:
    """The result of checking a program: a report, or the type and text of the exception that `check` raised.
    """

    report: Report | None = None
    raised: str = ""
    target_error: bool = False
    """The checker says that the program cannot run, and not for the sake of sizes."""

    @property
    def verdict(self) -> str:
        if self.report is None:
            return "target-error" if self.target_error else "exception"
        return str(self.report.verdict)

    @property
    def decided(self) -> bool:
        """It is said exactly for which inputs the program runs. Where nothing is approximated and the
        condition is not exact all the same, the data alone decide the rest: no more can be said of sizes.
        """
        if self.report is None or self.report.verdict == "unknown":
            return self.target_error
        return self.report.accepts.exact or not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Returns the reasons why it is not decided, from the findings, without names and numbers."""
        if self.report is None:
            return (self.raised,)
        codes = (Code.INCOMPLETE, Code.NO_RULE, Code.APPROXIMATE, Code.TRACE_LIMIT, Code.CONTRADICTED)
        found = [f for f in self.report.findings if f.code in codes]
        return tuple(dict.fromkeys(f"{f.code}: {general(f.message)}" for f in found))


def general(text: str) -> str:
    """A message without what differs between programs."""
    return re.sub(r"\d+", "#", re.sub(r"\b[a-z]\b|\bt\d+\b", "_", " ".join(text.split())))[:160]


def checked(program: Program, budget_s: float, replay: bool = True) -> Checked:
    """Checks the program. Whatever else than a report comes of it is told, too.

    The budget is in seconds of this process, so that what is decided does not depend on what else runs. Z3
    itself is bounded by the clock: it tells by this whether somebody has interrupted it.
    """
    try:
        target = program.build()()
    except Exception as error:  # noqa: BLE001 (the program itself is wrong: it runs nowhere)
        return Checked(raised=f"{type(error).__name__}: {error}", target_error=True)
    try:
        begun = time.monotonic() - time.process_time()

        def of_process() -> float:
            return begun + time.process_time()

        with ExitStack() as patched:
            for module in (judge, record, merging, clock):
                clocked = SimpleNamespace(monotonic=of_process)
                patched.enter_context(mock.patch.object(module, "time", clocked))
            return Checked(check(target, program.spec, program.assume, budget_s=budget_s, replay=replay))
    except TargetError as error:
        return Checked(raised=f"TargetError: {error}", target_error=True)
    except Exception as error:  # noqa: BLE001 (`check` documents two exceptions; any other is what is looked for)
        return Checked(raised=f"{type(error).__name__}: {error}")


def examples(report: Report | None, symbols: Sequence[str]) -> list[Sizes]:
    """The examples that the report gives."""
    if report is None:
        return []
    given = (report.runs_at, report.fails_at, *(f.witness for f in report.findings))
    return [
        e for e in given if e is not None and set(symbols) <= set(e) and max(e.values(), default=0) <= LARGEST
    ]


def near(report: Report | None) -> dict[str, tuple[int, ...]]:
    """Sizes next to the bounds and multiples that the report states."""
    if report is None:
        return {}
    return {name: tuple(v for v in _near(fact) if v <= LARGEST) for name, fact in report.dims.items()}


def _near(fact: Fact) -> Iterator[int]:
    low = max(0, fact.min or 0)
    steps = [low, low + fact.divisor] if fact.divisor > 1 else [low]
    for bound in (*steps, *([fact.max] if fact.max is not None else [])):
        yield from (bound, bound - 1, bound + 1)


def wrongs(said: Checked, at: Sequence[Sizes], outcomes: Sequence[Outcome]) -> list[Wrong]:
    """Where the outcomes contradict what is said."""
    judged = [(p, o) for p, o in zip(at, outcomes, strict=True) if o.verdict in ("ran", "refused")]
    if said.report is None:
        if not said.target_error:
            return [Wrong("exception", None, said.raised)]
        return [Wrong("refuted-ran", p, said.raised, "runs") for p, o in judged if o.verdict == "ran"]
    report = said.report
    for finding in report.findings:
        if finding.code is Code.INTERNAL_ERROR:
            return [Wrong("internal-error", None, finding.message)]
    return [wrong for sizes, outcome in judged for wrong in _wrongs(report, sizes, outcome)]


def _wrongs(report: Report, sizes: Sizes, outcome: Outcome) -> Iterator[Wrong]:
    ran, told = outcome.verdict == "ran", outcome.error or "runs"
    said = f"{report.verdict}: {report.accepts}" + ("" if report.accepts.exact else " (approximate)")
    certain = report.accepts.certain
    if report.verdict == "proved" and not ran:
        yield Wrong("proved-refused", sizes, said, told)
    elif report.verdict == "refuted" and ran:
        yield Wrong("refuted-ran", sizes, said, told)
    elif report.verdict == "refined" and report.accepts.exact and report.accepts.holds(**sizes) != ran:
        yield Wrong("refuses-ran" if ran else "accepts-refused", sizes, said, told)
    elif not (ran or report.accepts.exact) and certain.holds(**sizes):
        yield Wrong("certain-refused", sizes, f"{said}, certain: {certain}", told)
    if ran and report.verdict in ("proved", "refined") and report.accepts.holds(**sizes):
        for name, is_value in outcome.results:
            if (claim := _claimed(report, name, sizes)) is not None and claim != _known(claim, is_value):
                yield Wrong("shape", sizes, f"{name} is {claim}", f"{name} is {is_value}")


Claim: TypeAlias = "tuple[int | None, ...] | int"


def _known(claim: Claim, value: tuple[int, ...] | int | None) -> object:
    """The value, as far as the claim speaks of it."""
    if isinstance(claim, int) or not isinstance(value, tuple) or len(claim) != len(value):
        return value
    return tuple(None if said is None else size for said, size in zip(claim, value, strict=True))


def _claimed(report: Report, name: str, sizes: Sizes) -> Claim | None:
    """Returns the report's claim about a result at these sizes; None if there is none, or several."""
    found = [o for o in report.outputs if o.name == name and (not o.when or _holds(o.when, sizes))]
    if len(found) != 1:
        return None
    text = str(found[0].value)
    if tensor := re.fullmatch(r"\w*\[(.*)\]", text):
        parts = split(tensor[1])
        return (
            None
            if any(p.startswith(("*", "...", "?")) for p in parts)
            else tuple(_dim(p, sizes) for p in parts)
        )
    return _dim(text, sizes)


def _dim(text: str, sizes: Sizes) -> int | None:
    """None where it depends on more than the sizes."""
    try:
        return int(dims.evaluate(parse_dim(text), dict(sizes)))
    except (KeyError, DimSyntaxError):
        return None


def _holds(text: str, sizes: Sizes) -> bool:
    try:
        return holds(parse_formula(text), dict(sizes))
    except (KeyError, DimSyntaxError):  # a condition on data
        return False


def first_by_kind(found: Sequence[Wrong]) -> Mapping[str, Wrong]:
    """One contradiction of each kind, the smallest sizes first."""
    ordered = sorted(found, key=lambda w: sum(w.sizes.values()) if w.sizes else 0)
    kinds: dict[str, Wrong] = {}
    for wrong in ordered:
        kinds.setdefault(wrong.kind, wrong)
    return kinds
