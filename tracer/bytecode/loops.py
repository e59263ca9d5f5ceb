"""Loops in the code of a running function: where the body of a `while` begins, and which frames a `for`
drives.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Final

from .codes import instruction, instructions

_STATEMENTS: Final = ("STORE_", "POP_", "JUMP_", "FOR_", "RETURN_", "RAISE_", "DELETE_", "SEND")
"""What instructions begin with that occur between expressions."""
_WORDS: Final = {"min", "max", "isqrt", "and", "or", "not"}
"""Words with a meaning in the text of a dim."""


def _from(frame: FrameType) -> Iterator[dis.Instruction]:
    """Yields the instruction that the frame is executing and those behind it."""
    return (i for at, i in instructions(frame.f_code).items() if at >= frame.f_lasti)


def begins_while(frame: FrameType) -> tuple[int, bool] | None:
    """Returns where the body of a `while` begins whose test the frame is evaluating, and whether an iteration
    precedes it; or None.
    """
    at = [i for i in _from(frame) if i.opname != "EXTENDED_ARG"]
    jump = at[0] if at[0].opname.startswith("POP_JUMP") else at[1] if len(at) > 1 else at[0]
    if jump.opname == "POP_JUMP_BACKWARD_IF_TRUE":
        return int(jump.argval), True
    if jump.opname == "POP_JUMP_FORWARD_IF_FALSE":
        following = next((i.offset for i in at if i.offset > jump.offset), None)
        return None if following is None else (following, False)
    return None


def continues_while(frame: FrameType) -> int | None:
    """Returns where the body of a `while` begins, if the frame is evaluating a part of its test after an
    iteration, and not the last part: `while a and b`.
    """
    ends: list[int] = []
    for i in _from(frame):
        if i.opname == "POP_JUMP_BACKWARD_IF_TRUE":
            return int(i.argval) if ends and min(ends) > i.offset else None
        if i.opname == "POP_JUMP_FORWARD_IF_FALSE":
            ends.append(int(i.argval))
        elif i.opname.startswith(_STATEMENTS):
            return None
    return None


def is_kept_where(frame: FrameType) -> bool | None:
    """Returns the outcome of the test that a list comprehension is evaluating for which it keeps its element;
    None where the test is no `if` of the comprehension.

    Such a test goes back to the `for` where no element is kept.
    """
    jump = next((i for i in _from(frame) if i.opname.startswith("POP_JUMP")), None)
    if jump is None or instructions(frame.f_code)[jump.argval].opname != "FOR_ITER":
        return None
    return jump.opname.endswith("FALSE")


def target(frame: FrameType) -> str:
    """Returns the variable that a `for` assigns to; a fixed word if it assigns to several."""
    following = next(i for i in _from(frame) if i.offset > frame.f_lasti and i.opname != "EXTENDED_ARG")
    name = str(following.argval) if following.opname.startswith("STORE_") else ""
    return name if name.isascii() and name.isidentifier() and name not in _WORDS else "step"


def driven_by(
    handle: object, begun: int, maker: FrameType, frame: FrameType, consumers: str
) -> tuple[FrameType, ...] | None:
    """Returns the frames whose code is the body of a loop over the iterator `handle`, which `maker` made at
    the offset `begun`, and `frame` steps; None where it is not known to be a `for`, or not by itself.

    `for` makes an iterator and steps it at once, in one frame; a comprehension is given it as its argument. A
    generator expression is part of the loop that consumes it, which has to be in the file `consumers`: one in
    C, or one that consumes other iterators as well, has state of its own.
    """
    code = frame.f_code
    if instruction(frame).opname != "FOR_ITER":
        return None
    loops = [i.offset for i in instructions(code).values() if i.opname == "FOR_ITER"]
    if frame is maker:
        following = (i for i in instructions(code).values() if i.offset > begun)
        if next(i.offset for i in following if i.opname != "EXTENDED_ARG") != frame.f_lasti:
            return None
    elif frame.f_locals.get(".0") is not handle or frame.f_lasti != loops[0]:
        return None
    frames = [frame]
    while frames[-1].f_code.co_flags & inspect.CO_GENERATOR:
        outer = frames[-1].f_back
        if outer is None or outer.f_code.co_filename != consumers:
            return None
        if instruction(outer).opname != "FOR_ITER":
            return None
        frames.append(outer)
    code = frames[-1].f_code
    suspended = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    gathers = code.co_name in ("<setcomp>", "<dictcomp>") or (code.co_name == "<listcomp>" and len(loops) > 1)
    return None if code.co_flags & suspended or gathers else tuple(frames)
