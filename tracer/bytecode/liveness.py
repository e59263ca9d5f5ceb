"""Finds the variables of a running function that may still be read, by the classic backward analysis over its
bytecode.

A variable is live before an instruction if on some path from there it is read before it is written. The value
of any other variable no longer matters.
"""

from __future__ import annotations

import dis
import itertools
import re
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any, Final

from .codes import ENDS, JUMPS, instructions, offset_in, per_code
from .stack import fills

_ACCESSES: Final = re.compile("LOAD|STORE|DELETE")
"""The verbs in the names of instructions, one for each variable."""
_INSPECT: Final = frozenset("locals vars dir eval exec _getframe currentframe".split())
"""Functions that may read any variable of their caller."""


def live(frame: FrameType) -> frozenset[str]:
    """Returns the variables that may be read from the current instruction on, that instruction included; of
    a comprehension without a frame of its own those that it accesses.
    """
    at = offset_in(frame)
    found = _live_before(frame.f_code).get(at)
    return frozenset(frame.f_locals) if found is None else found & _accessible(frame.f_code, at)


@per_code
def _accessible(code: CodeType, offset: int) -> frozenset[str]:
    """Returns the variables that the comprehension accesses whose `for` is at this offset; all variables for
    any other instruction.
    """
    shared, step = (*code.co_cellvars, *code.co_freevars), instructions(code)[offset]
    if step.opname != "FOR_ITER" or not fills(code, offset):
        return frozenset((*code.co_varnames, *shared))
    within = (i for at, i in instructions(code).items() if offset < at < step.argval)
    return frozenset(shared).union(*(names for i in within for names in _accesses(i)))


@per_code
def _live_before(code: CodeType) -> Mapping[int, frozenset[str]]:
    """Returns the live variables by offset; empty where nothing is known, as where variables are read by
    other means.

    Variables shared with inner functions are live everywhere.
    """
    if _INSPECT & {*code.co_names}:
        return {}
    steps, always = instructions(code), {*code.co_cellvars, *code.co_freevars}
    if "super" in code.co_names:  # which reads the first argument
        always.update(code.co_varnames[:1])
    follow = _following(code)
    before = dict.fromkeys(steps, frozenset(always))
    changed = True
    while changed:
        changed = False
        for at in reversed(steps):
            reads, writes = _accesses(steps[at])
            after = frozenset[str]().union(*(before[n] for n in follow[at]))
            found = before[at] | reads | (after - writes)
            if found != before[at]:
                before[at], changed = found, True
    return before


def _accesses(step: dis.Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the variables that an instruction reads, and those that it certainly writes.

    From 3.13 on one instruction may do what two did, one after the other. The variable that an inlined
    comprehension saves and clears counts as read, since it gets its value back.
    """
    if "FAST" not in step.opname:
        return frozenset(), frozenset()
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    read, written = set[str](), set[str]()
    for access, name in zip(_ACCESSES.findall(step.opname), names, strict=True):
        if access == "STORE":
            written.add(name)
        elif name not in written:
            read.add(name)
    return frozenset(read), frozenset(written)


def _following(code: CodeType) -> Mapping[int, frozenset[int]]:
    """Returns, by offset, the offsets that may run after the instruction."""
    steps = instructions(code)
    caught: Any = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    found = {}
    for (at, step), behind in itertools.zip_longest(steps.items(), itertools.islice(steps, 1, None)):
        follow = {entry.target for entry in caught if entry.start <= at < entry.end}
        if step.opname not in ENDS and behind is not None:
            follow.add(behind)
        if step.opcode in JUMPS:
            follow.add(step.argval)
        found[at] = frozenset(follow & steps.keys())
    return found
