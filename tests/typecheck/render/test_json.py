"""Reports as JSON: the published schema describes what is written, all of it and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from rendered import PROGRAMS, report

from anyshape.constraints.ir.language import Fact
from anyshape.constraints.ir.program import Origin
from anyshape.typecheck import Accepts, Branch, Code, Finding, Link, Output, Report, Severity, Shape, Verdict
from anyshape.typecheck.report.catalogue import site
from anyshape.typecheck.report.report import ConditionPart, InTraining, Operand

ROOT = Path(__file__).parent.parent.parent.parent
SCHEMA = json.loads((ROOT / "docs/schema/report.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)


def closed(schema: Any) -> Any:
    """Returns the schema without its room for fields of later versions: what this version writes."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: closed(part) for key, part in schema.items()}
    return {"additionalProperties": False, **parts} if isinstance(parts.get("required"), list) else parts


CLOSED = Draft202012Validator(closed(SCHEMA))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == f"{site()}report.schema.json"


def test_a_field_of_a_later_version_fits_and_is_not_read() -> None:
    data = json.loads(json.dumps(report("refined").to_json()))
    for part in (data, data["findings"][0], data["findings"][0]["origin"], data["accepts"]):
        part["later"] = [1]
    VALIDATOR.validate(data)
    assert Report.from_json(data) == report("refined")


def test_columns_are_those_of_the_file() -> None:
    for finding in report("refined").to_json()["findings"]:
        origin = finding["origin"]
        line = Path(origin["file"]).read_text().splitlines()[origin["line"] - 1]
        called = origin["code"][origin["start"] : origin["stop"]]
        assert called and line[origin["column"] - 1 : origin["end_column"] - 1] == called
    unknown = replace(report("refined").findings[0], origin=Origin("f.py", 3))
    origin = replace(report("refined"), findings=(unknown,)).to_json()["findings"][0]["origin"]
    assert (origin["column"], origin["end_column"]) == (0, 0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_real_reports_fit_the_schema(name: str) -> None:
    data = json.loads(json.dumps(report(name).to_json()))
    for validator in (VALIDATOR, CLOSED):
        validator.validate(data)
        validator.validate({"schema": 1, "reports": [data, data]})


@pytest.mark.parametrize("name", PROGRAMS)
def test_real_reports_are_read_back(name: str) -> None:
    assert Report.from_json(json.loads(json.dumps(report(name).to_json()))) == report(name)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every object in the data."""
    if isinstance(data, dict):
        yield path
        for key, part in data.items():
            yield from places(part, (*path, key))
    elif isinstance(data, list):
        for index, part in enumerate(data[:1]):
            yield from places(part, (*path, index))


FREE = {
    *(("dims",), ("stats",), ("runs_at",), ("fails_at",), ("findings", 0, "witness")),
    ("parts", 0, "refused"),
}
"""Objects whose keys are the user's symbols, or what was measured."""
STRICT = [path for path in places(report("refined").to_json()) if path not in FREE]


@pytest.mark.parametrize("path", STRICT, ids=str)
def test_a_field_too_many_or_too_few_does_not_fit(path: tuple[Any, ...]) -> None:
    for spoil in (lambda d: d.popitem(), lambda d: d.update(more=1)):
        data = copy.deepcopy(report("refined").to_json())
        part = data
        for step in path:
            part = part[step]
        spoil(part)
        with pytest.raises(ValidationError):
            CLOSED.validate(data)


DESCRIBED = {
    "report": Report, "fact": Fact, "finding": Finding, "link": Link, "shape": Shape, "output": Output,
    "operand": Operand, "branch": Branch, "origin": Origin, "accepts": Accepts,
    "training": InTraining, "part": ConditionPart,
}  # fmt: skip


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_field_is_described(name: str) -> None:
    described = {*SCHEMA["$defs"][name]["properties"]}
    written = {field.name for field in fields(DESCRIBED[name])}
    if name == "report":
        described -= {"schema"}
    if name == "accepts":
        written = {{"formula": "condition", "sure": "certain"}.get(field, field) for field in written}
    if name == "output":
        written |= {"dtype", "dims"}  # of the value
    if name == "origin":
        written |= {"column", "end_column"}
    assert described == written


def test_enumerations_are_complete() -> None:
    report_, finding = (SCHEMA["$defs"][name]["properties"] for name in ("report", "finding"))
    assert set(report_["verdict"]["enum"]) == set(Verdict)
    assert set(finding["severity"]["enum"]) == set(Severity)


def test_codes_are_open() -> None:
    """A reader need not know every code: a later version may have more."""
    assert SCHEMA["$defs"]["finding"]["properties"]["code"]["type"] == "string"
    assert all(isinstance(code.value, str) for code in Code)
