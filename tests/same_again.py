"""Programs whose reports are to be the same again and again: `python tests/same_again.py TIMES [NAME...]`.

Prints, as JSON, what each program's report says each time, without times: with dicts and sets in the order of
this process's hashes, after whatever random numbers were drawn before.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.typecheck import check

Program = tuple[Callable[..., Any], str]


def coin(x: Tensor) -> Tensor:
    return x.view(-1, 2) if torch.bernoulli(torch.randn(1)) else x


def dice(x: Tensor) -> Tensor:
    return x.view(-1, random.randint(2, 9))


def dice_of_numpy(x: Tensor) -> Tensor:
    return x.view(-1, int(np.random.randint(2, 9)))


def dice_of_torch(x: Tensor) -> Tensor:
    return x.view(-1, int(torch.randint(2, 9, ())))


def dropped(x: Tensor) -> Tensor:
    return x[F.dropout(torch.ones(8), 0.5) > 0]


def chosen(x: Tensor, table: Tensor) -> Tensor:
    return table[x.argsort()]


def drawn(x: Tensor, table: Tensor) -> Tensor:
    return table[torch.randperm(x.shape[0])]


def of_a_set(x: Tensor) -> Tensor:
    for size in {"b": 2, "a": 3, "c": 5}.values():
        x = x.view(-1, size)
    return x


def branching(x: Tensor) -> Tensor:
    if x.shape[0] % 2:
        return F.conv1d(x, torch.ones(4, 2, 3))
    return torch.einsum("abc,adc->abd", x, x)


def by_names(x: Tensor, y: Tensor) -> Tensor:
    names = {f"part{i}" for i in range(8)}
    parts = {name: x.shape[0] + len(name) for name in names}
    return x.view(-1, min(parts.values())) + y


def several(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    assert x.shape[0] % 2 == 0 and y.shape[0] > 3
    return torch.cat([x, y]).view(-1, 3) @ z.view(3, -1)


def caught(x: Tensor) -> Tensor:
    try:
        return x.t().view(-1)
    except RuntimeError:
        return x.reshape(-1)


def looped(x: Tensor) -> Tensor:
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i]
    return total.view(-1, 2)


def tries(x: Tensor, y: Tensor) -> Tensor:
    return (x.flatten()[: y.numel()].view_as(y) @ y.T).unflatten(1, (2, -1))


class Pool(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 4, 3, stride=2), nn.Linear(4 * 7 * 7, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.drop(self.conv(x)).flatten(1))  # type: ignore[no-any-return]


class Cached(nn.Module):
    cache: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Linear(4, 8)
        self.register_buffer("cache", torch.zeros(16, 32, 8))

    def forward(self, x: Tensor) -> Tensor:
        self.cache[: x.shape[0], : x.shape[1]] = self.p(x)
        return self.cache


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.embedding(torch.arange(x.shape[1]))


PROGRAMS: Final[dict[str, Program]] = {
    "coin": (coin, "x: [n]"),
    "dice": (dice, "x: [n]"),
    "dice of numpy": (dice_of_numpy, "x: [n]"),
    "dice of torch": (dice_of_torch, "x: [n]"),
    "dropped": (dropped, "x: [n]"),
    "chosen": (chosen, "x: [n]; table: [r, d]"),
    "drawn": (drawn, "x: [n]; table: [r, d]"),
    "of a set": (of_a_set, "x: [n]"),
    "branching": (branching, "x: [a, b, c]"),
    "by names": (by_names, "x: [n]; y: [m, k]"),
    "several": (several, "x: [a]; y: [b]; z: [c]"),
    "caught": (caught, "x: [a, b]"),
    "looped": (looped, "x: [a, b]"),
    "tries": (tries, "x: [a, b]; y: [c, d]"),
    "pool": (Pool(), "x: [b, 3, h, w]"),
    "cached": (Cached(), "x: [b, t, 4]"),
    "positions": (Positions(), "x: [b, t, 8]"),
    "transformer": (nn.TransformerEncoderLayer(8, 2, 16), "src: [t, b, d]"),
    "lstm": (nn.LSTM(3, 4, 2, dropout=0.5), "input: [*x]"),
    "attention": (F.scaled_dot_product_attention, "query: [*b, q, d]; key: [*b, k, d]; value: [*b, k, e]"),
}
FAST: Final = ("coin", "dice", "dice of numpy", "chosen", "by names", "positions")


def report(name: str) -> dict[str, Any]:
    """What is said of a program, without times."""
    target, inputs = PROGRAMS[name]
    said: dict[str, Any] = check(target, inputs).to_json()
    said["stats"] = {key: value for key, value in said.get("stats", {}).items() if not key.endswith("_s")}
    return said


def repeated(times: int, names: tuple[str, ...]) -> dict[str, list[str]]:
    """By the name of a program, the different reports that so many checks of it give."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for _ in range(times):
        for name in names:
            text = json.dumps(report(name))
            if text not in found[name]:
                found[name].append(text)
            torch.rand(3), random.random(), np.random.rand()
    return found


if __name__ == "__main__":
    json.dump(repeated(int(sys.argv[1]), tuple(sys.argv[2:]) or (*PROGRAMS,)), sys.stdout)
