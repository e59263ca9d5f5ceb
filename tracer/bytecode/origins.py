"""The origin of a call: the user's own line, and the path of the module that ran it."""

from __future__ import annotations

import contextlib
import dis
import functools
import linecache
import os
import re
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, TypeAlias

import torch

from ...constraints.ir.program import Origin
from ..host.interpreter import frame_above
from ..host.model_state import Modules, submodules
from .codes import per_code

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OUR_FOLDERS: tuple[str, ...] = tuple(
    os.path.join(_OURS, part, "") for part in ("tracer", "constraints", "solver", "typecheck")
)
_NEVER_REFUSING = (
    *(os.path.join(_OURS, part, "") for part in ("constraints", "solver")),
    os.path.join(_OURS, "tracer", "ledger.py"),
    *(
        os.path.join(_OURS, "tracer", "summaries", f"{name}.py")
        for name in "cells descents heap laws loops".split()
    ),
)
_INNER: tuple[str, ...] = (
    os.path.join(os.path.dirname(torch.__file__), ""),
    contextlib.__file__,
    functools.__file__,
    "<frozen",
)
_INNER += _OUR_FOLDERS


@functools.cache
def is_inner(filename: str) -> bool:
    """Returns whether the file belongs to torch, to internals of the standard library or to this package, and
    not to the user.
    """
    return filename.startswith(_INNER)


@functools.cache
def is_of_package(filename: str) -> bool:
    """Returns whether the file belongs to this package."""
    return filename.startswith(_OUR_FOLDERS)


@per_code
def origin_at(code: CodeType, instruction: int, module: str) -> Origin:
    """Returns the origin of an instruction, given by its offset in bytes: the line, and the part of it that
    is being evaluated.

    Code objects are equal where two files contain equal functions: these have two origins.
    """
    file, place = code.co_filename, _place(code, instruction)
    line = code.co_firstlineno if place[0] is None else place[0]
    text = linecache.getline(file, line)
    stripped = text.strip()
    indent = len(text) - len(text.lstrip())
    start, stop = _columns(place, text)
    start, stop = max(start - indent, 0), min(stop - indent, len(stripped))
    if start >= stop:
        start = stop = 0
    return Origin(file, line, code.co_qualname, module, stripped, indent, start, stop)


_Place: TypeAlias = tuple[int | None, int | None, int | None, int | None]
"""The source position of an instruction: the first and the last line, the first and the last column, in
bytes.
"""


@per_code
def _positions(code: CodeType) -> tuple[_Place, ...]:
    """Returns the positions of all instructions at once: a graph of torch.fx is one function, however many
    calls it has.
    """
    return tuple(code.co_positions())


def _place(code: CodeType, instruction: int) -> _Place:
    positions, at = _positions(code), instruction // 2
    return positions[at] if 0 <= at < len(positions) else (None,) * 4


def _columns(place: _Place, text: str) -> tuple[int, int]:
    """Returns the columns of the line that an instruction was compiled from; up to the line's end where it
    continues on the next one.
    """
    first, last, start, stop = place
    if first is None or last is None or start is None or stop is None:
        return 0, 0
    source = text.encode()  # positions count bytes
    return _characters(source[:start]), len(text) if last > first else _characters(source[:stop])


def _characters(source: bytes) -> int:
    return len(source.decode(errors="replace"))  # the file may have been edited since it was imported


class ModuleNames:
    """Paths of a model's modules (`encoder.layers.0`), looked up by identity."""

    def __init__(self, root: Any, modules: Modules | None = None) -> None:
        modules = submodules(root) if modules is None else modules
        self._names = {id(module): name for name, module in modules}
        graphs = [(name, module) for name, module in modules if isinstance(module, torch.fx.GraphModule)]
        codes = [getattr(graph.forward, "__code__", None) for _, graph in graphs]
        self._of_code = {id(code): (code, name) for code, (name, _) in zip(codes, graphs, strict=True)}
        """The paths of graphs, by the identity of their code; each graph has its own code."""
        if len(self._of_code) < len(graphs):
            self._of_code.clear()

    def of_frame(self, frame: FrameType) -> str | None:
        """Returns the path of the module whose method the frame runs, or None."""
        if (graph := self._of_code.get(id(frame.f_code))) is not None:
            return graph[1]  # its locals are all values of the graph
        if not frame.f_code.co_argcount or frame.f_code.co_varnames[0] != "self":
            return None  # to ask a frame for its locals makes it keep them
        return self._names.get(id(frame.f_locals.get("self")))


def caller() -> FrameType | None:
    """Returns the innermost frame outside of this package."""
    frame: FrameType | None = frame_above(1)
    while frame is not None and is_of_package(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def here(names: ModuleNames) -> Origin:
    """Returns the origin of the current call."""
    frame = caller()
    module: str | None = None
    while frame is not None:
        if module is None:
            module = names.of_frame(frame)
        if not is_inner(frame.f_code.co_filename):
            break
        frame = frame.f_back
    if frame is None:
        return Origin(module=module or "")
    outer: FrameType | None = frame
    while module is None and outer is not None:
        module = names.of_frame(outer)
        outer = outer.f_back
    return origin_at(frame.f_code, frame.f_lasti, module or "")


def of_error(error: BaseException, names: ModuleNames) -> Origin:
    """Returns the last of the user's lines that an exception passed through; frames of torch below it are not
    the user's.
    """
    found = Origin()
    step = error.__traceback__
    while step is not None:
        code, module = step.tb_frame.f_code, names.of_frame(step.tb_frame) or found.module
        if not is_inner(code.co_filename):
            found = origin_at(code, step.tb_lasti, module)
        step = step.tb_next
    return found


REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError, ZeroDivisionError, OverflowError)
"""Exceptions that an eager run raises because of sizes; any other one is a defect of the program."""


_MISCALL: Final = re.compile(r"[\w>]\(\) (missing \d+ required|takes (from )?\d+ )")


def is_miscall(error: BaseException) -> bool:
    """Returns whether the program called a function with too many arguments, or too few.

    `f(*x.unbind(0))` may, since a size gives their number.
    """
    return type(error) is TypeError and _MISCALL.search(str(error)) is not None and not is_ours(error)


def _tracebacks(error: Exception) -> Iterator[TracebackType]:
    """Yields the traceback entries from the outermost frame to the one that raised the error."""
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


_TEXTS_OF_PYTHON: Final = re.compile(
    r"reduce\(\) (of empty iterable|arg 2 must support iteration)"
    r"|'(int|float|bool|NoneType|Size|Real)' object is not (iterable|subscriptable|callable|reversible)$"
    r"|object of type '(int|float|bool|NoneType|Size|Real)' has no len\(\)$"
    r"|expected Tensor as element \d+ in argument \d+, but got (int|float|str|bool|NoneType|Size)$"
    r"|\w+\(\): argument '\w+' \(position \d+\) must be Tensor, not (int|float|str|bool|NoneType|Size)$"
    r"|(len\(\) of|iteration over) a 0-d tensor$"
)


_PLAIN: Final = (int, float, bool, type(None))
"""Types of which a value is the program's own: the recording puts none in place of another."""


def has_attributes(value: object) -> bool:
    """Returns whether the program may have set an attribute of the value."""
    return type(value) not in _PLAIN


def is_by_sizes(error: Exception) -> bool:
    """Returns whether a program on this path raises the error in an eager run, too, though its type is not
    among `REFUSALS`.

    So it is where the program's own code says `raise` or looks up a key that is not there, where torch's
    tensors lack the attribute, too, and where Python values are in place of tensors.
    """
    if isinstance(error, TypeError) and _TEXTS_OF_PYTHON.match(str(error)):
        return True
    if isinstance(error, AttributeError) and not has_attributes(error.obj):
        return True
    if isinstance(error, StopIteration):
        return not error.args
    if isinstance(error, AttributeError) and isinstance(error.obj, torch.Tensor):
        return error.name is not None and not hasattr(torch.Tensor, error.name)
    *_, last = _tracebacks(error)
    code, context = last.tb_frame.f_code, error.__context__
    instruction = dis.opname[code.co_code[last.tb_lasti]]
    if is_inner(code.co_filename):
        return False
    if isinstance(error, KeyError) and instruction == "BINARY_SUBSCR":
        return True
    return instruction == "RAISE_VARARGS" and (context is None or isinstance(context, REFUSALS))


def is_defect(error: BaseException) -> bool:
    """Returns whether the exception, whose type is that of a refusal, is not caused by the program's sizes.

    Rules refuse by an exception of their own, so any other exception from rules, dims or solver is a defect
    of theirs. A recursion that is too deep implies nothing about sizes, nor does an error of torch's that a
    symbolic size caused.
    """
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if isinstance(error, RecursionError) or "SymInt" in str(error):
        return True
    return frame.f_code.co_filename.startswith(_NEVER_REFUSING)


def is_ours(error: BaseException) -> bool:
    """Returns whether this package itself raised the exception."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_filename.startswith(_OUR_FOLDERS)
