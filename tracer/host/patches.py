"""Functions and values of torch, Python and the user's program that are replaced while something lasts.

A `Patch` replaces a function for the thread that enters it: other threads call the plain one meanwhile.
Patches of one function nest, each made of what the earlier ones have made, and may be left in any order. A
`Setting` replaces a value, which all threads see; so it refuses a second thread while it lasts. Of several
settings of one place the last one counts. When the last one is left, in whatever way, the place is as it was
before the first.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, TypeAlias

Function: TypeAlias = Callable[..., Any]


class PatchRefused(RuntimeError):
    """A value that another thread has replaced cannot be replaced by this one."""


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """A function, as an attribute of a class or module, that is another one for a while."""

    owner: Any
    attribute: str
    make: Callable[[Function], Function]
    """The other function, made of the plain one."""
    reason: str

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Inside, the calls of this thread go to the other function."""
        key, entered = (id(self.owner), self.attribute), (self, threading.get_ident())
        with _LOCK:
            place = _functions.get(key) or _Function(self.owner, self.attribute)
            place.enter(entered)
            _functions[key] = place
        try:
            yield
        finally:
            with _LOCK:
                place.leave(entered)
                if not place.entered:
                    del _functions[key]


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A value, as an attribute or as an item of a dict, that is another one for a while."""

    owner: Any
    name: Any
    """The attribute, or the key of a dict."""
    value: Any
    reason: str

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Inside, the value is the other one. Raises PatchRefused where another thread has replaced it."""
        key = id(self.owner), self.name
        with _LOCK:
            place = _values.get(key) or _Value(self.owner, self.name)
            place.enter(self)
            _values[key] = place
        try:
            yield
        finally:
            with _LOCK:
                place.leave(self)
                if not place.entered:
                    del _values[key]


_LOCK: Final = threading.RLock()
"""Held while a place is written."""
_ABSENT: Final = object()


class _Function:
    """A place of a function. While patches are in force, what stands there asks which thread calls it."""

    def __init__(self, owner: Any, attribute: str) -> None:
        plain: Function = getattr(owner, attribute)
        calls: dict[int, Function] = {}

        @functools.wraps(plain)
        def by_thread(*args: Any, **kwargs: Any) -> Any:
            return calls.get(threading.get_ident(), plain)(*args, **kwargs)

        self.entered: list[tuple[Patch, int]] = []
        """The patches in force, each with its thread."""
        self._place = owner, attribute
        self._before = _found(owner, attribute)
        self._plain, self._by_thread, self._calls = plain, by_thread, calls

    def enter(self, entered: tuple[Patch, int]) -> None:
        patch, thread = entered
        self._calls[thread] = patch.make(self._calls.get(thread, self._plain))
        if not self.entered:
            _put(*self._place, self._by_thread)
        self.entered.append(entered)

    def leave(self, left: tuple[Patch, int]) -> None:
        self.entered = [entered for entered in self.entered if entered is not left]
        thread = left[1]
        self._calls.pop(thread)
        for patch, of in self.entered:
            if of == thread:
                self._calls[thread] = patch.make(self._calls.get(thread, self._plain))
        # What others have put around it meanwhile stays: they call the plain function through it.
        if not self.entered and _found(*self._place) is self._by_thread:
            _put(*self._place, self._before)


class _Value:
    """A place of a value: what stood there before, and what has been put there since."""

    def __init__(self, owner: Any, name: Any) -> None:
        self.entered: list[Setting] = []
        """The settings in force; the value is that of the last one."""
        self._place = owner, name
        self._before = _found(owner, name)
        self._thread = threading.get_ident()

    def enter(self, setting: Setting) -> None:
        if self._thread != threading.get_ident():
            raise PatchRefused(f"{setting.name!r} is replaced by another thread: {self.entered[-1].reason}")
        _put(*self._place, setting.value)
        self.entered.append(setting)

    def leave(self, left: Setting) -> None:
        self.entered = [setting for setting in self.entered if setting is not left]
        _put(*self._place, self.entered[-1].value if self.entered else self._before)


_functions: dict[tuple[int, str], _Function] = {}
_values: dict[tuple[int, Any], _Value] = {}
"""The places where something is replaced now, by owner, which they keep alive, and name."""


def _found(owner: Any, name: Any) -> Any:
    """What an owner itself has in a place; classes and modules inherit the rest."""
    if isinstance(owner, dict):
        return owner.get(name, _ABSENT)
    own = isinstance(owner, type | ModuleType)
    return vars(owner).get(name, _ABSENT) if own else getattr(owner, name, _ABSENT)


def _put(owner: Any, name: Any, value: Any) -> None:
    if isinstance(owner, dict) and value is _ABSENT:
        owner.pop(name, None)
    elif isinstance(owner, dict):
        owner[name] = value
    elif value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
