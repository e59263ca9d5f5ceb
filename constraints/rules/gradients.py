"""Gradients: the sizes of an argument, or of a result and an argument.

These rules do not find out which results of a program depend on which tensors by operators that torch can
differentiate. The code that records a gradient decides whether it certainly exists
(tracer/patches/gradients.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..ir.language import Context, Layout, Tensor
from ..terms.dims import Dim
from ..terms.formula import all_of, eq

Several = Tensor | tuple[Tensor, ...]


def gradient_by(
    c: Context, input: Tensor, outputs: tuple[Tensor, ...], grad_outputs: tuple[Tensor | None, ...] = ()
) -> Tensor:
    """`[*d], ([*o], …), ([*o], …) -> [*d]`: a sum, over the results, of their gradients times the factors"""
    _require_like(c, outputs, grad_outputs)
    return _like(input)


def gradients_by(c: Context, input: Tensor, size: Dim) -> Tensor:
    """`[*d] -> [n, *d]`: n gradients like the one that is given, side by side in whatever order"""
    return Tensor((size, *input.shape), input.dtype, Layout.UNKNOWN)


def grad(
    c: Context,
    outputs: Several,
    inputs: Several,
    grad_outputs: Several | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """`([*o], …), ([*d], …), ([*o], …) -> ([*d], …)`; an output without a factor has one element

    With `is_grads_batched` each factor has one more dim in front, of size n, and so has each gradient. With
    `allow_unused`, and without `materialize_grads`, None is the gradient by what no output depends on.
    """
    results, factors = _several(outputs), _several(grad_outputs) or (None,) * len(_several(outputs))
    if len(results) != len(factors):
        c.refuse(f"{len(results)} outputs take as many factors, not {len(factors)}")
    if is_grads_batched or (allow_unused and not materialize_grads):
        c.approximate("gradients that are batched, or may be None, are not followed")
    c.approximate("whether the outputs depend on the inputs so that torch can differentiate", "accept")
    for output, factor in zip(results, factors, strict=True):
        if factor is None:
            c.require(eq(output.numel, 1), f"only one element has a gradient by itself, not {output}")
    if not is_grads_batched:
        _require_like(c, results, factors)
    return tuple(map(_like, _several(inputs)))


def _several(given: Several | None) -> tuple[Tensor, ...]:
    return () if given is None else (given,) if isinstance(given, Tensor) else tuple(given)


def _like(input: Tensor) -> Tensor:
    return Tensor(input.shape, input.dtype, Layout.UNKNOWN)


def _require_like(c: Context, outputs: tuple[Tensor, ...], factors: tuple[Tensor | None, ...]) -> None:
    for output, factor in zip(outputs, factors, strict=False):
        if factor is not None:
            told = f"the factor of a gradient is like the output {output}, not {factor}"
            if factor.rank != output.rank:
                c.refuse(told)
            c.require(all_of(map(eq, output.shape, factor.shape)), told)


DIFFERENTIABLE: Final = frozenset(
    """
    H T abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d add addbmm addcdiv addcmul addmm addmv addr alias alias_copy
    all amax amin aminmax angle any arange argmax argmin argsort asin asinh atan atan2 atanh atleast_1d
    atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d baddbmm bfloat16 bilinear
    binary_cross_entropy binary_cross_entropy_with_logits block_diag bmm bool broadcast_tensors
    broadcast_to bucketize byte cartesian_prod cat ceil celu char chunk clamp clamp_max clamp_min clone
    column_stack combinations conj constant_pad_nd contiguous conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d copysign corrcoef cos cosh cosine_embedding_loss cosine_similarity
    count_nonzero cov cross cross_entropy cross_entropy_loss cummax cummin cumprod cumsum deg2rad det
    detach diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff div dot double dsplit
    dstack einsum elu embedding empty_like eq erf erfc erfinv exp exp2 expand expand_as expand_copy
    expm1 eye flatten flip fliplr flipud float floor fmax fmin fmod frac full full_like gather
    gaussian_nll_loss ge gelu getitem gradient_by gradients_by group_norm gt half hardshrink hardswish
    hardtanh hsplit hstack hypot index_add index_copy index_fill index_put index_select inner int
    interpolate inverse isclose isfinite isin isinf isnan isneginf isposinf isreal kl_div kron kthvalue
    l1_loss layer_norm ldexp le leaky_relu lerp lgamma linalg_cross linalg_matrix_norm linalg_norm
    linalg_slogdet linalg_vecdot linalg_vector_norm linear log log10 log1p log2 log_softmax logaddexp
    logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logsigmoid logsumexp
    long lt mH mT margin_ranking_loss masked_fill masked_scatter matmul matrix_exp matrix_power max
    max_pool1d max_pool2d max_pool3d maximum mean median meshgrid min minimum mish mm movedim mse_loss
    msort mul mv nan_to_num nanmean nanmedian nansum narrow narrow_copy native_group_norm ne neg
    new_empty new_full new_ones new_zeros nll_loss normalize ones ones_like outer pad pairwise_distance
    permute permute_copy pixel_shuffle pixel_unshuffle poisson_nll_loss positive pow prelu prod rad2deg
    ravel rdiv real reciprocal relu relu6 remainder repeat repeat_interleave require reshape reshape_as
    resolve_conj resolve_neg rmatmul rms_norm roll rot90 round row rpow rremainder rsqrt rsub
    scalar_tensor scatter scatter_add searchsorted select select_scatter selu sgn short sigmoid sign
    silu sin sinc sinh slice slice_scatter smooth_l1_loss softmax softmin softplus softshrink softsign
    sort split split_with_sizes split_with_sizes_copy sqrt square squeeze squeeze_copy stack stack_rows
    std std_mean sub sum sum_to_size t t_copy take take_along_dim tan tanh tanhshrink tensordot
    threshold tile to topk trace transpose transpose_copy trapezoid tril triplet_margin_loss triu trunc
    unbind unbind_copy unflatten unfold unfold_copy unsqueeze unsqueeze_copy var var_mean vdot view
    view_as view_copy vsplit vstack where xlogy zeros zeros_like
    """.split()
)
"""Operators that torch differentiates up to the second order, in both directions and for many unit vectors at
once, wherever it runs them; and such as have no gradient and let others pass. Without the arguments in
`BUT_NOT_WITH`.
"""
DIFFERENTIABLE_ONCE: Final = frozenset(
    """
    alpha_dropout bernoulli cdist dropout dropout1d dropout2d dropout3d feature_alpha_dropout glu
    grid_sample hardsigmoid huber_loss multinomial native_layer_norm nonzero pdist rand rand_like
    randint randint_like randn randn_like randperm scaled_dot_product_attention
    """.split()
)
"""Further operators, through which torch takes a gradient backwards, once and of one vector, or lets that of
others pass.
"""
BUT_NOT_WITH: Final = ("out", "memory_format", "sparse", "max_norm")
_BY_WEIGHT: Final = "binary_cross_entropy nll_loss nll_loss2d nll_loss_nd multi_margin_loss".split()
_BY_SAMPLES: Final = "fractional_max_pool2d", "fractional_max_pool3d"
NOT_BY: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_BY_WEIGHT, ("weight",)),
    **dict.fromkeys(_BY_SAMPLES, ("random_samples", "_random_samples")),
    "binary_cross_entropy_with_logits": ("weight", "pos_weight"),
    "soft_margin_loss": ("target",),
    "native_batch_norm": ("running_mean", "running_var"),
}
"""Operators that torch refuses to run where one of these arguments requires gradients."""
PERHAPS_NOT_BY: Final = dict.fromkeys(("cross_entropy", "cross_entropy_loss"), ("weight",))
"""Those that it refuses so for some values of other arguments."""


RULES = {"gradient_by": gradient_by, "gradients_by": gradients_by, "grad": grad}
