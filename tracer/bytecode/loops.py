"""Loops in the code of a running function: where the body of a `while` begins, and which frames a `for`
drives.
"""

from __future__ import annotations

import dis
import inspect
import itertools
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Final, NamedTuple

from ..host.jumps import TESTS_ONCE, last_jump
from .codes import ENDS, JUMPS, branch, instruction, instructions, offset_in, per_code, settled, steps_from
from .stack import fills

_PREPARING: Final = frozenset(
    "EXTENDED_ARG LOAD_FAST_AND_CLEAR SWAP MAKE_CELL BUILD_LIST BUILD_SET BUILD_MAP GET_ITER".split()
)
"""The instructions of a comprehension without a frame of its own between the beginning of its loop and its
first step. In 3.13 it asks the iterator for an iterator once more.
"""
_STATEMENTS: Final = ("STORE_", "POP_", "JUMP_", "FOR_", "RETURN_", "RAISE_", "DELETE_", "SEND")
"""The beginnings of the names of instructions that occur between expressions."""
_SUSPENDED: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_OUT_OF_HANDLERS: Final = "JUMP_BACKWARD_NO_INTERRUPT"
_WORDS: Final = {"min", "max", "isqrt", "rounded", "and", "or", "not"}
"""Words with a meaning in the text of a dim."""


def _from(frame: FrameType) -> Iterator[tuple[int, dis.Instruction]]:
    """Yields the instruction that the frame is executing and those behind it, with their offsets."""
    now, *behind = steps_from(frame.f_code, frame.f_lasti)
    yield now.offset, now
    yield from ((i.offset, i) for i in behind if i.opname != "TO_BOOL")


def _tested(frame: FrameType) -> Iterator[tuple[int, dis.Instruction]]:
    """Yields the same where they may be the test of a `while` whose body is all that runs until it is tested
    again; nothing for a generator, in whose body that of another loop may run.
    """
    return iter(()) if frame.f_code.co_flags & _SUSPENDED else _from(frame)


def begins_while(frame: FrameType) -> tuple[int, bool] | None:
    """Returns where the body of a `while` begins whose test the frame is evaluating, and whether an iteration
    precedes it; or None.
    """
    for at, _ in itertools.islice(_tested(frame), 2):
        if (leads := branch(frame.f_code, at)) is None:
            continue
        body, _ = leads
        if body < at:
            return body, True
        if not _goes_on(frame.f_code, at, body):
            return None
        test = _tested_once(frame.f_code, at)
        return body, test is not None and last_jump(frame) in test.jumps and test.body == body
    return None


def _goes_on(code: CodeType, at: int, to: int) -> bool:
    """Returns whether a conditional jump leads to the code behind it, perhaps over another jump."""
    _, behind, *others = steps_from(code, at)
    over = others[:1] if _is_plain_jump(behind) else []
    return to in [settled(code, step.offset) for step in (behind, *over)]


def _is_plain_jump(step: dis.Instruction) -> bool:
    """Returns whether the instruction is a jump without a condition."""
    return step.opcode in JUMPS and step.opname in ENDS


def continues_while(frame: FrameType) -> int | None:
    """Returns where the body of a `while` begins, if the frame is evaluating a part of its test after an
    iteration, and not the last part: `while a and b`.
    """
    ends: list[int] = []
    for at, step in _tested(frame):
        if (leads := branch(frame.f_code, at)) is not None:
            test = None if ends else _tested_once(frame.f_code, at)
            if test is not None and last_jump(frame) in test.jumps:
                return test.body if test.body != leads[0] else None
            body, end = leads
            if body < at:
                return body if ends and min(ends) > at else None
            ends.append(end)
        elif step.opname.startswith(_STATEMENTS):
            return None
    return None


class _WhileTest(NamedTuple):
    """The test of a `while` whose code has it only once (`host/jumps.py`)."""

    body: int
    """Where the body begins."""
    jumps: frozenset[int]
    """The offsets of the jumps by which an iteration ends."""


@per_code
def _tested_once(code: CodeType, offset: int) -> _WhileTest | None:
    """Returns the test of the `while` that the conditional jump at this offset is a part of, if its code has
    it only once.

    The parts of a test follow each other, and each leads out of the loop if it is false. After an iteration
    a jump leads back to the first. To come here in any other way again, a frame has to take the jump of
    another loop around this one: the last jump that it made tells. Jumps out of handlers are not noted.
    """
    leads, back = branch(code, offset), _jumps_back(code)
    first = max((to for at, to in back if to <= offset < at), default=None)
    if not TESTS_ONCE or leads is None or first is None:
        return None
    if any(to <= first < at and instructions(code)[at].opname == _OUT_OF_HANDLERS for at, to in back):
        return None
    end = leads[1]
    inside = {at for at, to in back if to == first and at > offset and (end < first or at < end)}
    body = _behind_parts(code, offset, first, max(inside)) if inside else None
    return None if body is None else _WhileTest(body, frozenset(inside))


def _behind_parts(code: CodeType, offset: int, first: int, last: int) -> int | None:
    """Returns where the body of a loop begins, whose test has a part at this offset; None for any other jump.
    The loop is from its first instruction up to its last.
    """
    body, before = None, None
    for step in steps_from(code, first):
        leads = branch(code, step.offset)
        over = before is not None and branch(code, before.offset) and _is_plain_jump(step)
        named = before is not None and before.opname == "COPY"  # `(m := n // 2) > 1`
        if leads and _goes_on(code, step.offset, leads[0]) and not first <= leads[1] <= last:
            body = leads[0]
        elif leads or (step.opname.startswith(_STATEMENTS) and not (named or over)):
            return body if step.offset > offset else None
        before = step
    return None


@per_code
def _jumps_back(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Returns the offsets of the jumps without a condition to what stands before them, each with its target.
    """
    jumps = (step for step in instructions(code).values() if _is_plain_jump(step))
    return tuple((step.offset, int(step.argval)) for step in jumps if step.argval < step.offset)


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
    return fills(frame.f_code, offset_in(frame))
