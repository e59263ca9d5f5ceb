"""What the columns of a tensor of indices are made of, and how often its rows agree.

The edges of a graph are columns of two nodes. A program that drops the edges from a node to itself and puts
one for each node behind, `cat([edges[:, edges[0] != edges[1]], loops], 1)`, and then asks where the rows are
equal, gets as many as there are nodes: none in what it has kept, all in what it has put behind. So a tensor
remembers its parts side by side, and a mask what it compares, as long as no integers and masks are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..dims import Dim
from ..language import Affine, Slice, Tensor, Value, tensors
from .dtypes import INTEGRAL
from .masks import NEGATIONS

Named = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Columns of a tensor, `[..., n]`: all of them, or those that a mask picks; all rows of them, or one."""

    source: Tensor
    size: Dim
    mask: Tensor | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where two tensors `[n]` have equal elements, or else where they have not."""

    left: tuple[Part, ...]
    right: tuple[Part, ...]
    equal: bool


class Columns:
    """Tensors of integers, by identity, with their parts; masks, with what they compare."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[Tensor, tuple[Part, ...]]] = {}
        self._masks: dict[int, tuple[Tensor, Comparison]] = {}

    def clear(self) -> None:
        """Something was written, no matter where."""
        self._parts.clear()
        self._masks.clear()

    def trues(self, mask: Tensor) -> Dim | None:
        """How many elements of the mask are true; None where it is for the data to say."""
        found = self._masks.get(id(mask))
        if found is None:
            return None
        _, comparison = found
        if len(comparison.left) != len(comparison.right):
            return None
        total: Dim = 0
        for left, right in zip(comparison.left, comparison.right, strict=True):
            agree = self._agree(left, right) if left.size == right.size else None
            if agree is None:
                return None
            total = total + (left.size if agree == comparison.equal else 0)
        return total

    def _agree(self, left: Part, right: Part) -> bool | None:
        """Are all elements of the parts equal, pair by pair? Or is none? None where that is not known."""
        if left.mask is None and right.mask is None:
            a, b = _progression(left), _progression(right)
            if a is not None and b is not None and a.steps == b.steps:
                apart = a.start - b.start
                return apart == 0 if isinstance(apart, int) else None
        if left.source is not right.source or left.mask is not right.mask:
            return None
        if left.row == right.row:
            return True
        found = self._masks.get(id(left.mask))
        if found is None:
            return None
        _, picked = found
        rows = {part.row for part in (*picked.left, *picked.right) if _is_row_of(part, left.source)}
        compared = len(picked.left) == len(picked.right) == 1 and rows == {left.row, right.row}
        return picked.equal if compared else None

    def follow(self, op: str, named: Named, result: Value) -> bool:
        """Remembers what a result is made of; is it made of more than itself?"""
        made = {id(tensor): (tensor, parts) for tensor, parts in self._made(op, named, result)}
        self._parts.update(made)
        comparison = self._comparison(op, named, result)
        if comparison is not None:
            (mask,) = tensors(result)
            self._masks[id(mask)] = mask, comparison
        return bool(made) or comparison is not None

    def _of(self, tensor: Tensor) -> tuple[Part, ...]:
        found = self._parts.get(id(tensor))
        return (Part(tensor, tensor.shape[-1]),) if found is None else found[1]

    def _made(self, op: str, named: Named, result: Value) -> list[tuple[Tensor, tuple[Part, ...]]]:
        input = named.get("input")
        if op == "cat" and isinstance(result, Tensor) and result.dtype in INTEGRAL:
            side_by_side = [*tensors(named.get("tensors"))]
            last = named.get("dim", 0) in (-1, result.rank - 1)
            if last and all(t.rank == result.rank and t.dtype == result.dtype for t in side_by_side):
                return [(result, tuple(part for t in side_by_side for part in self._of(t)))]
        if not isinstance(input, Tensor) or input.dtype not in INTEGRAL or not input.rank:
            return []
        if op == "unbind" and named.get("dim", 0) in (0, -2) and input.rank == 2:
            return [(row, self._row(input, place)) for place, row in enumerate(tensors(result))]
        if not isinstance(result, Tensor) or result.dtype != input.dtype:
            return []
        if op in KEEPING and result.shape == input.shape:
            return [(result, self._of(input))]
        match op, named.get("index"):
            case "getitem", index:
                items = index if isinstance(index, tuple) else (index,)
            case "select", index if named["dim"] in (0, -2):
                items = (index,)
            case _:
                return []
        return [(result, parts)] if (parts := self._chosen(input, items, result)) else []

    def _chosen(self, input: Tensor, items: tuple[Value, ...], result: Tensor) -> tuple[Part, ...]:
        """A row, or the columns that a mask picks; nothing is said of other parts of a tensor."""
        rows = input.shape[0]
        match input.rank, items:
            case (2, (row,)) if type(row) is int and type(rows) is int and rows > 0:
                return self._row(input, row % rows)
            case (1, (Tensor(dtype="bool", shape=(_,)) as mask,)):
                return self._picked(input, mask, result.shape[-1])
            case (2, (Slice(None, None, None), Tensor(dtype="bool", shape=(_,)) as mask)):
                return self._picked(input, mask, result.shape[-1])
        return ()

    def _row(self, tensor: Tensor, row: int) -> tuple[Part, ...]:
        return tuple(replace(part, row=row) for part in self._of(tensor))

    def _picked(self, tensor: Tensor, mask: Tensor, size: Dim) -> tuple[Part, ...]:
        """Of columns in one part those that a mask picks; of any other tensor the columns of itself."""
        parts = self._of(tensor)
        if len(parts) == 1 and parts[0].mask is None:
            return (replace(parts[0], mask=mask, size=size),)
        return (Part(tensor, size, mask),)

    def _comparison(self, op: str, named: Named, result: Value) -> Comparison | None:
        if not isinstance(result, Tensor) or result.dtype != "bool":
            return None
        left, right = named.get("input"), named.get("other")
        if op in NEGATIONS and isinstance(left, Tensor) and id(left) in self._masks:
            _, negated = self._masks[id(left)]
            return replace(negated, equal=not negated.equal)
        if op not in ("eq", "ne") or not isinstance(left, Tensor) or not isinstance(right, Tensor):
            return None
        if left.rank != 1 or left.shape != right.shape or {left.dtype, right.dtype} - INTEGRAL:
            return None
        return Comparison(self._of(left), self._of(right), op == "eq")


def _is_row_of(part: Part, source: Tensor) -> bool:
    return part.source is source and part.mask is None and part.row is not None


def _progression(part: Part) -> Affine | None:
    """The elements as a function of the column."""
    elements = part.source.elements
    if not isinstance(elements, Affine):
        return None
    steps = dict(elements.steps)
    start = elements.start if part.row is None else elements.start + steps.get(-2, 0) * part.row
    return Affine(start, tuple((axis, step) for axis, step in elements.steps if axis == -1))


KEEPING: Final = frozenset("to _to_copy type long int clone contiguous detach alias lift_fresh_copy".split())
"""What leaves every element where it is."""
