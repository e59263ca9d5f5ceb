"""Bounds of functions of elements, place by place: arithmetic, casts, roundings and choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Final

from ...ir.language import Quotient, Slice
from ...ir.program import Ref
from ...terms.dims import Term
from ..elements.dtypes import DIGITS, INTEGRAL
from ..laws.calls import CASTS
from ..lookups.computed import NotComputed
from .held import rounded, wrapped
from .lines import (
    Bound,
    Ends,
    Growth,
    Line,
    Sameness,
    constant,
    flat,
    greater,
    less,
    lower,
    product_above,
    product_below,
    quotient,
    scaled,
    single,
    upper,
)
from .tails import EndsCall, Law

LAST: Final = (1 << 63) - 1
LEAST: Final = -(1 << 63)
"""The integer of 64 bits that floats are cut to which none represents."""


def _together(call: EndsCall, names: Iterable[str]) -> tuple[Growth, int | None]:
    """Returns what stays of a function of the operands' elements at the same place."""
    growth, roots = Growth.PLACES, set()
    for name in names:
        found = call.args.get(name)
        if found is None or isinstance(found, int | float):
            continue
        ends = call.ends(name)
        growth = min(growth, ends.growth)
        if isinstance(found, Ref) and not _is_one_number(call, name):
            roots.add(ends.root)
    if len(roots) > 1 and growth < Growth.PLACES:
        growth = Growth.NOTHING
    return growth, roots.pop() if len(roots) == 1 else None


def _by_element(law: Callable[[EndsCall], Ends], *names: str) -> Law:
    """Returns the law of a function of elements: its bounds, rounded or wrapped as the dtype does."""

    def of(call: EndsCall) -> Ends:
        growth, root = _together(call, names)
        chosen = any(call.is_chosen(name) for name in names)
        several = [n for n in names if call.args.get(n) is not None and not _is_one_number(call, n)]
        if chosen and not all(map(call.is_chosen, several)):
            raise NotComputed
        alike = call.ends(several[0]).alike if len(several) == 1 else Sameness.NO
        found = law(call)
        growth = max(growth, found.growth) if call.op in CASTS else growth
        alike = min(alike, found.alike) if found.alike else alike
        found = replace(found, growth=growth, root=root, chosen=chosen, alike=alike)
        exact = call.op not in ("mul", "div") or all(map(call.is_exact, names))
        whole = call.op in CASTS and call.operand().dtype in INTEGRAL
        if call.dtype in DIGITS:
            return rounded(found, call.dtype, exact, whole)
        return found if call.op in CASTS and call.dtype == "int64" else wrapped(found, call.dtype)

    return of


def _is_one_number(call: EndsCall, name: str) -> bool:
    """Returns whether all elements of an operand are the same number."""
    return call.is_single(name) or single(call.ends(name)) is not None


def _sum(call: EndsCall, sign: int = 1, names: tuple[str, str] = ("input", "other")) -> Ends:
    if call.args.get("alpha", 1) != 1:
        raise NotComputed
    one, other = (call.held(name) for name in names)
    if sign < 0 and (extreme := _own_extreme(call, names)) is not None:
        return _from_extreme(call, one, extreme, names[0])
    if sign < 0 and (extreme := _own_extreme(call, names[::-1])) is not None:
        return _from_extreme(call, other, extreme, names[1]).negated
    other = other.negated if sign < 0 else other
    if one.wild and other.wild:
        raise NotComputed

    def plus(a: Bound, b: Bound) -> Bound:
        return None if a is None or b is None else a.plus(b)

    top = greater(plus(one.top, other.low), plus(one.low, other.top))
    bottom = less(plus(one.bottom, other.high), plus(one.high, other.bottom))
    if _all_meet(call, names):
        top, bottom = plus(one.top, other.top), plus(one.bottom, other.bottom)
    low, high = plus(one.low, other.low), plus(one.high, other.high)
    return Ends(low, high, top, bottom, wild=one.wild or other.wild)


def _own_extreme(call: EndsCall, names: tuple[str, str]) -> str | None:
    """Returns the operator (`min`, `max`, `amin` or `amax`) if the second operand is the extreme of the
    elements of the first; None where it is not.
    """
    one, other = (call.args.get(name) for name in names)
    made = call.places.program.made(other.id) if isinstance(other, Ref) else None
    if made is None or not isinstance(other, Ref) or call.dtype not in INTEGRAL or made.place:
        return None
    args = call.places.args(made)
    whole = args.get("other") is None and call.is_single(names[1])
    same = made.op in ("min", "max", "amin", "amax") and args.get("input") == one and whole
    return made.op if same and call.places.is_as_made(other.id, call.time) else None


def _from_extreme(call: EndsCall, ends: Ends, extreme: str, name: str) -> Ends:
    """Returns the bounds of how far numbers are from their least one, or from their greatest: 0 is among
    them, and where each of two or more is chosen freely, so is the distance of what they reach.
    """
    counts = [call.tail.lines(n) for n in call.operand(name).shape]
    if all(most is not None and most.is_below(flat(1)) for _, most in counts):
        return constant(0)
    reach = None if ends.low is None or ends.high is None else ends.high.minus(ends.low)
    free = ends.chosen and ends.alike is Sameness.FREE and ends.top is not None and ends.bottom is not None
    several = any(count is not None and flat(2).is_below(count) for count, _ in counts)
    far = ends.top.minus(ends.bottom) if free and several and ends.top and ends.bottom else flat(0)
    found = Ends(flat(0), reach, far, flat(0), alike=Sameness.EACH)  # not all at once are so far
    return found if extreme.endswith("min") else found.negated


def _all_meet(call: EndsCall, names: Iterable[str]) -> bool:
    """Returns whether all pairs of the elements of two operands meet, as they vary along other axes."""
    names = [name for name in names if isinstance(call.args.get(name), Ref)]
    if len(names) > 1 and any(map(call.is_chosen, names)) and not _are_one(call, names):
        return False
    shapes = [call.operand(name).shape for name in names]
    return len(shapes) < 2 or all(1 in pair for pair in zip(*(s[::-1] for s in shapes), strict=False))


def _are_one(call: EndsCall, names: Sequence[str]) -> bool:
    """Returns whether operands that are added, or multiplied, are one tensor with dims of size 1 at different
    places: each of its elements meets itself.
    """
    made = [call.places.program.made(one.id) for name in names if isinstance(one := call.args.get(name), Ref)]
    views = [call.places.args(one) for one in made if one is not None and one.op == "getitem"]
    indices = [view.get("index") for view in views]
    whole = all(isinstance(index, tuple) and set(index) <= {None, Slice()} for index in indices)
    one_tensor = len({view.get("input") for view in views}) == 1
    return call.op in ("add", "mul") and whole and one_tensor and len(views) == len(names)


def _product(call: EndsCall) -> Ends:
    one, by = call.ends("input"), call.args.get("other")
    if isinstance(by, Quotient):
        over, under = (call.ends_of(part) for part in (by.over, by.under))
        if single(found := quotient(over, under)) is not None:
            return _times(call, one, found)
        return quotient(_times(call, one, over), under)
    return _times(call, one, call.ends("other"))


def _times(call: EndsCall, one: Ends, other: Ends) -> Ends:
    for factor, ends in ((single(one), other), (single(other), one)):
        if factor is not None and not (ends.wild and (factor <= 0 or call.dtype not in DIGITS)):
            return scaled(ends, factor)
    if one.wild or other.wild:
        raise NotComputed
    if not (one.natural and other.natural):
        return _of_corners(one, other)
    top = greater(_below(one.top, other.low), _below(one.low, other.top))
    if _all_meet(call, ("input", "other")):
        top = _below(one.top, other.top)
    bottom = less(product_above(one.bottom, other.high), product_above(one.high, other.bottom))
    return Ends(product_below(one.low, other.low), product_above(one.high, other.high), top, bottom)


def _of_corners(one: Ends, other: Ends) -> Ends:
    a, c = (None if end.low is None else end.low.least for end in (one, other))
    b, d = (None if end.high is None else end.high.most for end in (one, other))
    if a is None or b is None or c is None or d is None:
        return Ends()
    found = (a * c, a * d, b * c, b * d)
    return Ends(flat(min(found)), flat(max(found)))


def _divided(call: EndsCall) -> Ends:
    mode = call.args.get("rounding_mode")
    one, other = call.ends("input"), call.ends("other")
    by = single(other)
    if by is not None and by < 0:
        one, other = one.negated, other.negated
    found = quotient(one, other)
    return found if mode is None else _to_whole(found, math.floor if mode == "floor" else math.trunc)


def _floored(ends: Ends) -> Ends:
    return _to_whole(ends, math.floor)


def _to_whole(ends: Ends, law: Callable[[Fraction], int]) -> Ends:
    """Returns the bounds of numbers that a function which does not fall makes whole: less than 1 away."""

    def moved(one: Bound, by: int) -> Bound:
        if one is None or one.constant:
            return one and flat(law(one.at))
        return one.plus(flat(by))

    down, up = (0 if law is math.ceil else -1), (0 if law is math.floor else 1)
    found = (moved(ends.low, down), moved(ends.high, up), moved(ends.top, down), moved(ends.bottom, up))
    low, high, top, bottom = found
    return replace(ends, low=low, high=high, top=top, bottom=bottom)


def _whole(law: Callable[[Fraction], int]) -> Callable[[EndsCall], Ends]:
    return lambda call: _to_whole(call.ends(), law)


def _cast(call: EndsCall) -> Ends:
    ends, source = call.ends(), call.operand().dtype
    if call.dtype == "bool":
        found = _of_truth(ends)
        whole = ends.natural and source in INTEGRAL
        return replace(found, high=less(found.high, ends.high)) if whole else found
    if call.dtype in INTEGRAL and source in DIGITS:
        if call.dtype == "int64" and (powers := _of_powers(call)) is not None:
            return powers
        if ends.wild:  # as an integer, infinity is the least one, which no size allows
            if call.dtype != "int64":
                raise NotComputed
            far = ends.top is not None and flat(-LEAST).is_below(ends.top)
            if far or (ends.bottom is not None and ends.bottom.is_below(flat(LEAST))):
                return Ends(flat(LEAST), None, None, flat(LEAST), chosen=ends.chosen)
            return replace(ends, low=None, high=None, top=_to_whole(ends, math.trunc).top, bottom=None)
        return _to_whole(ends, math.floor if ends.natural else math.trunc)
    if ends.wild and call.dtype in INTEGRAL and call.dtype != "int64":
        raise NotComputed
    return ends


def _of_powers(call: EndsCall) -> Ends | None:
    """Returns the bounds of powers of 2 as integers, which from 2**63 on are the least one. Of fractions e of
    exponents, which are rounded, those below 128 err by less than 1/64.
    """
    source = call.args["input"]
    made = call.places.program.made(source.id) if isinstance(source, Ref) else None
    if made is None or made.op != "logspace" or call.operand().dtype not in ("float32", "float64"):
        return None
    args, count = call.places.args(made), call.result.shape[0]
    end = call.ends_of(args.get("end"))
    least, most = (None if one is None else one.least for one in (end.low, end.high and end.high.negated))
    if type(count) is not int or count < 2 or least is None or least < 0:
        return None
    first, last = Fraction(least), None if most is None else -most
    whole = first == last and first % (count - 1) == 0
    low, high, top, bottom, stays = [1], [1], [1], [1], True
    for place in range(1, count):
        reach = Fraction(place, count - 1)
        off = 0 if whole or (reach == 1 and isinstance(args["end"], int | Term)) else Fraction(1, 64)
        begin, stop = first * reach - off, None if last is None else last * reach + off
        low += [LEAST] if stop is None or stop >= 63 else []
        bottom += [LEAST] if begin >= 63 else []
        high += [] if begin >= 63 else [LAST if stop is None or stop > 62 else 1 << math.ceil(stop)]
        top += [1 << math.floor(begin)] if begin >= 0 and stop is not None and stop < 63 else []
        stays = stays and begin >= 63
    growth = Growth.PLACES if stays else Growth.NOTHING
    return Ends(flat(min(low)), flat(max(high)), flat(max(top)), flat(min(bottom)), growth)


def _of_truth(ends: Ends) -> Ends:
    if ends.wild:
        raise NotComputed
    one = flat(1)
    true = (ends.low is not None and one.is_below(ends.low)) or (
        ends.high is not None and ends.high.is_below(flat(-1))
    )
    reached = ends.natural and ends.top is not None and one.is_below(ends.top)
    return Ends(flat(int(true)), one, one if reached or true else None)


def _remainder(call: EndsCall) -> Ends:
    one, other = call.ends("input"), call.ends("other")
    least, most = other.low, other.high
    if single(other) == 1 and call.dtype in INTEGRAL:
        return constant(0)
    if least is None or most is None or least.at < 1 or not least.rises or one.wild:
        raise NotComputed
    if one.natural and one.high is not None and one.high.is_below(least.plus(flat(-1))):
        return one
    if call.op == "fmod" and not one.natural:
        return Ends(most.times(-1).plus(flat(1)), most.plus(flat(-1)))
    below = most.plus(flat(-1))
    return Ends(flat(0), less(below, one.high) if one.natural else below)


def _power(call: EndsCall) -> Ends:
    base, exponent = call.ends("input"), call.ends("exponent")
    by = single(exponent)
    if base.wild or exponent.wild:
        raise NotComputed
    if by == 2:
        found = _absolute(base)
        return Ends(
            product_below(found.low, found.low),
            product_above(found.high, found.high),
            _below(found.top, found.top),
        )
    if single(base) != 2 or not exponent.natural or exponent.high is None or not exponent.high.constant:
        raise NotComputed
    return exponent.mapped(
        lambda one: flat(1 << math.floor(one.at)) if one.constant and 0 <= one.at < 60 else None
    )


def _absolute(ends: Ends) -> Ends:
    if ends.wild:
        raise NotComputed
    if ends.natural:
        return ends
    if ends.high is not None and ends.high.is_below(flat(0)):
        return ends.negated
    away = ends.negated
    return Ends(flat(0), upper(ends.high, away.high), greater(ends.top, away.top))


def _sign(one: Line) -> Bound:
    if one.constant:
        return flat((one.at > 0) - (one.at < 0))
    least, most = one.least, one.most
    if least is not None and least > 0:
        return flat(1)
    return flat(-1) if most is not None and most < 0 else None


def _signs(call: EndsCall) -> Ends:
    ends = call.ends()
    if ends.wild:
        raise NotComputed
    found = ends.mapped(_sign)
    return replace(found, low=greater(found.low, flat(-1)), high=less(found.high, flat(1)))


def _clamped(call: EndsCall) -> Ends:
    found = call.ends()
    if found.wild:
        raise NotComputed
    for name, law in (("min", _at_least), ("max", at_most)):
        if call.args.get(name) is not None:
            found = law(found, call.ends(name))
    return found


def _at_least(one: Ends, other: Ends) -> Ends:
    """Returns the bounds of the greater of two."""
    low, high = greater(one.low, other.low), upper(one.high, other.high)
    top = greater(greater(one.top, other.top), low)
    met = upper(one.bottom, other.high) or upper(one.high, other.bottom)
    return Ends(low, high, top, met)


def at_most(one: Ends, other: Ends) -> Ends:
    return _at_least(one.negated, other.negated).negated


def _extremum(law: Callable[[Ends, Ends], Ends]) -> Callable[[EndsCall], Ends]:
    def of(call: EndsCall) -> Ends:
        pair = call.ends("input"), call.ends("other")
        if any(one.wild for one in pair):
            raise NotComputed
        return law(*pair)

    return of


def _chosen(one: str, other: str) -> Callable[[EndsCall], Ends]:
    """Returns the law of a choice between two: where one reaches a number, the result is that or the other's.
    """

    def of(call: EndsCall) -> Ends:
        left, right = call.ends(one), call.ends(other)
        if left.wild or right.wild:
            raise NotComputed
        top = greater(lower(left.top, right.low), lower(right.top, left.low))
        bottom = less(upper(left.bottom, right.high), upper(right.bottom, left.high))
        return Ends(lower(left.low, right.low), upper(left.high, right.high), top, bottom)

    return of


def _where(call: EndsCall) -> Ends:
    """A choice, which is the first of the two where this is compared with a number that it is always less
    than.
    """
    condition, one = call.args.get("condition"), call.args.get("input")
    places = call.places
    made = places.program.made(condition.id) if isinstance(condition, Ref) else None
    if made is not None and made.op in ("lt", "gt") and isinstance(condition, Ref) and isinstance(one, Ref):
        args = places.args(made)
        bound = args.get("other")
        kept = args.get("input") == one and places.is_as_made(condition.id, call.time)
        kept = kept and call.operand().shape == call.result.shape
        if made.op == "lt" and kept and isinstance(bound, int | Term):
            high, low = call.ends().high, call.tail.lines(bound)[0]
            if high is not None and low is not None and high.is_below(low.plus(flat(-1))):
                return call.tail.kept(call.ends(), call.operand(), bound - 1)
        if made.op == "gt" and kept and type(bound) is int and bound >= 0:
            return _by_element(partial(_above, bound), "condition", *PAIR)(call)
    return _by_element(_taken, "condition", *PAIR)(call)


def _taken(call: EndsCall) -> Ends:
    """Some of the elements, those for which a comparison holds if the choice is made by one, and others."""
    ends, found = _chosen(*PAIR)(call), _compared(call, "condition")
    return _beside(ends, _those(call.ends(), *found), call.ends("other")) if found else ends


def _compared(call: EndsCall, mask: str) -> tuple[str, int] | None:
    """Returns the comparison with an integer, and this, if a mask is that of the input, as it is now; else
    None.
    """
    condition, source = call.args.get(mask), call.args.get("input")
    made = call.places.program.made(condition.id) if isinstance(condition, Ref) else None
    if made is None or not isinstance(condition, Ref) or not isinstance(source, Ref):
        return None
    args = call.places.args(made)
    bound, known = args.get("other"), args.get("input") == source and made.op in NEGATED
    now = known and all(call.places.is_as_made(ref.id, call.time) for ref in (condition, source))
    whole = now and call.operand().dtype in INTEGRAL and not call.ends().wild
    return (made.op, bound) if whole and type(bound) is int else None


NEGATED: Final = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
"""For each comparison the one that holds where it does not."""


def _those(ends: Ends, comparison: str, bound: int) -> Ends:
    """Returns the bounds of those integers for which a comparison with a number holds, if there are any."""
    low, high = ends.low, ends.high
    if comparison in ("gt", "ge", "eq"):
        low = greater(low, flat(bound + (comparison == "gt")))
    if comparison in ("lt", "le", "eq"):
        high = less(high, flat(bound - (comparison == "lt")))
    return Ends(low, high)


def _filled(call: EndsCall) -> Ends:
    """The elements where a mask is not true, and a number where it is."""
    ends, found = _chosen("input", "value")(call), _compared(call, "mask")
    kept = found and _those(call.ends(), NEGATED[found[0]], found[1])
    return _beside(ends, kept, call.ends("value")) if kept else ends


def _beside(ends: Ends, kept: Ends, other: Ends) -> Ends:
    """Returns the bounds of a choice between some elements and others."""
    return replace(ends, low=lower(kept.low, other.low), high=upper(kept.high, other.high))


def _above(bound: int, call: EndsCall) -> Ends:
    """Numbers where they are greater than a natural one, and others elsewhere, as for the least integer."""
    one, other = call.ends("input"), call.ends("other")
    if other.wild or call.dtype not in INTEGRAL:
        raise NotComputed
    least, high = flat(bound + 1), None if one.wild else upper(one.high, other.high)
    low = lower(least if one.wild else greater(one.low, least), other.low)
    reached = one.top if one.top is not None and least.is_below(one.top) and not one.wild else None
    return Ends(low, high, greater(reached, low))


def _bits(call: EndsCall) -> Ends:
    """Bits of natural numbers: `x & c` is at most c, and `x | c` and `x ^ c` differ from x by at most c."""
    one, by = call.ends("input"), single(call.ends("other"))
    if by is None or by < 0 or one.wild:
        raise NotComputed
    if call.op == "bitwise_and":
        return Ends(flat(0), flat(by) if one.high is None or not one.natural else less(flat(by), one.high))
    if not one.natural:
        raise NotComputed
    down, up = flat(-by), flat(by)
    low = one.low and greater(flat(0), one.low.plus(down))
    high, bottom = one.high and one.high.plus(up), one.bottom and one.bottom.plus(up)
    return Ends(low, high, one.top and one.top.plus(down), bottom)


def _shifted(call: EndsCall) -> Ends:
    one, by = call.ends("input"), single(call.ends("other"))
    if by is None or not 0 <= by < 8 or one.wild:
        raise NotComputed
    power = 1 << int(by)
    return scaled(one, power) if call.op == "lshift" else _floored(scaled(one, Fraction(1, power)))


def _root(call: EndsCall) -> Ends:
    """Roots: that of x is at most (x + 1)/2."""
    ends = call.ends()
    if not ends.natural or ends.wild:
        raise NotComputed

    def least(one: Bound) -> Bound:
        return None if one is None or one.at < 0 or not one.rises else flat(_root_of(one.at))

    def most(one: Bound) -> Bound:
        last = None if one is None else one.most
        if one is None or last is None:
            return one and one.plus(flat(1)).times(Fraction(1, 2))
        root = _root_of(last)
        return flat(root if root * root == last else root + Fraction(1, 1 << 30))

    return Ends(least(ends.low), most(ends.high), least(ends.top), most(ends.bottom))


def _root_of(x: Fraction) -> Fraction:
    """Returns the root of a number, or at most 2**-30 less."""
    whole = Fraction(math.isqrt(math.floor(x)))
    return whole if whole * whole == x else Fraction(math.isqrt(math.floor(x * (1 << 60))), 1 << 30)


def _truth(call: EndsCall) -> Ends:
    return Ends(flat(0), flat(1))


def _below(a: Bound, b: Bound) -> Bound:
    """Returns a number that a product reaches; what is reached by numbers that may be negative is left out.
    """
    natural = all(x is not None and flat(0).is_below(x) for x in (a, b))
    return product_below(a, b) if natural else None


PAIR: Final = ("input", "other")
FUNCTIONS: Final[Mapping[str, Law]] = {
    "add": _by_element(_sum, *PAIR),
    "sub": _by_element(lambda call: _sum(call, -1), *PAIR),
    "rsub": _by_element(lambda call: _sum(call, -1, ("other", "input")), *PAIR),
    "mul": _by_element(_product, *PAIR),
    "div": _by_element(_divided, *PAIR),
    "floor_divide": _by_element(lambda call: _floored(quotient(call.ends(), call.ends("other"))), *PAIR),
    **dict.fromkeys(("remainder", "fmod"), _by_element(_remainder, *PAIR)),
    "pow": _by_element(_power, "input", "exponent"),
    "neg": _by_element(lambda call: call.ends().negated, "input"),
    "abs": _by_element(lambda call: _absolute(call.ends()), "input"),
    "sign": _by_element(_signs, "input"),
    **dict.fromkeys("clamp clamp_min clamp_max".split(), _by_element(_clamped, "input", "min", "max")),
    "maximum": _by_element(_extremum(_at_least), *PAIR),
    "minimum": _by_element(_extremum(at_most), *PAIR),
    "where": _where,
    "masked_fill": _by_element(_filled, "input", "mask", "value"),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), _by_element(_bits, *PAIR)),
    **dict.fromkeys(("lshift", "rshift"), _by_element(_shifted, *PAIR)),
    "ceil": _by_element(_whole(math.ceil), "input"),
    "floor": _by_element(_whole(math.floor), "input"),
    "trunc": _by_element(_whole(math.trunc), "input"),
    "round": _by_element(_whole(round), "input"),
    "sqrt": _by_element(_root, "input"),
    **dict.fromkeys("eq ne lt le gt ge".split(), _by_element(_truth, *PAIR)),
    **dict.fromkeys(CASTS, _by_element(_cast, "input")),
}
"""For each function of elements the bounds of its result."""
