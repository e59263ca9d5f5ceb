"""Counts of elements, and choices between them, of which sizes decide what data decide elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, arange

from anyshape import check


def runs(target: Callable[[Tensor], object], n: int) -> bool:
    """Whether it runs for rising numbers, for falling ones, and for those that are alike."""
    try:
        for x in (torch.ones(n), arange(n).float(), -arange(n).float(), torch.zeros(n)):
            target(x)
    except (RuntimeError, IndexError, AssertionError):
        return False
    return True


@pytest.mark.parametrize("count", [
    lambda n: torch.bincount(arange(n)).shape[0], lambda n: torch.bincount(arange(n), minlength=3).shape[0],
    lambda n: torch.bincount(torch.full((n,), 2)).shape[0], lambda n: torch.bincount(arange(n) % 3).shape[0],
    lambda n: F.one_hot(arange(n)).shape[1], lambda n: F.one_hot(arange(n) // 2).shape[1],
    lambda n: F.one_hot(arange(n) % 3).shape[1], lambda n: torch.repeat_interleave(arange(n)).shape[0],
    lambda n: arange(n).repeat_interleave(arange(n)).shape[0],
    lambda n: arange(n).repeat_interleave(torch.full((n,), 2)).shape[0],
    lambda n: arange(n).repeat_interleave(arange(n) % 2).shape[0],
    lambda n: arange(n).unique_consecutive().shape[0], lambda n: (arange(n) // 2).unique().shape[0],
])  # fmt: skip
@pytest.mark.parametrize("bound", [1, 2, 5])
def test_counts_of_what_sizes_decide(count: Callable[[int], int], bound: int) -> None:
    def target(x: Tensor) -> Tensor:
        assert count(x.shape[0]) > bound
        return x

    report = check(target, "x: [n]", "n >= 0", replay=False)
    for n in range(12):
        if runs(target, n):
            assert report.accepts.holds(n=n), n
        else:
            assert not report.accepts.certain.holds(n=n), n


def below_4(x: Tensor) -> Tensor:
    chosen = x.kthvalue(3).indices
    return torch.zeros(4)[torch.where(chosen < 4, chosen, 0)]


def filled(x: Tensor) -> Tensor:
    chosen = x.topk(2).indices
    return torch.zeros(4)[chosen.masked_fill(chosen >= 4, 0)]


@pytest.mark.parametrize("target", [
    below_4, filled, lambda x: torch.zeros(4)[torch.where(x.abs() < 0, 9, 3)],
    lambda x: torch.zeros(4)[torch.where(x > 0, 9, 3)], lambda x: torch.zeros(4)[torch.where(x > 0, 2, 3)],
])  # fmt: skip
def test_choices_between_integers(target: Callable[[Tensor], object]) -> None:
    report = check(target, "x: [n]", "n >= 0", replay=False)
    for n in range(8):
        if runs(target, n):
            assert report.verdict != "refuted" and (not report.accepts.exact or report.accepts.holds(n=n)), n
        else:
            assert not report.accepts.certain.holds(n=n), n
