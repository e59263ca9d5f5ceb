"""Bounds of the indices that `nonzero` finds: column i, or number i of a row, is an index of dim i.

So a program may access the neighbours of each, `x.pad(k)[p[0] + k]` for `p` in `x.nonzero()`, and assert that
each lies inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from msgspec import structs

from ...ir.language import Slice, Span, Subscripts, Tensor, Value
from ...terms.dims import Term

Named = Mapping[str, Any]


def _found(op: str, named: Named, result: Value, is_free: Callable[[Tensor], bool]) -> Value | None:
    """Returns the indices that a call finds, with the facts about them; None where it finds none."""
    alone = op == "where" and isinstance(result, tuple)  # `torch.where(mask)`
    input = named.get("condition" if alone else "input")
    if not isinstance(input, Tensor) or not input.shape or not (alone or op in FINDING):
        return None
    known = Subscripts(input.shape, 0, is_free(input))
    if isinstance(result, tuple):
        return tuple(_column(t, known, axis) for axis, t in enumerate(result))
    return _places(result, known)


def _has_subscripts(value: Value) -> bool:
    return type(value) is Tensor and type(value.elements) is Subscripts


def follow(op: str, named: Named, result: Value, is_free: Callable[[Tensor], bool]) -> Value | None:
    """Returns the result of a call that finds such places, or gets them, with the knowledge about it. Returns
    None for other calls, and for those after which the laws of indices within bounds hold.
    """
    if not any(map(_has_subscripts, named.values())):
        return _found(op, named, result, is_free)
    input = named.get("input")
    if not isinstance(input, Tensor) or not isinstance(known := input.elements, Subscripts):
        return result
    match op, named:
        case "getitem", {"index": tuple((Slice() as rows, int(column)))} if rows == Slice():
            return _column(result, known, column)
        case "getitem" | "select", {"index": int(column)} if input.rank == 1:
            return _column(result, known, column)
        case "getitem" | "select", {"index": int() | Term() | Tensor(dtype="int64") | Slice()}:
            rowwise = named.get("dim", 0) == 0 and input.rank == 2
            return _places(result, replace(known, attained=False)) if rowwise else result
        case "index_select", {"dim": 0}:
            return _places(result, replace(known, attained=False))
        case "add" | "sub", {"other": int(number)} if named.get("alpha", 1) == 1:
            return _places(result, replace(known, added=known.added + (number if op == "add" else -number)))
    return _places(result, known) if op in KEEPING else None


def _places(result: Value, known: Subscripts) -> Value:
    if not isinstance(result, Tensor) or result.dtype != "int64" or result.shape[-1:] != (len(known.shape),):
        return result
    return structs.replace(result, elements=known)


def _column(result: Value, known: Subscripts, column: int) -> Value:
    """Returns indices of a dim, each shifted by the same number."""
    assert isinstance(result, Tensor)
    low, high = known.added, known.shape[column] - 1 + known.added
    span = Span(low, high, known.attained, by_data=True, dense=known.attained)
    return structs.replace(result, elements=span)


FINDING: Final = frozenset("nonzero argwhere nonzero_numpy".split())
KEEPING: Final = frozenset("clone contiguous detach alias".split())
