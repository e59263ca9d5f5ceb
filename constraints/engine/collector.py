"""Python's garbage collector at rest: values that are built by rules have no cycles, and looking for some
while they pile up takes a fifth of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Turns automatic collection off inside, and back on afterwards where it was on. Also a decorator.

    What was made inside counts as old from then on, so that the next collection does not look through it:
    it is frozen and unfrozen, and neither step visits an object. What a program freezes stays frozen.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not _program_freezes():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


_freezes = False


def _program_freezes() -> bool:
    """Returns whether the program freezes objects. Counting visits each of them, so it ends at the first."""
    global _freezes
    _freezes = _freezes or gc.get_freeze_count() > 0
    return _freezes
