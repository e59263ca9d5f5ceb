"""Mistakes planted in the checker are found within two thousand programs.

A program counts as a find where the planted checker is wrong and the real one is not. The search is slow; the
programs that it has found show the same in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import pytest

from anyshape.constraints.contents.laws import transfers
from anyshape.constraints.ir.language import Tensor
from anyshape.tracer.summaries import merging
from anyshape.tracer.values import numbers
from anyshape.typecheck.checking.api import check, default_rules
from benchmarks.fuzz import comparing
from benchmarks.fuzz.campaign import Bench, Effort
from benchmarks.fuzz.comparing import Checked, checked
from benchmarks.fuzz.families import written
from benchmarks.fuzz.program import Program

MOST = 2000
SEED = 11
EFFORT = Effort(points=12, budget_s=60.0, eager_s=60.0, replay=False)
"""More time than any of these programs needs on a busy machine: where time runs out, nothing is wrong."""


class Lenient:
    """A context that forgets what it is told to require."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def require(self, *said: Any, **more: Any) -> None:
        pass


def rules_changed(**changed: Callable[..., Any]) -> Any:
    """The functions of rules replaced by functions of them."""
    rules = default_rules()
    made = {n: replace(rules[n], function=change(rules[n].function)) for n, change in changed.items()}
    return mock.patch.object(comparing, "check", partial(check, rules=rules + made))


def forgetful(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, with nothing required."""
    return lambda c, *args, **kwargs: rule(Lenient(c), *args, **kwargs)


def first_axis_kept(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A slice that is told to have as many rows as its tensor."""

    def changed(c: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        found = rule(c, input, *args, **kwargs)
        if isinstance(found, Tensor) and found.shape and len(found.shape) == len(input.shape):
            return Tensor((input.shape[0], *found.shape[1:]), found.dtype)
        return found

    return changed


def laws(**changed: Any) -> Any:
    return mock.patch.dict(transfers.LAWS, changed)


PLANTED: dict[str, tuple[str, int, Callable[[], Any]]] = {
    "a rule that requires nothing: view": ("operators", 14, lambda: rules_changed(view=forgetful)),
    "a rule with a wrong shape: getitem": ("operators", 1, lambda: rules_changed(getitem=first_axis_kept)),
    "a rule that requires nothing: cat": ("lists", 68, lambda: rules_changed(cat=forgetful)),
    "a transfer: a sum is its first operand": ("contents", 0, lambda: laws(add=transfers._kept)),
    "a transfer: the greatest becomes the least": ("contents", 0, lambda: laws(clamp=transfers._kept)),
    "a cast: integers do not wrap": (
        "casts", 0, lambda: mock.patch.object(transfers, "fitted", lambda p, *_: p)
    ),
    "a branch: less is less or equal": (
        "branches", 15, lambda: mock.patch.object(numbers.Size, "__lt__", numbers.Size.__le__)
    ),
    "a merge: any dim is equal to that of the other way": (
        "merges", 66, lambda: mock.patch.object(merging.MergedCall, "_equal", return_value=True)
    ),
}  # fmt: skip
"""The mistake, the family of programs that finds it, and the first program of the seed 11 that does."""


@contextmanager
def benches(planted: str) -> Iterator[Callable[[int], bool]]:
    """Whether the program of a number finds the mistake."""
    family, _, mistake = PLANTED[planted]

    def mistaken(program: Program, budget_s: float, replay: bool) -> Checked:
        with mistake():
            return checked(program, budget_s, replay)

    with Bench(EFFORT, mistaken) as wrong, Bench(EFFORT) as right:

        def finds(number: int) -> bool:
            program, _ = written(SEED, number, [family])
            return bool(wrong.row(program).wrong) and not right.row(program).wrong

        yield finds


@pytest.mark.parametrize("planted", PLANTED)
def test_the_program_found_shows_the_mistake(planted: str) -> None:
    with benches(planted) as finds:
        assert finds(PLANTED[planted][1])


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_mistake_is_found(planted: str) -> None:
    with benches(planted) as finds:
        found = next(filter(finds, range(MOST)), None)
    assert found == PLANTED[planted][1]
