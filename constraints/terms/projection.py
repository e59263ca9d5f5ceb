"""Projection: the knowledge that remains when a symbol is forgotten.

By Fourier and Motzkin: from `l <= a*s` and `b*s <= u` with a, b > 0 remains `b*l <= a*u`. Over the rationals
the two imply no more about the other symbols, and over the integers they imply it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from .dims import Dim
from .forall import affine
from .formula import Compare, Formula, free_symbols, ge

MANY: Final = 32
"""If more parts than these mention the symbol, all of them are dropped."""


def forgetting(parts: Iterable[Formula], names: Collection[str]) -> tuple[Formula, ...]:
    """Returns consequences, without these symbols, of the parts, which all hold.

    They may be weaker than the parts.
    """
    known = dict.fromkeys(parts)
    for name in sorted(names):
        about = [part for part in known if name in free_symbols(part)]
        less = _without(about, name) if len(about) <= MANY else ()
        known = dict.fromkeys((*(part for part in known if name not in free_symbols(part)), *less))
    return tuple(known)


def _without(parts: Iterable[Formula], name: str) -> Iterator[Formula]:
    lower: list[tuple[int, Dim]] = []  # a*name + c >= 0
    upper: list[tuple[int, Dim]] = []  # -b*name + d >= 0
    for part in parts:
        if not isinstance(part, Compare) or part.op == "!=" or (split := affine(part.term, name)) is None:
            continue
        a, c = split
        for slope, rest in ((a, c), (-a, -c)) if part.op == "==" else ((a, c),):
            if isinstance(slope, int) and slope:
                lower.append((slope, rest)) if slope > 0 else upper.append((-slope, rest))
    for a, c in lower:
        for b, d in upper:
            yield ge(b * c + a * d, 0)
