"""All objects that a program refers to, so that it can run without changing them.

A run may write into everything that the program can access: parameters, buffers, tensors in attributes,
lists, closures and globals, caches of functions and classes. `Held` walks through all of that. While its
contents are lent to a run, stand-ins take the place of the tensors: the program's own are never written into,
so that their versions, gradients, hooks and graphs stay as they are. Afterwards the contents of every
container are restored.

Objects that no walk reaches are not covered: the locals of generators, iterators, objects of extensions.
"""

from __future__ import annotations

import contextlib
import functools
import random
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from ..bytecode.codes import per_code
from ..bytecode.origins import is_inner
from ..host.tensors import all_modes_off, is_of_transform, make_subclass, overrides_off, storage_id

_CACHED: Final = type(functools.lru_cache(len))
_ATOMS: Final = frozenset(
    {int, float, bool, str, bytes, complex, range, slice, type(None), type(...), torch.dtype, torch.device}
    | {torch.Size, type(len), ModuleType, torch.layout, torch.memory_format}
)
"""Types of objects without contents that a run could change."""
_COLLECTIONS: Final = frozenset({dict, list, set, OrderedDict, deque})
_CALLED: Final = (FunctionType, staticmethod, classmethod, property, _CACHED)
_MAKING: Final = frozenset("__init__ __new__ __init_subclass__ __class_getitem__ __del__ __reduce__".split())
"""Methods that are not called on an object that exists already."""
_FOREIGN: Final = frozenset(
    "torch numpy anyshape sympy z3 msgspec functorch torchgen triton _pytest pytest pluggy".split()
)
"""Packages whose functions and objects do not belong to the program."""
_HOLDING: Final = (
    "torch.nn.", "torch.distributions.", "torch.optim.", "torch.ao.", "types.", "collections.", "argparse."
)  # fmt: skip
"""Third-party packages whose objects contain tensors of a program."""


# ---- containers: what is in one, and how it is put back


@dataclass(frozen=True, slots=True)
class _Container:
    """An object whose contents a run may change, with a list of its present contents."""

    read: Callable[[], list[Any]]
    write: Callable[[list[Any]], object]


def _mapping(target: dict[Any, Any]) -> _Container:
    """A dict, as its keys followed by its values."""

    def write(contents: list[Any]) -> None:
        half = len(contents) // 2
        before = dict(zip(contents[:half], contents[half:], strict=True))
        for key in [key for key in target if key not in before]:
            del target[key]
        for key, value in before.items():
            if target.get(key, target) is not value:
                target[key] = value
        if not all(map(is_, target, before)):  # in the order in which they stood
            target.clear()
            target.update(before)

    return _Container(lambda: [*target, *target.values()], write)


def _sequence(target: Any) -> _Container:
    """A list or a deque."""

    def write(contents: list[Any]) -> None:
        target.clear()
        target.extend(contents)

    return _Container(lambda: [*target], write)


def _set(target: set[Any]) -> _Container:
    def write(contents: list[Any]) -> None:
        target.clear()
        target.update(contents)

    return _Container(lambda: [*target], write)


_MISSING: Final = object()


def _attributes(target: Any, names: tuple[str, ...], of: Any = object) -> _Container:
    """Returns attributes of an object, or of a class if `of` is `type`; missing ones are `_MISSING`."""

    def write(contents: list[Any]) -> None:
        for name, now, before in zip(names, read(), contents, strict=True):
            if now is before:
                continue
            if before is _MISSING:
                of.__delattr__(target, name)
            else:
                of.__setattr__(target, name, before)

    def read() -> list[Any]:
        if of is type:
            return [vars(target).get(name, _MISSING) for name in names]
        return [getattr(target, name, _MISSING) for name in names]

    return _Container(read, write)


def _class(target: type) -> _Container:
    """Returns the attributes of a class, as their names followed by their values."""

    def write(contents: list[Any]) -> None:
        half = len(contents) // 2
        before = dict(zip(contents[:half], contents[half:], strict=True))
        now = dict(_members(target))
        for name in now.keys() - before.keys():
            type.__delattr__(target, name)
        for name, value in before.items():
            if now.get(name, _MISSING) is not value:
                type.__setattr__(target, name, value)

    def read() -> list[Any]:
        members = _members(target)
        return [*members, *members.values()]

    return _Container(read, write)


def _members(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("__")}


def _globals(scope: dict[str, Any], names: tuple[str, ...]) -> _Container:
    """Returns the globals that a function mentions; missing ones are `_MISSING`.

    A submodule that is imported meanwhile stays: it is imported once.
    """

    def write(contents: list[Any]) -> None:
        for name, before in zip(names, contents, strict=True):
            now = scope.get(name, _MISSING)
            if now is before:
                continue
            if before is not _MISSING:
                scope[name] = before
            elif not isinstance(now, ModuleType):
                del scope[name]

    return _Container(lambda: [scope.get(name, _MISSING) for name in names], write)


def _cell(cell: CellType) -> _Container:
    """Returns a variable that a function closes over; an empty list where it has no value yet."""

    def read() -> list[Any]:
        try:
            return [cell.cell_contents]
        except ValueError:
            return []

    def write(contents: list[Any]) -> None:
        if contents:
            cell.cell_contents = contents[0]
        else:
            del cell.cell_contents

    return _Container(read, write)


def _partial(target: functools.partial[Any]) -> _Container:
    """Returns a function together with some of its arguments."""

    def read() -> list[Any]:
        return [target.func, target.args, target.keywords]

    def write(contents: list[Any]) -> None:
        target.__setstate__((*contents, vars(target)))  # type: ignore[attr-defined]

    return _Container(read, write)


def _kind(target: Any) -> _Container:
    """Returns the class of a module, since a lazy one changes its class when it gets its first input."""

    def write(contents: list[Any]) -> None:
        (target.__class__,) = contents

    return _Container(lambda: [type(target)], write)


# ---- the walk


class Held:
    """The tensors of a program, and its containers with their contents when this object is made."""

    def __init__(self, target: Any) -> None:
        self.tensors: dict[int, torch.Tensor] = {}
        """Tensors by identity, without those of other libraries that wrap others."""
        self._containers: list[tuple[_Container, list[Any]]] = []
        self._with_tensors: list[tuple[_Container, list[Any]]] = []
        self._empty: list[Any] = []
        """Empty lists, dicts and sets, the most frequent containers."""
        self._arrays: dict[int, Any] = {}
        self._generators: list[_Generator] = []
        self._seen: dict[int, Any] = {}
        self._mentioned = {"forward"}
        """The names that the visited functions mention."""
        self._methods: dict[str, list[Any]] = {}
        """Methods, by name, that no visited function is known to call."""
        self._waiting: list[Any] = []
        self._reach([target])
        while self._waiting:
            self._visit(self._waiting.pop())

    def _visit(self, value: Any) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        kind: type = type(value)
        if kind in _COLLECTIONS and not value:
            self._empty.append(value)
            return
        plain = value.__class__ is kind  # which of a wrapper is that of what it wraps
        visit = _visit_of(kind) if plain else _first(lambda known: isinstance(value, known))
        visit(self, value)

    def _collection(self, value: Any) -> None:
        if not value:
            self._empty.append(value)
        elif isinstance(value, dict):
            self._add(_mapping(value))
        else:
            self._add(_set(value) if isinstance(value, set) else _sequence(value))

    def _tensor(self, tensor: torch.Tensor) -> None:
        if _can_stand_in(tensor):
            self.tensors[id(tensor)] = tensor

    def _object(self, value: Any) -> None:
        """Visits an object with attributes, or a generator of random numbers."""
        kind: type = type(value)
        if (generator := _generator(value)) is not None:
            self._generators.append(generator)
        elif _is_array(value):
            self._arrays[id(value)] = value
        elif isinstance(value, torch.nn.Module) or _is_programs(kind.__module__, _HOLDING):
            self._visit(kind)
            if isinstance(value, torch.nn.Module):
                self._add(_kind(value))
            if isinstance(attributes := getattr(value, "__dict__", None), dict):
                self._visit(attributes)
            if slots := _slots(kind):
                self._add(_attributes(value, slots))

    def _class(self, kind: type) -> None:
        """Visits a class: its attributes, and of its methods and those of its bases the ones that may be
        called.
        """
        if not _is_programs(kind.__module__):
            return
        self._waiting += kind.__mro__[1:]
        self._keep(_class(kind))
        for name, member in vars(kind).items():
            if not isinstance(member, _CALLED):
                if not name.startswith("__"):
                    self._reach((member,))
            elif name in self._mentioned or (name.startswith("__") and name not in _MAKING):
                self._waiting.append(member)
            else:
                self._methods.setdefault(name, []).append(member)

    def _function(self, function: FunctionType) -> None:
        if not _is_programs(function.__globals__.get("__name__")):
            # A decorator of a library's closes over the program's own function.
            self._waiting += function.__closure__ or ()
            return
        names = _names(function.__code__)
        for name in names:
            if name not in self._mentioned:
                self._mentioned.add(name)
                self._waiting += self._methods.pop(name, ())
        if spoken_of := tuple(name for name in names if name in function.__globals__):
            self._add(_globals(function.__globals__, spoken_of))
        self._waiting += function.__closure__ or ()
        if function.__defaults__ or function.__kwdefaults__:
            self._add(_attributes(function, ("__defaults__", "__kwdefaults__")))
        self._visit(vars(function))

    def _keep(self, container: _Container) -> list[Any]:
        contents = container.read()
        self._containers.append((container, contents))
        kinds = {*map(type, contents)}
        if any(map(_may_hold_tensors, kinds - _ATOMS)) and any(map(_holds_tensors, contents)):
            self._with_tensors.append((container, contents))
        return contents

    def _add(self, container: _Container) -> None:
        self._reach(self._keep(container))

    def _reach(self, contents: Iterable[Any]) -> None:
        self._waiting += [value for value in contents if type(value) not in _ATOMS]

    # ---- lending

    def is_current(self) -> bool:
        """Returns whether all containers still have the contents stored here."""
        return not any(self._empty) and not any(True for _ in self._changed())

    def _changed(self) -> Iterator[tuple[_Container, list[Any]]]:
        for container, contents in self._containers:
            now = container.read()
            if len(now) != len(contents) or not all(map(is_, now, contents)):
                yield container, contents

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        """Restores the contents of every container, and the states of generators, at the end of the block."""
        states = [(generator, generator.read()) for generator in self._generators]
        try:
            yield
        finally:
            for container, contents in self._changed():
                container.write(contents)
            for empty in filter(None, self._empty):
                empty.clear()
            for generator, state in states:
                generator.write(state)

    @contextlib.contextmanager
    def lent(
        self, *, copied: bool, but: Iterable[torch.Tensor] = ()
    ) -> Iterator[list[torch.Tensor]]:
        """Replaces the tensors, except those in `but`, by stand-ins inside the block, and restores everything
        at its end.

        A stand-in is a copy, or else an alias: it lies in the memory of its tensor. The block gets the
        aliases; the caller has to undo writes into them.
        """
        with overrides_off(), all_modes_off():
            stand_ins, own = _StandIns(copied), {*map(id, but)}
            lent = {key: tensor for key, tensor in self.tensors.items() if key not in own}
            replaced: dict[int, Any] = {key: stand_ins.of(tensor) for key, tensor in lent.items()}
            replaced |= {key: array.copy() for key, array in self._arrays.items()}
        with self._kept():
            for container, contents in self._with_tensors:
                container.write([_exchanged(value, replaced) for value in contents])
            yield stand_ins.aliases


_VISITS: Final[tuple[tuple[Any, Callable[[Held, Any], None]], ...]] = (
    (dict | list | set | deque, Held._collection),
    (torch.Tensor, Held._tensor),
    (tuple | frozenset, Held._reach),
    (FunctionType, Held._function),
    (MethodType, lambda held, method: held._waiting.extend((method.__self__, method.__func__))),
    (functools.partial, lambda held, value: held._add(_partial(value))),
    (staticmethod | classmethod, lambda held, value: held._waiting.append(value.__func__)),
    (_CACHED, lambda held, value: held._waiting.append(value.__wrapped__)),
    (property, lambda held, value: held._reach((value.fget, value.fset))),
    (type, Held._class),
    (CellType, lambda held, value: held._add(_cell(value))),
    (object, Held._object),
)
"""The visitors of values: the first entry whose types match applies."""


def _first(is_of: Callable[[Any], bool]) -> Callable[[Held, Any], None]:
    return next(visit for known, visit in _VISITS if is_of(known))


@functools.cache
def _visit_of(kind: type) -> Callable[[Held, Any], None]:
    return _first(lambda known: issubclass(kind, known))


@functools.cache
def _may_hold_tensors(kind: type) -> bool:
    return issubclass(kind, tuple | torch.Tensor) or any(base.__module__ == "numpy" for base in kind.__mro__)


def _holds_tensors(value: Any) -> bool:
    kind: type = type(value)
    if not _may_hold_tensors(kind):
        return False
    if isinstance(value, tuple):
        return any(map(_holds_tensors, value))
    return isinstance(value, torch.Tensor) or _is_array(value)


def _exchanged(value: Any, replaced: Mapping[int, Any]) -> Any:
    """Returns the value, or its stand-in; a tuple that contains a replaced value is rebuilt."""
    if (found := replaced.get(id(value), _MISSING)) is not _MISSING:
        return found
    if isinstance(value, tuple) and type(value) is not torch.Size and value:
        members = [_exchanged(member, replaced) for member in value]
        if not all(map(is_, members, value)):
            return tuple.__new__(type(value), members)
    return value


@functools.cache
def _is_programs(module: str | None, others: tuple[str, ...] = ()) -> bool:
    """Returns whether objects defined in a module belong to the program, or to `others`."""
    name = module or ""
    root = name.partition(".")[0]
    if f"{name}.".startswith(others) and others:
        return True
    if not name or root in sys.stdlib_module_names or root in _FOREIGN:
        return False
    return not is_inner(getattr(sys.modules.get(name), "__file__", None) or "")


@per_code
def _names(code: CodeType) -> tuple[str, ...]:
    """Returns the names that a function, and those within it, may look up among the globals."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= dict.fromkeys(_names(constant))
    return tuple(found)


@functools.cache
def _slots(kind: type) -> tuple[str, ...]:
    """Returns the attributes that objects of a class have outside of a dict."""
    slots = [vars(base).get("__slots__", ()) for base in kind.__mro__ if base.__module__ != "builtins"]
    names = [name for s in slots for name in ((s,) if isinstance(s, str) else s)]
    return tuple(n for n in names if n not in ("__dict__", "__weakref__") and not n.startswith("__"))


class _Generator(NamedTuple):
    """Functions that read and set the state of a generator of random numbers."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


def _generator(value: Any) -> _Generator | None:
    """Returns the accessors for a generator of random numbers of torch's, Python's or NumPy's; else None."""
    if isinstance(value, torch.Generator):
        return _Generator(value.get_state, value.set_state)
    if isinstance(value, random.Random):
        return _Generator(value.getstate, value.setstate)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.random.RandomState):
        return _Generator(value.get_state, value.set_state)
    if numpy is not None and isinstance(value, numpy.random.Generator):
        bits = value.bit_generator
        return _Generator(lambda: bits.state, lambda state: setattr(bits, "state", state))
    return None


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


# ---- tensors


def _can_stand_in(tensor: torch.Tensor) -> bool:
    """Returns whether another tensor can replace it: it has data, and wraps no other tensors."""
    if is_of_transform(tensor):
        return False
    return type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__


class _StandIns:
    """Makes tensors that replace others; the copies of tensors that share memory share memory, too."""

    def __init__(self, copied: bool) -> None:
        self.aliases: list[torch.Tensor] = []
        """The stand-ins that lie in the memory of a tensor of the program's."""
        self._copied = copied
        self._storages: dict[int, torch.UntypedStorage] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, UninitializedTensorMixin):
            return _uninitialized(tensor)
        made = self._data(tensor)
        if not tensor.is_leaf:
            with torch.enable_grad():
                made = made.requires_grad_().clone()
        else:
            if type(tensor) is not torch.Tensor:
                made = make_subclass(type(tensor), made)
            made.requires_grad_(tensor.requires_grad)
            if not self._copied:
                self.aliases.append(made)
        vars(made).update(vars(tensor))
        if tensor.is_leaf and tensor.grad is not None:
            made.grad = self._data(tensor.grad)
            if not self._copied:
                self.aliases.append(made.grad)
        return made

    def _data(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the elements, in a tensor of their own."""
        data = tensor.data
        if tensor.is_meta or not self._copied:
            return data
        plain = data.layout is torch.strided and not (data.is_quantized or data.is_conj() or data.is_neg())
        if not plain:
            return data.clone()
        storage = data.untyped_storage()
        if (key := storage_id(storage)) not in self._storages:
            self._storages[key] = storage.clone()  # type: ignore[no-untyped-call]
        made = torch.empty(0, dtype=data.dtype, device=data.device)
        return made.set_(self._storages[key], data.storage_offset(), data.shape, data.stride())


def _uninitialized(tensor: Any) -> torch.Tensor:
    """Returns another tensor in place of one whose shape its module does not know yet."""
    made: torch.Tensor = type(tensor)(device=tensor.device, dtype=tensor.dtype)
    return made.requires_grad_(tensor.requires_grad) if isinstance(made, torch.nn.Parameter) else made
