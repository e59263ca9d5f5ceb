"""The dims that `refine` prints are those that torch.export takes, with nothing of it replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import holds
from anyshape.typecheck import refine
from anyshape.typecheck.dim_specs.specs import Hint, tensor_sizes


def halves(x: torch.Tensor) -> torch.Tensor:
    return x.view(x.shape[0], 2, x.shape[1] // 2).relu()


def loops(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(x.shape[1])
    for row in x:
        total = total + row
    return total


def of_data(x: torch.Tensor) -> torch.Tensor:
    return x.relu() if x.sum().item() > 0 else x


CASES: list[tuple[Callable[..., Any], str, Iterable[tuple[int, int]], Iterable[tuple[int, int]]]] = [
    (halves, "x: float32[b, h]", [(1, 4), (3, 6)], [(1, 2), (2, 3)]),
    (lambda x: x.relu(), "x: float32[b, h]", [(1, 1), (4, 7)], []),
    (nn.Sequential(nn.Linear(8, 4), nn.ReLU()), "input: float32[b, h]", [(1, 8), (2, 8)], [(1, 7)]),
    (loops, "x: float32[b, h]", [], [(1, 3), (40, 3)]),
]
"""Programs, with sizes that torch takes, and sizes that the program or torch's trace does not take."""


@pytest.mark.parametrize(("program", "spec", "taken", "refused"), CASES)
def test_the_printed_dims_are_taken(
    program: Callable[..., Any], spec: str, taken: list[tuple[int, int]], refused: list[tuple[int, int]]
) -> None:
    shapes = refine(program, spec)
    assert shapes is not None and not shapes.notes
    assert all(holds(shapes.formula, {"b": b, "h": h}) for b, h in taken)
    assert not any(holds(shapes.formula, {"b": b, "h": h}) for b, h in refused)
    at = shapes.box.at({root.name: root.low + 5 for root in shapes.box.roots})
    x = torch.zeros(at["b"], at["h"])
    module = program if isinstance(program, nn.Module) else _Module(program)
    exported = torch.export.export(module, (x,), dynamic_shapes=_only(shapes, x))
    for b, h in taken:
        exported.module()(torch.zeros(b, h))


class _Module(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def _only(shapes: Any, x: torch.Tensor) -> Any:
    """Returns the spec of the only input by position."""
    (spec,) = shapes.to_torch((x,)).values()
    return (spec,)


def test_a_size_that_a_loop_goes_through_is_that_of_the_example() -> None:
    shapes = refine(loops, "x: float32[b, h]")
    assert shapes is not None and not shapes.exact
    assert [*tensor_sizes(shapes.spec.shapes)] == [Hint("STATIC"), sym("h")]
    assert "torch's trace takes b at the size of the example alone" in f"{shapes}"
    assert "Dim.STATIC" in f"{shapes}"
    untraced = refine(loops, "x: float32[b, h]", traced=False)
    assert untraced is not None and untraced.exact


def test_what_torch_cannot_trace_is_said() -> None:
    shapes = refine(of_data, "x: float32[b, h]")
    assert shapes is not None
    assert "torch.export cannot trace this: " in f"{shapes}"
