"""The origin of a call: the user's own line, and the path of the module that ran it."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

import torch

from ...constraints.ir.program import Origin
from ..host.interpreter import frame_above
from ..host.submodules import Modules, submodules
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
        for name in "active cells descents heap laws loop loop_elements loops summarised".split()
    ),
)
_INNER: tuple[str, ...] = (
    os.path.join(os.path.dirname(torch.__file__), ""),
    contextlib.__file__,
    functools.__file__,
    "<frozen",
)
_INNER += _OUR_FOLDERS
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
"""The names of the folders of installed packages."""
_OF_STAND_INS: set[str] = set()


@functools.cache
def is_inner(filename: str) -> bool:
    """Returns whether the file belongs to torch, to internals of the standard library, to this package or to
    stand-ins that another one brings, and not to the user.
    """
    return filename.startswith(_INNER) or filename in _OF_STAND_INS


@functools.cache
def is_installed(filename: str) -> bool:
    """Returns whether the file is inner, or belongs to a package that was installed, as programs use it."""
    return is_inner(filename) or not _INSTALLED.isdisjoint(filename.split(os.sep))


def hide(filename: str) -> None:
    """Makes a file of stand-ins count as inner: what they call has its origin where they are called."""
    _OF_STAND_INS.add(filename)
    is_inner.cache_clear()
    is_installed.cache_clear()


@functools.cache
def is_of_rules(filename: str) -> bool:
    """Returns whether the file belongs to rules, dims or the solver, whose exceptions are never refusals."""
    return filename.startswith(_NEVER_REFUSING)


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

    @property
    def are_none(self) -> bool:
        """Returns whether there are no modules, so that no frame is of one."""
        return not (self._names or self._of_code)

    def of_frame(self, frame: FrameType) -> str | None:
        """Returns the path of the module whose method the frame runs, or None."""
        code = frame.f_code
        if self._of_code and (graph := self._of_code.get(id(code))) is not None:
            return graph[1]  # its locals are all values of the graph
        # To ask a frame for its locals makes it keep them.
        is_method = code.co_argcount and code.co_varnames[0] == "self"
        return self._names.get(id(frame.f_locals.get("self"))) if is_method else None


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
        module = names.of_frame(frame)
        if module is not None or not is_inner(frame.f_code.co_filename):
            break
        frame = frame.f_back
    while frame is not None and is_inner(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return Origin(module=module or "")
    outer: FrameType | None = None if names.are_none else frame
    while module is None and outer is not None:
        module = names.of_frame(outer)
        outer = outer.f_back
    return origin_at(frame.f_code, frame.f_lasti, module or "")


def of_error(error: BaseException, names: ModuleNames) -> Origin:
    """Returns the last of the user's lines that an exception passed through, with the module in which it was
    raised; frames of torch below the line are not the user's.
    """
    found = Origin()
    step = error.__traceback__
    while step is not None:
        code, module = step.tb_frame.f_code, names.of_frame(step.tb_frame) or found.module
        if not is_inner(code.co_filename):
            found = origin_at(code, step.tb_lasti, module)
        elif found.file:
            found = replace(found, module=module)
        step = step.tb_next
    return found


def is_by_library(error: BaseException) -> bool:
    """Returns whether a line of torch's raised an exception, and none of the user's."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and is_inner(step.tb_frame.f_code.co_filename)


REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError, ZeroDivisionError, OverflowError)
"""Exceptions that an eager run raises because of sizes; any other one is a defect of the program."""
