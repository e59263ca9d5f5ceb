"""Recognises code that asks whether two values are one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dis import Positions, opmap
from types import CodeType, FrameType
from typing import Any, Final

from ...constraints.ir.program import Origin
from .codes import instructions, per_code, steps_from
from .origins import caller, is_inner, origin_at


def may_be_compared(value: object, outermost: CodeType) -> bool:
    """Returns whether a function that is running, on the way up to the one that runs `outermost`, has an `is`
    between two values or calls `id`, and one of these functions holds the value, also in a container or in an
    attribute: what no one holds is never compared.
    """
    frames = list(_running(outermost))
    if not any(_compares(frame.f_code, frame.f_lasti) for frame in frames):
        return False
    held = (one for frame in frames for local in frame.f_locals.values() for one in _within(local))
    return any(one is value for one in held)


def _running(outermost: CodeType) -> Iterator[FrameType]:
    """Yields the frames of the program's functions that are running."""
    frame: FrameType | None = caller()
    while frame is not None and frame.f_code is not outermost:
        if not is_inner(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _within(value: Any, depth: int = 3) -> Iterator[Any]:
    """Yields a value, and what it holds if it is a container or has attributes, down to this depth: the
    buffers of a module are in a dict of an attribute.
    """
    yield value
    if type(value) in (list, tuple):
        parts: Iterable[Any] = value
    else:
        parts = value.values() if type(value) is dict else getattr(value, "__dict__", {}).values()
    for part in parts if depth else ():
        yield from _within(part, depth - 1)


@per_code
def _compares(code: CodeType, offset: int) -> bool:
    """Returns whether the code calls `id`, or has an `is` whose right side is neither a constant nor a global
    name or a member of one, such as `None` or `torch.float32`, behind the offset or in a loop around it.
    """
    steps, root = steps_from(code, 0), ""
    backward = [step for step in steps if step.offset >= offset and "JUMP_BACKWARD" in step.opname]
    first = min((step.argval for step in backward), default=offset)
    for step in steps:
        if step.offset >= min(first, offset):
            if step.opname == "IS_OP" and root not in ("LOAD_CONST", "LOAD_GLOBAL", "LOAD_NAME"):
                return True
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval == "id":
                return True
        root = root if step.opname == "LOAD_ATTR" else step.opname
    return False


@per_code
def compared_with_numbers(code: CodeType) -> tuple[Origin, ...]:
    """Returns where this code, and code within it, asks by `is` whether a value is an integer that is written
    there.
    """
    within = [inner for inner in code.co_consts if type(inner) is CodeType]
    found = [place for inner in within for place in compared_with_numbers(inner)]
    if _IS_OP in code.co_code[::2]:
        steps = [*instructions(code).values()]
        integers = {s.positions for s in steps if s.opname in _LOADING and type(s.argval) is int}
        for step in steps:
            if step.opname == "IS_OP" and any(_is_operand(one, step.positions) for one in integers):
                found.append(origin_at(code, step.offset, ""))
    return tuple(found)


def _is_operand(one: Positions | None, comparison: Positions | None) -> bool:
    """Returns whether what is written here is one side of the comparison. What pytest makes of an `assert`
    stands where the whole statement does, which is no part of it.
    """
    if one is None or comparison is None or None in (*one, *comparison):
        return False
    starts, ends = (one[::2], comparison[::2]), (one[1::2], comparison[1::2])
    left = starts[0] == starts[1] and ends[0] < ends[1]
    right = ends[0] == ends[1] and starts[0] > starts[1]
    return left or right


_LOADING: Final = ("LOAD_CONST", "LOAD_SMALL_INT")
_IS_OP: Final = opmap["IS_OP"]
