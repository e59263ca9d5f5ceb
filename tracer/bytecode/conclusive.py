"""Recognises a comparison that is the whole argument of a `torch._check`.

Only that call gets the outcome, and the call raises unless it is true: the comparison is a requirement and no
branch. Python's bytecode shows where a value goes.
"""

from __future__ import annotations

import dis
import itertools
from types import CodeType, FrameType

from ..host.tensors import torch_check
from .codes import per_code


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
    """
    before = [*itertools.takewhile(lambda i: i.offset <= offset, _instructions(code))]
    after = [i for i in _instructions(code)[len(before) :] if i.opname != "CACHE"][:2]
    alone = [(i.opname, i.arg) for i in after] == [("PRECALL", 1), ("CALL", 1)]
    if not alone or before[-1].opname != "COMPARE_OP" or any(i.is_jump_target for i in after):
        return ()
    wanted = 1  # values that the instructions from here on leave on the stack
    while before and wanted:
        last = before.pop()
        if last.opcode in dis.hasjrel or last.is_jump_target:
            return ()
        wanted -= dis.stack_effect(last.opcode, last.arg if last.opcode >= dis.HAVE_ARGUMENT else None)
    names: list[str] = []
    while before and before[-1].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        names.append(str(before.pop().argval))
    if not before or before[-1].opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
        return ()
    return (str(before[-1].argval), *reversed(names))


@per_code
def _instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))
