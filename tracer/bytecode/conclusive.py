"""Recognises a comparison that is the whole argument of a `torch._check`.

Only that call gets the outcome, and the call raises unless it is true: the comparison is a requirement and no
branch. Python's bytecode shows where a value goes.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Final

from ..host.tensors import torch_check
from .codes import JUMPS, following, instructions, per_code
from .stack import depth

_IDLE: Final = ("PUSH_NULL", "EXTENDED_ARG")


def is_checked(frame: FrameType) -> bool:
    """Returns whether the comparison that the frame is making goes to `torch._check`, and nowhere else.

    With a message as a further argument it is a branch, since the message may depend on the failure.
    """
    path = _called_with(frame.f_code, frame.f_lasti)
    if not path:
        return False
    found = frame.f_globals.get(path[0])
    for name in path[1:]:
        found = getattr(found, name, None)
    return found is torch_check


@per_code
def _called_with(code: CodeType, offset: int) -> tuple[str, ...]:
    """Returns the dotted name of the function that is called with the result of the comparison at the offset
    as its only argument; empty where there is no such call.

    The call takes three values from the stack: the function, its object or nothing, and the argument. So the
    function is loaded from the last point on at which the stack was three values lower, and the argument from
    the last one at which it was one value lower.
    """
    steps = instructions(code)
    behind = steps[following(code, offset)]
    alone = (behind.opname, behind.arg) in (("PRECALL", 1), ("CALL", 1))  # the former in 3.11 alone
    top = depth(code, behind.offset) if alone else None
    if top is None or steps[offset].opname != "COMPARE_OP" or behind.is_jump_target:
        return ()
    before = [at for at in steps if at <= offset]
    function, argument = (max((at for at in before if depth(code, at) == top - n), default=0) for n in (3, 1))
    if any(steps[at].opcode in JUMPS or steps[at].is_jump_target for at in before if at > function):
        return ()
    loads = [steps[at] for at in before if function <= at < argument and steps[at].opname not in _IDLE]
    named = all(i.opname in ("LOAD_ATTR", "LOAD_METHOD") for i in loads[1:])
    if not loads or not named or loads[0].opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
        return ()
    return tuple(str(i.argval) for i in loads)
