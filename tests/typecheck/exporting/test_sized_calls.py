"""Calls that take numbers in torch take sizes in exported programs, and give what they give in eager."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from anyshape.constraints.terms.formula import holds
from anyshape.tracer.host.operators import INSTALLED
from anyshape.typecheck import check, export


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[[Tensor], Any]
    shape: str
    sizes: tuple[Iterable[int], ...]


def spaced(x: Tensor) -> Any:
    n = x.shape[0]
    return torch.linspace(-1.0, 2, n), torch.linspace(3, -7, steps=2 * n + 1, dtype=torch.float64) * n


def frequencies(x: Tensor) -> Any:
    n, fft = x.shape[0], torch.fft
    return fft.fftfreq(n), fft.fftfreq(n + 1, 0.3), fft.rfftfreq(n, d=2.0, dtype=torch.float64)


def classes(x: Tensor) -> Any:
    n = x.shape[0]
    return F.one_hot(torch.arange(2 * n).view(2, n) % n, n), F.one_hot(torch.arange(2), num_classes=n + 2)


def triangles(x: Tensor) -> Any:
    n = x.shape[0]
    first, second = torch.triu_indices(n, n, 1)
    lower = torch.tril_indices(n, n), torch.tril_indices(n, n, offset=-2, dtype=torch.int32)
    return x[first] - x[second], torch.triu_indices(n, n), torch.triu_indices(n, n, 3), *lower


def other_triangles(x: Tensor) -> Any:
    """Those that torch makes itself."""
    return torch.tril_indices(4, 4, 1), torch.triu_indices(3, 5), x


def grid(align_corners: bool | None) -> Callable[[Tensor], Any]:
    def placed(x: Tensor) -> Any:
        theta = x.mean((1, 2, 3)).view(-1, 1, 1) + torch.arange(6.0).view(2, 3)
        places = F.affine_grid(theta, x.shape, align_corners=align_corners)
        wide = F.affine_grid(theta, (x.shape[0], 1, 5, x.shape[3] + 1), align_corners)
        return F.grid_sample(x, places, align_corners=align_corners), places, wide

    return placed


def solid_grid(x: Tensor) -> Any:
    theta = x[:, 0, 0, 0, :1, None] * torch.arange(12.0).view(3, 4)
    return F.affine_grid(theta, x.shape, True), F.affine_grid(theta, x.shape, False)


def few_grids(x: Tensor) -> Any:
    """Places for each way of counting, and for a solid, in a plane of few points."""
    theta = x.mean((1, 2, 3)).view(-1, 1, 1) + torch.arange(12.0).view(3, 4)
    plane, b, h = theta[:, :2, :3], x.shape[0], x.shape[-1]
    return F.affine_grid(plane, x.shape, True), F.affine_grid(theta, (b, 1, 2, 1, h), False)


def averaged(x: Tensor) -> Any:
    return F.adaptive_avg_pool1d(x, x.shape[-1] // 2 + 1), F.adaptive_avg_pool1d(x, 3)


def pieces(x: Tensor) -> Any:
    return *x.tensor_split(3, dim=1), *torch.tensor_split(x, 2), *x.tensor_split((1, 3), 1)


def resynthesis(
    hop: int, width: int, window: Tensor | None, longer: int = 0, **options: Any
) -> Callable[[Tensor], Any]:
    def heard(x: Tensor) -> Any:
        told = {"hop_length": hop, "win_length": width, "window": window, **options}
        waves, length = torch.stft(x, 16, return_complex=True, **told), x.shape[-1] + longer
        return waves.istft(16, length=length, **told), torch.istft(waves[0], 16, **told, length=8)

    return heard


def written(x: Tensor) -> Any:
    y, n, m = x.clone(), *x.shape
    y[:, m // 2] = 3
    y[n - 1, 1:] = x[0, 1:]
    y[..., m - 1] += y[:, 0]
    y[None, m % n, ..., : m // 2] = x[0, : m // 2]
    return y


HANN = torch.hann_window(16)
SLOW = {
    *("affine_grid, True", "affine_grid, False", "affine_grid of a solid"),
    *("istft, beyond", "istft, narrow"),
}
"""Cases of many sizes; those of a few grids and of other windows are like them."""
CASES = [
    Case("linspace", spaced, "n", (range(1, 12),)),
    Case("fftfreq", frequencies, "n", (range(1, 12),)),
    Case("one_hot", classes, "n", (range(1, 6),)),
    Case("triangles", triangles, "n", ((*range(1, 9), 60),)),
    Case("other triangles", other_triangles, "n", (range(1, 3),)),
    Case("affine_grid of few", few_grids, "b, 1, 2, h", ((1, 2), (1, 2, 5))),
    *[
        Case(f"affine_grid, {aligned}", grid(aligned), "b, 2, h, w", ((1, 2), (1, 2, 7), range(1, 6)))
        for aligned in (True, False)
    ],
    Case("affine_grid of a solid", solid_grid, "b, 1, d, h, w", ((1, 2), (1, 4), (1, 2), range(1, 6))),
    Case("adaptive_avg_pool1d", averaged, "b, 2, t", ((1, 2), range(1, 9))),
    Case("tensor_split", pieces, "n, m", (range(1, 5), range(1, 9))),
    Case("istft", resynthesis(4, 16, HANN), "b, t", ((1, 2), (8, 9, 10, 11, 12, 25, 40))),
    Case("istft, beyond", resynthesis(4, 16, torch.ones(16), 9), "b, t", ((1,), (9, 10, 12, 25))),
    Case("istft, narrow", resynthesis(4, 12, torch.ones(12), 2), "b, t", ((1,), (9, 10, 12, 25))),
    Case("istft, plain", resynthesis(5, 16, None, -3, normalized=True), "b, t", ((2,), (9, 10, 12, 25))),
    Case("istft, edges", resynthesis(4, 16, torch.ones(16), center=False), "b, t", ((1,), (15, 16, 17, 33))),
    Case("places written", written, "n, m", (range(1, 5), range(1, 8))),
]


def outcome(function: Callable[..., Any], x: Tensor) -> list[Any] | None:
    try:
        return pytree.tree_leaves(function(x))
    except Exception:  # noqa: BLE001 (a program refuses with anything)
        return None


def saved(program: ExportedProgram) -> ExportedProgram:
    kept = io.BytesIO()
    torch.export.save(program, kept)
    kept.seek(0)
    return torch.export.load(kept)


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore:.*length of signal")
@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name, marks=[pytest.mark.slow] * (c.name in SLOW)) for c in CASES]
)
def test_takes_what_eager_takes_and_gives_the_same(case: Case) -> None:
    """Nothing that the check accepts is given up either."""
    inputs = f"x: float32[{case.shape}]"
    found = export(case.function, inputs)
    assert str(found.accepts) == str(check(case.function, inputs).accepts)
    program = saved(found.program).module()
    names = [name for name in case.shape.split(", ") if name.isalpha()]
    for sizes in itertools.product(*case.sizes):
        at = dict(zip(names, sizes, strict=True))
        x = torch.randn([at[part] if part in at else int(part) for part in case.shape.split(", ")])
        expected, got = outcome(case.function, x), outcome(program, x)
        assert (got is None) == (expected is None) == (not holds(found.accepts, at)), at
        for one, other in zip(expected or [], got or [], strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_numbers_go_the_way_of_torch() -> None:
    """The program has torch's own operators then. A trace of torch 2.12 has no signal that istft pads."""
    length = 20 if INSTALLED >= (2, 13) else 8

    def plain(x: Tensor) -> Any:
        waves = torch.view_as_complex(x.view(9, -1, 2))
        sound = torch.istft(waves, 16, window=HANN, length=length)
        return torch.linspace(0, 1, 5), torch.fft.fftfreq(5), sound

    program = export(plain, "x: float32[n]").program
    called = {node.target for node in program.graph.nodes}
    aten = torch.ops.aten
    assert {aten.linspace.default, aten.fft_fftfreq.default, aten.istft.default} <= called


def test_windows_that_add_up_to_0_are_refused() -> None:
    """As in eager, where the program runs: a window is data."""

    def heard(x: Tensor, window: Tensor) -> Tensor:
        waves = torch.stft(x, 16, 4, window=torch.ones(16), return_complex=True)
        return torch.istft(waves, 16, 4, window=window, length=x.shape[-1])

    program = export(heard, "x: float32[t]; window: float32[16]").program
    for module in (program.module(), saved(program).module()):
        x = torch.randn(30)
        assert torch.equal(module(x, HANN), heard(x, HANN))
        with pytest.raises(RuntimeError, match="add up to 0"):
            module(x, torch.zeros(16))
