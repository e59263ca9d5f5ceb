"""How results lie in memory, held to torch: some operators here, all as a slow test; and proofs that a wrong
layout does not go unnoticed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from msgspec import structs
from oracle.exemptions import LEFT_OUT, complaints
from oracle.judge import Points, Strides, build
from oracle.layouts import LAYOUTS, anew, chosen, judge_layout
from oracle.pool import Options, judge_entry, run
from oracle.samples import entries

from anyshape.constraints.engine.ruleset import RuleFunction
from anyshape.constraints.ir.language import Context, Layout, Tensor
from anyshape.constraints.rules import default_rules
from anyshape.tracer.recording import memory

FEW = (
    *("add", "pow", "flip", "cat", "sum", "clone", "float", "nn_functional_conv1d", "nn.PReLU", "stft"),
    *("nn_functional_max_pool2d", "unfold", "expand", "ravel", "diagonal"),
)
"""Operators of which one sample is judged, each with another law of layouts."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FEW)
def test_slice(name: str) -> None:
    row = judge_entry(entries()[name], Options(samples=1, points=2, layouts=True))
    assert complaints([row], whole=False) == []
    assert row.layouts["told"] > 5


@pytest.mark.slow
def test_whole() -> None:
    names = [name for name in entries() if name not in LEFT_OUT]
    rows = list(run(names, Options(layouts=True), 1))
    assert complaints(rows, whole=False) == []
    told, untold = (sum(row.layouts.get(what, 0) for row in rows) for what in ("told", "untold"))
    assert told > 5 * untold


# ---- a wrong layout is caught


def row_major(rule: RuleFunction) -> RuleFunction:
    return lambda c, *args, **kwargs: _relaid(rule(c, *args, **kwargs), Layout.CONTIGUOUS)


def one_apart(rule: RuleFunction) -> RuleFunction:
    """All strides one more than they are."""

    def wrong(c: Context, *args: Any, **kwargs: Any) -> Any:
        result = rule(c, *args, **kwargs)
        return _relaid(result, tuple(step + 1 for step in result.layout))

    return wrong


def _relaid(result: Tensor, layout: Any) -> Tensor:
    return structs.replace(result, layout=layout)


@pytest.mark.parametrize("entry, mistake", [("add", row_major), ("flip", row_major), ("t", one_apart)])
def test_wrong_strides_are_caught(entry: str, mistake: Any) -> None:
    right = default_rules[entry]
    wrong = default_rules + {entry: replace(right, function=mistake(right.function))}
    remarks = judge_entry(entries()[entry], Options(samples=3, points=1, layouts=True), wrong).remarks
    assert "strides" in {remark.kind for remark in remarks}


def test_memory_that_is_not_known_to_be_shared_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "VIEWS", memory.VIEWS - {"narrow"})
    remarks = judge_entry(entries()["narrow"], Options(samples=1, points=0, layouts=True)).remarks
    assert {remark.kind for remark in remarks} == {"shared"}


def test_offset_that_is_wrong_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_diagonal", lambda named, strides, result: 7)
    remarks = judge_entry(entries()["diagonal"], Options(samples=1, points=0, layouts=True)).remarks
    assert {remark.kind for remark in remarks} == {"shared"}


# ---- what the harness is made of


@pytest.mark.parametrize("name", LAYOUTS)
def test_operand_is_laid_out(name: str) -> None:
    """Also at sizes of 0 and 1, each element in its place, and no two in one but for what is expanded."""
    x = torch.arange(120).view(2, 3, 4, 5)
    lie = LAYOUTS[name](4)
    assert lie is not None
    for sizes in ((2, 3, 4, 5), (1, 3, 1, 5), (2, 0, 4, 5), (3, 3, 3, 3)):
        made = build(x, lie, sizes)
        assert tuple(made.shape) == sizes and (0 in sizes or made.stride() == lie.strides(sizes))
    laid = build(x, lie, tuple(x.shape))
    assert torch.equal(laid, x) or "expanded" in name


def test_layouts_of_images_are_those_of_torch() -> None:
    sizes = (2, 3, 4, 5)
    x = torch.rand(sizes)
    for name, same in {
        "channels innermost": x.contiguous(memory_format=torch.channels_last),
        "reversed": torch.rand(sizes[::-1]).permute(3, 2, 1, 0),
        "every second element": torch.rand(2, 3, 4, 10)[..., ::2],
        "every second row": torch.rand(2, 3, 8, 5)[:, :, ::2],
        "without the first column": torch.rand(2, 3, 4, 6)[..., 1:],
        "one less of the channels": torch.rand(2, 4, 5, 4).permute(0, 3, 1, 2)[:, 1:],
        "expanded": torch.rand(1, 3, 4, 5).expand(2, -1, -1, -1),
    }.items():
        lie = LAYOUTS[name](4)
        assert isinstance(lie, Strides) and lie.strides(sizes) == same.stride(), name


def test_operands_are_laid_out_alike_and_by_turns() -> None:
    (sample,) = chosen(entries()["add"], 1)
    made = list(anew(sample))
    assert len({one.lies for one in made}) == len(made) > len(LAYOUTS)
    assert any(len(set(one.lies or ())) > 1 for one in made)
    assert judge_layout(made[0], looked_at=Points(1)).layouts["told"] > 0
