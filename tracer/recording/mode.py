"""The mode that catches every torch function which a program calls while it is recorded."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch.nn.parameter import Parameter, UninitializedTensorMixin  # type: ignore[attr-defined]
from torch.overrides import TorchFunctionMode

from ..bytecode.operations import hands_on
from ..host.interpreter import frame_above
from ..host.operators import OpOverload
from ..host.patches import Patch, together
from ..host.tensors import CALLS_WITH_OVERRIDES, DispatchMode, overrides_off
from ..patches.integers import ARRAYS
from ..values.numbers import Real, Size, returned
from ..values.random import FILLING, is_drawn
from ..values.sequences import SEVERAL, Repeated, SizeRange
from ..values.symbolic import ABOUT_DATA, RowSizes, SymbolicTensor
from .lowering import NUMBERS
from .operators import Operators
from .writes import LENDING, RESHAPING, Writes, destinations, is_assigned, with_copies


class Mode(TorchFunctionMode):
    """Catches every torch function during a run; calls without symbolic arguments really run."""

    def __init__(self, run: Operators) -> None:
        super().__init__()
        self.run = run
        self.writes = Writes(run.subject.tensors)
        self.constructors = Constructors(run)

    def __enter__(self) -> Mode:
        self.constructors.__enter__()  # type: ignore[no-untyped-call]
        return super().__enter__()  # type: ignore[no-untyped-call, no-any-return]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.constructors.__exit__(*error)  # type: ignore[no-untyped-call]
        self.writes.undo()

    @hands_on
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Records a call, or runs it if it has no symbolic arguments.

        The floats of the model do not affect shapes, so writes into its parameters and buffers run on copies,
        for what torch refuses. Only writes of single numbers run, since a model may read them, such as a
        counter of batches. All such writes are undone after the run.
        """
        kwargs = kwargs or {}
        if self.run.inside is not None:
            self.run.inside.calls(func, args, kwargs)
        if getattr(func, "__module__", None) == _FOR_LISTS:
            with self._catching():
                return func.__wrapped__(*args, **kwargs)
        if self.run.overwritten:
            args, kwargs = self.run.present(args), self.run.present(kwargs)
        ranged = func in _TAKE_RANGES and args and type(args[0]) is SizeRange
        if ranged or _is_symbolic(args) or (kwargs and _is_symbolic(kwargs.values())):
            if not _NEVER_OVERRIDE.issuperset(types) and (kinds := [*filter(_overrides, types)]):
                return self._overridden(kinds, func, args, kwargs)
            return self.run.call(func, args, kwargs)
        name = getattr(func, "__name__", "")
        if name == "requires_grad_" or func == _REQUIRES or (name == "detach_" and args[0].requires_grad):
            return self.run.call(func, args, kwargs)
        if is_drawn(func, name, args, kwargs):
            return self.run.call(func, args, kwargs)
        self.run.constants_drawn += name in FILLING
        if self.run.followed and any(map(self.run.follows, destinations(func, args, kwargs))):
            return self.run.call(func, args, kwargs)
        if written := self.writes.written(func, args, kwargs):
            reshapes = is_assigned(func) or name in RESHAPING
            if any(self.run.matters(tensor, reshapes) for tensor in written):
                return self.run.call(func, args, kwargs)
            if reshapes:
                self.writes.keep(written, elements=False)
            elif any(map(self._is_idle, written)):
                result = kwargs.get("out", args[0])
                args, kwargs = with_copies(args, kwargs, written)
                func(*args, **kwargs)
                return result
            else:
                self.writes.keep(written)
        if name in LENDING and self.writes.sharing(args[0]):
            lent = args[0].clone()
            if not lent.is_floating_point():  # the elements of other buffers are data
                self.run.lends(lent)
            return func(lent, *args[1:], **kwargs)
        if name in _MAKING and _elements(args, kwargs) > _LARGE:
            self.run.give_up(f"a constant of {_elements(args, kwargs)} elements is made")
        if name in ABOUT_DATA and args and args[0].is_meta:
            return self.run.call(func, (self.run.lifted(args[0]), *args[1:]), kwargs)
        func, args, kwargs = _on_this_machine(func, name, args, kwargs)
        result = func(*args, **kwargs)
        if self.run.inside is not None:
            self.run.inside.makes((args, kwargs), result)
        return self.run.made(result, frame_above(1)) if name in _MAKING else result

    def _overridden(self, kinds: list[Any], func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Returns what the program's own types make of a call of a torch function with objects of theirs.

        As in torch, the first answer counts. The calls that it makes are caught, too.
        """
        with self._catching():
            answers = (kind.__torch_function__(func, tuple(kinds), args, kwargs) for kind in kinds)
            found = next((answer for answer in answers if answer is not NotImplemented), NotImplemented)
        if found is NotImplemented:
            self.run.give_up(f"{kinds[0].__name__} does not implement {getattr(func, '__name__', func)}")
        return found

    @contextlib.contextmanager
    def _catching(self) -> Iterator[None]:
        """Catches the calls that are made while one is answered."""
        super().__enter__()  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _is_idle(self, tensor: torch.Tensor) -> bool:
        """Returns whether writes into a tensor of the model's do not affect the recording."""
        return tensor.dim() > 0 and id(tensor) in self.run.subject.parameters


class Constructors(DispatchMode):
    """Catches the construction of tensors by their types, `torch.Tensor(n, 3)`, `torch.FloatTensor(n)`, which
    is not a torch function.
    """

    def __init__(self, run: Operators) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.run = run

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Records an `empty` of sizes, and runs any other operator."""
        kwargs = kwargs or {}
        if SymbolicTensor in types:
            return SymbolicTensor.__torch_dispatch__(func, types, args, kwargs)
        if func is _EMPTY and any(isinstance(n, torch.SymInt) for n in args[0]):
            size = tuple(returned(n) if isinstance(n, torch.SymInt) else n for n in args[0])
            return self.run.operator("empty", (size,), {"dtype": kwargs["dtype"]})
        with overrides_off() if isinstance(func, OpOverload) else contextlib.nullcontext():
            return func(*args, **kwargs)


def _on_this_machine(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Returns a call, with the CPU in the place of a device that this machine does not have: constants have
    the same sizes and elements there.
    """
    if name in _MOVES and is_absent(name):
        return torch.Tensor.cpu, args[:1], {}
    if name == "to" and len(args) > 1 and is_absent(args[1]):
        args = args[0], _CPU, *args[2:]
    return func, args, {**kwargs, "device": _CPU} if is_absent(kwargs.get("device")) else kwargs


def is_absent(device: Any) -> bool:
    """Returns whether a device, or the name of one, is of a type that this machine does not have."""
    if issubclass(type(device), str):
        name = device.partition(":")[0]
    elif type(device) is torch.device:
        name = device.type
    else:
        return False
    return name in _DEVICES and not torch.get_device_module(name).is_available()


_CPU: Final = torch.device("cpu")
_MOVES: Final = frozenset({"cuda", "xpu"})
"""Methods of tensors that are names of devices."""
_DEVICES: Final = frozenset({"cuda", "xpu", "mps", "mtia"})
"""The types of devices that torch knows by itself, beside the CPU."""
_EMPTY: Final = torch.ops.aten.empty.memory_format
_FOR_LISTS: Final = "torch.foreach"
_REQUIRES: Final = torch.Tensor.requires_grad.__set__  # type: ignore[attr-defined]
"""The module, since torch 2.15, of functions in Python that call operators on lists, with names of others."""
_PACKAGE: Final = __name__.partition(".")[0] + "."
_NEVER_OVERRIDE: Final = frozenset({torch.Tensor, Parameter, SymbolicTensor})


def _overrides(kind: type) -> bool:
    """Returns whether a type overrides functions of torch, and is not one of torch's or this package's
    stand-ins for plain tensors. Parameters without sizes turn into such.
    """
    asked = getattr(kind, "__torch_function__", Parameter.__torch_function__)
    plain = kind is torch.Tensor or asked is Parameter.__torch_function__
    return not (plain or kind.__module__.startswith(_PACKAGE) or issubclass(kind, UninitializedTensorMixin))


_MAKING = frozenset("zeros ones empty full rand randn zeros_like ones_like full_like empty_like".split())
_LARGE = 1 << 30
"""Constants of more elements are not made: their sizes are numbers that were tried for a size."""


def _elements(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Returns an upper bound of the number of elements that a call makes from numbers."""
    sizes = kwargs.get("size", args[0] if args and isinstance(args[0], list | tuple) else args)
    return math.prod(max(n, 1) for n in sizes if isinstance(n, int) and not isinstance(n, bool))


_SYMBOLIC = frozenset({SymbolicTensor, Repeated, RowSizes, Size, Real, *SEVERAL, *ARRAYS})
_TAKE_RANGES: Final = frozenset({torch.tensor, torch.as_tensor})


def _is_symbolic(arguments: Any) -> bool:
    for a in arguments:
        kind = type(a)
        if kind in _SYMBOLIC:
            return True
        if kind in NUMBERS:
            continue
        if isinstance(a, list | tuple) and _is_symbolic(a):  # a torch.Size, too: sizes and a real shape added
            return True
        if kind is slice and _is_symbolic((a.start, a.stop, a.step)):
            return True
    return False


_NONE_OVERRIDES: Final = tuple(
    Patch(*place, lambda plain: lambda *args: False, "composites are entered")
    for place in CALLS_WITH_OVERRIDES
)


def entering_composites() -> contextlib.AbstractContextManager[None]:
    """Makes torch's Python-level functions run their own code while recording, with its checks, so that their
    inner calls are recorded. Otherwise they would pass themselves on as a whole to an overriding argument.
    """
    return together(_NONE_OVERRIDES)
