"""Tensors of one size, such as `torch.tensor(x.shape[1])`, are read as that size while a model is traced.

To torch the number in a tensor is unknown data: a slice up to that number has a new size of its own, and the
program may require anything of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from ....tracer.host.tensors import writes_into


class HeldSizes(TorchFunctionMode):
    """Tensors that hold a size are followed from where they are made to where their number counts."""

    def __init__(self) -> None:
        super().__init__()
        self._held: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """The size that a tensor holds, and the tensor's version at that time: later versions were written
        into.
        """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given, name = kwargs or {}, getattr(func, "__name__", "")
        if not args or not (self._held or func in _MAKES):
            return func(*args, **given)
        values = [self._value(arg) for arg in args]
        if name in _READ and values[0] is not None:
            return _READ[name](values[0])
        if name in _OF_SIZES:
            args = self._as_number(args)
        elif name in _TAKES_SIZES or (name in _PROMOTES and _has_dims(args[0])):
            args = args[0], *self._as_number(args[1:])
            given = {key: self._as_number(arg) for key, arg in given.items()}
        made = func(*args, **given)
        if name in _THE_SAME or func in _MAKES:
            self._hold(made, values[0])
        elif name in _MADE_OF and not given and [*map(type, values)] in _OPERANDS:
            self._hold(made, _MADE_OF[name](*values))
        return made

    def _hold(self, made: torch.Tensor, value: Any) -> None:
        dtype = torch.int64 if type(value) in _SIZES else torch.bool
        if value is not None and made.dim() == 0 and made.dtype == dtype and not made.is_inference():
            self._held[made] = value, writes_into(made)

    def _value(self, given: Any) -> Any:
        """The size, if it is one or holds one, or how sizes compare; None of all else."""
        if type(given) in _SIZES:
            return given
        if not isinstance(given, torch.Tensor) or given not in self._held:
            return None
        value, version = self._held[given]
        return value if writes_into(given) == version else None

    def _as_number(self, given: Any) -> Any:
        """Returns the size that a tensor holds in its place, in tuples and lists as well; other values are
        unchanged.
        """
        if type(given) in (tuple, list):
            return tuple(map(self._as_number, given))
        value = self._value(given) if isinstance(given, torch.Tensor) else None
        return given if value is None else value


def _has_dims(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0


_SIZES: Final = (int, torch.SymInt)
_OPERANDS: Final = [[*kinds] for count in (1, 2) for kinds in product(_SIZES, repeat=count)]
_MAKES: Final = frozenset({torch.tensor, torch.scalar_tensor})
"""Functions that make a tensor of a size."""
_MADE_OF: Final[Mapping[str, Callable[..., Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "__rsub__": lambda one, other: other - one, "__floordiv__": operator.floordiv,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "remainder": operator.mod,
}  # fmt: skip
"""The operation on sizes for calls of these names, which take a number beside a tensor, too."""
_THE_SAME: Final = frozenset({"to", "long", "clone", "detach", "detach_"})
_READ: Final[Mapping[str, Callable[..., Any]]] = {
    "item": lambda size: size, "__int__": int, "__index__": int, "__bool__": bool,
}  # fmt: skip
_TAKES_SIZES: Final = frozenset({"view", "reshape", "expand", "narrow", "repeat"})
"""Calls of a tensor that take another, of one number, for the number."""
_PROMOTES: Final = frozenset({*_MADE_OF, "clamp", "clip"})
"""Those whose dtype depends on whether they take a tensor or a number, if their first tensor has no dims."""
_OF_SIZES: Final = frozenset({"arange", "zeros", "ones", "empty", "full"})
"""Functions of nothing but numbers."""
