"""The ranges of numbers that operators take: numbers of the program, sizes, and quotients of sizes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import inf, nan
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.constraints.ir.language import Quotient
from anyshape.constraints.rules import default_rules
from anyshape.constraints.rules.numbers import LIMITS, less
from anyshape.constraints.terms.dims import evaluate, sym
from anyshape.constraints.terms.formula import holds
from anyshape.typecheck import check

aten = torch.ops.aten

CALLS: dict[str, Callable[[Tensor, Any], Any]] = {
    "bernoulli": lambda x, p: x.bernoulli(p),
    "bernoulli_": lambda x, p: x.clone().bernoulli_(p),
    "native_dropout": lambda x, p: torch.native_dropout(x, p, True),
    "native_dropout, in evaluation": lambda x, p: torch.native_dropout(x, p, False),
    "isclose": lambda x, p: torch.isclose(x, x, p),
    "isclose, atol": lambda x, p: torch.isclose(x, x, 0, p),
    "allclose": lambda x, p: torch.allclose(x, x, atol=p) and x,
    "cdist": lambda x, p: torch.cdist(x, x, p),
    "_cdist_forward": lambda x, p: aten._cdist_forward(x, x, float(p), None),
    "pdist": lambda x, p: F.pdist(x, p),
    "normal": lambda x, p: torch.normal(x, p),
    "normal, numbers": lambda x, p: torch.normal(0.0, p, (2, 3)),
    "normal, size": lambda x, p: torch.normal(0.0, 1.0, (p, 3)) if isinstance(p, int) else x,
    "normal_": lambda x, p: x.clone().normal_(0, p),
    "cauchy": lambda x, p: x.clone().cauchy_(0, p),
    "celu": lambda x, p: F.celu(x, p),
    "cosine_similarity": lambda x, p: F.cosine_similarity(x, x, eps=p),
    "cross_entropy": lambda x, p: F.cross_entropy(x, x, label_smoothing=p),
    "cross_entropy, classes": lambda x, p: F.cross_entropy(x, x[:, 0].long(), label_smoothing=p),
    "exponential": lambda x, p: x.clone().exponential_(p),
    "geometric": lambda x, p: x.clone().geometric_(p),
    "hardtanh": lambda x, p: F.hardtanh(x, p, 1),
    "histc": lambda x, p: torch.histc(x, 4, p, 1),
    "histogram": lambda x, p: torch.histogram(x, 4, range=(float(p), 1.0)),
    "histogram, to": lambda x, p: torch.histogram(x, 4, range=(0.0, float(p))),
    "histogramdd": lambda x, p: torch.histogramdd(x[:, :2], [2, 3], range=(0.0, 1.0, float(p), 1.0)),
    "huber_loss": lambda x, p: F.huber_loss(x, x, delta=p),
    "linalg_cond": lambda x, p: torch.linalg.cond(x @ x.t(), p),
    "log_normal": lambda x, p: x.clone().log_normal_(0, p),
    "multi_margin_loss": lambda x, p: F.multi_margin_loss(x, x[:, 0].long(), p),
    "multigammaln": lambda x, p: torch.special.multigammaln(x + 9, p) if isinstance(p, int) else x,
    "mvlgamma": lambda x, p: (x + 9).mvlgamma(p) if isinstance(p, int) else x,
    "norm": lambda x, p: x.norm(p),
    "norm, along a dim": lambda x, p: x.norm(p, 0),
    "normalize": lambda x, p: F.normalize(x, p),
    "pairwise_distance": lambda x, p: F.pairwise_distance(x, x, p),
    "polygamma": lambda x, p: torch.polygamma(p, x) if isinstance(p, int) else x,
    "polygamma, method": lambda x, p: x.polygamma(p) if isinstance(p, int) else x,
    "poisson_nll_loss": lambda x, p: F.poisson_nll_loss(x, x, eps=p),
    "quantile": lambda x, p: x.quantile(p),
    "nanquantile": lambda x, p: x.nanquantile(p),
    "renorm": lambda x, p: x.renorm(p, 0, 1.0),
    "renorm, maxnorm": lambda x, p: x.renorm(1, 0, p),
    "rrelu": lambda x, p: F.rrelu(x, p, 0.5),
    "scaled_dot_product_attention": lambda x, p: F.scaled_dot_product_attention(x, x, x, dropout_p=p),
    "smooth_l1_loss": lambda x, p: F.smooth_l1_loss(x, x, beta=p),
    "softshrink": lambda x, p: F.softshrink(x, p),
    "triplet_margin_loss": lambda x, p: F.triplet_margin_loss(x, x, x, p),
    "uniform": lambda x, p: x.clone().uniform_(p, 1),
    "uniform, to": lambda x, p: x.clone().uniform_(0, p),
    "vector_norm": lambda x, p: torch.linalg.vector_norm(x, p, 1),
    "embedding_bag": lambda x, p: F.embedding_bag(torch.tensor([[0]]), x, padding_idx=p)
    if isinstance(p, int) else x,
    "fake_quantize_per_tensor_affine": lambda x, p: torch.fake_quantize_per_tensor_affine(x, 1.0, 0, p, 3)
    if isinstance(p, int) else x,
    "fake_quantize_per_channel_affine": lambda x, p: torch.fake_quantize_per_channel_affine(
        x[:, :1], torch.ones(1), torch.zeros(1, dtype=torch.int32), 1, p, 3
    ) if isinstance(p, int) else x,
}  # fmt: skip
NUMBERS = [-3, -2, -1, 0, 1, 2, 3, 5, -1.5, -0.1, 0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 3.5, inf, -inf, nan]
SHAPES = [(2, 3), (3, 3), (1, 2), (1, 1), (0, 2), (2, 0)]


OVER: list[Callable[[Any], Any]] = [
    lambda a: a - 3, lambda a: 3 - a, lambda a: (a - 3) / 2, lambda a: 2 / (4 - a)
]  # fmt: skip


def runs(call: Callable[..., Any], *args: Any) -> bool:
    try:
        call(*args)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    return True


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_number_of_the_program(name: str) -> None:
    call, seen = CALLS[name], set[bool]()
    for number in NUMBERS:

        def target(x: Tensor, number: Any = number) -> Any:
            return call(x, number)

        report = check(target, "x: float32[a, b]", ("a >= 0", "b >= 0"), replay=False)
        for a, b in SHAPES:
            there = runs(call, torch.zeros(a, b), number)
            seen.add(there)
            certain = report.accepts.certain.holds(a=a, b=b)
            assert certain == there or not report.accepts.exact, (number, a, b, report.to_text())
            assert not certain or there, (number, a, b, report.to_text())
    assert seen == {True, False} or "evaluation" in name or name in ("normalize", "poisson_nll_loss")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("name", CALLS)
def test_a_number_that_sizes_make(name: str, over: Callable[[Any], Any]) -> None:
    call = CALLS[name]

    def target(x: Tensor) -> Any:
        return call(x, over(x.shape[0]))

    report = check(target, "x: float32[a, b]", ("a >= 0", "b >= 0"), replay=False)
    assert not [f for f in report.findings if f.code == "internal-error"], report.to_text()
    for a, b in product((*range(8), 20), (0, 1, 2)):
        try:
            there = runs(target, torch.zeros(a, b))
        except ZeroDivisionError:
            there = False
        assert report.accepts.certain.holds(a=a, b=b) <= there, (a, b, report.to_text())
        if report.accepts.exact and report.verdict in ("proved", "refined", "refuted"):
            assert report.accepts.holds(a=a, b=b) == there, (a, b, report.to_text())


def test_each_limit_is_judged() -> None:
    named = {name.partition(",")[0] for name in CALLS}
    prefixes = "prims::", "_fake", "_fused", "fused", "normal_f", "_histogramdd"
    others = {name for name in LIMITS if name.startswith(prefixes)}
    assert {name.removesuffix("_cachemask") for name in LIMITS} - others <= named
    assert all(name in default_rules for name in LIMITS)


N = sym("n")
QUOTIENTS = [Quotient("float", N - 3, 2), Quotient("float", 5, 7 - 2 * N), Quotient("float", 3, -4)]
SIDES = [0, 1, -2, 0.5, -0.25, 3.0, inf, -inf, nan, N, 2 - N, 3 * N - 7, *QUOTIENTS]


def _value(side: Any, n: int) -> float:
    if isinstance(side, Quotient):
        return evaluate(side.over, {"n": n}) / evaluate(side.under, {"n": n})
    return side if isinstance(side, int | float) else evaluate(side, {"n": n})


@pytest.mark.parametrize("or_equal", [False, True])
def test_which_of_two_numbers_is_less(or_equal: bool) -> None:
    for a, b in product(SIDES, SIDES):
        found = less(a, b, or_equal=or_equal)
        assert found is not None or (isinstance(a, Quotient) and isinstance(b, Quotient))
        for n in range(9) if found is not None else ():
            one, two = _value(a, n), _value(b, n)
            assert holds(found, {"n": n}) == (one <= two if or_equal else one < two), (a, b, n)


def test_rounding_leaves_some_comparisons_open() -> None:
    assert less(Quotient("float", sym("n"), 10), 0.1) is None
    assert less(sym("n"), 0.1) is not None
