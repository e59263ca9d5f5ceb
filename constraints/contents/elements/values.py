"""Facts about the elements of a tensor, in their shortest form, and as pieces to compute with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ...ir.language import (
    UNTRACKED,
    Affine,
    Elements,
    Image,
    Index,
    Piece,
    Pieces,
    Ratio,
    Shape,
    Span,
    Subscripts,
    Tensor,
    Truths,
)
from ...terms.dims import (
    Apply,
    Atom,
    Dim,
    Symbol,
    coefficients,
    lone,
    maximum,
    minimum,
    rounded,
    square_root,
    substitute,
)
from ...terms.formula import Formula, all_of, any_of, ge, le, negate
from .cycles import is_run, modulo, two_ends
from .dtypes import DIGITS, GREATEST_HALF, INTEGRAL, LARGE, LARGEST_HALF, SMALL, SPARE, limits, wide
from .enclosures import image
from .functions import (
    INFINITY,
    MOST_PIECES,
    UNKNOWN,
    AtLeast,
    Corners,
    along,
    are_exclusive,
    corners,
    finite,
    gathered,
    is_near,
    known,
    number,
    parts_of,
    settled,
    symbol_of,
    tightest,
)

ANY_CHOICE: Final = Pieces((UNKNOWN,), by_data=True)
"""Unknown numbers that the data choose."""


def constant(value: Dim, over: Dim = 1, roundings: int = 0) -> Pieces:
    return Pieces((Piece(value, over),), roundings=roundings)


def between(low: Dim, high: Dim, *, attained: bool = True, by_data: bool = False) -> Elements:
    """Returns the integers between two ends, which both occur if `attained`."""
    return Affine(low) if low == high and attained else Span(low, high, attained, by_data, attained)


def of(tensor: Tensor) -> Elements:
    """Returns the facts about the elements; a mask has elements 0 and 1.

    If data decide the mask, both occur for some data; if sizes do, at some sizes.
    """
    if tensor.dtype != "bool" or isinstance(tensor.elements, Affine):
        return tensor.elements
    if isinstance(known := tensor.elements, Truths):
        return Pieces((Piece(0, given=negate(known.every)), Piece(1, given=known.some)))
    return Span(0, 1, attained=tensor.elements is None, by_data=tensor.elements is None)


def is_data(tensor: Tensor) -> bool:
    """Whether the data decide the elements, within bounds perhaps."""
    known = tensor.elements
    if isinstance(known, Span | Pieces):
        return known.by_data
    return known is None or isinstance(known, Subscripts)


def pieces_of(elements: Elements, shape: Shape) -> Pieces | None:
    """Returns the elements of a tensor of this shape as functions of indices; None where nothing is known of
    them.
    """
    match elements:
        case Affine(start, steps):
            indices = [along(axis, shape[axis]) for axis, _ in steps]
            term = start
            for index, (_, step) in zip(indices, steps, strict=True):
                term = term + lone(Symbol(index.name)) * step
            return Pieces((Piece(term, 1, tuple(indices)),))
        case Span(low, high, attained, by_data, dense):
            some = Index("#0", high - low + 1, None, ordered=False, dense=dense)
            return Pieces((Piece(low + lone(Symbol("#0")), 1, (some,), attained=attained),), by_data)
        case Subscripts(sizes, added):
            return pieces_of(Span(added, maximum(*sizes) - 1 + added, attained=False, by_data=True), shape)
        case Ratio(numerator, denominator, roundings):
            return constant(numerator, denominator, roundings)
        case Pieces():
            return elements
        case Image(piece, low, _, (("sqrt", _), ("long", _)), others) if low >= 0 and (
            found := _roots((piece, *others))
        ):
            return found
        case Image(low=low, high=high, steps=steps) if any(op == "long" for op, _ in steps):
            ends = image(low, high, steps)
            if ends is not None:
                return pieces_of(Span(int(ends[0]), int(ends[1]), attained=False), shape)
    return None


def _roots(pieces: Iterable[Piece]) -> Pieces | None:
    """The roots of integers, rounded down: up to ROOTED they are what a float32 is cut to, as that of
    `k*k - 1` is `1/(2*k)` away from k, and floats below k lie closer together.
    """
    rooted = []
    for piece in pieces:
        ends = None if piece.term is None else corners(piece.term, piece.indices, surely)
        if ends is None or piece.over != 1:
            return None
        doubt = any_of((piece.doubt, *(ge(high, ROOTED) for high in ends[1])))
        least = math.isqrt(ROOTED if piece.doubt is False else min(piece.least, ROOTED))
        root = square_root(number(piece))
        rooted.append(replace(piece, term=root, doubt=doubt, least=least if doubt else 0))
    return Pieces((*rooted,))


ROOTED: Final = 1 << 22
"""Roots of smaller integers are what a float32 is cut to."""


def surely(dim: Dim, bound: int) -> bool:
    """Whether it is a number, and at least the bound."""
    return isinstance(dim, int) and dim >= bound


def stored(pieces: Pieces | None, shape: Shape, at_least: AtLeast) -> Elements:
    """Returns the shortest form of pieces that are the elements of a tensor of this shape."""
    if pieces is None:
        return UNTRACKED
    if len(pieces.pieces) == 1 and not pieces.slack and not pieces.and_data:
        (piece,) = pieces.pieces
        whole = piece.given is True and not piece.fixed and piece.term is not None and piece.doubt is False
        if whole and piece.attained and not pieces.by_data and (short := _short(piece, pieces, shape)):
            return short
        loose = piece.indices and all(i.axis is None for i in piece.indices)
        if whole and piece.over == 1 and loose and (span := extremes_of(pieces, at_least)):
            return replace(span, dense=is_run(piece))
    return UNTRACKED if pieces == Pieces((UNKNOWN,)) else pieces


def _short(piece: Piece, pieces: Pieces, shape: Shape) -> Elements:
    term = number(piece)
    if not piece.indices:
        if piece.over == 1:
            return Affine(term)
        return Ratio(term, piece.over, pieces.roundings) if isinstance(piece.over, int) else None
    names = {i.name for i in piece.indices}
    plain = all(i.ordered and i.axis is not None and i.size == shape[i.axis] for i in piece.indices)
    if piece.over != 1 or not plain:
        return None
    zero = substitute(term, dict.fromkeys(names, 0))
    steps: list[tuple[int, int]] = []
    rest = term - zero
    for i in sorted(piece.indices, key=lambda i: i.axis or 0):
        step = substitute(term, {**dict.fromkeys(names, 0), i.name: 1}) - zero
        if not isinstance(step, int) or i.axis is None:
            return None
        steps.append((i.axis, step))
        rest = rest - step * lone(Symbol(i.name))
    return Affine(zero, tuple(s for s in steps if s[1])) if rest == 0 else None


def extremes_of(pieces: Pieces, at_least: AtLeast) -> Span | None:
    """Returns the least and the greatest of integers; None where they are not known."""
    lows: list[Dim] = []
    highs: list[Dim] = []
    for piece in pieces.pieces:
        ends = None if piece.term is None else corners(piece.term, piece.indices, at_least)
        if ends is None or piece.over != 1 or piece.doubt is not False:
            return None
        lows += ends[0]
        highs += ends[1]
    if not lows or pieces.slack or pieces.and_data:
        return None
    attained = all(p.attained and p.given is True for p in pieces.pieces)
    return Span(minimum(*lows), maximum(*highs), attained, pieces.by_data)


def extremes(tensor: Tensor) -> Span | None:
    """Returns the least and the greatest element, if there are elements; None where nothing is known of them.

    An affine function over a box is extreme at a corner: each axis adds step * (n - 1) to one of the two.
    """
    match of(tensor):
        case Affine(start, steps):
            low = high = start
            for axis, step in steps:
                reach = step * (tensor.shape[axis] - 1)
                low, high = (low, high + reach) if step > 0 else (low + reach, high)
            return Span(low, high, attained=True)
        case Span() as span:
            return span
        case Subscripts(shape, added):
            return Span(added, maximum(*shape) - 1 + added, attained=False, by_data=True)
        case Pieces() as pieces:
            return extremes_of(pieces, surely)
    return None


def greatest(tensor: Tensor) -> Dim | None:
    """Returns the greatest of integers that sizes decide, if there are any; None where it is not known."""
    span = extremes(tensor)
    return span.high if span is not None and span.attained and not span.by_data else None


class Bounds(NamedTuple):
    """The least and the greatest number that an element may be; None where it is not known."""

    low: Dim | None = None
    high: Dim | None = None


def bounds_of(tensor: Tensor) -> Bounds:
    """Returns bounds of the elements, if there are elements, whether sizes decide them or the data."""
    span = extremes(tensor)
    return Bounds() if span is None else Bounds(span.low, span.high)


def ways_of(tensor: Tensor, at_least: AtLeast) -> tuple[tuple[Formula, Dim | Bounds], ...]:
    """Returns the one element of a tensor, or bounds of it, each with the sizes at which it is that; nothing
    where not even so much is known.

    Some of these conditions hold, and several that do say the same: what is said to occur is the one element.
    """
    found = pieces_of(of(tensor), tensor.shape)
    if found is None or found.by_data or found.and_data or found.slack or found.roundings:
        return ()
    single = all(p.attained and p.over == 1 and not p.indices for p in known(found))
    if not single and not are_exclusive(found):
        return ()
    ways = ((tightest(given), way) for piece in found.pieces for given, way in _ways(piece, at_least))
    return tuple((given, way) for given, way in ways if given is not False)


def _ways(piece: Piece, at_least: AtLeast) -> Iterator[tuple[Formula, Dim | Bounds]]:
    """Yields what one element of a piece is. Numbers in doubt of less than `least` are exact, too."""
    ends = None if piece.term is None else corners(piece.term, piece.indices, at_least)
    if ends is None or piece.over != 1:
        yield piece.given, Bounds()
        return
    low, high = minimum(*ends[0]), maximum(*ends[1])
    exact = Bounds(low, high) if piece.indices else low
    yield all_of((piece.given, negate(piece.doubt))), exact
    if piece.doubt is not False:
        doubtful, least = all_of((piece.given, piece.doubt)), piece.least
        small = all_of((ge(least - 1, high), ge(low, 1 - least)))
        yield all_of((doubtful, small)), exact
        above = least > 0 and at_least(low + least - 1, 0)
        below = least > 0 and at_least(least - 1 - high, 0)
        rounded = Bounds(minimum(low, least) if above else None, maximum(high, -least) if below else None)
        yield all_of((doubtful, negate(small))), rounded


def inexact_ways(only: Tensor, at_least: AtLeast) -> float:
    """Returns in how many cases an only element is known by bounds alone: infinity where it is in all."""
    ways = [way for _, way in ways_of(only, at_least)]
    inexact = sum(isinstance(way, Bounds) for way in ways)
    return math.inf if inexact == len(ways) else inexact


def in_order(tensor: Tensor) -> Callable[[Dim], Dim] | None:
    """The element at a place of a vector, where it is the same function of the place at any sizes."""
    found = pieces_of(of(tensor), tensor.shape)
    if tensor.rank != 1 or found is None or found.by_data or found.slack or found.roundings:
        return None
    (piece, *others) = found.pieces
    ordered = all(i.ordered and i.axis == -1 for i in piece.indices) and len(piece.indices) <= 1
    sure = piece.given is True and piece.doubt is False and piece.attained and not piece.fixed
    if others or piece.term is None or piece.over != 1 or not (ordered and sure):
        return None
    return lambda place: substitute(number(piece), {i.name: place for i in piece.indices})


def fitted(
    pieces: Pieces | None, dtype: str | None, at_least: AtLeast, *, once: bool | None = None
) -> Pieces | None:
    """Returns the elements as a tensor of this dtype holds them: unchanged where it can; else integers wrap,
    and floats are rounded, to the nearest ones if they are rounded `once`, as most halves are.
    """
    if pieces is None or not all(at_least(p.over, 1) for p in pieces.pieces):
        return None
    if any(p.near for p in pieces.pieces) and (
        dtype not in ("float32", "int64") or pieces.roundings > FEW_ROUNDINGS
    ):
        pieces = replace(pieces, pieces=tuple(replace(p, near=None) for p in pieces.pieces))
    pieces = pieces if dtype == "float16" else finite(pieces)
    fractions = pieces.slack or any(p.over != 1 for p in pieces.pieces)
    exact = pieces.roundings == 0 and all(is_float(p) for p in pieces.pieces)
    overs = {p.over for p in pieces.pieces if p.term is not None}
    small = next(iter(overs)) if len(overs) == 1 and not pieces.slack else None
    roundings = None if (exact and not pieces.slack) or not fractions else pieces.roundings
    limit = limits(dtype, roundings, small if isinstance(small, int) and small <= SMALL else None)
    if dtype == "float64" and limit and (
        roundings is None or not any(p.term is not None and _exceeds(p.term, limit) for p in pieces.pieces)
    ):
        limit = None
    most = wide(dtype) if limit is None else None
    narrow = dtype in ("int32", "uint32")  # what is in doubt whatever the sizes may be greater than they hold
    great = {
        p for p in pieces.pieces
        if p.term is not None and (_exceeds(p.term, most) or (narrow and p.doubt is True))
    }  # fmt: skip
    limit = most if great else limit
    if limit is None or pieces.roundings > 1 << SPARE:
        return pieces if limit is None else None
    if dtype not in DIGITS and (dtype not in INTEGRAL or fractions):
        pieces = settled(pieces)
    found: list[Piece] = []
    unknown: list[Formula] = [p.given for p in pieces.pieces if p.term is None]
    for piece in (p for p in pieces.pieces if p.term is not None):
        if dtype in DIGITS and _is_ratio(pieces):
            found.append(piece)  # it is in doubt once it is made whole (`of_fraction`)
            continue
        if great and piece not in great:
            found.append(piece)
            continue
        ends = corners(number(piece), piece.indices, at_least)
        if ends is None:
            unknown.append(piece.given)
            continue
        low, high = limit
        if dtype in INTEGRAL and piece.over == 1:
            found += modulo(piece, low, high - low + 1, at_least) or ()
            continue
        inside = all_of(
            (
                *(ge(value, low) for value in ends[0] if not at_least(value - low, 0)),
                *(le(value, high) for value in ends[1] if not at_least(high - value, 0)),
            )
        )
        if dtype in DIGITS:
            whole = piece.over == 1 or (dtype != "float16" and is_float(piece))
            whole = whole and not pieces.roundings and not pieces.slack
            nearest = whole and (dtype == "float16" if once is None else once)
            now = nearest and (dtype in SHORT or not piece.indices)
            floats = (now and _as_floats(piece, ends, inside, dtype, at_least)) or ()
            if len(floats) + len(found) > MOST_PIECES:
                return None
            if floats or dtype != "float16":
                bounded = _bounded_near(piece, ends, at_least)
                found += floats or (_doubted(bounded, inside, high, DIGITS[dtype] if nearest else 0),)
                continue
            inside = all_of((inside, negate(piece.doubt)))  # others may be infinite
            piece = replace(piece, doubt=False, least=0)
        found.append(replace(piece, given=all_of((piece.given, inside))))
        unknown.append(all_of((piece.given, negate(inside))))
    held = gathered(
        [p for p in found if p.given is not False],
        any_of(unknown),
        pieces.by_data,
        pieces.roundings,
        pieces.slack,
    )
    return held and replace(held, and_data=pieces.and_data)


FEW_ROUNDINGS: Final = 8
NEAR: Final = 1 << 18
"""Singles below this number, computed by up to `FEW_ROUNDINGS` operations from such, are near exact numbers.

Each of the operations rounds its result, and perhaps its operands, four numbers below 2 * NEAR at most, by
2**-24 of themselves. So the error is less than 8 * 4 * 2**19 * 2**-24 = 1.
"""


def _bounded_near(piece: Piece, ends: Corners, at_least: AtLeast) -> Piece:
    """Returns the piece, near what is computed only where its ends are below `NEAR`."""
    if (near := is_near(piece)) is False:
        return replace(piece, near=None)
    within = below(ends, NEAR, piece.over, at_least)
    return replace(piece, near=piece.near and replace(piece.near, where=all_of((near, within))))


def below(ends: Corners, most: int, over: Dim, at_least: AtLeast) -> Formula:
    """Returns whether fractions of these numerators lie between a number and its negative."""
    far = (side // over for side in (*ends[1], *(-1 * low for low in ends[0])))
    return all_of(le(dim, most - 1) for dim in far if not at_least(most - 1 - dim, 0))


def _is_ratio(pieces: Pieces) -> bool:
    """Returns whether the elements are one fraction, which is stored as a `Ratio`."""
    match pieces:
        case Pieces((Piece(term, int(over)),), roundings=roundings):
            return over != 1 and pieces == Pieces((Piece(term, over),), roundings=roundings)
    return False


def _exceeds(term: Dim, bounds: tuple[int, int] | None) -> bool:
    """Returns whether the term, for large sizes, exceeds bounds."""
    if bounds is None or isinstance(term, int):
        return bounds is not None and isinstance(term, int) and not bounds[0] <= term <= bounds[1]
    return bounds[1] < _at_large(term)


def _at_large(term: Dim) -> float:
    """Returns the size of the term for large sizes, where a quotient or a root counts as one of these."""
    return sum(abs(factor) * math.prod(map(_atom_at_large, mono)) for mono, factor in coefficients(term))


def _atom_at_large(atom: Atom) -> float:
    if isinstance(atom, Apply) and atom.op == "rounded":
        return _at_large(atom.args[0])
    return LARGE


SHORT: Final = ("float16", "bfloat16")
"""Dtypes whose ranges are several pieces where they are rounded. Those of wide ones stay one piece until they
are made integers again: functions such as `log` follow one.
"""


def _doubted(piece: Piece, inside: Formula, most: int, digits: int) -> Piece:
    """Returns a piece that floats represent exactly where its ends lie inside. If they are nearest floats,
    they have so many `digits`.

    A number beyond the `most` that is represented, over its divisor, is rounded to one no smaller than this:
    rounding keeps order.
    """
    if piece.doubt is False and _is_given(piece, inside):
        return piece
    held = most // piece.over if isinstance(piece.over, int) else 0
    return replace(
        piece,
        doubt=any_of((piece.doubt, negate(inside))),
        least=held if piece.doubt is False else min(held, piece.least),
        once=(number(piece), digits) if digits and piece.doubt is False else None,
    )


def nearest_floats(pieces: Pieces | None, at_least: AtLeast) -> Pieces | None:
    """Returns the pieces with those that have been rounded once as they are, none of them in doubt."""
    if pieces is None or not any(p.once for p in pieces.pieces):
        return pieces
    parts = [part for p in pieces.pieces for part in _nearest_floats(p, at_least)]
    unknown = any_of(p.given for p in parts if p.term is None)
    held = gathered([*known(Pieces((*parts,)))], unknown, pieces.by_data, pieces.roundings, pieces.slack)
    return replace(held, and_data=pieces.and_data) if held else pieces


def _nearest_floats(piece: Piece, at_least: AtLeast) -> list[Piece]:
    ends = None if piece.term is None else corners(piece.term, piece.indices, at_least)
    if ends is None or piece.doubt is False or piece.once != (piece.term, DIGITS["float32"]):
        return [piece]
    exact = replace(piece, doubt=False, least=0)
    return _as_floats(exact, ends, negate(piece.doubt), "float32", at_least) or [piece]


def _is_given(piece: Piece, condition: Formula) -> bool:
    """Returns whether the sizes at which there are elements of a piece satisfy a condition."""
    return all(tightest(all_of((piece.given, negate(part)))) is False for part in parts_of(condition))


def _as_floats(
    piece: Piece, ends: Corners, inside: Formula, dtype: str, at_least: AtLeast
) -> list[Piece] | None:
    """Returns the pieces of integers as floats represent them, or None.

    They are exact up to `most`, so that all up to it occur, if all integers from a smaller one on do; beyond
    that they are the nearest floats. From half a unit beyond the greatest half on, halves are infinite.
    Integers become bfloat16 by way of float32.
    """
    (lows, highs), most, halves = ends, 1 << DIGITS[dtype], dtype == "float16"
    if len(lows) + len(highs) > 2:
        return None
    if piece.doubt is not False and not (halves and piece.least > GREATEST_HALF):
        return None
    if piece.doubt is False and _is_given(piece, inside):
        return None
    piece = replace(piece, doubt=False, least=0)  # what is in doubt is infinite
    (low,), (high,), term = lows, highs, number(piece)
    nearest = rounded(rounded(term, 24) if dtype == "bfloat16" else term, DIGITS[dtype])

    def part(*given: Formula, **changed: Any) -> Piece:
        return replace(piece, given=all_of((piece.given, *given)), **changed)

    finite = all_of((le(high, GREATEST_HALF), ge(low, -GREATEST_HALF))) if halves else True
    found = [part(inside), part(negate(inside), finite, term=nearest)]
    sides = ((1, low, high), (-1, -1 * high, -1 * low))
    held = (side for side in sides if at_least(side[1] + most, 0) and at_least(most - side[1], 0))
    sign, first, last = next(held, (0, low, high))
    if is_run(piece) and sign:
        index = Index("#0", most - first + 1, None, ordered=False)
        up_to_most = sign * (first + symbol_of(index))
        found.append(part(ge(last, most + 1), term=up_to_most, indices=(index,)))
    if halves:
        for way, end in ((1, high), (-1, -1 * low)):
            found.append(part(ge(end, GREATEST_HALF + 1), term=way * INFINITY, indices=()))
        if piece.indices:
            around = (sign * first, sign * LARGEST_HALF)[::sign] if sign else (-LARGEST_HALF, LARGEST_HALF)
            some = two_ends(part(negate(finite)), *around)
            found.append(replace(some, attained=bool(sign) and is_run(piece)))
    return [one for one in found if tightest(one.given) is not False]


def is_float(piece: Piece) -> bool:
    """Returns whether fractions with such a denominator are floats, as long as they are not too large."""
    over = piece.over
    return isinstance(over, int) and over & (over - 1) == 0 and over <= SMALL


def scaled(pieces: Pieces, factor: Dim, over: Dim = 1) -> Pieces:
    """Returns each element times a number. A fraction made from a fraction is rounded again."""
    if over != 1 or not isinstance(factor, int) or factor == 0:
        pieces = settled(pieces)
    slack = pieces.slack or (pieces.roundings > 0 and (factor, over) not in ((1, 1), (-1, 1)))

    def one(p: Piece) -> Piece:
        term, under = number(p) * factor, p.over * over
        turned = (factor, over) == (-1, 1) and is_near(p) is not False
        near = p.near and replace(p.near, term=term) if turned else None
        return replace(p, term=term, over=under, near=near)

    return replace(
        pieces,
        pieces=tuple(p if p.term is None or (factor, over) == (1, 1) else one(p) for p in pieces.pieces),
        slack=slack,
    )

