"""Sizes in texts: does a text matter to what the program does?

A size has a name in a text and no number, so `str(n) == "2"` is no question about sizes any more. Most texts
are messages of errors and lines of logs, of which nothing depends. The bytecode says what becomes of one.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType, FrameType

from .origins import is_inner

_KEEPS = (
    "STORE_",
    "RETURN_",
    "COMPARE_",
    "CONTAINS_",
    "IS_OP",
    "POP_JUMP",
    "JUMP_IF",
    "YIELD_",
)
_LOGS = frozenset(
    "warn warning warning_once warn_once info info_once debug error exception critical log print".split()
)
_FOR_PEOPLE = frozenset("_pytest logging loguru rich tqdm traceback warnings".split())
"""Packages whose texts are for people to read: pytest writes one of what each `assert` compares."""


def is_key(frame: FrameType) -> bool:
    """Is the text that is being made in this frame looked up at once, and nothing else?"""
    return _is_looked_up(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=1 << 10)
def _is_looked_up(code: CodeType, offset: int) -> bool:
    following = (i.opname for i in dis.get_instructions(code) if i.offset > offset)
    return next((name for name in following if name not in _WRITING), "") == "BINARY_SUBSCR"


_WRITING = frozenset({"LOAD_CONST", "FORMAT_VALUE", "BUILD_STRING"})


def matters(frame: FrameType) -> bool:
    """May what the program does depend on the text that is being made in this frame?"""
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    if package in _FOR_PEOPLE or is_inner(frame.f_code.co_filename):
        return False
    return _is_kept(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=1 << 10)
def _is_kept(code: CodeType, offset: int) -> bool:
    """Does the text go anywhere but into an exception that is raised, or a line of a log?"""
    for instruction in dis.get_instructions(code):
        if instruction.offset < offset:
            continue
        if instruction.opname == "RAISE_VARARGS":
            return False
        if instruction.opname == "POP_TOP":
            return _LOGS.isdisjoint(code.co_names)
        if instruction.opname.startswith(_KEEPS):
            return True
    return True
