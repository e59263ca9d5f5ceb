"""Kernels of attention that GPUs have, judged by torch's own functions for tensors without data."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Layout, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.gpu_attention import RULES
from anyshape.typecheck.testing.differential import Case, D, T, check_case, lower, run_rule

judge = Judge(Rules(RULES))
aten = torch.ops.aten


def on_meta(name: str, *args: Any, **options: Any) -> Case:
    """A kernel whose results are told by torch's own function for tensors without data."""

    def call(*given: Any, **options: Any) -> Any:
        bare = [t.to("meta") if isinstance(t, torch.Tensor) else t for t in given]
        return getattr(aten, name)(*bare, **options)

    return Case(name, call, args, options, where="b h l s e v t")


SAME = T("b h l e"), T("b h s e"), T("b h s e")
OTHER = T("b h l e"), T("b h s e"), T("b h s v")
ROWS = T("b l h e"), T("b s h e"), T("b s h v")
LENGTHS = None, None, D("l"), D("s"), 0.0, False
SUMS, SEED, NONE = T("b h l"), T("1", torch.int64), T("0")

CASES = [
    on_meta("_scaled_dot_product_flash_attention", *SAME),
    *(on_meta("_scaled_dot_product_efficient_attention", *OTHER, None, sums) for sums in (True, False)),
    on_meta("_scaled_dot_product_cudnn_attention", *OTHER, None, True),
    on_meta("_scaled_dot_product_fused_attention_overrideable", *SAME),
    on_meta("_flash_attention_forward", T("b l h e"), T("b s h e"), T("b s h e"), *LENGTHS, False),
    on_meta("_flash_attention_forward", T("t h e"), T("s h e"), T("s h e"), T("3", torch.int32), T("3",
    torch.int32),
            D("l"), D("s"), 0.0, False, False),
    *(on_meta("_efficient_attention_forward", *ROWS, None, None, None, None, None, 0.0, 0, sums)
      for sums in (True, False)),
    on_meta("_efficient_attention_forward", T("1 t h e"), T("1 s h e"), T("1 s h v"), None, T("b",
    torch.int32),
            T("b", torch.int32), D("l"), D("s"), 0.0, 0, True),
    on_meta("_scaled_dot_product_flash_attention_backward", T("b h l e"), *SAME, T("b h l e"), SUMS,
    *LENGTHS, SEED, SEED),
    on_meta("_scaled_dot_product_cudnn_attention_backward", T("b h l e"), *SAME, T("b h l e"), SUMS, SEED,
    SEED, NONE, NONE,
            NONE, D("l"), D("s"), 0.0, False),
    *(on_meta("_scaled_dot_product_efficient_attention_backward", T("b h l v"), *OTHER, T("b h l s"),
    T("b h l v"), SUMS,
              SEED, SEED, 0.0, [True, True, True, bias]) for bias in (True, False)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_judges(case: Case) -> None:
    """What they return; that it is not known which sizes they take is said."""
    accepted, refused = judge(case)
    assert accepted and not refused
    args = tuple(a.symbolic() if isinstance(a, T) else 8 if isinstance(a, D) else lower(a) for a in case.args)
    notes = run_rule(judge.rules, case.op, args, {}, Domain())[2].said.notes
    assert {note.code for note in notes} == {"approximate"}


def test_every_rule_is_judged() -> None:
    """Two derivatives have no function for tensors without data."""
    told = judge.one_sided(CASES)
    assert {op for op, side in told.items() if side == "untested"} == {
        "_flash_attention_backward",
        "_scaled_dot_product_fused_attention_overrideable_backward",
    }


@pytest.mark.parametrize("op",
[op for op in RULES if op.startswith("_scaled") and not op.endswith("backward")])
def test_operands_belong_together(op: str) -> None:
    """torch's functions for tensors without data look at nothing; the kernels do."""
    q, k, v = Tensor((2, 4, 5, 8)), Tensor((2, 4, 6, 8)), Tensor((2, 4, 6, 8))
    rules = judge.rules
    assert run_rule(rules, op, (q, k, v), {}, Domain())[0] is True
    for other in (Tensor((2, 4, 6, 7)), Tensor((2, 3, 6, 8)), Tensor((3, 4, 6, 8)), Tensor((2, 4, 6))):
        assert run_rule(rules, op, (q, other, v), {}, Domain())[0] is False
    assert run_rule(rules, op, (q, k, Tensor((2, 4, 7, 8))), {}, Domain())[0] is False


def test_the_judge_catches_a_wrong_rule() -> None:
    def shorter(c: Any, query: Tensor, key: Tensor, value: Tensor) -> Any:
        sums = Tensor(query.shape[:2], "float32", Layout.UNKNOWN)
        return query, sums, None, None, 0, 0, sums, sums, sums

    case = CASES[0]
    with pytest.raises(AssertionError):
        check_case(case, Rules({case.op: shorter}))
