"""Functions with a cache of results (`functools.lru_cache`), cleared after a recorded run.

Results that are symbolic, or have no data, are of no use to another run.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from ..bytecode.origins import is_inner
from ..host.interpreter import CACHED

_WRAPPED: Final = (classmethod, staticmethod, MethodType)


@contextlib.contextmanager
def forgetting(sources: Iterable[ModuleType]) -> Iterator[None]:
    """Clears the caches of functions of these modules that grew inside the block, former results included,
    which are computed again when needed.
    """
    remembering = [function for module in sources for function in _remembering(module)]
    before = [function.cache_info().misses for function in remembering]
    try:
        yield
    finally:
        for function, misses in zip(remembering, before, strict=True):
            if function.cache_info().misses != misses:
                function.cache_clear()


@functools.cache
def _remembering(module: ModuleType) -> tuple[Any, ...]:
    """Returns the functions and methods with a cache that a module of the user's defines, or has imported."""
    if is_inner(module.__file__ or ""):
        return ()
    found: dict[int, Any] = {}
    for value in vars(module).values():
        own = isinstance(value, type) and value.__module__ == module.__name__
        for member in (value, *vars(value).values()) if own else (value,):
            plain = member.__func__ if isinstance(member, _WRAPPED) else member  # others may raise if asked
            if type(plain) is CACHED:
                found[id(plain)] = plain
            elif type(plain) is FunctionType and plain.__closure__:
                found |= {id(function): function for function in _wrapped(plain.__closure__)}
    return tuple(found.values())


def _wrapped(cells: Iterable[CellType]) -> Iterator[Any]:
    """Yields the functions with a cache in the closure of a function, which wraps them."""
    for cell in cells:
        with contextlib.suppress(ValueError):  # nothing has been put there yet
            if type(cell.cell_contents) is CACHED:
                yield cell.cell_contents
