"""The functions of a program, and the texts that they were compiled from."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, Final
from weakref import ref

import torch

_BOUND: Final = (staticmethod, classmethod, MethodType)


def functions_of(target: Any) -> Iterator[FunctionType]:
    """The functions of a program, and those that stand beside them."""
    found = own_functions(target)
    scopes = {id(f.__globals__): f.__globals__ for f in found}
    beside = [*_plain(value for scope in scopes.values() for value in [*scope.values()])]
    yield from dict.fromkeys((*found, *beside))


def own_functions(target: Any) -> list[FunctionType]:
    """The target itself, the methods of its modules, functions that these hold, and what those enclose."""
    modules = [*target.modules()] if isinstance(target, torch.nn.Module) else []
    kinds = dict.fromkeys(kind for module in modules for kind in type(module).__mro__)
    own = [kind for kind in kinds if kind.__module__.partition(".")[0] not in ("torch", "builtins")]
    held = [value for module in modules for value in vars(module).values()]
    found = dict.fromkeys(_plain([target, *held, *(m for kind in own for m in vars(kind).values())]))
    todo = [*found]
    while todo:
        enclosed = [f for f in _plain(_enclosed(todo.pop())) if f not in found]
        found.update(dict.fromkeys(enclosed))
        todo += enclosed
    return [*found]


def _plain(members: Iterable[Any]) -> Iterator[FunctionType]:
    """The functions behind these, without what has been wrapped around them, but for torch's own."""
    for member in members:
        function = member.__func__ if isinstance(member, _BOUND) else member
        while isinstance(function, FunctionType):
            if function.__module__ and function.__module__.partition(".")[0] != "torch":
                yield function
            function = getattr(function, "__wrapped__", None)


def _enclosed(function: FunctionType) -> Iterator[Any]:
    """The values of the names that a function has from the functions around it."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # the name has no value yet
            yield cell.cell_contents


_EDITED: Final[dict[int, tuple[ref[CodeType], str]]] = {}
"""The texts of codes that were compiled from another text than that of their file, by identity: equal codes
live and die apart.
"""


def compiled_from(code: CodeType, text: str) -> None:
    """Notes that the code was compiled from this text, a changed one of its file."""
    key = id(code)
    _EDITED[key] = ref(code, lambda _: _EDITED.pop(key, None)), text


def edited_text(code: CodeType) -> str | None:
    """Returns the text that a code was compiled from; None where that is the text of its file."""
    found = _EDITED.get(id(code))
    return None if found is None else found[1]


def first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns the line where the code of a function begins, which is that of its first decorator."""
    return min([function.lineno, *(node.lineno for node in function.decorator_list)])
