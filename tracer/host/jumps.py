"""The last jump that a running frame has made, which tells whether a test is evaluated after an iteration.

Up to 3.13 the test of a `while` is compiled twice, before the body and behind it, and its offset tells. From
3.14 on there is one copy, before the body. With 3.13 the second way to tell, in `bytecode/loops.py`, goes.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Final

from .interpreter import frame_above

TESTS_ONCE: Final = sys.version_info >= (3, 14)
"""Whether the code of a `while` has its test only once."""
_last: dict[int, tuple[CodeType, int]] = {}
"""By the identity of a frame, its code and the offset of its last jump."""
_watched: dict[int, CodeType] = {}
"""By identity, the codes whose jumps are noted."""

if sys.version_info >= (3, 14):
    from sys import monitoring

    _EVENTS: Final = monitoring.events.JUMP | monitoring.events.PY_START
    _UNNAMED: Final = 3, 4
    """The numbers of tools that Python gives to no kind of tool."""
    _tools: list[int] = []
    """The number under which this file watches, while it does."""

    def last_jump(frame: FrameType) -> int | None:
        """Returns the offset of the last unconditional jump that the frame made, one out of a handler aside,
        since this was first asked about its code; None if it made none, or jumps are not observed.
        """
        code = frame.f_code
        if id(code) not in _watched and _is_begun():
            monitoring.set_local_events(_tools[0], code, _EVENTS)
            _watched[id(code)] = code
        of, offset = _last.get(id(frame), (None, None))
        return offset if of is code else None

    def forget_jumps() -> None:
        """Ends the watching: every later question is a first one."""
        for code in [*_watched.values()]:
            monitoring.set_local_events(_tools[0], code, 0)
        _watched.clear()
        _last.clear()
        while _tools:
            monitoring.free_tool_id(_tools.pop())

    def _is_begun() -> bool:
        """Returns whether this file may watch; other tools may have taken all numbers."""
        if not _tools:
            tool = next((tool for tool in _UNNAMED if monitoring.get_tool(tool) is None), None)
            if tool is None:
                return False
            monitoring.use_tool_id(tool, "anyshape")
            monitoring.register_callback(tool, monitoring.events.JUMP, _jumps)
            monitoring.register_callback(tool, monitoring.events.PY_START, _starts)
            _tools.append(tool)
        return True

    def _jumps(code: CodeType, offset: int, to: int) -> None:
        _last[id(frame_above(1))] = code, offset

    def _starts(code: CodeType, offset: int) -> None:
        _last.pop(id(frame_above(1)), None)  # of an earlier frame at the same address

else:

    def last_jump(frame: FrameType) -> int | None:
        """Returns None: nobody needs to know."""
        return None

    def forget_jumps() -> None:
        """Does nothing."""
