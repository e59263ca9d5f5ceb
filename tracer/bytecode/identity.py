"""Recognises code that asks whether two values are one object."""

from __future__ import annotations

from types import CodeType, FrameType

from .codes import per_code, steps_from
from .origins import caller, is_inner


def compares_objects(outermost: CodeType) -> bool:
    """Returns whether a function that is running has an `is` between two values, or calls `id`, on the way up
    to the one that runs `outermost`.
    """
    frame: FrameType | None = caller()
    while frame is not None and frame.f_code is not outermost:
        if not is_inner(frame.f_code.co_filename) and _compares(frame.f_code):
            return True
        frame = frame.f_back
    return False


@per_code
def _compares(code: CodeType) -> bool:
    """Returns whether the code calls `id`, or has an `is` whose right side is neither a constant nor a global
    name or a member of one, such as `None` or `torch.float32`.
    """
    root = ""
    for step in steps_from(code, 0):
        if step.opname == "IS_OP" and root not in ("LOAD_CONST", "LOAD_GLOBAL", "LOAD_NAME"):
            return True
        root = root if step.opname == "LOAD_ATTR" else step.opname
    return "id" in code.co_names
