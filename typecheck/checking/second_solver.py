"""Has a verdict confirmed by another solver, and reports the outcome.

If the other solver agrees with everything on which the verdict rests, the report says so. If it leaves
something open, the verdict stays, without its agreement. If it contradicts, one of the two is wrong: the
verdict is `unknown`, and the question is saved to a file that any solver reads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...constraints.ir.system import System
from ...constraints.terms.formula_text import parse_formula
from ...solver import agreement, second_opinion
from ...solver.backends import cvc5_backend
from ...solver.decide import Decision
from ..facade import Report
from ..report import findings
from ..report.codes import Code
from ..report.report import SecondOpinion, Verdict
from ..targets.extras import MissingPackage
from ..targets.target_error import TargetError

VERSIONS: Final = {"cvc5": cvc5_backend.version}
"""The solvers that can be asked, each with what says which version is installed, if it is."""
LEAST_S: Final = 10.0
"""Seconds that the other solver has, however little of the budget is left."""


def named(solver: str) -> str:
    """Returns the solver with its version. Raises TargetError if it cannot be used."""
    installed: Callable[[], str | None] | None = VERSIONS.get(solver)
    if installed is None:
        raise TargetError(f"{solver!r} is not a known solver", f"there is {', '.join(VERSIONS)}")
    version = installed()
    if version is None:
        raise MissingPackage(solver)
    return f"{solver} {version}"


def reviewed(report: Report, system: System, decision: Decision, solver: str, seconds: float) -> Report:
    """The report with what the other solver says of its verdict. Nothing is asked about `unknown`."""
    if report.verdict is Verdict.UNKNOWN:
        return report
    accepted = parse_formula(str(report.accepts.formula))
    questions = second_opinion.questions(
        system, report.verdict.value, accepted, decision.cores, decision.residual,
        decision.inside, decision.outside,
    )  # fmt: skip
    found = agreement.opinion(questions, max(seconds, LEAST_S))
    opinion = SecondOpinion(named(solver), found.outcome, found.asked, found.reason, _dumped(found.script))
    if found.outcome != "disagreed":
        return replace(report, second_opinion=opinion)
    message = f"{opinion.solver} contradicts: {found.reason}; the question is in {opinion.query}"
    return replace(
        report,
        verdict=Verdict.UNKNOWN,
        accepts=replace(report.accepts, formula=True, exact=False, sure=False),
        dims={name: replace(fact, exact=False) for name, fact in report.dims.items()},
        findings=(findings.make(Code.INTERNAL_ERROR, message), *report.findings),
        parts=(),
        second_opinion=opinion,
    )


def _dumped(script: str) -> str:
    """Writes a question to a new file and returns its path; empty if the question is empty."""
    if not script:
        return ""
    path = Path(tempfile.mkdtemp(prefix="anyshape-")) / "question.smt2"
    path.write_text(script, encoding="utf-8")
    return str(path)
