"""What autocast makes of the operands of an operator, as torch has it for the CPU (`autocast_mode.cpp`):
products are of the dtype that it is given, what needs more precision of float32, and what joins tensors of
the widest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import torch

from .symbolic import SymbolicTensor

if TYPE_CHECKING:
    from .record import Recording

LOWER: Final = frozenset(
    """
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution
    bmm mm addmm addbmm baddbmm linear matmul rmatmul linalg_vecdot prelu scaled_dot_product_attention
    """.split()
)
"""Computed in the dtype of autocast."""
PRECISE: Final = frozenset(
    """
    avg_pool3d max_pool3d max_unpool2d max_unpool3d adaptive_avg_pool3d grid_sample grid_sampler
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d
    polar prod quantile nanquantile stft istft cdist trace view_as_complex cholesky cholesky_inverse
    cholesky_solve inverse lu_solve orgqr ormqr pinverse
    binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss huber_loss smooth_l1_loss
    cosine_embedding_loss nll_loss nll_loss_nd cross_entropy cross_entropy_loss hinge_embedding_loss
    poisson_nll_loss margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss ctc_loss
    kl_div multilabel_margin_loss
    """.split()
)
"""Computed in float32, as is what torch.fft and torch.linalg have."""
WIDEST: Final = frozenset("cat stack index_copy".split())
"""Computed in float32, if one of the operands is."""
NOT_FOLLOWED: Final = frozenset(
    """
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell bilinear chain_matmul inner
    tensordot einsum pad interpolate
    """.split()
)
"""Made of several operators, each with its own dtype."""


def cast(
    run: Recording, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call within a region of autocast."""
    if op in NOT_FOLLOWED:
        run.generator.approximate(f"the dtypes that autocast chooses within {op} are not followed")
        return args, kwargs
    if op in LOWER:
        wanted = torch.get_autocast_dtype(run.kernels)
    elif op in PRECISE or op.startswith(("fft_", "linalg_")):
        wanted = torch.float32
    elif op in WIDEST:
        found: set[torch.dtype] = set()
        _mapped((args, kwargs), lambda tensor: found.add(tensor.dtype))
        wanted = torch.float32 if torch.float32 in found else torch.get_autocast_dtype(run.kernels)
    else:
        return args, kwargs
    args, kwargs = _mapped((args, kwargs), lambda t: t if t.dtype == wanted else t.to(wanted))
    return args, kwargs


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """The value with each tensor in it mapped that autocast would cast: of floats, but no double ones."""
    if type(value) is tuple or type(value) is list:
        return type(value)(_mapped(part, function) for part in value)
    if type(value) is dict:
        return {key: _mapped(part, function) for key, part in value.items()}
    tensor = isinstance(value, torch.Tensor | SymbolicTensor)
    return function(value) if tensor and value.is_floating_point() and value.dtype != torch.float64 else value
