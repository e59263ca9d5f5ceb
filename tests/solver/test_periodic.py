"""Sets of integers against brute force: membership, algebra, and everything that is read off them."""
from __future__ import annotations

from collections.abc import Mapping
from math import gcd, inf

import pytest
from hypothesis import given, settings
from random_formulas import formulas

from anyshape.constraints.terms.dims import Dim, evaluate, maximum, minimum, power, sym
from anyshape.constraints.terms.formula import Formula, ge, holds, le
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.theory import periodic, quasi_polynomials
from anyshape.solver.theory.integer_sets import IntegerSet
from anyshape.solver.theory.periodic import solutions

WINDOW = range(-150, 151)
over_b = formulas("b", symbolic=False, depth=5)


def members(formula: Formula) -> set[int]:
    return {v for v in WINDOW if holds(formula, {"b": v})}


def check(formula: Formula) -> IntegerSet | None:
    """The set, after comparing all that it says with brute force over a window."""
    values = solutions(formula, "b")
    if values is None:
        return None
    truth = members(formula)
    assert {v for v in WINDOW if v in values} == truth
    assert {v for v in WINDOW if v in ~values} == {*WINDOW} - truth
    if truth:
        assert bool(values)
        assert values.min in (-inf, min(truth)) or values.min < WINDOW[0]
        assert values.max in (inf, max(truth)) or values.max > WINDOW[-1]
        for v in (-100, -7, 0, 3, 90):
            above, below = [x for x in truth if x >= v], [x for x in truth if x <= v]
            assert not above or values.at_least(v) == min(above)
            assert not below or values.at_most(v) == max(below)
        step, residue = values.congruence()
        assert all((v - residue) % step == 0 if step else v == residue for v in truth)
        if WINDOW[0] < values.min and values.max < WINDOW[-1]:
            assert step == gcd(*(v - min(truth) for v in truth)), "the step is the greatest"
        runs = values.runs(5)
        if runs is not None:
            for v in WINDOW:
                inside = any((a is None or a <= v) and (b is None or v <= b) for a, b in runs)
                assert (v in truth) == (inside and (v - residue) % (step or 1) == 0)
    return values


@given(over_b)
@settings(max_examples=200, deadline=None)
def test_a_set_is_what_brute_force_finds(formula: Formula) -> None:
    check(formula)


@given(over_b, over_b)
@settings(max_examples=80, deadline=None)
def test_algebra(one: Formula, other: Formula) -> None:
    a, b = solutions(one, "b"), solutions(other, "b")
    if a is None or b is None:
        return
    assert {v for v in WINDOW if v in a & b} == members(one) & members(other)
    assert {v for v in WINDOW if v in a | b} == members(one) | members(other)
    assert a & b <= a and a <= a | b and not a & ~a
    assert (a <= b) == (not a & ~b)
    if a <= b:
        assert members(one) <= members(other)


@pytest.mark.parametrize("text, low, high, step, runs", [
    ("b//4 == 2", 8, 11, (1, 0), ((8, 11),)),
    ("b % 4 <= 2 and 2 <= b <= 64", 2, 64, (1, 0), None),
    ("(b < 4 or b > 10) and b >= 2", 2, inf, (1, 0), ((2, 3), (11, None))),
    ("b != 7", -inf, inf, (1, 0), ((None, 6), (8, None))),
    ("(2*b) % 6 == 0", -inf, inf, (3, 0), ((None, None),)),
    ("(b*b) % 4 == 0", -inf, inf, (2, 0), ((None, None),)),
    ("b*b <= 100", -10, 10, (1, 0), ((-10, 10),)),
    ("b*b == 49", -7, 7, (14, 7), ((-7, 7),)),
    ("b**3 - 100*b >= 0 and b > 0", 10, inf, (1, 0), ((10, None),)),
    ("b % 4 == 0 and b % 6 == 0 and 2 <= b <= 64", 12, 60, (12, 0), ((12, 60),)),
    ("b == 5", 5, 5, (0, 5), ((5, 5),)),
    ("b <= 9223372036854775807 and b % 3 == 1", -inf, 9223372036854775807, (3, 1), None),
    ("max(b, 7) - min(b, 7) <= 2", 5, 9, (1, 0), ((5, 9),)),
    ("1000000000*b >= 7", 1, inf, (1, 0), ((1, None),)),
])
def test_what_a_set_says(text: str, low: float, high: float, step: tuple[int, int], runs: object) -> None:
    values = check(parse_formula(text))
    assert values is not None
    assert (values.min, values.max, values.congruence()) == (low, high, step)
    assert runs is None or values.runs(4) == runs


def test_a_chain_of_256_residues_is_one_cut() -> None:
    """`(b - 1)//256 >= 1` changes on each residue class at a place of its own, and is one inequality."""
    values = solutions(ge((sym("b") - 1) // 256, 1), "b")
    assert values == IntegerSet(1, (257,), (0, 1))


def test_too_large_is_not_mine() -> None:
    assert solutions(parse_formula("b % 9973 == b % 9967"), "b") is None
    assert solutions(parse_formula("8 % b == 0"), "b") is None


def test_polynomials_of_high_degree_are_not_mine() -> None:
    """They are told by differences of differences, as many as the degree."""
    assert solutions(ge(power(sym("b"), 400) - 8, 0), "b") is None
    assert solutions(ge(power(sym("b"), 40) - 8, 0), "b") is not None


def test_the_empty_set() -> None:
    values = solutions(parse_formula("b % 2 == 0 and b % 4 == 1"), "b")
    assert values is not None and not values
    assert (values.min, values.max, values.at_least(0)) == (inf, -inf, None)


def test_brute_force_catches_a_wrong_half_line(monkeypatch: pytest.MonkeyPatch) -> None:
    right = periodic._half_line
    monkeypatch.setattr(periodic, "_half_line", lambda c, d: right(c, d - 1))
    forget()
    try:
        with pytest.raises(AssertionError):
            check(le(sym("b"), 41))
    finally:
        forget()


def forget() -> None:
    periodic._kept.cache_clear()
    periodic._solutions.cache_clear()


# --- what it costs


class Counted:
    """`evaluate`, which also counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, dim: Dim, values: Mapping[str, int]) -> int:
        self.calls += 1
        return evaluate(dim, values)


def nested(depth: int) -> Dim:
    """What broadcasting a size against itself again and again leaves behind."""
    size: Dim = sym("b")
    for _ in range(depth):
        size = maximum(size, 2) * minimum(size, 3)
    return size


def test_nested_extremes_are_told_apart_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its text the term has degree 16, and holds the same maxima many times over."""
    counted = Counted()
    monkeypatch.setattr(quasi_polynomials, "evaluate", counted)
    forget()
    assert check(ge(nested(4), 1)) is not None
    assert counted.calls < 50_000


def test_many_polynomials_are_not_mine(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 residue classes, on each of which thirty differences of degree 1 would be followed."""
    counted = Counted()
    monkeypatch.setattr(quasi_polynomials, "evaluate", counted)
    steps = " + ".join(f"max(b//1000, b + {n})" for n in range(1, 31))
    assert solutions(parse_formula(f"{steps} >= 7"), "b") is None
    assert counted.calls == 0
