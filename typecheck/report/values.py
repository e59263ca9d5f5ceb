"""The values of a program in a report: a tensor by its dtype and symbolic sizes, all else by its text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...constraints.ir.language import Dynamic, Number, Tensor, Value
from ...constraints.terms.dims import Dim, symbols
from ...constraints.terms.parts import dim_at, rank
from ...constraints.terms.rows import assignment, row_of, sizes


@dataclass(frozen=True, slots=True)
class SymbolicValue:
    """A value with symbolic sizes; `str` writes it for people, as in `float32[a, b - 1]`."""

    text: str
    """The value as people write it."""
    dtype: str | None = None
    """torch's name without the prefix, such as `float32`; None if it is not known, or this is no tensor."""
    dims: tuple[Dim, ...] | None = None
    """The sizes of a tensor, each an integer or a term over symbols; None if this is no tensor."""

    def at(self, **values: int | Sequence[int]) -> tuple[int, ...]:
        """The sizes of the tensor at these values of its symbols; a row takes all of its sizes, `x=(2, 512)`.

        Raises TypeError if this is no tensor, or if one of its symbols has no value.
        """
        if self.dims is None:
            raise TypeError(f"{self.text} is not a tensor, so it has no sizes")
        whole = {name: value for name, value in values.items() if not isinstance(value, int)}
        used = frozenset().union(*map(symbols, self.dims))
        every = (str(dim_at(name, i)) for name, row in whole.items() for i in range(-len(row), 0))
        known = {name: value for name, value in values.items() if isinstance(value, int)}
        known |= assignment((*used, *every), whole)
        if missing := sorted(name for dim in self.dims for name in _needed(dim) - known.keys()):
            raise TypeError(f"no value for {', '.join(dict.fromkeys(missing))}")
        return sizes(self.dims, known)

    def with_sizes(self, change: Callable[[Dim], Dim]) -> SymbolicValue:
        """Returns the value with every size of the tensor changed; itself if this is no tensor."""
        changed = None if self.dims is None else tuple(map(change, self.dims))
        if changed is None or changed == self.dims:
            return self
        return symbolic(Tensor(changed, self.dtype))

    def __str__(self) -> str:
        return self.text


def _needed(dim: Dim) -> frozenset[str]:
    """The symbols without which a size has no value; a row needs at least its rank."""
    row = row_of(dim)
    return symbols(dim) if row is None else frozenset(str(rank(part.name)) for part in row)


def symbolic(value: Value) -> SymbolicValue:
    """A value of a program as it stands in a report."""
    if isinstance(value, Tensor):
        return SymbolicValue(readable(value), value.dtype, value.shape)
    return SymbolicValue(readable(value))


def readable(value: Value) -> str:
    """A value as people write it."""
    if isinstance(value, Dynamic):
        return "?"
    if isinstance(value, Number):
        return value.kind
    if isinstance(value, tuple):
        return f"({', '.join(map(readable, value))})"
    return str(value) if not isinstance(value, Tensor) or value.dtype else f"tensor{value}"
