"""Tensors of a program that are written into after their first use, by torch or behind its back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from anyshape.typecheck import check


def picked(x: Tensor, places: Tensor) -> Tensor:
    return torch.zeros(x.shape[0], 6)[:, places]


def through_an_array(x: Tensor, places: Tensor) -> Tensor:
    places.numpy()[0] = 7
    return picked(x, places)


def through_a_buffer(x: Tensor, places: Tensor) -> Tensor:
    memoryview(places.numpy())[0] = 7
    return picked(x, places)


def through_data(x: Tensor, places: Tensor) -> Tensor:
    places.data[0] = 7
    return picked(x, places)


def through_a_view(x: Tensor, places: Tensor) -> Tensor:
    places.view(3, 1)[0].fill_(9)
    return picked(x, places)


def row_by_row(x: Tensor, places: Tensor) -> Tensor:
    for row in places.unbind(0):
        row.fill_(7)
    return picked(x, places)


def set_to_another(x: Tensor, places: Tensor) -> Tensor:
    places.set_(torch.tensor([7, 8, 9]))
    return picked(x, places)


def with_other_data(x: Tensor, places: Tensor) -> Tensor:
    places.data = torch.tensor([7, 8, 9])
    return picked(x, places)


def as_out(x: Tensor, places: Tensor) -> Tensor:
    torch.add(places, 7, out=places)
    return picked(x, places)


def by_a_function(x: Tensor, places: Tensor) -> Tensor:
    places.apply_(lambda number: number + 7)
    return picked(x, places)


def in_a_list(x: Tensor, places: Tensor) -> Tensor:
    torch._foreach_add_([places], 7)
    return picked(x, places)


def copied_over(x: Tensor, places: Tensor) -> Tensor:
    places.copy_(torch.tensor([7, 8, 9]))
    return picked(x, places)


def swapped(x: Tensor, places: Tensor) -> Tensor:
    torch.utils.swap_tensors(places, torch.tensor([7, 8, 9]))
    return picked(x, places)


WRITES: list[Callable[[Tensor, Tensor], Tensor]] = [
    through_an_array, through_a_buffer, through_data, through_a_view, row_by_row, set_to_another,
    with_other_data, as_out, by_a_function, in_a_list, copied_over, swapped,
]  # fmt: skip


def of_a_constant(write: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Any]:
    def target(x: Tensor) -> Any:
        places = torch.arange(3)
        return x[:, places], write(x, places)

    return target


def of_an_array(write: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Any]:
    def target(x: Tensor) -> Any:
        places = torch.from_numpy(np.arange(3))
        return x[:, places], write(x, places)

    return target


class OfABuffer(nn.Module):
    def __init__(self, write: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.write = write
        self.register_buffer("places", torch.arange(3))

    def forward(self, x: Tensor) -> Any:
        return x[:, self.places], self.write(x, self.places)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("owner", [of_a_constant, of_an_array, OfABuffer])
def test_what_is_written_is_not_taken_for_what_it_was(
    owner: Any, write: Callable[[Tensor, Tensor], Tensor]
) -> None:
    target = owner(write)
    with pytest.raises((IndexError, RuntimeError)):
        (copy.deepcopy(target) if isinstance(target, nn.Module) else target)(torch.zeros(4, 3))
    report = check(target, "x: float32[b, 3]", replay=False)
    assert report.verdict != "proved", report.to_text()
    assert not report.accepts.certain.holds(b=4)


def test_reading_through_an_array_writes_nothing() -> None:
    def target(x: Tensor) -> Any:
        places = torch.arange(3)
        first = x[:, places]
        return first, picked(x, places), float(places.numpy().sum())

    assert check(target, "x: float32[b, 3]", replay=False).verdict == "proved"
