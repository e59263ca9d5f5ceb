"""Results that a program has rank by rank: told as one where they are one, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.terms.formula import eq
from anyshape.constraints.terms.rows import assignment, dim_at, rank, sizes
from anyshape.typecheck import check
from anyshape.typecheck.report.per_rank import _all_at, _way, merged


def told(target: Callable[..., Any], inputs: str, assume: str = "") -> list[tuple[str, str]]:
    return [(o.when, str(o.value)) for o in check(target, inputs, assume).outputs]


@pytest.mark.parametrize("target, inputs, outputs", [
    (lambda x: x.reshape(*x.shape[:-1], 2, -1), "x: [...]", [("", "float32[*x[:-1], 2, x[-1]//2]")]),
    (lambda x: x.reshape(*x.shape, 1), "x: [...]", [("", "float32[*x, 1]")]),
    (lambda x: x.reshape(3, *x.shape[1:], 1), "x: [3, *r]", [("", "float32[3, *r, 1]")]),
    (lambda x: torch.stack([x, x]) if x.dim() == 3 else x, "x: [...]",
     [("rank(x) == 3", "float32[2, x[-3], x[-2], x[-1]]"), ("rank(x) != 3", "float32[*x]")]),
    (lambda x: x.sum(1) if x.dim() == 3 else x.mean(), "x: [...]",
     [("rank(x) == 3", "float32[x[-3], x[-1]]"), ("rank(x) != 3", "float32[]")]),
])  # fmt: skip
def test_outputs(target: Callable[..., Any], inputs: str, outputs: list[tuple[str, str]]) -> None:
    assert told(target, inputs) == outputs


def test_ranks_that_differ_in_more_stay_apart() -> None:
    """Two dims are swapped, or four are: `[x[-1], x[-2]]` is no end of `[x[-1], x[-2], x[-3], x[-4]]`."""
    outputs = told(lambda x: x.permute(*range(x.dim())[::-1]), "x: [...]", "rank(x) >= 1; rank(x) <= 4")
    assert sorted(outputs) == [
        ("3 <= rank(x)", "float32[x[-1], x[-2], x[-3], *x[:-3]]"),
        ("rank(x) <= 2", "float32[x[-1], *x[:-1]]"),
    ]


def test_what_is_merged_is_the_same_at_each_rank() -> None:
    """Shapes of a row with something before, between and behind; one of them is of another kind."""
    domain = Domain(("rank(x)", "x[-1]"))
    shapes = {n: (7, *(dim_at("x", i - n) for i in range(n - 1)), 2 * dim_at("x", -1)) for n in range(1, 6)}
    shapes[3] = (7, 7)
    ways = [(eq(rank("x"), n), (("output", Tensor(shape)),)) for n, shape in shapes.items()]
    found = merged(ways, domain)
    assert [way.when(domain) for way in found] == ["rank(x) is one of 1, 2, 4, 5", "rank(x) == 3"]
    ((_, general),) = found[0].results
    assert isinstance(general, Tensor)
    for n in found[0].ranks:
        dims = tuple(range(2, 2 + n))
        names = ("rank(x)", *(f"x[{-i}]" for i in range(1, 7)))
        values = assignment(names, {"x": dims})
        assert sizes(general.shape, values) == (7, *dims[:-1], 2 * dims[-1]) == sizes(shapes[n], values)


def test_a_wrong_shape_is_not_taken_for_the_same() -> None:
    domain = Domain(("rank(x)",))
    way = _way(eq(rank("x"), 2), (("output", Tensor((dim_at("x", -1), dim_at("x", -2)))),), domain)
    assert way.ranks == (2,) and _all_at(way.results, way) == way.results
    general = (("output", Tensor((dim_at("x", -2), dim_at("x", -1)))),)
    assert _all_at(general, way) != way.results
