"""Which variables may still be read, held to what happens when others are put in their place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from anyshape.tracer.bytecode.liveness import live
from anyshape.tracer.summaries.cells import Local

Rows = Iterable[int]


def left_behind(rows: Rows) -> list[int]:
    out = []
    for row in rows:
        twice = 2 * row
        out.append(twice)
    return out


def read_after(rows: Rows) -> int:
    last = other = 0
    for row in rows:
        last, other = row, row
    del other
    return last


def read_before_written(rows: Rows) -> int:
    before = total = 0
    for row in rows:
        total += before * row
        before = row
    return total


def written_in_one_branch(rows: Rows) -> int:
    kept, total = 7, 0
    for row in rows:
        if row % 2:
            kept = row
        total += kept
    return total


def read_by_a_handler(rows: Rows) -> int:
    place, unused = 3, 4
    try:
        for row in rows:
            unused = 1 // (row - 2)
            place = row
    except ZeroDivisionError:
        return place
    return 0 * unused


def shared_with_a_function(rows: Rows) -> int:
    count = 0

    def more() -> None:
        nonlocal count
        count += 1

    for _ in rows:
        more()
    return count


def deleted(rows: Rows) -> int:
    some, total = 1, 0
    for row in rows:
        del some
        some = row
        total += row
    return total + 0 * some


def inner_loop(rows: Rows) -> int:
    total, inner = 0, 5
    for row in rows:
        for inner in range(row):
            total += inner
    return total + 0 * inner


def inspected(rows: Rows) -> int:
    hidden = 1
    for _ in rows:
        hidden += 1
    return int(sum(v for k, v in locals().items() if k == "hidden"))


def seen_by_a_comprehension(rows: Rows) -> list[int]:
    factor, out = 2, [0]
    for row in rows:
        out = [factor * part for part in (*out, row)]
    return out


class Base:
    def value(self) -> int:
        return 1


class Derived(Base):
    def value(self, rows: Rows = ()) -> int:
        total = 0
        for row in rows:
            total += row + super().value()
        return total


def with_super(rows: Rows) -> int:
    return Derived().value(rows)


@dataclass
class Watched:
    """Goes through 1, 2, 3, 4, and before one of them does something to who goes through it."""

    before: int
    act: Callable[[FrameType], None]

    def __iter__(self) -> Iterator[int]:
        return Steps(self, 0)  # type: ignore[return-value]


@dataclass
class Steps:
    of: Watched
    step: int

    def __next__(self) -> int:
        self.step += 1
        if self.step == self.of.before:
            self.of.act(sys._getframe(1))
        if self.step > 4:
            raise StopIteration
        return self.step


class Garbage(int):
    """Another number than any that the programs have."""


def outcome(function: Callable[[Rows], Any], rows: Rows) -> Any:
    try:
        return function(rows)
    except (TypeError, NameError, ZeroDivisionError) as error:
        return repr(error)


TABLE = [
    (left_behind, {"out"}),
    (read_after, {"last", "other"}),
    (read_before_written, {"before", "total"}),
    (written_in_one_branch, {"kept", "total"}),
    (read_by_a_handler, {"place", "unused"}),
    (shared_with_a_function, {"count", "more"}),
    (deleted, {"some", "total"}),
    (inner_loop, {"inner", "total"}),
    (inspected, {"hidden", "rows"}),
    (seen_by_a_comprehension, {"factor", "out"}),
    (with_super, {"__class__", "self", "total"}),
]


@pytest.mark.parametrize(("function", "expected"), TABLE, ids=lambda x: getattr(x, "__name__", ""))
def test_live(function: Any, expected: set[str]) -> None:
    found: list[frozenset[str]] = []
    function(Watched(2, lambda frame: found.append(live(frame) & {*frame.f_locals})))
    assert {*found[0]} - {"_"} == expected


@pytest.mark.parametrize("function", [function for function, _ in TABLE], ids=lambda f: f.__name__)
@pytest.mark.parametrize("before", [2, 3, 5])
def test_what_is_not_live_makes_no_difference(function: Any, before: int) -> None:
    def spoil(frame: FrameType) -> None:
        for name in {*frame.f_locals} - live(frame):
            Local(frame, name).write(Garbage(10**6))

    assert outcome(function, Watched(before, spoil)) == outcome(function, Watched(before, lambda frame: None))


def test_what_is_live_makes_one() -> None:
    """So that the test above can fail."""

    def spoil(frame: FrameType) -> None:
        Local(frame, "before").write(Garbage(10**6))

    assert read_before_written(Watched(3, spoil)) != read_before_written(Watched(3, lambda frame: None))
