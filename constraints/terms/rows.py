"""Rows: any number of dims at one position of a shape, the notation for a tensor of unknown rank.

A row has a name, and knowledge about it consists of ordinary symbols, so that no other module needs to know
rows:

    rank(x)        how many dims the row has
    x[-2], x[0]    its dims, counted from either end
    numel(x[1:])   the product of a slice of it
    equal(x,y)     whether it is related so to another row (relations.py): 1 or 0

A dim that the row is too short for counts as 1, as in broadcasting. Within a shape a row, or a slice of one,
is a single dim, the symbol `x[1:-2]`, whose value is the product of its dims; several that are broadcast to
one are the symbol `x[:]|y[:-1]`. Most rules pass such a dim on as they pass any other (`lifting.py`), and
operators that only count elements need no more than the product. The axioms of the symbols are part of the
domain (`Domain.axioms`), so that beyond them the solver only has to find rows that agree with an example
(`is_possible`).
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
from .parts import Row, RowPart, count, depth, dim_at, rank

DEEPEST: Final = 6
"""The largest rank that is tried where a call needs every dim of a row whose rank has no upper bound."""

MOST: Final = 16
"""Larger ranks are never tried."""

_PART: Final = re.compile(r"([A-Za-z_]\w*)\[(\d*):(?:-(\d+))?\]")
_RANK: Final = re.compile(r"rank\((\w+)\)")
_DIM: Final = re.compile(r"(\w+)\[(-?\d+)\]")
_COUNT: Final = re.compile(r"numel\((\w+)(\[\d*:(?:-\d+)?\])?\)")


class Deeper(BaseException):
    """Raised where more of the rows has to be declared: their dims by symbol, or a largest rank.

    It is no Exception, so that a program's own `except Exception` does not swallow it.
    """

    def __init__(self, symbols: Iterable[str] = (), bounded: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.symbols, self.bounded = tuple(symbols), dict(bounded or {})


def as_dim(row: Row) -> Term:
    """Returns the row as a dim of a shape."""
    return sym("|".join(map(str, row)))


def row_of(dim: Dim) -> Row | None:
    """Returns the row that a dim of a shape represents; None for an ordinary dim."""
    atom = lone_atom(dim)
    return _row(atom.name) if type(atom) is Symbol and ":" in atom.name else None


@lru_cache(maxsize=4096)
def _row(text: str) -> Row | None:
    return (
        tuple(RowPart(n, int(a or 0), int(b or 0)) for n, a, b in _PART.findall(text))
        if _is_row(text)
        else None
    )


def _is_row(name: str) -> bool:
    return ":" in name and "(" not in name


def has_rows(names: Iterable[str]) -> bool:
    """Returns whether one of the symbols is a row in a shape."""
    return any(map(_is_row, names))


@lru_cache(maxsize=4096)
def place_of(shape: tuple[Dim, ...]) -> int | None:
    """Returns the index of the row in a shape; None for a shape of known rank."""
    for place, dim in enumerate(shape):
        if type(dim) is not int and row_of(dim) is not None:
            return place
    return None


def rank_of(shape: tuple[Dim, ...]) -> Dim:
    """Returns the number of dims of a shape, as a dim."""
    place = place_of(shape)
    if place is None:
        return len(shape)
    row = row_of(shape[place])
    assert row is not None
    return maximum(*(part.rank for part in row)) + len(shape) - 1


# ---- what is declared of rows


def names(symbols: Iterable[str]) -> tuple[str, ...]:
    """Returns the rows that symbols declare, in order."""
    return tuple(name for s in symbols if s.startswith("rank(") for name in _spoken_of(s))


@lru_cache(maxsize=1 << 16)
def _spoken_of(symbol: str) -> tuple[str, ...]:
    """Returns the rows that a symbol mentions; several where it relates them."""
    found = _RANK.fullmatch(symbol) or _DIM.fullmatch(symbol) or _COUNT.fullmatch(symbol)
    if found is not None:
        return (found[1],)
    related = relations.relation_of(symbol)
    return () if related is None else tuple(dict.fromkeys(part.name for part in related.parts))


def belongs(symbol: str, rows: Iterable[str]) -> bool:
    """Returns whether the symbol mentions rows, and only these."""
    spoken = _spoken_of(symbol)
    return bool(spoken) and {*spoken} <= {*rows}


def _by_row(symbols: Iterable[str]) -> dict[str, list[str]]:
    """Returns, for each declared row, the symbols that mention it alone."""
    symbols = tuple(symbols)
    found: dict[str, list[str]] = {name: [] for name in names(symbols)}
    for symbol in symbols:
        spoken = _spoken_of(symbol)
        if len(spoken) == 1:
            found.get(spoken[0], []).append(symbol)
    return found


def is_rank(symbol: str) -> bool:
    """Returns whether the symbol is the number of dims of a row."""
    return _RANK.fullmatch(symbol) is not None


def is_relation(symbol: str) -> bool:
    """Returns whether the symbol is a relation between rows."""
    return relations.relation_of(symbol) is not None


def is_dim(symbol: str) -> bool:
    """Returns whether the symbol is a dim of a row, or the product of several."""
    return _DIM.fullmatch(symbol) is not None or _COUNT.fullmatch(symbol) is not None


def _counts(symbols: Iterable[str], name: str) -> tuple[RowPart, ...]:
    matches = (m for s in symbols if _spoken_of(s) == (name,) and (m := _COUNT.fullmatch(s)))
    return tuple((_row(f"{name}{m[2] or '[:]'}") or ())[0] for m in matches)


def deepened(symbols: Iterable[str], wanted: Deeper) -> tuple[str, ...]:
    """Returns the symbols of a domain together with the wanted ones, and with the ranks, dims and products
    that the axioms of either mention.
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
    """Returns the axioms about the symbols of rows, which hold for every input."""
    return _axioms(tuple(symbols))


@lru_cache(maxsize=256)
def _axioms(symbols: tuple[str, ...]) -> tuple[Formula, ...]:
    rows = _by_row(symbols).items()
    alone = chain.from_iterable(_axioms_of(row, *depth(own, row), _counts(own, row)) for row, own in rows)
    return (*alone, *relations.axioms(symbols))


@lru_cache(maxsize=4096)
def _axioms_of(name: str, leading: int, trailing: int, counts: Row) -> tuple[Formula, ...]:
    """Returns the axioms about a row with so many dims that are symbols, from either end, and about the
    products of its parts.
    """
    found = [*_of_dims(name, leading, trailing)]
    for part in counts:
        found += _of_count(part, _inner(part, leading, trailing), leading)
    return tuple(found)


def _inner(part: RowPart, leading: int, trailing: int) -> RowPart:
    """Returns the part without the dims that are symbols."""
    return RowPart(part.name, max(leading, part.start), max(trailing, part.stop))


def _of_dims(name: str, leading: int, trailing: int) -> Iterator[Formula]:
    """Yields axioms: each dim is at least 1, and is 1 where the row is too short; a dim counted from either
    end is the same.
    """
    long = rank(name)
    yield ge(long, 0)
    for index in (*range(leading), *range(-trailing, 0)):
        dim, needed = dim_at(name, index), index + 1 if index >= 0 else -index
        yield ge(dim, 1)
        yield any_of((ge(long, needed), eq(dim, 1)))
    for i in range(leading):
        for j in range(1, trailing + 1):
            yield any_of((ne(long, i + j), eq(dim_at(name, i), dim_at(name, -j))))


def _of_count(part: RowPart, inner: RowPart, leading: int) -> Iterator[Formula]:
    """Yields axioms about the product of a part: it is the product of its dims and of the inner part where
    the row is long enough, else the product of the dims that exist.
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
    """Returns the shape at an assignment, with its row expanded. Unconstrained dims are 2."""
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


def _spelt(part: RowPart, values: Mapping[str, int]) -> list[int]:
    whole = spelt(part.name, values)
    return whole[part.start : max(len(whole) - part.stop, part.start)]


def spelt(name: str, values: Mapping[str, int]) -> list[int]:
    """Returns the dims of a row at an assignment that satisfies its axioms."""
    related = _related(tuple(values.items())) if relations.relations(values) else None
    return _alone(name, values) if related is None else [*related[name]]


def _alone(name: str, values: Mapping[str, int], free: int = 2) -> list[int]:
    """Returns the dims of a row, ignoring its relations to others. Unconstrained dims are `free`."""
    long = values[f"rank({name})"]
    leading, trailing = depth(values, name)
    found = [free] * long
    if long > leading + trailing:
        inner = values.get(str(count(RowPart(name, leading, trailing))))
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
    """Returns the dims of all rows at an assignment, with the relations that it asserts; None where none are
    found.
    """
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
    """Returns whether rows of these dims agree with the assignment."""
    return all(values[name] == value for name, value in assignment(values, rows).items() if name in values)


def _fixed(name: str, values: Mapping[str, int]) -> frozenset[int]:
    """Returns those indices of a row whose dims have a value in the assignment."""
    long = values[f"rank({name})"]
    leading, trailing = depth(values, name)
    return frozenset((*range(min(leading, long)), *range(max(long - trailing, 0), long)))


def is_possible(values: Mapping[str, int]) -> bool:
    """Returns whether rows exist that agree with an assignment, provided it names all rows that it relates.

    Axioms already ensure this for the symbols of each single row.
    """
    about = {name for r in relations.relations(values) for name in _spoken_of(str(r))}
    if not about or not all(_is_named(name, values) for name in about | {*names(values)}):
        return True
    return _related(tuple(values.items())) is not None


def _is_named(name: str, values: Mapping[str, int]) -> bool:
    """Returns whether an assignment names the rank of a row and all dims up to the deepest one that it names.
    """
    leading, trailing = depth(values, name)
    dims = (dim_at(name, i) for i in (*range(leading), *range(-trailing, 0)))
    return all(str(symbol) in values for symbol in (rank(name), *dims))


def assignment(symbols: Iterable[str], rows: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Returns the values of the symbols of rows, where the rows have these dims."""
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
    """Returns an assignment, made from any, in which all symbols of a row agree.

    Contradicting values are changed, and so are ranks beyond those that torch's kernels take.
    """
    ranks = {f"rank({name})": min(max(values[f"rank({name})"], 0), MOST) for name in names(symbols)}
    rows = {name: _alone(name, {**values, **ranks}) for name in names(symbols)}
    return {**values, **assignment(symbols, rows)}


def legible(values: Mapping[str, int]) -> Iterator[str]:
    """Yields an assignment as people write it: `b=2`, and `x=[2, 512]` for a row."""
    rows = names(values)
    yield from (f"{name}={value}" for name, value in values.items() if not belongs(name, rows))
    yield from (f"{name}={spelt(name, values)}" for name in rows)


def mentioned(formulas: Iterable[Formula]) -> frozenset[str]:
    """Returns the symbols of formulas."""
    return frozenset().union(*map(free_symbols, formulas))
