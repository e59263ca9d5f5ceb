"""The fast path: what it has to see, and that it never contradicts brute force, nor z3."""
from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, formulas, where

from anyshape.constraints.terms.dims import Dim, substitute, sym
from anyshape.constraints.terms.formula import Formula, eq, ge, holds, negate
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.backends.z3_backend import Z3Problem
from anyshape.solver.theory import bounds
from anyshape.solver.theory.bounds import Consequences

BOX = box("abc", -2, 7)


def known(*texts: str) -> Consequences:
    return Consequences(map(parse_formula, texts))


@pytest.mark.parametrize("given, asked, answer", [
    # intervals and products of positive sizes
    ("b >= 1 and t >= 1", "b*t >= 1", True),
    ("b >= 1 and t >= 1", "b*t >= b", True),
    ("b >= 1 and t >= 1", "b*t + 3 == 2", False),
    ("b >= 1 and t >= 1 and c >= 1", "b*t*c < t", False),
    ("h >= 64", "h//2 - 3 >= 1", True),
    ("h >= 64 and h <= 70", "h//8 == 8", True),
    ("b >= 0", "b >= 1", None),
    # congruences
    ("h % 32 == 0", "h % 8 == 0", True),
    ("h % 32 == 0", "2*((h//2)//2) == h//2", True),
    ("h % 32 == 5", "h % 4 == 1", True),
    ("h % 32 == 5", "h % 2 == 0", False),
    ("h % 4 == 0 and w % 6 == 0", "(h + w) % 2 == 0", True),
    ("h % 4 == 0", "(h*w) % 4 == 0", True),
    ("h % 2 == 0", "h % 4 == 0", None),
    # equations
    ("a == b", "a*c == b*c", True),
    ("a == 2*b and b == 3*c", "a % 6 == 0", True),
    ("a + b == 32 and b >= 1", "a <= 31", True),
    ("a == b and b == 7", "a*c == 7*c", True),
    ("a*b == a*c and a >= 1", "b == c", True),
    ("a == b + 1", "a == b", False),
    # facts as they stand, and one relation added
    ("a < b and b <= 64", "a < 64", True),
    ("a < b", "b <= a", False),
    ("a < b", "a != b", True),
    ("h*w % 4 == 0", "h*w % 4 != 0", False),
    ("a == b or a == 1 or b == 1", "a == b or a == 1 or b == 1", True),
    # a multiple of a relation
    ("a >= 1 and b >= 0 and b <= a//4 - 1", "a - 4*b >= 4", True),
    ("a >= 1 and b >= 0 and b <= a//4 - 1", "a - 4*b >= 5", None),
    ("a >= 1 and b >= 0 and b <= (a + 3)//4 - 1", "a - 4*b >= 1", True),
    ("2*a <= b and b <= 20 - 6*c", "3*c + a <= 10", None),
    ("b <= 20 - 2*c", "3*b + 6*c <= 60", True),
    # a disjunction of which one part is left
    ("(a == b or a == 1 or b == 1) and a >= 2 and b >= 2", "a == b", True),
    # one symbol: exact
    ("b >= 2", "b // 4 == 0 or b >= 4", True),
    ("b*b <= 100 and b >= 1", "b <= 10", True),
    ("b*b <= 100", "b <= 9", None),
    ("(b - 1)//256 >= 1", "b >= 257", True),
    ("b != 7 and b >= 7", "b >= 8", True),
    # nothing satisfies what is given
    ("b >= 3 and b <= 2", "b == 100", True),
    # a division by what may be zero is left alone
    ("a >= 0", "a // b >= 0", None),
    ("a >= 0 and b >= 1", "a // b >= 0", True),
])
def test_what_the_fast_path_sees(given: str, asked: str, answer: bool | None) -> None:
    assert known(given).ask(parse_formula(asked)) is answer


def test_names_of_our_own_are_left_alone() -> None:
    """A user's symbol that is called as one of ours must not be mistaken for it."""
    name = bounds.SHIFTED + "h"
    assert known("h >= 5").ask(ge(sym(name), 0)) is None
    assert known("h >= 5", f"{name} <= -1").ask(ge(sym("h"), 5)) is True


def contradiction(given: Sequence[Formula], asked: Formula, points: Sequence[Mapping[str, int]]) -> str:
    """How the fast path contradicts brute force over the points, or nothing."""
    knowledge = Consequences(given)
    fitting = [*where(given, points)]
    if knowledge.contradictory:
        return f"satisfiable at {fitting[0]}" if fitting else ""
    answer = knowledge.ask(asked)
    wrong = [p for p in fitting if answer is not None and holds(asked, p) != answer]
    return f"{asked} is not always {answer}: {wrong[0]}" if wrong else ""


@given(st.lists(formulas(), max_size=3), formulas())
@settings(max_examples=300, deadline=None)
def test_it_never_contradicts_brute_force(given: list[Formula], asked: Formula) -> None:
    assert not contradiction(given, asked, BOX)


def contradicts_z3(given: Sequence[Formula], asked: Formula) -> bool:
    knowledge = Consequences(given)
    answer = knowledge.ask(asked)
    problem = Z3Problem(units=200_000)
    if knowledge.contradictory:
        return problem.check(given) == "sat"
    if answer is None:
        return False
    return problem.check([*given, negate(asked) if answer else asked]) == "sat"


@given(st.lists(formulas(), max_size=3), formulas())
@settings(max_examples=100, deadline=None)
def test_it_never_contradicts_z3(given: list[Formula], asked: Formula) -> None:
    assert not contradicts_z3(given, asked)


def careless(op: str, low: float, high: float) -> bool | None:
    return True if op == ">=" and low >= -1 else RIGHT(op, low, high)


RIGHT = bounds._judge


def test_both_judges_catch_a_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_judge", careless)
    a, b = sym("a"), sym("b")
    given = [ge(a, 0), ge(b, -1)]
    assert contradiction(given, ge(a + b, 0), box("ab", -2, 2))
    assert contradicts_z3(given, ge(a + b, 0))


# --- when time is up


def test_in_a_hurry_it_says_nothing_new() -> None:
    late = False
    knowledge = Consequences([parse_formula("a < b and b <= 64")], lambda: late)
    assert knowledge.ask(parse_formula("a < 64")) is True
    late = True
    assert knowledge.ask(parse_formula("a < 64")) is True, "an answer that it has given stands"
    assert knowledge.ask(parse_formula("a < 65")) is None
    assert knowledge.copy().ask(parse_formula("a < 65")) is None
    knowledge.learn(parse_formula("c >= 3"))
    assert parse_formula("b >= a") == knowledge.shorten(parse_formula("b >= a"))
    late = False
    assert knowledge.ask(parse_formula("a < 65")) is True
    assert knowledge.ask(parse_formula("c >= 2")) is None


def test_relations_are_added_no_longer_than_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that starts in time ends soon after."""
    ticks = 0

    def added(dim: Dim, replacements: Mapping[str, Dim]) -> Dim:
        nonlocal ticks
        ticks += 1
        return substitute(dim, replacements)

    knowledge = Consequences(
        [parse_formula(f"{n}*a*b + c <= {n}*d*e + {n*n}") for n in range(1, 30)], lambda: ticks >= 5
    )
    monkeypatch.setattr(bounds, "_substituted", added)
    assert knowledge.ask(parse_formula("a*d >= c")) is None
    assert 5 <= ticks < 10


def test_most_formulas_cost_a_few_calls() -> None:
    """The cost is counted in calls of Python functions, which no busy machine changes."""
    given = [parse_formula(t) for t in ("1 <= b <= 64", "t >= 1", "h % 32 == 0", "h >= 64", "w == h")]
    b, t, h, w = map(sym, "bthw")
    knowledge = Consequences(given)
    asked = [ge(b * t * n + h // (1 + n % 7), n % 3) for n in range(1500)]
    asked += [eq(w // 2**n * c, h // 2**n * c) for n in range(6) for c in range(2, 100)]
    calls = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counted)
    try:
        answers = [knowledge.ask(f) for f in asked]
    finally:
        sys.setprofile(None)
    assert all(answers) and calls < 200 * len(asked), calls / len(asked)
