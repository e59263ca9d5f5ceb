"""Functions that torch transforms: derivatives of `torch.func`, what is compiled, what is scripted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.typecheck import check


def gradient(x: Tensor) -> Tensor:
    return torch.func.grad(lambda r: (r**2).sum())(x).view(2, -1)


def gradient_of_a_product(x: Tensor) -> Tensor:
    return torch.func.grad(lambda r: (r @ r.t()).exp().sum())(x).view(2, -1)


def gradients_of_rows(x: Tensor) -> Tensor:
    return torch.vmap(torch.func.grad(lambda r: (r**2).sum()))(x).view(-1, 3)


def jacobian(x: Tensor) -> Tensor:
    return torch.func.jacrev(lambda r: r.sum(0))(x) * torch.ones(3)


@torch.compile(backend="eager")
def compiled(x: Tensor) -> Tensor:
    return x[: x.shape[0] // 2].view(-1, 2) if x.shape[0] > 2 else x


PROGRAMS = [
    (gradient, "x: [n, m]"),
    (gradient_of_a_product, "x: [n, m]"),
    (gradients_of_rows, "x: [n, m]"),
    (jacobian, "x: [n, m]"),
    (compiled, "x: [n]"),
]


@pytest.mark.parametrize("target, inputs", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_transformed_programs_run_where_it_is_said(target: Callable[..., Any], inputs: str) -> None:
    report = check(target, inputs)
    assert report.verdict in ("proved", "refined"), report.to_text()
    symbols = parse_spec(inputs).domain.symbols
    plain = getattr(target, "_torchdynamo_orig_callable", target)
    for point in itertools.product(range(1, 7), repeat=len(symbols)):
        try:
            plain(torch.ones(point))
            runs = True
        except RuntimeError:
            runs = False
        assert report.accepts.holds(**dict(zip(symbols, point, strict=True))) == runs, f"{point}\n{report}"


def test_modules_without_source_have_no_rule() -> None:
    class Traced(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.jit.trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.zeros(2, 4))

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)  # type: ignore[no-any-return]

    assert [finding.code for finding in check(Traced(), "x: [b, h]").findings] == ["no-rule"]


def test_constants_that_a_transform_wraps_are_left_aside() -> None:
    def target(x: Tensor) -> Tensor:
        return torch.func.jacrev(lambda z: (z * x[0]).sin())(torch.ones(4))

    report = check(target, "x: [n, 4]")
    assert report.verdict == "unknown"
    assert [f.code for f in report.findings] == ["incomplete"], report.to_text()


def test_gradients_beside_constants() -> None:
    def target(x: Tensor) -> Tensor:
        y = torch.nn.functional.conv1d(x[:, None], torch.ones(1, 1, 3))[:, 0]
        return torch.func.grad(lambda z: z.sum())(y.sum())

    assert check(target, "x: [n, 4]").verdict == "proved"
