"""Temporary replacements of functions and values of torch, Python and the user's program.

A `Patch` replaces a function for the thread that enters it: other threads call the plain one meanwhile.
Patches of one function nest, each made from the result of the earlier ones, and may be left in any order. A
`Setting` replaces values, which all threads see; so it refuses a second thread while it lasts. Of several
settings of one location the last one counts. When the last one is left, even by an exception, the location is
restored.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import ClassMethodDescriptorType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, TypeAlias

from msgspec import Struct

Function: TypeAlias = Callable[..., Any]
Key: TypeAlias = tuple[type, int, Any]
"""A location: its kind, the identity of an owner, and a name."""


class PatchRefused(RuntimeError):
    """Raised where another thread has replaced a value that this one wants to replace."""


class Patch(Struct, frozen=True, eq=False):
    """A temporary replacement of a function that is an attribute of a class or module."""

    owner: Any
    attribute: str
    make: Callable[[Function], Function]
    """Returns the replacement, made from the plain function."""
    reason: str

    def in_force(self) -> AbstractContextManager[None]:
        """Directs the calls of this thread to the replacement inside the block."""
        return together((self,))

    @property
    def key(self) -> Key:
        return _Function, id(self.owner), self.attribute

    def place(self) -> _Function:
        return _Function(self.owner, self.attribute)


class Setting(Struct, frozen=True, eq=False):
    """A temporary replacement of values that are attributes of an object, or items of a dict, by name."""

    owner: Any
    values: Mapping[Any, Any]
    reason: str

    def in_force(self) -> AbstractContextManager[None]:
        """Replaces the values inside the block. Raises PatchRefused where another thread has replaced one."""
        return together((self,))

    @property
    def key(self) -> Key:
        return _Values, id(self.owner), None

    def place(self) -> _Values:
        return _Values(self.owner)


class together(AbstractContextManager[None]):
    """Applies all of these inside the block, or none if one is refused.

    An interrupt may come at any moment: each change is noted before it is made, and undoing it continues
    after an interrupt, and may be done twice.
    """

    def __init__(self, patches: Iterable[Patch | Setting]) -> None:
        self._patches = patches
        self._entered: list[_Entered] = []

    def __enter__(self) -> None:
        try:
            with _LOCK:
                thread = threading.get_ident()
                for patch in self._patches:
                    key = patch.key
                    entered = _Entered(patch, key, thread)
                    self._entered.append(entered)
                    if (place := _places.get(key)) is None:
                        place = _places[key] = patch.place()
                    place.enter(entered)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        interrupt: KeyboardInterrupt | None = None
        with _LOCK:
            while self._entered:
                try:
                    left = self._entered[-1]
                    if (place := _places.get(left.key)) is not None:
                        place.leave(left)
                        if not place.entered:
                            del _places[left.key]
                    self._entered.pop()
                except KeyboardInterrupt as again:
                    interrupt = again
        if interrupt is not None:
            raise interrupt


class _Entered(Struct, frozen=True, eq=False):
    """An active patch, and the thread that entered it."""

    patch: Any
    key: Key
    thread: int


_LOCK: Final = threading.RLock()
"""Held while a location is written."""
_ABSENT: Final = object()


class _Function:
    """A location of a function.

    While patches are active, the function there dispatches by the calling thread.
    """

    __slots__ = "_by_thread", "_calls", "_of_class", "_plain", "at", "before", "entered"

    def __init__(self, owner: Any, attribute: str) -> None:
        self.entered: list[_Entered] = []
        """The active patches, in the order of entering."""
        self.at = owner, attribute
        self.before = _found(owner, attribute)
        self._of_class = isinstance(self.before, _CLASS_METHODS)
        """Whether it is a method of a class, whose replacement takes the class first."""
        plain = getattr(self.before, "__func__", self.before) if self._of_class else getattr(owner, attribute)
        self._plain: Function = plain
        self._by_thread, self._calls = _dispatching(id(owner), attribute, self._plain)

    def enter(self, entered: _Entered) -> None:
        first = not self.entered
        self.entered.append(entered)
        self._make(entered)
        if first:
            _put(*self.at, classmethod(self._by_thread) if self._of_class else self._by_thread)

    def leave(self, left: _Entered) -> None:
        if left in self.entered:
            self.entered.remove(left)
        self._calls.pop(left.thread, None)
        for entered in self.entered:
            if entered.thread == left.thread:
                self._make(entered)
        # What others have put around it meanwhile stays: they call the plain function through it.
        found = _found(*self.at)
        if not self.entered and (found.__func__ if self._of_class else found) is self._by_thread:
            _put(*self.at, self.before)

    def _make(self, entered: _Entered) -> None:
        thread = entered.thread
        self._calls[thread] = entered.patch.make(self._calls.get(thread, self._plain))


@functools.lru_cache(maxsize=1 << 10)
def _dispatching(owner: int, attribute: str, plain: Function) -> tuple[Function, dict[int, Function]]:
    """Returns a function that calls the one of the calling thread, else the plain one, and those by thread.

    There is one for each location, since most checks replace the same functions; the owner is given by its
    identity, so that it does not live longer.
    """
    calls: dict[int, Function] = {}

    @functools.wraps(plain, _TEXTS)
    def by_thread(*args: Any, **kwargs: Any) -> Any:
        return calls.get(threading.get_ident(), plain)(*args, **kwargs)

    return by_thread, calls


_BY_THREAD: Final = next(
    code
    for code in _dispatching.__wrapped__.__code__.co_consts
    if isinstance(code, CodeType) and code.co_name == "by_thread"
)


def misfits(frame: FrameType) -> bool:
    """Returns whether a call of a replacement, which failed in this frame, has arguments that the plain
    function does not take, either.
    """
    if frame.f_code is not _BY_THREAD:
        return False
    given = frame.f_locals
    try:
        inspect.signature(given["plain"]).bind(*given["args"], **given["kwargs"])
    except TypeError:
        return True
    except ValueError:  # a function in C++ without a signature
        return False
    return False


class _Values:
    """The values of an owner: for each name, that of its last active setting."""

    __slots__ = "before", "entered", "owner"

    def __init__(self, owner: Any) -> None:
        self.owner = vars(owner) if type(owner) is ModuleType else owner
        self.entered: list[_Entered] = []
        self.before: dict[Any, Any] = {}
        """The former values."""

    def enter(self, entered: _Entered) -> None:
        values = entered.patch.values
        for other in self.entered:
            if other.thread != entered.thread and (shared := values.keys() & other.patch.values.keys()):
                raise PatchRefused(f"{min(shared)!r} is replaced by another thread: {other.patch.reason}")
        self.before |= _found_all(self.owner, values.keys() - self.before.keys())
        self.entered.append(entered)
        _put_all(self.owner, values)

    def leave(self, left: _Entered) -> None:
        if left not in self.entered:  # it has been refused
            return
        rest = [entered for entered in self.entered if entered is not left]
        active = self.before | {name: value for one in rest for name, value in one.patch.values.items()}
        _put_all(self.owner, {name: active[name] for name in left.patch.values})
        names = frozenset().union(*(one.patch.values for one in rest))
        self.entered, self.before = rest, {name: self.before[name] for name in names}


_SPACES: Final = (type, ModuleType)
_CLASS_METHODS: Final = (classmethod, ClassMethodDescriptorType)
_TEXTS: Final = ("__module__", "__name__", "__qualname__", "__doc__")
_places: dict[Key, _Function | _Values] = {}
"""The locations with active replacements, by owner, which they keep alive, and name."""


def _found(owner: Any, name: Any) -> Any:
    """Returns the owner's own content of a location; classes and modules inherit the rest."""
    if isinstance(owner, dict):
        return owner.get(name, _ABSENT)
    return vars(owner).get(name, _ABSENT) if isinstance(owner, _SPACES) else getattr(owner, name, _ABSENT)


def _found_all(owner: Any, names: Iterable[Any]) -> dict[Any, Any]:
    if isinstance(owner, dict):
        return {name: owner.get(name, _ABSENT) for name in names}
    return {name: _found(owner, name) for name in names}


def _put_all(owner: Any, values: Mapping[Any, Any]) -> None:
    if isinstance(owner, dict):
        there = {name: value for name, value in values.items() if value is not _ABSENT}
        owner.update(there)
        for name in values.keys() - there.keys():
            owner.pop(name, None)
    else:
        for name, value in values.items():
            _put(owner, name, value)


def _put(owner: Any, name: Any, value: Any) -> None:
    before = getattr(owner, name, None) if name == "__getitem__" and isinstance(owner, type) else None
    if isinstance(owner, dict):
        if value is _ABSENT:
            owner.pop(name, None)
        else:
            owner[name] = value
    elif value is _ABSENT:
        if _found(owner, name) is not _ABSENT:
            delattr(owner, name)
    else:
        setattr(owner, name, value)
    if isinstance(before, FunctionType):
        # Python 3.13 goes on calling the former function in `x[i]` once a class has changed a thousand times,
        # unless the function has changed, too: its cache tells by the version of the function alone.
        before.__defaults__ = before.__defaults__
