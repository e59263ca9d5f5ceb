"""AlexNet, ResNet and a transformer as they are written, for machines without torchvision, and in the
operators that torch's own gradual checker knows.
"""

from __future__ import annotations

import torch
from torch import nn

_LAST = ((192, 384), (384, 256), (256, 256))


class AlexNet(nn.Module):
    """Five convolutions and three linear layers; for images of any size that leaves something to pool."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        plan = [(3, 64, 11, 4, 2), (64, 192, 5, 1, 2), *((i, o, 3, 1, 1) for i, o in _LAST)]
        layers: list[nn.Module] = []
        for at, (i, o, k, s, p) in enumerate(plan):
            layers += [nn.Conv2d(i, o, k, s, p), nn.ReLU(inplace=True)]
            if at in (0, 1, 4):
                layers.append(nn.MaxPool2d(3, 2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Linear(256 * 36, 4096), nn.ReLU(inplace=True),
            nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, classes),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class Block(nn.Module):
    """Two convolutions of 3 by 3, or three with a narrow one in the middle, around a shortcut."""

    def __init__(self, i: int, width: int, stride: int, expansion: int) -> None:
        super().__init__()
        o = width * expansion
        plan = [(i, width, 3, stride), (width, o, 3, 1)]
        if expansion > 1:
            plan = [(i, width, 1, 1), (width, width, 3, stride), (width, o, 1, 1)]
        self.body = nn.Sequential(*[_conv(*sizes, last=at == len(plan) - 1) for at, sizes in enumerate(plan)])
        self.shortcut = _conv(i, o, 1, stride, last=True) if stride > 1 or i != o else None
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))


def _conv(i: int, o: int, k: int, stride: int, last: bool = False) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(i, o, k, stride, k // 2, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([] if last else [nn.ReLU(inplace=True)]))


class ResNet(nn.Module):
    """`depths` blocks of each of four stages. (2, 2, 2, 2) is ResNet-18, (3, 4, 6, 3) with 4 is ResNet-50."""

    def __init__(self, depths: tuple[int, ...] = (2, 2, 2, 2), expansion: int = 1) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        blocks, i = [], 64
        for stage, depth in enumerate(depths):
            for at in range(depth):
                width = 64 << stage
                blocks.append(Block(i, width, 2 if stage and not at else 1, expansion))
                i = width * expansion
        self.blocks = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(i, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.flatten(self.avgpool(self.blocks(self.stem(x))), 1))


class Chain(nn.Module):
    """One layer after the other."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def linears(count: int) -> nn.Module:
    """Linear and ReLU in turn."""
    return Chain(*(layer for _ in range(count) for layer in (nn.Linear(8, 8), nn.ReLU())))


def convolutions(count: int) -> nn.Module:
    """Convolution, batch norm and ReLU in turn."""
    return Chain(*(
        layer for _ in range(count)
        for layer in (nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
    )).eval()  # fmt: skip


class Broadcasts(nn.Module):
    """Sums of tensors of which nothing is known."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(self.count):
            x = torch.add(x, y)
        return x


class Attention(nn.Module):
    """A block of a transformer with one head, its products by `bmm`."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.relu, self.down = nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.bmm(self.query(x), self.key(x).transpose(1, 2))
        mixed = torch.bmm(torch.nn.functional.softmax(scores, dim=2), self.value(x))
        x = self.first(torch.add(x, mixed))
        return self.second(torch.add(x, self.down(self.relu(self.up(x)))))


def transformer(count: int) -> nn.Module:
    """So many blocks."""
    return Chain(*(Attention() for _ in range(count)))
