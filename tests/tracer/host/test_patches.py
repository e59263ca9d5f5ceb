"""Patches and settings: in force where they should be, in any order and after any end as before."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.tracer.host.patches import Patch, PatchRefused, Setting


class Base:
    def inherited(self) -> str:
        return "plain"


class Owner(Base):
    def method(self) -> str:
        return "plain"


def marked(mark: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    return lambda plain: lambda self: f"{mark}({plain(self)})"


def patch(mark: str, attribute: str = "method") -> AbstractContextManager[None]:
    return Patch(Owner, attribute, marked(mark), "a test").in_force()


def called_elsewhere() -> str:
    """What another thread gets from a call."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(Owner().method()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("attribute", ["method", "inherited"])
def test_it_holds_inside_and_for_this_thread(attribute: str) -> None:
    before = dict(vars(Owner))
    with patch("a", attribute):
        assert getattr(Owner(), attribute)() == "a(plain)"
        with patch("b", attribute):
            assert getattr(Owner(), attribute)() == "b(a(plain))"
            assert called_elsewhere() == "plain"
        assert getattr(Owner(), attribute)() == "a(plain)"
    assert dict(vars(Owner)) == before


@pytest.mark.parametrize("base", [False, True])
def test_it_holds_for_items_however_often_it_was_in_force(base: bool) -> None:
    """Python 3.13 keeps what `x[i]` calls for a class that has changed a thousand times."""

    class List:
        def __getitem__(self, at: int) -> str:
            return "plain"

    class Inheriting(List):
        pass

    def first(several: List) -> str:
        return several[0]

    items = Patch(List, "__getitem__", lambda plain: lambda self, at: f"a({plain(self, at)})", "a test")
    several = Inheriting() if base else List()
    for _ in range(1100):
        with items.in_force():
            assert several[0] == "a(plain)"
        assert [first(several) for _ in range(5)] == ["plain"] * 5
    for _ in range(3):
        with items.in_force():
            assert [first(several) for _ in range(5)] == ["a(plain)"] * 5
        assert [first(several) for _ in range(5)] == ["plain"] * 5


def test_it_ends_with_an_exception() -> None:
    before = dict(vars(Owner))
    with pytest.raises(KeyError), patch("a"):
        raise KeyError
    assert dict(vars(Owner)) == before


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_they_are_left_in_any_order(order: tuple[int, ...]) -> None:
    plain, before = Owner.method, dict(vars(Owner))
    stacks = [ExitStack() for _ in order]
    for stack, mark in zip(stacks, "abc", strict=True):
        stack.enter_context(patch(mark))
    left = ["a", "b", "c"]
    for index in order:
        expected = "plain"
        for mark in left:
            expected = f"{mark}({expected})"
        assert Owner().method() == expected and Owner.method is not plain
        stacks[index].close()
        left.remove("abc"[index])
    assert dict(vars(Owner)) == before


def test_each_thread_has_its_own() -> None:
    before = dict(vars(Owner))
    entered, asked = threading.Barrier(2), threading.Barrier(2)
    found: dict[str, str] = {}

    def run(mark: str) -> None:
        with patch(mark):
            entered.wait()
            found[mark] = Owner().method()
            asked.wait()

    threads = [threading.Thread(target=run, args=(mark,)) for mark in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": "a(plain)", "b": "b(plain)"} and dict(vars(Owner)) == before


def test_it_may_be_left_by_another_thread() -> None:
    """As a generator is that the collector closes."""
    before = dict(vars(Owner))
    stack = ExitStack()
    stack.enter_context(patch("a"))
    thread = threading.Thread(target=stack.close)
    thread.start()
    thread.join()
    assert Owner().method() == "plain" and dict(vars(Owner)) == before


def test_what_others_put_around_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as others:
        with patch("a"):
            inner = Owner.method
            others.setattr(Owner, "method", lambda self: f"other({inner(self)})")
            assert Owner().method() == "other(a(plain))"
        assert Owner().method() == "other(plain)"
        with patch("b"):
            assert Owner().method() == "b(other(plain))"
        assert Owner().method() == "other(plain)"


@given(st.permutations(range(4)), st.booleans())
def test_settings_are_left_in_any_order(order: list[int], present: bool) -> None:
    owner: dict[str, Any] = {"name": "before"} if present else {}
    stacks = [ExitStack() for _ in order]
    for index, stack in enumerate(stacks):
        stack.enter_context(Setting(owner, {"name": index}, "a test").in_force())
        assert owner["name"] == index
    left = sorted(order)
    for index in order:
        stacks[index].close()
        left.remove(index)
        assert owner.get("name") == (left[-1] if left else "before" if present else None)


def test_a_value_belongs_to_one_thread() -> None:
    def function() -> int:
        return 1

    other = (lambda: 2).__code__
    code, refused = function.__code__, []

    def enter() -> None:
        with pytest.raises(PatchRefused, match="'__code__' is replaced by another thread: a test") as found:
            Setting(function, {"__code__": other}, "another").in_force().__enter__()
        refused.append(found)

    with Setting(function, {"__code__": other}, "a test").in_force():
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        assert function() == 2
    assert refused and function.__code__ is code
