"""Names for repeated parts shorten a text, and the formula with the terms in their place is the same."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from random_formulas import formulas

from anyshape.constraints.terms.formula import Formula, free_symbols, holds, rewrite
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.naming import named, named_text

TEXTS = {
    "b*ceil(h/32)*ceil(w/32) != 1 and ceil(h/32)*ceil(w/32) <= 49 and 2 <= ceil(h/32)": (
        "H*W*b != 1 and H*W <= 49 and 2 <= H, where H = ceil(h/32) and W = ceil(w/32)"
    ),
    "max(n//2, 3)*5 == m or max(n//2, 3)*6 == m*m or max(n//2, 3) == m*k": (
        "5*N == m or m**2 == 6*N or k*m == N, where N = max(n//2, 3)"
    ),
    "(H//100 + 1)*(H//100 + 2) == H//100*k and H//100*m == 3*m - H//100": (
        "A**2 + 3*A + 2 == A*k and A*m + A == 3*m, where A = H//100"
    ),
    "h % 8 == 0 and w % 8 == 0": "h % 8 == 0 and w % 8 == 0",
    "(h//4 - 1)*(w//4 - 1) == 256": "(h//4 - 1)*(w//4 - 1) == 256",
    "b*ceil(h/32)*ceil(w/32) != 1": "b*ceil(h/32)*ceil(w/32) != 1",
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text: str) -> None:
    assert named_text(parse_formula(text)) == TEXTS[text]


@given(formulas("abc", depth=6))
def test_the_terms_in_place_of_their_names_give_the_formula(formula: Formula) -> None:
    short, names = named(formula)
    assert free_symbols(short).isdisjoint(free_symbols(formula) & {*names})
    assert len(named_text(formula)) < len(f"{formula}, where")
    again = rewrite(short, names)
    for values in product((1, 2, 3, 5, 8), repeat=3):
        at = dict(zip("abc", values, strict=True))
        assert holds(again, at) == holds(formula, at)
