"""Attention: scaled dot products, and the fused layers that torch runs for inference.

`scaled_dot_product_attention` on a CPU runs one of two implementations: a fused kernel ("flash") for four
dims (since torch 2.14 also for three) without dropout and without broadcasting, plain matrix products for the
rest. They differ in their checks and in the memory layout of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations
from types import SimpleNamespace
from typing import Any, TypeAlias

from ..engine.memory import is_contiguous
from ..ir.language import Context, Layout, Shape, Tensor
from ..terms.dims import Dim, maximum
from ..terms.formula import Formula, all_of, any_of, divides, eq, ge, ne, negate
from ..terms.rows import place_of
from .common import axis, broadcast, category, contiguous_strides, rank_is, strides_of
from .layout import empty, permuted, unsqueeze
from .linalg import linear
from .numbers import branch, less, require_number, unless

Require: TypeAlias = Callable[[Formula, str], None]


def scaled_dot_product_attention(
    c: Context, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: Any = False, scale: Any = None, enable_gqa: bool = False,
) -> Tensor:
    """[*b, l, e], [*b, s, e], [*b, s, v], mask expanding to [*b, l, s] -> [*b, l, v]

    The batch dims broadcast; with `enable_gqa` the heads (the last of them) of key and value divide those of
    query. Where l or value is empty (before torch 2.13: query, key or value), nothing is checked and the
    batch dims are those of query. The fused kernel does not compare s with the rows of value, to which it
    expands the mask, and took a mask besides `is_causal` before torch 2.14. Since then it takes rank 3, too:
    [b, l, e] is attention of [1, b, l, e], with a mask of rank 2 or 4.
    """
    rowed = any(place_of(tensor.shape) is not None for tensor in (query, key, value))
    if not rowed and query.rank == key.rank == value.rank == 3 and c.since(2, 14):
        query, key, value = (unsqueeze(c, tensor, 0) for tensor in (query, key, value))
        while attn_mask is not None and attn_mask.rank in (0, 1, 3):
            attn_mask = unsqueeze(c, attn_mask, 0)
        given = (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        return permuted(scaled_dot_product_attention(c, *given), (1, 2, 3))
    for tensor in (query, key, value):
        if tensor.rank < 2:
            c.refuse(f"query, key and value need rank 2 at least: {query}, {key}, {value}")
    dtype = _attention_dtype(c, query, key, value, attn_mask)
    if attn_mask is not None and is_causal is True and c.since(2, 14):
        c.refuse("a mask and is_causal exclude each other")
    (*_, length, e), (*_, s, e_key), (*_, s_value, v) = query.shape, key.shape, value.shape
    emptying = (length, *value.shape) if c.since(2, 13) else (*query.shape, *key.shape, *value.shape)
    nothing = empty(c, tuple(dict.fromkeys(emptying)))
    drops = branch(c, less(0, dropout_p), True, "the dropout")
    flash = False if rowed else _is_flash(c, query, key, value, attn_mask, drops, enable_gqa)

    def require(formula: Formula, reason: str, error: type[Exception] = RuntimeError) -> None:
        c.require(any_of((nothing, formula)), reason, error)

    checked: Any = SimpleNamespace(require=require, at_least=c.at_least, approximate=c.approximate)
    told = f"dropout_p must be at most 1, not {dropout_p}"
    require_number(checked, unless(less(1, dropout_p)), told)
    if flash is not False and not drops:
        least = unless(less(dropout_p, 0))
        told = f"the fused kernel takes no dropout_p below 0, as {dropout_p} is"
        require_number(checked, None if least is None else any_of((negate(flash), least)), told)
    batches = _head_batches(c, require, query, key, value, enable_gqa)
    require(eq(e, e_key), f"query and key must have one feature size: {e} and {e_key}")
    unmasked = attn_mask is None or not attn_mask.shape or eq(attn_mask.shape[-1], 1)
    require(any_of((eq(s, s_value), all_of((flash, unmasked)))), f"key has {s} rows, value {s_value}")
    scores = (*broadcast(checked, batches[0], batches[1]), length, s)
    batch = broadcast(checked, scores[:-2], batches[2])
    if attn_mask is not None:
        if is_causal is True:
            require(flash, "a mask and is_causal together are for the fused kernel alone")
        if attn_mask.rank < 2 and query.rank == key.rank == value.rank == 4 and not drops:
            require(
                negate(_same_heads(c, query, key, value, enable_gqa)),
                f"the mask must have rank 2 or 4, not {attn_mask}",
                IndexError,
            )
        _mask_expands(require, attn_mask, scores)
    if nothing is not False and batch != query.shape[:-2] and c.choose(nothing, "the shape of the result"):
        batch = query.shape[:-2]
    shape = (*batch, length, v)
    known = attn_mask is None or attn_mask.dtype == "bool"
    known = known and all(strides_of(t) is not None for t in (query, key, value))
    known = not rowed and (known or flash is False)
    return Tensor(shape, dtype, _attention_layout(c, query, shape, flash if known else None))


def _attention_dtype(
    c: Context, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> str | None:
    known = {t.dtype for t in (query, key, value) if t.dtype is not None}
    if len(known) > 1:
        c.refuse(f"query, key and value must have one dtype, not {' and '.join(sorted(known))}")
    if any(category(dtype) != 2 for dtype in known):
        error = NotImplementedError if category(query.dtype or "") == 3 else RuntimeError
        c.refuse(f"attention is for floating dtypes, not {query.dtype}", error)
    if mask is not None and known and mask.dtype not in (None, "bool", "float32", *known):
        c.refuse(f"the mask must be bool, float32 or of the dtype of query, not {mask.dtype}")
    return query.dtype


def _same_heads(c: Context, query: Tensor, key: Tensor, value: Tensor, gqa: bool) -> Formula:
    """Returns the condition that batch sizes agree, and heads too: with `gqa`, that those of key and value
    divide those of query; without it, since torch 2.14, one head of key and value may serve all.
    """
    (b, h, *_), (b_key, h_key, *_), (b_value, h_value, *_) = query.shape, key.shape, value.shape
    grouped = all_of((ge(h_key, 1), divides(h_key, h))) if gqa and h_key != 0 else eq(h, h_key)
    if not gqa and c.since(2, 14):
        grouped = any_of((grouped, eq(h_key, 1)))
    return all_of((eq(b, b_key), eq(b, b_value), eq(h_key, h_value), grouped))


def _is_flash(
    c: Context, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, drops: bool, gqa: bool
) -> Formula:
    """Returns the condition under which torch's fused kernel takes the call."""
    if drops or not query.rank == key.rank == value.rank == 4:
        return False
    (b, h, length, e), (_, _, s, e_key), e_value = query.shape, key.shape, value.shape[-1]
    needs = [_same_heads(c, query, key, value, gqa), eq(e, e_key), eq(e, e_value)]
    needs += [ne(d, 0) for d in (length, s) if not c.at_least(d, 1)]
    needs += [eq(strides[-1], 1) for t in (query, key, value) if (strides := strides_of(t)) is not None]
    if mask is not None:
        if mask.rank not in (2, 4):
            return False
        for have, want in zip(mask.shape, (b, h, length, s)[-mask.rank :], strict=True):
            needs.append(any_of((eq(have, want), eq(have, 1))))
    return all_of(needs)


def _mask_expands(require: Require, mask: Tensor, scores: Shape) -> None:
    if mask.rank > len(scores):
        require(False, f"the mask {mask} has more dims than the scores [{', '.join(map(str, scores))}]")
    for have, want in zip(reversed(mask.shape), reversed(scores), strict=False):
        require(
            any_of((eq(have, want), eq(have, 1))),
            f"the mask {mask} does not expand to [{', '.join(map(str, scores))}]",
        )


def _attention_layout(c: Context, query: Tensor, shape: Shape, flash: Formula | None) -> Layout | Shape:
    """Returns the layout of the result of attention.

    The fused kernel orders the dims of its result as query has them in memory; plain products give a
    contiguous result. `flash` is None where the choice depends on strides, or on whether the mask needs a
    gradient.
    """
    strides = strides_of(query)
    if flash is False or is_contiguous(query):
        return Layout.CONTIGUOUS
    if flash is not True or strides is None:
        return Layout.UNKNOWN
    for order in permutations(range(len(shape))):
        falling = pairwise(order)
        if c.at_least(strides[order[-1]], 1) and all(
            c.at_least(strides[i] - strides[j], 0) for i, j in falling
        ):
            made = contiguous_strides(tuple(shape[i] for i in order))
            return tuple(made[order.index(i)] for i in range(len(shape)))
    return Layout.UNKNOWN


def flash_attention_for_cpu(
    c: Context, query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: Any = False, *,
    attn_mask: Tensor | None = None, scale: Any = None,
) -> tuple[Tensor, Tensor]:
    """[b, h, l, e], [b, g, s, e], [b, g, s, e] -> [b, h, l, e], and the sums [b, h, l]; g divides h

    The kernel itself checks the feature sizes and the mask, if that has elements; where batch, heads or rows
    disagree it reads out of bounds.
    """
    for tensor in (query, key, value):
        if tensor.rank != 4:
            c.refuse(f"query, key and value must have rank 4: {query}, {key}, {value}")
    dtype = _attention_dtype(c, query, key, value, None)
    if dropout_p > 0:
        c.refuse("the fused kernel does not support dropout")
    (b, h, length, e), (_, _, s, e_key), (*_, s_value, e_value) = query.shape, key.shape, value.shape
    c.require(
        all_of((eq(e, e_key), eq(e, e_value))),
        f"query, key, value must have one feature size: {e}, {e_key}, {e_value}",
    )
    c.require(
        _same_heads(c, query, key, value, True),
        f"batch sizes must agree, and heads divide: {query}, {key}, {value}",
    )
    c.require(ge(s_value, s), f"key has {s} rows, value only {s_value}")
    c.require(all_of((ne(length, 0), ne(s, 0))), f"there must be rows: query has {length}, key {s}")
    if attn_mask is not None:
        if attn_mask.rank not in (2, 4) or attn_mask.dtype not in (None, dtype):
            c.refuse(f"the mask must have rank 2 or 4 and the dtype of query, not {attn_mask}")
        nothing = empty(c, attn_mask.shape)
        _mask_expands(lambda f, told: c.require(any_of((nothing, f)), told), attn_mask, (b, h, length, s))
    strides = (h * length, 1, h)
    sums = Tensor((b, h, length), "float64" if dtype == "float64" else "float32" if dtype else None, strides)
    return Tensor(query.shape, dtype, _attention_layout(c, query, query.shape, True)), sums


def attention_math(
    c: Context, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: Any = False, dropout_mask: Tensor | None = None, *, scale: Any = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """[*b, l, e], [*b, s, e], [*b, s, v], mask expanding to [*b, l, s] -> [*b, l, v], [*b, l, s]"""
    for tensor in (query, key, value):
        if tensor.rank < 2:
            c.refuse(f"query, key and value need rank 2 at least: {query}, {key}, {value}")
    dtype = _attention_dtype(c, query, key, value, None)
    (*_, length, e), (*_, s, e_key), (*_, s_value, v) = query.shape, key.shape, value.shape
    batches = _head_batches(c, c.require, query, key, value, enable_gqa)
    c.require(eq(e, e_key), f"query and key must have one feature size: {e} and {e_key}")
    c.require(eq(s, s_value), f"key has {s} rows, value {s_value}")
    scores = (*broadcast(c, batches[0], batches[1]), length, s)
    if attn_mask is not None:
        if is_causal is True:
            c.refuse("a mask and is_causal exclude each other")
        _mask_expands(c.require, attn_mask, scores)
    return Tensor((*broadcast(c, scores[:-2], batches[2]), length, v), dtype), Tensor(scores, dtype)


def _head_batches(
    c: Context, require: Require, query: Tensor, key: Tensor, value: Tensor, gqa: bool
) -> list[Shape]:
    """The batch dims of query, key and value; grouped heads are repeated to as many as query has."""
    batches = [t.shape[:-2] for t in (query, key, value)]
    if not gqa:
        return batches
    if min(map(len, batches)) < 1:
        c.refuse("grouped heads need rank 3 at least", IndexError)
    heads = batches[0][-1]
    for name, batch in (("key", batches[1]), ("value", batches[2])):
        fits = all_of((ge(batch[-1], 1), divides(batch[-1], heads))) if batch[-1] != 0 else False
        require(
            any_of((eq(heads, batch[-1]), fits)),
            f"the {batch[-1]} heads of {name} must divide the {heads} of query",
        )
    return [(*batch[:-1], heads) for batch in batches]


# --- fused layers ---------------------------------------------------------------------------------------


def _is_vector(c: Context, tensor: Tensor, size: Dim, name: str) -> None:
    if tensor.rank != 1:
        c.refuse(f"{name} must be a vector, not {tensor}")
    c.require(eq(tensor.shape[0], size), f"{name} has size {tensor.shape[0]}, where {size} is needed")


def native_multi_head_attention(
    c: Context, query: Tensor, key: Tensor, value: Tensor, embed_dim: Dim, num_head: Dim, qkv_weight: Tensor,
    qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None = None,
    need_weights: bool = True, average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """query, key, value [b, l, e], weights [3*e, e] and [e, e], heads dividing e -> [b, l, e], and [b, l, l]
    or [b, h, l, l]

    The mask is [l, l] (type 0), [b, l] (type 1) or [b, h, l, l] (type 2).
    """
    if query.rank != 3:
        c.refuse(f"query must have rank 3, not {query}")
    b, length, e = query.shape
    for other in (key, value):
        if other.rank != 3:
            c.refuse(f"query, key and value must have one shape: {query}, {key}, {value}")
        same = all_of(map(eq, query.shape, other.shape))
        c.require(same, f"query, key and value must have one shape: {query}, {key}, {value}")
    c.require(eq(e, embed_dim), f"query has {e} features, the layer {embed_dim}")
    c.require(divides(num_head, embed_dim), f"{num_head} heads must divide {embed_dim} features")
    if qkv_weight.rank != 2:
        c.refuse(f"the weight of the projections must be a matrix, not {qkv_weight}")
    fits = all_of((eq(qkv_weight.shape[0], 3 * e), eq(qkv_weight.shape[1], e)))
    c.require(fits, f"the weight of the projections must be [{3 * e}, {e}], not {qkv_weight}")
    _is_vector(c, qkv_bias, 3 * e, "the bias of the projections")
    if mask is not None:
        shapes: dict[Any, Shape] = {0: (length, length), 1: (b, length), 2: (b, num_head, length, length)}
        if mask_type not in shapes or mask.rank != len(shapes[mask_type]):
            c.refuse(f"a mask of type {mask_type} does not have the shape {mask}")
        want = shapes[mask_type]
        c.require(
            all_of(map(eq, mask.shape, want)), f"the mask must be [{', '.join(map(str, want))}], not {mask}"
        )
    output = linear(c, query, proj_weight, proj_bias)
    if not need_weights or any(d == 0 for d in query.shape):
        return output, None
    heads: Shape = () if average_attn_weights else (num_head,)
    return output, Tensor((b, *heads, length, length), query.dtype)


def transformer_encoder_layer(
    c: Context, src: Tensor, embed_dim: Dim, num_heads: Dim, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float,
    norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor,
    ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
    mask: Tensor | None = None, mask_type: int | None = None,
) -> Tensor:
    """[b, l, e] -> [b, l, e]: attention of heads dividing e, norms over e, linear layers e -> f -> e"""
    attended, _ = native_multi_head_attention(
        c,
        src,
        src,
        src,
        embed_dim,
        num_heads,
        qkv_weight,
        qkv_bias,
        proj_weight,
        proj_bias,
        mask,
        False,
        True,
        mask_type,
    )
    for name, norm in (
        ("norm_weight_1", norm_weight_1),
        ("norm_bias_1", norm_bias_1),
        ("norm_weight_2", norm_weight_2),
        ("norm_bias_2", norm_bias_2),
    ):
        _is_vector(c, norm, src.shape[2], name)
    hidden = linear(c, attended, ffn_weight_1, ffn_bias_1)
    result = linear(c, hidden, ffn_weight_2, ffn_bias_2)
    rank_is(c, result, "what the layer gives", 3)
    c.require(
        eq(result.shape[2], src.shape[2]), f"the layer gives {result.shape[2]} features for {src.shape[2]}"
    )
    return Tensor(src.shape, src.dtype)


# --- other parts -----------------------------------------------------------------------------------------


def transform_bias_rescale_qkv(
    c: Context, qkv: Tensor, qkv_bias: Tensor, num_heads: Dim
) -> tuple[Tensor, ...]:
    """[b, t, 3*h*d], [3*h*d], h -> three times [b, h, t, d]"""
    if qkv.rank != 3 or qkv_bias.rank != 1:
        c.refuse(f"_transform_bias_rescale_qkv takes a batch of rows and a vector, not {qkv}, {qkv_bias}")
    batch, rows, width = qkv.shape
    c.require(ge(num_heads, 1), f"there are {num_heads} heads")
    heads = maximum(num_heads, 1)
    c.require(divides(3 * heads, width), f"{width} features are not three times {heads} heads of one size")
    c.require(eq(qkv_bias.shape[0], width), f"the bias has {qkv_bias.shape[0]} numbers for {width} features")
    part = Tensor((batch, heads, rows, width // (3 * heads)), qkv.dtype)
    return part, part, part


def masked_softmax(
    c: Context, input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """[b, h, l, s] with a mask [l, l] (type 0), [b, l] (type 1) or [b, h, l, s] (type 2) -> [b, h, l, s]

    The first two are for l = s: the kernel reads beyond a mask that is smaller, or has no elements along s.
    """
    if mask.dtype not in (None, "bool"):
        c.refuse(f"a mask is bool here, not {mask.dtype}")
    if mask_type in (0, 1):
        if input.rank != 4:
            c.refuse(f"a mask of type {mask_type} is for scores of rank 4, not {input}")
        batch, _, rows, columns = input.shape
        c.require(eq(rows, columns), f"a mask of type {mask_type} is for square scores, not {input}")
        wanted: Shape = (rows if mask_type == 0 else batch, rows)
    else:
        wanted = input.shape
    fits = len(wanted) == mask.rank and all_of(map(eq, wanted, mask.shape))
    c.require(fits, f"the mask {mask} is not that of {input}")
    axis(c, -1 if dim is None else dim, input.rank)
    return Tensor(input.shape, input.dtype)


RULES: dict[str, Any] = {
    "_masked_softmax": masked_softmax,
    "_transform_bias_rescale_qkv": transform_bias_rescale_qkv,
    "_native_multi_head_attention": native_multi_head_attention,
    "_scaled_dot_product_attention_math": attention_math,
    "_scaled_dot_product_flash_attention_for_cpu": flash_attention_for_cpu,
    "_transformer_encoder_layer_fwd": transformer_encoder_layer,
    "scaled_dot_product_attention": scaled_dot_product_attention,
}
