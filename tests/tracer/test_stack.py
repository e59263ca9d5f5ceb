"""The evaluation stack of running functions, the branches in them, and their loops, with any Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import pytest

from anyshape.tracer.bytecode.codes import branch, instructions
from anyshape.tracer.bytecode.loops import begins_while, continues_while, is_kept_where
from anyshape.tracer.bytecode.stack import depth, filled, fills
from anyshape.tracer.host.interpreter import stacked
from anyshape.tracer.host.jumps import forget_jumps


class Steps:
    """An iterator of 0, 1, …, which gives each frame that steps it to a function."""

    def __init__(self, act: Callable[[FrameType, Steps], object], count: int = 3) -> None:
        self.act, self.count, self.made = act, count, 0

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.act(sys._getframe(1), self)
        if self.made == self.count:
            raise StopIteration
        self.made += 1
        return self.made - 1


class Asked:
    """A number whose comparisons give the frame that makes one to a function, and are true so many times."""

    def __init__(self, act: Callable[[FrameType], object], truths: int) -> None:
        self.act, self.truths = act, truths

    def __gt__(self, other: int) -> bool:
        self.act(sys._getframe(1))
        self.truths -= 1
        return self.truths >= 0


def loop(steps: Any) -> list[int]:
    found = []
    for i in steps:
        found.append(i)
    return found


def alone(steps: Any) -> list[int]:
    return [i * 2 for i in steps]


def among_values(steps: Any) -> Any:
    return (1, str(2), [i + 1 for i in steps], 4)


def of_several(steps: Any) -> list[int]:
    return [i + j for j in (1, 2) for i in (steps if j == 1 else ())]


def around_others(steps: Any) -> list[list[int]]:
    return [[i + j for j in range(i)] for i in steps]


def chosen(steps: Any) -> list[int]:
    return [i if i > 1 else -i for i in steps if i != 1]


def with_a_closure(steps: Any) -> list[Callable[[], int]]:
    return [lambda i=i, s=steps: i for i in steps]


def of_a_set(steps: Any) -> set[int]:
    return {-i for i in steps}


def of_a_dict(steps: Any) -> dict[int, int]:
    return {i: i for i in steps}


def unpacked(steps: Any) -> list[int]:
    found = []
    for i in steps:
        found += [*range(i), 5]
    return found


def in_a_handler(steps: Any) -> list[int]:
    try:
        raise KeyError
    except KeyError:
        with open(__file__):
            return [-i for i in steps]


FILLS = [
    (loop, ""), (alone, "LIST_APPEND"), (among_values, "LIST_APPEND"), (of_several, "several"),
    (around_others, "LIST_APPEND"), (chosen, "LIST_APPEND"), (with_a_closure, "LIST_APPEND"),
    (of_a_set, "SET_ADD"), (of_a_dict, "MAP_ADD"), (unpacked, ""), (in_a_handler, "LIST_APPEND"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "by"), FILLS, ids=lambda x: getattr(x, "__name__", None))
def test_what_a_loop_fills(function: Any, by: str) -> None:
    found = set()
    function(Steps(lambda frame, _: found.add(fills(frame.f_code, frame.f_lasti))))
    assert found == {by}


LISTS = [function for function, by in FILLS if by == "LIST_APPEND"]


@pytest.mark.parametrize("function", LISTS, ids=lambda f: f.__name__)
def test_the_list_of_a_comprehension(function: Any) -> None:
    """After the last step it has all elements, and a change of it is a change of the result."""
    lengths = []

    def act(frame: FrameType, steps: Steps) -> None:
        found = filled(frame, steps)
        assert found is not None
        lengths.append(len(found))
        if steps.made == steps.count:
            found.append("more")

    result = function(Steps(act))
    whole = next((part for part in result if isinstance(part, list) and "more" in part), result)
    assert whole[-1] == "more" and len(whole) == lengths[-1] + 1 and lengths == sorted(lengths)


def test_another_iterator_has_no_list() -> None:
    found = []
    alone(Steps(lambda frame, steps: found.append(filled(frame, Steps(print)))))
    assert found == [None] * 4


@pytest.mark.parametrize("function", [function for function, _ in FILLS], ids=lambda f: f.__name__)
def test_the_top_of_the_stack(function: Any) -> None:
    """`for` keeps its iterator there."""
    tops = []

    def act(frame: FrameType, steps: Steps) -> None:
        height = depth(frame.f_code, frame.f_lasti)
        assert height
        tops.append(stacked(frame, height - 1) is steps)

    function(Steps(act))
    assert tops and all(tops)


def test_depths_stay_within_the_size_of_the_stack() -> None:
    for function, _ in FILLS:
        inner = (one for one in function.__code__.co_consts if isinstance(one, CodeType))
        for code in (function.__code__, *inner):
            found = [depth(code, at) for at in instructions(code)]
            assert all(n is None or 0 <= n <= code.co_stacksize for n in found)


# --- branches and `while` --------------------------------------------------------------------------------


def plain(n: Asked) -> None:
    while n > 1:
        n.truths += 0


def of_two_parts(n: Asked) -> None:
    while n.truths > 0 and n > 1:
        n.truths += 0


def first_of_two(n: Asked) -> None:
    while n > 1 and n.truths + 1:
        n.truths += 0


def once(n: Asked) -> None:
    if n > 1:
        n.truths += 0


def endless(n: Asked) -> None:
    while True:
        if not n > 1:
            break


def begun(function: Any, truths: int) -> list[Any]:
    found: list[Any] = []
    function(Asked(lambda frame: found.append((begins_while(frame), continues_while(frame))), truths))
    forget_jumps()
    return found


def test_where_a_while_begins() -> None:
    first, *others = begun(plain, 2)
    body, behind = first[0]
    assert not behind and others == [((body, True), None)] * 2


def test_where_a_while_of_two_parts_goes_on() -> None:
    """The part that is not the last of the test knows the body behind it."""
    (_, none), *others = begun(first_of_two, 2)
    (body,) = {part for _, part in others}
    assert none is None and isinstance(body, int)
    (at, _), _ = begun(of_two_parts, 1)[0]
    assert [one for one, _ in begun(of_two_parts, 3)] == [(at, False), (at, True), (at, True)]


def test_an_if_is_no_while() -> None:
    assert all(found is None or not found[1] for found, _ in begun(once, 1))


def kept(steps: Any, n: Asked) -> list[int]:
    return [i for i in steps if n > i]


def kept_unless(steps: Any, n: Asked) -> list[int]:
    return [i for i in steps if not n > i]


def inside(steps: Any, n: Asked) -> list[int]:
    return [i if n > i else 0 for i in steps]


@pytest.mark.parametrize(("function", "outcome"), [(kept, True), (kept_unless, False), (inside, None)])
def test_where_an_element_is_kept(function: Any, outcome: bool | None) -> None:
    found = []
    function(range(2), Asked(lambda frame: found.append(is_kept_where(frame)), 1))
    assert found == [outcome] * 2


def test_where_a_branch_leads() -> None:
    code = once.__code__
    (leads,) = filter(None, (branch(code, at) for at in instructions(code)))
    names = [instructions(code)[at].opname for at in leads]
    assert leads[0] < leads[1] and names[0].startswith("LOAD_FAST") and names[1] != names[0]
