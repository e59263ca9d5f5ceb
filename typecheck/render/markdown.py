"""Reports in Markdown, for the summary of a job of GitHub Actions and for comments: a table of the targets,
then the findings of those that do not pass, folded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from ..report.catalogue import address
from ..report.report import Finding, ReportData, Verdict
from .text import place
from .words import told

MOST_FINDINGS: Final = 50
"""Findings of one report that are listed; GitHub shows a summary of up to 1 MiB."""
_LONGEST: Final = 300
"""Characters of a condition in the table."""


def to_markdown(reports: Sequence[ReportData]) -> str:
    """Returns the reports as one text in Markdown."""
    return "\n".join([*_table(reports), *(line for report in reports for line in _details(report))]) + "\n"


def _table(reports: Sequence[ReportData]) -> Iterator[str]:
    counts = Counter(report.verdict for report in reports)
    yield f"### anyshape: {', '.join(f'{counts[v]} {v}' for v in Verdict if counts[v]) or 'nothing checked'}"
    yield ""
    yield "| | target | verdict | runs where |"
    yield "| --- | --- | --- | --- |"
    for report in reports:
        mark = "✅" if report.passes else "❓" if report.verdict is Verdict.UNKNOWN else "❌"
        condition = str(report.accepts) if report.verdict is Verdict.REFINED else ""
        if len(condition) > _LONGEST:
            condition = condition[: _LONGEST - 1] + "…"
        yield f"| {mark} | {_cell(report.target)} | {report.verdict} | {_cell(condition)} |"


def _details(report: ReportData) -> Iterator[str]:
    findings = [finding for finding in report.findings if not finding.suppressed]
    if not findings:
        return
    count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
    yield f"\n<details><summary>{_escaped(report.target)}: {count}</summary>\n"
    for finding in findings[:MOST_FINDINGS]:
        yield from _finding(finding)
    if len(findings) > MOST_FINDINGS:
        yield f"- and {len(findings) - MOST_FINDINGS} more"
    yield "\n</details>"


def _finding(finding: Finding) -> Iterator[str]:
    message, *more = told(finding)
    where = f" {_code(place(finding.origin))}" if finding.origin.file else ""
    yield f"- [**{finding.code}**]({address(finding.code)}){where}: {_escaped(message)}"
    if finding.origin.code:
        yield f"  <br>{_code(finding.origin.code)}"
    yield from (f"  - {_escaped(line)}" for line in more)


def _cell(text: str) -> str:
    return _code(text).replace("|", "\\|") if text else ""


def _code(text: str) -> str:
    """Returns a span of code, whose fence is longer than any row of backquotes in the text."""
    text = " ".join(text.split())
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _escaped(text: str) -> str:
    """Returns a text in which no character has a meaning of Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#|~@&])", lambda c: f"&#{ord(c[1])};", " ".join(text.split()))
