"""Names of torch for calls on tensors, the memory that tensors lie in, and the wrappers around them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
import torch._lowrank
import torch._tensor
import torch.functional
import torch.nn.functional
import torch.overrides
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode
from torch._subclasses.fake_tensor import is_fake as is_fake
from torch.overrides import _get_current_function_mode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

overrides_off: Final = torch._C.DisableTorchFunction
"""Inside, calls go to torch's own functions: neither modes nor subclasses of tensors see them."""
subclass_overrides_off: Final = torch._C.DisableTorchFunctionSubclass
"""Inside, subclasses of tensors do not see the calls of torch's functions; modes do."""
innermost_function_mode: Final = _get_current_function_mode
"""The mode that sees the next call of a torch function, None without one."""
make_subclass: Final = torch.Tensor._make_subclass
"""A tensor of a subclass, in the memory of another."""
make_wrapper: Final = torch.Tensor._make_wrapper_subclass
"""A tensor of a subclass, without memory of its own."""
_HANDING_ON: Final = ("torch", "to_dlpack"), ("torch.utils.dlpack", "to_dlpack"), *(
    (torch._C.__name__, name) for name in ("_to_dlpack", "_to_dlpack_versioned")
)
HANDING_ON: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    (module, name): function
    for module, name in _HANDING_ON
    if (function := getattr(sys.modules[module], name, None)) is not None
}
"""By module and name, functions in C++ that hand on the memory of a tensor, without asking for its data."""
is_of_transform: Final = torch._C._functorch.is_functorch_wrapped_tensor
"""Returns whether a tensor is the wrapper that a transform such as `vmap` puts around another."""
torch_check: Final = torch._check
"""Raises unless a condition holds; of sizes of a trace it makes a fact."""
torch_assert_async: Final = torch._assert_async
"""Raises unless an element is true."""



class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Base of modes that see the calls of kernels; with it the first call does not load `torch._dynamo`."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Returns False: torch wraps the methods of no mode that says so."""
        return False


FAKE_TENSORS_CANNOT: Final = (
    fake_tensor.DataDependentOutputException,
    fake_tensor.DynamicOutputShapeException,
    fake_tensor.UnsupportedFakeTensorException,
    fake_tensor.UnsupportedOperatorException,
)
"""The errors of fake tensors where they cannot do what real ones can."""

ASSERTS: Final = frozenset({"_assert", "_check"})
"""Names of functions of torch that raise an exception with a text, or do nothing with it."""


def all_modes_off() -> contextlib.AbstractContextManager[object]:
    """Inside, no mode of dispatch sees a call."""
    return _disable_current_modes()


def memory_id(tensor: torch.Tensor) -> int:
    """The identity of the memory that a tensor lies in, which others may share."""
    return storage_id(tensor.untyped_storage())


def storage_id(storage: torch.UntypedStorage) -> int:
    """Returns the identity of the memory behind a storage; Python objects for one storage differ."""
    return int(storage._cdata)


VERSION: Final = "_version"
"""The attribute that counts the writes into a tensor."""
BASE: Final = "_base"
"""The attribute for which views have the tensor that they are views of."""


def base_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor that a tensor is a view of, as derivatives see it; None for one that is no view."""
    base: torch.Tensor | None = getattr(tensor, BASE)
    return base


def writes_into(tensor: torch.Tensor) -> int:
    """Returns the number of times that a tensor has been written into. Raises RuntimeError for one made in
    inference mode.
    """
    return tensor._version


CALLS_WITH_OVERRIDES: Final = tuple(
    (module, name)
    for module in (torch.overrides, torch._lowrank, torch._tensor, torch.functional, torch.nn.functional)
    for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    if hasattr(module, name)
)
"""The places of what torch's Python code asks whether an argument overrides its functions."""
