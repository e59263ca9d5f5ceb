"""Random dims and formulas for hypothesis, and brute force over boxes as their judge."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from hypothesis import strategies as st

from anyshape.constraints.terms.dims import Dim, exponential, maximum, minimum, square_root, sym
from anyshape.constraints.terms.formula import Formula, all_of, any_of, eq, ge, holds, lt, ne
from anyshape.constraints.terms.formula_text import defined

COMPARISONS = (eq, ne, ge, lt)


def dims(names: str = "abc", symbolic: bool = True, depth: int = 3) -> st.SearchStrategy[Dim]:
    """Dims over the names; with divisors that are symbols, if `symbolic`."""
    divisors = st.integers(1, 6)
    symbol = st.sampled_from([sym(n) for n in names])
    leaf: st.SearchStrategy[Dim] = st.one_of(symbol, symbol, st.integers(-9, 12))

    def grown(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
        either = st.one_of(divisors, symbol) if symbolic else divisors
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a - b, inner, inner),
            st.builds(lambda a, k: a * k, inner, st.integers(-4, 4)),
            st.builds(lambda a, b: a * b, inner, symbol),
            st.builds(lambda a, k: a // k, inner, either),
            st.builds(lambda a, k: a % k, inner, either),
            st.builds(minimum, inner, inner),
            st.builds(maximum, inner, inner),
            st.builds(square_root, inner),
            st.builds(exponential, st.integers(2, 3), inner),
        )

    return st.recursive(leaf, grown, max_leaves=depth)


def formulas(names: str = "abc", symbolic: bool = True, depth: int = 3) -> st.SearchStrategy[Formula]:
    """Formulas over the names, in which no division by zero is left unguarded."""
    dim = dims(names, symbolic, depth)

    def compared(compare: int, a: Dim, b: Dim) -> Formula:
        return all_of((defined(a), defined(b), COMPARISONS[compare](a, b)))

    leaf = st.builds(compared, st.integers(0, 3), dim, dim)
    return st.recursive(
        leaf,
        lambda inner: st.builds(
            lambda join, parts: join(parts),
            st.sampled_from([all_of, any_of]),
            st.lists(inner, min_size=2, max_size=3),
        ),
        max_leaves=3,
    )


def box(names: str, low: int, high: int) -> list[dict[str, int]]:
    """All assignments of numbers from low to high."""
    return [dict(zip(names, v, strict=True)) for v in product(range(low, high + 1), repeat=len(names))]


def true_at(formulas: Iterable[Formula], values: Mapping[str, int]) -> bool:
    return all(holds(f, values) for f in formulas)


def where(formulas: Iterable[Formula], points: Iterable[Mapping[str, int]]) -> Iterator[Mapping[str, int]]:
    """The points at which all formulas hold."""
    kept = tuple(formulas)
    return (p for p in points if true_at(kept, p))
