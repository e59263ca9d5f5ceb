"""The casts that autocast makes of an operator's operands, as in torch for the CPU (`autocast_mode.cpp`).

Products get the dtype that autocast is set to, operators that need more precision float32, and operators that
join tensors the widest dtype.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from ..host.trees import pytree
from ..recorder import Recorder

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
    linalg_cond linalg_matrix_rank linalg_inv_ex linalg_solve linalg_cholesky linalg_cholesky_ex linalg_svd
    linalg_svdvals linalg_eig linalg_eigvals linalg_eigh linalg_eigvalsh linalg_qr linalg_lstsq
    linalg_tensorinv linalg_tensorsolve linalg_householder_product
    fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn
    fft_ifftn fft_rfftn fft_irfftn
    """.split()
)
"""Computed in float32."""
WIDEST: Final = frozenset("cat stack index_copy".split())
"""Computed in float32, if one of the operands is."""
NOT_FOLLOWED: Final = frozenset(
    """
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell bilinear chain_matmul inner
    linalg_multi_dot tensordot einsum pad interpolate
    """.split()
)
"""Made of several operators, each with its own dtype."""


def cast(
    run: Recorder, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments of a call within a region of autocast."""
    if op in NOT_FOLLOWED:
        run.generator.approximate(f"the dtypes that autocast chooses within {op} are not followed")
        return args, kwargs
    if op in LOWER:
        wanted = torch.get_autocast_dtype(run.kernels)
    elif op in PRECISE:
        wanted = torch.float32
    elif op in WIDEST:
        found = {leaf.dtype for leaf in pytree.tree_leaves((args, kwargs)) if _is_cast(leaf)}
        wanted = torch.float32 if torch.float32 in found else torch.get_autocast_dtype(run.kernels)
    else:
        return args, kwargs

    def one(leaf: Any) -> Any:
        return leaf.to(wanted) if _is_cast(leaf) and leaf.dtype != wanted else leaf

    args, kwargs = pytree.tree_map(one, (args, kwargs))
    return args, kwargs


def _is_cast(leaf: Any) -> bool:
    """Returns whether autocast would cast the value: a tensor of floats other than float64."""
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.dtype != torch.float64
