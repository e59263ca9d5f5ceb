"""Samplers and dropout, judged by torch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules.random import RULES
from anyshape.typecheck.testing.differential import Case, D, T

judge = Judge(Rules(RULES))
X, aten = torch.Tensor, torch.ops.aten
i64, f64, flag, c64 = torch.int64, torch.float64, torch.bool, torch.complex64
P = (2, 0, 1)
x, integers, truths, waves = T("a b c", permute=P), T("a b", i64), T("a b", flag), T("a b", c64)

CASES = [
    *(
        Case(op, call, (given, *numbers))
        for op, call, numbers in (
            ("uniform", aten.uniform, ()),
            ("normal_functional", aten.normal_functional, ()),
            ("exponential", aten.exponential, (2.0,)),
            ("cauchy", aten.cauchy, (0.0, 1.0)),
            ("log_normal", aten.log_normal, ()),
            ("geometric", aten.geometric, (0.5,)),
            ("random", aten.random, ()),
            ("random", aten.random, (0, 2)),
            ("uniform_", X.uniform_, (0.0, 1.0)),
            ("cauchy_", X.cauchy_, ()),
            ("log_normal_", X.log_normal_, ()),
            ("exponential_", X.exponential_, ()),
            ("geometric_", X.geometric_, (0.5,)),
            ("random_", X.random_, ()),
            ("normal_", X.normal_, ()),
        )
        for given in (x, integers, truths, waves)
    ),
    Case("random_", X.random_, (x, D("n-1"))),
    Case("random_", X.random_, (x, D("n"), D("m"))),
    Case("random_", X.random_, (x,), {"to": D("n")}),
    Case("normal_", X.normal_, (T("a b"),), {"std": 2.0}),
    Case("_standard_gamma", torch._standard_gamma, (x,)),
    Case("_standard_gamma", torch._standard_gamma, (integers,), where="a b"),
    Case("_sample_dirichlet", torch._sample_dirichlet, (x,), where="a b c"),
    Case("_sample_dirichlet", torch._sample_dirichlet, (integers,), where="a b"),
    Case("bernoulli_", X.bernoulli_, (T("a b"), T("c"))),
    Case("bernoulli_", X.bernoulli_, (T("a b"), T("1 a b"))),
    Case("bernoulli_", X.bernoulli_, (T("a b"), 0.5)),
    Case("bernoulli", torch.bernoulli, (T("a b c", permute=P),)),
    Case("bernoulli", torch.bernoulli, (T("a b", i64),), where="a b"),
    Case("bernoulli", torch.bernoulli, (T("a b", i64), 0.5)),
    Case("poisson", torch.poisson, (T("a b c", permute=P),)),
    Case("binomial", torch.binomial, (T("a b"), T("c"))),
    Case("binomial", torch.binomial, (T("a b"), T("b", f64))),
    Case("normal", torch.normal, (T("a b"), T("c"))),
    Case("normal", torch.normal, (T("a b"), 1.0)),
    Case("normal", torch.normal, (0.0, T("a b", f64))),
    Case("normal", torch.normal, (0.0, 1.0, (D("a"), D("b")))),
    Case("dropout", F.dropout, (T("a b c", permute=P),)),
    Case("dropout", F.dropout, (T("a b c", permute=P), 0.5, False)),
    Case("dropout", F.dropout, (T("a b"), 1.5)),
    Case("native_dropout", torch.native_dropout, (T("a b c", permute=P), 0.5, True)),
    Case("alpha_dropout", F.alpha_dropout, (T("a b c", permute=P), 0.5, True)),
    Case("alpha_dropout", torch.alpha_dropout, (T("a b"), 0.5, False)),
    Case("dropout1d", F.dropout1d, (T("a b c", permute=P),)),
    Case("dropout1d", F.dropout1d, (T("a b c d"), 0.5, False)),
    Case("dropout2d", F.dropout2d, (T("a b c d"),)),
    Case("dropout3d", F.dropout3d, (T("a b c d e"), 0.2, False)),
    Case("feature_alpha_dropout", F.feature_alpha_dropout, (T("a b c"), 0.5, True)),
    Case("feature_dropout", torch.feature_dropout, (T("a b c d"), 0.5, True)),
    Case("dropout", F.dropout, (integers,)),
    Case("alpha_dropout", F.alpha_dropout, (integers, 0.5, True)),
    Case("poisson", torch.poisson, (integers,)),
    Case("feature_alpha_dropout", F.feature_alpha_dropout, (T("a"), 0.5, True)),
    Case("feature_dropout", torch.feature_dropout, (T("a"), 0.5, True)),
    Case("dropout2d", F.dropout2d, (T("a"), 0.5, True)),
    Case("dropout3d", F.dropout3d, (T(""),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_judges(case: Case) -> None:
    judge(case)


NEVER_REFUSED = {"native_dropout": "never refused"}
"""Any dtype will do."""


def test_every_rule_is_accepted_and_refused() -> None:
    assert judge.one_sided(CASES) == NEVER_REFUSED


def test_the_judge_catches_a_wrong_rule() -> None:
    wrong = Judge(Rules({"uniform": lambda c, input, low=0, high=1: Tensor(input.shape)}))
    with pytest.raises(AssertionError):
        wrong(CASES[0])
