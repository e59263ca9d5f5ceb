"""Regions: every call once and in order, a region per run of a module, never too many parts side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.constraints.ir.program import Origin
from anyshape.typecheck import Shape
from anyshape.typecheck.render.regions import MANY, Part, ProgramRegion, regions


def shapes(modules: Sequence[str]) -> list[Shape]:
    return [Shape(index, "op", (), Origin("f.py", 1, module=module)) for index, module in enumerate(modules)]


def told(parts: Sequence[Part]) -> str:
    """`0 a(1 a.b(2 3))`."""
    return " ".join(f"{p.label}({told(p.parts)})" if isinstance(p, ProgramRegion) else str(p) for p in parts)


CASES = {
    "": "",
    "- - -": "0 1 2",
    "a a": "a(0 1)",
    "a.x a.y a": "a(0 1 2)",
    "a.x.x a.x.y": "a.x(0 1)",  # `a` only calls `a.x`
    "a - a": "0 1 2",  # called twice, once before and once after
    "a a - a a": "a(0 1) 2 a(3 4)",
    "a.0 a.0 a.1 a.1 -": "a(a.0(0 1) a.1(2 3)) 4",
    "a.0 a.0 - a.1 a.1": "a.0(0 1) 2 a.1(3 4)",
}


@pytest.mark.parametrize("modules", CASES)
def test_runs(modules: str) -> None:
    assert told(regions(shapes([m.strip("-") for m in modules.split()]))) == CASES[modules]


def leaves(parts: Sequence[Part]) -> Iterator[int]:
    for part in parts:
        yield from leaves(part.parts) if isinstance(part, ProgramRegion) else (part,)


def sizes(parts: Sequence[Part]) -> Iterator[int]:
    yield len(parts)
    for part in parts:
        if isinstance(part, ProgramRegion):
            yield from sizes(part.parts)


paths = st.lists(st.sampled_from("abc"), max_size=4).map(".".join)


@given(st.lists(paths, max_size=40))
def test_every_call_once_and_in_order(modules: list[str]) -> None:
    found = regions(shapes(modules))
    assert [*leaves(found)] == [*range(len(modules))]
    assert all(size > 1 for size in [*sizes(found)][1:])


@pytest.mark.parametrize("count", [MANY, MANY + 1, MANY**2, MANY**2 + 1, 10_000])
def test_many_calls_side_by_side_are_gathered(count: int) -> None:
    found = regions(shapes([""] * count))
    assert [*leaves(found)] == [*range(count)]
    assert max(sizes(found)) <= MANY
    assert min(sizes(found)) >= 2
    if count == MANY + 1:
        assert told(found).startswith("calls 0 to 24(0 1")
