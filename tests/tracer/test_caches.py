"""Functions that remember their results have nothing of a recording, a replay or a trace left in them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.tracer.patches.caches import forgetting
from anyshape.typecheck import check, export


@functools.lru_cache(maxsize=8)
def positions(length: int) -> torch.Tensor:
    return torch.arange(length) % 2


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """A cache that only a closure holds, as libraries write them around methods."""
    cached = functools.lru_cache(maxsize=8)(function)

    def call(*args: Any) -> Any:
        return cached(*args)

    return call


class Direct(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + positions(x.shape[1]) + positions(4).sum()


class Method(nn.Module):
    @remembered
    def scale(self, length: int) -> torch.Tensor:
        return torch.ones(length) / 4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale(x.shape[1])


@pytest.mark.parametrize("kind", [Direct, Method])
def test_a_model_runs_as_before_after_a_check(kind: type[nn.Module]) -> None:
    model = kind()
    report = check(model, "x: float32[b, t]")
    assert str(report.verdict) == "proved"
    for t in range(1, 6):
        result = model(torch.ones(2, t))
        assert type(result) is torch.Tensor and torch.equal(result, kind()(torch.ones(2, t)))


class NotInstalled:
    """What stands for a package that is not there: it raises at whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise ModuleNotFoundError(name)


OPTIONAL = NotInstalled()


def test_a_member_that_raises_is_not_asked() -> None:
    with forgetting([sys.modules[__name__]]):
        positions(91)
    assert positions.cache_info().currsize == 0


class Constant(nn.Module):
    """torch.export has no keys for a cache where a size varies."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * positions(7).sum() + torch.ones(x.shape[1])


def test_a_model_runs_as_before_after_an_export() -> None:
    positions.cache_clear()
    model = Constant()
    program = export(model, "x: float32[b, t]").program.module()
    for t in range(1, 6):
        x = torch.ones(2, t)
        assert type(model(x)) is torch.Tensor and torch.equal(model(x), program(x))


def test_what_is_not_asked_anew_is_kept() -> None:
    kept = positions(3)
    with forgetting([sys.modules[__name__]]):
        assert positions(3) is kept
    assert positions(3) is kept
    with forgetting([sys.modules[__name__]]):
        positions(5)
    assert positions(3) is not kept


def the_same_list(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kept = functools.cache(lambda size: [0])
    kept(x.shape[0]).append(1)
    kept(y.shape[0]).append(1)
    return torch.zeros(len(kept(y.shape[0]))) + torch.zeros(2)


def the_same_tensor(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kept = functools.lru_cache(maxsize=4)(lambda size: torch.zeros(1, dtype=torch.int64))
    kept(x.shape[0]).add_(1)
    return x.new_zeros(2)[kept(y.shape[0]).add_(1)]


def the_same_object(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kept = functools.cache(lambda size: [size])
    return x + x.new_zeros(3 if kept(x.shape[0]) is kept(y.shape[0]) else 1)


def the_same_call(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: list[int] = []
    kept = functools.cache(lambda first, second: made.append(first))
    kept(x.shape[0], y.shape[0])
    kept(y.shape[0], x.shape[0])
    return x.new_zeros(2 * len(made)) + x.new_zeros(4)


def the_same_shape(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kept = functools.cache(lambda shape: [0])
    kept(x.shape).append(1)
    kept(y.shape).append(1)
    return torch.zeros(len(kept(y.shape))) + torch.zeros(2)


@pytest.mark.parametrize(
    "function", [the_same_list, the_same_tensor, the_same_object, the_same_call, the_same_shape]
)
def test_calls_with_equal_sizes_share_one_result(function: Callable[..., torch.Tensor]) -> None:
    report = check(function, "x: float32[n]; y: float32[m]")
    assert report.accepts.exact and report.verdict != "unknown"
    for n in range(1, 5):
        for m in range(1, 5):
            try:
                function(torch.zeros(n), torch.zeros(m))
                runs = True
            except (RuntimeError, IndexError):
                runs = False
            assert report.accepts.holds(n=n, m=m) is runs
