"""Bounds of the elements of tensors at all sizes from some number on.

Of a size n from N on, a bound is linear: a number at N, and by how much it rises with n. There are bounds of
all elements, and numbers that some element reaches: an index is invalid wherever some element reaches beyond
the table. The elements of a tensor that grows stay as it grows: the range of n + 1 has all numbers of the
range of n, and so has whatever a function makes of each, so that the greatest is at least the one at N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction
from typing import Any, Final, TypeAlias

from ..ir.language import Affine, Dots, Pieces, Quotient, Slice, Span, Tensor
from ..ir.program import Argument, Ref
from ..terms.dims import Apply, Dim, Symbol, Term
from .arrays import ALIKE, Arrays, DoesNotRun
from .computed import NotComputed, held
from .dtypes import DIGITS, INTEGRAL
from .laws.calls import CASTS
from .places import Places
from .shaping import is_permutation
from .values import extremes

INFINITY: Final = 1 << 200
"""Stands for infinity."""
FARTHEST: Final = 1 << 25
"""Sizes from this one on are not told apart."""
LEAST: Final = -(1 << 63)
"""The integer of 64 bits that floats are cut to which none represents."""


@dataclass(frozen=True, slots=True)
class Line:
    """A bound: `at` for n = N, and `slope` more for each further one, of which there are `span`, or more than
    any number.
    """

    at: Fraction
    slope: Fraction = Fraction(0)
    span: int | None = None

    def plus(self, other: Line) -> Line:
        return Line(self.at + other.at, self.slope + other.slope, self.within(other))

    def times(self, factor: Fraction | int) -> Line:
        return Line(self.at * factor, self.slope * factor, self.span)

    def within(self, other: Line) -> int | None:
        return other.span if self.span is None else self.span

    def is_below(self, other: Line) -> bool:
        """Returns whether it is at most the other, for all n."""
        span, slope = self.within(other), other.slope - self.slope
        return self.at <= other.at and (slope >= 0 if span is None else self.at <= other.at + slope * span)

    @property
    def constant(self) -> bool:
        return self.slope == 0

    @property
    def end(self) -> Fraction | None:
        """The bound for the last n."""
        return None if self.span is None and self.slope else self.at + self.slope * (self.span or 0)


Bound: TypeAlias = "Line | None"


def flat(number: Fraction | int | float) -> Line:
    return Line(Fraction(number))


def upper(a: Bound, b: Bound) -> Bound:
    """Returns a bound that is at least two others; None is infinite."""
    return None if a is None or b is None else Line(max(a.at, b.at), max(a.slope, b.slope), a.within(b))


def lower(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else Line(min(a.at, b.at), min(a.slope, b.slope), a.within(b))


def greater(a: Bound, b: Bound) -> Bound:
    """Returns one of two bounds, the greater one where one is: both hold, and None says nothing."""
    if a is None or b is None:
        return b if a is None else a
    return b if a.is_below(b) or (not b.is_below(a) and b.slope > a.slope) else a


def less(a: Bound, b: Bound) -> Bound:
    if a is None or b is None:
        return b if a is None else a
    return b if b.is_below(a) or (not a.is_below(b) and b.slope < a.slope) else a


class Growth(IntEnum):
    """What stays as n grows."""

    NOTHING = 0
    NUMBERS = 1
    """Each number that is among the elements stays so."""
    BAG = 2
    """Each stays as often."""
    PLACES = 3
    """Each element stays at its place."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Bounds of the elements of a tensor: all are at least `low` and at most `high`, some one is `top` or
    more, and some one is `bottom` or less. With `wild`, some may be floats that no integer represents, or
    made from such.
    """

    low: Bound = None
    high: Bound = None
    top: Bound = None
    bottom: Bound = None
    growth: Growth = Growth.NOTHING
    root: int | None = None
    """The tensor at whose places the elements are made from its own, one by one."""
    wild: bool = False
    chosen: bool = False
    """Whether the data choose the elements, which reach `top` and `bottom` for some data."""

    def mapped(self, law: Callable[[Line], Bound]) -> Ends:
        """Returns the bounds of a function of the elements that does not fall, which takes bounds to bounds.
        """
        found = (None if one is None else law(one) for one in (self.low, self.high, self.top, self.bottom))
        low, high, top, bottom = found
        return replace(self, low=low, high=high, top=top, bottom=bottom)

    def within(self, least: Line, most: Line) -> bool:
        return (
            self.low is not None
            and self.high is not None
            and least.is_below(self.low)
            and self.high.is_below(most)
        )

    @property
    def up_to_farthest(self) -> Ends:
        """Returns the bounds for sizes up to the farthest: larger ones are not told apart from these."""
        return self.mapped(lambda one: replace(one, span=FARTHEST) if one.span is None else one)

    @property
    def natural(self) -> bool:
        return self.low is not None and flat(0).is_below(self.low)

    @property
    def negated(self) -> Ends:
        low, high, top, bottom = (
            None if one is None else one.times(-1) for one in (self.high, self.low, self.bottom, self.top)
        )
        return replace(self, low=low, high=high, top=top, bottom=bottom)

    @property
    def loose(self) -> Ends:
        """Returns the bounds of some of the elements."""
        return replace(self, top=None, bottom=None, growth=Growth.NOTHING, root=None)


def constant(number: Fraction | int | float) -> Ends:
    one = flat(number)
    return Ends(one, one, one, one, Growth.PLACES)


class Tail:
    """The bounds of the elements of a program's tensors, for one size from a number on, or up to another."""

    def __init__(
        self, places: Places, name: str, first: int, last: int | None, arrays: Arrays | None
    ) -> None:
        self.places = places
        self.name = name
        self.first = first
        self._span = None if last is None else last - first
        self.arrays = arrays
        """The elements at some n that is not greater than the first."""
        self.begins_there = arrays is None or arrays.sizes[name] == first
        """Whether what stays from the first n on stays from there on."""
        self._found: dict[int, Ends] = {}

    def of(self, ref: int, time: int) -> Ends:
        """Returns the bounds of a value, as it is when the call number `time` is made."""
        value = self.places.program.value(ref)
        if not isinstance(value, Tensor) or not self.places.is_as_made(ref, time):
            raise NotComputed
        if ref not in self._found:
            self._found[ref] = self._of(ref, value, time)
        return self._found[ref]

    def _of(self, ref: int, value: Tensor, time: int) -> Ends:
        made = self.places.program.made(ref)
        found = Ends()
        if made is not None:
            args = self.places.args(made)
            call = EndsCall(self, ref, made.op.rstrip("_"), args, value, made.place, made.time)
            found = call.result()
        plain = self._plain(value)
        if plain is not None and not found.wild:
            found = Ends(
                greater(plain.low, found.low),
                less(plain.high, found.high),
                greater(plain.top, found.top),
                less(plain.bottom, found.bottom),
                max(plain.growth, found.growth),
                found.root,
                chosen=plain.chosen or found.chosen,
            )
        if found.growth and not found.wild and self.arrays is not None:
            try:
                there = self.arrays.of(ref, time).numbers
            except (NotComputed, DoesNotRun):
                there = ()
            if there:
                least, most = flat(min(there)), flat(max(there))
                found = replace(found, top=greater(found.top, most), bottom=less(found.bottom, least))
                if found.growth >= Growth.BAG and all(type(size) is int for size in value.shape):
                    found = replace(found, low=least, high=most, top=most, bottom=least)
        if found.root is None:
            found = replace(found, root=ref)
        same = _single(found) is not None and not found.wild
        if same and self.begins_there and all(map(self.rises, value.shape)):
            found = replace(found, growth=Growth.PLACES)
        if all(n == 1 for n in value.shape) and not found.wild and not found.chosen:
            low, high = greater(found.low, found.top), less(found.high, found.bottom)
            found = replace(found, low=low, high=high, top=low, bottom=high)
        return found

    def _plain(self, value: Tensor) -> Ends | None:
        """Returns the bounds where facts about all elements tell them."""
        span = extremes(value) if value.dtype in INTEGRAL else None
        if span is None:
            return None
        try:
            low, high = self.lines(span.low), self.lines(span.high)
        except NotComputed:
            return None
        found = Ends(low[0], high[1], growth=self._growth(value), chosen=span.by_data)
        if span.attained:
            found = replace(found, top=high[0], bottom=low[1])
        return found

    def _growth(self, value: Tensor) -> Growth:
        match value.elements:
            case Span(int(), high, True, True, True) if self.rises(high):
                return Growth.NUMBERS
            case Pieces(pieces) if value.shape and all(type(n) is int for n in value.shape):
                single = all(type(p.term) is int and p.given is True and not p.indices for p in pieces)
                fixed = all(p.fixed and p.doubt is False for p in pieces)
                return Growth.PLACES if single and fixed else Growth.NOTHING
        if not isinstance(value.elements, Affine) or not all(map(self.rises, value.shape)):
            return Growth.NOTHING
        start, steps = value.elements.start, value.elements.steps
        if isinstance(start, int) and all(step > 0 for _, step in steps):
            return Growth.PLACES
        start = start + sum((step * (value.shape[axis] - 1) for axis, step in steps if step < 0), 0)
        return Growth.BAG if isinstance(start, int) else Growth.NOTHING

    def kept(self, ends: Ends, value: Tensor, most: Dim) -> Ends:
        """Returns the bounds of elements that are at most a number, of which less is known where that does
        not hold for each n.
        """
        span = extremes(value)
        always = span is not None and self.places.at_least(most - span.high, 0)
        return ends if always or self.begins_there else replace(ends, growth=Growth.NOTHING, root=None)

    def rises(self, dim: Dim) -> bool:
        """Returns whether a size does not fall as n grows."""
        if isinstance(dim, int):
            return True
        return all(factor > 0 and all(map(self._atom_rises, mono)) for mono, factor in dim.terms if mono)

    def _atom_rises(self, atom: Symbol | Apply) -> bool:
        if isinstance(atom, Symbol):
            return True
        if atom.op == "//":
            return isinstance(atom.args[1], int) and atom.args[1] > 0 and self.rises(atom.args[0])
        return atom.op in ("min", "max", "isqrt") and all(map(self.rises, atom.args))

    def has_elements(self, value: Tensor) -> bool:
        lows = [self.lines(n)[0] for n in value.shape]
        return all(low is not None and flat(1).is_below(low) for low in lows)

    # --- lines between which a size lies -------------------------------------------------------------------

    def lines(self, dim: Dim) -> tuple[Bound, Bound]:
        if isinstance(dim, int):
            return flat(dim), flat(dim)
        low: Bound = flat(0)
        high: Bound = flat(0)
        for mono, factor in dim.terms:
            least, most = self._of_product(mono)
            if factor < 0:
                least, most = most, least
            low = None if low is None or least is None else low.plus(least.times(factor))
            high = None if high is None or most is None else high.plus(most.times(factor))
        return low, high

    def _of_product(self, mono: Iterable[Symbol | Apply]) -> tuple[Bound, Bound]:
        low: Bound = flat(1)
        high: Bound = flat(1)
        for atom in mono:
            least, most = self._of_atom(atom)
            if low is None or least is None or not (flat(0).is_below(low) and flat(0).is_below(least)):
                return None, None
            low, high = product_below(low, least), product_above(high, most)
        return low, high

    def _of_atom(self, atom: Symbol | Apply) -> tuple[Bound, Bound]:
        if isinstance(atom, Symbol):
            if atom.name != self.name:
                raise NotComputed
            line = Line(Fraction(self.first), Fraction(1), self._span)
            return line, line
        args = [self.lines(arg) for arg in atom.args]
        if atom.op in ("min", "max"):
            (low, high), *rest = args
            for least, most in rest:
                if atom.op == "min":
                    low, high = lower(low, least), less(high, most)
                else:
                    low, high = greater(low, least), upper(high, most)
            return low, high
        divisor = atom.args[-1]
        if isinstance(divisor, int) and divisor > 0 and atom.op == "//":
            by = Fraction(1, divisor)
            low, high = args[0]
            return low and low.plus(flat(1 - divisor)).times(by), high and high.times(by)
        if isinstance(divisor, int) and divisor > 0 and atom.op == "%":
            return flat(0), flat(divisor - 1)
        return None, None


def product_below(a: Bound, b: Bound) -> Bound:
    """Returns a bound below the product of two numbers that are at least these natural ones."""
    if a is None or b is None:
        return None
    span = a.within(b)
    if a.slope * b.slope < 0:
        return None
    return Line(a.at * b.at, a.at * b.slope + b.at * a.slope, span)


def product_above(a: Bound, b: Bound) -> Bound:
    """Returns a bound above: the line through the products at the first n, and at the last or the farthest.
    """
    if a is None or b is None:
        return None
    span = a.within(b)
    if a.constant or b.constant:
        return Line(a.at * b.at, a.at * b.slope + b.at * a.slope, span)
    if a.slope < 0 or b.slope < 0:
        return None
    steps = FARTHEST if span is None else span
    return Line(a.at * b.at, a.at * b.slope + b.at * a.slope + steps * a.slope * b.slope, span)


# --- calls -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EndsCall:
    """A call whose result has bounds."""

    tail: Tail
    ref: int
    op: str
    args: Mapping[str, Argument]
    value: Tensor
    place: int
    time: int

    @property
    def dtype(self) -> str:
        return self.value.dtype or ""

    def result(self) -> Ends:
        law = LAWS.get(self.op)
        if law is None or self.args.get("out") is not None:
            return Ends()
        try:
            found = law(self)
        except NotComputed:
            return Ends()
        return found

    def ends(self, name: str = "input") -> Ends:
        """Returns the bounds of an operand, which may be a number."""
        return self.ends_of(self.args.get(name))

    def held(self, name: str) -> Ends:
        """Returns the bounds of an operand as floats of the result's dtype hold it."""
        found = self.ends(name)
        argument = self.args.get(name)
        own = isinstance(argument, Ref) and self.tensor(name).dtype == self.dtype
        return found if own or self.dtype not in DIGITS else _rounded(found, self.dtype)

    def ends_of(self, found: Any) -> Ends:
        match found:
            case Ref(id):
                return self.tail.of(id, self.time)
            case bool() | None:
                raise NotComputed
            case int() | float():
                if not math.isfinite(found):
                    raise NotComputed
                return constant(found)
            case Term():
                low, high = self.tail.lines(found)
                return Ends(low, high, low, high)
            case Quotient("float", over, under):
                one, other = self.ends_of(over), self.ends_of(under)
                return _rounded(_quotient(one, other), "float64")
        raise NotComputed

    def is_chosen(self, name: str) -> bool:
        found = self.args.get(name)
        return isinstance(found, Ref) and self.ends_of(found).chosen

    def is_exact(self, name: str) -> bool:
        """Returns whether the result's dtype holds all that an operand may be, if these are integers."""
        argument = self.args.get(name)
        if isinstance(argument, Ref) and self.tensor(name).dtype == self.dtype:
            return True
        most = flat(1 << DIGITS.get(self.dtype, 53))
        return isinstance(argument, Ref | int) and self.ends(name).within(most.times(-1), most)

    def is_single(self, name: str) -> bool:
        """Returns whether an operand is a number, or a tensor of one element."""
        return not isinstance(self.args.get(name), Ref) or all(n == 1 for n in self.tensor(name).shape)

    def tensor(self, name: str = "input") -> Tensor:
        found = self.args.get(name)
        value = self.tail.places.program.value(found.id) if isinstance(found, Ref) else None
        if not isinstance(value, Tensor):
            raise NotComputed
        return value


Law: TypeAlias = Callable[[EndsCall], Ends]


def _together(call: EndsCall, names: Iterable[str]) -> tuple[Growth, int | None]:
    """Returns what stays of a function of the operands' elements at the same place."""
    growth, roots = Growth.PLACES, set()
    for name in names:
        found = call.args.get(name)
        if found is None or isinstance(found, int | float):
            continue
        ends = call.ends(name)
        growth = min(growth, ends.growth)
        if isinstance(found, Ref) and any(n != 1 for n in call.tensor(name).shape):
            roots.add(ends.root)
    if len(roots) > 1 and growth < Growth.PLACES:
        growth = Growth.NOTHING
    return growth, roots.pop() if len(roots) == 1 else None


def _by_element(law: Callable[[EndsCall], Ends], *names: str) -> Law:
    """Returns the law of a function of elements: its bounds, rounded or wrapped as the dtype does."""

    def of(call: EndsCall) -> Ends:
        growth, root = _together(call, names)
        chosen = any(call.is_chosen(name) for name in names)
        if chosen and not all(call.is_chosen(name) or call.is_single(name) for name in names):
            raise NotComputed
        found = replace(law(call), growth=growth, root=root, chosen=chosen)
        exact = call.op not in ("mul", "div") or all(map(call.is_exact, names))
        whole = call.op in CASTS and call.tensor().dtype in INTEGRAL
        if call.dtype in DIGITS:
            return _rounded(found, call.dtype, exact, whole)
        return found if call.op in CASTS and call.dtype == "int64" else _wrapped(found, call.dtype)

    return of


def _rounded(ends: Ends, dtype: str, exact: bool = True, whole: bool = False) -> Ends:
    """Returns the bounds of floats that are rounded to the nearest, which keeps order: a float stays a bound.
    Those made from rounded operands, by up to three roundings, are not `exact`. Those of `whole` numbers that
    a float can be are not rounded. From half a unit beyond the greatest half on, halves are infinite.
    """
    err = Fraction(1, 1 << DIGITS[dtype] - 2)

    def wider(one: Bound, sign: int) -> Bound:
        if one is None:
            return None
        if one.constant and exact and abs(one.at) < 1 << 15 and held(float(one.at), dtype) == one.at:
            return one
        return one.plus(Line(abs(one.at), abs(one.slope), one.span).times(sign * err))

    if whole and ends.within(flat(-(1 << DIGITS[dtype])), flat(1 << DIGITS[dtype])):
        return ends
    most = flat(MOST_OF_HALVES)
    infinite = flat(BEYOND_HALVES)
    if dtype == "float16" and ends.top is not None and infinite.is_below(ends.top):
        ends = replace(ends, top=flat(INFINITY))
    wild = ends.wild or (dtype == "float16" and not ends.within(most.times(-1), most))
    return replace(
        ends,
        low=None if wild else wider(ends.low, -1),
        high=None if wild else wider(ends.high, 1),
        top=wider(ends.top, -1),
        bottom=wider(ends.bottom, 1),
        wild=wild,
    )


MOST_OF_HALVES: Final = 65504
BEYOND_HALVES: Final = 65520


def _wrapped(ends: Ends, dtype: str) -> Ends:
    """Returns the bounds of integers that wrap at the width of the dtype, unless it holds all of them."""
    if dtype == "bool":
        return ends
    if dtype not in INTEGRAL:
        raise NotComputed
    bits, signed = int(dtype.lstrip("uint")), not dtype.startswith("u")
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if ends.up_to_farthest.within(flat(least), flat(most)):
        return ends
    if ends.wild:
        raise NotComputed
    return replace(ends, low=flat(least), high=flat(most), top=None, bottom=None)


def _sum(call: EndsCall, sign: int = 1, names: tuple[str, str] = ("input", "other")) -> Ends:
    if call.args.get("alpha", 1) != 1:
        raise NotComputed
    one, other = (call.held(name) for name in names)
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


def _all_meet(call: EndsCall, names: Iterable[str]) -> bool:
    """Returns whether all pairs of the elements of two operands meet, as they vary along other axes."""
    names = [name for name in names if isinstance(call.args.get(name), Ref)]
    if len(names) > 1 and any(map(call.is_chosen, names)):
        return False
    shapes = [call.tensor(name).shape for name in names]
    return len(shapes) < 2 or all(1 in pair for pair in zip(*(s[::-1] for s in shapes), strict=False))


def _scaled(ends: Ends, factor: Fraction | int) -> Ends:
    found = ends if factor >= 0 else ends.negated
    size = abs(Fraction(factor))
    return found.mapped(lambda one: one.times(size))


def _single(ends: Ends) -> Fraction | None:
    """Returns the number that all elements are, whatever n is; None where there is none."""
    low, high = ends.low, ends.high
    same = low is not None and low == high and low.constant
    return low.at if same and low is not None else None


def _product(call: EndsCall) -> Ends:
    one, by = call.ends("input"), call.args.get("other")
    if isinstance(by, Quotient):
        over, under = (call.ends_of(part) for part in (by.over, by.under))
        return _quotient(_times(call, one, over), under)
    return _times(call, one, call.ends("other"))


def _times(call: EndsCall, one: Ends, other: Ends) -> Ends:
    for factor, ends in ((_single(one), other), (_single(other), one)):
        if factor is not None and not (ends.wild and (factor <= 0 or call.dtype not in DIGITS)):
            return _scaled(ends, factor)
    if one.wild or other.wild:
        raise NotComputed
    if not (one.natural and other.natural):
        return _of_corners(one, other)
    top = greater(_below(one.top, other.low), _below(one.low, other.top))
    if _all_meet(call, ("input", "other")):
        top = _below(one.top, other.top)
    return Ends(product_below(one.low, other.low), product_above(one.high, other.high), top)


def _below(a: Bound, b: Bound) -> Bound:
    """Returns a number that a product reaches; what is reached by numbers that may be negative is left out.
    """
    natural = all(x is not None and flat(0).is_below(x) for x in (a, b))
    return product_below(a, b) if natural else None


def _of_corners(one: Ends, other: Ends) -> Ends:
    ends = [one.low, one.high, other.low, other.high]
    if any(end is None or not end.constant for end in ends):
        return Ends()
    a, b, c, d = (end.at for end in ends if end is not None)
    found = (a * c, a * d, b * c, b * d)
    return Ends(flat(min(found)), flat(max(found)))


def _quotient(one: Ends, other: Ends) -> Ends:
    """Returns the bounds of a division by positive numbers. The quotient of two lines lies between those at
    the first n and at the last, or in the limit.
    """
    low, high = other.low, other.high
    if one.wild or other.wild or low is None or high is None or not (low.at > 0 and low.slope >= 0):
        raise NotComputed
    if low == high and low.constant:
        return _scaled(one, 1 / low.at)
    if low != high:
        if not one.natural:
            raise NotComputed
        found = one.high and one.high.constant and flat(one.high.at / low.at)
        return Ends(flat(0), found or None)

    def ratio(pick: Callable[[Fraction, Fraction], Fraction]) -> Callable[[Bound], Bound]:
        def of(a: Bound) -> Bound:
            if a is None:
                return None
            last = a.slope / low.slope if low.span is None else (a.at + a.slope * low.span) / (low.end or 1)
            return flat(pick(a.at / low.at, last))

        return of

    return Ends(ratio(min)(one.low), ratio(max)(one.high), ratio(min)(one.top), ratio(max)(one.bottom))


def _divided(call: EndsCall) -> Ends:
    mode = call.args.get("rounding_mode")
    one, other = call.ends("input"), call.ends("other")
    if mode == "trunc" and not one.natural:
        raise NotComputed
    low = other.low
    if low is not None and low == other.high and low.constant and low.at < 0:
        if mode != "trunc":
            one, other, mode = one.negated, other.negated, mode
        else:
            return _floored(_quotient(one, other.negated)).negated
    found = _quotient(one, other)
    return found if mode is None else _floored(found)


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
    ends, source = call.ends(), call.tensor().dtype
    if call.dtype == "bool":
        return _of_truth(ends)
    if call.dtype in INTEGRAL and source in DIGITS:
        if ends.wild:  # as an integer, infinity is the least one, which no size allows
            if call.dtype != "int64":
                raise NotComputed
            if ends.top is not None and flat(-LEAST).is_below(ends.top):
                return Ends(flat(LEAST), None, None, flat(LEAST), chosen=ends.chosen)
            return replace(ends, low=None, high=None, top=_to_whole(ends, math.trunc).top, bottom=None)
        return _to_whole(ends, math.floor if ends.natural else math.trunc)
    if ends.wild and call.dtype in INTEGRAL and call.dtype != "int64":
        raise NotComputed
    return ends


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
    if least is None or most is None or least.at < 1 or least.slope < 0 or one.wild:
        raise NotComputed
    if one.natural and one.high is not None and one.high.is_below(least.plus(flat(-1))):
        return one
    if call.op == "fmod" and not one.natural:
        return Ends(most.times(-1).plus(flat(1)), most.plus(flat(-1)))
    below = most.plus(flat(-1))
    return Ends(flat(0), less(below, one.high) if one.natural else below)


def _power(call: EndsCall) -> Ends:
    base, exponent = call.ends("input"), call.ends("exponent")
    by = _single(exponent)
    if base.wild or exponent.wild:
        raise NotComputed
    if by == 2:
        found = _absolute(base)
        return Ends(
            product_below(found.low, found.low),
            product_above(found.high, found.high),
            _below(found.top, found.top),
        )
    if _single(base) != 2 or not exponent.natural or exponent.high is None or not exponent.high.constant:
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
    if one.slope > 0 and one.at > 0:
        return flat(1)
    return flat(-1) if one.slope < 0 and one.at < 0 else None


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
    for name, law in (("min", _at_least), ("max", _at_most)):
        if call.args.get(name) is not None:
            found = law(found, call.ends(name))
    return found


def _at_least(one: Ends, other: Ends) -> Ends:
    """Returns the bounds of the greater of two."""
    low, high = greater(one.low, other.low), upper(one.high, other.high)
    top = greater(greater(one.top, other.top), low)
    met = upper(one.bottom, other.high) or upper(one.high, other.bottom)
    return Ends(low, high, top, met)


def _at_most(one: Ends, other: Ends) -> Ends:
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
    places = call.tail.places
    made = places.program.made(condition.id) if isinstance(condition, Ref) else None
    if made is not None and made.op == "lt" and isinstance(condition, Ref) and isinstance(one, Ref):
        args = places.args(made)
        bound = args.get("other")
        kept = args.get("input") == one and places.is_as_made(condition.id, call.time)
        if kept and isinstance(bound, int | Term) and call.tensor().shape == call.value.shape:
            high, low = call.ends().high, call.tail.lines(bound)[0]
            if high is not None and low is not None and high.is_below(low.plus(flat(-1))):
                return call.tail.kept(call.ends(), call.tensor(), bound - 1)
    return _by_element(_chosen(*PAIR), "condition", *PAIR)(call)


def _bits(call: EndsCall) -> Ends:
    """Bits of natural numbers: `x & c` is at most c, and `x | c` and `x ^ c` differ from x by at most c."""
    one, by = call.ends("input"), _single(call.ends("other"))
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
    one, by = call.ends("input"), _single(call.ends("other"))
    if by is None or not 0 <= by < 8 or one.wild:
        raise NotComputed
    power = 1 << int(by)
    return _scaled(one, power) if call.op == "lshift" else _floored(_scaled(one, Fraction(1, power)))


def _root(call: EndsCall) -> Ends:
    """Roots: that of x is at most (x + 1)/2."""
    ends = call.ends()
    if not ends.natural or ends.wild:
        raise NotComputed

    def least(one: Bound) -> Bound:
        return None if one is None or one.at < 0 or one.slope < 0 else flat(_root_of(one.at))

    def most(one: Bound) -> Bound:
        if one is None or not one.constant:
            if one is None or one.end is None:
                return one and one.plus(flat(1)).times(Fraction(1, 2))
            return flat(math.isqrt(math.floor(max(one.at, one.end))) + 1)
        return flat(_root_of(one.at) + Fraction(1, 1 << 30) * bool(_root_of(one.at) ** 2 != one.at))

    return Ends(least(ends.low), most(ends.high), least(ends.top), most(ends.bottom))


def _root_of(x: Fraction) -> Fraction:
    """Returns the root of a number, or at most 2**-30 less."""
    whole = Fraction(math.isqrt(math.floor(x)))
    return whole if whole * whole == x else Fraction(math.isqrt(math.floor(x * (1 << 60))), 1 << 30)


def _truth(call: EndsCall) -> Ends:
    return Ends(flat(0), flat(1))


# --- elements that are moved, or several together ----------------------------------------------------------


def _moved(call: EndsCall) -> Ends:
    """The same elements, each at least once, and in their order only in a vector."""
    ends, value = call.ends(), call.tensor()
    if call.place or value.dtype != call.dtype:
        raise NotComputed
    kept = call.op in KEEPING and (call.op not in SHAPED or len(value.shape) == len(call.value.shape) == 1)
    growth = ends.growth if kept else min(ends.growth, Growth.BAG)
    growth = min(growth, Growth.NUMBERS) if call.op == "_unique2" else growth
    grown = [tuple(map(call.tail.rises, one.shape)) for one in (value, call.value)]
    return replace(ends, growth=growth if all(all(one) for one in grown) else Growth.NOTHING, root=None)


KEEPING: Final = frozenset("clone contiguous detach alias unsqueeze expand t transpose reshape view".split())
"""Operators that move elements to places that do not depend on n."""
SHAPED: Final = frozenset("reshape view".split())


def _item(call: EndsCall) -> Ends:
    """Some of the elements. A column of rows that stay as n grows stays, too, and so do those of a vector
    from one place on.
    """
    ends, value, index = call.ends(), call.tensor(), call.args.get("index")
    items = index if isinstance(index, tuple) else (index,)
    if _is_whole(items):
        return replace(ends, root=None)
    if len(items) == 1 and isinstance(items[0], Ref):
        positions = call.tail.places.program.value(items[0].id)
        if not ends.chosen and is_permutation(positions, value.shape):
            return replace(ends, growth=min(ends.growth, Growth.BAG), root=None)
    source = call.args.get("input")
    made = call.tail.places.program.made(source.id) if isinstance(source, Ref) else None
    column = len(items) == 2 and _is_whole(items[:1]) and type(items[1]) is int
    row = len(items) == 1 and type(items[0]) is int and made is not None and made.op in TRIANGLES
    if row or (column and made is not None and made.op in ROWS and made.place == 0):
        return replace(ends.loose, growth=min(ends.growth, Growth.BAG))
    if len(items) == 1 and len(value.shape) == 1 and ends.growth == Growth.PLACES and _goes_on(items[0]):
        return replace(ends.loose, growth=Growth.PLACES)
    last = items == (Slice(-1),) or items == (-1,)
    if last and made is not None and made.op in RISING and made.place == 0 and not ends.chosen:
        greatest = greater(ends.low, ends.top)
        return Ends(greatest, ends.high, greatest, ends.high)
    if made is not None and made.op in ALIKE and not any(isinstance(item, Ref) for item in items):
        return replace(ends.loose, top=ends.top, bottom=ends.bottom, chosen=True)
    return ends.loose


def _is_whole(items: Iterable[Any]) -> bool:
    return all(item is None or item is Dots or item == Slice() for item in items)


def _goes_on(item: Any) -> bool:
    """Returns whether a slice begins at a place from the start, and goes on to the end or to another."""
    parts = [getattr(item, name, -1) for name in ("start", "stop", "step")]
    return all(part is None or (type(part) is int and part >= 0) for part in parts)


RISING: Final = frozenset("_unique2 unique msort".split())
"""Operators that return the elements in rising order."""
ROWS: Final = frozenset("cartesian_prod combinations nonzero argwhere".split())
TRIANGLES: Final = frozenset("triu_indices tril_indices".split())


def _rows(call: EndsCall) -> Ends:
    """Rows made from vectors that stay as n grows, or the places of numbers other than 0."""
    several = call.args.get("tensors", (call.args.get("input"),))
    if not isinstance(several, tuple):
        raise NotComputed
    found = [call.ends_of(one) for one in several]
    if any(one.chosen for one in found):
        raise NotComputed
    places = call.op in ("nonzero", "argwhere", "combinations")
    enough = all(one.growth == Growth.PLACES if places else one.growth >= Growth.BAG for one in found)
    if call.op in ("nonzero", "argwhere"):
        return Ends(growth=Growth.BAG if enough else Growth.NOTHING)
    low, high = found[0].low, found[0].high
    for one in found[1:]:
        low, high = lower(low, one.low), upper(high, one.high)
    return Ends(low, high, growth=Growth.BAG if enough else Growth.NOTHING)


def _triangle(call: EndsCall) -> Ends:
    sizes = [call.args.get(name, 0) for name in ("row", "col", "offset")]
    rising = all(isinstance(n, int | Term) and call.tail.rises(n) for n in sizes[:2])
    return Ends(growth=Growth.BAG if rising and isinstance(sizes[2], int) else Growth.NOTHING)


def _meshed(call: EndsCall) -> Ends:
    several = call.args.get("tensors")
    if not isinstance(several, tuple):
        raise NotComputed
    found = [call.ends_of(one) for one in several]
    if any(one.chosen for one in found) or not call.tail.has_elements(call.value):
        raise NotComputed
    kept = call.args.get("indexing") == "ij" and all(one.growth == Growth.PLACES for one in found)
    return replace(found[call.place], growth=Growth.PLACES if kept else Growth.NOTHING, root=None)


def _joined(call: EndsCall) -> Ends:
    several = call.args.get("tensors")
    if not isinstance(several, tuple) or not several:
        raise NotComputed
    found = [call.ends_of(one) for one in several]
    if any(one.wild or one.chosen for one in found):
        raise NotComputed
    together, *rest = found
    for one in rest:
        low, high = lower(together.low, one.low), upper(together.high, one.high)
        top, bottom = greater(together.top, one.top), less(together.bottom, one.bottom)
        together = Ends(low, high, top, bottom)
    growth = min(Growth.BAG, *(one.growth for one in found))
    values = [call.tail.places.program.value(one.id) for one in several if isinstance(one, Ref)]
    sure = all(isinstance(value, Tensor) and call.tail.has_elements(value) for value in values)
    found_ends = together if sure else together.loose
    return replace(found_ends, growth=growth, root=None)


def _made(call: EndsCall) -> Ends:
    """Numbers that are given one by one."""
    data = call.args.get("data") if "data" in call.args else call.args.get("fill_value")
    parts = data if isinstance(data, tuple) else (data,)
    if any(isinstance(part, tuple) for part in parts) or not parts:
        raise NotComputed
    found = [call.ends_of(part) for part in parts]
    together, *rest = found
    for one in rest:
        low, high = lower(together.low, one.low), upper(together.high, one.high)
        together = Ends(low, high, greater(together.top, one.top), less(together.bottom, one.bottom))
    same = all(one.growth == Growth.PLACES for one in found) and all(map(call.tail.rises, call.value.shape))
    return _stored(call, replace(together, growth=Growth.PLACES if same else Growth.NOTHING, root=None))


def _stored(call: EndsCall, ends: Ends) -> Ends:
    """Returns the bounds of numbers as the result's dtype holds them."""
    return _rounded(ends, call.dtype) if call.dtype in DIGITS else _wrapped(ends, call.dtype)


def _unit(call: EndsCall) -> Ends:
    """Ones, zeros, or both."""
    stays = all(map(call.tail.rises, call.value.shape))
    return Ends(flat(0), flat(1), growth=Growth.PLACES if stays else Growth.NOTHING)


def _shuffled(call: EndsCall) -> Ends:
    """The places of a vector, or its elements in their order."""
    if call.op == "sort" and not call.place:
        return _moved(call)
    if len(call.value.shape) != 1:
        raise NotComputed
    low, high = call.tail.lines(call.value.shape[0] - 1)
    grows = call.tail.rises(call.value.shape[0])
    return Ends(flat(0), high, low, flat(0), Growth.BAG if grows else Growth.NOTHING)


def _arange(call: EndsCall) -> Ends:
    """A range with a step of a fraction."""
    end, step = call.args.get("end"), call.args.get("step", 1)
    start = call.args.get("start") if end is not None else 0
    last = call.ends_of(end if end is not None else call.args.get("start"))
    first = call.ends_of(start)
    if not isinstance(step, int | float) or step <= 0 or not call.tail.has_elements(call.value):
        raise NotComputed
    stays = isinstance(start, int) and all(map(call.tail.rises, call.value.shape))
    top = last.low and last.low.plus(flat(-Fraction(step)))
    found = Ends(first.low, last.high, top, first.high, Growth.PLACES if stays else Growth.NOTHING)
    return _stored(call, found)


def _logspace(call: EndsCall) -> Ends:
    """Powers of 2 between two, of which the last is at least as great as at the first n."""
    end, count = call.ends("end"), call.args.get("steps")
    last, most = end.low, None if end.high is None else end.high.end
    plain = call.args.get("base", 10) == 2 and call.args.get("start") == 0
    if not plain or type(count) is not int or count < 1 or last is None:
        raise NotComputed
    least = flat(1)
    reached = flat(1 << min(math.floor(last.at), 64)) if last.at >= 0 and last.slope >= 0 else least
    if count == 1:
        return Ends(least, least, least, least)
    if most is not None and most <= 62:
        return _rounded(Ends(least, flat(1 << max(math.ceil(most), 0)), reached, least), call.dtype)
    return Ends(least, None, reached, least, wild=True)


def _linspace(call: EndsCall) -> Ends:
    """Numbers between two natural ones, of which the last is the second one, and the first is the first."""
    start, end = call.ends_of(call.args.get("start")), call.ends_of(call.args.get("end"))
    count = call.tail.lines(call.value.shape[0])[0]
    if call.dtype not in DIGITS or not (start.natural and end.natural) or count is None:
        raise NotComputed
    low, high = lower(start.low, end.low), upper(start.high, end.high)
    several = flat(2).is_below(count)
    found = Ends(low, high, end.low, start.high) if several else Ends(low, high)
    return _rounded(found, call.dtype, exact=False)


def _bucketed(call: EndsCall) -> Ends:
    """How many of the numbers 0, ..., m - 1 are less than a natural number x: the lesser one of x and m."""
    bounds = call.tensor("boundaries" if call.op == "bucketize" else "sorted_sequence")
    ends = call.ends()
    plain = not any(call.args.get(name) for name in ("right", "side", "sorter", "out_int32"))
    if bounds.elements != Affine(0, ((-1, 1),)) or len(bounds.shape) != 1 or not plain or not ends.natural:
        raise NotComputed
    low, high = call.tail.lines(bounds.shape[0])
    if ends.wild or call.tensor().dtype not in INTEGRAL:
        raise NotComputed
    if ends.high is not None and low is not None and ends.high.is_below(low):
        return call.tail.kept(ends, call.tensor(), bounds.shape[0])
    return replace(_at_most(ends, Ends(low, high, low, high)), chosen=ends.chosen)


def _sum_of(call: EndsCall) -> Ends:
    """A sum of natural numbers is at least each of them, and at least as many times the least one."""
    ends, value = call.ends(), call.tensor()
    if not ends.natural or ends.wild or call.dtype not in INTEGRAL:
        raise NotComputed
    if all(n == 1 for n in value.shape):
        return ends
    dim = call.args.get("dim")
    whole = dim in (None, ()) or len(value.shape) <= 1
    top = ends.top if call.tail.has_elements(value) else None
    if not whole or ends.chosen:
        return Ends(flat(0), None, top, chosen=ends.chosen)
    count = call.tail.lines(_count(value))
    low = product_below(count[0], ends.low) if count[0] and flat(0).is_below(count[0]) else flat(0)
    least = greater(greater(low, flat(0)), top)
    return Ends(least, product_above(count[1], ends.high), least)


def _count(value: Tensor) -> Dim:
    found: Dim = 1
    for n in value.shape:
        found = found * n
    return found


def _product_of(call: EndsCall) -> Ends:
    """A product that is 0, modulo the width, stays so with further factors."""
    ends, value = call.ends(), call.tensor()
    if all(n == 1 for n in value.shape):
        return ends
    whole = call.args.get("dim") is None or len(value.shape) <= 1
    if whole and ends.growth >= Growth.BAG and not ends.wild and call.dtype == "int64":
        try:
            arrays = call.tail.arrays
            if arrays is not None and not any(arrays.of(call.ref, call.time + 1).numbers):
                return constant(0)
        except DoesNotRun:
            pass
    raise NotComputed


def _running(call: EndsCall) -> Ends:
    """Sums and products of the elements up to a place stay where these do, in dtypes of 64 bits, which wrap.
    """
    ends, value = call.ends(), call.tensor()
    if all(n == 1 for n in value.shape):
        return ends
    if ends.wild or ends.chosen or call.dtype != "int64":
        raise NotComputed
    growth = ends.growth if ends.growth == Growth.PLACES else Growth.NOTHING
    axis = call.args.get("dim")
    size = value.shape[axis] if isinstance(axis, int) else 0
    count = call.tail.lines(size)
    if call.op == "cumsum" and ends.natural:
        top = greater(ends.top, product_below(count[0], ends.low)) if call.tail.has_elements(value) else None
        return Ends(ends.low, product_above(count[1], ends.high), top, ends.high, growth)
    if ends.natural and isinstance(size, int) and ends.high is not None and ends.high.constant:
        most = math.ceil(max(ends.high.at, Fraction(1))) ** size
        return Ends(flat(0), flat(most), growth=growth) if most < 1 << 62 else Ends(growth=growth)
    return Ends(growth=growth)


def _extreme(greatest: bool) -> Law:
    def of(call: EndsCall) -> Ends:
        ends, value = call.ends(), call.tensor()
        whole = call.args.get("dim") in (None, ()) or len(value.shape) <= 1
        if ends.wild or call.place or call.args.get("other") is not None:
            raise NotComputed
        if all(n == 1 for n in value.shape):
            return ends
        if not whole or ends.chosen:
            return Ends(ends.low, ends.high, chosen=ends.chosen)
        if greatest:
            low = greater(ends.low, ends.top)
            return Ends(low, ends.high, low, ends.high)
        high = less(ends.high, ends.bottom)
        return Ends(ends.low, high, ends.low, high)

    return of


def _differences(call: EndsCall) -> Ends:
    ends, value = call.ends(), call.tensor()
    if ends.wild or ends.low is None or ends.high is None:
        raise NotComputed
    if ends.chosen:
        raise NotComputed
    reach = ends.high.plus(ends.low.times(-1))
    growth = ends.growth if ends.growth == Growth.PLACES and len(value.shape) == 1 else Growth.NOTHING
    return Ends(reach.times(-1), reach, growth=growth)


PAIR: Final = ("input", "other")
LAWS: Final[Mapping[str, Law]] = {
    "add": _by_element(_sum, *PAIR),
    "sub": _by_element(lambda call: _sum(call, -1), *PAIR),
    "rsub": _by_element(lambda call: _sum(call, -1, ("other", "input")), *PAIR),
    "mul": _by_element(_product, *PAIR),
    "div": _by_element(_divided, *PAIR),
    "floor_divide": _by_element(lambda call: _floored(_quotient(call.ends(), call.ends("other"))), *PAIR),
    **dict.fromkeys(("remainder", "fmod"), _by_element(_remainder, *PAIR)),
    "pow": _by_element(_power, "input", "exponent"),
    "neg": _by_element(lambda call: call.ends().negated, "input"),
    "abs": _by_element(lambda call: _absolute(call.ends()), "input"),
    "sign": _by_element(_signs, "input"),
    **dict.fromkeys("clamp clamp_min clamp_max".split(), _by_element(_clamped, "input", "min", "max")),
    "maximum": _by_element(_extremum(_at_least), *PAIR),
    "minimum": _by_element(_extremum(_at_most), *PAIR),
    "where": _where,
    "masked_fill": _by_element(_chosen("input", "value"), "input", "mask", "value"),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), _by_element(_bits, *PAIR)),
    **dict.fromkeys(("lshift", "rshift"), _by_element(_shifted, *PAIR)),
    "ceil": _by_element(_whole(math.ceil), "input"),
    "floor": _by_element(_whole(math.floor), "input"),
    "trunc": _by_element(_whole(math.trunc), "input"),
    "round": _by_element(_whole(round), "input"),
    "sqrt": _by_element(_root, "input"),
    **dict.fromkeys("eq ne lt le gt ge".split(), _by_element(_truth, *PAIR)),
    **dict.fromkeys(CASTS, _by_element(_cast, "input")),
    **dict.fromkeys(
        "clone contiguous detach alias unsqueeze squeeze reshape view flatten t transpose permute flip roll "
        "expand repeat repeat_interleave _unique2".split(),
        _moved,
    ),
    "getitem": _item,
    **dict.fromkeys(ROWS, _rows),
    **dict.fromkeys(TRIANGLES, _triangle),
    **dict.fromkeys("zeros ones zeros_like ones_like eye".split(), _unit),
    **dict.fromkeys("argsort randperm sort".split(), _shuffled),
    "meshgrid": _meshed,
    **dict.fromkeys(("cat", "stack"), _joined),
    **dict.fromkeys("tensor as_tensor full new_full".split(), _made),
    "arange": _arange,
    "logspace": _logspace,
    "linspace": _linspace,
    **dict.fromkeys(("bucketize", "searchsorted"), _bucketed),
    "sum": _sum_of,
    "prod": _product_of,
    **dict.fromkeys(("cumsum", "cumprod"), _running),
    **dict.fromkeys(("max", "amax"), _extreme(greatest=True)),
    **dict.fromkeys(("min", "amin"), _extreme(greatest=False)),
    "diff": _differences,
}
"""For each operator the bounds of the elements of its result."""
