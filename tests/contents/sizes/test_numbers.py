"""Numbers that are made from sizes or chosen by the data, and places that a mask chooses: conditions against
eager runs at many sizes, with data that choose the least, the greatest and others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import Any, Final

import pytest
import torch
import torch.nn.functional as F
from eager_runs import runs
from torch import Tensor, arange

from anyshape.typecheck import check

SIZES: Final = (*range(1, 34), 64, 65, 66, 86, 100, 127, 128, 129, 130, 255, 256, 257, 258, 300, 513)
Target = Callable[[Tensor], Any]


def n(x: Tensor) -> int:
    return x.shape[0]


def doubled(x: Tensor) -> Tensor:
    return torch.stack([arange(n(x)), torch.zeros(n(x), dtype=torch.long)]).clamp(1, 2).prod()


def scaled(x: Tensor) -> Tensor:
    return (arange(n(x))[:, None] * max(n(x) / n(x), 1.0) - arange(n(x))[None, :]).long()


EXACT: Final[list[Target]] = [
    lambda x: torch.multinomial(torch.ones(12), int(doubled(x) - 1)),
    lambda x: torch.zeros(7, 2).narrow(0, int((arange(n(x)).byte() // 3).long().max()), 1),
    lambda x: torch.zeros(6, 2)[: int((arange(n(x)).half() + 1).long().max())],
    lambda x: torch.multinomial(torch.ones(8), int(((arange(n(x)).byte() - 5).long() // 32).max())),
    lambda x: torch.split(torch.ones(129, 2), (arange(n(x)).half() * 2).long().tolist()),
    lambda x: torch.split(torch.ones(9), torch.unravel_index(arange(n(x)), (n(x), 3))[0].tolist()),
    lambda x: torch.split(torch.ones(20, 3), (torch.combinations(arange(n(x)))[:, 1] << 1).tolist()),
    lambda x: torch.zeros(9)[(arange(n(x)) * 3).char().long()[-1]],
    lambda x: torch.zeros(9)[(arange(n(x)).half() * 3).long()[-2]],
    lambda x: torch.zeros(129, 3).index_put(((scaled(x) - n(x)),), torch.tensor(1.0), accumulate=True),
]


@pytest.mark.parametrize("target", EXACT)
def test_what_sizes_decide(target: Target) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.verdict in ("proved", "refined", "refuted") and report.accepts.exact, report.to_text()
    for size in SIZES:
        accepted = report.verdict != "refuted" and report.accepts.holds(q=size)
        assert accepted == runs(target, size), (size, report.to_text())


CHOSEN: Final[list[Target]] = [
    lambda x: torch.zeros(5)[(x > 0).nonzero()[:, 0]],
    lambda x: torch.zeros(5)[torch.where(x >= 0)[0]],
    lambda x: torch.zeros(200)[(x > 0).nonzero()[:, 0].char().long()],
    lambda x: torch.zeros(99)[torch.where(x > 0)[0].half().long() + 1],
    lambda x: torch.zeros(5)[(x.argsort().half() + 1).long().flatten()[0]],
    lambda x: torch.zeros(n(x))[torch.pow(2, torch.unique(x, return_inverse=True)[1][:1].clamp(0, 3))],
    lambda x: torch.zeros(9)[torch.div(x.argsort()[:1].char(), -3, rounding_mode="trunc").long()],
    lambda x: torch.zeros(n(x))[torch.bucketize(x, torch.linspace(0, 1, 3))[:5]],
    lambda x: torch.zeros(n(x) + 4)[(t := torch.unique(x, return_inverse=True)[1])[None, :] + t[:, None]],
    lambda x: torch.zeros(100)[arange(n(x) - 1, -1, -1)[x.argsort()].char().half().long()[0]],
    lambda x: torch.zeros(n(x))[(t := torch.where(x >= 0)[0].bool().long()).maximum(torch.zeros_like(t))],
    lambda x: torch.zeros(9)[(t := x.argsort())[None, :] + t[:, None]],
    lambda x: torch.zeros(9)[(t := torch.unique(x, return_inverse=True)[1])[None, :] * t[:, None]],
]  # fmt: skip


def _data(size: int) -> Iterator[Tensor]:
    """Yields data of which some choose each place, alone and with others."""
    yield from (torch.zeros(size), torch.ones(size), -torch.ones(size))
    for place in range(size):
        yield arange(float(size)).roll(place)
        yield torch.where(arange(size) == place, 1.0, -1.0)


@pytest.mark.parametrize("target", CHOSEN)
def test_what_data_choose(target: Target) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.verdict in ("proved", "refined") and report.accepts.exact, report.to_text()
    for size in (*range(1, 12), 97, 98, 99, 100, 128, 129, 130):
        valid = all(runs(target, size, x) for x in _data(size))
        assert report.accepts.holds(q=size) == valid, (size, report.to_text())


OF_ROWS: Final[list[Target]] = [
    lambda x: torch.zeros(5)[x.mode(1).indices[:1].clamp(max=7)],
    lambda x: torch.zeros(5)[x.median(1).indices[1:] ^ 1],
    lambda x: torch.zeros(5)[x.argmax(1)[-1:] * 2],
    lambda x: torch.zeros(5)[x.min(1).indices[0] + 1],
    lambda x: torch.zeros(5)[x.argmax(1).amin(0)],
    lambda x: torch.zeros(7)[x.argmax(1).sum(0)],
    lambda x: torch.zeros(7)[x.argmin(1).cumsum(0)],
    lambda x: torch.zeros(7)[(t := x.argmax(1))[t]],
    lambda x: torch.zeros(6)[x.median(1).indices.amin().half().long() + 1],
    lambda x: torch.zeros(x.shape[1] - 1)[(x.kthvalue(1, 1).indices.sqrt().long() - 1)[:2]],
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", OF_ROWS)
def test_what_the_data_of_rows_choose(target: Target) -> None:
    report = check(target, "x: float32[3, q]", replay=False)
    assert report.verdict in ("proved", "refined") and report.accepts.exact, report.to_text()
    for size in (*range(1, 12), 20, 130):
        valid = all(runs(target, size, x.expand(3, -1)) for x in _data(size))
        assert report.accepts.holds(q=size) == valid, (size, report.to_text())


COMPOSED: Final[list[Target]] = [
    lambda x: torch.zeros(1)[(t := x.argsort())[t][0]],
    lambda x: torch.zeros(1)[(t := x.argsort())[t][:1]],
    lambda x: torch.zeros(2)[(t := x.argsort())[t][-1]],
    lambda x: torch.zeros(2)[(t := x.argsort())[t + 0][0]],
    lambda x: torch.zeros(1)[(t := x.argsort())[t.flip(0)][0]],
    lambda x: torch.zeros(1)[(t := x.argsort())[t.flip(0)][-1]],
    lambda x: torch.zeros(1)[(t := x.argsort()).flip(0)[t - n(x)][0]],
    lambda x: torch.zeros(5)[((t := x.argsort()) * 2 + 1)[n(x) - 1 - t].select(0, 0)],
    lambda x: torch.zeros(1)[(t := x.sort()[1])[t][0]],
    lambda x: torch.zeros(n(x)).narrow(0, int((t := x.topk(n(x))[1])[t].clone().add_(3)[0] - n(x)), 1),
    lambda x: torch.zeros(3)[(arange(n(x)) + 1)[x.argsort()][0]],
    lambda x: torch.zeros(1)[x.sigmoid().neg().argsort()[arange(n(x)).flip(0)][0]],
]
TOGETHER: Final[list[Target]] = [
    lambda x: torch.zeros(1)[(t := x.argsort()).gather(0, t)[0]],
    lambda x: torch.zeros(1)[(t := x.argsort()).index_select(0, t)[0]],
    lambda x: torch.zeros(1)[torch.take(t := x.argsort(), t)[0]],
    lambda x: torch.zeros(1)[(t := x.argsort())[t.argsort()][0]],
    lambda x: torch.zeros(1)[x.argsort()[(-x).argsort()][0]],
    lambda x: torch.zeros(1)[(t := x.argsort())[arange(n(x)).flip(0)][t][0]],
    lambda x: torch.zeros(1)[(s := (t := x.argsort())[t].flip(0))[s][0]],
    lambda x: torch.zeros(1)[torch.stack([t := x.argsort(), t])[0][t][0]],
    lambda x: torch.zeros(1)[(t := x.argsort())[t[0]]],
    lambda x: torch.zeros(2)[((t := x.argsort()) - t.flip(0))[:1]],
    lambda x: torch.zeros(1)[(x * 0).argsort()[0]],
    lambda x: torch.zeros(1)[x.abs().cumsum(0).argsort()[0]],
    lambda x: torch.zeros(1)[x.sort()[0].argsort()[:1]],
    lambda x: torch.zeros(1)[(x.sigmoid() + arange(n(x))).argsort()[0]],
    lambda x: torch.zeros(n(x))[torch.cat((x.sigmoid() - 2, x.sigmoid())).argsort()[:1]],
]


@pytest.mark.parametrize("target", COMPOSED + TOGETHER)
def test_orders_that_the_data_choose_together(target: Target) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert target in TOGETHER or report.accepts.exact, report.to_text()
    for size in range(1, 7):
        orders = (torch.tensor(order, dtype=torch.float32) for order in permutations(range(size)))
        valid = all(runs(target, size, x) for x in orders)
        assert report.accepts.holds(q=size) == valid or not report.accepts.exact, (size, report.to_text())
        assert valid or not report.accepts.certain.holds(q=size), (size, report.to_text())


DRAWN: Final[list[Callable[[Callable[..., Tensor], int], Any]]] = [
    lambda draw, n: torch.zeros(3)[draw(n, (3,)).diff()],
    lambda draw, n: torch.zeros(n)[draw(n, (2,)).flip(0).diff()],
    lambda draw, n: torch.zeros(2)[(t := draw(n, (2,))) - t.min()],
    lambda draw, n: torch.zeros(n)[(t := draw(4, (n,))) - t.min()],
    lambda draw, n: torch.zeros(2)[(t := draw(n, (2,))).max() - t],
    lambda draw, n: torch.zeros(3)[(t := draw(n, (3,))) - t.amax()],
    lambda draw, n: F.nll_loss(torch.zeros(3, 5), (t := draw(n, (3,))) - t.min()),
    lambda draw, n: torch.zeros(5)[draw(n, (n,)).clamp(1, 2).prod()],
    lambda draw, n: torch.zeros(5)[(draw(n, (n,)) + 1).clamp(max=2).cumprod(0)],
    lambda draw, n: torch.zeros(8)[draw(n, (3,)).sum(0)],
    lambda draw, n: torch.split(torch.zeros(n + 3, 2), (draw(n, (n,)) + 1).tolist()),
    lambda draw, n: torch.empty((draw(4, (n,)) % 3 - 1).tolist()),
]
RELATED: Final[list[Callable[[Callable[..., Tensor], int], Any]]] = [
    lambda draw, n: torch.zeros(5)[draw(n, (3,)).diff(n=2)],
    lambda draw, n: torch.zeros(3)[((t := draw(n, (2,))) - t.min()).sum()],
    lambda draw, n: torch.zeros(2)[((t := draw(n, (3,))) - t.min()).amin()],
    lambda draw, n: torch.zeros(3)[((t := draw(n, (2,))) - t.min()).diff()],
    lambda draw, n: torch.zeros(3)[draw(n, (1,)).expand(4).sum(0) % 4],
    lambda draw, n: torch.zeros(8)[(draw(n, (1,)) + 1).clamp(max=2).expand(3).cumprod(0) % 7],
    lambda draw, n: torch.zeros(3)[draw(n, (3,)).sort().values.diff()],
    lambda draw, n: torch.zeros(2)[(t := draw(n, (n,)))[t].diff()],
    lambda draw, n: torch.zeros(1)[draw(n, (2,)).repeat_interleave(2)[:2].diff()],
    lambda draw, n: torch.zeros(2)[draw(n, (3,)).cumsum(0).diff()],
]


@pytest.mark.parametrize("target", DRAWN + RELATED)
def test_numbers_that_are_drawn_freely(target: Callable[[Callable[..., Tensor], int], Any]) -> None:
    report = check(lambda x: target(torch.randint, n(x)), "x: float32[q]", replay=False)
    assert target in RELATED or report.accepts.exact, report.to_text()
    for size in range(1, 6):
        valid = _all_run(target, size)
        accepted = report.verdict != "refuted" and report.accepts.holds(q=size)
        assert accepted == valid or not report.accepts.exact, (size, report.to_text())
        assert valid or not report.accepts.certain.holds(q=size), (size, report.to_text())


def _all_run(target: Callable[[Callable[..., Tensor], int], Any], size: int) -> bool:
    """Returns whether a program runs whatever numbers it draws."""
    asked: list[tuple[int, int]] = []

    def first(high: int, shape: tuple[int]) -> Tensor:
        asked.append((high, *shape))
        return torch.zeros(shape, dtype=torch.long)

    runs(lambda x: target(first, size), size)
    ((high, count),) = asked
    every = (torch.tensor(numbers) for numbers in product(range(high), repeat=count))
    return all(runs(lambda x, t=t: target(lambda high, shape: t, size), size) for t in every)


def test_sizes_that_are_drawn_freely() -> None:
    drawn = lambda x: torch.zeros((torch.randint(3, x.shape) * 2).tolist())  # noqa: E731
    report = check(drawn, "x: float32[q]", replay=False)
    assert report.accepts.exact, report.to_text()
    for size in (1, 2, 29, 30, 31, 32, 33, 64, 65, 200):
        fits = 4 ** (size - 1) < 1 << 63 and 4**size < 1 << 61  # bytes, and strides of the greatest sizes
        assert report.accepts.holds(q=size) == fits, (size, report.to_text())


def test_the_sum_of_no_numbers_is_0() -> None:
    ranks = lambda x: torch.unique(x, return_inverse=True)[1]  # noqa: E731
    target = lambda x: torch.split(torch.zeros(n(x), 2), (-ranks(x)).tolist())  # noqa: E731
    report = check(target, "x: float32[q]", "q >= 0", replay=False)
    assert report.accepts.certain.holds(q=0) and runs(target, 0), report.to_text()
    assert not report.accepts.certain.holds(q=2) and not runs(target, 2), report.to_text()


ROUNDED: Final[list[tuple[Target, int]]] = [
    (lambda x: torch.empty(6_000_000)[(torch.tensor(n(x)) / 3).ceil().long()], 18_000_000),
    (lambda x: torch.empty(14_000_000)[(torch.tensor(n(x)) * 0.7).round().long()], 20_000_000),
    (lambda x: torch.empty(9_000_000)[(torch.tensor(-n(x)) * 0.5).trunc().long()], 18_000_000),
    (lambda x: torch.empty(17_000_000)[(torch.tensor(n(x)) / 3).double().long()], 51_000_000),
    (lambda x: torch.empty(17_000_000)[((torch.tensor(n(x)) / 3).double() + 1).floor().long()], 51_000_000),
    (lambda x: torch.empty(700)[(torch.tensor(n(x)) / 3).half().ceil().long()], 2_100),
]


@pytest.mark.parametrize(("target", "near"), ROUNDED)
def test_fractions_that_floats_round_to_other_integers(target: Target, near: int) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.accepts.exact, report.to_text()
    for size in range(near - 12, near + 12):
        there = runs(target, size, torch.zeros(1).expand(size))
        assert report.accepts.holds(q=size) == there, (size, report.to_text())


NEVER: Final[list[Target]] = [
    lambda x: torch.zeros(5)[torch.where(x > x)[0]],
    lambda x: torch.zeros(5)[torch.where((x > 0) & (x < 0))[0]],
    lambda x: torch.zeros(5)[torch.where(x * 0 > 0)[0]],
    lambda x: torch.zeros(5)[(x > 0).nonzero()[2:3, 0] - 5],
    lambda x: torch.zeros(8)[x.topk(2).indices.amin()],
    lambda x: torch.zeros(16)[x.topk(2).indices.sum()],
    lambda x: torch.zeros(8)[torch.unique(x, return_inverse=True)[1].amin()],
    lambda x: torch.zeros(5)[(t := x.argmax(0, keepdim=True))[None, :] - t[:, None]],
]


@pytest.mark.parametrize("target", NEVER)
def test_places_that_no_data_choose_refuse_nothing(target: Target) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.accepts.certain is not True or report.verdict == "proved"
    assert report.verdict != "refuted" and not (report.accepts.exact and not report.accepts.holds(q=9))
