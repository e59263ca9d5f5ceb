"""Questions about sizes that leave few residues: against brute force, and what models with windows ask."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, where

from anyshape.constraints.ir.system import Answer
from anyshape.constraints.terms.dims import Dim, sym
from anyshape.constraints.terms.formula import Formula, any_of, eq, ge, holds, le, ne
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.tactics.judge import UNKNOWN, Component, Judge
from anyshape.solver.theory import residues
from anyshape.solver.theory.bounds import Consequences

POINTS = box("ab", 1, 26)
POSITIVE = [ge(sym(n), 1) for n in "ab"]


def parsed(*texts: str) -> list[Formula]:
    return [parse_formula(text) for text in texts]


def leaving(name: str, modulus: int, *rest: int) -> Formula:
    return any_of(eq(sym(name) % modulus, r) for r in rest)


@st.composite
def restricted(draw: st.DrawFn) -> list[Formula]:
    """Two sizes, each of few residues, and what relates quotients, most by divisors of the modulus."""
    modulus = draw(st.sampled_from([2, 4, 6, 8]))
    divisors = [d for d in range(2, 9) if modulus % d == 0]
    rests = st.lists(st.integers(0, modulus - 1), min_size=1, max_size=3, unique=True)

    def quotient() -> Dim:
        size, c = sym(draw(st.sampled_from("ab"))), draw(st.integers(-1, 3))
        return (size + c) // draw(st.sampled_from([*divisors*4, 3])) + draw(st.integers(-1, 1))

    def related() -> Formula:
        one, other = quotient() * quotient(), quotient() * draw(st.integers(1, 4)) + draw(st.integers(-3, 3))
        return draw(st.sampled_from([eq, ne, le, ge]))(one, other)

    given = [leaving("a", modulus, *draw(rests)), leaving("b", modulus, *draw(rests)), related(), related()]
    return [*POSITIVE, *given]


def mistaken(given: Sequence[Formula]) -> str:
    """How the answer of the classes contradicts brute force."""
    answer, model = Judge()._by_classes(Component(tuple(given), splits=1)) or UNKNOWN
    if answer == "sat":
        return "" if all(holds(f, model) for f in given) else f"{model} is no example"
    at = next(iter(where(given, POINTS)), None) if answer == "unsat" else None
    return "" if at is None else f"it is satisfied at {at}"


@given(restricted())
@settings(max_examples=150, deadline=None)
def test_what_the_classes_say_is_so(given: list[Formula]) -> None:
    assert not mistaken(given)


@given(restricted())
@settings(max_examples=100, deadline=None)
def test_every_assignment_is_in_one_class(given: list[Formula]) -> None:
    found = residues.classes(Consequences(given), given)
    assert len(found) <= residues.CLASSES
    for point in where(given, POINTS) if found else ():
        inside = [sizes for sizes in found if all(holds(eq(dim, point[s]), {s: _times(dim, s, point[s])})
                                                  for s, dim in sizes.items())]
        assert len(inside) == 1


def _times(dim: Dim, name: str, value: int) -> int:
    """The k with m*k + r the nearest to a value from below."""
    return next(k for k in range(value, -2, -1) if holds(le(dim, value), {name: k}))


@pytest.mark.parametrize("variant", [
    lambda known, name: RIGHT(known, name)[1:],
    lambda known, name: [dim + 2 for dim in RIGHT(known, name)],
    lambda known, name: [2*dim for dim in RIGHT(known, name)],
])
def test_wrong_classes_are_caught(
    monkeypatch: pytest.MonkeyPatch, variant: Callable[[Consequences, str], list[Dim]]
) -> None:
    related = parsed("(a//4)*(b//4) == 1", "a*b == 16")
    given = [*POSITIVE, leaving("a", 4, 0, 1, 3), leaving("b", 4, 0, 1, 3), *related]
    assert not mistaken(given)
    monkeypatch.setattr(residues, "_residues", variant)
    assert mistaken(given)


RIGHT = residues._residues


WINDOWS = parsed(
    "1 <= b", "1 <= h", "1 <= w", "h % 64 == 0 or h % 64 == 63", "w % 64 == 0 or 61 <= w % 64 and w % 4 != 0"
)


@pytest.mark.parametrize("follows", [
    "4*((h + 3)//8)*((w + 3)//8) == max((h + 1)//4, (h - 1)//4 + 1)*max((w + 1)//4, (w + 3)//4)",
    "(4*((h + 7)//16)*((w + 7)//16)*b) % (((h - 1)//8 + 1)*((w - 1)//8 + 1)) == 0",
    "(4*((h + 31)//64)*((w + 31)//64)*b)//(((h - 1)//32 + 1)*((w - 1)//32 + 1)) == b",
])
def test_windows_that_are_cut_and_merged_are_those_that_were(follows: str) -> None:
    assert Judge().ask(*parsed(follows), WINDOWS) is Answer.ALWAYS


def test_many_classes_are_left_alone() -> None:
    given = [leaving("a", 32, *range(9)), leaving("b", 32, *range(9)), *parsed("(a//32)*(b//32) == 7")]
    found = residues.classes(Consequences(given), given)
    assert [len(sizes) for sizes in found] == [1] * 9
    assert prod([9, 9]) > residues.CLASSES
