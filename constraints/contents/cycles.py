"""Numbers modulo another: of casts to narrow integers, of `%`, of masks of low bits.

`arange(a, b + 1)` as 8 bits goes on from 127 at -128. Where a and b are in one cycle, all numbers are
moved by the same; where they are not, it ends with those from -128 on and begins with those up to 127.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from math import gcd
from typing import Final

from ..ir.language import Index, Piece
from ..terms.dims import Apply, Dim, Term, maximum, minimum, substitute, symbols
from ..terms.formula import Formula, all_of, any_of, ge, lt, negate
from .functions import AtLeast, corners, number, symbol_of

LONGEST: Final = 1 << 16
"""Numbers in a cycle of which one by one is looked at, at most."""
FEW: Final = 4
"""Pieces that a progression falls into, at most."""


def modulo(piece: Piece, least: int, count: Dim, at_least: AtLeast) -> list[Piece] | None:
    """The numbers from `least` to `least + count - 1` that are equal to these modulo `count`, which is
    positive; None where the extremes of these are not known.

    Let these lie from a to b, and a between m + k*count and the next such number. If b does, too, all are
    less by k*count. Else, of numbers that follow each other, all occur if they are so many, or those up to
    b's and those from a's on.
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
        *_around(beyond, low, high, least, count),
        *_rounded(doubtful, low, high, piece.least, least, count),
    )
    return [p for p in found if p.given is not False]


def _rounded(piece: Piece, low: Dim, high: Dim, held: int, least: int, count: Dim) -> Iterator[Piece]:
    """Of numbers that floats hold up to one that is `held`, and round beyond. If they follow each other from
    a number on, and those that are held are so many, all occur.
    """
    if piece.given is False:
        return
    known = next((abs(end) for end in (low, high) if isinstance(end, int)), held)
    whole = is_run(piece) and isinstance(count, int) and held - known >= count
    index = Index("#0", count, None, ordered=False)
    yield replace(piece, term=least + symbol_of(index), indices=(index,), attained=whole)


def _around(piece: Piece, low: Dim, high: Dim, least: int, count: Dim) -> Iterator[Piece]:
    """Of numbers that are in two cycles, or in more."""
    if is_run(piece):
        whole, last = ge(high - low, count - 1), least + count - 1
        first, end = (low - least) % count + least, (high - least) % count + least
        if first == least:  # two cycles have all of the first
            yield _run(piece, least, last, True)
            return
        yield _run(piece, least, last, whole)
        yield _run(piece, least, end, negate(whole))
        yield _run(piece, first, last, negate(whole))
        return
    step = _step(piece)
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
    """Integers of which the least and the greatest are these."""
    if low == high:
        return replace(piece, term=low, over=1, indices=())
    index = Index("#0", high - low + 1, None, ordered=False, dense=False)
    return replace(piece, term=low + symbol_of(index), over=1, indices=(index,))


def _step(piece: Piece) -> int | None:
    """How far each number is from the next, if that is known."""
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
    """From how many numbers on, up to before how many, which are the extremes modulo `count`: of the least,
    or of the greatest, if that is a number, and what follows, once these are in two cycles. None where they
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
    """Whether the values are integers that follow each other without a gap, all of which occur."""
    return piece.over == 1 and piece.attained and _is_dense(piece.term, piece.indices)


def _is_dense(term: Dim | None, indices: tuple[Index, ...]) -> bool:
    """Sums and differences of indices have no gaps, nor have their quotients and bounds by what is the same
    everywhere.
    """
    names = {index.name for index in indices}
    if not isinstance(term, Term) or not all(i.dense for i in indices if i.name in symbols(term)):
        return False
    varying = [(mono, c) for mono, c in term.terms if any(names & atom.symbols for atom in mono)]
    if not varying or any(abs(c) != 1 or len(mono) != 1 for mono, c in varying):
        return False
    atoms = [mono[0] for mono, _ in varying]
    if not any(isinstance(atom, Apply) for atom in atoms):
        return True
    (atom, *others) = atoms
    if others or not isinstance(atom, Apply) or atom.op not in ("//", "min", "max"):
        return False
    inner = [arg for arg in atom.args if names & symbols(arg)]
    return len(inner) == 1 and (atom.op != "//" or inner[0] == atom.args[0]) and _is_dense(inner[0], indices)
