"""Programs whose index tensors sizes decide: the exact condition, against eager runs over a grid of sizes.

`rel` has R rows, `x` has q numbers. A program runs at sizes if it runs with all of some data, among them such
that rise and such that fall, so that any element is the greatest for some of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, arange
from torch.nn.utils.rnn import pad_sequence

from anyshape.typecheck import check

INPUTS = "rel: float32[R, 3]; x: float32[q]"
WITH_INDICES = "rel: float32[R, 3]; ids: int64[q]"
GRID = [*itertools.product(range(1, 7), repeat=2)]
REFUSALS = (RuntimeError, ValueError, IndexError, TypeError)


def n(x: Tensor) -> int:
    return x.shape[0]


def swin(rel: Tensor, x: Tensor) -> Tensor:
    """The relative positions of a window of q by 2."""
    grid = torch.stack(torch.meshgrid(arange(n(x)), arange(2), indexing="ij")).flatten(1)
    relative = (grid[:, :, None] - grid[:, None, :]).permute(1, 2, 0).contiguous()
    relative[:, :, 0] += n(x) - 1
    relative[:, :, 1] += 1
    relative[:, :, 0] *= 3
    return rel[relative.sum(-1)]


def segment_anything(rel: Tensor, x: Tensor) -> Tensor:
    """Relative positions of q queries among R keys, in a table as long as they need."""
    queries, keys = n(x), n(rel)
    table = torch.zeros(2 * max(queries, keys) - 1, 4)
    at = arange(queries)[:, None] * max(keys / queries, 1.0)
    of = arange(keys)[None, :] * max(queries / keys, 1.0)
    return table[((at - of) + (keys - 1) * max(queries / keys, 1.0)).long()]


def written_in_place(rel: Tensor, x: Tensor) -> Tensor:
    positions = arange(n(x))
    positions += 2
    positions *= 2
    return rel[positions]


def inverse(rel: Tensor, x: Tensor) -> Tensor:
    """The inverse of a permutation, as mixtures of experts have it."""
    order = x.argsort()
    back = torch.empty_like(order)
    back[order] = arange(n(x))
    return rel[back]


def permuted_twice(rel: Tensor, x: Tensor) -> Tensor:
    back = torch.zeros(n(x), dtype=torch.int64)
    back[torch.randperm(n(x)).flip(0)] = arange(n(x)) + 2
    return rel[back]


def written_in_parts(rel: Tensor, x: Tensor) -> Tensor:
    """A table as BEiT makes it: with a border of other numbers."""
    at = torch.zeros(n(x) + 1, n(x) + 1, dtype=torch.int64)
    at[1:, 1:] = arange(n(x))[:, None] - arange(n(x)) + n(x) - 1
    at[0, 0:] = 2 * n(x) - 1
    at[0, 0] = 2 * n(x)
    return torch.zeros(2 * n(x) + 1, 3)[at]


def data_written(rel: Tensor, ids: Tensor) -> Tensor:
    at = torch.zeros(n(ids) + 1, dtype=torch.int64)
    at[1:] = ids
    return rel[at]


def caught(rel: Tensor, x: Tensor) -> Tensor:
    try:
        return rel[arange(n(x))]
    except IndexError:
        return rel


def not_caught(rel: Tensor, x: Tensor) -> Tensor:
    try:
        return rel[x.argsort()]
    except RuntimeError:
        return rel


def in_a_branch(rel: Tensor, x: Tensor) -> Tensor:
    positions = arange(n(x))
    if n(x) > n(rel):
        positions = positions % n(rel)
    return rel[positions]


EXACT: list[tuple[Callable[[Tensor, Tensor], Any], str]] = [
    (lambda rel, x: rel[x.argsort()], "q <= R"),
    (lambda rel, x: rel[torch.sort(x).indices], "q <= R"),
    (lambda rel, x: rel[x.topk(1).indices], "q <= R"),
    (lambda rel, x: rel[x.max(0).indices], "q <= R"),
    (lambda rel, x: rel[x.argmax()], "q <= R"),
    (lambda rel, x: rel[x.argsort().argsort()], "q <= R"),
    (lambda rel, x: rel.index_select(0, x.argsort()), "q <= R"),
    (lambda rel, x: F.embedding(x.argsort(), rel), "q <= R"),
    (lambda rel, x: rel[:, 0].gather(0, x.argsort()), "q <= R"),
    (lambda rel, x: torch.zeros(n(rel)).scatter_(0, x.argsort(), x), "q <= R"),
    (lambda rel, x: rel[torch.randperm(n(x))], "q <= R"),
    (lambda rel, x: rel[torch.tril_indices(n(x), n(x))[0]], "q <= R"),
    (lambda rel, x: rel[torch.triu_indices(n(x), n(x), 1)[1]], "q <= R"),
    (lambda rel, x: rel[torch.ones(n(x)).nonzero()[:, 0]], "q <= R"),
    (lambda rel, x: rel[torch.eye(n(x)).long()], "2 <= R"),
    (lambda rel, x: rel[torch.tensor([0, n(x) - 1, 2])], "3 <= R and q <= R"),
    (lambda rel, x: rel[torch.cartesian_prod(arange(n(x)), arange(2))], "2 <= R and q <= R"),
    (lambda rel, x: rel[torch.combinations(arange(n(x)), 2)], "q <= R or q <= 1"),
    (lambda rel, x: rel[torch.unravel_index(arange(n(x)), (2, n(x)))[1]], "q <= R"),
    (lambda rel, x: rel[torch.bucketize(arange(n(x)), arange(3))], "q <= R or 4 <= R"),
    (lambda rel, x: rel[arange(n(x)).unique()], "q <= R"),
    (lambda rel, x: rel[arange(n(x)) ** 2], "(q - 1)**2 < R"),
    (lambda rel, x: rel[arange(n(x)).cumsum(0)], "q*(q - 1)//2 < R"),
    (lambda rel, x: rel[arange(n(x)) // 2], "(q - 1)//2 < R"),
    (lambda rel, x: rel[torch.div(arange(n(x)), 2, rounding_mode="trunc")], "(q - 1)//2 < R"),
    (lambda rel, x: rel[arange(n(x)) % 3], "q <= R or 3 <= R"),
    (lambda rel, x: rel[arange(20) % n(x)], "q <= R or 20 <= R"),
    (lambda rel, x: rel[(arange(n(x)) - 2).abs()], "3 <= R and q <= R + 2"),
    (lambda rel, x: rel[(arange(n(x)) * 2).clamp(max=4)], "2*q <= R + 1 or 5 <= R"),
    (lambda rel, x: rel[torch.where(arange(n(x)) > 2, arange(n(x)), 0)], "q <= R or q <= 3"),
    (lambda rel, x: rel[torch.minimum(arange(n(x)), torch.tensor(3))], "q <= R or 4 <= R"),
    (lambda rel, x: rel[arange(3) * n(x)], "2*q < R"),
    (lambda rel, x: rel[arange(n(x))[1:].diff()], "2 <= R or q <= 2"),
    (lambda rel, x: rel[-arange(n(x))], "q <= R + 1"),
    (lambda rel, x: rel[arange(n(x)).flip(0) * 2], "2*q <= R + 1"),
    (lambda rel, x: rel[arange(n(x)).roll(1)], "q <= R"),
    (lambda rel, x: rel[arange(n(x)).repeat_interleave(2)], "q <= R"),
    (lambda rel, x: rel[torch.cat([arange(n(x) - 1) + 3, arange(2)])], "2 <= R and (q <= 1 or q + 2 <= R)"),
    (lambda rel, x: rel[arange(n(x))[:, None] * 2 + arange(n(x))[None, :]], "3*q <= R + 2"),
    (lambda rel, x: rel[arange(n(x))[:, None] - arange(n(x))[None, :] + n(x) - 1], "2*q <= R + 1"),
    (lambda rel, x: rel[arange(n(x))[x.argsort()]], "q <= R"),
    (lambda rel, x: rel[(x > 0).long().cumsum(0)], "q < R"),
    (lambda rel, x: rel[int(arange(n(x)).sum())], "q*(q - 1)//2 < R"),
    (lambda rel, x: F.embedding(arange(60 * n(x)).to(torch.int8).long(), torch.zeros(500, 2)), "q <= 2"),
    (lambda rel, x: torch.zeros(500, 2)[arange(60 * n(x)).to(torch.int8).long()], "q >= 1"),
    (lambda rel, x: torch.zeros(200, 2)[arange(60 * n(x)).to(torch.uint8).long()], "q <= 3"),
    (lambda rel, x: torch.bincount(arange(n(x)) - 1), "q < 1"),
    (lambda rel, x: arange(5) // arange(n(x) - 2, n(x) + 3), "3 <= q"),
    (lambda rel, x: arange(5) % (n(x) - 3), "q != 3"),
    (lambda rel, x: rel.put(arange(n(x)), x), "q <= 3*R"),
    (lambda rel, x: rel[arange(n(x)), arange(n(x))], "q <= 3 and q <= R"),
    (lambda rel, x: F.nll_loss(torch.zeros(n(x), n(rel)), arange(n(x))), "q <= R"),
    (lambda rel, x: F.one_hot(arange(n(x)), n(rel)), "q <= R"),
    (swin, "6*q <= R + 3"),
    (written_in_place, "2*q + 3 <= R"),
    (inverse, "q <= R"),
    (permuted_twice, "q + 2 <= R"),
    (written_in_parts, "q >= 1"),
    (lambda rel, x: rel[F.pad(arange(n(x)), (1, 2), value=4)], "q <= R and 5 <= R"),
    (lambda rel, x: rel[F.pad(arange(n(x)), (0, 0))], "q <= R"),
    (lambda rel, x: rel[F.pad(arange(4 * n(x))[None], (1, 2), mode="reflect")], "4*q <= R"),
    (lambda rel, x: rel[x.argsort()[None].flip(1) + torch.randperm(2)[:, None]], "q < R"),
    (lambda rel, x: rel[torch.zeros(2, n(x)).argsort(0)], "2 <= R"),
    (lambda rel, x: rel[arange(2 * n(x)).clamp(torch.tensor(1), torch.tensor(n(x)))], "q < R"),
    (lambda rel, x: rel[arange(n(x))[None].expand(2, n(rel))], "q == R or q == 1"),
    (caught, "q >= 1"),
    (not_caught, "q <= R"),
    (in_a_branch, "q >= 1"),
]  # fmt: skip
WITHIN_FLOATS: list[tuple[Callable[[Tensor, Tensor], Any], str]] = [
    (lambda rel, x: rel[torch.linspace(0, n(x) - 1, 5).long()], "q <= R"),
    (lambda rel, x: rel[(arange(n(x)) / 2).long()], "(q - 1)//2 < R"),
    (lambda rel, x: rel[(arange(n(x)) * 0.5).floor().long()], "(q - 1)//2 < R"),
    (lambda rel, x: rel[(arange(n(x)) / 3).ceil().long()], "(q + 1)//3 < R"),
    (lambda rel, x: rel[(arange(n(x)) * (n(rel) / n(x))).long()], "q >= 1"),
    (segment_anything, "q >= 1"),
]
"""Exact for sizes for which floats are."""
OF_THE_USER: list[tuple[Callable[[Tensor, Tensor], Any], str]] = [
    (lambda rel, ids: rel[ids], "q >= 1"),
    (lambda rel, ids: rel[torch.cat([ids, arange(n(ids))])], "q <= R"),
    (lambda rel, ids: rel[torch.stack([ids, arange(n(ids))])], "q <= R"),
    (lambda rel, ids: rel[F.pad(ids, (0, 2), value=2)], "3 <= R"),
    (lambda rel, ids: rel[F.pad(ids, (0, n(ids) - 2), value=4)], "5 <= R or q <= 2"),
    (lambda rel, ids: rel[pad_sequence([ids, arange(3)])], "3 <= R"),
    (data_written, "q >= 1"),
    (lambda rel, ids: rel[torch.broadcast_tensors(ids, torch.tensor([5]))[1]], "6 <= R"),
    (lambda rel, ids: F.cross_entropy(torch.zeros(n(ids), 4), torch.where(ids > 0, ids, -100)), "q >= 1"),
]
OPEN: list[Callable[[Tensor, Tensor], Any]] = [
    lambda rel, x: rel[x.sigmoid().argmax()],
    lambda rel, x: rel[torch.zeros_like(x).long().index_copy(0, arange(n(x) - 1), arange(n(x) - 1))],
    lambda rel, x: rel[torch.searchsorted(x.sort().values, x)],
    lambda rel, x: rel[(torch.rand(9) * n(x)).long()],
    lambda rel, x: rel[2 ** arange(n(x))],
    lambda rel, x: rel[arange(n(x)) ^ 1],
    lambda rel, x: rel[arange(n(x)).view(torch.int32).long()],
    lambda rel, x: torch.zeros(2049 + n(x), 2)[arange(2049 + n(x)).half().long()],
]


def runs(target: Callable[..., Any], rows: int, count: int, kind: torch.dtype) -> bool:
    rel = torch.zeros(rows, 3)
    rising = arange(count)
    given = [torch.zeros(count, dtype=kind)]
    if kind is torch.float32:
        given += [rising.float() + 1, -rising.float() - 1, rising.flip(0).float() - 2]
    try:
        for x in given:
            target(rel, x)
    except REFUSALS:
        return False
    return True


def agrees(report: Any, target: Callable[..., Any], accepts: str, kind: torch.dtype) -> None:
    for rows, count in GRID:
        expected = eval(accepts, {"R": rows, "q": count})
        assert runs(target, rows, count, kind) == expected, (accepts, rows, count)
        assert report.accepts.holds(R=rows, q=count) == expected, (str(report.accepts), rows, count)


@pytest.mark.parametrize("target, accepts", EXACT)
def test_exact_conditions(target: Callable[..., Any], accepts: str) -> None:
    report = check(target, INPUTS)
    assert report.verdict in ("proved", "refined", "refuted") and report.accepts.exact, report.to_text()
    agrees(report, target, accepts, torch.float32)


@pytest.mark.parametrize("target, accepts", WITHIN_FLOATS)
def test_exact_conditions_while_floats_are(target: Callable[..., Any], accepts: str) -> None:
    report = check(target, INPUTS, ["R <= 256", "q <= 256"])
    assert report.verdict in ("proved", "refined") and report.accepts.exact, report.to_text()
    agrees(report, target, accepts, torch.float32)


@pytest.mark.parametrize("target, accepts", OF_THE_USER)
def test_indices_of_the_user_beside_others(target: Callable[..., Any], accepts: str) -> None:
    report = check(target, WITH_INDICES)
    assert report.verdict in ("proved", "refined") and report.accepts.exact, report.to_text()
    agrees(report, target, accepts, torch.int64)


@pytest.mark.parametrize("target", OPEN)
def test_what_is_not_followed_is_not_proved(target: Callable[..., Any]) -> None:
    """Not even without a run of the program."""
    report = check(target, INPUTS, replay=False)
    assert report.verdict == "unknown" and not report.accepts.exact
    assert any(f.code == "approximate" and f.origin.line for f in report.findings)
