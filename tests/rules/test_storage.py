"""Tensors of another extent in memory, judged by torch."""

from __future__ import annotations

import pytest
import torch
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules.storage import RULES
from anyshape.typecheck.testing.differential import Case, D, T

judge = Judge(Rules(RULES))
X, aten = torch.Tensor, torch.ops.aten
x, flat = T("a b c", permute=(2, 0, 1)), T("n")
f64 = torch.float64

CASES = [
    Case("resize_", X.resize_, (T("a b"), D("n-1"), D("m")), where="m"),
    Case("resize_", X.resize_, (x, (D("n"), D("m"), 2))),
    Case("resize_", X.resize_, (x, (D("c"), D("a"), D("b")))),
    Case("resize_", X.resize_, (x, ())),
    Case("resize_", X.resize_, (x, 2, 3, 4, 5), {"memory_format": torch.channels_last}),
    Case("resize_", X.resize_, (x, 2, 3, 4), {"memory_format": torch.channels_last}),
    Case("resize", aten.resize, (x, [D("n"), 2])),
    Case("resize", aten.resize, (x, [D("n-1"), 2])),
    Case("resize_as_", X.resize_as_, (x, T("k l"))),
    Case("resize_as_", X.resize_as_, (x, T("c a b"))),
    Case("resize_as", aten.resize_as, (x, T("k l m n")), {"memory_format": torch.channels_last}),
    Case("resize_as", aten.resize_as, (x, T("k l m")), {"memory_format": torch.channels_last}),
    Case("resize_as_", X.resize_as_, (x, T("k l m n")), {"memory_format": torch.preserve_format}),
    Case("set_", X.set_, (flat, x)),
    Case("set_", X.set_, (flat, T("a", f64))),
    Case("set_", X.set_, (flat,)),
    Case("set_", X.set_, (T("n"), T("12"), 0, (D("a"), 2), (1, D("b"))), where="a b"),
    Case("set", aten.set, (flat, x)),
    Case("new", X.new, (x,)),
    Case("new", X.new, (T("a", f64), D("n"), D("m-1"))),
    Case("new", X.new, (x, T("a b"))),
    Case("new", X.new, (x, T("a", f64))),
    Case("new", X.new, (x, [1.0, 2.0])),
    Case("fill_diagonal_", X.fill_diagonal_, (T("a"), 1.0)),
    Case("fill_diagonal_", X.fill_diagonal_, (T("a b"), 1.0, True)),
    Case("fill_diagonal_", X.fill_diagonal_, (T("a b", permute=(1, 0)), 1.0)),
    Case("fill_diagonal_", X.fill_diagonal_, (x, 1.0)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_judges(case: Case) -> None:
    judge(case)


def test_every_rule_is_accepted_and_refused() -> None:
    assert judge.one_sided(CASES) == {}


def test_the_judge_catches_a_wrong_rule() -> None:
    wrong = Judge(Rules({"resize_": lambda c, input, *size: Tensor(input.shape)}))
    with pytest.raises(AssertionError):
        wrong(CASES[0])
