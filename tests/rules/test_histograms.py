"""Histograms, judged by torch."""

from __future__ import annotations

import pytest
import torch
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules.histograms import RULES
from anyshape.typecheck.testing.differential import Case, D, T, check_case

judge = Judge(Rules(RULES))
aten = torch.ops.aten
i64, f64, half = torch.int64, torch.float64, torch.float16

CASES = [
    Case("histc", torch.histc, (T("a b"),)),
    Case("histc", torch.histc, (T("a b"), D("n"))),
    Case("histc", torch.histc, (T("a", i64),), where="a"),
    Case("bincount", torch.bincount, (T("n", i64),)),
    Case("bincount", torch.bincount, (T("n", i64),), {"minlength": D("m-1")}),
    Case("bincount", torch.bincount, (T("n", i64), T("m"))),
    Case("bincount", torch.bincount, (T("n", i64), T("n", i64))),
    Case("bincount", torch.bincount, (T("n m", i64),)),
    Case("bincount", torch.bincount, (T("n"),), where="n"),
    Case("histogram", torch.histogram, (T("a b"), D("n"))),
    Case("histogram", torch.histogram, (T("a b"), T("n"))),
    Case("histogram", torch.histogram, (T("a"), T("n m"))),
    Case("histogram", torch.histogram, (T("a"), T("n", f64))),
    Case("histogram", torch.histogram, (T("a 1"), 3), {"weight": T("b"), "density": True}),
    Case("histogram", torch.histogram, (T("a", f64), 3), {"range": (0.0, 1.0)}),
    Case("histogram", torch.histogram, (T("a"), 3), {"range": (0.0,)}),
    Case("histogram", torch.histogram, (T("a", i64), 3)),
    Case("histogram", torch.histogram, (T("a b", half), D("n"))),
    Case("histogram", torch.histogram, (T("a", half), T("n", half))),
    Case("histogram", torch.histogram, (T("a", half), 3), {"range": (0.0, 1.0)}),
    Case("histogramdd", torch.histogramdd, (T("a 2", half), [D("n"), D("m")]), where="n m"),
    Case("histogramdd", torch.histogramdd, (T("a 2", half), [T("n", half)] * 2)),
    Case("histogramdd", torch.histogramdd, (T("a b"), [D("n"), D("m")])),
    Case("histogramdd", torch.histogramdd, (T("a 1"), [T("n", strides="2")])),
    Case("histogram", torch.histogram, (T("a"), T("n", strides="2"))),
    Case("histogramdd", torch.histogramdd, (T("a b c"), [T("n"), T("m")])),
    Case("histogramdd", torch.histogramdd, (T("a b 2"), 3), {"weight": T("c b")}),
    Case("histogramdd", torch.histogramdd, (T("a 2"), 3), {"weight": T("a 1")}),
    Case("histogramdd", torch.histogramdd, (T("a"), 3), where="a"),
    Case("histogramdd", torch.histogramdd, (T("a 2"), 3), {"range": (0.0, 1.0)}),
    Case("_histogramdd_bin_edges", aten._histogramdd_bin_edges, (T("a b"), [D("n"), D("m")])),
    Case("_histogramdd_from_bin_cts", aten._histogramdd_from_bin_cts, (T("a b"), [D("n"), D("m")])),
    Case("_histogramdd_from_bin_tensors", aten._histogramdd_from_bin_tensors, (T("a b"), [T("n"), T("m")])),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_judges(case: Case) -> None:
    judge(case)


def test_every_rule_is_accepted_and_refused() -> None:
    assert judge.one_sided(CASES) == {}


def test_the_judge_catches_a_wrong_rule() -> None:
    wrong = Rules({"histogram": lambda c, input, bins: (Tensor((bins,)), Tensor((bins,)))})
    with pytest.raises(AssertionError):
        check_case(Case("histogram", torch.histogram, (T("a b"), D("n"))), wrong)
