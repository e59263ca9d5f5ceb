"""The element at one place of a tensor: the exact condition that a program has of it, against eager runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Final

import pytest
import torch
import torch.nn.functional as F
from eager_runs import runs
from torch import Tensor, arange

from anyshape.typecheck import check

SIZES: Final = (*range(1, 14), 20, 31, 64, 127, 128, 129, 130, 200, 255, 256, 257, 300)


def n(x: Tensor) -> int:
    return x.shape[0]


def grid(x: Tensor) -> Tensor:
    """Relative positions, of which the first is 0 and the last, too."""
    return arange(n(x))[:, None] - arange(n(x))[None, :]


def written_later(x: Tensor) -> Tensor:
    kept = torch.cat((arange(n(x)), arange(n(x))))
    kept[0] = 9
    return torch.zeros(5, 2)[kept[0]]


def written_through_a_view(x: Tensor) -> Tensor:
    kept = torch.cat((arange(n(x)), arange(n(x))))
    kept.view(2, -1)[0] += 9
    return torch.zeros(5, 2)[kept.flatten()[0]]


def copied_before_it_is_written(x: Tensor) -> Tensor:
    kept = torch.cat((arange(n(x)) + 3, arange(n(x))))
    copy = kept.clone()
    kept[0] = 9
    return torch.zeros(n(x), 2)[copy[0]]


def added_in_place(x: Tensor) -> Tensor:
    shifted = torch.cat((arange(n(x)) + 3, arange(n(x)))).clone().add_(n(x))
    return torch.zeros(9, 2)[shifted[0]]


def written_in_a_loop(x: Tensor) -> Tensor:
    table, kept = torch.zeros(5, 2), torch.cat((arange(n(x)), arange(n(x))))
    for _ in range(n(x)):
        found = table[kept[0]]
        kept[0] += 3
    return found


def written_as_floats(x: Tensor) -> Tensor:
    kept = torch.cat((arange(n(x)), arange(n(x)))).half()
    kept.mul_(0).add_(n(x))
    return torch.zeros(5, 2)[kept.long()[0]]


def computed_after_a_write(x: Tensor) -> Tensor:
    kept = torch.cat((arange(n(x)), arange(n(x)))).half()
    kept.add_(3)
    return torch.zeros(5, 2)[kept.long() * 1]


def drawn_and_overwritten(x: Tensor) -> Tensor:
    drawn = torch.rand(3)
    drawn.fill_(1)
    return torch.zeros(5, 2)[(drawn * n(x)).long()]


def drawn_and_written_through_a_view(x: Tensor) -> Tensor:
    drawn = torch.rand(3)
    drawn.view(-1).fill_(1)
    return torch.zeros(5, 2)[(drawn * n(x)).long()]


def floats_written_through_a_view(x: Tensor) -> Tensor:
    kept = torch.cat((arange(n(x)), arange(n(x)))).half()
    kept.view(2, -1)[0].mul_(0).add_(4)
    return torch.zeros(5, 2)[kept.long()[0] + 1]


def drawn_and_moved(x: Tensor) -> Tensor:
    drawn = torch.rand(3) * n(x)
    drawn.add_(1)
    return torch.zeros(5, 2)[drawn.long()]


def written_by_a_helper(x: Tensor) -> Tensor:
    kept = torch.cat((arange(n(x)), arange(n(x))))
    for row in (kept[:1], kept[1:2]):
        row.add_(3)
    return torch.zeros(4, 2)[kept[0] + kept[1]]


def written_in_each_iteration(x: Tensor) -> Tensor:
    table, kept = torch.zeros(5, 2), torch.cat((arange(n(x)), arange(n(x))))
    for k in range(n(x)):
        table[(kept.half() * 2).long()]
        kept[k] = 3 * k
    return kept


def moved_in_a_loop(x: Tensor) -> Tensor:
    order = torch.cat((arange(n(x)), arange(n(x)) + 2))
    for _ in range(n(x)):
        order = order.roll(1)
    return torch.zeros(5, 2)[order[0]]


def chosen_and_caught(x: Tensor) -> Tensor:
    """A number that data choose, the refusal of which is caught."""
    try:
        return torch.zeros(5).select(0, int(x.argmax()))
    except IndexError:
        return torch.zeros(9).select(0, int(x.argmin()) - n(x))


def told_apart(x: Tensor) -> Tensor:
    """A number that data choose, some choices of which are put aside by a branch."""
    first = int(x.argmax())
    return torch.zeros(9).narrow(0, first, 2) if first < 8 else x


EXACT: Final[list[Callable[[Tensor], Any]]] = [
    lambda x: torch.zeros(5, 2)[torch.cat((arange(n(x) - 1), arange(n(x)) + 9)).flatten()[0]],
    lambda x: torch.zeros(5, 2)[torch.cat((arange(n(x)) + 3, arange(4)))[-2]],
    lambda x: torch.zeros(9, 2).select(0, torch.stack((arange(n(x)), arange(n(x)) + n(x)))[1, 0].item()),
    lambda x: torch.zeros(9, 2).narrow(0, int(torch.cartesian_prod(arange(n(x)), arange(3))[:, 0][0]), 9),
    lambda x: torch.zeros(8, 2).narrow(0, int(F.pad(arange(n(x)) + 2, (1, 0), value=7).flatten()[1]), 4),
    lambda x: torch.zeros(3, 2)[F.pad(arange(n(x)) + 2, (1, 2), value=3).flatten()[2]],
    lambda x: torch.zeros(3, 2)[torch.eye(n(x), dtype=torch.long).flatten()[-1] * n(x)],
    lambda x: torch.zeros(4, 2)[F.one_hot(arange(n(x)))[-1, 0] + n(x)],
    lambda x: torch.zeros(4, 2)[(grid(x) + n(x) - 1).tril()[0, 0]],
    lambda x: torch.zeros(4, 2)[(grid(x) + n(x) + 1).triu(1)[0, 0]],
    lambda x: torch.zeros(7, 2)[grid(x).t()[0, -1]],
    lambda x: torch.zeros(7, 2)[grid(x).flip(1)[0, 0]],
    lambda x: torch.zeros(7, 2)[torch.diag(arange(n(x)) + 2)[-1, -1]],
    lambda x: torch.zeros(7, 2)[torch.meshgrid(arange(n(x)) + 4, arange(3), indexing="xy")[1][-1, -1] + n(x)],
    lambda x: torch.zeros(7, 2)[torch.triu_indices(n(x), n(x) + 1, offset=1)[1][0] + n(x)],
    lambda x: torch.zeros(7, 2)[torch.tril_indices(n(x), n(x), offset=-1)[0][0] + n(x)],
    lambda x: torch.zeros(7, 2)[torch.ones(n(x), 3).nonzero()[0, 1] + n(x)],
    lambda x: torch.zeros(7, 2)[arange(n(x)).roll(1)[0]],
    lambda x: torch.zeros(7, 2)[arange(n(x)).roll(-1)[0]],
    lambda x: torch.zeros(7, 2)[arange(2, n(x) + 2).repeat(3)[0]],
    lambda x: torch.zeros(7, 2)[arange(2, n(x) + 2).repeat_interleave(3)[4]],
    lambda x: torch.zeros(7, 2)[(arange(n(x)) * 2).unique()[0] + n(x)],
    lambda x: torch.zeros(7, 2)[((arange(n(x)) * 2) ^ 1)[0] + n(x)],
    lambda x: torch.zeros(7, 2)[((arange(n(x)) * 2) & 3)[1:][0]],
    lambda x: torch.zeros(7, 2)[arange(n(x), dtype=torch.bfloat16).long().flatten()[0] + n(x)],
    lambda x: torch.zeros(7, 2)[arange(n(x) - 1, -1, -1).byte().long()[:2]],
    lambda x: torch.zeros(7, 2)[torch.cat((arange(n(x) - 1), arange(n(x) - 1)))[-1:]],
    lambda x: torch.zeros(7, 2)[torch.cat((arange(n(x)), arange(3) + 4)).flip(0)[1:4]],
    lambda x: torch.zeros(7, 2)[torch.cat((arange(n(x)) + 5, arange(3))).narrow(0, 1, 2)],
    lambda x: torch.zeros(7, 2)[torch.combinations(arange(n(x)))[0, 1]],
    lambda x: torch.zeros(7, 2)[(arange(n(x)) ** 2).diff()[1]],
    lambda x: torch.zeros(7, 2)[(arange(n(x)) + n(x)).cumsum(0)[0]],
    lambda x: torch.zeros(7, 2)[torch.linspace(3, 90, n(x)).long()[0]],
    lambda x: torch.zeros(7, 2)[arange(n(x))[arange(n(x) - 1, -1, -1)][0]],
    lambda x: torch.zeros(7, 2)[torch.where(arange(n(x)) + n(x) > 5, arange(n(x)), 8)[0]],
    lambda x: torch.zeros(9, 2)[torch.arange(-n(x), 0).masked_fill(arange(n(x)) < n(x) - 3, 8)[0]],
    lambda x: torch.zeros(200, 2)[arange(3, n(x) + 3).short().long().flatten()[-1]],
    lambda x: torch.zeros(20, 2)[(torch.cat((arange(-n(x), 0), arange(2))).char() + 2).long()[0]],
    lambda x: torch.zeros(20, 2)[(torch.cat((arange(n(x), 0, -1), arange(2))).byte() * 2).long()[0]],
    lambda x: torch.zeros(20, 2)[torch.cat((arange(n(x)) + 3, arange(n(x)))).view(2, -1)[:, 0].tolist()],
    lambda x: torch.zeros(20, 2)[torch.unravel_index(arange(n(x)), (n(x), 4))[0].flatten()[-1]],
    lambda x: torch.zeros(20, 2)[(arange(n(x)) < n(x) // 2).nonzero().view(-1) + 3],
    lambda x: torch.zeros(20, 2)[(arange(n(x)) > 5).nonzero()[:, 0]],
    lambda x: torch.zeros(20, 2)[arange(float(n(x))).long()[-1]],
    lambda x: torch.zeros(torch.bincount(arange(n(x)) + 2).shape[0] - 6, 2),
    lambda x: torch.zeros(9, 2)[arange(n(x)).unique_consecutive(return_counts=True)[1] * 2 + n(x)],
    lambda x: torch.zeros(3, 2)[(arange(n(x)).bool() & (arange(n(x)) < 2)).long()[0] + n(x)],
    added_in_place,
]  # fmt: skip
EXTREME: Final[list[Callable[[Tensor], Any]]] = [
    lambda x: torch.zeros(9).narrow(0, int(arange(n(x)).half().long().max()), 1),
    lambda x: torch.zeros(700).narrow(0, int(arange(n(x)).bfloat16().long().max()), 1),
    lambda x: torch.multinomial(torch.ones(7), int((arange(-n(x), 0) / 1).ceil().long().byte().max())),
    lambda x: torch.zeros(9)[int(arange(-n(x), 0).half().half().long().max()) + 3],
    lambda x: torch.zeros(9)[F.pad(arange(n(x)), (1, 0), value=4).half().long().max()],
    lambda x: torch.zeros(9)[(arange(n(x))[None, :] + arange(n(x))[:, None]).bfloat16().long().max()],
    lambda x: torch.zeros(9).select(0, 5 + int((arange(n(x)) - arange(n(x)).half().long()[:, None]).min())),
    lambda x: torch.zeros(300, 2)[(arange(n(x)).byte() * 3).long().max() * 2],
    lambda x: torch.zeros(40, 2)[: int((arange(n(x)) * 0.7).round().long().char().long().max())],
    lambda x: torch.zeros(120)[((arange(n(x)).char() + 4).long() * 2).half().long().min()],
    lambda x: torch.zeros(12)[torch.cat((arange(n(x) - 1), arange(3))).half().long().max()],
    lambda x: torch.zeros(12)[torch.stack((arange(n(x)), arange(n(x)) + 4)).half().long().max()],
    lambda x: torch.zeros(3)[torch.diag(arange(n(x)) + 2).bfloat16().long().min()],
    lambda x: torch.zeros(3)[-(arange(n(x)).bfloat16().long()).min() + 2],
    lambda x: torch.zeros(9)[arange(n(x)).half().long().unique()[-1]],
    lambda x: torch.zeros(9)[arange(-n(x), 0).half().long().sort().values[0] + 5],
    lambda x: torch.zeros(9)[(5 - arange(n(x)).bfloat16().long()).sort().values[-1] + 3],
    lambda x: torch.zeros(60)[(arange(n(x)) << 1).half().long().max()],
    lambda x: torch.zeros(3)[(arange(-n(x), 0) >> 1).half().long().max() + 2],
    lambda x: torch.zeros(20)[torch.div(arange(n(x)).half().long(), 3, rounding_mode="trunc").max()],
    lambda x: torch.zeros(9)[arange(n(x)).bfloat16().abs().long().clamp(2, 7).max() + 3],
    lambda x: torch.zeros(60)[arange(-n(x), 0).half().long().abs().max()],
    lambda x: torch.zeros(9).select(0, int(arange(-n(x), 0).half().long().bool().long().max()) + 8),
    lambda x: torch.zeros(9).select(0, int((t := arange(n(x)).float().long()).masked_fill(t < 3, 2).max())),
    lambda x: torch.zeros(9).select(0, int(torch.where((t := arange(n(x)).half().long()) > 3, t, 2).max())),
    lambda x: torch.zeros(9).select(0, int((arange(n(x)) / 1).floor().long().char().flatten()[0])),
    lambda x: torch.zeros(n(x) + 9).select(0, int((arange(n(x)) / 1).ceil().long()[-1].clamp(max=9))),
    lambda x: torch.zeros(9)[: int(x.new_full((1,), n(x)).long().bfloat16().long())],
    lambda x: torch.multinomial(torch.ones(9), int((arange(n(x)) / 5).floor().long().max()) + 1),
    lambda x: torch.zeros(99).select(0, int((arange(n(x)) * 0.7).round().long().char().long().max())),
    lambda x: torch.multinomial(torch.ones(8), int((arange(n(x)).byte() * 3).long().max()) + 1),
    lambda x: torch.multinomial(torch.ones(8), int((arange(n(x)).short().byte() * 3).long().max()) + 1),
    lambda x: torch.zeros(40).select(0, int((arange(-n(x), 0).char() * 2).long().min()) + 30),
    lambda x: torch.zeros(9).select(0, int((x.new_full((1,), n(x)).long() >> 1)[0]) + 3),
    lambda x: torch.zeros(99).select(0, int((x.new_full((1,), n(x)).long() << 1).max())),
    lambda x: torch.zeros(9).split(torch.linspace(0, 2 * n(x) - 1, 2).long().tolist()),
    lambda x: torch.zeros(9).select(0, int(torch.linspace(3, n(x), n(x)).long()[-1])),
]  # fmt: skip
"""Programs whose size or index is the greatest or the least element, or one that floats have rounded."""
OF_DATA: Final[list[Callable[[Tensor], Any]]] = [
    lambda x: torch.zeros(5, 2)[x.argsort()[-1] + 2],
    lambda x: torch.zeros(5, 2)[x.sort().indices[1:2]],
    lambda x: torch.zeros(7, 2)[(x.argsort() * 2).half().long()[:3]],
    lambda x: torch.zeros(n(x), 2)[((x.argsort() ^ 1) + 1).char().long()[-2:]],
    lambda x: torch.zeros(5, 2)[x.topk(1).indices[0] * 2],
    lambda x: torch.zeros(5, 2)[(x.argmax().reshape(1).repeat(2) // 2)[0]],
    lambda x: torch.zeros(n(x), 2)[torch.where(x.argmax() < n(x), x.argmax(), n(x))],
    lambda x: torch.zeros(n(x), 2)[torch.where(x.argsort() < n(x) - 2, x.argsort(), n(x) - 2)],
    lambda x: torch.zeros(5, 2)[(i := x.argsort())[i < 7]],
    lambda x: torch.zeros(5, 2)[(i := x.argsort()).masked_fill(i > 7, 0)],
    lambda x: torch.zeros(5, 2)[torch.where((i := x.topk(1).indices) >= 3, i - i, i)],
    lambda x: torch.zeros(5, 2)[torch.unique(x, return_inverse=True)[1].byte().long()],
    lambda x: torch.zeros(n(x), 2)[torch.where(x.argsort().float().long() > 3, 9, 0)],
    lambda x: torch.zeros(7, 2)[(i := x.argsort().float().long())[i < 9]],
    lambda x: torch.zeros(n(x), 2)[x.argsort().float().long().clamp(max=4)],
    lambda x: torch.zeros(n(x), 2)[(-x.argsort().float()).long().clamp(min=-4)],
    lambda x: torch.zeros(n(x), 2)[(-x.argsort().float()).long().clamp(max=-4)],
    lambda x: torch.zeros(5).select(0, int(x.argsort()[-1]) + 2),
    lambda x: torch.zeros(9).narrow(0, int(x.argmax() * 2), 2),
    lambda x: torch.zeros(5).select(0, -1 - int((x.argsort() // 2)[-1])),
    lambda x: torch.zeros(n(x)).narrow(0, int(x.argmax()), 2),
    lambda x: x.select(0, int(x.topk(1).indices[0])),
    lambda x: torch.zeros(5).select(0, int(x.topk(n(x)).indices[0])),
    lambda x: torch.zeros(5, 2)[x.topk(n(x), largest=False).indices[-1]],
    lambda x: torch.zeros(5).split([int(x.argmax()), 5 - int(x.argmax())]),
    lambda x: torch.zeros(4).select(0, int(x.argsort()[:2].max())),
    lambda x: torch.zeros(4).select(0, -int(x.argsort()[:2].min()) - 1),
    lambda x: F.embedding(x.topk(2).indices.max() - 1, torch.zeros(5, 2)),
    chosen_and_caught,
    told_apart,
]  # fmt: skip
"""Programs that run with all of some data, or not."""
INFINITE: Final[list[Callable[[Tensor], Any]]] = [
    lambda x: torch.zeros(3).select(0, int(arange(n(x)).half().long().min())),
    lambda x: torch.zeros(3).select(0, int(torch.tensor([0, n(x)]).half().long().max())),
]
"""Programs that halves of large numbers, which are infinite, make fail."""
WRITTEN: Final = [written_later, written_through_a_view, moved_in_a_loop, copied_before_it_is_written]
WRITTEN += [written_as_floats, computed_after_a_write, drawn_and_overwritten, drawn_and_moved]
WRITTEN += [drawn_and_written_through_a_view, floats_written_through_a_view]
WRITTEN += [written_in_a_loop, written_by_a_helper, written_in_each_iteration]
"""Programs that write between the calls that an element comes through."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", EXACT + EXTREME)
def test_one_element_is_known_exactly(target: Callable[[Tensor], Any]) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.verdict in ("proved", "refined", "refuted") and report.accepts.exact, report.to_text()
    for size in SIZES:
        assert report.accepts.holds(q=size) == runs(target, size), (size, report.to_text())


@pytest.mark.parametrize("target", OF_DATA)
def test_one_element_may_be_any_that_data_choose(target: Callable[[Tensor], Any]) -> None:
    report = check(target, "x: float32[q]", replay=False)
    for size in range(1, 14):
        turned = (torch.arange(float(size)).roll(places) for places in range(size))
        ran = all(runs(target, size, x) for x in turned)
        assert ran or not report.accepts.certain.holds(q=size), (size, report.to_text())
        assert not report.accepts.exact or report.accepts.holds(q=size) == ran, (size, report.to_text())


@pytest.mark.parametrize("target", INFINITE)
def test_infinite_halves_are_not_large_integers(target: Callable[[Tensor], Any]) -> None:
    report = check(target, "x: float32[q]", replay=False)
    for size in (70_000, 3_000_000):
        ran = runs(target, size, torch.zeros(1).expand(size))
        assert ran or not report.accepts.certain.holds(q=size), (size, report.to_text())


@pytest.mark.parametrize("target", WRITTEN)
def test_what_is_written_counts(target: Callable[[Tensor], Any]) -> None:
    report = check(target, "x: float32[q]", replay=False)
    for size in SIZES[:20]:
        ran = runs(target, size)
        assert ran or not report.accepts.certain.holds(q=size), (size, report.to_text())
        assert not ran or report.accepts.holds(q=size), (size, report.to_text())


def small_and_zero(x: Tensor) -> Tensor:
    return torch.where(arange(n(x)) > 3, 0, arange(n(x)))


def overwritten(x: Tensor, size: int = 9) -> Tensor:
    kept = arange(size)
    kept[: n(x) - 2] = 4
    return kept


COUNTED: Final[list[Callable[[Tensor, Tensor], Any]]] = [
    lambda x, y: torch.ones(3)[small_and_zero(x)[n(y) - 1]],
    lambda x, y: torch.ones(3)[small_and_zero(x)[-n(y)]],
    lambda x, y: torch.ones(3)[small_and_zero(x).select(0, -n(y))],
    lambda x, y: torch.ones(3)[small_and_zero(x)[torch.tensor([n(y) - 1])]],
    lambda x, y: torch.ones(3)[small_and_zero(x)[n(y) - n(x)]],
    lambda x, y: torch.ones(3)[torch.cat((arange(3), arange(n(x)))).index_select(0, torch.tensor([-n(y)]))],
    lambda x, y: y[overwritten(x)[n(y) - 1]],
    lambda x, y: y[overwritten(x)[n(x)]],
    lambda x, y: torch.ones(6)[overwritten(x, 16)[n(y)]],
]
"""Programs that ask for the element at a place which counts from the end, or from the start, as sizes say."""


@pytest.mark.parametrize("target", COUNTED)
def test_places_count_from_either_end(target: Callable[[Tensor, Tensor], Any]) -> None:
    report = check(target, "x: float32[q]; y: float32[r]", ("q >= 0", "r >= 0"), replay=False)
    assert report.verdict in ("proved", "refined", "refuted") and report.accepts.exact, report.to_text()
    for q, r in product((0, 1, 2, 3, 4, 5, 6, 9, 10, 17), repeat=2):
        there = runs(lambda x: target(x, torch.zeros(r)), q)  # noqa: B023
        assert report.accepts.holds(q=q, r=r) == there, (q, r, report.to_text())


@pytest.mark.parametrize("order", [
    lambda x: arange(n(x)), lambda x: arange(n(x)).flip(0), lambda x: arange(n(x)) * 0, lambda x: x.argsort(),
])  # fmt: skip
def test_a_sorter_is_read_as_a_whole(order: Callable[[Tensor], Tensor]) -> None:
    """Where a number lies among boundaries in another order is no matter of one place of the order."""

    def target(x: Tensor) -> Tensor:
        return torch.zeros(3, 2)[torch.searchsorted(arange(n(x)), 2, sorter=order(x))]

    of_data = check(lambda x: torch.searchsorted(x, -7.5, sorter=order(x)), "x: float32[20]")
    assert [finding for finding in of_data.findings if "failed" in finding.message] == []
    report = check(target, "x: float32[n]")
    for size in range(1, 9):
        if report.accepts.certain.holds(n=size):
            target(torch.zeros(size))
