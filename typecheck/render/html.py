"""A report as one HTML page that needs no network: the graph of the program, drawn and to be explored.

The page holds everything: styles, scripts (`page/layout.js`, `page/page.js`), the layout library dagre, and
the report as JSON. Nothing of the report is ever read as HTML or as a script. `summary` is the short form
for notebooks.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Final

from ...constraints.ir.program import Origin
from ..report.report import Finding, Operand, ReportData, Verdict
from .regions import Part, ProgramRegion, regions
from .text import conditions, fact_text, headline, opinion_text, place, sizes, span, training_text
from .words import told


def to_html(reports: Sequence[ReportData]) -> str:
    """The page; with several reports it has a choice among them."""
    folder = files(__package__) / "page"
    data = json.dumps([page_data(report) for report in reports], separators=(",", ":"))
    parts = {
        "title": html.escape(f"anyshape: {', '.join(report.target for report in reports)}"),
        "style": (folder / "page.css").read_text(encoding="utf-8"),
        "dagre": (folder / "dagre.min.js").read_text(encoding="utf-8"),
        "layout": (folder / "layout.js").read_text(encoding="utf-8"),
        "script": (folder / "page.js").read_text(encoding="utf-8"),
        "data": data.replace("<", "\\u003c"),  # no text of the report closes the element
    }
    page = (folder / "page.html").read_text(encoding="utf-8")
    return re.sub(r"%([a-z]+)%", lambda gap: parts[gap[1]], page)


def page_data(report: ReportData) -> dict[str, Any]:
    """Returns the data that the page shows of a report. Calls are named by their position in the list of
    calls.
    """
    position = {shape.node: index for index, shape in enumerate(report.shapes)}
    origins: dict[tuple[Any, ...], int] = {}
    return {
        "target": report.target,
        "verdict": report.verdict.value,
        "headline": headline(report),
        "inputs": list(report.inputs),
        "conditions": conditions(report),
        "dims": [[name, fact_text(fact)] for name, fact in report.dims.items()],
        "examples": _examples(report),
        "findings": [_finding(f, position) for f in report.findings if not f.suppressed],
        "suppressed": sum(bool(f.suppressed) for f in report.findings),
        "calls": [
            {
                "op": shape.op,
                "results": list(shape.results),
                "module": shape.origin.module,
                "origin": origins.setdefault(_line(shape.origin, shape.op), len(origins)),
                "takes": _takes(shape.operands, position),
            }
            for shape in report.shapes
        ],
        "outputs": [
            {"name": o.name, "value": str(o.value), "when": o.when, "takes": _takes(o.operands, position)}
            for o in report.outputs
        ],
        "regions": [_region(part) for part in regions(report.shapes)],
        "origins": [list(line) for line in origins],
    }


def _examples(report: ReportData) -> list[str]:
    found = []
    if report.runs_at is not None:
        found.append(f"Runs at {sizes(report.runs_at)}")
    if report.fails_at is not None:
        found.append(f"Refused at {sizes(report.fails_at)}")
    if found and report.replayed:
        found.append(f"Tried {report.replayed}")
    if report.second_opinion is not None:
        found.append(opinion_text(report.second_opinion))
    if report.training is not None:
        found.append(training_text(report.training))
    return found


def _line(origin: Origin, op: str) -> tuple[Any, ...]:
    """Returns the place, the function and text of a line, and the part of the text that is the call."""
    return (place(origin), origin.function, origin.code, *(span(origin, op) if origin.code else (0, 0)))


def _takes(operands: Iterable[Operand], position: dict[int, int]) -> list[list[Any]]:
    """The call that made each operand, or the name of the input, and the operand."""
    return [[o.name if o.node is None else position[o.node], o.value] for o in operands]


def _finding(finding: Finding, position: dict[int, int]) -> dict[str, Any]:
    message, *more = told(finding)
    return {
        "code": finding.code.value,
        "severity": finding.severity.value,
        "message": message,
        "more": more,
        "line": list(_line(finding.origin, finding.op)),
        "module": finding.origin.module,
        "call": position.get(-1 if finding.node is None else finding.node),
        "chain": [position[link.node] for link in finding.chain if link.node in position],
    }


def _region(part: Part) -> Any:
    if isinstance(part, ProgramRegion):
        return {"label": part.label, "module": part.module, "parts": [_region(p) for p in part.parts]}
    return part


# ---- notebooks


MOST_ROWS: Final = 500
"""Calls whose shapes a notebook gets to hold."""


def summary(report: ReportData) -> str:
    """The report as a fragment of HTML without scripts, in the colours of the page that it stands on."""
    return "".join(_summary(report))


_STYLE = {
    "box": "border-left:4px solid {};padding:2px 0 2px 10px;margin:6px 0",
    "pre": "margin:2px 0;padding:2px 6px;background:rgba(128,128,128,.13);white-space:pre-wrap",
    "cell": "text-align:left;padding:1px 14px 1px 0;background:none",
}
_VERDICT_COLOURS = {
    Verdict.PROVED: "#1a7037",
    Verdict.REFINED: "#b26a00",
    Verdict.REFUTED: "#c62828",
    Verdict.UNKNOWN: "#7a4fb5",
}


def _summary(report: ReportData) -> Iterator[str]:
    e = html.escape
    yield f'<div style="{_STYLE["box"].format(_VERDICT_COLOURS[report.verdict])}">'
    yield f"<b>{report.verdict.value}</b>: <b>{e(report.target)}</b> {headline(report)}"
    yield f'<pre style="{_STYLE["pre"]}">{e(chr(10).join(report.inputs))}</pre>'
    for words, condition in conditions(report):
        yield words
        yield f'<pre style="{_STYLE["pre"]}"><b>{e(condition)}</b></pre>'
    if report.verdict is not Verdict.REFUTED:
        yield from _table((name, fact_text(fact)) for name, fact in report.dims.items())
    if examples := _examples(report):
        yield f"<div>{e('. '.join(examples))}.</div>"
    yield "</div>"
    for finding in report.findings:
        if not finding.suppressed:
            yield from _told(finding)
    if report.shapes:
        shown = report.shapes[:MOST_ROWS]
        first = f"the first {MOST_ROWS} of " if len(shown) < len(report.shapes) else ""
        yield f"<details><summary>Shapes of {first}{len(report.shapes)} calls</summary>"
        yield from _table((s.op, ", ".join(s.results), place(s.origin), s.origin.module) for s in shown)
        yield "</details>"


def _told(finding: Finding) -> Iterator[str]:
    e = html.escape
    colour = {"error": "#c62828", "warning": "#b26a00", "note": "#1565c0"}[finding.severity]
    message, *more = told(finding)
    yield f'<div style="{_STYLE["box"].format(colour)}"><b>{finding.code.value}</b>: {e(message)}'
    origin = finding.origin
    if origin.code:
        start, stop = span(origin, finding.op)
        code = f"{e(origin.code[:start])}<u><b>{e(origin.code[start:stop])}</b></u>{e(origin.code[stop:])}"
        yield f'<pre style="{_STYLE["pre"]}">{code}</pre>'
    yield "".join(f"<div>{e(line)}</div>" for line in (*([place(origin)] if origin.file else []), *more))
    yield "</div>"


def _table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield '<table style="border:none;margin:2px 0">'
    for row in rows:
        cells = "".join(f'<td style="{_STYLE["cell"]}"><code>{html.escape(cell)}</code></td>' for cell in row)
        yield f'<tr style="background:none">{cells}</tr>'
    yield "</table>"
