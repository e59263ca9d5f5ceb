"""Whose an error is that ends a run: the program's own, which an eager run raises, too, or the recording's.

It is decided by where the error was raised, and by what was handed over there. A `raise` of the program's, or
of a stand-in in place of Python's, speaks for itself. An error of C code may only be there since a stand-in
was among the operands (`operations.py`): it is the program's if none was, or if C code raises it for plain
values of the same types, too.
"""

from __future__ import annotations

import builtins
import math
import operator
import re
import sys
import sysconfig
from collections.abc import Callable
from types import BuiltinFunctionType, FrameType, FunctionType, MethodDescriptorType, MethodType
from typing import Any, Final

import torch

from ..bytecode.operations import HANDING_ON, OPERATORS, Operation, Part, failed, innermost, is_raised
from ..bytecode.origins import REFUSALS, is_inner, is_of_package, is_of_rules
from ..host.operators import is_operator
from ..host.patches import misfits
from ..host.tensors import overrides_off
from ..values.numbers import Real, Size
from ..values.symbolic import Sizes, SymbolicTensor
from ..values.texts import Message
from .stand_ins import TYPES, TypeStandIn


def is_programs(error: Exception) -> bool:
    """Returns whether an eager run that takes this path raises the error, too."""
    trace = innermost(error)
    if trace is None or isinstance(error, _OF_THE_MACHINE):
        return False
    if is_of_rules(file := trace.tb_frame.f_code.co_filename) or file.endswith(".pyx"):
        return False  # compiled code of NumPy's may refuse a stand-in
    if is_refusal(error) or (type(error) is TypeError and misfits(trace.tb_frame)):
        return True
    if isinstance(error, AttributeError):
        context = error.__context__
        return _lacks_attribute(error) and not (isinstance(context, _OF_TYPES) and not is_programs(context))
    if isinstance(error, StopIteration):
        return not error.args
    code, context = trace.tb_frame.f_code, error.__context__
    if isinstance(error, TypeError | AssertionError) and _is_of_library(trace.tb_frame):
        return False
    if isinstance(error, KeyError) and not is_raised(trace):
        return not is_inner(code.co_filename)  # look-ups split on the keys of the container itself
    if not is_raised(trace):
        return _is_of_values(error) or _fails_anyway(error)
    if isinstance(error, REFUSALS):
        return not isinstance(context, _OF_TYPES) or is_programs(context)
    if code in HANDING_ON:
        return True
    return not is_inner(code.co_filename) and (context is None or isinstance(context, REFUSALS))


def is_refusal(error: Exception) -> bool:
    """Returns whether the error is that of an operator which refuses its operands, as eager torch does."""
    return bool(error.args) and isinstance(error.args[0], Message)


def is_ours(error: BaseException) -> bool:
    """Returns whether this package itself raised the exception, and not for a call of the program's."""
    trace = innermost(error)
    code = trace and trace.tb_frame.f_code
    return code is not None and is_of_package(code.co_filename) and code not in HANDING_ON


def has_attributes(value: object) -> bool:
    """Returns whether the program may have set an attribute of the value."""
    return type(value) not in (int, float, bool, type(None))


_OF_THE_MACHINE: Final = RecursionError, OSError, MemoryError
"""Errors that another run of the same program may not raise."""
_OF_TYPES: Final = TypeError, RuntimeError
"""The errors by which C code refuses the type of an operand; it refuses values by others."""


def _is_of_values(error: Exception) -> bool:
    """Returns whether C code raised the error for what a value is.

    Python makes a RuntimeError of a StopIteration that leaves a generator. NumPy refuses stand-ins as values.
    """
    trace = innermost(error)
    operation = failed(trace) if trace is not None else None
    if operation is not None and _is_of_numpy(operation.function) and not _is_plain(operation.args or ()):
        return False
    return isinstance(error, REFUSALS) and (
        not isinstance(error, _OF_TYPES) or isinstance(error.__cause__, StopIteration)
    )


def _lacks_attribute(error: AttributeError) -> bool:
    """Returns whether an object of the type that the program sees has no such attribute, either."""
    kind = type(error.obj)
    if kind in TYPES:
        numpy = sys.modules.get("numpy") if kind in (Size, Real) else None  # numbers with more attributes
        kinds = (TYPES[kind], *((numpy.int64, numpy.float64) if numpy else ()))
        return error.name is not None and not any(hasattr(seen, error.name) for seen in kinds)
    if isinstance(error.obj, torch.Tensor):
        return error.name is not None and not hasattr(torch.Tensor, error.name)
    return error.name is not None and not _is_stand_in(error.obj)


def _is_of_library(frame: FrameType) -> bool:
    """Returns whether a function of Python's library, such as `json.dumps`, may have looked at the type of a
    stand-in: it has one among its variables.
    """
    inside = frame.f_code.co_filename.startswith(_LIBRARY)
    return inside and any(map(_is_stand_in, frame.f_locals.values()))


_LIBRARY: Final = sysconfig.get_path("stdlib")


# ---- errors of C code


def _is_of_numpy(function: Any) -> bool:
    """Returns whether a function of C code, or the object that it is a method of, is one of NumPy's."""
    owner = getattr(function, "__self__", None)
    home = type(owner).__module__ if owner is not None else getattr(function, "__module__", None)
    return (home or "").startswith("numpy")


def _fails_anyway(error: Exception) -> bool:
    """Returns whether the operation that failed does so without the stand-ins of a recording, too."""
    trace = innermost(error)
    assert trace is not None
    code = trace.tb_frame.f_code
    if is_of_package(code.co_filename) and code not in HANDING_ON:
        return False
    operation = failed(trace)
    if operation is None:
        told = _told(error)
        return told is not None and _is_refused(told)
    if isinstance(operation.function, type) and operation.function in TYPES:
        return False
    if _is_python(operation.function):
        return type(error) is TypeError  # its code has not run: it takes other arguments
    if operation.args is None or _is_stand_in(getattr(operation.function, "__self__", None)):
        return False
    if _is_plain(operation.args) and _is_plain(operation.kwargs):
        return True
    return type(error) is TypeError and _is_refused(operation)


def _told(error: Exception) -> Operation | None:
    """Returns the operation on two operands that Python says it does not support, with values of the types
    that it names; None where it names no operation, or other types.
    """
    match = _UNSUPPORTED.fullmatch(str(error)) if type(error) is TypeError else None
    if match is None:
        return None
    sign, *names = match.groups()
    if any(name not in _NAMED for name in names):
        return None
    return Operation(_SIGNS[sign], tuple([_NAMED[name] for name in names]), {})


_SIGNS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "@": operator.matmul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "** or pow()": operator.pow,
}  # fmt: skip
_UNSUPPORTED: Final = re.compile(
    rf"unsupported operand type\(s\) for ({'|'.join(map(re.escape, _SIGNS))}): '(\w+)' and '(\w+)'"
)
_A_TENSOR: Final = Part(torch.empty(0))
_VALUES: Final[tuple[Any, ...]] = (1, 1.0, True, 1j, "", b"", [], (), {}, None)
_NAMED: Final[dict[str, Any]] = {
    **{type(value).__name__: value for value in _VALUES}, "Tensor": _A_TENSOR,
    SymbolicTensor.__name__: _A_TENSOR, Size.__name__: 1, Real.__name__: 1.0, Sizes.__name__: torch.Size([1]),
}  # fmt: skip
"""For each name of a type a value of it, without the stand-ins of a recording."""


def _is_python(function: Any) -> bool:
    """Returns whether a call of it runs Python code at once."""
    if isinstance(function, type):
        function = getattr(function, "__init__", None)
    return isinstance(function, FunctionType | MethodType)


def _is_refused(operation: Operation) -> bool:
    """Returns whether plain values of the same types are refused by their types, whatever the rank of
    parts of tensors is.

    Only functions are tried that have no other effect than their result.
    """
    function = operation.function
    if not callable(function):
        return True
    method = isinstance(function, MethodDescriptorType) and function.__objclass__ in torch.Tensor.__mro__
    if not (function in _PURE or is_operator(function) or method):
        return False
    return all(_is_refused_with(operation, rank) for rank in _RANKS)


_RANKS: Final = range(3)
"""Tensors of rank 0 may be taken for numbers, and those of rank 1 for lists of them."""


def _is_refused_with(operation: Operation, rank: int) -> bool:
    try:
        args = [_plain(value, rank) for value in operation.args or ()]
        kwargs = {name: _plain(value, rank) for name, value in operation.kwargs.items()}
        with overrides_off():
            operation.function(*args, **kwargs)
    except TypeError:
        return True
    except (_NotPlain, *REFUSALS):
        return False
    return False


_PURE: Final = frozenset({
    iter, operator.getitem, *OPERATORS.values(), *(f for f in vars(math).values() if callable(f)),
    *(getattr(builtins, name) for name in "abs bool float int len list max min range".split()),
    *(getattr(builtins, name) for name in "reversed round sum tuple zip".split()),
})  # fmt: skip


class _NotPlain(Exception):
    """Raised where no plain value of the same type is known."""


def _plain(value: Any, rank: int) -> Any:
    """Returns a value of the same type without sizes and data, and a part of a tensor with this rank; tensors
    are on the meta device.
    """
    kind = type(value)
    if kind is Part and type(value.whole) in (torch.Tensor, torch.nn.Parameter, SymbolicTensor):
        return torch.empty((1,) * rank, dtype=value.whole.dtype, device="meta")
    if isinstance(value, SymbolicTensor) and kind is not SymbolicTensor:
        raise _NotPlain
    if isinstance(value, torch.Tensor):
        own = getattr(getattr(value, "value", None), "rank", None) if kind is SymbolicTensor else value.dim()
        return torch.empty((1,) * (own or 0), dtype=value.dtype, device="meta")
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is Sizes:
        return torch.Size([1] * len(value))
    if isinstance(value, TypeStandIn):
        return value.real
    if kind in (list, tuple, torch.Size):
        return kind(_plain(part, rank) for part in value)
    if kind is dict:
        return {key: _plain(part, rank) for key, part in value.items()}
    if kind is slice:
        return slice(*(_plain(part, rank) for part in (value.start, value.stop, value.step)))
    if kind in _THEMSELVES:
        return value
    raise _NotPlain


_PLAIN: Final = {Size: 1, Real: 1.0}
_THEMSELVES: Final = (
    int, float, bool, complex, str, bytes, type(None), type(...), torch.dtype, torch.device, FunctionType,
    BuiltinFunctionType, MethodDescriptorType,
)  # fmt: skip


def _is_plain(value: Any) -> bool:
    """Returns whether the value is no stand-in, and holds none."""
    kind = type(value)
    if kind in (list, tuple, set, torch.Size):
        return all(map(_is_plain, value))
    if kind is dict:
        return all(map(_is_plain, (*value, *value.values())))
    if kind is slice:
        return all(map(_is_plain, (value.start, value.stop, value.step)))
    if isinstance(value, torch.Tensor):
        return not _is_stand_in(value)
    return kind in _THEMSELVES or (isinstance(value, type) and not isinstance(value, TypeStandIn))


_PACKAGE: Final = __name__.partition(".")[0] + "."


def _is_stand_in(value: object) -> bool:
    """Returns whether the value is of a type of this package's."""
    return isinstance(value, TypeStandIn) or type(value).__module__.startswith(_PACKAGE)
