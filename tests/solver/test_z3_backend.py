"""The encoding against evaluation, point by point; cores, budgets, quantifiers."""
from __future__ import annotations

import os
import signal
import threading
import time
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, formulas, true_at

from anyshape.constraints.terms.dims import nearest_float, sym
from anyshape.constraints.terms.formula import Formula, all_of, eq, ge, holds, negate
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.backends import z3_backend
from anyshape.solver.backends.z3_backend import Z3Problem, project

NAMES = "abc"
values = st.fixed_dictionaries({n: st.integers(-7, 40) for n in NAMES})


def parse(*texts: str) -> list[Formula]:
    return [parse_formula(t) for t in texts]


def agrees(formula: Formula, point: dict[str, int], problem: Z3Problem | None = None) -> bool:
    """Does z3 find the formula true at the point exactly where Python does?

    Questions that are easy may share a problem: it takes longer to make one than to ask it.
    """
    here = [eq(sym(n), v) for n, v in point.items()]
    problem = problem or Z3Problem()
    return (problem.check([*here, formula]) == "sat") == holds(formula, point) and (
        problem.check([*here, negate(formula)]) == "sat"
    ) != holds(formula, point)


@given(formulas(NAMES, depth=4), values)
@settings(max_examples=250, deadline=None)
def test_a_formula_means_what_python_makes_of_it(formula: Formula, point: dict[str, int]) -> None:
    assert agrees(formula, point)


@given(formulas(NAMES))
@settings(max_examples=60, deadline=None)
def test_models_satisfy(formula: Formula) -> None:
    problem = Z3Problem(units=500_000)
    if problem.check([formula]) == "sat":
        assert holds(formula, problem.model())


@pytest.mark.parametrize("a, b", [(7, 2), (7, -2), (-7, 2), (-7, -2), (6, 3), (-6, 3), (6, -3), (0, -5)])
def test_division_rounds_as_in_python(a: int, b: int) -> None:
    point = {"a": a, "b": b, "c": 0}
    for text in (f"a // b == {a // b}", f"a % b == {a % b}", f"a // 5 == {a // 5}", f"a % 5 == {a % 5}"):
        assert agrees(parse_formula(text), point)


@pytest.mark.parametrize("digits", [2, 11, 24, 53])
def test_numbers_are_rounded_as_when_evaluated(digits: int) -> None:
    problem = Z3Problem()
    for octave in (digits, digits + 1, digits + 2, 63, 64):
        for number in ((1 << octave) + d * (1 << octave - digits) // 2 for d in (-3, -2, -1, 0, 1, 3)):
            value = nearest_float(number, digits)
            for text in (f"rounded(a, {digits}) == {value}", f"rounded(-a, {digits}) >= {1 - value}"):
                assert agrees(parse_formula(text), {"a": number}, problem)


def test_evaluation_catches_a_wrong_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Division that rounds towards zero, as in C."""
    right = z3_backend._Encoder._quotient

    def towards_zero(self: z3_backend._Encoder, p: object, k: object) -> object:
        q = right(self, p, k)  # type: ignore[arg-type]
        return z3_backend.z3.If(q < 0, q + 1, q)

    monkeypatch.setattr(z3_backend._Encoder, "_quotient", towards_zero)
    assert not agrees(parse_formula("a // 2 == -4"), {"a": -7})


@pytest.mark.parametrize("texts, core", [
    (["h >= 1", "h % 4 == 0", "h == w", "w % 4 == 3", "b <= 5"], {1, 2, 3}),
    (["a >= 5", "a <= 4", "b >= 5", "b <= 4"], None),
    (["a < b", "b < c", "c < a", "a >= 0"], {0, 1, 2}),
    (["2*(h//2) == h", "h % 2 == 1", "h >= 3"], {0, 1}),
    (["a*b == 6", "a >= 4", "b >= 2", "c >= 0"], {0, 1, 2}),
    (["a // b >= 3", "b >= 2", "a <= 5"], {0, 1, 2}),
])
def test_cores_are_minimal(texts: list[str], core: set[int] | None) -> None:
    asked = parse(*texts)
    problem = Z3Problem()
    assert problem.check(asked) == "unsat"
    found = problem.core()
    assert core is None or {*found} == {asked[i] for i in core}
    assert Z3Problem().check(found) == "unsat"
    for fewer in combinations(found, len(found) - 1):
        assert Z3Problem().check(fewer) == "sat"


def test_a_problem_answers_many_questions() -> None:
    problem = Z3Problem()
    one, two, three = parse("h % 2 == 0", "h >= 3", "h <= 3")
    assert problem.check([one, two]) == "sat" and problem.model()["h"] % 2 == 0
    assert problem.check([one, two, three]) == "unsat"
    assert problem.check([two, three]) == "sat" and problem.model() == {"h": 3}
    assert problem.check([]) == "sat" and problem.model() == {}
    assert problem.check([False]) == "unsat" and problem.core() == (False,)


def test_problems_share_nothing() -> None:
    one, other = Z3Problem(), Z3Problem()
    h, low = parse("h >= 10", "h <= 9")
    assert one.check([h, low]) == "unsat"
    assert other.queries == 0 and other.units == Z3Problem().units
    assert other.check([low]) == "sat" and one.queries == 1


HARD = parse("a >= 2", "b >= 2", "c >= 2", "a*a*a + b*b*b == c*c*c")


def test_the_budget_in_units_is_kept_and_repeats() -> None:
    spent = []
    for _ in range(2):
        problem = Z3Problem(units=20_000)
        assert problem.check(HARD) == "unknown"
        spent.append(problem.units)
    assert spent[0] == spent[1] < 100_000


def test_the_budget_in_seconds_is_kept() -> None:
    problem = Z3Problem(seconds=0.2, units=1 << 31)
    started = time.monotonic()
    assert problem.check(HARD) == "unknown"
    assert problem.exhausted
    assert problem.check(parse("a == 1")) == "unknown"
    assert time.monotonic() - started < 3


def test_no_part_of_a_millisecond_passes_for_ctrl_c() -> None:
    """Z3 is given whole milliseconds of the seconds that are left."""
    assert {Z3Problem(seconds=0.0012 + 0.00009 * k).check(HARD) for k in range(100)} == {"unknown"}


def test_ctrl_c_ends_a_query() -> None:
    """Z3 catches the signal itself and only says that it gave up."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Z3Problem(seconds=20, units=1 << 31).check(HARD)
    assert time.monotonic() - started < 5


def test_unet_chains_and_products_are_cheap() -> None:
    """What real models ask: eight halvings with their doublings, and views of products."""
    h = sym("h")
    chain = [ge(h, 1)]
    x = h
    for _ in range(8):
        chain.append(eq(2 * (x // 2), x))
        x = x // 2
    problem = Z3Problem()
    assert problem.check([*chain, *parse("h % 256 != 0")]) == "unsat"
    assert problem.check([*chain, *parse("h <= 255")]) == "unsat"
    assert problem.check(chain) == "sat"
    products = parse("b >= 1", "t >= 1", "d >= 1", "n >= 1", "b*t*n*d == b*t*64", "n*d != 64")
    assert problem.check(products) == "unsat"
    assert problem.units < 2_000_000


@pytest.mark.parametrize("text, gone", [
    ("h >= 1 and h <= w and h % 2 == 0", "h"),
    ("w == 2*h and h >= 1", "h"),
    ("w == h // 3 and h >= -2", "h"),
    ("h >= w and h <= c and h % 3 == 1", "h"),
    ("h == w or h == c", "h"),
    ("u >= 0 and u <= w and u + h == 4", "u"),
])
def test_projection_is_what_some_value_gives(text: str, gone: str) -> None:
    formula = parse_formula(text)
    left = project(formula, [gone])
    assert left is not None
    names = "".join(sorted({n for n in "hwcu" if n in text} - {gone}))
    for point in box(names, -4, 9):
        some = any(holds(formula, {**point, gone: v}) for v in range(-20, 60))
        assert holds(left, point) == some, (str(left), point)


def test_projection_of_nothing_is_the_formula() -> None:
    formula = parse_formula("h >= 1")
    assert project(formula, ["w"]) == formula
    assert true_at([project(all_of(parse("w >= 3", "w <= 3")), ["w"]) or False], {})
