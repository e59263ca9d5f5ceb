"""A time limit for a program."""

from __future__ import annotations

import time
from typing import Any

from torch.overrides import TorchFunctionMode


class BrokenOff(BaseException):
    """Raised where the program has run for too long.

    It is no Exception, so that the program's own `except Exception` does not swallow it.
    """

    def __init__(self, reason: str, late: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.late = late
        """Whether the clock caused it, so that another run may differ."""


class until(TorchFunctionMode):
    """Raises BrokenOff inside the block at the first call of a torch function after so many calls, or
    seconds.
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
