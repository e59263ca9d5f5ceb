"""Reports input that cannot be used: what is wrong, where, and what to do. Prints no traceback."""

from __future__ import annotations

import textwrap
from typing import Any

from ...constraints.ir.spec_text import SpecError
from ..render.json import SCHEMA
from ..targets.target_error import TargetError
from .terminal import width


def told(error: SpecError | TargetError) -> str:
    """One message, in a few lines."""
    lines = [f"anyshape: {error.problem}"]
    if isinstance(error, SpecError) and error.text:
        line, column = _line_at(error.text, error.column)
        lines.append(f"  {line}")
        if column:
            lines.append(f"  {' ' * (column - 1)}^")
    if isinstance(error, TargetError) and error.origin.file:
        lines.append(f"  {error.origin}")
        if error.origin.code:
            lines.append(f"    {error.origin.code}")
    if error.hint:
        lines += textwrap.wrap(error.hint, max(width() - 2, 40), initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def to_json(error: SpecError | TargetError) -> dict[str, Any]:
    """Returns the same as plain data: `problem` and `hint`, with the text of the spec and a column in it, or
    with the file, the line and the code that failed.
    """
    data: dict[str, Any] = {"problem": error.problem, "hint": error.hint}
    if isinstance(error, SpecError):
        data |= {"text": error.text, "column": error.column}
    else:
        data |= {"file": error.origin.file, "line": error.origin.line, "code": error.origin.code}
    return {"schema": SCHEMA, "error": data}


def _line_at(text: str, column: int) -> tuple[str, int]:
    """At most a line's length of the text around a column."""
    start = max(0, column - 60)
    shown = text[start : start + 90]
    if start:
        shown, column = "…" + shown, column + 1 - start
    return shown + ("…" if start + 90 < len(text) else ""), column
