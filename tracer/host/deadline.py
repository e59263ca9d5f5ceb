"""A limit to how long a program runs."""

from __future__ import annotations

import time
from typing import Any

from torch.overrides import TorchFunctionMode


class BrokenOff(BaseException):
    """The program has run for too long. Not an Exception: its own `except Exception` must not swallow it."""

    def __init__(self, reason: str, late: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.late = late
        """The clock says so, which another time may say otherwise."""


class until(TorchFunctionMode):
    """While this lasts no function of torch's is called after so many calls, or seconds: BrokenOff is raised.
    """

    def __init__(self, calls: int, seconds: float) -> None:
        super().__init__()
        self._calls, self._left = calls, calls
        self._seconds, self._end = seconds, time.monotonic() + seconds

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._left -= 1
        if self._left < 0:
            raise BrokenOff(f"it calls more than {self._calls} functions of torch's", False)
        if time.monotonic() > self._end:
            raise BrokenOff(f"it took longer than {self._seconds:.0f} s", True)
        return func(*args, **(kwargs or {}))
