"""Numbers modulo another: for casts to narrow integers, for `%`, for masks of low bits.

`arange(a, b + 1)` as 8 bits goes on from 127 at -128. Where a and b are in one cycle, all numbers are shifted
by the same amount; where they are not, the result begins with numbers up to 127 and ends with numbers from
-128 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from math import gcd
from typing import Final

from ...ir.language import Index, Piece
from ...terms.dims import Apply, Dim, Term, maximum, minimum, substitute, symbols
from ...terms.formula import Formula, all_of, any_of, ge, lt, negate
from .functions import AtLeast, corners, number, symbol_of

LONGEST: Final = 1 << 16
"""A cycle is examined number by number only if it has at most this many numbers."""
FEW: Final = 4
"""A progression is split into at most this many pieces."""


def modulo(piece: Piece, least: int, count: Dim, at_least: AtLeast) -> list[Piece] | None:
    """Returns the numbers from `least` to `least + count - 1` that are equal to these modulo `count`, which
    is positive; None where the extremes of these are not known.

    Let these lie from a to b, and a between m + k*count and the next such number. If b does, too, all are
    less by k*count. Else consecutive numbers give all numbers if they are at least `count` many, or else
    those up to b's and those from a's on.
    """
    term = number(piece)
    if not piece.indices and piece.doubt is False:
        return [replace(piece, term=(term - least) % count + least)]
    ends = corners(term, piece.indices, at_least)
    if ends is None:
        return None
    low, high = minimum(*ends[0]), maximum(*ends[1])
    one = high if isinstance(high, int) and not isinstance(low, int) else low
    cycle = (one - least) // count * count
    """Where the cycle begins that the end `one` lies in, less `least`."""
    last = least + count - 1
    bounds = ((low - cycle, least, ge), (last, high - cycle, ge))
    same = all_of(law(a, b) for a, b, law in bounds if not at_least(a - b, 0))
    doubt = all_of((piece.doubt, any_of((ge(high, piece.least), ge(-piece.least, low)))))
    sure = replace(piece, given=all_of((piece.given, negate(doubt))), doubt=False, least=0)
    within = replace(sure, term=term - cycle, given=all_of((sure.given, same)))
    beyond = replace(sure, given=all_of((sure.given, negate(same))))
    doubtful = replace(piece, given=all_of((piece.given, doubt)), doubt=False, least=0)
    found = (
        within,
        *_around(beyond, low, high, cycle, least, count),
        *_rounded(doubtful, low, high, piece.least, least, count),
    )
    return [p for p in found if p.given is not False]


def _rounded(piece: Piece, low: Dim, high: Dim, held: int, least: int, count: Dim) -> Iterator[Piece]:
    """Yields the pieces of numbers that floats represent up to one that is `held`, and round beyond.

    If the numbers are consecutive from one on, and those that are represented are at least `count` many, all
    occur.
    """
    if piece.given is False:
        return
    known = next((abs(end) for end in (low, high) if isinstance(end, int)), held)
    whole = is_run(piece) and isinstance(count, int) and held - known >= count
    index = Index("#0", count, None, ordered=False)
    yield replace(piece, term=least + symbol_of(index), indices=(index,), attained=whole)


def _around(piece: Piece, low: Dim, high: Dim, cycle: Dim, least: int, count: Dim) -> Iterator[Piece]:
    """Yields the pieces of numbers that lie in two cycles or more.

    If fewer than `count` numbers do, it is two, and the cycle of one end, a number, is next to the other's.
    """
    if is_run(piece):
        whole, last = ge(high - low, count - 1), least + count - 1
        first, end = (low - least) % count + least, (high - least) % count + least
        if isinstance(low, int):
            end = high - cycle - count
        elif isinstance(high, int):
            first = low - cycle + count
        if first == least:  # two cycles have all of the first
            yield _run(piece, least, last, True)
            return
        yield _run(piece, least, last, whole)
        yield _run(piece, least, end, negate(whole))
        yield _run(piece, first, last, negate(whole))
        return
    step = step_of(piece)
    found = None if step is None or not isinstance(count, int) else _records(low, high, step, least, count)
    size = (high - low) // (step or 1) + 1
    for first, after, lowest, highest in found or ():
        given = all_of((ge(size, first), *([] if after is None else [lt(size, after)])))
        yield _extremes(piece, lowest, highest, given)
    if found is None:
        yield replace(_extremes(piece, least, least + count - 1, True), attained=False)
        if step is not None and isinstance(count, int):
            yield from (
                replace(piece, term=end, indices=(), doubt=piece.given, least=abs(end) - step + 1)
                for end in (least, least + count - 1)
                if abs(end) > step + 1
            )


def _run(piece: Piece, low: Dim, high: Dim, given: Formula) -> Piece:
    index = Index("#0", high - low + 1, None, ordered=False)
    return replace(
        piece, term=low + symbol_of(index), indices=(index,), given=all_of((piece.given, given))
    )


def _extremes(piece: Piece, low: Dim, high: Dim, given: Formula) -> Piece:
    return two_ends(replace(piece, given=all_of((piece.given, given))), low, high)


def two_ends(piece: Piece, low: Dim, high: Dim) -> Piece:
    """Returns integers with these as the least and the greatest."""
    if low == high:
        return replace(piece, term=low, over=1, indices=())
    index = Index("#0", high - low + 1, None, ordered=False, dense=False)
    return replace(piece, term=low + symbol_of(index), over=1, indices=(index,))


def step_of(piece: Piece) -> int | None:
    """Returns the distance of each number from the next, if that is known; else None."""
    names = {index.name for index in piece.indices}
    term = number(piece)
    terms = term.terms if isinstance(term, Term) else ()
    step = gcd(*(c for mono, c in terms if any(names & atom.symbols for atom in mono)))
    if step == 0:
        return None
    same = substitute(term, dict.fromkeys(names, 0))
    by_one = (term - same) // step
    return step if by_one * step == term - same and is_run(replace(piece, term=by_one)) else None


def _records(
    low: Dim, high: Dim, step: int, least: int, count: int
) -> list[tuple[int, int | None, int, int]] | None:
    """Returns rows `(from, upto, least, greatest)`: the extremes modulo `count` of at least `from` and fewer
    than `upto` numbers (None: any number), once they lie in two cycles.

    The numbers start from the least one, or from the greatest if only that is a number. None where the rows
    are too many.
    """
    length = count // gcd(step, count)
    first, step = (low, step) if isinstance(low, int) else (high, -step)
    if length > LONGEST or not isinstance(first, int):
        return None
    cycle = (first - least) // count
    seen: list[tuple[int, int, int]] = []
    lowest, highest = least + count, least - 1
    for place in range(length + 1):
        at = (first + place * step - least) % count + least
        lowest, highest = min(lowest, at), max(highest, at)
        if (first + place * step - least) // count != cycle:
            seen.append((place + 1, lowest, highest))
    starts = [next(same) for _, same in groupby(seen, key=lambda s: s[1:])]
    ends = [*(start for start, _, _ in starts[1:]), None]
    found = [(start, end, low, high) for (start, low, high), end in zip(starts, ends, strict=True)]
    return found if len(found) <= FEW else None


def is_run(piece: Piece) -> bool:
    """Returns whether the values are integers without a gap, and all values occur."""
    return piece.over == 1 and piece.attained and _is_dense(piece.term, piece.indices)


def _is_dense(term: Dim | None, indices: tuple[Index, ...]) -> bool:
    """Returns whether the term takes integers without gaps, as sums and differences of indices do, and their
    quotients and bounds by terms without indices.
    """
    names = {index.name for index in indices}
    if not isinstance(term, Term) or not all(i.dense for i in indices if i.name in symbols(term)):
        return False
    varying = [mono for mono, _ in term.terms if any(names & atom.symbols for atom in mono)]
    atoms = {atom for mono in varying for atom in mono if names & atom.symbols}
    if not any(isinstance(atom, Apply) for atom in atoms):
        return bool(varying) and _is_positional(term, [i for i in indices if i.name in symbols(term)])
    (atom, *others) = atoms
    if others or not isinstance(atom, Apply) or atom.op not in ("//", "min", "max"):
        return False
    if [(mono, abs(c)) for mono, c in term.terms if mono in varying] != [((atom,), 1)]:
        return False
    inner = [arg for arg in atom.args if names & symbols(arg)]
    return len(inner) == 1 and (atom.op != "//" or inner[0] == atom.args[0]) and _is_dense(inner[0], indices)


def _is_positional(term: Term, indices: list[Index]) -> bool:
    """Returns whether a sum of multiples of indices has no gaps: each factor is 1, or at most one more than
    the greatest sum of those before it, as it is for the digits of a number.
    """
    reach: Dim = 0
    left = {i.name: i for i in indices}
    zero = dict.fromkeys(left, 0)
    factors = {name: substitute(term, {**zero, name: 1}) - substitute(term, zero) for name in left}
    linear = sum((factors[name] * symbol_of(i) for name, i in left.items()), start=substitute(term, zero))
    if linear - term != 0:
        return False
    while left:
        sides = ((name, side * factors[name]) for name in left for side in (1, -1))
        found = next(((name, c) for name, c in sides if c == 1 or reach + 1 - c in (0, 1)), None)
        if found is None:
            return False
        reach = reach + found[1] * (left.pop(found[0]).size - 1)
    return True
