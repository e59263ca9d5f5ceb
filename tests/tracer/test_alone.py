"""Threads that check something at the same time find what each would find by itself."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from anyshape.tracer.host import alone
from anyshape.typecheck import Report, check
from anyshape.typecheck.exporting.export import export


def halves(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.shape[0] > 4, lambda y: y[:2] + 1, lambda y: y[:2] - 1, (x,)).view(2, -1)


def counted(x: torch.Tensor) -> torch.Tensor:
    total = x[0]
    for i in range(1, int(x.shape[0])):
        total = total + x[i]
    return total.view(-1, max(2, math.floor(len(x) / 2)))


def padded(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, -x.shape[1] % 3)).unflatten(1, (3, -1))


def branching(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] % 2:
        return torch.nn.functional.conv1d(x, torch.ones(4, 2, 3))
    return torch.einsum("abc,adc->abd", x, x)


PROGRAMS = [
    (halves, "x: float32[n, m]"),
    (counted, "x: float32[n, 12]"),
    (padded, "x: float32[n, m]"),
    (branching, "x: float32[n, c, l]"),
]


def told(report: Report) -> tuple[Any, ...]:
    return report.verdict, str(report.accepts), [str(shape) for shape in report.shapes]


def in_threads() -> list[tuple[Any, ...]]:
    with ThreadPoolExecutor(6) as threads:
        asked = [threads.submit(check, f, inputs, budget_s=60.0) for f, inputs in PROGRAMS * 3]
        return [told(found.result()) for found in asked]


def test_checks_in_threads() -> None:
    assert in_threads() == [told(check(f, inputs, budget_s=60.0)) for f, inputs in PROGRAMS] * 3


def test_exports_beside_checks() -> None:
    with ThreadPoolExecutor(4) as threads:
        exports = [threads.submit(export, padded, "x: float32[n, m]") for _ in range(2)]
        checks = [threads.submit(check, f, inputs, budget_s=60.0) for f, inputs in PROGRAMS]
        assert [e.result().exact for e in exports] == [export(padded, "x: float32[n, m]").exact] * 2
        assert [told(c.result()) for c in checks] == [told(check(f, inputs)) for f, inputs in PROGRAMS]


def test_waiting_does_not_count() -> None:
    """A budget is for the work, so a check that waits longer than that for others is made all the same."""
    with ThreadPoolExecutor(1) as threads, alone.TURN:
        asked = threads.submit(check, halves, "x: float32[n, m]", budget_s=3.0)
        with pytest.raises(TimeoutError):
            asked.result(timeout=3.5)
    assert asked.result().verdict == "refined"
