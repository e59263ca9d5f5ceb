"""The error for a target that cannot be checked, and the line of the user's own code behind an exception."""

from __future__ import annotations

import linecache
import os
import sysconfig
import traceback
from typing import Final

from ...constraints.ir.program import Origin


class TargetError(ValueError):
    """A target that is not there, cannot be made, or cannot be called as the spec says; and what to do."""

    def __init__(self, problem: str, hint: str = "", origin: Origin | None = None) -> None:
        self.problem = problem
        self.hint = hint
        self.origin = origin or Origin()
        """The line of the user's own code that failed, where one did."""
        super().__init__(f"{problem}; {hint}" if hint else problem)


def message_of(error: BaseException) -> str:
    """Returns the type and the message of an exception, as the last line of a traceback has them."""
    return traceback.format_exception_only(error)[-1].strip()


def last_line(error: BaseException) -> Origin:
    """Returns the line where the exception came from; of a syntax error the line that is wrong."""
    if isinstance(error, SyntaxError) and error.filename:
        line = error.lineno or 0
        return Origin(error.filename, line, code=linecache.getline(error.filename, line).strip())
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(("<", _OURS))]
    if not frames:
        return Origin()
    own = [
        f
        for f in frames
        if os.sep + "site-packages" + os.sep not in f.filename and not f.filename.startswith(_STDLIB)
    ]
    frame = (own or frames)[-1]
    return Origin(frame.filename, frame.lineno or 0, frame.name, code=frame.line or "")


_OURS: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STDLIB: Final = sysconfig.get_path("stdlib")
