"""Quotients by terms over one symbol against brute force: the sets and values, and what is known by them."""
from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, formulas, where

from anyshape.constraints.terms.dims import Dim, evaluate, sym
from anyshape.constraints.terms.formula import Formula, all_of, eq, ge, gt, holds, lt, ne
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.theory import periodic, settling
from anyshape.solver.theory.bounds import Consequences
from anyshape.solver.theory.integer_sets import EVERY, IntegerSet
from anyshape.solver.theory.periodic import image, solutions

WINDOW = range(1, 700)


@pytest.mark.parametrize("text, low, high", [
    ("h//(h//7) == 7", 7, inf),
    ("h//(h//7) != 7", 8, 48),
    ("h//((h + 6)//7) == 6", 6, inf),
    ("(h - h//7)//(h//7) + 1 <= 6", inf, -inf),
    ("64//h == 3", 17, 21),
    ("100 % h == 0", 1, 100),
    ("(3*h + 1) % (h + 5) == 2", 3, 11),
    ("h//(h//(h//((h + 1)//2))) == 1", 1, inf),
    ("max(h, 40)//max(h//2, 3) <= 2", 28, inf),
    ("(h*h + 3)//(h*h + 1) == 1", 2, inf),
    ("h % (h//3) == 0 or h//(h//5) >= 9", 3, inf),
])
def test_conditions_are_sets(text: str, low: float, high: float) -> None:
    """Texts say of themselves that no divisor is 0."""
    formula = all_of((ge(sym("h"), 1), parse_formula(text)))
    values = solutions(formula, "h")
    assert values is not None
    assert {h for h in WINDOW if h in values} == {h for h in WINDOW if holds(formula, {"h": h})}
    assert (values.min, values.max) == (low, high)


def test_what_is_undefined_is_not_said() -> None:
    """Where h//7 is 0, neither a condition nor its negation holds."""
    partial = eq(sym("h") // (sym("h") // 7), 7)
    assert solutions(partial, "h") is None
    assert solutions(partial, "h", _set(ge(sym("h"), 6))) is None
    assert solutions(partial, "h", _set(ge(sym("h"), 7))) is not None
    assert solutions(all_of((partial, ge(sym("h"), 7))), "h") is not None, "whatever the order"
    assert image(_set(ge(sym("h"), 6)), sym("h") // (sym("h") // 7), "h") is None


def _set(formula: Formula) -> IntegerSet:
    found = solutions(formula, "h")
    assert found is not None
    return found


@st.composite
def quotients(draw: st.DrawFn) -> Dim:
    """A quotient or remainder by a term that is positive from 1 on, of what is one again at times."""
    h = sym("h")

    def line(low: int) -> Dim:
        size = draw(st.integers(1, 3)) * h + draw(st.integers(low, 6))
        return size // draw(st.integers(2, 4)) if draw(st.booleans()) else size

    whole, divisor = line(-6), line(0) + 1
    for _ in range(draw(st.integers(1, 2))):
        whole = whole // divisor if draw(st.integers(0, 2)) else whole % divisor
        divisor = whole * draw(st.integers(0, 1)) + line(0) + 7
        whole = line(-6)
    return (line(0) + 3) // divisor + draw(st.integers(-1, 1)) * (whole // (line(0) + 1))


COMPARISONS = st.sampled_from([eq, ne, lt, gt])


@given(quotients(), COMPARISONS, st.integers(-2, 3), st.integers(1, 5), st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_a_set_is_what_brute_force_finds(
    dim: Dim, compare: Callable[[Dim, Dim], Formula], than: int, step: int, rest: int
) -> None:
    about = all_of((ge(sym("h"), 1), eq(sym("h") % step, rest % step)))
    within, formula = _set(about), compare(dim, than)
    values = solutions(formula, "h", within)
    if values is not None:
        inside = [h for h in WINDOW if h in within]
        assert [h for h in inside if h in values] == [h for h in inside if holds(formula, {"h": h})]
    taken = image(within, dim, "h") if not isinstance(dim, int) else None
    if taken is not None:
        assert all(evaluate(dim, {"h": h}) in taken for h in WINDOW if h in within)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_most_quotients_of_lines_are_decided(data: st.DataObject) -> None:
    """Of two lines, the one that is divided growing no faster than a few times the other."""
    a, c = data.draw(st.integers(0, 9)), data.draw(st.integers(1, 9))
    b, d = data.draw(st.integers(-9, 9)), data.draw(st.integers(0, 9))
    dim = (a * sym("h") + b) // (c * sym("h") + d)
    assert solutions(eq(dim, 1), "h", _set(ge(sym("h"), 1))) is not None


@pytest.mark.parametrize("variant", [
    lambda whole, divisor, name: (RIGHT(whole, divisor, name)[0], 1),
    lambda whole, divisor, name: (RIGHT(whole, divisor, name)[0] + 1, RIGHT(whole, divisor, name)[1]),
])
def test_wrong_limits_are_caught(
    monkeypatch: pytest.MonkeyPatch, variant: Callable[[Dim, Dim, str], tuple[int, int]]
) -> None:
    formula = eq(sym("h") // (sym("h") // 7), 7)
    within = _set(ge(sym("h"), 7))
    monkeypatch.setattr(settling, "_limit", variant)
    periodic._kept.cache_clear()
    periodic._solutions.cache_clear()
    try:
        values = solutions(formula, "h", within)
        assert values is not None
        assert any((h in values) != holds(formula, {"h": h}) for h in WINDOW if h >= 7)
    finally:
        periodic._kept.cache_clear()
        periodic._solutions.cache_clear()


RIGHT = settling._limit


# --- what is known by them

POOLED = "((h % 2)//((h + 1)//2))*((w % 2)//((w + 1)//2)) + 2*((h % 2)//((h - 1)//4 + 1)) == 0"


def test_quotients_that_have_one_value_are_that_value() -> None:
    """A pyramid of pools pads odd sizes; whether it has a row more is h % 2 by about half of h."""
    known = Consequences([parse_formula(text) for text in ("h >= 4", "w >= 4")])
    assert known.ask(parse_formula(POOLED)) is True
    known = Consequences([parse_formula(text) for text in ("h >= 1", "w >= 4")])
    assert known.ask(parse_formula(POOLED)) is None, "1//1 is 1"


@given(st.lists(formulas("hw", depth=5), min_size=2, max_size=4))
@settings(max_examples=150, deadline=None)
def test_what_is_known_is_so(given: list[Formula]) -> None:
    *facts, asked = given
    assert not _mistaken([ge(sym("h"), 1), ge(sym("w"), 1), *facts], asked)


def _mistaken(facts: list[Formula], asked: Formula) -> list[object]:
    """The points that contradict what is known."""
    known = Consequences(facts, thorough=True)
    points = where(facts, box("hw", 1, 14))
    if known.contradictory:
        return [*points]
    answer = known.ask(asked)
    return [] if answer is None else [p for p in points if holds(asked, p) is not answer]


def test_brute_force_catches_a_wrong_value(monkeypatch: pytest.MonkeyPatch) -> None:
    h, w = sym("h"), sym("w")
    facts, asked = [ge(h, 1), ge(w, 1)], eq((h + 3) // (h + 1) * w, w)
    assert not _mistaken(facts, asked)
    monkeypatch.setattr(Consequences, "_only", lambda known, atom: 1 if atom.op == "//" else None)
    assert _mistaken(facts, asked)


def test_scaled_sets_and_sets_of_members() -> None:
    odd = IntegerSet(2, (), (2,)) & _set(ge(sym("h"), 4))
    assert [v for v in range(60) if v in odd.scaled(5, 3)] == [5 * n + 3 for n in range(12) if n in odd]
    assert EVERY.scaled(3, 1) == _set(eq(sym("h") % 3, 1))
    assert periodic.of_members([4, 5, 5, 9, -3]).members(10) == [-3, 4, 5, 9]
    assert not periodic.of_members([])
