"""Reports: the values, their JSON and text, and the list of findings in the documentation."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
import torch

from anyshape.constraints.ir.language import Fact
from anyshape.constraints.ir.program import Origin
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import all_of, eq, ge
from anyshape.typecheck import (
    Accepts,
    Branch,
    Code,
    Finding,
    Link,
    Output,
    Report,
    Severity,
    Shape,
    SymbolicValue,
    Verdict,
    check,
)
from anyshape.typecheck.render.text import fact_text, marked
from anyshape.typecheck.report.later import Later

b, h, k = sym("b"), sym("h"), sym("k")
LOGITS = SymbolicValue("float32[b, 2*h]", "float32", (b, 2 * h))
ORIGIN = Origin("/nowhere/model.py", 43, "Up.forward", "decoder.0", "return torch.cat([skip, x], dim=1)")
FINDING = Finding(
    Code.CONDITION,
    "cat along dim 1 takes equal sizes in dim 2, not h and 2*(h//2)",
    Severity.WARNING,
    ORIGIN,
    "cat",
    "h % 2 == 0",
    2,
    (Link("max_pool2d", "float32[b, h//2]", replace(ORIGIN, line=41)),),
    (Link("view", "h % 2 == 1: odd", replace(ORIGIN, line=40)),),
    {"b": 2, "h": 3},
    "RuntimeError: Sizes of tensors must match\nsecond line",
)
REPORT = Report(
    "model.py:Net",
    ("x: float32[b, h]",),
    Verdict.REFINED,
    Accepts(eq(h % 2, 0), all_of((ge(b, 1), ge(h, 2))), ("b", "h")),
    {
        "b": Fact(1, None),
        "h": Fact(2, None, 2, 0, 2 * k, ((2, 8), (12, None)), exact=False),
    },
    (FINDING, Finding(Code.NO_RULE, "mylib::op has no rule", Severity.WARNING)),
    (Shape(0, "cat", ("float32[b, 2*h]",), ORIGIN), Shape(1, "size", ("b",), Origin())),
    (Output("logits", LOGITS), Output("aux", SymbolicValue("?"), "b == 1")),
    (Branch(ORIGIN, "7 <= h", "eliminated", True), Branch(ORIGIN, "", "explored")),
    {"b": 2, "h": 4},
    {"b": 2, "h": 5},
    "on the program itself, with fake tensors",
    {"total_s": 0.25, "nodes": 2, "constraints": 3, "paths": 2, "z3_queries": 4},
)


def test_json_round_trip() -> None:
    assert Report.from_json(json.loads(json.dumps(REPORT.to_json()))) == REPORT
    bare = Report("f", (), Verdict.PROVED, Accepts(True, True, ()), {})
    assert Report.from_json(json.loads(json.dumps(bare.to_json()))) == bare


@pytest.mark.parametrize("target, spec, values, shape", [
    (lambda x: x[:, 1:], "x: [a, b]", {"a": 2, "b": 3}, (2, 3)),
    (lambda x: x.flatten(), "x: [a, b]", {"a": 2, "b": 3}, (2, 3)),
    (lambda x: torch.cat([x, x], -1), "x: [*x, b]", {"x": (5, 7), "b": 3}, (5, 7, 3)),
    (lambda x: torch.cat([x, x], -1), "x: [...]", {"x": (4, 3)}, (4, 3)),
    (lambda x: x.flatten(), "x: [...]", {"x": (5, 7)}, (5, 7)),
    (lambda x: x.sum(), "x: [a]", {}, (4,)),
])  # fmt: skip
def test_a_result_has_concrete_sizes_at_values(
    target: Callable[[torch.Tensor], torch.Tensor], spec: str, values: dict[str, Any], shape: tuple[int, ...]
) -> None:
    (output,) = check(target, spec).outputs
    assert output.value.dtype == "float32" and output.value.at(**values) == target(torch.ones(shape)).shape


def test_sizes_without_a_value_are_named() -> None:
    (tensor, number) = check(lambda x: (x[1:], len(x)), "x: [a]").outputs
    with pytest.raises(TypeError, match="no value for a"):
        tensor.value.at(b=2)
    with pytest.raises(TypeError, match="a is not a tensor"):
        number.value.at(a=2)
    (row,) = check(lambda x: x + 1, "x: [*r]").outputs
    with pytest.raises(TypeError, match=r"no value for rank\(r\)"):
        row.value.at()


@pytest.mark.parametrize("data", [
    None, [], "text", {}, {"schema": 2}, {"schema": 1},
    REPORT.to_json() | {"verdict": "maybe"},
    REPORT.to_json() | {"accepts": {"condition": "h ==", "domain": "True", "symbols": [], "exact": True}},
    REPORT.to_json() | {"findings": [{"code": "condition"}]},
    REPORT.to_json() | {"shapes": 3},
])  # fmt: skip
def test_other_data_is_refused(data: object) -> None:
    with pytest.raises(ValueError):
        Report.from_json(data)


def test_a_report_is_frozen_and_pickles() -> None:
    with pytest.raises(FrozenInstanceError):
        REPORT.verdict = Verdict.PROVED  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(REPORT)) == REPORT


def test_verdicts_are_texts() -> None:
    assert REPORT.verdict == "refined"
    assert f"{REPORT.verdict}" == "refined"


# ---- the accepted set


@pytest.mark.parametrize("values, inside", [
    ({"b": 1, "h": 2}, True), ({"b": 1, "h": 3}, False),
    ({"b": 0, "h": 2}, False), ({"b": 1, "h": 0}, False),
])  # fmt: skip
def test_holds_inside_the_domain_only(values: dict[str, int], inside: bool) -> None:
    assert REPORT.accepts.holds(**values) is inside


def test_holds_wants_every_symbol_and_no_other() -> None:
    with pytest.raises(TypeError, match="no value for h"):
        REPORT.accepts.holds(b=1)
    with pytest.raises(TypeError, match="no symbol c"):
        REPORT.accepts.holds(b=1, h=2, c=3)


def test_nothing_runs_where_a_term_has_no_value() -> None:
    assert not Accepts(eq(h % k, 0), True, ("h", "k")).holds(h=3, k=0)


# ---- text


def test_text_says_it_all() -> None:
    text = REPORT.to_text(verbose=True)
    parts = [
        "refined: model.py:Net runs for some", "x: float32[b, h]", "where 2 <= h", "h % 2 == 0",
        "at least 1", "always 2*k, even, 2 to 8 or at least 12 (not exact)",
        "It runs at b=2, h=4. It is refused at b=2, h=5. Tried on the program itself",
        "condition: cat along dim 1", "/nowhere/model.py:43 in decoder.0",
        "requires h % 2 == 0 (2 requirements", "against h % 2 == 1: odd",
        "refused at b=2, h=3: RuntimeError: Sizes of tensors must match",
        "after max_pool2d  float32[b, h//2]  /nowhere/model.py:41 in decoder.0",
        "no-rule: mylib::op has no rule",
        "logits  float32[b, 2*h]", "where b == 1:",
        "a condition on data: both ways  /nowhere/model.py:43",
        "0.25 s: 2 calls on 2 paths, 3 requirements, 4 z3 queries",
    ]  # fmt: skip
    missing = [part for part in parts if part not in text]
    assert not missing, text
    assert "second line" not in text
    assert "shapes" not in text
    assert "7 <= h: always" not in text
    assert "7 <= h: always" in REPORT.to_text(shapes=True)
    assert "\x1b" not in text
    assert "shapes" in REPORT.to_text(shapes=True)


def test_colour_adds_nothing_but_colour() -> None:
    coloured = REPORT.to_text(colour=True, shapes=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == REPORT.to_text(shapes=True)


@pytest.mark.parametrize("width", [20, 60, 100, 200])
def test_messages_keep_to_the_width(width: int) -> None:
    condition = " and ".join(f"h % {i} == 0" for i in range(2, 40))
    long = replace(FINDING, message="word " * 60, condition=condition)
    text = replace(REPORT, findings=(long,)).to_text(width=width)
    lines = [line for line in text.splitlines() if "word" in line or "h % " in line]
    assert max(map(len, lines)) <= max(width, 40) + 4


def test_equal_findings_are_told_a_few_times() -> None:
    many = tuple(replace(FINDING, origin=replace(ORIGIN, line=line)) for line in range(10))
    text = replace(REPORT, findings=many).to_text()
    assert text.count("condition: cat along") == 3
    assert "and 7 more of this kind" in text


@pytest.mark.parametrize("verdict, exact, part", [
    (Verdict.PROVED, True, "runs for every declared input\n"),
    (Verdict.REFINED, False, "some of the declared inputs, not for all, as far as is known\n"),
    (Verdict.REFUTED, True, "runs for none of the declared inputs\n"),
    (Verdict.UNKNOWN, False, "may or may not run for the declared inputs\n"),
])  # fmt: skip
def test_headlines(verdict: Verdict, exact: bool, part: str) -> None:
    report = replace(REPORT, verdict=verdict, accepts=replace(REPORT.accepts, exact=exact))
    assert part in report.to_text()


@pytest.mark.parametrize("verdict, accepts, parts", [
    (Verdict.REFINED, Accepts(ge(h, 4), True, ("h",)), ["It runs exactly where\n  4 <= h"]),
    (Verdict.REFINED, Accepts(ge(h, 4), True, ("h",), False), ["It certainly runs where\n  4 <= h"]),
    (
        Verdict.REFINED, Accepts(ge(h, 4), True, ("h",), False, ge(h, 8)),
        ["As far as is known it runs where\n  4 <= h", "It certainly runs where\n  8 <= h"],
    ),
    (
        Verdict.REFINED, Accepts(ge(h, 4), True, ("h",), False, False),
        ["As far as is known it runs where\n  4 <= h"],
    ),
    (
        Verdict.UNKNOWN, Accepts(ge(h, 4), True, ("h",), False, ge(h, 8)),
        ["If it runs, then\n  4 <= h", "It certainly runs where\n  8 <= h"],
    ),
    (Verdict.UNKNOWN, Accepts(True, True, ("h",), False, ge(h, 8)), ["It certainly runs where\n  8 <= h"]),
    (Verdict.UNKNOWN, Accepts(True, True, ("h",), False, False), []),
    (Verdict.UNKNOWN, Accepts(True, True, ("h",), False), ["It certainly runs\n  at all of these sizes"]),
])  # fmt: skip
def test_what_is_certain_is_told_apart(verdict: Verdict, accepts: Accepts, parts: list[str]) -> None:
    report = replace(REPORT, verdict=verdict, accepts=accepts)
    text = report.to_text()
    assert all(part in text for part in parts), text
    told = ("It runs exactly where", "As far as is known it runs", "If it runs, then", "It certainly runs")
    assert sum(words in text for words in told) == len(parts), text
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report
    page = report.to_html()
    assert all(part.split("\n")[0] in page for part in parts)


def test_the_certain_part_is_asked_like_the_whole() -> None:
    accepts = Accepts(ge(h, 4), ge(h, 1), ("h",), False, ge(h, 8))
    assert accepts.holds(h=4) and not accepts.certain.holds(h=4) and accepts.certain.holds(h=8)
    assert accepts.certain.exact and accepts.certain.certain == accepts.certain
    assert replace(accepts, sure=None).certain.holds(h=4)
    assert not replace(accepts, sure=False).certain.holds(h=8)


FACTS = {
    Fact(None, None): "any",
    Fact(1, None): "at least 1",
    Fact(None, 8): "at most 8",
    Fact(2, 8): "2 to 8",
    Fact(1, 8, 7, 1): "1 or 8",
    Fact(4, 6): "4 or 5 or 6",
    Fact(1, 8, 7, 1, exact=False): "a multiple of 7 plus 1, 1 to 8 (not exact)",
    Fact(64, 64, 0, 64): "always 64",
    Fact(64, None, 64): "a multiple of 64, at least 64",
    Fact(1, None, 4, 1): "a multiple of 4 plus 1, at least 1",
    Fact(1, None, 2, 1): "odd, at least 1",
    Fact(1, 9, values=((1, 3), (5, 5), (7, 9))): "1 to 3 or 5 or 7 to 9",
    Fact(0, None, exact=False): "at least 0 (not exact)",
    Fact(2, None, equals=2 * k): "always 2*k, at least 2",
    Fact(1, 1 << 70): f"1 to {1 << 70}",
}


@pytest.mark.parametrize("fact", FACTS, ids=FACTS.get)
def test_facts_in_words(fact: Fact) -> None:
    assert fact_text(fact) == FACTS[fact]


# code, operator, what is marked
MARKS = [
    ("return self.merge(torch.cat([skip, f(x)], dim=1))", "cat", "torch.cat([skip, f(x)], dim=1)"),
    ("x = x.view(b, -1)", "view", "x.view(b, -1)"),
    ("x = x.view(b,", "view", "x.view(b,"),
    ("x.clamp_(0)", "clamp", "x.clamp_(0)"),
    ("y = a @ b", "matmul", "@"),
    ("y = a + b + c", "add", "y = a + b + c"),
    ("y = self.block(x)", "conv2d", "y = self.block(x)"),
    ("y = concat(x)", "cat", "y = concat(x)"),
    ("y = z", "", "y = z"),
]


@pytest.mark.parametrize("code, op, part", MARKS)
def test_the_call_is_marked(code: str, op: str, part: str) -> None:
    start, length = marked(code, op)
    assert code[start : start + length] == part


def test_shapes_are_made_when_they_are_first_read() -> None:
    made: list[int] = []

    def make() -> tuple[int, ...]:
        made.append(1)
        return 3, 4, 5

    later = Later(make)
    assert not made
    assert later == (3, 4, 5) and (3, 4, 5) == later and later != (3, 4)
    assert (len(later), later[0], later[1:], [*later]) == (3, 3, (4, 5), [3, 4, 5])
    assert hash(later) == hash((3, 4, 5)) and repr(later) == "(3, 4, 5)"
    assert made == [1]
    unread = Later(make)
    assert type(pickle.loads(pickle.dumps(unread))) is tuple and type(copy.deepcopy(unread)) is tuple


def test_sizes_of_outputs_are_numbers_where_the_condition_decides_them() -> None:
    def patches(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        b, _, h, w = x.shape
        cells = torch.zeros(b, (h // 16) * (w // 16), 4) + torch.zeros(1, 196, 4)
        return torch.cat([cells, torch.zeros(b, 1, 4)], 1), x[..., 3:]

    report = check(patches, "x: float32[b, 3, h, w]", "17 <= h")
    assert str(report.accepts) == "(h//16)*(w//16) == 196 or (h//16 == 1 and w//16 == 1)"
    assert str(report.outputs[0].value) == "float32[b, 197, 4]"
    report = check(patches, "x: float32[b, 3, h, w]", "32 <= h")
    assert str(report.accepts) == "(h//16)*(w//16) == 196"
    assert str(report.outputs[0].value) == "float32[b, 197, 4]"
    assert str(report.outputs[1].value) == "float32[b, 3, h, max(w - 3, 0)]"
