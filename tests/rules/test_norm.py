"""Normalisations, judged by torch."""
from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Layout, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.norm import RULES
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import ge
from anyshape.typecheck.testing.differential import REFUSALS, Case, D, T, check_case, lower, run_rule

rules = Rules(RULES)
bf16, f16, f32, f64, i64, c64 = (
    torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int64, torch.complex64,
)  # fmt: skip
P = (2, 0, 1)
LAST = (0, 3, 1, 2)
LAST3 = (0, 4, 1, 2, 3)
aten = torch.ops.aten
EVAL, TRAIN = {"training": False}, {"training": True}

INPUTS = (T("n c"), T("n c l"), T("n h c", permute=(0, 2, 1)), T("n c h k"), T("n h k c", permute=LAST))
ATEN = (0.1, 1e-5, False)
"""momentum, eps, cudnn_enabled"""
OWN, GIVEN = {"use_input_stats": True}, {"use_input_stats": False}
CASES = [
    *(
        Case("batch_norm", F.batch_norm, (x, *(T(v) for v in vectors.split())), mode)
        for mode in (EVAL, TRAIN)
        for x in INPUTS
        for vectors in ("c c c c", "u u c c", "c c v v")
    ),
    *(Case("batch_norm", F.batch_norm, (T(s), T("c"), T("c")), m) for s in ("", "c") for m in (EVAL, TRAIN)),
    Case("batch_norm", F.batch_norm, (T("n 4 l"), None, None), TRAIN),
    Case("batch_norm", F.batch_norm, (T("n 4 l"), None, None), EVAL),
    Case("batch_norm", F.batch_norm, (T("n c", torch.int64), T("4"), T("4")), EVAL),
    Case("batch_norm", F.batch_norm, (T("n c", torch.float16), T("4"), T("4", torch.float64)), TRAIN),
    *(
        Case("batch_norm", F.batch_norm, (T("n c l", torch.int64), T("c"), T("c"), T("c", dtype)), mode)
        for dtype in (torch.float32, torch.float16, torch.int64)
        for mode in (EVAL, TRAIN)
    ),
    Case("batch_norm", F.batch_norm, (T("n 4 l"), T("c"), None), EVAL),
    Case("batch_norm", F.batch_norm, (T("n 4 l"), T("c"), None), TRAIN, where="n l c"),
    Case("batch_norm", F.batch_norm, (T("n 4 l"), T("4"), T("4 1")), EVAL),
    Case("batch_norm", F.batch_norm, (T("n 4 l"), T("4"), T("4"), T("4 1"), T("2 c")), EVAL, where="n l c"),
    Case("batch_norm", F.batch_norm, (T("n c d h k"), T("c"), T("c")), EVAL),
    Case("batch_norm", F.batch_norm, (T("n d h k c", permute=LAST3), T("c"), T("c")), EVAL),
    Case("batch_norm", torch.batch_norm, (T("n c"), T("c"), T("c"), T("c"), T("c"), True, *ATEN)),
    Case("batch_norm", torch.batch_norm, (T("n c"), None, None, T("c"), T("u"), False, *ATEN), where="n c u"),
    *(
        Case(op, getattr(aten, op), (x, T("c"), T("c"), T("c"), T("c"), *more, 0.1, 1e-5))
        for op, more in (
            ("native_batch_norm", (True,)), ("native_batch_norm", (False,)),
            ("_native_batch_norm_legit", (True,)), ("_native_batch_norm_legit_no_training", ()),
            ("_native_batch_norm_legit_functional", (True,)), ("_batch_norm_with_update", ()),
            ("_batch_norm_with_update_functional", ()), ("_batch_norm_no_update", ()),
        )
        for x in (T("n c l"), T("n h k c", permute=LAST))
    ),
    Case(
        "_native_batch_norm_legit", aten._native_batch_norm_legit.no_stats,
        (T("n c"), T("c"), T("c"), True, 0.1, 1e-5),
    ),
    *(
        Case("instance_norm", F.instance_norm, (x, *(T(v) for v in vectors.split())), mode)
        for mode in (OWN, GIVEN)
        for x in (*INPUTS, T(""), T("c"))
        for vectors in ("c c c c", "u u c c", "c c v v")
    ),
    Case("instance_norm", F.instance_norm, (T("n c l"),)),
    Case("instance_norm", F.instance_norm, (T("n c l"),), {"use_input_stats": False}),
    Case("instance_norm", F.instance_norm, (T("n c l"), T("c"))),
    *(
        Case("instance_norm", F.instance_norm, (T("n c l", x), *(T("c", s) for s in statistics)), options)
        for x in (i64, torch.bool, c64, f16, f64)
        for statistics in ((), (f32, f32), (i64, i64))
        for options in (OWN, GIVEN, {**OWN, "weight": T("c")}, {**GIVEN, "bias": T("c", f64)})
        if not statistics or x not in (i64, torch.bool)
    ),
    Case("instance_norm", F.instance_norm, (T("n c l"),), {"weight": T("c 1")}),
    Case("instance_norm", torch.instance_norm, (T("n c"), None, None, None, None, True, *ATEN)),
    Case(
        "instance_norm", torch.instance_norm, (T("n c l"), None, None, T("c"), T("c"), False, *ATEN),
        where="n c l",
    ),
    Case("group_norm", F.group_norm, (T("n c l"), 2)),
    Case("group_norm", F.group_norm, (T("n c"), D("g"))),
    Case("group_norm", F.group_norm, (T("n 6 h k"), 3, T("c"), T("u"))),
    Case("group_norm", F.group_norm, (T("n h k c", permute=LAST), D("g"), T("c"), T("c"))),
    Case("group_norm", F.group_norm, (T("n h c", permute=(0, 2, 1)), 1, T("c"), T("c"))),
    Case("group_norm", F.group_norm, (T("n 4"), 2, T("4 1"))),
    Case("group_norm", F.group_norm, (T("c"), 1)),
    Case("group_norm", torch.group_norm, (T("n c"), D("g"), None, None, 1e-5, True)),
    *(
        Case(op, getattr(aten, op), (T("n c l"), v, v, D("n"), D("c"), D(size), g, 1e-5))
        for op in ("native_group_norm",)
        for v, size, g in ((T("c"), "l", 2), (None, "k", 1))
    ),
    *(
        Case("native_group_norm", aten.native_group_norm, (x, None, None, n, 4, D("l"), 2, 1e-5))
        for x, n in (
            (T("n l 4", permute=(0, 2, 1)), D("n")), (T("n 4 l", strides="8*l 2*l 2"), D("n")),
            (T("n 4 l"), 0),
        )
    ),
    Case(
        "native_group_norm", aten.native_group_norm,
        (T("n+1 h+1 k+1 4", permute=LAST), None, None, D("n+1"), 4, D("(h+1)*(k+1)"), 2, 1e-5),
    ),
    Case("layer_norm", F.layer_norm, (T("a b c"), (8,), T("8"), T("8"))),
    Case("layer_norm", F.layer_norm, (T("a b c"), (D("d"),), T("e"), T("f"))),
    Case("layer_norm", F.layer_norm, (T("a b c", permute=P), (D("a"), D("d")), T("a e"))),
    Case("layer_norm", F.layer_norm, (T("a b c"), (D("c"),), T("c"))),
    Case("layer_norm", F.layer_norm, (T("a b c"), (D("b"), D("c")), T("b*c"))),
    Case("layer_norm", F.layer_norm, (T("a"), (D("b"), D("a")))),
    Case("layer_norm", F.layer_norm, (T("a b"), ())),
    Case("layer_norm", F.layer_norm, (T("a b"), 8)),
    Case("layer_norm", F.layer_norm, (T("a c d b", permute=LAST), (D("d"),))),
    Case("native_layer_norm", aten.native_layer_norm, (T("a b c"), (D("c"),), T("c"), T("c"), 1e-5)),
    Case("native_layer_norm", aten.native_layer_norm, (T("a b c"), (D("b"), D("d")), None, None, 1e-5)),
    Case("rms_norm", F.rms_norm, (T("a b c", permute=P), (D("d"),), T("e"))),
    Case("rms_norm", F.rms_norm, (T("a b c"), (D("b"), D("c")))),
    Case("rms_norm", F.rms_norm, (T("a c d b", permute=LAST), (D("d"),))),
    Case("rms_norm", F.rms_norm, (T("a b"), ())),
    Case("_fused_rms_norm", aten._fused_rms_norm, (T("a b c"), (D("c"),), T("c"), None)),
    *(
        Case("norm_except_dim", torch.norm_except_dim, (x, 2, dim))
        for x in (T("a b c", permute=P), T("a b"), T(""))
        for dim in (0, 1, 2, -1, -2)
    ),
    *(
        Case("_weight_norm", torch._weight_norm, (T("a b c", permute=P), T(g), dim), where="a b c")
        for g, dim in (("c 1 1", 0), ("1 1 b", 2), ("1 d 1", 1), ("d 1", -2), ("d", -1), ("e 1 d 1", 1))
    ),
    Case("_weight_norm_interface", aten._weight_norm_interface, (T("a b"), T("a 1"), 0), where="a b"),
    Case("_weight_norm_interface", aten._weight_norm_interface, (T("a b"), T("1 b"), 1), where="a b"),
    Case("local_response_norm", F.local_response_norm, (T("n c"), 2)),
    Case("local_response_norm", F.local_response_norm, (T("n c l"), 2)),
    Case("local_response_norm", F.local_response_norm, (T("n c l"), D("s"))),
    Case("local_response_norm", F.local_response_norm, (T("n h k c", permute=LAST), 3)),
    Case("local_response_norm", F.local_response_norm, (T("n c d h k"), 2)),
    Case("local_response_norm", F.local_response_norm, (T("n c d k h", permute=(0, 1, 2, 4, 3)), 2)),
    Case("local_response_norm", F.local_response_norm, (T("n d h k c", permute=LAST3), 2)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case: Case) -> None:
    check_case(case, rules, 24)


ASKING = set(RULES) - {"_fused_rms_norm", "_native_batch_norm_legit_no_training", "_batch_norm_no_update"} - {
    "_weight_norm_interface",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(ASKING))
def test_both_answers_are_seen(name: str) -> None:
    counts = [check_case(c, rules, 24) for c in CASES if c.op == name]
    assert any(accepted and refused for accepted, refused in counts)


@pytest.mark.parametrize("name", ["batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm"])
def test_dtypes(name: str) -> None:
    """Half precision may have parameters of single precision; nothing else is mixed."""

    def arguments(x: torch.dtype, p: torch.dtype, q: torch.dtype) -> tuple[tuple[Any, ...], dict[str, Any]]:
        input, weight, bias = torch.ones(2, 4, 3, dtype=x), torch.ones(4, dtype=p), torch.ones(4, dtype=q)
        match name:
            case "batch_norm":
                return (input, weight, bias), {}
            case "group_norm":
                return (input, 2, weight, bias), {}
            case "instance_norm":
                return (input,), {"weight": weight, "bias": bias}
            case "layer_norm":
                return (input.mT, (4,), weight, bias), {}
            case _:
                return (input.mT, (4,), weight), {}

    dtypes = (bf16, f16, f32, f64, i64, c64)
    for x, p, q in itertools.product(dtypes, dtypes, dtypes):
        args, kwargs = arguments(x, p, q)
        try:
            expected = getattr(F, name)(*args, **kwargs).dtype
        except REFUSALS:
            expected = None
        lowered = {k: lower(v) for k, v in kwargs.items()}
        accepted, result, _ = run_rule(rules, name, tuple(map(lower, args)), lowered, Domain())
        assert (getattr(torch, result.dtype) if accepted is True else None) == expected, (x, p, q)


@pytest.mark.parametrize("dtypes", [(bf16, f32), (bf16, bf16), (f32, f32), (bf16, None)])
def test_dtypes_of_statistics(dtypes: tuple[torch.dtype, torch.dtype | None]) -> None:
    x = torch.ones(2, 4, 3, dtype=dtypes[0])
    four, three = (torch.ones(n, dtype=dtypes[1]) if dtypes[1] else None for n in (4, 3))
    for name, args in {
        "native_batch_norm": (x, four, four, four, four, True, 0.1, 1e-5),
        "native_group_norm": (x, four, four, 2, 4, 3, 2, 1e-5),
        "native_layer_norm": (x, (3,), three, three, 1e-5),
    }.items():
        if name == "native_group_norm" and dtypes[1] is None:
            continue
        real = getattr(torch, name)(*args)
        _, result, _ = run_rule(rules, name, tuple(map(lower, args)), {}, Domain())
        assert [r.dtype for r in result] == [str(r.dtype).removeprefix("torch.") for r in real], name


def test_vectors_that_kernels_do_not_look_at() -> None:
    """The CPU kernel would read beyond a short vector; no case can ask torch."""
    short = (Tensor((2, 4)), *(Tensor((n,)) for n in (4, 3, 4, 4)), True, 0.1, 1e-5)
    assert run_rule(rules, "native_batch_norm", short, {}, Domain())[0] is False
    missing = (Tensor((2, 4)), None, None, None, None, False, 0.1, 1e-5)
    assert run_rule(rules, "native_batch_norm", missing, {}, Domain())[0] is False


def test_what_is_asked_of_ordinary_sizes() -> None:
    """Where sizes are at least 1, nothing is said of empty tensors, and 64 channels are 64 channels."""
    b, c, h = map(sym, "bch")
    domain = Domain(("b", "c", "h"), (ge(b, 1), ge(c, 1), ge(h, 1)))
    vectors = {n: Tensor((64,)) for n in ("running_mean", "running_var", "weight", "bias")}

    def asked(op: str, x: Tensor, *args: Any, **kwargs: Any) -> str:
        return str(run_rule(rules, op, (x, *args), kwargs, domain)[0])

    assert asked("batch_norm", Tensor((b, 64, h, h)), **vectors) == "True"
    assert asked("batch_norm", Tensor((b, c, h, h)), **vectors) == "c == 64"
    assert asked("batch_norm", Tensor((b, 64, h)), **vectors, training=True) == "b*h != 1"
    assert asked("instance_norm", Tensor((b, 64, h))) == "h != 1"
    assert asked("group_norm", Tensor((b, 64, h)), 32) == "True"
    assert asked("group_norm", Tensor((b, c, 2)), 32) == "c % 32 == 0"
    assert asked("layer_norm", Tensor((b, h, c)), (64,)) == "c == 64"
    assert (
        run_rule(rules, "batch_norm", (Tensor((b, 64, h, h)),), vectors, domain)[1].layout
        is Layout.CONTIGUOUS
    )


def test_every_rule_is_judged() -> None:
    assert set(RULES) == {c.op for c in CASES}


def test_the_judge_refutes_wrong_rules() -> None:
    """An oracle that cannot fail proves nothing."""

    def careless(c: Any, input: Tensor, normalized_shape: Any) -> Tensor:
        return Tensor(input.shape)

    case = Case("layer_norm", F.layer_norm, (T("a b"), (4,)))
    check_case(case, rules)
    with pytest.raises(AssertionError):
        check_case(case, Rules({"layer_norm": careless}))
