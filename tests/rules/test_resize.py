"""Interpolation, padding, shuffling and sampling against torch."""

from __future__ import annotations

from itertools import product
from math import floor
from random import Random
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import resize
from anyshape.constraints.terms.dims import evaluate, sym
from anyshape.constraints.terms.formula import ge, le
from anyshape.tracer.host.operators import INSTALLED
from anyshape.typecheck import check
from anyshape.typecheck.testing.differential import Case, D, T, check_case, run_rule

RULES = Rules(resize.RULES)


def interpolate(shape: str, mode: str = "nearest", **kwargs: Any) -> Case:
    return Case("interpolate", F.interpolate, (T(shape),), {"mode": mode, **kwargs})


def aten(name: str, shape: str, *args: Any, **kwargs: Any) -> Case:
    return Case(name, getattr(torch._C._nn, name), (T(shape), *args), kwargs)


def pad(shape: str, pad: tuple[Any, ...], mode: str = "constant") -> Case:
    return Case("pad", F.pad, (T(shape), pad), {"mode": mode})


def call(name: str, *args: Any, where: str = "", **kwargs: Any) -> Case:
    return Case(name, getattr(F, name), args, kwargs, where)


# Every row can be accepted and refused.
CASES = [
    *(Case("_pad_enum", torch.ops.aten._pad_enum, (T("b h w"), (D("k-2"), 2), mode), where="b h")
      for mode in range(4)),
    interpolate("b c n", size=D("m")),
    interpolate("b c n", "nearest-exact", scale_factor=0.5),
    interpolate("b c n", "linear", scale_factor=0.3, align_corners=True),
    interpolate("b c n", "area", size=D("m")),
    interpolate("b c h w", scale_factor=2),
    interpolate("b c h w", "bilinear", size=(D("m"), D("h + w")), align_corners=False),
    interpolate("b c h w", "bilinear", size=D("m"), antialias=True),
    interpolate("b c h w", "bicubic", scale_factor=(1.5, 1 / 3), recompute_scale_factor=True),
    interpolate("b c h w", "lanczos", scale_factor=0.7, antialias=True),
    interpolate("b c h w", "area", scale_factor=(0.4, 2.0)),
    interpolate("b c d h w", "trilinear", scale_factor=0.5),
    interpolate("b c d h w", "nearest", size=(D("m"), 1, D("m - 1"))),
    aten("upsample_nearest2d", "b c h w", (D("m"), 3)),
    aten("upsample_nearest2d", "b c h w", (D("m"), 3), 2.0, 3.0),
    aten("upsample_nearest2d", "b c h w", None, (0.5, 1.5)),
    aten("upsample_bilinear2d", "b c h w", None, False, (0.5, 1.5)),
    aten("upsample_bilinear2d", "b c h w", (2, D("m")), True),
    aten("upsample_linear1d", "b c n", (D("m"),), True),
    pad("a b n", (D("p"), D("q - 3"))),
    pad("a b n", (1, -2, D("p - 4"), D("q - 4"))),
    pad("c n", (D("p"), 2), "reflect"),
    pad("b c h w", (1, 2, 3, D("p - 2")), "reflect"),
    pad("b c d h w", (1, 1, 2, 1, 0, 1), "reflect"),
    pad("c h w", (1, D("p - 4"), 0, -2), "replicate"),
    pad("b c d h w", (1, 1, 0, 1, D("p"), 1), "replicate"),
    pad("b c n", (D("p"), D("q")), "circular"),
    pad("b c h w", (1, 2, D("p"), 0), "circular"),
    aten("reflection_pad2d", "b c h w", (1, 0, D("p"), 2)),
    aten("reflection_pad1d", "c n", (D("p"), 2)),
    aten("replication_pad3d", "c d h w", (1, 0, 1, 2, 0, 0)),
    Case("constant_pad_nd", torch.constant_pad_nd, (T("n m"), (D("p - 5"), 1), 0.5)),
    call("pixel_shuffle", T("b c h w"), D("r")),
    call("pixel_shuffle", T("c h w"), 2),
    call("pixel_unshuffle", T("b c h w"), D("r")),
    call("pixel_unshuffle", T("a b c h w"), 2),
    call("channel_shuffle", T("b c h w"), D("g")),
    call("channel_shuffle", T("b c n"), 2),
    call("grid_sample", T("b c h w"), T("a m n e"), align_corners=False),
    call("grid_sample", T("b c h w"), T("b m n 2"), mode="bicubic", align_corners=False),
    call("grid_sample", T("b c d h w"), T("b k m n 3"), align_corners=True),
    *[call("grid_sample", T("b c d 2 w"), T("b 2 m 2 3"), mode="bicubic", align_corners=False)]
    * (INSTALLED >= (2, 15)),
    Case("grid_sampler", torch.grid_sampler, (T("b c h w"), T("b m n k"), 1, 0, False)),
    Case("pad_sequence", torch._C._nn.pad_sequence, ([T("a c"), T("b d"), T("e")], True)),
    Case("pad_sequence", torch._C._nn.pad_sequence, ([T("a c 2"), T("b d 2")],)),
    Case("_pad_circular", torch._C._nn._pad_circular, (T("b c n"), (D("p"), 1))),
    Case("affine_grid_generator", torch.affine_grid_generator, (T("b 2 3"), (D("a"), 1, D("h-1"), 2), True)),
    call("affine_grid", T("b 2 3"), (D("a"), D("c"), D("h"), D("w")), align_corners=False),
    call("affine_grid", T("b 2 k"), (D("b"), 3, D("h"), D("w")), align_corners=True),
    call("affine_grid", T("b 3 4"), (D("b"), 3, D("d"), D("h"), 2), align_corners=False),
]

LAST = (0, 3, 1, 2)
LAYOUTS = [
    Case("interpolate", F.interpolate, (T("b h+2 w+2 3", permute=LAST),), {"scale_factor": 2.0}),
    Case("interpolate", F.interpolate, (T("b h+2 w+2 3", permute=LAST),), {"size": 3, "mode": "area"}),
    Case("pad", F.pad, (T("b h+2 w+2 3", permute=LAST), (1, 1, 1, 1))),
    Case("pad", F.pad, (T("b h+2 w+2 3", permute=LAST), (1, 1, 1, 1), "reflect")),
    Case("pad", F.pad, (T("b h+2 w+2 3", permute=LAST), (1, 1, 1, 1), "circular")),
    Case("pad", F.pad, (T("w b c h", permute=(1, 2, 3, 0)), (0, 0, 0, 1))),
    Case("pad", F.pad, (T("h+1 w", permute=(1, 0)), (-1, 0))),
    Case("pad", F.pad, (T("h+1 w+2"), (-2, 0, 0, -1))),
    Case("pad", F.pad, (T("b c+2 h w+2", permute=(0, 2, 3, 1)), (-1, 0, 0, 0, -1, 0))),
    Case("pixel_shuffle", F.pixel_shuffle, (T("b h+2 w+2 12", permute=LAST), 2)),
    Case("pixel_unshuffle", F.pixel_unshuffle, (T("b+1 2*h+2 2*w+2 3", permute=LAST), 2)),
    Case("channel_shuffle", F.channel_shuffle, (T("b h+2 w+2 4", permute=LAST), 2)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_accepts_and_refuses_what_torch_does(case: Case) -> None:
    accepted, refused = check_case(case, RULES)
    assert accepted and refused


@pytest.mark.parametrize("case", LAYOUTS, ids=str)
def test_layout(case: Case) -> None:
    assert check_case(case, RULES)[0]


CROPPED = [
    ("constant", (-2, 0)), ("constant", (-1, -1)), ("constant", (0, 0, -1, 0)), ("constant", (-1, 0, -1, 0)),
    ("constant", (-4, 0)), ("constant", (-1, 2)), ("constant", (-1, 0, 1, 0)), ("constant", (0, 0)),
    ("reflect", (-1, 0)), ("reflect", (1, -1)), ("replicate", (0, -2)), ("circular", (-1, 0)),
]  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("mode", "pad"), CROPPED)
def test_strides_of_what_is_cropped_are_those_of_torch(mode: str, pad: tuple[int, ...], turned: bool) -> None:
    """A view of the transposed result is possible where torch finds it so, down to sizes of 0 and 1."""

    def padded(x: torch.Tensor) -> torch.Tensor:
        return F.pad(x.T if turned else x, pad, mode).T.view(-1, 2)

    report = check(padded, "x: float32[a, b]", ("a >= 0", "b >= 0"), replay=False)
    assert report.accepts.exact
    for a, b in product(range(8), repeat=2):
        try:
            padded(torch.zeros(a, b))
            runs = True
        except RuntimeError:
            runs = False
        assert (report.verdict != "refuted" and report.accepts.holds(a=a, b=b)) == runs, (a, b)


def resized(scale: float, largest: int | None = None) -> tuple[Any, list[str]]:
    """The last size of `[1, 1, n]` rescaled, and what the rule notes."""
    bounds = (ge(sym("n"), 1), *([le(sym("n"), largest)] if largest else []))
    args = (Tensor((1, 1, sym("n"))), None, scale)
    _, result, generator = run_rule(RULES, "interpolate", args, {}, Domain(("n",), bounds))
    return result.shape[2], [note.reason for note in generator.said.notes]


def test_scales_are_exact_where_nothing_is_noted() -> None:
    """Against the floating-point product itself, at sizes where p/q falls on integers, and at large ones."""
    rng = Random(0)
    exact = 0
    for p in range(1, 40):
        for q in range(1, 40):
            for scale in (p / q, round(p / q, 2)):
                size, notes = resized(scale)
                if notes:
                    continue
                exact += 1
                for n in [*range(1, 120), *(q * rng.randrange(10**6) for _ in range(9)), 10**7]:
                    assert evaluate(size, {"n": n}) == floor(n * scale), (scale, n)
    assert exact > 2500


@pytest.mark.parametrize(
    ("scale", "text"),
    [(2.0, "2*n"), (0.5, "n//2"), (1.5, "n + n//2"), (1 / 3, "n//3"), (0.1, "n//10"), (2 / 3, "2*n//3")],
)
def test_usual_scales(scale: float, text: str) -> None:
    size, notes = resized(scale)
    assert str(size) == text
    assert not notes


def test_inexact_scales_are_noted() -> None:
    """0.29 * 100 is 28.999999999999996."""
    assert torch.nn.functional.interpolate(torch.zeros(1, 1, 100), scale_factor=0.29).shape[2] == 28
    assert "differs at 100" in resized(0.29)[1][0]
    assert not resized(0.29, largest=99)[1]
    assert not resized(0.123456789, largest=1000)[1]


def test_circles_that_are_cropped_are_noted() -> None:
    for pad, notes in (((2, 2), 0), ((-1, -1), 0), ((2, -1), 1)):
        generator = run_rule(RULES, "pad", (Tensor((sym("c"), sym("n"))), pad, "circular"), {}, Domain())[2]
        assert len(generator.said.notes) == notes


def test_the_judge_refutes_wrong_rules() -> None:
    def any_reflection(c: Any, input: Tensor, pad: Any, mode: str) -> Tensor:
        return resize.pad(c, input, pad, "replicate")

    def rounded(c: Any, input: Tensor, scale_factor: int, mode: str) -> Tensor:
        return Tensor((*input.shape[:2], (input.shape[2] + 1) // 2))

    wrong = Rules({"pad": any_reflection, "interpolate": rounded})
    for case in (pad("c n", (D("p"), 0), "reflect"), interpolate("b c n", "linear", scale_factor=0.5)):
        check_case(case, RULES)
        with pytest.raises(AssertionError):
            check_case(case, wrong)
