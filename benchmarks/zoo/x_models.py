# ruff: noqa: C408  # options read as keyword arguments
"""`x_transformers`: language models with the attention variants of many papers, put together from options."""

from __future__ import annotations

from typing import Any

from torch import nn

from .row import ONLY_32, Row, make

SMALL: dict[str, Any] = dict(dim=16, depth=2, heads=2, attn_dim_head=8)


def language_model(layers: str = "Decoder", **options: Any) -> nn.Module:
    inner = make(f"x_transformers:{layers}", **SMALL | options)
    return make("x_transformers:TransformerWrapper", num_tokens=60, max_seq_len=64, attn_layers=inner)


def continuous(layers: str = "Encoder", **options: Any) -> nn.Module:
    inner = make(f"x_transformers:{layers}", **SMALL | options)
    return make(
        "x_transformers:ContinuousTransformerWrapper", dim_in=12, dim_out=5, max_seq_len=64, attn_layers=inner
    )


def image_classifier() -> nn.Module:
    return make(
        "x_transformers:ViTransformerWrapper",
        image_size=32,
        patch_size=8,
        num_classes=5,
        attn_layers=make("x_transformers:Encoder", **SMALL),
    )


def translator() -> nn.Module:
    sides = {
        f"{side}_{key}": value
        for side in ("enc", "dec")
        for key, value in dict(num_tokens=60, depth=1, heads=2, max_seq_len=64).items()
    }
    return make("x_transformers:XTransformer", dim=16, **sides)


TOKENS = "x: int64[b, t]"
AROUND_64 = {"b": (1, 2), "t": (1, 2, 3, 63, 64, 65)}
VARIANTS: dict[str, dict[str, Any]] = {
    "gpt": {},
    "bert": dict(layers="Encoder"),
    "rotary": dict(rotary_pos_emb=True),
    "alibi": dict(alibi_pos_bias=True),
    "t5_bias": dict(rel_pos_bias=True),
    "dynamic_bias": dict(dynamic_pos_bias=True, dynamic_pos_bias_log_distance=False),
    "glu_rmsnorm": dict(ff_glu=True, ff_swish=True, use_rmsnorm=True),
    "qk_norm": dict(attn_qk_norm=True),
    "one_kv_head": dict(attn_one_kv_head=True),
    "grouped_kv": dict(attn_kv_heads=1),
    "talking_heads": dict(attn_pre_talking_heads=True, attn_post_talking_heads=True),
    "sandwich": dict(sandwich_coef=1),
    "macaron": dict(macaron=True),
    "sparse_topk": dict(attn_sparse_topk=2),
    "memory_kv": dict(attn_num_mem_kv=4),
    "shift_tokens": dict(shift_tokens=1),
    "hyper_connections": dict(num_residual_streams=2),
    "gate_residual": dict(gate_residual=True),
}


def variant(name: str, options: dict[str, Any]) -> Row:
    return Row(f"x_{name}", "x_transformers", lambda: language_model(**options), TOKENS, AROUND_64)


ROWS = (
    *(variant(name, options) for name, options in VARIANTS.items()),
    Row("x_continuous", "x_transformers", continuous, "x: float32[b, t, 12]", AROUND_64),
    Row("x_vit", "x_transformers", image_classifier, "img: float32[b, 3, h, w]", ONLY_32),
    Row(
        "x_translator",
        "x_transformers",
        translator,
        "src: int64[b, s]; tgt: int64[c, t]",
        {"b": (1, 2, 3), "c": (1, 2, 3), "s": (1, 5, 64, 65), "t": (1, 2, 64, 65)},
    ),
)
