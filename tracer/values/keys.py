"""Sizes as keys of dicts, members of sets and indices of lists: finds the keys that a size might be equal to.

Python finds a key by its hash. So before a size is hashed it has to be decided which other keys it equals: in
`n in {2, 3}`, `TABLE[n]`, `len({x.shape[0], y.shape[0]}) == 1`. The candidates are the keys of the container
in which the expression looks it up, or that it makes and uses up. If the container is not known, or goes on
with the size as a key, they are the integers that the code mentions, the keys of the dicts and sets that it
can name, and the sizes that it hashed before. These may not be all, so the result is approximate then. In any
other call of the program's, such as that of a function with a cache of results, all sizes have one hash:
Python compares them with each other, argument by argument, and each comparison that sizes decide is a branch.
Where an installed package makes the call, equal sizes have equal hashes, without branches.

In `d[f"conv{n}"]` the digits of a size become a part of a key. They can be found only in a container that has
keys with digits.
"""

from __future__ import annotations

import ast
import collections
import math
import re
from collections.abc import Iterable, Iterator
from numbers import Real
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from torch import nn

from ...constraints.terms.dims import Dim
from ..bytecode.codes import constants, instruction, instructions, per_code
from ..bytecode.operands import Keys, expression, searched
from ..bytecode.origins import is_inner
from ..bytecode.transient import all_met
from ..host.modules import children_of
from .numbers import Size

_HASHING = frozenset(
    """
    BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP SET_ADD MAP_ADD SET_UPDATE DICT_UPDATE BINARY_SUBSCR STORE_SUBSCR
    DELETE_SUBSCR CONTAINS_OP
    """.split()
)
_CALLED = frozenset(
    """
    set frozenset dict Counter defaultdict OrderedDict add discard remove get setdefault pop __contains__
    fromkeys update union intersection difference issubset
    """.split()
)
_CONTAINERS = (dict, set, frozenset, Keys)


class Candidates(NamedTuple):
    """Integers and sizes that a size might meet as keys."""

    keys: tuple[Any, ...]
    """Each of them once."""
    are_all: bool
    """Whether they are all that it might meet, but for those that the code hashed before."""
    numbers: bool
    """Whether there is any number among the keys, a fraction included."""


def beside(frame: FrameType) -> Candidates | None:
    """Returns what a size might meet where this frame hashes it; None where it meets no keys."""
    code, offset = frame.f_code, frame.f_lasti
    if frame.f_globals is vars(collections):
        return Candidates((), False, True)  # a container that Python's library makes
    if is_inner(code.co_filename) or not _meets_keys(code, offset):
        return None
    found = searched(frame, offset)
    known = isinstance(found, _CONTAINERS)
    if known and _looks_up(code, offset):
        return _candidates([found], True)
    met = all_met(frame)
    return _candidates([found, *_seen_by(frame)], False) if met is None else _candidates(met, True)


def _candidates(values: list[Any], are_all: bool) -> Candidates:
    once = {key if type(key) is int else id(key): key for key in _keys(values)}
    return Candidates((*once.values(),), are_all, _has_numbers(values))


def meets_numbers(frame: FrameType) -> bool:
    """Returns whether a float that this frame hashes might meet a key that is a number or a size."""
    found = beside(frame)
    return found is not None and (not found.are_all or found.numbers)


def _has_numbers(key: Any) -> bool:
    if isinstance(key, tuple | frozenset | set | dict | list):
        return any(map(_has_numbers, key))
    return type(key) in (int, float, bool, Size)


def length(frame: FrameType) -> int | None:
    """Returns the length of the list or text whose element this frame looks up; None where it does something
    else, or that is not known.
    """
    if instruction(frame).opname != "BINARY_SUBSCR":
        return None
    found = searched(frame, frame.f_lasti)
    return len(found) if type(found) in (list, tuple, str, bytes) else None


def digits(frame: FrameType) -> tuple[int, ...] | None:
    """Returns the numbers that occur in the keys of the container in which the text is looked up, at once,
    that this frame is making of a size; None where it does something else with the text.
    """
    found = _searched_at_once(frame)
    if isinstance(found, nn.ModuleDict):
        found = children_of(found)
    if not isinstance(found, _CONTAINERS):
        return None
    rows = (row for key in found if isinstance(key, str) for row in _DIGITS.findall(key))
    parts = (row[i:j] for row in rows for i, j in _stretches(len(row)))
    return (*dict.fromkeys(int(part) for part in parts if _CANONICAL.fullmatch(part)),)


def names_module(frame: FrameType) -> bool:
    """Returns whether the text that this frame is making is looked up, at once, among modules."""
    return isinstance(_searched_at_once(frame), nn.ModuleDict)


def _searched_at_once(frame: FrameType) -> Any:
    at = looking_up(frame.f_code, frame.f_lasti)
    return None if at is None else searched(frame, at)


def missing(term: Dim) -> str:
    """Returns a text in place of a size's digits, which no key contains."""
    return f"⟨{term}⟩"


def is_of_size(key: object) -> bool:
    """Returns whether a key that was not found is a size, or a text with one."""
    return "⟨" in key if isinstance(key, str) else type(key) is Size


_DIGITS: Final = re.compile("-?[0-9]+")
_CANONICAL: Final = re.compile("0|-?[1-9][0-9]*")
_LONGEST: Final = 19
"""A size has at most this many digits."""


def _stretches(n: int) -> Iterator[tuple[int, int]]:
    return ((i, j) for i in range(n) for j in range(i + 1, min(n, i + _LONGEST + 1) + 1))


@per_code
def looking_up(code: CodeType, offset: int) -> int | None:
    """Returns the offset of the instruction that looks up the text which the instruction at this offset is
    making, alone or between constants; None if no instruction does.
    """
    following = (i for i in instructions(code).values() if i.offset > offset)
    found = next((i for i in following if i.opname not in _WRITING), None)
    return found.offset if found is not None and found.opname == "BINARY_SUBSCR" else None


_WRITING: Final = frozenset(
    "LOAD_CONST LOAD_SMALL_INT FORMAT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC CONVERT_VALUE BUILD_STRING".split()
)


@per_code
def _meets_keys(code: CodeType, offset: int) -> bool:
    """Returns whether the instruction looks up a key, or might call a function that does."""
    name = instructions(code)[offset].opname
    return name in _HASHING or (name.startswith("CALL") and not _CALLED.isdisjoint(code.co_names))


@per_code
def _looks_up(code: CodeType, offset: int) -> bool:
    """Returns whether the instruction looks up a key, and keeps it nowhere."""
    name, found = instructions(code)[offset].opname, expression(code, offset)
    if name.startswith("CALL") and isinstance(found, ast.Call):
        return isinstance(found.func, ast.Attribute) and found.func.attr in _METHODS
    return name in _LOOKING_UP


_LOOKING_UP: Final = frozenset("BINARY_SUBSCR DELETE_SUBSCR CONTAINS_OP".split())
_METHODS: Final = frozenset("discard remove get pop __contains__".split())


def _seen_by(frame: FrameType) -> Iterator[Any]:
    """Yields the constants of the code, and the containers that its names refer to, or members of the objects
    that they refer to.
    """
    code, globals_ = frame.f_code, frame.f_globals
    yield constants(code)
    values = [*frame.f_locals.values(), *(globals_[name] for name in code.co_names if name in globals_)]
    for value in values:
        if isinstance(value, _CONTAINERS):
            yield value
        members = getattr(value, "__dict__", None)
        kind = vars(type(value))
        for name in code.co_names:
            member = members.get(name, kind.get(name)) if isinstance(members, dict) else kind.get(name)
            if isinstance(member, _CONTAINERS):
                yield member


def _keys(values: Iterable[Any]) -> Iterator[Any]:
    """Yields the integers and sizes in keys and constants, those in tuples included."""
    for value in values:
        if type(value) is Size:
            yield value
        elif isinstance(value, Real):  # 2.0 is the same key as 2
            if math.isfinite(value) and value == math.trunc(value):
                yield math.trunc(value)
        elif isinstance(value, tuple | frozenset | set | dict):
            yield from _keys([*value])
