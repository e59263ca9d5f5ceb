"""Findings as workflow commands of GitHub Actions, which annotate the lines of a pull request.

    ::warning file=model.py,line=43,col=27,endColumn=54,title=condition::cat along dim 1 …
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..report.codes import Severity
from ..report.report import Finding, ReportData, Verdict
from .text import headline, span
from .words import relative, told

_COMMANDS: Final[Mapping[Severity, str]] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "notice",
}


def to_github(reports: Sequence[ReportData]) -> str:
    """A line per finding that is not suppressed, and one per report for the log."""
    return "".join(f"{line}\n" for report in reports for line in _lines(report))


def _lines(report: ReportData) -> Iterator[str]:
    yield from (_command(report, f) for f in report.findings if not f.suppressed)
    where = f", where {report.accepts}" if report.verdict is Verdict.REFINED else ""
    yield _data(f"{report.verdict}: {report.target} {headline(report)}{where}")


def _command(report: ReportData, finding: Finding) -> str:
    origin = finding.origin
    properties: dict[str, str | int] = {}
    if origin.file:
        properties |= {"file": relative(origin.file, os.environ.get("GITHUB_WORKSPACE")), "line": origin.line}
    if origin.file and origin.code:
        start, stop = span(origin, finding.op)
        properties |= {"col": origin.indent + start + 1, "endColumn": origin.indent + stop}
    properties["title"] = f"{finding.code} in {report.target}"
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    message = "\n".join(told(finding))
    return f"::{_COMMANDS[finding.severity]} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
