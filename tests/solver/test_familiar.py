"""Examples are sizes that people pick, and satisfy what is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.tactics.examples import satisfies
from anyshape.solver.tactics.familiar import MOST_ELEMENTS, familiar

ROWS = {
    ("x: float32[b, 3, h, w]", "True"): {"b": 2, "h": 224, "w": 256},
    ("x: float32[b, 3, h, w]", "h == w"): {"b": 2, "h": 224, "w": 224},
    ("x: float32[b, 3, h, w]", "h == 224 and w == 224"): {"b": 2, "h": 224, "w": 224},
    ("x: float32[b, 3, h, w]", "h % 64 == 0 and w % 64 == 0"): {"b": 2, "h": 256, "w": 320},
    ("x: float32[b, 3, h, w]", "(h//4 - 1)*(w//4 - 1) == 16"): {"b": 2, "h": 20, "w": 20},
    ("x: float32[b, h, w, 3]", "True"): {"b": 2, "h": 224, "w": 256},
    ("x: float32[3, h, w]", "True"): {"h": 224, "w": 256},
    ("x: float32[b, c, t, h, w]", "True"): {"b": 2, "c": 16, "t": 32, "h": 24, "w": 16},
    ("ids: int64[b, t]", "True"): {"b": 2, "t": 16},
    ("ids: int64[b, t]; mask: bool[b, 1, t, t]", "True"): {"b": 2, "t": 16},
    ("x: float32[b, t, d]", "d % 12 == 0"): {"b": 2, "t": 6, "d": 12},
    ("x: float32[n]", "True"): {"n": 16},
    ("x: float32[b, t]", "b == 7 and t % 5 == 0"): {"b": 7, "t": 5},
    ("x: float32[b, t]; y: float32[b, t + 1]", "True"): {"b": 2, "t": 16},
}


@pytest.mark.parametrize(("spec", "condition"), ROWS)
def test_the_sizes_of_examples(spec: str, condition: str) -> None:
    asked = (parse_formula(condition),)
    read = parse_spec(spec)
    small = {"b": 7, "c": 2, "t": 5, "d": 12, "n": 3, "h": 20, "w": 20}
    values = {name: small[name] for name in read.domain.symbols}
    found = familiar(read, values, lambda sizes: satisfies(asked, sizes))
    assert found == ROWS[spec, condition]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(0, 8))
def test_what_is_found_is_allowed(h: int, w: int, divisor: int, rest: int) -> None:
    values = {"b": 3, "h": h, "w": w}
    asked = (parse_formula(f"(h + 2*w) % {divisor} == {(h + 2 * w) % divisor} and b != {rest or 2}"),)
    if satisfies(asked, values):
        found = familiar(parse_spec("x: [b, 64, h, w]"), values, lambda sizes: satisfies(asked, sizes))
        assert satisfies(asked, found) and found.keys() == values.keys()
        assert found == values or found["b"] * 64 * found["h"] * found["w"] <= MOST_ELEMENTS
