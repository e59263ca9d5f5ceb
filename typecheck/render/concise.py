"""Reports in single lines: for editors, for `grep`, and for who knows what a finding means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..report.report import Finding, ReportData, Verdict
from .text import headline, place, span


def to_concise(reports: Sequence[ReportData]) -> str:
    """Returns `file:line:column: code: message` for each finding that is not suppressed, and behind the
    findings of a report its answer.
    """
    return "".join(f"{line}\n" for report in reports for line in _lines(report))


def answer_line(report: ReportData) -> str:
    """Returns the verdict of a report and the condition in one line."""
    where = "" if report.verdict is not Verdict.REFINED else f", where {report.accepts}"
    return _on_one_line(f"{report.verdict}: {report.target} {headline(report)}{where}")


def _lines(report: ReportData) -> Iterator[str]:
    yield from (finding_line(finding) for finding in report.findings if not finding.suppressed)
    yield answer_line(report)


def finding_line(finding: Finding) -> str:
    """Returns the place, the code and the message of a finding in one line."""
    origin = finding.origin
    column = f":{origin.indent + span(origin, finding.op)[0] + 1}" if origin.code else ""
    where = f"{place(origin)}{column}: " if origin.file else ""
    return _on_one_line(f"{where}{finding.code}: {finding.message}")


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
