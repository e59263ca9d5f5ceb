"""Strides that a program asks for, compared with those of an eager run, with and without elements."""
from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape import check

MAKERS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x,
    lambda x: x + 1,
    lambda x: x > 0,
    lambda x: x[:, None] + x,
    lambda x: x.clone(),
    lambda x: torch.zeros(x.shape),
    lambda x: x.softmax(1),
    lambda x: torch.cat([x, x], 1),
    lambda x: F.pad(x, (1, 0)),
    lambda x: F.pad(x, (-2, -2)),
    lambda x: F.pad(x, (-4, 0)),
    lambda x: F.pad(x, (-4, 0)) * 2,
    lambda x: F.pad(x, (0, 0, 0, -1)),
    lambda x: x[1:],
    lambda x: x.t(),
]


@pytest.mark.parametrize("make", MAKERS)
def test_strides_are_those_of_an_eager_run_or_not_known(make: Callable[[Tensor], Tensor]) -> None:
    def outer(x: Tensor) -> tuple[int, ...]:
        return make(x).stride()

    for a, b in itertools.product((0, 1, 2, 3), (1, 4, 5)):
        report = check(outer, f"x: float32[a, {b}]", [f"a == {a}"], replay=False)
        try:
            made = make(torch.zeros(a, b))
        except (RuntimeError, IndexError):
            assert report.verdict in ("refuted", "unknown")
            continue
        if report.verdict == "proved":
            assert [int(str(output.value)) for output in report.outputs] == [*made.stride()], (a, b)
        else:
            assert report.verdict == "unknown" and min(made.shape) < 2, (a, b, report.to_text())
