"""Programs whose index tensors sizes decide: the exact condition, against eager runs over a grid of sizes.

`rel` has R rows, `x` has q numbers. A program runs at sizes if it runs with all of some data, among them such
that rise and such that fall, so that any element is the greatest for some of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final

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


def written_through_steps(rel: Tensor, x: Tensor) -> Tensor:
    at = torch.zeros(n(x), 1, dtype=torch.int64)
    at.view(-1, 1)[:, ::2] += n(x)
    return rel[at]


def written_at_steps(rel: Tensor, x: Tensor) -> Tensor:
    at = torch.full((n(x), 2), 5)
    at.view(-1, 2)[:, ::2] -= 3
    return rel[at]


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


def listed_before_it_is_written(rel: Tensor, x: Tensor) -> Any:
    sizes = arange(n(x))
    listed = sizes.tolist()
    sizes += 1
    return rel.split(listed)


def list_that_grows(rel: Tensor, x: Tensor) -> Any:
    sizes = arange(n(x)).half().long().tolist()
    sizes.append(1)
    sizes.pop()
    return rel[sizes]


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


def ctc(steps: int, targets: Tensor, steps_of_each: Tensor, classes_of_each: Tensor) -> Tensor:
    probabilities = torch.zeros(steps, n(steps_of_each), 4)
    return F.ctc_loss(probabilities, targets.long(), steps_of_each, classes_of_each)


EXACT: list[tuple[Callable[[Tensor, Tensor], Any], str]] = [
    (
        lambda rel, x: F.nll_loss(torch.zeros(n(x), n(rel)), arange(n(x)), ignore_index=2),
        "q <= R or (q == 3 and 2 <= R)",
    ),
    (lambda rel, x: rel.masked_scatter(torch.ones(n(rel), 3).bool(), torch.zeros(n(x))), "3 * R <= q"),
    (lambda rel, x: rel.t().masked_scatter(arange(n(rel)) < 2, torch.zeros(n(x))), "3 * min(R, 2) <= q"),
    (
        lambda rel, x: rel.masked_scatter(floats(rel).cos()[:, None] > 0, rel + 1).view(-1, 2),
        "R % 2 == 0",
    ),
    (lambda rel, x: ctc(n(rel), x.expand(2, -1), arange(2) + 2, arange(2) + 1), "3 <= R and 2 <= q"),
    (lambda rel, x: ctc(3, x, arange(n(rel)), torch.full((n(rel),), 2)), "R <= 4 and q == 2*R"),
    (lambda rel, x: ctc(9, x.expand(2, -1), arange(2) * 0 + n(rel) - 2, arange(2) + 3), "2 <= R and 4 <= q"),
    (lambda rel, x: torch.linalg.tensorsolve(torch.eye(n(rel)), torch.ones(n(x))), "R == q"),
    (lambda rel, x: rel[x.argsort()], "q <= R"),
    (lambda rel, x: rel[torch.where((i := x.argmax()) < 2 * n(x), i, 99)], "q <= R"),
    (lambda rel, x: rel[(arange(n(x)) < n(x) - 1).nonzero().view(-1).roll(1) + 2], "q <= 1 or q < R"),
    (lambda rel, x: rel[torch.where((i := x.topk(1).indices) < 2 * n(x), i, 2 * n(x))], "q <= R"),
    (lambda rel, x: rel[x.argsort().clamp(max=1).double().long()], "q <= R or 2 <= R"),
    (lambda rel, x: rel[(arange(n(x)) < 3).long().sqrt().long()], "2 <= R"),
    (lambda rel, x: rel[torch.unravel_index(arange(n(x)), (n(x), 2))[0]], "(q - 1)//2 < R"),
    (lambda rel, x: rel[arange(n(x)).unique_consecutive(return_counts=True)[1]], "2 <= R"),
    (lambda rel, x: torch.bincount(arange(n(x))).expand_as(rel[:, 0]), "q == R or q == 1"),
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
    (lambda rel, x: rel[torch.ones(n(x)).nonzero(as_tuple=True)[0]], "q <= R"),
    (lambda rel, x: rel[torch.where(torch.ones(n(x), 3) > 0)[0]], "q <= R"),
    (lambda rel, x: rel[torch.where(torch.ones(3, n(x)) > 0)[1]], "q <= R"),
    (lambda rel, x: rel[torch.where(arange(n(x)) > 2)[0]], "q <= 3 or q <= R"),
    (lambda rel, x: rel[torch.where(arange(n(x)) < 2)[0] + 1], "R >= 3 or (q == 1 and R >= 2)"),
    (lambda rel, x: rel[torch.eye(n(x)).nonzero(as_tuple=True)[1]], "q <= R"),
    (lambda rel, x: rel[torch.eye(n(x)).long()], "2 <= R"),
    (lambda rel, x: rel[torch.tensor([0, n(x) - 1, 2])], "3 <= R and q <= R"),
    (lambda rel, x: rel[torch.cartesian_prod(arange(n(x)), arange(2))], "2 <= R and q <= R"),
    (lambda rel, x: rel[torch.combinations(arange(n(x)), 2)], "q <= R or q <= 1"),
    (lambda rel, x: rel[torch.unravel_index(arange(n(x)), (2, n(x)))[1]], "q <= R"),
    (lambda rel, x: rel[torch.bucketize(arange(n(x)), arange(3))], "q <= R or 4 <= R"),
    (lambda rel, x: rel[arange(n(x)).unique()], "q <= R"),
    (lambda rel, x: rel[arange(n(x)).unique(return_inverse=True)[1]], "q <= R"),
    (lambda rel, x: rel[arange(n(x)).unique_consecutive(return_counts=True)[1]], "2 <= R"),
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
    (lambda rel, x: F.nll_loss(torch.zeros(n(x), 6), arange(n(x)) - 101), "q < 1"),
    (lambda rel, x: F.nll_loss(torch.zeros(n(x), 4), arange(n(x)), ignore_index=2), "q <= 4"),
    (lambda rel, x: F.one_hot(arange(n(x)), n(rel)), "q <= R"),
    (lambda rel, x: rel[arange(n(x)) & 3], "q <= R or 4 <= R"),
    (lambda rel, x: rel[arange(n(x)) ^ 1], "q + q % 2 <= R"),
    (lambda rel, x: rel[arange(n(x)) >> 1], "(q - 1)//2 < R"),
    (lambda rel, x: rel[arange(n(x)) << 1], "2*q <= R + 1"),
    (lambda rel, x: rel[arange(n(x)).sign()], "2 <= R or q <= 1"),
    (lambda rel, x: rel[arange(n(x)).bool().long()], "2 <= R or q <= 1"),
    (lambda rel, x: rel[(arange(n(x)) == 2).long()], "2 <= R or q <= 2"),
    (lambda rel, x: rel[(arange(n(x)) > 2).long()], "2 <= R or q <= 3"),
    (lambda rel, x: rel[torch.pow(2, arange(n(x)).clamp(0, 2))], "2**min(q - 1, 2) < R"),
    (lambda rel, x: rel[F.pad(arange(n(x)), (1, 0))], "q <= R"),
    (lambda rel, x: rel[F.pad(arange(n(x)), (0, 2), value=3)], "q <= R and 4 <= R"),
    (lambda rel, x: rel[arange(n(x)).masked_fill(arange(n(x)) > 2, 0)], "q <= R or 3 <= R"),
    (lambda rel, x: rel[F.one_hot(arange(n(x)))], "2 <= R"),
    (lambda rel, x: rel[torch.diag(arange(n(x)))], "q <= R"),
    (lambda rel, x: torch.zeros(250, 2)[(arange(60 * n(x)).byte() - 2).long()], "q < 1"),
    (lambda rel, x: torch.zeros(255, 2)[(arange(60 * n(x)).byte() * 2).long()], "q >= 1"),
    (lambda rel, x: torch.zeros(254, 2)[(arange(60 * n(x)).byte() * 2).long()], "q <= 2"),
    (lambda rel, x: torch.zeros(9, 2)[arange(600 * n(x)).half().byte().long()], "q < 1"),
    (lambda rel, x: torch.zeros(500, 2)[(arange(600 * n(x)).half() + 3).long()], "q < 1"),
    (lambda rel, x: torch.full((2,), 40 * n(x), dtype=torch.int8), "q <= 3"),
    (lambda rel, x: torch.tensor([100 * n(x)], dtype=torch.uint8), "q <= 2"),
    (lambda rel, x: torch.randint(0, 60 * n(x), (2,), dtype=torch.int8), "q <= 2"),
    (lambda rel, x: torch.zeros(2).normal_(0, n(x) - 3), "3 <= q"),
    (lambda rel, x: torch.zeros(2).uniform_(n(rel), n(x)), "R <= q"),
    (lambda rel, x: torch.zeros(2).exponential_(n(x) - 3), "4 <= q"),
    (lambda rel, x: torch.histc(x, 4, n(rel), n(x)), "R <= q"),
    (lambda rel, x: torch.quantile(x, n(x) / n(rel)), "q <= R"),
    (lambda rel, x: arange(n(x)) ** (n(rel) - 3), "3 <= R"),
    (lambda rel, x: rel.take_along_dim(arange(n(x))), "q <= 3*R"),
    (lambda rel, x: x.narrow(0, torch.tensor(n(rel)), 1), "R < q"),
    (lambda rel, x: torch.zeros(n(rel)).bernoulli_(n(x) / n(rel)), "q <= R"),
    (lambda rel, x: torch.repeat_interleave(arange(n(x)) - n(rel) + 1), "R <= 1"),
    (lambda rel, x: torch.repeat_interleave(rel[1:, 0], torch.tensor([n(x) - 3])), "R == 1 or 3 <= q"),
    (lambda rel, x: rel[n(x) :].repeat_interleave(torch.tensor(n(x) - 3), 0), "R <= q or 3 <= q"),
    (lambda rel, x: rel[1:].repeat_interleave(torch.tensor([n(x) - 3]), 1), "3 <= q"),
    (lambda rel, x: torch.empty(2, dtype=torch.long).fill_(n(x)) + rel[:2, :2].shape[0], "q >= 1"),
    (swin, "6*q <= R + 3"),
    (written_in_place, "2*q + 3 <= R"),
    (written_through_steps, "q + 1 <= R or q == 0"),
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
    (lambda rel, x: rel[torch.tensor(arange(n(x)).tolist())], "q <= R"),
    (lambda rel, x: rel[[i for i in range(n(x)) if i % 3]], "q - (q % 3 == 1) <= R or q == 1"),
    (lambda rel, x: rel[list(range(n(x)))], "q <= R"),
    (lambda rel, x: rel[torch.tensor(list(zip(range(n(x)), range(1, n(rel) + 2), strict=False)))], "q < R"),
    (lambda rel, x: rel[torch.tensor([2 * i for i in range(n(x))])[1:]], "2*(q - 1) < R or q == 1"),
    (lambda rel, x: rel.split(torch.tensor([1, n(x)]).tolist()), "q == R - 1"),
    (lambda rel, x: torch.zeros(10).split((arange(n(x)) + 1).tolist()), "q == 4"),
    (lambda rel, x: torch.zeros(9).split((arange(n(x)) + 1).tolist()), "False"),
    (lambda rel, x: torch.zeros(0).split((arange(n(x)) % 1).tolist()), "True"),
    (lambda rel, x: rel.split((arange(n(x)).short() + 1).long().tolist()), "2*R == q*(q + 1)"),
    (lambda rel, x: torch.zeros(3, n(rel)).split(arange(n(x)).tolist(), 1), "2*R == q*(q - 1)"),
    (lambda rel, x: rel.split(arange(n(x)).flip(0).sub(2).tolist()), "False"),
    (lambda rel, x: rel.split((arange(n(x)) * 63).to(torch.int8).long().tolist()), "q == 2 and R == 63"),
    (lambda rel, x: torch.zeros(600).split((arange(n(x)).byte() * 60).long().tolist()), "q == 5"),
    (lambda rel, x: rel[torch.tensor(x.argsort().tolist())], "q <= R"),
    (lambda rel, x: rel[x.argsort().tolist()], "q <= R"),
    (lambda rel, x: rel[arange(-n(x), 0).clamp(1, 2).prod()], "2 <= R"),
    (lambda rel, x: rel[arange(4, n(x) + 4).clamp(max=3)], "4 <= R"),
    (lambda rel, x: rel[arange(2, n(x) + 2).argsort()[0]], "True"),
    (lambda rel, x: rel[arange(n(x), 0, -1).argsort()[0]], "q <= R"),
    (lambda rel, x: rel[arange(n(x)).sort(descending=True).indices[:2] + 1 - n(x)], "True"),
    (lambda rel, x: rel[arange(n(x)).topk(n(x)).indices[0]], "q <= R"),
    (lambda rel, x: rel[arange(n(x)).topk(n(x), largest=False).indices[-1]], "q <= R"),
    (lambda rel, x: torch.zeros(4).narrow(0, int(x.topk(n(x)).indices.max()), 1), "q <= 4"),
    (lambda rel, x: torch.multinomial(torch.ones(4), int(x.topk(n(x)).indices.max()) + 1), "q <= 4"),
    (lambda rel, x: rel[x.argsort().tolist()[-1]], "q <= R"),
    (lambda rel, x: rel.narrow(0, 0, len(x.argsort().tolist())), "q <= R"),
    (lambda rel, x: rel[torch.tensor(list(arange(n(x)).short().long().tolist()))], "q <= R"),
    (lambda rel, x: torch.zeros(9)[torch.as_tensor((n(x), 1)) + max(n(x) - 3, 1)], "q <= 5"),
    (lambda rel, x: torch.zeros(9)[torch.asarray([n(x), 1]) + max(n(x) - 3, 1)], "q <= 5"),
    (listed_before_it_is_written, "2*R == q*(q - 1)"),
    (list_that_grows, "q <= R"),
    (lambda rel, x: rel[torch.where(arange(n(x)) > 2, arange(n(x)), 0).max()], "q <= R or q <= 3"),
    (lambda rel, x: rel.select(0, int(torch.where(arange(n(x)) > 2, 1, 0).max())), "q <= 3 or 2 <= R"),
    (lambda rel, x: torch.zeros(9)[(arange(n(x)) + 1).clamp(max=2).cumprod(0)], "2**(q - 1) < 9"),
    (lambda rel, x: torch.zeros(9)[torch.full((n(x),), 2).cumprod(0) - 1], "2**q <= 9"),
    (lambda rel, x: rel[torch.tensor([n(x), 3, n(x) + n(rel)]).clamp(1, 2).prod() // 3],
     "R >= 3 or (q == 1 and R == 2)"),
    (lambda rel, x: rel[torch.bincount(arange(n(x))).prod()], "2 <= R"),
    (lambda rel, x: torch.zeros(20)[torch.full((n(x) - 1, 3), 2).prod()], "8**(q - 1) < 20"),
    (lambda rel, x: rel[arange(0, n(x), 2).bool().long()], "q <= 2 or 2 <= R"),
    (lambda rel, x: rel[F.pad(arange(n(x)), (0, 1), value=3).bool().long()], "2 <= R"),
    (lambda rel, x: rel[torch.div(arange(-n(x), 0), -2, rounding_mode="trunc")], "q//2 < R"),
    (lambda rel, x: torch.zeros(3)[torch.div(arange(n(x)), -2, rounding_mode="trunc")], "(q - 1)//2 <= 3"),
    (lambda rel, x: rel[(arange(n(x)) / 3 * 0).long()], "q >= 1"),
    (lambda rel, x: rel[torch.eye(n(x)).nonzero()[:, 1]], "q <= R"),
    (lambda rel, x: rel[torch.eye(n(x)).long().sum(0)], "2 <= R"),
    (lambda rel, x: rel[torch.eye(n(x), n(rel)).long().sum(1) - 2], "2 <= R or q <= R"),
    (lambda rel, x: rel[torch.eye(n(rel), n(x)).long().sum(0, keepdim=True)], "2 <= R"),
    (lambda rel, x: rel[torch.eye(n(x) - 1, 4).T.long().sum(1) - 2], "2 <= R or q >= 5"),
    (lambda rel, x: rel[torch.eye(n(x), n(rel)).long().sum()], "q < R"),
    (lambda rel, x: rel[torch.eye(n(x), dtype=torch.bool).sum((0, 1))], "q < R"),
    (lambda rel, x: rel[torch.eye(n(x)).long().cumsum(0) - 1], "True"),
    (lambda rel, x: rel[torch.eye(n(x), 2).long().cumsum(0)], "2 <= R"),
    (lambda rel, x: rel[1 - 2 * torch.eye(3, n(x)).long().cumsum(-1)], "2 <= R"),
    (lambda rel, x: rel[F.one_hot(arange(n(x))).sum(0)], "2 <= R"),
    (lambda rel, x: rel[F.one_hot(arange(n(x)), n(x) + 3).sum(0) - 2], "2 <= R"),
    (lambda rel, x: rel[F.one_hot(arange(n(x)), n(x) + 3).sum(1) - 2], "1 <= R"),
    (lambda rel, x: rel[F.one_hot(arange(n(x)) // 2, n(x)).sum(-1) + 1], "3 <= R"),
    (lambda rel, x: rel[torch.eye(n(x)).long().fill_(2).sum(0) // n(x)], "3 <= R"),
    (lambda rel, x: rel[(row := torch.tril_indices(n(x), 2)[0])[torch.randperm(n(row))]], "q <= R"),
    (lambda rel, x: rel[torch.ones(n(x)).nonzero().flatten()[::2]], "(q - 1)//2*2 < R"),
    (lambda rel, x: torch.zeros(127)[int((arange(60 * n(x)).to(torch.int8) + 1).max())], "q <= 2"),
    (lambda rel, x: torch.zeros(2051, 2)[arange(2047 + n(x)).half().long()], "q <= 4"),
    (lambda rel, x: torch.zeros(258, 2)[-arange(256 + n(x)).bfloat16().long()], "q <= 3"),
    (lambda rel, x: torch.zeros(5, 2)[torch.full((2,), 2047 + n(x)).half().long() - 2046], "q <= 3"),
    (lambda rel, x: F.nll_loss(rel.t(), torch.full((3,), n(rel) - 3), ignore_index=-1), "R >= 2"),
    (lambda rel, x: F.nll_loss(torch.zeros(n(x), 6), arange(n(x)) - 100), "q == 1"),
    (lambda rel, x: rel[arange(n(x)).repeat_interleave(3)[-2:]], "q <= R"),
    (lambda rel, x: torch.zeros(20)[(arange(n(x))[:, None] * n(x) + arange(n(x))).flatten().byte().long()],
     "q*q <= 20"),
    (lambda rel, x: torch.zeros(9)[(arange(n(x))[:, None] * n(rel) + arange(n(rel))).flatten().char().long()],
     "q*R <= 9"),
    (lambda rel, x: rel[(arange(n(x)).unique()[:, None] * n(x) + arange(n(x))).flatten()], "q*q <= R"),
    (lambda rel, x: torch.zeros(20)[(i := arange(n(x)).char().half().long())[None] + i[:, None]], "q <= 10"),
    (lambda rel, x: rel[(arange(n(x)).flip(0).unique()[:, None] - arange(n(rel))).abs()],
     "q <= R"),
    (lambda rel, x: rel[torch.bucketize(x, torch.tensor([-0.5, 0.0, 0.5]))], "4 <= R"),
    (caught, "q >= 1"),
    (not_caught, "q <= R"),
    (in_a_branch, "q >= 1"),
]  # fmt: skip
WITHIN_FLOATS: list[tuple[Callable[[Tensor, Tensor], Any], str]] = [
    (lambda rel, x: rel[(torch.ones(2, n(x)) @ torch.ones(n(x), 3)).long() * 2], "2*q + 1 <= R"),
    (lambda rel, x: rel[torch.linspace(0, n(x) - 1, 5).long()], "q <= R"),
    (
        lambda rel, x: rel[((arange(n(x)) < n(x) - 1).nonzero().view(-1).half() * 3).long()],
        "q <= 1 or 3*q <= R + 5",
    ),
    (lambda rel, x: rel[(arange(n(x)) / 2).long()], "(q - 1)//2 < R"),
    (lambda rel, x: rel[(arange(n(x)) * 0.5).floor().long()], "(q - 1)//2 < R"),
    (lambda rel, x: rel[(arange(n(x)) / 3).ceil().long()], "(q + 1)//3 < R"),
    (lambda rel, x: rel[(arange(n(x)) * (n(rel) / n(x))).long()], "q >= 1"),
    (lambda rel, x: rel[arange(0, n(x), 0.5).long()], "q <= R"),
    (lambda rel, x: rel[(arange(n(x)) * 0.7).round().long()], "round(0.7*(q - 1)) < R"),
    (lambda rel, x: rel[(arange(n(x)).double() * 0.1).long()], "(q - 1)//10 < R"),
    (lambda rel, x: torch.zeros(2)[arange(n(x)).float().sqrt().long()], "q <= 4"),
    (lambda rel, x: rel[arange(n(x)).float().sqrt().long() * n(x)], "int((q - 1)**0.5)*q < R"),
    (lambda rel, x: rel[torch.stack((arange(n(x)), arange(n(x)))).sqrt().long()], "int((q - 1)**0.5) < R"),
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
BESIDE_THE_USER: list[Callable[[Tensor, Tensor], Any]] = [
    lambda rel, ids: rel[ids.masked_fill(ids == 0, n(ids))],
    lambda rel, ids: rel[F.pad(ids, (0, 1), value=5)],
    lambda rel, ids: rel[ids.index_fill(0, torch.tensor([0]), n(ids))],
    lambda rel, ids: rel[ids.scatter(0, torch.tensor([0]), n(ids))],
    lambda rel, ids: rel[ids.index_put((torch.tensor([0]),), torch.tensor(5))],
    lambda rel, ids: rel[ids.masked_scatter(ids >= 0, arange(n(ids)) + 3)],
    lambda rel, ids: rel[ids.clamp(min=n(ids))],
    lambda rel, ids: rel[torch.maximum(ids, torch.tensor(n(ids)))],
    lambda rel, ids: rel[torch.select_scatter(ids, torch.tensor(5), 0, 0)],
    lambda rel, ids: rel[torch.vstack([ids, torch.full_like(ids, 5)])],
    lambda rel, ids: rel[F.one_hot(ids, 7) * 5],
]
"""Sizes decide some of the elements, which eager PyTorch refuses whatever the others are."""


def through_a_view(rel: Tensor, x: Tensor) -> Tensor:
    positions = torch.zeros(4, dtype=torch.long)
    positions[1:3].fill_(n(x))
    return rel[positions]


def into_the_base(rel: Tensor, x: Tensor) -> Tensor:
    positions = torch.zeros(4, dtype=torch.long)
    view = positions.view(2, 2)
    positions.add_(n(x))
    return rel[view]


def through_an_array(rel: Tensor, x: Tensor) -> Tensor:
    positions = torch.zeros(4, dtype=torch.long)
    array = positions.numpy()
    positions += n(x)
    return rel[torch.from_numpy(array)]


def through_a_view_of_a_constant(rel: Tensor, x: Tensor) -> Tensor:
    positions = torch.arange(3)
    view = positions.expand(n(x), 3)
    positions[0] = 6
    return rel[view]


def after_its_first_use(rel: Tensor, x: Tensor) -> Tensor:
    positions = torch.arange(3)
    first = torch.zeros(n(x), 3)[:, positions]
    torch.add(positions, 6, out=positions)
    return first + rel[positions].sum()


REFUSED: list[Callable[[Tensor, Tensor], Any]] = [
    lambda rel, x: rel[(torch.rand(9) * n(x)).long()],
    through_a_view,
    written_at_steps,
    into_the_base,
    through_a_view_of_a_constant,
    after_its_first_use,
    through_an_array,
    lambda rel, x: rel[(torch.tensor([5.0]) * n(x)).long()],
    lambda rel, x: rel[(torch.linspace(0, 1, 5) * n(x)).long()],
    lambda rel, x: rel[torch.tensor([3.0]).expand(n(x)).sum().long()],
    lambda rel, x: F.nll_loss(torch.zeros(n(x), n(rel)), arange(n(x)), ignore_index=3),
    lambda rel, x: torch.linalg.inv(torch.ones(n(x), n(x))),
    lambda rel, x: torch.segment_reduce(x, "sum", lengths=torch.tensor([n(rel)])),
    lambda rel, x: rel.masked_scatter(torch.ones(n(rel), 1).bool(), x),
    lambda rel, x: rel.repeat_interleave(arange(n(rel)), 0, output_size=n(x)),
    lambda rel, x: torch.searchsorted(arange(n(x)), arange(3), sorter=arange(n(x)) + 1),
]
"""Some sizes are refused, in a way that is not followed."""
NOT_REFUSED: list[Callable[[Tensor, Tensor], Any]] = [
    lambda rel, x: x.view(n(x) - n(rel)),
    lambda rel, x: rel[torch.zeros(n(x)).argmax()],
    lambda rel, x: rel[(x > 0).sum() * (x <= 0).sum()],
    lambda rel, x: rel[(row := torch.tril_indices(n(x), 2)[0])[row]],
    lambda rel, x: rel[(row := torch.tril_indices(n(x), 2)[0])[arange(n(row)) < n(x)]],
    lambda rel, x: rel[torch.cat((arange(n(x)), arange(3)))[arange(n(x))[:2] + n(x)]],
    lambda rel, x: torch.zeros(2 * n(x))[x.argmax().reshape(1) * 2 + (n(x) - 1 - x.argmax()) * 2],
    lambda rel, x: torch.zeros(5)[arange(n(x)) * 2**62 // 2**62],
    lambda rel, x: F.nll_loss(torch.zeros(n(x), 2), torch.full((n(x),), n(rel) + 2), ignore_index=n(rel) + 2),
]
"""Some sizes run that what is followed would refuse."""
OPEN: list[Callable[[Tensor, Tensor], Any]] = [
    lambda rel, x: rel[x.sigmoid().argmax()],
    lambda rel, x: rel[torch.zeros_like(x).long().index_copy(0, arange(n(x) - 1), arange(n(x) - 1))],
    lambda rel, x: rel[torch.searchsorted(x.sort().values, x)],
    lambda rel, x: rel[2 ** arange(n(x))],
    lambda rel, x: rel[x.topk(n(x)).indices.cumsum(0)],
    lambda rel, x: rel[arange(n(x)).view(torch.int32).long()],
]


def bucket(at: Tensor, bidirectional: bool, buckets: int, distance: int) -> Tensor:
    """T5's relative positions."""
    found = torch.zeros_like(at)
    if bidirectional:
        buckets //= 2
        found += (at > 0).to(torch.long) * buckets
        at = torch.abs(at)
    else:
        at = -torch.min(at, torch.zeros_like(at))
    exact = buckets // 2
    is_small = at < exact
    far = exact + (
        torch.log(at.float() / exact) / math.log(distance / exact) * (buckets - exact)
    ).to(torch.long)
    far = torch.min(far, torch.full_like(far, buckets - 1))
    return found + torch.where(is_small, at, far)


def t5(bidirectional: bool, rows: int, buckets: int = 32, distance: int = 128) -> Callable[..., Any]:
    def biases(rel: Tensor, x: Tensor) -> Tensor:
        at = arange(n(x))[None, :] - arange(n(rel))[:, None]
        return F.embedding(bucket(at, bidirectional, buckets, distance), torch.zeros(rows, 2))

    return biases


def floats(x: Tensor) -> Tensor:
    return arange(n(x)).float()


ENCLOSED: list[tuple[Callable[[Tensor, Tensor], Any], bool]] = [
    (t5(True, 32), True),
    (t5(False, 32), True),
    (t5(True, 320, 320, 800), True),
    (t5(False, 24, 24, 100), True),
    (t5(True, 31), False),
    (t5(True, 20), False),
    (t5(False, 31), False),
    (t5(False, 16), False),
    (lambda rel, x: torch.zeros(10, 2)[(floats(x) + 1).log2().long().clamp(max=9)], True),
    (lambda rel, x: torch.zeros(8, 2)[(floats(x) + 1).log2().long().clamp(max=9)], False),
    (lambda rel, x: torch.zeros(10, 2)[floats(x).log1p().ceil().long().clamp(0, 9)], True),
    (lambda rel, x: torch.zeros(8, 2)[floats(x).sqrt().long().clamp(max=7)], True),
    (lambda rel, x: torch.zeros(8, 2)[floats(x).sqrt().long().clamp(max=8)], False),
    (lambda rel, x: torch.zeros(6, 2)[(floats(x).tanh() * 4.5).long()], True),
    (lambda rel, x: torch.zeros(4, 2)[(floats(x).tanh() * 4.5).long()], False),
    (lambda rel, x: torch.zeros(8, 2)[(floats(x).sigmoid() * 7.5).long()], True),
    (lambda rel, x: torch.zeros(4, 2)[(floats(x).exp().log() / 3).long().clamp(max=4)], False),
    (lambda rel, x: torch.zeros(9, 2)[(floats(x).sin() * 9).long().clamp(0, 8)], True),
    (lambda rel, x: torch.zeros(9, 2)[(floats(x).sin() * 12).long().clamp(0, 9)], False),
    (lambda rel, x: torch.zeros(9, 2)[floats(x).log().long().clamp(max=8)], False),
    (lambda rel, x: torch.zeros(9, 2)[(arange(n(x)) - n(rel)).abs().clamp(max=8)], True),
]  # fmt: skip
"""Whether functions of floats are proved to stay within a table."""
LONG: Final = [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 90, 91, 127, 128, 129, 200, 300]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target, proved", ENCLOSED)
def test_functions_of_positions_stay_within_bounds(target: Callable[..., Any], proved: bool) -> None:
    report = check(target, INPUTS, replay=False)
    assert (report.verdict == "proved") == proved, report.to_text()
    ran = {sizes: runs(target, *sizes, torch.float32) for sizes in itertools.product([1, 20, 300], LONG)}
    assert all(ran.values()) == proved
    certain = report.accepts.certain
    assert all(fits for (rows, count), fits in ran.items() if certain.holds(R=rows, q=count))
    exact = report.accepts.holds if report.accepts.exact else lambda R, q: ran[R, q]
    assert all(fits == exact(R=rows, q=count) for (rows, count), fits in ran.items())


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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target, accepts", EXACT)
def test_exact_conditions(target: Callable[..., Any], accepts: str) -> None:
    report = check(target, INPUTS)
    assert report.verdict in ("proved", "refined", "refuted") and report.accepts.exact, report.to_text()
    agrees(report, target, accepts, torch.float32)


@pytest.mark.sampled(3)
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


@pytest.mark.parametrize("target", BESIDE_THE_USER)
def test_elements_of_sizes_beside_the_users_are_not_proved(target: Callable[..., Any]) -> None:
    assert not all(runs(target, rows, count, torch.int64) for rows, count in GRID)
    report = check(target, WITH_INDICES, replay=False)
    assert report.verdict != "proved" and not report.accepts.certain.holds(R=1, q=6), report.to_text()


@pytest.mark.parametrize("target", REFUSED)
def test_what_some_sizes_are_refused_for_is_not_proved(target: Callable[..., Any]) -> None:
    refused = [sizes for sizes in GRID if not runs(target, *sizes, torch.float32)]
    report = check(target, INPUTS, replay=False)
    assert refused and report.verdict != "proved", report.to_text()
    assert not any(report.accepts.certain.holds(R=rows, q=count) for rows, count in refused)


@pytest.mark.parametrize("target", NOT_REFUSED)
def test_what_some_sizes_run_with_is_not_refuted(target: Callable[..., Any]) -> None:
    ran = [sizes for sizes in GRID if runs(target, *sizes, torch.float32)]
    report = check(target, INPUTS, replay=False)
    assert ran and report.verdict != "refuted", report.to_text()
    said = [report.accepts.holds(R=rows, q=count) for rows, count in ran]
    assert not report.accepts.exact or all(said)


@pytest.mark.parametrize("target", OPEN)
def test_what_is_not_followed_is_not_proved(target: Callable[..., Any]) -> None:
    """Not even without a run of the program."""
    report = check(target, INPUTS, replay=False)
    assert report.verdict == "unknown" and not report.accepts.exact
    assert any(f.code == "approximate" and f.origin.line for f in report.findings)
