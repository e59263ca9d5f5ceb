"""The evaluation stack of a running function: how many values it holds at an instruction, and the list that a
list comprehension is filling, which no variable names.
"""

from __future__ import annotations

import dis
from types import CodeType, FrameType
from typing import Any, Final

from ..host.interpreter import stacked
from .codes import ENDS, JUMPS, following, instructions, offset_in, per_code

_FILLS: Final = ("LIST_APPEND", "SET_ADD", "MAP_ADD")
"""Instructions that add to a container which lies in the stack, so deep as their argument says."""


@per_code
def depth(code: CodeType, offset: int) -> int | None:
    """Returns how many values are on the stack before the instruction; None where no path leads to it."""
    return _depths(code).get(offset)


@per_code
def _depths(code: CodeType) -> dict[int, int]:
    steps = instructions(code)
    found = {0: 0}
    for handled in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        found[handled.target] = handled.depth + handled.lasti + 1  # the exception, perhaps its offset, too
    waiting = [*found]
    while waiting:
        at = waiting.pop()
        step, here = steps[at], found[at]
        arg = step.arg if step.opcode >= dis.HAVE_ARGUMENT else None
        leads = {}
        if step.opname not in ENDS:
            leads[following(code, at)] = here + dis.stack_effect(step.opcode, arg, jump=False)
        if step.opcode in JUMPS:
            leads[step.argval] = here + dis.stack_effect(step.opcode, arg, jump=True)
        news = leads.keys() - found.keys()
        found.update((n, leads[n]) for n in news)
        waiting += news
    return found


def operands(frame: FrameType, count: int) -> list[Any] | None:
    """Returns the values on top of the stack before the instruction of a frame, the top one last; None where
    they are not found.
    """
    top = depth(frame.f_code, frame.f_lasti)
    if top is None or top < count:
        return None
    found = [stacked(frame, place) for place in range(top - count, top)]
    return None if any(value is None for value in found) else found


@per_code
def fills(code: CodeType, offset: int) -> str:
    """Returns the instruction by which the `for` at this offset fills a container that lies below its
    iterator: LIST_APPEND for a list comprehension; "" where it fills none, and "several" where it is one of
    the loops of a comprehension that has several.
    """
    ends = {at: int(i.argval) for at, i in instructions(code).items() if i.opname == "FOR_ITER"}
    found = set()
    for at, step in instructions(code).items():
        if step.opname not in _FILLS or not offset < at < ends[offset]:
            continue
        around = sum(begin < at < end for begin, end in ends.items() if begin >= offset)
        iterators = (step.arg or 0) - 1  # those that lie above the container
        if iterators >= around:
            found.add(step.opname if iterators == 1 else "several")
    return found.pop() if len(found) == 1 else "several" if found else ""


def filled(frame: FrameType, iterated: Any) -> list[Any] | None:
    """Returns the list that the list comprehension which the frame is stepping fills; None where it is not
    found. `iterated` is its iterator, or the frame of a generator that is its iterator.
    """
    top = depth(frame.f_code, offset_in(frame))
    if top is None or top < 2:
        return None
    iterator = stacked(frame, top - 1)
    if iterated is not iterator and iterated is not getattr(iterator, "gi_frame", iterator):
        return None
    found = stacked(frame, top - 2)
    return found if isinstance(found, list) else None
