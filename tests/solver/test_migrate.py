"""Solutions one by one and counted, against brute force."""

from __future__ import annotations

from itertools import islice, product
from math import inf

import pytest

from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import Formula, all_of, free_symbols, ge, holds, le
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.migrate import SolutionCount, Solutions, constant, count
from anyshape.solver.tactics.judge import Judge

BOX = 12


def brute(formula: Formula, names: list[str]) -> list[tuple[int, ...]]:
    every = product(range(1, BOX + 1), repeat=len(names))
    inside = [v for v in every if holds(formula, dict(zip(names, v, strict=True)))]
    return sorted(inside, key=lambda v: (sum(v), v))


FORMULAS = [
    "b >= 1", "b % 3 == 1", "b + h == 7", "b*h == 12", "b <= h and h <= 2*b", "b == 2 or h == 3",
    "h % 4 == 0 and b != h", "b*b + h*h == 25", "b + h + w == 6", "b == h and h == w", "b == 5 and h == 2*b",
    "b // 2 == h", "min(b, h) == 2", "b >= 13",
]  # fmt: skip


def bounded(text: str) -> tuple[Formula, list[str]]:
    formula = parse_formula(text)
    names = sorted(free_symbols(formula))
    return all_of((formula, *(all_of((ge(sym(n), 1), le(sym(n), BOX))) for n in names))), names


@pytest.mark.parametrize("text", FORMULAS)
def test_all_solutions_in_order(text: str) -> None:
    formula, names = bounded(text)
    found = Solutions(Judge(), names, [formula])
    assert [tuple(s[n] for n in names) for s in found] == brute(formula, names)
    assert found.complete


@pytest.mark.parametrize("text", FORMULAS)
def test_count(text: str) -> None:
    formula, names = bounded(text)
    assert count(Judge(), names, [formula]) == SolutionCount(len(brute(formula, names)))


def test_infinitely_many_come_one_by_one() -> None:
    given = [parse_formula("b >= 1 and h >= 1 and (b + h) % 3 == 0")]
    first = [(s["b"], s["h"]) for s in islice(Solutions(Judge(), ["b", "h"], given), 7)]
    assert first == [(1, 2), (2, 1), (1, 5), (2, 4), (3, 3), (4, 2), (5, 1)]
    assert count(Judge(), ["b", "h"], given).number == inf
    assert count(Judge(), ["b", "h"], [parse_formula("b == 2")]).number == inf  # nothing is said of h


def test_parts_that_share_nothing_are_multiplied() -> None:
    given = [parse_formula("1 <= b and b <= 90 and 1 <= h and h <= 90 and 1 <= w and w <= 90")]
    assert count(Judge(), ["b", "h", "w"], given) == SolutionCount(90**3)
    assert str(count(Judge(), ["b", "h"], [parse_formula("b == 2 and h == 3")])) == "1"


def test_a_limit_is_told() -> None:
    given = [parse_formula("1 <= b and b <= h and h <= 100")]
    assert str(count(Judge(), ["b", "h"], given, limit=10)) == "at least 10"


@pytest.mark.parametrize("text, value", [("b//2", 3), ("b - 2*h", None), ("7", 7), ("h*0 + b % 2", None)])
def test_constants(text: str, value: int | None) -> None:
    from anyshape.constraints.terms.syntax import parse_dim

    given = [parse_formula("6 <= b and b <= 7 and h >= 1")]
    assert constant(Judge(), given, parse_dim(text)) == value
