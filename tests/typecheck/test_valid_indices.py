"""Sizes that are elements of indices, against eager runs on data that are valid as indices: at the sizes that
are accepted all of them run, at the others none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from anyshape.constraints.contents import traits
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.typecheck import check

REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError)
INPUTS = "ids: int64[n]; x: float32[m, 2]"
LOWEST, HIGHEST = -3, 3


@dataclass(frozen=True)
class Case:
    target: Callable[[Tensor, Tensor], object]
    valid: Callable[[list[int], int], bool] = lambda ids, m: min(ids) >= 0
    """The ids that are valid indices wherever the program takes them for some."""
    assume: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.target.__name__


def summed_by_group(ids: Tensor, x: Tensor) -> Tensor:
    """Rows are summed by what group they are of."""
    groups = int(ids.max()) + 1 if ids.numel() > 0 else 0
    return x.new_zeros(groups, 2).scatter_add_(0, ids.view(-1, 1).expand_as(x), x)


def counted_first(ids: Tensor, x: Tensor) -> Tensor:
    room = x.new_zeros(ids.amax().item() + 1)
    room.index_add_(0, ids.clone().flatten(), x[:, 0])
    return room.view(-1, 1) * x.new_ones(1, 3)


def taken_first(ids: Tensor, x: Tensor) -> Tensor:
    """Ids into the rows of x: one more than the greatest of them is no more than there are."""
    picked = x.index_select(0, ids)
    return picked.sum() + x.new_zeros(x.shape[0] - int(ids.max()) - 1)[:3].sum()


def the_least(ids: Tensor, x: Tensor) -> Tensor:
    return x.index_select(0, ids).sum() + x.new_zeros(int(ids.min()), x.shape[0] - int(ids.min()))


def asked_twice(ids: Tensor, x: Tensor) -> Tensor:
    """The greatest is the same number whenever it is asked for."""
    room = x.new_zeros(int(ids.max()) + 1).index_fill(0, ids, 1.0)
    return room + x.new_zeros(int(ids.view(-1, 1).max()) + 1)


def from_the_end(ids: Tensor, x: Tensor) -> Tensor:
    """-1 is a valid index, and no size: where ids are negative it takes what is not there."""
    return x.new_zeros(int(ids.max()) + 1)[ids]


FOLLOWED = [
    Case(summed_by_group, assume=("m == n",)),
    Case(counted_first, assume=("m == n",)),
    Case(taken_first, lambda ids, m: 0 <= min(ids) <= max(ids) < m),
    Case(the_least, lambda ids, m: 0 <= min(ids) <= max(ids) < m),
    Case(asked_twice, lambda ids, m: min(ids) >= -max(ids) - 1),
    Case(from_the_end, lambda ids, m: min(ids) >= -max(ids) - 1),
]


def no_index(ids: Tensor, x: Tensor) -> Tensor:
    return x.new_zeros(int(ids.max()) + 1)


def another_index(ids: Tensor, x: Tensor) -> Tensor:
    return x.new_zeros(int(ids.max()) + 1) + x.new_zeros(9)[(ids % 9)].sum()


def written_in_between(ids: Tensor, x: Tensor) -> Tensor:
    most = int(ids.max())
    ids += 3
    return x.new_zeros(most + 1).sum() + x.new_zeros(9)[ids].sum()


def only_for_some_data(ids: Tensor, x: Tensor) -> Tensor:
    room = x.new_zeros(int(ids.max()) + 1)
    return room[ids] if x.sum() > 0 else room


def only_for_some_sizes(ids: Tensor, x: Tensor) -> Tensor:
    room = x.new_zeros(int(ids.max()) + 1)
    return room[ids] if x.shape[0] > 2 else room


def as_often_as_a_loop_goes(ids: Tensor, x: Tensor) -> Tensor:
    room = x.new_zeros(int(ids.max()) + 1)
    for _ in range(x.shape[0] - 1):
        room = room + room.index_select(0, ids).sum()
    return room


def repeated_no_times(ids: Tensor, x: Tensor) -> Tensor:
    room = x.new_zeros(int(ids.max()) + 1)
    return room[ids.expand(x.shape[0] - 1, -1)]


def of_a_part(ids: Tensor, x: Tensor) -> Tensor:
    return x.new_zeros(int(ids.max()) + 1).sum() + x.new_zeros(9)[ids[1:]].sum()


def after_arithmetic(ids: Tensor, x: Tensor) -> Tensor:
    return x.new_zeros(int(ids.max()) + 1).sum() + x.new_zeros(9)[ids + 3].sum()


def into_less_than_is_asked(ids: Tensor, x: Tensor) -> Tensor:
    """Valid from -9 on, which is no size."""
    return x.new_zeros(9)[ids].sum() + x.new_zeros(int(ids.max()) + 1)


NOT_FOLLOWED = [
    no_index, another_index, written_in_between, only_for_some_data, only_for_some_sizes,
    as_often_as_a_loop_goes, repeated_no_times, of_a_part, after_arithmetic, into_less_than_is_asked,
]  # fmt: skip


def runs(target: Callable[[Tensor, Tensor], object], ids: tuple[int, ...], m: int) -> bool:
    try:
        target(torch.tensor(ids), torch.zeros(m, 2))
    except REFUSALS:
        return False
    return True


@pytest.mark.parametrize("case", FOLLOWED, ids=str)
def test_agrees_with_eager_on_valid_data(case: Case) -> None:
    report = check(case.target, INPUTS, case.assume)
    assert report.verdict in ("proved", "refined"), report.to_text()
    domain = parse_spec(INPUTS, case.assume).domain
    assert domain.symbols == ("n", "m")
    tried = 0
    for n, m in itertools.product(range(1, 4), range(1, 6)):
        if not report.accepts.declared(n=n, m=m):
            continue
        for ids in itertools.product(range(LOWEST, HIGHEST + 1), repeat=n):
            if case.valid([*ids], m):
                tried += 1
                assert report.accepts.holds(n=n, m=m) == runs(case.target, ids, m), (ids, m)
    assert tried > 50


@pytest.mark.parametrize("target", NOT_FOLLOWED, ids=lambda t: t.__name__)
def test_what_is_no_index_may_be_any_number(target: Callable[[Tensor, Tensor], object]) -> None:
    """There are sizes at which some data run, and others do not, though they are valid wherever the program
    comes to take them for indices.
    """
    assert runs(target, (0, 1), 1) and not runs(target, (-3, -3), 1)
    report = check(target, INPUTS)
    assert report.verdict == "unknown", report.to_text()


def test_a_wrong_law_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no index counted from the end."""
    law = traits._within
    monkeypatch.setattr(traits, "_within", lambda number, index, size, _: law(number, index, size, False))
    with pytest.raises(AssertionError):
        test_what_is_no_index_may_be_any_number(into_less_than_is_asked)
