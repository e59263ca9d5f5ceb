"""Names of CPython: frames, the type of an object, managers made of generators, what shows warnings."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import warnings
from typing import Any, Final

frame_above: Final = sys._getframe
"""The frame of the function that calls this, or, by a number, so many frames above it."""
GeneratorManager: Final = contextlib._GeneratorContextManager
"""What functions return that `contextlib.contextmanager` decorates."""
_TYPE_OFFSET: Final = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
"""Every object ends what all objects have with the address of its type."""


def set_type(target: object, kind: type) -> None:
    """Gives an object another type, of the same layout.

    Assigning to `__class__` does so between classes that are written in Python. Of a `list` Python refuses
    it, since an instance of a type of C might be shared.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kind))
    before = type(target)
    ctypes.c_void_p.from_address(id(target) + _TYPE_OFFSET).value = id(kind)
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(before))


def shows_warnings() -> tuple[Any, ...]:
    """What shows warnings; `catch_warnings(record=True)` replaces one of the two."""
    return warnings.showwarning, getattr(warnings, "_showwarnmsg_impl", None)
