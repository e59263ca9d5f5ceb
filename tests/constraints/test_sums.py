"""Sums over an index, held to adding up the values."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.constraints.terms.dims import Dim, evaluate, maximum, minimum, substitute, sym, symbols
from anyshape.constraints.terms.sums import summed

K, M, N = sym("i"), sym("m"), sym("n")
small = st.integers(-4, 4)
linear = st.builds(lambda a, b, c, d: a * K + b * M + c * N + d, small, small, small, small)
bent = st.builds(lambda a, b, kind, c: {"min": minimum(a, b), "max": maximum(a, b)}[kind] + c,
                 linear, linear, st.sampled_from(["min", "max"]), linear)  # fmt: skip
fixed = st.builds(lambda b, c: b * M + c, small, small)
clamped = st.builds(lambda a, low, high, c: minimum(maximum(a, low), high) + c, linear, fixed, fixed, linear)
raised = st.builds(lambda a, low, high, c: maximum(minimum(a, high), low) - c, linear, fixed, fixed, linear)
dims = st.one_of(linear, bent, clamped, raised, st.builds(lambda a, b, c: a - c * b, bent, bent, small))


@settings(max_examples=300, deadline=None)
@given(dims, st.sampled_from([N, 3, 0, M + 2]))
def test_against_adding_up(dim: Dim, n: Dim) -> None:
    found = summed(dim, "i", n)
    if found is None:
        return
    assert "i" not in symbols(found)
    for m, size in itertools.product(range(-2, 5), range(4)):
        values = {"m": m, "n": size}
        count = evaluate(n, values)
        each = (evaluate(substitute(dim, {"i": k}), values) for k in range(count))
        assert count < 0 or evaluate(found, values) == sum(each), (str(found), values)


def test_what_is_known() -> None:
    assert summed(minimum(3, N - K), "i", N) is not None
    assert summed(maximum(M - 2 * K, 0) - minimum(K, 5), "i", N) is not None
    assert summed(maximum(M * K, 5), "i", N) is None
    assert summed(maximum(minimum(M - K, 3), 0), "i", N) is not None
    assert summed(maximum(minimum(M - K, N), 0) - 1, "i", N) is not None
    assert summed(maximum(minimum(M - K, 2 * K), 0), "i", N) is None
    assert summed(K // 2, "i", N) is None
    assert summed(M * minimum(K, 5), "i", N) is None
