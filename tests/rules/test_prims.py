"""torch's primitives, judged by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._prims  # registers them
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules.prims import RENAMED, RULES, SAME_NAME
from anyshape.typecheck.testing.differential import Case, D, T, check_case

judge = Judge(Rules(RULES))
i32, i64, f64, flag, c64 = torch.int32, torch.int64, torch.float64, torch.bool, torch.complex64
x, turned = T("a b"), T("a b", permute=(1, 0))
HOW = {"device": "cpu", "requires_grad": False}


def case(name: str, *args: Any, where: str = "", **kwargs: Any) -> Case:
    return Case(f"prims::{name}", getattr(torch.ops.prims, name), args, kwargs, where)


UNARY = """abs acos acosh asin asinh atan atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0
bessel_j1 bitwise_not cbrt ceil conj_physical cos cosh digamma erf erf_inv erfc erfcx exp exp2 expm1
floor frexp isfinite lgamma log log10 log1p log2 ndtri neg reciprocal round rsqrt sign signbit sin sinh
spherical_bessel_j0 sqrt tan tanh trunc""".split()
INTEGRAL = "bitwise_and bitwise_not bitwise_or bitwise_xor gcd shift_left shift_right_arithmetic".split()


def pointwise() -> list[Case]:
    found = []
    for name in sorted({*SAME_NAME, *RENAMED, "cbrt"} - {"fill"}):
        dtype = i64 if name in INTEGRAL else torch.float32
        one = T("a b", dtype, (1, 0), fill=1)
        if name in UNARY:
            found += [case(name, one), case(name, T("a", c64)), case(name, T("a", flag), where="a")]
        else:
            found += [case(name, one, one), case(name, T("a b", dtype, fill=1), T("c b", dtype, fill=1)),
                      case(name, T("a", dtype), T("a", f64)), case(name, one, T("", dtype, fill=1))]
    return found


CASES = [
    *pointwise(),
    case("fill", x, 1.0),
    case("where", T("a b", flag), x, T("c b")),
    case("where", T("c b", flag), x, x),
    case("where", T("a b", flag), x, T("a b", f64)),
    *(case(name, T("a b c"), dims)
      for name in ("sum", "prod", "amax", "amin") for dims in ([0, 2], [1], [], [-1], [3])),
    case("sum", T("a b", i32), [0, 0]),
    case("sum", T("a b", flag), [0]),
    case("var", x, [0], 1.0),
    case("var", T("a b", i64), [0], 1.0),
    case("transpose", T("a b c"), [2, 0, 1]),
    case("transpose", x, [0]),
    case("squeeze", T("a b c"), [1]),
    case("squeeze", x, [-1]),
    case("split_dim", x, 0, D("k")),
    case("split_dim", turned, 0, 2),
    case("split_dim", x, 2, 2),
    case("collapse", T("a b c", permute=(1, 0, 2)), 0, 1),
    case("collapse", T("a b c"), 1, 0),
    case("collapse", x, 1, 2),
    case("collapse_view", T("a b c"), 0, 1),
    case("collapse_view", T("a b c", permute=(1, 0, 2)), 0, 1),
    case("collapse_view", x, -2, -1),
    case("broadcast_in_dim", T("a b"), [D("c"), 4, D("d")], [0, 2], where="a b c d"),
    case("broadcast_in_dim", T(""), [D("c"), 4], []),
    case("broadcast_in_dim", x, [D("b"), D("a")], [1, 0]),
    case("as_strided", T("n"), [D("a"), 2], [2, 1], 0, where="a"),
    case("as_strided_scatter", T("n"), T("a 2"), [D("b"), 2], [2, 1], 0, where="a b"),
    case("view_of", turned),
    case("view_of_dtype", x, i32),
    case("view_of_dtype", x, f64),
    case("conj", T("a b", c64)),
    case("real", T("a b", c64)),
    case("imag", T("a b", c64)),
    case("imag", x),
    case("rev", T("a b c"), [0, 2]),
    case("rev", x, [-1]),
    case("iota", D("n-1"), start=0, step=2, dtype=i64, **HOW),
    case("iota", 3, start=0, step=0, dtype=i64, **HOW),
    case("iota", D("n"), start=0, step=D("k"), dtype=i64, **HOW),
    case("iota", 3, start=0, step=1, dtype=f64, **HOW),
    case("convert_element_type", turned, f64),
    case("device_put", turned, "cpu"),
    case("copy_to", x, T("c d")),
    case("copy_strided", x, [1, D("a")], where="a b"),
    case("copy_strided", x, [1]),
    case("clone", turned),
    case("resize", x, [D("n"), 2]),
    case("resize", x, [D("n-1"), 2]),
    case("reshape", turned, [D("n"), 2]),
    case("reshape", x, [D("b"), -1], where="b"),
    case("empty", [D("n-1"), 2], dtype=i64, **HOW),
    case("empty_permuted", [D("n"), 2], [1, 0], dtype=i64, **HOW),
    case("empty_permuted", [D("n"), 2], [1, 1], dtype=i64, **HOW),
    case("empty_strided", [D("n"), 2], [1, D("n")], dtype=i64, **HOW),
    case("empty_strided", [D("n"), 2], [1], dtype=i64, **HOW),
    case("full", [D("n-1"), 2], 1.0, dtype=f64, **HOW),
    case("full_like", turned, 1.0, dtype=f64, **HOW),
    case("normal", [D("n-1"), 2], mean=0.0, std=1.0, dtype=f64, **HOW),
    case("uniform", [D("n-1"), 2], low=0.0, high=1.0, dtype=f64, device="cpu", stride=[2, 1]),
    case("scalar_tensor", 1.0, dtype=f64, device="cpu"),
    case("cat", [x, T("c b")], 0),
    case("cat", [x, T("c")], 0),
    case("cat", [x, x], -1),
    case("svd", T("a n m"), full_matrices=True),
    case("svd", T("n"), full_matrices=False),
    case("fft_r2c", x, dim=[1], onesided=True),
    case("fft_c2c", T("a b", c64), dim=[1], forward=True),
    case("fft_c2r", T("a b", c64), dim=[1], last_dim_size=D("n+1")),
    case("item", T("n")),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_judges(case: Case) -> None:
    judge(case)


@pytest.mark.filterwarnings("ignore")
def test_every_rule_is_judged() -> None:
    """Each is accepted; each is refused, too, if it has a second operand, or asks anything of an only one."""
    told = judge.one_sided(CASES)
    assert set(told.values()) <= {"never refused"} | ({"untested"} if told.keys() & NUMBERS else set())
    assert not told.keys() & {f"prims::{name}" for name in ASKING}


NUMBERS = {"prims::maximum_value", "prims::minimum_value"}
"""They return a number, and are asked for by the dtype alone."""
ASKING = """add where sum prod amax amin transpose squeeze split_dim collapse collapse_view broadcast_in_dim
rev iota copy_to copy_strided resize reshape empty cat svd""".split()


def test_the_judge_catches_a_wrong_rule() -> None:
    def broadcasts(c: Any, input: Tensor, other: Tensor) -> Tensor:
        return Tensor(input.shape, input.dtype)

    with pytest.raises(AssertionError):
        check_case(case("add", x, T("c b")), Rules({"prims::add": broadcasts}))
