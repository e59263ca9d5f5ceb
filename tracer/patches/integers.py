"""`int(size)` without a number, roots and products of sizes: stand-ins for `int` and `float`, and for
functions of `math` and of NumPy.

Python's own `int(x)` insists on a number, and a size would have to be tried value by value. `int(n // 2)`,
`int(h / 2)` and `int(math.ceil(t / 4))` are integers that a dim can express, and so is an integer that the
data decide, `int(index.max())`: a fresh one.
"""

from __future__ import annotations

import builtins
import importlib.util
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from ..bytecode.operations import hands_on
from ..values import sequences
from ..values.floats import Comparison
from ..values.numbers import Real, Size
from ..values.symbolic import SymbolicTensor, item
from . import shapes

ARRAYS: tuple[type, ...] = ()
"""Arrays that hold sizes, if NumPy is installed."""
_OF_NUMPY: Mapping[str, Callable[..., Any]] = {}
if importlib.util.find_spec("numpy") is not None:
    from ..values import arrays, arrays_of_tensors

    ARRAYS = arrays.ArrayOfSizes, arrays_of_tensors.ArrayOfTensor
    _OF_NUMPY = {**arrays.FUNCTIONS, **arrays_of_tensors.FUNCTIONS}


@hands_on
def symbolic_int(*args: Any, **kwargs: Any) -> Any:
    """Returns `int`; a size stays as it is, and a fraction of sizes is truncated to a size."""
    if len(args) == 1 and not kwargs:
        (value,) = args
        if type(value) is SymbolicTensor and not value.dtype.is_complex:
            value = item(value.run, value)
        if type(value) is Size:
            return value
        if type(value) is Real and value.compute is not None:
            return value.__trunc__()
        if type(value) in ARRAYS and value.size == 1:
            return symbolic_int(value.item())
        if type(value) is Real and value.compute is None:
            value.run.may_raise(ValueError, "cannot convert float NaN to integer")
            value.run.may_raise(OverflowError, "cannot convert float infinity to integer")
            return value.run.datum("int64", value.run.dataless_floats, of=value.data)
    return builtins.int(*args, **kwargs)


@hands_on
def symbolic_float(*args: Any, **kwargs: Any) -> Any:
    """Returns `float`; a value that depends on sizes stays as it is."""
    if len(args) == 1 and not kwargs:
        (value,) = args
        if type(value) is SymbolicTensor and not value.dtype.is_complex:
            value = item(value.run, value)
        if type(value) is Size:
            return value.as_float()
        if type(value) is Real:
            return value
        if type(value) in ARRAYS and value.size == 1:
            return symbolic_float(value.item())
    return builtins.float(*args, **kwargs)


@hands_on
def _sqrt(x: Any, /) -> Any:
    """Returns `math.sqrt`; for a size, a float that remembers its square."""
    value = x.as_float() if type(x) is Size else x
    return value.root() if type(value) is Real else PLAIN["math", "sqrt"](x)


@hands_on
def _isqrt(n: Any, /) -> Any:
    if type(n) is Size and n >= 0:
        return math.floor(_sqrt(n))
    return PLAIN["math", "isqrt"](n)


def _rising(name: str, undefined: tuple[Comparison, float] | None = None) -> Callable[..., Any]:
    """Returns the stand-in for an increasing function of `math`; a comparison says where it is undefined."""

    @hands_on
    def call(*args: Any) -> Any:
        plain = PLAIN["math", name]
        if not 1 <= len(args) <= (2 if name == "log" else 1):
            return plain(*args)
        x, *more = args
        value = x.as_float() if type(x) is Size else x
        numbers = all(type(m) in (builtins.int, float) and m > 1 for m in more)
        if type(value) is not Real or not numbers:
            return plain(x, *more)
        return value.through(lambda v: plain(v, *more), undefined)

    return call


@hands_on
def _pow(x: Any, y: Any, /) -> Any:
    """Returns `math.pow`, which is `**` of floats."""
    value = x.as_float() if type(x) is Size else x
    if type(value) is not Real:
        return PLAIN["math", "pow"](x, y)
    exponent = builtins.float(y)
    if (exponent < 0 and value == 0) or (not exponent.is_integer() and value < 0):
        raise ValueError("math domain error")
    return value**exponent


@hands_on
def _fabs(x: Any, /) -> Any:
    value = x.as_float() if type(x) is Size else x
    return abs(value) if type(value) is Real else PLAIN["math", "fabs"](x)


@hands_on
def _gcd(*numbers: Any) -> Any:
    """Returns `math.gcd`; for one size and numbers, it branches on which divisors of the numbers divide the
    size.
    """
    given = [n for n in numbers if type(n) is not Size]
    divided = PLAIN["math", "gcd"](*given)
    if len(numbers) != len(given) + 1 or divided == 0:
        return PLAIN["math", "gcd"](*numbers)
    (n,) = (n for n in numbers if type(n) is Size)
    divisors = (d for d in range(divided, 0, -1) if divided % d == 0)
    return next(d for d in divisors if n % d == 0)


@hands_on
def _lcm(*numbers: Any) -> Any:
    """Returns `math.lcm`, which for a size and a number is |a b| / gcd(a, b)."""
    if len(numbers) != 2 or type(numbers[0]) is type(numbers[1]) or 0 in numbers:
        return PLAIN["math", "lcm"](*numbers)
    a, b = numbers
    return abs(a * b) // _gcd(a, b)


def _of_choices(name: str) -> Callable[..., Any]:
    """Returns the stand-in for `math.perm` or `math.comb` of a size and a small number k.

    perm(n, k) = n (n - 1) … (n - k + 1), and comb(n, k) = perm(n, k) / k!.
    """

    @hands_on
    def call(n: Any, k: Any = None, /) -> Any:
        if type(n) is not Size or type(k) is not builtins.int or not 0 <= k <= 4:
            return PLAIN["math", name](*((n,) if k is None else (n, k)))
        if n < 0:
            raise ValueError("n must be a non-negative integer")
        ways = math.prod(n - i for i in range(k))
        return ways if name == "perm" else ways // math.factorial(k)

    return call


@hands_on
def _from_numpy(array: Any, /) -> Any:
    """Returns `torch.from_numpy`, which here takes arrays without data, too."""
    if type(array) not in ARRAYS:
        return PLAIN["torch", "from_numpy"](array)
    found = array.lowered()
    return found if type(found) is SymbolicTensor else torch.tensor(found)


@hands_on
def _sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Returns `torch.sym_ite(b, t, f)`, which takes two values of one type: a size is an integer."""
    if type(b) is bool and Size in (type(t), type(f)) and {type(t), type(f)} <= {Size, builtins.int}:
        return t if b else f
    return PLAIN["torch", "sym_ite"](b, t, f)


@hands_on
def _sym_sum(*numbers: Any) -> Any:
    """Returns `torch.sym_sum`, of integers or of one list of them."""
    several = numbers[0] if len(numbers) == 1 and isinstance(numbers[0], list | tuple) else numbers
    if any(type(number) is Size for number in several):
        return sum(several)
    return PLAIN["torch", "sym_sum"](*numbers)


FUNCTIONS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("math", "sqrt"): _sqrt,
    ("math", "isqrt"): _isqrt,
    ("math", "gcd"): _gcd,
    ("math", "lcm"): _lcm,
    **{("math", name): _of_choices(name) for name in ("perm", "comb")},
    ("math", "pow"): _pow,
    ("math", "fabs"): _fabs,
    ("math", "log"): _rising("log", ("<=", 0.0)),
    ("math", "log2"): _rising("log2", ("<=", 0.0)),
    ("math", "log10"): _rising("log10", ("<=", 0.0)),
    ("math", "log1p"): _rising("log1p", ("<=", -1.0)),
    ("math", "exp"): _rising("exp", (">", math.log(sys.float_info.max))),
    ("torch", "from_numpy"): _from_numpy,
    ("torch", "sym_ite"): _sym_ite,
    ("torch", "sym_sum"): _sym_sum,
    **{("numpy", name): function for name, function in _OF_NUMPY.items()},
    **sequences.FUNCTIONS,
    **shapes.FUNCTIONS,
}
"""By module and name, the stand-ins for functions that need numbers."""
PLAIN: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    (module, name): getattr(sys.modules[module], name) for module, name in FUNCTIONS if module in sys.modules
}
"""Those functions themselves, as far as their modules are loaded."""
