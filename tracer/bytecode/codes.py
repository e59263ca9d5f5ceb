"""Results of reading the code of a function, cached as long as the code lives."""

from __future__ import annotations

import bisect
import dis
import functools
import itertools
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, Final, ParamSpec, TypeVar
from typing import Concatenate as After

from ..host.interpreter import read

JUMPS: Final = frozenset({*dis.hasjrel, *dis.hasjabs})
"""The codes of instructions that may go on elsewhere than behind themselves."""
ENDS: Final = frozenset(
    """
    RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    INTERPRETER_EXIT
    """.split()
)
"""Instructions after which the next one does not run."""
IDLE: Final = ("NOP", "NOT_TAKEN", "EXTENDED_ARG")
"""Instructions that do nothing by themselves."""
Where = ParamSpec("Where")
Read = TypeVar("Read")


def per_code(reader: Callable[After[CodeType, Where], Read]) -> Callable[After[CodeType, Where], Read]:
    """Caches the function for each code, or for each code and offset.

    The cache compares codes by identity: a look-up by value would hash everything that the code names, which
    in a graph of torch.fx is all nodes, at each node.
    """
    known: dict[int, dict[object, Read]] = {}

    @functools.wraps(reader)
    def look_up(code: CodeType, /, *where: Any) -> Read:
        try:
            return known[id(code)][where]
        except KeyError:
            pass
        if id(code) not in known:
            known[id(code)] = {}
            weakref.finalize(code, known.pop, id(code)).atexit = False
        found = known[id(code)][where] = reader(code, *where)  # type: ignore[call-arg]
        return found

    return look_up  # type: ignore[return-value]


@per_code
def instructions(code: CodeType) -> dict[int, dis.Instruction]:
    """Returns the instructions of the code by their offsets in bytes."""
    return _Instructions((i.offset, i) for i in read(code))


class _Instructions(dict[int, dis.Instruction]):
    """Instructions by their offsets. While a method of Python's runs that a call has entered directly, the
    frame of the caller is at the last of the entries of the cache behind the call.
    """

    def __missing__(self, offset: int) -> dis.Instruction:
        if offset < 0:
            raise KeyError(offset)
        return self[offset - 2]


def steps_from(code: CodeType, offset: int) -> tuple[dis.Instruction, ...]:
    """Returns the instructions from an offset on, without those that have no effect."""
    steps = _steps(code)
    return steps[bisect.bisect_left(steps, offset, key=lambda step: step.offset) :]


@per_code
def _steps(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(i for i in instructions(code).values() if i.opname not in IDLE)


def offset_in(frame: FrameType) -> int:
    """Returns the offset of the instruction that the frame is executing; -1 before the first."""
    last = frame.f_lasti
    return instructions(frame.f_code)[last].offset if last >= 0 else last


def instruction(frame: FrameType) -> dis.Instruction:
    """Returns the instruction that the frame is executing."""
    return instructions(frame.f_code)[frame.f_lasti]


@per_code
def branch(code: CodeType, offset: int) -> tuple[int, int] | None:
    """Returns where the conditional jump at this offset leads, if its value is true and if it is false; None
    for other instructions. Jumps without a condition that it leads to are followed.
    """
    steps = instructions(code)
    name = steps[offset].opname
    if "JUMP" not in name or not ("IF_TRUE" in name or "IF_FALSE" in name):
        return None
    jumps, goes_on = settled(code, steps[offset].argval), settled(code, following(code, offset))
    return (jumps, goes_on) if "IF_TRUE" in name else (goes_on, jumps)


def following(code: CodeType, offset: int) -> int:
    """Returns the offset of the instruction behind the one at this offset; that offset for the last one."""
    offset = instructions(code)[offset].offset
    return _behind(code).get(offset, offset)


@per_code
def _behind(code: CodeType) -> dict[int, int]:
    return dict(itertools.pairwise(instructions(code)))


@per_code
def settled(code: CodeType, offset: int) -> int:
    """Returns the offset of the first instruction from here on that does more than going on elsewhere."""
    steps, seen = instructions(code), set[int]()
    while offset not in seen:
        seen.add(offset)
        step = steps[offset]
        if step.opname in IDLE:
            offset = following(code, offset)
        elif step.opcode in JUMPS and step.opname in ENDS:
            offset = int(step.argval)
    return offset


@per_code
def constants(code: CodeType) -> tuple[Any, ...]:
    """Returns the constants that a code mentions. From Python 3.14 on, an instruction holds a small integer
    itself.
    """
    small = (i.argval for i in instructions(code).values() if i.opname == "LOAD_SMALL_INT")
    return *code.co_consts, *dict.fromkeys(small)


def codes_within(code: CodeType) -> Iterator[CodeType]:
    """Yields the codes of the functions, classes and comprehensions that are written within a code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_within(constant)
