"""Every rule on tensors of unknown rank: the cases of all families, with rows in place of shapes, against the
same calls on shapes that are spelt out.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.lifting import Reach
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor, tensors
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules
from anyshape.constraints.rules.reach import REACH
from anyshape.constraints.rules.whole import FEW, WHOLE
from anyshape.constraints.terms import rows
from anyshape.constraints.terms.dims import evaluate
from anyshape.constraints.terms.formula import all_of, holds
from anyshape.constraints.terms.parts import RowPart, dim_at, rank
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.typecheck.testing.differential import Case, D, LeftOpen, T, assignments, fill_in, lower

CASES, POINTS = 4, 2
"""How many cases of an operator are looked at, and at how many assignments each."""


@cache
def cases() -> dict[str, list[Case]]:
    """What the tests of all families have of each operator, in an order that mixes them."""
    found: dict[str, dict[str, Case]] = defaultdict(dict)
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.name != Path(__file__).name:
            for case in _cases_in(vars(import_module(f"rules.{path.stem}"))):
                found[case.op][str(case)] = case
    for op, own in found.items():
        named = [*own.values()]
        random.Random(op).shuffle(named)
        found[op] = dict(enumerate(named))  # type: ignore[arg-type]
    return {op: [*own.values()] for op, own in found.items()}


def _cases_in(value: Any) -> Iterator[Case]:
    if isinstance(value, Case):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            if not str(name).startswith("__"):
                yield from _cases_in(part)
    elif type(value) in (list, tuple):
        for part in value:
            yield from _cases_in(part)
    elif isinstance(values := getattr(value, "values", None), tuple):  # pytest.param
        yield from _cases_in(values)
    else:
        for mark in getattr(value, "pytestmark", ()) if callable(value) else ():
            if mark.name == "parametrize":
                yield from _cases_in(mark.args[1])


def arguments(case: Case, values: dict[str, int], build: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a case at an assignment, its tensors made by `build` from their shape and place."""
    places = iter(range(1000))

    def one(value: Any) -> Any:
        if isinstance(value, T):
            symbolic = value.symbolic()
            shape = tuple(evaluate(dim, values) for dim in symbolic.shape)
            return build(Tensor(shape, symbolic.dtype), next(places))
        return evaluate(parse_dim(value.text), values) if isinstance(value, D) else lower(value)

    args, kwargs = fill_in((case.args, case.kwargs), one)
    return tuple(map(lower, args)), {name: lower(value) for name, value in kwargs.items()}


def enumerated(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Generator, Any]:
    def asked(_: Any) -> Any:
        raise LeftOpen

    g = Generator(default_rules, Domain(), count=asked, chooser=asked)
    return g, g.call(op, args, kwargs)[1]


def start_again(wanted: rows.Deeper) -> None:
    raise wanted


def lifted(
    rules: Rules, op: str, args: tuple[Any, ...], kwargs: dict[str, Any], dims: dict[str, tuple[int, ...]]
) -> tuple[Generator, Any, dict[str, int]]:
    """The call on rows, of which it learns the dims that it asks for; and those dims."""
    domain = Domain(tuple(str(rank(name)) for name in dims)).deepened(rows.Deeper())
    while True:
        every = (str(dim_at(name, -j)) for name, own in dims.items() for j in range(1, len(own) + 1))
        full = rows.assignment((*domain.symbols, *every), dims) | rows.assignment(domain.symbols, dims)
        g = Generator(
            rules, domain, partial(evaluate, values=full), partial(holds, values=full), start_again
        )
        try:
            return g, g.call(op, args, kwargs)[1], full
        except rows.Deeper as wanted:
            domain = domain.deepened(wanted)


def compare(case: Case, values: dict[str, int], rowed: int | None, rules: Rules = default_rules) -> None:
    """Raises AssertionError where a case is otherwise with a row in place of one shape, or of all (None)."""
    told = f"{case} at {values}, {'all' if rowed is None else rowed}"
    plain, wanted = enumerated(case.op, *arguments(case, values, lambda t, i: t))
    dims: dict[str, tuple[int, ...]] = {}

    def build(tensor: Tensor, place: int) -> Tensor:
        if rowed not in (None, place):
            return tensor
        dims[f"t{place}"] = tensor.shape  # type: ignore[assignment]
        return structs.replace(tensor, shape=(rows.as_dim((RowPart(f"t{place}"),)),))

    args, kwargs = arguments(case, values, build)
    g, result, full = lifted(rules, case.op, args, kwargs, dims)
    if g.said.unbacked or plain.said.unbacked:  # sizes that data decide have names of their own
        return
    accepted = holds(all_of(c.formula for c in g.said.constraints), full)
    assert accepted == all_of(c.formula for c in plain.said.constraints), told
    if accepted and wanted is not None and result is not None:
        shapes = [rows.sizes(t.shape, full) for t in tensors(result)]
        assert shapes == [t.shape for t in tensors(wanted)], told
        assert [t.dtype for t in tensors(result)] == [t.dtype for t in tensors(wanted)], told


def points(case: Case, number: int) -> Iterator[dict[str, int]]:
    """Assignments at which no size is 0, for none of an input of unknown rank is."""
    for values in islice(assignments(case, number), 2, None):
        least = {name: max(size, 1) for name, size in values.items()}
        sizes = [parse_dim(s) for leaf in case.leaves() if isinstance(leaf, T) for s in leaf.sizes.split()]
        if all(evaluate(size, least) > 0 for size in sizes):
            yield least


def check(
    op: str, most: int | None, number: int, rules: Rules = default_rules, first: bool = False
) -> None:
    """Each case with rows in place of all shapes, and of one; `first`: of that of the first tensor alone."""
    for case in cases().get(op, [])[:most]:
        count = sum(isinstance(leaf, T) for leaf in case.leaves())
        places = (None, *range(count if count > 1 else 0))
        for values in points(case, number) if count else ():
            for rowed in (0,) if first else places:
                with suppress(LeftOpen):
                    compare(case, values, rowed, rules)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("op", sorted(REACH))
def test_rows_agree_with_shapes(op: str) -> None:
    check(op, CASES, 1, first=op in FEW)


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(default_rules))
def test_all_cases_agree(op: str) -> None:
    check(op, 60, POINTS)


def test_every_rule_has_a_reach_or_a_reason() -> None:
    """No operator is in neither table, or in both."""
    assert sorted(default_rules.keys() - REACH.keys() - WHOLE.keys()) == []
    assert sorted(REACH.keys() & WHOLE.keys()) == []
    assert sorted((REACH.keys() | WHOLE.keys()) - default_rules.keys()) == []


def large(case: Case, rank: int, which: int | None, size: int | None) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The arguments with one tensor, or all, of a rank: all sizes alike, or more of them before its own."""

    def build(tensor: Tensor, place: int) -> Tensor:
        if which not in (None, place):
            return tensor
        shape = (1,) * (rank - tensor.rank) + tensor.shape if size is None else (size,) * rank
        return structs.replace(tensor, shape=shape)

    args, kwargs = arguments(case, dict.fromkeys(case.symbols(), 3), build)
    if all(len(part) <= 6 for part in (*args, *kwargs.values()) if isinstance(part, tuple)):
        yield args, kwargs


@pytest.mark.parametrize("op", sorted(FEW & {*cases()}))
def test_few_ranks_are_taken(op: str) -> None:
    """What is said to take few ranks refuses large ones, of one operand and of all."""
    for case in cases()[op][:CASES]:
        count = sum(isinstance(leaf, T) for leaf in case.leaves())
        for which in (None, *range(count)) if count else ():
            for most, size in ((9, 1), (9, 3), (10, None)):
                for args, kwargs in large(case, most, which, size):
                    g, _ = enumerated(op, args, kwargs)
                    assert any(c.formula is False for c in g.said.constraints), f"{case}: {which}, {most}"


@pytest.mark.parametrize(
    "op, reach",
    [
        ("gather", Reach(leading=1)),
        ("clamp", Reach(broadcasts=True)),
        ("det", Reach()),
        ("renorm", Reach(leading=1)),
    ],
)
def test_a_wrong_reach_is_caught(op: str, reach: Reach) -> None:
    wrong = default_rules + {op: replace(default_rules[op], reach=lambda named: reach)}
    with pytest.raises((AssertionError, IndexError)):
        check(op, None, 4, wrong)
