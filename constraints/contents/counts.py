"""How many elements of one mask are true, where those of another say it.

A program counts the true elements of each row, and lays as many side by side in front of each row of another
mask: `arange(counts.max()) < counts[:, None]` has as many as the first. What picks from the one and writes
through the other has to know. So a tensor made of a mask remembers of which, as long as nothing is written
into masks and integers: another tensor may be a view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ..dims import Dim, Term, symbols
from ..formula import Formula, all_of, any_of, eq, ge, le
from ..language import Affine, Context, Tensor, Value
from .masks import one_value
from .values import extremes

Named = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Count:
    """The elements of a tensor, none of them negative, sum up to as much as the mask has true ones, or to
    what is left `of` so many. Tensors that share it have the same elements, in some order.
    """

    mask: Tensor
    of: Dim | None = None


class Counts:
    """Tensors, by identity, with what their elements sum up to."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[Tensor, Count]] = {}
        self._greatest: dict[Count, Term] = {}

    def clear(self) -> None:
        """Something was written, no matter where."""
        self._counts.clear()
        self._greatest.clear()

    def forget(self, left: frozenset[str]) -> None:
        """Numbers that the data decide are gone but for these."""
        self._greatest = {count: most for count, most in self._greatest.items() if symbols(most) <= left}

    def of(self, tensor: Tensor) -> Count | None:
        """A mask of which no other says anything counts its own."""
        found = self._counts.get(id(tensor))
        if found is not None:
            return found[1]
        return Count(tensor) if tensor.dtype == "bool" else None

    def follow(self, c: Context, op: str, named: Named, result: Value) -> tuple[Value, bool]:
        """The result of a call, and whether its count is remembered."""
        if not isinstance(result, Tensor) or result.dtype not in COUNTED:
            return result, False
        if op in EXTREMES and result.rank == 0:
            return self._with_greatest(c, op, named, result)
        found = self._count(op, named, result)
        if found is not None:
            self._counts[id(result)] = result, found
        return result, found is not None

    def _count(self, op: str, named: Named, result: Tensor) -> Count | None:
        input, other = named.get("input"), named.get("other")
        if not isinstance(input, Tensor):
            return None
        same = result.dtype == input.dtype
        if op in REARRANGING:
            cast = result.dtype != "bool" and op != "view"  # `x.view(dtype)` reads other elements
            return self.of(input) if same or cast else None
        if op == "sum":
            found = self.of(input) if result.dtype != "bool" else None
            return found and Count(found.mask, found.of)
        if op in NEGATING or (op == "eq" and one_value(other) == 0):
            whole = input.dtype == "bool" and result.shape == input.shape
            found = self.of(input) if whole else None
            return None if found is None else Count(found.mask, input.numel if found.of is None else None)
        if op in ("lt", "gt") and isinstance(other, Tensor):
            places, counts = (input, other) if op == "lt" else (other, input)
            return self._laid_out(places, counts, result)
        return None

    def _laid_out(self, places: Tensor, counts: Tensor, result: Tensor) -> Count | None:
        """`[m]`, `[*b, 1] -> [*b, m]`: of places 0 to m - 1 in each row those below its count. A row has as
        many as its count, since m is the greatest of them.
        """
        found = self.of(counts)
        if found is None or counts.dtype == "bool" or places.elements != Affine(0, ((-1, 1),)):
            return None
        most = self._greatest.get(found)
        fits = places.shape == (most,) and counts.shape[-1:] == (1,)
        return found if fits and most is not None and result.shape == (*counts.shape[:-1], most) else None

    def _with_greatest(self, c: Context, op: str, named: Named, result: Tensor) -> tuple[Value, bool]:
        """The greatest count is a number that the data decides, of the same counts the same."""
        input, dim = named.get("input"), named.get("dim")
        found = self.of(input) if isinstance(input, Tensor) and input.dtype != "bool" else None
        if found is None or not isinstance(input, Tensor) or isinstance(dim, Tensor):
            return result, False
        most = self._greatest.get(found)
        if most is None:
            span, total = extremes(input), c.trues(found.mask)
            if found.of is not None:
                total = found.of - total
            most = c.fresh("most", 0, None if span is None else span.high, partial(_among, total))
            self._greatest[found] = most
        return Tensor(result.shape, result.dtype, result.layout, Affine(most)), True


def _among(total: Dim, most: Term) -> Formula:
    """The greatest of several numbers is no more than their sum, and 0 only where that is 0."""
    return all_of((le(most, total), any_of((ge(most, 1), eq(total, 0)))))


COUNTED: Final = frozenset("int32 int64 bool".split())
EXTREMES: Final = frozenset("amax max".split())
NEGATING: Final = frozenset("logical_not bitwise_not".split())
REARRANGING: Final = frozenset(
    "to _to_copy type long int bool clone contiguous detach alias lift_fresh_copy cpu unsqueeze squeeze view "
    "reshape view_as reshape_as flatten unflatten ravel transpose permute t T mT".split()
)
"""What leaves the elements as they are, in some order."""
