"""Comparisons that `torch._check` gets are requirements; whatever else asks for the answer makes a branch."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, _check

from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.rules import default_rules
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.bytecode.conclusive import is_checked
from anyshape.tracer.recording.record import record
from anyshape.typecheck import check


class Asked:
    """Its comparison says whether only `torch._check` gets the answer."""

    seen: bool | None = None

    def __le__(self, other: object) -> bool:
        Asked.seen = is_checked(sys._getframe(1))
        return True

    __ge__ = __le__

    def twice(self, *anything: Any) -> Asked:
        return self


class Other:
    @staticmethod
    def _check(condition: object) -> None:
        """Another function of that name."""


def by_module(n: Asked) -> None:
    torch._check(n <= 3)


def by_name(n: Asked) -> None:
    _check(n.twice(*[1], 2).twice() <= 3 + len("abc"))


def reflected(n: Asked) -> None:
    torch._check(3 <= n)


def with_message(n: Asked) -> None:
    torch._check(n <= 3, lambda: "too large")


def by_keyword(n: Asked) -> None:
    torch._check(cond=n <= 3)


def negated(n: Asked) -> None:
    torch._check(not (n <= 3) or True)


def chained(n: Asked) -> None:
    torch._check(n <= 3 <= 4)


def with_and(n: Asked) -> None:
    torch._check(n and n <= 3)


def chosen(n: Asked) -> None:
    torch._check((n <= 3) if n else True)


def inside(n: Asked) -> None:
    torch._check(bool(n <= 3))


def counted(n: Asked) -> None:
    torch._check(((n <= 3) + 1) == 2)


def kept(n: Asked) -> None:
    small = n <= 3
    torch._check(small)


def of_another(n: Asked) -> None:
    Other._check(n <= 3)


def asserted(n: Asked) -> None:
    assert n <= 3


@pytest.mark.parametrize("function", [by_module, by_name, reflected])
def test_only_the_check_gets_it(function: Any) -> None:
    function(Asked())
    assert Asked.seen is True


BRANCHES = [
    with_message, by_keyword, negated, chained, with_and, chosen, inside, counted, kept, of_another, asserted
]  # fmt: skip


@pytest.mark.parametrize("function", BRANCHES)
def test_something_else_gets_it(function: Any) -> None:
    function(Asked())
    assert Asked.seen is False


def checked(x: Tensor, y: Tensor) -> Tensor:
    torch._check(x.shape[0] + y.shape[0] >= 3)
    torch._check(x.shape[0] % 2 == 0)
    torch._check(x.shape[0] != 2 * y.shape[0])
    return x.sum() + y.sum()


def caught(x: Tensor, y: Tensor) -> Tensor:
    try:
        torch._check(x.shape[0] <= 3)
    except RuntimeError:
        torch._check(y.shape[0] >= 2)
    return x.sum() + y.sum()


@pytest.mark.parametrize(("program", "paths"), [(checked, 1), (caught, 2)])
def test_what_is_accepted_is_what_runs(program: Any, paths: int) -> None:
    spec = parse_spec("x: float32[a]; y: float32[b]")
    system, _ = record(program, spec, default_rules, DomainOracle(spec.domain))
    assert len(system.paths) == paths
    accepted = check(program, "x: float32[a]; y: float32[b]").accepts
    for a in range(1, 8):
        for b in range(1, 5):
            try:
                program(torch.zeros(a), torch.zeros(b))
                runs = True
            except RuntimeError:
                runs = False
            assert accepted.holds(a=a, b=b) is runs, (a, b)


def test_sizes_that_no_check_lets_pass_are_refuted() -> None:
    def model(x: Tensor) -> Tensor:
        torch._check(x.shape[0] >= 8)
        torch._check(x.shape[0] <= 7)
        return x

    report = check(model, "x: float32[n]")
    assert report.verdict == "refuted"
    assert {f.origin.line for f in report.findings} & {model.__code__.co_firstlineno + n for n in (1, 2)}


SYMBOLS = 30


def relations(n: Any, checks: int) -> Any:
    """As many conditions on thirty sizes: the formulas of the program, on whatever `n` holds."""
    for k in range(checks):
        i, j = k % SYMBOLS, (k * 7 + 1 + k // SYMBOLS) % SYMBOLS
        j = (j + 1) % SYMBOLS if i == j else j
        yield k % 3, n[i], n[j], k


@pytest.mark.parametrize("checks", [200, pytest.param(900, marks=pytest.mark.slow)])
def test_hundreds_of_checks_on_many_sizes_are_decided(checks: int) -> None:
    def many(*xs: Tensor) -> Tensor:
        for kind, a, b, k in relations([x.shape[0] for x in xs], checks):
            if kind == 0:
                torch._check(a + b >= 2 + k % 5)
            elif kind == 1:
                torch._check(a <= b + 100 + k)
            else:
                torch._check(2 * a + 3 * b != 1 + k)
        return torch.cat(xs)

    spec = "; ".join(f"xs[{i}]: float32[n{i}]" for i in range(SYMBOLS))
    report = check(many, spec)
    assert report.verdict == "refined"
    laws = {0: lambda a, b, k: a + b >= 2 + k % 5, 1: lambda a, b, k: a <= b + 100 + k,
            2: lambda a, b, k: 2 * a + 3 * b != 1 + k}  # fmt: skip
    chance, found = random.Random(0), set()
    for _ in range(60):
        sizes = [chance.choice([1, 2, 5, 90, 150]) if chance.random() < 0.1 else 4 for _ in range(SYMBOLS)]
        sizes[chance.randrange(SYMBOLS)] = chance.choice([1, 4, 90, 110, 170])
        runs = all(laws[kind](a, b, k) for kind, a, b, k in relations(sizes, checks))
        values = {f"n{i}": size for i, size in enumerate(sizes)}
        assert report.accepts.holds(**values) is runs
        found.add(runs)
    assert found == {True, False}
