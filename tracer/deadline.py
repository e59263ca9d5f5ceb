"""A limit to how long a program runs."""

from __future__ import annotations

import time
from typing import Any

from torch.overrides import TorchFunctionMode


class OutOfTime(BaseException):
    """The program has run for too long. Not an Exception: its own `except Exception` must not swallow it."""


class until(TorchFunctionMode):
    """While this lasts no function of torch's is called after so many seconds: OutOfTime is raised."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.monotonic() + seconds

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if time.monotonic() > self._end:
            raise OutOfTime
        return func(*args, **(kwargs or {}))
