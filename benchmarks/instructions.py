"""How many bytecode instructions of this package a piece of work executes: a cost that no noise can touch.

Only frames of our own files are counted, so neither torch nor the standard library changes a count; what they
do in C is not seen. Counts repeat exactly under one version of Python and one `PYTHONHASHSEED`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import anyshape.constraints

ROOT = Path(anyshape.constraints.__file__).resolve().parent.parent
FOLDERS = tuple(f"{ROOT / name}/" for name in ("constraints", "solver", "tracer", "typecheck"))


class _Counter:
    """A trace function that counts the instructions of our own frames."""

    def __init__(self) -> None:
        self.count = 0
        self._ours: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        ours = self._ours.get(code)
        if ours is None:
            ours = self._ours[code] = str(Path(code.co_filename).resolve()).startswith(FOLDERS)
        if not ours:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._instruction

    def _instruction(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.count += 1
        return self._instruction


def instructions(work: Callable[[], object]) -> int:
    """The instructions of our own that the work executes, with every cache of ours empty at first."""
    forget()
    counter = _Counter()
    enabled = gc.isenabled()
    gc.disable()
    before = sys.gettrace()
    sys.settrace(counter)
    try:
        work()
    finally:
        sys.settrace(before)
        if enabled:
            gc.enable()
    return counter.count


def forget() -> None:
    """Empties the caches of our modules, so that a count does not depend on what was counted before."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("anyshape."):
            for value in [*vars(module).values()]:
                if not isinstance(value, type) and callable(clear := getattr(value, "cache_clear", None)):
                    clear()
