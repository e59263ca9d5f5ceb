"""Reports for other tools: SARIF, Markdown, annotations of GitHub Actions, JUnit.

`sarif-2.1.0-rtm.5.json` is the JSON Schema of the OASIS standard, as the npm package `@microsoft/jest-sarif`
(MIT) carries it.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft4Validator
from jsonschema.exceptions import ValidationError
from rendered import PROGRAMS, report

from anyshape.constraints.ir.program import Origin
from anyshape.typecheck import Code, Finding, Link, Report, Severity, Verdict
from anyshape.typecheck.render.github import to_github
from anyshape.typecheck.render.junit import to_junit
from anyshape.typecheck.render.markdown import to_markdown
from anyshape.typecheck.render.sarif import to_sarif
from anyshape.typecheck.render.words import relative
from anyshape.typecheck.report.report import Repair

ROOT = Path(__file__).parent.parent.parent.parent
SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0-rtm.5.json").read_text())
VALIDATOR = Draft4Validator(SCHEMA)

AWKWARD = Finding(
    Code.CONDITION,
    "100% of <these>, a::b,\r\nand \x07 \ud800 more",
    Severity.WARNING,
    Origin(str(ROOT / "a,b:c.py"), 3, "f", "m", "y = x.view(-1)", 4, 4, 14),
    "view",
)


def reports() -> list[Report]:
    return [report(name) for name in PROGRAMS]


def with_finding(finding: Finding) -> Report:
    return replace(report("refined"), findings=(finding,))


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


# ---- SARIF


def sarif(*reports: Report) -> Any:
    return json.loads(json.dumps(to_sarif(reports)))


def test_sarif_fits_the_schema_of_the_standard() -> None:
    Draft4Validator.check_schema(SCHEMA)
    VALIDATOR.validate(sarif(*reports()))
    VALIDATOR.validate(sarif())
    VALIDATOR.validate(sarif(with_finding(AWKWARD)))


SPOILERS: list[Callable[[Any], object]] = [
    lambda run: run["results"][0].update(level="warn"),
    lambda run: run["results"][0].pop("message"),
    lambda run: run["results"][0]["locations"][0].update(line=3),
    lambda run: run["tool"]["driver"].pop("name"),
]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_what_is_no_sarif_is_noticed(spoil: Callable[[Any], object]) -> None:
    data = copy.deepcopy(sarif(report("refuted")))
    spoil(data["runs"][0])
    with pytest.raises(ValidationError):
        VALIDATOR.validate(data)


def test_every_code_is_a_rule() -> None:
    rules = sarif()["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(Code)
    assert [rule["defaultConfiguration"]["level"] for rule in rules] == [c.severity for c in Code]


def test_rules_have_the_catalogue_as_help() -> None:
    for rule in sarif()["runs"][0]["tool"]["driver"]["rules"]:
        assert rule["helpUri"].endswith(f"/findings.html#{rule['id']}")
        help = rule["help"]["markdown"]
        assert "```python" in help or "*" in help
        assert not re.search(r"\]\((?!https://)|^```\w+ ", help, re.MULTILINE), help


def test_code_flows_are_short() -> None:
    origin = Origin("model.py", 3, code="x = f(" + "x, " * 5000 + ")")
    links = tuple(Link("relu", f"float32[{n}]", origin, passed=n % 2 == 1) for n in range(4000))
    (result,) = sarif(with_finding(replace(AWKWARD, chain=links)))["runs"][0]["results"]
    (flow,) = result["codeFlows"][0]["threadFlows"]
    told = [step["location"].get("message", {}).get("text") for step in flow["locations"]]
    assert told[:2] == ["relu: float32[0]", "relu: float32[2]"] and told[-2] == "relu: float32[3998]"
    assert len(told) == 21 and len(json.dumps(result)) < 40_000


def test_a_repair_of_a_text_is_a_fix() -> None:
    for one in reports():
        for finding, result in zip(one.findings, sarif(one)["runs"][0]["results"], strict=True):
            edits = [repair for repair in finding.repairs if repair.old]
            assert len(result.get("fixes", [])) == len(edits)
    origin = Origin("model.py", 3, code="self.a = Linear(8, 4)", indent=8, start=16, stop=17)
    repair = Repair("change 8 to 6", origin, "8", "6")
    (result,) = sarif(with_finding(replace(AWKWARD, repairs=(repair,))))["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    region = {"startLine": 3, "startColumn": 25, "endColumn": 26}
    assert change["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": "6"}}]


def cut(result: Any) -> str:
    """What the result's region covers in the file."""
    place = result["locations"][0]["physicalLocation"]
    region = place["region"]
    line = (ROOT / place["artifactLocation"]["uri"]).read_text().splitlines()[region["startLine"] - 1]
    return line[region["startColumn"] - 1 : region["endColumn"] - 1]


def test_a_result_covers_the_call() -> None:
    (result,) = sarif(report("refuted"))["runs"][0]["results"]
    assert cut(result) == "self.second(self.first(x))"
    assert result["ruleId"] == "shape-mismatch"
    assert "7 features" in result["message"]["text"]
    first, last = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert first["location"]["message"]["text"] == "linear: float32[b, 6]"
    assert last["location"] == result["locations"][0]


def test_rules_and_results_agree() -> None:
    (run,) = sarif(*reports())["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


@pytest.mark.parametrize(
    "by, kind", [("source", "inSource"), ("project", "external"), ("baseline", "external")]
)
def test_suppressed_results(by: Any, kind: str) -> None:
    (result,) = sarif(with_finding(replace(AWKWARD, suppressed=by)))["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": kind}]


def test_fingerprints_outlive_lines_above() -> None:
    def prints(finding: Finding) -> Any:
        return sarif(with_finding(finding))["runs"][0]["results"][0]["partialFingerprints"]

    assert prints(AWKWARD) == prints(replace(AWKWARD, origin=replace(AWKWARD.origin, line=30)))
    assert prints(AWKWARD) != prints(replace(AWKWARD, message="another"))


def test_files_elsewhere_are_named_in_full() -> None:
    assert relative("/elsewhere/a.py") == "/elsewhere/a.py"
    outside = replace(AWKWARD, origin=Origin("/elsewhere/a b.py", 3))
    (result,) = sarif(with_finding(outside))["runs"][0]["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///elsewhere/a%20b.py"}


# ---- Markdown


def test_the_summary_has_a_row_for_each_target_and_the_findings() -> None:
    text = to_markdown(reports())
    heading, *_ = text.splitlines()
    counted = sum(int(count) for count in re.findall(r"(\d+) (?:proved|refined|refuted|unknown)", heading))
    assert heading.startswith("### anyshape: ") and counted == len(reports())
    rows = re.findall(r"^\| (✅|❌|❓) \| `(.*?)` \| (\w+) \|", text, re.MULTILINE)
    assert [(name, verdict) for _, name, verdict in rows] == [(r.target, r.verdict) for r in reports()]
    assert [mark == "✅" for mark, *_ in rows] == [r.passes for r in reports()]
    for finding in (f for r in reports() for f in r.findings):
        assert f"[**{finding.code}**](" in text


def test_no_text_of_a_report_is_read_as_markdown() -> None:
    origin = Origin("m.py", 1, code="f(``x`|y``)")
    awkward = replace(AWKWARD, message="<script>`a` *b* [c](d) | e", origin=origin)
    text = to_markdown([replace(with_finding(awkward), target="<b>|`t`")])
    assert "<script>" not in text and "*b*" not in text and "``` f(``x`|y``) ```" in text
    assert "<b>: 1 finding" not in text and "`` <b>\\|`t` ``" in text


def test_what_is_suppressed_is_not_in_the_summary() -> None:
    assert "<details>" not in to_markdown([with_finding(replace(AWKWARD, suppressed="source"))])


# ---- GitHub

COMMAND = re.compile(r"::(error|warning|notice) ((?:\w+=[^,:\r\n]*,?)+)::([^\r\n]*)")


def undone(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_annotations_are_read_back() -> None:
    first, last = to_github([with_finding(AWKWARD)]).splitlines()
    match = COMMAND.fullmatch(first)
    assert match
    level, listed, message = match.groups()
    properties = dict(part.split("=", 1) for part in listed.split(","))
    assert level == "warning"
    assert undone(message) == AWKWARD.message
    assert undone(properties["file"]) == "a,b:c.py"
    assert {name: properties[name] for name in ("line", "col", "endColumn")} == {
        "line": "3", "col": "9", "endColumn": "18",
    }  # fmt: skip
    assert undone(properties["title"]) == "condition in Net"
    assert last == "refined: Net runs for some of the declared inputs, not for all, where t %25 2 == 0"


def test_severities_have_commands() -> None:
    levels = [
        COMMAND.match(to_github([with_finding(replace(AWKWARD, severity=severity))]))[1]  # type: ignore[index]
        for severity in Severity
    ]
    assert levels == ["error", "warning", "notice"]


def test_paths_from_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(ROOT.parent))
    assert f"file={ROOT.name}/tests/rendered.py," in to_github([report("refuted")])


def test_what_is_suppressed_is_not_annotated() -> None:
    text = to_github([with_finding(replace(AWKWARD, suppressed="baseline"))])
    assert "::" not in text


# ---- JUnit


def test_a_test_case_per_target() -> None:
    root = ET.fromstring(to_junit(reports()))
    (suite,) = root
    assert {case.get("name"): [child.tag for child in case] for case in suite} == {
        "relu": ["system-out"], "Net": ["failure"], "Wrong": ["failure"], "two_ways": ["system-out"],
    }  # fmt: skip
    for element in (root, suite):
        assert (element.get("tests"), element.get("failures"), element.get("errors")) == ("4", "2", "0")


def test_unknown_is_an_error() -> None:
    root = ET.fromstring(to_junit([replace(report("refined"), verdict=Verdict.UNKNOWN)]))
    assert root.find(".//error") is not None
    assert (root.get("failures"), root.get("errors")) == ("0", "1")


def test_any_character_is_written() -> None:
    text = ET.fromstring(to_junit([with_finding(AWKWARD)])).findtext(".//failure")
    assert text is not None
    assert "100% of <these>" in text


def test_names_of_files_and_classes() -> None:
    root = ET.fromstring(to_junit([replace(report("proved"), target="src/net.py:Net")]))
    case = root.find(".//testcase")
    assert case is not None
    assert (case.get("classname"), case.get("name")) == ("src/net.py", "Net")


# ---- what passes


def test_passing() -> None:
    known = replace(AWKWARD, suppressed="baseline")
    assert report("proved").passes
    assert not with_finding(AWKWARD).passes
    assert with_finding(known).passes
    assert not replace(report("refined"), findings=(known, AWKWARD)).passes
    assert not replace(report("refined"), findings=()).passes
