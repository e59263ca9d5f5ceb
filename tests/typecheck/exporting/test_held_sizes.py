"""Sizes that go through a tensor, `torch.tensor(x.shape[0])`, are sizes of the exported program again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from anyshape.typecheck import export


def cut(x: Tensor) -> Tensor:
    n = torch.tensor(x.shape[0])
    return x[: n - 1].sin() + x[1:n]


def placed(x: Tensor) -> Any:
    n = torch.tensor(x.shape[0])
    return x[n - 1], x[None, ..., n - 1 :]


def made(x: Tensor) -> Any:
    n = torch.tensor(x.shape[0])
    return torch.arange(n), torch.zeros(n, 2), torch.arange(int(n)), x.narrow(0, 0, n - 1)


def beside_others(x: Tensor) -> Any:
    n = torch.tensor(x.shape[0]).to(torch.int64)
    small = torch.arange(12, dtype=torch.int32)
    return x * n + n * x - (10 - n) // 2 + x % n, x > n, small + n, small.clamp(max=n - 2), small.clamp(2, n)


def shaped(x: Tensor) -> Any:
    n = torch.tensor(x.shape[0]).clone()
    return x[None].expand(n, -1), x.repeat(n), x.view(n, 1)


def written(x: Tensor) -> Tensor:
    n = torch.tensor(x.shape[0])
    n += 1
    return torch.arange(20.0)[:n]


def written_elsewhere(x: Tensor) -> Tensor:
    n = torch.tensor(x.shape[0])
    n.view(1).add_(2)
    return torch.arange(20.0)[:n]


def in_other_words(x: Tensor) -> Any:
    n = torch.tensor(x.shape[0])
    truth = n.to(torch.bool)
    more = torch.add(2, n), torch.add(n, n, alpha=3), n.sub(1).to(torch.int32), truth + 1, n * True
    more = *more, torch.tensor(7, dtype=torch.int32).clamp(max=n), torch.tensor(True).clip(n)
    return *more, torch.arange(60.0)[: more[1]], torch.arange(9.0)[: truth + 1], x.add(n, alpha=2)


def with_truths(x: Tensor) -> Any:
    n = torch.tensor(x.shape[0])
    more = (n > 2) + n
    return x + more, x + (n == 4), torch.arange(20)[:more]


def wrong(function: Callable[[Tensor], Any], program: Callable[[Tensor], Any]) -> list[int]:
    """Returns the sizes up to 12 at which the function and its program give different results."""

    def differ(x: Tensor) -> bool:
        pairs = zip(pytree.tree_leaves(function(x)), pytree.tree_leaves(program(x)), strict=True)
        return any(one.dtype != other.dtype or not torch.equal(one, other) for one, other in pairs)

    return [n for n in range(1, 13) if differ(torch.randn(n))]


@pytest.mark.parametrize("function", [written, written_elsewhere, with_truths, in_other_words])
def test_takes_what_eager_takes_and_gives_the_same(function: Callable[[Tensor], Any]) -> None:
    assert wrong(function, export(function, "x: float32[n]", "n <= 12").program.module()) == []


@pytest.mark.parametrize("function", [cut, placed, made, beside_others, shaped])
def test_are_known_of_the_program(function: Callable[[Tensor], Any]) -> None:
    found = export(function, "x: float32[n]")
    assert not found.given_up
    assert not any("item" in str(node.target) for node in found.program.graph.nodes)
    assert wrong(function, found.program.module()) == []


def test_a_branch_on_one_is_a_branch_on_the_size() -> None:
    def branches(x: Tensor) -> Tensor:
        return x.sin() if torch.tensor(x.shape[0]) > 3 else x.cos()

    assert str(export(branches, "x: float32[n]").accepts) == "4 <= n"
