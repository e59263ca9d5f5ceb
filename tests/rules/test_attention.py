"""Attention, judged by torch."""
from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules.attention import RULES
from anyshape.constraints.terms.formula import all_of, eq
from anyshape.typecheck.testing.differential import Case, D, T, check_case

judge = Judge(Rules(RULES), count=30)
flag, half, f64, i64 = torch.bool, torch.float16, torch.float64, torch.int64
aten = torch.ops.aten


def sdpa(*args: Any, where: str = "", **kwargs: Any) -> Case:
    return Case("scaled_dot_product_attention", F.scaled_dot_product_attention, args, kwargs, where)


def heads_last(sizes: str, dtype: torch.dtype = torch.float32) -> T:
    """`b h l e` as `x.view(b, l, h, e).transpose(1, 2)` gives it."""
    b, h, rows, e = sizes.split()
    return T(f"{b} {rows} {h} {e}", dtype, permute=(0, 2, 1, 3))


FLASH = (T("b h l e"), T("b h s e"), T("b h s e"))
STRIDED = (heads_last("b h l e"), heads_last("b h s e"), heads_last("b h s e"))
ATTENTION = [
    sdpa(*FLASH),
    sdpa(*FLASH, where="b h l s e"),
    sdpa(T("b h l e"), T("c h s e"), T("c h s v")),
    sdpa(T("b h l e"), T("b g s e"), T("b g s e"), where="b h g l s e"),
    sdpa(T("b h l e"), T("b h s f"), T("b h s v")),
    sdpa(T("b h l e"), T("b h s e"), T("b h s+2 e")),
    sdpa(T("b h l e"), T("b h s+2 e"), T("b h s e")),
    *(sdpa(T("b h l e"), T("b h s e"), T("b h s+1 e"), T(mask), where="b h l s e")
      for mask in ("l s", "l s+1", "l 1", "1 1")),
    sdpa(T("b h l e"), T("b h s e"), T("b h t v"), dropout_p=0.5),
    sdpa(T("l e"), T("s e"), T("t v")),
    sdpa(T("b l e"), T("c s e"), T("d s v")),
    sdpa(T("b l e"), T("b s e"), T("b t e")),
    sdpa(T("b l e"), T("1 s e"), T("1 t e"), T("b l 1")),
    sdpa(*[T("b l e", permute=(1, 0, 2))] * 3, where="b l e"),
    sdpa(*[T("b l e", permute=(1, 0, 2))] * 3, T("1 b l l", flag), where="b l e"),
    sdpa(T("b l e"), T("b s e"), T("b t e"), T("1")),
    sdpa(T("b l e"), T("b s e"), T("b t e"), T("a b l s")),
    sdpa(T("l e"), T("b s e"), T("b s v"), where="l s v b"),
    sdpa(T("a b h l e"), T("a b h s e"), T("h s e")),
    sdpa(T("e"), T("s e"), T("s e")),
    sdpa(*STRIDED, where="b h l s e"),
    sdpa(*STRIDED),
    sdpa(T("b 2 l 4", strides="24*l 4 24 1"), T("b 2 s 4"), T("b 2 s 4"), where="b l s"),
    sdpa(T("b 2 4 l", permute=(0, 1, 3, 2)), T("b 2 s 4"), T("b 2 s 4"), where="b l s"),
    sdpa(heads_last("b h l e"), heads_last("b h s e"), heads_last("b h s v"), where="b h l s e v"),
    sdpa(*STRIDED, T("l s", flag), where="b h l s e"),
    sdpa(*STRIDED, T("l s"), where="b h l s e"),
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
    sdpa(heads_last("b 4 l e"), *[heads_last("b 2 s e")] * 2, enable_gqa=True, where="b l s e"),
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
ENCODER = "_transformer_encoder_layer_fwd"


def fused(*args: T, **kwargs: Any) -> Case:
    """The kernel by itself divides by sizes without a check, so there are no zeros here."""
    return Case(FUSED, getattr(aten, FUSED), args, kwargs, where="b h l s e f v n")


def plain(*args: Any, **kwargs: Any) -> Case:
    return Case(MATH, getattr(aten, MATH), args, kwargs)


PARTS = [
    fused(*FLASH),
    fused(T("b h l e"), T("b h s f"), T("b h s v")),
    fused(heads_last("b 4 l e"), T("b 2 s e"), T("b 2 s e")),
    fused(*FLASH, attn_mask=T("l n")),
    fused(*FLASH, attn_mask=T("m s")),
    fused(*FLASH, attn_mask=T("s")),
    fused(T("l e"), T("l e"), T("l e")),
    fused(*FLASH, dropout_p=0.5),
    plain(T("b l e"), T("c s f"), T("c t v")),
    plain(T("b l e"), T("c s e"), T("c s v"), T("m n")),
    plain(T("l e"), T("s e"), T("s v"), T("l s"), 0.0, True),
    plain(T("4 l e"), T("2 s e"), T("2 s v"), enable_gqa=True),
]


def layer(src: str, heads: int = 2, mask: T | None = None, kind: int | None = None, **other: str) -> Case:
    """An encoder layer of 4 features, all parameters right but for those given otherwise."""
    attention = {"qkv": "12 4", "qkv_bias": "12", "out": "4 4", "out_bias": "4"}
    norms = {"norm1": "4", "norm1_bias": "4", "norm2": "4", "norm2_bias": "4"}
    feed = {"up": "f 4", "up_bias": "f", "down": "4 f", "down_bias": "4"}
    first, norms, feed = ([T(other.get(n, s)) for n, s in part.items()] for part in (attention, norms, feed))
    args = (T(src), 4, heads, *first, True, False, 1e-5, *norms, *feed, mask, kind)
    return Case(ENCODER, aten._transformer_encoder_layer_fwd, args, where="b l e f k n m")


def attend(q: str, k: str, v: str, mask: T | None = None, *options: Any) -> Case:
    args = (T(q), T(k), T(v), 4, 2, T("12 4"), T("12"), T("4 4"), T("4"), mask, *options)
    return Case("_native_multi_head_attention", aten._native_multi_head_attention, args, where="b l e c m n")


LAYERS = [
    layer("b l 4"),
    layer("b l e"),
    layer("b l 4", heads=3),
    layer("b 4"),
    layer("b l 4", mask=T("m n", flag), kind=0),
    layer("b l 4", mask=T("m n", flag), kind=1),
    layer("b l 4", mask=T("b k m n", flag), kind=2),
    layer("b l 4", mask=T("l l", flag)),
    layer("b l 4", qkv="12 k"),
    layer("b l 4", qkv="k 4"),
    layer("b l 4", out="4 k"),
    layer("b l 4", norm1="k"),
    layer("b l 4", norm2_bias="k"),
    layer("b l 4", up="f k"),
    layer("b l 4", up_bias="k"),
    attend("b l 4", "b m 4", "b n 4"),
    attend("b l 4", "b l 4", "b l 4", None, False),
    attend("b l 4", "b l 4", "b l 4", None, True, False),
    attend("b l 4", "b l 4", "b l 4", T("b m", flag), True, True, 1),
    attend("l 4", "l 4", "l 4"),
]


def scored(mask: T, kind: int | None, scores: str = "b h l l") -> Case:
    return Case("_masked_softmax", aten._masked_softmax, (T(scores), mask, -1, kind), where="b h l s")


SPLIT = [
    scored(T("m n", flag), 0),
    scored(T("m n", flag), 1),
    scored(T("b h m n", flag), 2, "b h l s"),
    scored(T("m n", flag), None, "b l"),
    scored(T("m n"), 2, "b l"),
    *(
        Case("_transform_bias_rescale_qkv", aten._transform_bias_rescale_qkv, args, where="b t n h")
        for args in ((T("b t n"), T("n"), 2), (T("b t 6*h"), T("6*h"), D("h")), (T("b n"), T("n"), 2))
    ),
]
CASES = ATTENTION + PARTS + LAYERS + SPLIT


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention(case: Case) -> None:
    judge(case)


@pytest.mark.filterwarnings("ignore")
def test_every_rule_is_seen_to_accept_and_to_refuse() -> None:
    assert judge.one_sided(CASES) == {}


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_rule_is_caught() -> None:
    def without_broadcast(c: Any, query: Any, key: Any, value: Any) -> Tensor:
        c.require(all_of(map(eq, query.shape[:-2], key.shape[:-2])), "no batch dim broadcasts")
        return RULES["scaled_dot_product_attention"](c, query, key, value)

    wrong = Rules({"scaled_dot_product_attention": without_broadcast})
    with pytest.raises(AssertionError, match="torch: accepts"):
        check_case(sdpa(T("b l e"), T("c s e"), T("c s v")), wrong)
