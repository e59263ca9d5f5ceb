"""Records the writes of a program into the parameters and buffers of its model, by whatever means, and undoes
them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from ...constraints.ir.opnames import is_in_place
from ..host.tensors import all_modes_off, base_of, memory_id, overrides_off
from .fallback import leaves
from .held import StandIns, can_stand_in

RESHAPING: Final = frozenset(
    """
    resize_ resize_as_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_
    """.split()
)
"""Operators that change more than elements."""
LENDING: Final = frozenset({"numpy", "__array__"})
"""Methods that give other code access to the elements, whose writes remain unseen."""


NO_WRITES: Final = frozenset(
    "detach_ dropout_ alpha_dropout_ feature_dropout_ feature_alpha_dropout_".split()
)
"""In-place operators that may leave a leaf that requires gradients as it is, and do not refuse it then."""


def views_leaf(tensor: torch.Tensor) -> bool:
    """Returns whether a real tensor is a leaf of the graph of gradients, or a view of one."""
    with overrides_off():
        base = base_of(tensor)
        return (tensor if base is None else base).is_leaf


def is_assigned(func: Any) -> bool:
    """Returns whether the call is `tensor.data = …`."""
    return getattr(func, "__name__", "") == "__set__" and getattr(func, "__self__", None) is torch.Tensor.data


def destinations(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    """Yields the tensors that a call of a torch function writes into, as far as its name shows."""
    name = getattr(func, "__name__", "")
    augmented = name.startswith("__i") and name not in ("__int__", "__index__", "__invert__")
    in_place = name == "__setitem__" or is_in_place(name) or augmented or is_assigned(func)
    given = args[:1] if in_place else (), kwargs.get("out")
    return (leaf for leaf in leaves(given) if isinstance(leaf, torch.Tensor))


class Writes:
    """The writes into some tensors, with the former contents."""

    def __init__(self, owned: Iterable[torch.Tensor]) -> None:
        self._owned = owned
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]] = {}
        """Tensors that are written into, each with its former layout in memory, and its elements."""

    @functools.cached_property
    def _by_memory(self) -> dict[int, list[torch.Tensor]]:
        found: dict[int, list[torch.Tensor]] = {}
        for tensor in self._owned:
            found.setdefault(memory_of_real(tensor), []).append(tensor)
        return found

    def sharing(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Returns the tensors that lie in the memory of a tensor."""
        return self._by_memory.get(memory_of_real(tensor), [])

    def written(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """Returns the tensors that a call writes into."""
        return [owned for target in destinations(func, args, kwargs) for owned in self.sharing(target)]

    def keep(self, tensors: Iterable[torch.Tensor], elements: bool = True) -> None:
        """Stores the tensors, and with `elements` their elements, before they change."""
        with overrides_off(), all_modes_off(), torch.no_grad():
            for tensor in tensors:
                known = self._kept.get(id(tensor))
                if known is None or (elements and known[2] is None):
                    alias = tensor.data if known is None else known[1]
                    self._kept[id(tensor)] = tensor, alias, alias.clone() if elements else None

    def undo(self) -> None:
        """Restores the tensors."""
        with torch.no_grad():
            for tensor, alias, elements in self._kept.values():
                if _place(tensor) != _place(alias):
                    tensor.data = alias
                if elements is not None:
                    tensor.copy_(elements)
        self._kept.clear()


def memory_of_real(tensor: torch.Tensor) -> int:
    """Returns the identity of the memory that the tensor lies in; its own for a wrapper around another
    tensor.
    """
    if tensor.layout is torch.strided:
        with contextlib.suppress(NotImplementedError), overrides_off():
            return memory_id(tensor)
    return id(tensor)


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    if tensor.layout is not torch.strided:
        return (id(tensor),)
    return memory_of_real(tensor), tensor.shape, tensor.stride(), tensor.storage_offset()


def with_copies(args: Any, kwargs: Any, written: Iterable[torch.Tensor]) -> tuple[Any, Any]:
    """Returns the arguments of a call with copies of the written tensors, and of all that share their memory.
    """
    memories, copies = {*map(memory_of_real, written)}, StandIns(copied=True)

    def copied(value: Any) -> Any:
        kind = type(value)
        if kind is tuple or kind is list:
            return kind(map(copied, value))
        if kind is dict:
            return {key: copied(part) for key, part in value.items()}
        if not isinstance(value, torch.Tensor) or not can_stand_in(value):
            return value
        if memory_of_real(value) not in memories:
            return value
        base = base_of(value)
        if base is None or base.dtype != value.dtype or value.is_conj() or value.is_neg():
            return copies.of(value)
        with torch.enable_grad():
            return copies.of(base).as_strided(value.shape, value.stride(), value.storage_offset())

    with overrides_off(), all_modes_off():
        return copied(args), copied(kwargs)


class Undone(TorchFunctionMode):
    """Undoes, at the end of the block, all writes into the tensors."""

    def __init__(self, owned: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._writes = Writes(owned)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in LENDING:
            self._writes.keep(self._writes.sharing(args[0]))
        elif written := self._writes.written(func, args, kwargs):
            self._writes.keep(written)
        return func(*args, **kwargs)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._writes.undo()
