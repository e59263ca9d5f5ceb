"""Convolutions and pools against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules, window
from anyshape.constraints.terms.dims import Dim, sym
from anyshape.constraints.terms.formula import free_symbols, ge
from anyshape.typecheck.testing.differential import Case, D, T, check_case, run_rule

RULES = Rules(window.RULES)
f32, f64, i64 = torch.float32, torch.float64, torch.int64


def conv(n: int, *shapes: str, **kwargs: object) -> Case:
    return Case(f"conv{n}d", getattr(F, f"conv{n}d"), tuple(map(T, shapes)), kwargs)


def conv_transpose(n: int, *shapes: str, **kwargs: object) -> Case:
    # In float64 torch's own kernels run; in float32 oneDNN may, and then results may be empty.
    return Case(
        f"conv_transpose{n}d", getattr(F, f"conv_transpose{n}d"), tuple(T(s, f64) for s in shapes), kwargs
    )


def pool(name: str, shape: str, *args: object, **kwargs: object) -> Case:
    return Case(name, getattr(F, name), (T(shape), *args), kwargs)


def unpool(n: int, shape: str, *args: object, **kwargs: object) -> Case:
    return Case(f"max_unpool{n}d", getattr(F, f"max_unpool{n}d"), (T(shape), T(shape, i64), *args), kwargs)


# Every row can be accepted and refused.
CASES = [
    Case("_convolution_mode", torch.ops.aten._convolution_mode,
         (T("b c h w"), T("4 3 3 3"), None, [1, 1], "same", [1, 1], 1), where="b"),
    Case("_convolution_mode", torch.ops.aten._convolution_mode,
         (T("b 3 h"), T("4 3 3"), T("4"), [2], "valid", [1], 1)),
    conv(1, "b c n", "o i k"),
    conv(1, "b c n", "o c k", "p", stride=2),
    conv(1, "c n", "4 c 3", padding=2, dilation=2),
    conv(1, "b c n", "4 c 4", padding="same"),
    conv(2, "b c h w", "o i k k"),
    conv(2, "b 3 h w", "4 3 3 3", "4", stride=2, padding=1),
    conv(2, "b 3 h w", "4 3 3 2", stride=(2, 1), padding=(1, 0), dilation=(2, 3)),
    conv(2, "3 h w", "4 3 3 3", padding="valid"),
    conv(2, "b 4 h w", "6 i 3 3", groups=2),
    conv(2, "b c h w", "o i 1 1", groups=D("g")),
    conv(2, "b c h w", "c 1 3 3", padding="same", groups=D("c")),
    conv(2, "b 3 h w", "4 3 5 5", padding=D("p"), stride=D("s")),
    conv(2, "b 3 h w", "4 3 3 3", padding="same", stride=D("s")),
    conv(3, "b c d h w", "2 2 3 2 1", padding=1, stride=2),
    conv(3, "c d h w", "o i k 2 2"),
    conv_transpose(1, "b c n", "i o k", stride=2, output_padding=1),
    conv_transpose(1, "c n", "c o 3", "p", padding=2),
    conv_transpose(2, "b c h w", "i o 3 3", padding=3),
    conv_transpose(2, "b 3 h w", "3 4 2 2", "4", stride=2),
    conv_transpose(2, "b c h w", "c 2 3 3", "p", groups=D("g"), padding=1),
    conv_transpose(2, "b 2 h w", "2 2 3 3", output_padding=D("q"), stride=2, dilation=3),
    conv_transpose(3, "b c d h w", "2 2 3 2 1", padding=(1, 2, 0), stride=(1, 2, 3)),
    *(Case(f"conv_transpose{n}d", getattr(F, f"conv_transpose{n}d"), (T(sizes), T(weight)), options)
      for n, sizes, weight, options in (
          (1, "b 2 n", "2 3 4", {"padding": 3}), (1, "2 n", "2 3 3", {"padding": 3, "stride": 3}),
          (2, "b 2 h w", "2 3 3 3", {"padding": 2}), (2, "b 2 h w", "2 3 4 4", {"padding": (3, 2)}),
          (2, "b 2 h w", "2 3 2 3", {"padding": 2, "groups": 2}), (2, "2 h w", "2 3 3 3", {"padding": 2}),
          (2, "1 5000 h w", "5000 1 3 3", {"padding": 2}),
          (2, "b 2 h w", "2 3 3 3", {"padding": 3, "dilation": 2, "output_padding": 1}),
          (3, "b 2 3 h w", "2 3 2 2 2", {"padding": 2, "stride": 2}),
      )),
    pool("max_pool1d", "b c n", 3, 2, 1),
    pool("max_pool1d", "c n", D("k"), D("s"), D("p"), ceil_mode=True),
    pool("max_pool1d", "c n", 2, 3, return_indices=True),
    pool("max_pool2d", "b c h w", 3, 2, 1),
    pool("max_pool2d", "b c h w", 3, 2, 1, ceil_mode=True),
    pool("max_pool2d", "b c h w", 2, 3, ceil_mode=True),
    pool("max_pool2d", "b c h w", (3, 2), (1, 4), (1, 0), (2, 1), ceil_mode=True),
    pool("max_pool2d", "c h w", D("k"), dilation=D("d"), return_indices=True),
    pool("max_pool2d_with_indices", "b c h w", 2),
    pool("max_pool3d", "b c d h w", 2, padding=1, ceil_mode=True),
    pool("max_pool3d_with_indices", "c d h w", 3, 1),
    pool("avg_pool1d", "b c n", D("k"), padding=D("p")),
    pool("avg_pool2d", "b c h w", 3, 2, 1, True),
    pool("avg_pool2d", "c h w", D("k"), D("s"), ceil_mode=True, divisor_override=2),
    pool("avg_pool3d", "b c d h w", (2, 3, 1), 3, padding=(1, 1, 0), ceil_mode=True),
    pool("lp_pool1d", "b c n", 2.0, D("k")),
    pool("lp_pool2d", "b c h w", 2.0, (2, 3), 3, True),
    pool("lp_pool3d", "c d h w", 2.0, D("k"), D("s"), True),
    pool("lp_pool1d", "b c n", D("p"), D("k")),
    pool("adaptive_avg_pool1d", "b c n", D("m")),
    pool("adaptive_avg_pool2d", "b c h w", (D("m"), 3)),
    pool("adaptive_avg_pool2d", "b c h w", (D("m"), None)),
    pool("adaptive_avg_pool2d", "c h w", D("m - 1")),
    pool("adaptive_avg_pool3d", "b c d h w", (2, None, D("m"))),
    pool("adaptive_max_pool1d", "b c n", D("m - 1"), return_indices=True),
    pool("adaptive_max_pool2d", "b c h w", (D("m"), None), return_indices=False),
    pool("adaptive_max_pool3d", "c d h w", D("m - 1"), return_indices=False),
    Case("_adaptive_avg_pool2d", torch.ops.aten._adaptive_avg_pool2d.default, (T("b c h w"), (1, D("m")))),
    Case("adaptive_max_pool2d", torch._C._nn.adaptive_max_pool2d, (T("b c h w"), (2, D("m")))),
    pool("fractional_max_pool2d", "b c h w", D("k"), output_size=D("m")),
    pool("fractional_max_pool2d", "c h w", 2, output_ratio=(0.5, 0.7), return_indices=True),
    pool("fractional_max_pool3d", "b c d h w", 2, output_size=(D("m"), 1, 2)),
    pool("fractional_max_pool3d", "b c d h w", 2, output_ratio=0.5),
    Case(
        "fractional_max_pool2d",
        torch._C._nn.fractional_max_pool2d,
        (T("b c h w"), (2, 2), (2, 2), T("a c e")),
    ),
    unpool(1, "b c n", 2, stride=None, padding=0, output_size=None),
    unpool(2, "b c h w", D("k"), stride=D("s"), padding=D("p"), output_size=None),
    unpool(2, "c h w", 2, stride=3, padding=0, output_size=(D("m"), D("l"))),
    unpool(3, "b c 2 3 h", 2, stride=None, padding=0, output_size=(D("m"), 6, D("h*2"))),
    Case("max_unpool2d", torch._C._nn.max_unpool2d, (T("b c h w"), T("b c h v", i64), (D("m - 1"), D("n")))),
    Case("im2col", torch._C._nn.im2col, (T("b c h w"), (2, 3), (1, 2), (0, 1), (1, 2))),
    pool("unfold", "b c h w", D("k"), dilation=D("d"), padding=D("p"), stride=D("s")),
    pool("unfold", "c h w", (2, 3), dilation=1, padding=1, stride=2),
    Case("unfold", torch.Tensor.unfold, (T("a n c"), 1, D("k"), D("s"))),
    Case("unfold", torch.Tensor.unfold, (T("n a c", permute=(1, 2, 0)), -1, 3, 2)),
    Case("unfold", torch.Tensor.unfold, (T(""), 0, D("k"), 1)),
    Case("unfold_copy", torch.unfold_copy, (T("a n c"), 1, D("k"), D("s"))),
    Case("conv_tbc", torch.conv_tbc, (T("n b i"), T("k i o"), T("p"), D("m"))),
    Case("conv_tbc", torch.conv_tbc, (T("n b i"), T("2 c 3"), T("3"))),
    Case("fold", F.fold, (T("b 4*r (h+1)*(w+1)"), (D("h + 2"), D("w + 2")), 2)),
    Case("fold", F.fold, (T("b k*k*r (6-k)**2"), 3, D("k")), {"stride": 1, "padding": D("p")}),
    Case("col2im", torch._C._nn.col2im, (T("9*c n"), (D("h"), 4), (3, 3), (1, 1), (1, 1), (2, 2))),
]

# The other layouts: channels-last, transposed, and what cannot be told.
LAYOUTS = [
    Case("conv2d", F.conv2d, (T("b h w 3", permute=(0, 3, 1, 2)), T("4 3 3 3"))),
    Case("conv2d", F.conv2d, (T("b 3 w h", permute=(0, 1, 3, 2)), T("4 3 3 3"))),
    Case("conv1d", F.conv1d, (T("b n 3", permute=(0, 2, 1)), T("4 3 3"))),
    Case("max_pool2d", F.max_pool2d, (T("b h w c", permute=(0, 3, 1, 2)), 2)),
    Case("avg_pool2d", F.avg_pool2d, (T("b h w c", permute=(0, 3, 1, 2)), 2)),
    Case("avg_pool1d", F.avg_pool1d, (T("b n c", permute=(0, 2, 1)), 2)),
    Case("avg_pool3d", F.avg_pool3d, (T("b d h w c", permute=(0, 4, 1, 2, 3)), 2)),
    Case("max_pool3d", F.max_pool3d, (T("b d h w c", permute=(0, 4, 1, 2, 3)), 2)),
    Case("adaptive_avg_pool2d", F.adaptive_avg_pool2d, (T("b h+2 w+2 3", permute=(0, 3, 1, 2)), (D("m"), 2))),
    Case("adaptive_avg_pool2d", F.adaptive_avg_pool2d, (T("b h w 3", permute=(0, 3, 1, 2)), 1)),
    Case("adaptive_max_pool2d", F.adaptive_max_pool2d, (T("b h+2 w+2 3", permute=(0, 3, 1, 2)), 2, True)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_accepts_and_refuses_what_torch_does(case: Case) -> None:
    accepted, refused = check_case(case, RULES)
    assert accepted and refused


def test_one_ratio_is_refused_for_two_axes() -> None:
    accepted, refused = check_case(pool("fractional_max_pool2d", "b c h w", 2, output_ratio=0.5), RULES)
    assert refused and not accepted


@pytest.mark.parametrize("case", LAYOUTS, ids=str)
def test_layout(case: Case) -> None:
    assert check_case(case, RULES)[0]


def test_aten_convolution() -> None:
    def aten(*shapes: str, padding: tuple[int, ...], transposed: bool, output_padding: Any) -> Case:
        call = torch.ops.aten.convolution.default
        ones = (1,) * len(padding)
        args = (*map(T, shapes), None, ones, padding, ones, transposed, output_padding, 1)
        return Case("convolution", call, args)

    for case in (
        aten("b c h w", "o i k 3", padding=(1, 0), transposed=False, output_padding=(0, D("q - 1"))),
        aten("b c n", "o i k", padding=(2,), transposed=False, output_padding=(0,)),
    ):
        accepted, refused = check_case(case, RULES)
        assert accepted and refused


def test_aten_convolution_with_switches() -> None:
    args = (T("b c h w"), T("o i k 3"), T("p"), (1, 1), (1, 0), (1, 1), False, (0, 0), 1)
    switches = (False, False, True, True)
    accepted, refused = check_case(Case("_convolution", torch._convolution, (*args, *switches)), RULES)
    assert accepted and refused


@pytest.mark.parametrize(
    "pooled, accepts",
    [
        (pool("fractional_max_pool2d", "b c h w", 2, output_ratio=0.5), False),
        (pool("fractional_max_pool3d", "b c d h w", 2, output_ratio=0.5), True),
    ],
)
def test_one_ratio_is_for_three_axes_alone(pooled: Case, accepts: bool) -> None:
    """torch repeats a single ratio for each of three axes, but refuses it for two."""
    accepted, refused = check_case(pooled, RULES)
    assert refused and bool(accepted) is accepts


def test_windows_of_a_deep_network_stay_simple() -> None:
    """Five convolutions of stride 2 divide once by 32."""
    n: Dim = sym("n")
    for _ in range(5):
        n = window.windows(n, 3, 2, 2)
    assert str(n) == "ceil(n/32)"
    assert str(window.windows_ceil(sym("n"), 3, 2, 1)) == "n//2 + 1"
    assert str(window.windows_ceil(sym("n"), 1, 3, 0)) == "ceil(n/3)"


def test_kernel_choice_is_noted() -> None:
    """Where a transposed convolution may be empty, threads may decide which kernel torch chooses."""
    for weight, dtype, padding, notes in (
        ("3 4 3", f32, 2, 0), ("3 4 1", f32, 1, 1), ("3 4 1", f64, 1, 0), ("3 4 1", f32, 0, 0),
        ("3 4 3", torch.bfloat16, 2, 1),
    ):  # fmt: skip
        args = tuple(T(sizes, dtype).symbolic() for sizes in ("b 3 n", weight))
        domain = Domain(("b", "n"), (ge(sym("n"), 1),))
        generator = run_rule(RULES, "conv_transpose1d", args, {"padding": padding}, domain)[2]
        assert len(generator.said.notes) == notes


def test_the_judge_refutes_wrong_rules() -> None:
    def no_dilation(c: Any, input: Tensor, weight: Tensor, dilation: int) -> Tensor:
        return Tensor((input.shape[0], weight.shape[0], input.shape[2] - weight.shape[2] + 1))

    def no_last_window(c: Any, input: Tensor, kernel_size: int, stride: int, ceil_mode: bool) -> Any:
        return window.max_pool(1)(c, input, kernel_size, stride)

    wrong = Rules({"conv1d": no_dilation, "max_pool1d": no_last_window})
    for case in (
        conv(1, "b 3 n", "4 3 3", dilation=2),
        Case("max_pool1d", F.max_pool1d, (T("b c n"), 2), {"stride": 2, "ceil_mode": True}),
    ):
        check_case(case, RULES)
        with pytest.raises(AssertionError):
            check_case(case, wrong)


@pytest.mark.parametrize("output, asked", [((8, 8), False), ((7, 7), True), ((None, 4), True)])
def test_indices_of_a_pool_stay_where_they_came_from(output: tuple[int | None, int], asked: bool) -> None:
    """Unpooling to fewer elements than were pooled is for the data to decide."""
    h = sym("h")
    generator = Generator(default_rules)
    image = Tensor((1, 1, 8, 8))
    _, pooled = generator.call("max_pool2d_with_indices", (image, 2), {})
    sizes = tuple(h if size is None else size for size in output)
    generator.call("max_unpool2d", (*pooled, sizes), {})
    assert generator.said.notes == []
    assert (len(generator.said.unbacked) == 1) is asked
    indices = {*generator.said.unbacked}
    assert any(free_symbols(said.formula) & indices for said in generator.said.constraints) is asked
