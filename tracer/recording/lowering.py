"""Values on their way: a program's as a rule sees them, and a rule's as the program gets them."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from ...constraints.contents.outcomes.ranges import Outlook
from ...constraints.ir.language import Dots, Dyn, Number, Proportion, Quotient, Slice, Tensor, Value
from ...constraints.ir.program import Ref
from ...constraints.terms.dims import Term
from ...constraints.terms.formula import all_of
from ..patches.integers import ARRAYS
from ..values.numbers import Real, Size, returned, size
from ..values.real_tensors import dtype_name
from ..values.sequences import SEVERAL, settled
from ..values.symbolic import RowSizes, SymbolicTensor
from .memory import OWNING, PLAIN
from .repeats import PLAIN_TENSORS, OperandSlot
from .stored import RealTensors


class Lowering(RealTensors):
    """A run along one path, which hands values to rules and takes their results."""

    def lower(self, value: Any, ids: dict[int, Ref]) -> Any:
        """Returns a Python value as a rule sees it; `ids` remembers which values are tensors of the program.
        """
        kind = type(value)
        if kind in NUMBERS or kind is complex:
            return value
        if kind in PLAIN_TENSORS:
            _, known, ref = self.real_tensor(value)
            ids[id(known)] = ref
            return known
        if kind is tuple and _INTEGERS.issuperset(map(type, value)):
            return value
        if kind in ARRAYS:
            value = value.lowered()
        if isinstance(value, SymbolicTensor):
            if self.loops.ended:
                self._no_ended(value.value)
            ids[id(value.value)] = value.ref
            return value.value
        if type(value) is torch.SymInt:  # as torch's engine of derivatives hands sizes on
            value = returned(value)
        if type(value) is Size:
            self._no_ended(value.term)
            return value.term
        if type(value) is RowSizes:
            self._no_ended(value.value)
            return value.value.shape
        if type(value) in SEVERAL:
            value = tuple(settled(value))
        if isinstance(value, torch.Tensor):
            _, known, ref = self.real_tensor(value)
            ids[id(known)] = ref
            return known
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return tuple([self.lower(v, ids) for v in value])
        if type(value) is Real:
            parts = value.ratio or (value.near and (value.near.p, value.near.q))
            for dim in parts or ():
                self._no_ended(dim)
            if not parts:
                return Number("float")
            over, under = map(self.generator.equations.simplify, parts)
            return (Quotient if value.ratio else Proportion)("float", over, under)
        if isinstance(value, torch.dtype):
            return dtype_name(value)
        if kind is type and value in OF_PYTHON:
            return OF_PYTHON[value]
        if isinstance(value, slice):
            return Slice(*(self.lower(v, ids) for v in (value.start, value.stop, value.step)))
        if value is Ellipsis:
            return Dots
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
        if callable(into := getattr(value, "tolist", None)) and not isinstance(value, type):  # of NumPy
            return self.lower(into(), ids)
        return str(value)

    def argument(self, value: Any, ids: Mapping[int, Ref | OperandSlot]) -> Any:
        """Returns a value as a node's argument: tensors by reference, everything else as it is."""
        kind = type(value)
        if kind is Tensor or value is Dyn:
            return ids.get(id(value), value)
        if kind is Quotient or kind is Proportion:
            return Number(value.kind)
        return tuple([self.argument(v, ids) for v in value]) if kind is tuple else value

    def _alike(self, values: list[int], op: str, number: float) -> Outlook:
        """Returns what sizes say of a comparison of the equality of values with 0 or 1."""
        found = self.generator.outlook_equal(values)
        return found if (op, number) in (("ne", 0), ("eq", 1)) else found.negated

    def _lift(self, value: Any, op: str, ids: dict[int, Ref], results: list[int], written: Any = None) -> Any:
        """Returns a rule's result as the program gets it.

        `written` is the tensor, or the tensors, that an in-place call or `out=` wrote into.
        """
        if type(value) is Tensor or value is Dyn:
            if ids and id(value) in ids and value is not Dyn:
                value = self.generator.again(value)
            ref = self.new_value(value)
            results.append(ref.id)
            if not torch.is_grad_enabled():
                self.gradients.made_without.add(ref.id)
            if isinstance(written, SymbolicTensor):
                written.value, written.ref = value, ref
                return written
            dtype = value.dtype if value is not Dyn and value.dtype else self.generator.floats
            return SymbolicTensor(self, value, ref, getattr(torch, dtype), op in OWNING, op in PLAIN)
        if isinstance(value, tuple):
            several = isinstance(written, list | tuple) and len(written) == len(value)
            into = written if several else [None] * len(value)
            parts = [self._lift(v, op, ids, results, w) for v, w in zip(value, into, strict=True)]
            named = getattr(torch.return_types, op, None)
            return (
                named(parts) if named is not None and len(parts) == named.n_sequence_fields else tuple(parts)
            )
        if isinstance(value, Number):
            none = all_of(self.generator.dataless(ref.id, empty=True) for ref in ids.values())
            given = [ref.id for ref in ids.values()]
            alike = functools.partial(self._alike, given) if op in EQUALITIES else None
            number = self.datum(None, none, alike, of=given[0] if op in ELEMENTS else None)
            number.is_input = op not in ELEMENTS  # any number may be carried into a loop
            return number
        if value is None or isinstance(value, float | str):
            return value
        results.append(self.new_value(value).id)
        if isinstance(value, Term):
            return Size(self, value)
        return value if isinstance(value, int) else self.truth(value)

    def _passed(self, value: Value) -> Any:
        """Returns an input other than a tensor, as the program gets it; the value of a float is unknown."""
        if isinstance(value, tuple):
            return tuple(map(self._passed, value))
        if isinstance(value, Number):
            given = Real(self, None, None)
            given.is_input = True
            return given
        return size(self, value) if isinstance(value, Term) else value


OF_PYTHON: Final = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""The dtypes that torch takes types of Python's for."""
ELEMENTS: Final = frozenset({"item", "_local_scalar_dense"})
EQUALITIES: Final = frozenset({"equal", "allclose"})
NUMBERS = frozenset({int, float, bool, str, type(None)})
_INTEGERS = frozenset({int})
