"""Tensors made from sizes and numbers, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Number, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import creation
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import ge
from anyshape.tracer.host.operators import INSTALLED
from anyshape.typecheck.testing.differential import Case, D, T, check_case, run_rule

RULES = Rules(creation.RULES)
f64, i32, i64 = torch.float64, torch.int32, torch.int64


def call(name: str, *args: Any, **kwargs: Any) -> Case:
    return Case(name, getattr(torch, name), args, kwargs)


def method(name: str, *args: Any, **kwargs: Any) -> Case:
    return Case(name, getattr(torch.Tensor, name), args, kwargs)


def aten(name: str, overload: str, *args: Any, **kwargs: Any) -> Case:
    return Case(name, getattr(getattr(torch.ops.aten, name), overload), args, kwargs)


N, M, K = D("n - 2"), D("m"), D("k - 4")

# Every row can be accepted and refused.
REFUSABLE = [
    call("zeros", N),
    call("ones", N, 3, M),
    call("rand", (N, M)),
    call("randn", size=(N, 3), dtype=f64),
    call("empty", N, M),
    aten("empty", "memory_format", (N, 2, M, 3), memory_format=torch.channels_last),
    call("full", (N, 2), 3),
    call("full", (N,), 0.5, dtype=i32),
    call("randint", D("m"), (N, 2)),
    call("randint", D("k"), D("m"), (3, 2)),
    call("randint", low=0, high=5, size=(N,)),
    call("randperm", N),
    call("empty_strided", (N, M), (M, 1)),
    call("empty_permuted", (N, M, 3), (2, 0, 1)),
    method("new_zeros", T("a", f64), N, M),
    method("new_ones", T("a", i64), (N, M), dtype=torch.bool),
    method("new_full", T("a"), (N, M), 3),
    method("new_empty_strided", T("a", f64), (N, 2), (2, 1)),
    call("randint_like", T("a b"), D("m")),
    call("randint_like", T("a b"), D("k"), D("m")),
    call("linspace", 0, 1, N),
    call("logspace", 0, 1j, N),
    call("linspace", 0.0, T(""), N, dtype=f64),
    call("hann_window", N),
    call("hann_window", N, dtype=torch.complex64),
    *(call("randperm", D("63*n"), dtype=dtype) for dtype in (torch.int8, torch.uint8)),
    call("randperm", D("512*n + 1"), dtype=torch.float16),
    call("kaiser_window", N, False, 12.0, dtype=f64),
    call("eye", N),
    call("eye", M, N),
    call("tril_indices", N, M, K),
    call("tril_indices", M, N),
    call("triu_indices", N, M, K),
    call("triu_indices", M, N, 2),
    call("arange", N),
    call("arange", M, N),
    call("arange", M, D("n"), D("k - 3")),
    call("arange", D("n"), M, -2),
    call("arange", 0, N, 3, dtype=torch.float32),
    call("arange", 0.5, N),
    call("arange", N, 2.75, 0.75),
    call("arange", 0.5, N, 1.5, dtype=i64),
    call("arange", 0.5, N, 1.5, dtype=i32),
    call("tensor", [T("a"), T("b")]),
]

# These are refused for no sizes.
ALWAYS = [
    call("zeros", ()),
    call("full", (2,), True),
    call("full", (2,), 3j),
    call("full", (D("n"),), D("n")),
    call("arange", 0.1, 1, 0.1),
    call("arange", 5.5),
    call("arange", 3, 3),
    Case("range", torch.range, (D("n"), D("2*n+3"), 2)),
    Case("range", torch.range, (5, 0, -2)),
    Case("range", torch.range, (0.0, 1.0, 0.3)),
    Case("_shape_as_tensor", torch._shape_as_tensor, (T("a b"),)),
    Case("_dim_arange", torch._dim_arange, (T("a b"), 1)),
    Case("_make_dep_token", torch.ops.aten._make_dep_token, ()),
    call("zeros_like", T("a b c")),
    call("ones_like", T("a b", i64)),
    call("zeros_like", T("a b c", permute=(2, 0, 1))),
    call("empty_like", T("a+2 b+2 c+2 d+2"), memory_format=torch.channels_last),
    call("rand_like", T("a b c", permute=(2, 0, 1)), memory_format=torch.contiguous_format),
    call("full_like", T("a b"), 3, dtype=i64),
    method("new_tensor", T("a", f64), [1, D("n")]),
    call("tensor", [[1, 2, 3], [D("n"), 5.5, 6]]),
    call("tensor", []),
    call("tensor", [[], []]),
    call("tensor", [True, False]),
    call("tensor", D("n")),
    call("tensor", 2.5, dtype=f64),
    call("tensor", [T("", i64), T("1", i64)]),
    call("tensor", [T("", i64), 0.5]),
    call("as_tensor", T("a b")),
    call("scalar_tensor", 3),
    call("scalar_tensor", D("n"), dtype=i64),
    call("tril", T("a b c", permute=(2, 0, 1))),
    call("triu", T("a b"), D("k - 4")),
    call("cartesian_prod", T("a"), T("b"), T("c")),
    call("cartesian_prod", T("a")),
    call("combinations", T("a")),
    call("combinations", T("a"), 3, True),
    call("combinations", T("a"), 0),
]

NEVER = [
    *(call("hann_window", 0, dtype=dtype) for dtype in (i64, torch.bool)),
    *(call("randperm", D("n"), dtype=dtype) for dtype in (torch.bool, torch.uint16, torch.complex64)),
    Case("range", torch.range, (0, 5, -1)),
    Case("range", torch.range, (0, 5, 0)),
    Case("_dim_arange", torch._dim_arange, (T("a b"), 2)),
    call("tril", T("a")),
    call("cartesian_prod", T("a"), T("b c")),
    call("cartesian_prod", T("a"), T("b", i64)),
    call("combinations", T("a b")),
    call("combinations", T("a"), -1),
    call("linspace", 0, T("a"), 3),
    call("tensor", [[1], [2, 3]]),
    call("empty_strided", (2, 3), (1,)),
    call("empty_permuted", (2, 3), (1, 1)),
    call("arange", 0, 1, 0),
    *[call("arange", 0, 1, 0.5, dtype=i64)] * (INSTALLED == (2, 13)),  # in 2.12 it ends the process
    call("arange", 0, -1),
    call("arange", 0.0, float("inf")),
    call("randint", 0, (3,)),
    aten("empty", "memory_format", (2, D("n"), 3), memory_format=torch.channels_last),
]


@pytest.mark.parametrize("case", REFUSABLE, ids=str)
def test_accepts_and_refuses_what_torch_does(case: Case) -> None:
    accepted, refused = check_case(case, RULES)
    assert accepted and refused


@pytest.mark.parametrize("case", ALWAYS, ids=str)
def test_accepts_what_torch_does(case: Case) -> None:
    assert check_case(case, RULES)[1] == 0


@pytest.mark.parametrize("case", NEVER, ids=str)
def test_refuses_what_torch_does(case: Case) -> None:
    assert check_case(case, RULES, count=5)[0] == 0


def said(op: str, *args: Any, **kwargs: Any) -> tuple[Any, list[str], Any]:
    """The result, the notes and the sizes that the data decides."""
    domain = Domain(("n",), (ge(sym("n"), 1),))
    _, result, generator = run_rule(RULES, op, args, kwargs, domain)
    return result, [note.reason for note in generator.said.notes], generator.said.unbacked


def test_unknown_numbers_make_fresh_sizes() -> None:
    for op, args in (
        ("zeros", (3, Number("int"))),
        ("arange", (Number("float"),)),
        ("arange", (0, Tensor((), "int64"))),
        ("linspace", (0, 1, Number("int"))),
    ):
        result, _, unbacked = said(op, *args)
        assert len(unbacked) == 1
        assert str(result.shape[-1]) in unbacked
    assert said("arange", Number("float"))[0].dtype == "float32"
    assert said("full", (2,), Number("float"))[0].dtype == "float32"
    assert said("full", (2,), Number("bool"))[0].dtype == "bool"
    assert said("full", (2,), ge(sym("n"), 3))[0].dtype == "bool"
    assert said("tensor", (sym("n"), Number("float")))[0].dtype == "float32"


def test_sizes_stay_simple() -> None:
    n = sym("n")
    assert str(said("arange", 0, n, 2)[0].shape[0]) == "ceil(n/2)"
    assert str(said("arange", n + 3)[0].shape[0]) == "n + 3"
    assert str(said("arange", 0, n, 0.5)[0].shape[0]) == "2*n"
    assert str(said("tril_indices", n, n)[0].shape[1]) == "(n**2 + n)//2"
    assert str(said("tril_indices", n, n, -1)[0].shape[1]) == "(n**2 - n)//2"
    assert str(said("triu_indices", n, n, 1)[0].shape[1]) == "n**2 - (n**2 + n)//2"
    assert str(said("combinations", Tensor((n,)))[0].shape[0]) == "(n**2 - n)//2"


def test_inexact_ranges_are_noted() -> None:
    assert not said("arange", 0, sym("n"), 0.25)[1]
    assert len(said("arange", 0, sym("n"), 0.1)[1]) == 1


def test_the_judge_refutes_wrong_rules() -> None:
    def rounded_down(c: Any, start: Any, end: Any, step: Any) -> Tensor:
        return Tensor(((end - start) // step,), "int64")

    def any_size(c: Any, *size: Any) -> Tensor:
        return Tensor(size)

    wrong = Rules({"arange": rounded_down, "zeros": any_size})
    for case in (call("arange", 0, D("n"), 3), call("zeros", D("n - 1"))):
        check_case(case, RULES)
        with pytest.raises(AssertionError):
            check_case(case, wrong)
