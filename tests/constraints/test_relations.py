"""How rows are related, against the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.constraints.ir.system import Domain
from anyshape.constraints.terms import relations, rows
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import Formula, all_of, any_of, eq, ge, holds, negate
from anyshape.constraints.terms.parts import RowPart, rank
from anyshape.constraints.terms.relations import Relation, is_true, relation, relation_of
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.solver.tactics.judge import Judge

NAMES = "xyz"
Rows = Mapping[str, tuple[int, ...]]


def declared(*symbols: str) -> Domain:
    """Three rows, of which so much is declared."""
    domain = Domain(tuple(str(rank(name)) for name in NAMES), ())
    return domain.deepened(rows.Deeper(symbols))


def follows(domain: Domain, premise: Formula, conclusion: Formula) -> bool:
    return Judge().satisfiable((*domain.assumptions, premise, negate(conclusion)), domain.symbols) == "unsat"


PARTS = st.builds(RowPart, st.sampled_from(NAMES), st.just(0), st.sampled_from((0, 0, 0, 1)))


def related() -> st.SearchStrategy[Relation]:
    kinds = st.sampled_from(("broadcast", "equal", "expands", "within"))
    pairs = st.tuples(PARTS, PARTS).filter(lambda p: p[0].name != p[1].name)
    inner = pairs.map(lambda p: tuple(replace(part, start=1) for part in p))
    several = st.lists(PARTS, min_size=3, max_size=3, unique_by=lambda p: p.name)
    return st.one_of(
        st.builds(lambda kind, parts: relation(kind, *parts), kinds, pairs),
        st.builds(lambda parts: relation("equal", *parts), inner),
        st.builds(lambda parts: relation("broadcast", *parts), several),
    )


SYMBOLS = st.builds("{}[{}]".format, st.sampled_from(NAMES), st.sampled_from((-1, -1, -2, 0, 1)))
COUNTS = st.sampled_from(("numel(x)", "numel(y)"))
ROW = st.lists(st.sampled_from((1, 1, 2, 2, 3)), max_size=6).map(tuple)


@st.composite
def alike(draw: st.DrawFn) -> Rows:
    """Rows that are often related."""
    first = draw(ROW)
    other = st.tuples(*(st.sampled_from((n, n, n, 1, 2)) for n in first))
    cut = st.sampled_from((0, 0, 0, 1))
    return {name: draw(st.one_of(other, other, ROW))[draw(cut) :] for name in NAMES}


@settings(max_examples=300, deadline=None)
@given(st.lists(related(), min_size=1, max_size=4), st.lists(SYMBOLS | COUNTS, max_size=5), alike())
def test_axioms_hold_of_all_rows(asked: list[Relation], symbols: list[str], dims: Rows) -> None:
    domain = declared(*map(str, asked), *symbols)
    values = rows.assignment(domain.symbols, dims)
    assert [a for a in domain.assumptions if not holds(a, values)] == []
    assert rows.is_possible(values) or any(symbol.startswith("numel") for symbol in symbols)
    assert domain.deepened(rows.Deeper()) == domain


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["broadcast", "equal", "expands", "within"])
@pytest.mark.parametrize(
    "looked_at", [(), ("x[-1]", "y[-1]"), ("x[-1]",), ("x[0]", "y[0]"), ("y[-2]", "x[0]")]
)
def test_what_the_axioms_leave_open_is_so_of_some_rows(kind: str, looked_at: tuple[str, ...]) -> None:
    """Whatever ranks, dims and truth the axioms allow: there are such rows."""
    one = relation(kind, RowPart("x"), RowPart("y"))
    domain = declared(str(one), *looked_at)
    spoken = [name for name in looked_at if name in domain.symbols]
    for x, y, truth in product(range(4), range(4), range(2)):
        for sizes in product((1, 2, 3), repeat=len(spoken)):
            said = (eq(rank("x"), x), eq(rank("y"), y), eq(one.truth, truth))
            dims = (eq(sym(name), size) for name, size in zip(spoken, sizes, strict=True))
            judge = Judge()
            if judge.satisfiable((*domain.assumptions, *said, *dims), domain.symbols) == "sat":
                found = {name: tuple(rows.spelt(name, judge.model)) for name in "xy"}
                assert (len(found["x"]), len(found["y"])) == (x, y)
                assert is_true(one, found) == bool(truth)


@given(st.lists(PARTS, min_size=2, max_size=4, unique=True), alike())
def test_rows_that_broadcast_are_so_in_pairs(parts: list[RowPart], dims: Rows) -> None:
    r = relation("broadcast", *parts)
    assert is_true(r, dims) == (relations.spelt(r, dims) is True)


def test_what_follows() -> None:
    xy, xyz = (relation("broadcast", *map(RowPart, names)) for names in ("xy", "xyz"))
    same, into = (
        relation("equal", RowPart("x"), RowPart("y")),
        relation("expands", RowPart("x"), RowPart("y")),
    )
    domain = declared(str(xy), str(xyz), str(same), str(into), "x[-1]", "y[-1]")
    assert follows(domain, xyz.holds, xy.holds) and not follows(domain, xy.holds, xyz.holds)
    assert follows(domain, same.holds, all_of((xy.holds, into.holds, eq(rank("x"), rank("y")))))
    x, y = sym("x[-1]"), sym("y[-1]")
    assert follows(domain, xy.holds, any_of((eq(x, 1), eq(y, 1), eq(x, y))))
    assert follows(domain, same.holds, eq(x, y))
    assert follows(domain, eq(rank("x"), 0), xy.holds)
    assert not follows(domain, ge(rank("x"), 2), xy.holds)


@pytest.mark.parametrize(
    "text", ["broadcast(x,y[:-1],z)", "equal(x[1:],y[1:])", "expands(x,y)", "within(x[1:-2],y)"]
)
def test_the_text_of_a_relation_is_read_again(text: str) -> None:
    found = relation_of(text)
    assert found is not None and str(found) == text
    assert parse_dim(text.replace(",", ", ")) == found.truth


def test_rows_that_none_can_be_are_told() -> None:
    """Products say of x and y that they are of one prime: they broadcast, which no axiom knows."""
    domain = declared("broadcast(x,y)", "numel(x)", "numel(y)")
    said = (eq(sym("numel(x)"), 2), eq(sym("numel(y)"), 2), eq(sym("broadcast(x,y)"), 0))
    assert Judge().satisfiable((*domain.assumptions, *said), domain.symbols) == "unknown"


@pytest.fixture
def anew() -> Iterator[None]:
    """Axioms are kept from call to call."""
    rows._axioms.cache_clear()
    yield
    rows._axioms.cache_clear()


@pytest.mark.usefixtures("anew")
def test_a_wrong_law_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    law = relations._LAWS["broadcast"]
    wrong = replace(law, differs=lambda a, b: False)
    monkeypatch.setattr(relations, "_LAWS", {**relations._LAWS, "broadcast": wrong})
    domain = declared("broadcast(x,y)")
    values = rows.assignment(domain.symbols, {"x": (2,), "y": (3,), "z": ()})
    assert [a for a in domain.assumptions if not holds(a, values)]
