"""Elements as functions of indices: where their extremes lie, and arithmetic on them.

An element is `term / over`, a term over sizes and over indices that run from 0 (`language.Piece`). An affine
function is stored as `Affine`, one known by its ends alone as `Span`. A function that rises with an index, or
falls, or is linear in it, has its extremes at the two ends of that index, whatever the others are; so the
extremes over a box of indices are among its corners. In this way `rel[x.argsort()]` gives the condition `q <=
R`, and Swin's table of relative positions its closed condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, count
from typing import Final, TypeAlias

from ...ir.language import Index, Near, Piece, Pieces
from ...terms.dims import (
    Apply,
    Dim,
    Mono,
    Symbol,
    Term,
    exponential,
    lone,
    maximum,
    minimum,
    rounded,
    square_root,
    substitute,
    symbols,
)
from ...terms.formula import And, Compare, Formula, all_of, any_of, disjuncts, ge, negate

AtLeast: TypeAlias = Callable[[Dim, int], bool]
"""Returns whether a dim is certainly at least a number."""
Corners: TypeAlias = tuple[tuple[Dim, ...], tuple[Dim, ...]]
"""Values that include the least one, and values that include the greatest one; all of them occur."""

MOST_PIECES: Final = 20
INFINITY: Final = 1 << 200
"""Stands for infinity among numbers that a half holds."""
MOST_CORNERS: Final = 16
UNKNOWN: Final = Piece(None)


def index_name(axis: int) -> str:
    """Returns the name of the index that runs along an axis, counted from the end.

    No symbol of a user has such a name.
    """
    return f"#{-axis}"


def along(axis: int, size: Dim) -> Index:
    return Index(index_name(axis), size, axis)


def number(piece: Piece) -> Term | int:
    """Returns the term of a piece, which is known."""
    assert piece.term is not None
    return piece.term


def nearest_even(n: Dim, d: Dim) -> Dim:
    """Returns n/d rounded half to even: r = floor(n/d + 1/2), less one where n/d + 1/2 is an integer, and
    odd.

    For an odd number d it is no integer. For d = 2*h a remainder of h is enough for the next multiple where
    floor(n/d) is odd, and one more is needed where it is even.
    """
    if isinstance(d, int):
        return (2 * n + d) // (2 * d) if d % 2 else (n + d // 2 - 1 + n // d % 2) // d
    up, rest = (2 * n + d) // (2 * d), (2 * n + d) % (2 * d)
    return up - (1 - minimum(1, rest)) * (up % 2)


# --- extremes --------------------------------------------------------------------------------------------


def corners(term: Dim, indices: Sequence[Index], at_least: AtLeast) -> Corners | None:
    """Returns values of the term that include its extremes, where each index has at least one value; None
    where they are not found.
    """
    found = _corners(term, indices, at_least)
    if found is None:
        return None
    lows, highs = (tuple(dict.fromkeys(side)) for side in found)
    return (lows, highs) if len(lows) + len(highs) <= MOST_CORNERS else None


def _corners(term: Dim, indices: Sequence[Index], at_least: AtLeast) -> Corners | None:
    within = symbols(term)
    live = [index for index in indices if index.name in within]
    if not live:
        return (term,), (term,)
    for index in live:
        way = _direction(term, index, live, at_least)
        if way is None:
            continue
        first, last = (substitute(term, {index.name: end}) for end in (0, index.size - 1))
        at_first, at_last = _corners(first, live, at_least), _corners(last, live, at_least)
        if at_first is None or at_last is None:
            return None
        if way == 0:
            return at_first[0] + at_last[0], at_first[1] + at_last[1]
        return (at_first[0], at_last[1]) if way > 0 else (at_last[0], at_first[1])
    return _of_outer(term, live, at_least)


def _of_outer(term: Dim, live: Sequence[Index], at_least: AtLeast) -> Corners | None:
    """Returns the corners of `c*f(inner) + rest` for an increasing function f, such as a quotient by a term
    without indices: they are those of the inner term.
    """
    assert isinstance(term, Term)
    names = {index.name for index in live}
    inside = [(mono, c) for mono, c in term.terms if any(names & atom.symbols for atom in mono)]
    if len(inside) != 1 or len(inside[0][0]) != 1:
        return None
    ((atom,), factor) = inside[0]
    if not isinstance(atom, Apply) or not _is_rising(atom, names, at_least):
        return None
    rest = term - factor * lone(atom)
    varying = [place for place, arg in enumerate(atom.args) if symbols(arg) & names]
    at = varying[0]
    one = len(varying) == 1
    found = _corners(atom.args[at], live, at_least) if one else _of_distance(atom, live, at_least)
    if found is None:
        return None

    def outer(inner: Dim) -> Dim:
        value = _apply(atom.op, (*atom.args[:at], inner, *atom.args[at + 1 :])) if one else inner
        return factor * value + rest

    lows, highs = (tuple(map(outer, side)) for side in found)
    return (lows, highs) if factor > 0 else (highs, lows)


def _of_distance(atom: Apply, live: Sequence[Index], at_least: AtLeast) -> Corners | None:
    """Returns the corners of `|t|` for a sum t of indices that takes all integers between its ends a and b:
    the greatest value is that of -a and b, and the least that of a, -b and 0.
    """
    if atom.op != "max" or len(atom.args) != 2 or atom.args[0] + atom.args[1] != 0:
        return None
    inner, steps = atom.args[0], {i.name: i.dense for i in live}
    varying = [
        (mono, c)
        for mono, c in (inner.terms if isinstance(inner, Term) else ())
        if any(steps.keys() & atom.symbols for atom in mono)
    ]
    if not all(steps.values()) or any(
        abs(c) != 1 or len(mono) > 1 or not isinstance(mono[0], Symbol) for mono, c in varying
    ):
        return None
    found = _corners(inner, live, at_least)
    if found is None:
        return None
    low, high = minimum(*found[0]), maximum(*found[1])
    return (maximum(low, -high, 0),), (maximum(high, -low),)


def _apply(op: str, args: tuple[Dim, ...]) -> Dim:
    match op:
        case "min":
            return minimum(*args)
        case "max":
            return maximum(*args)
        case "isqrt":
            return square_root(*args)
        case "rounded":
            return rounded(*args)
        case "**":
            return exponential(*args)
    dividend, divisor = args
    return dividend // divisor


def _is_rising(atom: Apply, names: set[str], at_least: AtLeast) -> bool:
    """Returns whether the application does not fall when an argument with an index in it rises."""
    if atom.op in ("min", "max", "isqrt", "rounded", "**"):
        return True
    return atom.op == "//" and not symbols(atom.args[1]) & names and at_least(atom.args[1], 1)


def _direction(term: Dim, index: Index, live: Sequence[Index], at_least: AtLeast) -> int | None:
    """Returns 1 where the term does not fall as the index rises, whatever the others are, -1 where it does
    not rise, 0 where the others decide which of the two holds along the whole index; None where that is not
    known.
    """
    assert isinstance(term, Term)
    if _is_linear(term, index.name):
        slope = substitute(term, {index.name: 1}) - substitute(term, {index.name: 0})
        if _is_never_negative(slope, live, at_least):
            return 1
        return -1 if _is_never_negative(-slope, live, at_least) else 0
    ways = {_of_product(mono, c, index, live, at_least) for mono, c in term.terms if _speaks_of(mono, index)}
    return ways.pop() if len(ways) == 1 else None


def _speaks_of(mono: Mono, index: Index) -> bool:
    return any(index.name in atom.symbols for atom in mono)


def _is_linear(term: Term, name: str) -> bool:
    return all(
        sum(name in atom.symbols for atom in mono) <= 1
        and all(isinstance(atom, Symbol) or name not in atom.symbols for atom in mono)
        for mono, _ in term.terms
    )


def _of_product(
    mono: Mono, factor: int, index: Index, live: Sequence[Index], at_least: AtLeast
) -> int | None:
    """Returns the direction of a product of non-negative factors, which rises where all with the index in
    them do.
    """
    ways = {_of_atom(atom, index, live, at_least) for atom in mono if index.name in atom.symbols}
    others = [atom for atom in mono if len(mono) > 1 or index.name not in atom.symbols]
    if len(ways) != 1 or not all(_is_never_negative(lone(atom), live, at_least) for atom in others):
        return None
    way = ways.pop()
    return None if way is None else way if factor > 0 else -way


def _of_atom(atom: Symbol | Apply, index: Index, live: Sequence[Index], at_least: AtLeast) -> int | None:
    if isinstance(atom, Symbol):
        return 1
    if not _is_rising(atom, {index.name}, at_least):
        return None
    within = [arg for arg in atom.args if index.name in symbols(arg)]
    ways = {_direction(arg, index, live, at_least) for arg in within}
    way = ways.pop() if len(ways) == 1 else None
    return way or None


def _is_never_negative(term: Dim, live: Sequence[Index], at_least: AtLeast) -> bool:
    found = _corners(term, live, at_least)
    return found is not None and all(at_least(low, 0) for low in found[0])


# --- one function out of two -----------------------------------------------------------------------------


Operation: TypeAlias = Callable[[Piece, Piece], "tuple[Dim, Dim] | None"]
"""Returns the term and the divisor of a result, for two pieces that share their indices."""
Reach: TypeAlias = Callable[[int, Piece], int]
"""Returns a lower bound of the result's size where one operand is so large a number, or its negative, and the
other is this piece: 0 where it is not known.
"""
Nearness: TypeAlias = Callable[[tuple[Dim, Dim], Piece, Piece], Near]
"""Returns where a result, before it is rounded, is near this fraction, which is made from two pieces."""


def combined(
    a: Pieces,
    b: Pieces,
    operation: Operation,
    reach: Reach = lambda least, other: 0,
    *,
    apart: bool = False,
    near: Nearness | None = None,
) -> Pieces | None:
    """Returns elements computed from those of two tensors at the same indices, both of the result's shape.
    Where the two are known to vary along different axes, all pairs of their elements meet (`apart`), unless
    the same data may choose both.

    Elements in doubt stay so next to an operand that takes large numbers to numbers at least as large as its
    `reach` says, and where they are `near` what they are computed to be.
    """
    keeping = near is not None
    a, b = _within_reach(a, b, reach, keeping), _within_reach(b, a, reach, keeping)
    parts = [[*known(side)] for side in (a, b)]
    several = [not is_partition(side) for side in (a, b)]
    pieces: list[Piece] = []
    for left in parts[0]:
        for right in parts[1]:
            one, other, meet = aligned(left, right)
            if one is None or other is None:
                continue
            if (found := operation(one, other)) is None:
                return None
            loose = (several[0] and bool(other.indices or several[1])) or (several[1] and bool(one.indices))
            met = (apart and not (a.by_data and b.by_data)) or (meet and not loose)
            pieces.append(
                Piece(
                    found[0],
                    found[1],
                    _used(found[0], one.indices, other.indices),
                    all_of((left.given, right.given)),
                    one.attained and other.attained and met,
                    tuple(dict.fromkeys((*one.fixed, *other.fixed))),
                    any_of((left.doubt, right.doubt)),
                    max(left.least, right.least),
                    near=near and near(found, left, right),
                )
            )
    unknown = any_of(p.given for p in (*a.pieces, *b.pieces) if p.term is None)
    together = gathered(
        pieces, unknown, a.by_data or b.by_data, a.roundings + b.roundings, a.slack or b.slack
    )
    return together and replace(together, and_data=a.and_data or b.and_data)


def _within_reach(pieces: Pieces, others: Pieces, reach: Reach, keeping: bool) -> Pieces:
    """Returns the pieces, with lower bounds of the size of elements in doubt next to the others; `keeping`
    those that are near what they are computed to be, if there are no such bounds.
    """
    if all(p.doubt is False for p in pieces.pieces):
        return pieces
    left = [min((reach(p.least, q) for q in known(others)), default=0) for p in pieces.pieces]
    if any(n < 2 and p.doubt is not False for n, p in zip(left, pieces.pieces, strict=True)):
        return settled(pieces, keeping=keeping)
    return replace(
        pieces, pieces=tuple(replace(p, least=n) for n, p in zip(left, pieces.pieces, strict=True))
    )


def is_near(piece: Piece) -> Formula:
    """Returns the sizes at which numbers in doubt differ by less than 1 from what they are computed to be."""
    near = piece.near
    return near.where if near is not None and (near.term, near.over) == (piece.term, piece.over) else False


def gathered(
    pieces: Sequence[Piece], unknown: Formula, by_data: bool, roundings: int, slack: bool
) -> Pieces | None:
    """Returns those pieces that have elements at some sizes, with an unknown piece at the sizes in `unknown`;
    None where they are too many.
    """
    pieces = [replace(p, given=given) for p in pieces if (given := tightest(p.given)) is not False]
    if len(pieces) > MOST_PIECES:
        return None
    unknown = any_of(map(tightest, disjuncts(unknown)))
    more = () if unknown is False else (Piece(None, given=unknown),)
    return Pieces((*dict.fromkeys(map(renamed, pieces)), *more), by_data, roundings, slack)


def tightest(formula: Formula) -> Formula:
    """Returns the formula with only the tightest of several bounds of a term, in the order of its parts, and
    False where two bounds exclude each other, as `n <= 4` and `n >= 6` do: with v >= a and -v >= b it holds
    that a + b <= 0.
    """
    if not isinstance(formula, And):
        return formula
    bounds: dict[Dim, int] = {}
    kept: dict[Dim | Formula, Formula] = {}
    for part in formula.parts:
        if not isinstance(part, Compare) or part.op != ">=":
            kept[part] = part
            continue
        least = -next((factor for mono, factor in part.term.terms if not mono), 0)
        varying = part.term + least
        bounds[varying] = max(bounds.get(varying, least), least)
        kept[varying] = ge(varying, bounds[varying])
    if any(least + bounds.get(-1 * term, -least) > 0 for term, least in bounds.items()):
        return False
    return all_of(kept.values())


def _used(term: Dim, *groups: tuple[Index, ...]) -> tuple[Index, ...]:
    """Returns the indices that the term contains, and those that share an axis with one, as its digits do."""
    within = symbols(term)
    indices = tuple(dict.fromkeys(i for group in groups for i in group))
    axes = {i.axis for i in indices if i.name in within and i.axis is not None}
    return tuple(i for i in indices if i.name in within or i.axis in axes)


def is_partition(pieces: Pieces) -> bool:
    """Returns whether no two known pieces share an index of the tensor and sizes."""
    return all(_are_apart(p, q) for p, q in combinations(known(pieces), 2))


def _are_apart(p: Piece, q: Piece) -> bool:
    """Returns whether the two pieces lie at different indices of an axis, or at different sizes."""
    places = dict(p.fixed)
    if any(places.get(axis, place) != place for axis, place in q.fixed):
        return True
    return _exclude(p.given, q.given) or _exclude(q.given, p.given)


def are_exclusive(pieces: Pieces) -> bool:
    """Returns whether at any sizes a single piece describes all elements."""
    return all(
        _exclude(p.given, q.given) or _exclude(q.given, p.given) for p, q in combinations(pieces.pieces, 2)
    )


def _exclude(f: Formula, g: Formula) -> bool:
    """Returns whether a part of the first formula contradicts a part of the second."""
    parts = parts_of(g)
    return tightest(all_of((f, g))) is False or any(
        all(negate(part) in parts for part in disjuncts(one)) for one in parts_of(f)
    )


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, And) else (formula,)


def aligned(a: Piece, b: Piece) -> tuple[Piece | None, Piece | None, bool]:
    """Returns the two with the same indices where they run along the same axis, and whether all pairs of
    their values occur; None for both where they lie at different indices of an axis.
    """
    places = dict(a.fixed)
    if any(places.get(axis, place) != place for axis, place in b.fixed):
        return None, None, False
    for axis, place in b.fixed:
        a = _at(a, axis, place)
    for axis, place in places.items():
        b = _at(b, axis, place)
    b = renamed(b, {i.name for i in a.indices})
    meet = not any(
        p.indices and any(i.axis is None for i in other.indices) for p, other in ((a, b), (b, a))
    )
    axes = {i.axis for i in a.indices if i.axis is not None} & {i.axis for i in b.indices}
    for axis in sorted(axis for axis in axes if axis is not None):
        mine, yours = ([i for i in p.indices if i.axis == axis] for p in (a, b))
        if not all(i.ordered for i in (*mine, *yours)):
            meet = False
        elif [i.size for i in mine] == [i.size for i in yours]:
            b = _exchanged(b, {j.name: i for i, j in zip(mine, yours, strict=True)})
        elif len(mine) == 1 and _count(yours) == mine[0].size:
            a = _split(a, mine[0], yours)
        elif len(yours) == 1 and _count(mine) == yours[0].size:
            b = _split(b, yours[0], mine)
        else:
            meet = False
    return a, b, meet


def renamed(piece: Piece, taken: Collection[str] = ()) -> Piece:
    """Returns the piece with other names for its indices, in their order, none of them taken."""
    names = (name for n in count() if (name := f"#{n}") not in taken)
    given = zip(piece.indices, names, strict=False)
    return _exchanged(piece, {i.name: replace(i, name=name) for i, name in given})


def _exchanged(piece: Piece, new: Mapping[str, Index]) -> Piece:
    if all(i.name not in new or new[i.name].name == i.name for i in piece.indices):
        return piece
    names = {old: symbol_of(i) for old, i in new.items()}
    once = piece.once and (substitute(piece.once[0], names), piece.once[1])
    near = piece.near and replace(piece.near, term=substitute(piece.near.term, names))
    indices = tuple(new.get(i.name, i) for i in piece.indices)
    return replace(piece, term=substitute(number(piece), names), indices=indices, once=once, near=near)


def symbol_of(index: Index) -> Term:
    return lone(Symbol(index.name))


def _count(indices: Sequence[Index]) -> Dim:
    total: Dim = 1
    for index in indices:
        total = total * index.size
    return total


def _split(piece: Piece, index: Index, parts: Sequence[Index]) -> Piece:
    """Returns the piece with several indices, where the last one runs fastest, in place of one."""
    value: Dim = 0
    for part in parts:
        value = value * part.size + symbol_of(part)
    others = tuple(i for i in piece.indices if i is not index)
    return replace(piece, term=substitute(number(piece), {index.name: value}), indices=(*others, *parts))


def _at(piece: Piece, axis: int, place: int) -> Piece:
    """Returns the piece at one index of an axis; an element in no known order may be any."""
    if axis in dict(piece.fixed):
        return piece
    there = [i for i in piece.indices if i.axis in (axis, None)]
    if not there:
        return piece
    if len(there) == 1 and there[0].ordered and there[0].axis == axis:
        return without(piece, {there[0].name: place})
    return replace(
        piece, indices=tuple(replace(i, axis=None, ordered=False) for i in piece.indices), attained=False
    )


def without(piece: Piece, values: dict[str, Dim]) -> Piece:
    """Returns the piece where some of its indices have these values, which are terms over others of its
    indices.
    """
    term = substitute(number(piece), values)
    return replace(piece, term=term, indices=tuple(i for i in piece.indices if i.name not in values))


def settled(pieces: Pieces, *, keeping: bool = False) -> Pieces:
    """Returns the pieces with elements in doubt made unknown, but for those of a range that are small, and,
    with `keeping`, for those that are near what they are computed to be.
    """
    if all(p.doubt is False for p in pieces.pieces):
        return pieces
    found: list[Piece] = []
    for piece in pieces.pieces:
        if isinstance(piece.term, int) and abs(piece.term) < piece.least:
            piece = replace(piece, doubt=False, least=0)
        if keeping and piece.doubt is not False and (near := is_near(piece)) is not False:
            found.append(Piece(None, given=all_of((piece.given, piece.doubt, negate(near)))))
            given = all_of((piece.given, any_of((negate(piece.doubt), near))))
            piece = replace(piece, given=given, least=0)
        elif piece.doubt is not False:
            given = all_of((piece.given, piece.doubt))
            found += [replace(small, given=given) for small in _small(piece)]
            found.append(Piece(None, given=given))
            piece = replace(piece, given=all_of((piece.given, negate(piece.doubt))), doubt=False, least=0)
        found.append(piece)
    return replace(pieces, pieces=tuple(found))


def _small(piece: Piece) -> Iterator[Piece]:
    """Yields the numbers of a range in doubt, from an end that is a number up to the first one that is
    rounded.
    """
    if len(piece.indices) != 1 or piece.over != 1 or not (piece.attained and piece.indices[0].dense):
        return
    ((index,), term) = piece.indices, number(piece)
    first, last = (substitute(term, {index.name: end}) for end in (0, index.size - 1))
    by = substitute(term, {index.name: 1}) - first
    if by not in (1, -1) or term - first - by * symbol_of(index) != 0:
        return
    for end, way in ((first, by), (last, -1 * by)):
        if isinstance(end, int) and isinstance(way, int) and abs(end) < piece.least:
            few = Index(index.name, piece.least - way * end, None, ordered=False)
            small = replace(piece, term=end + way * symbol_of(few), indices=(few,))
            yield replace(small, doubt=False, least=0)
            return


def mapped(
    pieces: Pieces, change: Callable[[Piece], Piece | None], *, keeping: bool = False
) -> Pieces | None:
    """Returns every known piece, changed; None where one cannot be.

    Elements in doubt become unknown, unless the change leaves all numbers about as large as they are
    (`keeping`).
    """
    found: list[Piece] = []
    for piece in (pieces if keeping else settled(pieces)).pieces:
        changed = piece if piece.term is None else change(piece)
        if changed is None:
            return None
        found.append(changed)
    return replace(pieces, pieces=tuple(found))


def divided(pieces: Pieces, law: Callable[[Piece], list[Piece] | None]) -> Pieces | None:
    """Returns every known piece of integers as several others; None where one cannot be.

    The law handles elements in doubt.
    """
    found: list[Piece] = []
    for piece in pieces.pieces:
        parts = [piece] if piece.term is None else None if piece.over != 1 else law(piece)
        if parts is None:
            return None
        found += parts
    kept = [replace(p, near=None) for p in found if p.term is not None]
    unknown = any_of(p.given for p in found if p.term is None)
    held = gathered(kept, unknown, pieces.by_data, pieces.roundings, pieces.slack)
    return held and replace(held, and_data=pieces.and_data)


def is_infinite(piece: Piece) -> bool:
    """Returns whether a piece of halves is infinity, or was computed from it."""
    term, over = piece.term, piece.over
    return isinstance(term, int) and isinstance(over, int) and 2 * abs(term) > INFINITY * over


def finite(pieces: Pieces) -> Pieces:
    """Returns the pieces with unknown ones in place of infinity."""
    if not any(map(is_infinite, pieces.pieces)):
        return pieces
    some = (replace(p, term=None) if is_infinite(p) else p for p in pieces.pieces)
    return replace(pieces, pieces=tuple(some))


def known(pieces: Pieces) -> Iterator[Piece]:
    return (piece for piece in pieces.pieces if piece.term is not None)
