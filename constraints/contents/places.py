"""The places of a mask that is true all over: what indices a tensor has, and how often each occurs.

`torch.ones(b, m).nonzero()` has a row `i, j` for each element, in their order. Of its first column each
of the b different numbers occurs m times. A program that looks for the places of a mask row by row,
`[places[places[:, 0] == row] for row in places[:, 0].unique()]`, gets m of them each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..dims import Dim, Term, sym
from ..formula import Formula, ge
from ..language import Affine, Elements, Index, Piece, Pieces, Shape, Slice, Tensor, Value, product
from .masks import one_value

Named = Mapping[str, Any]
Certain: TypeAlias = Callable[[Formula], bool]


class Places:
    """Tensors of places, by identity, as long as no integers and masks are written."""

    def __init__(self) -> None:
        self._all: dict[int, tuple[Tensor, Shape]] = {}
        """Each with the shape of which it has all places."""
        self._columns: dict[int, tuple[Tensor, Shape, int]] = {}
        """Each with the axis along which it has the indices, of all places of the shape."""
        self._masks: dict[int, tuple[Tensor, Shape, int, Dim]] = {}
        """Where such a column is equal to a number."""
        self._written = False

    def clear(self) -> None:
        """Something was written, no matter where: constants may be other than they were made."""
        self._written = True
        for kept in (self._all, self._columns, self._masks):
            kept.clear()

    def trues(self, mask: Tensor, certain: Certain) -> Dim | None:
        """How often the number occurs, if it is an index along the axis for certain."""
        found = self._masks.get(id(mask))
        if found is None:
            return None
        _, shape, axis, index = found
        inside = certain(ge(index, 0)) and certain(ge(shape[axis] - 1, index))
        return _others(shape, axis) if inside else None

    def follow(self, op: str, named: Named, result: Value, certain: Certain) -> tuple[Value, bool]:
        """The result of a call, and whether it is told by places."""
        input = named.get("input")
        if self._written or not isinstance(input, Tensor):
            return result, False
        if op == "nonzero" and isinstance(result, Tensor) and (same := one_value(input)) is not None:
            count = input.numel if same else 0
            result = Tensor((count, input.rank), "int64", (1, count), _all_places(input.shape))
            self._all[id(result)] = result, input.shape
            return result, True
        if op in ("getitem", "select") and id(input) in self._all and isinstance(result, Tensor):
            column = _column(op, named, input.shape[1])
            if column is not None:
                self._columns[id(result)] = result, self._all[id(input)][1], column
            return result, column is not None
        if id(input) not in self._columns:
            return result, False
        _, shape, axis = self._columns[id(input)]
        if op in UNIQUE and named.get("sorted", True) is True and certain(ge(_others(shape, axis), 1)):
            numbers = Tensor((shape[axis],), "int64", elements=Affine(0, ((-1, 1),)))
            return (numbers, *result[1:]) if isinstance(result, tuple) else numbers, True
        match op, named.get("other"), result:
            case "eq", Tensor(_, "int64", _, Affine(number, ())) | (int() | Term() as number), Tensor():
                self._masks[id(result)] = result, shape, axis, number
                return result, True
        return result, False


def _all_places(shape: Shape) -> Elements:
    """Column k has all indices of dim k."""
    indices = [Index("#0", n, None, ordered=False) for n in shape]
    return Pieces(
        tuple(Piece(sym(i.name), 1, (i,), fixed=((-1, axis),)) for axis, i in enumerate(indices))
    )


def _others(shape: Shape, axis: int) -> Dim:
    return product([n for place, n in enumerate(shape) if place != axis])


def _column(op: str, named: Named, count: Dim) -> int | None:
    index, dim = named["index"], named.get("dim")
    if op == "getitem":
        if not isinstance(index, tuple) or len(index) != 2 or index[0] != Slice():
            return None
        index, dim = index[1], 1
    if type(index) is not int or type(count) is not int or dim not in (1, -1) or not -count <= index < count:
        return None
    return index % count


UNIQUE = frozenset("unique unique2 _unique2".split())
