"""torch's loop of an error and the fixes that it suggests: where that breaks, and that no fix is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export
from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes as refine

from anyshape.typecheck import check


class Shifted(nn.Module):
    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return x + y[1:], z


class Pairs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[0] >= 2
        return torch.relu(x)


ARGS = torch.zeros(5, 3), torch.zeros(6, 3), torch.zeros(4)


def error(model: nn.Module, args: tuple[Any, ...], shapes: Any) -> Any:
    with pytest.raises(torch._dynamo.exc.UserError) as raised:
        export(model, args, dynamic_shapes=shapes)
    return raised.value


def test_fixes_are_not_found_in_the_whole_message_nor_beside_a_hint() -> None:
    shapes = {"x": {0: Dim("b")}, "y": {0: Dim("c")}, "z": None}
    raised = error(Shifted(), ARGS, shapes)
    refine(raised.msg, shapes)
    with pytest.raises(ValueError, match="unpack"):
        refine(str(raised), shapes)
    with pytest.raises(AttributeError, match="_DimHint"):
        refine(raised.msg, {**shapes, "z": {0: Dim.AUTO}})


class Asserts(nn.Module):
    def __init__(self, condition: Callable[..., bool]) -> None:
        super().__init__()
        self.condition = condition

    def forward(self, *xs: Tensor) -> Tensor:
        assert self.condition(*(x.shape[0] for x in xs))
        return torch.cat(xs).relu()


# a condition on 2 <= b <= 64, an example, what torch suggests for it, what we say
FIXES = [
    (lambda b: b // 4 == 2, 9, "b = 9", "b in 8..11"),  # one of four sizes
    (lambda b: b % 4 <= 2, 9, "b = 4*_b - 3", "2*_b, _b in 1..32"),  # 4*_b - 3 is one residue of three
    (lambda b: b < 4 or b > 10, 12, "b = Dim('b', min=11, max=64)", "b in 11..64"),
    (lambda b: b != 7, 9, "", "b in 8..64"),
    (lambda b: (2 * b) % 6 == 0, 9, "", "3*_b, _b in 1..21"),
    (lambda b: (b * b) % 4 == 0, 10, "", "2*_b, _b in 1..32"),
]


@pytest.mark.parametrize("condition, example, fix, ours", FIXES, ids=[row[3] for row in FIXES])
def test_what_torch_suggests(condition: Callable[[int], bool], example: int, fix: str, ours: str) -> None:
    model, shapes = Asserts(condition), ({0: Dim("b", min=2, max=64)},)
    message = error(model, (torch.zeros(example, 3),), (shapes,)).msg
    assert message.partition("Suggested fixes:")[2].strip().endswith(fix)
    assert bool(fix) == ("Suggested fixes:" in message)
    found = check(model, "xs[0]: float32[b, 3]", "2 <= b <= 64", replay=False).dynamic_shapes
    assert found is not None
    sizes, roots = found.box.sizes["b"], found.box.roots[0]
    said = f"{roots.name} in {roots.low}..{roots.high}"
    assert (said if str(sizes) == "b" else f"{sizes}, {said}") == ours


def test_torch_suggests_what_it_refuses() -> None:
    args = torch.zeros(10, 3), torch.zeros(22, 3)
    message = error(Asserts(lambda b, c: b + c == 32), args, (({0: Dim("b")}, {0: Dim("c")}),)).msg
    assert "c = 32 - b" in message
    with pytest.raises(NotImplementedError):
        _ = 32 - Dim("b")


def test_our_spec_needs_no_fixes() -> None:
    report = check(Shifted(), "x: float32[b, 3]; y: float32[c, 3]; z: float32[d]", ["c == b + 1"])
    assert report.dynamic_shapes is not None
    program = export(Shifted(), ARGS, dynamic_shapes=report.dynamic_shapes.to_torch(ARGS))
    x, y = program.module()(torch.zeros(8, 3), torch.zeros(9, 3), torch.zeros(2))
    assert x.shape == (8, 3) and y.shape == (2,)


def test_a_minimum_of_two_is_said() -> None:
    """torch prints no bound of 2, so what it suggests accepts 1."""
    shapes = check(Pairs(), "x: float32[b, 3]").dynamic_shapes
    assert shapes is not None and 'Dim("b", min=2)' in str(shapes)
    assert "min" not in repr(Dim("b", min=2))
