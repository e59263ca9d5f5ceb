"""Loops in the code of a running function: where the body of a `while` begins, and which frames a `for`
drives.
"""

from __future__ import annotations

import dis
import inspect
import itertools
from collections.abc import Iterator
from types import FrameType
from typing import Final

from .codes import branch, following, instruction, instructions, settled
from .stack import fills

_PREPARING: Final = frozenset(
    "EXTENDED_ARG LOAD_FAST_AND_CLEAR SWAP MAKE_CELL BUILD_LIST BUILD_SET BUILD_MAP GET_ITER".split()
)
"""What a comprehension without a frame of its own does between the beginning of its loop and the first step: in
3.13 it asks the iterator for its iterator once more.
"""
_STATEMENTS: Final = ("STORE_", "POP_", "JUMP_", "FOR_", "RETURN_", "RAISE_", "DELETE_", "SEND")
"""What instructions begin with that occur between expressions."""
_WORDS: Final = {"min", "max", "isqrt", "and", "or", "not"}
"""Words with a meaning in the text of a dim."""


def _from(frame: FrameType) -> Iterator[tuple[int, dis.Instruction]]:
    """Yields the instruction that the frame is executing and those behind it, with their offsets."""
    steps = instructions(frame.f_code).items()
    return ((at, i) for at, i in steps if at >= frame.f_lasti and i.opname != "EXTENDED_ARG")


def begins_while(frame: FrameType) -> tuple[int, bool] | None:
    """Returns where the body of a `while` begins whose test the frame is evaluating, and whether an iteration
    precedes it; or None.
    """
    for at, _ in itertools.islice(_from(frame), 2):
        if (leads := branch(frame.f_code, at)) is None:
            continue
        body, _ = leads
        if body < at:
            return body, True
        return (body, False) if body == settled(frame.f_code, following(frame.f_code, at)) else None
    return None


def continues_while(frame: FrameType) -> int | None:
    """Returns where the body of a `while` begins, if the frame is evaluating a part of its test after an
    iteration, and not the last part: `while a and b`.
    """
    ends: list[int] = []
    for at, step in _from(frame):
        if (leads := branch(frame.f_code, at)) is not None:
            body, end = leads
            if body < at:
                return body if ends and min(ends) > at else None
            ends.append(end)
        elif step.opname.startswith(_STATEMENTS):
            return None
    return None


def is_kept_where(frame: FrameType) -> bool | None:
    """Returns the outcome of the test that a list comprehension is evaluating for which it keeps its element;
    None where the test is no `if` of the comprehension.

    Such a test goes back to the `for` where no element is kept.
    """
    leads = next((leads for at, _ in _from(frame) if (leads := branch(frame.f_code, at))), ())
    goes_back = [instructions(frame.f_code)[at].opname == "FOR_ITER" for at in leads]
    return goes_back[1] if any(goes_back) else None


def target(frame: FrameType) -> str:
    """Returns the variable that a `for` assigns to; a fixed word if it assigns to several."""
    _, behind = next((at, i) for at, i in _from(frame) if at > frame.f_lasti)
    name = str(behind.argval) if behind.opname.startswith("STORE_") else ""
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
        behind = ((at, i) for at, i in instructions(code).items() if at > begun)
        if next(at for at, i in behind if i.opname not in _PREPARING) != frame.f_lasti:
            return None
    elif frame.f_locals.get(".0") is not handle or frame.f_lasti != loops[0]:
        return None
    frames = [frame]
    while frames[-1].f_code.co_flags & inspect.CO_GENERATOR and not comprehension(frames[-1]):
        outer = frames[-1].f_back
        if outer is None or outer.f_code.co_filename != consumers:
            return None
        if instruction(outer).opname != "FOR_ITER":
            return None
        frames.append(outer)
    suspended = frames[-1].f_code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    gathers = any(comprehension(one) not in ("", "LIST_APPEND") for one in frames)
    return None if suspended or gathers else tuple(frames)


def comprehension(frame: FrameType) -> str:
    """Returns which comprehension the loop is that the frame is stepping (`stack.fills`); "" for none."""
    return fills(frame.f_code, frame.f_lasti)
