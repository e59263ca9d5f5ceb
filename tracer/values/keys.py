"""Sizes as keys of dicts and members of sets: finds the keys that a size might be equal to.

Python finds a key by its hash. So before a size is hashed it has to be decided which other keys it equals: in
`n in {2, 3}`, `TABLE[n]`, `len({x.shape[0], y.shape[0]}) == 1`. The candidates are the integers that the code
mentions, the keys of the dicts and sets that it can name, and the sizes that it hashed before: more than are
needed, which only costs branches. Other calls, those of cached functions, get a hash that is the same at
equal sizes, without branches.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from ..bytecode.codes import per_code
from ..bytecode.origins import is_inner

MOST = 64
"""A size is compared with at most this many keys."""
_HASHING = frozenset(
    """
    BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP SET_ADD MAP_ADD SET_UPDATE DICT_UPDATE BINARY_SUBSCR STORE_SUBSCR
    DELETE_SUBSCR CONTAINS_OP
    """.split()
)
_CALLED = frozenset(
    """
    set frozenset dict Counter defaultdict OrderedDict add discard remove get setdefault pop fromkeys update
    union intersection difference issubset
    """.split()
)
_CONTAINERS = (dict, set, frozenset)


def beside(frame: FrameType) -> Iterable[Any] | None:
    """Returns the integers and sizes that a size might meet as keys where this frame hashes it, each of them
    once; None where it meets no keys.
    """
    code = frame.f_code
    if is_inner(code.co_filename) or not _meets_keys(code, frame.f_lasti):
        return None
    return {key if type(key) is int else id(key): key for key in _keys(_seen_by(frame))}.values()


@per_code
def _meets_keys(code: CodeType, offset: int) -> bool:
    """Returns whether the instruction looks up a key, or might call a function that does."""
    name = dis.opname[code.co_code[offset]]
    return name in _HASHING or (name.startswith("CALL") and not _CALLED.isdisjoint(code.co_names))


def _seen_by(frame: FrameType) -> Iterator[Any]:
    """Yields the constants of the code, and the containers that its names refer to, or members of the objects
    that they refer to.
    """
    code, globals_ = frame.f_code, frame.f_globals
    yield code.co_consts
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
        if isinstance(value, int):  # a size says that it is one
            yield int(value) if isinstance(value, bool) else value
        elif isinstance(value, tuple | frozenset | set | dict):
            yield from _keys([*value])
