"""Steps that take their time before z3 is asked: against brute force, and against z3 itself; each is shown to
be caught when it is wrong.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, formulas, where

from anyshape.constraints.terms.dims import Dim, Symbol, Term, evaluate, maximum, minimum, sym
from anyshape.constraints.terms.formula import Formula, any_of, eq, free_symbols, ge, holds, le, ne, negate
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.backends.z3_backend import Z3Problem
from anyshape.solver.tactics import cases, coordinates, corners
from anyshape.solver.tactics.judge import Component, Judge
from anyshape.solver.theory import bounds
from anyshape.solver.theory.bounds import Consequences

BOX = box("abc", -2, 7)
SIZES = box("abc", 1, 9)
POSITIVE = [ge(sym(n), 1) for n in "abc"]


def parsed(*texts: str) -> list[Formula]:
    return [parse_formula(text) for text in texts]


def settled(*texts: str) -> Consequences:
    return Judge().settled(parsed(*texts))


# --- random questions about sizes: thresholds, products, quotients, what broadcasts


def sizes() -> st.SearchStrategy[Dim]:
    """A symbol, or half of it as a stride leaves it."""
    plain = st.sampled_from([sym(n) for n in "abc"])
    return plain | plain | plain.map(lambda s: (s + 1) // 2) | plain.map(lambda s: (s - 1) // 4 + 1)


def products() -> st.SearchStrategy[Dim]:
    return st.builds(lambda p, q, k: p * q * k, sizes(), sizes(), st.integers(1, 5)) | sizes()


def about_sizes() -> st.SearchStrategy[Formula]:
    compared = st.builds(lambda f, p, q: f(p, q), st.sampled_from([le, ge, eq, ne]), products(), products())
    number = st.integers(1, 40)
    bounded = st.builds(lambda f, p, n: f(p, n), st.sampled_from([le, ge, eq, ne]), products(), number)
    together = st.builds(lambda p, q: any_of((eq(p, q), eq(p, 1), eq(q, 1))), products(), products())
    whole = st.builds(
        lambda p, q, r: eq(maximum(p, q) * minimum(p, q, 1), r), products(), products(), products()
    )
    divided = st.builds(lambda p, s: eq(p % s, 0), products(), sizes())
    return st.one_of(compared, bounded, together, whole, divided)


def wrong(given: Sequence[Formula], points: Sequence[Mapping[str, int]]) -> str:
    """What thorough thought says of a conjunction that is not so at one of the points where it holds."""
    known = Judge().settled(given)
    for point in where(given, points):
        if known.contradictory:
            return f"it is satisfied at {point}"
        for fact in known.facts:
            if not holds(fact, point):
                return f"{fact} does not hold at {point}"
        for name, value in known.equal.items():
            if name in point and point[name] != evaluate(value, point):
                return f"{name} is not {value} at {point}"
    return ""


@given(st.lists(about_sizes(), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_what_it_makes_of_sizes_holds(given: list[Formula]) -> None:
    assert not wrong([*POSITIVE, *given], SIZES)


@given(st.lists(formulas(), min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_what_it_makes_of_any_formulas_holds(given: list[Formula]) -> None:
    assert not wrong(given, BOX)


def misjudged(given: Sequence[Formula], points: Sequence[Mapping[str, int]]) -> str:
    """How a judge's answer on a conjunction contradicts brute force, its own example, or z3."""
    judge = Judge()
    answer = judge.satisfiable(given, "abc")
    if answer == "sat":
        return "" if all(holds(f, judge.model) for f in given) else f"{judge.model} is no example"
    if answer == "unsat":
        at = next(iter(where(given, points)), None)
        if at is not None:
            return f"it is satisfied at {at}"
        return "z3 finds an example" if Z3Problem(units=200_000).check(given) == "sat" else ""
    return ""


@given(st.lists(about_sizes(), min_size=2, max_size=6))
@settings(max_examples=150, deadline=None)
def test_questions_about_sizes_are_judged_right(given: list[Formula]) -> None:
    assert not misjudged([*POSITIVE, *given], SIZES)


# --- what it has to see


@pytest.mark.parametrize("given, said", [
    # two tensors broadcast, and the result has to be as large as one of them
    ("b*f == c*f or c*f == 1 or b*f == 1; b*f*h*w == max(b*f, c*f)*max(b*h*w//c, h*w)*min(b*h*w//c, h*w, 1)"
     "; h*w % c == 0", "b == c"),
    # factors of a product, and two bounds that meet
    ("b*h <= 12; h >= 4", "b <= 3"),
    ("b*h == 1", "b == 1 and h == 1"),
    ("b*h >= 16; b*h <= 16; h % 2 == 1", "b == 16"),
    # corners, and what is common to all products
    ("h % 2 == 0; w % 2 == 1; 1001*((w + 1)//2)*h <= 1002*((h + 1)//2)*w", "w >= 1000"),
    ("h % 2 == 0; ((h + 1)//2)*w >= 5*h", "w >= 10"),
    # quotients as sums, and multiples of what is divided
    ("h*w == c*max(h*w//c, h*w)*min(h*w//c, 1); h*w % c == 0", "c == 1"),
    ("b*h % c == 0; 4*b*h % c == w % c", "w % c == 0"),
])
def test_what_it_sees(given: str, said: str) -> None:
    sizes = [f"{n} >= 1" for n in "bfhwc"]
    assert Judge().settled(parsed(*sizes, *given.split("; "))).ask(parse_formula(said)) is True


@pytest.mark.parametrize("given", [
    "h % 2 == 0; w % 2 == 1; 1001*((w + 1)//2)*h <= 1002*((h + 1)//2)*w; h*w <= 1000",
    "b*h*w == 134217728; h % 2 == 1; h >= 2",
    "h % 2 == 0; ((h + 1)//2)*w != ((w + 1)//2)*h; w % 2 == 0",
    "b*h % c == 0; 4*b*h % c != 0",
])
def test_what_it_refutes(given: str) -> None:
    assert settled(*[f"{n} >= 1" for n in "bhwc"], *given.split("; ")).contradictory


def test_a_question_is_split_where_a_comparison_decides_many_disjunctions() -> None:
    """Without that, each disjunction would be looked at for itself."""
    even = [f"h % 2 == 0 or {n}*b*w % c == 0" for n in (1, 2, 3)]
    odd = [f"h % 2 != 0 or {n}*b*w*w == {n}*w*w*c" for n in (1, 2, 3)]
    odd[1] = odd[1].replace("==", ">=")
    odd[2] = odd[2].replace("==", "<=")
    given = parsed("b >= 1", "w >= 1", "c >= 1", *even, *odd, "6*b*w*w % c != 0", "b != c")
    assert cases.deciding(given) in parsed("h % 2 == 0", "h % 2 != 0")
    judge = Judge()
    assert judge._split(Component(tuple(given), splits=2)) == ("unsat", {})
    answer = judge._split(Component(tuple(given[:-2]), splits=2))
    assert answer is not None
    found, model = answer
    assert found == "sat"
    assert all(holds(f, model) for f in given[:-2])


# --- corners


ATOMS = [Symbol(n) for n in "abc"]


@st.composite
def boxed(draw: st.DrawFn) -> tuple[Term, dict[Any, tuple[int, int]]]:
    """A term without squares, and an interval for each of its factors."""
    monos = [(), *((a,) for a in ATOMS), tuple(ATOMS[:2]), tuple(ATOMS[1:]), tuple(ATOMS)]
    numbers = draw(st.lists(st.integers(-9, 9), min_size=len(monos), max_size=len(monos)))
    found: Dim = sum(
        (c * Term(((m, 1),), False) if m else c for m, c in zip(monos, numbers, strict=True)), start=sym("a")
    ) - sym("a")
    lows = draw(st.lists(st.integers(-4, 4), min_size=3, max_size=3))
    widths = draw(st.lists(st.integers(0, 4), min_size=3, max_size=3))
    return found, {a: (low, low + n) for a, low, n in zip(ATOMS, lows, widths, strict=True)}


def greatest_by_trying(term: Dim, within: Mapping[Any, tuple[int, int]]) -> int:
    places = product(*(range(low, high + 1) for low, high in within.values()))
    return max(evaluate(term, dict(zip("abc", place, strict=True))) for place in places)


@given(boxed())
@settings(max_examples=300, deadline=None)
def test_the_greatest_value_is_exact(case: tuple[Term, dict[Any, tuple[int, int]]]) -> None:
    term, within = case
    assert corners.greatest(term, within) == greatest_by_trying(term, within)


@given(boxed())
@settings(max_examples=200, deadline=None)
def test_without_an_end_the_greatest_value_is_no_less(case: tuple[Term, dict[Any, tuple[int, int]]]) -> None:
    term, within = case
    endless = {a: (low, inf) for a, (low, _) in within.items()}
    far = {a: (low, low + 9) for a, (low, _) in within.items()}
    assert corners.greatest(term, endless) >= greatest_by_trying(term, far)


@given(st.integers(-3, 3), st.integers(0, 60), st.integers(-5, 80))
def test_bounds_move_up_to_what_is_not_refused(low: int, width: int, first: int) -> None:
    high = low + width
    assert corners._least(low, high, lambda a, b: b < first) == (low if first > high else max(low, first))
    assert corners._most(low, high, lambda a, b: a > first) == (high if first < low else min(high, first))


# --- one symbol at a time


@pytest.mark.parametrize("given", [
    "b*h*w >= 2147483649; h % 2 == 0; w % 2 == 1; b <= 63",
    "h % 2 == 0; ((h + 1)//2)*w != ((w + 1)//2)*h"
    "; 2251799813685247*((w + 1)//2)*h <= 2251799813685249*((h + 1)//2)*w",
    "b*((h + 1)//2)*w == 134217728; b >= 64; h % 2 == 1",
])
def test_an_example_is_found_however_great(given: str) -> None:
    asked = parsed(*[f"{n} >= 1" for n in "bhw"], *given.split("; "))
    found = coordinates.find(Judge().settled(asked), asked)
    assert found is not None
    assert all(holds(f, found) for f in asked)


@given(st.lists(about_sizes(), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_an_example_is_one(given: list[Formula]) -> None:
    asked = [*POSITIVE, *given]
    known = Judge().settled(asked)
    found = None if known.contradictory else coordinates.find(known, asked)
    if found is not None:
        assert frozenset(found) >= frozenset().union(*map(free_symbols, asked))
        assert all(holds(f, found) for f in asked)


def merged(levels: int, size: Dim) -> Dim:
    """A batch of windows put together, cut anew and put together, as vision models with windows do."""
    a, b = sym("a"), sym("b")
    for _ in range(levels):
        size = (16 * (a // 4) * (b // 4) * size) // ((a + 1) * (b + 1))
    return size


def replaced(monkeypatch: pytest.MonkeyPatch, levels: int) -> int:
    """How many quotients are replaced to tell whether merged sizes differ."""
    count = 0
    unfloored = Consequences._unfloored

    def counted(self: Consequences, term: Dim) -> Dim | None:
        nonlocal count
        count += 1
        return unfloored(self, term)

    known = Consequences([ge(sym(n), 4) for n in "abcd"], thorough=True)
    with monkeypatch.context() as patched:
        patched.setattr(Consequences, "_unfloored", counted)
        assert known.ask(ne(merged(levels, sym("c")), merged(levels, sym("d")))) is None
    return count


def quotients() -> st.SearchStrategy[Dim]:
    """Quotients of products of quotients."""
    def deeper(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
        return st.builds(lambda p, q, r, k: (k * p * q) // r, inner, sizes(), divisors, st.integers(1, 6))

    positive = st.sampled_from("abc").map(sym)
    divisors = st.one_of(positive, positive.map(lambda s: s + 1), positive.map(lambda s: s * s))
    return deeper(deeper(sizes()) | sizes()) | deeper(deeper(deeper(sizes())))


def missaid(given: Sequence[Formula], asked: Formula) -> str:
    """What is said of a formula that is not so at one of the points where others hold."""
    said = Judge().settled(given).ask(asked)
    points = where(given, SIZES) if said is not None else ()
    return next((f"{asked} is {not said} at {point}" for point in points if holds(asked, point) != said), "")


@given(
    st.lists(about_sizes(), max_size=2), st.sampled_from([le, ge, eq, ne]), quotients(), quotients() | sizes()
)
@settings(max_examples=150, deadline=None)
def test_what_it_says_of_nested_quotients_is_so(
    given: list[Formula], compared: Callable[[Dim, Dim], Formula], one: Dim, other: Dim
) -> None:
    assert not missaid([*POSITIVE, *given], compared(one, other))


def test_nested_quotients_are_replaced_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of them, so that deeper nesting is no more to look at."""
    assert 2 < replaced(monkeypatch, 6) == replaced(monkeypatch, 12) < 20


# --- wrong variants are caught


def one_too_few(self: Consequences, part: Formula) -> list[Formula]:
    found = RIGHT_FACTORS(self, part)
    return [ge(f.term - 1, 0) if i % 2 == 0 else f for i, f in enumerate(found)]  # type: ignore[union-attr]


def first_part(known: Consequences, formula: Any) -> Formula:
    return formula.parts[0]  # type: ignore[no-any-return]


def without_slope(term: Dim, within: Any) -> float:
    return RIGHT_GREATEST(term, {a: (low, low) for a, (low, _) in within.items()})


def other_way_round(self: Consequences, term: Term, atom: Any) -> Dim | None:
    found = RIGHT_UNFLOORED(self, term, atom)
    return None if found is None else found + 1000


def first_argument(self: Consequences, atom: Any) -> Dim:
    return atom.args[0]  # type: ignore[no-any-return]


def any_multiple(self: Consequences, k: Dim) -> list[Dim]:
    return [sym("a")]


def no_remainder(known: Consequences, term: Dim) -> bool:
    return True


def one_rest(known: Consequences, term: Term) -> Dim | None:
    found = RIGHT_FACTOR(known, term)
    return None if found is None else found - 3


RIGHT_FACTORS = Consequences._of_factors
RIGHT_UNFLOORED = Consequences._unfloored_at
RIGHT_GREATEST = corners.greatest
RIGHT_FACTOR = corners._without_factor


@pytest.mark.parametrize("where_it_is, name, variant, given", [
    (Consequences, "_of_factors", one_too_few, "a >= 2; a*b <= 6"),
    (cases, "_common", first_part, "a == b or a == 1 or b == 1"),
    (corners, "greatest", without_slope, "b*c + a*c >= 9"),
    (Consequences, "_unfloored_at", other_way_round, "b <= 3; c <= 3; max(a//b, c)*b == a + 1"),
    (Consequences, "_least_arguments", first_argument, "max(a, b)*c == a*b"),
    (Consequences, "_divided_by", any_multiple, "(a + b) % c == 0"),
    (corners, "_negative", no_remainder, "a*b >= c"),
    (corners, "_without_factor", one_rest, "a*c + c >= 2*a + 2"),
    (bounds, "_divisors", lambda number: (1, 2), "a*b == 12"),
])
def test_a_wrong_step_is_caught(
    monkeypatch: pytest.MonkeyPatch, where_it_is: object, name: str, variant: Callable[..., Any], given: str
) -> None:
    asked = [*POSITIVE, *parsed(*given.split("; "))]
    assert not wrong(asked, SIZES)
    monkeypatch.setattr(where_it_is, name, variant)
    assert wrong(asked, SIZES)


def test_a_wrong_bound_of_nested_quotients_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = parsed("c <= 3", "(((a*b)//(c + 1))*b)//c >= c")
    assert not missaid([*POSITIVE, known], asked)
    monkeypatch.setattr(Consequences, "_unfloored_at", other_way_round)
    assert missaid([*POSITIVE, known], asked)


def test_a_negation_is_told_from_its_formula() -> None:
    """What a split hands to both sides."""
    p, q = parsed("a >= 3", "b >= 8")
    assert cases.under(p, any_of((p, q))) is True
    assert cases.under(negate(p), any_of((p, q))) == q
    assert cases.under(p, q) == q
