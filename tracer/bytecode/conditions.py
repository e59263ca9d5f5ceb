"""Records the outcomes of the conditions of a Python program while it runs: of `if`, `assert`, `while`,
`and`, `or`.

The bytecode of the user's own functions is watched, instruction by instruction; torch's and ours is not.
"""

from __future__ import annotations

import gc
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from ...constraints.ir.program import Origin
from ..host.interpreter import frame_above
from .codes import instructions, per_code
from .origins import _NEVER_REFUSING as NEVER_REFUSING
from .origins import is_inner, origin_at


@lru_cache(maxsize=1024)
def _is_users(file: str) -> bool:
    """Returns whether the file belongs to the user, and not to torch, to this package or to the standard
    library.
    """
    standard = file.startswith(os.path.dirname(os.__file__) + os.sep) and "site-packages" not in file
    return not standard and not is_inner(file)


_ANNOTATING = "__annotate__"
"""The name of functions that Python 3.14 makes of annotations. They have a condition that nobody wrote."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A conditional jump: the offsets after it, by the truth of its condition, and the condition's source
    position.
    """

    when: dict[int, bool]
    text: str
    line: int
    value: int
    """The offset of the instruction that computed the tested value."""


@dataclass(slots=True)
class Watched:
    """The outcomes seen: for each condition, by its source position, the truths in order, and the progress of
    the run at each.
    """

    progress: Callable[[], Any] = lambda: None
    truths: dict[tuple[Origin, str], list[bool]] = field(default_factory=dict)
    reached: dict[tuple[Origin, str], list[Any]] = field(default_factory=dict)


@contextmanager
def watching(
    begins: CodeType | None = None, progress: Callable[[Any], Any] = lambda run: None
) -> Iterator[list[tuple[Any, Watched]]]:
    """Watches the conditions of functions that are called inside the block.

    With `begins`, the outcomes are kept separately for each call of that method, with the result of the call;
    `progress` computes the progress from the method's object. Without `begins`, all outcomes are kept
    together.
    """
    seen: list[tuple[Any, Watched]] = [] if begins is not None else [(None, Watched())]
    before = sys.gettrace()
    frame_above().f_trace_opcodes = True  # Python 3.12 must know, when tracing begins, that it is wanted
    sys.settrace(_tracer(seen, begins, progress))
    try:
        yield seen
    finally:
        sys.settrace(before)


def _tracer(
    seen: list[tuple[Any, Watched]], begins: CodeType | None, progress: Callable[[Any], Any]
) -> Callable[..., Any]:
    callbacks = {getattr(function, "__code__", None) for function in gc.callbacks}

    def whole(frame: FrameType, event: str, arg: Any) -> Any:
        """Traces a run that is kept separately: stores its result with the outcomes seen in it."""
        if event == "return":
            seen[-1] = arg, seen[-1][1]
        return whole

    def called(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code is begins:
            run = frame.f_locals[code.co_varnames[0]]
            seen.append((None, Watched(lambda: progress(run))))
            frame.f_trace_lines = False
            return whole
        if not seen or not _is_users(code.co_filename) or code.co_name == _ANNOTATING:
            return None
        if code in callbacks or not _jumps(code):
            return None
        if not _called_by_the_program(frame):
            return None
        frame.f_trace = _watcher(seen[-1][1], code)  # Python 3.13 needs it before the next line
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return frame.f_trace

    return called


def _called_by_the_program(frame: FrameType | None) -> bool:
    """Returns whether the frame belongs neither to the solver (z3 is written in Python, too) nor to an
    import.
    """
    while (frame := frame.f_back if frame else None) is not None:
        if frame.f_code.co_filename.startswith((*NEVER_REFUSING, "<frozen importlib")):
            return False
    return True


def _watcher(watched: Watched, code: CodeType) -> Callable[..., Any]:
    jumps: dict[int, Jump] = _jumps(code)
    asked: list[int | None] = [None]

    def step(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            offset = frame.f_lasti
            if (before := asked[0]) is not None:
                jump = jumps[before]
                if offset in jump.when and jump.text:  # else it has raised, or nobody has written it
                    origin = origin_at(code, jump.value, "")
                    place = origin, jump.text
                    watched.truths.setdefault(place, []).append(jump.when[offset])
                    watched.reached.setdefault(place, []).append(watched.progress())
            asked[0] = offset if offset in jumps else None
        return step

    return step


@per_code
def _jumps(code: CodeType) -> dict[int, Jump]:
    """Returns the conditional jumps of a function, by their offsets."""
    found: dict[int, Jump] = {}
    steps = [*instructions(code).values()]
    for value, instruction, following in zip(steps, steps[1:], steps[2:], strict=False):
        name = instruction.opname
        if "JUMP" not in name or "NONE" in name or ("IF_TRUE" not in name and "IF_FALSE" not in name):
            continue
        truth = "IF_TRUE" in name
        place = value.positions  # of what is tested; that of the jump may be the whole statement
        line = place.lineno if place is not None and place.lineno else code.co_firstlineno
        when = {int(instruction.argval): truth, following.offset: not truth}
        found[instruction.offset] = Jump(when, _text(code.co_filename, place), line, value.offset)
    return found


def _text(file: str, place: Any) -> str:
    """Returns the source of a condition, as one line."""
    if place is None or None in tuple(place):
        return ""
    lines = [linecache.getline(file, n) for n in range(place.lineno, place.end_lineno + 1)]
    if not all(lines):
        return ""
    lines[-1] = lines[-1].encode()[: place.end_col_offset].decode(errors="replace")
    lines[0] = lines[0].encode()[place.col_offset :].decode(errors="replace")
    return " ".join(" ".join(lines).split())
