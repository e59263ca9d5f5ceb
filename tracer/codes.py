"""What is read off the code of a function, kept for as long as the code lives."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Concatenate as After
from typing import ParamSpec, TypeVar

Where = ParamSpec("Where")
Read = TypeVar("Read")


def per_code(read: Callable[After[CodeType, Where], Read]) -> Callable[After[CodeType, Where], Read]:
    """Reads each code once, or each place in it where places are asked for.

    By identity: a look-up by value hashes whatever the code names, which in a graph of torch.fx is all nodes,
    at each node.
    """
    known: dict[int, dict[object, Read]] = {}

    @functools.wraps(read)
    def look_up(code: CodeType, /, *where: Where.args, **named: Where.kwargs) -> Read:
        found = known.get(id(code))
        if found is None:
            found = known[id(code)] = {}
            weakref.finalize(code, known.pop, id(code)).atexit = False
        if where not in found:
            found[where] = read(code, *where, **named)
        return found[where]

    return look_up
