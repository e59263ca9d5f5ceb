"""All objects that a program refers to, so that it can run without changing them.

A run may write into everything that the program can access: parameters, buffers, tensors in attributes,
lists, closures and globals, caches of functions and classes. `Held` walks through all of that. While its
contents are lent to a run, stand-ins take the place of the tensors: the program's own are never written into,
so that their versions, gradients, hooks and graphs stay as they are. Afterwards the contents of every
container are restored.

Objects that no walk reaches are not covered: the locals of generators, iterators, objects of extensions.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import random
import sys
from bisect import bisect_right
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress, filterfalse, islice, repeat
from operator import attrgetter, is_, methodcaller, setitem
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from ...constraints.engine.collector import collector_at_rest
from ...constraints.ir.program import Origin
from ..bytecode.codes import per_code
from ..bytecode.identity import compared_with_numbers
from ..bytecode.origins import is_inner
from ..host.interpreter import CACHED
from ..host.modules import NOTED_BY_LAYERS
from ..host.submodules import submodules
from ..host.tensors import all_modes_off, is_of_transform, make_subclass, overrides_off, storage_id

_ATOMS: Final = frozenset(
    {int, float, bool, str, bytes, complex, range, slice, type(None), type(...), torch.dtype, torch.device}
    | {torch.Size, type(len), ModuleType, torch.layout, torch.memory_format}
)
"""Types of objects without contents that a run could change."""
_COLLECTIONS: Final = frozenset({dict, list, set, OrderedDict, deque})
_HANDLED: Final = _ATOMS | _COLLECTIONS
_CALLED: Final = frozenset({FunctionType, staticmethod, classmethod, property, CACHED})
_MAKING: Final = frozenset(
    "__init__ __post_init__ __new__ __init_subclass__ __class_getitem__ __del__ __reduce__".split()
)
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
_closure: Final = attrgetter("__closure__")


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
        scope, known = self.target, self.names
        names: dict[str, None] = {}
        made: dict[str, None] = {}
        for named, makes in map(_spoken_of, self.codes):
            names |= named
            if makes:
                made |= makes
        self.codes = []
        fresh = [name for name in names if name in scope and name not in known]
        if made:
            fresh += [name for name in made if name not in scope and name not in known]
        known |= dict.fromkeys(fresh)
        contents = [*map(scope.get, fresh, repeat(_MISSING))]
        self.contents += contents
        return names, contents

    def read(self) -> list[Any]:
        return [*map(self.target.get, self.names, repeat(_MISSING))]

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


class _OfMany(_Container):
    """One property of many objects: what a variable that functions close over holds, or the class of a
    module, which a lazy one changes when it gets its first input.
    """

    __slots__ = ("_get", "_set")

    def __init__(self, get: Callable[[Any], Any], set: Callable[[Any, Any], object]) -> None:
        self._get, self._set = get, set
        super().__init__([])

    def add(self, objects: list[Any]) -> list[Any]:
        """Adds objects, and returns their contents."""
        contents = [*map(self._get, objects)]
        self.target += objects
        self.contents += contents
        return contents

    def drop(self, count: int) -> None:
        """Removes the objects that were added last."""
        known = len(self.target) - count
        del self.target[known:], self.contents[known:]

    def read(self) -> list[Any]:
        return [*map(self._get, self.target)]

    def write(self, contents: list[Any]) -> None:
        for one, before in zip(self.target, contents, strict=True):
            if self._get(one) is not before:
                self._set(one, before)


def _setter(name: str) -> Callable[[Any, Any], None]:
    return lambda one, value: setattr(one, name, value)


def _content(cell: CellType) -> Any:
    """Returns what a variable holds; `_MISSING` where it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _set_content(cell: CellType, content: Any) -> None:
    if content is _MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = content


class _Partial(_Container):
    """A function together with some of its arguments."""

    __slots__ = ()

    def read(self) -> list[Any]:
        return [self.target.func, self.target.args, self.target.keywords]

    def write(self, contents: list[Any]) -> None:
        self.target.__setstate__((*contents, vars(self.target)))


_values: Final = methodcaller("values")


class _Places(NamedTuple):
    """Some of the contents of many dicts: the number of each, its owner, its name and its value."""

    places: list[int]
    owners: list[Any]
    names: list[Any]
    values: list[Any]


class _Dicts:
    """Many dicts and their contents, one after another: a container for each would be most of the work."""

    def __init__(self) -> None:
        self._owners: list[Any] = []
        self._sizes: list[int] = []
        self._names: list[Any] = []
        self._values: list[Any] = []
        self.loose: list[int] = []
        """The places of values that are neither atoms nor containers."""

    def add(self, owners: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Adds some owners, and returns their names and their values."""
        maps = self.read(owners)
        names = [*chain.from_iterable(maps)]
        values = [*chain.from_iterable(map(_values, maps))]
        first = len(self._values)
        self.loose += [at for at, kind in enumerate(map(type, values), first) if kind not in _HANDLED]
        self._owners += owners
        self._sizes += map(len, maps)
        self._names += names
        self._values += values
        return names, values

    @staticmethod
    def read(owners: Sequence[Any]) -> Sequence[Any]:
        """Returns the attributes or items of each owner."""
        return owners

    put: Callable[[Any, Any, Any], object] = staticmethod(setitem)

    def write(self, owner: Any, before: dict[Any, Any]) -> None:
        for name in [name for name in owner if name not in before]:
            del owner[name]
        for name, value in before.items():
            if owner.get(name, owner) is not value:
                owner[name] = value
        if not all(map(is_, owner, before)):  # in the order in which they stood
            owner.clear()
            owner.update(before)

    def is_same(self) -> bool:
        maps = self.read(self._owners)
        return (
            [*map(len, maps)] == self._sizes
            and all(map(is_, chain.from_iterable(map(_values, maps)), self._values))
            and all(map(is_, chain.from_iterable(maps), self._names))
        )

    def restore(self) -> dict[int, list[Any]]:
        """Restores every owner; returns the names that had changed in each of those that had, by identity."""
        changed: dict[int, list[Any]] = {}
        names, values = iter(self._names), iter(self._values)
        for owner, now, size in zip(self._owners, self.read(self._owners), self._sizes, strict=True):
            before = dict(zip(islice(names, size), islice(values, size), strict=True))
            if not (
                len(now) == size
                and all(map(is_, now, before))
                and all(map(is_, now.values(), before.values()))
            ):
                names_of_both = dict.fromkeys(chain(now, before))
                changed[id(owner)] = [
                    name for name in names_of_both if now.get(name, owner) is not before.get(name, owner)
                ]
                self.write(owner, before)
        return changed

    def places(self, replaced: Container[int]) -> _Places:
        """Returns the places of some values, given by identity."""
        values, names, owners = self._values, self._names, self._owners
        places = [at for at in self.loose if id(values[at]) in replaced]
        ends = [*accumulate(self._sizes)] if places else []
        return _Places(
            places,
            [owners[bisect_right(ends, at)] for at in places],
            [names[at] for at in places],
            [values[at] for at in places],
        )

    def exchange(self, places: _Places, new: Iterable[Any]) -> None:
        """Puts values in such places, also among the contents that are known here."""
        values, put = self._values, self.put
        for at, owner, name, value in zip(places.places, places.owners, places.names, new, strict=True):
            values[at] = value
            put(owner, name, value)


class _Classes(_Dicts):
    """Many classes and their attributes."""

    @staticmethod
    def read(owners: Sequence[Any]) -> Sequence[Any]:
        return [*map(vars, owners)]

    put = staticmethod(type.__setattr__)

    def write(self, owner: Any, before: dict[Any, Any]) -> None:
        now = dict(vars(owner))
        for name in now.keys() - before.keys():
            type.__delattr__(owner, name)
        for name, value in before.items():
            if now.get(name, _MISSING) is not value:
                type.__setattr__(owner, name, value)


# ---- the walk


class Held:
    """The tensors of a program, and its containers with their contents when this object is made."""

    @collector_at_rest()
    def __init__(self, target: Any) -> None:
        self.modules = submodules(target)
        self.tensors: dict[int, torch.Tensor] = {}
        """Tensors by identity, without those of other libraries that wrap others."""
        self._own, self._dicts, self._classes = _Dicts(), _Dicts(), _Classes()
        """The attributes of the target's modules, and the dicts among these attributes; others; classes."""
        self._cells, self._kinds = _OfMany(_content, _set_content), _OfMany(type, _setter("__class__"))
        self._defaults, self._keywords = (
            _OfMany(attrgetter(name), _setter(name)) for name in ("__defaults__", "__kwdefaults__")
        )
        self._own_containers: list[_Container] = [self._kinds]
        self._containers: list[_Container] = [self._cells, self._defaults, self._keywords]
        """All containers but dicts and classes, those among the attributes of the target's modules first."""
        self._own_empty: list[Any] = []
        self._empty: list[Any] = []
        """Empty lists, dicts and sets, the most frequent containers."""
        self._globals: dict[int, _Globals] = {}
        self._arrays: dict[int, Any] = {}
        self._tuples: list[tuple[Any, ...]] = []
        """Tuples of more than atoms."""
        self._generators: list[_GeneratorState] = []
        self._seen: dict[int, Any] = {}
        self.compared: dict[Origin, None] = {}
        """Where the program asks by `is` whether a value is an integer."""
        self._mentioned = {"forward"}
        """The names that the visited functions mention."""
        self._methods: dict[str, list[Any]] = {}
        """Methods, by name, that no visited function is known to call."""
        self._waiting: list[Any] = [target]
        self._attributes_of_own({id(module): module for _, module in self.modules})
        while self._waiting:
            self._visit()
            self._look_up()

    def _attributes_of_own(self, modules: dict[int, torch.nn.Module]) -> None:
        """Visits the attributes of the target's modules, with the containers among them, all at once."""
        self._owners = modules.keys()
        values = self._own.add([*map(vars, modules.values())])[1]
        containers = [*compress(values, map(_COLLECTIONS.__contains__, map(type, values)))]
        self._own_empty += filterfalse(None, containers)
        filled = {id(container): container for container in filter(None, containers)}
        self._seen |= filled
        self._waiting += [values[at] for at in self._own.loose]
        self._waiting += chain(*self._own.add([one for one in filled.values() if isinstance(one, dict)]))
        for one in filled.values():
            if not isinstance(one, dict):
                self._own_containers.append(container := (_Set if type(one) is set else _Sequence)(one))
                self._waiting += container.contents

    def _visit(self) -> None:
        """Visits everything that waits, all objects of one type together; what they contain waits then."""
        waiting, seen, self._waiting = self._waiting, self._seen, []
        of_kind: defaultdict[type, list[Any]] = defaultdict(list)
        for value in waiting:
            if type(value) not in _ATOMS and id(value) not in seen:
                seen[id(value)] = value
                of_kind[type(value)].append(value)
        for kind, values in of_kind.items():
            if kind in _COLLECTIONS:
                self._empty += filterfalse(None, values)
                values = [*filter(None, values)]
            elif _may_wrap(kind):  # some have the class of another object, which they wrap
                for value in [value for value in values if value.__class__ is not kind]:
                    _first(functools.partial(isinstance, value))(self, [value])
                values = [value for value in values if value.__class__ is kind]
            if values:
                _visit_of(kind)(self, values)

    def _dict(self, values: list[dict[Any, Any]]) -> None:
        self._empty += filterfalse(None, values)
        self._waiting += chain(*self._dicts.add([*filter(None, values)]))

    def _attributes(self, values: list[dict[str, Any]]) -> None:
        """Visits what `vars` returns for some objects."""
        self._waiting += self._dicts.add(values)[1]

    def _collection(self, values: list[Any]) -> None:
        self._empty += filterfalse(None, values)
        made = _Set if isinstance(values[0], set) else _Sequence
        self._add(map(made, filter(None, values)))

    def _tensor(self, tensors: list[torch.Tensor]) -> None:
        if _has_data(type(tensors[0])):
            tensors = [*filterfalse(is_of_transform, tensors)]
            self.tensors.update(zip(map(id, tensors), tensors, strict=True))

    def _tuple(self, values: list[tuple[Any, ...]]) -> None:
        values = [value for value in values if not _ATOMS.issuperset(map(type, value))]
        self._tuples += values
        self._waiting += chain.from_iterable(values)

    def _object(self, values: list[Any]) -> None:
        """Visits objects with attributes, or generators of random numbers."""
        kind: type = type(values[0])
        if _is_array(values[0]):
            self._arrays.update((id(value), value) for value in values)
        elif _generator(values[0]) is not None:
            self._generators += filter(None, map(_generator, values))
        elif _is_programs(kind.__module__, _HOLDING):
            self._waiting.append(kind)
            attributes = [getattr(value, "__dict__", None) for value in values]
            self._attributes([found for found in attributes if isinstance(found, dict)])
            self._slots(kind, values)

    def _module(self, modules: list[torch.nn.Module]) -> None:
        self._kinds.add(modules)
        self._waiting.append(type(modules[0]))
        self._attributes([vars(module) for module in modules if id(module) not in self._owners])
        self._slots(type(modules[0]), modules)

    def _slots(self, kind: type, values: list[Any]) -> None:
        if names := _slots(kind):
            self._add(_Attributes(value, names) for value in values)

    def _class(self, kinds: list[type]) -> None:
        """Visits classes: their attributes, and of their methods and those of their bases the ones that may
        be called.
        """
        kinds = [kind for kind in kinds if _is_programs(kind.__module__)]
        self._waiting += chain.from_iterable(kind.__mro__[1:] for kind in kinds)
        mentioned, methods, waiting = self._mentioned, self._methods, self._waiting
        for name, member in zip(*self._classes.add(kinds), strict=True):
            if type(member) not in _CALLED:
                if name[:2] != "__":
                    waiting.append(member)
            elif name in mentioned or (name[:2] == "__" and name not in _MAKING):
                waiting.append(member)
            else:
                methods.setdefault(name, []).append(member)

    def _function(self, functions: list[FunctionType]) -> None:
        """Visits functions; of those of libraries only what they close over, which a decorator's function
        does over a function of the program's.
        """
        self._waiting += chain.from_iterable(filter(None, map(_closure, functions)))
        functions = [f for f in functions if _is_programs(f.__globals__.get("__name__"))]
        for function in functions:
            scope = function.__globals__
            found = self._globals.get(id(scope))
            if found is None:
                found = self._globals[id(scope)] = _Globals(scope)
                self._containers.append(found)
            found.codes.append(function.__code__)
            self.compared |= dict.fromkeys(compared_with_numbers(function.__code__))
        self._dict([*map(vars, functions)])
        self._waiting += filter(None, chain(self._defaults.add(functions), self._keywords.add(functions)))

    def _cell(self, cells: list[CellType]) -> None:
        self._waiting += self._cells.add(cells)

    def _look_up(self) -> None:
        """Reaches the globals and the methods that the functions visited meanwhile mention."""
        for scope in [scope for scope in self._globals.values() if scope.codes]:
            names, contents = scope.look_up()
            self._mentioned.update(names)
            for name in [name for name in names if name in self._methods]:
                self._waiting += self._methods.pop(name)
            self._waiting += contents

    def _add(self, containers: Iterable[_Container]) -> None:
        for container in containers:
            self._containers.append(container)
            self._waiting += container.contents

    # ---- lending

    def is_current(self) -> bool:
        """Returns whether all containers still have the contents stored here."""
        several = self._own.is_same() and self._dicts.is_same() and self._classes.is_same()
        return (
            several
            and not any(chain(self._own_empty, self._empty))
            and all(container.is_same() for container in chain(self._own_containers, self._containers))
        )

    def restore(self) -> list[str]:
        """Restores the attributes of the target's modules, and the contents of containers among them; returns
        the names of those that had changed.

        All else stays until the end: what a program remembers elsewhere, it remembers from call to call.
        """
        changed = _restored(self._own_containers, self._own_empty, self._own)
        return [*self._named(changed)] if changed else []

    def _named(self, changed: Mapping[int, Sequence[Any]]) -> Iterator[str]:
        """Yields the names of the attributes of modules that are among the changes, or hold what has changed.
        """
        for path, module in self.modules:
            attributes = vars(module)
            names = [name for name, value in attributes.items() if id(value) in changed]
            for name in dict.fromkeys([*changed.get(id(attributes), ()), *names]):
                if name not in NOTED_BY_LAYERS:
                    yield f"{path}.{name}" if path else name

    @contextlib.contextmanager
    def kept(self) -> Iterator[list[str]]:
        """Restores everything at the end of the block, with the states of generators; the names of the
        attributes of modules that had changed are then in the list.
        """
        changed: list[str] = []
        states = [(generator, generator.read()) for generator in self._generators]
        try:
            yield changed
        finally:
            changed += self.restore()
            _restored(self._containers, self._empty, self._dicts, self._classes)
            for generator, state in states:
                generator.write(state)

    @contextlib.contextmanager
    def lent(self, *, copied: bool, but: Iterable[torch.Tensor] = ()) -> Iterator[Lent]:
        """Replaces the tensors, except those in `but`, by stand-ins inside the block, and restores everything
        at its end. Inside, the stand-ins are among the contents that are restored.

        A stand-in is a copy, or else an alias: it lies in the memory of its tensor. The block gets the
        aliases; the caller has to undo writes into them.
        """
        with overrides_off(), all_modes_off():
            stand_ins, own = StandIns(copied), {*map(id, but)}
            replaced: dict[int, Any] = {
                key: stand_ins.of(tensor) for key, tensor in self.tensors.items() if key not in own
            }
            replaced |= {key: array.copy() for key, array in self._arrays.items()}
        for value in self._tuples:
            _exchange(value, replaced)
        lazy = [made for made in replaced.values() if isinstance(made, UninitializedTensorMixin)]
        self._kinds.add(lazy)
        containers: list[tuple[_Container, list[Any]]] = []
        exchanged: list[tuple[_Dicts, _Places]] = []
        try:
            for container in chain(self._own_containers, self._containers):
                if not replaced.keys().isdisjoint(map(id, container.contents)):
                    containers.append((container, container.contents))
                    container.contents = [replaced.get(id(value), value) for value in container.contents]
                    container.write(container.contents)
            for several in (self._own, self._dicts, self._classes):
                places = several.places(replaced)
                exchanged.append((several, places))
                several.exchange(places, [replaced[id(value)] for value in places.values])
            with self.kept() as changed:
                yield Lent(stand_ins.aliases, changed)
        finally:
            for several, places in exchanged:
                several.exchange(places, places.values)
            for container, contents in containers:
                container.contents = contents
                container.write(contents)
            self._kinds.drop(len(lazy))


def _restored(
    containers: Iterable[_Container], empty: Iterable[Any], *several: _Dicts
) -> dict[int, list[Any]]:
    """Restores the contents of containers; returns those that had changed, by identity, with the names that
    had, of a dict.
    """
    changed: dict[int, list[Any]] = {}
    for dicts in several:
        if not dicts.is_same():
            changed |= dicts.restore()
    for container in containers:
        if not container.is_same():
            changed[id(container.target)] = []
            container.write(container.contents)
    for one in filter(None, empty):
        changed[id(one)] = []
        one.clear()
    return changed


class Lent(NamedTuple):
    """The contents of a program, lent to a block."""

    aliases: list[torch.Tensor]
    """The stand-ins that share the memory of a tensor of the program."""
    changed: list[str]
    """The names of attributes of modules that the block has changed, at its end."""


_VISITS: Final[tuple[tuple[Any, Callable[[Held, list[Any]], object]], ...]] = (
    (dict, Held._dict),
    (list | set | deque, Held._collection),
    (torch.Tensor, Held._tensor),
    (tuple, Held._tuple),
    (frozenset, lambda held, values: held._waiting.extend(chain.from_iterable(values))),
    (FunctionType, Held._function),
    (MethodType, lambda held, values: held._waiting.extend(_parts(values, "__self__", "__func__"))),
    (functools.partial, lambda held, values: held._add(map(_Partial, values))),
    (staticmethod | classmethod, lambda held, values: held._waiting.extend(_parts(values, "__func__"))),
    (CACHED, lambda held, values: held._waiting.extend(_parts(values, "__wrapped__"))),
    (property, lambda held, values: held._waiting.extend(_parts(values, "fget", "fset"))),
    (type, Held._class),
    (torch.nn.Module, Held._module),
    (CellType, Held._cell),
    (object, Held._object),
)
"""The visitors of values of one type: the first entry whose types match applies."""


@functools.cache
def _may_wrap(kind: type) -> bool:
    """Returns whether objects of a type may have another `__class__`."""
    own = [vars(base) for base in kind.__mro__ if getattr(builtins, base.__name__, None) is not base]
    return any("__class__" in attributes or "__getattribute__" in attributes for attributes in own)


def _parts(values: list[Any], *names: str) -> list[Any]:
    return [getattr(value, name) for value in values for name in names]


def _first(is_of: Callable[[Any], bool]) -> Callable[[Held, list[Any]], object]:
    return next(visit for known, visit in _VISITS if is_of(known))


@functools.cache
def _visit_of(kind: type) -> Callable[[Held, list[Any]], object]:
    return _first(lambda known: issubclass(kind, known))


def _exchange(value: Any, replaced: dict[int, Any]) -> Any:
    """Returns the value, or its stand-in; a tuple that contains replaced values gets one."""
    if isinstance(value, tuple) and type(value) is not torch.Size and id(value) not in replaced:
        members = [_exchange(member, replaced) for member in value]
        if not all(map(is_, members, value)):
            replaced[id(value)] = tuple.__new__(type(value), members)
    return replaced.get(id(value), value)


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


class _Spoken(NamedTuple):
    """The globals that a function, and those within it, may look up, and those that they may make."""

    names: dict[str, None]
    made: dict[str, None]


_STORE_GLOBAL: Final = dis.opmap["STORE_GLOBAL"]


@per_code
def _spoken_of(code: CodeType) -> _Spoken:
    names, made = dict.fromkeys(code.co_names), dict[str, None]()
    if _STORE_GLOBAL in code.co_code[::2]:
        made |= {i.argval: None for i in dis.get_instructions(code) if i.opcode == _STORE_GLOBAL}
    for within in [_spoken_of(constant) for constant in code.co_consts if type(constant) is CodeType]:
        names |= within.names
        made |= within.made
    return _Spoken(names, made)


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


def can_stand_in(tensor: torch.Tensor) -> bool:
    """Returns whether another tensor can replace it: it has data, and wraps no other tensors."""
    return _has_data(type(tensor)) and not is_of_transform(tensor)


def _has_data(kind: type[torch.Tensor]) -> bool:
    return kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__


class StandIns:
    """Makes tensors that replace others; the copies of tensors that share memory share memory, too."""

    def __init__(self, copied: bool) -> None:
        self.aliases: list[torch.Tensor] = []
        """The stand-ins that lie in the memory of a tensor of the program's."""
        self._copied = copied
        self._storages: dict[int, torch.UntypedStorage] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, UninitializedTensorMixin):
            return _uninitialized(tensor)
        made, kind = self._data(tensor), type(tensor)
        if not tensor.is_leaf:
            with torch.enable_grad():
                made = made.requires_grad_().clone()
        else:
            if kind is not torch.Tensor:
                made = make_subclass(kind, made, tensor.requires_grad)
            elif tensor.requires_grad:
                made.requires_grad_()
            if not self._copied:
                self.aliases.append(made)
            if (gradient := tensor.grad) is not None:
                made.grad = self._data(gradient)
                if not self._copied:
                    self.aliases.append(made.grad)
        if attributes := vars(tensor):
            vars(made).update(attributes)
        return made

    def _data(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the elements, in a tensor of their own."""
        data = tensor.data
        if not self._copied or data.is_meta:
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
