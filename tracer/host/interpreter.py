"""Names of CPython: frames, their variables and their code, the type and size of an object, managers made of
generators, what shows warnings, and the function that profiles.
"""

from __future__ import annotations

import contextlib
import ctypes
import dis
import functools
import gc
import inspect
import itertools
import operator
import sys
import typing
import warnings
from _lsprof import Profiler  # the base class: `python -m cProfile` has a class of its own
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, Final, ForwardRef

frame_above: Final = sys._getframe
"""The frame of the function that calls this, or, by a number, so many frames above it."""
GeneratorManager: Final = contextlib._GeneratorContextManager
"""The type of the context managers that `contextlib.contextmanager` makes."""
CACHED: Final = type(functools.lru_cache(len))
"""The type of functions with a cache of results."""
_WORD: Final = ctypes.sizeof(ctypes.c_void_p)
_TYPE_OFFSET: Final = object.__basicsize__ - _WORD
"""Every object ends what all objects have with the address of its type."""
_HEAP_TYPE: Final = 1 << 9
"""The flag of types that are not defined statically in C."""


def set_type(target: object, kind: type) -> None:
    """Gives an object another type, of the same layout.

    Assigning to `__class__` does so between classes that are written in Python. Of a `list` Python refuses
    it, since an instance of a type of C might be shared.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kind))
    before = type(target)
    ctypes.c_void_p.from_address(id(target) + _TYPE_OFFSET).value = id(kind)
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(before))


def is_static(kind: type) -> bool:
    """Returns whether a type is defined statically in C, as the types of Python itself are."""
    return not kind.__flags__ & _HEAP_TYPE


def extra_words(kind: type) -> int | None:
    """Returns how many addresses an instance has beyond those of a plain object; None where the instances
    differ in size.
    """
    return None if kind.__itemsize__ else (kind.__basicsize__ - object.__basicsize__ + _WORD - 1) // _WORD


def set_variable(frame: FrameType, name: str, value: Any) -> None:
    """Sets a variable of a running function.

    CPython 3.11 and 3.12 write it back by the call that debuggers use. From 3.13 on `f_locals` writes
    through, and the call does nothing.
    """
    frame.f_locals[name] = value
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def shows_warnings() -> tuple[Any, ...]:
    """Returns the two functions that show warnings; `catch_warnings(record=True)` replaces one of them."""
    return warnings.showwarning, getattr(warnings, "_showwarnmsg_impl", None)


def replace_profiler(function: Any) -> Any:
    """Replaces the function that `sys.setprofile` has set, and returns the former one, which can be set
    again.

    A profiler of Python's own is not a function: it is stopped and started by its methods. One that a package
    has set in C, and that is not a function either, cannot be set again.
    """
    before = sys.getprofile()
    if isinstance(before, Profiler):
        before.disable()
    if isinstance(function, Profiler):
        function.enable()
    elif function is None or callable(function):
        sys.setprofile(function)
    return before


if sys.version_info >= (3, 14):
    from annotationlib import Format

    def signature(function: Callable[..., Any]) -> inspect.Signature:
        """Returns the signature of a function; an annotation that names what does not exist is a text.

        Annotations are evaluated when somebody asks for them, which no run of the function does. Raises
        TypeError and ValueError as `inspect.signature` does.
        """
        texts = inspect.signature(function, annotation_format=Format.STRING)
        try:
            found = inspect.signature(function, annotation_format=Format.FORWARDREF)
        except Exception:  # noqa: BLE001 (an annotation is any code of the program's)
            return texts
        parameters = (
            texts.parameters[name] if isinstance(one.annotation, ForwardRef) else one
            for name, one in found.parameters.items()
        )
        return found.replace(parameters=[*parameters])
else:
    signature = inspect.signature


_OF_TYPES: Final = ("TypeVar", "ParamSpec", "TypeVarTuple", "TypeAliasType")
NAMES_OF_TYPES: Final = tuple(vars(typing)[name] for name in _OF_TYPES if name in vars(typing))
"""The types of parameters that stand for types, and from 3.12 on of what `type` statements make."""
_OPEN: Final = (itertools.count, itertools.repeat, itertools.chain, itertools.accumulate)
"""Iterators that refer to everything that decides their elements, except numbers that are part of their text
or their length.
"""


def remaining(iterator: Any) -> tuple[Any, ...] | None:
    """Returns the values that decide the remaining elements of an iterator; None where Python hides them.

    The protocol for copies gives it. Iterators of `itertools` have that up to 3.13, with a warning from 3.12
    on.
    """
    if "__reduce__" in vars(type(iterator)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return tuple(iterator.__reduce__()[1:])
    if not isinstance(iterator, _OPEN):
        return None
    parts = tuple(part for part in gc.get_referents(iterator) if part is not type(iterator))
    counts = isinstance(iterator, itertools.count) and len(parts) == 1  # it refers to its step alone
    return *parts, operator.length_hint(iterator, -1), repr(iterator) if counts else ""


_OTHER_NAMES: Final = {
    ("BINARY_OP", "[]"): "BINARY_SUBSCR",
    ("BINARY_SLICE", ""): "BINARY_SUBSCR",
    ("STORE_SLICE", ""): "STORE_SUBSCR",
}
"""By name and operand, instructions of later releases that do what this one does in 3.11."""


def read(code: CodeType) -> Iterator[dis.Instruction]:
    """Yields the instructions of the code, each subscript by its name in 3.11."""
    for step in dis.get_instructions(code):
        other = _OTHER_NAMES.get((step.opname, step.argrepr))
        yield step if other is None else step._replace(opname=other)


def _enters() -> tuple[str, ...]:
    code = compile("with manager: pass", "", "exec")
    (first, *_) = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    before = [step.opname for step in read(code) if step.offset < first.start]
    return tuple(before[before.index("LOAD_NAME") + 1 :])


ENTERS: Final = _enters()
"""The names of the instructions by which a `with` enters the manager on top of the stack."""

_INNER: Final = object.__basicsize__ + _WORD
"""A frame object holds the frame that it shows, and the address of what the interpreter works with."""
_TAG: Final = 3
"""Bits of an address that 3.14 uses for other things."""


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value & ~_TAG


def _values_of(frame: FrameType) -> int:
    """Returns the address of what the interpreter works with."""
    return _word(id(frame) + _INNER)


def _first_variable(mark: object) -> int | None:
    """Returns how many bytes behind that address the variables begin: where this function's argument is."""
    inner = _values_of(frame_above())
    for at in range(4 * _WORD, 16 * _WORD, _WORD):
        if _word(inner + at) == id(mark):
            return at
    return None


_VARIABLES: Final = _first_variable(object())


def stacked(frame: FrameType, place: int) -> Any:
    """Returns the object at this place of the frame's evaluation stack, counted from its bottom; None where
    Python keeps it elsewhere than expected. There has to be one at this place.

    The stack lies behind the variables of the function, those of closures included.
    """
    if _VARIABLES is None:
        return None
    code = frame.f_code
    variables = code.co_nlocals + len({*code.co_cellvars} - {*code.co_varnames}) + len(code.co_freevars)
    address = _word(_values_of(frame) + _VARIABLES + (variables + place) * _WORD)
    return ctypes.cast(address, ctypes.py_object).value if address else None
