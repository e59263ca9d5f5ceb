"""Regions of autocast: the dtypes in them, and what is refused behind them, as eager runs have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.typecheck import check

HALF = torch.bfloat16


def lower() -> Any:
    return torch.autocast("cpu", dtype=HALF)


def behind_it(x: Tensor) -> Tensor:
    with lower():
        z = x @ torch.ones(4, 4)
    return z @ torch.ones(4, 4)


def converted_behind_it(x: Tensor) -> Tensor:
    with lower():
        z = x @ torch.ones(4, 4)
    assert z.dtype is HALF
    return z.float() @ x.t()


def of_two_dtypes(x: Tensor) -> Tensor:
    with lower():
        return x @ torch.ones(4, 4, dtype=HALF)


@torch.autocast("cpu", dtype=HALF)
def decorated(x: Tensor) -> Tensor:
    z = x @ x.T
    return z if z.dtype is torch.float32 else z.view(2, -1)


def joined(x: Tensor) -> Tensor:
    with lower():
        z = torch.cat([x @ torch.ones(4, 4), x])
        assert z.dtype is torch.float32
        y = torch.nn.functional.linear(z, torch.ones(3, 4))
        assert y.dtype is HALF and y.softmax(0).dtype is HALF
    return z


def switched_off(x: Tensor) -> Tensor:
    with lower():
        with torch.autocast("cpu", enabled=False):
            z = x @ torch.ones(4, 4)
        assert z.dtype is torch.float32
        return z.double() @ x.double().t()


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv1d(4, 3, 2), nn.LayerNorm(3), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        with lower():
            z: Tensor = self.linear(self.norm(self.conv(x.t()[None]).transpose(1, 2)))
        assert z.dtype is HALF
        return z


PROGRAMS = [behind_it, converted_behind_it, of_two_dtypes, decorated, joined, switched_off, Layers()]


@pytest.mark.parametrize("target", PROGRAMS, ids=lambda p: getattr(p, "__name__", "Layers"))
def test_regions_are_as_eager_runs_have_them(target: Callable[..., Any]) -> None:
    report = check(target, "x: [n, 4]")
    assert report.verdict != "unknown" and "approximate" not in {f.code for f in report.findings}
    for n in range(1, 6):
        try:
            target(torch.ones(n, 4))
            runs = True
        except (RuntimeError, AssertionError):
            runs = False
        assert report.accepts.holds(n=n) == runs, report.to_text()


HALVES: dict[str, Callable[[Tensor], Tensor]] = {
    "norm": torch.linalg.norm,
    "vector_norm": torch.linalg.vector_norm,
    "matrix_norm": torch.linalg.matrix_norm,
    "matrix_power": lambda x: torch.linalg.matrix_power(x, 2),
    "svd": lambda x: torch.linalg.svd(x)[0],
    "qr": lambda x: torch.linalg.qr(x)[1],
    "inverse": torch.linalg.inv,
    "fft": torch.fft.fft,
    "fftshift": torch.fft.fftshift,
    "prod": torch.prod,
    "cdist": lambda x: torch.cdist(x, x),
    "mse": lambda x: torch.nn.functional.mse_loss(x, x),
    "prelu": lambda x: torch.nn.functional.prelu(x, x[0, :1]),
    "softmax": lambda x: x.softmax(0),
    "vecdot": lambda x: torch.linalg.vecdot(x, x),
    "stack": lambda x: torch.stack([x, x.float()]),
    "stack of halves": lambda x: torch.stack([x, x]),
}


@pytest.mark.parametrize("name", HALVES)
def test_the_dtypes_in_a_region_are_those_of_torch(name: str) -> None:
    call = HALVES[name]
    with lower():
        expected = call(torch.eye(3).to(HALF)).dtype

    def target(x: Tensor) -> Tensor:
        with lower():
            result = call(x)
        assert result.dtype is expected
        return result

    assert check(target, "x: bfloat16[3, 3]", replay=False).verdict == "proved"


def test_models_without_data_have_the_regions_of_the_cpu() -> None:
    with torch.device("meta"):
        model = Layers()
    report = check(model, "x: [n, 4]")
    assert report.verdict == "refined" and str(report.accepts) == "2 <= n"


def test_what_is_not_followed_is_told() -> None:
    def recurrent(x: Tensor) -> Tensor:
        with lower():
            return torch.nn.functional.pad(x, (1, 1), mode="reflect")

    assert "approximate" in {f.code for f in check(recurrent, "x: [n, 4]").findings}
