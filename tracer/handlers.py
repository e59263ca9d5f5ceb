"""Would the program catch an exception raised by the call that it is making now?

A refusal that a `try` catches is no refusal of the program: it is a branch. Python keeps, for each stretch of
bytecode, the handler that is in force there; the frames of the running program say where it stands.
"""

from __future__ import annotations

import dis
import itertools
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Final, NamedTuple

from .codes import per_code
from .origins import is_inner

REFUSALS = (RuntimeError, IndexError, ValueError)
"""What torch raises where it refuses shapes."""


JUMPS: Final = frozenset({*dis.hasjrel, *dis.hasjabs})


class _Handler(NamedTuple):
    """A stretch of bytecode, as offsets, that an `except` covers, and where that begins."""

    start: int
    end: int
    names: tuple[str, ...] | None
    """Of what it catches."""
    target: int


@per_code
def _handlers(code: CodeType) -> tuple[_Handler, ...]:
    """What an `except` covers.

    None stands for everything, or for what cannot be read off the code. A `finally` raises again and catches
    nothing, and so does a `with`, but for `contextlib.suppress`.
    """
    if not code.co_exceptiontable:
        return ()
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    found: list[_Handler] = []
    for entry in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        handler = instructions[places[entry.target] :]
        if handler[0].opname != "PUSH_EXC_INFO":
            continue
        if handler[1].opname == "WITH_EXCEPT_START":
            if "suppress" in code.co_names:
                found.append(_Handler(entry.start, entry.end, None, entry.target))
            continue
        caught = _caught(handler[1:])
        if caught != ():
            found.append(_Handler(entry.start, entry.end, caught, entry.target))
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


def is_swallowed(frame: FrameType | None, outermost: CodeType) -> bool:
    """Does a frame of the user's, from this one up to `outermost`, catch exceptions and go on?"""
    while frame is not None and frame.f_code is not outermost:
        if not is_inner(frame.f_code.co_filename) and _goes_on(frame.f_code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False


def _goes_on(code: CodeType, offset: int) -> bool:
    """Does a handler that is in force at this place do anything but raise an exception in its turn?"""
    return any(not only_raises(code, handler.target) for handler in _covering(code, offset))


def _covering(code: CodeType, offset: int) -> Iterator[_Handler]:
    """The handlers in force at this place."""
    return (handler for handler in _handlers(code) if handler.start <= offset < handler.end)


@per_code
def only_raises(code: CodeType, offset: int) -> bool:
    """Does every way on from here end in an exception, with nothing kept but in local variables?"""
    instructions = [*dis.get_instructions(code)]
    place = {instruction.offset: at for at, instruction in enumerate(instructions)}
    waiting, seen = [place[offset]], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen or at == len(instructions):
            continue
        seen.add(at)
        instruction = instructions[at]
        name = instruction.opname
        if name in ("RAISE_VARARGS", "RERAISE"):
            waiting += [place[handler.target] for handler in _covering(code, instruction.offset)]
            continue
        if name == "POP_TOP" or name.startswith(("RETURN_", "YIELD_")):
            return False
        if name.startswith("STORE_") and name != "STORE_FAST":
            return False
        if instruction.opcode in JUMPS:
            waiting.append(place[instruction.argval])
        if name not in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
            waiting.append(at + 1)
    return True


def _in_force(outermost: CodeType) -> Iterator[tuple[FrameType, tuple[str, ...] | None]]:
    """The handlers that stand around the call that is being made, innermost first, with what they catch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not outermost:
        code, offset = frame.f_code, frame.f_lasti
        if not is_inner(code.co_filename):
            for handler in _covering(code, offset):
                yield frame, handler.names
        frame = frame.f_back


def _catches(frame: FrameType, name: str, *errors: type[Exception]) -> bool:
    """Does `except name` catch one of the errors, or what they may stand for?"""
    kind = frame.f_globals.get(name, frame.f_builtins.get(name))
    return not isinstance(kind, type) or issubclass(kind, errors) or issubclass(errors[0], kind)
