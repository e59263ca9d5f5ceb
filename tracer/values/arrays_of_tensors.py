"""Arrays of NumPy whose shape depends on sizes: `np.zeros((n, 3))`.

Such an array is a tensor without data behind it. torch implements NumPy with its own operators
(`torch._numpy`), and the rules of these operators give the shapes. A function that is not known to agree with
NumPy's ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..host.arrays import torch_numpy
from ..recorder import Recorder
from .numbers import Real, Size, larger
from .real_tensors import dtype_name
from .symbolic import SymbolicTensor

_MADE: Final = frozenset("zeros ones empty full linspace eye".split())
"""Functions that make an array of given sizes."""
_SAME: Final = _MADE | frozenset(
    """
    stack concatenate vstack hstack expand_dims reshape transpose squeeze broadcast_to swapaxes moveaxis ravel
    zeros_like ones_like full_like empty_like outer matmul dot where repeat tile flip roll
    sum mean max min prod cumsum any all argmax argmin
    add subtract multiply divide true_divide floor_divide remainder power negative absolute square sqrt
    sin cos tanh maximum minimum equal not_equal less less_equal greater greater_equal logical_not logical_and
    logical_or floor ceil exp log
    """.split()
)
"""Functions of torch's NumPy that agree with NumPy's in their shapes."""
_METHODS: Final = _SAME | frozenset("astype copy flatten T item tolist fill shape".split())
_FAILS = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, NotImplementedError)


class ArrayOfTensor(NDArrayOperatorsMixin):
    """An array of NumPy's without data."""

    def __init__(self, tensor: SymbolicTensor) -> None:
        self.tensor = tensor

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return numpy.ndarray

    @property
    def dtype(self) -> Any:
        return numpy.dtype(dtype_name(self.tensor.dtype))

    @property
    def shape(self) -> Any:
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> Any:
        return self.tensor.dim()

    @property
    def size(self) -> Any:
        return self.tensor.numel()

    def lowered(self) -> Any:
        """Returns the array as an argument for torch."""
        return self.tensor

    def __array__(self, *args: Any, **options: Any) -> Any:
        """Called by functions that read the data of an array; ends the run."""
        return self.tensor.run.give_up("the program needs the data of an array that has none")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return called(self.tensor.run, function.__name__, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        run, name = self.tensor.run, ufunc.__name__
        if method != "__call__":
            return run.give_up(f"numpy.{name}.{method} of an array without data")
        (out,) = options.pop("out", (None,))
        result = called(run, name, inputs, options)
        if out is None:
            return result
        if type(out) is not ArrayOfTensor or type(result) is not ArrayOfTensor or out.dtype != result.dtype:
            return run.give_up(f"numpy.{name} into an array of another kind")
        out.tensor.copy_(result.tensor)
        return out

    def __getitem__(self, key: Any) -> Any:
        self._forwards(key)
        return _attempted(self.tensor.run, "[]", _theirs(self).__getitem__, (key,), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        self._forwards(key)
        _attempted(self.tensor.run, "[]", _theirs(self).__setitem__, (key, value), {})

    def _forwards(self, key: Any) -> None:
        """Ends the run for a slice that goes backwards, which torch does not have."""
        for part in key if isinstance(key, tuple) else (key,):
            step = part.step if isinstance(part, slice) else None
            if step is not None and not (type(step) is int and step > 0):
                self.tensor.run.give_up("a slice that goes backwards in an array without data")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name not in _METHODS and hasattr(numpy.ndarray, name):
            self.tensor.run.give_up(f"{name} of an array without data is not followed")
        if name not in _METHODS:
            raise AttributeError(f"'numpy.ndarray' object without data has no attribute {name!r}")
        run, found = self.tensor.run, getattr(_theirs(self), name)
        if not callable(found):
            return _ours(found)
        return lambda *args, **kwargs: _attempted(run, name, found, args, kwargs)

    def __len__(self) -> int:
        return len(self.tensor)

    def __iter__(self) -> Any:
        return (_ours(torch_numpy.ndarray(row)) for row in self.tensor)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __index__(self) -> int:
        return self.tensor.__index__()

    def __float__(self) -> float:
        return float(self.tensor)

    __hash__ = None  # type: ignore[assignment]


def called(run: Recorder, name: str, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """Returns the result of NumPy's function of this name."""
    if name not in _SAME:
        return run.give_up(f"numpy.{name} of an array without data")
    return _attempted(run, name, getattr(torch_numpy, name), args, kwargs)


def _attempted(
    run: Recorder, name: str, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
) -> Any:
    """Returns the result of the function; ends the run if torch's NumPy refuses the call, since NumPy might
    not.

    (Requirements on sizes raise no error here: the rules of the operators record them.)
    """
    try:
        return _ours(function(*map(_theirs, args), **{key: _theirs(value) for key, value in kwargs.items()}))
    except _FAILS as error:
        return run.give_up(f"numpy.{name} of an array without data: {error}")


def _theirs(value: Any) -> Any:
    """Returns the value in the form that torch's NumPy takes."""
    if type(value) is ArrayOfTensor:
        return torch_numpy.ndarray(value.tensor)
    if type(value) is SymbolicTensor:
        return value.run.give_up("a function of NumPy's takes a tensor")
    if type(value) is numpy.ndarray:
        return torch_numpy.ndarray(torch.from_numpy(value))
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, numpy.dtype) or (isinstance(value, type) and issubclass(value, numpy.generic)):
        return numpy.dtype(value).name
    if type(value) in (list, tuple):
        return type(value)(map(_theirs, value))
    return value


def _ours(value: Any) -> Any:
    """Returns a result of torch's NumPy as one of NumPy."""
    if type(value) is torch_numpy.ndarray:
        tensor = value.tensor
        return ArrayOfTensor(tensor) if type(tensor) is SymbolicTensor else tensor.numpy()
    if type(value) in (list, tuple):
        return type(value)(map(_ours, value))
    return value


def _run_of(value: Any) -> Recorder | None:
    """Returns the run that a size among these values belongs to, or None."""
    if isinstance(value, list | tuple):
        return next((run for part in value if (run := _run_of(part)) is not None), None)
    return value.run if type(value) in (Size, Real) else None


def making(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the stand-in for `np.zeros` or a similar function, which makes an array without data from
    sizes.
    """

    def make(*args: Any, **kwargs: Any) -> Any:
        run = _run_of((*args, *kwargs.values()))
        return plain(*args, **kwargs) if run is None else called(run, name, args, kwargs)

    return make


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, **options: Any) -> Any:
    """Returns `start + step * k` for all k that lie in range; empty where the end lies before the start."""
    low, high = (0, start) if stop is None else (start, stop)
    whole = type(step) is int and step > 0 and all(type(n) in (int, Size) for n in (low, high))
    if _run_of((low, high, step)) is None or not whole or options:
        return _PLAIN_ARANGE(*map(_number, (low, high, step)), dtype, **options)
    count = larger((high - low + step - 1) // step, 0)
    found = ArrayOfTensor(torch.arange(count) * step + low)
    return found if dtype is None else found.astype(dtype)


_PLAIN_ARANGE: Final[Any] = numpy.arange


def _number(value: Any) -> Any:
    return int(value) if type(value) is Size else float(value) if type(value) is Real else value


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: making(name, getattr(numpy, name)) for name in sorted(_MADE)},
    "arange": _arange,
}
"""The stand-ins for functions of NumPy while a program is recorded."""
