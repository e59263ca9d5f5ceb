"""`int(size)` without a number, roots and products of sizes: what stands for `int`, `math.sqrt`, `math.isqrt`
and `numpy.prod`.

Python's own `int(x)` insists on a number, and a size would have to be tried value by value. `int(n // 2)`,
`int(h / 2)` and `int(math.ceil(t / 4))` are integers that a dim can say, and so is an integer that the data
decide, `int(index.max())`: a fresh one.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from .numbers import Real, Size
from .symbolic import Sizes, SymbolicTensor, item


def symbolic_int(*args: Any, **kwargs: Any) -> Any:
    """`int`, which leaves a size as it is, and cuts a fraction of sizes to a size."""
    if len(args) == 1 and not kwargs:
        (value,) = args
        if type(value) is SymbolicTensor and not value.dtype.is_complex:
            value = item(value.run, value)
        if type(value) is Size:
            return value
        if type(value) is Real and (value.ratio is not None or value.square is not None):
            return value.__trunc__()
        if type(value) is Real and value.compute is None:
            return value.run.datum("int64")
    return builtins.int(*args, **kwargs)


def _sqrt(x: Any, /) -> Any:
    """`math.sqrt`, which of a size is a float that knows of what it is the root."""
    value = x.real() if type(x) is Size else x
    if type(value) is Real and value.ratio and value.ratio[1] == 1:
        return value.root()
    return _PLAIN["math", "sqrt"](x)


def _isqrt(n: Any, /) -> Any:
    if type(n) is Size and n >= 0:
        return math.floor(_sqrt(n))
    return _PLAIN["math", "isqrt"](n)


def _prod(a: Any, *args: Any, **kwargs: Any) -> Any:
    """`numpy.prod`, which of sizes is a size."""
    numbers = type(a) in (tuple, list, Sizes) and all(isinstance(n, builtins.int) for n in a)
    if numbers and not args and not kwargs and any(type(n) is Size for n in a):
        return math.prod(a)
    return _PLAIN["numpy", "prod"](a, *args, **kwargs)


FUNCTIONS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("math", "sqrt"): _sqrt,
    ("math", "isqrt"): _isqrt,
    ("numpy", "prod"): _prod,
}
"""By module and name, what stands for functions that insist on numbers."""
_PLAIN: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    (module, name): getattr(sys.modules[module], name) for module, name in FUNCTIONS if module in sys.modules
}


def plain_functions() -> Mapping[tuple[str, str], Callable[..., Any]]:
    """Those functions themselves, as far as their modules are there."""
    return _PLAIN
