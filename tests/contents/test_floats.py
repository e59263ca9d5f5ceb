"""Indices that went through floats: the exact condition, against eager runs around the powers of 2 from which
floats lie farther apart. Tensors of so many elements are one element that is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
from eager_runs import runs
from torch import Tensor, arange

from anyshape.typecheck import check

Program = Callable[[Tensor], Any]


def n(x: Tensor) -> int:
    return x.shape[0]


def one(x: Tensor) -> Tensor:
    return torch.tensor([n(x)])


def table(size: int) -> Tensor:
    return torch.zeros(1).expand(size)


def around(*powers: int) -> list[int]:
    """Returns sizes on both sides of the powers of 2, and of what lies between floats there."""
    near = {(1 << k) + d for k in powers for d in (-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)}
    return sorted({1, 2, 3, *near})


SINGLES: Final[list[Program]] = [
    lambda x: table(n(x))[one(x).float().long()],
    lambda x: table(n(x) + 1)[one(x).float().long()],
    lambda x: table(n(x) + 2)[one(x).float().long()],
    lambda x: table(n(x))[one(x).float().long() - 1],
    lambda x: table(n(x))[-one(x).float().long()],
    lambda x: table(3 * n(x) + 1)[(one(x).float() * 3).long()],
    lambda x: table(n(x) + 1)[torch.full((2,), n(x), dtype=torch.float32).long()],
    lambda x: table(n(x) + 1)[x.new_full((2,), n(x)).long()],
    lambda x: table(n(x) + 1)[(one(x).float() + 1).long().clamp(max=n(x))],
    lambda x: table(1 << 25)[one(x).float().long()],
    lambda x: table(200)[one(x).float().long() % 256],
    lambda x: table(2 * n(x) + 2)[(torch.full((2,), n(x)) * 2.0).long()],
    lambda x: table(n(x))[torch.linspace(0, n(x) - 1, 5).long()],
    lambda x: table(n(x) + 3)[torch.linspace(n(x), 0, 9).round().long()],
    lambda x: table(n(x))[torch.linspace(-n(x), -1, 16).ceil().long()],
]
SHORT: Final[list[Program]] = [
    lambda x: table(n(x) + 1)[one(x).bfloat16().long()],
    lambda x: table(n(x) + 4)[arange(n(x)).bfloat16().long()],
    lambda x: table(n(x) + 4)[arange(-n(x), 0).bfloat16().long()],
    lambda x: table(n(x))[x.argsort().bfloat16().long()],
    lambda x: table(n(x))[arange(0, n(x), 3).bfloat16().half().long()],
    lambda x: table(200)[arange(n(x)).bfloat16().long().to(torch.uint8).long()],
]
WIDE: Final[list[Program]] = [
    lambda x: table(n(x))[arange(n(x)).float().long()],
    lambda x: table(n(x) + 1)[arange(-n(x), 1).float().long()],
    lambda x: table(200)[arange(n(x)).float().long().to(torch.uint8).long()],
    lambda x: table(n(x))[(arange(n(x)) // 1).float().double().long()],
    lambda x: table(n(x))[(arange(n(x)) / 1).floor().long()],
    lambda x: table(n(x) // 2 + 1)[(arange(n(x)) * 0.5).ceil().long()],
    lambda x: table(n(x) // 2 + n(x) % 2)[(arange(n(x)) * (n(x) / (2 * n(x)))).long()],
    lambda x: table(n(x))[torch.linspace(0, n(x) - 1, n(x)).round().long()],
]
SOUND: Final[list[Program]] = [
    lambda x: table(n(x) + 1)[torch.full((3,), n(x)).float().sum().long()],
    lambda x: table(n(x) + 1)[(one(x) * 0.5).long() * 2],
    lambda x: table(n(x) + 1)[(one(x) / 2).long() * 2],
    lambda x: table(3 * n(x) + 1)[(one(x) * 3.0).long()],
    lambda x: table(n(x) + 1)[(one(x) + torch.ones(1)).long() - 1],
    lambda x: table(3 * n(x) + 9)[(one(x) * torch.full((1,), 3).half()).long()],
    lambda x: table(n(x) + 1)[torch.add(one(x).float(), one(x).float(), alpha=3).long() // 4],
    lambda x: table(n(x) + 1)[(one(x).float() / 3).long()],
    lambda x: table(n(x) + 1)[torch.tensor(n(x), dtype=torch.float32).long()],
    lambda x: table(n(x) + 1)[(arange(n(x) - 2, n(x)).float() + 1 - 1).long()],
    lambda x: table(n(x) + 1)[(arange(n(x) - 2, n(x)).float().double() + 1).long()],
    lambda x: table(n(x) + 1)[arange(n(x) - 2, n(x)).float().bfloat16().long()],
    lambda x: table(n(x) + 1)[-(-arange(n(x) - 2, n(x)).float()).long()],
    lambda x: table(n(x) + 1)[(arange(n(x) - 2, n(x)) * 0.75).long()],
    lambda x: table(n(x) + 1)[(arange(n(x) - 2, n(x)) / 2 + 1).floor().long()],
    lambda x: table(n(x) + 1)[(arange(n(x) - 2, n(x)) * 0.5).half().long()],
    lambda x: table(n(x) + 1)[((arange(n(x) - 2, n(x)).half() * 0.7) / 3).long()],
    lambda x: table(2 * n(x) + 1)[torch.linspace(3, 2 * n(x), 4).floor().long().flip(0)],
    lambda x: table(n(x))[torch.linspace(0, n(x) - 1, 8, dtype=torch.bfloat16).long()],
    lambda x: table(n(x))[torch.linspace(0, n(x) - 1, 8).half().long()],
    lambda x: table(n(x))[torch.linspace(0.5, n(x) - 1, 8).round().long()],
    lambda x: table(n(x))[(torch.linspace(0, n(x) - 1, 5) + 1).long() - 1],
    lambda x: table(1 << 12)[torch.stack((arange(n(x) - 2, n(x)), arange(2))).sqrt().long()],
]
CASES: Final = [
    *((target, around(24, 25, 26, 27, 33)) for target in SINGLES),
    *((target, around(8, 9, 10, 11, 14)) for target in SHORT),
    *((target, [3, *range((1 << 24) - 1, (1 << 24) + 5)]) for target in WIDE),
]
"""Programs and sizes. Of those that make millions of elements few sizes, with each remainder by 4 past 2**24;
a slow test has all.
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target, sizes", CASES)
def test_floats_are_valid_exactly_where_torch_takes_them(target: Program, sizes: list[int]) -> None:
    is_exact(target, sizes)


@pytest.mark.slow
@pytest.mark.parametrize("target", WIDE)
def test_millions_of_floats_are_valid_exactly_where_torch_takes_them(target: Program) -> None:
    """At all sizes; the test above has the same programs at few."""
    is_exact(target, around(24))


def is_exact(target: Program, sizes: list[int]) -> None:
    """Fails where the condition is not exact, or differs from eager runs at one of these sizes."""
    report = check(target, "x: float32[q]", budget_s=8, replay=False)
    assert report.verdict != "unknown" and report.accepts.exact, report.to_text()
    for size in sizes:
        ran = runs(target, size, table(size))
        assert report.accepts.holds(q=size) == ran, (size, report.to_text())


@pytest.mark.parametrize("target", SOUND)
def test_nothing_wrong_is_said_of_numbers_that_are_rounded_otherwise(target: Program) -> None:
    report = check(target, "x: float32[q]", budget_s=8, replay=False)
    for size in around(8, 9, 11, 24, 25, 26, 27):
        ran = runs(target, size, table(size))
        assert ran or not report.accepts.certain.holds(q=size), (size, report.to_text())
        assert not report.accepts.exact or report.accepts.holds(q=size) == ran, (size, report.to_text())


def test_another_precision_is_noticed() -> None:
    """The sizes at which a half would be rounded tell it from a single."""
    report = check(lambda x: table(n(x))[one(x).half().long() - 1], "x: float32[q]", replay=False)
    single = SINGLES[3]
    assert any(report.accepts.holds(q=s) != runs(single, s, table(s)) for s in around(11, 12))


def test_what_is_refused_anyway_is_refused_however_floats_are_rounded() -> None:
    def target(x: Tensor) -> Tensor:
        places = torch.arange(n(x) + 1, dtype=torch.bfloat16).long()
        return x.scatter(0, places.reshape(-1, 1), 1.0)

    report = check(target, "x: float32[q]", replay=False)
    assert report.verdict == "refuted", report.to_text()
    assert not any(runs(target, size) for size in (1, 2, 300))
