"""Formulas read as Python reads them, and print as they are read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import And, Compare, Formula, Or, all_of, any_of, eq, ge, holds, ne
from anyshape.constraints.terms.formula_text import MOST_SHOWN, defined, parse_formula, stated
from anyshape.constraints.terms.syntax import DimSyntaxError, parse_dim

h, w, k = sym("h"), sym("w"), sym("k")

READ = {
    "h % 32 == 0": eq(h % 32, 0),
    "2 <= h <= 64": And((ge(h, 2), ge(64, h))),
    "h > 3": ge(h, 4),
    "h < 3": ge(2, h),
    "h != w": ne(h, w),
    "(h + 1)*2 == w": eq(2 * h + 2, w),
    "((h == 1))": eq(h, 1),
    "h == 1 or w == 1 and k == 1": Or((eq(h, 1), And((eq(w, 1), eq(k, 1))))),
    "(h == 1 or w == 1) and k == 1": And((Or((eq(h, 1), eq(w, 1))), eq(k, 1))),
    "not h == 1": ne(h, 1),
    "not not h == 1": eq(h, 1),
    "not (h == 1 or 2 <= w <= 3)": And((ne(h, 1), Or((ge(1, w), ge(w, 4))))),
    "not h == 1 and w == 1": And((ne(h, 1), eq(w, 1))),
    "True": True,
    "not True or h == 1": eq(h, 1),
    "h % k == 0": And((ne(k, 0), eq(h % k, 0))),
    "not h % k == 0": And((ne(k, 0), ne(h % k, 0))),
    "min(h, w) >= 2": Compare(">=", parse_dim("min(h, w) - 2")),
}

REFUSED = {  # text: column, part of the message
    "": (1, "expected a name"),
    "h": (2, "expected a comparison"),
    "h = 3": (3, "expected '=='"),
    "h == ": (6, "expected a name"),
    "(h == 1": (8, "expected ')'"),
    "h == 1 w": (8, "expected an operator or the end"),
    "h == 1 and": (11, "expected a name"),
    "h == 3.5": (6, "got '3.5'"),
    "(" * 500 + "h == 1" + ")" * 500: (81, "nesting"),
    "__import__('os') == 1": (11, "expected a comparison"),
}


@pytest.mark.parametrize("text", READ)
def test_reads(text: str) -> None:
    assert parse_formula(text) == READ[text]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_refuses(text: str) -> None:
    column, part = REFUSED[text]
    with pytest.raises(DimSyntaxError) as caught:
        parse_formula(text)
    assert caught.value.column == column
    assert part in caught.value.problem


def test_divisors_inside_divisors_are_guarded_first() -> None:
    inner = parse_dim("8 // k")
    assert defined(parse_dim("h % (8 // k)")) == And((ne(k, 0), ne(inner, 0)))
    assert defined(h // 4) is True
    assert holds(parse_formula("h % (8 // k) == 0"), {"h": 3, "k": 0}) is False


COMPARISONS = st.builds(
    lambda a, op, b: f"{a} {op} {b}",
    st.sampled_from(["h", "w", "3", "2*h - 1", "(h + w)", "h % 4", "(h//2)*w", "min(h, 3)"]),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(["w", "0", "h + 1", "w % 3", "-h", "5"]),
)
TEXTS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("not ({})".format, inner),
        st.builds("({}) and {}".format, inner, inner),
        st.builds("({}) or {}".format, inner, inner),
        st.builds("{0} < 5 or {1}".format, st.sampled_from(["h", "w"]), inner),
    ),
    max_leaves=6,
)


@given(TEXTS, st.integers(-4, 9), st.integers(-4, 9))
def test_means_what_python_means(text: str, h: int, w: int) -> None:
    values: dict[str, Any] = {"h": h, "w": w}
    assert holds(parse_formula(text), values) == eval(text, {"min": min}, values)


@given(TEXTS)
def test_prints_what_it_reads(text: str) -> None:
    formula = parse_formula(text)
    assert parse_formula(str(formula)) == formula


def test_junctions_of_nothing_print() -> None:
    formulas: list[Formula] = [all_of(()), any_of(())]
    assert [parse_formula(str(f)) for f in formulas] == formulas


def test_a_long_formula_is_left_out_of_a_text() -> None:
    long = all_of(ne(h, n) for n in range(2, 40))
    assert len(str(long)) > MOST_SHOWN
    assert stated(ge(h, 8), "where {}", "at some sizes") == "where 8 <= h"
    assert stated(long, "where {}", "at some sizes") == "at some sizes"
