"""The table of the forms in which reports leave the command line and the service."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ..report.report import ReportData

Writer: TypeAlias = Callable[[Sequence[ReportData]], str]


@dataclass(frozen=True, slots=True)
class Format:
    """A form of reports: how it is written, and the media type under which a service sends it."""

    write: Writer
    media: str


def _text(reports: Sequence[ReportData]) -> str:
    from .text import to_text

    return "\n".join(map(to_text, reports))


def _concise(reports: Sequence[ReportData]) -> str:
    from .concise import to_concise

    return to_concise(reports)


def _json(reports: Sequence[ReportData]) -> str:
    from .json import SCHEMA, to_json

    return _dumped({"schema": SCHEMA, "reports": [to_json(report) for report in reports]})


def _one_json(reports: Sequence[ReportData]) -> str:
    from .json import to_json

    (report,) = reports
    return _dumped(to_json(report))


def _sarif(reports: Sequence[ReportData]) -> str:
    from .sarif import to_sarif

    return _dumped(to_sarif(reports))


def _github(reports: Sequence[ReportData]) -> str:
    from .github import to_github

    return to_github(reports)


def _markdown(reports: Sequence[ReportData]) -> str:
    from .markdown import to_markdown

    return to_markdown(reports)


def _junit(reports: Sequence[ReportData]) -> str:
    from .junit import to_junit

    return to_junit(reports)


def _html(reports: Sequence[ReportData]) -> str:
    from .html import to_html

    return to_html(reports)


def _dot(reports: Sequence[ReportData]) -> str:
    from .graph import to_dot

    return "\n".join(map(to_dot, reports))


def _dumped(data: Any) -> str:
    return json.dumps(data, indent=2) + "\n"


FORMATS: Final[Mapping[str, Format]] = {
    "text": Format(_text, "text/plain; charset=utf-8"),
    "concise": Format(_concise, "text/plain; charset=utf-8"),
    "json": Format(_json, "application/json"),
    "sarif": Format(_sarif, "application/sarif+json"),
    "github": Format(_github, "text/plain; charset=utf-8"),
    "markdown": Format(_markdown, "text/markdown; charset=utf-8"),
    "junit": Format(_junit, "application/xml"),
    "html": Format(_html, "text/html; charset=utf-8"),
    "dot": Format(_dot, "text/vnd.graphviz; charset=utf-8"),
}
"""Every form by its name. Writers import what they need when they are called."""


def written(form: str, reports: Sequence[ReportData], *, project: bool) -> str:
    """The reports in one of these forms. The JSON of a project is the list of its reports."""
    write = _one_json if form == "json" and not project else FORMATS[form].write
    return write(reports)
