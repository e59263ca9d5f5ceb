"""Operations on named axes are exported with sizes that stay sizes, where einx makes numbers of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from anyshape.typecheck import export

einx = pytest.importorskip("einx", reason="needs einx: the extra anyshape[zoo]")


class Model(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Any:
        return self.function(x, y)


class Case(NamedTuple):
    function: Callable[..., Any]
    inputs: str
    takes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    refuses: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()


CASES = {
    "apart": Case(
        lambda x, y: einx.subtract("j, i -> i j", x, y), "x: [n]; y: [m]",
        (((2,), (3,)), ((1,), (5,)), ((4,), (4,))),
    ),
    "along": Case(
        lambda x, y: einx.add("b n d, d -> b n d", x, y), "x: [b, n, 8]; y: [8]",
        (((2, 3, 8), (8,)), ((1, 1, 8), (8,))),
    ),
    "one size": Case(
        lambda x, y: einx.multiply("n d, n -> d n", x, y), "x: [n, 3]; y: [m]",
        (((5, 3), (5,)), ((1, 3), (1,))), (((5, 3), (1,)), ((5, 3), (4,))),
    ),
    "groups": Case(
        lambda x, y: einx.id("b (n p) -> p b n", x, p=4) + y, "x: [b, n]; y: []",
        (((2, 8), ()), ((1, 4), ())), (((2, 6), ()),),
    ),
    "a size by name": Case(
        lambda x, y: einx.id("(n p) -> n p", x, n=y.shape[0]), "x: [k]; y: [n]",
        (((6,), (3,)), ((5,), (5,)), ((4,), (1,))), (((6,), (4,)),),
    ),
    "reduced": Case(
        lambda x, y: einx.sum("b [n]", x) + y, "x: [b, n]; y: []", (((2, 8), ()), ((3, 1), ())),
    ),
    "a product": Case(
        lambda x, y: einx.dot("b n d, d e -> b n e", x, y), "x: [b, n, d]; y: [d, 4]",
        (((2, 3, 5), (5, 4)), ((1, 1, 2), (2, 4))), (((2, 3, 5), (4, 4)),),
    ),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_sizes_stay_sizes(name: str) -> None:
    case = CASES[name]
    model = Model(case.function)
    found = export(model, case.inputs)
    assert len(found.attempts) == 1 and found.given_up == ()
    program = found.program.module()
    for shapes in case.takes:
        given = [torch.rand(shape) for shape in shapes]
        torch.testing.assert_close(program(*given), model(*given))
    for shapes in case.refuses:
        given = [torch.rand(shape) for shape in shapes]
        for target in (model, program):
            with pytest.raises((RuntimeError, AssertionError, einx.errors.EinxError)):
                target(*given)


def test_einx_itself_makes_numbers_of_them() -> None:
    """What the rest is for: torch's own export of the same program."""
    case = CASES["apart"]
    shapes = {name: {0: torch.export.Dim.AUTO} for name in ("x", "y")}
    given = (torch.rand(2), torch.rand(3))
    program = torch.export.export(Model(case.function), given, dynamic_shapes=shapes, strict=False).module()
    with pytest.raises((RuntimeError, AssertionError)):
        program(torch.rand(4), torch.rand(5))
