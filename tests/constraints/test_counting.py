"""Which numbers of a range fulfil a formula, against trying each."""

from __future__ import annotations

import pytest

from anyshape.constraints.terms.counting import chosen
from anyshape.constraints.terms.dims import evaluate, sym
from anyshape.constraints.terms.formula import Formula, eq, ge, holds, le, ne

K, N, B = sym("k"), sym("n"), sym("b")


@pytest.mark.parametrize("formula", [
    eq(K % 2, 0), eq(K % 3, 2), ne(K % 3, 1), eq((K + 1) % 4, 0), ge(K, 3), ge(K, B), le(K, 2), le(K, B - 1),
    ge(2 * B, K),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("first", [0, 1, 2])
def test_numbers_that_are_chosen(formula: Formula, first: int) -> None:
    found = chosen(formula, "k", first, N)
    assert found is not None
    for n in range(first, 9):
        for b in range(5):
            is_ = [k for k in range(first, n) if holds(formula, {"k": k, "b": b})]
            values = {"n": n, "b": b}
            assert evaluate(found.count, values) == len(is_)
            if found.at is not None:
                assert [evaluate(found.at(j), values) for j in range(len(is_))] == is_


@pytest.mark.parametrize("formula", [eq(K, 2), ge(K * K, 5), ge(2 * K, B), ge(K % 2, B)], ids=str)
def test_numbers_that_no_dim_says(formula: Formula) -> None:
    assert chosen(formula, "k", 0, N) is None
