"""Lower bounds of dims by what is known, against brute force over boxes."""
from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, where

from anyshape.constraints.terms.dims import Dim, evaluate, sym, total
from anyshape.constraints.terms.formula import Formula, eq, ge, le
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.intervals import Bounds
from anyshape.constraints.terms.syntax import parse_dim

POINTS = box("abk", 0, 9)
RANGES = {"a": (0, 9), "b": (0, 9), "k": (0, 9)}


@pytest.mark.parametrize("known, dim, sure", [
    ("k <= a//4 - 1", "a - 4*k - 4", True),
    ("k <= a//4 - 1", "a - 4*k - 5", False),
    ("k <= (a + 3)//4 - 1", "a - 4*k - 1", True),
    ("k <= (a + 3)//4 - 1", "a - 4*k - 2", False),
    ("2*k <= a", "a - 2*k", True),
    ("2*k <= a", "3*a - 6*k", True),
    ("2*k <= a", "a - 3*k", False),
    ("k <= a and a <= k", "a - 2*k", False),
])
def test_multiples_of_what_is_known_are_taken_away(known: str, dim: str, sure: bool) -> None:
    bounds = Bounds({"a": (0, float("inf")), "k": (0, float("inf"))})
    bounds.learn(parse_formula(known))
    assert bounds.at_least(parse_dim(dim), 0) is sure


@pytest.mark.parametrize("dim", ["a//k", "a % k", "a//(2*k - 1)", "isqrt(k)", "a//isqrt(k)", "a//max(k, 1)"])
def test_what_contradicts_itself_bounds_nothing_or_anything(dim: str) -> None:
    """No value of k is left, and so none to divide by."""
    bounds = Bounds({"a": (0, inf), "k": (0, inf)})
    bounds.learn(parse_formula("k >= 1"))
    bounds.learn(parse_formula("k <= 0"))
    assert bounds.at_least(parse_dim(dim), 0) in (True, False) and bounds.contradict()


@st.composite
def sums(draw: st.DrawFn) -> Dim:
    a, b, k = map(sym, "abk")
    parts: list[Dim] = [a, b, k, a // draw(st.integers(2, 4)), b * k, draw(st.integers(-4, 4))]
    some = draw(st.lists(st.sampled_from(parts), max_size=4))
    return total(draw(st.integers(-4, 4)) * part for part in some)


def mistaken(facts: list[Formula], dim: Dim) -> str:
    """How a bound that is found contradicts brute force; nothing where none is."""
    bounds = Bounds(RANGES)
    for fact in facts:
        bounds.learn(fact)
    least = [n for n in range(-60, 60) if bounds.at_least(dim, n)]
    below = [p for p in where(facts, POINTS) if least and evaluate(dim, p) < max(least)]
    return f"{dim} is {evaluate(dim, below[0])} at {below[0]}" if below else ""


@given(st.lists(st.builds(lambda dim: ge(dim, 0), sums()), max_size=3), sums())
@settings(max_examples=150, deadline=None)
def test_no_bound_is_broken(facts: list[Formula], dim: Dim) -> None:
    assert not mistaken(facts, dim)


def test_a_wrong_multiple_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is at least 0 is taken for something that is at most 0."""
    facts, dim = [parse_formula("k <= a//4 - 1")], 4 * sym("k") - sym("a")
    assert not mistaken(facts, dim)
    right = Bounds._multiples
    monkeypatch.setattr(Bounds, "_multiples", lambda bounds, dim: (-m for m in right(bounds, -dim)))
    assert mistaken(facts, dim)


def test_equations_of_products_are_known_either_way() -> None:
    bounds = Bounds({"h": (1, inf), "w": (1, inf)})
    h, w = sym("h"), sym("w")
    bounds.learn(eq(h * w, 16))
    assert bounds.at_least(4096 - 256 * h * w, 0) and bounds.at_least(256 * h * w, 4096)
    assert not bounds.at_least(4095 - 256 * h * w, 0)
    known = bounds.copy()
    known.learn(le(h // 4, 0))
    assert known.at_least(3 - h, 0) and not known.at_least(2 - h, 0)
    assert not bounds.at_least(3 - h, 0) and not known.contradict()
    known.learn(ge(h, 4))
    assert known.contradict()
