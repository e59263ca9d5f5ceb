"""Results of reading the code of a function, cached as long as the code lives."""

from __future__ import annotations

import dis
import functools
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Concatenate as After
from typing import ParamSpec, TypeVar

Where = ParamSpec("Where")
Read = TypeVar("Read")


def per_code(read: Callable[After[CodeType, Where], Read]) -> Callable[After[CodeType, Where], Read]:
    """Caches the function for each code, or for each code and offset.

    The cache compares codes by identity: a look-up by value would hash everything that the code names, which
    in a graph of torch.fx is all nodes, at each node.
    """
    known: dict[int, dict[object, Read]] = {}

    @functools.wraps(read)
    def look_up(code: CodeType, /, *where: Where.args, **named: Where.kwargs) -> Read:
        found = known.get(id(code))
        if found is None:
            found = known[id(code)] = {}
            weakref.finalize(code, known.pop, id(code)).atexit = False
        if where not in found:
            found[where] = read(code, *where, **named)
        return found[where]

    return look_up


@per_code
def instructions(code: CodeType) -> dict[int, dis.Instruction]:
    """Returns the instructions of the code by their offsets in bytes."""
    return {i.offset: i for i in dis.get_instructions(code)}


def instruction(frame: FrameType) -> dis.Instruction:
    """Returns the instruction that the frame is executing."""
    return instructions(frame.f_code)[frame.f_lasti]
