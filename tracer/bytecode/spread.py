"""Star arguments: a shape of unknown length that is unpacked in a call, `x.view(*y.shape[:-1], 2, -1)`.

Python asks for the number of sizes, but does not depend on it here: the sizes between the known ones are
passed as a single one, which the call passes on to its rule like a row in a shape. So the sizes have to go
directly into a call of an operator that takes sizes, and nowhere else. The bytecode shows which call they go
into. If they are used in any other way, the recording starts again, with the sizes written one by one at that
point.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final

from ...constraints.ir.opnames import canonical
from .codes import per_code

TAKE_SIZES: Final = frozenset(
    "view reshape expand broadcast_to zeros ones empty full rand randn new_zeros new_ones new_empty "
    "new_full".split()
)
"""Operators that take sizes one by one or in a tuple, and accept a row among them."""

_POPS: Final = {
    "LOAD_ATTR": 1, "LOAD_METHOD": 1, "BINARY_OP": 2, "BINARY_SUBSCR": 2, "UNARY_NEGATIVE": 1,
    "LIST_APPEND": 1, "LIST_EXTEND": 1, "LIST_TO_TUPLE": 1, "DICT_MERGE": 1, "COMPARE_OP": 2,
}  # fmt: skip
_POPS_OWN: Final = {"BUILD_SLICE": 0, "BUILD_TUPLE": 0, "BUILD_LIST": 0, "BUILD_CONST_KEY_MAP": 1, "CALL": 2}
"""Instructions that pop as many values as their argument, and this many besides."""
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
    return _opname(frame.f_code, frame.f_lasti) in ("LIST_EXTEND", "CALL_FUNCTION_EX")


def destination(frame: FrameType) -> tuple[int, bool] | None:
    """Returns the offset of the call that takes the unpacked elements, and whether it gets no other
    arguments. None where that is not clear, or where no operator takes sizes in this code.
    """
    code = frame.f_code
    return _destination(code, frame.f_lasti) if not TAKE_SIZES.isdisjoint(code.co_names) else None


@per_code
def _opname(code: CodeType, offset: int) -> str:
    return next((i.opname for i in dis.get_instructions(code) if i.offset == offset), "")


@per_code
def _destination(code: CodeType, offset: int) -> tuple[int, bool] | None:
    """Returns the destination, found by following the stack: counts the values above the list, or the tuple,
    that holds the elements.
    """
    instructions = _from(code, offset)
    first = next(instructions)
    if first.opname == "CALL_FUNCTION_EX":
        return first.offset, True
    above, call, alone = 0, None, _is_begun_with(code, offset)
    for i in instructions:
        arg = i.arg or 0
        if i.opname == "PRECALL":  # what follows is the call, which takes the same
            call = above < arg
            continue
        if i.opname == "CALL" and (call or above < arg):
            return i.offset, False
        if i.opname == "CALL_FUNCTION_EX" and above == arg & 1:
            return None if alone is None else (i.offset, alone)
        if i.opname == "LIST_APPEND" and above == arg == 1:
            alone = False
        if i.opname == "LIST_TO_TUPLE" and above == 0:
            continue
        if i.opname == "LIST_EXTEND" and above == i.arg == 1:  # others that are written out
            return None
        pops = _pops(i)
        if pops is None or pops > above:
            return None
        if i.opname == "CALL":
            above += 1 - pops
        elif i.opname not in _IDLE or i.opname == "PUSH_NULL":
            above += dis.stack_effect(i.opcode, i.arg, jump=False)
    return None


def _is_begun_with(code: CodeType, offset: int) -> bool | None:
    """Returns whether the unpacked elements are the first of their list; None where that is not clear."""
    before = [i for i in dis.get_instructions(code) if i.offset < offset]
    for i in reversed(before):
        if i.opname == "BUILD_LIST":
            return not i.arg
        if i.opname.startswith("LIST_"):
            return None
    return None


def _from(code: CodeType, offset: int) -> Iterator[dis.Instruction]:
    return (i for i in dis.get_instructions(code) if i.offset >= offset)


def _pops(i: dis.Instruction) -> int | None:
    """Returns how many values an instruction pops from the stack; None where it may jump, or is not known."""
    if i.opname in _IDLE or (i.opname.startswith("LOAD_") and i.opname not in _POPS):
        return 0
    if i.opname in _POPS:
        return _POPS[i.opname]
    if i.opname in _POPS_OWN:
        return _POPS_OWN[i.opname] + (i.arg or 0)
    if i.opname == "BUILD_MAP":
        return 2 * (i.arg or 0)
    return 3 + (i.arg or 0) % 2 if i.opname == "CALL_FUNCTION_EX" else None
