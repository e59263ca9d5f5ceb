"""Would the program catch an exception raised by the call that it is making now?

A refusal that a `try` catches is no refusal of the program: it is a branch. Python keeps, for each stretch of
bytecode, the handler that is in force there; the frames of the running program say where it stands.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
from types import CodeType, FrameType

from .origins import is_inner


@functools.cache
def _caught(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Stretches of bytecode, as offsets, that an `except` or a `finally` covers.

    A `with` has a handler too, which raises again unless the context manager swallows the exception;
    `contextlib.suppress` is the one that is known to.
    """
    instructions = list(dis.get_instructions(code))
    starts = {a.offset: (a.opname, b.opname) for a, b in itertools.pairwise(instructions)}
    swallows = "suppress" in code.co_names
    return tuple(
        (entry.start, entry.end)
        for entry in dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        if starts.get(entry.target, ("", ""))[0] == "PUSH_EXC_INFO"
        and (swallows or starts[entry.target][1] != "WITH_EXCEPT_START")
    )


def is_guarded(outermost: CodeType) -> bool:
    """Does a frame of the user's, on the way up to the one that runs `outermost`, stand inside a `try`?"""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not outermost:
        code = frame.f_code
        if not is_inner(code.co_filename):
            offset = frame.f_lasti
            if any(start <= offset < end for start, end in _caught(code)):
                return True
        frame = frame.f_back
    return False
