"""Elements computed from elements, index by index; fractions, and how they are rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import chain
from struct import pack, unpack
from typing import Any, Final

from msgspec import structs

from ...ir.language import (
    UNTRACKED,
    Affine,
    Elements,
    Near,
    Piece,
    Pieces,
    Ratio,
    Shape,
    Span,
    Tensor,
    Truths,
)
from ...terms.dims import Dim, Mono, Term, ceildiv, coefficients, maximum, minimum, substitute
from ...terms.formula import Formula, all_of, any_of, ge, negate
from ..elements.cycles import is_run, modulo, two_ends
from ..elements.dtypes import DIGITS, INTEGRAL, SINGLE, SMALL, WHOLE, limits
from ..elements.functions import (
    AtLeast,
    Nearness,
    Reach,
    aligned,
    combined,
    corners,
    divided,
    gathered,
    is_infinite,
    is_near,
    is_partition,
    known,
    mapped,
    nearest_even,
    number,
    settled,
    symbol_of,
    without,
)
from ..elements.values import (
    NEAR,
    below,
    constant,
    is_data,
    is_float,
    nearest_floats,
    of,
    pieces_of,
    scaled,
)
from .calls import Law, NamedCall, of_number
from .images import chosen_where

FEW: Final = 4
"""At most this many divisors along an axis are distinguished."""
MOST_STEPS: Final = 12
"""At most this many powers of a number are distinguished."""
FAR: Final = 1 << 60
"""Once floats have been rounded, products beyond this number are not tracked: they might be infinite."""


def _arithmetic(
    operation: Callable[[NamedCall, Piece, Piece], tuple[Dim, Dim] | None],
    reach: Reach = lambda least, other: 0,
) -> Law:
    def law(call: NamedCall) -> Elements | Pieces:
        a, b = call.operand("input"), call.operand("exponent" if call.op == "pow" else "other")
        if a is None or b is None:
            return UNTRACKED
        found = combined(a, b, partial(operation, call), reach)
        return UNTRACKED if found is None else found

    return law


def plus(sign: int, swapped: bool = False) -> Law:
    """Returns the law of `input + sign * alpha * other`; for `rsub`, of `other - alpha * input`."""

    def add(call: NamedCall) -> Elements | Pieces:
        alpha = call.named.get("alpha", 1)
        names = ("other", "input") if swapped else ("input", "other")
        a, b = map(call.operand, names)
        if a is None or b is None or not isinstance(alpha, int):
            return UNTRACKED
        b = scaled(b, sign * alpha)
        near = _near_sum(call, names, a, b)
        found = combined(a, b, sum_of_two, _moved_by, apart=call.are_apart(*names), near=near)
        found = _only_near(found) if found and near else found
        if found is None or (any((a.roundings, b.roundings)) and len(_divisors(a, b)) > 1):
            return UNTRACKED
        rounded = [side.roundings > 0 for side in (a, b)]
        beside_small = any(_is_small(side) for side in (a, b))
        loses = all(rounded) or (any(rounded) and not beside_small)
        return replace(found, roundings=found.roundings + any(rounded), slack=found.slack or loses)

    return add


def _near_sum(call: NamedCall, names: Sequence[str], a: Pieces, b: Pieces) -> Nearness | None:
    """Returns where sums are near exact ones: of numbers that are, and of exact ones. A number between exact
    ones and sums that are not great is not great, either, if the exact ones are not.
    """
    if not (a.roundings or b.roundings):
        return None
    (first, one), (second, other) = (
        (pieces, isinstance(call.named.get(name), Tensor)) for name, pieces in zip(names, (a, b), strict=True)
    )

    def near(found: tuple[Dim, Dim], p: Piece, q: Piece) -> Near:
        return Near(*found, where(p, q), _part_of_both(p, q))

    def where(p: Piece, q: Piece) -> Formula:
        sides = (_near_operand(p, first, one), _near_operand(q, second, other))
        if p.near or q.near:
            return all_of(sides)
        each = (((n := (number(one),), n), one.over) for one in (p, q) if not one.indices)
        numbers = (below(ends, NEAR, over, call.at_least) for ends, over in each)
        return all_of((*sides, *numbers)) if not (p.indices and q.indices) else False

    return near


def _near_operand(piece: Piece, pieces: Pieces, is_tensor: bool) -> Formula:
    if piece.near or not is_tensor:
        return is_near(piece) if piece.near else True
    if pieces.roundings or pieces.slack or piece.over != 1:
        return False
    once = piece.once == (piece.term, DIGITS["float32"])
    return negate(piece.doubt) if once or piece.doubt is False else False


def _part_of_both(p: Piece, q: Piece) -> Dim | None:
    """Returns a part of one piece such that where it is an integer the other is, too."""
    for one, other in ((p, q), (q, p)):
        part = one.near.part if one.near else None
        if part is None:
            continue
        same = other.near is not None and (other.near.part, other.over) == (part, one.over)
        plain = other.over == 1 or (other.over == one.over and not other.indices)
        whole = other.over == 1 or all(
            _is_multiple(mono, part) or _is_multiple(mono, one.over) for mono in coefficients(number(other))
        )
        if same or (other.near is None and plain and whole):
            return part
    return None


def _is_multiple(mono: tuple[Mono, int], of: Dim) -> bool:
    """Returns whether a product certainly is a multiple of a term."""
    (atoms, factor), *others = coefficients(of)
    within, by = mono
    return not others and by % factor == 0 and all(within.count(a) >= atoms.count(a) for a in atoms)


def _is_sharp(piece: Piece, at_least: AtLeast) -> bool:
    """Returns whether the greatest of some fractions, made whole, is exact: it is an integer only where the
    part is, and so all of them are, as it is that part or its negative beside integers.
    """
    ends = corners(number(piece), piece.indices, at_least)
    part = piece.near.part if piece.near else None
    if ends is None or part is None:
        return False
    return all(
        any(all(_is_multiple(m, piece.over) for m in coefficients(high + sign * part)) for sign in (1, -1))
        for high in ends[1]
    )


def _only_near(pieces: Pieces) -> Pieces:
    """Returns the pieces without elements in doubt of which nothing is known, neither a least size."""
    each = (
        (p,) if p.least else settled(replace(pieces, pieces=(p,)), keeping=True).pieces
        for p in pieces.pieces
    )
    return replace(pieces, pieces=tuple(chain.from_iterable(each)))


def _is_small(pieces: Pieces) -> bool:
    return all(isinstance(p.term, int) and abs(p.term) <= SMALL for p in pieces.pieces)


def _one_number(piece: Piece) -> int | None:
    one = not piece.indices and isinstance(piece.term, int) and piece.over == 1
    return int(number(piece)) if one else None  # type: ignore[arg-type]


def _moved_by(least: int, other: Piece) -> int:
    n = _one_number(other)
    return 0 if n is None else least - abs(n)


def _beside_less(least: int, other: Piece) -> int:
    n = _one_number(other)
    return least if n is not None and abs(n) < least else 0


def _divisors(a: Pieces, b: Pieces) -> set[Dim]:
    return {p.over for p in (*a.pieces, *b.pieces) if p.over != 1}


def sum_of_two(p: Piece, q: Piece) -> tuple[Dim, Dim]:
    """Returns the sum of two fractions."""
    if p.over == q.over:
        return number(p) + number(q), p.over
    return number(p) * q.over + number(q) * p.over, p.over * q.over


def product_of_two(p: Piece, q: Piece) -> tuple[Dim, Dim]:
    return number(p) * number(q), p.over * q.over


def _rounded(found: Pieces) -> Pieces:
    """Returns the result of a product or a quotient, marked as rounded unless its fractions are floats."""
    exact = found.roundings == 0 and all(is_float(p) for p in found.pieces if p.term is not None)
    return found if exact else replace(found, roundings=found.roundings + 1)


def times(call: NamedCall) -> Elements | Pieces:
    if (grown := _grown_together(call)) is not None:
        return grown
    a, b = call.operand("input"), call.operand("other")
    if b is None and a is not None and not (is_rounded(a) or _has_fractions(a)):
        b = _of_decimal(call.named.get("other"), call.result.dtype)
    if a is not None and b is not None and constant(0) in (a, b) and not _may_be_infinite(a, b, call):
        return Affine(0)
    if a is None or b is None or a.slack or b.slack:
        return UNTRACKED

    fraction = not isinstance(call.named.get("other"), Tensor) and b.roundings > 0
    near = _near_product if fraction and _is_exact(a) else None
    found = combined(a, b, product_of_two, _multiplied_by, apart=call.are_apart("input", "other"), near=near)
    if found is None:
        return UNTRACKED
    negation = any(side in (constant(1), constant(-1)) for side in (a, b))
    rounded = bool(a.roundings or b.roundings)
    return found if negation else replace(_rounded(found), slack=found.slack or rounded)


def _near_product(found: tuple[Dim, Dim], integers: Piece, fraction: Piece) -> Near:
    return Near(*found, True, number(fraction))


def _is_exact(pieces: Pieces) -> bool:
    whole = all(p.over == 1 and p.doubt is False for p in known(pieces))
    return whole and not pieces.roundings and not pieces.slack


def _may_be_infinite(a: Pieces, b: Pieces, call: NamedCall) -> bool:
    """Returns whether an operand may have infinity among its floats, which times 0 is no number."""
    halves = call.result.dtype == "float16"
    some = any(p.term is None or (halves and p.doubt is not False) for p in (*a.pieces, *b.pieces))
    return some and call.result.dtype in DIGITS


def _multiplied_by(least: int, factor: Piece) -> int:
    """Returns the reach of a product. That with a fraction p/q is rounded to no less than the integer before
    `least * p/q`, since the float of the fraction may be less by a part in 2**9. Those of short floats stay
    below SINGLE.
    """
    if (n := _one_number(factor)) is not None:
        most = FAR if least >= SINGLE else SINGLE
        return min(least * abs(n), most - 1) if least * abs(n) < FAR else 0
    match factor:
        case Piece(int() as over, int() as under, ()) if abs(over) < under:
            return max(least * abs(over) // under - 1, 0)
    return 0


def _of_decimal(value: Any, dtype: str | None) -> Pieces | None:
    """Returns the fraction p/q with a small denominator that a float is nearest to, as a factor of integers.

    The float errs by at most 2**-(b + 1) of p/q, with b bits of a significand. Where x*p/q is a float, the
    product lies within half of the distance to the next, and is rounded to it. Else it is twice as far off as
    one that is rounded once, at most: as if numerator and denominator were twice as great.
    """
    digits = DIGITS[dtype] if dtype in ("float32", "float64") else 0
    if not isinstance(value, float) or not digits or not 2**-10 < abs(value) < 1 << 10:
        return None
    held = Fraction(value if dtype == "float64" else unpack("f", pack("f", value))[0])
    near = Fraction(value).limit_denominator(SMALL)
    if abs(held - near) * (1 << digits + 1) > abs(near):
        return None
    return constant(2 * near.numerator, 2 * near.denominator)


def _grown_together(call: NamedCall) -> Span | None:
    """Returns products of counts that the data decide, from 0 on. Counts of one mask grow together."""
    match [of(t) for t in (call.named.get("input"), call.named.get("other")) if isinstance(t, Tensor)]:
        case [Span(0, most, attained, True), Span(0, others, too, True)]:
            return Span(0, most * others, attained and too, by_data=True)
    return None


def _true_quotient(call: NamedCall) -> Elements | Pieces:
    a, b = call.operand("input"), call.operand("other")
    if a is None or b is None or a.slack or b.slack or a.roundings or b.roundings:
        return UNTRACKED

    def quotient(p: Piece, q: Piece) -> tuple[Dim, Dim] | None:
        divisor = number(q)
        if q.indices or not call.at_least(divisor, 1):
            return None
        return number(p) * q.over, p.over * divisor

    found = combined(a, b, quotient, _cut_by)
    return UNTRACKED if found is None else _rounded(found)


def _floor_quotient(call: NamedCall, p: Piece, q: Piece) -> tuple[Dim, Dim] | None:
    """Returns floor(p / q), for a divisor that is positive and the same everywhere; else None."""
    n = _divisor(call, q)
    return None if n is None or p.over != 1 else (number(p) // n, 1)


def _cut_by(least: int, divisor: Piece) -> int:
    """Returns the reach of a division: for x >= k*n the quotient by n is at least k, and for x <= -k*n at
    most -k.
    """
    n = _one_number(divisor)
    return least // n if n is not None and n > 0 else 0


def _divisor(call: NamedCall, piece: Piece) -> Dim | None:
    """Returns the divisor, if it is positive and the same everywhere; else None.

    Integers are not divided by 0.
    """
    n = number(piece)
    if piece.indices or piece.over != 1 or piece.doubt is not False:
        return None
    if call.at_least(n, 1):
        return n
    return maximum(n, 1) if call.at_least(n, 0) and call.result.dtype in INTEGRAL else None


def remainder(call: NamedCall) -> Elements | Pieces:
    """Returns `x % n`, with the sign of n, which is positive and the same for all elements of a piece of x.

    For the user's numbers the remainders are any from 0 to n - 1.
    """
    divisor = call.named.get("other")
    if divisor == 1 and call.result.dtype in INTEGRAL:
        return Span(0, 0, attained=True, by_data=True) if is_data(call.input) else Affine(0)
    if is_given(call.input) and call.result.dtype in INTEGRAL:
        if not isinstance(divisor, int | Term) or not call.at_least(divisor, 1):
            return None
        return Span(0, divisor - 1, call.is_free(call.input), by_data=True)
    match of(call.input), divisor:
        case Affine(int() as one, ()), int() as by if by > 0:  # of floats, too
            return Affine(one % by)
    a, b = call.operand("input"), _place_by_place(call.operand("other"), call.result.shape)
    if a is None or b is None or is_rounded(a) or is_rounded(b) or call.result.dtype not in INTEGRAL:
        return UNTRACKED
    apart, parts = is_partition(b), []
    for q in known(b):
        n = _divisor(call, q)
        there = (aligned(p, q)[0] for p in known(a))
        beside = tuple(_beside(q, apart, p) for p in there if p is not None)
        if n is None:
            return UNTRACKED
        law = partial(modulo, least=0, count=n, at_least=call.at_least)
        if (found := divided(replace(a, pieces=beside), law)) is None:
            return UNTRACKED
        parts.append(found)
    unknown = tuple(p for side in (a, b) for p in side.pieces if p.term is None)
    return union([*parts, replace(a, pieces=unknown, by_data=b.by_data)])


def _beside(other: Piece, apart: bool, piece: Piece) -> Piece:
    """Returns the piece where the other one has elements, too, of several that are disjoint or not."""
    return replace(
        piece,
        given=all_of((piece.given, other.given)),
        fixed=tuple(dict.fromkeys((*piece.fixed, *other.fixed))),
        attained=piece.attained and other.attained and apart,
    )


def remainder_of_sign(call: NamedCall) -> Elements | Pieces:
    """Returns the remainder with the sign of the dividend: for non-negative dividends and positive divisors
    that of floor division, and for dividends below 0 the opposite of their opposite's.
    """
    found = _of_one_sign(call.operand("input"), call)
    if found is None or found[1] > 0:
        return UNTRACKED if found is None else remainder(call)
    opposite = structs.replace(call.input, shape=call.result.shape, elements=found[0])
    rest = remainder(replace(call, named={**call.named, "input": opposite}))
    pieces = pieces_of(rest, call.result.shape)
    return UNTRACKED if pieces is None else scaled(pieces, -1)


def is_rounded(pieces: Pieces | None) -> bool:
    return pieces is None or bool(pieces.roundings or pieces.slack)


def _power(call: NamedCall, p: Piece, q: Piece) -> tuple[Dim, Dim] | None:
    exponent = q.term
    if not isinstance(exponent, int) or q.over != 1 or not 0 <= exponent <= 4:
        return None
    return number(p) ** exponent, p.over**exponent


def _power_of_number(base: int, pieces: Pieces | None, call: NamedCall) -> Elements | Pieces:
    """Returns `b**x` for x from 0 to a few: 1, and b**k*(b - 1) more for each k below x."""

    def raised(piece: Piece) -> Piece | None:
        ends = corners(number(piece), piece.indices, call.at_least)
        if ends is None or piece.over != 1 or not all(call.at_least(low, 0) for low in ends[0]):
            return None
        most = next((k for k in range(MOST_STEPS) if all(call.at_least(k - h, 0) for h in ends[1])), None)
        if most is None:
            return None
        steps = (base**k * (base - 1) * minimum(maximum(number(piece) - k, 0), 1) for k in range(most))
        return replace(piece, term=sum(steps, start=1))

    return UNTRACKED if pieces is None or is_rounded(pieces) else mapped(pieces, raised) or UNTRACKED


def power(call: NamedCall) -> Elements | Pieces:
    base = call.named.get("input")
    if type(base) is int and base > 0:
        return _power_of_number(base, call.operand("exponent"), call)
    if is_rounded(call.operand("input")) or not isinstance(call.named.get("input"), Tensor):
        return UNTRACKED
    found = _arithmetic(_power)(call)
    return _rounded(found) if isinstance(found, Pieces) else found


def quotient(call: NamedCall) -> Elements | Pieces:
    """Returns a quotient, an integer if it is to be rounded.

    For non-negative dividends, rounding to zero is rounding down.
    """
    rounding = call.named.get("rounding_mode")
    if rounding is None:
        return _true_quotient(call)
    if any(is_rounded(call.operand(name)) for name in ("input", "other")):
        return UNTRACKED
    return _arithmetic(_floor_quotient, _cut_by)(call) if rounding == "floor" else _quotient_to_zero(call)


def _quotient_to_zero(call: NamedCall) -> Elements | Pieces:
    """Returns the quotient of operands of one sign each: that of their distances from 0, rounded down, with
    its own sign.
    """
    dividend, divisor = (_of_one_sign(call.operand(name), call) for name in ("input", "other"))
    if dividend is None or divisor is None:
        return UNTRACKED
    (a, one), (b, other) = dividend, divisor
    found = combined(a, b, partial(_floor_quotient, call), _cut_by)
    return UNTRACKED if found is None else scaled(found, one * other)


def _of_one_sign(pieces: Pieces | None, call: NamedCall) -> tuple[Pieces, int] | None:
    """Returns distances from 0, and 1 or -1; None where elements may be negative and others positive."""
    if pieces is None:
        return None
    turned = ((scaled(pieces, sign), sign) for sign in (1, -1))
    return next(((found, sign) for found, sign in turned if _is_never_negative(found, call)), None)


def floor_divide(call: NamedCall) -> Elements | Pieces:
    a, b = call.operand("input"), _place_by_place(call.operand("other"), call.result.shape)
    if a is None or b is None or is_rounded(a) or is_rounded(b):
        return UNTRACKED
    return combined(a, b, partial(_floor_quotient, call), _cut_by) or UNTRACKED


def _place_by_place(pieces: Pieces | None, shape: Shape) -> Pieces | None:
    """Returns a piece for each index, if divisors differ along an axis with few indices."""
    if pieces is None or len(pieces.pieces) != 1 or pieces.pieces[0].term is None:
        return pieces
    (piece,) = pieces.pieces
    axes = {i.axis: shape[i.axis] for i in piece.indices if i.axis is not None and i.ordered}
    sizes = [size for size in axes.values() if isinstance(size, int) and size <= FEW]
    if len(piece.indices) != 1 or len(sizes) != 1 or piece.fixed:
        return pieces
    ((index,), (axis,), (size,)) = piece.indices, axes, sizes
    apart = (replace(without(piece, {index.name: at}), fixed=((axis, at),)) for at in range(size))
    return replace(pieces, pieces=tuple(apart))


def _is_never_negative(pieces: Pieces | None, call: NamedCall) -> bool:
    if pieces is None:
        return False
    ends = [corners(p.term, p.indices, call.at_least) for p in pieces.pieces if p.term is not None]
    return all(e is not None and all(call.at_least(low, 0) for low in e[0]) for e in ends)


def absolute(call: NamedCall) -> Elements | Pieces:
    """Returns -x where nothing is positive, x where nothing is negative.

    For integers without a gap from a to b the greatest is that of -a and b, and the least that of a, -b and
    0.
    """
    pieces = call.pieces
    if pieces is None or is_rounded(pieces):
        return UNTRACKED
    if _is_never_negative(pieces, call):
        return pieces
    if _is_never_negative(scaled(pieces, -1), call):
        return scaled(pieces, -1)

    def one(piece: Piece) -> Piece | None:
        ends = corners(number(piece), piece.indices, call.at_least)
        if ends is None or piece.over != 1:
            return None
        distance = replace(piece, term=maximum(number(piece), -number(piece)))
        if not piece.indices or corners(number(distance), piece.indices, call.at_least):
            return distance
        low, high = minimum(*ends[0]), maximum(*ends[1])
        least, most = maximum(low, -high, 0), maximum(high, -low)
        return replace(two_ends(piece, least, most), attained=is_run(piece))

    return mapped(pieces, one) or UNTRACKED


def sign(call: NamedCall) -> Elements | Pieces:
    """Returns the sign of integers: the nearest number between -1 and 1."""
    pieces = call.pieces
    if pieces is None or is_rounded(pieces) or _has_fractions(pieces):
        return UNTRACKED
    bounded = mapped(
        pieces,
        lambda p: replace(p, term=maximum(minimum(number(p), 1), -1)),
        keeping=_are_above(pieces, 1),
    )
    return bounded or UNTRACKED


def clamped_between(call: NamedCall) -> Elements | Pieces:
    """Returns `min(max(x, low), high)`, with bounds that may be tensors."""
    low, high = call.named.get("min"), call.named.get("max")
    if is_given(call.input):
        return _within(call, low, high)
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        either = call.operand("input")
        for name, law in (("min", maximum), ("max", minimum)):
            if call.named.get(name) is not None:
                either = _extreme(law, either, call.operand(name))
        return either or UNTRACKED
    pieces = call.pieces
    whole = pieces is None and call.result.dtype in INTEGRAL
    if whole and isinstance(low, int | Term) and isinstance(high, int | Term):
        return Span(minimum(low, high), high, attained=False)
    bounds = [None if b is None else of_number(b) for b in (low, high)]
    if pieces is None or any(b is not None and n is None for b, n in zip((low, high), bounds, strict=True)):
        return UNTRACKED

    def clamped(piece: Piece) -> Piece | None:
        term, over = number(piece), piece.over
        for bound, law in zip(bounds, (maximum, minimum), strict=True):
            if bound is not None:
                value, under = number(bound.pieces[0]), bound.pieces[0].over
                if bound.roundings or (under != 1 and under != over):
                    return None
                bound_of = value if under == over and over != 1 else value * over
                beyond = _is_beyond(term, bound_of, piece, law is maximum, call.at_least)
                term = bound_of if beyond else law(term, bound_of)
        return replace(piece, term=term)

    bounded = [abs(int(str(b.pieces[0].term))) for b in bounds if b and isinstance(b.pieces[0].term, int)]
    numbers = len(bounded) == sum(b is not None for b in bounds)
    keeping = numbers and _are_above(pieces, max(bounded, default=0))
    found = mapped(pieces, clamped, keeping=keeping)
    if found is None or pieces.slack:
        return UNTRACKED
    if not keeping or not all(isinstance(b, int) for b in (low, high) if b is not None):
        return found
    ends = (high is not None, low is not None)
    sure = tuple(_clamped_surely(p, q, ends, call) for p, q in zip(pieces.pieces, found.pieces, strict=True))
    return replace(found, pieces=sure)


def _is_beyond(term: Dim, bound: Dim, piece: Piece, below: bool, at_least: AtLeast) -> bool:
    """Returns whether all numbers of a piece are certainly at most, or at least, a bound."""
    ends = corners(term, piece.indices, at_least) if piece.indices else None
    if ends is None:
        return False
    apart = (bound - end for end in ends[1]) if below else (end - bound for end in ends[0])
    return all(at_least(dim, 0) for dim in apart)


def _clamped_surely(piece: Piece, clamped: Piece, ends: tuple[bool, bool], call: NamedCall) -> Piece:
    """Returns numbers clamped to bounds. All are exact if those in doubt lie beyond a bound, since they
    become that bound.
    """
    if piece.doubt is False or piece.term is None:
        return clamped
    found = corners(piece.term, piece.indices, call.at_least)
    above, below = ends
    if found is None:
        return clamped
    none_above = all(call.at_least(-1 * high, 0) for high in found[1])
    none_below = all(call.at_least(low, 0) for low in found[0])
    sure = (above or none_above) and (below or none_below)
    return replace(clamped, doubt=False, least=0) if sure else clamped


def _are_above(pieces: Pieces, bound: int) -> bool:
    """Returns whether all elements in doubt are greater than the bound."""
    return all(p.doubt is False or p.least > bound for p in pieces.pieces)


def _within(call: NamedCall, low: Any, high: Any) -> Elements | Pieces:
    """Returns the user's integers within bounds: any of these.

    With a single bound, the bound or other integers.
    """
    if isinstance(low, int | Term) and isinstance(high, int | Term):
        occur = call.is_free(call.input)
        return Affine(low) if low == high else Span(minimum(low, high), high, occur, by_data=True)
    found = of_number(high if low is None else low)
    return UNTRACKED if found is None else beside_data(found, attained=False)


def of_two(law: Callable[..., Dim]) -> Law:
    def of_two(call: NamedCall) -> Elements | Pieces:
        sized = [name for name in ("input", "other") if not is_given(call.named.get(name))]
        if len(sized) < 2:
            known = call.operand(sized[0]) if sized else None
            return (known and beside_data(known, attained=False)) or (UNTRACKED if sized else None)
        return _extreme(law, call.operand("input"), call.operand("other")) or UNTRACKED

    return of_two


def _extreme(law: Callable[..., Dim], a: Pieces | None, b: Pieces | None) -> Pieces | None:
    """Returns the greater or the lesser of the elements at each index."""
    if a is None or b is None or a.slack or b.slack:
        return None

    def extreme(p: Piece, q: Piece) -> tuple[Dim, Dim]:
        if p.over == q.over:
            return law(number(p), number(q)), p.over
        return law(number(p) * q.over, number(q) * p.over), p.over * q.over

    return combined(a, b, extreme, _beside_less)


def where_chosen(call: NamedCall) -> Elements | Pieces:
    """Returns elements of either of two operands; each of both, where the data choose."""
    condition = call.named.get("condition")
    sized = [name for name in ("input", "other") if not is_given(call.named.get(name))]
    if len(sized) == 1:
        (name,) = sized
        found = call.operand(name)
        return UNTRACKED if found is None else beside_data(found, attained=False)
    a, b = (chosen_where(call, name, name == "input") for name in ("input", "other"))
    if a is None or b is None or not isinstance(condition, Tensor) or a.slack or b.slack:
        return UNTRACKED
    on_data = condition.elements is None
    same = of(condition)
    if isinstance(same, Affine) and not same.steps:
        return a if same.start else b
    match condition.elements:
        case Truths(_, _, (axis, first, last)) if condition.shape[axis] == call.result.shape[axis]:
            size = call.result.shape[axis]
            taken = _between(a, axis, first, last, size)
            others = _between(b, axis, last, first, size)
            return union([taken, others])
    if not on_data:
        return union([a, b], attained=False)
    never, always = call.usual(condition)
    apart = call.is_free(condition)  # else it may choose by the numbers between which it chooses
    sides = (_at(a, negate(never), apart or not a.by_data), _at(b, negate(always), apart or not b.by_data))
    return union([*sides], by_data=True)


def _at(pieces: Pieces, given: Formula, attained: bool) -> Pieces:
    """Returns the pieces at these sizes only, perhaps not all of their elements."""
    return replace(pieces, pieces=tuple(
        replace(p, given=all_of((p.given, given)), attained=p.attained and attained) for p in pieces.pieces
    ))  # fmt: skip


def filled_where(call: NamedCall) -> Elements | Pieces:
    """Returns the result of `masked_fill`: the value where the mask is true, and the elements elsewhere."""
    named = call.named
    swapped = {"condition": named["mask"], "input": named["value"], "other": named["input"]}
    return where_chosen(replace(call, named=swapped))


def _between(pieces: Pieces, axis: int, first: Dim | None, last: Dim | None, size: Dim) -> Pieces:
    """Returns the elements from a first index of an axis on, up to before a last."""
    start = 0 if first is None else maximum(first, 0)
    count = (size if last is None else minimum(last, size)) - start

    apart = is_partition(pieces)

    def one(piece: Piece) -> Piece:
        there = [i for i in piece.indices if i.axis == axis]
        given = all_of((piece.given, ge(count, 1)))
        loose = any(i.axis is None for i in piece.indices) or any(at == axis for at, _ in piece.fixed)
        if loose or not apart or len(there) > 1 or not all(i.ordered for i in there):
            return replace(piece, given=given, attained=False)
        term = substitute(number(piece), {i.name: start + symbol_of(i) for i in there})
        part = {i: replace(i, size=count, axis=None, ordered=False) for i in there}
        return replace(piece, term=term, given=given, indices=tuple(part.get(i, i) for i in piece.indices))

    return mapped(pieces, one) or pieces


def is_given(value: Any) -> bool:
    """Returns whether the user gives the elements."""
    return isinstance(value, Tensor) and of(value) is None


def beside_data(pieces: Pieces, *, attained: bool) -> Pieces:
    """Returns the elements, and others that the user gives, which are assumed to be valid wherever they are
    indices.
    """
    kept = tuple(p if attained else replace(p, attained=False) for p in pieces.pieces)
    return replace(pieces, pieces=kept, by_data=True, and_data=True)


def union(parts: list[Pieces], *, attained: bool = True, by_data: bool = False) -> Elements | Pieces:
    known = [p for part in parts for p in part.pieces if p.term is not None]
    unknown = [p.given for part in parts for p in part.pieces if p.term is None]
    by_data = by_data or any(part.by_data for part in parts)
    found = gathered(
        [p if attained else replace(p, attained=False) for p in known],
        any_of(unknown),
        by_data,
        max(part.roundings for part in parts),
        any(part.slack for part in parts),
    )
    if found is None:
        return UNTRACKED
    return replace(found, and_data=any(part.and_data for part in parts))


def negated(call: NamedCall) -> Elements | Pieces:
    pieces = call.pieces
    return UNTRACKED if pieces is None else scaled(pieces, -1)


def whole(pieces: Pieces | None, law: Callable[[Dim, Dim], Dim]) -> Pieces | None:
    """Returns fractions rounded to integers by a law of numerator and denominator.

    A fraction that was rounded once, to the nearest float, is on the same side of every integer; one that was
    rounded more often, perhaps not.
    """
    if pieces is None:
        return None
    fractions = any(p.over != 1 for p in pieces.pieces if p.term is not None)

    def one(p: Piece) -> Piece:
        term = law(number(p), p.over)
        near = p.near if is_near(p) is not False else None
        return replace(p, term=term, over=1, near=near and replace(near, term=term, over=1, part=None))

    found = mapped(pieces, lambda p: one(p) if p.over != 1 else p, keeping=True)
    if found is None:
        return None
    slack = pieces.slack or (fractions and pieces.roundings > 1 and not _is_constant(pieces))
    return replace(found, roundings=0, slack=slack)


def _is_constant(pieces: Pieces) -> bool:
    """Returns whether the elements are one fraction shifted by small numbers. `of_fraction` says up to which
    sizes such elements are exact.
    """
    return len(pieces.pieces) == 1 and not pieces.pieces[0].indices and isinstance(pieces.pieces[0].over, int)


def floored(call: NamedCall) -> Elements | Pieces:
    found = whole(nearest_floats(call.pieces, call.at_least), lambda n, d: n // d)
    return UNTRACKED if found is None or found.slack else found


def ceiled(call: NamedCall) -> Elements | Pieces:
    found = whole(nearest_floats(call.pieces, call.at_least), ceildiv)
    return UNTRACKED if found is None or found.slack else found


def nearest(call: NamedCall) -> Elements | Pieces:
    """Returns the elements rounded half to even."""
    pieces = nearest_floats(call.pieces, call.at_least)
    integers = call.named.get("decimals") in (0, None)
    if pieces is None or not integers or pieces.slack or pieces.roundings > 1:
        return UNTRACKED
    if not any(p.over != 1 and p.indices for p in pieces.pieces):
        return whole(pieces, nearest_even) or UNTRACKED

    def ends(piece: Piece) -> Piece | None:
        """Returns the rounded extremes: rounding is increasing, so they are the extremes of the result."""
        found = corners(number(piece), piece.indices, call.at_least)
        if found is None or len(found[0]) > 1 or len(found[1]) > 1:
            return None
        return two_ends(piece, *(nearest_even(side[0], piece.over) for side in found))

    found = mapped(pieces, ends)
    return UNTRACKED if found is None else replace(found, roundings=0)


def cast(call: NamedCall) -> Elements | Pieces:
    """Returns the same numbers in another dtype. A fraction is truncated to an integer, towards zero."""
    elements = of(call.input)
    if call.result.dtype == call.input.dtype and not isinstance(elements, Pieces):
        return elements
    pieces = pieces_of(elements, call.input.shape)
    if pieces is not None and call.input.dtype == "float16" != call.result.dtype:
        pieces = _out_of_halves(pieces, call)
    if pieces is None or call.result.dtype not in INTEGRAL:
        return elements if pieces is None else pieces
    pieces = nearest_floats(pieces, call.at_least) or pieces
    if not _has_fractions(pieces):
        return replace(pieces, roundings=0, slack=pieces.slack or pieces.roundings > 0)
    input = structs.replace(call.input, elements=pieces)
    return truncated(replace(call, named={**call.named, "input": input}))


def _out_of_halves(pieces: Pieces, call: NamedCall) -> Pieces | None:
    """Returns the elements of halves in another dtype: integers of 64 bits have their least number in place
    of infinity, and of another dtype that is not known.
    """
    least = -(1 << 63) if call.result.dtype == "int64" else None
    split = [replace(piece, term=least) if is_infinite(piece) else piece for piece in pieces.pieces]
    unknown = any_of(part.given for part in split if part.term is None)
    kept = [part for part in split if part.term is not None]
    found = gathered(kept, unknown, pieces.by_data, pieces.roundings, pieces.slack)
    return found and replace(found, and_data=pieces.and_data)


def truncated(call: NamedCall) -> Elements | Pieces:
    """Returns fractions truncated to integers, towards zero."""
    pieces = nearest_floats(call.pieces, call.at_least)
    if pieces is None:
        return UNTRACKED
    if _is_never_negative(pieces, call):
        return whole(_with_sharp(pieces, call.at_least), lambda n, d: n // d) or UNTRACKED
    if _is_never_negative(scaled(replace(pieces, roundings=0), -1), call):
        return whole(pieces, ceildiv) or UNTRACKED
    return UNTRACKED


def _with_sharp(pieces: Pieces, at_least: AtLeast) -> Pieces:
    """Returns the pieces, with those marked of which the greatest number is exact once they are whole."""
    return replace(pieces, pieces=tuple(
        replace(p, near=replace(p.near, sharp=True)) if p.near and _is_sharp(p, at_least) else p
        for p in pieces.pieces
    ))  # fmt: skip


def _has_fractions(pieces: Pieces) -> bool:
    return any(p.over != 1 for p in pieces.pieces)


def of_fraction(law: Law) -> Law:
    """Returns the law of a function that rounds numbers to integers. Floats hold the whole part of one
    fraction n/d of sizes up to some n. Beyond, the result is in doubt; as rounding keeps the order, it stays
    as far from 0.
    """

    def of(call: NamedCall) -> Elements | Pieces:
        found = law(call)
        match call.input:
            case Tensor(_, dtype, _, Ratio(n, d, r)) if dtype in DIGITS:
                _, most = limits(dtype, max(r, 1), d) or (0, 0)
            case _:
                return found
        pieces = None if found is UNTRACKED else pieces_of(found, call.result.shape)
        inside = call.at_least(most - n, 0) and call.at_least(most + n, 0)
        if pieces is None or inside or call.result.dtype not in WHOLE | DIGITS.keys():
            return found
        doubt = any_of((ge(n, most + 1), ge(-most - 1, n)))
        if dtype == "float16":  # it may be infinite
            there = [replace(p, given=all_of((p.given, negate(doubt)))) for p in pieces.pieces]
            return replace(pieces, pieces=(*there, Piece(None, given=doubt)))
        return replace(pieces, pieces=tuple(replace(p, doubt=doubt, least=most // d) for p in pieces.pieces))

    return of
