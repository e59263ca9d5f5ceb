"""Relative positions that floats of sizes make, as in Segment Anything: what is said of them, against eager
runs, and the bound of what roundings add up to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any, Final
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from eager_runs import REFUSALS
from torch import Tensor, arange

from anyshape.constraints.contents.elements import values
from anyshape.typecheck import check

INPUTS: Final = "q: float32[q]; k: float32[k]; rel: float32[R, 2]"


def positions(q: int, k: int) -> Tensor:
    at = arange(q)[:, None] * max(k / q, 1.0)
    of = arange(k)[None, :] * max(q / k, 1.0)
    return (at - of) + (k - 1) * max(q / k, 1.0)


def resized(q: Tensor, k: Tensor, rel: Tensor) -> Tensor:
    """`get_rel_pos` of Segment Anything."""
    longest = int(2 * max(len(q), len(k)) - 1)
    if rel.shape[0] != longest:
        row = rel.reshape(1, rel.shape[0], -1).permute(0, 2, 1)
        rel = F.interpolate(row, size=longest, mode="linear").reshape(-1, longest).permute(1, 0)
    return rel[positions(len(q), len(k)).long()]


def looked_up(q: Tensor, k: Tensor, rel: Tensor) -> Tensor:
    return rel[positions(len(q), len(k)).long()]


def runs(target: Callable[..., Any], q: int, k: int, rows: int) -> bool:
    try:
        target(torch.ones(q), torch.ones(k), torch.ones(rows, 2))
    except REFUSALS:
        return False
    return True


def test_a_table_that_is_resized_has_room_for_all() -> None:
    report = check(resized, INPUTS, ("q <= 100000", "k <= 100000"), budget_s=300)
    assert report.verdict == "proved" and report.accepts.exact
    for q, k in ((1, 1), (8, 6), (13, 14), (7, 200), (200, 3)):
        assert runs(resized, q, k, 5)


def test_a_table_that_is_given_has_room_exactly_for_what_torch_looks_up() -> None:
    report = check(looked_up, INPUTS, ("q <= 500", "k <= 500"), budget_s=300)
    assert report.verdict == "refined" and report.accepts.exact
    for q, k in itertools.product((1, 2, 3, 4, 6, 7, 12, 14, 49, 64), repeat=2):
        greatest = int(positions(q, k).long().max())
        for rows in (greatest, greatest + 1, greatest + 2):
            ran = runs(looked_up, q, k, rows)
            assert ran == report.accepts.holds(q=q, k=k, R=rows) == (rows > greatest)


def test_of_one_number_of_queries_and_keys_singles_hold_every_position() -> None:
    report = check(looked_up, INPUTS.replace("k]", "q]"), ("q <= 16777217",), budget_s=300)
    assert report.verdict == "refined" and report.accepts.exact
    assert report.accepts.holds(q=1 << 24, R=(1 << 25) - 1) and not report.accepts.holds(q=9, R=16)


def test_beyond_what_is_certain_nothing_is_said_to_be_so() -> None:
    report = check(resized, INPUTS, ("k < q",))
    assert report.verdict == "unknown" and not report.accepts.exact


UNTRACKED: Final[list[Callable[..., Any]]] = [
    lambda q, k, rel: rel[((arange(len(q)) * (len(q) / len(k)) + 3) % 7).long()],
    lambda q, k, rel: rel[(arange(len(q)) * (len(k) / len(q)) - arange(len(q))).long() % 5],
    lambda q, k, rel: rel[(positions(len(q), len(k)).long() * 3)],
    lambda q, k, rel: rel[positions(len(q), len(k)).long().to(torch.int8).long()],
    lambda q, k, rel: rel[(arange(len(q)) * (len(k) / len(q)) * 1000 - 999 * (len(k) / len(q))).long()],
    lambda q, k, rel: rel[(arange(len(q)) - (len(k) - 1) * (len(q) / len(k))).long()],
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", UNTRACKED)
def test_nothing_wrong_is_said_of_other_functions_of_such_positions(target: Callable[..., Any]) -> None:
    report = check(target, INPUTS, ("q <= 3000", "k <= 3000"), budget_s=5)
    rng = Random(1)
    for _ in range(60):
        q, k, rows = rng.choice((2, 5, 9, 30)), rng.choice((1, 3, 8, 31)), rng.randint(1, 90)
        ran = runs(target, q, k, rows)
        if report.verdict in ("proved", "refuted"):
            assert ran == (report.verdict == "proved")
        if report.accepts.exact:
            assert ran == report.accepts.holds(q=q, k=k, R=rows)
        assert ran or not report.accepts.certain.holds(q=q, k=k, R=rows)


def exact(q: int, k: int) -> list[Fraction]:
    """Returns positions without roundings, those of the four corners."""
    at, of = max(Fraction(k, q), Fraction(1)), max(Fraction(q, k), Fraction(1))
    return [i * at - j * of + (k - 1) * of for i in (0, q - 1) for j in (0, k - 1)]


def test_roundings_add_up_to_less_than_one() -> None:
    rng = Random(2)
    for _ in range(200):
        q = rng.randint(1, values.NEAR // 2)
        k = rng.randint(1, values.NEAR // 2)
        at = torch.tensor([0, q - 1])[:, None] * max(k / q, 1.0)
        of = torch.tensor([0, k - 1])[None] * max(q / k, 1.0)
        found = ((at - of) + (k - 1) * max(q / k, 1.0)).flatten().tolist()
        errors = [abs(Fraction(x) - y) for x, y in zip(found, exact(q, k), strict=True)]
        assert max(errors) < 1


def test_a_bound_that_is_too_great_is_noticed() -> None:
    """Without it, sizes up to 2**24 are said to be certain, whose floats are more than 2 away."""
    with mock.patch.object(values, "NEAR", 1 << 40):
        assert check(resized, INPUTS, ("q <= 16777217", "k < q"), budget_s=300).verdict == "proved"
    assert check(resized, INPUTS, ("q <= 16777217", "k < q"), budget_s=300).verdict == "unknown"
    q, k, j = 15152357, 6081880, 2027293
    far = torch.tensor([q - 1]) * 1.0 - torch.tensor([j]) * (q / k) + (k - 1) * (q / k)
    assert abs(Fraction(far.item()) - (q - 1 - j * Fraction(q, k) + (k - 1) * Fraction(q, k))) > 2
