"""The kernels of autograd's graphs, judged by torch.

Where a kernel does not look at the shape of a gradient, and reads beyond it, only gradients that fit are
tried: sizes that it does look at differ from those of the forward's result.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.derivatives import POINTWISE, RULES
from anyshape.typecheck.testing.differential import Case, D, T, check_case, lower, run_rule

aten = torch.ops.aten
judge = Judge(Rules(RULES))
i64, f64, flag, f16 = torch.int64, torch.float64, torch.bool, torch.float16
ALL, FIRST = [True] * 3, [True, False, False]


def case(op: str, *args: Any, **kwargs: Any) -> Case:
    where = kwargs.pop("where", "")
    return Case(op, getattr(aten, op), args, kwargs, where)


EXTRA: dict[str, tuple[Any, ...]] = {
    "threshold_backward": (0.5,),
    "hardshrink_backward": (0.5,),
    "softshrink_backward": (0.5,),
    "leaky_relu_backward": (0.1, False),
    "hardtanh_backward": (-1.0, 1.0),
    "softplus_backward": (1.0, 20.0),
}
"""What comes after a gradient and an input."""


def pointwise() -> list[Case]:
    found = []
    for op in POINTWISE:
        rest = EXTRA.get(op, ())
        found += [case(op, T(g), T(x), *rest) for g, x in (("a b", "c b"), ("b", "a b"), ("", "a b"))]
        found += [case(op, T("a b", g), T("a b", x), *rest) for g, x in ((f64, torch.float32), (i64, i64))]
        found.append(case(op, T("a b", permute=(1, 0)), T("a b", permute=(1, 0)), *rest))
    return found


IMAGE, WINDOW = "n c h w", ([2, 2], [2, 2], [0, 0])

CASES = [
    *pointwise(),
    case("elu_backward", T("a b"), 1.0, 1.0, 1.0, False, T("c b")),
    case("elu_backward", T("a b", i64), 1.0, 1.0, 1.0, False, T("a b", i64)),
    *(case("rrelu_with_noise_backward", T("a b"), T("c b"), T("d b"), 0.1, 0.3, train,
           False) for train in (True, False)),
    case("rrelu_with_noise_backward", T("a b", i64), T("c b", i64), T("c b", i64), 0.1, 0.3, False, False),
    *(case(f"{loss}_backward", *operands, *rest)
      for loss, rest in (("mse_loss", (1,)), ("smooth_l1_loss", (1, 1.0)), ("soft_margin_loss", (0,)))
      for operands in ((T("a b"), T("c b"), T("d b")), (T("a b", f64), T("a b"), T("b")),
                       (T("a b", permute=(1, 0)), T("a b", permute=(1, 0)), T("a b", permute=(1, 0))),
                       (T("a b"), T("a b", i64), T("a b", i64)), (T("a b", flag), T("a b", flag), T("a b",
                       flag)))),
    case("mish_backward", T("a b"), T("c b")),
    case("mish_backward", T("a b", f64), T("b")),
    case("mish_backward", T("a b", i64), T("b", i64)),
    case("gelu_backward", T("a b"), T("a b"), approximate="tanh"),
    case("gelu_backward", T("a b", f64), T("c b", f64)),
    case("gelu_backward", T("a b", i64), T("a b", i64)),
    case("_prelu_kernel_backward", T("a b"), T("c b"), T("b")),
    case("_prelu_kernel_backward", T("a b"), T("a b", f64), T("b")),
    case("log_sigmoid_backward", T("a b"), T("c b"), T("c b")),
    case("log_sigmoid_backward", T("a b"), T("a b", f64), T("a b")),
    case("native_dropout_backward", T("a b"), T("c b", flag), 2.0),
    case("native_dropout_backward", T("a b", i64), T("b", flag), 2.0),
    case("glu_backward", T("a b"), T("a 2*b"), -1),
    case("glu_backward", T("b c"), T("a b"), 1),
    case("glu_backward", T("a b"), T("a 2*b", f64), -1),
    case("glu_backward", T(""), T(""), 0),
    case("huber_loss_backward", T("a b"), T("c b"), T("b"), 1, 1.0),
    case("huber_loss_backward", T("a b"), T("a b", f64), T("b"), 1, 1.0),
    case("binary_cross_entropy_backward", T("a b"), T("c+2 b+2"), T("d+2")),
    case("binary_cross_entropy_backward", T(""), T("a b"), T("a b"), T("b"), 1),
    case("binary_cross_entropy_backward", T("a b", f64), T("a b"), T("a b")),
    case("avg_pool2d_backward", T("n c k l"), T(IMAGE), *WINDOW, False, True, None, where="n c h w k l"),
    case("avg_pool2d_backward", T("c k l"), T("c h w"), *WINDOW, True, True, None, where="c h w k l"),
    case("avg_pool2d_backward", T("n c k 3", f64), T("n c h 6"), *WINDOW, False, True, None),
    case("avg_pool3d_backward", T("n c k 2 3"), T("n c h 4 6"), [2] * 3, [2] * 3, [0] * 3, False, True, None),
    case("max_pool2d_with_indices_backward", T("n c k l"), T(IMAGE), *WINDOW, [1, 1], False, T("n c k l",
         i64)),
    case("max_pool2d_with_indices_backward", T("n c h w"), T("n c 2*h 2*w"), *WINDOW, [1, 1], False,
         T("n c h w", i64)),
    case("max_pool2d_with_indices_backward", T("n c 3 l"), T("n c 6 w"), *WINDOW, [1, 1], False,
         T("n c l l", i64)),
    case("max_pool3d_with_indices_backward", T("n c h 2 3"), T("n c 2*h 4 6"), [2] * 3, [2] * 3, [0] * 3,
         [1] * 3,
         False, T("n c h 2 3", i64), where="n c h"),
    case("fractional_max_pool2d_backward", T("n c 2 k"), T("n c 5 5"), [2, 2], [2, 2], T("n c 2 2", i64),
         where="n c"),
    case("fractional_max_pool3d_backward", T("n c 2 2 k"), T("n c 5 5 5"), [2] * 3, [2] * 3, T("n c 2 2 2",
         i64),
         where="n c"),
    case("_adaptive_avg_pool2d_backward", T("n c k l"), T(IMAGE), where="h w"),
    case("_adaptive_avg_pool2d_backward", T("c k l"), T("c h w"), where="h w"),
    case("_adaptive_avg_pool2d_backward", T("c k l"), T("n c h w"), where="h w"),
    case("_adaptive_avg_pool3d_backward", T("n c k l m"), T("n c h w d"), where="h w d"),
    case("adaptive_max_pool2d_backward", T("n c k l"), T(IMAGE), T("n c k l", i64), where="h w c"),
    case("adaptive_max_pool2d_backward", T("n c k l"), T("n c 5 5"), T("n c l k", i64), where="c"),
    case("adaptive_max_pool3d_backward", T("n c k l 2"), T("n c 5 5 5"), T("n c k l 2", i64), where="c"),
    *(case(f"{mode}_pad1d_backward", T("n c k"), T("n c w"), [1, 2], where="w") for mode in ("reflection",
           "replication")),
    *(case(f"{mode}_pad2d_backward", T("n c k l"), T(IMAGE), [1, 2, 0, 1]) for mode in ("reflection",
           "replication")),
    *(case(f"{mode}_pad2d_backward", T("c k l"), T("c h w"), [1, 1, 0, 1]) for mode in ("reflection",
           "replication")),
    *(case(f"{mode}_pad3d_backward", T("n c k l m"), T("n c h w d"), [1] * 6) for mode in ("reflection",
           "replication")),
    *(case(f"{mode}_pad{len(pad) // 2}d_backward", T(f"n c {grad}"), T(f"n c {sizes}"), pad,
           where="n c h w d")
      for mode in ("reflection", "replication")
      for grad, sizes, pad in (("w+4", "w+2", [1, 1]), ("h+1 w+4", "h+2 w+2", [1, 1, -1, 0]),
                               ("h+3 w+3 d+3", "h+1 w+1 d+1", [1] * 6))),
    *(case(f"{name}1d_backward", T("n c k"), [D("l")], [D("n"), D("c"), D("w")])
      for name in ("upsample_nearest", "_upsample_nearest_exact")),
    case("upsample_linear1d_backward", T("n c k"), [D("l")], [D("n"), D("c"), D("w")], False),
    *(case(f"{name}2d_backward", T("n c k 4"), [D("l"), 4], [D("n"), D("d"), D("h"), D("w")])
      for name in ("upsample_nearest", "_upsample_nearest_exact")),
    *(case(f"{name}_backward", T("n c k 4"), [D("l"), 4], [D("n"), D("d"), D("h"), D("w")], False)
      for name in ("upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa",
      "_upsample_bicubic2d_aa",
                   "_upsample_lanczos2d_aa")),
    *(case(f"{name}3d_backward", T("n c k 4 2"), [D("l"), 4, 2], [D("n"), D("d"), D("h"), D("w"), 2])
      for name in ("upsample_nearest", "_upsample_nearest_exact")),
    case("upsample_trilinear3d_backward", T("n c k 4 2"), [D("l"), 4, 2], [D("n"), D("d"), D("h"), D("w"),
         2], False),
    case("convolution_backward", T("b 4 k l"), T("b 3 h w"), T("4 3 3 3"), [4], [1, 2], [0, 1], [1, 1],
         False, [0, 0], 1,
         ALL, where="b"),
    case("convolution_backward", T("b o k"), T("b i w"), T("o i 3"), None, [1], [0], [1], False, [0], 1,
         FIRST,
         where="b o i"),
    case("convolution_backward", T("b 4 k"), T("b 3 w"), T("3 4 3"), [4], [2], [1], [1], True, [0], 1, ALL,
         where="b w"),
    case("native_layer_norm_backward", T("a b c"), T("a b c"), [D("d")], T("a b 1"), T("a b 1"), T("c"),
         T("d"), ALL),
    case("native_layer_norm_backward", T("a b c"), T("a b c"), [D("b"), D("c")], T("a 1 1"), T("a 1 1"),
         None, None, FIRST),
    case("native_group_norm_backward", T("n c h"), T("n c h"), T("n g"), T("n g"), T("c"), D("n"), D("c"),
         D("h"), D("g"),
         ALL, where="n g h"),
    case("native_group_norm_backward", T("n c h"), T("n c w"), T("n 2"), T("n 2"), None, D("n"), D("c"),
         D("h"), 2, FIRST,
         where="n c h w"),
    *(case("native_batch_norm_backward", T("n c h"), T("n c h"), T("c"), T("c"), T("c"), T("c"), T("c"),
           train, 1e-5, mask,
           where="n c h") for train in (True, False) for mask in (ALL, FIRST)),
    case("native_batch_norm_backward", T("c"), T("c"), None, T("c"), T("c"), T("c"), T("c"), True, 1e-5, ALL),
    case("batch_norm_backward", T("n c h"), T("n c h"), T("c"), T("c"), T("c"), T("c"), T("c"), True, 1e-5,
         ALL,
         T("0", torch.uint8), where="n c h"),
    case("batch_norm_backward", T("c"), T("c"), T("c"), T("c"), T("c"), T("c"), T("c"), True, 1e-5, ALL,
         T("0", torch.uint8)),
    case("_softmax_backward_data", T("a b"), T("c d"), 1, torch.float32),
    case("_softmax_backward_data", T("a b", f16), T("a b", f16), -1, f16),
    case("_softmax_backward_data", T("a b"), T("a b"), 2, torch.float32),
    case("_log_softmax_backward_data", T("a b"), T("a b"), 1, torch.float32),
    case("_log_softmax_backward_data", T("a b"), T("a b"), 2, torch.float32),
    case("select_backward", T("a b"), [D("c"), D("d"), D("b")], 1, D("i")),
    case("select_backward", T("a"), [2, D("b")], 0, -1),
    case("slice_backward", T("a b c"), [D("a"), D("d"), D("c")], 1, 1, D("e"), 2),
    case("slice_backward", T("a b"), [D("c"), D("b")], -2, 0, 2**63 - 1, 1),
    case("diagonal_backward", T("a b"), [D("a"), D("c"), D("d")], 0, 1, 2),
    case("unfold_backward", T("a b+1 2"), [D("a"), D("b+2")], 1, 2, 1),
    case("trace_backward", T(""), [D("a"), D("b")]),
    case("trace_backward", T(""), [D("a")]),
    case("index_select_backward", T("k b"), [D("a"), D("b")], 0, T("l", i64)),
    case("gather_backward", T("k l"), T("a b"), 1, T("m n", i64), False),
    case("embedding_dense_backward", T("a b d"), T("c e", i64), D("v"), -1, False, where="v"),
    case("embedding_dense_backward", T("a d"), T("a", torch.int32), D("v-1"), -1, True, where="a v"),
    case("embedding_dense_backward", T("a d"), T("a"), 3, -1, True),
    case("embedding_backward", T("a b d"), T("a c", i64), D("v"), -1, False, False, where="v"),
    case("nll_loss_backward", T("n"), T("n c"), T("m", i64), None, 0, -100, T(""), where="c"),
    case("nll_loss_backward", T(""), T("n c"), T("n", i64), T("d"), 1, -100, T(""), where="c"),
    case("nll_loss_backward", T("m"), T("n c"), T("n", i64), None, 1, -100, T(""), where="c"),
    case("nll_loss_backward", T(""), T("c"), T("", i64), None, 1, -100, T(""), where="c"),
    case("nll_loss2d_backward", T("n h w"), T("n c h w"), T("n h k", i64), None, 0, -100, T(""), where="c"),
    case("nll_loss2d_backward", T(""), T("n c h w"), T("n h w", i64), T("c"), 2, -100, T(""), where="c"),
    case("multi_margin_loss_backward", T(""), T("n c"), T("m", i64), 1, 1.0, T("c"), 1, where="n"),
    case("multi_margin_loss_backward", T("n"), T("n c"), T("n", i64), 1, 1.0, None, 0, where="n"),
    case("multilabel_margin_loss_backward", T(""), T("n c"), T("n d", i64), 1, T("n d"), where="n"),
    case("multilabel_margin_loss_backward", T("n"), T("n c"), T("n c", i64), 0, T("n d"), where="n c"),
    case("_cdist_backward", T("m n"), T("m k"), T("n k"), 2.0, T("m n")),
    case("_cdist_backward", T("b m n"), T("b m k"), T("n k"), 1.0, T("b m n")),
    case("_pdist_backward", T("6"), T("4 k"), 2.0, T("6")),
    case("_weight_norm_interface_backward", T("n m"), T("n m"), T("n 1"), T("n 1"), 0, where="n m"),
    case("_weight_norm_interface_backward", T("n m k"), T("n m k"), T("1 1 k"), T("1 1 k"), 2, where="n m k"),
    case("_weight_norm_differentiable_backward", T("n m"), T("n m"), T("n 1"), T("n 1"), 0, where="n m"),
    case("grid_sampler_2d_backward", T("n c k l"), T(IMAGE), T("m k l d"), 0, 0, False, [True, True],
         where="c k l h w"),
    case("grid_sampler_2d_backward", T("n c k l"), T(IMAGE), T("n k l 2"), 0, 0, False, [False, True],
         where="c k l"),
    case("grid_sampler_3d_backward", T("n c k l 2"), T("n c h w 3"), T("m k l 2 d"), 0, 0, False, [True,
         True],
         where="c k l h w"),
    case("affine_grid_generator_backward", T("n k l 2"), [D("m"), 3, D("h"), D("l")], False),
    case("value_selecting_reduction_backward", T("a"), 1, T("a", i64), [D("a"), D("b")], False, where="b"),
    case("value_selecting_reduction_backward", T("a 1"), 2, T("a 1", i64), [D("a"), D("b")], True),
    case("masked_select_backward", T("0"), T("a b"), T("c b", flag)),
    case("masked_scatter_backward", T("a b"), T("c b", flag), [D("k")]),
    case("masked_scatter_backward", T("a b"), T("a b", flag), [D("k"), D("l")]),
    case("cumprod_backward", T("a b", fill=1), T("a b", fill=1), 1, T("a b", fill=1)),
    case("cummaxmin_backward", T("a b"), T("a b"), T("a b", i64), 1, where="b"),
    case("_standard_gamma_grad", T("a b"), T("a b")),
    case("_dirichlet_grad", T("a b"), T("a b"), T("a b")),
    case("_masked_softmax_backward", T("a b"), T("a b"), T("a b", flag), 1),
    case("matrix_exp_backward", T("a a"), T("a a")),
    case("_scaled_dot_product_flash_attention_for_cpu_backward", T("b h l e"), T("b h l e"), T("b h s e"),
         T("b h s e"),
         T("b h l e"), T("b h l"), 0.0, False, where="b h l s e"),
    case("_embedding_bag_dense_backward", T("3 d"), T("n", i64), T("n", i64), T("3", i64), T("3", i64),
         D("v"), False, 0, None,
         where="v"),
    *(case("_ctc_loss_backward", T("2"), T("3 2 c+2"), T("2 2", i64), [3, 3], [1, 2], T("2"), T("2 3 5"),
           blank)
      for blank in (0, 1)),
    case("_pack_padded_sequence_backward", T("k d"), [D("k"), 1, D("d")], T("k", i64, fill=1), False,
         where="k d"),
    case("_segment_reduce_backward", T("n z"), T("n z"), T("n z"), "sum", lengths=T("n", i64, fill=1),
         where="n z"),
    case("conv_tbc_backward", T("k b o"), T("k+2 b i"), T("3 i o"), T("o"), 0, where="k b o i"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_judges(case: Case) -> None:
    judge(case)


UNCHECKED = """_cdist_backward _ctc_loss_backward _dirichlet_grad _embedding_bag_dense_backward
_masked_softmax_backward _pack_padded_sequence_backward _pdist_backward
_scaled_dot_product_flash_attention_for_cpu_backward _segment_reduce_backward _standard_gamma_grad
_weight_norm_differentiable_backward _weight_norm_interface_backward conv_tbc_backward cummaxmin_backward
cumprod_backward matrix_exp_backward max_pool3d_with_indices_backward unfold_backward""".split()
"""Kernels that look at no shape at all, or not before they read: they are given what fits."""
NO_KERNEL = {"_fused_rms_norm_backward": "untested"}
"""Kernels that the CPU does not have."""


def test_every_rule_is_accepted_and_refused() -> None:
    assert judge.one_sided(CASES) == dict.fromkeys(UNCHECKED, "never refused") | NO_KERNEL


def refused(op: str, *args: Any) -> bool:
    """Does the rule refuse these arguments, which torch is not asked about?"""
    known = tuple(lower(a.build({}) if isinstance(a, T) else a) for a in args)
    return run_rule(judge.rules, op, known, {}, Domain())[0] is False


def test_gradients_that_do_not_fit_are_refused() -> None:
    """Also where torch would read beyond them."""
    assert refused("_cdist_backward", T("2 4"), T("2 5"), T("3 5"), 2.0, T("2 3"))
    assert refused("_pdist_backward", T("5"), T("4 2"), 2.0, T("6"))
    assert refused("_standard_gamma_grad", T("2 3"), T("3"))
    assert refused("cumprod_backward", T("2 3"), T("2 2"), 1, T("2 3"))
    assert refused("matrix_exp_backward", T("2 2"), T("3 3"))
    assert refused("_weight_norm_interface_backward", T("3 5"), T("3 4"), T("3 1"), T("3 1"), 0)
    assert refused("conv_tbc_backward", T("4 2 4"), T("7 2 3"), T("3 3 4"), T("4"), 0)
    known = (T("2 2", i64), (3, 3), (1, 2), T("2"), T("2 3 5"))
    for grad, log_probs, blank in (("3", "3 2 5", 0), ("2", "3 3 5", 0), ("2", "3 2 5", 5)):
        assert refused("_ctc_loss_backward", T(grad), T(log_probs), *known, blank)
    for grad in ("3 2", "2 3"):
        assert refused("_segment_reduce_backward", T(grad), T("2 2"), T("2 2"), "sum", T("2", i64))
    assert refused("unfold_backward", T("2 4 2"), (2, 4), 1, 2, 1)
    assert refused("_fused_rms_norm_backward", T("2 3"), T("2 3"), (4,), T("2 1"), None, (True, False))


def test_the_judge_catches_a_wrong_rule() -> None:
    wrong = Rules(RULES) + {"select_backward": lambda c, grad, sizes, dim, index: Tensor(sizes, grad.dtype)}
    with pytest.raises(AssertionError):
        check_case(case("select_backward", T("a b"), [D("c"), D("d"), D("b")], 1, D("i")), wrong)
