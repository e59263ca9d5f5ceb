"""The condition on which a `while` that divides a size runs, compared with the iterations one by one."""

from __future__ import annotations

import pytest

from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import Formula, holds
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.tracer.summaries.divisions import Iterations, divisions

UPTO = 400


def proves(formula: Formula) -> bool:
    """Returns whether the formula holds of all sizes that are tried."""
    return all(holds(formula, {"u": n}) for n in range(UPTO))


@pytest.mark.parametrize("needs, after, goes_on, begins", [
    ("u % 2 == 0", "u//2", "4 <= u", 2),
    ("u % 2 == 0 or u == 3", "(u + 1)//2", "3 <= u", 2),
    ("u % 2 == 0", "u//2", "14 <= u", 7),
    ("u % 3 == 0", "u//3", "13 <= u", 5),
    ("u % 3 == 0 or u == 10 or u == 4", "min(u//3, max(u - 5, u//4))", "7 <= u", 7),
    ("u % 5 == 0", "u//5", "11 <= u", 3),
    ("u % 2 == 0 and u != 6", "u//2", "4 <= u", 2),
])  # fmt: skip
def test_runs_as_its_iterations_do(needs: str, after: str, goes_on: str, begins: int) -> None:
    of = Iterations("u", parse_formula(needs), parse_dim(after), parse_formula(goes_on))
    divided = divisions(of, proves)
    assert divided is not None
    runs = divided.runs(sym("n"), lambda n: n < begins)
    for n in range(begins, UPTO):
        assert holds(runs, {"n": n}) is (of.leads_to(n) is not None), n
    left = {found for n in range(begins, UPTO) if (found := of.leads_to(n)) is not None}
    assert left <= divided.leaves(lambda n: False)


@pytest.mark.parametrize("needs, after, goes_on", [
    ("u % 2 == 0", "u//2 + 1", "4 <= u"),
    ("u % 4 == 0", "u//4", "8 <= u"),
    ("0 <= u", "u - 1", "3 <= u"),
    ("u % 2 == 0 or u == 101", "u//2", "4 <= u"),
    ("u % 2 == 0 or u == 9", "max(u//2, 40 - 3*u)", "4 <= u"),
])  # fmt: skip
def test_other_loops_are_not_taken_for_divisions(needs: str, after: str, goes_on: str) -> None:
    of = Iterations("u", parse_formula(needs), parse_dim(after), parse_formula(goes_on))
    assert divisions(of, proves) is None
