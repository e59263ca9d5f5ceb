"""Indices that one size decides: their elements and bounds of these against torch, and the exact condition
against eager runs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Final
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from eager_runs import runs
from torch import Tensor, arange

from anyshape.constraints.contents.lookups.computed import NotComputed
from anyshape.constraints.contents.lookups.places import Places
from anyshape.constraints.contents.requirements import indices
from anyshape.constraints.contents.sizes import arrays
from anyshape.constraints.contents.sizes.arrays import Arrays, DoesNotRun
from anyshape.constraints.contents.sizes.bounds import LAWS
from anyshape.constraints.contents.sizes.lines import Bound
from anyshape.constraints.contents.sizes.tails import Tail
from anyshape.constraints.engine import answers
from anyshape.typecheck import check

EDGES: Final = (127, 128, 129, 255, 256, 257, 511, 512, 513, 2050)
SIZES: Final = (*range(1, 30), *range(30, 300, 17), *EDGES)
SMALL: Final = (*range(1, 12), 20, 33, 90, 128, 130)
Target = Callable[[Tensor], Any]


def n(x: Tensor) -> int:
    return x.shape[0]


def relative(x: Tensor) -> Tensor:
    return arange(n(x))[:, None] - arange(n(x)) + n(x) - 1


def searched(x: Tensor) -> Tensor:
    return torch.searchsorted(arange(2 * n(x)), torch.tensor([0, 5]))


def capped(index: Tensor, bound: int) -> Tensor:
    return torch.zeros(256, 2)[torch.where(index < bound, index, bound - 1)]


def filled(index: Tensor, by: str, bound: int, value: int) -> Tensor:
    return index.masked_fill(getattr(index, by)(bound), value)


def chosen(index: Tensor, by: str, bound: int, other: int) -> Tensor:
    return torch.where(getattr(index, by)(bound), index, other)


def doubled(x: Tensor) -> Tensor:
    """Returns numbers of which bounds alone are known as sizes grow."""
    return torch.eye(2 * n(x)).nonzero()[:, 1].float().long() // 2


EXACT: Final[list[Target]] = [
    lambda x: torch.zeros(n(x) // 2 + 1)[filled(doubled(x), "gt", 2, 0)],
    lambda x: torch.zeros(n(x) // 2 + 1)[filled(doubled(x), "ge", 4, 1)],
    lambda x: torch.zeros(n(x) // 2 + 1)[chosen(doubled(x), "le", 3, 0)],
    lambda x: torch.zeros(3)[filled(x.topk(n(x))[1], "gt", 1, 0)],
    lambda x: torch.zeros(3 * n(x))[x.topk(n(x))[1].clamp(1, 2).prod()],
    lambda x: torch.zeros(4 * n(x) - 1, 1)[(x.argsort() + 1).clamp(max=2).cumprod(0).byte().long()],
    lambda x: torch.zeros(12)[((arange(n(x)) * 0.1).long() + 1).clamp(max=2).cumprod(0)],
    lambda x: torch.zeros(500).gather(0, (torch.tensor([e * 5 for e in range(n(x))]).char() + 3).long()),
    lambda x: torch.zeros(n(x) + 3)[(torch.tensor(list(range(n(x)))).half() + 1).long()[-1]],
    lambda x: torch.zeros((arange(n(x) // 2).repeat_interleave(3) + 5).fmod(5).tolist()),
    lambda x: torch.zeros((arange(n(x)) * 2).tolist()),
    lambda x: torch.zeros(9)[arange(0, n(x), 0.5).long().sum()],
    lambda x: torch.zeros(30)[arange(n(x)).expand(4, -1).sum().abs().sqrt().long()],
    lambda x: torch.zeros(9)[torch.cartesian_prod(arange(n(x)), arange(3))[:, 0].roll(1).clamp(1, 2).prod()],
    lambda x: torch.zeros(9)[(relative(x).char() + 4).long().clamp(1, 2).prod()],
    lambda x: torch.zeros(9)[x.argsort().clamp(1, 2).prod()],
    lambda x: torch.zeros(200, 3)[x.argmax().clamp(1, 2).prod().flatten()[0]],
    lambda x: torch.zeros(8)[..., torch.randint(n(x), x.shape)[-1].clamp(1, 2).prod()],
    lambda x: torch.zeros(n(x) + 4)[torch.diag(arange(n(x) + 1)).abs().sqrt().long().bitwise_and(3).max()],
    lambda x: torch.zeros(n(x))[torch.combinations(arange(n(x) - 1))[:, 1].abs().sqrt().long()],
    lambda x: torch.zeros(n(x), n(x))[:, (torch.triu_indices(n(x) + 1, n(x) + 1).half() * 3).long()],
    lambda x: torch.zeros(129)[torch.pow(2, (arange(1, n(x)) / max(n(x) - 1, 1) * 4).long().clamp(0, 9))],
    lambda x: x[(relative(x) / max(2 * n(x) - 1, 1)).long()],
    lambda x: F.one_hot(torch.argwhere(torch.ones(n(x), 2 * n(x)))[:, 1].sqrt().long(), 12),
    lambda x: torch.zeros(2050)[(arange(-n(x), 0) ** 2 + 1).clamp(max=2).cumprod(0)],
    lambda x: torch.zeros(9)[(arange(float(n(x))).long().expand(3, -1) + 1).clamp(max=2).cumprod(0)],
    lambda x: torch.zeros(n(x) // 2).gather(0, (arange(n(x)).byte() - 5).long().clamp(max=90)),
    lambda x: torch.zeros(n(x)).gather(0, (arange(n(x)).byte() + 9).long()),
    lambda x: capped(arange(float(n(x))).long(), n(x) - 1),
    lambda x: torch.zeros(10)[(arange(n(x)) / 2).floor().long()[arange(n(x) - 1, -1, -1)].sum(0)],
    lambda x: torch.zeros(2)[(x.new_full((4,), n(x)).long().cumsum(0) * (2 / n(x))).long()],
    lambda x: torch.zeros(8)[:, None][torch.logspace(0, 2 * n(x), 3, base=2).long().bfloat16().long()],
    lambda x: torch.zeros(8)[torch.logspace(0, n(x), 2, base=2).long().amin(0)],
    lambda x: x[torch.logspace(0, n(x), 4, base=2).long().clamp(max=1)],
    lambda x: torch.zeros(5, n(x))[:, torch.topk(x, 1).indices.abs().sqrt().long()],
    lambda x: torch.zeros(n(x) + 5)[(torch.tensor(n(x) - 1) + 1).clamp(max=2).cumprod(0)],
    lambda x: torch.zeros(2 * n(x))[(arange(n(x) // 2).unique().half() * 3).long()],
    lambda x: x.gather(0, (torch.bucketize(arange(n(x) - 1), arange(n(x))) ^ 1).char().long()),
    lambda x: torch.zeros(40).scatter(0, arange(n(x)).unique()[-1:].sort().values, 1.0),
    lambda x: x.index_select(0, torch.pow(2, torch.linspace(0, 2, n(x)).long().clamp(0, 9))),
    lambda x: torch.zeros(5)[searched(x).where(searched(x) < n(x) + 1, n(x))],
    lambda x: torch.zeros(5)[(searched(x).sqrt().long() + 1).cumprod(0)],
    lambda x: torch.zeros(300)[torch.full((3,), n(x)).clamp(max=280).half().long().cumsum(0)],
    lambda x: torch.zeros(70)[torch.bucketize(torch.full((3,), 60), arange(n(x)))],
    lambda x: F.nll_loss(torch.zeros(n(x), 20), (arange(n(x)) ** 2 / 3).long()),
    lambda x: F.nll_loss(torch.zeros(n(x), 20), (arange(n(x)).half() * 3).long() - 100),
    lambda x: F.nll_loss(torch.zeros(5, 8), torch.logspace(0, 2 * n(x), 5, base=2).long()),
    lambda x: F.cross_entropy(torch.zeros(n(x), 10), (arange(n(x)) + 1).clamp(max=2).cumprod(0)),
    lambda x: torch.zeros(9)[(torch.tril_indices(n(x) + 1, 2 * n(x))[0][:2].half() * n(x)).long()],
    lambda x: torch.ones(n(x) * (n(x) + 1) // 2).repeat_interleave((-torch.triu_indices(n(x), n(x))).amin(0)),
    lambda x: torch.zeros(9)[torch.div(arange(n(x)).sub(9), -3, rounding_mode="trunc")],
    lambda x: x[torch.div(F.one_hot(arange(n(x)), n(x)).clamp(1, 2).prod(), -4, rounding_mode="trunc")],
    lambda x: torch.zeros(7)[torch.diag(arange(n(x) + 1)).flip(0)],
    lambda x: torch.zeros(7)[F.pad((arange(n(x)) ** 2).sqrt().long(), (0, 2), value=n(x) // 2)],
    lambda x: x[(torch.tensor(n(x) // 2) * (3 / n(x))).long()],
    lambda x: F.nll_loss(torch.zeros(2, 256), torch.logspace(0, n(x) + 1, 2, base=2).long().int().long()),
    lambda x: torch.bincount((torch.logspace(0, n(x), 2, base=2).long().half() * 5).long()[1:]),
    lambda x: x.index_select(0, torch.pow(2, torch.logspace(0, n(x) - 1, 4, base=2).long().clamp(0, 9))),
    lambda x: torch.zeros(40)[torch.logspace(0, 2 * n(x), 3, base=2).long().char().long()[-1:]],
    lambda x: x[(arange(n(x)).unique().byte() * 1).long().clamp(1, 2).prod()],
    lambda x: torch.zeros(57)[torch.div(torch.tensor(90 * n(x)).sqrt().long(), -3, rounding_mode="trunc")],
    lambda x: torch.zeros(40 * n(x))[(torch.tensor([37 * n(x), 5]).half().long() * 0.7).round().long()],
    lambda x: x.index_select(0, (t := torch.logspace(0, n(x) - 1, 5, base=2).long()).where(t > 3, 0)),
    lambda x: x[..., F.pad((x.new_full((1,), n(x)).long()[..., None] / max(n(x) - 1, 1) * 4).long(), (0, 2))],
    lambda x: torch.zeros(9).index_select(0, torch.logspace(0, n(x), 5, base=2).long() + 4),
    lambda x: torch.zeros(12)[torch.logspace(0, n(x), 3, base=2).long().clamp(max=9) + 1],
    lambda x: torch.zeros(9)[torch.logspace(0, 2 * n(x), 3, base=2, dtype=torch.float64).long().clamp(max=9)],
    lambda x: torch.zeros(99)[F.pad(torch.linspace(0, n(x) - 1, n(x)).round().long(), (0, 2)).byte().long()],
    lambda x: F.nll_loss(torch.zeros(n(x) // 2, 3), (torch.eye(n(x) // 2, dtype=torch.long) // n(x)).sum(0)),
    lambda x: torch.multinomial(torch.ones(9), int(((arange(n(x)) * (n(x) / n(x))).half() * 2).long().max())),
    lambda x: torch.zeros(9)[torch.tril_indices(n(x), n(x))[0][-1]],
    lambda x: torch.zeros(9)[torch.tril_indices(n(x), 5, 1)[1][-1]],
    lambda x: torch.zeros(9)[torch.triu_indices(n(x), 12, -1)[0][-1]],
    lambda x: torch.zeros(9)[torch.triu_indices(n(x), 2 * n(x), 2)[:, -1]],
    lambda x: torch.zeros(6, 3)[torch.eye(2 * n(x), dtype=torch.long).clamp(max=1).sum().flip(0)],
    lambda x: torch.split(x, torch.maximum(t := arange(n(x)).unique(), torch.zeros_like(t)).tolist()),
    lambda x: torch.split(torch.ones(7, 3), (arange(n(x)) < 2 * n(x)).long().tolist()),
    lambda x: x[torch.tensor([3, 1, 4, 1, 5]).char().mul(n(x)).long()],
    lambda x: torch.zeros(n(x) + 1).narrow(0, int((torch.tensor([1, 2, 5]) // (n(x) - 1))[0]), 1),
    lambda x: torch.zeros(9)[(torch.tensor([9, 2, 5]) % (n(x) - 4)).sum()],
    lambda x: torch.zeros(n(x) + 2, 2).narrow(0, int(2 ** x.cummax(0).indices.clamp(0, 9)[0]), 1),
    lambda x: torch.zeros(2)[torch.searchsorted(arange(n(x) // 2), torch.tensor([0, 1])).sum()],
    lambda x: torch.zeros(4)[torch.searchsorted(arange(n(x)), torch.tensor([0, 3])).clamp(1, 2).prod()],
    lambda x: torch.zeros(2)[torch.cat((t := searched(x), t)).diff()],
    lambda x: torch.zeros(2)[F.one_hot(arange(n(x)), 2 * n(x))[-1]],
    lambda x: torch.zeros(2)[torch.triu_indices(n(x), n(x)).clamp(0, n(x) - 1).unsqueeze(0)[0]],
    lambda x: torch.zeros(127)[(torch.tensor(2 * n(x)) * 0.7).round().long()],
    lambda x: torch.zeros(170)[(torch.tensor(n(x)) / 3).bfloat16().long()],
    lambda x: torch.zeros(n(x))[torch.triu_indices(n(x), n(x)).max().double().long()],
]  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", EXACT)
def test_the_condition_is_exact(target: Target) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.verdict in ("proved", "refined", "refuted") and report.accepts.exact, report.to_text()
    for size in SIZES:
        assert report.accepts.holds(q=size) == runs(target, size), (size, report.to_text())


INDICES: Final[list[Callable[[Tensor], Tensor]]] = [
    lambda x: arange(2, n(x) + 2).flip(0).roll(2).repeat(2),
    lambda x: arange(n(x)).expand(3, -1).t().reshape(-1).contiguous()[1:],
    lambda x: relative(x).transpose(0, 1).permute(1, 0)[..., None].flatten(),
    lambda x: (relative(x).short() * 300).char().long(),
    lambda x: arange(n(x)).repeat_interleave(3)[::2][:7],
    lambda x: torch.meshgrid(arange(n(x)), arange(n(x) + 1), indexing="ij")[1].bool().long().sum(1),
    lambda x: torch.tril_indices(n(x), n(x), offset=-1)[1].cumsum(0),
    lambda x: torch.eye(n(x)).nonzero()[:, 1].cumprod(0),
    lambda x: F.one_hot(arange(n(x)), n(x)).sum(0),
    lambda x: torch.bucketize(arange(n(x)) * 3, arange(n(x))) ** 2,
    lambda x: F.pad(torch.cat((arange(n(x)), torch.full((2,), n(x)))), (1, 2), value=7).sum(0),
    lambda x: (arange(n(x)) * 0.7).round().long().masked_fill(arange(n(x)) > 5, 1),
    lambda x: (arange(n(x)) * (3 / n(x))).long() ^ 5,
    lambda x: torch.div(arange(n(x)).sub(4), -3, rounding_mode="trunc").remainder(7),
    lambda x: torch.div(arange(n(x)), 3, rounding_mode="floor").sign().diff(),
    lambda x: (arange(n(x)).bfloat16() / 3).ceil().long().bitwise_or(2),
    lambda x: (arange(n(x)).double() * 0.1).floor().long() << 2,
    lambda x: torch.minimum(arange(n(x)).sqrt().long(), torch.tensor(3)),
    lambda x: torch.where(arange(n(x)) < n(x) - 2, arange(n(x)), n(x) - 3).abs() >> 1,
    lambda x: torch.linspace(0, n(x) - 1, 2).long().max(),
    lambda x: torch.logspace(0, 4, n(x) % 9 + 2, base=2).long(),
    lambda x: torch.tensor([0, n(x), 3]).half().long().amin(0),
    lambda x: torch.combinations(arange(n(x)))[:, 0].fmod(4).unsqueeze(0),
    lambda x: arange(0, n(x), 0.5).long().clamp(2, 20).prod(),
    lambda x: F.pad(arange(n(x)), (0, 1), value=-3).amax(0),
    lambda x: torch.tril_indices(n(x), 2 * n(x), offset=1)[0].clamp(max=3).cumsum(0),
    lambda x: torch.tril_indices(n(x), n(x) + 2, offset=3)[1].byte().sub(3).long(),
    lambda x: torch.div(arange(n(x)).sub(9) * 2, 3, rounding_mode="trunc"),
    lambda x: (arange(n(x)) * 40).char().long().amin(0),
    lambda x: (arange(n(x)) * (7 / (n(x) // 2 + 1))).long().byte().long(),
    lambda x: torch.tensor([n(x) // 3, 2 * n(x)]) // (n(x) // 2 + 1),
    lambda x: torch.where((t := arange(n(x)) * 3 - 7) > 4, t, -2).cumsum(0),
    lambda x: torch.where((t := (arange(n(x)) * 4).byte().long()) > 9, t, 300),
    lambda x: arange(n(x)).flip(0).byte().long()[2].expand(3),
    lambda x: (arange(n(x)) % 5).sum().sub(arange(n(x)).max()),
    lambda x: relative(x).tril(1).sum(0),
    lambda x: (arange(n(x)) * 40 - 20).char().long(),
    lambda x: (arange(3 * n(x)) + 200).byte().long(),
    lambda x: (9 - arange(n(x)) * 30).char().long(),
    lambda x: (arange(n(x)) * 700 - 300).char().bool().long() + 1,
    lambda x: torch.triu_indices(n(x), 3).triu(-1).clamp(max=5).cumsum(0),
    lambda x: F.pad(torch.meshgrid(arange(n(x)), arange(3), indexing="ij")[0], (1, 2), value=n(x)),
    lambda x: torch.logspace(0, 3 * n(x), 4, base=2).long().bitwise_xor(3),
    lambda x: torch.logspace(0, n(x) // 2, 5, base=2).long().clamp(max=1 << 20).remainder(7),
    lambda x: torch.bucketize(arange(3 * n(x)) - 4, arange(n(x))).sum(),
    lambda x: (arange(3 * n(x)) * 500).half().long().clamp(-9),
    lambda x: torch.cat((torch.searchsorted(arange(n(x)), torch.tensor([0, 4])), arange(n(x)))).diff(),
    lambda x: F.one_hot(arange(n(x)) % 3, 4)[-1],
    lambda x: torch.maximum(arange(n(x)).flip(0), torch.full((n(x),), 2)).sum(0),
    lambda x: arange(n(x)).sub(4) - arange(n(x)).sub(4).max(),
    lambda x: arange(n(x)).remainder(4).min() - arange(n(x)).remainder(4),
    lambda x: torch.tensor([1, 2, n(x)]).clamp(max=3).prod(),
    lambda x: (torch.tensor([4, 9]) / (n(x) // 7 + 1) * 3).long(),
]  # fmt: skip


def _within(bounds: tuple[Bound, Bound, Bound, Bound], numbers: list[int], further: int) -> bool:
    """Returns whether the bounds hold, at a number of sizes further than the first."""
    at = [None if b is None else b.at + sum(b.slopes) * further for b in bounds]
    low, high, top, bottom = at
    return all(
        (
            low is None or min(numbers) >= low,
            high is None or max(numbers) <= high,
            top is None or max(numbers) >= top,
            bottom is None or min(numbers) <= bottom,
        )
    )


def _asked(index: Callable[[Tensor], Tensor]) -> tuple[Places, int, int]:
    """Returns the program that computes the index, its reference, and the time at which it is used."""
    asked: list[tuple[Places, int, int]] = []
    with mock.patch.object(indices, "is_settled", return_value=False), \
         mock.patch.object(answers, "chains_of", return_value=()), \
         mock.patch.object(answers, "needed", lambda *given: asked.append(given[:3])):  # fmt: skip
        check(lambda x: torch.zeros(50)[index(x)], "x: float32[q]", replay=False)
    return asked[-1]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("index", INDICES)
def test_elements_and_their_bounds_are_those_of_torch(index: Callable[[Tensor], Tensor]) -> None:
    places, ref, time = _asked(index)
    tails = [(first, last) for first in (1, 6, 20) for last in (None, first + 40, 2000)]
    compared = 0
    for size in SMALL:
        try:
            found = Arrays(places, {"q": size}).of(ref, time)
        except DoesNotRun:
            assert not runs(index, size)
            continue
        except NotComputed:
            continue
        if not runs(index, size):
            continue
        expected = index(torch.zeros(size))
        assert (found.shape, list(found.numbers)) == (expected.shape, expected.flatten().tolist()), size
        compared += 1
        for first, last in tails if found.numbers else ():
            if first <= size and (last is None or size <= last):
                for anchor in {1, min(first, 6), first}:
                    at = [Arrays(places, {"q": anchor})]
                    ends = Tail(places, LAWS, {"q": (first, last)}, at).of(ref, time)
                    bounds = (ends.low, ends.high, ends.top, ends.bottom)
                    assert _within(bounds, list(found.numbers), size - first), (size, anchor, last, ends)
    assert compared > 5


def assigned(*parts: tuple[slice, int], size: int = 9) -> Tensor:
    """Numbers from 0 on, of which some are written over."""
    index = arange(size)
    for part, number in parts:
        index[part] = number
    return index


PAIRS: Final[list[Callable[[Tensor, Tensor], Any]]] = [
    lambda x, y: torch.ones(n(x) + 1).repeat_interleave(F.pad((arange(n(x)) * (n(y) / n(x))).long(), (1, 0))),
    lambda x, y: torch.zeros(300)[(arange(n(x)) % (2 * n(y)) + 1).half().long()],
    lambda x, y: torch.zeros(n(x) + n(y))[(arange(n(x))[:, None] + arange(n(y))).flatten()],
    lambda x, y: torch.zeros(n(x), n(y)).take(arange(n(x) * n(y)).abs().sqrt().long().byte().long()),
    lambda x, y: torch.zeros(n(y))[torch.tensor([n(x) - 1, 3]).clamp(max=4)],
    lambda x, y: y[assigned((slice(n(x)), 0))[: 2 * n(x)]],
    lambda x, y: torch.ones(7)[assigned((slice(n(x)), 0), (slice(2), 3))[: n(y)]],
    lambda x, y: torch.ones(9)[assigned((slice(n(x)), 0), size=12)[: 2 * n(y)] + 1],
    lambda x, y: y[assigned((slice(n(x) - 3), -n(x)))],
    lambda x, y: y[(torch.linspace(0, n(y) - 1, 2 * n(x)).round().long().double() * 0.1).long().max()],
    lambda x, y: x.select(0, int((torch.tril_indices(n(y), n(y))[0][-1] - 4) >> 1)),
    lambda x, y: torch.zeros(n(x) + 2).narrow(0, int(((t := arange(n(y)))[t < 2] + 2).flatten()[0]), 1),
    lambda x, y: torch.zeros(4 * n(x) - 1)[torch.stack((t := y.cummax(0).indices.clamp(max=3), t + 1)).max()],
]  # fmt: skip


@pytest.mark.parametrize("target", PAIRS)
def test_the_condition_on_two_sizes_is_exact(target: Callable[[Tensor, Tensor], Any]) -> None:
    report = check(target, "x: float32[q]; y: float32[r]", replay=False)
    assert report.verdict in ("proved", "refined", "refuted") and report.accepts.exact, report.to_text()
    for q, r in product((1, 2, 3, 5, 8, 9, 150, 301, 700), repeat=2):
        there = runs(lambda x: target(x, torch.zeros(r)), q)  # noqa: B023
        assert report.accepts.holds(q=q, r=r) == there, (q, r, report.to_text())


def test_no_places_are_listed_of_a_tensor_without_elements() -> None:
    """It may have another size that is too large for any list."""

    def target(x: Tensor) -> Tensor:
        places = arange(n(x))[:, None] - arange(n(x) // 2)
        return torch.zeros(1 << 59, 0).index_select(0, (places**4).amax(1))

    report = check(target, "x: float32[q]", replay=False)
    assert not [f for f in report.findings if f.code.value == "internal-error"], report.to_text()
    assert [*arrays._every_place((1 << 59, 0))] == [] and len([*arrays._every_place((3, 2))]) == 6
    assert arrays._positions((1 << 59, 0), [0, 1]) == [] and arrays._positions((2, 2), [2, 1]) == [0, 1, 2, 3]
    with pytest.raises(NotComputed):
        arrays._positions((1 << 59,), [1])


def test_numbers_that_the_data_choose_from_count_as_computed() -> None:
    """Each may cost as much as an element, and one element may be chosen from very many."""
    places, ref, time = _asked(lambda x: torch.multinomial(torch.ones(n(x)), 1) >> 1)
    left = []
    for size in (10, 1010):
        found = Arrays(places, {"q": size})
        assert len(found.of(ref, time).numbers) == size // 2
        left.append(found.choices)
    assert left[0] - left[1] >= 500
