"""Numbers that the data decide, of which it is known that they are valid as indices.

Indices that come from the user's data are taken to be valid (`following.py`). A program that makes room
for as many as the greatest of them says, `zeros(int(ids.max()) + 1)`, takes an element for a size: what is
known of the indices is known of the size. An index into n elements lies between 0 and n - 1, or between -n
and n - 1 where it may count from the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..dims import Dim, Term, symbols
from ..formula import Formula, all_of, any_of, ge, le
from ..language import Tensor, Value
from .counts import REARRANGING
from .dtypes import INTEGRAL
from .indices import INDICES

Named = Mapping[str, Any]


class Valid:
    """Tensors of integers, by identity, with the data that their elements are."""

    def __init__(self) -> None:
        self._data: dict[int, tuple[Tensor, Tensor]] = {}
        """Each with the tensor all of whose elements it has, and no others, unless it has none."""
        self._extreme: dict[int, tuple[Tensor, Tensor, str]] = {}
        """Each with the tensor of which it is the greatest element, or the least."""
        self._numbers: dict[tuple[int, str], Term] = {}
        """The extreme elements of a tensor that have become numbers."""
        self._uses: dict[int, list[tuple[Tensor, Dim, bool]]] = {}
        """What is indexed by the elements of a tensor: the index, a size, and whether it may count from the
        end.
        """

    def clear(self) -> None:
        """Integers were written, no matter where."""
        for kept in (self._data, self._extreme, self._numbers, self._uses):
            kept.clear()

    def forget(self, left: frozenset[str]) -> None:
        """Numbers that the data decide are gone but for these."""
        self._numbers = {key: number for key, number in self._numbers.items() if symbols(number) <= left}

    def follow(self, op: str, named: Named, result: Value) -> None:
        """Remembers where the elements of a result come from."""
        input = named.get("input")
        if not isinstance(input, Tensor) or not isinstance(result, Tensor) or input.elements is not None:
            return
        if input.dtype not in INTEGRAL or result.dtype != input.dtype:
            return
        if op in REARRANGING or op in REPEATING:
            self._data[id(result)] = result, self._source(input)
        elif op in EXTREMES and result.rank == 0 and not isinstance(named.get("dim"), Tensor):
            self._extreme[id(result)] = result, self._source(input), EXTREMES[op]

    def _source(self, tensor: Tensor) -> Tensor:
        return self._data.get(id(tensor), (tensor, tensor))[1]

    def number(self, tensor: Tensor) -> Term | None:
        """The number that the tensor holds, if it is an extreme element that has become a number before."""
        found = self._extreme.get(id(tensor))
        return found and self._numbers.get((id(found[1]), found[2]))

    def made(self, tensor: Tensor, number: Term) -> Formula:
        """The one element of the tensor is this number from here on; what follows from its uses so far."""
        found = self._extreme.get(id(tensor))
        if found is None:
            return True
        _, source, which = found
        self._numbers[id(source), which] = number
        return all_of(_within(number, *use) for use in self._uses.get(id(source), ()))

    def used(self, op: str, named: Named) -> Iterator[tuple[Term, Formula]]:
        """The numbers among the indices of a call, each with what follows."""
        indices = INDICES.get(op)
        for use in () if indices is None else indices(named):
            source = self._source(use[0])
            if source.elements is None and source.dtype in INTEGRAL:
                self._uses.setdefault(id(source), []).append(use)
                self._data.setdefault(id(source), (source, source))
                for which in ("greatest", "least"):
                    if (number := self._numbers.get((id(source), which))) is not None:
                        yield number, _within(number, *use)


def _within(number: Term, index: Tensor, size: Dim, wraps: bool) -> Formula:
    """An element of the index, if there is one, is valid for the size."""
    none = (le(n, 0) for n in index.shape)
    return any_of((*none, all_of((ge(number, -size if wraps else 0), le(number, size - 1)))))


EXTREMES: Final = {"amax": "greatest", "max": "greatest", "amin": "least", "min": "least"}
REPEATING: Final = frozenset("expand expand_as broadcast_to repeat tile repeat_interleave flip roll".split())
"""What has the same elements, some of them several times, or no elements at all."""
