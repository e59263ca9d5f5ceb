"""Parts of rows: slices of any number of dims, which occur in shapes and in the names of symbols (rows.py).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from .dims import Dim, Term, maximum, sym

_DIM: Final = re.compile(r"(\w+)\[(-?\d+)\]")


@dataclass(frozen=True, slots=True, order=True)
class RowPart:
    """The dims of a row from `start` on, without the last `stop` of them; empty if the row is too short."""

    name: str
    start: int = 0
    stop: int = 0

    def __str__(self) -> str:
        return f"{self.name}[{self.start or ''}:{-self.stop or ''}]"

    @property
    def short(self) -> str:
        """Returns the part as the names of symbols write it: for a whole row the name alone."""
        return self.name if self == RowPart(self.name) else str(self)

    @property
    def rank(self) -> Dim:
        cut = self.start + self.stop
        return maximum(rank(self.name) - cut, 0) if cut else rank(self.name)


Row: TypeAlias = tuple[RowPart, ...]
"""Parts of rows, in order, that are broadcast to one another; most often a single part."""


def rank(name: str) -> Term:
    """Returns the symbol that is the number of dims of the row."""
    return sym(f"rank({name})")


def dim_at(name: str, index: int) -> Term:
    """Returns the symbol of one dim of the row; negative indices count from its end, where -1 is the last."""
    return sym(f"{name}[{index}]")


def count(part: RowPart) -> Term:
    """The product of a part of a row, as a symbol of its own."""
    return sym(f"numel({part.short})")


@lru_cache(maxsize=1 << 16)
def _index(symbol: str) -> tuple[str, int] | None:
    found = _DIM.fullmatch(symbol)
    return None if found is None else (found[1], int(found[2]))


def depth(symbols: Iterable[str], name: str) -> tuple[int, int]:
    """Returns how many dims of a row are symbols, from either end."""
    indices = [found[1] for s in symbols if (found := _index(s)) is not None and found[0] == name]
    return max((i + 1 for i in indices if i >= 0), default=0), max((-i for i in indices if i < 0), default=0)


def known_dim(part: RowPart, back: int, length: int | None, symbols: Container[str]) -> Term | None:
    """Returns the symbol of the dim of a part that is `back` dims from its end (1 is the last), or None.

    Where the part is known to have `length` dims, symbols that count from the other end are found, too.
    """
    last = dim_at(part.name, -(part.stop + back))
    if str(last) in symbols:
        return last
    first = None if length is None else dim_at(part.name, part.start + length - back)
    return first if first is not None and str(first) in symbols else None
