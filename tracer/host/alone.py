"""One program at a time: while one is recorded, replayed or traced, names of torch and Python are rebound.

They are rebound for all threads. Threads that check something wait for one another; a thread that runs a
model of its own meanwhile uses the rebound names, which treat real tensors and numbers as usual.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

TURN: Final = threading.RLock()
"""A lock held by the thread whose turn it is, which may begin another run within one."""


def alone(function: Callable[P, T]) -> Callable[P, T]:
    """Returns the function, made to wait until no other thread is inside one of these."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        with TURN:
            return function(*args, **kwargs)

    return called
