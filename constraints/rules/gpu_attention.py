"""Attention kernels of GPUs: the shapes that they return. Which arguments they accept depends on the GPU."""

from __future__ import annotations

from typing import Any, Final

from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Layout, Shape, Tensor
from ..terms.dims import Dim, ceildiv
from ..terms.formula import eq
from .common import rank_is


def _product(c: Context, query: Tensor, key: Tensor, value: Tensor) -> tuple[Shape, Dim, Dim]:
    """[b, h, l, e], [b, h, s, e], [b, h, s, v] -> the result's shape, l and s"""
    reason = "which head sizes, strides and masks a GPU's kernel of attention takes is not modelled"
    c.approximate(reason, "accept")
    for tensor in (query, key, value):
        if tensor.rank != 4:
            c.refuse(f"a kernel of attention takes tensors of rank 4, not {tensor}")
    for i, name in ((0, "batch"), (1, "heads"), (3, "features")):
        fits = eq(query.shape[i], key.shape[i])
        c.require(fits, f"queries and keys differ in their {name}: {query.shape[i]} and {key.shape[i]}")
    for i in (0, 1, 2):
        c.require(eq(key.shape[i], value.shape[i]), f"keys {key} and values {value} do not belong together")
    return (*query.shape[:3], value.shape[3]), query.shape[2], key.shape[2]


_SEED = Tensor((), "int64")


def flash_attention(
    c: Context, query: Tensor, key: Tensor, value: Tensor, dropout_p: Any = 0.0, is_causal: Any = False,
    return_debug_mask: bool = False, scale: Any = None,
) -> tuple[Any, ...]:
    """[b, h, l, e], [b, h, s, e], [b, h, s, e] -> [b, h, l, e], [b, h, l], and values for the derivative"""
    shape, length, s = _product(c, query, key, value)
    sums = Tensor(query.shape[:3], "float32")
    state = Tensor((2,), "uint64"), Tensor((), "uint64")
    mask = (*query.shape[:3], c.fresh("padded", 0, None)) if return_debug_mask else (0,)
    result = Tensor(shape, query.dtype, Layout.UNKNOWN)
    return result, sums, None, None, length, s, *state, Tensor(mask, query.dtype)


def efficient_attention(
    c: Context, query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None = None,
    compute_log_sumexp: bool = False, dropout_p: Any = 0.0, is_causal: Any = False, scale: Any = None,
) -> tuple[Any, ...]:
    """[b, h, l, e], [b, h, s, e], [b, h, s, v] -> [b, h, l, v], [b, h, l up to a multiple of 32], …"""
    shape, length, _ = _product(c, query, key, value)
    sums = 32 * ceildiv(length, 32) if compute_log_sumexp else 0
    result = Tensor(shape, query.dtype, Layout.UNKNOWN)
    return result, Tensor((*query.shape[:2], sums), "float32"), _SEED, _SEED


def cudnn_attention(
    c: Context, query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None = None,
    compute_log_sumexp: bool = False, dropout_p: Any = 0.0, is_causal: Any = False,
    return_debug_mask: bool = False, scale: Any = None,
) -> tuple[Any, ...]:
    """[b, h, l, e], [b, h, s, e], [b, h, s, v] -> [b, h, l, v], [b, h, l, 1], …"""
    shape, length, s = _product(c, query, key, value)
    sums = Tensor((*query.shape[:3], 1), "float32")
    result = Tensor(shape, query.dtype, Layout.UNKNOWN)
    return result, sums, None, None, length, s, _SEED, _SEED, None


def overrideable_attention(
    c: Context, query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None = None,
    dropout_p: Any = 0.0, is_causal: Any = False, return_debug_mask: bool = False, scale: Any = None,
) -> tuple[Any, ...]:
    """[b, h, l, e], [b, h, s, e], [b, h, s, v] -> [b, h, l, v], [b, h, l], …"""
    shape, length, s = _product(c, query, key, value)
    sums = Tensor(query.shape[:3], "float32")
    result = Tensor(shape, query.dtype, Layout.UNKNOWN)
    return result, sums, None, None, length, s, _SEED, _SEED, None


def flash_attention_forward(
    c: Context, query: Tensor, key: Tensor, value: Tensor, cum_seq_q: Tensor | None, cum_seq_k: Tensor | None,
    max_q: Dim, max_k: Dim, dropout_p: Any = 0.0, is_causal: Any = False, return_debug_mask: bool = False,
    q_descale: Tensor | None = None, k_descale: Tensor | None = None, v_descale: Tensor | None = None,
    scale: Any = None, window_size_left: Any = None, window_size_right: Any = None,
    seqused_k: Tensor | None = None, alibi_slopes: Tensor | None = None, block_table: Tensor | None = None,
    num_splits: Any = None,
) -> tuple[Any, ...]:
    """[b, l, h, e], or of sequences one after the other [t, h, e] -> the same, [b, h, l] or [h, t], …"""
    c.approximate("which sizes a GPU's kernel of attention takes is not modelled", "accept")
    rank_is(c, query, "the query", 4 if cum_seq_q is None else 3)
    *rows, heads, _ = query.shape
    sums = (rows[0], heads, *rows[1:]) if cum_seq_q is None else (heads, *rows)
    state = Tensor((2,), "uint64"), Tensor((), "uint64")
    result = Tensor(query.shape, query.dtype, Layout.UNKNOWN)
    mask = (c.fresh("masked", 0, None),) if return_debug_mask else (0,)
    return result, Tensor(sums, "float32"), *state, Tensor(mask, query.dtype)


def efficient_attention_forward(
    c: Context, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None, max_seqlen_q: Dim | None, max_seqlen_k: Dim | None, dropout_p: Any = 0.0,
    custom_mask_type: Any = 0, compute_log_sumexp: bool = False, scale: Any = None,
    seqlen_k: Tensor | None = None, window_size: Any = None,
) -> tuple[Any, ...]:
    """[b, l, h, e], [b, s, h, e], [b, s, h, v] -> [b, l, h, v], [b, h, l up to a multiple of 32], …"""
    c.approximate("which sizes a GPU's kernel of attention takes is not modelled", "accept")
    for name, part in (("query", query), ("key", key), ("value", value)):
        rank_is(c, part, f"the {name}", 4)
    batch, length, heads, _ = query.shape
    s = key.shape[1]
    if cu_seqlens_q is not None:  # sequences one after the other, of these lengths
        rank_is(c, cu_seqlens_q, "where the sequences begin", 1)
        batch = cu_seqlens_q.shape[0] - 1
        length = length if max_seqlen_q is None else max_seqlen_q
        s = s if max_seqlen_k is None else max_seqlen_k
    sums = Tensor((batch, heads, 32 * ceildiv(length, 32) if compute_log_sumexp else 0), "float32")
    result = Tensor((*query.shape[:3], value.shape[-1]), query.dtype, Layout.UNKNOWN)
    return result, sums, _SEED, _SEED, length, s


def backward(parameters: str, results: int = 3) -> Rule:
    """Returns the rule of a derivative, whose results have the shapes of query, key and value, and of the
    bias if there are four.
    """
    names = tuple(parameters.split())

    def rule(c: Context, **given: Any) -> tuple[Any, ...]:
        """…, q, k, v, … -> as q, k and v, and the bias"""
        c.approximate("which sizes a GPU's kernel of attention takes is not modelled", "accept")
        found: list[Any] = []
        for name in ("query", "key", "value", "attn_bias")[:results]:
            tensor, mask = given.get(name), given.get("grad_input_mask", (True,) * 4)
            if isinstance(tensor, Tensor) and mask[len(found)]:
                found.append(Tensor(tensor.shape, tensor.dtype, Layout.UNKNOWN))
            else:
                found.append(None)
        return tuple(found)

    return Rule(rule, names, "", frozenset(names), frozenset(names[:4]))


_OPERANDS = "query key value"
_SAVED = "out logsumexp"
_LENGTHS = "cum_seq_q cum_seq_k max_q max_k dropout_p is_causal"
_PHILOX = "philox_seed philox_offset"
BACKWARD: Final[dict[str, Rule]] = {
    "_flash_attention_backward": backward(
        f"grad_out {_OPERANDS} {_SAVED} {_LENGTHS} rng_state unused scale window_size_left window_size_right"
    ),
    "_scaled_dot_product_flash_attention_backward": backward(
        f"grad_out {_OPERANDS} {_SAVED} {_LENGTHS} {_PHILOX} scale"
    ),
    "_scaled_dot_product_cudnn_attention_backward": backward(
        f"grad_out {_OPERANDS} {_SAVED} {_PHILOX} attn_bias {_LENGTHS} scale"
    ),
    "_scaled_dot_product_efficient_attention_backward": backward(
        f"grad_out_ {_OPERANDS} attn_bias {_SAVED} {_PHILOX} dropout_p grad_input_mask is_causal scale", 4
    ),
    "_scaled_dot_product_fused_attention_overrideable_backward": backward(
        f"grad_out {_OPERANDS} attn_bias grad_input_mask {_SAVED} {_LENGTHS} {_PHILOX} scale", 4
    ),
}

RULES: Final[dict[str, RuleFunction | Rule]] = {
    **BACKWARD,
    "_efficient_attention_forward": efficient_attention_forward,
    "_flash_attention_forward": flash_attention_forward,
    "_scaled_dot_product_cudnn_attention": cudnn_attention,
    "_scaled_dot_product_efficient_attention": efficient_attention,
    "_scaled_dot_product_flash_attention": flash_attention,
    "_scaled_dot_product_fused_attention_overrideable": overrideable_attention,
}
