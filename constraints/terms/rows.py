"""Rows: any number of dims at one place of a shape, which is how a tensor of unknown rank is written.

A row has a name, and what is known of it are ordinary symbols, so that nothing else has to know about rows:

    rank(x)        how many dims the row has
    x[-2], x[0]    its dims, counted from either end
    numel(x[1:])   the product of a slice of it
    equal(x,y)     whether it is related so to another row (relations.py): 1 or 0

A dim that the row is too short for counts as 1, as in broadcasting. Within a shape a row, or a slice of one,
stands as a single dim that is the symbol `x[1:-2]`, whose value is the product of what it stands for; several
that are broadcast to one stand there as `x[:]|y[:-1]`. Most rules pass such a dim on as they pass any other
(`lifting.py`), and what takes a tensor apart by its number of elements needs no more than the product.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Final

from . import relations
from .dims import Dim, Symbol, Term, evaluate, lone_atom, maximum, sym
from .formula import Formula, any_of, eq, free_symbols, ge, le, ne
from .parts import Part, Row, count, depth, dim_at, rank

DEEPEST: Final = 6
"""The largest rank that is looked at where a call needs every dim of a row that has no largest rank."""

MOST: Final = 16
"""A larger rank is not tried out."""

_PART: Final = re.compile(r"([A-Za-z_]\w*)\[(\d*):(?:-(\d+))?\]")
_RANK: Final = re.compile(r"rank\((\w+)\)")
_DIM: Final = re.compile(r"(\w+)\[(-?\d+)\]")
_COUNT: Final = re.compile(r"numel\((\w+)(\[\d*:(?:-\d+)?\])?\)")


class Deeper(BaseException):
    """More of the rows has to be declared than was: their dims by symbol, or a largest rank. Not an
    Exception, for a program's own `except Exception` must not swallow it.
    """

    def __init__(self, symbols: Iterable[str] = (), bounded: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.symbols, self.bounded = tuple(symbols), dict(bounded or {})


def as_dim(row: Row) -> Term:
    """The row as it stands in a shape."""
    return sym("|".join(map(str, row)))


def row_of(dim: Dim) -> Row | None:
    """The row that a dim of a shape stands for; None for a dim that is just one."""
    atom = lone_atom(dim)
    return _row(atom.name) if type(atom) is Symbol and ":" in atom.name else None


@lru_cache(maxsize=4096)
def _row(text: str) -> Row | None:
    return (
        tuple(Part(n, int(a or 0), int(b or 0)) for n, a, b in _PART.findall(text)) if _is_row(text) else None
    )


def _is_row(name: str) -> bool:
    return ":" in name and "(" not in name


def has_rows(names: Iterable[str]) -> bool:
    """Is one of the symbols a row that stands in a shape?"""
    return any(map(_is_row, names))


@lru_cache(maxsize=4096)
def place_of(shape: tuple[Dim, ...]) -> int | None:
    """Where the row stands in a shape; None in a shape of known rank."""
    for place, dim in enumerate(shape):
        if type(dim) is not int and row_of(dim) is not None:
            return place
    return None


def rank_of(shape: tuple[Dim, ...]) -> Dim:
    """How many dims a shape has, as a dim."""
    place = place_of(shape)
    if place is None:
        return len(shape)
    row = row_of(shape[place])
    assert row is not None
    return maximum(*(part.rank for part in row)) + len(shape) - 1


# ---- what is declared of rows


def names(symbols: Iterable[str]) -> tuple[str, ...]:
    """The rows that symbols declare, in order."""
    return tuple(name for s in symbols if s.startswith("rank(") for name in _spoken_of(s))


@lru_cache(maxsize=1 << 16)
def _spoken_of(symbol: str) -> tuple[str, ...]:
    """The rows that a symbol speaks of; of several where it relates them."""
    found = _RANK.fullmatch(symbol) or _DIM.fullmatch(symbol) or _COUNT.fullmatch(symbol)
    if found is not None:
        return (found[1],)
    related = relations.relation_of(symbol)
    return () if related is None else tuple(dict.fromkeys(part.name for part in related.parts))


def belongs(symbol: str, rows: Iterable[str]) -> bool:
    """Does the symbol speak of these rows, and of no others?"""
    spoken = _spoken_of(symbol)
    return bool(spoken) and {*spoken} <= {*rows}


def _by_row(symbols: Iterable[str]) -> dict[str, list[str]]:
    """The symbols that speak of each row that is declared, and of it alone."""
    symbols = tuple(symbols)
    found: dict[str, list[str]] = {name: [] for name in names(symbols)}
    for symbol in symbols:
        spoken = _spoken_of(symbol)
        if len(spoken) == 1:
            found.get(spoken[0], []).append(symbol)
    return found


def is_rank(symbol: str) -> bool:
    """Is the symbol the number of dims of a row?"""
    return _RANK.fullmatch(symbol) is not None


def is_relation(symbol: str) -> bool:
    """Does the symbol say how rows are related?"""
    return relations.relation_of(symbol) is not None


def is_dim(symbol: str) -> bool:
    """Is the symbol a dim of a row, or the product of several?"""
    return _DIM.fullmatch(symbol) is not None or _COUNT.fullmatch(symbol) is not None


def _counts(symbols: Iterable[str], name: str) -> tuple[Part, ...]:
    matches = (m for s in symbols if _spoken_of(s) == (name,) and (m := _COUNT.fullmatch(s)))
    return tuple((_row(f"{name}{m[2] or '[:]'}") or ())[0] for m in matches)


def deepened(symbols: Iterable[str], wanted: Deeper) -> tuple[str, ...]:
    """The symbols of a domain with those that are wanted, and with the ranks, dims and products that the
    axioms of either speak of.
    """
    known = dict.fromkeys(symbols)
    known |= dict.fromkeys(s for s in wanted.symbols if relations.relation_of(s) is not None)
    for name, own in _by_row((*known, *wanted.symbols)).items():
        leading, trailing = depth(own, name)
        for index in (*range(leading), *range(-trailing, 0)):
            known[str(dim_at(name, index))] = None
        for part in _counts(own, name):
            known |= dict.fromkeys(map(str, (count(part), count(_inner(part, leading, trailing)))))
    relations.deepened(known)
    return tuple(known)


def axioms(symbols: Iterable[str]) -> tuple[Formula, ...]:
    """What holds of the symbols of rows whatever the input."""
    return _axioms(tuple(symbols))


@lru_cache(maxsize=256)
def _axioms(symbols: tuple[str, ...]) -> tuple[Formula, ...]:
    rows = _by_row(symbols).items()
    alone = chain.from_iterable(_axioms_of(row, *depth(own, row), _counts(own, row)) for row, own in rows)
    return (*alone, *relations.axioms(symbols))


@lru_cache(maxsize=4096)
def _axioms_of(name: str, leading: int, trailing: int, counts: Row) -> tuple[Formula, ...]:
    """What holds of a row of which so many dims are symbols, from either end, and the products of parts."""
    found = [*_of_dims(name, leading, trailing)]
    for part in counts:
        found += _of_count(part, _inner(part, leading, trailing), leading)
    return tuple(found)


def _inner(part: Part, leading: int, trailing: int) -> Part:
    """What is left of a part without the dims that are symbols."""
    return Part(part.name, max(leading, part.start), max(trailing, part.stop))


def _of_dims(name: str, leading: int, trailing: int) -> Iterator[Formula]:
    """Each dim is at least 1, and 1 where there is none; two that are the same from either end are equal."""
    long = rank(name)
    yield ge(long, 0)
    for index in (*range(leading), *range(-trailing, 0)):
        dim, needed = dim_at(name, index), index + 1 if index >= 0 else -index
        yield ge(dim, 1)
        yield any_of((ge(long, needed), eq(dim, 1)))
    for i in range(leading):
        for j in range(1, trailing + 1):
            yield any_of((ne(long, i + j), eq(dim_at(name, i), dim_at(name, -j))))


def _of_count(part: Part, inner: Part, leading: int) -> Iterator[Formula]:
    """The product of a part is that of its dims and of the inner part, where the row is long enough; else
    that of the dims that there are.
    """
    long, name = rank(part.name), part.name
    cut = inner.start + inner.stop
    yield ge(count(inner), 1)
    yield any_of((ge(long, cut + 1), eq(count(inner), 1)))
    if inner == part:
        return
    yield ge(count(part), 1)
    outer = [*range(part.start, inner.start), *range(-inner.stop, -part.stop)]
    yield any_of(
        (le(long, cut - 1), eq(count(part), prod([count(inner), *(dim_at(name, i) for i in outer)])))
    )
    for n in range(cut):
        dims = [dim_at(name, i if i < leading else i - n) for i in range(part.start, n - part.stop)]
        yield any_of((ne(long, n), eq(count(part), prod(dims))))


# ---- at concrete sizes


def sizes(shape: tuple[Dim, ...], values: Mapping[str, int]) -> tuple[int, ...]:
    """A shape at an assignment, its row spelt out. Dims that nothing speaks of are 2."""
    found: list[int] = []
    for dim in shape:
        row = row_of(dim)
        if row is None:
            found.append(evaluate(dim, values))
        else:
            found += _broadcast([_spelt(part, values) for part in row])
    return tuple(found)


def _broadcast(shapes: list[list[int]]) -> list[int]:
    longest = max(map(len, shapes))
    padded = [[1] * (longest - len(s)) + s for s in shapes]
    return [next((n for n in column if n != 1), 1) for column in zip(*padded, strict=True)]


def _spelt(part: Part, values: Mapping[str, int]) -> list[int]:
    whole = spelt(part.name, values)
    return whole[part.start : max(len(whole) - part.stop, part.start)]


def spelt(name: str, values: Mapping[str, int]) -> list[int]:
    """The dims of a row at an assignment that meets its axioms."""
    related = _related(tuple(values.items())) if relations.relations(values) else None
    return _alone(name, values) if related is None else [*related[name]]


def _alone(name: str, values: Mapping[str, int], free: int = 2) -> list[int]:
    """The dims of a row whose relation to others does not matter. Those that nothing speaks of are `free`."""
    long = values[f"rank({name})"]
    leading, trailing = depth(values, name)
    found = [free] * long
    if long > leading + trailing:
        inner = values.get(str(count(Part(name, leading, trailing))))
        if inner is not None:
            found[leading : long - trailing] = [inner] + [1] * (long - leading - trailing - 1)
    for i in range(long):
        if i < leading:
            found[i] = values[f"{name}[{i}]"]
        if long - i <= trailing:
            found[i] = values[f"{name}[{i - long}]"]
    return found


@lru_cache(maxsize=256)
def _related(values: tuple[tuple[str, int], ...]) -> Mapping[str, Sequence[int]] | None:
    """The dims of all rows at an assignment, related as it says; None where none are found."""
    at = dict(values)
    for free in (2, 1):
        rows = {name: _alone(name, at, free) for name in names(at)}
        if _are(rows, at):
            return rows
    fixed = {name: _fixed(name, at) for name in rows}
    wanted = [(r, bool(at[str(r)])) for r in relations.relations(at)]
    found = relations.arranged(rows, fixed, wanted, lambda rows: _are(rows, at))
    return found


def _are(rows: Mapping[str, Sequence[int]], values: Mapping[str, int]) -> bool:
    """Do rows of these dims make the assignment?"""
    return all(values[name] == value for name, value in assignment(values, rows).items() if name in values)


def _fixed(name: str, values: Mapping[str, int]) -> frozenset[int]:
    """The places of a row whose dims an assignment names."""
    long = values[f"rank({name})"]
    leading, trailing = depth(values, name)
    return frozenset((*range(min(leading, long)), *range(max(long - trailing, 0), long)))


def is_possible(values: Mapping[str, int]) -> bool:
    """Are there rows that are as an assignment says, where it names all that it speaks of? Of what speaks of
    each row alone, axioms see to that.
    """
    about = {name for r in relations.relations(values) for name in _spoken_of(str(r))}
    if not about or not all(_is_named(name, values) for name in about | {*names(values)}):
        return True
    return _related(tuple(values.items())) is not None


def _is_named(name: str, values: Mapping[str, int]) -> bool:
    """Does an assignment name the rank of a row and all dims up to those that it names?"""
    leading, trailing = depth(values, name)
    dims = (dim_at(name, i) for i in (*range(leading), *range(-trailing, 0)))
    return all(str(symbol) in values for symbol in (rank(name), *dims))


def assignment(symbols: Iterable[str], rows: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """What the symbols of rows say where the rows have these dims."""
    symbols, made = tuple(symbols), {}
    for name, dims in rows.items():
        long = len(dims)
        leading, trailing = depth(symbols, name)
        made[f"rank({name})"] = long
        made |= {f"{name}[{i}]": dims[i] if i < long else 1 for i in range(leading)}
        made |= {f"{name}[{-j}]": dims[-j] if j <= long else 1 for j in range(1, trailing + 1)}
        for part in _counts(symbols, name):
            made[str(count(part))] = prod(dims[part.start : max(long - part.stop, part.start)])
    for related in relations.relations(symbols):
        if {part.name for part in related.parts} <= rows.keys():
            made[str(related)] = int(relations.is_true(related, rows))
    return made


def consistent(symbols: Iterable[str], values: Mapping[str, int]) -> dict[str, int]:
    """An assignment in which all symbols of a row say the same, made from any: what contradicts gives way,
    and so do ranks beyond those that torch's kernels take.
    """
    ranks = {f"rank({name})": min(max(values[f"rank({name})"], 0), MOST) for name in names(symbols)}
    rows = {name: _alone(name, {**values, **ranks}) for name in names(symbols)}
    return {**values, **assignment(symbols, rows)}


def legible(values: Mapping[str, int]) -> Iterator[str]:
    """An assignment as people write it: `b=2`, and `x=[2, 512]` of a row."""
    rows = names(values)
    yield from (f"{name}={value}" for name, value in values.items() if not belongs(name, rows))
    yield from (f"{name}={spelt(name, values)}" for name in rows)


def mentioned(formulas: Iterable[Formula]) -> frozenset[str]:
    """The symbols of formulas."""
    return frozenset().union(*map(free_symbols, formulas))
