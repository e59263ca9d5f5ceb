"""Recorded programs: their JSON, their laws, and that they are decided as the program itself is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from models.zoo import ZOO

from anyshape.constraints.ir.program import IllFormed
from anyshape.constraints.ir.spec_text import SpecError
from anyshape.typecheck import Report, check
from anyshape.typecheck.checking.api import recorded
from anyshape.typecheck.checking.recorded import Recorded, RecordedSource
from anyshape.typecheck.replay.replay import Inconclusive, Ran, RunRefused

SPEC = "x: float32[b, h]"


def halves(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 7:
        return x.view(x.shape[0], 2, x.shape[1] // 2)
    if x.shape[0] == 5:
        raise ValueError("five is refused")
    return x


def through_json(one: Recorded) -> Recorded:
    return Recorded.from_json(json.loads(json.dumps(one.to_json())))


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return recorded(halves, SPEC).to_json()


def comparable(report: Report) -> Report:
    """Without what depends on how examples were tried, and on the source of the model."""
    told = tuple(replace(f, evidence="", built=None) for f in report.findings if f.code != "not-replayed")
    return replace(report, stats={}, replayed="", findings=told)


ENTRIES = [entry for entry in ZOO if not entry.needs][::11]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_it_is_the_same_after_a_round_trip_and_decided_alike(entry: Any) -> None:
    model = entry.build()
    made = recorded(model, entry.inputs, entry.assume)
    again = through_json(made)
    assert again == made
    expected = check(model, entry.inputs, entry.assume)
    assert comparable(check(again.target(expected.target))) == comparable(expected)


def test_paths_and_their_ends_are_kept(data: dict[str, Any]) -> None:
    assert sorted(path["end"][0] for path in data["paths"]) == ["raised", "returned", "returned"]
    report = check(Recorded.from_json(data).target("halves"))
    assert report.accepts.holds(b=8, h=2)
    assert not report.accepts.holds(b=8, h=3)
    assert not report.accepts.holds(b=5, h=2)
    assert "without the solver" in report.replayed


@pytest.mark.parametrize(
    "values, kind", [((8, 2), Ran), ((8, 3), RunRefused), ((5, 2), RunRefused), ((1, 1), Ran)]
)
def test_it_is_tried_by_the_rules(data: dict[str, Any], values: tuple[int, int], kind: type) -> None:
    source = RecordedSource(Recorded.from_json(data), None, ())
    source.system(_rules(), None, None)  # type: ignore[arg-type]
    assert isinstance(source.run(dict(zip("bh", values, strict=True)), True), kind)


def test_a_requirement_that_was_left_out_is_found_out(data: dict[str, Any]) -> None:
    """Whoever sends a program without what its calls require gets no proof."""
    lies = copy.deepcopy(data)
    for path in lies["paths"]:
        path["constraints"] = []
    report = check(Recorded.from_json(lies).target("halves"), None, "b != 5")
    assert report.verdict == "unknown"
    assert "internal-error" in [finding.code for finding in report.findings]


def test_data_that_decides_is_not_tried() -> None:
    def picks(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].view(2, -1)

    source = RecordedSource(through_json(recorded(picks, "x: float32[b]")), None, ())
    source.system(_rules(), None, None)  # type: ignore[arg-type]
    assert isinstance(source.run({"b": 4}, True), Inconclusive)


def _rules() -> Any:
    from anyshape.constraints.rules import default_rules

    return default_rules


def test_it_is_narrowed_and_never_widened(data: dict[str, Any]) -> None:
    one = through_json(recorded(halves, SPEC, "b <= 100"))
    assert check(one.target("x"), None, ["h % 2 == 0", "b != 5"]).verdict == "proved"
    assert not check(one.target("x"), None, "b <= 1000").accepts.declared(b=101, h=2)
    assert check(one.target("x"), SPEC, "b <= 4").verdict == "proved"
    with pytest.raises(SpecError, match="traced and sent again"):
        check(one.target("x"), "x: float32[b, 4]")


def test_lines_are_left_out_and_files_are_named_shorter() -> None:
    one = recorded(halves, SPEC)
    text = json.dumps(one.without_source().with_files_in("/").to_json())
    assert "five is refused" in text  # what the program says of itself
    assert "x.view(x.shape[0]" not in text
    folder = __file__.rpartition("/")[0]
    assert folder not in json.dumps(one.with_files_in(folder).to_json())
    assert folder not in json.dumps(one.with_files_in("/nowhere").to_json())


def _first(data: dict[str, Any]) -> dict[str, Any]:
    path: dict[str, Any] = next(p for p in data["paths"] if p["program"]["nodes"])
    return path


BREAKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "is not anyshape.recorded": lambda d: d.update(schema=7),
    "needs a path": lambda d: d.update(paths=[]),
    "spec cannot be read": lambda d: d.update(inputs=["x: float32[b"]),
    "list of texts": lambda d: d.update(assume="b > 1"),
    "is not described": lambda d: _first(d)["values"].pop(),
    "about node": lambda d: _first(d)["constraints"].append([True, "why", 99, "model", False, False, 0]),
    "is not declared": lambda d: _first(d)["constraints"].append(
        [{"compare": [">=", "q"]}, "why", 0, "model", False, False, 0]
    ),
    "about r, which is not declared": lambda d: _first(d)["notes"].append(
        ["approximate", "why", 0, "accept", {"compare": [">=", "r"]}]
    ),
    "one of accept, refuse, both": lambda d: _first(d)["notes"].append(
        ["approximate", "why", 0, "neither", True]
    ),
    "unknown comparison": lambda d: _first(d)["constraints"].append(
        [{"compare": ["<<", "b"]}, "why", 0, "model", False, False, 0]
    ),
    "a condition was expected": lambda d: _first(d)["constraints"].append(
        [7, "why", 0, "model", False, False, 0]
    ),
    "one of model, trace": lambda d: _first(d)["constraints"].append(
        [True, "why", 0, "other", False, False, 0]
    ),
    "a text was expected": lambda d: _first(d)["constraints"].append([True, 1, 0, "model", False, False, 0]),
    "an integer was expected": lambda d: _first(d)["constraints"].append(
        [True, "why", 0, "model", False, False, "0"]
    ),
    "one of returned": lambda d: _first(d).update(end=["flew", "", []]),
    "used before": lambda d: _first(d)["program"]["nodes"][0]["args"].append(["more", {"ref": 99}]),
    "not paths": lambda d: d.update(paths=[1]),
}


@pytest.mark.parametrize("told", BREAKS)
def test_what_breaks_a_law_is_none(data: dict[str, Any], told: str) -> None:
    broken = copy.deepcopy(data)
    BREAKS[told](broken)
    with pytest.raises(IllFormed, match=told):
        Recorded.from_json(broken)
