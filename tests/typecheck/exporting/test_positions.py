"""Ranges up to a size, and lists of their numbers, are followed while a model is exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from anyshape.typecheck import export
from anyshape.typecheck.exporting.tracing.positions import Positions, positions

ends = st.integers(-4, 12)
cuts = st.builds(slice, st.none() | ends, st.none() | ends, st.none() | st.integers(-3, 3).filter(bool))


@given(ends, ends, st.integers(1, 4), st.lists(ends, max_size=3), st.lists(cuts, max_size=4), ends)
def test_are_what_lists_are(
    start: int, stop: int, step: int, more: list[int], cut: list[slice], place: int
) -> None:
    plain: Any = [*range(start, stop, step)]
    followed: Any = Positions(positions(start, stop, step).runs, list)
    for one in cut:
        plain, followed = more + plain[one], more + followed[one]
        assert [*followed] == plain and followed == plain and len(followed) == len(plain)
    assert followed + followed == plain + plain and followed + more == plain + more
    if -len(plain) <= place < len(plain):
        assert followed[place] == plain[place]
    else:
        with pytest.raises(IndexError, match="out of range"):
            followed[place]


def test_is_of_the_type_it_stands_for() -> None:
    counted = positions(0, 3, 1)
    assert isinstance(counted, range) and not isinstance(counted, list) and counted == range(3)
    assert isinstance(Positions(counted.runs, list), list)
    followed, mixed = Positions(counted.runs, list), [1, "two"]
    assert mixed + followed == [1, "two", 0, 1, 2]
    with pytest.raises(TypeError, match="not changed"):
        followed += [3]
    assert counted != [0, 1, 2]


def pools(x: Tensor) -> Any:
    """Counts positions as Funnel does: the first apart, every other one of the rest but for the last."""
    places = list(range(x.shape[0]))
    pooled = [-1] + places[1:-1][::2]  # noqa: RUF005 (as it is written there)
    return torch.arange(len(pooled) * 2, pooled[0] - places[-1] - 1, -2), x[pooled[-1] :]


def steps(x: Tensor) -> Any:
    starts = range(0, x.shape[0], 3)
    return x[starts[-1] :], x.new_zeros(len(starts)), x[: len(list(starts)[1:])]


@pytest.mark.parametrize("function", [pools, steps])
def test_need_no_number(function: Callable[[Tensor], Any]) -> None:
    found = export(function, "x: float32[n]", ["4 <= n", "n <= 40"])
    assert found.exact and not found.given_up
    program = found.program.module()
    for n in range(4, 41):
        x = torch.randn(n)
        assert all(torch.equal(a, b) for a, b in zip(function(x), program(x), strict=True))


def test_their_members_are_numbers() -> None:
    def adds(x: Tensor) -> Tensor:
        return sum(x[i].sin() * i for i in list(range(x.shape[0]))[1:])  # type: ignore[return-value]

    found = export(adds, "x: float32[n]", "n <= 9")
    assert [n for n in range(2, 10) if _runs(found.program.module(), n)] == [found.example["n"]]


def _runs(program: Callable[[Tensor], Any], n: int) -> bool:
    try:
        program(torch.randn(n))
    except AssertionError:
        return False
    return True
