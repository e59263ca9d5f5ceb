"""Sizes in texts: decides whether a text can affect the program.

A size has a name in a text and no number, so `str(n) == "2"` is no question about sizes any more. Most texts
are messages of errors and lines of logs, which affect nothing. The bytecode shows how a text is used.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, Literal, Protocol

from ..bytecode.codes import JUMPS, instructions, per_code, steps_from
from ..bytecode.handlers import is_looked_at, only_raises
from ..bytecode.origins import is_inner
from ..host.interpreter import frame_above
from ..host.tensors import ASSERTS

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
_FOR_PEOPLE = frozenset("_pytest logging loguru rich tqdm warnings".split())
"""Packages whose texts are for people to read: pytest writes a text of the values that each `assert`
compares.
"""


def matters(frame: FrameType, outermost: CodeType) -> bool:
    """Returns whether the program may depend on the text that this frame is making, called from the frame
    that runs `outermost`. The text of an exception matters only to code that catches it.
    """
    teller, name = _out_of_traceback(frame)
    if _package(teller) in _FOR_PEOPLE or name.startswith("print"):
        return False
    becomes = _becomes(teller.f_code, teller.f_lasti)
    if is_inner(teller.f_code.co_filename):
        return becomes == "raised" and is_looked_at(teller, outermost)
    return becomes == "kept" or (becomes == "raised" and is_looked_at(teller, outermost))


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _out_of_traceback(frame: FrameType) -> tuple[FrameType, str]:
    """Returns the frame that asks Python's `traceback` for a text, and the name of the function it calls
    there; for any other text the frame itself.
    """
    name = ""
    while _package(frame) == "traceback" and frame.f_back is not None:
        frame, name = frame.f_back, frame.f_code.co_name
    return frame, name


@per_code
def _becomes(code: CodeType, offset: int) -> Literal["kept", "raised", "logged"]:
    """Returns "raised" if the text goes into an exception that is raised, "logged" if it goes into a line of
    a log, else "kept".
    """
    for instruction in steps_from(code, offset):
        if instruction.opname.startswith(("RAISE_VARARGS", "STORE_FAST")):
            return "raised" if only_raises(code, instruction.offset) else "kept"
        if instruction.opname == "POP_TOP":
            if not _LOGS.isdisjoint(code.co_names):
                return "logged"
            return "raised" if _called(code, offset) in ASSERTS else "kept"
        if instruction.opname.startswith(_KEEPS):
            return "kept"
    return "kept"


def _called(code: CodeType, offset: int) -> str:
    """Returns the name that the statement at this offset begins with, or of an attribute of that name: for a
    call, the name of the function.
    """
    name, is_open = "", True
    for instruction in instructions(code).values():
        if instruction.offset >= offset:
            break
        what = instruction.opname
        if what == "POP_TOP" or what.startswith(("STORE_", "RETURN_")) or instruction.opcode in JUMPS:
            name, is_open = "", True
        elif is_open and what.startswith("LOAD_") and (not name or what in _MEMBERS):
            name = str(instruction.argval)
        elif name:
            is_open = False
    return name


_MEMBERS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


class Writing(Protocol):
    """The interface of the recorded run that texts use."""

    def writes(self, frame: FrameType) -> None:
        """Called when this frame makes or examines a text that differs from that of an eager run."""


class Message(str):
    """The text of a refusal. It differs from torch's, so the program's use of it matters."""

    _run: Writing

    @classmethod
    def of(cls, text: str, run: Writing) -> Message:
        made = cls(text)
        made._run = run
        return made


def _noticed(name: str) -> Callable[..., Any]:
    method = getattr(str, name)

    def look(self: Message, *args: Any, **kwargs: Any) -> Any:
        self._run.writes(frame_above(1))
        return method(self, *args, **kwargs)

    return look


_OF_THE_OBJECT: Final = frozenset(
    "__class__ __delattr__ __dir__ __doc__ __getattribute__ __getnewargs__ __getstate__ __init__ "
    "__init_subclass__ __new__ __reduce__ __reduce_ex__ __setattr__ __sizeof__ __subclasshook__ "
    "maketrans".split()
)
"""Attributes of a `str` that do not depend on its letters."""

for _name in {*dir(str)} - _OF_THE_OBJECT:
    setattr(Message, _name, _noticed(_name))
