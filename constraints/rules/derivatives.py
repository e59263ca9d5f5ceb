"""Derivatives: the kernels that the graphs of autograd are made of.

A gradient has the shape of the tensor that it belongs to. Kernels check this more or less closely; where a
kernel would read beyond a gradient of another shape, the rules refuse the call.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Layout, Shape, Tensor, Value, product, tensors
from ..terms.dims import Dim
from ..terms.formula import any_of, divides, eq, ge
from .common import axis, category, like_input, rank_is, text
from .creation import sizes
from .elementwise import apply_law, operators, pointwise, same_dtype
from .gathering import boolean, index_add, integral, scatter_add, segment_reduce
from .indexing import select, slice_
from .loss import RULES as LOSSES
from .loss import cdist, fits_into, pdist, same_shape
from .norm import suggested_layout, weight_norm_interface
from .repeating import diagonal
from .resize import RULES as RESIZING
from .resize import affine_grid_generator, grid_sampler
from .window import RULES as WINDOWS
from .window import convolution

Mask = tuple[bool, ...]
"""Marks the results that are asked for; the others are None."""


def wanted(output_mask: Mask, *results: Tensor | None) -> tuple[Tensor | None, ...]:
    return tuple(result if asked else None for asked, result in zip(output_mask, results, strict=True))


def gradient_of(c: Context, gradient: Tensor, value: Tensor, operation: str) -> None:
    """Refuses a gradient whose shape differs from that of the value."""
    reason = f"{operation} takes a gradient of the shape {text(value.shape)}"
    same_shape(c, gradient, Tensor(value.shape, gradient.dtype), reason)


# --- of pointwise operators: all operands broadcast ------------------------------------------------------

GRAD: Final = "grad_output input"
POINTWISE: Final[dict[str, Rule]] = {
    **operators("xx==", "silu_backward", GRAD),
    **operators("xx==", "sigmoid_backward tanh_backward", "grad_output output"),
    **operators("xx=x", "hardswish_backward hardsigmoid_backward", GRAD),
    **operators("xx=x", "logit_backward", GRAD, "eps"),
    **operators("x==x", "threshold_backward", GRAD, "threshold"),
    **operators("xx=x", "hardshrink_backward", "grad_out input", "lambd"),
    **operators("xx=x", "softshrink_backward", GRAD, "lambd"),
    **operators("xx=x", "leaky_relu_backward", GRAD, "negative_slope self_is_result"),
    **operators("xx=x", "hardtanh_backward", GRAD, "min_val max_val"),
    **operators("xx=x", "softplus_backward", GRAD, "beta threshold"),
}
_ELU: Final = operators("xx=x", "elu_backward", "grad_output self_or_result")["elu_backward"]
ELU_PARAMETERS: Final = ("grad_output", "alpha", "scale", "input_scale", "is_result", "self_or_result")
"""ATen has the second operand last."""


def log_sigmoid_backward(c: Context, grad_output: Tensor, input: Tensor, buffer: Tensor) -> Tensor:
    """[*a], [*b], [*c] -> [*broadcast(a, b, c)]"""
    same_dtype(c, "log_sigmoid_backward", grad_output, input, buffer)
    return pointwise(c, "xx=x", grad_output, input, buffer, operation="log_sigmoid_backward")


def rrelu_with_noise_backward(
    c: Context, grad_output: Tensor, input: Tensor, noise: Tensor, lower: float, upper: float, training: bool,
    self_is_result: bool,
) -> Tensor:
    """[*a], [*b], [*c] -> [*broadcast(a, c)] in training, where slopes are random, else [*broadcast(a, b)]"""
    if training and upper - lower > 1e-6:
        return pointwise(c, "====", grad_output, noise)
    return pointwise(c, "xx=x", grad_output, input, operation="rrelu_with_noise_backward")


def loss_backward(operation: str, law: str) -> RuleFunction:
    """The rule of a loss of pairs, whose derivative has the dtype of the input."""

    def rule(
        c: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int, beta: Value = 1.0
    ) -> Tensor:
        """[*a], [*b], [*c] -> [*broadcast(a, b, c)]"""
        result = pointwise(c, law, grad_output, input, target, operation=operation)
        written_to(c, input, result, operation)
        layout = Layout.CONTIGUOUS if result.shape == input.shape else result.layout
        return Tensor(result.shape, input.dtype, layout)

    return rule


def written_to(c: Context, into: Tensor, result: Tensor, operation: str) -> None:
    """Refuses a result that cannot be cast to the dtype of the tensor that it is written to."""
    if into.dtype and result.dtype and category(result.dtype) > category(into.dtype):
        c.refuse(f"{operation} makes {result.dtype} of {into.dtype}")


def soft_margin_loss_backward(
    c: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int
) -> Tensor:
    """[*a], [*b], [*c] -> [*broadcast(b, c)], to which a broadcasts"""
    if "bool" in (input.dtype, target.dtype):
        c.refuse("soft_margin_loss_backward does not take bool")
    losses = pointwise(c, "xf==", target, input, operation="soft_margin_loss_backward")
    written_to(c, input, losses, "soft_margin_loss_backward")
    written_to(c, input, grad_output, "soft_margin_loss_backward")
    fits_into(c, grad_output, losses.shape, f"the gradient must broadcast to {losses}")
    return Tensor(losses.shape, input.dtype, Layout.UNKNOWN)


def mish_backward(c: Context, grad_output: Tensor, input: Tensor) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)], of the dtype of the second"""
    result = pointwise(c, "xx=x", grad_output, input, operation="mish_backward")
    return Tensor(result.shape, apply_law(c, "xx=x", input.dtype, "mish_backward"), result.layout)


def gelu_backward(c: Context, grad_output: Tensor, input: Tensor, approximate: str = "none") -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)]; oneDNN, which has float32, does not broadcast"""
    if input.dtype == "float32" and grad_output.shape != input.shape:
        gradient_of(c, grad_output, input, "gelu_backward")
    return pointwise(c, "xx=x", grad_output, input, operation="gelu_backward")


def prelu_kernel_backward(
    c: Context, grad_output: Tensor, input: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """[*a], [*b], [*c] -> twice [*broadcast(a, b, c)]"""
    same_dtype(c, "prelu_backward", grad_output, input, weight)
    result = pointwise(c, "xx=x", grad_output, input, weight, operation="prelu_backward")
    return result, result


def native_dropout_backward(c: Context, grad_output: Tensor, mask: Tensor, scale: Value) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)]"""
    return pointwise(c, "ff==", grad_output, Tensor(mask.shape, "bool", mask.layout))


def glu_backward(c: Context, grad_output: Tensor, input: Tensor, dim: int) -> Tensor:
    """[*b], [*a, 2*n, *z] -> [*a, 2*n, *z], where b broadcasts to [*a, n, *z]"""
    if not input.shape:
        c.refuse("glu halves an axis, and a tensor of rank 0 has none")
    at = axis(c, dim, input.rank)
    size = input.shape[at]
    c.require(divides(2, size), f"glu halves axis {at}, so its size {size} must be even")
    same_dtype(c, "glu_backward", grad_output, input)
    half = (*input.shape[:at], size // 2, *input.shape[at + 1 :])
    fits_into(c, grad_output, half, f"a gradient of glu must broadcast to {text(half)}")
    return Tensor(input.shape, apply_law(c, "xx=x", input.dtype, "glu_backward"))


def binary_cross_entropy_backward(
    c: Context, grad_output: Tensor, input: Tensor, target: Tensor, weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """[*a], [*b], [*c], weight [*d] -> [*b], to which the others broadcast

    torch leaves out axes of size 1 on all sides before it broadcasts, which no forward asks for.
    """
    for operand in (grad_output, target, weight):
        if operand is not None:
            fits_into(c, operand, input.shape, f"operands of a gradient must broadcast to {input}")
    same_dtype(c, "binary_cross_entropy_backward", grad_output, input, target)
    return Tensor(input.shape, apply_law(c, "xx=x", input.dtype, "binary_cross_entropy_backward"))


def huber_loss_backward(
    c: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int, delta: Value = 1.0
) -> Tensor:
    """[*a], [*b], [*c] -> [*broadcast(a, b, c)]"""
    same_dtype(c, "huber_loss_backward", grad_output, input, target)
    return pointwise(c, "xx=x", grad_output, input, target, operation="huber_loss_backward")


# --- of operators whose rules say what they return -------------------------------------------------------


def through(name: str, forward: RuleFunction, parameters: str) -> dict[str, Rule]:
    """Returns the rule of a kernel that takes the gradient of the result of `forward`, the input, and
    parameters.

    The result has the shape of the input. Tensors among the parameters are shaped like the gradient.
    """
    names = tuple(parameters.split())

    def rule(c: Context, **given: Any) -> Tensor:
        """[*forward(a)], [*a] -> [*a]"""
        gradient, input = given.pop("grad_output"), given.pop("input")
        beside = [(n, given.pop(n)) for n in tuple(given) if isinstance(given[n], Tensor)]
        result, *_ = tensors(forward(c, input, **given))
        gradient_of(c, gradient, result, name)
        for label, tensor in beside:
            same_shape(c, tensor, Tensor(gradient.shape, tensor.dtype), f"{label} must fit the gradient")
            if label == "indices" and tensor.dtype not in (None, "int64"):
                c.refuse(f"indices are int64, not {tensor.dtype}")
        same_dtype(c, name, gradient, input)
        return Tensor(input.shape, input.dtype, like_input(c, input, input.shape))

    return {name: Rule(rule, names, "", frozenset(names), frozenset(names[:2]))}


POOL: Final = "kernel_size stride padding"
THROUGH: Final[dict[str, Rule]] = {
    **{
        op: rule
        for n in (2, 3)
        for op, rule in {
            **through(
                f"avg_pool{n}d_backward",
                WINDOWS[f"avg_pool{n}d"],
                f"{GRAD} {POOL} ceil_mode count_include_pad divisor_override",
            ),
            **through(
                f"max_pool{n}d_with_indices_backward",
                WINDOWS[f"max_pool{n}d"],
                f"{GRAD} {POOL} dilation ceil_mode indices",
            ),
        }.items()
    },
    **{
        op: rule
        for n in (1, 2, 3)
        for mode in ("reflection", "replication")
        for op, rule in through(
            f"{mode}_pad{n}d_backward", RESIZING[f"{mode}_pad{n}d"], f"{GRAD} padding"
        ).items()
    },
}


def adaptive_pool_backward(spatial: int, maximum: bool) -> RuleFunction:
    """The rule of adaptive pools, whose gradient says how large the result was."""
    name = f"adaptive_{'max' if maximum else 'avg'}_pool{spatial}d_backward"

    def rule(c: Context, grad_output: Tensor, input: Tensor, indices: Tensor | None = None) -> Tensor:
        """[*b, c, *m], [*b, c, *n], indices [*b, c, *m] -> [*b, c, *n]; only the batch may be empty"""
        rank_is(c, input, "input", spatial + 1, spatial + 2)
        rank_is(c, grad_output, "the gradient", input.rank)
        result = (*input.shape[:-spatial], *grad_output.shape[-spatial:])
        gradient_of(c, grad_output, Tensor(result), name)
        for size in (*grad_output.shape[1:], *input.shape[-spatial:]):
            c.require(ge(size, 1), f"only the batch may be empty in {grad_output} and {input}")
        if indices is not None:
            same_shape(c, indices, Tensor(grad_output.shape, indices.dtype), "indices must fit the gradient")
            if indices.dtype not in (None, "int64"):
                c.refuse(f"indices are int64, not {indices.dtype}")
        same_dtype(c, name, grad_output, input)
        layout = Layout.CONTIGUOUS if spatial == 3 else like_input(c, input, input.shape, input.rank == 4)
        return Tensor(input.shape, input.dtype, layout)

    return rule


def upsample_backward(c: Context, grad_output: Tensor, output_size: Shape, input_size: Shape) -> Tensor:
    """[b, c, *m], m, (b, c, *n) -> [b, c, *n]; sizes of 0 are for batch and channels"""
    if len(input_size) != len(output_size) + 2:
        c.refuse(f"an input size has {len(output_size) + 2} numbers here, not {len(input_size)}")
    for n in (*input_size[2:], *output_size):
        c.require(ge(n, 1), f"sizes of an interpolation are at least 1, not {n}")
    gradient_of(c, grad_output, Tensor((*input_size[:2], *output_size)), "an interpolation's derivative")
    dtype = apply_law(c, "xx=x", grad_output.dtype, "an interpolation's derivative")
    return Tensor(sizes(c, (input_size,)), dtype, like_input(c, grad_output, input_size))


def upsampling(parameters: str) -> Rule:
    """The rule above, with parameters that say nothing about shapes."""
    names = ("grad_output", "output_size", "input_size", *parameters.split())

    def rule(c: Context, **given: Any) -> Tensor:
        """[b, c, *m], m, (b, c, *n) -> [b, c, *n]"""
        return upsample_backward(c, *(given[name] for name in names[:3]))

    return Rule(rule, names, "", frozenset(names), frozenset(names[:3]))


SCALES: Final = {1: "scales", 2: "scales_h scales_w", 3: "scales_d scales_h scales_w"}
SMOOTH: Final = """upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
_upsample_lanczos2d_aa""".split()
UPSAMPLING: Final[dict[str, Rule]] = {
    **{f"upsample_nearest{n}d_backward": upsampling(SCALES[n]) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d_backward": upsampling(SCALES[n]) for n in (1, 2, 3)},
    "upsample_linear1d_backward": upsampling(f"align_corners {SCALES[1]}"),
    **{f"{name}_backward": upsampling(f"align_corners {SCALES[2]}") for name in SMOOTH},
    "upsample_trilinear3d_backward": upsampling(f"align_corners {SCALES[3]}"),
}


def convolution_backward(
    c: Context, grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Shape | None, stride: Any,
    padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: Dim, output_mask: Mask,
) -> tuple[Tensor | None, ...]:
    """The derivatives by input, weight and bias, each of the shape of its tensor"""
    same_dtype(c, "convolution_backward", grad_output, input, weight)
    # A transposed convolution is the derivative of a plain one, which says what fits on either side.
    taken, made = (grad_output, input) if transposed else (input, grad_output)
    none = (0,) * (weight.rank - 2)
    result = convolution(c, taken, weight, None, stride, padding, dilation, False, none, groups)
    gradient_of(c, made, result, "convolution_backward")
    unknown = Layout.UNKNOWN
    bias = Tensor((grad_output.shape[1],), weight.dtype)
    return wanted(
        output_mask,
        Tensor(input.shape, input.dtype, unknown),
        Tensor(weight.shape, weight.dtype, unknown),
        bias,
    )


# --- of normalisations -----------------------------------------------------------------------------------


def native_layer_norm_backward(
    c: Context, grad_out: Tensor, input: Tensor, normalized_shape: Shape, mean: Tensor, rstd: Tensor,
    weight: Tensor | None, bias: Tensor | None, output_mask: Mask,
) -> tuple[Tensor | None, ...]:
    """[*a, *k], [*a, *k], k, statistics of a, twice [*k] -> [*a, *k], twice [*k]"""
    shape = _ends_with(c, input, normalized_shape, weight, bias)
    gradient_of(c, grad_out, input, "native_layer_norm_backward")
    for statistics in (mean, rstd):
        count = product(input.shape[: input.rank - len(shape)])
        c.require(eq(statistics.numel, count), f"there are {count} statistics of {input}, not {statistics}")
    _parameters(c, "native_layer_norm_backward", output_mask, weight, bias)
    dtype = weight.dtype if weight is not None else input.dtype
    return wanted(output_mask, Tensor(input.shape, input.dtype), Tensor(shape, dtype), Tensor(shape, dtype))


def _ends_with(c: Context, input: Tensor, shape: Shape, *parameters: Tensor | None) -> Shape:
    """Returns the trailing axes over which the input is normalised."""
    if not shape or len(shape) > input.rank:
        c.refuse(f"{input} does not end in {text(shape)}")
    end = Tensor(input.shape[input.rank - len(shape) :], None)
    same_shape(c, end, Tensor(shape, None), f"{input} must end in {text(shape)}")
    for parameter in parameters:
        if parameter is not None:
            like = Tensor(shape, parameter.dtype)
            same_shape(c, parameter, like, f"parameters have the shape {text(shape)}")
    return shape


def _parameters(c: Context, operation: str, output_mask: Mask, *parameters: Tensor | None) -> None:
    """Requires a parameter wherever its derivative is asked for, since torch allocates the derivative like
    it.
    """
    for asked, parameter in zip(output_mask[1:], parameters, strict=True):
        if asked and parameter is None:
            c.refuse(f"{operation} is asked for the derivative by a parameter that is not there")


def native_group_norm_backward(
    c: Context, grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, N: Dim,
    C: Dim, HxW: Dim, group: Dim, output_mask: Mask,
) -> tuple[Tensor | None, ...]:
    """Gradient and input of n*c*s numbers, twice [n, g], [c] -> the shape of the input, twice [c]"""
    for tensor in (grad_out, input):
        c.require(eq(tensor.numel, N * C * HxW), f"{tensor} is said to be {N} * {C} * {HxW}")
    for statistics in (mean, rstd):
        c.require(eq(statistics.numel, N * group), f"there are {N * group} statistics, not {statistics}")
    c.require(ge(group, 1), f"native_group_norm_backward takes one group or more, not {group}")
    if weight is not None:
        c.require(eq(weight.numel, C), f"the weight must hold {C} numbers, and is {weight}")
    _parameters(c, "native_group_norm_backward", output_mask, weight, weight)
    dtype = weight.dtype if weight is not None else input.dtype
    layout = suggested_layout(c, input)
    return wanted(
        output_mask, Tensor(input.shape, input.dtype, layout), Tensor((C,), dtype), Tensor((C,), dtype)
    )


def native_batch_norm_backward(
    c: Context, grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, save_mean: Tensor | None, save_invstd: Tensor | None, train: bool, eps: Value,
    output_mask: Mask,
) -> tuple[Tensor | None, ...]:
    """[n, c, *s], [n, c, *s], five times [c] -> [n, c, *s], twice [c]; training has the saved statistics"""
    if input.rank < 2:
        c.refuse(f"batch_norm takes an input of rank 2 or more, [n, c, …], not {input}")
    gradient_of(c, grad_out, input, "native_batch_norm_backward")
    channels = input.shape[1]
    needed = (save_mean, save_invstd) if train else (running_mean, running_var)
    for vector in (weight, *needed):
        if vector is not None:
            fits = eq(vector.numel, channels)
            c.require(fits, f"a vector of {channels} channels is needed, not {vector}")
    if None in needed:
        c.refuse(f"batch_norm in {'training' if train else 'evaluation'} needs its statistics")
    dtype = weight.dtype if weight is not None else input.dtype
    layout = suggested_layout(c, input)
    vector = Tensor((channels,), dtype)
    return wanted(output_mask, Tensor(input.shape, input.dtype, layout), vector, vector)


def batch_norm_backward(
    c: Context, grad_out: Tensor, input: Tensor, weight: Tensor, running_mean: Tensor | None,
    running_var: Tensor | None, save_mean: Tensor | None, save_var: Tensor | None, update: bool, eps: Value,
    output_mask: Mask, reserve: Tensor,
) -> tuple[Tensor | None, ...]:
    """As `native_batch_norm_backward`."""
    return native_batch_norm_backward(
        c, grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask
    )


def fused_rms_norm_backward(
    c: Context, grad_out: Tensor, input: Tensor, normalized_shape: Shape, rstd: Tensor, weight: Tensor | None,
    output_mask: Mask,
) -> tuple[Tensor | None, ...]:
    """[*a, *k], [*a, *k], k, statistics of a, [*k] -> [*a, *k], [*k]"""
    shape = _ends_with(c, input, normalized_shape, weight)
    gradient_of(c, grad_out, input, "_fused_rms_norm_backward")
    dtype = weight.dtype if weight is not None else input.dtype
    return wanted(output_mask, Tensor(input.shape, input.dtype), Tensor(shape, dtype))


def softmax_backward_data(
    c: Context, grad_output: Tensor, output: Tensor, dim: int, input_dtype: str | None
) -> Tensor:
    """[*a], [*a] -> [*a]"""
    axis(c, dim, grad_output.rank)
    same_shape(c, grad_output, output, "a gradient of softmax has the shape of its result")
    same_dtype(c, "softmax_backward", grad_output, output)
    return Tensor(output.shape, apply_law(c, "xx=x", output.dtype, "softmax_backward"))


# --- of reading a part: zeros, but for the gradient ------------------------------------------------------


def into_zeros(c: Context, gradient: Tensor, size: Shape, part: Tensor) -> Tensor:
    """Returns the gradient of a part of a tensor of this size: zeros, into which the part must broadcast."""
    fits_into(c, gradient, part.shape, f"a gradient must broadcast to {text(part.shape)}")
    return Tensor(size, gradient.dtype)


def select_backward(c: Context, grad_output: Tensor, input_sizes: Shape, dim: int, index: Dim) -> Tensor:
    """[*a, *z], (*a, n, *z) -> [*a, n, *z]"""
    whole = Tensor(sizes(c, (input_sizes,)), grad_output.dtype)
    return into_zeros(c, grad_output, input_sizes, select(c, whole, dim, index))


def slice_backward(
    c: Context, grad_output: Tensor, input_sizes: Shape, dim: int, start: Dim, end: Dim, step: Dim
) -> Tensor:
    """[*a, k, *z], (*a, n, *z) -> [*a, n, *z]"""
    whole = Tensor(sizes(c, (input_sizes,)), grad_output.dtype)
    return into_zeros(c, grad_output, input_sizes, slice_(c, whole, dim, start, end, step))


def diagonal_backward(
    c: Context, grad_output: Tensor, input_sizes: Shape, offset: Dim, dim1: int, dim2: int
) -> Tensor:
    """[*a, k], (*a, n, m) -> [*a, n, m]"""
    whole = Tensor(sizes(c, (input_sizes,)), grad_output.dtype)
    return into_zeros(c, grad_output, input_sizes, diagonal(c, whole, offset, dim1, dim2))


def unfold_backward(
    c: Context, grad_in: Tensor, input_sizes: Shape, dim: int, size: Dim, step: Dim
) -> Tensor:
    """[*a, (n - size)//step + 1, *z, size], (*a, n, *z) -> [*a, n, *z]"""
    whole = Tensor(sizes(c, (input_sizes,)), grad_in.dtype)
    gradient_of(c, grad_in, WINDOWS["unfold"](c, whole, dim, size, step), "unfold_backward")
    return whole


def trace_backward(c: Context, grad: Tensor, sizes: Shape) -> Tensor:
    """[], (n, m) -> [n, m]"""
    if len(sizes) != 2:
        c.refuse(f"trace is of a matrix, not of {text(sizes)}")
    rank_is(c, grad, "the gradient of trace", 0)
    return Tensor(sizes, grad.dtype)


def index_select_backward(c: Context, grad: Tensor, self_sizes: Shape, dim: int, index: Tensor) -> Tensor:
    """[*a, k, *z], (*a, n, *z), [k] -> [*a, n, *z]"""
    return index_add(c, Tensor(self_sizes, grad.dtype), dim, index, grad)


def gather_backward(
    c: Context, grad: Tensor, input: Tensor, dim: int, index: Tensor, sparse_grad: bool
) -> Tensor:
    """[*b, k, *y], [*a, n, *z], [*b, k, *y] -> [*a, n, *z]"""
    return scatter_add(c, Tensor(input.shape, grad.dtype), dim, index, grad)


def embedding_dense_backward(
    c: Context, grad_output: Tensor, indices: Tensor, num_weights: Dim, padding_idx: Dim = -1,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:
    """[*k, d], [*k], v -> [v, d]"""
    integral(c, indices)
    if not grad_output.shape:
        c.refuse("the gradient of an embedding has an axis of its dimensions")
    d = grad_output.shape[-1]
    count = product(grad_output.shape[:-1])
    fits = any_of((eq(count, indices.numel), eq(d, 0)))
    c.require(fits, f"there are {count} gradients for {indices.numel} indices")
    c.require(ge(num_weights, 0), f"there are {num_weights} embeddings")
    return Tensor((num_weights, d), grad_output.dtype)


# --- of losses -------------------------------------------------------------------------------------------


def classified(name: str) -> RuleFunction:
    """The rule of `nll_loss_backward` and `nll_loss2d_backward`."""

    def rule(
        c: Context, grad_output: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, reduction: int,
        ignore_index: Dim, total_weight: Tensor,
    ) -> Tensor:
        """gradient of the loss, [n, c, *s], classes [n, *s], weight [c], [] -> [n, c, *s]"""
        losses = LOSSES[name](c, input, target, weight, reduction=reduction, ignore_index=ignore_index)
        if input.rank == 1 and target.rank == 1:
            c.refuse(f"{name}_backward of {input} takes a target of rank 0, not {target}")
        if losses.shape:
            gradient_of(c, grad_output, losses, f"{name}_backward")
        else:
            c.require(eq(grad_output.numel, 1), f"the gradient of a number is one, not {grad_output}")
        c.require(eq(total_weight.numel, 1), f"the total weight is a number, not {total_weight}")
        return Tensor(input.shape, input.dtype)

    return rule


def multi_margin_loss_backward(
    c: Context, grad_output: Tensor, input: Tensor, target: Tensor, p: Value, margin: Value,
    weight: Tensor | None = None, reduction: int = 1,
) -> Tensor:
    """gradient of the loss, [n, c], classes [n], weight [c] -> [n, c]"""
    losses = LOSSES["multi_margin_loss"](c, input, target, p, margin, weight, reduction=reduction)
    gradient_of(c, grad_output, losses, "multi_margin_loss_backward")
    same_dtype(c, "multi_margin_loss_backward", grad_output, input)
    return Tensor(input.shape, input.dtype)


def multilabel_margin_loss_backward(
    c: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int, is_target: Tensor
) -> Tensor:
    """gradient of the loss, [n, c], classes [n, c], [n, c] -> [n, c]"""
    losses = LOSSES["multilabel_margin_loss"](c, input, target, reduction=reduction)
    gradient_of(c, grad_output, losses, "multilabel_margin_loss_backward")
    same_shape(c, target, is_target, "what is a target must be said of each")
    same_dtype(c, "multilabel_margin_loss_backward", grad_output, input)
    return Tensor(input.shape, input.dtype)


def cdist_backward(c: Context, grad: Tensor, x1: Tensor, x2: Tensor, p: Value, distances: Tensor) -> Tensor:
    """[*b, m, n], [*b, m, k], [*b, n, k], [*b, m, n] -> [*b, m, k]"""
    result = cdist(c, x1, x2, p)
    gradient_of(c, grad, result, "_cdist_backward")
    gradient_of(c, distances, result, "_cdist_backward")
    return Tensor((*result.shape[:-2], *x1.shape[-2:]), x1.dtype)


def pdist_backward(c: Context, grad: Tensor, input: Tensor, p: Value, distances: Tensor) -> Tensor:
    """[n*(n - 1)//2], [n, k], [n*(n - 1)//2] -> [n, k]"""
    result = pdist(c, input, p)
    gradient_of(c, grad, result, "_pdist_backward")
    gradient_of(c, distances, result, "_pdist_backward")
    return Tensor(input.shape, input.dtype)


def ctc_loss_backward(
    c: Context, grad: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Value, target_lengths: Value,
    neg_log_likelihood: Tensor, log_alpha: Tensor, blank: Dim, zero_infinity: Value = False,
) -> Tensor:
    """[n], [t, n, c], targets, lengths, [n], [n, t, 2*s + 1] -> [t, n, c]"""
    losses = LOSSES["ctc_loss"](c, log_probs, targets, input_lengths, target_lengths, blank, "none")
    for tensor in (grad, neg_log_likelihood):
        gradient_of(c, tensor, losses, "_ctc_loss_backward")
    return Tensor(log_probs.shape, log_probs.dtype, Layout.UNKNOWN)


# --- of the rest -----------------------------------------------------------------------------------------


def weight_norm_backward(
    c: Context, grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """[*a, n, *b], [*a, n, *b], twice [1, …, n, …, 1] -> [*a, n, *b], [1, …, n, …, 1]"""
    weight, _ = weight_norm_interface(c, saved_v, saved_g, dim)
    gradient_of(c, grad_w, weight, "the derivative of weight_norm")
    same_shape(c, saved_norms, saved_g, "a length is saved for each")
    return Tensor(saved_v.shape, saved_v.dtype), Tensor(saved_g.shape, saved_g.dtype)


def grid_sampler_backward(
    c: Context, grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
    align_corners: bool, output_mask: Mask,
) -> tuple[Tensor | None, ...]:
    """[b, c, *m], [b, c, *n], [b, *m, d] -> [b, c, *n], [b, *m, d]"""
    result = grid_sampler(c, input, grid, interpolation_mode, padding_mode, align_corners)
    gradient_of(c, grad_output, result, "grid_sampler_backward")
    found = wanted(output_mask, Tensor(input.shape, input.dtype), Tensor(grid.shape, grid.dtype))
    return found[0], Tensor(grid.shape, grid.dtype)  # the kernel makes the second in any case


def affine_grid_generator_backward(c: Context, grad: Tensor, size: Shape, align_corners: bool) -> Tensor:
    """[b, *n, d], (b, c, *n) -> [b, d, d + 1]"""
    d = len(size) - 2
    theta = Tensor((size[0], d, d + 1), grad.dtype)
    gradient_of(c, grad, affine_grid_generator(c, theta, size, align_corners), "affine_grid_generator")
    return Tensor(theta.shape, grad.dtype, Layout.UNKNOWN)


def value_selecting_reduction_backward(
    c: Context, grad: Tensor, dim: int, indices: Tensor, sizes: Shape, keepdim: bool
) -> Tensor:
    """[*a, *z], [*a, *z], (*a, n, *z) -> [*a, n, *z]"""
    at = axis(c, dim, len(sizes))
    rest = (*sizes[:at], *((1,) if keepdim else ()), *sizes[at + 1 :]) if sizes else ()
    for tensor in (grad, indices):
        gradient_of(c, tensor, Tensor(rest), "value_selecting_reduction_backward")
    return Tensor(sizes, grad.dtype)


def masked_select_backward(c: Context, grad: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    """[k], [*a], [*b] -> [*broadcast(a, b)]; data decides whether k is right"""
    boolean(c, mask)
    result = pointwise(c, "====", input, mask)
    return Tensor(result.shape, input.dtype, Layout.UNKNOWN)


def masked_scatter_backward(c: Context, grad_output: Tensor, mask: Tensor, sizes: Shape) -> Tensor:
    """[*a], [*b], sizes -> [*sizes]"""
    boolean(c, mask)
    pointwise(c, "====", grad_output, mask)
    return Tensor(sizes, grad_output.dtype)


def pack_padded_sequence_backward(
    c: Context, grad: Tensor, input_size: Shape, batch_sizes: Tensor, batch_first: bool
) -> Tensor:
    """[k, *d], (t, b, *d), [t] -> [t, b, *d], or as (b, t, *d) says where the batch is first"""
    return Tensor(sizes(c, (input_size,)), grad.dtype, Layout.UNKNOWN if batch_first else Layout.CONTIGUOUS)


def segment_reduce_backward(
    c: Context, grad: Tensor, output: Tensor, data: Tensor, reduce: str, lengths: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, initial: Value = None,
) -> Tensor:
    """[*a, k, *z], [*a, k, *z], [*a, n, *z], lengths [*a, k] or offsets [*a, k + 1] -> [*a, n, *z]"""
    result = segment_reduce(c, data, reduce, lengths, None, offsets, axis, True)
    for tensor in (grad, output):
        gradient_of(c, tensor, result, "_segment_reduce_backward")
    return Tensor(data.shape, data.dtype)


def agreeing(name: str, parameters: str) -> dict[str, Rule]:
    """The rule of a kernel whose operands have one shape, which is that of the result."""
    names = tuple(parameters.split())

    def rule(c: Context, **given: Any) -> Tensor:
        """[*a], [*a], … -> [*a]"""
        first, *others = (value for value in given.values() if isinstance(value, Tensor))
        for other in others:
            gradient_of(c, other, first, name)
        dtype = apply_law(c, "====", first.dtype, name)
        return Tensor(first.shape, dtype, Layout.UNKNOWN)

    return {name: Rule(rule, names, "", frozenset(names), frozenset(names[:2]))}


def attention_backward(
    c: Context, grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor,
    dropout_p: Value = 0.0, is_causal: Value = False, attn_mask: Tensor | None = None, scale: Value = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """[b, h, l, e], q [b, h, l, e], k and v [b, h, s, e], [b, h, l, e], [b, h, l] -> as q, k and v"""
    for tensor, like in ((grad_out, query), (out, query), (value, key)):
        rank_is(c, tensor, "an operand of attention", 4)
        gradient_of(c, tensor, like, "the derivative of attention")
    same_shape(c, logsumexp, Tensor(query.shape[:3], logsumexp.dtype), "there is a sum for each query")
    for i in (0, 1, 3):
        c.require(eq(query.shape[i], key.shape[i]), f"queries {query} and keys {key} do not fit")
    query, key, value = (Tensor(t.shape, t.dtype, Layout.UNKNOWN) for t in (query, key, value))
    return query, key, value


def embedding_bag_backward(
    c: Context, grad: Tensor, indices: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor,
    num_weights: Dim, scale_grad_by_freq: Value, mode: Value, per_sample_weights: Tensor | None = None,
    padding_idx: Dim = -1,
) -> Tensor:
    """[b, d], [n], the bag of each, … -> [v, d]"""
    rank_is(c, grad, "the gradient of embedding_bag", 2)
    rank_is(c, indices, "the indices of embedding_bag", 1)
    integral(c, indices)
    c.require(ge(num_weights, 0), f"there are {num_weights} embeddings")
    return Tensor((num_weights, grad.shape[1]), grad.dtype)


def conv_tbc_backward(
    c: Context, grad: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: Dim
) -> tuple[Tensor, Tensor, Tensor]:
    """[n + 2*p - k + 1, b, o], [n, b, i], [k, i, o], [o] -> as input, weight and bias"""
    gradient_of(c, grad, WINDOWS["conv_tbc"](c, input, weight, bias, pad), "conv_tbc_backward")
    input, weight, bias = (Tensor(t.shape, t.dtype) for t in (input, weight, bias))
    return input, weight, bias


RULES: Final[dict[str, RuleFunction | Rule]] = {
    **POINTWISE,
    **THROUGH,
    **UPSAMPLING,
    **{
        f"fractional_max_pool{n}d_backward": through(
            f"fractional_max_pool{n}d_backward",
            WINDOWS[f"fractional_max_pool{n}d"],
            f"{GRAD} kernel_size output_size indices",
        )[f"fractional_max_pool{n}d_backward"]
        for n in (2, 3)
    },
    **agreeing("cumprod_backward", "grad input dim output"),
    **agreeing("cummaxmin_backward", "grad input indices dim"),
    **agreeing("_dirichlet_grad", "x alpha total"),
    **agreeing("_standard_gamma_grad", "input output"),
    **agreeing("_masked_softmax_backward", "grad_output output mask dim"),
    **agreeing("matrix_exp_backward", "input grad"),
    "elu_backward": replace(_ELU, positional=ELU_PARAMETERS, keywords=frozenset(ELU_PARAMETERS)),
    "_adaptive_avg_pool2d_backward": adaptive_pool_backward(2, maximum=False),
    "_adaptive_avg_pool3d_backward": adaptive_pool_backward(3, maximum=False),
    "_cdist_backward": cdist_backward,
    "_ctc_loss_backward": ctc_loss_backward,
    "_embedding_bag_dense_backward": embedding_bag_backward,
    "_fused_rms_norm_backward": fused_rms_norm_backward,
    "_log_softmax_backward_data": softmax_backward_data,
    "_pack_padded_sequence_backward": pack_padded_sequence_backward,
    "_pdist_backward": pdist_backward,
    "_prelu_kernel_backward": prelu_kernel_backward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
    "_segment_reduce_backward": segment_reduce_backward,
    "_softmax_backward_data": softmax_backward_data,
    "_weight_norm_differentiable_backward": weight_norm_backward,
    "_weight_norm_interface_backward": weight_norm_backward,
    "adaptive_max_pool2d_backward": adaptive_pool_backward(2, maximum=True),
    "adaptive_max_pool3d_backward": adaptive_pool_backward(3, maximum=True),
    "affine_grid_generator_backward": affine_grid_generator_backward,
    "batch_norm_backward": batch_norm_backward,
    "binary_cross_entropy_backward": binary_cross_entropy_backward,
    "conv_tbc_backward": conv_tbc_backward,
    "convolution_backward": convolution_backward,
    "diagonal_backward": diagonal_backward,
    "embedding_backward": embedding_dense_backward,
    "embedding_dense_backward": embedding_dense_backward,
    "gather_backward": gather_backward,
    "gelu_backward": gelu_backward,
    "glu_backward": glu_backward,
    "grid_sampler_2d_backward": grid_sampler_backward,
    "grid_sampler_3d_backward": grid_sampler_backward,
    "huber_loss_backward": huber_loss_backward,
    "index_select_backward": index_select_backward,
    "log_sigmoid_backward": log_sigmoid_backward,
    "masked_scatter_backward": masked_scatter_backward,
    "masked_select_backward": masked_select_backward,
    "mish_backward": mish_backward,
    "mse_loss_backward": loss_backward("mse_loss_backward", "x==x"),
    "multi_margin_loss_backward": multi_margin_loss_backward,
    "multilabel_margin_loss_backward": multilabel_margin_loss_backward,
    "native_batch_norm_backward": native_batch_norm_backward,
    "native_dropout_backward": native_dropout_backward,
    "native_group_norm_backward": native_group_norm_backward,
    "native_layer_norm_backward": native_layer_norm_backward,
    "nll_loss2d_backward": classified("nll_loss2d"),
    "nll_loss_backward": classified("nll_loss"),
    "rrelu_with_noise_backward": rrelu_with_noise_backward,
    "select_backward": select_backward,
    "slice_backward": slice_backward,
    "smooth_l1_loss_backward": loss_backward("smooth_l1_loss_backward", "x==x"),
    "soft_margin_loss_backward": soft_margin_loss_backward,
    "trace_backward": trace_backward,
    "unfold_backward": unfold_backward,
    "value_selecting_reduction_backward": value_selecting_reduction_backward,
}
