"""The forms in which reports leave the command line, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ..report.report import Report

Writer: TypeAlias = Callable[[Sequence[Report]], str]


def _json(reports: Sequence[Report]) -> str:
    from .json import SCHEMA, to_json

    return _dumped({"schema": SCHEMA, "reports": [to_json(report) for report in reports]})


def _one_json(reports: Sequence[Report]) -> str:
    (report,) = reports
    return _dumped(report.to_json())


def _sarif(reports: Sequence[Report]) -> str:
    from .sarif import to_sarif

    return _dumped(to_sarif(reports))


def _github(reports: Sequence[Report]) -> str:
    from .github import to_github

    return to_github(reports)


def _junit(reports: Sequence[Report]) -> str:
    from .junit import to_junit

    return to_junit(reports)


def _html(reports: Sequence[Report]) -> str:
    from .html import to_html

    return to_html(reports)


def _dot(reports: Sequence[Report]) -> str:
    from .graph import to_dot

    return "\n".join(map(to_dot, reports))


def _dumped(data: Any) -> str:
    return json.dumps(data, indent=2) + "\n"


WRITERS: Final[Mapping[str, Writer]] = {
    "json": _json,
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
    "html": _html,
    "dot": _dot,
}
"""Each is imported when it is asked for. `text` is not among them: it depends on the terminal."""


def written(form: str, reports: Sequence[Report], *, project: bool) -> str:
    """The reports in one of these forms. The JSON of a project is the list of its reports."""
    writer = _one_json if form == "json" and not project else WRITERS[form]
    return writer(reports)
