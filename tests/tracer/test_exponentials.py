"""`2**n` of a symbol n is a term: in a program, in a spec, and in a saved condition."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch

from anyshape.typecheck import Report, check


def levels(x: torch.Tensor, n: int) -> torch.Tensor:
    return x.view(2**n, -1)


def shifted(x: torch.Tensor, n: int) -> torch.Tensor:
    if x.shape[0] % (1 << n):
        raise ValueError("too many levels")
    return x.view(1 << n, -1)


def widths(x: torch.Tensor, n: int) -> torch.Tensor:
    return torch.cat([x, torch.zeros(8 * 3**n)])[: 2 ** (n + 1)].view(2 ** (n + 1))


PROGRAMS = {levels: "b % 2**n == 0", shifted: "b % 2**n == 0", widths: None}
"""Programs of a tensor and an integer, with their condition; None where they run at all sizes."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_run_where_they_are_said_to(program: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
    report = check(program, ["x: float32[b]", "n: int"], "0 <= n and n <= 6")
    assert report.verdict == ("proved" if PROGRAMS[program] is None else "refined")
    assert str(report.accepts) == (PROGRAMS[program] or "True")
    for b, n in product((1, 2, 12, 16, 64), range(7)):
        try:
            program(torch.zeros(b), n)
        except (RuntimeError, ValueError):
            assert not report.accepts.holds(b=b, n=n)
        else:
            assert report.accepts.holds(b=b, n=n)


SPECS = [
    (["x: float32[2**i, 3]", "y: float32[2**j, 4]"], lambda x, y: torch.cat([x, y], 1), "2**i == 2**j"),
    (["x: float32[2**i]"], lambda x: x.view(-1, 4), "2**i % 4 == 0"),
    (["x: float32[2**(i + 1)]"], lambda x: x.view(2, -1).sum(0) + torch.zeros(8), "2**(i + 1)//2 == 8"),
    (["x: float32[2**i, 2**i]"], lambda x: x @ x, "True"),
]


@pytest.mark.parametrize(("spec", "program", "condition"), SPECS)
def test_specs(spec: list[str], program: Callable[..., torch.Tensor], condition: str) -> None:
    report = check(program, spec)
    assert str(report.accepts) == condition
    for sizes in product(range(1, 6), repeat=len(report.accepts.symbols)):
        values = dict(zip(report.accepts.symbols, sizes, strict=True))
        shapes = [line.partition("[")[2].rstrip("]") for line in spec]
        given = [torch.zeros(eval(f"({shape},)", {}, values)) for shape in shapes]
        try:
            program(*given)
        except RuntimeError:
            assert not report.accepts.holds(**values)
        else:
            assert report.accepts.holds(**values)


def test_a_negative_shift_is_refused() -> None:
    report = check(lambda x, n: x.view(1 << (n - 2), -1), ["x: float32[b]", "n: int"], "0 <= n and n <= 5")
    assert not report.accepts.holds(b=4, n=1)
    assert report.accepts.holds(b=4, n=3) and not report.accepts.holds(b=3, n=3)


def test_an_exponent_without_a_bound_is_not_decided() -> None:
    """Beyond 63 the power is no size, and Python computes on."""
    report = check(lambda x, n: x + 2**n % 7, ["x: float32[b]", "n: int"], "0 <= n")
    assert report.verdict != "refuted" and report.accepts.holds(b=1, n=70)


def test_a_report_on_a_power_of_a_large_number_can_be_read_again() -> None:
    report = check(lambda x, n: x.view(2000**n, -1), ["x: float32[b]", "n: int"], "0 <= n and n <= 2")
    again = Report.from_json(report.to_json())
    assert str(again.accepts) == str(report.accepts)
    assert again.accepts.holds(b=4000, n=1) and not again.accepts.holds(b=4001, n=1)
