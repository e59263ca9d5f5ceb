"""torch's loop of an error and the fixes that it suggests: where that breaks, and that no fix is needed."""

from __future__ import annotations

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
