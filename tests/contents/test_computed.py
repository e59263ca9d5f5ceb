"""Indices that are computed from a range one by one: the exact condition, against eager runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
import torch.nn.functional as F
from eager_runs import runs
from torch import Tensor, arange

from anyshape.constraints.contents.lookups.computed import ComputedRange, Ray, held
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import holds
from anyshape.typecheck import check

EDGES: Final = (127, 128, 129, 130, 255, 256, 257, 258, 511, 512, 513, 4000)
SIZES: Final = (*range(1, 40), *range(40, 900, 7), *EDGES)


def n(x: Tensor) -> int:
    return x.shape[0]


def filled(x: Tensor) -> Tensor:
    """An index in whose place another is written before it is cast."""
    index = torch.cat((arange(n(x)), arange(n(x))))
    index[:1] = 50
    return torch.zeros(90, 2)[(index.half() * 2).long()]


EXACT: Final[list[Callable[[Tensor], Any]]] = [
    lambda x: torch.zeros(500, 2)[(arange(n(x)).half() * 3).long()],
    lambda x: torch.zeros(2050, 2)[(arange(n(x)).bfloat16() * 5).long()],
    lambda x: torch.zeros(300, 2)[(arange(n(x)) * 0.7).round().long()],
    lambda x: torch.zeros(300, 2)[(arange(n(x)) / 3).ceil().long()],
    lambda x: torch.zeros(200, 2)[(arange(n(x)).byte() * 3).long()],
    lambda x: torch.zeros(120, 2)[(arange(-n(x), 0).char() + 3).long()],
    lambda x: torch.zeros(200, 2).gather(1, (arange(n(x)).byte() - 3).long().reshape(1, -1) % 2),
    lambda x: F.embedding((arange(n(x) - 1, -1, -1).byte() - 3).long(), torch.zeros(250, 2)),
    lambda x: torch.zeros(90, 2)[arange(n(x)).abs().sqrt().long().short().long() * 7],
    lambda x: torch.zeros(90, 2)[x.argsort().bfloat16().long()],
    lambda x: torch.zeros(90, 2)[(x.argsort() ^ 5).half().long()],
    lambda x: torch.zeros(90, 2)[(arange(n(x)) << 1).bfloat16().long().flip(0)],
    lambda x: torch.zeros(90, 2)[torch.fmod(arange(-n(x), 0), 97).short().long()],
    lambda x: torch.zeros(90, 2)[torch.div(arange(n(x)), -3, rounding_mode="trunc").char().long()],
    lambda x: torch.zeros(90, 2)[torch.div(arange(n(x)), -3, rounding_mode="floor").char().long()],
    lambda x: torch.zeros(90, 2)[(arange(n(x)) % 100).char().half().long()],
    lambda x: torch.zeros(90, 2)[torch.where(arange(n(x)) > 50, 0, arange(n(x))).half().long() * 2],
    lambda x: torch.zeros(9, 2)[torch.pow(2, arange(n(x)).clamp(0, 9)).byte().long()],
    lambda x: torch.zeros(90, 2)[torch.cat((arange(n(x)), arange(n(x)))).half().long()],
    lambda x: torch.zeros(90, 2)[F.pad(arange(n(x)), (1, 2), value=80).half().long()],
    lambda x: torch.zeros(90, 2)[(arange(n(x))[:, None] - arange(n(x))).half().long() * 3],
    lambda x: torch.zeros(5, 2)[torch.fmod(arange(-n(x), 0), 3)].expand(n(x), 2),
    lambda x: torch.zeros(n(x), 2)[torch.fmod(arange(-n(x), 0), 5)],
    lambda x: torch.zeros(n(x), 2)[torch.fmod(-arange(n(x)) - 1, 40)],
    lambda x: F.nll_loss(torch.zeros(n(x), 90), arange(n(x)).bfloat16().long()),
    lambda x: torch.ones(n(x)).repeat_interleave((arange(n(x)).char() + 1).long()),
    lambda x: torch.bincount((arange(-n(x), 0).half() + 5).long() + 300),
    lambda x: torch.zeros(9)[(arange(n(x)) + 1).clamp(max=2).cumprod(0)],
    lambda x: torch.zeros(9000)[(arange(n(x)) + 1).clamp(max=2).cumprod(0)],
    lambda x: torch.zeros(n(x) + 3)[(arange(n(x)) + 1).clamp(max=2).cumprod(0) // 2],
    lambda x: torch.zeros(n(x) + 20)[torch.full((n(x),), 4).cumprod(0)],
    lambda x: torch.zeros(50)[arange(n(x)).clamp(1, 2).prod()],
    lambda x: torch.zeros(n(x) + 20)[arange(n(x)).clamp(1, 2).prod()],
    lambda x: torch.zeros(20)[torch.full((n(x) - 1,), 2).prod(0, keepdim=True) + 1],
    lambda x: torch.zeros(20)[torch.full((n(x),), 4).prod() & 7],
    lambda x: torch.zeros(128, 2)[arange(n(x)).byte().long().bfloat16().long()[::2]],
    lambda x: torch.zeros(128, 2)[arange(n(x)).byte().long()[3::5]],
    lambda x: torch.zeros(128, 2)[arange(n(x) - 1, -1, -1).byte().long()[1:]],
    lambda x: torch.zeros(250, 2)[(arange(-n(x), 0).byte() - 2).long()[:3]],
    lambda x: torch.zeros(9, 2)[(arange(n(x)).flip(0).half() * 3).long()[-2:]],
    lambda x: torch.zeros(200, 2)[arange(n(x)).cumsum(0).to(torch.uint8).long()],
    lambda x: torch.zeros(250, 2)[(arange(n(x)).char() // 50).long().cumsum(0)],
    lambda x: torch.zeros(250, 2)[arange(1, n(x) + 1).cumprod(0)],
    lambda x: torch.zeros(250, 2)[((arange(-n(x), 0) + 1).clamp(max=2).char() + 2).long().flip(0).cumsum(0)],
    lambda x: torch.zeros(240, 2)[(arange(n(x)) * 7).char().long().diff()],
    lambda x: torch.zeros(240, 2)[(arange(n(x) - 1, -1, -1) * 7).char().long().diff()],
    lambda x: torch.zeros(127)[arange(n(x)).sum().bfloat16().long()],
    lambda x: torch.zeros(129)[torch.fmod(arange(3, n(x) + 3), 3).byte().long().sum()],
    lambda x: torch.zeros(7)[(arange(2, n(x) + 2).char().half() + 1).long().max()],
    lambda x: torch.zeros(50)[torch.where((t := (arange(n(x)).half() * 3).long()) > 20, t, 0).max() - 2],
    lambda x: torch.zeros(127)[torch.pow(2, arange(n(x)).clamp(0, 9)).byte().long().max()],
    lambda x: torch.zeros(128, 2)[(torch.tensor([n(x), 2 * n(x)]).bfloat16() + 1).float().long(), 0],
    lambda x: torch.zeros(100, 2)[((torch.tensor(x.shape) + 3).bfloat16() * 0.75).long()],
    lambda x: torch.zeros(900)[(torch.tensor(x.shape).bfloat16() / 3).floor().long() - 4],
    lambda x: torch.zeros(arange(n(x)).tolist()),
    lambda x: torch.ones((arange(n(x)).half() * 2).long().tolist()),
    lambda x: torch.empty(arange(n(x)).byte().long().tolist()),
    lambda x: torch.zeros((arange(n(x)).flip(0) - 2).tolist()),
    lambda x: torch.zeros(torch.full((n(x) - 1,), -3).tolist()),
    lambda x: torch.zeros((arange(n(x) - 1, -1, -1).diff().half() * 3).long().tolist()),
    lambda x: torch.zeros((arange(n(x)) % 1).tolist()),
    lambda x: torch.zeros(arange(n(x)).flip(0).tolist()),
    lambda x: torch.zeros((arange(n(x)).flip(0) % 12).short().long().tolist()),
    lambda x: torch.zeros((arange(n(x)).flip(0) * 5000).short().long().tolist()),
    lambda x: torch.zeros((arange(n(x)) ^ 1).bfloat16().long()[1:].tolist()),
    lambda x: torch.zeros(255)[arange(n(x)).abs().sqrt().long().bfloat16().long()],
]  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", EXACT)
def test_indices_are_valid_exactly_up_to_a_size(target: Callable[[Tensor], Any]) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.verdict in ("proved", "refined", "refuted") and report.accepts.exact, report.to_text()
    for size in SIZES:
        assert report.accepts.holds(q=size) == runs(target, size), (size, report.to_text())


def test_what_is_written_is_not_computed() -> None:
    report = check(filled, "x: float32[q]", replay=False)
    assert not any(report.accepts.certain.holds(q=size) for size in SIZES if not runs(filled, size))


@pytest.mark.parametrize("dtype", "int8 uint8 int16 int32 float16 bfloat16 float32 float64 bool".split())
def test_numbers_are_held_as_torch_holds_them(dtype: str) -> None:
    numbers = [*range(-70_000, 70_000, 7), 2**24 + 1, -(2**24) - 3, 2**31 - 1, 2**31, 2**40 + 1]
    if dtype == "float16":
        numbers = [x for x in numbers if abs(x) < 65520]
    found = torch.tensor(numbers).to(getattr(torch, dtype))
    assert [held(x, dtype) for x in numbers] == found.tolist()


@pytest.mark.parametrize(
    "target",
    [
        lambda x: torch.zeros(9)[(torch.tensor([n(x)]) ** 2) ** 2],
        lambda x: torch.zeros(9)[(torch.tensor([n(x)]).int() ** 2).long()],
        lambda x: torch.zeros(9)[(arange(2 * n(x)).sum() ** 2) ** 2 % 8192],
        lambda x: torch.zeros(9)[(torch.tensor([n(x), 0]).int() * n(x)).long()],
    ],
)
def test_integers_of_wide_dtypes_wrap(target: Callable[[Tensor], Any]) -> None:
    """2**64 is 0 as an integer of 64 bits."""
    report = check(target, "x: float32[q]", replay=False)
    for size in (1, 2, 9, 4000, 65535, 65536):
        ran = runs(target, size)
        assert ran or not report.accepts.certain.holds(q=size), (size, report.to_text())
        assert not report.accepts.exact or report.accepts.holds(q=size) == ran, (size, report.to_text())


def is_made(sizes: list[int]) -> bool:
    try:
        torch.empty(sizes, device="meta")
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("size", [
    lambda k: k, lambda k: k + 1, lambda k: min(k + 3, 7), lambda k: k % 5, lambda k: 7 * k % 64,
    lambda k: k * k % 1000, lambda k: k % 2**20 * 2**14, lambda k: 2**31 if k < 2 else k % 3,
    lambda k: 2**61 - 1 + k,
])  # fmt: skip
def test_sizes_that_a_tensor_of_floats_may_have(size: Callable[[int], int], order: int) -> None:
    chain = ComputedRange((Ray(0, 1, sym("m")),), order=order).then(size)  # type: ignore[arg-type]
    fits = chain.strides_fit(sym("m"))
    assert fits is not None
    for count in range(90):
        assert holds(fits, {"m": count}) == is_made([size(k) for k in range(count)][::order]), count


def test_numbers_that_add_up() -> None:
    chain = ComputedRange((Ray(0, 1, sym("m")),)).then(lambda k: k % 3 - (k > 40))
    exact, any_total = chain.adds_up(7, sym("m")), chain.adds_up(sym("s"), sym("m"))
    assert exact is not None and any_total is not None
    for count in range(42):
        total = sum(k % 3 for k in range(count))
        assert holds(exact, {"m": count}) == (total == 7)
        for other in (total - 1, total, total + 1):
            assert holds(any_total, {"m": count, "s": other}) == (other == total)
