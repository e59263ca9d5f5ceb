"""What is known without a symbol, held to enumeration."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import Formula, all_of, eq, ge, holds, le, ne
from anyshape.constraints.terms.projection import forgetting

a, b, c = map(sym, "abc")


@pytest.mark.parametrize(
    ("parts", "names", "expected"),
    [
        ([le(a, b), le(b, 6)], {"b"}, le(a, 6)),
        ([le(a, b - 1), le(b, c), ge(a, 0)], {"b"}, all_of((ge(a, 0), le(a, c - 1)))),
        ([eq(a, 2 * b), le(b, 3)], {"b"}, le(a, 6)),
        ([ge(3 * b, a), le(2 * b, c)], {"b"}, le(2 * a, 3 * c)),
        ([le(a, b), le(b, c), le(c, 4)], {"b", "c"}, le(a, 4)),
        ([le(a, b), ne(b, 4)], {"b"}, True),
        ([le(a, b * b), le(b, 4)], {"b"}, True),
        ([le(a, b // 2), le(b, 4), le(a, 9)], {"b"}, le(a, 9)),
        ([le(a, 1)], {"b"}, le(a, 1)),
    ],
)
def test_forgetting(parts: list[Formula], names: set[str], expected: Formula) -> None:
    assert all_of(forgetting(parts, names)) == expected


numbers = st.integers(-3, 3)
linear = st.builds(lambda x, y, z, d: x * a + y * b + z * c + d, numbers, numbers, numbers, numbers)
parts = st.lists(st.builds(lambda make, t: make(t, 0), st.sampled_from([ge, le, eq, ne]), linear), max_size=5)


@given(parts, st.sampled_from([{"b"}, {"a", "c"}]))
def test_nothing_is_claimed_that_need_not_hold(parts: list[Formula], names: set[str]) -> None:
    left = all_of(forgetting(parts, names))
    for values in itertools.product(range(-3, 4), repeat=3):
        point = dict(zip("abc", values, strict=True))
        assert holds(left, point) or not holds(all_of(parts), point)
