"""Indices that went through halves: the exact condition, against eager runs where rounding changes.

Halves hold integers up to 2**11; above, their distance doubles with each power of 2, and from 65520 on they
are infinite, which becomes the least integer of 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
import torch.nn.functional as F
from eager_runs import runs
from torch import Tensor, arange

from anyshape.typecheck import check

Program = Callable[[Tensor], Any]
OCTAVES: Final = [1 << k for k in range(11, 17)]
SIZES: Final = sorted({
    *range(1, 12), *(octave + k for octave in OCTAVES for k in (-1, 0, 1, 2, 3, 4, 5, 8, 9, 16, 17)),
    20000, 21840, 21841, 21842, 32759, 32760, 32784, 32785, 65503, 65504, 65505, 65519, 65520, 65521, 70000,
    131007, 131008, 131009, 131040, 131041, 131042,
})  # fmt: skip


def n(x: Tensor) -> int:
    return x.shape[0]


def one(x: Tensor) -> Tensor:
    return torch.tensor([n(x)]).half()


EXACT: Final[list[Program]] = [
    lambda x: torch.zeros(70000)[one(x).long()],
    lambda x: torch.zeros(n(x))[one(x).long() - 1],
    lambda x: torch.zeros(n(x) + 1)[one(x).long()],
    lambda x: torch.zeros(n(x))[arange(n(x)).half().long()],
    lambda x: torch.zeros(8193 + n(x), 2)[arange(8193 + n(x)).half().long()],
    lambda x: torch.zeros(n(x) + 3)[(arange(n(x)).half() + 1).long()],
    lambda x: torch.zeros(4 * n(x) + 3)[(arange(n(x)).half() * 4).long()],
    lambda x: torch.zeros(4 * n(x) - 3)[(arange(n(x)).half() * 4).long()],
    lambda x: torch.zeros(3 * n(x))[(arange(n(x)).half() * 3).long()],
    lambda x: torch.zeros(3 * n(x) + 2)[-(arange(n(x)).half() * 3).long()],
    lambda x: torch.zeros(n(x) + 2)[arange(-n(x), 0).half().long()],
    lambda x: torch.zeros(n(x) + 1)[arange(0, n(x), 3).half().long()],
    lambda x: torch.zeros(n(x) + 1)[(arange(0, n(x), 3).half() + 1).long()],
    lambda x: torch.zeros(n(x))[arange(n(x)).half().flip(0)[0].long()],
    lambda x: torch.zeros(n(x))[x.argsort().half().long()],
    lambda x: F.cross_entropy(torch.zeros(1, n(x) + 1), one(x).long()),
    lambda x: torch.zeros(8)[one(x).long().clamp(max=7)],
    lambda x: torch.zeros(8)[one(x).long().clamp(0, 7)],
    lambda x: torch.zeros(8)[one(x).long() * 2],
    lambda x: torch.zeros(8)[one(x).long() << 1],
    lambda x: torch.zeros(8)[torch.maximum(one(x).long(), torch.tensor(0)) * 2],
    lambda x: torch.zeros(8)[one(x).long() & 3],
    lambda x: torch.zeros(2)[(one(x) > 70000).long()],
    lambda x: torch.zeros(8)[torch.cat((one(x), torch.tensor([1.0]).half())).long() * 2],
    lambda x: torch.zeros(8)[torch.full((2,), n(x), dtype=torch.half).long() * 2],
    lambda x: torch.zeros(8)[torch.zeros(3, dtype=torch.half).fill_(n(x)).long() * 2],
    lambda x: torch.zeros(8)[torch.tensor([n(x)], dtype=torch.half).long() * 2],
]
SOUND: Final[list[Program]] = [
    lambda x: torch.zeros(8)[(one(x) * 0).long()],
    lambda x: torch.zeros(8)[one(x).int().long() & 3],
    lambda x: torch.zeros(8)[one(x).char().long()],
    lambda x: torch.zeros(8)[one(x).float().long() & 3],
    lambda x: torch.zeros(8)[one(x).clamp(max=7).long()],
    lambda x: torch.zeros(n(x) + 2)[(arange(n(x)).half() * 0.5).long()],
    lambda x: torch.zeros(n(x))[arange(n(x)).half().max().long()],
    lambda x: torch.zeros(n(x))[torch.where(arange(n(x)) > 5, arange(n(x)).half(), 1).long()],
    lambda x: torch.zeros(8)[(one(x) - one(x)).long()],
    lambda x: torch.zeros(8)[(one(x) // 3).long() * 2],
    lambda x: torch.zeros(8)[(one(x) / 3).long() * 2],
    lambda x: torch.zeros(8)[torch.full((2,), n(x)).half().sum().long() * 2],
    lambda x: torch.zeros(8)[one(x).sqrt().long()],
    lambda x: torch.zeros(8)[one(x).neg().abs().long() * 2],
    lambda x: torch.zeros(8, dtype=torch.long).index_put((torch.tensor(0),), one(x)[0].long()) * x[0].long(),
]
"""Not all of these are followed, but nothing wrong is said of them."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", [
    pytest.param(target, marks=[pytest.mark.slow] * (5 <= number < 10)) for number, target in enumerate(EXACT)
])
def test_halves_are_valid_exactly_where_torch_takes_them(target: Program) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.verdict != "unknown" and report.accepts.exact, report.to_text()
    for size in SIZES:
        assert report.accepts.holds(q=size) == runs(target, size), (size, report.to_text())


@pytest.mark.parametrize("target", SOUND)
def test_infinity_is_no_large_number(target: Program) -> None:
    report = check(target, "x: float32[q]", replay=False)
    for size in SIZES:
        ran = runs(target, size)
        assert ran or not report.accepts.certain.holds(q=size), (size, report.to_text())
        assert not report.accepts.exact or report.accepts.holds(q=size) == ran, (size, report.to_text())
