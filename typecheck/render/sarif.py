"""Reports as SARIF 2.1.0 (OASIS standard), which code scanning services read.

Each code is a rule, with its section of the catalogue as help. Each finding is a result at its line and
columns. The calls that led there, as far as they change the sizes in question, are its code flow;
requirements that contradict it are its related locations. A suppressed finding is a suppressed result.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from ...constraints.ir.program import Origin
from ..report.catalogue import address, published
from ..report.codes import Code
from ..report.report import Finding, Link, Repair, ReportData
from .text import span
from .words import relative, told

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST_STEPS: Final = 20
"""Steps of a code flow."""
LONGEST_SNIPPET: Final = 400
"""Characters of a line that are repeated in the results; its columns are those of the whole call."""
_RULES: Final = {code: index for index, code in enumerate(Code)}
_SUPPRESSED: Final[Mapping[str, str]] = {"source": "inSource", "project": "external", "baseline": "external"}


def to_sarif(reports: Sequence[ReportData]) -> dict[str, Any]:
    """One run with the findings of all reports, as plain data for `json.dump`."""
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "anyshape",
                        "semanticVersion": version("anyshape"),
                        "rules": [_rule(code) for code in Code],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"uri": Path(os.getcwd()).as_uri() + "/"}},
                "invocations": [{"executionSuccessful": True}],
                "results": [_result(report, finding) for report in reports for finding in report.findings],
            }
        ],
    }


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": code.value,
        "name": "".join(word.capitalize() for word in code.value.split("-")),
        "shortDescription": {"text": code.summary},
        "helpUri": address(code),
        "help": {
            "text": f"`anyshape explain {code.value}` explains it.",
            "markdown": published(code),
        },
        "defaultConfiguration": {"level": code.severity.value},
    }


def _result(report: ReportData, finding: Finding) -> dict[str, Any]:
    place = _location(finding.origin, finding.op)
    result: dict[str, Any] = {
        "ruleId": finding.code.value,
        "ruleIndex": _RULES[finding.code],
        "level": finding.severity.value,
        "message": {"text": "\n".join(told(finding))},
        "locations": [place] if place else [],
        "partialFingerprints": {"anyshape/v1": _fingerprint(report, finding)},
        "properties": {"target": report.target, "verdict": report.verdict.value},
    }
    if steps := [step for link in _shown(finding.chain) if (step := _step(link))]:
        flow = {"locations": [*steps, *([{"location": place}] if place else [])]}
        result["codeFlows"] = [{"threadFlows": [flow]}]
    if others := [_location(link.origin, link.op, link.result) for link in finding.conflict]:
        result["relatedLocations"] = [other for other in others if other]
    if fixes := [fix for repair in finding.repairs if (fix := _fix(repair))]:
        result["fixes"] = fixes
    if finding.suppressed:
        result["suppressions"] = [{"kind": _SUPPRESSED[finding.suppressed]}]
    return result


def _fix(repair: Repair) -> dict[str, Any]:
    """Returns the replacement of a text in its line; empty where the repair describes its change only in
    words.
    """
    origin = repair.origin
    if not repair.old or origin.code[origin.start : origin.stop] != repair.old:
        return {}
    place = _location(origin, "")["physicalLocation"]
    region = {name: place["region"][name] for name in ("startLine", "startColumn", "endColumn")}
    change = {"deletedRegion": region, "insertedContent": {"text": repair.new}}
    return {
        "description": {"text": repair.message},
        "artifactChanges": [{"artifactLocation": place["artifactLocation"], "replacements": [change]}],
    }


def _shown(chain: Sequence[Link]) -> Sequence[Link]:
    """Returns the calls of a chain that change the sizes in question; of many the first and the last ones."""
    changing = [link for link in chain if not link.passed]
    left_out = max(len(changing) - MOST_STEPS, 0)
    half = MOST_STEPS // 2
    return [*changing[:half], *changing[half + left_out :]]


def _step(link: Link) -> dict[str, Any]:
    place = _location(link.origin, link.op, f"{link.op}: {link.result}")
    return {"location": place} if place else {}


def _location(origin: Origin, op: str, message: str = "") -> dict[str, Any]:
    """Line and columns, from 1; the end is the column after the last. Empty where the line is not known."""
    if not origin.file or not origin.line:
        return {}
    region: dict[str, Any] = {"startLine": origin.line}
    if origin.code:
        start, stop = span(origin, op)
        region |= {"startColumn": origin.indent + start + 1, "endColumn": origin.indent + stop + 1}
        region["snippet"] = {"text": origin.code[start : min(stop, start + LONGEST_SNIPPET)]}
    file = relative(origin.file)
    inside = not os.path.isabs(file)
    artifact = {"uri": file, "uriBaseId": "SRCROOT"} if inside else {"uri": Path(file).as_uri()}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
    if origin.module or origin.function:
        named = ("module", origin.module) if origin.module else ("function", origin.function)
        location["logicalLocations"] = [{"kind": named[0], "fullyQualifiedName": named[1]}]
    if message:
        location["message"] = {"text": message}
    return location


def _fingerprint(report: ReportData, finding: Finding) -> str:
    """The same for the same finding after lines were added above it."""
    parts = (report.target, finding.code, finding.origin.function, finding.origin.code, finding.message)
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:16]
