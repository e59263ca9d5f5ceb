"""Star arguments: a shape of unknown length that is unpacked in a call, `x.view(*y.shape[:-1], 2, -1)`.

Python asks for the number of sizes, but does not depend on it here: the sizes between the known ones are
passed as a single one, which the call passes on to its rule like a row in a shape. So the sizes have to go
directly into a call of an operator that takes sizes, and nowhere else. The bytecode shows which call they go
into. If they are used in any other way, the recording starts again, with the sizes written one by one at that
point.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final

from ...constraints.ir.opnames import canonical
from .codes import JUMPS, following, instruction, instructions, per_code
from .stack import depth

TAKE_SIZES: Final = frozenset(
    "view reshape expand broadcast_to zeros ones empty full rand randn new_zeros new_ones new_empty "
    "new_full".split()
)
"""Operators that take sizes one by one or in a tuple, and accept a row among them."""

_IDLE: Final = frozenset({"PUSH_NULL", "KW_NAMES", "NOP", "EXTENDED_ARG", "CACHE"})


class SpeltOut(BaseException):
    """Raised to restart the recording, with the sizes at this site written one by one.

    It is no Exception, since programs catch those.
    """

    def __init__(self, site: tuple[CodeType, int]) -> None:
        super().__init__()
        self.site = site


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Sizes on their way into a call as star arguments."""

    frame: FrameType
    site: tuple[CodeType, int]
    """The code and the offset where they are unpacked."""
    call: int
    """The offset of the call that they go into."""
    row: Any
    """The size that represents those in between."""

    def after(self, spelling: str, args: Any, kwargs: Any, caller: FrameType | None) -> Spread | None:
        """Returns the star arguments that are still on their way after a call of an operator, or None.

        Raises SpeltOut if the call is not the expected one.
        """
        if caller is None or caller is not self.frame:
            raise SpeltOut(self.site)
        if caller.f_lasti < self.call and not _is_among(self.row, (args, kwargs)):
            return self  # another argument of the call
        fits = caller.f_lasti == self.call and canonical(spelling) in TAKE_SIZES
        if not fits or not _is_among(self.row, (args, kwargs)):
            raise SpeltOut(self.site)
        return None


def _is_among(size: Any, values: Any) -> bool:
    if isinstance(values, dict):
        return any(_is_among(size, value) for value in values.values())
    return any(_is_among(size, v) for v in values) if type(values) in (tuple, list) else values is size


def is_written_out(frame: FrameType) -> bool:
    """Returns whether the elements of a sequence are being unpacked into the arguments of a call, or into a
    list.
    """
    return instruction(frame).opname in ("LIST_EXTEND", "CALL_FUNCTION_EX")


def destination(frame: FrameType) -> tuple[int, bool] | None:
    """Returns the offset of the call that takes the unpacked elements, and whether it gets no other
    arguments. None where that is not clear, or where no operator takes sizes in this code.
    """
    code = frame.f_code
    return _destination(code, frame.f_lasti) if not TAKE_SIZES.isdisjoint(code.co_names) else None


@per_code
def _destination(code: CodeType, offset: int) -> tuple[int, bool] | None:
    """Returns the destination: what takes the list, or the tuple, that holds the elements from the stack."""
    steps = instructions(code)
    if steps[offset].opname == "CALL_FUNCTION_EX":
        return offset, True
    place, alone = (depth(code, offset) or 0) - 2, _is_begun_with(code, offset)
    for at, i in ((at, i) for at, i in steps.items() if at > offset):
        before, after = depth(code, at), depth(code, following(code, at))
        if before is None or after is None or i.opcode in JUMPS or i.is_jump_target:
            return None
        if after > place + 1 or i.opname in _IDLE:
            continue
        match i.opname:
            case "PRECALL":  # what follows is the call
                return following(code, at), False
            case "CALL" | "CALL_KW":
                return at, False
            case "CALL_FUNCTION_EX":  # above the tuple there may be keywords
                return None if alone is None or before > place + 2 else (at, alone)
            case "LIST_APPEND" if before == place + 2:
                alone = False
            case "LIST_TO_TUPLE" | "CALL_INTRINSIC_1" if before == place + 1:
                pass
            case _:
                return None
    return None


def _is_begun_with(code: CodeType, offset: int) -> bool | None:
    """Returns whether the unpacked elements are the first of their list; None where that is not clear."""
    before = [i for at, i in instructions(code).items() if at < offset]
    for i in reversed(before):
        if i.opname == "BUILD_LIST":
            return not i.arg
        if i.opname.startswith("LIST_"):
            return None
    return None
