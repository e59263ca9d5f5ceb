"""Losses and distances, judged by torch."""
from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from absent import found

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.loss import RULES
from anyshape.typecheck.testing.differential import REFUSALS, Case, D, T, check_case, lower, run_rule

with contextlib.suppress(ModuleNotFoundError):  # in 2.12
    import torch.nn.modules.linear_cross_entropy  # registers its operators

rules = Rules(RULES)
aten = torch.ops.aten
f64, i32, i64, u8 = torch.float64, torch.int32, torch.int64, torch.uint8
inf = float("inf")
NONE, SUM = {"reduction": "none"}, {"reduction": "sum"}


def case(op: str, *args: Any, where: str = "", **kwargs: Any) -> Case:
    return Case(op, getattr(F, op), args, kwargs, where)


CHUNKED = "torch_nn::_linear_cross_entropy_batch_chunked"
EACH = f"{CHUNKED}_no_reduction"
POINTWISE = "mse_loss l1_loss smooth_l1_loss huber_loss kl_div hinge_embedding_loss poisson_nll_loss".split()
BINARY = {
    "binary_cross_entropy": torch._C._nn.binary_cross_entropy,
    "binary_cross_entropy_with_logits": torch.binary_cross_entropy_with_logits,
}
"""As ATen has them. Python's functions want equal shapes, and are entered."""
CLASSES = [T(sizes, i64) for sizes in ("n", "m", "", "n h", "n h w", "n w h", "n c")]
CASES = [
    *(
        case(op, a, b, **kwargs)
        for op in (*POINTWISE, "soft_margin_loss", "multilabel_soft_margin_loss")
        for a, b in ((T("a b"), T("c b")), (T("a b"), T("b")), (T("b"), T("a b")), (T(""), T("")))
        for kwargs in (NONE, SUM)
    ),
    *(case(op, T("b a c", permute=(1, 0, 2)), T("c"), **NONE) for op in (*POINTWISE, "soft_margin_loss")),
    *(case(op, T("a b"), T("a b"), reduction="average") for op in POINTWISE),
    *(case(op, T("a b"), T("a b"), weight=T("c b"), **NONE) for op in ("mse_loss", "l1_loss", "huber_loss")),
    case("mse_loss", T("b"), T("a b"), weight=T("a b")),
    Case("margin_ranking_loss", torch.margin_ranking_loss, (T("a b"), T("b"), T("c"), 0.0, 0)),
    case("mse_loss", T("a"), T("b"), size_average=False),
    case("mse_loss", T("a"), T("b"), reduce=False),
    case("smooth_l1_loss", T("a", i64), T("a", i64), beta=0.0, **NONE),
    case("l1_loss", T("a", i64), T("a", i64)),
    Case("mse_loss", aten.mse_loss, (T("a b"), T("b"), 0)),
    Case("smooth_l1_loss", aten.smooth_l1_loss, (T("a b"), T("b"), 0, 2.0)),
    Case("poisson_nll_loss", torch.poisson_nll_loss, (T("a b"), T("b"), True, False, 1e-8, 0)),
    case("kl_div", T("a b"), T("a b"), reduction="batchmean"),
    *(
        Case(op, call, (T(a), T(b)), {"reduction": reduction})
        for op, call in BINARY.items()
        for a, b in (("a b", "c d"), ("a b", "c"), ("c", "a b"), ("", "a"), ("a 1 b", "c a d"))
        for reduction in (0, 2)
    ),
    *(
        Case(op, BINARY[op], (T("a b"), T("a b")), {name: T(w), "reduction": 0})
        for op, name in (
            ("binary_cross_entropy", "weight"), ("binary_cross_entropy_with_logits", "weight"),
            ("binary_cross_entropy_with_logits", "pos_weight"),
        )
        for w in ("c", "c b", "", "1 a b")
    ),
    *(case("multilabel_soft_margin_loss", T("a b"), T("a b"), weight=T(w), **NONE)
      for w in ("c", "c b", "", "1 a b")),
    Case("binary_cross_entropy_with_logits", torch.binary_cross_entropy_with_logits,
         (T("a b"), T("a b"), T("c"), T("d"), 0)),
    case("smooth_l1_loss", T("a"), T("a"), beta=5),
    Case("smooth_l1_loss", torch._C._nn.smooth_l1_loss, (T("a b"), T("b"), 0, 5)),
    *(
        case(op, x, t, where="c", **kwargs)
        for op in ("cross_entropy", "nll_loss")
        for x in (T("c"), T("n c"), T("n c h"), T("n c h w"), T("n h c", permute=(0, 2, 1)))
        for t in CLASSES
        for kwargs in (NONE, {})
    ),
    *(case(op, T("c"), T("t", i64), where="c", **NONE) for op in ("cross_entropy", "nll_loss")),
    *(
        case(op, T("n c"), T("n", dtype), where="c n")
        for op in ("cross_entropy", "nll_loss")
        for dtype in (u8, i32, f64)
    ),
    *(case(op, T("n c h"), T("n h", u8), where="c n h") for op in ("cross_entropy", "nll_loss")),
    *(
        case(op, x, t, T(w), where="c")
        for op in ("cross_entropy", "nll_loss")
        for x, t in ((T("c"), T("", i64)), (T("n c"), T("n", i64)), (T("n c h"), T("n h", i64)))
        for w in ("c", "d", "c 1")
    ),
    *(case("cross_entropy", T(s), T(t), w, **NONE) for s, t, w in (
        ("c", "d", None), ("n c", "m d", None), ("n c h", "n c h", T("d")), ("n c", "n c", T("c 1")),
        ("", "", None),
    )),
    case("cross_entropy", T("n h c", permute=(0, 2, 1)), T("n c h"), **NONE),
    case("cross_entropy", T("n c"), T("m", i64), label_smoothing=0.1, where="c"),
    case("cross_entropy", T("c"), T("t", i64), label_smoothing=0.1, where="c"),
    case("cross_entropy", T("c"), T("", i64), label_smoothing=0.1, where="c"),
    case("cross_entropy", T("n c"), T("n", i64), label_smoothing=1.5, where="c n"),
    Case("cross_entropy_loss", aten.cross_entropy_loss, (T("n c h"), T("n w", i64), None, 0), where="c"),
    Case("nll_loss_nd", aten.nll_loss_nd, (T("n c h w"), T("n h w", i64), T("d"), 1), where="c"),
    Case("nll_loss2d", aten.nll_loss2d, (T("n c h w"), T("n h v", i64), None, 0), where="c"),
    Case("nll_loss_forward", aten.nll_loss_forward, (T("n c"), T("m", i64), None, 0, -100), where="c"),
    Case(
        "nll_loss2d_forward", aten.nll_loss2d_forward, (T("n c h w"), T("n h v", i64), None, 1, -100),
        where="c",
    ),
    *(
        case("multi_margin_loss", x, t, where="n", **kwargs)
        for x in (T("n c"), T("c"), T(""), T("a n c"))
        for t in (T("n", i64), T("", i64), T("m", i64), T("n 1", i64))
        for kwargs in (NONE, {})
    ),
    *(case("multi_margin_loss", T("n c"), T("n", i64), weight=T(w), where="n") for w in ("c", "d", "c 1")),
    case("multi_margin_loss", T("n c"), T("n", i64), 3),
    case("multi_margin_loss", T("n c"), T("n", i32), where="n c"),
    *(
        case("multilabel_margin_loss", x, t, **kwargs)
        for x in (T("n c"), T("c"), T(""), T("a n c"))
        for t in (T("n c", i64), T("c", i64), T("", i64), T("n d", i64))
        for kwargs in (NONE, {})
    ),
    Case("multilabel_margin_loss_forward", aten.multilabel_margin_loss_forward, (T("n c"), T("n d", i64), 0)),
    *(case("multilabel_soft_margin_loss", T("a b"), T("a b"), T(w), **NONE) for w in ("b", "c", "c a b")),
    *(
        case("margin_ranking_loss", T(a), T(b), T(t), **kwargs)
        for a, b, t in (("n", "m", "k"), ("a b", "a 1", "c b"), ("a b", "b", "a b"), ("", "", ""))
        for kwargs in (NONE, {})
    ),
    *(
        case("gaussian_nll_loss", T("a b"), T("a b"), v, **NONE)
        for v in (T("a b"), T("c b"), T("a 1"), T("c"), T("1 1"), T(""), 1.0, 1)
    ),
    case("gaussian_nll_loss", T("a b"), T("c"), T("a b")),
    case("gaussian_nll_loss", T("a b"), T("b"), T("a b", i64, fill=1)),
    *(
        case("ctc_loss", T("t n c"), T("n s", i64, fill=1), *lengths, where="t n s c", **NONE)
        for lengths in (((5, 2), (1, 2)), ((D("t"),), (D("s"),)), ((D("t"), D("u")), (D("s"), D("v"))))
    ),
    case("ctc_loss", T("t 2 4"), T("s", i64, fill=1), (D("t"), 2), (D("u"), 2), where="t s u", **NONE),
    case("ctc_loss", T("t 4"), T("s", i64, fill=1), (D("t"),), (D("u"),), **NONE),
    *(
        case("ctc_loss", T("9 n 4"), T(s, i64, fill=1), T(u, i64, fill=2), T("n", i64, fill=2), where="n m")
        for s, u in (("n 9", "m"), ("m 9", "n"))
    ),
    case("ctc_loss", T("9 n 4"), T("n 9", i64, fill=1), T("n", fill=2), T("n", i64, fill=2)),
    case("ctc_loss", T("9 1 c"), T("1 9", i64, fill=0), (2,), (2,), 3),
    case("ctc_loss", T("9 1 4"), T("1 9", i64, fill=1), (2,), T("1", i64)),
    case("ctc_loss", T("9 1 4 1"), T("1 9", i64, fill=1), (2,), (2,)),
    *(
        case("cosine_similarity", T(a), T(b), dim)
        for a, b in (("a b", "c b"), ("a b c", "d"), ("a", "a"), ("", ""))
        for dim in (0, 1, -1)
    ),
    case("cosine_similarity", T("b a c", permute=(1, 0, 2)), T("a b c"), -1),
    *(
        case("pairwise_distance", T(a), T(b), **kwargs)
        for a, b in (("a b", "c b"), ("a b c", "d"), ("a", "b"), ("", ""), ("", "a"))
        for kwargs in ({}, {"keepdim": True}, {"p": inf})
    ),
    *(
        case("cosine_embedding_loss", T(a), T(b), T(t), **kwargs)
        for a, b, t in (
            ("n k", "m k", "t"), ("n k", "k", "n"), ("k", "j", ""), ("k", "k", "t"), ("a b c", "a b c", "a"),
        )
        for kwargs in (NONE, {})
    ),
    case("cosine_embedding_loss", T("n k"), T("n k"), T("n 1")),
    *(
        case("triplet_margin_loss", T(a), T(p), T(n), **kwargs)
        for a, p, n in (
            ("a k", "b k", "c k"), ("a k", "k", "k"), ("k", "j", "k"), ("", "", ""),
            ("a b c", "a 1 c", "1 b c"),
        )
        for kwargs in (NONE, {"swap": True}, {"p": inf, "reduction": "none"}, {"margin": 0.0})
    ),
    *(
        Case("cdist", torch.cdist, (T(a), T(b)))
        for a, b in (("m k", "n j"), ("b m k", "c n k"), ("b 1 m k", "c n k"), ("k", "n k"))
    ),
    Case("cdist", torch.cdist, (T("m k"), T("n k", f64)), where="m n k"),
    Case("cdist", torch.cdist, (T("m k", i64), T("n k", i64))),
    Case("_cdist_forward", aten._cdist_forward, (T("m k"), T("n j"), 2.0, None)),
    Case("_pdist_forward", aten._pdist_forward, (T("n k"),)),
    Case("pdist", torch.pdist, (T("n k"),)),
    Case("pdist", torch.pdist, (T("b n k"),)),
    *(
        Case("_ctc_loss", aten._ctc_loss, (T(probs), targets, (3, 3), (1, 2)))
        for probs, targets in (("t n c", T("n 2", i64)), ("t n c", T("m", i64)), ("3 2 c", T("2 k", i64)))
    ),
    Case("_ctc_loss", aten._ctc_loss, (T("t n c", f64), T("n s", i64), T("m", i64), T("m", i64)),
         where="t n c s"),
    *(
        Case(CHUNKED, found(torch.ops.torch_nn, CHUNKED.partition("::")[2]),
             (T("n d"), T("k e"), T("m", i64), bias, weight, "mean", -100, 0.0, 4, "fast", torch.float32,
             False, *asked),
             where="n l")
        for bias, weight, asked in ((T("j"), T("l"), (True, True, True)), (None, None, (False,) * 3))
    ),
    Case(EACH, found(torch.ops.torch_nn, EACH.partition("::")[2]),
         (T("n d"), T("k e"), T("m", i64), T("j"), None, -100, 4, "fast", torch.float32), where="n"),
    *(  # probabilities in place of classes
        Case(op, found(torch.ops.torch_nn, op.partition("::")[2]),
             (T("n d"), T("k d"), T("m j", dtype), None, weight, *mode, 2, "fast", torch.float32, *rest))
        for op, mode, rest in (
            (CHUNKED, ("mean", -100, 0.0), (False,) * 4), (EACH, (-100,), ()),
        )
        for dtype, weight in ((torch.float32, None), (torch.float32, T("l")), (torch.float64, None))
    ),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case: Case) -> None:
    check_case(case, rules, 12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(RULES) - {"pdist", "_pdist_forward"}))
def test_both_answers_are_seen(name: str) -> None:
    for c in CASES:
        if c.op == name:
            accepted, refused = check_case(c, rules, 30)
            if accepted and refused:
                return
    raise AssertionError(f"no case of {name} is both accepted and refused")


DISTANCES = ["pairwise_distance", "cosine_similarity"]
PAIRS = [*POINTWISE, *BINARY, "soft_margin_loss", "multilabel_soft_margin_loss", "cross_entropy", *DISTANCES]
DTYPES = (torch.bool, i64, torch.bfloat16, torch.float32, f64, torch.complex64)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PAIRS)
def test_dtypes(name: str) -> None:
    """Which pairs of dtypes are taken, and what comes of them."""
    kwargs_of: list[dict[str, Any]] = (
        [{}] if name in DISTANCES else [{}, NONE]
    )
    if name == "poisson_nll_loss":
        kwargs_of.append({"log_input": False})
    for x, y, kwargs in itertools.product(DTYPES, DTYPES, kwargs_of):
        a, b = torch.ones(2, 3, dtype=x), torch.ones(2, 3, dtype=y)
        try:
            expected = getattr(F, name)(a, b, **kwargs).dtype
        except REFUSALS:
            expected = None
        accepted, result, _ = run_rule(rules, name, (lower(a), lower(b)), kwargs, Domain())
        assert (getattr(torch, result.dtype) if accepted is True else None) == expected, (x, y, kwargs)


def test_every_rule_is_judged() -> None:
    assert set(RULES) == {c.op for c in CASES}


def test_the_judge_refutes_wrong_rules() -> None:
    """An oracle that cannot fail proves nothing."""

    def careless(c: Any, input: Tensor, target: Tensor, **_: Any) -> Tensor:
        return Tensor(())

    wrong = Case("mse_loss", F.mse_loss, (T("a b"), T("c b")))
    check_case(wrong, rules)
    with pytest.raises(AssertionError):
        check_case(wrong, Rules({"mse_loss": careless}))
