"""Bounds of the elements of tensors at all sizes from some number on.

Of sizes n from N on, a bound is linear: a number at N, and by how much it rises with each size. There are
bounds of all elements, and numbers that some element reaches: an index is invalid wherever some element
reaches beyond the table. The elements of a tensor that grows stay as it grows: the range of n + 1 has all
numbers of the range of n, and so has whatever a function makes of each, so that the greatest is at least the
one at N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from msgspec import structs

from ...ir.language import Affine, Piece, Pieces, Quotient, Span, Tensor
from ...ir.program import Argument, Ref
from ...terms.dims import Apply, Dim, Symbol, Term, symbols
from ...terms.formula import And, Compare, Formula, Or, all_of, any_of
from ..elements.cycles import is_run
from ..elements.dtypes import DIGITS, INTEGRAL
from ..elements.values import extremes
from ..lookups.computed import NotComputed, Number
from ..lookups.places import MadeValue, Places, TensorCall
from .arrays import Arrays, DoesNotRun, alike_in
from .held import rounded
from .lines import (
    Bound,
    Ends,
    Growth,
    Line,
    constant,
    flat,
    greater,
    less,
    lower,
    product_above,
    product_below,
    quotient,
    single,
    upper,
)

Box: TypeAlias = "Mapping[str, tuple[int, int | None]]"
"""Ranges of sizes, by their names: from the first to the last, or all from the first on."""


class Tail:
    """The bounds of the elements of a program's tensors, for the sizes in a box."""

    def __init__(
        self,
        places: Places,
        laws: Mapping[str, Law],
        box: Box,
        arrays: Sequence[Arrays],
    ) -> None:
        self.places = places
        self.laws = laws
        self.box = box
        self._spans = tuple([None if last is None else last - first for first, last in box.values()])
        self.arrays = arrays
        """The elements at some n that are not greater than the first."""
        firsts = {name: first for name, (first, _) in box.items()}
        self.begins_there = all(firsts.items() <= found.sizes.items() for found in arrays)
        """Whether what stays from the first n on stays from there on."""
        self.of_one = False
        """Whether bounds are those of the elements at one place."""
        self._found: dict[tuple[int, int | None], Ends] = {}
        self._lines: dict[Apply, tuple[Bound, Bound]] = {}

    def of(self, ref: int, time: int) -> Ends:
        """Returns the bounds of a value, as it is when the call number `time` is made."""
        value, over = self.places.program.value(ref), self.places.written_over(ref, time)
        if not isinstance(value, Tensor) or (over is None and not self.places.is_as_made(ref, time)):
            raise NotComputed
        key = ref, over.time if over else None
        if key not in self._found:
            self._found[key] = self._of(ref, value, time, over)
        return self._found[key]

    def _of(self, ref: int, value: Tensor, time: int, over: MadeValue | None) -> Ends:
        made = over or self.places.program.made(ref)
        found = Ends()
        if made is not None:
            op, args = made.op.rstrip("_"), self.places.args(made)
            found = EndsCall(self.places, op, args, value, made.place, made.time, self, ref).bounds()
            found = replace(found, alike=max(found.alike, alike_in(self.places, made)))
        plain = None if over else self._plain(value)
        if plain is not None and not found.wild:
            found = Ends(
                greater(plain.low, found.low),
                less(plain.high, found.high),
                greater(plain.top, found.top),
                less(plain.bottom, found.bottom),
                max(plain.growth, found.growth),
                found.root,
                chosen=plain.chosen or found.chosen,
                alike=found.alike,
            )
        if found.growth and not found.wild and (there := self.numbers(Ref(ref), time)):
            least, most = flat(min(there)), flat(max(there))
            found = replace(found, top=greater(found.top, most), bottom=less(found.bottom, least))
            if found.growth >= Growth.BAG and all(map(self.is_fixed, value.shape)):
                found = replace(found, low=least, high=most, top=most, bottom=least)
        if found.root is None and over is None:
            found = replace(found, root=ref)
        same = single(found) is not None and not found.wild
        if same and self.begins_there and all(map(self.rises, value.shape)):
            found = replace(found, growth=Growth.PLACES)
        if all(n == 1 for n in value.shape) and not found.wild and not found.chosen:
            low, high = greater(found.low, found.top), less(found.high, found.bottom)
            found = replace(found, low=low, high=high, top=low, bottom=high)
        return found

    def at(self, ends: Ends, place: int, call: EndsCall) -> Ends | None:
        """Returns the bounds of the element at a place of a call's input, a vector, where it is made from the
        one at this place of a range; None where it is not.
        """
        source, range_ = call.args.get("input"), None if ends.root is None else ends.root
        value = None if range_ is None else self.places.program.value(range_)
        if not isinstance(source, Ref) or not isinstance(value, Tensor) or len(value.shape) != 1:
            return None
        if not isinstance(value.elements, Affine) or value.dtype not in INTEGRAL or range_ is None:
            return None
        if value.shape != call.operand().shape:
            return None
        step = sum(step for _, step in value.elements.steps)
        index = place + (value.shape[0] if place < 0 else 0)
        low, high = self.lines(value.elements.start + step * index)
        alone = Tail(self.places, self.laws, self.box, ())
        alone.of_one = True
        same = low if low == high else None
        alone._found[range_, None] = Ends(low, high, same, same)
        found = alone.of(source.id, call.time)
        return replace(found, growth=Growth.NOTHING, root=None)

    def numbers(self, operand: Argument, time: int) -> Sequence[Number]:
        """Returns the elements at the sizes that are not greater than the first; none where not known."""
        if not isinstance(operand, Ref):
            return ()
        for arrays in self.arrays:
            try:
                return arrays.of(operand.id, time).numbers
            except (NotComputed, DoesNotRun):
                continue
        return ()

    def _plain(self, value: Tensor) -> Ends | None:
        """Returns the bounds where facts about all elements tell them."""
        value = self._with_settled(value)
        span = extremes(value) if value.dtype in INTEGRAL else None
        if span is None:
            return None
        try:
            low, high = self.lines(span.low), self.lines(span.high)
        except NotComputed:
            return None
        found = Ends(low[0], high[1], growth=self._growth(value), chosen=span.by_data)
        if span.attained and not self.of_one:
            found = replace(found, top=high[0], bottom=low[1])
        return found

    def _with_settled(self, value: Tensor) -> Tensor:
        """Returns the tensor with the pieces that its elements have at these sizes."""
        if not isinstance(value.elements, Pieces):
            return value
        found = [
            replace(piece, given=self._settled(piece.given), doubt=self._settled(piece.doubt))
            for piece in value.elements.pieces
        ]
        there = tuple([piece for piece in found if piece.given is not False])
        return structs.replace(value, elements=replace(value.elements, pieces=there))

    def _settled(self, formula: Formula) -> Formula:
        """Returns a formula with the truth of the comparisons that are the same for all these sizes."""
        match formula:
            case And(parts):
                return all_of(map(self._settled, parts))
            case Or(parts):
                return any_of(map(self._settled, parts))
            case Compare(">=", term):
                try:
                    low, high = self.lines(term)
                except NotComputed:
                    return formula
                if low is not None and (least := low.least) is not None and least >= 0:
                    return True
                return False if high is not None and high.is_below(flat(-1)) else formula
        return formula

    def _growth(self, value: Tensor) -> Growth:
        match value.elements:
            case Span(int(), high, True, True, True) if self.rises(high):
                return Growth.NUMBERS
            case Pieces((Piece(doubt=False) as piece,), True) if is_run(piece):
                span = extremes(value)
                rises = span is not None and isinstance(span.low, int) and self.rises(span.high)
                return Growth.NUMBERS if rises else Growth.NOTHING
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
        """Returns the bounds of elements when those above the number `most` are left out. Less is known of
        them where that may leave out some at some n.
        """
        span = extremes(value)
        always = span is not None and self.places.at_least(most - span.high, 0)
        constant = ends.high is not None and ends.high.constant and symbols(most) <= self.box.keys()
        if not always and constant and ends.high is not None:
            always = all(at.number(most) >= ends.high.at for at in self.arrays)
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
        return atom.op in ("min", "max", "isqrt", "rounded", "**") and all(map(self.rises, atom.args))

    def is_fixed(self, dim: Dim) -> bool:
        """Returns whether a size is the same for all n, and so at those where elements are computed."""
        if isinstance(dim, int) or not symbols(dim) <= self.box.keys():
            return isinstance(dim, int)
        low, high = self.lines(dim)
        same = low is not None and low == high and low.constant
        return low is not None and same and all(at.number(dim) == low.at for at in self.arrays)

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
            if atom.name not in self.box:
                raise NotComputed
            first, last = self.box[atom.name]
            slopes = tuple([Fraction(name == atom.name and first != last) for name in self.box])
            line = Line(Fraction(first), slopes, self._spans)
            return line, line
        if atom not in self._lines:
            self._lines[atom] = self._of_apply(atom)
        return self._lines[atom]

    def _of_apply(self, atom: Apply) -> tuple[Bound, Bound]:
        args = [self.lines(arg) for arg in atom.args]
        if atom.op in ("min", "max"):
            (low, high), *rest = args
            for least, most in rest:
                if atom.op == "min":
                    low, high = lower(low, least), less(high, most)
                else:
                    low, high = greater(low, least), upper(high, most)
            return low, high
        divisor, one = atom.args[-1], args[0][0]
        if atom.op in ("//", "%") and one == args[0][1] and one is not None and one.constant:
            other = args[1][0]
            if other == args[1][1] and other is not None and other.constant and other.at > 0:
                exact = flat(one.at // other.at if atom.op == "//" else one.at % other.at)
                return exact, exact
        if isinstance(divisor, int) and divisor > 0 and atom.op == "//":
            by = Fraction(1, divisor)
            low, high = args[0]
            return low and low.plus(flat(1 - divisor)).times(by), high and high.times(by)
        if isinstance(divisor, int) and divisor > 0 and atom.op == "%":
            return flat(0), flat(divisor - 1)
        return None, None


@dataclass(frozen=True, slots=True)
class EndsCall(TensorCall):
    """A call whose result has bounds."""

    tail: Tail
    ref: int

    def bounds(self) -> Ends:
        law = self.tail.laws.get(self.op)
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
        own = isinstance(argument, Ref) and self.operand(name).dtype == self.dtype
        return found if own or self.dtype not in DIGITS else rounded(found, self.dtype)

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
                growth = Growth.PLACES if self.tail.is_fixed(found) else Growth.NOTHING
                return Ends(low, high, low, high, growth)
            case Quotient("float", over, under):
                one, other = self.ends_of(over), self.ends_of(under)
                found = rounded(quotient(one, other), "float64")
                return found if (same := single(found)) is None else constant(same)
        raise NotComputed

    def is_chosen(self, name: str) -> bool:
        found = self.args.get(name)
        return isinstance(found, Ref) and self.ends_of(found).chosen

    def is_exact(self, name: str) -> bool:
        """Returns whether the result's dtype holds all that an operand may be, if these are integers."""
        argument = self.args.get(name)
        if isinstance(argument, Ref) and self.operand(name).dtype == self.dtype:
            return True
        most = flat(1 << DIGITS.get(self.dtype, 53))
        return isinstance(argument, Ref | int) and self.ends(name).within(most.times(-1), most)

    def is_single(self, name: str) -> bool:
        """Returns whether an operand is a number, or a tensor of one element."""
        return not isinstance(self.args.get(name), Ref) or all(n == 1 for n in self.operand(name).shape)

    def operand(self, name: str = "input") -> Tensor:
        """Returns an operand that is a tensor."""
        found = self.tensor(name)
        if found is None:
            raise NotComputed
        return found


Law: TypeAlias = Callable[[EndsCall], Ends]
