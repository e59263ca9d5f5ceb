"""Numbers of few bits: fake quantisation, whose results are floats, and products with scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Tensor, Value
from ..terms.dims import Dim
from ..terms.formula import Formula, all_of, any_of, eq, ge
from .common import category, rank_is, strides_of
from .elementwise import apply_law, clone, pointwise

# --- fake quantisation -----------------------------------------------------------------------------------


def _faked(c: Context, input: Tensor, error: type[Exception] = NotImplementedError) -> Tensor:
    if input.dtype is not None and category(input.dtype) != 2:
        c.refuse(f"fake quantisation takes floating tensors, not {input.dtype}", error)
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
    c: Context, input: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor,
    quant_min: Value, quant_max: Value,
) -> tuple[Tensor, Tensor]:
    """[*a], a scale, a zero point, a truth -> [*a], bool[*a]"""
    return per_tensor_mask(c, input, scale, zero_point, quant_min, quant_max)


def per_channel(
    c: Context, input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: Value,
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
    c: Context, input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: Value,
    quant_max: Value,
) -> tuple[Tensor, Tensor]:
    """[*a, n, *z], twice [n] -> [*a, n, *z], bool[*a, n, *z]"""
    return _masked(per_channel(c, input, scale, zero_point, axis, quant_min, quant_max))


def learnable_per_tensor(
    c: Context, input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: Value, quant_max: Value,
    grad_factor: Value = 1.0,
) -> Tensor:
    """[*a], a scale and a zero point, which may be followed by others -> [*a]"""
    for number in (scale, zero_point):
        c.require(ge(number.numel, 1), f"a scale and a zero point are one number, not {number}", IndexError)
    return _faked(c, input)


def learnable_per_channel(
    c: Context, input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: Value,
    quant_max: Value, grad_factor: Value = 1.0,
) -> Tensor:
    """[*a, n, *z], twice [n], zero points being floats -> [*a, n, *z]"""
    rounded = Tensor(zero_point.shape, "int32")
    return per_channel(c, input, scale, rounded, axis, quant_min, quant_max)


_NUMBERS: Final = "running_min running_max scale zero_point".split()
_OBSERVED: Final = tuple(
    f"""input observer_on fake_quant_on {" ".join(_NUMBERS)} averaging_const quant_min quant_max ch_axis
    per_row_fake_quant symmetric_quant""".split()
)


def _observed(c: Context, input: Tensor, numbers: Sequence[Tensor], ch_axis: int, per_row: bool) -> Formula:
    """Returns whether there are as many numbers as expected: `[*a]` comes with extremes, scale and zero
    point, one each, or [n] for [n, *z] by rows.

    Without elements nothing is observed. Numbers by rows that are [0] are created by the call.
    """
    count: Dim = 1
    allowed = [all_of(eq(t.numel, 1) for t in numbers)]
    if ch_axis >= input.rank:
        allowed = []
    elif per_row:
        usable = input.rank >= 2 and ch_axis % input.rank == 0 and ch_axis >= 0
        count = input.shape[0] if usable else 0
        allowed = [all_of(eq(t.numel, n) for t in numbers) for n in (count, 0)] if usable else []
    fits = any_of((eq(input.numel, 0), *allowed))
    if fits is not True:
        reason = "whether there is a number for each channel is looked at as if all were switched on"
        c.approximate(reason, "refuse")
    c.require(fits, f"of {input}, along axis {ch_axis}, there are not {count} numbers of each kind")
    return all_of(eq(t.numel, count) for t in numbers)


def observing(results: int) -> Rule:
    """Returns the rule of fake quantisation that computes its own scales: the first `results` of its results,
    in ATen's order.
    """

    def rule(c: Context, **given: Any) -> Any:
        """[*a], two truths, extremes, scale and zero point -> [*a], bool[*a] and the numbers anew"""
        input, numbers = given["input"], [given[name] for name in _NUMBERS]
        _faked(c, input, RuntimeError)
        same = _observed(c, input, numbers, given["ch_axis"], given.get("per_row_fake_quant", False))
        made = [Tensor(t.shape if same is True else (c.fresh("n", 0, None),), t.dtype) for t in numbers]
        found = (*_masked(clone(c, input)), *made)
        return found[0] if results == 1 else found[:results]

    return Rule(rule, _OBSERVED, "", frozenset(_OBSERVED), frozenset(_OBSERVED[:-2]))


def fake_gradient(c: Context, grad: Tensor, mask: Tensor) -> Tensor:
    """[*a], bool[*b] with as many elements -> [*broadcast(a, b)]"""
    if mask.dtype not in (None, "bool"):
        c.refuse(f"a mask is bool here, not {mask.dtype}")
    c.require(eq(grad.numel, mask.numel), f"there are {mask.numel} truths for {grad.numel} numbers")
    return pointwise(c, "====", grad, mask)


# --- products --------------------------------------------------------------------------------------------


def scaled_mm(
    c: Context, input: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
    scale_result: Tensor | None = None, out_dtype: str | None = None, use_fast_accum: Value = False,
) -> Tensor:
    """[n, k] @ [k, m] -> [n, m], with scales [] and [], or for rows and columns [n, 1] and [1, m]"""
    rank_is(c, input, "the first matrix", 2)
    rank_is(c, mat2, "the second matrix", 2)
    (n, k), (k2, m) = input.shape, mat2.shape
    c.require(eq(k, k2), f"the contracted sizes must agree: {k} and {k2}")
    # which checks come first, and so the type of the error, depends on the CPU
    for matrix in (input, mat2):
        if matrix.dtype is not None and not matrix.dtype.startswith("float8"):
            c.refuse(f"a product with scales is of float8, not of {matrix.dtype}", Exception)
    for scale in (scale_a, scale_b):
        if scale.dtype not in (None, "float32"):
            c.refuse(f"scales are float32 on a CPU, not {scale.dtype}")
    single = all_of((eq(scale_a.numel, 1), eq(scale_b.numel, 1)))
    by_row = scale_a.rank == scale_b.rank == 2 and all_of(
        (*map(eq, scale_a.shape, (n, 1)), *map(eq, scale_b.shape, (1, m)))
    )
    c.require(any_of((single, by_row)), f"the scales {scale_a} and {scale_b} do not fit", ValueError)
    if bias is not None:
        c.require(eq(bias.numel, m), f"the bias has {bias.numel} elements for {m} columns")
    return Tensor((n, m), out_dtype or input.dtype)


def scaled_mm_v2(
    c: Context, input: Tensor, mat2: Tensor, scale_a: tuple[Tensor, ...], recipe_a: tuple[int | str, ...],
    swizzle_a: Value, scale_b: tuple[Tensor, ...], recipe_b: tuple[int | str, ...], swizzle_b: Value,
    bias: Tensor | None, out_dtype: str | None, contraction_dim: Value = (), use_fast_accum: Value = False,
) -> Tensor:
    """[n, k] @ [k, m] -> [n, m], with scales [1], or for rows and columns [n, 1] and [1, m] of stride 1.

    Where n, m, or the first k is 0, only the numbers of scales are checked; before torch 2.14, nothing is.
    """
    rank_is(c, input, "the first matrix", 2)
    rank_is(c, mat2, "the second matrix", 2)
    (n, k), (k2, m) = input.shape, mat2.shape
    empty, counts = any_of(eq(size, 0) for size in (n, k, m)), c.since(2, 14)
    told = f"the contracted sizes must agree: {k} and {k2}"
    c.require(any_of((not counts and empty, eq(k, k2))), told, ValueError)
    for scales, recipe, by_row in ((scale_a, recipe_a, (n, 1)), (scale_b, recipe_b, (1, m))):
        if len(scales) != 1 or recipe[0] not in _BY_TENSOR + _BY_ROW:
            c.approximate("which scales in blocks fit is not modelled", "accept")
            continue
        (scale,) = scales
        told = f"the scales {scale} do not fit {input} @ {mat2}"
        fits = eq(scale.numel, by_row[0] * by_row[1] if recipe[0] in _BY_ROW else 1)
        if counts:
            c.require(fits, told, ValueError)
        if recipe[0] in _BY_ROW:
            strides = strides_of(scale) or (1, 1)
            fits = scale.rank == 2 and all_of((*map(eq, scale.shape, by_row), eq(strides[-1], 1)))
        # A scale for each row is asked for its second dim before it is known to have one.
        error = ValueError if scale.rank == 2 or recipe[0] not in _BY_ROW else Exception
        c.require(any_of((empty, fits)), told, error)
    return Tensor((n, m), out_dtype or input.dtype)


_BY_TENSOR, _BY_ROW = (0, "_ScalingType.TensorWise"), (1, "_ScalingType.RowWise")
"""Recipes, as ATen and Python name them."""


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


RULES: Final[dict[str, RuleFunction | Rule]] = {
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": per_tensor_enabled,
    "_fake_quantize_learnable_per_channel_affine": learnable_per_channel,
    "_fake_quantize_learnable_per_tensor_affine": learnable_per_tensor,
    "_fused_moving_avg_obs_fq_helper": observing(2),
    "_fused_moving_avg_obs_fq_helper_functional": observing(6),
    "_scaled_mm": scaled_mm,
    "_scaled_mm_v2": scaled_mm_v2,
    "fused_moving_avg_obs_fake_quant": observing(1),
    "_weight_int8pack_mm": weight_int8pack_mm,
    "fake_quantize_per_channel_affine": per_channel,
    "fake_quantize_per_channel_affine_cachemask": per_channel_mask,
    "fake_quantize_per_channel_affine_cachemask_backward": fake_gradient,
    "fake_quantize_per_tensor_affine": per_tensor,
    "fake_quantize_per_tensor_affine_cachemask": per_tensor_mask,
    "fake_quantize_per_tensor_affine_cachemask_backward": fake_gradient,
}
