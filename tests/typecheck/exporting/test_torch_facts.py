"""What torch gets wrong about sizes, as it was measured, and what is made of it here."""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.typecheck import check, export


class Checked(nn.Module):
    """`torch._check` with its message is a guard of the trace, and a requirement of the model."""

    def forward(self, x: Tensor) -> Tensor:
        rows = x.shape[0]
        torch._check(rows % 4 == 0, lambda: "the rows do not make quarters")
        torch._check(rows <= 40, lambda: "too many rows")
        return torch.relu(x)


def test_a_check_with_a_message() -> None:
    found = export(Checked(), "x: [b, 3]")
    assert found.exact and str(found.accepts) == "b <= 40 and b % 4 == 0"
    module = found.program.module()
    for rows in range(1, 50):
        x = torch.randn(rows, 3)
        if rows % 4 == 0 and rows <= 40:
            assert torch.equal(module(x), torch.relu(x))
        else:
            with pytest.raises(AssertionError, match="Guard failed"):
                module(x)


def test_the_message_of_a_check_is_told() -> None:
    report = check(Checked(), "x: [b, 3]", "b == 6")
    assert report.verdict == "refuted" and "do not make quarters" in str(report)


class Named(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, x], 1) + y


@pytest.mark.parametrize("name", ["N", *(pytest.param(n, marks=pytest.mark.slow) for n in "SQEI"), "beta"])
def test_symbols_may_have_the_names_of_sympys_own(name: str) -> None:
    """torch.export itself crashes where a Dim of such a name stands in a relation."""
    found = export(Named(), f"x: [b, {name}]; y: [b, 2*{name}]")
    assert found.exact
    module = found.program.module()
    assert module(torch.zeros(3, 5), torch.zeros(3, 10)).shape == (3, 10)
    with pytest.raises(AssertionError, match="Guard failed"):
        module(torch.zeros(3, 5), torch.zeros(3, 11))


SYMBOLS = 30
GUARDS = 900


class Many(nn.Module):
    """Nine hundred guards on thirty sizes: a range, a residue, and relations to the others."""

    def forward(self, *xs: Tensor) -> Tensor:
        sizes = [x.shape[0] for x in xs]
        asked = 0
        for i, size in enumerate(sizes):
            torch._check(size >= 4 + i)
            torch._check(size <= 1000 + i)
            torch._check(size % 2 == 0)
            asked += 3
        while asked < GUARDS:
            for i, j in combinations(range(SYMBOLS), 2):
                torch._check(sizes[i] + sizes[j] + asked % 7 <= 4000)
                asked += 1
                if asked == GUARDS:
                    break
        return torch.stack([x.sum() for x in xs]).sum()


@pytest.mark.slow
def test_nine_hundred_guards_on_thirty_symbols() -> None:
    """torch's own solver takes 20.7 s for as many, on two cores."""
    inputs = "; ".join(f"xs[{i}]: [s{chr(97 + i // 26)}{chr(97 + i % 26)}]" for i in range(SYMBOLS))
    started = time.monotonic()
    report: Any = check(Many(), inputs)
    assert report.verdict == "refined" and report.accepts.exact
    first, *_, last = report.dims.values()
    assert (first.min, first.max, first.divisor) == (4, 1000, 2)
    assert (last.min, last.max, last.divisor) == (34, 1028, 2)
    assert report.dynamic_shapes.exact
    assert time.monotonic() - started < 20
