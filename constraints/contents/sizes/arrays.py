"""The elements of tensors at given sizes: a program's calls, computed in Python with torch's arithmetic.

Where no short form says what the elements of an index tensor are, they are computed for one choice of sizes
at a time, number by number, in the dtypes and the order of torch. What the data choose from a range is
represented by the range: a permutation of it, or one number out of it, which may be any.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, pairwise, product
from typing import Any, Final, TypeAlias

from msgspec import structs

from ...ir.language import Affine, Dots, Piece, Pieces, Quotient, Slice, Span, Tensor
from ...ir.program import Argument, Ref
from ...terms.dims import Dim, Term, UnknownSymbol, evaluate, symbols
from ...terms.formula import Formula, holds
from ..elements.cycles import is_run
from ..elements.dtypes import DIGITS, INTEGRAL
from ..elements.values import extremes_of, surely
from ..laws.calls import CASTS
from ..lookups.computed import FUNCTIONS, NotComputed, Number, RangeOperand, held
from ..lookups.places import MadeValue, Places, TensorCall
from .lines import Sameness

Sizes: TypeAlias = Mapping[str, int]
Shape: TypeAlias = tuple[int, ...]
Numbers: TypeAlias = tuple[Number, ...]
MOST: Final = 200_000
"""At most this many numbers are computed for the elements of one tensor, at all sizes together."""
CHOICES: Final = 5_000_000
"""At most this many numbers are computed among which the data choose elements, at all sizes together."""


class DoesNotRun(Exception):
    """Raised where a call has no result at the sizes."""


@dataclass(frozen=True, slots=True)
class Array:
    """The elements of a tensor, in their order.

    With a `source`, the data put the numbers in an order of their choice, and this is one such order. Where
    `loose`, each element may be any of the numbers, and there may be fewer numbers than elements. Tensors of
    one source are in the same order. Floats that are `near` are known up to a few roundings.
    """

    shape: Shape
    numbers: Numbers
    dtype: str
    source: int | None = None
    loose: bool = False
    near: bool = False
    alike: Sameness = Sameness.NO


class Arrays:
    """The elements of a program's tensors at some sizes."""

    def __init__(
        self,
        places: Places,
        sizes: Sizes,
        most: int = MOST,
        choices: int = CHOICES,
        data: Iterable[str] = (),
    ) -> None:
        self.places = places
        self.sizes = sizes
        self.data = frozenset(data)
        """The sizes that the data decide."""
        self._found: dict[tuple[int, int | None], Array] = {}
        self.left, self.choices = most, choices
        """The numbers of elements, and of choices of the data, that may still be computed."""

    def of(self, ref: int, time: int) -> Array:
        """Returns the elements of a value, as they are when the call number `time` is made."""
        value, over = self.places.program.value(ref), self.places.written_over(ref, time)
        if not isinstance(value, Tensor) or (over is None and not self.places.is_as_made(ref, time)):
            raise NotComputed
        key, made = (ref, over.time if over else None), over or self.places.program.made(ref)
        if key not in self._found:
            shape = self.shape(value)
            alike = Sameness.NO if made is None else alike_in(self.places, made)
            if math.prod(shape) > self.left:
                raise NotComputed
            plain = None if over else self._plain(value, shape, alike)
            if plain is None:
                plain = self._made(made, ref, value, shape)
                plain = replace(plain, alike=alike) if alike and plain.source == ref else plain
            elif plain.loose and not alike:
                plain = replace(plain, alike=self._alike(plain, made, ref, value))
            self.left -= math.prod(shape) + 1
            self.choices -= len(plain.numbers)
            if self.left < 0 or self.choices < 0 or plain.shape != shape or plain.dtype != value.dtype:
                raise NotComputed
            if not plain.loose and len(plain.numbers) != math.prod(shape):
                raise NotComputed  # shapes are simplified by what holds where the program gets here
            self._found[key] = plain
        return self._found[key]

    def _made(self, made: MadeValue | None, ref: int, value: Tensor, shape: Shape) -> Array:
        """Returns the elements by the law of the call that has made them."""
        if made is None:
            raise NotComputed
        op, args = made.op.rstrip("_"), self.places.args(made)
        return ArrayCall(self.places, op, args, value, made.place, made.time, self, ref, shape).computed()

    def _alike(self, plain: Array, made: MadeValue | None, ref: int, value: Tensor) -> Sameness:
        """Returns how elements that are stated as a choice of the data are related, as their maker tells."""
        try:
            found = self._made(made, ref, value, plain.shape)
        except NotComputed:
            return Sameness.NO
        return found.alike if found.loose and {*found.numbers} == {*plain.numbers} else Sameness.NO

    def number(self, dim: Dim) -> int:
        try:
            return evaluate(dim, self.sizes)
        except (UnknownSymbol, ZeroDivisionError):
            raise NotComputed from None

    def is_true(self, formula: Formula) -> bool:
        try:
            return holds(formula, self.sizes)
        except (UnknownSymbol, ZeroDivisionError):
            raise NotComputed from None

    def shape(self, tensor: Tensor) -> Shape:
        found = tuple(map(self.number, tensor.shape))
        if any(n < 0 for n in found):
            raise DoesNotRun
        if math.prod(found) > self.left:
            raise NotComputed
        return found

    def _plain(self, value: Tensor, shape: Shape, alike: Sameness) -> Array | None:
        """Returns elements that are stated as a function of their place, or as a choice of the data."""
        match value.elements:
            case Affine(start, steps) if value.dtype in INTEGRAL:
                by = [0] * len(shape)
                for axis, step in steps:
                    by[axis] = step
                first = self.number(start)
                numbers = (first + sum(map(int.__mul__, by, place)) for place in _every_place(shape))
                return Array(shape, tuple(held(x, value.dtype) for x in numbers), value.dtype)
            case Span(low, high, True, True, True) if value.dtype in INTEGRAL:
                least, most = self.number(low), self.number(high)
                if most - least >= self.left:
                    raise NotComputed
                every = tuple(range(least, most + 1))
                return Array(shape, every, value.dtype, source=id(value), loose=True, alike=alike)
            case Pieces(pieces, True, 0, False, False) if value.dtype in INTEGRAL:
                there = [piece for piece in pieces if self.is_true(piece.given)]
                if len(there) != 1 or not is_run(there[0]) or self.is_true(there[0].doubt):
                    return None
                span = extremes_of(Pieces((replace(there[0], doubt=False, given=True),)), surely)
                if span is None:
                    return None
                return self._plain(structs.replace(value, elements=replace(span, by_data=True, dense=True)),
                                   shape, alike)
            case Pieces(pieces, False, 0, False, False) if value.dtype in INTEGRAL and len(shape) == 1:
                return self._one_by_one(pieces, shape, value.dtype)
        return None

    def _one_by_one(self, pieces: Sequence[Piece], shape: Shape, dtype: str) -> Array | None:
        """Returns the elements of a vector whose pieces are single numbers, one for each place."""
        found: dict[int, Number] = {}
        for piece in pieces:
            match piece:
                case Piece(int() as number, 1, (), True, True, ((-1, place),), False):
                    found[place] = number
        if sorted(found) != [*range(*shape)] or len(found) != len(pieces):
            return None
        return Array(shape, tuple([found[place] for place in range(*shape)]), dtype)


@dataclass(frozen=True, slots=True)
class ArrayCall(TensorCall):
    """A call, with the shape of its result."""

    arrays: Arrays
    ref: int
    shape: Shape

    def computed(self) -> Array:
        """Returns the elements of the result."""
        if self.args.get("out") is not None:
            raise NotComputed
        if self.op in FUNCTIONS or self.op == "sqrt":
            return self._by_element()
        law = LAWS.get(self.op)
        if law is None:
            raise NotComputed
        return law(self)

    def array(self, argument: Argument | str = "input") -> Array:
        found = self.args.get(argument) if isinstance(argument, str) else argument
        if not isinstance(found, Ref):
            raise NotComputed
        return self.arrays.of(found.id, self.time)

    def ordered(self, argument: Argument | str = "input") -> Array:
        """Returns an operand whose elements no data choose."""
        found = self.array(argument)
        if found.source is not None or found.near:
            raise NotComputed
        return found

    def number(self, name: str, default: int | float | None = None) -> int | float:
        """Returns an argument that is a number; `default` where it is left out."""
        return self._number(self.args.get(name, default), default)

    def _number(self, found: Any, default: int | float | None = None) -> int | float:
        found = default if found is None else found
        match found:
            case bool():
                return int(found)
            case int() | float():
                return found
            case Term():
                return self.arrays.number(found)
            case Quotient("float", over, under):
                low = self.arrays.number(under)
                if low:
                    return self.arrays.number(over) / low
        raise NotComputed

    def whole(self, name: str, default: int | None = None) -> int:
        found = self.number(name, default)
        if not isinstance(found, int):
            raise NotComputed
        return found

    def bound(self, found: Any) -> int | None:
        """Returns a part of a slice."""
        if found is not None and not isinstance(found, int | Term):
            raise NotComputed
        return None if found is None else self.arrays.number(found)

    def made_of(self, numbers: Iterable[Number]) -> Array:
        """Returns numbers as the result's dtype holds them."""
        dtype = self.dtype
        return Array(self.shape, tuple([held(x, dtype) for x in numbers]), dtype)

    def is_counted(self) -> bool:
        """Returns whether the data decide how many elements the input has."""
        value = self.tensor("input")
        return value is None or any(not self.arrays.data.isdisjoint(symbols(n)) for n in value.shape)

    def free_sums(self, array: Array) -> Array:
        """Returns the sums of numbers that the data choose freely from a range: all sums between the least
        and the greatest; of no numbers it is 0.
        """
        if self.is_counted():
            raise NotComputed
        if not array.numbers:
            return self.made_of([0])
        least, most, count = int(min(array.numbers)), int(max(array.numbers)), math.prod(array.shape)
        every = len({*array.numbers}) == most - least + 1
        if array.alike is not Sameness.FREE or not every:
            raise NotComputed
        if count * (most - least) > self.arrays.left:
            raise NotComputed
        found = self.made_of(range(least * count, most * count + 1))
        return replace(found, source=self.ref, loose=True)

    def _by_element(self) -> Array:
        """Returns what a function makes of the operands' elements at the same place, or of each number that
        the data may choose.
        """
        if not math.prod(self.shape):
            return self.made_of(())
        operands = {name: self._operand(name, argument) for name, argument in self.args.items()}
        several = [found for found in operands.values() if isinstance(found, Array)]
        chosen = [array for array in several if array.source is not None]
        if len({(a.source, a.loose, len(a.numbers)) for a in chosen}) > 1:
            raise NotComputed
        if chosen and any(math.prod(a.shape) != 1 and a.source is None for a in several):
            raise NotComputed
        if any(a.shape != self.shape for a in chosen):
            raise NotComputed
        if self.op in DIVIDING and self.dtype in INTEGRAL and not chosen:
            other = operands.get("other")
            if other == 0 or (isinstance(other, Array) and 0 in other.numbers):
                raise DoesNotRun
        count = len(chosen[0].numbers) if chosen else math.prod(self.shape)
        given = {name: self._given(name, found, bool(chosen)) for name, found in operands.items()}
        near = any(array.near for array in several)
        if near and (self.op not in CASTS or self.dtype not in INTEGRAL or any(map(_is_unsure, several))):
            raise NotComputed
        if self.op == "sqrt":
            root = given["input"].get
            numbers = tuple([held(_root(root(i)), self.dtype) for i in range(count)])
        else:
            law = FUNCTIONS[self.op](given, self.dtype)
            numbers = tuple([law(i) for i in range(count)])
        if not chosen:
            return Array(self.shape, numbers, self.dtype)
        return replace(chosen[0], numbers=numbers, dtype=self.dtype)

    def _operand(self, name: str, argument: Argument) -> Any:
        if isinstance(argument, Ref):
            if (self.op, name) == ("type_as", "other"):
                other = self.tensor(name)
                return RangeOperand(None, float, other.dtype or "" if other else "", aside=True)
            return self.array(argument)
        return self._number(argument) if isinstance(argument, Term | Quotient) else argument

    def _given(self, name: str, found: Any, chosen: bool) -> RangeOperand:
        if isinstance(found, RangeOperand):
            return found
        if not isinstance(found, Array):
            return RangeOperand(None, lambda x: found, "", found)
        if chosen and found.source is None:
            one = found.numbers[0]
            return RangeOperand(None, lambda x: one, found.dtype)
        numbers = found.numbers if chosen else _stretched(found, self.shape)
        return RangeOperand(None, lambda i: numbers[int(i)], found.dtype)


def _every_place(shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yields the places of a shape in order: none where a size is 0, however large the others are."""
    return product(*map(range, shape)) if all(shape) else iter(())


def alike_in(places: Places, made: MadeValue) -> Sameness:
    """Returns how the elements of a result are related that the data choose."""
    if _is_anywhere(places, made):
        return Sameness.ALL
    args = places.args(made)
    given = made.op in DRAWING or _is_free(places, args.get("input"))
    if not given or (made.op, made.place) not in ALIKE:
        return Sameness.NO
    apart = made.op in DISTINCT or (made.op == "multinomial" and args.get("replacement") is not True)
    return Sameness.EACH if apart else Sameness.FREE


def _is_free(places: Places, source: Argument) -> bool:
    """Returns whether numbers that the user gives may have any order: they are an input, perhaps under a
    function of each that keeps or turns the order of some.
    """
    value = places.program.value(source.id) if isinstance(source, Ref) else None
    if not isinstance(source, Ref) or not isinstance(value, Tensor) or value.elements is not None:
        return False
    made = places.program.made(source.id)
    return made is None or (made.op in ORDERED and _is_free(places, places.args(made).get("input")))


ORDERED: Final = frozenset(
    "clone contiguous detach flatten reshape squeeze unsqueeze flip neg exp sigmoid tanh relu".split()
)


def picked_alike(
    call: TensorCall, index: Ref, alike: tuple[Sameness, Sameness], *, several: bool
) -> Sameness:
    """Returns how the elements are related that a permutation takes from the input of a call: as those of the
    two are, if no data choose both.

    What is made of one permutation p alone is g(p(a(i))) and f(p(b(i))), where f, a and b are one-to-one. So
    g(p(h(p(j)))) is taken, for another permutation h. If there are `several`, three or more, p(h(p(j))) may
    be any v: p(j) = v does it where h(v) = j, and else p(j) = k and p(h(k)) = v, for some k but v and that
    with h(k) = j.
    """
    own, places = call.args.get("input"), call.places
    if not isinstance(own, Ref) or not any(alike):
        return Sameness.NO
    if _data_of(places, own.id, call.time, set()).isdisjoint(_data_of(places, index.id, call.time, set())):
        return Sameness.EACH
    return Sameness.EACH if several and _are_of_one(call, index, alike) else Sameness.NO


def _are_of_one(call: TensorCall, index: Ref, alike: tuple[Sameness, Sameness]) -> bool:
    """Returns whether the input of a call and an index are made of one permutation alone, of all that the
    data may choose.
    """
    own = call.args.get("input")
    found = {_permutation_of(call.places, ref.id) for ref in (own, index) if isinstance(ref, Ref)}
    return all(alike) and len(found) == 1 and None not in found


def _data_of(places: Places, ref: int, time: int, seen: set[int]) -> set[int]:
    """Returns the inputs and random numbers from which a value may be made, as the call number `time` gets
    it, but for those of values already `seen`.
    """
    if ref in seen:
        return set()
    seen.add(ref)
    made = places.program.made(ref)
    if made is None or made.op in DRAWING:
        return {ref}
    refs = [(one.id, by.time) for by in (made, places.written_over(ref, time)) if by for one in by.node.refs]
    return set().union(*(_data_of(places, one, at, seen) for one, at in refs))


def _permutation_of(places: Places, ref: int) -> int | None:
    """Returns the permutation, any that the data choose, from which alone a value is made; None if there is
    none.
    """
    made = places.program.made(ref)
    while made is not None and alike_in(places, made) is Sameness.NO:
        if len(refs := made.node.refs) != 1:
            return None
        ref = refs[0].id
        made = places.program.made(ref)
    return None if made is None or alike_in(places, made) is not Sameness.EACH else ref


def _is_anywhere(places: Places, made: MadeValue) -> bool:
    """Returns whether a call returns the places where floats that the user gives lie on one side of a number,
    which may be a single one, whichever.
    """
    args = places.args(made)
    mask = args.get("input", args.get("condition"))
    compared = places.program.made(mask.id) if isinstance(mask, Ref) else None
    if made.op not in ("nonzero", "argwhere", "where") or compared is None or compared.op not in SIDES:
        return False
    source, bound = map(places.args(compared).get, ("input", "other"))
    value = places.program.value(source.id) if isinstance(source, Ref) else None
    given = isinstance(source, Ref) and places.program.made(source.id) is None
    return given and isinstance(value, Tensor) and value.dtype in DIGITS and type(bound) in (int, float)


SIDES: Final = frozenset("lt le gt ge".split())


def _root(x: Number) -> float:
    if x < 0:
        raise NotComputed
    return math.sqrt(x)


def _is_unsure(array: Array) -> bool:
    """Returns whether it is unknown to which integers of 64 bits the floats are truncated."""

    def is_sure(x: Number) -> bool:
        if abs(x) < 1 << 24:
            return x == int(x) or math.floor(x - NEAR * abs(x)) == math.floor(x + NEAR * abs(x))
        return math.frexp(x)[0] == 0.5 or x * (1 - NEAR) > 1 << 63

    return array.near and not all(map(is_sure, array.numbers))


NEAR: Final = 1e-5


def _stretched(array: Array, shape: Shape) -> Numbers:
    """Returns the elements of an array that is broadcast to a shape."""
    if array.shape == shape:
        return array.numbers
    own = (1,) * (len(shape) - len(array.shape)) + array.shape
    if len(own) > len(shape) or any(n not in (1, m) for n, m in zip(own, shape, strict=True)):
        raise NotComputed
    strides = [0 if n == 1 else stride for n, stride in zip(own, _strides(own), strict=True)]
    return tuple([array.numbers[at] for at in _positions(shape, strides)])


def _strides(shape: Shape) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _positions(shape: Shape, strides: Sequence[int], first: int = 0) -> list[int]:
    """Returns where the elements of a view lie in memory: nowhere where a size is 0, however large the others
    are.
    """
    if not all(shape):
        return []
    if math.prod(shape) > MOST:
        raise NotComputed
    found = [first]
    for size, stride in zip(shape, strides, strict=True):
        found = [at + stride * k for at in found for k in range(size)]
    return found


Law: TypeAlias = Callable[[ArrayCall], Array]
ALIKE: Final = frozenset(
    (op, 0)
    for op in "multinomial rand randint randint_like argsort randperm argmax argmin bucketize".split()
) | {(op, 1) for op in "topk sort _unique2 max min median nanmedian mode kthvalue".split()}
"""Results of operators, as pairs of operator and number of the result, in which the data may give each
element any of the values.
"""
DIVIDING: Final = frozenset("floor_divide remainder fmod".split())
"""Operators that refuse an integer that is divided by zero."""
DISTINCT: Final = frozenset("argsort randperm topk sort _unique2".split())
"""Those of them whose elements differ, or are all the numbers up to the greatest."""
DRAWING: Final = frozenset("multinomial rand randint randint_like randperm".split())
"""Those of them that look at no data."""


# --- makers ------------------------------------------------------------------------------------------------


def _arange(call: ArrayCall) -> Array:
    start, end, step = call.number("start", 0), call.args.get("end"), call.number("step", 1)
    start = start if end is not None else 0
    if step * 1024 != int(step * 1024) or step == 0:
        raise NotComputed  # the steps of others are rounded
    return call.made_of(start + step * k for k in range(math.prod(call.shape)))


def _filled(number: int | None, name: str = "") -> Law:
    def filled(call: ArrayCall) -> Array:
        one = call.number(name) if number is None else number
        return call.made_of([one] * math.prod(call.shape))

    return filled


def _tensor(call: ArrayCall) -> Array:
    data = call.args.get("data")
    if isinstance(data, Ref):
        return call.array("data")
    return call.made_of(call._number(one) for one in _leaves(data))


def _leaves(data: Any) -> Iterator[Any]:
    if isinstance(data, tuple):
        for part in data:
            yield from _leaves(part)
    else:
        yield data


def _eye(call: ArrayCall) -> Array:
    return call.made_of(int(i == j) for i, j in _every_place(call.shape))


def _logspace(call: ArrayCall) -> Array:
    """Powers between two, which torch computes with an error of a few roundings; powers of 2 are exact. As
    integers, those from 2**63 on are all the same.
    """
    first, last, base = call.number("start"), call.number("end"), call.number("base", 10)
    count = math.prod(call.shape)
    if base != 2 or call.dtype not in ("float32", "float64") or min(first, last) < 0 or count > 60:
        raise NotComputed
    powers = [first + (last - first) * k / max(count - 1, 1) for k in range(count)]
    return Array(call.shape, tuple([2.0 ** min(p, 200) for p in powers]), call.dtype, near=True)


def _linspace(call: ArrayCall) -> Array:
    """Numbers at equal distances between a given first and a given last one. If distances are rounded, a
    number between them that should be an integer may lie on either side of it.
    """
    first, last, count = call.number("start"), call.number("end"), math.prod(call.shape)
    step = (last - first) / max(count - 1, 1)
    numbers = [first + step * k for k in range(count)]
    if count > 1:
        numbers[-1] = last
    if step * 1024 == int(step * 1024):
        return call.made_of(numbers)
    if call.dtype not in DIGITS or any(abs(x - round(x)) < NEAR * (abs(x) + 1) for x in numbers[1:-1]):
        raise NotComputed
    return Array(call.shape, tuple(numbers), call.dtype, near=True)


def _triangle(call: ArrayCall) -> Array:
    rows, columns, offset = call.whole("row"), call.whole("col"), call.whole("offset", 0)
    if rows > MOST:
        raise NotComputed
    upper = call.op == "triu_indices"
    pairs = [
        (i, j)
        for i in range(rows)
        for j in (range(max(i + offset, 0), columns) if upper else range(min(i + offset + 1, columns)))
    ]
    return call.made_of([*(i for i, _ in pairs), *(j for _, j in pairs)])


def _nonzero(call: ArrayCall) -> Array:
    array = call.ordered()
    every = zip(_every_place(array.shape), array.numbers, strict=True)
    if call.args.get("as_tuple"):
        raise NotComputed
    found = [place for place, number in every if number]
    return Array((len(found), len(array.shape)), tuple(i for place in found for i in place), call.dtype)


def _several(call: ArrayCall) -> tuple[Argument, ...]:
    several = call.args.get("tensors")
    if not isinstance(several, tuple):
        raise NotComputed
    return several


def _tensors(call: ArrayCall) -> list[Array]:
    return [call.ordered(one) for one in _several(call)]


def _cartesian(call: ArrayCall) -> Array:
    found = _tensors(call)
    return Array(
        call.shape, tuple(x for row in product(*(a.numbers for a in found)) for x in row), call.dtype
    )


def _combinations(call: ArrayCall) -> Array:
    if call.args.get("r", 2) != 2 or call.args.get("with_replacement"):
        raise NotComputed
    pairs = combinations(call.ordered().numbers, 2)
    return Array(call.shape, tuple(x for pair in pairs for x in pair), call.dtype)


def _meshgrid(call: ArrayCall) -> Array:
    found = _tensors(call)
    if call.args.get("indexing") != "ij" or any(len(a.shape) != 1 for a in found):
        raise NotComputed
    one = found[call.part]
    numbers = (one.numbers[place[call.part]] for place in _every_place(call.shape))
    return Array(call.shape, tuple(numbers), call.dtype)


def _one_hot(call: ArrayCall) -> Array:
    array, classes = call.ordered(), call.shape[-1]
    if any(not 0 <= x < classes for x in array.numbers):
        raise DoesNotRun
    return call.made_of(int(x == j) for x in array.numbers for j in range(classes))


def _unique(call: ArrayCall) -> Array:
    array = call.array()
    if call.part or call.args.get("dim") is not None or array.loose or array.near:
        raise NotComputed
    found = sorted(set(array.numbers))
    return Array((len(found),), tuple(found), call.dtype)


def _bucketize(call: ArrayCall) -> Array:
    """The number of boundaries that are less than each number, or not more."""
    name = "boundaries" if call.op == "bucketize" else "sorted_sequence"
    bounds, array = call.ordered(name), call.array()
    if array.near or array.dtype not in INTEGRAL or bounds.dtype not in INTEGRAL or len(bounds.shape) != 1:
        raise NotComputed
    if any(call.args.get(name) for name in ("right", "side", "sorter", "out_int32")):
        raise NotComputed
    if any(before > after for before, after in pairwise(bounds.numbers)):
        raise NotComputed
    numbers = tuple([bisect_left(bounds.numbers, x) for x in array.numbers])
    return replace(array, numbers=numbers, dtype=call.dtype)


def _shuffled(call: ArrayCall) -> Array:
    """The places of a vector, in an order that the data choose."""
    if len(call.shape) != 1 or (call.op == "topk" and not is_whole_topk(call)):
        raise NotComputed
    return Array(call.shape, tuple(range(*call.shape)), call.dtype, source=call.ref)


def is_whole_topk(call: TensorCall) -> bool:
    """Returns whether a call of `topk` returns the places of all elements of a vector."""
    value = call.tensor("input")
    return call.part == 1 and value is not None and value.shape == call.result.shape


def _sorted(call: ArrayCall) -> Array:
    if call.part:
        return _shuffled(call)
    array = call.array()
    if len(call.shape) > 1 or array.loose or array.near:
        raise NotComputed
    down = call.args.get("descending") is True
    return Array(call.shape, tuple(sorted(array.numbers, reverse=down)), call.dtype)


# --- elements that are moved -------------------------------------------------------------------------------


def _viewed(call: ArrayCall) -> Array:
    """The elements in their order, under other dims."""
    return replace(call.array(), shape=call.shape)


def _moved(law: Callable[[ArrayCall, Array], Sequence[int]]) -> Law:
    """Returns the law of elements that lie at other places: at these of the operand's."""

    def moved(call: ArrayCall) -> Array:
        array = call.array()
        if array.loose:
            every = range(math.prod(array.shape))
            some = law(call, replace(array, numbers=tuple(every)))
            if not array.alike and len(set(some)) < len(every):
                raise NotComputed
            same = some == [*every]  # other elements may be other numbers
            alike = array.alike if len(set(some)) == len(some) else min(array.alike, Sameness.ALL)
            return replace(array, shape=call.shape, source=array.source if same else call.ref, alike=alike)
        at = law(call, array)
        there, whole = tuple([array.numbers[i] for i in at]), len(set(at)) == len(at) == len(array.numbers)
        if array.source is None:
            return replace(array, shape=call.shape, numbers=there)
        if whole:
            return replace(array, shape=call.shape, numbers=there, source=call.ref)
        if not array.alike:
            raise NotComputed
        return replace(array, shape=call.shape, source=call.ref, loose=True)

    return moved


def _axes(call: ArrayCall, found: Any, rank: int) -> list[int]:
    some = found if isinstance(found, tuple) else (found,)
    if not rank and all(axis in (-1, 0) for axis in some):
        return []  # a tensor without dims is as it is
    if not all(type(axis) is int and -rank <= axis < rank for axis in some):
        raise NotComputed
    return [axis % rank for axis in some]


def _flipped(call: ArrayCall, array: Array) -> list[int]:
    axes = _axes(call, call.args.get("dims"), len(array.shape))
    strides = _strides(array.shape)
    first = sum(strides[axis] * (array.shape[axis] - 1) for axis in axes)
    return _positions(array.shape, [-s if a in axes else s for a, s in enumerate(strides)], first)


def _rolled(call: ArrayCall, array: Array) -> list[int]:
    if call.args.get("dims") not in (None, ()) and len(array.shape) != 1:
        raise NotComputed
    count, by = len(array.numbers), call.args.get("shifts")
    (by,) = by if isinstance(by, tuple) and len(by) == 1 else (by,)
    if not isinstance(by, int):
        raise NotComputed
    return [(i - by) % count for i in range(count)]


def _permuted(call: ArrayCall, array: Array) -> list[int]:
    rank, strides = len(array.shape), _strides(array.shape)
    order = [*range(rank)]
    if call.op == "permute":
        order = _axes(call, call.args.get("dims"), rank)
    elif rank > 1:
        pair = (call.args.get("dim0", 0), call.args.get("dim1", 1))
        one, other = (0, 1) if call.op == "t" else _axes(call, pair, rank)
        order[one], order[other] = order[other], order[one]
    return _positions(call.shape, [strides[axis] for axis in order])


def _expanded(call: ArrayCall, array: Array) -> Sequence[int]:
    places = Array(array.shape, tuple(range(math.prod(array.shape))), "int64")
    return [int(i) for i in _stretched(places, call.shape)]


def _repeated(call: ArrayCall, array: Array) -> list[int]:
    own = (1,) * (len(call.shape) - len(array.shape)) + array.shape
    if not all(own):
        return []
    strides = _strides(own)
    places = _every_place(call.shape)
    return [sum(i % n * s for i, n, s in zip(at, own, strides, strict=True)) for at in places]


def _interleaved(call: ArrayCall, array: Array) -> list[int]:
    times = call.args.get("repeats")
    if not isinstance(times, int) or (call.args.get("dim") is not None and len(array.shape) != 1):
        raise NotComputed
    return [i for i in range(len(array.numbers)) for _ in range(times)]


def _item(call: ArrayCall, array: Array) -> list[int]:
    return _taken(call, array)[0]


def _taken(call: ArrayCall, array: Array) -> tuple[list[int], Shape]:
    """The places that an index of integers, slices and new dims names, or one tensor of indices; and the
    shape of the part.
    """
    index = call.args.get("index")
    items = index if isinstance(index, tuple) else (index,)
    if len(items) == 1 and isinstance(items[0], Ref):
        rows = call.ordered(items[0])
        return _picked(array, rows), (*rows.shape, *array.shape[1:])
    rank = len(array.shape)
    taken = sum(item is not None and item is not Dots for item in items)
    if Dots not in items:
        items = (*items, Dots)
    at = items.index(Dots)
    items = (*items[:at], *(Slice(),) * (rank - taken), *items[at + 1 :])
    strides, axis, first = _strides(array.shape), 0, 0
    shape: list[int] = []
    steps: list[int] = []
    for item in items:
        if item is None:
            shape, steps = [*shape, 1], [*steps, 0]
            continue
        size, stride = array.shape[axis], strides[axis]
        axis += 1
        match item:
            case Slice(start, stop, step):
                there = range(size)[slice(*map(call.bound, (start, stop, step)))]
                shape, steps = [*shape, len(there)], [*steps, stride * there.step]
                first += stride * (there.start if there else 0)
            case bool():
                raise NotComputed
            case int() | Term():
                place = call._number(item)
                if not -size <= place < size:
                    raise DoesNotRun
                first += stride * int(place % size)
            case _:
                raise NotComputed
    return _positions(tuple(shape), steps, first), tuple(shape)


def _assigned(call: ArrayCall) -> Array:
    """The elements of a tensor after some have been written over."""
    array, value = call.ordered(), call.args.get("value")
    at, part = _taken(call, array)
    put = call.ordered(value) if isinstance(value, Ref) else Array((), (call.number("value"),), call.dtype)
    if len(set(at)) < len(at):
        raise NotComputed  # it is not known which of several numbers stays at a place
    written = dict(zip(at, _stretched(put, part), strict=True))
    return call.made_of(written.get(i, number) for i, number in enumerate(array.numbers))


def _got(call: ArrayCall) -> Array:
    """The elements at some places, or those of a vector in an order that the data choose. Permutations of two
    elements commute, so that the order that one of them has chosen is undone by itself.
    """
    index, array = call.args.get("index"), call.array()
    if isinstance(index, tuple) and len(index) == 1:
        (index,) = index
    if isinstance(index, Ref) and len(array.shape) == 1 and not (array.loose or array.near):
        places, count = call.array(index), len(array.numbers)
        at = [int(x) % count for x in places.numbers]
        if sorted(at) == [*range(count)] and places.source is not None and not places.loose:
            found, alike = tuple([array.numbers[i] for i in at]), (array.alike, places.alike)
            if count < 3 and _are_of_one(call, index, alike):
                return replace(array, numbers=found, source=None)
            alike_now = picked_alike(call, index, alike, several=count > 2)
            return replace(array, numbers=found, source=call.ref, alike=alike_now)
    return _moved(_item)(call)


def _picked(array: Array, index: Array) -> list[int]:
    """The places of the rows that a tensor names."""
    if index.dtype not in INTEGRAL or not array.shape:
        raise NotComputed
    rows, row = array.shape[0], math.prod(array.shape[1:])
    if not all(-rows <= i < rows for i in index.numbers):
        raise DoesNotRun
    return [int(i) % rows * row + k for i in index.numbers for k in range(row)]


def _selected(call: ArrayCall) -> Array:
    return _moved(lambda call, array: _picked(array, call.ordered("index")))(call)


def _joined(call: ArrayCall) -> Array:
    """The elements of all tensors; where the data choose some, the numbers that they may be."""
    found = [call.array(one) for one in _several(call)]
    found = [a for a in found if 0 not in a.shape]
    if any(a.near for a in found) or len({a.dtype for a in found}) > 1:
        raise NotComputed
    numbers = tuple(x for a in found for x in a.numbers)
    if any(a.source is not None for a in found):
        return Array(call.shape, numbers, call.dtype, source=call.ref, loose=True)
    if call.args.get("dim", 0) != 0:
        raise NotComputed
    return Array(call.shape, numbers, call.dtype)


def _padded(call: ArrayCall) -> Array:
    array, sides = call.ordered(), call.args.get("pad")
    if not array.shape or not isinstance(sides, tuple) or len(sides) != 2:
        raise NotComputed
    if call.args.get("mode", "constant") not in (None, "constant"):
        raise NotComputed
    before, after = sides
    if not (type(before) is int and type(after) is int and before >= 0 and after >= 0):
        raise NotComputed
    around = call.number("value", 0)
    lines = ([array.numbers[i] for i in line] for line in _lines(array, len(array.shape) - 1))
    return call.made_of(x for line in lines for x in (*[around] * before, *line, *[around] * after))


def _on_diagonal(call: ArrayCall) -> Array:
    array = call.ordered()
    if len(array.shape) != 1 or call.args.get("diagonal", 0) != 0:
        raise NotComputed
    return call.made_of(x if i == j else 0 for i, x in enumerate(array.numbers) for j in range(*array.shape))


def _cut(call: ArrayCall) -> Array:
    """The elements on one side of a diagonal of matrices, and zeros on the other."""
    array, diagonal, upper = call.ordered(), call.whole("diagonal", 0), call.op == "triu"
    rows, columns = array.shape[-2:]
    places = ((k // columns % rows, k % columns) for k in range(len(array.numbers)))
    kept = [j - i >= diagonal if upper else j - i <= diagonal for i, j in places]
    return call.made_of(x if keep else 0 for x, keep in zip(array.numbers, kept, strict=True))


def _part(call: ArrayCall) -> Array:
    array = call.ordered()
    (axis,) = _axes(call, call.args.get("dim", 0), len(array.shape))
    strides = _strides(array.shape)
    kept = [stride for a, stride in enumerate(strides) if a != axis]
    number = call.whole("index", call.part)
    if not -array.shape[axis] <= number < array.shape[axis]:
        raise DoesNotRun
    at = _positions(call.shape, kept, strides[axis] * (number % array.shape[axis]))
    return Array(call.shape, tuple([array.numbers[i] for i in at]), call.dtype)


# --- several elements together -----------------------------------------------------------------------------


def _lines(array: Array, axis: int) -> Iterator[list[int]]:
    """Yields the places along an axis, for each of the others."""
    strides = _strides(array.shape)
    rest = [(n, s) for a, (n, s) in enumerate(zip(array.shape, strides, strict=True)) if a != axis]
    for first in _positions(tuple(n for n, _ in rest), [s for _, s in rest]):
        yield [first + strides[axis] * k for k in range(array.shape[axis])]


def _reduced(law: Callable[[Iterable[Number]], Number], empty: bool) -> Law:
    """Returns the law of one number made of several integers, which may be none where `empty`."""

    def reduced(call: ArrayCall) -> Array:
        array, axis = call.array(), call.args.get("dim")
        if array.near or array.dtype in DIGITS or call.part or call.args.get("other") is not None:
            raise NotComputed
        if array.loose and math.prod(array.shape) != 1:
            if axis in (None, (), 0, -1) and len(array.shape) == 1 and call.op in ("sum", "prod"):
                return call.free_sums(array) if call.op == "sum" else _doubled(call, array)
            if array.alike < Sameness.ALL or law not in (max, min) or 0 in array.shape:
                raise NotComputed
            return replace(array, shape=call.shape, dtype=call.dtype, source=call.ref)
        if math.prod(array.shape) == 1:
            return replace(array, shape=call.shape, dtype=call.dtype)
        axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
        rank = len(array.shape)
        if axis in (None, ()) or (rank == 1 and axis in (0, -1)):
            groups = [array.numbers]
        elif array.source is not None or not isinstance(axis, int):
            raise NotComputed
        else:
            (at,) = _axes(call, axis, rank)
            groups = [tuple(array.numbers[i] for i in line) for line in _lines(array, at)]
        if not empty and not all(groups):
            raise DoesNotRun
        return call.made_of(law(group) for group in groups)

    return reduced


def _running(law: Callable[[int, int], int]) -> Law:
    """Returns the law of sums, or products, of all elements up to each, which wrap at 64 bits."""

    def both(a: int, b: int) -> int:
        return int(held(law(a, b), "int64"))

    def running(call: ArrayCall) -> Array:
        array = call.array()
        if math.prod(array.shape) == 1 and array.dtype == call.dtype:
            return array
        if array.near or array.dtype in DIGITS:
            raise NotComputed
        if array.source is not None:
            return _doubled(call, array)
        if not array.shape:
            return call.made_of(array.numbers)
        (axis,) = _axes(call, call.args.get("dim"), len(array.shape))
        numbers = [0] * len(array.numbers)
        for line in _lines(array, axis):
            for i, number in zip(line, accumulate([int(array.numbers[i]) for i in line], both), strict=True):
                numbers[i] = number
        return call.made_of(numbers)

    return running


def _doubled(call: ArrayCall, array: Array) -> Array:
    """Products of the first of some ones and twos, in an order that the data choose: all powers of 2 up to
    the product of all, and 1 where the first may be 1.
    """
    free = array.alike is Sameness.FREE and not call.is_counted() if array.loose else array.alike
    if call.op == "cumsum" or not free or len(array.shape) != 1 or not {1, 2}.issuperset(array.numbers):
        raise NotComputed
    twos = array.numbers.count(2)
    if array.loose:
        twos = math.prod(array.shape) if twos else 0
    whole = 1 not in array.numbers
    powers = [1 << k for k in range(twos if whole and call.op == "prod" else whole, twos + 1)]
    found = call.made_of(powers)
    return replace(found, source=call.ref, loose=True)


def _differences(call: ArrayCall) -> Array:
    array = call.ordered()
    usual = {"n": 1, "dim": -1, "prepend": None, "append": None}
    if any(call.args.get(name, one) != one for name, one in usual.items()) or array.dtype not in INTEGRAL:
        raise NotComputed
    if not array.shape:
        raise DoesNotRun
    lines = _lines(array, len(array.shape) - 1)
    return call.made_of(array.numbers[j] - array.numbers[i] for line in lines for i, j in pairwise(line))


LAWS: Final[Mapping[str, Law]] = {
    "arange": _arange,
    "full": _filled(None, "fill_value"),
    "new_full": _filled(None, "fill_value"),
    "full_like": _filled(None, "fill_value"),
    **dict.fromkeys("zeros new_zeros zeros_like".split(), _filled(0)),
    **dict.fromkeys("ones new_ones ones_like".split(), _filled(1)),
    **dict.fromkeys(("tensor", "as_tensor"), _tensor),
    "eye": _eye,
    "logspace": _logspace,
    "linspace": _linspace,
    **dict.fromkeys(("triu_indices", "tril_indices"), _triangle),
    **dict.fromkeys(("nonzero", "argwhere"), _nonzero),
    "cartesian_prod": _cartesian,
    "combinations": _combinations,
    "meshgrid": _meshgrid,
    "one_hot": _one_hot,
    "_unique2": _unique,
    **dict.fromkeys(("bucketize", "searchsorted"), _bucketize),
    **dict.fromkeys("argsort randperm topk".split(), _shuffled),
    "sort": _sorted,
    **dict.fromkeys(
        "reshape view flatten unsqueeze squeeze clone contiguous detach ravel unflatten reshape_as view_as "
        "alias".split(),
        _viewed,
    ),
    "flip": _moved(_flipped),
    "roll": _moved(_rolled),
    **dict.fromkeys("t transpose permute".split(), _moved(_permuted)),
    **dict.fromkeys(("expand", "expand_as"), _moved(_expanded)),
    "repeat": _moved(_repeated),
    "repeat_interleave": _moved(_interleaved),
    "getitem": _got,
    "setitem": _assigned,
    "index_select": _selected,
    **dict.fromkeys(("cat", "stack"), _joined),
    **dict.fromkeys(("pad", "constant_pad_nd"), _padded),
    "diag": _on_diagonal,
    **dict.fromkeys(("tril", "triu"), _cut),
    **dict.fromkeys(("unbind", "select"), _part),
    "sum": _reduced(sum, empty=True),
    "prod": _reduced(math.prod, empty=True),
    **dict.fromkeys(("max", "amax"), _reduced(max, empty=False)),
    **dict.fromkeys(("min", "amin"), _reduced(min, empty=False)),
    "cumsum": _running(int.__add__),
    "cumprod": _running(int.__mul__),
    "diff": _differences,
}
"""For each operator, the function that computes the elements of its result. Functions of the elements at one
place are in `computed`.
"""
