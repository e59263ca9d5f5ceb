"""Where a call comes from: the user's own line, and the path of the module that ran it."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
import traceback
from types import CodeType, FrameType
from typing import Any

import torch

from ..constraints.program import Origin

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OUR_FOLDERS: tuple[str, ...] = tuple(
    os.path.join(_OURS, part, "") for part in ("tracer", "constraints", "solver", "typecheck")
)
_NEVER_REFUSING = (
    *(os.path.join(_OURS, part, "") for part in ("constraints", "solver")),
    *(os.path.join(_OURS, "tracer", f"{part}.py") for part in ("cells", "heap", "laws", "ledger", "loops")),
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
    """Does the file belong to torch, to the standard library's plumbing or to this package, and not to the
    user?
    """
    return filename.startswith(_INNER)


@functools.cache
def is_of_package(filename: str) -> bool:
    """Does the file belong to this package?"""
    return filename.startswith(_OUR_FOLDERS)


def _origin(code: CodeType, instruction: int, line: int, module: str) -> Origin:
    """The instruction, by its offset in bytes, tells which part of the line is being evaluated."""
    return _origin_in(code.co_filename, code, instruction, line, module)


@functools.cache
def _origin_in(file: str, code: CodeType, instruction: int, line: int, module: str) -> Origin:
    # The file is a key of its own: code objects are equal where equal functions stand in two files.
    text = linecache.getline(file, line)
    stripped = text.strip()
    indent = len(text) - len(text.lstrip())
    start, stop = _columns(code, instruction, line, text)
    start, stop = max(start - indent, 0), min(stop - indent, len(stripped))
    if start >= stop:
        start = stop = 0
    return Origin(file, line, code.co_qualname, module, stripped, indent, start, stop)


@functools.lru_cache(maxsize=64)
def _positions(code: CodeType) -> tuple[tuple[int | None, int | None, int | None, int | None], ...]:
    """Of all instructions at once: a graph of torch.fx is one function, however many calls it has."""
    return tuple(code.co_positions())


def _columns(code: CodeType, instruction: int, line: int, text: str) -> tuple[int, int]:
    """The columns of the line that an instruction was compiled from; to its end where it goes on below."""
    positions = _positions(code)
    at = instruction // 2
    first, last, start, stop = positions[at] if at < len(positions) else (None,) * 4
    if first != line or last is None or start is None or stop is None:
        return 0, 0
    source = text.encode()  # positions count bytes
    return _characters(source[:start]), len(text) if last > line else _characters(source[:stop])


def _characters(source: bytes) -> int:
    return len(source.decode(errors="replace"))  # the file may have been edited since it was imported


class ModuleNames:
    """Paths of a model's modules (`encoder.layers.0`), looked up by identity."""

    def __init__(self, root: Any) -> None:
        modules = root.named_modules() if isinstance(root, torch.nn.Module) else ()
        self._names = {id(module): name for name, module in modules}

    def of_frame(self, frame: FrameType) -> str | None:
        """The path of the module whose method the frame runs."""
        if not frame.f_code.co_argcount or frame.f_code.co_varnames[0] != "self":
            return None
        return self._names.get(id(frame.f_locals.get("self")))


def here(names: ModuleNames) -> Origin:
    """The origin of the call that is being made now."""
    frame: FrameType | None = sys._getframe(1)
    module: str | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if module is None and not is_of_package(file):
            module = names.of_frame(frame)
        if not is_inner(file):
            break
        frame = frame.f_back
    if frame is None:
        return Origin(module=module or "")
    outer: FrameType | None = frame
    while module is None and outer is not None:
        module = names.of_frame(outer)
        outer = outer.f_back
    return _origin(frame.f_code, frame.f_lasti, frame.f_lineno, module or "")


def of_error(error: BaseException, names: ModuleNames) -> Origin:
    """The user's line that an exception came through last; torch's own frames below it are not the user's."""
    found = Origin()
    step = error.__traceback__
    while step is not None:
        code, module = step.tb_frame.f_code, names.of_frame(step.tb_frame) or found.module
        if not is_inner(code.co_filename):
            found = _origin(code, step.tb_lasti, step.tb_lineno, module)
        step = step.tb_next
    return found


def is_defect(error: BaseException) -> bool:
    """Was the exception no refusal of the program, though of a kind that refusals have?

    Rules refuse in their own way: whatever else comes out of rules, dims or solver is a defect of theirs. A
    recursion too deep says nothing of sizes, and neither does torch where a symbolic size has reached it.
    """
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if isinstance(error, RecursionError) or "SymInt" in str(error):
        return True
    return frame.f_code.co_filename.startswith(_NEVER_REFUSING)


def is_ours(error: BaseException) -> bool:
    """Was the exception raised by this package itself?"""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_filename.startswith(_OUR_FOLDERS)
