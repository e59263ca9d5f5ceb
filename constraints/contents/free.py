"""Masks that are true wherever the user likes.

How many elements of a mask are true lies between none and all. Both occur for some data only where the mask
compares an input of the user's with a number: one that the program has padded, or joined with another, is
false somewhere whatever the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import structs

from ..dims import Term
from ..language import Context, Shape, Span, Tensor, Value, tensors
from .counts import COUNTED, NEGATING, REARRANGING
from .masks import COMPARISONS, one_value

Named = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Border:
    """Elements are any in a part of this shape; around it they all are the value."""

    shape: Shape
    value: int


class Free:
    """Tensors, by identity, whose elements are any, each for itself: all, or those within a border."""

    def __init__(self) -> None:
        self._tensors: dict[int, tuple[Tensor, Border | None]] = {}
        self._sums: dict[int, tuple[Tensor, Border]] = {}
        """Running sums of what is nothing at a border, and greatest within it where all else is true."""

        self._roots: dict[int, tuple[Tensor, Tensor]] = {}
        """Masks as integers and their running sums, each with its mask."""

    def add(self, value: Value, border: Border | None = None) -> None:
        for tensor in tensors(value):
            self._tensors[id(tensor)] = tensor, border

    def written(self, target: Tensor) -> None:
        """Others of its kind may be views of what is written into."""
        kind = target.dtype in COUNTED
        self._roots.clear()
        for kept in (self._tensors, self._sums):
            for key in [key for key, (tensor, *_) in kept.items() if (tensor.dtype in COUNTED) == kind]:
                del kept[key]

    def follow(self, c: Context, op: str, named: Named, result: Value) -> tuple[Value, bool]:
        """The result of a call, and whether it is told by what is free."""
        input = named.get("input")
        if not isinstance(result, Tensor):
            return result, False
        alone = op != "add" or one_value(named.get("other")) == 0
        if op in (*CASTING, *SUMMING, "type_as", "add") and alone and isinstance(input, Tensor):
            self._roots[id(result)] = result, self._root(input)
        if op in FREEING and isinstance(input, Tensor) and id(input) in self._tensors:
            return result, self._freed(c, op, named, input, result)
        summed = self._summed(op, named, result)
        if summed is not None:
            return summed, True
        match result.elements:
            case Span(_, _, True) as span:
                given = [*tensors((*named.values(),))]
                apart = op == "mul" and len({id(self._root(t)) for t in given}) > 1
                if apart or any(map(self._within, given)):
                    result = structs.replace(result, elements=replace(span, attained=False))
                told = (t.dtype == "bool" or id(t) in self._tensors for t in given)
                return result, op == "mul" or any(told)
        return result, False

    def _root(self, tensor: Tensor) -> Tensor:
        return self._roots.get(id(tensor), (tensor, tensor))[1]

    def _summed(self, op: str, named: Named, result: Tensor) -> Tensor | None:
        """A sum of what lies within a border, where no more than that counts; or times what it sums up."""
        input, other, span = named.get("input"), named.get("other"), result.elements
        if not isinstance(input, Tensor) or not isinstance(span, Span):
            return None
        border = self._tensors.get(id(input), (input, None))[1]
        axis = named.get("dim")
        if op in SUMMING and border is not None and border.value == 0 and isinstance(axis, int):
            if span.high != input.shape[axis]:
                return None
            result = structs.replace(result, elements=replace(span, high=border.shape[axis]))
            self._sums[id(result)] = result, border
            return result
        _, of = self._sums.get(id(input), (input, None))
        if of is not None and op in (*CASTING, "type_as"):
            self._sums[id(result)] = result, of
            return result
        same = of is not None and op == "mul" and self._tensors.get(id(other), (other, None))[1] is of
        return result if same else None

    def is_whole(self, tensor: Tensor) -> bool:
        """Whether the elements are any, all of them."""
        return id(tensor) in self._tensors and self._tensors[id(tensor)][1] is None

    def _within(self, value: Value) -> bool:
        """Are there elements that are not any?"""
        if not isinstance(value, Tensor):
            return False
        on_data = value.dtype == "bool" and value.elements is None
        return not self.is_whole(value) and (on_data or id(value) in self._tensors)

    def _freed(self, c: Context, op: str, named: Named, input: Tensor, result: Tensor) -> bool:
        border = self._tensors[id(input)][1]
        if op in PADDING:
            border = _padded(c, named, input) if border is None else None
            if border is None:
                return False
        elif op in COMPARISONS:
            other = one_value(named.get("other"))
            if result.shape != input.shape or (other is None and not isinstance(named.get("other"), float)):
                return False
            if border is not None:
                if op != "ne" or other != border.value:
                    return False
                border = replace(border, value=0)
        elif border is not None and op not in CASTING:
            return False
        self.add(result, border)
        return True


def _padded(c: Context, named: Named, input: Tensor) -> Border | None:
    """`pad` with a number, and on no side by less than nothing."""
    sides, value = named.get("pad"), 0 if named.get("value") is None else named["value"]
    integral = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if named.get("mode", "constant") != "constant" or not isinstance(sides, tuple) or not integral:
        return None
    whole = all(isinstance(side, int | Term) and c.at_least(side, 0) for side in sides)
    return Border(input.shape, int(value)) if whole else None


PADDING: Final = frozenset("pad constant_pad_nd".split())
CASTING: Final = frozenset("to _to_copy type long int clone contiguous detach alias".split())
SUMMING: Final = frozenset("sum cumsum".split())
FREEING: Final = REARRANGING | NEGATING | COMPARISONS.keys() | PADDING
