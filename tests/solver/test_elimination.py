"""Symbols taken out of formulas, against trying all their values."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from random_formulas import box, formulas

from anyshape.constraints.terms.formula import Formula, all_of, free_symbols, holds
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.tactics import elimination
from anyshape.solver.tactics.elimination import without
from anyshape.solver.tactics.judge import Budget, Judge

SMALL = range(-4, 6)
BETWEEN = parse_formula("c >= -4 and c <= 5")


def exact(formula: Formula) -> bool:
    """Is what is left true where some small c makes the formula true, and nowhere else?"""
    left = without(all_of((formula, BETWEEN)), "c")
    if left is None:
        return True
    assert "c" not in free_symbols(left)
    return all(
        holds(left, values) == any(holds(formula, {**values, "c": c}) for c in SMALL)
        for values in box("ab", -3, 5)
    )


@given(formulas("abc", symbolic=False))
@settings(max_examples=200, deadline=None)
def test_it_is_what_trying_finds(formula: Formula) -> None:
    assert exact(formula)


@pytest.mark.parametrize("text, left", [
    ("u >= 0 and u <= h*w - 1 and u >= 4*(h//2)*(w//2)", "h*w >= 1 and h*w >= 4*(h//2)*(w//2) + 1"),
    ("u >= 0 and u <= n and u != 0", "n >= 1"),
    ("u == a*b and u <= 7 and n >= 2", "a*b <= 7 and n >= 2"),
    ("u >= 5 and u <= 4", "1 == 2"),
    ("n >= 3 and (u >= n or u == 2)", "n >= 3"),
])
def test_bounds_are_compared(text: str, left: str) -> None:
    found = without(parse_formula(text), "u")
    assert found is not None
    assert Judge().project(parse_formula(text), ["u"]) == found
    names = sorted(free_symbols(parse_formula(text)) - {"u"})
    for values in box("".join(names), -1, 7):
        assert holds(found, values) == holds(parse_formula(left), values)


@pytest.mark.parametrize("text", ["2*u == n", "u*n >= 3", "u // 2 >= n", "u + u*u >= n"])
def test_what_is_no_bound_is_not_mine(text: str) -> None:
    assert without(parse_formula(text), "u") is None


def test_many_cases_are_not_mine() -> None:
    text = " and ".join(f"(u >= {n}*a or u <= {n}*b)" for n in range(1, 9))
    assert without(parse_formula(text), "u") is None


def test_products_are_eliminated_without_z3() -> None:
    judge = Judge(Budget(seconds=9))
    formula = parse_formula("u >= 0 and u < h*w and u >= 4*(h//2)*(w//2)")
    assert judge.project(formula, ["u"]) is not None
    assert judge.stats.z3_queries == 0


def test_out_of_time_nothing_is_found() -> None:
    """However many conditions on data ask, each costs next to nothing then."""
    assert Judge(Budget(seconds=0)).project(parse_formula("u >= 0 and u < n"), ["u"]) is None


def test_what_does_not_speak_of_the_symbols_stays() -> None:
    formula = parse_formula("h*w*d >= 3 and 2*u == n and v >= a and v <= b*c")
    found = Judge().project(formula, ["u", "v"])
    assert found is not None and free_symbols(found) == {*"hwdnabc"}
    for n, (a, b) in ((4, (1, 2)), (5, (1, 2)), (4, (3, 2))):
        values = {"h": 3, "w": 1, "d": 1, "n": n, "a": a, "b": b, "c": 1}
        assert holds(found, values) is (n % 2 == 0 and a <= b)


def test_trying_catches_a_wrong_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    right = elimination.le
    monkeypatch.setattr(elimination, "le", lambda low, high: right(low, high + 1))
    assert not exact(parse_formula("c >= a and c <= b"))
