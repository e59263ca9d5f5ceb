"""How often two rows of indices agree, against eager runs on all small indices: at the sizes that are
accepted all of them run, at the others none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from anyshape.constraints.contents.traits import Contents
from anyshape.typecheck import check

INPUTS = "edges: int64[2, e]; x: float32[n]"
SIZES = [*itertools.product(range(1, 4), range(1, 5))]
REFUSALS = (RuntimeError, ValueError, IndexError)
Program = Callable[[Tensor, Tensor], object]


def loops(x: Tensor) -> Tensor:
    return torch.arange(0, x.shape[0]).view(1, -1).repeat(2, 1)


def without_loops(edges: Tensor) -> Tensor:
    return edges[:, edges[0] != edges[1]]


def written_where_rows_agree(edges: Tensor, x: Tensor) -> Tensor:
    """As `ClusterGCNConv` weighs its loops."""
    edges = torch.cat([without_loops(edges), loops(x)], dim=1)
    row, col = edges[0], edges[1]
    weights = x.new_ones(edges.shape[1])
    weights[row == col] += 0.5 * x
    return weights


def rows_apart(edges: Tensor, x: Tensor) -> Tensor:
    row, col = edges
    mask = ~(row == col)
    own = torch.arange(x.shape[0])
    row, col = torch.cat([row[mask], own]), torch.cat([col[mask], own])
    return x.new_ones(row.shape[0])[row == col] + x


def loops_in_front(edges: Tensor, x: Tensor) -> Tensor:
    kept = without_loops(edges.clone()).contiguous()
    both = torch.cat([loops(x), kept], dim=-1).to(torch.int64)
    return x.new_ones(both.shape[1])[both.select(0, 1) != both[-2]] + kept.sum(0)


def loops_alone(edges: Tensor, x: Tensor) -> Tensor:
    own = edges[:, edges[1] == edges[0]]
    return own.sum(0) + x.new_ones(own.shape[1])[own[0] == own[1]]


def rows_of_numbers(edges: Tensor, x: Tensor) -> Tensor:
    """Rows `i` and `i + 1` agree nowhere."""
    grid = torch.arange(x.shape[0])[None] + torch.arange(2)[:, None]
    return x.view(-1, 2)[:, 0][:0] + x.new_zeros(x.shape[0])[grid[0] == grid[1]]


def of_one_size(edges: Tensor, x: Tensor) -> Tensor:
    """So many nodes as there are, which has to be an even number."""
    edges = torch.cat([without_loops(edges), loops(x)], dim=1)
    return edges[0][edges[0] == edges[1]].view(-1, 2)


FOLLOWED = [
    written_where_rows_agree, rows_apart, loops_in_front, loops_alone, rows_of_numbers, of_one_size,
]  # fmt: skip


def nothing_dropped(edges: Tensor, x: Tensor) -> Tensor:
    edges = torch.cat([edges, loops(x)], dim=1)
    return x.new_ones(edges.shape[1])[edges[0] == edges[1]] + x


def written_after(edges: Tensor, x: Tensor) -> Tensor:
    kept = without_loops(edges)
    kept[:, :1] = 0
    edges = torch.cat([kept, loops(x)], dim=1)
    return x.new_ones(edges.shape[1])[edges[0] == edges[1]] + x


def mask_written_before(edges: Tensor, x: Tensor) -> Tensor:
    mask = edges[0] != edges[1]
    mask[0] = True
    edges = torch.cat([edges[:, mask], loops(x)], dim=1)
    return x.new_ones(edges.shape[1])[edges[0] == edges[1]] + x


def mask_of_other_rows(edges: Tensor, x: Tensor) -> Tensor:
    three = torch.cat([edges, edges[:1] * 0])
    three = three[:, three[0] != three[2]]
    return x.new_ones(three.shape[1])[three[0] == three[1]] + x


def mask_of_another(edges: Tensor, x: Tensor) -> Tensor:
    other = edges.flip(1)
    kept = edges[:, other[0] != other[1]]
    return x.new_ones(kept.shape[1])[kept[0] == kept[1]] + x.new_ones(2)


def one_row_turned(edges: Tensor, x: Tensor) -> Tensor:
    kept = without_loops(edges)
    return x.new_ones(kept.shape[1])[kept[0] == kept[1].flip(0)] + x.new_ones(2)


def loops_of_another_number(edges: Tensor, x: Tensor) -> Tensor:
    kept = without_loops(edges)
    left = torch.cat([kept[0], torch.arange(x.shape[0])])
    right = torch.cat([torch.arange(x.shape[0]), kept[1]])
    return x.new_ones(left.shape[0])[left == right] + x.new_ones(2)


NOT_FOLLOWED = [
    nothing_dropped, written_after, mask_written_before, mask_of_other_rows, mask_of_another, one_row_turned,
    loops_of_another_number,
]  # fmt: skip


def outcomes(target: Program, e: int, n: int) -> set[bool]:
    found = set()
    for nodes in itertools.product(range(3), repeat=2 * e):
        try:
            target(torch.tensor(nodes).view(2, e), torch.zeros(n))
            found.add(True)
        except REFUSALS:
            found.add(False)
    return found


def disagreements(target: Program) -> list[str]:
    report = check(target, INPUTS, replay=False)
    assert report.verdict in ("proved", "refined"), report.to_text()
    found = [(e, n, outcomes(target, e, n)) for e, n in SIZES]
    return [f"e={e}, n={n}: {ran}" for e, n, ran in found if ran != {report.accepts.holds(e=e, n=n)}]


@pytest.mark.parametrize("target", FOLLOWED, ids=lambda t: t.__name__)
def test_agrees_with_eager_on_all_data(target: Program) -> None:
    assert disagreements(target) == []


@pytest.mark.parametrize("target", NOT_FOLLOWED, ids=lambda t: t.__name__)
def test_where_it_is_for_the_data_to_say(target: Program) -> None:
    assert any(outcomes(target, e, n) == {True, False} for e, n in SIZES)
    assert check(target, INPUTS).verdict == "unknown"


@pytest.mark.parametrize("wrong", ["_agree", "_equal"])
def test_a_wrong_law_is_seen(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    laws: dict[str, Any] = {
        "_agree": lambda self, left, right: True,
        "_equal": lambda self, comparison: sum(part.size for part in comparison.left),
    }
    monkeypatch.setattr(Contents, wrong, laws[wrong])
    with pytest.raises(AssertionError):
        assert disagreements(nothing_dropped) == []
