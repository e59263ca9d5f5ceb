"""Reports of small programs, which the tests of all renderers render."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from anyshape.typecheck import Report, check


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(self.norm(x)).relu()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(8) for _ in range(3)))

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(x)
        return x.view(x.shape[0], 2, x.shape[1] // 2, 8)


class Wrong(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(7, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


def two_ways(x: Tensor) -> Any:
    if x.shape[0] > 4:
        return x.sum(0), None
    return x, x.mean()


PROGRAMS: dict[str, tuple[Any, str]] = {
    "proved": (torch.relu, "input: float32[b, c]"),
    "refined": (Net, "x: float32[b, t, 8]"),
    "refuted": (Wrong, "x: float32[b, 8]"),
    "two-ways": (two_ways, "x: float32[b, c]"),
}


@cache
def report(name: str) -> Report:
    target, inputs = PROGRAMS[name]
    return check(target() if isinstance(target, type) else target, inputs)


class Deep(nn.Module):
    """Of `stages * 25` blocks, each of five calls."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.stages = nn.ModuleList(nn.Sequential(*(Block(8) for _ in range(25))) for _ in range(stages))
        self.head = nn.Linear(7, 2)

    def forward(self, x: Tensor) -> Tensor:
        for stage in self.stages:
            x = stage(x)
        return self.head(x)
