"""Lazy modules, which get their sizes from their first input, compared with eager runs of new ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import nn

from anyshape import check


class Pair(nn.Module):
    """Takes a path of its own for an even batch, so that each path meets the lazy module as it was."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.last = nn.LazyLinear(3, bias=False), nn.LazyLinear(2)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.shape[0] % 2 == 0:
            input = input.repeat(1, 2)
        return self.last(self.inner(input)).view(2, -1, 2)


@pytest.mark.filterwarnings("ignore:.*[Ll]azy modules")
@pytest.mark.parametrize("make, rank", [
    (lambda: nn.LazyLinear(3), 2), (lambda: nn.LazyLinear(3, bias=False), 1), (Pair, 2),
    (lambda: nn.Sequential(nn.LazyLinear(3), nn.LazyLinear(2)), 2), (lambda: nn.LazyBatchNorm1d(), 2),
    (lambda: nn.LazyConv1d(3, 2), 3), (lambda: nn.LazyConvTranspose1d(2, 2), 3),
    (lambda: nn.LazyInstanceNorm1d(), 3),
])  # fmt: skip
def test_sizes_of_the_first_input(make: Callable[[], nn.Module], rank: int) -> None:
    names, model = "abc"[:rank], make()
    before = [*map(type, model.modules())], [*map(type, model.parameters())]
    report = check(model, f"input: [{', '.join(names)}]", [f"{name} >= 0" for name in names], replay=False)
    assert ([*map(type, model.modules())], [*map(type, model.parameters())]) == before
    assert report.accepts.exact
    for sizes in itertools.product(range(4), repeat=rank):
        try:
            make()(torch.ones(sizes))
        except (RuntimeError, ValueError, IndexError):
            runs = False
        else:
            runs = True
        assert report.accepts.holds(**dict(zip(names, sizes, strict=True))) == runs, sizes
