"""`int(size)` without a number, and roots of sizes: what stands for `int`, `math.sqrt` and `math.isqrt`.

Python's own `int(x)` insists on a number, and a size would have to be tried value by value. `int(n // 2)`,
`int(h / 2)` and `int(math.ceil(t / 4))` are integers that a dim can say.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from .numbers import Real, Size


def symbolic_int(*args: Any, **kwargs: Any) -> Any:
    """`int`, which leaves a size as it is, and cuts a fraction of sizes to a size."""
    if len(args) == 1 and not kwargs:
        (value,) = args
        if type(value) is Size:
            return value
        if type(value) is Real and (value.ratio is not None or value.square is not None):
            return value.__trunc__()
    return builtins.int(*args, **kwargs)


def _sqrt(x: Any, /) -> Any:
    """`math.sqrt`, which of a size is a float that knows of what it is the root."""
    value = x.real() if type(x) is Size else x
    if type(value) is Real and value.ratio and value.ratio[1] == 1:
        return value.root()
    return _PLAIN["sqrt"](x)


def _isqrt(n: Any, /) -> Any:
    if type(n) is Size and n >= 0:
        return math.floor(_sqrt(n))
    return _PLAIN["isqrt"](n)


ROOTS: Final[Mapping[str, Callable[[Any], Any]]] = {"sqrt": _sqrt, "isqrt": _isqrt}
_PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {name: getattr(math, name) for name in ROOTS}
