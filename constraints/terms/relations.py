"""Relations between rows, dim by dim, whatever their length: the requirements of broadcasting, concatenation
and indexing on tensors of unknown rank, as symbols that are 1 or 0.

    broadcast(x,y,z[:-1])   dims at the same index from the end are equal, or all but one of them are 1
    equal(x[1:],y[1:])      the same dims
    expands(x,y)            x has no more dims than y, and each is 1, or that of y
    within(x,y)             as many dims, and none of x is larger than that of y

No row has to be expanded for that. Once single dims of the rows are symbols, a relation is equivalent to the
law of these dims together with the relation of the rest: `broadcast(x,y)` is `broadcast(x[:-1],y[:-1])` where
`x[-1]` and `y[-1]` are equal or one is 1. A dim that a row is too short for counts as 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product, zip_longest
from typing import Final, TypeAlias

from .dims import Dim, Term, sym
from .formula import Formula, all_of, any_of, eq, ge, le, ne, negate
from .parts import Row, RowPart, count, depth, dim_at, known_dim, rank

_RELATION: Final = re.compile(r"(broadcast|equal|expands|within)\((.*)\)")
_PART: Final = re.compile(r"(\w+)(?:\[(\d*):(?:-(\d+))?\])?")

TRIES: Final = 64
"""At most this many combinations of rows are tried."""

CASES: Final = 4
"""Cases distinguish at most this many dims between the ends, by which of them are symbols."""


@dataclass(frozen=True, slots=True)
class _RelationLaw:
    """The law of a relation, for two dims at the same index and for the ranks of two parts."""

    dims: Callable[[Dim, Dim], Formula]
    ranks: Callable[[Dim, Dim], Formula]
    differs: Callable[[Dim | None, Dim | None], Formula]
    """A condition under which it may fail for two dims; a dim about which nothing is known is None."""


def _broadcast(a: Dim, b: Dim) -> Formula:
    return any_of((eq(a, 1), eq(b, 1), eq(a, b)))


def _apart(a: Dim | None, b: Dim | None) -> Formula:
    if a is None or b is None:
        return all_of(ne(d, 1) for d in (a, b) if d is not None)
    return negate(_broadcast(a, b))


_LAWS: Final[Mapping[str, _RelationLaw]] = {
    "broadcast": _RelationLaw(_broadcast, lambda a, b: True, _apart),
    "equal": _RelationLaw(eq, eq, lambda a, b: True if a is None or b is None else ne(a, b)),
    "expands": _RelationLaw(
        lambda a, b: any_of((eq(a, 1), eq(a, b))),
        le,
        lambda a, b: a is None or (ne(a, 1) if b is None else all_of((ne(a, 1), ne(a, b)))),
    ),
    "within": _RelationLaw(le, eq, lambda a, b: a is None or (ne(a, 1) if b is None else ge(a, b + 1))),
}

_IMPLIED: Final = {
    "broadcast": ("broadcast",),
    "equal": ("equal", "broadcast", "expands", "within"),
    "expands": ("expands", "broadcast"),
    "within": ("within",),
}
"""For each relation, the relations of the same parts that it implies."""

_SYMMETRIC: Final = ("broadcast", "equal")


@dataclass(frozen=True, slots=True)
class Relation:
    kind: str
    parts: Row

    def __str__(self) -> str:
        return f"{self.kind}({','.join(part.short for part in self.parts)})"

    @property
    def truth(self) -> Term:
        return sym(str(self))

    @property
    def holds(self) -> Formula:
        return eq(self.truth, 1)

    def behind(self, number: int) -> Relation:
        """Returns the same relation of the parts without so many of their last dims."""
        return Relation(self.kind, tuple(replace(part, stop=part.stop + number) for part in self.parts))


def relation(kind: str, *parts: RowPart) -> Relation:
    """Returns the relation of these parts, sorted where their order does not matter."""
    return Relation(kind, tuple(sorted({*parts})) if kind in _SYMMETRIC else parts)


@lru_cache(maxsize=1 << 14)
def relation_of(symbol: str) -> Relation | None:
    """Returns the relation that a symbol asserts, or None."""
    found = _RELATION.fullmatch(symbol)
    if found is None:
        return None
    parts = (match for text in found[2].split(",") if (match := _PART.fullmatch(text)) is not None)
    return Relation(found[1], tuple(RowPart(m[1], int(m[2] or 0), int(m[3] or 0)) for m in parts))


Depths: TypeAlias = Mapping[str, tuple[int, int]]
"""The number of dims of each row that are symbols, from either end."""


def depths_of(symbols: Collection[str]) -> Depths:
    return {part.name: depth(symbols, part.name) for r in relations(symbols) for part in r.parts}


def relations(symbols: Iterable[str]) -> list[Relation]:
    """Returns the relations among symbols."""
    return [found for s in symbols if s[-1:] == ")" and (found := relation_of(s)) is not None]


# ---- what is declared of them


def deepened(symbols: dict[str, None]) -> None:
    """Adds, where last dims of rows are symbols, the relations of the dims before them."""
    depths = depths_of(symbols)
    for r in relations(symbols):
        symbols[str(r.behind(_looked_at(r, depths)))] = None


def _looked_at(r: Relation, depths: Depths) -> int:
    """Returns how many dims, from the end, are symbols in all parts."""
    return max(min(depths[part.name][1] - part.stop for part in r.parts), 0)


def axioms(symbols: Collection[str]) -> Iterator[Formula]:
    """Yields axioms about the relations among symbols, which hold for all rows."""
    found = relations(symbols)
    if not found:
        return
    known, depths = frozenset(symbols), depths_of(symbols)
    for r in found:
        yield from _of_one(r, known, depths, [s for s in found if s.kind == r.kind])
        for other in found:
            if other != r and r.kind in _IMPLIED[other.kind] and _shift(other, r) is not None:
                yield _implies(other.holds, r.holds)
    for same in (r for r in found if r.kind == "equal"):
        yield from _of_equals(same, found, known)


def _implies(a: Formula, b: Formula) -> Formula:
    return any_of((negate(a), b))


def _of_one(
    r: Relation, known: frozenset[str], depths: Depths, alike: Sequence[Relation]
) -> Iterator[Formula]:
    """Yields axioms about one relation: it holds exactly where its law holds for the dims that are symbols,
    and the relation of the rest holds.
    """
    law, number = _LAWS[r.kind], _looked_at(r, depths)
    yield ge(r.truth, 0)
    yield le(r.truth, 1)
    fewer = [s for s in alike if len(s.parts) < len(r.parts) and _shift(s, r, within=True) is not None]
    covered = {pair for s in fewer for pair in combinations([p.name for p in s.parts], 2)}
    pairs = [(a, b) for a, b in combinations(r.parts, 2) if (a.name, b.name) not in covered]
    fails: list[Formula] = [negate(s.holds) for s in fewer]
    for a, b in pairs:
        needed = [law.ranks(a.rank, b.rank), *(_at_place(law, a, b, back) for back in range(1, number + 1))]
        fails += map(negate, needed)
        for formula in (*needed, *_implied(r.kind, law, a, b, known)):
            if formula is not True:
                yield _implies(r.holds, formula)
        if not number:
            cases = [*_cases(a, b, known, depths)]
            fails.append(_possibly(r.kind, law, a, b, known, cases))
            for lengths, places in cases:
                both = all_of(law.dims(x, y) for x, y in places if x is not None and y is not None)
                if both is not True:
                    yield any_of((negate(r.holds), negate(lengths), both))
    if number:
        fails.append(negate(r.behind(number).holds))
    yield any_of((r.holds, *fails))


def _at_place(law: _RelationLaw, a: RowPart, b: RowPart, back: int) -> Formula:
    """Returns the law of the dims at one index, for parts that reach so far; a shorter part satisfies it."""
    dims = law.dims(*(dim_at(part.name, -(part.stop + back)) for part in (a, b)))
    return any_of((*(le(rank(p.name), p.start + p.stop + back - 1) for p in (a, b) if p.start), dims))


def _implied(
    kind: str, law: _RelationLaw, a: RowPart, b: RowPart, known: frozenset[str]
) -> Iterator[Formula]:
    """Yields further consequences of a relation: about products, and about dims counted from the other end.
    """
    if kind != "broadcast" and {str(count(a)), str(count(b))} <= known:
        yield (eq if kind == "equal" else le)(count(a), count(b))
    for index in range(CASES) if kind in ("equal", "within") else ():
        dims = [dim_at(p.name, p.start + index) for p in (a, b)]
        if not {*map(str, dims)} <= known:
            break
        yield any_of((le(rank(a.name), a.start + a.stop + index), law.dims(*dims)))


_Places: TypeAlias = "list[tuple[Dim | None, Dim | None]]"


def _possibly(
    kind: str, law: _RelationLaw, a: RowPart, b: RowPart, known: frozenset[str],
    cases: list[tuple[Formula, _Places]],
) -> Formula:
    """Returns the condition under which the law may fail at some index. It cannot where all dims are 1."""
    ways = [all_of((lengths, any_of(law.differs(x, y) for x, y in places))) for lengths, places in cases]
    counts = [ge(count(p), 2) for p in ((a, b) if kind in _SYMMETRIC else (a,)) if str(count(p)) in known]
    some = any_of(counts) if kind == "equal" and len(counts) == 2 else kind == "equal" or all_of(counts)
    return all_of((any_of(ways), some))


def _cases(
    a: RowPart, b: RowPart, known: frozenset[str], depths: Depths
) -> Iterator[tuple[Formula, _Places]]:
    """Yields the lengths that two parts may have, each with the known dims that both have, from the last on.

    The greatest length represents all lengths above it.
    """
    extra = 0
    for part in (a, b):
        leading, trailing = depths[part.name]
        extra += max(leading - part.start, 0) + max(trailing - part.stop, 0)
    most = min(extra, CASES) + 1
    for lengths in product(range(1, most + 1), repeat=2):
        said: list[Formula] = []
        places: list[list[Dim | None]] = []
        for part, length in zip((a, b), lengths, strict=True):
            is_last = length == most
            said.append((ge if is_last else eq)(rank(part.name), part.start + part.stop + length))
            exact = None if is_last else length
            places.append([known_dim(part, n, exact, known) for n in range(1, min(lengths) + 1)])
        yield all_of(said), [*zip(*places, strict=True)]


@lru_cache(maxsize=1 << 14)
def _shift(wide: Relation, r: Relation, within: bool = False) -> int | None:
    """Returns how many of the last dims of the parts of `wide` are not in the parts of `r`, the same number
    in all rows.

    None where `wide` does not cover the parts of `r`, or with `within` those of some rows.
    """
    one, other = {p.name: p for p in wide.parts}, {p.name: p for p in r.parts}
    if len(one) < len(wide.parts) or len(other) < len(r.parts):  # two parts of one row
        return 0 if {*wide.parts} >= {*r.parts} and not within and r.kind in _SYMMETRIC else None
    shared, rest = (one, other) if within else (other, one)
    if not shared.keys() <= rest.keys():
        return None
    if r.kind not in _SYMMETRIC and wide.kind not in _SYMMETRIC and [*one] != [*other]:
        return None
    stops = {other[name].stop - one[name].stop for name in shared}
    starts = {other[name].start - one[name].start for name in shared}
    if len(stops) > 1 or len(starts) > 1 or min(*stops, *starts) < 0:
        return None
    return None if max(starts) and wide.kind != "equal" else min(stops)


def _of_equals(same: Relation, found: Sequence[Relation], known: frozenset[str]) -> Iterator[Formula]:
    """Yields axioms about equal parts: both have the same relations to others."""
    for one, other in (same.parts, same.parts[::-1]):
        for r in found:
            if one in r.parts and r != same:
                swapped = relation(r.kind, *(other if p == one else p for p in r.parts))
                if str(swapped) in known and swapped != r:
                    yield any_of((negate(same.holds), eq(r.truth, swapped.truth)))


# ---- at concrete sizes


def spelt(r: Relation, rows: Mapping[str, Sequence[Dim]]) -> Formula:
    """Returns the law of the relation for rows of these dims."""
    law = _LAWS[r.kind]
    dims = [[*rows[p.name]][p.start : max(len(rows[p.name]) - p.stop, p.start)] for p in r.parts]
    pairs = [*combinations(dims, 2)]
    ranks = [law.ranks(len(a), len(b)) for a, b in pairs]
    places = (place for a, b in pairs for place in zip(reversed(a), reversed(b), strict=False))
    return all_of((*ranks, *(law.dims(*place) for place in places)))


def is_true(r: Relation, rows: Mapping[str, Sequence[int]]) -> bool:
    """Returns whether the relation holds for rows of these dims."""
    if r.kind == "broadcast":  # of many rows: at each place there is one size besides 1
        dims = [[*rows[p.name]][p.start : max(len(rows[p.name]) - p.stop, p.start)] for p in r.parts]
        return all(len({*column} - {1}) < 2 for column in zip_longest(*map(reversed, dims), fillvalue=1))
    return spelt(r, rows) is True


def arranged(
    rows: Mapping[str, Sequence[int]], fixed: Mapping[str, Collection[int]],
    wanted: Sequence[tuple[Relation, bool]], fits: Callable[[Mapping[str, Sequence[int]]], bool],
) -> Mapping[str, Sequence[int]] | None:
    """Returns rows of these ranks, with the fixed dims at their indices, that have the wanted relations and
    fit; None where a few tries find none.
    """
    held = [r for r, holds in wanted if holds]
    broken = [r for r, holds in wanted if not holds]
    tries = 0

    def search(rows: dict[str, list[int]], taken: frozenset[tuple[str, int]]) -> dict[str, list[int]] | None:
        nonlocal tries
        tries += 1
        rows = _settled(rows, lambda name, i: i in fixed[name] or (name, i) in taken, held)
        if fits(rows):
            return rows
        open = next((r for r in broken if is_true(r, rows)), None)
        if open is None or tries > TRIES:
            return None
        for a, b in combinations(open.parts, 2):
            if any(r.kind == open.kind and {a, b} <= {*r.parts} for r in held):
                continue
            long = [range(p.start, max(len(rows[p.name]) - p.stop, p.start)) for p in (a, b)]
            for i, j in zip(reversed(long[0]), reversed(long[1]), strict=False):
                for m, n in ((2, 3), (3, 2), (2, 1), (1, 2)):
                    at = {(a.name, i): m, (b.name, j): n}
                    changed = {name: [*dims] for name, dims in rows.items()}
                    for (name, k), size in at.items():
                        if k not in fixed[name] and (name, k) not in taken:
                            changed[name][k] = size
                    if changed != rows:
                        found = search(changed, taken | at.keys())
                        if found is not None or tries > TRIES:
                            return found
        return None

    return search({name: [*dims] for name, dims in rows.items()}, frozenset())


def _settled(
    rows: Mapping[str, Sequence[int]], is_fixed: Callable[[str, int], bool], held: Sequence[Relation]
) -> dict[str, list[int]]:
    """Returns the rows, with their free dims changed so that relations hold as far as this method can achieve
    it.
    """
    found = {name: [*dims] for name, dims in rows.items()}
    for _ in range(len(held) + 1):
        before = {name: [*dims] for name, dims in found.items()}
        for r in held:
            places = [
                [(p.name, i) for i in reversed(range(p.start, max(len(found[p.name]) - p.stop, p.start)))]
                for p in r.parts
            ]
            for one, other in combinations(places, 2):
                for (a, i), (b, j) in zip(one, other, strict=False):
                    if _LAWS[r.kind].dims(found[a][i], found[b][j]) is not True:
                        if not is_fixed(a, i) and (r.kind != "equal" or is_fixed(b, j)):
                            found[a][i] = found[b][j] if r.kind == "equal" else 1
                        elif not is_fixed(b, j):
                            found[b][j] = 1 if r.kind == "broadcast" else found[a][i]
        if found == before:
            break
    return found
