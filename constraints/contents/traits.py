"""Traits of tensors, facts besides the values of their elements: the origin of elements, the number of true
ones, the indices where they were found, and how many there are.

A tensor has one value, `Traits`, under its reference in the program, and one table gives the traits of a
result from those of the input: `EFFECTS`. The traits of the result of any other operator are unknown. A write
may be seen through any other tensor of the same kind: it invalidates the traits of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

from msgspec import structs

from ..ir.language import (
    Affine,
    Context,
    Elements,
    Index,
    Layout,
    Piece,
    Pieces,
    Shape,
    Slice,
    Span,
    Tensor,
    Truths,
    Value,
    product,
    tensors,
)
from ..terms.dims import Dim, Term, maximum, minimum, sym, symbols
from ..terms.formula import Formula, all_of, any_of, eq, ge, le
from .elements.dtypes import INTEGRAL, WHOLE, wide, width
from .elements.values import extremes, inexact_ways
from .laws.masks import COMPARISONS, NEGATIONS, one_value
from .laws.subscripts import FINDING
from .requirements.indices import INDICES

Named = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Border:
    """Elements within a part of this shape are arbitrary, independently of each other; the elements around
    the part, if there are any, all equal the value.
    """

    shape: Shape | None = None
    value: int = 0


@dataclass(frozen=True, slots=True)
class TrueCount:
    """The elements are not negative, and their sum is the number of true elements of a mask, or `of` less
    that number.
    """

    mask: int
    value: Tensor
    of: Dim | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a tensor, `[..., n]`: all of them, or those that a mask picks; all rows of them, or one."""

    source: int
    elements: Elements
    """The elements of the source."""
    size: Dim
    mask: int | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """True where two tensors `[n]` have equal elements, or else where they differ."""

    left: tuple[Columns, ...]
    right: tuple[Columns, ...]
    equal: bool


@dataclass(frozen=True, slots=True)
class Column:
    """The indices along an axis of all positions of a shape, in their order; or a mask that is true where
    such a column is `equal` to a number.
    """

    shape: Shape
    axis: int
    equal: Dim | None = None

    @property
    def times(self) -> Dim:
        """Returns how often each index occurs."""
        return product([n for place, n in enumerate(self.shape) if place != self.axis])


@dataclass(frozen=True, slots=True)
class Traits:
    """The facts about one tensor. Other tensors are given by their references."""

    free: Border | None = None
    """The elements that are arbitrary."""
    alike: bool = False
    """Whether some data make all elements any one number."""
    sums: Border | None = None
    """For running sums: the summed elements are 0 at this border, and the sums are greatest where all within
    it is true.
    """
    root: int | None = None
    """The mask whose integer form, or running sums, this tensor is; None for the tensor itself."""
    count: TrueCount | None = None
    kin: int | None = None
    """The tensor whose elements it has, in some order, as far as counts go; None for the tensor itself."""
    parts: tuple[Columns, ...] = ()
    """The columns of integers, side by side; empty for the tensor's own."""
    compares: Comparison | None = None
    places: Shape | None = None
    """The shape whose positions it lists, a row for each."""
    column: Column | None = None
    diagonal: bool = False
    """Whether it is a matrix of ones on its main diagonal and zeros elsewhere."""
    identity: bool = False
    """Whether each of its matrices is the identity."""
    hot: bool = False
    """Whether it has ones and zeros, a single one along its last dim for each index of the others."""
    stored: Dim | None = None
    """The number of elements that a sparse tensor stores."""
    source: int | None = None
    """The data that consist of exactly its integers, unless it has no elements; None for its own."""
    extreme: tuple[str, int] | None = None
    """The data whose greatest, or least, element it is."""


NOTHING: Final = Traits()


@dataclass(frozen=True, slots=True)
class CallStep:
    """A call, as effects see it: `result` is one of its results, `part` its number among several."""

    c: Context
    known: Contents
    op: str
    named: Named
    result: Tensor
    part: int | None

    @property
    def input(self) -> Tensor:
        found = self.named.get("input")
        return found if isinstance(found, Tensor) else NO_TENSOR

    def of(self, value: Any) -> Traits:
        return self.known.of(value) if isinstance(value, Tensor) else NOTHING


NO_TENSOR: Final = Tensor((), None)
Found: TypeAlias = "dict[str, Any]"
"""Some traits, by their names; None and empty ones are unknown."""
Effect: TypeAlias = Callable[[CallStep], Found]
"""Returns the traits of a result from those of an operator's input; `elements` are facts about its elements.
"""


class Contents:
    """The facts about the tensors of a program, by reference, and the numbers that the data have decided."""

    def __init__(self, most: Callable[[Tensor], Dim]) -> None:
        self._most = most
        """Returns how many elements a tensor has."""
        self.masks_written = False
        """Whether constants may have changed since they were made."""
        self._traits: dict[bool, dict[int, Traits]] = {False: {}, True: {}}
        """The traits of floats, and those of masks and integers."""
        self._numbers: dict[tuple[str, Hashable], Dim] = {}
        """Numbers that data have decided, by their kind and their tensor."""
        self._uses: dict[int, list[tuple[Tensor, Dim, bool]]] = {}
        """The uses of the elements of a tensor as indices: the index, the size, and whether it may count from
        the end.
        """
        self._values: dict[int, tuple[Tensor, int]] = {}
        """By reference, the value that it refers to, with a key: the reference itself, except for a value
        that replaces another, as that of an iteration of a loop does.
        """
        self._operands: Iterable[tuple[Value, int]] = ()
        """The values, with their references, that the call is given."""
        self._given: dict[int, tuple[Tensor, int]] | None = None
        """By identity, the tensors among them, each with its first reference; None until one is asked for."""
        self._made: list[tuple[Tensor, Traits]] = []
        self._replaced = 0
        """The number of values that have replaced others."""

    def about(self, given: Iterable[tuple[Value, int]]) -> None:
        """Sets the values, with their references, that the next call is given; they are read once, when a
        rule first asks for one.
        """
        self._operands, self._given = given, None
        self._made.clear()

    def _found(self, tensor: Tensor) -> tuple[Tensor, int] | None:
        if self._given is None:
            self._given = {}
            for value, ref in self._operands:
                if type(value) is Tensor:
                    self._given.setdefault(id(value), (value, ref))
        return self._given.get(id(tensor))

    def name(self, value: Value, ref: int) -> None:
        """Gives the value this reference from here on, with the traits found if the last call made it."""
        for tensor, traits in self._made:
            if tensor is value:
                self._traits[tensor.dtype in WHOLE][self._key(tensor, ref)] = traits

    def given_freely(self, value: Value, ref: int) -> None:
        """Notes an input of the user's, whose elements are arbitrary."""
        if isinstance(value, Tensor):
            self._traits[value.dtype in WHOLE][self._key(value, ref)] = Traits(free=Border(), alike=True)

    def ref(self, tensor: Tensor) -> int | None:
        """Returns the key that identifies a tensor among those that a call is given; None for any other
        tensor.
        """
        found = self._found(tensor)
        return None if found is None else self._key(*found)

    def name_of(self, tensor: Tensor) -> int | None:
        """The reference in the program of a tensor that a call is given."""
        found = self._found(tensor)
        return None if found is None else found[1]

    def _key(self, tensor: Tensor, ref: int) -> int:
        found = self._values.get(ref)
        if found is None or found[0] is not tensor:
            self._replaced += found is not None
            found = self._values[ref] = tensor, ref if found is None else -self._replaced
        return found[1]

    def of(self, tensor: Tensor) -> Traits:
        ref = self.ref(tensor)
        return NOTHING if ref is None else self._traits[tensor.dtype in WHOLE].get(ref, NOTHING)

    def of_mask(self, ref: int | None) -> Traits:
        return NOTHING if ref is None else self._traits[True].get(ref, NOTHING)

    # ---- what changes

    def written(self, tensor: Tensor) -> None:
        """Invalidates the traits of all tensors of this kind, since others may alias the one written."""
        kinds = [False, True] if tensor.dtype is None else [tensor.dtype in WHOLE]
        for kind in kinds:
            stored = ((ref, t.stored) for ref, t in self._traits[kind].items() if t.stored is not None)
            self._traits[kind] = {ref: Traits(stored=count) for ref, count in stored}
        if True in kinds:
            self._uses.clear()
            masks = tensor.dtype in ("bool", "uint8", None)
            self.masks_written |= masks
            kept = {"stored"} if masks else {"stored", "true"}
            self._numbers = {k: n for k, n in self._numbers.items() if k[0] in kept}

    def forget(self, left: frozenset[str]) -> None:
        """Removes the numbers that the data decide, except these."""
        self._numbers = {key: number for key, number in self._numbers.items() if symbols(number) <= left}

    def follow(self, c: Context, op: str, named: Named, result: Value) -> tuple[Value, bool]:
        """Returns the result of a call, and whether a fact is known about it that does not follow from its
        arguments alone.
        """
        if isinstance(result, tuple) and op in EFFECTS:
            parts = [self._followed(c, op, named, part, place) for place, part in enumerate(result)]
            return tuple([part for part, _ in parts]), any(told for _, told in parts)
        return self._followed(c, op, named, result, None)

    def _followed(
        self, c: Context, op: str, named: Named, result: Value, part: int | None
    ) -> tuple[Value, bool]:
        if not isinstance(result, Tensor):
            return result, False
        told = False
        attained = part is None and isinstance(result.elements, Span) and result.elements.attained
        effects = EFFECTS.get(op, ())
        if not (attained or effects):
            return result, told
        step = CallStep(c, self, op, named, result, part)
        if attained:
            result, told = self._perhaps_unattained(step)
        found: dict[str, Any] = {}
        for effect in effects:
            found |= {name: trait for name, trait in effect(step).items() if not _is_unknown(trait)}
        if not found:
            return result, told
        if changes := {name: found.pop(name) for name in ("shape", "elements") if name in found}:
            result = structs.replace(result, **changes)
        if found:
            self._made.append((result, Traits(**found)))
        return result, True

    def _perhaps_unattained(self, step: CallStep) -> tuple[Tensor, bool]:
        """Returns the result, whose extremes are marked as perhaps unattained unless all its sources are
        free, and whether that depends on more than the arguments alone.
        """
        result, given = step.result, [*tensors((*step.named.values(),))]
        borders = [(t.dtype == "bool" and t.elements is None, self.of(t).free) for t in given]
        if step.op in FREEING and self.of(step.input).free is not None:
            return result, False
        apart = step.op == "mul" and len({self.root(t) for t in given}) > 1
        if apart or any((on_data or free is not None) and free != Border() for on_data, free in borders):
            assert isinstance(result.elements, Span)
            result = structs.replace(result, elements=replace(result.elements, attained=False))
        told = any(t.dtype == "bool" for t in given) or any(free for _, free in borders)
        return result, told or step.op == "mul"

    def root(self, tensor: Tensor) -> int | None:
        found = self.of(tensor).root
        return self.ref(tensor) if found is None else found

    def is_free(self, tensor: Tensor) -> bool:
        """Returns whether the user gives the elements of a tensor independently of each other: any occur."""
        return self.of(tensor).free == Border()

    def may_be_alike(self, tensor: Tensor) -> bool:
        """Returns whether some data make all elements of a tensor any one number; a mask may be all false.
        """
        return self.of(tensor).alike and not (tensor.dtype == "bool" and self.masks_written)

    def are_identities(self, tensor: Tensor, ref: int) -> None:
        """Notes that each matrix of a tensor, by its reference, is the identity."""
        self._traits[tensor.dtype in WHOLE][self._key(tensor, ref)] = Traits(diagonal=True, identity=True)

    def has_trues(self, mask: Tensor, ref: int, count: int) -> None:
        """Notes how many elements of a mask, by its reference, are true."""
        self._numbers["true", self._key(mask, ref)] = count

    def holds_identities(self, ref: int) -> bool:
        """Returns whether each matrix of a tensor of floats, by its reference, is the identity."""
        _, key = self._values.get(ref, (None, ref))
        return self._traits[False].get(key, NOTHING).identity

    def is_identity(self, tensor: Tensor) -> bool:
        """Returns whether each matrix of a tensor is the identity."""
        return self.of(tensor).identity

    # ---- how many are true

    def count(self, tensor: Tensor) -> TrueCount | None:
        """Returns the count of a tensor. A mask without one counts its own true elements."""
        found = self.of(tensor).count
        if found is None and tensor.dtype == "bool" and (ref := self.ref(tensor)) is not None:
            return TrueCount(ref, tensor)
        return found

    def kin(self, tensor: Tensor) -> int | None:
        found = self.of(tensor).kin
        return self.ref(tensor) if found is None else found

    def _trues(self, mask: int, certain: Callable[[Formula], bool]) -> Dim | None:
        """Returns how many elements of the mask are true; None where the data decide it."""
        traits = self.of_mask(mask)
        if traits.compares is not None:
            return self._equal(traits.compares)
        match traits.column:
            case Column(shape, axis, index) as column if index is not None:
                inside = certain(ge(index, 0)) and certain(ge(shape[axis] - 1, index))
                return column.times if inside else None
        return None

    def _equal(self, comparison: Comparison) -> Dim | None:
        if len(comparison.left) != len(comparison.right) or not comparison.left:
            return None
        total: Dim = 0
        for left, right in zip(comparison.left, comparison.right, strict=True):
            agree = self._agree(left, right) if left.size == right.size else None
            if agree is None:
                return None
            total = total + (left.size if agree == comparison.equal else 0)
        return total

    def _agree(self, left: Columns, right: Columns) -> bool | None:
        """Returns whether all pairs of elements are equal (True), or no pair (False); None where it is not
        known.
        """
        if left.mask is None and right.mask is None:
            a, b = _progression(left), _progression(right)
            if a is not None and b is not None and a.steps == b.steps:
                apart = a.start - b.start
                return apart == 0 if isinstance(apart, int) else None
        if left.source != right.source or left.mask != right.mask:
            return None
        if left.row == right.row:
            return True
        picked = self.of_mask(left.mask).compares
        if picked is None:
            return None
        rows = {part.row for part in (*picked.left, *picked.right) if _is_row_of(part, left.source)}
        compared = len(picked.left) == len(picked.right) == 1 and rows == {left.row, right.row}
        return picked.equal if compared else None

    def total(self, c: Context, count: TrueCount) -> Dim:
        """Returns the sum of elements that count the true ones of a mask."""
        trues = self._trues(count.mask, c.certain)
        if trues is None:
            most, mask = self._most(count.value), count.value
            trues = self.number("true", count.mask, lambda: c.fresh("true", 0, most, counted=mask))
        return trues if count.of is None else count.of - trues

    # ---- numbers that data decide

    def decided(self, what: str, of: Hashable) -> Dim | None:
        """Returns a number that the data have decided before, or None."""
        return self._numbers.get((what, of))

    def number(self, what: str, of: Hashable, make: Callable[[], Dim]) -> Dim:
        """Returns the number that the data decide, the same one for one tensor, and a new one each time for
        None.
        """
        if of is None:
            return make()
        found = self._numbers.get((what, of))
        if found is None:
            found = self._numbers[what, of] = make()
        return found

    def made(self, extreme: tuple[str, int], number: Term) -> Formula:
        """Identifies an extreme of data with this number from here on; returns the consequences of the
        earlier uses of the data.
        """
        self._numbers[extreme] = number
        return all_of(_within(number, *use) for use in self._uses.get(extreme[1], ()))

    def used(self, op: str, named: Named) -> Iterator[tuple[Term, Formula]]:
        """Yields the numbers among the indices of a call, which is made whenever the program gets here, each
        with the consequence.

        Indices that come from the user's data are taken to be valid. A program that allocates room up to the
        greatest of them, `zeros(int(ids.max()) + 1)`, uses an element as a size: facts about the indices are
        facts about the size. An index into n elements lies between 0 and n - 1, or between -n and n - 1 where
        it may count from the end.
        """
        indices = INDICES.get(op)
        for use in () if indices is None else indices(named):
            source = self.source(use[0])
            if source is not None and use[0].elements is None and use[0].dtype in INTEGRAL:
                self._uses.setdefault(source, []).append(use)
                for which in ("greatest", "least"):
                    if isinstance(number := self._numbers.get((which, source)), Term):
                        yield number, _within(number, *use)

    def source(self, tensor: Tensor) -> int | None:
        found = self.of(tensor).source
        return self.ref(tensor) if found is None else found

    def parts(self, tensor: Tensor) -> tuple[Columns, ...]:
        """Returns the columns of a tensor of integers, side by side; empty where its origin is not known."""
        own, ref = self.of(tensor).parts, self.ref(tensor)
        if own or ref is None or not tensor.shape:
            return own
        return (Columns(ref, tensor.elements, tensor.shape[-1]),)


# ---- effects


def _is_unknown(trait: Any) -> bool:
    """Returns whether a trait says nothing; the number 0 says something."""
    return trait is None or trait is False or trait == ()


def _free(step: CallStep) -> Found:
    """Returns the free elements of the result. Arbitrary elements stay so where they are moved, compared with
    a number, or negated.

    The number of true elements of a mask lies between none and all: both occur for some data only where the
    mask compares an input of the user's with a number. A mask that the program has padded, or joined with
    another, has false elements for all data.
    """
    input, border = step.input, step.of(step.input).free
    if border is None or step.part is not None:
        return {}
    whole = border.shape is None
    if step.op in PADDING:
        return {"free": _padded(step) if whole else None}
    if step.op in COMPARISONS:
        other = one_value(step.named.get("other"))
        number = other is not None or isinstance(step.named.get("other"), float)
        if step.result.shape != input.shape or not number:
            return {}
        if not whole:
            return {"free": replace(border, value=0)} if step.op == "ne" and other == border.value else {}
    elif not whole and step.op not in STAYING - {"lift_fresh_copy"}:
        return {}
    elif step.op == "view" and step.result.dtype != input.dtype:
        return {}  # `x.view(dtype)` reads other elements
    return {"free": border}


_FLOATS: Final = ("float16", "bfloat16", "float32", "float64")
"""Dtypes that hold numbers up to 60,000, which those of 8 bits do not."""


def _alike(step: CallStep) -> Found:
    """Returns whether some data make all elements of the result any one number, as they do those of the
    operand: where it only moves elements, and where it compares them with a number that the dtype holds.
    """
    source, result = step.input.dtype or "", step.result.dtype
    if step.part is not None or not step.of(step.input).alike:
        return {}
    if step.op in COMPARISONS:
        return {"alike": _goes_either_way(source, step.named.get("other"))}
    short = source in _FLOATS and result in _FLOATS
    same = source == result or result == "bool" or short
    return {"alike": same and not (step.op == "view" and source != result)}


def _goes_either_way(dtype: str, number: Any) -> bool:
    """Returns whether each comparison with a number is true of some elements, and false of others."""
    if not isinstance(number, int | float):
        return False
    if dtype in _FLOATS:
        return abs(number) < 60000  # infinity in half precision is further away
    ends = width(dtype) or wide(dtype)
    return ends is not None and ends[0] < number < ends[1]


def _padded(step: CallStep) -> Border | None:
    """Returns the border of a `pad` with a number, where no side is cropped."""
    sides, value = step.named.get("pad"), step.named.get("value")
    value = 0 if value is None else value
    integral = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if step.named.get("mode", "constant") != "constant" or not isinstance(sides, tuple) or not integral:
        return None
    whole = all(isinstance(side, int | Term) and step.c.at_least(side, 0) for side in sides)
    return Border(step.input.shape, int(value)) if whole else None


def _sums_within(step: CallStep) -> Found:
    """Returns the border of sums: summands within a border of zeros, if nothing else is counted."""
    border, span, axis = step.of(step.input).free, step.result.elements, step.named.get("dim")
    if border is None or border.shape is None or border.value != 0 or not isinstance(axis, int):
        return {}
    if not isinstance(span, Span) or span.high != step.input.shape[axis]:
        return {}
    return {"elements": replace(span, high=border.shape[axis]), "sums": border}


def _same_root(step: CallStep) -> Found:
    """Returns the root: a mask as integers, and running sums of it, grow together with the mask, and no
    others do. Floats that the data decide have none.
    """
    if step.result.elements is None and step.result.dtype not in WHOLE:
        return {}
    alone = step.op != "add" or one_value(step.named.get("other")) == 0
    return {"root": step.known.root(step.input) if alone else None}


def _same_sums(step: CallStep) -> Found:
    border, span = step.of(step.input).sums, step.result.elements
    return {"sums": border, "elements": span} if border is not None and isinstance(span, Span) else {}


def _times_summed(step: CallStep) -> Found:
    """Returns the exact range of running sums multiplied by their summands."""
    border, span = step.of(step.input).sums, step.result.elements
    if border is None or not isinstance(span, Span) or step.of(step.named.get("other")).free != border:
        return {}
    return {"elements": span}


def _same_count(step: CallStep) -> Found:
    """Returns the count of the input: the elements stay as they are, in some order."""
    known, input, result = step.known, step.input, step.result
    same = result.dtype == input.dtype
    cast = result.dtype != "bool" and step.op != "view"  # `x.view(dtype)` reads other elements
    found = known.count(input) if result.dtype in COUNTED and (same or cast) else None
    return {"count": found, "kin": found and known.kin(input)}


def _summed_count(step: CallStep) -> Found:
    return {"count": step.known.count(step.input) if step.result.dtype in COUNTED - {"bool"} else None}


def _negated(step: CallStep) -> Found:
    """Returns the traits of a negation: the other elements are true, so the count is the rest, and the
    comparison is reversed.
    """
    input, compares = step.input, step.of(step.input).compares
    if input.dtype != "bool" or step.result.shape != input.shape or step.result.dtype != "bool":
        return {}
    count = step.known.count(input)
    return {
        "count": count and replace(count, of=input.numel if count.of is None else None),
        "compares": compares and replace(compares, equal=not compares.equal),
    }


def _compared(step: CallStep) -> Found:
    """Returns the comparison of two rows, or of a column of positions with a number; `eq` with 0 negates a
    mask.
    """
    left, right, result = step.input, step.named.get("other"), step.result
    if result.dtype != "bool":
        return {}
    if step.op == "eq":
        if (column := step.of(left).column) is not None and column.equal is None:
            match right:
                case Tensor(_, "int64", _, Affine(number, ())) | (int() | Term() as number):
                    return {"column": replace(column, equal=number)}
        if one_value(right) == 0 and left.dtype == "bool":
            return _negated(step)
    if not isinstance(right, Tensor) or left.rank != 1 or left.shape != right.shape:
        return {}
    sides = step.known.parts(left), step.known.parts(right)
    if {left.dtype, right.dtype} - INTEGRAL or not all(sides):
        return {}
    return {"compares": Comparison(*sides, step.op == "eq")}


def _laid_out(step: CallStep) -> Found:
    """Returns the count of `[m]`, `[*b, 1] -> [*b, m]`, which is true at indices 0 to m - 1 of each row below
    the row's count. A row has as many as its count, since m is the greatest of them.

    A program counts the true elements of each row, and puts as many at the front of each row of another mask:
    a call that picks by the one and writes by the other needs the fact that both have as many.
    """
    places, counts = step.input, step.named.get("other")
    if step.op == "gt" and isinstance(counts, Tensor):
        places, counts = counts, places
    if not isinstance(counts, Tensor) or places.elements != Affine(0, ((-1, 1),)) or counts.dtype == "bool":
        return {}
    found, most = step.known.count(counts), step.known.decided("most", step.known.kin(counts))
    fits = places.shape == (most,) and counts.shape[-1:] == (1,)
    laid = fits and most is not None and step.result.shape == (*counts.shape[:-1], most)
    return {"count": found if laid else None}


def _greatest(step: CallStep) -> Found:
    """Returns the greatest count as a number that the data decides, the same for the same counts."""
    input, c = step.input, step.c
    found = step.known.count(input) if input.dtype != "bool" else None
    if found is None or not _is_one(step) or step.result.dtype not in COUNTED:
        return {}
    if inexact_ways(step.result, c.at_least) < math.inf:
        return {}

    def make() -> Term:
        span = extremes(input)
        among = partial(_among, step.known.total(c, found))
        return c.fresh("most", 0, None if span is None else span.high, among)

    return {"elements": Affine(step.known.number("most", step.known.kin(input), make))}


def _is_one(step: CallStep) -> bool:
    """Returns whether the result is one element of all."""
    return step.result.rank == 0 and step.part is None and not isinstance(step.named.get("dim"), Tensor)


def _among(total: Dim, most: Term) -> Formula:
    """Returns the facts about the greatest of several numbers: it is at most their sum, and 0 only where that
    is 0.
    """
    return all_of((le(most, total), any_of((ge(most, 1), eq(total, 0)))))


def _same_data(step: CallStep) -> Found:
    """Returns the source of the input: the same elements, some of them several times, or no elements at all.
    """
    return {"source": step.known.source(step.input) if _is_data(step) else None}


def _extreme(step: CallStep) -> Found:
    source = step.known.source(step.input) if _is_data(step) and _is_one(step) else None
    return {} if source is None else {"extreme": (EXTREMES[step.op], source)}


def _is_data(step: CallStep) -> bool:
    """Returns whether integers that the user gives remain such integers."""
    input, same = step.input, step.result.dtype == step.input.dtype
    return step.part is None and input.elements is None and input.dtype in INTEGRAL and same


def _same_parts(step: CallStep) -> Found:
    input, result = step.input, step.result
    same = input.dtype in INTEGRAL and result.dtype == input.dtype and result.shape == input.shape
    return {"parts": step.known.parts(input)} if same else {}


def _side_by_side(step: CallStep) -> Found:
    """The edges of a graph are columns of two nodes.

    A program that drops the edges from a node to itself and puts one for each node behind, `cat([edges[:,
    edges[0] != edges[1]], loops], 1)`, and then asks where the rows are equal, gets as many as there are
    nodes: none in the part that it kept, all in the part that it appended.
    """
    result, given = step.result, [*tensors(step.named.get("tensors"))]
    if result.dtype not in INTEGRAL or step.named.get("dim", 0) not in (-1, result.rank - 1):
        return {}
    parts = [step.known.parts(t) for t in given]
    if not all(parts) or any(t.rank != result.rank or t.dtype != result.dtype for t in given):
        return {}
    return {"parts": (*chain.from_iterable(parts),)}


def _chosen(step: CallStep) -> Found:
    """Returns the part that is taken by an index of a row, or by a mask of columns. Nothing is known about
    other parts of a tensor.
    """
    input, rows, known = step.input, step.input.shape[:1], step.known
    index = step.part if step.op == "unbind" else step.named.get("index")
    items = index if isinstance(index, tuple) else (index,)
    across = step.op != "getitem" and step.named.get("dim", 0) not in (0, -2)
    if input.dtype not in INTEGRAL or step.result.dtype != input.dtype or across:
        return {}
    match input.rank, items:
        case (2, (row,)) if type(row) is int and type(rows[0]) is int and rows[0] > 0:
            return {"parts": tuple(replace(p, row=row % rows[0]) for p in known.parts(input))}
        case (2, (row,)) if step.op == "unbind":
            return {"parts": tuple(replace(p, row=row) for p in known.parts(input))}
        case (1, (Tensor(dtype="bool", shape=(_,)) as mask,)) | (
            2,
            (Slice(None, None, None), Tensor(dtype="bool", shape=(_,)) as mask),
        ):
            return {"parts": _picked(known, input, mask, step.result.shape[-1])}
    return {}


def _picked(known: Contents, input: Tensor, mask: Tensor, size: Dim) -> tuple[Columns, ...]:
    """Returns the columns that a mask picks from a tensor of one part; columns of any other tensor are the
    tensor's own.
    """
    parts, ref, mask_ref = known.parts(input), known.ref(input), known.ref(mask)
    if mask_ref is None or ref is None:
        return ()
    if len(parts) == 1 and parts[0].mask is None:
        return (replace(parts[0], mask=mask_ref, size=size),)
    return (Columns(ref, input.elements, size, mask_ref),)


def _is_row_of(part: Columns, source: int) -> bool:
    return part.source == source and part.mask is None and part.row is not None


def _progression(part: Columns) -> Affine | None:
    """Returns the elements as a function of the column, or None."""
    if not isinstance(part.elements, Affine):
        return None
    steps = dict(part.elements.steps)
    start = part.elements.start + (0 if part.row is None else steps.get(-2, 0) * part.row)
    return Affine(start, tuple((axis, step) for axis, step in part.elements.steps if axis == -1))


def _found_all(step: CallStep) -> Found:
    """`torch.ones(b, m).nonzero()` has a row `i, j` for each element, in their order, that of a diagonal
    matrix a row `i, i` for each element of the diagonal. `where`, and `nonzero` as a tuple, return the
    columns. A mask of n numbers that is true from one index on up to another has these indices,
    `(torch.arange(n) < m).nonzero()`.

    In its first column each of the b different numbers occurs m times. A program that collects the positions
    of a mask row by row, `[places[places[:, 0] == row] for row in places[:, 0].unique()]`, gets m of them
    each time.
    """
    given, column = _mask_of(step), step.part
    shape = given.shape
    if given is NO_TENSOR or step.known.masks_written:
        return {}
    along = -2 if column is None else -1
    in_order = Affine(0, ((along, 1),))
    if step.of(given).diagonal:
        count = minimum(*shape)
        return {"shape": (count, 2) if column is None else (count,), "elements": in_order}
    match given.elements:
        case Truths(within=(_, first, _)) if len(shape) == 1:
            start = 0 if first is None else minimum(maximum(first, 0), shape[0])
            return {"elements": replace(in_order, start=start)}
    if not one_value(given):
        return {}
    places = {"places": shape} if column is None else {}
    if len(shape) == 1:
        return {**places, "elements": in_order}
    indices = [Index(f"#{axis}", n, None, ordered=False) for axis, n in enumerate(shape)]
    pieces = [Piece(sym(i.name), 1, (i,), fixed=((-1, axis),)) for axis, i in enumerate(indices)]
    if column is not None:
        pieces = [replace(pieces[column], fixed=())]
    return {**places, "elements": Pieces((*pieces,))}


def _mask_of(step: CallStep) -> Tensor:
    """Returns the tensor whose elements other than 0 a call finds; NO_TENSOR where it does something else."""
    if step.op != "where":
        return step.input
    mask = step.named.get("condition")
    alone = step.named.get("input") is None and step.named.get("other") is None
    return mask if isinstance(mask, Tensor) and alone else NO_TENSOR


def _identity(step: CallStep) -> Found:
    rows, columns = step.result.shape
    return {"diagonal": True, "identity": rows == columns}


def _one_hot(step: CallStep) -> Found:
    """Returns the traits of one-hot vectors: 0, 1, …, n - 1 give a matrix with ones on its diagonal."""
    shape, rises = step.result.shape, step.input.elements == Affine(0, ((-1, 1),))
    is_diagonal = rises and len(shape) == 2
    return {"hot": True, "diagonal": is_diagonal, "identity": is_diagonal and shape[0] == shape[1]}


def _summed_ones(step: CallStep) -> Found:
    """Returns the sums of a matrix with ones on its diagonal, `[n, m]`, and of one-hot vectors.

    Over all elements the sum is min(n, m). Over one dim of size k it is 1 for the first k of the others, and
    0 for the rest. Of a one-hot vector it is 1.
    """
    given, dims, rank = step.of(step.input), step.named.get("dim"), step.input.rank
    if not (given.hot or given.diagonal):
        return {}
    axes = {dim % rank for dim in (dims if isinstance(dims, tuple) else (dims,)) if isinstance(dim, int)}
    if given.hot and axes == {rank - 1}:
        return {"elements": Affine(1)}
    if not given.diagonal:
        return {}
    if len(axes) != 1:
        return {"elements": Affine(minimum(*step.input.shape))} if step.result.dtype in COUNTED else {}
    (axis,) = axes
    summed, others = step.input.shape[axis], step.input.shape[1 - axis]
    if summed == others:
        return {"elements": Affine(1)}
    return {"elements": Pieces((Piece(1, given=ge(summed, 1)), Piece(0, given=ge(others, summed + 1))))}


def _running_ones(step: CallStep) -> Found:
    """Returns the running sums of a matrix with ones on its diagonal: 1 from it on, and 0 before it."""
    axis = step.named.get("dim")
    if not step.of(step.input).diagonal or not isinstance(axis, int):
        return {}
    others = step.input.shape[1 - axis % 2]
    return {"elements": Pieces((Piece(1), Piece(0, given=ge(others, 2))))}


def _same_matrices(step: CallStep) -> Found:
    """Returns the trait of results that have the same matrices."""
    same = step.input.shape[-2:] == step.result.shape[-2:]
    return {"identity": same and step.known.is_identity(step.input)}


def _roots(step: CallStep) -> Found:
    """Returns the traits of a Cholesky decomposition of identity matrices: they are their own roots."""
    if not step.known.is_identity(step.input):
        return {}
    return {"identity": True} if not step.part else {"elements": Affine(0)}


def _are_close(step: CallStep) -> Found:
    """Returns the elements of a comparison of identity matrices: all are true."""
    pair = [value for name in ("input", "other") if isinstance(value := step.named.get(name), Tensor)]
    same = len({tensor.shape[-2:] for tensor in pair}) == 1 and all(map(step.known.is_identity, pair))
    return {"elements": Affine(1)} if same and len(pair) == 2 else {}


def _triangle(step: CallStep) -> Found:
    """Returns the trait of a triangle with its diagonal: an identity matrix stays one."""
    return {"identity": step.named.get("diagonal", 0) == 0 and step.known.is_identity(step.input)}


def _ones(step: CallStep) -> Found:
    """Returns the elements on the diagonals of identity matrices."""
    rank, named = step.input.rank, step.named
    dims = {dim % rank for dim in (named.get("dim1", 0), named.get("dim2", 1)) if isinstance(dim, int)}
    main = named.get("offset", 0) == 0 and dims == {rank - 2, rank - 1}
    return {"elements": Affine(1)} if main and step.known.is_identity(step.input) else {}


def _column(step: CallStep) -> Found:
    shape, index, dim = step.of(step.input).places, step.named.get("index"), step.named.get("dim")
    if shape is None:
        return {}
    if step.op == "getitem" and isinstance(index, tuple) and len(index) == 2 and index[0] == Slice():
        index, dim = index[1], 1
    if type(index) is not int or dim not in (1, -1) or not -len(shape) <= index < len(shape):
        return {}
    return {"column": Column(shape, index % len(shape))}


def _unique(step: CallStep) -> Found:
    """Returns the trait of the distinct indices along the axis: all of them, each once."""
    column = step.of(step.input).column
    if column is None or column.equal is not None or step.part or step.named.get("sorted", True) is not True:
        return {}
    if not step.c.certain(ge(column.times, 1)):
        return {}
    return {"shape": (column.shape[column.axis],), "elements": Affine(0, ((-1, 1),))}


def is_sparse(value: Value) -> bool:
    lies = value.layout if type(value) is Tensor else Layout.CONTIGUOUS
    return lies is not Layout.CONTIGUOUS and lies in SPARSE_LAYOUTS


SPARSE_LAYOUTS: Final = (Layout.COO, Layout.COALESCED, Layout.CSR)


def _stores_values(step: CallStep) -> Found:
    values = step.named.get("values")
    return {"stored": 0 if values is None else values.shape[0]} if is_sparse(step.result) else {}


def _stores_as_many(step: CallStep) -> Found:
    """Returns the number of stored elements: as many as are given, if no two have the same index."""
    merged = step.input.layout is Layout.COO and step.result.layout is not Layout.COO
    return {"stored": None if merged or not is_sparse(step.result) else step.of(step.input).stored}


def _within(number: Term, index: Tensor, size: Dim, wraps: bool) -> Formula:
    """Returns the condition that an element of the index, if there is one, is valid for the size."""
    none = (le(n, 0) for n in index.shape)
    return any_of((*none, all_of((ge(number, -size if wraps else 0), le(number, size - 1)))))


STAYING: Final = frozenset("to _to_copy type long int clone contiguous detach alias lift_fresh_copy".split())
"""Operators that leave every element at its index."""
MOVING: Final = STAYING | frozenset(
    "bool cpu unsqueeze squeeze view reshape view_as reshape_as flatten unflatten ravel transpose permute "
    "t T mT".split()
)
"""Operators that leave the elements unchanged, in some order."""
REPEATING: Final = frozenset("expand expand_as broadcast_to repeat tile repeat_interleave flip roll".split())
"""Operators whose results have the same elements, some of them several times, or no elements at all."""
PADDING: Final = frozenset("pad constant_pad_nd".split())
COUNTED: Final = frozenset("int32 int64 bool".split())
EXTREMES: Final = {"amax": "greatest", "max": "greatest", "amin": "least", "min": "least"}
STORING: Final = frozenset("abs clone coalesce detach mul neg relu sqrt to_sparse to_sparse_csr".split())
FREEING: Final = MOVING | NEGATIONS | COMPARISONS.keys() | PADDING


def _joined(*tables: Mapping[str, Effect]) -> dict[str, tuple[Effect, ...]]:
    """Returns, for each operator, all of its effects."""
    ops = dict.fromkeys(chain.from_iterable(tables))
    return {op: tuple([table[op] for table in tables if op in table]) for op in ops}


EFFECTS: Final[Mapping[str, tuple[Effect, ...]]] = _joined(
    dict.fromkeys(FREEING, _free),
    dict.fromkeys((FREEING - PADDING) | REPEATING | {"getitem", "select", "narrow"}, _alike),
    dict.fromkeys(MOVING, _same_count),
    dict.fromkeys(MOVING | REPEATING, _same_data),
    dict.fromkeys(STAYING, _same_parts),
    dict.fromkeys((STAYING - {"lift_fresh_copy"}) | {"type_as"}, _same_sums),
    dict.fromkeys(("sum", "cumsum"), _sums_within),
    dict.fromkeys(STAYING | {"type_as", "sum", "cumsum", "add"}, _same_root),
    dict.fromkeys(NEGATIONS, _negated),
    dict.fromkeys(EXTREMES, _extreme),
    dict.fromkeys(("amax", "max"), _greatest),
    dict.fromkeys(("eq", "ne"), _compared),
    dict.fromkeys(("lt", "gt"), _laid_out),
    dict.fromkeys(("unique", "unique2", "_unique2"), _unique),
    dict.fromkeys(("getitem", "select"), _column),
    dict.fromkeys(("getitem", "select", "unbind"), _chosen),
    dict.fromkeys(STORING, _stores_as_many),
    dict.fromkeys(("sparse_coo_tensor", "sparse_csr_tensor"), _stores_values),
    {"sum": _summed_count, "mul": _times_summed, "cat": _side_by_side},
    {"sum": _summed_ones, "cumsum": _running_ones},
    {"eye": _identity, "one_hot": _one_hot, **dict.fromkeys(FINDING | {"where"}, _found_all)},
    dict.fromkeys(STAYING | {"t", "T", "mT"}, lambda step: {"diagonal": step.of(step.input).diagonal}),
    dict.fromkeys(STAYING, lambda step: {"hot": step.of(step.input).hot}),
    dict.fromkeys(STAYING | {"expand", "mT"}, _same_matrices),
    dict.fromkeys("cholesky linalg_cholesky linalg_cholesky_ex".split(), _roots),
    dict.fromkeys(("isclose", "eq"), _are_close),
    dict.fromkeys(("tril", "triu"), _triangle),
    {"diagonal": _ones},
)
"""For each operator, its effects on the traits of its input. Other operators give unknown traits."""
