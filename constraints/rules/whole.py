"""Operators that need the rank of their operands, and the reason: those without a row in `reach.py`.

An operator of `FEW` accepts only a few ranks, each with a law of its own, so that going through them is
exact. For the others no law for all ranks at once is known yet, so they are examined rank by rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import derivatives, prims

FEW: Final = frozenset(
    """
    _transform_bias_rescale_qkv _native_multi_head_attention _transformer_encoder_layer_fwd
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_cudnn_attention
    _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
    _scaled_dot_product_fused_attention_overrideable
    cartesian_prod combinations meshgrid block_diag permute permute_copy t t_copy H repeat diag vander
    _grouped_mm _addmm_activation _int_mm addbmm addmm addmv addr baddbmm bmm chain_matmul dot ger
    linalg_multi_dot mm mv outer trace vdot _weight_int8pack_mm
    _pdist_forward pdist cosine_embedding_loss multi_margin_loss multilabel_margin_loss
    multilabel_margin_loss_forward nll_loss2d
    _nested_tensor_from_mask_left_aligned _embedding_bag _embedding_bag_forward_only embedding_bag
    bincount dropout1d corrcoef cov multinomial
    interpolate upsample upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d
    upsample_bicubic2d upsample_trilinear3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
    _upsample_lanczos2d_aa reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
    replication_pad2d replication_pad3d _pad_circular grid_sample grid_sampler grid_sampler_2d
    grid_sampler_3d affine_grid affine_grid_generator
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    stft istft
    _convolution _convolution_mode convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d conv_tbc max_pool1d max_pool2d max_pool3d max_pool1d_with_indices
    max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d
    lp_pool3d adaptive_avg_pool1d adaptive_avg_pool3d _adaptive_avg_pool2d
    _adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d
    fractional_max_pool3d fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices
    max_unpool1d max_unpool2d max_unpool3d im2col col2im fold
    """.split()
)
"""Operators that refuse tensors of more dims than their arguments, or their names, imply."""

_WHOLE: Final[Mapping[str, str]] = {
    "no shape of a tensor decides anything, or no tensor is taken": """
        arange asarray bartlett_window blackman_window empty_permuted empty_strided eye fft_fftfreq
        fft_rfftfreq hamming_window hann_window kaiser_window linspace logspace randint randperm range
        scalar_tensor tensor as_tensor tril_indices triu_indices _make_dep_token broadcast_shapes prims::empty
        prims::empty_permuted prims::empty_strided prims::full prims::iota prims::maximum_value
        prims::minimum_value prims::normal prims::scalar_tensor prims::uniform
        sym_size sym_numel sym_stride sym_is_contiguous sym_storage_offset sym_add sym_sub sym_mul
        sym_floordiv sym_lshift sym_rshift sym_mod sym_truediv sym_pow sym_neg sym_pos sym_abs sym_max
        sym_min sym_sum sym_float sym_int sym_index sym_trunc sym_floor sym_ceil sym_round sym_sqrt
        sym_log2 sym_eq sym_ne sym_lt sym_le sym_gt sym_ge sym_and sym_or sym_not sym_ite
        _assert_scalar _assert_async _assert_tensor_metadata _check _check_is_size
        _functional_assert_async _functional_assert_scalar _functional_sym_constrain_range
        _functional_sym_constrain_range_for_size sym_constrain_range sym_constrain_range_for_size""",
    "all dims change their order": "T numpy_T",
    "the rank is a size of the result, or the number of results": """
        nonzero_numpy nonzero_static _shape_as_tensor gradient histogramdd
        _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors""",
    "each dim of one operand is joined with the dim of another at the same place": "kron",
    "dims of several operands stand side by side": """
        inner tensordot index index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate
        embedding_renorm _dim_arange""",
    "one operand has a dim less than another, so that the rest stands at different places": """
        select_scatter diagonal_scatter cross_entropy cross_entropy_loss nll_loss nll_loss_nd nll_loss_forward
        nll_loss2d_forward segment_reduce index_copy linalg_householder_product orgqr ormqr
        bilinear _trilinear gaussian_nll_loss multilabel_soft_margin_loss
        torch_nn::_linear_cross_entropy_batch_chunked
        torch_nn::_linear_cross_entropy_batch_chunked_no_reduction""",
    "a vector and a batch of them, or of matrices, are told apart by the ranks": """
        _linalg_solve_ex linalg_solve linalg_solve_ex linalg_ldl_solve linalg_lstsq linalg_lu_solve lu_solve
        linalg_solve_triangular triangular_solve cholesky_solve linalg_tensorinv linalg_tensorsolve lu_unpack
        linalg_norm nuclear_norm frobenius_norm cross linalg_cross searchsorted _linalg_check_errors
        _masked_softmax _scaled_dot_product_attention_math _cdist_forward triplet_margin_loss""",
    "several operands broadcast into one of them, whose shape is not that of the result": """
        masked_scatter slice_scatter put margin_ranking_loss sum_to_size _grad_sum_to_size _prelu_kernel
        rrelu_with_noise rrelu_with_noise_functional""",
    "a channel is where the rank says": """
        native_group_norm _weight_norm _weight_norm_interface norm_except_dim dropout3d""",
    "the memory, and not the shape, decides": """
        as_strided as_strided_copy as_strided_scatter new_empty_strided _reshape_alias _reshape_alias_copy
        fill_diagonal_ new new_tensor resize resize_as set prims::as_strided prims::as_strided_scatter
        prims::resize prims::copy_strided""",
    "tensors of a list are laid side by side": """
        _chunk_cat flatten_dense_tensors unflatten_dense_tensors pad_sequence _pad_enum
        _pad_packed_sequence""",
    "the elements are counted, and which of them is told in the shape of the input": """
        _unique _unique2 _unique_consecutive histogram""",
    "data are drawn in the shape of parameters": "_sample_dirichlet",
    "functions run on parts of tensors": """
        row stack_rows carried shaped_by cond switch while_loop scan map associative_scan""",
    "the gradients of tensors have their sizes": "gradient_by gradients_by grad",
    "sparse tensors are known as matrices": """
        _convert_indices_from_coo_to_csr sparse_coo_tensor sparse_csr_tensor _sparse_mm to_dense to_sparse
        to_sparse_csr coalesce indices _indices values _values crow_indices col_indices""",
    "a kernel of another device, or of quantized models, in graphs of known ranks": """
        _efficient_attention_forward _flash_attention_forward _flash_attention_backward
        _scaled_dot_product_cudnn_attention_backward _scaled_dot_product_efficient_attention_backward
        _scaled_dot_product_flash_attention_backward _scaled_dot_product_fused_attention_overrideable_backward
        _pack_padded_sequence _ctc_loss ctc_loss mkldnn_rnn_layer _fake_quantize_learnable_per_channel_affine
        _fake_quantize_learnable_per_tensor_affine _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        _fused_moving_avg_obs_fq_helper _fused_moving_avg_obs_fq_helper_functional
        fused_moving_avg_obs_fake_quant _scaled_mm _scaled_mm_v2 _fft_c2c _fft_r2c _fft_c2r""",
}


ELEMENTWISE: Final = frozenset(
    "silu_backward sigmoid_backward tanh_backward hardswish_backward hardsigmoid_backward logit_backward "
    "threshold_backward hardshrink_backward softshrink_backward leaky_relu_backward hardtanh_backward "
    "softplus_backward elu_backward".split()
)
"""Derivatives of elementwise functions, which are elementwise functions themselves."""

IN_GRAPHS: Final = "it stands in graphs of derivatives and decompositions, which are traced at known ranks"

WHOLE: Final[Mapping[str, str]] = {
    **dict.fromkeys({*derivatives.RULES, *prims.RULES} - ELEMENTWISE, IN_GRAPHS),
    **{op: reason for reason, names in _WHOLE.items() for op in names.split()},
}
"""For each operator, the reason why it needs the rank of its operands."""
