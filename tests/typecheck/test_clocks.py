"""Time decides nothing but `unknown`: whenever time runs out, a check says the same, or that it cannot."""

from __future__ import annotations

import time
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from models import eager
from models.zoo import ZOO

from anyshape.solver.backends import z3_backend
from anyshape.solver.tactics import judge
from anyshape.tracer.recording import record
from anyshape.tracer.summaries import merging
from anyshape.typecheck import check
from anyshape.typecheck.checking import clock
from anyshape.typecheck.report.report import Verdict

USING = (judge, z3_backend, record, merging, clock)
"""The modules of a check that look at the clock."""


def at_step(patch: pytest.MonkeyPatch, step: float) -> None:
    """Replaces the clocks by one that moves by so many seconds whenever it is looked at, so that time runs
    out at the same place on any machine.
    """
    looks = count(time.monotonic(), step)
    stepping = SimpleNamespace(monotonic=lambda: next(looks))
    for module in USING:
        patch.setattr(module, "time", stepping)


def hard(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Products and branches, so that there is something to run out of time at."""
    n = x.shape[0] * x.shape[1]
    if n % 6 == 5:
        return x.view(-1, 3)
    return x.view(y.shape[0], -1) + y[:, None]


STEPS = (0.01, 0.1, 0.3, 0.6, 0.8, 1.0, 1.1, 1.2, 1.5, 2.0, 5.0, 20.0, 1e9)


def test_what_time_decides_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the judge takes what it has no time for to be contradictory."""
    monkeypatch.setattr(judge, "UNKNOWN", ("unsat", {}))

    def fails(step: float) -> bool:
        with monkeypatch.context() as patch:
            try:
                is_right_or_unknown(step, patch)
            except AssertionError:
                return True
        return False

    assert any(map(fails, STEPS))


@pytest.mark.parametrize("step", STEPS)
def test_a_program_of_products(step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    is_right_or_unknown(step, monkeypatch)


def is_right_or_unknown(step: float, patch: pytest.MonkeyPatch) -> None:
    asked = "x: [a, b]; y: [c]", "a <= 12 and b <= 12 and c <= 12"
    right = check(hard, *asked, replay=False)
    assert right.verdict == Verdict.REFINED and right.accepts.exact
    at_step(patch, step)
    report = check(hard, *asked, replay=False)
    assert report.verdict in (right.verdict, Verdict.UNKNOWN)
    for a, b, c in ((1, 1, 1), (3, 7, 21), (2, 3, 3), (5, 1, 2), (6, 6, 9), (4, 8, 11), (7, 5, 5)):
        if report.accepts.exact:
            assert report.accepts.holds(a=a, b=b, c=c) == right.accepts.holds(a=a, b=b, c=c)
        assert not report.accepts.certain.holds(a=a, b=b, c=c) or right.accepts.holds(a=a, b=b, c=c)


def agrees(entry: Any, step: float, patch: pytest.MonkeyPatch) -> None:
    at_step(patch, step)
    report = check(entry.build(), entry.inputs, entry.assume, replay=False)
    assert report.verdict in (entry.verdict, Verdict.UNKNOWN), report.to_text()
    tried = eager.assignments(entry.inputs, entry.assume, entry.probe, entry.accepts, 60)
    for sizes in tried:
        if report.accepts.exact:
            assert report.accepts.holds(**sizes) == entry.accepts(**sizes), sizes
        assert not report.accepts.certain.holds(**sizes) or entry.accepts(**sizes), sizes


@pytest.mark.parametrize("step", [0.1, 1.0, 1e3])
@pytest.mark.parametrize("entry", ZOO[5::40], ids=lambda e: e.name)
def test_the_corpus(entry: Any, step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    agrees(entry, step, monkeypatch)


# ---- sizes that data decide: Z3's elimination of them is bounded by the clock alone


def counted(x: torch.Tensor) -> torch.Tensor:
    """As many as it has at most."""
    n = x.nonzero().shape[0]
    if n > x.shape[0]:
        raise ValueError
    return x


def too_many(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].view(x.shape[0] + 1)


def picked(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0][: x.shape[0]].view(-1).sum() + x.view(2, -1).sum()


def fitting(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n = x.nonzero().shape[0]
    return y.narrow(0, n, 1) if n < y.shape[0] else y.view(y.shape[0], 1, -1)


def taken(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n = x.nonzero().shape[0]
    return y.narrow(0, n + 1, 1)


BY_DATA = (
    (counted, "x: [a]", "", "proved", "proved"),
    (too_many, "x: [a]", "", "refuted", "unknown"),
    (picked, "x: [a]", "", "refined", "refined"),
    (fitting, "x: [a]; y: [b]", "", "proved", "proved"),
    (taken, "x: [a]; y: [b]", "a + 2 <= b", "proved", "proved"),
    (taken, "x: [a]; y: [b]", "b == 1", "refuted", "refuted"),
)
"""With what is said in time, and what if nothing is eliminated."""


@pytest.mark.parametrize("target, inputs, assume, right, without", BY_DATA)
def test_what_is_not_eliminated(
    target: Any, inputs: str, assume: str, right: str, without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock may run out before any of the eliminations, or between two of them."""
    plain, calls = judge.Judge.project, 0

    def in_time(self: judge.Judge, *asked: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain(self, *asked) if calls <= most else None

    monkeypatch.setattr(judge.Judge, "project", in_time)
    for most in range(9):
        calls = 0
        report = check(target, inputs, assume, replay=False)
        assert report.verdict in (right, Verdict.UNKNOWN) and (most > 0 or report.verdict == without)
        if calls <= most:
            break
    assert calls <= most and report.verdict == right


@pytest.mark.parametrize("entry", ZOO[7::40], ids=lambda e: e.name)
def test_what_is_not_eliminated_in_the_corpus(entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge.Judge, "project", lambda *args: None)
    agrees(entry, 0.0, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.03, 0.1, 0.3, 1.0, 1e3])
@pytest.mark.parametrize("entry", ZOO, ids=lambda e: e.name)
def test_the_whole_corpus(entry: Any, step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    agrees(entry, step, monkeypatch)
