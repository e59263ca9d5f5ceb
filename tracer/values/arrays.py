"""Arrays of NumPy that hold sizes: `np.array(x.shape)`, `np.prod`, `np.sqrt(n)`.

An array of sizes is an array of objects, so that NumPy reshapes, slices and joins it like any other, and
calls the operators of its members, which are symbolic. Its `dtype` is int64 or float64, as in an eager run.
Operations in which NumPy differs from Python (a division by zero, numbers of few bits, functions that are not
known here) are computed from numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy

from ...constraints.terms.formula import eq
from .arrays_of_tensors import ArrayOfTensor
from .floats import Comparison
from .numbers import AS_ARRAY, Real, Size, larger, smaller

_WHOLE, _FLOAT, _TRUTH = map(numpy.dtype, (numpy.int64, numpy.float64, numpy.bool_))


class ArrayOfSizes(numpy.ndarray[Any, Any]):
    """An array with at least one member that is a size, or a float that depends on sizes."""

    @property
    def dtype(self) -> Any:
        """Returns the dtype that NumPy would give an array of the numbers."""
        kinds = {type(member) for member in self.flat}
        return _FLOAT if kinds & {Real, float} else _TRUTH if kinds == {bool} else _WHOLE

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Returns the array converted: conversions to 64 bits keep the sizes, all others give numbers."""
        wanted = numpy.dtype(dtype)
        if wanted == numpy.dtype(object):
            return self.view(numpy.ndarray)
        if wanted == _FLOAT:
            return _as_array(_mapped(_as_float, self))
        if wanted == _WHOLE:
            return _as_array(_mapped(_as_whole, self))
        return plain(self).astype(wanted, *args, **options)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return computed(ufunc, method, inputs, options)

    def lowered(self) -> Any:
        """Returns the array as an argument for torch."""
        return self.tolist()

    def __reduce__(self) -> Any:
        return list, (self.tolist(),)


def _as_float(value: Any) -> Any:
    value = value.as_float() if type(value) is Size else value
    return value.as_numpy() if type(value) is Real else float(value)


def _as_whole(value: Any) -> Any:
    return math.trunc(value) if type(value) is Real else value if type(value) is Size else int(value)


def _mapped(function: Callable[..., Any], *arrays: Any) -> Any:
    return _wrapped(numpy.frompyfunc(function, len(arrays), 1)(*map(_objects, arrays)))


def _objects(value: Any) -> Any:
    """Returns the value as an array of objects."""
    if isinstance(value, numpy.ndarray):
        return value.view(numpy.ndarray).astype(object)
    found = numpy.empty((), object)
    found[()] = value.item() if isinstance(value, numpy.generic) else value
    return found


def _wrapped(result: Any) -> Any:
    """Returns NumPy's result for arrays of objects in the form that the program gets."""
    if not isinstance(result, numpy.ndarray):
        return result
    if any(type(member) in (Size, Real) for member in result.flat):
        return result.view(ArrayOfSizes)
    return numpy.array(result.tolist()).reshape(result.shape)


def plain(value: Any) -> Any:
    """Returns the value with sizes replaced by numbers."""
    if type(value) is Size:
        return numpy.int64(int(value))
    if type(value) is Real:
        return numpy.float64(float(value))
    if type(value) is ArrayOfSizes:
        members = [plain(member) for member in value.flat]
        return numpy.array(members, value.dtype).reshape(value.shape)
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


def is_symbolic(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(is_symbolic, value))
    return type(value) in (Size, Real, ArrayOfSizes)


# --- functions of arrays ---------------------------------------------------------------------------------


class _NotFollowed(Exception):
    """Raised where the result has to be computed by NumPy itself, from numbers."""


def _divided(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Returns a division that, like NumPy's, allows a zero divisor with a warning."""

    def divide(a: Any, b: Any) -> Any:
        zero = b.run.truth(eq(b.term, 0)) if type(b) is Size else b == 0
        if zero:
            raise _NotFollowed
        return operation(a, b)

    return divide


def _power(a: Any, b: Any) -> Any:
    if type(b) in (int, float) and b >= 0:
        return a**b
    raise _NotFollowed


def _real_function(name: str, undefined: tuple[Comparison, float]) -> Callable[[Any], Any]:
    """Returns an increasing function, which is computed from numbers where it is undefined."""
    function = getattr(numpy, name)

    def call(x: Any) -> Any:
        value = x.as_float() if type(x) is Size else x
        if type(value) is not Real:
            return float(function(value))
        how, limit = undefined
        if value._compare(limit, how):
            raise _NotFollowed
        return value.root() if name == "sqrt" else value.through(lambda v: float(function(v)), undefined)

    return call


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": _divided(operator.floordiv),
    "remainder": _divided(operator.mod),
    "divide": _divided(operator.truediv),
    "power": _power,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": abs,
    "square": lambda x: x * x,
    "maximum": larger,
    "minimum": smaller,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "rint": round,
    "sqrt": _real_function("sqrt", ("<", 0.0)),
    "log": _real_function("log", ("<=", 0.0)),
    "log2": _real_function("log2", ("<=", 0.0)),
    "log10": _real_function("log10", ("<=", 0.0)),
    "log1p": _real_function("log1p", ("<=", -1.0)),
    "exp": _real_function("exp", (">", 700.0)),
}
"""The effect of NumPy's functions on members, by their names."""


def computed(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Returns the result of a function of NumPy's for arrays, or numbers, some of them symbolic."""
    function = _FUNCTIONS.get(ufunc.__name__)
    try:
        kind = _kind(ufunc, method, inputs)
        if function is None or kind is None or options.get("out") is not None:
            raise _NotFollowed
        return _applied(ufunc, function, method, inputs, dict(options), kind)
    except _NotFollowed:
        return getattr(ufunc, method)(*map(plain, inputs), **options)


def _kind(ufunc: Any, method: str, inputs: tuple[Any, ...]) -> Any:
    """Returns the dtype of the result; None where it is not a supported one."""
    examples = [_example(value) for value in (*inputs[:1], *inputs[:1]) if method != "__call__"]
    with numpy.errstate(all="ignore"):
        found = getattr(ufunc(*(examples or map(_example, inputs))), "dtype", None)  # divmod has two results
    return found if found in (_WHOLE, _FLOAT, _TRUTH) else None


def _example(value: Any) -> Any:
    """Returns ones of the same dtype; a number of Python's has no dtype of its own."""
    if type(value) is Size:
        return numpy.int64(1)
    if type(value) is Real:
        return numpy.float64(1)
    if isinstance(value, bool | int | float):
        return type(value)(1)
    return numpy.ones((), numpy.asarray(value).dtype if type(value) is not ArrayOfSizes else value.dtype)


def _applied(
    ufunc: Any, function: Callable[..., Any], method: str, inputs: tuple[Any, ...], options: dict[str, Any],
    kind: Any,
) -> Any:
    dtype = options.pop("dtype", None)
    made = numpy.frompyfunc(function, ufunc.nin, 1, identity=ufunc.identity)
    if method != "__call__" and (method not in ("reduce", "accumulate") or len(inputs) > 1):
        raise _NotFollowed
    result = getattr(made, method)(*map(_objects, inputs), **options)
    converted = _mapped(_as_float if kind == _FLOAT else _as_whole if kind == _WHOLE else bool, result)
    return converted if dtype is None else _as_array(converted).astype(dtype)[()]


def _as_array(value: Any) -> Any:
    found = _objects(value)
    return found.view(ArrayOfSizes) if is_symbolic(value) else numpy.asarray(value)


# --- functions that make arrays --------------------------------------------------------------------------


def array_of(value: Size | Real, dtype: Any = None) -> Any:
    """Returns the array that NumPy gets when it converts a size or float."""
    whole = _as_array(value)
    return whole if dtype is None else whole.astype(dtype)


def _array(name: str) -> Callable[..., Any]:
    """Returns the stand-in for `np.array` or a similar function, which makes an array of sizes from sizes."""

    def make(value: Any, /, dtype: Any = None, *args: Any, **options: Any) -> Any:
        if type(value) is ArrayOfTensor and not args:
            return value.copy() if dtype is None else value.astype(dtype)
        if not is_symbolic(value) or args or options.keys() - {"copy", "order", "subok"}:
            return _PLAIN[name](value, dtype, *args, **options)
        found = _wrapped(_PLAIN["array"](_held(value), object))
        return found if dtype is None else found.astype(dtype)

    return make


def _held(value: Any) -> Any:
    return [_held(part) for part in value] if isinstance(value, list | tuple) else value


def _joins(name: str) -> Callable[..., Any]:
    """Returns the stand-in for a function of one array, or several, where the program may pass lists of
    numbers.
    """

    def call(value: Any, /, *args: Any, **options: Any) -> Any:
        if isinstance(value, list | tuple) and is_symbolic(value):
            value = FUNCTIONS["array"](value)
        return _PLAIN[name](value, *args, **options)

    return call


def _of_numbers(name: str) -> Callable[..., Any]:
    """Returns the stand-in for a function that would make an array of objects: it computes with numbers."""

    def call(*args: Any, **options: Any) -> Any:
        return _PLAIN[name](*map(plain, args), **{key: plain(value) for key, value in options.items()})

    return call


_JOINING: Final = "cumsum cumprod diff flip sort repeat tile prod sum max min mean ravel reshape".split()
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _array(name) for name in ("array", "asarray", "asanyarray", "ascontiguousarray")},
    **{name: _joins(name) for name in (*_JOINING, "atleast_1d")},
    **{name: _of_numbers(name) for name in ("logspace", "geomspace")},
}
"""The stand-ins for functions of NumPy while a program is recorded."""
_PLAIN: Final = {name: getattr(numpy, name) for name in FUNCTIONS}

AS_ARRAY.update(__array__=array_of, __array_ufunc__=computed)
