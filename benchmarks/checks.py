"""A program that states hundreds of conditions on its sizes, decided by us and traced by torch."""

from __future__ import annotations

from typing import Any

import torch

from anyshape.typecheck import check

from .timing import now

SYMBOLS = 30


class Checking(torch.nn.Module):
    """`count` conditions on the lengths of its arguments, two of them in each."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        """[n_i] for each argument -> [sum of n_i]"""
        sizes = [x.shape[0] for x in xs]
        for k in range(self.count):
            i, j = k % SYMBOLS, (k * 7 + 1 + k // SYMBOLS) % SYMBOLS
            a, b = sizes[i], sizes[(j + 1) % SYMBOLS if i == j else j]
            if k % 3 == 0:
                torch._check(a + b >= 2)
            elif k % 3 == 1:
                torch._check(a <= b + 100 + k)
            else:
                torch._check(2 * a + 3 * b != 1)
        return torch.cat(xs)


def checked(count: int) -> tuple[str, float]:
    """Our verdict on all sizes, and the seconds that it took."""
    started = now()
    report = check(Checking(count), "; ".join(f"xs[{i}]: float32[n{i}]" for i in range(SYMBOLS)))
    return report.verdict, now() - started


def exported(count: int) -> float:
    """The seconds of torch's export with every length dynamic."""
    example = tuple(torch.zeros(7 + i) for i in range(SYMBOLS))
    dynamic: Any = (tuple({0: torch.export.Dim.DYNAMIC} for _ in example),)
    started = now()
    torch.export.export(Checking(count), example, dynamic_shapes=dynamic, strict=False)
    return now() - started
