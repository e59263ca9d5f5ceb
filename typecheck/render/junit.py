"""Reports as JUnit XML: a test case per target, which fails where not all declared inputs run.

`unknown` is an error of the test, not a failure: nothing was shown to be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from ..report.report import ReportData, Verdict
from ..report.target_names import source_of
from .text import headline, to_text

_ILLEGAL: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


def to_junit(reports: Sequence[ReportData]) -> str:
    """A `testsuites` document with one suite."""
    failing = [report for report in reports if not report.passes]
    errors = sum(report.verdict is Verdict.UNKNOWN for report in failing)
    counts = {
        "tests": str(len(reports)),
        "failures": str(len(failing) - errors),
        "errors": str(errors),
        "time": f"{sum(map(_seconds, reports)):.3f}",
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "anyshape", "skipped": "0", **counts})
    for report in reports:
        file = source_of(report.target)
        name = report.target.removeprefix(f"{file}:")
        attributes = {"classname": file or "anyshape", "name": name, "time": f"{_seconds(report):.3f}"}
        case = ET.SubElement(suite, "testcase", {key: _legal(value) for key, value in attributes.items()})
        text = _legal(to_text(report))
        if not report.passes:
            outcome = "error" if report.verdict is Verdict.UNKNOWN else "failure"
            message = _legal(f"{report.target} {headline(report)}")
            ET.SubElement(case, outcome, {"message": message, "type": report.verdict.value}).text = text
        else:
            ET.SubElement(case, "system-out").text = text
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return written.decode("ascii") + "\n"


def _seconds(report: ReportData) -> float:
    return report.stats.get("total_s", 0.0)


def _legal(text: str) -> str:
    return _ILLEGAL.sub("�", text)
