"""Whose an error is that C code raises: the program's, or that of a stand-in which it was handed."""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal, kl_divergence

from anyshape import check
from anyshape.typecheck.targets.target_error import TargetError


def second(x: Tensor, y: Tensor) -> Tensor:
    return y


class Remembers(nn.Module):
    last: Any = None

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.last])


class TakesTwo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x, x)


def nothing_is_transformed(x: Tensor) -> Tensor:
    nothing = None
    return torch.fft.rfft(nothing)  # type: ignore[arg-type]


def a_size_is_joined(x: Tensor) -> Tensor:
    history = [x.shape[0], x]
    return torch.cat(history)


def calls_a_list(x: Tensor) -> Any:
    layers: Any = [torch.relu]
    return layers(x)


def a_number_is_joined_with_rows(x: Tensor) -> Any:
    found: Any = 0
    for i in range(x.shape[0]):
        found = torch.cat([found, x[i:]])
    return found


@pytest.mark.parametrize("target", [
    Remembers(), TakesTwo(), nothing_is_transformed, a_size_is_joined, lambda x: second(x),
    a_number_is_joined_with_rows, lambda x: torch.maximum(0, x[1]),
    lambda x: len(3) * x, lambda x: [*None], calls_a_list, lambda x: x.missing,
    lambda x: x.shape[0].missing, lambda x: (x.shape[0] - 2) @ x, lambda x: x @ (x.shape[0] + 1),
    lambda x: (x.shape[0] - 2) @ x.shape[0], lambda x: (x.sum().item() + 1) @ x,
    lambda x: (x.shape[0] + 1) - [x], lambda x: (x.shape[0] + 1) << 2.0, lambda x: (x.shape[0] + 1) + "a",
])  # fmt: skip
def test_the_program_fails_whatever_the_sizes_are(target: Callable[..., Any]) -> None:
    with pytest.raises(TargetError, match="fails for a reason other than sizes"):
        check(target, "x: [a, b]", replay=False)
    with pytest.raises((TypeError, AttributeError)):
        target(torch.ones(2, 2))


MISUSED: list[Callable[[Any], Any]] = [
    lambda n: list(n, 2),
    lambda n: reversed(n, 2),
    lambda n: tuple(n, 2),
    lambda n: enumerate(),
    lambda n: type(n, 2),
    lambda n: zip((n,), k=2),
    lambda n: round(n, 2.5),
    lambda n: torch.zeros(2, n).shape * 2.5,
    lambda n: torch.zeros(2, n).shape * torch.zeros(2, n).shape,
    vars,
    lambda n: n.__dict__,
    lambda n: vars(n / 2),
]


@pytest.mark.parametrize("misuse", MISUSED)
def test_what_python_refuses_of_a_number_is_the_programs_error(misuse: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError)):
        misuse(3)
    with contextlib.suppress(TargetError):
        report = check(lambda x: misuse(x.shape[0]), "x: [n]")
        assert report.verdict == "unknown", report.to_text()
        assert not [f for f in report.findings if f.code == "internal-error"], report.to_text()


@pytest.mark.parametrize("target", [
    lambda x: torch.FloatTensor(x.shape[0]), lambda x: torch.Tensor(x.shape[0], 2).fill_(1.0),
    lambda x: x + torch.Generator().manual_seed(x.shape[0]).initial_seed(),
    lambda x: x + json.loads(json.dumps({"a": [x.shape[0]]}))["a"][0], lambda x: x + statistics.mean(x.shape),
    lambda x: x[np.random.permutation(x.shape[0])], lambda x: x[: np.ceil(x.shape[0] / 2).astype(int)],
    lambda x: x[np.array([0, x.shape[0] - 1])], lambda x: x[: np.divmod(x.shape[0], 2)[0].item()],
])  # fmt: skip
def test_a_size_that_c_code_does_not_take(target: Callable[..., Any]) -> None:
    report = check(target, "x: [a, b]", replay=False)
    assert report.verdict in ("unknown", "proved")
    target(torch.ones(2, 2))


def divergence(x: Tensor, y: Tensor) -> Tensor:
    scales = (torch.eye(mean.shape[-1]).expand(*mean.shape, -1) for mean in (x, y))
    one, two = (MultivariateNormal(*pair, validate_args=False) for pair in zip((x, y), scales, strict=True))
    return kl_divergence(one, two)


def of_constants(x: Tensor) -> Tensor:
    return x + (torch.zeros(2) + torch.zeros(x.dim()))


@pytest.mark.parametrize("target", [
    divergence, lambda x, y: x.new_zeros(torch.broadcast_shapes(x.shape, y.shape[1:], (1,), 1)),
    lambda x, y: torch.broadcast_shapes(x.shape, y.shape, (2, 1))[0] * x,
])  # fmt: skip
def test_shapes_that_are_broadcast_without_tensors(target: Callable[..., Any]) -> None:
    report = check(target, "x: [a, b]; y: [c, d]", replay=False)
    for a, b, c, d in itertools.product(range(1, 4), repeat=4):
        try:
            target(torch.ones(a, b), torch.ones(c, d))
        except (RuntimeError, ValueError):
            assert not report.accepts.certain.holds(a=a, b=b, c=c, d=d)
        else:
            assert report.accepts.holds(a=a, b=b, c=c, d=d)


@pytest.mark.parametrize("spec, verdict", [("x: [a, 2]", "proved"), ("x: [a, 3, 2]", "refuted")])
def test_constants_that_do_not_fit_are_refused(spec: str, verdict: str) -> None:
    assert check(of_constants, spec, replay=False).verdict == verdict
