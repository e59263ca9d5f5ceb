"""The tensors that differ among the rows of `vmap`, and where they lie in memory.

A function under `vmap` runs once, with all rows side by side: a kernel is given tensors with one more dim,
in front if the arguments are mapped along their first, and chooses the layout of its result by all their
strides. So a result may lie otherwise than it would for one row alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import structs

from ...constraints.ir.language import Layout, Tensor, Value
from ...constraints.rules.reach import POINTWISE

_CONTIGUOUS: Final = Layout.CONTIGUOUS
_SPARSE: Final = Layout.COO, Layout.COALESCED, Layout.CSR


class MappedRows:
    """The values of a run that differ among rows, by reference."""

    def __init__(self) -> None:
        self.differing: set[int] = set()
        self._one_by_one: set[int] = set()
        """Those whose rows lie one after the other, without gaps."""

    def taken(self, row: int, source: int, values: Mapping[int, Value], dim: int) -> None:
        """Notes a row, along a dim of the source."""
        self.differing.add(row)
        whole = values.get(source)
        lies_so = isinstance(whole, Tensor) and whole.layout is _CONTIGUOUS and dim == 0
        if lies_so and (source not in self.differing or source in self._one_by_one):
            self._one_by_one.add(row)

    def laid_out(self, op: str, operands: Iterable[tuple[Tensor, int]], result: Value) -> Value:
        """Returns what an operator makes of operands, each with its reference. Where some differ among rows,
        the layout is only that of one row alone if elements are computed one by one, of tensors without gaps.
        """
        given = [*operands]
        if op == "contiguous" or self.differing.isdisjoint(ref for _, ref in given):
            return result
        rows = [(tensor, ref) for tensor, ref in given if ref in self.differing]
        plain = op in POINTWISE and all(tensor.layout is _CONTIGUOUS for tensor, _ in given)
        if plain and all(ref in self._one_by_one for _, ref in rows):
            return result
        return _anywhere(result)

    def computed(
        self, op: str, operands: Iterable[int], results: Iterable[tuple[int, Value | None]], is_view: bool
    ) -> None:
        """Notes the results of a call, each with its reference, as its operands are noted."""
        rows, made = self.differing.intersection(operands), [*results]
        if not rows:
            return
        self.differing.update(ref for ref, _ in made)
        keeps_order = (is_view or op in POINTWISE) and rows <= self._one_by_one
        if keeps_order or op == "contiguous":
            lying = (ref for ref, x in made if isinstance(x, Tensor) and x.layout is _CONTIGUOUS)
            self._one_by_one.update(lying)


def _anywhere(result: Value) -> Value:
    """Returns the result with every layout unknown."""
    if isinstance(result, tuple):
        return tuple(map(_anywhere, result))
    if not isinstance(result, Tensor) or result.layout in _SPARSE:
        return result
    return structs.replace(result, layout=Layout.UNKNOWN)
