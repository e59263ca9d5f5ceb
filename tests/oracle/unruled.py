"""What torch has and no rule is for, with the reasons: operators of ATen, functions of torch's namespaces and
methods of tensors.

Every such name is ruled, answered by the recorder as a question about a tensor, a function in Python that the
recorder enters, or one of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

import torch
import torch._tensor
import torch.functional
import torch.nn.functional as F
from torch.overrides import get_overridable_functions

from anyshape.constraints.ir.opnames import canonical
from anyshape.constraints.rules import default_rules
from anyshape.tracer.host.operators import INSTALLED
from anyshape.tracer.values import listed, symbolic

SPACES: Final = {
    "torch": torch,
    "torch.functional": torch.functional,
    "torch.nn.functional": F,
    "torch.Tensor": torch.Tensor,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
    "torch.special": torch.special,
}
ENTERED: Final = ("torch.functional", "torch.nn.functional", "torch._lowrank", "torch._tensor")
"""The modules whose functions are recorded call by call."""

REASONS: Final[dict[str, str]] = {
    "sparse or nested tensors": """
        *sparse* *coo* *_csr* *_csc* *_bsr* *_bsc* *nested* *jagged* *padded_dense* to_padded_tensor
        _coalesce* _dimI _dimV dense_dim _indices_* indices_copy _values_* values_copy ccol_indices*
        col_indices_* crow_indices_* row_indices* _to_dense to_dense_* _spdiags
        _spsolve dsmm hsmm hspmm saddmm smm spmm sspaddmm _cslt_* matmul_backward native_norm
    """,
    "quantised tensors": """
        *quantiz* fbgemm_* q_* qscheme int_repr _choose_qparams* choose_qparams* _saturate_weight*
        _dyn_quant_* _convert_weight_to_int4pack* _weight_int4pack_mm* _wrapped_linear_prepack
        _fake_quantize_learnable_*_backward _rowwise_prune _mixed_dtypes_linear
    """,
    "dims with names, which torch has no longer since 2.13": "align_* refine_names rename*",
    "a kernel of another device than the CPU, or of a library": """
        *cudnn* *miopen* *mps* *mkldnn* *_triton_* *vulkan* *_xla* *_nnpack_* _cufft_* xpu mtia ipu _to_cpu
        batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats*
        batch_norm_stats batch_norm_update_stats _conv_depthwise2d conv_depthwise3d *_overrideable _thnn_*
        _fused_dropout _masked_scale _fill_mem_eff_dropout_mask_ _efficient_attention_backward
        _flash_attention_forward_no_dropout_inplace _scaled_*mm* _philox_* _pin_memory
        max_pool2d_backward linear_backward record_stream _amp_* _add_relu*
    """,
    "a step of an algorithm whose whole has a rule": """
        _batch_norm_impl_index* slow_conv* _slow_conv2d* thnn_conv2d _cholesky_solve_helper
        _compute_linear_combination _convolution_double_backward _cummax_helper _cummin_helper
        _embedding_bag_backward _embedding_bag_per_sample_weights_backward adaptive_avg_pool3d_backward
        _grid_sampler_2d_cpu_fallback* _fused_sdp_choice _sobol_engine_* linalg__powsum glu_jvp
        glu_backward_jvp infinitely_differentiable_gelu_backward slice_inverse
    """,
    "a step of an optimiser, which no model calls": "_fused_adagrad* _fused_adam* _fused_sgd*",
    "internals of transforms, of automatic differentiation, of modes": """
        _add_batch_dim _remove_batch_dim _autocast_to_* autocast _backward _fw_primal* _make_dual*
        _unpack_dual _efficientzerotensor _is_zerotensor _new_zeros_with_same_feature_meta
        *shallow_copy* _has_same_storage_numel _debug_has_internal_overlap set_data
        output_nr is_leaf retains_grad get_gradients _version
    """,
    "only called by old programs": "_cast_* __complex__ __long__ __nonzero__ __div__ __idiv__",
    "access to the data of a tensor, or to their location": """
        apply_ map2_ const_data_ptr data_ptr untyped_storage is_set_to is_distributed _is_view from_file
        _copy_from* _reshape_from_tensor _resize_output* _print
    """,
    "an iteration until its data are good enough": "lobpcg",
    "questions about dtypes, which no shape depends on": "can_cast promote_types",
    "for torch's own tests": "_test_* _foobar",
}
"""By the reason, the names or patterns of them."""

QUESTIONS = {**symbolic.QUESTIONS, **listed.QUESTIONS}


_COMPILERS = "made by compilers, not called by programs"
OF_SOME_RELEASES: Final = frozenset({
    "align_*", "const_data_ptr", "flex_gemm", "refine_names", "register_hook", "rename*", "switch",
})
"""What of the tables not every supported release of torch has."""

HIGHER_ORDER: Final = {
    "auto_functionalize": _COMPILERS,
    "flex_attention": "torch compiles its callers, so that no call of it is recorded",
    "flex_attention_backward": "as `flex_attention`",
    **({"flex_gemm": _COMPILERS} if INSTALLED >= (2, 14) else {}),
    "inline_asm_elementwise": "for GPUs only",
    "invoke_quant": _COMPILERS,
    "invoke_quant_packed": _COMPILERS,
    "invoke_subgraph": "entered in exported programs, and not called by others",
    "local_map_hop": _COMPILERS,
    "register_hook": "a hook of automatic differentiation",
    "while_loop_stack_output": "a step of the derivative of `while_loop`",
}
"""torch's higher-order operators that are no rules, and why."""


def patterns() -> Iterator[str]:
    for names in REASONS.values():
        yield from names.split()


def reason_of(name: str) -> str | None:
    return next((r for r, names in REASONS.items() if any(fnmatchcase(name, p) for p in names.split())), None)


def is_ruled(name: str) -> bool:
    """Has the operator a rule, or the one that it is the in-place form of?"""
    op = canonical(name)
    inplace = op.endswith("_") and not op.endswith("__")
    return op in default_rules or (inplace and op[:-1] in default_rules)


def is_entered(function: Any) -> bool:
    return inspect.isfunction(function) and function.__module__ in ENTERED


def unruled_functions() -> set[str]:
    """Functions and methods that may be overridden and that neither rule nor question nor entry is for."""
    found = set()
    for space, functions in get_overridable_functions().items():
        if space in SPACES.values():
            for function in functions:
                name = function.__name__
                ruled = is_ruled(name) or is_ruled(f"torch.{name}")
                if not (ruled or name in QUESTIONS or is_entered(function) or name == "__get__"):
                    found.add(name)
    return found


def packets(namespace: str) -> set[str]:
    """The names of all operators that are registered in a namespace, without their overloads."""
    split = (name.partition("::") for name in torch._C._dispatch_get_all_op_names())
    return {name.partition(".")[0] for space, _, name in split if space == namespace}


def unruled_operators() -> set[str]:
    questions = {name for name in QUESTIONS if not name.startswith("__")}
    return {name for name in packets("aten") - questions if not is_ruled(f"aten.{name}.default")}
