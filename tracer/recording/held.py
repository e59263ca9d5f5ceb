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
import dis
import functools
import random
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
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
_CALLED: Final = frozenset({FunctionType, staticmethod, classmethod, property, _CACHED})
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


class _Container:
    """An object whose contents a run may change, with its contents when this is made."""

    __slots__ = ("contents", "target")

    def __init__(self, target: Any) -> None:
        self.target = target
        self.contents = self.read()

    def read(self) -> list[Any]:
        raise NotImplementedError

    def write(self, contents: list[Any]) -> None:
        raise NotImplementedError

    def is_same(self) -> bool:
        now = self.read()
        return len(now) == len(self.contents) and all(map(is_, now, self.contents))


class _Mapping(_Container):
    """A dict, as its keys followed by its values."""

    __slots__ = ()

    def read(self) -> list[Any]:
        return [*self.target, *self.target.values()]

    def write(self, contents: list[Any]) -> None:
        target, half = self.target, len(contents) // 2
        if len(target) == half and all(map(is_, target, contents)):
            for key, value in zip(contents[:half], contents[half:], strict=True):
                if target[key] is not value:
                    target[key] = value
            return
        before = dict(zip(contents[:half], contents[half:], strict=True))
        for key in [key for key in target if key not in before]:
            del target[key]
        for key, value in before.items():
            if target.get(key, target) is not value:
                target[key] = value
        if not all(map(is_, target, before)):  # in the order in which they stood
            target.clear()
            target.update(before)


class _Sequence(_Container):
    """A list or a deque."""

    __slots__ = ()

    def read(self) -> list[Any]:
        return [*self.target]

    def write(self, contents: list[Any]) -> None:
        self.target.clear()
        self.target.extend(contents)


class _Set(_Sequence):
    __slots__ = ()

    def write(self, contents: list[Any]) -> None:
        self.target.clear()
        self.target.update(contents)


_MISSING: Final = object()


class _Attributes(_Container):
    """Attributes of an object; missing ones are `_MISSING`."""

    __slots__ = ("names",)

    def __init__(self, target: Any, names: tuple[str, ...]) -> None:
        self.names = names
        super().__init__(target)

    def read(self) -> list[Any]:
        return [getattr(self.target, name, _MISSING) for name in self.names]

    def write(self, contents: list[Any]) -> None:
        for name, now, before in zip(self.names, self.read(), contents, strict=True):
            if now is before:
                continue
            if before is _MISSING:
                object.__delattr__(self.target, name)
            else:
                object.__setattr__(self.target, name, before)


class _Class(_Container):
    """The attributes of a class, as their names followed by their values."""

    __slots__ = ()

    def read(self) -> list[Any]:
        members = vars(self.target)
        return [*members, *members.values()]

    def write(self, contents: list[Any]) -> None:
        half = len(contents) // 2
        before = dict(zip(contents[:half], contents[half:], strict=True))
        now = dict(vars(self.target))
        for name in now.keys() - before.keys():
            type.__delattr__(self.target, name)
        for name, value in before.items():
            if now.get(name, _MISSING) is not value:
                type.__setattr__(self.target, name, value)


class _Globals(_Container):
    """The globals of a module that functions mention; missing ones are `_MISSING`.

    A submodule that is imported meanwhile stays: it is imported once.
    """

    __slots__ = ("codes", "names")

    def __init__(self, scope: dict[str, Any]) -> None:
        self.codes: list[CodeType] = []
        """Codes of functions whose names have not been looked up yet."""
        self.names: dict[str, None] = {}
        super().__init__(scope)

    def look_up(self) -> tuple[dict[str, None], list[Any]]:
        """Returns the names that the codes mention, and the contents of the globals among them that are new.
        """
        scope, known, codes = self.target, self.names, self.codes
        self.codes = []
        names = dict.fromkeys(chain.from_iterable(map(_names, codes)))
        fresh = [name for name in names if name in scope and name not in known]
        fresh += [name for name in chain.from_iterable(map(_assigned, codes)) if name not in scope]
        fresh = [*dict.fromkeys(fresh)]
        known.update(dict.fromkeys(fresh))
        contents = [scope.get(name, _MISSING) for name in fresh]
        self.contents += contents
        return names, contents

    def read(self) -> list[Any]:
        return [self.target.get(name, _MISSING) for name in self.names]

    def write(self, contents: list[Any]) -> None:
        scope = self.target
        for name, before in zip(self.names, contents, strict=True):
            now = scope.get(name, _MISSING)
            if now is before:
                continue
            if before is not _MISSING:
                scope[name] = before
            elif not isinstance(now, ModuleType):
                del scope[name]


class _Cells(_Container):
    """The variables that functions close over; `_MISSING` where one has no value yet."""

    __slots__ = ()

    def add(self, cell: CellType) -> Any:
        """Adds a variable, and returns its content."""
        self.target.append(cell)
        self.contents.append(_content(cell))
        return self.contents[-1]

    def read(self) -> list[Any]:
        return [*map(_content, self.target)]

    def write(self, contents: list[Any]) -> None:
        for cell, before in zip(self.target, contents, strict=True):
            if before is not _MISSING:
                cell.cell_contents = before
            elif _content(cell) is not _MISSING:
                del cell.cell_contents


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


class _Partial(_Container):
    """A function together with some of its arguments."""

    __slots__ = ()

    def read(self) -> list[Any]:
        return [self.target.func, self.target.args, self.target.keywords]

    def write(self, contents: list[Any]) -> None:
        self.target.__setstate__((*contents, vars(self.target)))


class _Kinds(_Container):
    """The classes of modules, since a lazy one changes its class when it gets its first input."""

    __slots__ = ()

    def add(self, module: torch.nn.Module) -> None:
        self.target.append(module)
        self.contents.append(type(module))

    def read(self) -> list[Any]:
        return [*map(type, self.target)]

    def write(self, contents: list[Any]) -> None:
        for module, kind in zip(self.target, contents, strict=True):
            if type(module) is not kind:
                module.__class__ = kind


# ---- the walk


class Held:
    """The tensors of a program, and its containers with their contents when this object is made."""

    def __init__(self, target: Any) -> None:
        self.tensors: dict[int, torch.Tensor] = {}
        """Tensors by identity, without those of other libraries that wrap others."""
        self._cells, self._kinds = _Cells([]), _Kinds([])
        self._containers: list[_Container] = [self._cells, self._kinds]
        self._with_tensors: list[_Container] = []
        self._empty: list[Any] = []
        """Empty lists, dicts and sets, the most frequent containers."""
        self._globals: dict[int, _Globals] = {}
        self._arrays: dict[int, Any] = {}
        self._generators: list[_GeneratorState] = []
        self._seen: dict[int, Any] = {}
        self._mentioned = {"forward"}
        """The names that the visited functions mention."""
        self._methods: dict[str, list[Any]] = {}
        """Methods, by name, that no visited function is known to call."""
        self._waiting: list[Any] = []
        self._reach([target])
        while self._waiting:
            self._visit()
            self._look_up()

    def _visit(self) -> None:
        waiting, seen = self._waiting, self._seen
        while waiting:
            value = waiting.pop()
            if id(value) in seen:
                continue
            seen[id(value)] = value
            kind: type = type(value)
            plain = value.__class__ is kind  # which of a wrapper is that of what it wraps
            visit = _visit_of(kind) if plain else _first(functools.partial(isinstance, value))
            visit(self, value)

    def _collection(self, value: Any) -> None:
        if not value:
            self._empty.append(value)
        elif isinstance(value, dict):
            self._mapping(value)
        else:
            self._add(_Set(value) if isinstance(value, set) else _Sequence(value))

    def _mapping(self, value: dict[Any, Any]) -> None:
        found = _Mapping(value)
        self._containers.append(found)
        names = _ATOMS.issuperset(map(type, value))
        if self._reach(found.contents[len(value) if names else 0 :]):
            self._with_tensors.append(found)

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
        elif _is_programs(kind.__module__, _HOLDING):
            self._waiting.append(kind)
            if isinstance(attributes := getattr(value, "__dict__", None), dict):
                self._reach((attributes,))
            if slots := _slots(kind):
                self._add(_Attributes(value, slots))

    def _module(self, module: torch.nn.Module) -> None:
        kind: type = type(module)
        self._kinds.add(module)
        self._waiting += kind, vars(module)
        if slots := _slots(kind):
            self._add(_Attributes(module, slots))

    def _class(self, kind: type) -> None:
        """Visits a class: its attributes, and of its methods and those of its bases the ones that may be
        called.
        """
        if not _is_programs(kind.__module__):
            return
        self._waiting += kind.__mro__[1:]
        members = _Class(kind)
        self._containers.append(members)
        attributes = []
        for name, member in vars(kind).items():
            if type(member) in _CALLED:
                if name in self._mentioned or (name[:2] == "__" and name not in _MAKING):
                    self._waiting.append(member)
                else:
                    self._methods.setdefault(name, []).append(member)
            elif name[:2] != "__":
                attributes.append(member)
        if self._reach(attributes):
            self._with_tensors.append(members)

    def _function(self, function: FunctionType) -> None:
        self._waiting += function.__closure__ or ()
        scope = function.__globals__
        if not _is_programs(scope.get("__name__")):
            return  # but a decorator of a library's closes over the program's own function
        found = self._globals.get(id(scope))
        if found is None:
            found = self._globals[id(scope)] = _Globals(scope)
            self._containers.append(found)
        found.codes.append(function.__code__)
        if function.__defaults__ or function.__kwdefaults__:
            self._add(_Attributes(function, ("__defaults__", "__kwdefaults__")))
        attributes = vars(function)
        (self._waiting if attributes else self._empty).append(attributes)

    def _cell(self, cell: CellType) -> None:
        if self._reach((self._cells.add(cell),)) and self._cells not in self._with_tensors:
            self._with_tensors.append(self._cells)

    def _look_up(self) -> None:
        """Reaches the globals and the methods that the functions visited meanwhile mention."""
        for scope in [scope for scope in self._globals.values() if scope.codes]:
            names, contents = scope.look_up()
            self._mentioned.update(names)
            for name in [name for name in names if name in self._methods]:
                self._waiting += self._methods.pop(name)
            if self._reach(contents) and scope not in self._with_tensors:
                self._with_tensors.append(scope)

    def _add(self, container: _Container) -> None:
        self._containers.append(container)
        if self._reach(container.contents):
            self._with_tensors.append(container)

    def _reach(self, contents: Iterable[Any]) -> bool:
        """Lets these objects be visited; returns whether tensors are among them, or in tuples among them."""
        found, waiting = False, self._waiting
        for value in contents:
            kind: type = type(value)
            if kind in _ATOMS:
                continue
            if kind not in _COLLECTIONS:
                waiting.append(value)
                if not found and _may_hold_tensors(kind):
                    found = _holds_tensors(value)
            elif value:
                waiting.append(value)
            else:
                self._empty.append(value)
        return found

    # ---- lending

    def is_current(self) -> bool:
        """Returns whether all containers still have the contents stored here."""
        return not any(self._empty) and all(container.is_same() for container in self._containers)

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        """Restores the contents of every container, and the states of generators, at the end of the block."""
        states = [(generator, generator.read()) for generator in self._generators]
        try:
            yield
        finally:
            for container in self._containers:
                if not container.is_same():
                    container.write(container.contents)
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
            for container in self._with_tensors:
                container.write([_exchanged(value, replaced) for value in container.contents])
            yield stand_ins.aliases


_VISITS: Final[tuple[tuple[Any, Callable[[Held, Any], object]], ...]] = (
    (dict | list | set | deque, Held._collection),
    (torch.Tensor, Held._tensor),
    (tuple | frozenset, Held._reach),
    (FunctionType, Held._function),
    (MethodType, lambda held, method: held._waiting.extend((method.__self__, method.__func__))),
    (functools.partial, lambda held, value: held._add(_Partial(value))),
    (staticmethod | classmethod, lambda held, value: held._waiting.append(value.__func__)),
    (_CACHED, lambda held, value: held._waiting.append(value.__wrapped__)),
    (property, lambda held, value: held._reach((value.fget, value.fset))),
    (type, Held._class),
    (torch.nn.Module, Held._module),
    (CellType, Held._cell),
    (object, Held._object),
)
"""The visitors of values: the first entry whose types match applies."""


def _first(is_of: Callable[[Any], bool]) -> Callable[[Held, Any], object]:
    return next(visit for known, visit in _VISITS if is_of(known))


@functools.cache
def _visit_of(kind: type) -> Callable[[Held, Any], object]:
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


@per_code
def _assigned(code: CodeType) -> tuple[str, ...]:
    """Returns the globals that a function, and those within it, may make."""
    found = [i.argval for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL"]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += _assigned(constant)
    return tuple(found)


@functools.cache
def _slots(kind: type) -> tuple[str, ...]:
    """Returns the attributes that objects of a class have outside of a dict."""
    slots = [vars(base).get("__slots__", ()) for base in kind.__mro__ if base.__module__ != "builtins"]
    names = [name for s in slots for name in ((s,) if isinstance(s, str) else s)]
    return tuple(n for n in names if n not in ("__dict__", "__weakref__") and not n.startswith("__"))


class _GeneratorState(NamedTuple):
    """Functions that read and set the state of a generator of random numbers."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


def _generator(value: Any) -> _GeneratorState | None:
    """Returns the accessors for a generator of random numbers of torch's, Python's or NumPy's; else None."""
    if isinstance(value, torch.Generator):
        return _GeneratorState(value.get_state, value.set_state)
    if isinstance(value, random.Random):
        return _GeneratorState(value.getstate, value.setstate)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.random.RandomState):
        return _GeneratorState(value.get_state, value.set_state)
    if numpy is not None and isinstance(value, numpy.random.Generator):
        bits = value.bit_generator
        return _GeneratorState(lambda: bits.state, lambda state: setattr(bits, "state", state))
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
            if type(tensor) is torch.Tensor:
                made.requires_grad_(tensor.requires_grad)
            else:
                made = make_subclass(type(tensor), made, tensor.requires_grad)
            if not self._copied:
                self.aliases.append(made)
        if attributes := vars(tensor):
            vars(made).update(attributes)
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
