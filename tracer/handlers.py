"""Would the program catch an exception raised by the call that it is making now?

A refusal that a `try` catches is no refusal of the program: it is a branch. Python keeps, for each stretch of
bytecode, the handler that is in force there; the frames of the running program say where it stands.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
from collections.abc import Iterator
from types import CodeType, FrameType

from .origins import is_inner

REFUSALS = (RuntimeError, IndexError, ValueError)
"""What torch raises where it refuses shapes."""


@functools.cache
def _handlers(code: CodeType) -> tuple[tuple[int, int, tuple[str, ...] | None], ...]:
    """Stretches of bytecode, as offsets, that an `except` covers, with the names of what it catches.

    None stands for everything, or for what cannot be read off the code. A `finally` raises again and catches
    nothing, and so does a `with`, but for `contextlib.suppress`.
    """
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    found: list[tuple[int, int, tuple[str, ...] | None]] = []
    for entry in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        handler = instructions[places[entry.target] :]
        if handler[0].opname != "PUSH_EXC_INFO":
            continue
        if handler[1].opname == "WITH_EXCEPT_START":
            if "suppress" in code.co_names:
                found.append((entry.start, entry.end, None))
            continue
        caught = _caught(handler[1:])
        if caught != ():
            found.append((entry.start, entry.end, caught))
    return tuple(found)


def _caught(handler: list[dis.Instruction]) -> tuple[str, ...] | None:
    """The names in the `except` clauses of a handler; () for a `finally`, None for a bare `except`."""
    names: list[str] = []
    clauses = 0
    for before, instruction in itertools.pairwise(handler):
        match instruction.opname:
            case "CHECK_EXC_MATCH":
                clauses += 1
                if before.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
                    return None  # a tuple, or an attribute of a module
                names.append(str(before.argval))
            case "POP_EXCEPT" if not clauses:
                return None
            case "RERAISE":
                break
    return tuple(names)


def is_guarded(outermost: CodeType, error: type[Exception] = RuntimeError) -> bool:
    """Would a frame of the user's, on the way up to the one that runs `outermost`, catch a refusal, with this
    error or another?
    """
    for frame, names in _in_force(outermost):
        if names is None or any(_catches(frame, name, error, *REFUSALS) for name in names):
            return True
    return False


def tells_apart(outermost: CodeType, *errors: type[Exception]) -> bool:
    """Is there a frame on the way up that would catch some of these errors and others not?"""
    for frame, names in _in_force(outermost):
        if names is None:  # what is caught cannot be read off the code
            return True
        if len({any(_catches(frame, name, error) for name in names) for error in errors}) > 1:
            return True
    return False


def _in_force(outermost: CodeType) -> Iterator[tuple[FrameType, tuple[str, ...] | None]]:
    """The handlers that stand around the call that is being made, innermost first, with what they catch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not outermost:
        code, offset = frame.f_code, frame.f_lasti
        if not is_inner(code.co_filename):
            for start, end, names in _handlers(code):
                if start <= offset < end:
                    yield frame, names
        frame = frame.f_back


def _catches(frame: FrameType, name: str, *errors: type[Exception]) -> bool:
    """Does `except name` catch one of the errors, or what they may stand for?"""
    kind = frame.f_globals.get(name, frame.f_builtins.get(name))
    return not isinstance(kind, type) or issubclass(kind, errors) or issubclass(errors[0], kind)
