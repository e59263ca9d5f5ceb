"""Attention, judged by torch."""
from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.generate import Rules
from anyshape.constraints.rules.attention import RULES

from rules.differential import Case, T, check_case

rules = Rules(RULES)
flag, half, f64, i64 = torch.bool, torch.float16, torch.float64, torch.int64
aten = torch.ops.aten


def sdpa(*args: Any, where: str = "", **kwargs: Any) -> Case:
    return Case("scaled_dot_product_attention", F.scaled_dot_product_attention, args, kwargs, where)


def heads_last(sizes: str, dtype: torch.dtype = torch.float32) -> T:
    """`b h l e` as `x.view(b, l, h, e).transpose(1, 2)` gives it."""
    b, h, rows, e = sizes.split()
    return T(f"{b} {rows} {h} {e}", dtype, permute=(0, 2, 1, 3))


FLASH = (T("b h l e"), T("b h s e"), T("b h s e"))
ATTENTION = [
    sdpa(*FLASH),
    sdpa(*FLASH, where="b h l s e"),
    sdpa(T("b h l e"), T("c h s e"), T("c h s v")),
    sdpa(T("b h l e"), T("b g s e"), T("b g s e"), where="b h g l s e"),
    sdpa(T("b h l e"), T("b h s f"), T("b h s v")),
    sdpa(T("b h l e"), T("b h s e"), T("b h s+2 e")),
    sdpa(T("b h l e"), T("b h s e"), T("b h t v"), dropout_p=0.5),
    sdpa(T("l e"), T("s e"), T("t v")),
    sdpa(T("b l e"), T("c s e"), T("d s v")),
    sdpa(T("l e"), T("b s e"), T("b s v"), where="l s v b"),
    sdpa(T("a b h l e"), T("a b h s e"), T("h s e")),
    sdpa(T("e"), T("s e"), T("s e")),
    sdpa(heads_last("b h l e"), heads_last("b h s e"), heads_last("b h s e"), where="b h l s e"),
    sdpa(heads_last("b h l e"), heads_last("b h s e"), heads_last("b h s e")),
    sdpa(T("b 2 l 4", strides="24*l 4 24 1"), T("b 2 s 4"), T("b 2 s 4"), where="b l s"),
    sdpa(T("b 2 4 l", permute=(0, 1, 3, 2)), T("b 2 s 4"), T("b 2 s 4"), where="b l s"),
    sdpa(heads_last("b h l e"), heads_last("b h s e"), heads_last("b h s v"), where="b h l s e v"),
    sdpa(heads_last("b h l e"), heads_last("b h s e"), heads_last("b h s e"), T("l s", flag), where="b h l s e"),
    sdpa(heads_last("b h l e"), heads_last("b h s e"), heads_last("b h s e"), T("l s"), where="b h l s e"),
    sdpa(*FLASH, T("m n", flag)),
    sdpa(*FLASH, T("b 1 m n", flag)),
    sdpa(*FLASH, T("a 1 1 n")),
    sdpa(*FLASH, T("m l s")),
    sdpa(*FLASH, T("a b h l s")),
    sdpa(*FLASH, T("s")),
    sdpa(T("b h l e"), T("b g s e"), T("b g s e"), T("s"), where="b h g l s e"),
    sdpa(*FLASH, T("s"), dropout_p=0.5),
    sdpa(T("b l e"), T("b s e"), T("b s v"), T("m n")),
    sdpa(T("b l e"), T("b s e"), T("b s v"), T("a m n")),
    sdpa(T("b l e"), T("b s e"), T("b s v"), T("")),
    sdpa(T("l e"), T("s e"), T("s v"), T("b l s")),
    sdpa(*FLASH, is_causal=True),
    sdpa(*FLASH, T("m s"), is_causal=True, where="b h l s e m"),
    sdpa(T("b l e"), T("b s e"), T("b s v"), T("l s"), is_causal=True),
    sdpa(T("b h l e"), T("b g s e"), T("b g s e"), enable_gqa=True, where="b h g l s e"),
    sdpa(T("b h l e"), T("b g s e"), T("b k s v"), enable_gqa=True, where="b h g k l s e v"),
    sdpa(T("h l e"), T("g s e"), T("g s v"), enable_gqa=True, where="g"),
    sdpa(T("b 4 l e"), T("b 2 s e"), T("b 2 s e")),
    sdpa(T("b 4 l e"), T("b 2 s e"), T("b 2 s e"), enable_gqa=True),
    sdpa(heads_last("b 4 l e"), heads_last("b 2 s e"), heads_last("b 2 s e"), enable_gqa=True, where="b l s e"),
    sdpa(T("l e"), T("s e"), T("s e"), enable_gqa=True, where="l s e"),
    sdpa(*FLASH, T("l s", half)),
    sdpa(*FLASH, T("l s", i64)),
    sdpa(*(T(t.sizes, half) for t in FLASH), T("l s")),
    sdpa(*(T(t.sizes, f64) for t in FLASH)),
    sdpa(*(T(t.sizes, i64) for t in FLASH), where="b h l s e"),
    sdpa(T("l e", f64), T("s e"), T("s e")),
    sdpa(*FLASH, dropout_p=1.5, where="b h l s e"),
]
FUSED = "_scaled_dot_product_flash_attention_for_cpu"
MATH = "_scaled_dot_product_attention_math"
PARTS = [
    Case(FUSED, aten._scaled_dot_product_flash_attention_for_cpu, FLASH, where="b h l s e"),
    Case(FUSED, aten._scaled_dot_product_flash_attention_for_cpu, (T("b h l e"), T("b h s f"), T("b h s v")),
         where="b h l s e f v"),
    Case(FUSED, aten._scaled_dot_product_flash_attention_for_cpu, (heads_last("b 4 l e"), T("b 2 s e"), T("b 2 s e")),
         where="b h l s e"),
    Case(FUSED, aten._scaled_dot_product_flash_attention_for_cpu, FLASH, {"attn_mask": T("l n")}, "b h l s e n"),
    Case(FUSED, aten._scaled_dot_product_flash_attention_for_cpu, FLASH, {"attn_mask": T("s")}, "b h l s e"),
    Case(FUSED, aten._scaled_dot_product_flash_attention_for_cpu, (T("l e"), T("l e"), T("l e")), where="l e"),
    Case(FUSED, aten._scaled_dot_product_flash_attention_for_cpu, FLASH, {"dropout_p": 0.5}, "b h l s e"),
    Case(MATH, aten._scaled_dot_product_attention_math, (T("b l e"), T("c s f"), T("c t v"))),
    Case(MATH, aten._scaled_dot_product_attention_math, (T("b l e"), T("c s e"), T("c s v"), T("m n"))),
    Case(MATH, aten._scaled_dot_product_attention_math, (T("l e"), T("s e"), T("s v"), T("l s"), 0.0, True)),
    Case(MATH, aten._scaled_dot_product_attention_math, (T("4 l e"), T("2 s e"), T("2 s v")), {"enable_gqa": True}),
]


def layer(src: str, heads: int = 2, e: str = "e", mask: T | None = None, kind: int | None = None, **other: str) -> Case:
    """An encoder layer of `e` features, all parameters right but for those given otherwise."""
    sizes = {
        "qkv": f"3*{e} {e}", "qkv_bias": f"3*{e}", "out": f"{e} {e}", "out_bias": e, "norm1": e, "norm1_bias": e,
        "norm2": e, "norm2_bias": e, "up": f"f {e}", "up_bias": "f", "down": f"{e} f", "down_bias": e,
    } | other
    t = {name: T(size) for name, size in sizes.items()}
    size = int(e) if e.isdigit() else 4
    args = (
        T(src), size, heads, t["qkv"], t["qkv_bias"], t["out"], t["out_bias"], True, False, 1e-5, t["norm1"],
        t["norm1_bias"], t["norm2"], t["norm2_bias"], t["up"], t["up_bias"], t["down"], t["down_bias"], mask, kind,
    )
    return Case("_transformer_encoder_layer_fwd", aten._transformer_encoder_layer_fwd, args, where="b l e f k n m")


def attend(q: str, k: str, v: str, mask: T | None = None, need: bool = True, mean: bool = True, kind: Any = None) -> Case:
    args = (T(q), T(k), T(v), 4, 2, T("12 4"), T("12"), T("4 4"), T("4"), mask, need, mean, kind)
    return Case("_native_multi_head_attention", aten._native_multi_head_attention, args, where="b l e c m n")


LAYERS = [
    layer("b l 4", e="4"),
    layer("b l e", e="4"),
    layer("b l 4", e="4", heads=3),
    layer("b 4", e="4"),
    layer("b l 4", e="4", mask=T("m n", flag), kind=0),
    layer("b l 4", e="4", mask=T("m n", flag), kind=1),
    layer("b l 4", e="4", mask=T("b k m n", flag), kind=2),
    layer("b l 4", e="4", mask=T("l l", flag)),
    layer("b l 4", e="4", qkv="12 k"),
    layer("b l 4", e="4", qkv="k 4"),
    layer("b l 4", e="4", out="4 k"),
    layer("b l 4", e="4", norm1="k"),
    layer("b l 4", e="4", norm2_bias="k"),
    layer("b l 4", e="4", up="f k"),
    layer("b l 4", e="4", up_bias="k"),
    attend("b l 4", "b m 4", "b n 4"),
    attend("b l 4", "b l 4", "b l 4", need=False),
    attend("b l 4", "b l 4", "b l 4", mean=False),
    attend("b l 4", "b l 4", "b l 4", T("b m", flag), kind=1),
    attend("l 4", "l 4", "l 4"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ATTENTION + PARTS + LAYERS, ids=str)
def test_attention(case: Case) -> None:
    check_case(case, rules, count=30)
