"""Calls that a program makes again with equal arguments, as the layers of a transformer do.

A call is identified by its function and the values of its tensors, not by the tensors themselves. The earlier
answer of its rule holds again as long as nothing was learnt since, and the node differs in its operands only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from msgspec import Struct

from ...constraints.ir.dtypes import category
from ...constraints.ir.language import LOOSE, Tensor, Value
from ...constraints.ir.program import Argument, Ref
from ..recorder import Recorder
from ..values.numbers import Size
from ..values.symbolic import Sizes, SymbolicTensor


class OperandSlot(Struct, frozen=True):
    """The position of an operand among the tensors of a call."""

    place: int


class FinishedCall(Struct, frozen=True):
    """A finished call: its operator, its arguments with slots for its tensors, and its result."""

    op: str
    arguments: tuple[tuple[str, Any], ...]
    result: Value
    filled: tuple[int, ...]
    """The indices of the arguments that have slots."""
    is_view: bool
    """Whether its results lie in the memory of its first argument."""
    writes: bool
    """Whether it writes its result into its first argument."""

    @classmethod
    def of(
        cls, op: str, arguments: tuple[tuple[str, Any], ...], result: Value, is_view: bool, writes: bool
    ) -> FinishedCall:
        filled = tuple([i for i, (_, a) in enumerate(arguments) if _has_slot(a)])
        return cls(op, arguments, result, filled, is_view, writes)

    def arguments_of(self, operands: list[Ref]) -> tuple[tuple[str, Argument], ...]:
        """Returns the arguments of the same call with other tensors."""
        arguments = [*self.arguments]
        for place in self.filled:
            name, argument = arguments[place]
            filled = (
                operands[argument.place] if type(argument) is OperandSlot else _filled(argument, operands)
            )
            arguments[place] = name, filled
        return tuple(arguments)


def _has_slot(argument: Any) -> bool:
    kind = type(argument)
    return kind is OperandSlot or (kind is tuple and any(map(_has_slot, argument)))


def _filled(argument: Any, operands: list[Ref]) -> Any:
    kind = type(argument)
    if kind is OperandSlot:
        return operands[argument.place]
    return tuple([_filled(part, operands) for part in argument]) if kind is tuple else argument


class CallKey:
    """A call in comparable form: calls have equal keys where the rule gets the same question."""

    __slots__ = ("is_comparable", "key", "operands", "values")

    def __init__(self, run: Recorder, spelling: str, args: Iterable[Any], kwargs: dict[str, Any]) -> None:
        operands: list[Ref] = []
        values: list[Value] = []
        self.operands, self.values = operands, values
        self.is_comparable = True
        """Whether every argument is of a supported kind."""
        key: list[object] = [spelling, tuple(kwargs)]
        real = run.real
        for a in (*args, *kwargs.values()) if kwargs else args:  # `_told` is for what is rare
            kind = type(a)
            if kind is SymbolicTensor:
                value = a.value
                operands.append(a.ref)
                values.append(value)
                key.append(value)
            elif kind in PLAIN_TENSORS:
                _, known, ref = real.get(id(a)) or run.real_tensor(a)
                operands.append(ref)
                values.append(known)
                key.append(known)
            elif kind in _ITSELF:
                key.append(a)
            elif kind in _PLAIN or (kind is tuple and _INTEGERS.issuperset(map(type, a))):  # as a stride
                key.append((kind, a))
            else:
                key.append(self._told(run, a))
        self.key = tuple(key)

    @property
    def slots(self) -> dict[int, OperandSlot] | None:
        """Returns the positions of the tensors, by the identity of their values.

        None where a tensor occurs twice, since two equal tensors need not be the same, and where the call is
        not comparable.
        """
        if not self.is_comparable:
            return None
        slots = {id(value): OperandSlot(place) for place, value in enumerate(self.values)}
        return slots if len(slots) == len(self.values) else None

    def writes_data(self, written: Any) -> bool:
        """Returns whether the call writes into its only operand, a tensor of the program whose elements are
        data.
        """
        one = self.values[0] if len(self.values) == 1 else None
        if type(written) is not SymbolicTensor or type(one) is not Tensor or one.elements is not None:
            return False
        return one.dtype is not None and category(one.dtype) >= 2 and one.layout not in LOOSE

    def _told(self, run: Recorder, value: Any) -> object:
        """Returns a key that identifies an argument: `1`, `1.0` and `True` are equal, but not the same. An
        argument of an unsupported kind equals nothing.
        """
        kind = type(value)
        if kind in _ITSELF:
            return value
        if kind is tuple or kind is list or kind is Sizes or kind is torch.Size:
            return kind, *[self._told(run, part) for part in value]
        if kind is SymbolicTensor:
            self.operands.append(value.ref)
            self.values.append(value.value)
            return value.value
        if kind is Size:
            return value.term
        if isinstance(value, torch.Tensor):
            _, known, ref = run.real_tensor(value)
            self.operands.append(ref)
            self.values.append(known)
            return known
        if kind in _PLAIN:
            return kind, value
        if kind is slice:
            return kind, *[self._told(run, part) for part in (value.start, value.stop, value.step)]
        self.is_comparable = False
        return object()


PLAIN_TENSORS = frozenset[type]({torch.Tensor, torch.nn.Parameter})
_INTEGERS = frozenset({int})
_ITSELF = frozenset({int, str, type(None)})
"""Types whose values identify themselves."""
_PLAIN = frozenset(
    {bool, float, complex, torch.dtype, torch.device, torch.layout, torch.memory_format, type(Ellipsis)}
)
