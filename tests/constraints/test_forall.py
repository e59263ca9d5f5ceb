"""Eliminating an index, held to trying every value of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.constraints.terms.dims import Dim, maximum, minimum, sym
from anyshape.constraints.terms.forall import for_all
from anyshape.constraints.terms.formula import (
    Formula,
    all_of,
    any_of,
    compare,
    eq,
    free_symbols,
    ge,
    holds,
    ne,
)

K, M, N = sym("i"), sym("m"), sym("n")
BOX = [{"m": m, "n": n} for m in range(-2, 4) for n in range(-2, 4)]

small = st.integers(-4, 4)
free = st.builds(lambda a, b, c: a * M + b * N + c, small, small, small)
affine = st.builds(lambda a, c: a * K + c, st.one_of(small, free), free)
bent = st.builds(
    lambda a, b, kind, c: {"min": minimum(a, b), "max": maximum(a, b), "//": (a + b) // 2, "+": a}[kind] + c,
    affine, affine, st.sampled_from(["min", "max", "//", "+"]), st.one_of(small, affine),
)
atoms = st.builds(compare, st.sampled_from(["==", "!=", ">="]), st.one_of(affine, bent))
formulas = st.recursive(
    atoms,
    lambda inner: st.builds(lambda join, parts: join(parts), st.sampled_from([all_of, any_of]),
                            st.lists(inner, min_size=1, max_size=3)),
    max_leaves=5,
)


def by_trying(formula: Formula, values: dict[str, int], low: int, high: int) -> bool:
    return all(holds(formula, {**values, "i": i}) for i in range(low, high + 1))


@settings(max_examples=200, deadline=None)
@given(formulas, st.integers(-2, 2), free)
def test_against_every_value(formula: Formula, low: int, high: Dim) -> None:
    found = for_all(formula, "i", low, high)
    if found is None:
        return
    assert "i" not in free_symbols(found)
    for values in BOX:
        top = high if isinstance(high, int) else sum(
            c * (values[mono[0].text] if mono else 1) for mono, c in high.terms)
        if top >= low:
            assert holds(found, values) == by_trying(formula, values, low, top), (str(found), values, top)


def test_what_cannot_be_eliminated() -> None:
    for formula in (
        eq(K % 2, 0), ge(M // K, 2), ge(K * K, M), ge(minimum(K, M - K), N), ge(M * K + minimum(K, N), 0),
        ge(K - K // 2, M), ne(M * K, N), ne(minimum(K, M), N), any_of((ge(K, M), ge(N, K))),
    ):
        assert for_all(formula, "i", 0, N) is None, str(formula)


def test_the_usual() -> None:
    """`0 <= i < m` for i in 0..n-1 is n <= m, and a part of an *or* without i stays as it is."""
    assert for_all(ge(M, K + 1), "i", 0, N - 1) == all_of((ge(M, 1), ge(M, N)))
    assert for_all(any_of((eq(M, 1), ge(M, K + 1))), "i", 0, N - 1) == any_of(
        (eq(M, 1), all_of((ge(M, 1), ge(M, N)))))
