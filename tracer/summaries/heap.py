"""The state of a running Python program, as far as a piece of its code can access it, for the comparison of
states when a loop is summarised (`loop.py`).

A piece of code accesses the variables of its frame, the globals that it and the functions it calls name, and
all objects that can be reached from these: attributes, members, closures, defaults, the remaining elements of
an iterator. A walk from there records a cell for each object that it meets, in an order that depends on the
structure alone. Two walks with equal cells have met states that no code can distinguish, except by the
numbers in them and by the identity of objects: a list that each iteration creates equals the one before.

A walk raises `Opaque` at an object that it cannot look into, one with state in C that this module does not
know. State without a Python object (a file, the state of a C library, the time) is beyond any walk.
"""

from __future__ import annotations

import collections
import contextvars
import dis
import enum
import functools
import itertools
import logging
import random
import re
import sys
import threading
import types
import weakref
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, TypeAlias

import torch

from ..bytecode.codes import per_code
from ..bytecode.liveness import live
from ..bytecode.origins import is_inner
from ..host.interpreter import CACHED, NAMES_OF_TYPES, extra_words, is_static, remaining
from ..host.operators import OpOverload, OpOverloadPacket
from ..recorder import Recorder
from ..values.numbers import Real, Size
from ..values.sequences import Handle, Lazy, Repeated, Repeating, RepeatingTuple, SizeRange, physical
from ..values.symbolic import Sizes, SymbolicTensor
from .cells import (
    REAL,
    REPEATED,
    Cell,
    ClassAttribute,
    Content,
    Item,
    Local,
    Location,
    Member,
    Slot,
    sizes_of,
)

MAX_CELLS: Final = 50_000
MAX_DEPTH: Final = 100
LONG: Final = 64
"""A list or a dict of constants that is longer than this is a single cell."""

Function: TypeAlias = tuple[str, CodeType]
"""A function's file and code: two files may contain equal code."""
Called: TypeAlias = Mapping[Function, dict[str, Any]]
"""Functions that are called, each with its globals."""
Part: TypeAlias = tuple[Any, str, "Location | None"]
"""A part of an object: the value, the step that leads to it, and its location."""


class Opaque(Exception):
    """Raised where there is state that a walk cannot look into."""


def walk(run: Recorder, frames: Sequence[FrameType], called: Called) -> Cell:
    """Returns the state that the frames and the functions they call can still access; the cell's value has
    all objects that were met, by identity.

    Raises Unseen where there is state that cannot be looked into.
    """
    walker = _Walk(run, called)
    walker.met |= {function_of(frame.f_code) for frame in frames}
    seen = ((frame, name) for frame in frames for name in frame.f_locals if name in live(frame))
    return walker.from_roots((name, frame.f_locals[name], Local(frame, name)) for frame, name in seen)


def walk_from(run: Recorder, holder: dict[str, Any], called: Called) -> Cell:
    """Returns the state reachable from the values in a dict, and accessed by the functions called.

    Raises Unseen where there is state that cannot be looked into.
    """
    walker = _Walk(run, called)
    return walker.from_roots((name, value, Item(holder, name)) for name, value in holder.items())


def look(run: Recorder, value: Any) -> Cell:
    """Returns the cell of one value."""
    return _Walk(run, {}).cell(value, _Where("", None, 0))


def _settings() -> tuple[Any, ...]:
    """Returns the settings of torch, kept outside of Python, that affect dtypes."""
    return (
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
    )


def function_of(code: CodeType) -> Function:
    return code.co_filename, code


# --- what code names -------------------------------------------------------------------------------------


@per_code
def _names(code: CodeType) -> frozenset[str]:
    """Returns the names in the code: variables, attributes, and texts that may name one."""
    found = {*code.co_names}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            found.add(constant)
    return frozenset(found)


def _imported(code: CodeType, package: str) -> list[str]:
    """Returns the modules that the code imports when it runs; for a relative name, all candidates."""
    found = []
    for name in _imports(code):
        parents = package.split(".")
        relative = (".".join((*parents[:i], name)).rstrip(".") for i in range(1, len(parents) + 1))
        found += [module for module in (name, *relative) if module in sys.modules]
    return sorted({*found})


@per_code
def _imports(code: CodeType) -> tuple[str, ...]:
    return tuple(i.argval for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME")


@per_code
def _inside(code: CodeType) -> frozenset[CodeType]:
    """Returns the functions that are defined in the code."""
    return frozenset(c for c in code.co_consts if isinstance(c, CodeType))


# --- kinds of things -------------------------------------------------------------------------------------

_CONSTANTS: Final = (
    type(None), bool, str, bytes, complex, range, type(...), type(NotImplemented), torch.dtype, torch.device,
    torch.layout, torch.memory_format,
)
_BY_IDENTITY: Final = (
    CodeType, logging.Logger, re.Pattern, type(threading.Lock()), type(threading.RLock()), Lazy, SizeRange,
    Handle, OpOverload, OpOverloadPacket, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.GenericAlias, types.UnionType,
    type(vars(NamedTuple("_", [("field", int)]))["field"]), *NAMES_OF_TYPES,
)
"""Types of objects without state of their own, or without state that shapes depend on."""
_SOME_ITERATORS: Final[tuple[Any, ...]] = (
    iter([]), iter(()), iter({}), iter({}.values()), iter({}.items()), iter(set()), iter(range(0)),
    iter(range(1 << 80)), iter(""), iter(b""), reversed([]), enumerate(()), zip(), map(id, ()),
    filter(None, ()), itertools.count(), itertools.cycle(()), itertools.chain(), itertools.repeat(None),
    itertools.islice((), 0), itertools.accumulate(()),
)
_UNWRAP: Final[Mapping[type, Callable[[Any], Any]]] = {
    staticmethod: lambda d: d.__func__,
    classmethod: lambda d: d.__func__,
    property: lambda d: d.fget,
    functools.cached_property: lambda d: d.func,
}


@functools.cache
def _is_foreign(kind: Any) -> bool:
    """Returns whether it is a class of C code, of torch or of this package, whose attributes programs do not
    change.
    """
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return is_static(kind) or file is None or is_inner(file)


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    """Returns the attributes of instances that are in no dict, those of C code aside."""
    return tuple(
        name
        for base in kind.__mro__
        if not is_static(base)
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType)
    )


@functools.cache
def _is_python(kind: Any) -> bool:
    """Returns whether instances consist of a dict and the slots that their classes name.

    Their size shows it: that of `object`, and an address for a dict, for weak references and for each slot. A
    negative offset means that the address lies in front of the object.
    """
    words = extra_words(kind)
    known = len(_slots(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return words is not None and words <= known


def _is_idle(value: Any, called: Called) -> bool:
    """Returns whether it is a function that need not be looked into."""
    if isinstance(value, types.FunctionType):
        return function_of(value.__code__) not in called
    return isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType)


def _attributes(value: Any) -> list[Part]:
    """Returns the attributes of an object, by name."""
    space = getattr(value, "__dict__", None)
    found: list[Part] = []
    if isinstance(space, dict):
        found += [(v, f".{k}", Item(space, k)) for k, v in space.items()]
    kind: Any = type(value)
    slots = [name for name in _slots(kind) if hasattr(value, name)]
    return found + [(getattr(value, name), f".{name}", Slot(value, name)) for name in slots]


# --- the walk --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Where:
    """The way in which an object was reached."""

    trail: str
    place: Location | None
    depth: int


class _Walk:
    """One walk.

    A table selects the method for each type; it records a value, or an object, which has an identity.
    """

    def __init__(self, run: Recorder, called: Called) -> None:
        self.run = run
        self.called = called
        self.names = frozenset[str]().union(*(_names(code) for _, code in called))
        self.known_as: dict[int, tuple[str, int]] = {}
        """A label for each object that was met, by identity: the step by which it was reached first, and how
        many others were reached by that step before.
        """
        self.trails: collections.Counter[str] = collections.Counter()
        self.things: list[Any] = []
        """The objects that were met; kept here, so that no other object gets the same identity."""
        self.met: set[Function] = set()
        self.cells = 0

    def from_roots(self, variables: Iterable[tuple[str, Any, Location]]) -> Cell:
        """Returns the cell of all that the variables lead to, and of the globals of called functions."""
        found, seen = [self.cell(value, _Where(name, place, 0)) for name, value, place in variables], set()
        for (_, code), space in [*self.called.items()]:
            for name in sorted(_names(code) & space.keys()):
                if (id(space), name) not in seen:
                    seen.add((id(space), name))
                    found.append(self.cell(space[name], _Where(name, Item(space, name), 0)))
            for module in _imported(code, space.get("__package__") or ""):
                found.append(self.cell(sys.modules[module], _Where(module, None, 0)))
        inner = {(file, defined) for file, code in self.called for defined in _inside(code)}
        for function in self.called.keys() - self.met - inner:
            if function[1].co_freevars:
                raise Opaque(f"what {function[1].co_qualname} was defined with")
        fixed = tuple(root.trail for root in found), _settings()
        met = {id(thing): thing for thing in self.things}
        return Cell("what the body sees", fixed, children=tuple(found), value=met)

    def cell(self, value: Any, where: _Where) -> Cell:
        self.cells += 1
        if self.cells > MAX_CELLS or where.depth > MAX_DEPTH:
            raise Opaque(f"all of {where.trail}")
        handler = _VALUES.get(type(value))
        if handler is not None:
            return handler(self, value, where)
        if id(value) in self.known_as:
            return Cell(where.trail, ("again", self.known_as[id(value)]))
        self._meet(value, where.trail)
        handler = _THINGS.get(type(value), _Walk._other)
        found: Cell = handler(self, value, where)
        return replace(found, itself=value)

    def _meet(self, thing: Any, trail: str) -> None:
        self.known_as[id(thing)] = trail, self.trails[trail]
        self.trails[trail] += 1
        self.things.append(thing)

    def _holding(self, fixed: Any, where: _Where, parts: Iterable[Part], **rest: Any) -> Cell:
        below = where.depth + 1
        cells = tuple(self.cell(v, _Where(where.trail + step, place, below)) for v, step, place in parts)
        return Cell(where.trail, fixed, children=cells, **rest)

    # ---- values

    def _constant(self, value: Any, where: _Where) -> Cell:
        return Cell(where.trail, (type(value), value), value=value, plain=True)

    def _int(self, value: int, where: _Where) -> Cell:
        return Cell(where.trail, ("int",), (value,), (), value, where.place, plain=True)

    def _size(self, value: Size, where: _Where) -> Cell:
        return Cell(where.trail, ("int",), (value.term,), (), value, where.place, plain=True)

    def _float(self, value: float, where: _Where) -> Cell:
        return Cell(where.trail, ("float", value.hex()), value=value, plain=True)

    def _real(self, value: Real, where: _Where) -> Cell:
        if value.compute is None:
            return Cell(where.trail, ("float of data",), value=value, plain=True)
        if value.ratio is None:
            return Cell(where.trail, ("float of sizes", id(value)), value=value)
        return Cell(where.trail, ("quotient of sizes",), value.ratio, (), value, where.place, plain=True)

    def _slice(self, value: slice, where: _Where) -> Cell:
        parts = [(getattr(value, name), f".{name}", None) for name in ("start", "stop", "step")]
        return self._value(("slice",), where, parts, value=value)

    def _symbolic(self, value: SymbolicTensor, where: _Where) -> Cell:
        if vars(value).keys() - {"run", "value", "ref", "owns", "is_plain", "_memory"}:
            raise Opaque(f"the attributes of {where.trail}")
        fixed, dims = sizes_of(value.value)
        return Cell(where.trail, fixed, dims, (), value, where.place, value.ref, plain=True)

    def _repeated(self, value: Repeated, where: _Where) -> Cell:
        if not value.alike:
            return Cell(where.trail, ("lazy", id(value)), value=value)
        one = [(value.one, "[…]", None)]
        return self._value(REPEATED, where, one, dims=(value.count,), value=value, place=where.place)

    def _tuple(self, value: Any, where: _Where) -> Cell:
        kind = tuple if type(value) in (tuple, RepeatingTuple) else type(value)
        place = where.place
        parts = [
            (member, f"[{i}]", None if place is None else Member(place, i))
            for i, member in enumerate(physical(value))
        ]
        return self._value(("sequence", kind), where, parts, value=value, place=place)

    def _value(self, fixed: Any, where: _Where, parts: Iterable[Part], **rest: Any) -> Cell:
        """Returns the cell of an immutable value; if it contains only values, it is a value itself."""
        found = self._holding(fixed, where, parts, **rest)
        return replace(found, plain=all(child.plain for child in found.children))

    # ---- things that hold others

    def _list(self, value: list[Any], where: _Where) -> Cell:
        members = physical(value)
        if len(members) > LONG and all(type(m) in (int, str, float) for m in members):
            return Cell(where.trail, ("constants", members))
        parts = ((m, f"[{i}]", Item(value, i)) for i, m in enumerate(members))
        return self._holding(("sequence", list), where, parts, value=value)

    def _dict(self, value: Mapping[Any, Any], where: _Where) -> Cell:
        keys = tuple(map(self._key, value.keys()))
        if len(keys) > LONG and all(type(m) in (int, str, float) for m in value.values()):
            return Cell(where.trail, ("constants", type(value), keys, tuple(value.values())))
        parts: list[Part] = [
            (m, f"[{k!r}]" if type(k) is str else "[…]", Item(value, k)) for k, m in value.items()
        ]
        fixed = "dict", type(value), keys, getattr(value, "default_factory", None)
        return self._holding(fixed, where, parts + _attributes(value))

    def _set(self, value: Any, where: _Where) -> Cell:
        return Cell(where.trail, ("set", type(value), frozenset(map(self._key, value))))

    def _key(self, key: Any) -> Any:
        """Returns a key, or a member of a set: constants by value, all other objects by identity."""
        if type(key) is Size:
            return "size", self.run.simplified(key.term)
        if type(key) in (int, float, *_CONSTANTS) or isinstance(key, type):
            return type(key), key
        if type(key) is tuple:
            return tuple, *map(self._key, key)
        if id(key) not in self.known_as:
            self._meet(key, "a key")
        return "object", id(key)

    def _deque(self, value: collections.deque[Any], where: _Where) -> Cell:
        parts = ((m, f"[{i}]", Item(value, i)) for i, m in enumerate(value))
        return self._holding(("deque", value.maxlen, len(value)), where, parts)

    def _cell(self, value: types.CellType, where: _Where) -> Cell:
        try:
            content = value.cell_contents
        except ValueError:
            return Cell(where.trail, ("empty cell",))
        return self._holding(("cell",), where, [(content, "", Slot(value, "cell_contents"))])

    def _module(self, value: types.ModuleType, where: _Where) -> Cell:
        """Returns the cell of a module, with the attributes that the code names; functions of other modules
        are looked into where they are called.
        """
        space = vars(value)
        names = sorted(n for n in self.names & space.keys() if not _is_idle(space[n], self.called))
        parts = ((space[n], f".{n}", Item(space, n)) for n in names)
        return self._holding(("module", id(value), tuple(names)), where, parts)

    def _class(self, value: type, where: _Where) -> Cell:
        """Returns the cell of a class, with attributes that the code names and methods that are called."""
        if _is_foreign(value):
            return Cell(where.trail, ("class", id(value)))
        parts: list[Part] = []
        for name, member in vars(value).items():
            inside = _UNWRAP.get(type(member), lambda d: d)(member)
            if isinstance(inside, types.FunctionType):
                if function_of(inside.__code__) in self.called:
                    parts.append((inside, f".{name}", None))
            elif name in self.names and not isinstance(inside, type | types.MemberDescriptorType):
                parts.append((inside, f".{name}", ClassAttribute(value, name)))
        above = (*value.__bases__, type(value))
        parts += [(kind, f".{kind.__name__}", None) for kind in above if not _is_foreign(kind)]
        return self._holding(("class", id(value)), where, parts)

    def _real_tensor(self, value: torch.Tensor, where: _Where) -> Cell:
        return self._holding((REAL, Content.of(value)), where, _attributes(value))

    def _weak(self, value: Any, where: _Where) -> Cell:
        return self._holding(("weak",), where, [(value(), "", None)])

    def _variable(self, value: contextvars.ContextVar[Any], where: _Where) -> Cell:
        return self._holding(("context variable",), where, [(value.get(None), "", None)])

    # ---- things that run

    def _function(self, value: types.FunctionType, where: _Where) -> Cell:
        """Returns the cell of a function; its closure and defaults matter only if it is called."""
        code = value.__code__
        self.met.add(function_of(code))
        parts: list[Part] = []
        if function_of(code) in self.called:
            shared = zip(code.co_freevars, value.__closure__ or (), strict=True)
            parts += [(content, f".{name}", None) for name, content in shared]
            names = "__defaults__", "__kwdefaults__", "__dict__"
            parts += [(getattr(value, name), f".{name}", None) for name in names]
        return self._holding(("function", function_of(code)), where, parts)

    def _method(self, value: types.MethodType, where: _Where) -> Cell:
        return self._holding(("method",), where, [(value.__func__, "", None), (value.__self__, "", None)])

    def _builtin(self, value: Any, where: _Where) -> Cell:
        owner = getattr(value, "__self__", None)
        if isinstance(owner, types.ModuleType | type | None):
            return Cell(where.trail, ("builtin", value.__name__, id(owner)))
        return self._holding(("builtin", value.__name__), where, [(owner, ".__self__", None)])

    def _partial(self, value: Any, where: _Where) -> Cell:
        parts = [(getattr(value, name), f".{name}", None) for name in ("func", "args", "keywords")]
        return self._holding(("partial",), where, parts)

    def _cached(self, value: Any, where: _Where) -> Cell:
        """Returns the cell of a function with a cache of results: a call with new arguments changes it."""
        info = value.cache_info()
        return self._holding(("cached", info.misses, info.currsize), where, [(value.__wrapped__, "", None)])

    def _generator(self, value: types.GeneratorType[Any, Any, Any], where: _Where) -> Cell:
        frame = value.gi_frame
        if frame is None:
            return Cell(where.trail, ("generator", None))
        parts = ((v, f".{n}", Local(frame, n)) for n, v in frame.f_locals.items())
        return self._holding(("generator", value.gi_code, frame.f_lasti), where, parts)

    def _iterator(self, value: Any, where: _Where) -> Cell:
        """Returns the cell of an iterator."""
        if (parts := remaining(value)) is None:
            raise Opaque(f"the state of {where.trail}, a {type(value).__qualname__}")
        return self._holding((type(value),), where, [(parts, "", None)])

    # ---- things with state in C

    def _identity(self, value: Any, where: _Where) -> Cell:
        return Cell(where.trail, ("object", id(value)))

    def _bytes(self, value: Any, where: _Where) -> Cell:
        return Cell(where.trail, (type(value), bytes(value)))

    def _random(self, value: random.Random, where: _Where) -> Cell:
        return Cell(where.trail, ("random", value.getstate()))

    def _derived(self, value: Any, where: _Where) -> Cell:
        """Returns the cell of a constant of a type of the user's."""
        base = next(kind for kind in (str, bytes, int, float, complex) if isinstance(value, kind))
        return self._holding(("derived", type(value), base.__repr__(value)), where, _attributes(value))

    def _numpy(self, value: Any, where: _Where) -> Cell:
        if callable(value) or not hasattr(value, "tobytes"):
            return self._identity(value, where)
        if value.dtype.hasobject:
            raise Opaque(f"the objects in {where.trail}")
        return Cell(where.trail, ("numpy", type(value), value.dtype.str, value.shape, value.tobytes()))

    def _other(self, value: Any, where: _Where) -> Cell:
        """Returns the cell of any other object, by the base classes of its type."""
        for kinds, handler in _BASES.items():
            if isinstance(value, kinds):
                return handler(self, value, where)
        kind: Any = type(value)
        if kind.__module__ == "numpy":
            return self._numpy(value, where)
        if not _is_python(kind):
            raise Opaque(f"the state of {where.trail}, a {kind.__module__}.{kind.__qualname__}")
        return self._holding(("instance", kind), where, [(kind, ".__class__", None), *_attributes(value)])


_Handler: TypeAlias = Callable[[_Walk, Any, _Where], Cell]
_VALUES: Final[Mapping[type, _Handler]] = {
    **dict.fromkeys(_CONSTANTS, _Walk._constant),
    int: _Walk._int,
    Size: _Walk._size,
    float: _Walk._float,
    Real: _Walk._real,
    slice: _Walk._slice,
    SymbolicTensor: _Walk._symbolic,
    Repeated: _Walk._repeated,
    **dict.fromkeys((tuple, RepeatingTuple, Sizes, torch.Size), _Walk._tuple),
}
"""Handlers of values, by type. Values have no identity, and are equal if they have the same text."""
_THINGS: Final[Mapping[type, _Handler]] = {
    **dict.fromkeys((list, Repeating), _Walk._list),
    types.CellType: _Walk._cell,
    types.FunctionType: _Walk._function,
    types.MethodType: _Walk._method,
    types.GeneratorType: _Walk._generator,
    types.BuiltinFunctionType: _Walk._builtin,
    types.MethodWrapperType: _Walk._builtin,
    types.MethodDescriptorType: _Walk._identity,
    types.WrapperDescriptorType: _Walk._identity,
    types.ClassMethodDescriptorType: _Walk._identity,
    CACHED: _Walk._cached,
    contextvars.ContextVar: _Walk._variable,
    **dict.fromkeys(map(type, _SOME_ITERATORS), _Walk._iterator),
}
"""Handlers of objects with identity, by type."""
_BASES: Final[Mapping[Any, _Handler]] = {
    enum.Enum: _Walk._identity,
    _BY_IDENTITY: _Walk._identity,
    type: _Walk._class,
    types.ModuleType: _Walk._module,
    torch.Tensor: _Walk._real_tensor,
    (dict, types.MappingProxyType): _Walk._dict,
    (set, frozenset): _Walk._set,
    tuple: _Walk._tuple,
    collections.deque: _Walk._deque,
    functools.partial: _Walk._partial,
    random.Random: _Walk._random,
    weakref.ref: _Walk._weak,
    (bytearray, array): _Walk._bytes,
    (str, bytes, int, float, complex): _Walk._derived,
}
"""Handlers of objects by the bases of their types: the first that fits."""
