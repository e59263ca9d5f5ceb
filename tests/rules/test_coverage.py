"""Nothing of torch's is without a rule but what a table gives a reason for: operators and functions by name,
and what operators come down to after decomposition.
"""

from __future__ import annotations

import warnings
from fnmatch import fnmatchcase
from typing import Any

import pytest
import torch
import torch._inductor.inductor_prims as inductor_prims
import torch.nn.functional as F
from absent import found
from oracle import core
from oracle.exemptions import LEFT_OUT
from oracle.samples import CONTROL, Sample, entries, first_sample
from oracle.unruled import (
    HIGHER_ORDER,
    OF_SOME_RELEASES,
    is_ruled,
    packets,
    patterns,
    reason_of,
    unruled_functions,
    unruled_operators,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal import hop_db

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Context, Tensor
from anyshape.constraints.ir.opnames import canonical
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules
from anyshape.typecheck import check
from anyshape.typecheck.testing.differential import compare_results, lower, run_rule

PRIMS_WITHOUT = {
    "_make_token": "orders effects, and is no tensor",
    "_sink_tokens": "orders effects, and is no tensor",
    "xor_sum": "is in generated kernels alone",
}
COMPILED = {
    op.__name__.partition(".")[0]
    for op in vars(inductor_prims).values()
    if isinstance(op, torch._ops.OpOverload)
}
"""The compiler's own, which are registered with it."""


def test_core_operators_are_ruled() -> None:
    assert len(core.overloads()) > 190
    assert [name for name in core.overloads() if not is_ruled(name)] == []


def test_operators_and_functions_are_ruled_or_in_the_table() -> None:
    found = unruled_functions() | unruled_operators()
    assert sorted(name for name in found if reason_of(name) is None) == []
    idle = {p for p in patterns() if not any(fnmatchcase(name, p) for name in found)}
    assert idle - OF_SOME_RELEASES == set()


def test_higher_order_operators_are_ruled_or_in_the_table() -> None:
    judged = {name.removeprefix(CONTROL) for name in entries() if name.startswith(CONTROL)}
    known, there = judged | HIGHER_ORDER.keys(), {info.name for info in hop_db.hop_db}
    assert there - known == set() and known - there <= OF_SOME_RELEASES
    assert not judged & HIGHER_ORDER.keys() and all(is_ruled(name) for name in judged)


def test_prims_are_ruled_or_in_the_table() -> None:
    unruled = {name for name in packets("prims") if not is_ruled(f"prims::{name}")}
    assert unruled - COMPILED == PRIMS_WITHOUT.keys()
    assert len(COMPILED) > 10 and COMPILED <= packets("prims")


def test_an_operator_without_rule_is_noticed() -> None:
    assert not is_ruled("aten.no_such_operator.default") and reason_of("no_such_operator") is None
    assert is_ruled("aten.relu_.default") and is_ruled("torch.Tensor.__add__".rpartition(".")[2])


# ---- functions in Python, which the recorder enters

ENTERED = {
    "lu": ("a: float32[n, n]", lambda a: torch.lu(a)[0]),
    "pca_lowrank": ("a: float32[n + 1, 9]", lambda a: torch.pca_lowrank(a, 2)[0]),
    "svd_lowrank": ("a: float32[n + 1, 9]", lambda a: torch.svd_lowrank(a, 2)[0]),
    "unravel_index": ("a: int64[n]", lambda a: torch.unravel_index(a, (2, 3))[0]),
    "triplet_margin_with_distance_loss": (
        "anchor: float32[n, 3]; positive: float32[n, 3]; negative: float32[n, 3]",
        F.triplet_margin_with_distance_loss,
    ),
    "linear_cross_entropy": (
        "a: float32[n, 3]; b: float32[5, 3]; c: int64[n]",
        lambda a, b, c: found(F, "linear_cross_entropy")(a, b, c),
    ),
    "multi_head_attention_forward": (
        "a: float32[n, b, 8]", lambda a: torch.nn.MultiheadAttention(8, 2)(a, a, a)[0],
    ),
    **{
        f"adaptive_max_pool{n}d_with_indices": (
            f"a: float32[b, 3{', k' * n}]",
            lambda a, n=n: getattr(F, f"adaptive_max_pool{n}d_with_indices")(a, 2)[1],
        )
        for n in (1, 2, 3)
    },
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ENTERED)
def test_what_is_entered_comes_down_to_rules(name: str) -> None:
    spec, call = ENTERED[name]
    report = check(call, spec)
    assert str(report.verdict) == "proved" and not report.findings


# ---- after decomposition


class Judged(torch.fx.Interpreter):
    """Runs a graph and holds the rules to each call of an ATen operator: accepted, with the same results."""

    def __init__(self, graph: torch.fx.GraphModule, rules: Rules) -> None:
        super().__init__(graph)
        self.rules = rules
        self.judged: set[str] = set()

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        known = tuple(map(lower, args)), {name: lower(value) for name, value in kwargs.items()}
        real = super().call_function(target, args, kwargs)
        if isinstance(target, torch._ops.OpOverload):
            op = canonical(str(target))
            accepted, result, generator = run_rule(self.rules, op, *known, Domain())
            assert accepted is not False, f"{target}: {[c.reason for c in generator.said.constraints]}"
            if real is not None:  # what is written in place may be no result
                compare_results(result, real, {}, str(target), generator.said.unbacked)
            self.judged.add(str(target))
        return real


def judge_decomposed(sample: Sample, rules: Rules = default_rules) -> set[str]:
    """The operators that a call comes down to by `run_decompositions`.

    Raises AssertionError where a rule says anything else than torch.
    """
    table = torch.export.default_decompositions()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = make_fx(lambda xs: sample.run(list(xs)), decomposition_table=table)(list(sample.varied))
        judged = Judged(graph, rules)
        judged.run(*sample.varied)
    return judged.judged


NO_GRAPH = dict.fromkeys(
    "allclose cov corrcoef equal istft item nn_functional_gaussian_nll_loss nn_functional_one_hot".split(),
    "asks for elements, which no graph has",
)


@pytest.mark.slow
def test_decomposed_calls_have_rules_and_agree() -> None:
    found: set[str] = set()
    for name, entry in entries().items():
        if name in LEFT_OUT | NO_GRAPH or name.startswith(CONTROL):
            continue
        if (sample := first_sample(entry)) is not None:
            found |= judge_decomposed(sample)
    assert len(found) > 350


def test_a_decomposed_call_that_differs_is_noticed() -> None:
    def longer(c: Context, input: Tensor, other: Tensor, alpha: Any = 1) -> Tensor:
        return Tensor((*input.shape, 1), input.dtype)

    sample = first_sample(entries()["add"])
    assert sample is not None and judge_decomposed(sample) == {"aten.add.Tensor"}
    with pytest.raises(AssertionError, match=r"aten\.add\.Tensor"):
        judge_decomposed(sample, default_rules + {"add": longer})
    with pytest.raises(AssertionError, match="no rule"):
        judge_decomposed(sample, Rules({}))
