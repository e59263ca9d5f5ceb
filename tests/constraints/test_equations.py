"""Rewriting by what is known to be equal keeps the value wherever the equations hold."""

from __future__ import annotations

from itertools import product

import pytest

from anyshape.constraints.terms.dims import Dim, evaluate, sym
from anyshape.constraints.terms.equations import Equations
from anyshape.constraints.terms.formula import Formula, divides, eq, free_symbols, ge, holds, le

b, h, w = sym("b"), sym("h"), sym("w")


@pytest.mark.parametrize(
    "learnt, dim, simpler",
    [
        ((divides(8, h),), 8 * (h // 8), h),
        # padded to windows of 7 where nothing has to be padded: the windows' sizes add up to the image's
        ((le((-h) % 7, 0),), h + (-h) % 7, h),
        ((le((-h) % 7, 0),), 7 * ((h + 6) // 7), h),
        ((le((-((h - 1) // 8) - 1) % 7, 0),), 7 * ((h - 1) // 56) + 7, (h - 1) // 8 + 1),
        (
            (eq((h // 2) * (w // 2), 16 * (h // 8) * (w // 8)),),
            (16 * b * (h // 8) * (w // 8)) // ((h // 2) * (w // 2)),
            b,
        ),
    ],
)
def test_simpler(learnt: tuple[Formula, ...], dim: Dim, simpler: Dim) -> None:
    equations = Equations()
    for formula in learnt:
        equations.learn(formula)
    found = equations.simplify(dim)
    assert found == simpler
    assert isinstance(found, int) or found.modular == ("%" in str(found))
    for values in product(range(2, 120), (2, 8, 16)):
        at = dict(zip(("h", "w"), values, strict=True)) | {"b": 3}
        if all(holds(formula, at) for formula in learnt):
            assert evaluate(dim, at) == evaluate(simpler, at)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_bounds_of_a_remainder(k: int) -> None:
    """At most 0 is 0, and at least 1 is not 0."""
    for formula, truth in (
        (le(h % k, 0), lambda r: r <= 0),
        (ge(h % k, 1), lambda r: r >= 1),
        (ge(h % k, 0), lambda r: True),
    ):
        for value in range(-20, 20):
            assert holds(formula, {"h": value}) == truth(value % k)
    assert le(h % 7, 0) == eq(h % 7, 0)
    assert free_symbols(ge(h % k, 0)) <= {"h"}
