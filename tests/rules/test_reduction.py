"""Reductions, scans and sorts, judged by torch."""
from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.numbers import LIMITS
from anyshape.constraints.rules.reduction import CHOICES, REDUCTIONS, RULES, SCANS
from anyshape.constraints.terms.formula import ne
from anyshape.typecheck.testing.differential import REFUSALS, Case, D, T, check_case, lower, run_rule

rules = Rules(RULES).limited({op: LIMITS[op] for op in RULES.keys() & LIMITS})
f16, f32, f64, i64, flag, c64, u8 = (
    torch.float16, torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64, torch.uint8,
)  # fmt: skip
aten = torch.ops.aten
P = (2, 0, 1)
inf = float("inf")
SEVERAL = "sum nansum mean nanmean amax amin logsumexp".split()
ONE = "prod argmax argmin".split()
SPREAD = "std var std_mean var_mean".split()
LOCATED = "max min median nanmedian".split()

CASES = [
    *(
        Case(op, getattr(torch, op), (T("a b c", permute=P), *args), kwargs)
        for op in SEVERAL
        for args, kwargs in (
            ((0,), {}),
            (((0, -1),), {}),
            ((-2,), {"keepdim": True}),
            (((0, 1, 2),), {"keepdim": True}),
            (((0, 0),), {}),
            ((3,), {}),
        )
    ),
    *(Case(op, getattr(torch, op), (T("a b"),)) for op in ("sum", "mean", "amax", "amin", "nansum")),
    *(Case(op, getattr(torch, op), (T("a b"), [])) for op in "sum mean amax amin any all var".split()),
    *(Case(op, getattr(torch, op), (T(""), dim)) for op in "sum any amax var".split() for dim in (0, -1, 1)),
    *(
        Case(op, getattr(torch, op), (T("a b c", permute=P), *args), kwargs)
        for op in (*ONE, *LOCATED)
        for args, kwargs in (((), {}), ((0,), {}), ((-2,), {"keepdim": True}), (((0, 1),), {}), ((-4,), {}))
    ),
    *(Case(op, getattr(torch, op), (T(""), *dim)) for op in (*ONE, *LOCATED) for dim in ((), (0,), (1,))),
    *(
        Case(op, getattr(torch, op), (T("a b c", permute=P), *args), kwargs)
        for op in SPREAD
        for args, kwargs in (
            ((), {}), ((False,), {}), (((0, 1), True, True), {}), ((), {"dim": 1, "correction": 0}),
        )
    ),
    *(
        Case(op, getattr(torch, op), (T("a b c", flag, P), *args), kwargs)
        for op in ("any", "all")
        for args, kwargs in (((), {}), ((1,), {}), (((0, -1), True), {}))
    ),
    Case("all", torch.all, (T("a", u8), 0)),
    Case("count_nonzero", torch.count_nonzero, (T("a b c", permute=P), (0, 2))),
    Case("count_nonzero", torch.count_nonzero, (T("a b c", flag),)),
    Case("count_nonzero", torch.Tensor.count_nonzero, (T("a b c"), 0, 2)),
    Case("_is_all_true", torch._is_all_true, (T("a b", flag),)),
    Case("_is_any_true", torch._is_any_true, (T("a b", flag),)),
    Case("_grad_sum_to_size", aten._grad_sum_to_size, (T("a b"), [D("c")])),
    Case("_grad_sum_to_size", aten._grad_sum_to_size, (T("a b"), None)),
    *(
        Case("logsumexp", torch.logsumexp, (T(dims), ()), kwargs)
        for dims in ("", "a", "a b")
        for kwargs in ({}, {"keepdim": True})
    ),
    Case("hash_tensor", torch.hash_tensor, (T("a b c", permute=P), (0, 2))),
    Case("hash_tensor", torch.hash_tensor, (T("a b", i64), 1), {"keepdim": True}),
    Case("hash_tensor", torch.hash_tensor, (T("a b"),)),
    Case("hash_tensor", torch.hash_tensor, (T(""), 0)),
    Case("sum", torch.sum, (T("a b", i64),), {"dtype": f64}),
    Case("sum", torch.sum, (T("a b", flag), 1)),
    Case("mean", torch.mean, (T("a b", i64), 1)),
    Case("mean", torch.mean, (T("a b", i64), 1), {"dtype": f32}),
    Case("mean", torch.mean, (T("a b"), 1), {"dtype": i64}),
    Case("nanmean", torch.nanmean, (T("a b", i64),), {"dtype": f32}),
    Case("prod", torch.prod, (T("a b"), 1), {"dtype": f64}),
    Case("sum", torch.sum, (T("a b"), 1), {"dtype": torch.int32}),
    Case("prod", torch.prod, (T("a b", i64),), {"dtype": torch.bool}),
    Case("cumsum", torch.cumsum, (T("a b"), 1), {"dtype": torch.int8}),
    Case("sum", torch.ops.aten.sum.dim_IntList, (T("a b c"), [1], True), {"dtype": f64}),
    Case("mean", torch.ops.aten.mean.dim, (T("a b c"), [-1, -2], True)),
    Case("amax", torch.ops.aten.amax, (T("a b c"), [-1], True)),
    Case("var", torch.ops.aten.var.correction, (T("a b c"), [1]), {"correction": 1, "keepdim": True}),
    Case("var_mean", torch.ops.aten.var_mean.correction, (T("a b c"), [1]), {"correction": 0}),
    Case("max", torch.max, (T("a b"), T("c"))),
    Case("min", torch.min, (T("a b c", permute=P),), {"other": T("c a b")}),
    Case("argmax", torch.argmax, (T("a b", flag), 1)),
    Case("argmax", torch.argmax, (T("a b"), None, True)),
    Case("mode", torch.mode, (T("a b c", permute=P),)),
    Case("mode", torch.mode, (T("a b c"), 1, True)),
    Case("mode", torch.mode, (T(""),)),
    Case("kthvalue", torch.kthvalue, (T("a b"), 2)),
    Case("kthvalue", torch.kthvalue, (T("a b c", permute=P), D("k"), 1, True)),
    Case("kthvalue", torch.kthvalue, (T(""), D("k"))),
    Case("aminmax", torch.aminmax, (T("a b"),)),
    Case("aminmax", torch.aminmax, (T("a b c", permute=P),), {"dim": 1, "keepdim": True}),
    Case("aminmax", torch.aminmax, (T(""),), {"dim": 0}),
    *(
        Case(op, getattr(torch, op), (T("a b c", permute=P), q, *args), kwargs)
        for op in ("quantile", "nanquantile")
        for q in (0.5, T("k"), T(""))
        for args, kwargs in (((), {}), ((1,), {}), ((-1, True), {}), ((), {"keepdim": True}), ((3,), {}))
    ),
    Case("quantile", torch.quantile, (T("a b"), T("k j"))),
    Case("quantile", torch.quantile, (T("a b"), T("k", f64))),
    Case("quantile", torch.quantile, (T(""), T("k"), 0)),
    Case("quantile", torch.quantile, (T("a"), 1.5)),
    Case("quantile", torch.quantile, (T("a"), 0.5), {"interpolation": "middle"}),
    *(
        Case(op, getattr(torch, op), (T("a b c", permute=P), dim))
        for op in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "softmax", "log_softmax")
        for dim in (0, -1, 3)
    ),
    *(
        Case(op, getattr(torch, op), (T(""), dim))
        for op in ("cumsum", "logcumsumexp", "cummax", "softmax", "log_softmax")
        for dim in (0, 1)
    ),
    *(Case("cummax", torch.cummax, (T(sizes, c64), 0)) for sizes in ("", "a", "a b")),
    *(Case("mode", torch.mode, (T(sizes, c64),)) for sizes in ("", "a", "a b")),
    Case("cumsum", torch.cumsum, (T("a b", i64), 1), {"dtype": f32}),
    Case("cumsum", torch.cumsum, (T("a b", flag), 1)),
    Case("softmax", F.softmax, (T("a b c", permute=P),)),
    Case("softmax", F.softmax, (T("a b"), 1), {"dtype": f64}),
    Case("softmax", torch.softmax, (T("a b"), 1, f64)),
    Case("softmax", torch.softmax, (T("a b", i64), 1)),
    Case("log_softmax", torch.log_softmax, (T("a b", flag), 0)),
    Case("softmax", torch.softmax, (T("a b"), 1, i64)),
    Case("softmax", torch.softmax, (T("a b", i64), 1), where="a b"),
    Case("softmax", F.softmax, (T("a b"), -1), {"_stacklevel": 5}),
    Case("softmax", F.softmax, (T("a b"), -1, 5)),
    Case("softmax", torch.ops.aten._softmax, (T("a b c", permute=P), -1, False)),
    Case("softmax", torch.ops.aten._softmax, (T("a b", f16), -1, True)),
    Case("softmax", torch.softmax, (T("a c d b", permute=(0, 3, 1, 2)), 1)),
    Case("log_softmax", F.log_softmax, (T("a b"), 1)),
    Case("softmin", F.softmin, (T("a b"), 1)),
    Case("gumbel_softmax", F.gumbel_softmax, (T("a b c", permute=P),)),
    Case("gumbel_softmax", F.gumbel_softmax, (T("a b"), 1, True)),
    Case("gumbel_softmax", F.gumbel_softmax, (T("a b"),), {"hard": True, "dim": 0}),
    Case("gumbel_softmax", F.gumbel_softmax, (T("a b", i64),), where="a b"),
    Case("normalize", F.normalize, (T("a b c", permute=P),)),
    Case("normalize", F.normalize, (T("a b"), 2.0, -1)),
    Case("normalize", F.normalize, (T("a b"), inf, 1)),
    Case("normalize", F.normalize, (T("a b"), -1.0, (0, 1))),
    Case("normalize", F.normalize, (T("a"),)),
    Case("normalize", F.normalize, (T("a b", i64),)),
    Case("renorm", torch.renorm, (T("a b c", permute=P), 2, 1, 1.0)),
    Case("renorm", torch.renorm, (T("a"), 2, 0, 1.0)),
    *(
        Case(op, getattr(torch, op), (T("a b c", permute=P), *args), kwargs)
        for op in ("sort", "argsort")
        for args, kwargs in (
            ((), {}), ((0,), {}), ((1, True), {}), ((), {"dim": 1, "stable": True}), ((3,), {}),
        )
    ),
    Case("sort", torch.sort, (T(""),)),
    Case("msort", torch.msort, (T("a b c", permute=P),)),
    Case("msort", torch.msort, (T(""),)),
    Case("topk", torch.topk, (T("a b"), D("k"))),
    Case("topk", torch.topk, (T("a b c", permute=P), 2, 0)),
    Case("topk", torch.topk, (T("a b"), 1, 2)),
    Case("topk", torch.topk, (T(""), D("k"))),
    Case("topk", torch.topk, (T("a b", flag), 1)),
    Case("searchsorted", torch.searchsorted, (T("a"), T("b c d", permute=P))),
    *(
        Case("searchsorted", torch.searchsorted, (T("a"), T("b")), {"side": side, "right": right})
        for side in ("left", "right", "foo")
        for right in (True, False)
    ),
    *(
        Case(op, getattr(torch, op), (T("a b", dtype),))
        for op in ("median", "nanmedian")
        for dtype in (flag, c64)
    ),
    *(
        Case(f"{op}_", getattr(torch.Tensor, f"{op}_"), (T(dims, dtype), 0), kwargs)
        for op in ("cumsum", "cumprod")
        for dims in ("", "a", "a b")
        for dtype, kwargs in ((flag, {}), (i64, {}), (f32, {"dtype": f64}), (f32, {"dtype": f32}))
    ),
    Case("searchsorted", torch.searchsorted, (T("a b"), T("c d"))),
    Case("searchsorted", torch.searchsorted, (T("a b"), T("c d"))),
    Case("searchsorted", torch.searchsorted, (T("a b"), T("a"))),
    Case("searchsorted", torch.searchsorted, (T("a b"), T(""))),
    Case("searchsorted", torch.searchsorted, (T("a"), 1.0)),
    Case("searchsorted", torch.searchsorted, (T("a b"), 1.0)),
    Case("searchsorted", torch.searchsorted, (T("a b"), T("a d")), {"out_int32": True}),
    Case("searchsorted", torch.searchsorted, (T("a b"), T("a d")), {"sorter": T("c d", i64)}),
    Case("bucketize", torch.bucketize, (T("a b"), T("c"))),
    Case("bucketize", torch.bucketize, (T("a b"), T("c d"))),
    Case("diff", torch.diff, (T("a b"),)),
    Case("diff", torch.diff, (T("a b c"), D("n"), 1)),
    Case("diff", torch.diff, (T("a b"), 2, 0, T("c d"), T("e b"))),
    Case("diff", torch.diff, (T("a b"), 0, 0, T("c d"))),
    Case("diff", torch.diff, (T("a b"),), {"prepend": T("b")}),
    Case("diff", torch.diff, (T("a b", i64),), {"append": T("a c", f64)}),
    Case("diff", torch.diff, (T(""),)),
    Case("gradient", torch.gradient, (T("a b"),)),
    Case("gradient", torch.gradient, (T("a b"),), {"dim": -1, "edge_order": 2, "spacing": 0.5}),
    Case("gradient", torch.gradient, (T("a b"),), {"spacing": [1.0]}),
    *(Case("gradient", torch.gradient, (T("a"),), {"spacing": (T("k"),), "edge_order": order})
      for order in (1, 2)),
    Case("sum_to_size", torch.Tensor.sum_to_size, (T("a b"), D("c"), D("d"))),
    Case("sum_to_size", torch.Tensor.sum_to_size, (T("a b"), D("b"))),
    Case("sum_to_size", torch.Tensor.sum_to_size, (T("a b"), (D("a"), D("b")))),
    Case("sum_to_size", torch.Tensor.sum_to_size, (T("b"), D("a"), D("b"))),
    *(Case("sum_to_size", torch.Tensor.sum_to_size, (T(sizes, dtype), size))
      for dtype in (i64, torch.bool, torch.float16)
      for sizes, size in (("a b", (D("a"), D("b"))), ("a b", (1,)), ("a", (1,)), ("", ()), ("a", ()))),
    *(Case("gradient", torch.gradient, (T("a b c"),), {"spacing": (T("k"), T("j")), "dim": (0, -1),
                                                       "edge_order": order})
      for order in (1, 2)),
    Case("softmax", torch.ops.aten._safe_softmax, (T("a b c", permute=P), -1)),
    *(
        Case(op, getattr(torch, op), (T("a b c"), *args), kwargs)
        for op in ("trapezoid", "cumulative_trapezoid")
        for args, kwargs in (
            ((), {}), ((T("n"),), {}), ((), {"dx": 2.0, "dim": 0}), ((T("n"),), {"dim": 1}),
        )
    ),
    Case("trapezoid", torch.trapezoid, (T("a b c"), T("d e c"))),
    Case("trapezoid", torch.trapezoid, (T("a b", i64),)),
    Case("cumulative_trapezoid", torch.cumulative_trapezoid, (T("a b c"), T("b d"))),
    Case("trapz", torch.trapz, (T("a", i64), T("a"))),
    Case("trapz", torch.trapz, (T(""),)),
    Case("multinomial", torch.multinomial, (T("a b", fill=1), D("k"))),
    Case("multinomial", torch.multinomial, (T("b", fill=1), D("k"), True)),
    Case("multinomial", torch.multinomial, (T("a b", fill=1), D("k"), True)),
    Case("multinomial", torch.multinomial, (T("a b c", fill=1), 1)),
    Case("multinomial", torch.multinomial, (T("a b", i64, fill=1), 1)),
    Case("dist", torch.dist, (T("a b"), T("c"))),
    Case("cov", torch.cov, (T("a b"),)),
    Case("cov", torch.cov, (T("b"),)),
    Case("cov", torch.cov, (T("a b c"),)),
    Case("cov", torch.cov, (T("a b"),), {"fweights": T("c", i64, fill=1)}, where="b c"),
    Case("corrcoef", torch.corrcoef, (T("a b"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case: Case) -> None:
    check_case(case, rules, 16)


ASKING = "amax argmax max min mode kthvalue quantile topk diff trapezoid multinomial searchsorted".split()


@pytest.mark.parametrize("name", ASKING)
def test_both_answers_are_seen(name: str) -> None:
    counts = [check_case(c, rules) for c in CASES if c.op == name]
    assert any(accepted and refused for accepted, refused in counts)


DTYPES = (flag, torch.int32, i64, torch.bfloat16, f32, f64, c64)
ARGS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys((*SCANS, "cumsum_", "cumprod_"), (1,)),
    **dict.fromkeys("cummax cummin kthvalue logsumexp log_softmax softmax softmin topk".split(), (1,)),
    **dict.fromkeys(("quantile", "nanquantile"), (0.5,)), "renorm": (2, 0, 1.0),
}  # fmt: skip
OTHERWISE = {"_grad_sum_to_size", "bucketize", "dist", "searchsorted", "multinomial", "sum_to_size"}


@pytest.mark.parametrize("name", sorted(set(RULES) - OTHERWISE))
def test_dtypes(name: str) -> None:
    call = next(getattr(m, name) for m in (torch, F, torch.Tensor) if hasattr(m, name))
    args = ARGS.get(name, ())
    for dtype in DTYPES:
        if "quantile" in name and dtype.itemsize == 2:
            continue  # a kernel that CPU torch lacks
        try:
            real = call(torch.ones(3, 4, dtype=dtype), *args)
            expected = [r.dtype for r in ([real] if isinstance(real, torch.Tensor) else real)]
        except REFUSALS:
            expected = []
        accepted, result, _ = run_rule(
            rules, name, (lower(torch.ones(3, 4, dtype=dtype)), *args), {}, Domain()
        )
        got = [result] if isinstance(result, Tensor) else result
        assert accepted is bool(expected), dtype
        assert not expected or [getattr(torch, t.dtype) for t in got] == expected, dtype


def test_every_rule_is_judged() -> None:
    assert set(RULES) == {c.op for c in CASES}
    assert set(REDUCTIONS) | set(CHOICES) < set(RULES)


def test_the_judge_refutes_wrong_rules() -> None:
    """An oracle that cannot fail proves nothing."""

    def keeps(c: Any, input: Tensor, dim: int) -> Tensor:
        return Tensor(input.shape)

    def never_refuses(c: Any, input: Tensor, dim: int) -> Tensor:
        return Tensor(input.shape[:-1])

    def refuses_by_another_type(c: Any, input: Tensor, dim: int) -> Tensor:
        c.require(ne(input.shape[-1], 0), "there is no maximum of nothing", RuntimeError)
        return Tensor(input.shape[:-1])

    for case, wrong in (
        (Case("sum", torch.sum, (T("a b"), -1)), keeps),
        (Case("amax", torch.amax, (T("a b"), -1)), never_refuses),
        (Case("amax", torch.amax, (T("a b"), -1)), refuses_by_another_type),
    ):
        check_case(case, rules)
        with pytest.raises(AssertionError):
            check_case(case, Rules({case.op: wrong}))
