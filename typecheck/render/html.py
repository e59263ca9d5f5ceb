"""A report as one HTML page that needs no network: the graph of the program, drawn and to be explored.

The page holds everything: styles, scripts (`page/layout.js`, `page/page.js`), the layout library dagre, and
the report as JSON. Nothing of the report is ever read as HTML or as a script. `summary` is the short form
for notebooks.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final

from ...constraints.ir.program import Origin
from ..report.report import Finding, Operand, Repair, ReportData, Verdict
from .regions import Part, ProgramRegion, regions
from .text import (
    conditions,
    fact_text,
    headline,
    opinion_text,
    place,
    repair_text,
    sizes,
    span,
    training_text,
)
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
    """Returns the place, the function and text of a line, the part of the text that is the call, its column
    in the file, and the whole path of the file, "" where only a part of it is known.
    """
    start, stop = span(origin, op) if origin.code else (0, 0)
    path = origin.file if os.path.isabs(origin.file) else ""
    return (place(origin), origin.function, origin.code, start, stop, origin.indent + start + 1, path)


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
    """Returns the report as a fragment of HTML without scripts, readable on a light and on a dark page."""
    return "".join(_summary(report))


_COLOURS: Final = {
    "good": ("#1a7037", "#5cc486"),
    "warning": ("#8f5200", "#f0b35c"),
    "error": ("#b3261e", "#ff8a80"),
    "unknown": ("#6a3fa6", "#bb9af0"),
    "note": ("#0d57a8", "#7ab3ff"),
}
"""By meaning, the colours on a light and on a dark page."""
_VERDICTS: Final = {
    Verdict.PROVED: "good",
    Verdict.REFINED: "warning",
    Verdict.REFUTED: "error",
    Verdict.UNKNOWN: "unknown",
}


def _scheme() -> str:
    """Returns the style sheet with the colours of a dark page, as browsers and JupyterLab say that it is one.

    Where it is left out, as GitHub does, the colours are those of a light page.
    """
    dark = ";".join(f"--anyshape-{name}:{dark}" for name, (_, dark) in _COLOURS.items())
    light = ";".join(f"--anyshape-{name}:{light}" for name, (light, _) in _COLOURS.items())
    return (
        f"<style>@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"[data-jp-theme-light=false]{{{dark}}}[data-jp-theme-light=true]{{{light}}}</style>"
    )


def _colour(name: str) -> str:
    return f"var(--anyshape-{name},{_COLOURS[name][0]})"


_STYLE = {
    "box": "border-left:4px solid {0};padding:2px 0 2px 10px;margin:6px 0",
    "word": "color:{0};font-weight:bold",
    "pre": "margin:2px 0;padding:2px 6px;background:rgba(128,128,128,.13);white-space:pre-wrap",
    "cell": "text-align:left;padding:1px 14px 1px 0;background:none",
}


def _summary(report: ReportData) -> Iterator[str]:
    e = html.escape
    colour = _colour(_VERDICTS[report.verdict])
    yield _scheme()
    yield f'<div style="{_STYLE["box"].format(colour)}">'
    yield f"{_word(report.verdict.value, colour)}: <b>{e(report.target)}</b> {headline(report)}"
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
    colour = _colour(finding.severity.value)
    message, *more = told(replace(finding, repairs=()))
    yield f'<div style="{_STYLE["box"].format(colour)}">{_word(finding.code.value, colour)}: {e(message)}'
    origin = finding.origin
    if origin.code:
        start, stop = span(origin, finding.op)
        code = f"{e(origin.code[:start])}<u><b>{e(origin.code[start:stop])}</b></u>{e(origin.code[stop:])}"
        yield f'<pre style="{_STYLE["pre"]}">{code}</pre>'
    yield "".join(f"<div>{e(line)}</div>" for line in (*([place(origin)] if origin.file else []), *more))
    for repair in finding.repairs:
        yield f"<div>{_word('repair', _colour('good'))}: {e(repair_text(repair))}</div>"
        yield _edit(repair)
    yield "</div>"


def _edit(repair: Repair) -> str:
    """Returns the line before and after a repair; "" where the repair is only described."""
    origin = repair.origin
    if not repair.old or origin.code[origin.start : origin.stop] != repair.old:
        return ""
    changed = origin.code[: origin.start] + repair.new + origin.code[origin.stop :]
    lines = (("-", "error", origin.code), ("+", "good", changed))
    told = "\n".join(
        f'<span style="color:{_colour(name)}">{sign} {html.escape(line)}</span>' for sign, name, line in lines
    )
    return f'<pre style="{_STYLE["pre"]}">{told}</pre>'


def _word(text: str, colour: str) -> str:
    return f'<span style="{_STYLE["word"].format(colour)}">{html.escape(text)}</span>'


def _table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield '<table style="border:none;margin:2px 0">'
    for row in rows:
        cells = "".join(f'<td style="{_STYLE["cell"]}"><code>{html.escape(cell)}</code></td>' for cell in row)
        yield f'<tr style="background:none">{cells}</tr>'
    yield "</table>"
