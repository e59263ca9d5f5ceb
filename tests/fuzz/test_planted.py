"""Mistakes planted in the checker are found within two thousand programs.

A program counts as a find where the planted checker is wrong and the real one is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import pytest

from anyshape.constraints.contents import transfers
from anyshape.constraints.language import Tensor
from anyshape.tracer import numbers
from anyshape.typecheck.api import check, default_rules
from benchmarks.fuzz import comparing
from benchmarks.fuzz.campaign import Bench, Effort
from benchmarks.fuzz.comparing import Checked, checked
from benchmarks.fuzz.families import written
from benchmarks.fuzz.program import Program

MOST = 2000
EFFORT = Effort(points=12, replay=False)


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


PLANTED = {
    "a rule that requires nothing: view": ("operators", lambda: rules_changed(view=forgetful)),
    "a rule with a wrong shape: getitem": ("operators", lambda: rules_changed(getitem=first_axis_kept)),
    "a rule that requires nothing: cat": ("lists", lambda: rules_changed(cat=forgetful)),
    "a transfer: a sum is its first operand": ("contents", lambda: laws(add=transfers._kept)),
    "a transfer: the greatest becomes the least": ("contents", lambda: laws(clamp=transfers._kept)),
    "a cast: integers do not wrap": ("casts", lambda: mock.patch.object(transfers, "fitted", lambda p,
    *_: p)),
    "a branch: less is less or equal": ("branches", lambda: mock.patch.object(numbers.Size, "__lt__",
    numbers.Size.__le__)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_mistake_is_found(planted: str) -> None:
    family, mistake = PLANTED[planted]

    def mistaken(program: Program, budget_s: float, replay: bool) -> Checked:
        with mistake():
            return checked(program, budget_s, replay)

    with Bench(EFFORT, mistaken) as wrong, Bench(EFFORT) as right:
        for number in range(MOST):
            program, _ = written(11, number, [family])
            if wrong.row(program).wrong and not right.row(program).wrong:
                print(f"{planted}: found by program {number}\n{program.source}")
                return
    pytest.fail(f"{MOST} programs of the family {family} do not show it")
