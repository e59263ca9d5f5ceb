"""Results for single ranks, merged into one where they differ only in the rank.

A path on which `rank(x)` is a number has the dims of the row `x` spelt out, `[x[-3], x[-2], 2*x[-1]]`. A
shape that is `[*x[:-1], 2*x[-1]]` at each of several ranks is reported once, for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from msgspec import structs

from ...constraints.ir.language import Tensor, Value
from ...constraints.ir.system import Domain
from ...constraints.terms.dims import Dim, substitute, symbols
from ...constraints.terms.formula import Formula, conjuncts, free_symbols, holds
from ...constraints.terms.parts import RowPart, dim_at, rank
from ...constraints.terms.rows import MOST, as_dim, row_of

Results: TypeAlias = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class RankResults:
    """The results of a program under a condition, at some ranks of a row."""

    rest: tuple[Formula, ...]
    """The condition, but for what it says of the rank."""
    results: Results
    row: str = ""
    ranks: tuple[int, ...] = ()

    def when(self, domain: Domain) -> str:
        """The condition in words."""
        return " and ".join([*map(str, self.rest), *self._of_rank(domain)])

    def _of_rank(self, domain: Domain) -> Iterator[str]:
        if not self.row:
            return
        name, first, last = str(rank(self.row)), self.ranks[0], self.ranks[-1]
        if first == last:
            yield f"{name} == {first}"
        elif len(self.ranks) == last - first + 1:
            low, high = domain.ranges.get(name, (0, MOST))
            told = (f"{first} <= " if first > low else "") + name + (f" <= {last}" if last < high else "")
            yield from [told] if told != name else []
        else:
            yield f"{name} is one of {', '.join(map(str, self.ranks))}"


def merged(ways: Sequence[tuple[Formula, Results]], domain: Domain) -> list[RankResults]:
    """Returns the results with their conditions, with conditions on ranks shortened and with results that are
    alike at several ranks merged.

    Tensors are compared and reported by shape and dtype alone.
    """
    left = [_way(when, tuple((n, _plain(value)) for n, value in results), domain) for when, results in ways]
    found: list[RankResults] = []
    while left:
        first = left[0]
        alike = [way for way in left if way.row and (way.row, way.rest) == (first.row, first.rest)]
        left = [way for way in left if way is not first and way not in alike]
        alike.sort(key=lambda way: way.ranks)
        found += [first] if not alike else ()
        while alike:
            general, same = _widest(alike)
            found.append(replace(alike[0], results=general, ranks=tuple(way.ranks[0] for way in same)))
            alike = [way for way in alike if way not in same]
    return found


def _widest(ways: list[RankResults]) -> tuple[Results, list[RankResults]]:
    """Returns results in the form of the greatest rank that covers the first of these ranks as well, together
    with all entries that this form covers.

    Without such a form the results of the first rank are returned alone.
    """
    for widest in reversed(ways[1:]):
        general = tuple((name, _general(value, widest)) for name, value in widest.results)
        same = [way for way in ways if _all_at(general, way) == way.results]
        if ways[0] in same:
            return general, same
    return ways[0].results, ways[:1]


def _way(premise: Formula, results: Results, domain: Domain) -> RankResults:
    """A way; where its condition leaves one row a single rank, with that."""
    parts = conjuncts(premise)
    for row in domain.rows:
        name = str(rank(row))
        about = [f for f in parts if free_symbols(f) == {name}]
        low, high = domain.ranges.get(name, (0, MOST))
        limit = int(min(high, MOST))
        possible = [n for n in range(int(max(low, 0)), limit + 1) if all(holds(f, {name: n}) for f in about)]
        if about and len(possible) == 1 and (limit == high or possible[0] < limit):
            return RankResults(tuple(f for f in parts if f not in about), results, row, (possible[0],))
    return RankResults(tuple(parts), results)


def _plain(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return Tensor(value.shape, value.dtype) if isinstance(value, Tensor) else value


def _general(value: Value, way: RankResults) -> Value:
    """Returns the value with the dims that begin the row replaced by a slice of the row."""
    if isinstance(value, tuple):
        return tuple(_general(part, way) for part in value)
    if not isinstance(value, Tensor) or not way.row or any(row_of(d) is not None for d in value.shape):
        return value
    long, shape = way.ranks[0], value.shape
    begins = next((i for i, d in enumerate(shape) if d == dim_at(way.row, -long)), None)
    if long == 0 or begins is None:
        return value
    count = next(
        (n for n, d in enumerate(shape[begins:]) if n >= long or d != dim_at(way.row, n - long)),
        len(shape) - begins,
    )
    part = as_dim((RowPart(way.row, 0, long - count),))
    return structs.replace(value, shape=(*shape[:begins], part, *shape[begins + count :]))


def _all_at(results: Results, way: RankResults) -> Results:
    return tuple((name, _at(value, way)) for name, value in results)


def _at(value: Value, way: RankResults) -> Value:
    """Returns a general value at the rank of one entry. Dims that the row lacks at that rank are 1."""
    if isinstance(value, tuple):
        return tuple(_at(part, way) for part in value)
    if not isinstance(value, Tensor):
        return value
    (long,) = way.ranks
    shape: list[Dim] = []
    for dim in value.shape:
        row = row_of(dim)
        if row is not None:
            shape += [dim_at(way.row, i - long) for i in range(long - row[0].stop)]
        else:
            missing = {str(dim_at(way.row, -i)) for i in range(long + 1, MOST + 1)}
            shape.append(substitute(dim, dict.fromkeys(symbols(dim) & missing, 1)))
    return structs.replace(value, shape=tuple(shape))
