"""Numbers of few bits: fake quantisation, which stays with floats, and products with scales."""

from __future__ import annotations

from typing import Final

from ..formula import all_of, any_of, eq, ge
from ..generate import RuleFunction
from ..language import Context, Tensor, Value
from .common import rank_is
from .elementwise import apply_law, clone, pointwise

# --- fake quantisation -----------------------------------------------------------------------------------


def _faked(c: Context, input: Tensor) -> Tensor:
    apply_law(c, "xx=x", input.dtype, "fake quantisation")
    return clone(c, input)


def _masked(result: Tensor) -> tuple[Tensor, Tensor]:
    return result, Tensor(result.shape, "bool", result.layout)


def per_tensor(
    c: Context, input: Tensor, scale: Value, zero_point: Value, quant_min: Value, quant_max: Value
) -> Tensor:
    """[*a], a scale and a zero point -> [*a]"""
    for number in (scale, zero_point):
        if isinstance(number, Tensor):
            c.require(eq(number.numel, 1), f"a scale and a zero point are one number, not {number}")
    return _faked(c, input)


def per_tensor_mask(
    c: Context, input: Tensor, scale: Value, zero_point: Value, quant_min: Value, quant_max: Value
) -> tuple[Tensor, Tensor]:
    """[*a], a scale and a zero point -> [*a], bool[*a]"""
    return _masked(per_tensor(c, input, scale, zero_point, quant_min, quant_max))


def per_tensor_enabled(
    c: Context,
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    fake_quant_enabled: Tensor,
    quant_min: Value,
    quant_max: Value,
) -> tuple[Tensor, Tensor]:
    """[*a], a scale, a zero point, a truth -> [*a], bool[*a]"""
    return per_tensor_mask(c, input, scale, zero_point, quant_min, quant_max)


def per_channel(
    c: Context,
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: Value,
    quant_max: Value,
) -> Tensor:
    """[*a, n, *z], twice [n] -> [*a, n, *z]"""
    for vector in (scale, zero_point):
        rank_is(c, vector, "scales and zero points", 1)
    if not 0 <= axis < input.rank:
        c.refuse(f"axis {axis} is not one of {input.rank}, counted from the front")
    if scale.dtype not in (None, "float32"):
        c.refuse(f"scales are float32, not {scale.dtype}")
    if zero_point.dtype not in (None, "int32", "float32", "float16"):
        c.refuse(f"zero points are int32, float32 or float16, not {zero_point.dtype}")
    c.require(ge(zero_point.shape[0], 1), "there is a zero point at least")
    for vector in (scale, zero_point):
        fits = eq(vector.shape[0], input.shape[axis])
        c.require(fits, f"there is a number for each of {input.shape[axis]} channels: {vector}")
    return _faked(c, input)


def per_channel_mask(
    c: Context,
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: Value,
    quant_max: Value,
) -> tuple[Tensor, Tensor]:
    """[*a, n, *z], twice [n] -> [*a, n, *z], bool[*a, n, *z]"""
    return _masked(per_channel(c, input, scale, zero_point, axis, quant_min, quant_max))


def fake_gradient(c: Context, grad: Tensor, mask: Tensor) -> Tensor:
    """[*a], bool[*b] of as many elements, of which there are some -> [*broadcast(a, b)]"""
    if mask.dtype not in (None, "bool"):
        c.refuse(f"a mask is bool here, not {mask.dtype}")
    c.require(eq(grad.numel, mask.numel), f"there are {mask.numel} truths for {grad.numel} numbers")
    return pointwise(c, "====", grad, mask)


# --- products --------------------------------------------------------------------------------------------


def scaled_mm(
    c: Context,
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: str | None = None,
    use_fast_accum: Value = False,
) -> Tensor:
    """[n, k] @ [k, m] -> [n, m], with scales [] and [], or for rows and columns [n, 1] and [1, m]"""
    rank_is(c, input, "the first matrix", 2)
    rank_is(c, mat2, "the second matrix", 2)
    (n, k), (k2, m) = input.shape, mat2.shape
    c.require(eq(k, k2), f"the contracted sizes must agree: {k} and {k2}")
    for matrix in (input, mat2):
        if matrix.dtype is not None and not matrix.dtype.startswith("float8"):
            c.refuse(f"a product with scales is of float8, not of {matrix.dtype}")
    for scale in (scale_a, scale_b):
        if scale.dtype not in (None, "float32"):
            c.refuse(f"scales are float32 on a CPU, not {scale.dtype}")
    single = all_of((eq(scale_a.numel, 1), eq(scale_b.numel, 1)))
    by_row = scale_a.rank == scale_b.rank == 2 and all_of(
        (*map(eq, scale_a.shape, (n, 1)), *map(eq, scale_b.shape, (1, m)))
    )
    c.require(any_of((single, by_row)), f"the scales {scale_a} and {scale_b} do not fit")
    if bias is not None:
        c.require(eq(bias.numel, m), f"the bias has {bias.numel} elements for {m} columns")
    return Tensor((n, m), out_dtype or input.dtype)


def weight_int8pack_mm(c: Context, input: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """[n, k] @ int8 [m, k] -> [n, m], with a scale for each of m"""
    rank_is(c, input, "the matrix", 2)
    rank_is(c, mat2, "the weight", 2)
    rank_is(c, scales, "the scales", 1)
    (n, k), (m, k2) = input.shape, mat2.shape
    if mat2.dtype not in (None, "int8"):
        c.refuse(f"the weight is int8, not {mat2.dtype}")
    apply_law(c, "xx=x", input.dtype, "_weight_int8pack_mm")
    c.require(eq(k, k2), f"the contracted sizes must agree: {k} and {k2}")
    c.require(eq(scales.shape[0], m), f"there are {scales.shape[0]} scales for {m} rows of the weight")
    return Tensor((n, m), input.dtype)


RULES: Final[dict[str, RuleFunction]] = {
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": per_tensor_enabled,
    "_scaled_mm": scaled_mm,
    "_weight_int8pack_mm": weight_int8pack_mm,
    "fake_quantize_per_channel_affine": per_channel,
    "fake_quantize_per_channel_affine_cachemask": per_channel_mask,
    "fake_quantize_per_channel_affine_cachemask_backward": fake_gradient,
    "fake_quantize_per_tensor_affine": per_tensor,
    "fake_quantize_per_tensor_affine_cachemask": per_tensor_mask,
    "fake_quantize_per_tensor_affine_cachemask_backward": fake_gradient,
}
