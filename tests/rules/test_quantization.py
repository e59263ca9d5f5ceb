"""Numbers of few bits, judged by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules.quantization import RULES
from anyshape.typecheck.testing.differential import Case, T, check_case

judge = Judge(Rules(RULES))
i8, i32, i64, f16, flag = torch.int8, torch.int32, torch.int64, torch.float16, torch.bool
f8, bf16 = torch.float8_e4m3fn, torch.bfloat16
x, turned = T("a b"), T("a b", permute=(1, 0))


def case(name: str, *args: Any, where: str = "", **kwargs: Any) -> Case:
    return Case(name, getattr(torch, name, None) or getattr(torch.ops.aten, name), args, kwargs, where)


def scaled(left: str, right: str, a: str, b: str, dtype: torch.dtype = f8, **kwargs: Any) -> Case:
    return case("_scaled_mm", T(left, dtype), T(right, dtype), T(a, fill=1), T(b, fill=1), out_dtype=bf16,
    **kwargs)


TRUTHS = T("1", i64, fill=1), T("1", i64, fill=1)
OBSERVED = """fused_moving_avg_obs_fake_quant _fused_moving_avg_obs_fq_helper
_fused_moving_avg_obs_fq_helper_functional""".split()
CASES = [
    *(case(f"fake_quantize_per_tensor_affine{more}", given, 1.0, 0, 0, 255)
      for more in ("", "_cachemask") for given in (turned, T("a b", i64), T("a", f16))),
    case("fake_quantize_per_tensor_affine", x, T("n", fill=1), T("n", i32), 0, 255),
    case("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", x, T("1", fill=1), T("n", i32),
         T("1", i64, fill=1),
         0, 255),
    *(case(f"fake_quantize_per_channel_affine{more}", given, scale, zero, axis, 0, 255)
      for more in ("", "_cachemask")
      for given, scale, zero, axis in (
          (x, T("c", fill=1), T("c", i32), 1), (turned, T("a", fill=1), T("d", i32), 1), (x, T("b 1"),
          T("b", i32), 1),
          (x, T("b", fill=1), T("b", i32), -1), (x, T("b", fill=1), T("b", i64), 1),
          (T("a b", i64), T("b", fill=1), T("b", i32), 1))),
    case("fake_quantize_per_tensor_affine_cachemask_backward", x, T("c b", flag), where="a b c"),
    case("fake_quantize_per_channel_affine_cachemask_backward", x, T("b a", flag), where="a b"),
    case("fake_quantize_per_channel_affine_cachemask_backward", x, T("c b", flag), where="a b c"),
    case("_fake_quantize_learnable_per_tensor_affine", turned, T("n", fill=1), T("1"), 0, 255),
    *(case("_fake_quantize_learnable_per_channel_affine", x, T("c", fill=1), T("c"), axis, 0,
           255) for axis in (1, -1)),
    *(case(op, given, *TRUTHS, T(n), T(n), T(n, fill=1), T(n, i32), 0.1, 0, 255, 1, per_row, where="a b")
      for op in OBSERVED for given, n, per_row in ((x, "c+1", False), (T("a b", i64), "1", False))),
    *(case(op, x, *TRUTHS, T(n), T(n), T(n, fill=1), T(n, i32), 0.1, 0, 255, axis, True, where="a b")
      for op in OBSERVED for axis, n in ((0, "a+c"), (1, "b"))),
    *(case("_scaled_mm_v2", T("n k", f8), T("j m", f8), [T(a, fill=1)], [recipe], [0], [T(b, fill=1)],
           [recipe], [0], None, bf16)
      for recipe, a, b in ((0, "", "1"), (0, "a", ""), (1, "n 1", "1 m"), (1, "n", "m"))),
    scaled("n k", "j m", "", "1"),
    scaled("n k", "k m", "n 1", "1 m"),
    scaled("n k", "k m", "a", "b 1"),
    scaled("n k", "k m", "", "", bias=T("l")),
    scaled("n k", "k m", "", "", torch.float32),
    case("_weight_int8pack_mm", T("n k"), T("m j", i8), T("l")),
    case("_weight_int8pack_mm", T("n k"), T("m k", i32), T("m")),
    case("_weight_int8pack_mm", T("n k", i64), T("m k", i8), T("m")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_judges(case: Case) -> None:
    judge(case)


def test_every_rule_is_accepted_and_refused() -> None:
    assert judge.one_sided(CASES) == {}


def test_the_judge_catches_a_wrong_rule() -> None:
    wrong = Rules({"_scaled_mm": lambda c, a, b, s, t, out_dtype: Tensor((a.shape[0], b.shape[1]),
    out_dtype)})
    with pytest.raises(AssertionError):
        check_case(scaled("n k", "j m", "", ""), wrong)
