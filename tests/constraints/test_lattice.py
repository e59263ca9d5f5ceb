"""The order of gradual types, against what the types stand for: sets of static types, written out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.constraints.ir.language import Dyn
from anyshape.constraints.ir.lattice import (
    Plain,
    Ranked,
    Rowed,
    Several,
    Type,
    greatest_lower,
    is_consistent,
    is_more_precise,
    is_static,
    join,
    least_upper,
    meet,
    rowed,
)
from anyshape.constraints.terms.dims import sym

DIMS = (2, 3)
RANKS = 7  # beyond the longest lead and trail together, so that every row has room to show itself
UNIVERSE: list[Type] = [
    Plain("int"),
    *(Ranked(dims) for rank in range(RANKS) for dims in product(DIMS, repeat=rank)),
]

dims = st.sampled_from([*DIMS, Dyn])
rows = st.lists(dims, max_size=3).map(tuple)
tensors = st.one_of(rows.map(Ranked), st.builds(rowed, rows, rows, st.integers(0, 4)))
types: st.SearchStrategy[Type] = st.one_of(st.just(Dyn), st.just(Plain("int")), tensors, tensors)


def stands_for(type: Type, static: Type) -> bool:
    """By the words of the definition, without the order that is tested."""
    match type, static:
        case Ranked(dims), Ranked(sizes):
            return len(dims) == len(sizes) and all(d in (Dyn, n) for d, n in zip(dims, sizes, strict=True))
        case Rowed(lead, trail, least), Ranked(sizes):
            first, last = sizes[: len(lead)], sizes[len(sizes) - len(trail) :]
            return len(sizes) >= least and all(
                d in (Dyn, n) for d, n in [*zip(lead, first, strict=True), *zip(trail, last, strict=True)]
            )
    return type is Dyn or type == static


def meaning(type: Type) -> frozenset[Type]:
    return frozenset(t for t in UNIVERSE if stands_for(type, t))


def precise_as_sets(order: Callable[[Type, Type], bool], a: Type, b: Type) -> None:
    assert order(a, b) == (meaning(a) <= meaning(b)), (a, b)


@given(types, types)
@settings(max_examples=400)
def test_precision_is_inclusion(a: Type, b: Type) -> None:
    precise_as_sets(is_more_precise, a, b)


@given(types, types)
@settings(max_examples=400)
def test_consistency_is_a_common_member_and_symmetric(a: Type, b: Type) -> None:
    assert is_consistent(a, b) == bool(meaning(a) & meaning(b)), (a, b)
    assert is_consistent(a, b) == is_consistent(b, a)
    assert is_consistent(a, a)


def test_consistency_is_not_transitive() -> None:
    two, three = Ranked((2,)), Ranked((3,))
    assert is_consistent(two, Dyn) and is_consistent(Dyn, three)
    assert not is_consistent(two, three)
    assert is_consistent(Ranked((2, Dyn)), Ranked((Dyn, 3)))


@given(types, types)
@settings(max_examples=400)
def test_the_meet_is_what_both_stand_for(a: Type, b: Type) -> None:
    found = meet(a, b)
    assert frozenset().union(*map(meaning, found)) == meaning(a) & meaning(b), (a, b, found)
    assert {*meet(b, a)} == {*found}


@given(types, types, types)
@settings(max_examples=600)
def test_the_meet_is_the_greatest_lower_bound(a: Type, b: Type, c: Type) -> None:
    below_both = is_more_precise(c, a) and is_more_precise(c, b)
    assert below_both == any(is_more_precise(c, m) for m in meet(a, b)), (a, b, c)


@given(types, types, types)
@settings(max_examples=600)
def test_the_join_is_the_least_upper_bound(a: Type, b: Type, c: Type) -> None:
    above_both = is_more_precise(a, c) and is_more_precise(b, c)
    assert above_both == any(is_more_precise(j, c) for j in join(a, b)), (a, b, c, join(a, b))


@given(types, types)
@settings(max_examples=300)
def test_bounds_are_incomparable_and_one_where_there_is_no_row(a: Type, b: Type) -> None:
    for found in (meet(a, b), join(a, b)):
        assert not any(is_more_precise(x, y) for x in found for y in found if x is not y), found
    if not isinstance(a, Rowed) and not isinstance(b, Rowed):
        assert len(meet(a, b)) <= 1


@given(st.lists(types, min_size=1, max_size=4))
@settings(max_examples=300)
def test_bounds_of_many(many: list[Type]) -> None:
    above = least_upper(many)
    assert all(is_more_precise(t, above) for t in many)
    below = greatest_lower(many)
    if below is not None:
        assert meaning(below) == frozenset.intersection(*map(meaning, many))


@given(types, types, types)
@settings(max_examples=300)
def test_precision_is_a_partial_order(a: Type, b: Type, c: Type) -> None:
    assert is_more_precise(a, a)
    if is_more_precise(a, b) and is_more_precise(b, a):
        assert a == b
    if is_more_precise(a, b) and is_more_precise(b, c):
        assert is_more_precise(a, c)


def test_an_order_that_forgets_the_least_rank_is_caught() -> None:
    def forgetful(a: Type, b: Type) -> bool:
        return is_more_precise(a, rowed(b.lead, b.trail)) if isinstance(b, Rowed) else is_more_precise(a, b)

    with pytest.raises(AssertionError):
        precise_as_sets(forgetful, Ranked(()), rowed((), (), 2))


b, h = sym("b"), sym("h")
TABLE: list[tuple[Type, Type, tuple[Type, ...], tuple[Type, ...]]] = [
    # a, b, their meet, their join
    (Ranked((2, Dyn)), Ranked((Dyn, 3)), (Ranked((2, 3)),), (Ranked((Dyn, Dyn)),)),
    (Ranked((2, 3)), Ranked((2, 4)), (), (Ranked((2, Dyn)),)),
    (Ranked((b, h)), Ranked((b, Dyn)), (Ranked((b, h)),), (Ranked((b, Dyn)),)),
    (Ranked((b,)), Ranked((h,)), (), (Ranked((Dyn,)),)),
    (Ranked((2, 3, 4)), Ranked((2, 4)), (), (rowed((2,), (4,)),)),
    (Ranked((2,)), Ranked((2, 2)), (), (rowed((), (2,)), rowed((2,), ()))),
    (rowed((2,), ()), rowed((), (2,)), (Ranked((2,)), rowed((2,), (2,))), (rowed((), (), 1),)),
    (rowed((2,), ()), rowed((), (3,)), (rowed((2,), (3,)),), (rowed((), (), 1),)),
    (rowed((2,), (3,)), Ranked((2, 5, 3)), (Ranked((2, 5, 3)),), (rowed((2,), (3,)),)),
    (Plain("int"), Ranked((2,)), (), (Dyn,)),
    (Several((Dyn, Plain("int"))), Several((Ranked((2,)), Dyn)),
     (Several((Ranked((2,)), Plain("int"))),), (Several((Dyn, Dyn)),)),
]


@pytest.mark.parametrize("a, b, lower, upper", TABLE, ids=lambda t: str(t))
def test_table(a: Type, b: Type, lower: tuple[Type, ...], upper: tuple[Type, ...]) -> None:
    assert meet(a, b) == lower
    assert {*join(a, b)} == {*upper}


def test_equal_types_are_equal_objects_and_print() -> None:
    assert rowed((2, Dyn), (3,)) == rowed((2,), (Dyn, 3)) == rowed((2,), (3,), 3)
    assert str(rowed((2, Dyn), (3,))) == "[2, Dyn, ..., 3]"
    assert str(Ranked((b, Dyn, 4))) == "[b, Dyn, 4]"
    assert str(Several((Plain("int"), Dyn))) == "(int, Dyn)"
    assert is_static(Ranked((2, b))) and not is_static(Ranked((2, Dyn))) and not is_static(rowed((), ()))
