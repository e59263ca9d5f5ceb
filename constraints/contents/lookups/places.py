"""The element at one place of a tensor, such as the first one, as sizes decide it.

Facts about all elements lose the order in which they lie. `torch.cat((a, b)).flatten()[0]` is looked up the
other way: from the place in the result to the place in the operand that its element was moved from, call by
call, down to a tensor whose elements are a known function of their place. Arithmetic on the way applies the
laws of elements to tensors of one element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from ...ir.language import (
    UNTRACKED,
    Affine,
    Dots,
    Elements,
    Number,
    Piece,
    Pieces,
    Quotient,
    Shape,
    Slice,
    Span,
    Tensor,
    Truths,
    Value,
    product,
)
from ...ir.program import Argument, Node, Ref
from ...terms.dims import Dim, Term, maximum, minimum
from ...terms.formula import Formula, all_of, any_of, eq, ge, negate
from ..elements.dtypes import DIGITS
from ..elements.functions import AtLeast, are_exclusive, gathered, without
from ..elements.values import extremes, fitted, inexact_ways, of, pieces_of, stored
from ..laws.calls import CASTS, of_number
from ..laws.following import with_elements
from ..laws.masks import COMPARISONS, CONNECTIVES, NEGATIONS

Place: TypeAlias = tuple[Dim, ...]
DEPTH: Final = 24
"""At most this many calls back an element is looked for."""
MOST_CASES: Final = 12
FEW: Final = 5
"""At most this many elements in a row are looked for one by one."""
CUTTING: Final = frozenset("getitem slice narrow".split())
"""Operators that return a row of elements out of others."""


class MadeValue(Protocol):
    """A call of a program, with the number of its result among several."""

    @property
    def node(self) -> Node: ...
    @property
    def op(self) -> str: ...
    @property
    def place(self) -> int: ...
    @property
    def time(self) -> int: ...


class PlacedValues(Protocol):
    """The calls and values of a program, by reference."""

    def made(self, ref: int) -> MadeValue | None: ...

    def assignment(self, time: int, ref: int) -> MadeValue | None: ...

    def value(self, ref: int) -> Value: ...


@dataclass(frozen=True, slots=True)
class TensorCall:
    """A call of a program that returns a tensor, the result number `part` of several."""

    places: Places
    op: str
    args: Mapping[str, Argument]
    result: Tensor
    part: int
    time: int

    @property
    def dtype(self) -> str:
        return self.result.dtype or ""

    def tensor(self, name: str) -> Tensor | None:
        found = self.args.get(name)
        value = self.places.program.value(found.id) if isinstance(found, Ref) else None
        return value if isinstance(value, Tensor) else None


@dataclass(frozen=True, slots=True)
class PlacedCall(TensorCall):
    """A call whose result is examined at single places, and how many calls may still be examined."""

    depth: int

    @property
    def shape(self) -> Shape:
        """Returns the shape of the input, and no dims without an input."""
        found = self.tensor("input")
        return () if found is None else found.shape

    def size_of(self, part: Argument) -> Shape:
        """Returns the shape of an operand."""
        value = self.places.program.value(part.id) if isinstance(part, Ref) else None
        return value.shape if isinstance(value, Tensor) else ()

    def at(self, place: Place, of: Argument | str = "input") -> Tensor | None:
        """Returns the element at a place of an operand."""
        found = self.args.get(of) if isinstance(of, str) else of
        if not isinstance(found, Ref) or any(isinstance(p, int) and p < 0 for p in place):
            return None
        return self.places.at(found.id, place, self.time, self.depth - 1)

    def constant(self, value: Any) -> Tensor | None:
        pieces = of_number(value)
        return None if pieces is None else self.single(pieces)

    def single(self, pieces: Pieces) -> Tensor:
        return Tensor((), self.result.dtype, elements=stored(pieces, (), self.places.at_least))

    def either(self, cases: Iterable[tuple[Formula, Tensor | None]]) -> Tensor | None:
        """Returns the element that is one of several, each at its own sizes."""
        there = [(given, one) for given, one in cases if given is not False]
        if len(there) == 1:
            return there[0][1]
        parts = []
        for given, one in there:
            pieces = None if one is None else pieces_of(of(one), ())
            if pieces is None or pieces.by_data or pieces.slack or pieces.roundings or pieces.and_data:
                return None
            parts += [replace(p, given=all_of((p.given, given))) for p in pieces.pieces]
        parts = [p for p in parts if p.given is not False]
        return self.single(Pieces(tuple(parts))) if 0 < len(parts) <= MOST_CASES else None

    def if_(
        self, condition: Formula, one: Callable[[], Tensor | None], other: Callable[[], Tensor | None]
    ) -> Tensor | None:
        """Returns the one element at the sizes of a condition, and the other elsewhere."""
        if self.places.certain(condition):
            return one()
        if self.places.certain(negate(condition)):
            return other()
        return self.either(((condition, one()), (negate(condition), other())))


Law: TypeAlias = Callable[[PlacedCall, Place], "Tensor | None"]
"""Returns the element at a place of the result, as a tensor without dims; None where it is not known."""


class Places:
    """Answers what sizes say of single elements of a program's tensors."""

    def __init__(
        self,
        program: PlacedValues,
        writes: Sequence[int],
        at_least: AtLeast,
        certain: Callable[[Formula], bool],
        laws: Mapping[str, Law],
        ratios: Mapping[int, Mapping[str, Quotient]] = MappingProxyType({}),
    ) -> None:
        self.program = program
        self._laws = laws
        self._ratios = ratios
        """The quotients of sizes that calls are given, by the number of the call."""
        self._writes = writes
        """The numbers of the nodes that write into tensors. Any of these tensors may be seen through any
        other.
        """
        self.at_least = at_least
        self.certain = certain
        self._found: dict[tuple[int, Place, int | None], Tensor | None] = {}
        self.extremes: dict[tuple[int, bool], Tensor | None] = {}
        """The least and the greatest elements that were found for values so far."""

    def of_result(self, op: str, args: dict[str, Argument], result: Tensor, time: int) -> Elements:
        """Returns the elements of the result of a call that is being made, one or a few in a row; None where
        they are not known.
        """
        if all(n == 1 for n in result.shape):
            return self._only(op, args, result, time)
        few = next((k for k in range(1, FEW + 1) if self.at_least(k - result.shape[-1], 0)), 0)
        if op not in CUTTING or result.rank != 1 or not few:
            return None
        found = [pieces_of(self._element(op, args, result, (place,), time), ()) for place in range(few)]
        known = [pieces for pieces in found if pieces is not None]
        if len(known) < few or len({pieces.by_data for pieces in known}) > 1:
            return None
        parts = [
            replace(p, given=all_of((p.given, ge(result.shape[0], place + 1))), fixed=((-1, place),))
            for place, pieces in enumerate(known)
            for p in pieces.pieces
        ]
        together = gathered(parts, False, known[0].by_data, 0, False)
        return together and stored(together, result.shape, self.at_least)

    def _element(
        self, op: str, args: dict[str, Argument], result: Tensor, place: Place, time: int
    ) -> Elements:
        found = self._of_call(op, args, result, place, 0, time, DEPTH)
        return found.elements if found is not None and is_exact(found.elements, doubtful=True) else None

    def _only(self, op: str, args: dict[str, Argument], result: Tensor, time: int) -> Elements:
        found = self._of_call(op, args, result, (0,) * result.rank, 0, time, DEPTH)
        if found is None:
            return None
        if is_exact(found.elements, doubtful=True):
            return found.elements
        more = inexact_ways(found, self.at_least) < inexact_ways(result, self.at_least)
        return _filled_up(found, result) if more else None

    def args(self, made: MadeValue) -> dict[str, Argument]:
        """Returns the arguments of a call, with the quotients of sizes where they are floats."""
        ratios = self._ratios.get(made.time, {})
        return {name: ratios.get(name, a) if type(a) is Number else a for name, a in made.node.args}

    def is_as_made(self, ref: int, time: int) -> bool:
        """Returns whether nothing has been written that might be seen through a value, from when it was made
        until the call number `time`.
        """
        made = self.program.made(ref)
        since = -1 if made is None else made.time
        return not any(since < write < time for write in self._writes)

    def written_over(self, ref: int, time: int) -> MadeValue | None:
        """Returns the last write before the call number `time`, if it is an assignment to a part of this
        value, and the value has been made before.
        """
        made = self.program.made(ref)
        since = -1 if made is None else made.time
        last = max((write for write in self._writes if since < write < time), default=None)
        return None if last is None else self.program.assignment(last, ref)

    def at(self, ref: int, place: Place, time: int, depth: int) -> Tensor | None:
        """Returns the element at a place of a value, as it is when the call number `time` is made."""
        made, value = self.program.made(ref), self.program.value(ref)
        if not isinstance(value, Tensor) or len(place) != value.rank or depth < 0:
            return None
        over = self.written_over(ref, time)
        if over is None and not self.is_as_made(ref, time):
            return None
        key = ref, place, over.time if over else None
        if key not in self._found:
            made = over or made
            found = None if over else _plainly(value, place)
            if made is not None and (found is None or not is_exact(found.elements)):
                args = dict(made.node.args)
                followed = self._of_call(made.op, args, value, place, made.place, made.time, depth)
                found = better(found, followed)
            self._found[key] = found
        return self._found[key]

    def _of_call(
        self,
        op: str,
        args: dict[str, Argument],
        result: Tensor,
        place: Place,
        part: int,
        time: int,
        depth: int,
    ) -> Tensor | None:
        law = self._laws.get(op.rstrip("_") or op)
        if law is None or args.get("out") is not None:
            return None
        return law(PlacedCall(self, op.rstrip("_"), args, result, part, time, depth), place)


def _plainly(value: Tensor, place: Place) -> Tensor | None:
    """Returns the element where those of the tensor are a function of their place."""
    known = of(value) if value.dtype != "bool" or isinstance(value.elements, Affine) else None
    pieces = pieces_of(known, value.shape)
    if pieces is None or pieces.by_data or pieces.slack or pieces.roundings or pieces.and_data:
        return None
    there, where = [], dict(zip(range(-value.rank, 0), place, strict=True))
    for piece in pieces.pieces:
        if piece.term is None or not piece.attained:
            return None
        if any(not isinstance(where[axis], int) for axis, _ in piece.fixed):
            return None
        if any(where[axis] != at for axis, at in piece.fixed):
            continue
        at: dict[str, Dim] = {}
        for index in piece.indices:
            axis = index.axis
            alone = axis is not None and sum(i.axis == axis for i in piece.indices) == 1
            if axis is None or not index.ordered or not (alone or where[axis] == 0):
                return None
            if alone and index.size != value.shape[axis]:
                return None
            at[index.name] = where[axis]
        there.append(replace(without(piece, at), fixed=()))
    found = replace(pieces, pieces=tuple(there))
    if not there or not (len(there) == 1 or are_exclusive(found)):
        return None
    return Tensor((), value.dtype, elements=stored(found, (), lambda dim, bound: False))


def better(found: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Returns what is known of an element: the other, if nothing is, or if only that is exact."""
    return other if found is None or (other is not None and is_exact(other.elements)) else found


def _filled_up(only: Tensor, result: Tensor) -> Elements:
    """Returns the facts about an only element, with what was known of it before at sizes at which they say
    nothing.
    """
    pieces, before = (pieces_of(of(one), one.shape) for one in (only, result))
    if pieces is None or before is None or before.by_data or before.and_data or before.slack:
        return only.elements
    gap = any_of(p.given for p in pieces.pieces if p.term is None)
    rest = [replace(p, given=all_of((p.given, gap)), fixed=()) for p in before.pieces]
    told = (*(p for p in pieces.pieces if p.term is not None), *(p for p in rest if p.given is not False))
    return replace(pieces, pieces=told) if len(told) <= MOST_CASES else only.elements


def is_exact(elements: Elements, *, doubtful: bool = False) -> bool:
    """Returns whether the facts about an only element say what it is, or what it is for some data each; where
    `doubtful`, but for the sizes at which floats are rounded.
    """
    match elements:
        case Affine():
            return True
        case Span():
            return elements.by_data and elements.attained
        case Pieces(pieces, by_data, 0, False, False):
            known = (p.term is not None and p.attained and (doubtful or p.doubt is False) for p in pieces)
            return all(known) and (by_data or not any(p.indices for p in pieces))
    return False


# --- arithmetic ------------------------------------------------------------------------------------------


def _by_element(call: PlacedCall, place: Place) -> Tensor | None:
    """The element of a result that an operator computes index by index: its law, for tensors of one element.
    """
    named: dict[str, Any] = {}
    for name, argument in call.args.items():
        if (call.op, name) in WHOLE_OPERANDS or not isinstance(argument, Ref):
            found: Any = call.places.program.value(argument.id) if isinstance(argument, Ref) else argument
        else:
            at = _stretched(call.size_of(argument), call.result.shape, place)
            found = None if at is None else call.at(at, argument)
            if found is None:
                return None
        named[name] = found
    bare = Tensor((), call.result.dtype)
    made: Tensor = with_elements(call.op, named, bare, call.places.at_least, lambda tensor: False)
    return None if made.elements is None or made.elements is UNTRACKED else made


WHOLE_OPERANDS: Final = frozenset(
    {
        ("bucketize", "boundaries"),
        ("searchsorted", "sorted_sequence"),
        ("searchsorted", "sorter"),
        ("type_as", "other"),
    }
)
"""Operands whose elements all count, or none of whose elements counts: one element does not represent them.
"""


def _chosen_by_mask(call: PlacedCall, place: Place) -> Tensor | None:
    """The element of one of two operands, as the mask says there."""
    mask, one, other = NAMES[call.op]
    at = _stretched(call.size_of(call.args.get(mask)), call.result.shape, place)
    found = None if at is None else call.at(at, mask)
    true = None if found is None else _truth(found)

    def operand(name: str) -> Tensor | None:
        argument = call.args.get(name)
        if not isinstance(argument, Ref):
            return None if argument is None else call.constant(argument)
        at = _stretched(call.size_of(argument), call.result.shape, place)
        return None if at is None else call.at(at, argument)

    return None if true is None else call.if_(true, lambda: operand(one), lambda: operand(other))


NAMES: Final[Mapping[str, tuple[str, str, str]]] = {
    "where": ("condition", "input", "other"),
    "masked_fill": ("mask", "value", "input"),
}
"""For each operator its mask, what it takes where that is true, and elsewhere."""


def _stretched(shape: Shape, target: Shape, place: Place) -> Place | None:
    """Returns the place in an operand that is broadcast to a shape."""
    found: list[Dim] = []
    skipped = len(target) - len(shape)
    for size, wanted, at in zip(shape, target[skipped:], place[skipped:], strict=True):
        if size not in (1, wanted) and at != 0:
            return None
        found.append(0 if size == 1 else at)
    return tuple(found)


# --- elements that are moved -------------------------------------------------------------------------------


def _kept(call: PlacedCall, place: Place) -> Tensor | None:
    return call.at(place)


def _expanded(call: PlacedCall, place: Place) -> Tensor | None:
    at = _stretched(call.shape, call.result.shape, place)
    return None if at is None else call.at(at)


def _reshaped(call: PlacedCall, place: Place) -> Tensor | None:
    """The element with the same number, counted through all dims."""
    shape, target = call.shape, call.result.shape
    source = call.tensor("input")
    if source is None or source.dtype != call.result.dtype:
        return None
    long = [at for n, at in zip(target, place, strict=True) if n != 1]
    if [n for n in shape if n != 1] == [n for n in target if n != 1]:
        rest = iter(long)
        return call.at(tuple([0 if n == 1 else next(rest) for n in shape]))
    flat: Dim = 0
    for n, at in zip(target, place, strict=True):
        flat = flat * n + at
    if flat == 0 or len(shape) == 1:
        return call.at((flat,) if len(shape) == 1 else (0,) * len(shape))
    if flat == product(target) - 1:
        return call.at(tuple([n - 1 for n in shape]))
    return None


def _axis(dim: Any, rank: int) -> int | None:
    return dim % rank if type(dim) is int and rank and -rank <= dim < rank else None


def _moved(place: Place, axis: int, at: Dim) -> Place:
    """Returns the place with another index along an axis."""
    return (*place[:axis], at, *place[axis + 1 :])


def _permuted(order: Callable[[PlacedCall, int], Sequence[int] | None]) -> Law:
    def permuted(call: PlacedCall, place: Place) -> Tensor | None:
        axes = order(call, len(call.shape))
        if axes is None or len(axes) != len(place):
            return None
        return call.at(tuple([at for _, at in sorted(zip(axes, place, strict=True), key=lambda two: two[0])]))

    return permuted


def _swapped(call: PlacedCall, rank: int) -> Sequence[int] | None:
    a, b = (_axis(call.args.get(name), rank) for name in ("dim0", "dim1"))
    if a is None or b is None:
        return None
    order = [*range(rank)]
    order[a], order[b] = order[b], order[a]
    return order


def _given_order(call: PlacedCall, rank: int) -> Sequence[int] | None:
    dims = call.args.get("dims")
    axes = [_axis(dim, rank) for dim in dims] if isinstance(dims, tuple) else [None]
    return None if None in axes else [axis for axis in axes if axis is not None]


def _reversed(call: PlacedCall, rank: int) -> Sequence[int] | None:
    return [*range(rank)][::-1]


def _flipped(call: PlacedCall, place: Place) -> Tensor | None:
    dims: Any = {"fliplr": (1,), "flipud": (0,)}.get(call.op, call.args.get("dims", ()))
    axes = {_axis(dim, len(place)) for dim in (dims if isinstance(dims, tuple) else (dims,))}
    sizes = enumerate(zip(call.shape, place, strict=True))
    return call.at(tuple([n - 1 - at if axis in axes else at for axis, (n, at) in sizes]))


def _rolled(call: PlacedCall, place: Place) -> Tensor | None:
    """Along one axis element p is element (p - shift) % n of the input."""
    given: list[Any] = [call.args.get(name) for name in ("shifts", "dims")]
    shifts, dims = (v[0] if isinstance(v, tuple) and len(v) == 1 else v for v in given)
    axis = 0 if dims in (None, ()) and len(place) == 1 else _axis(dims, len(place))
    if axis is None or not isinstance(shifts, int | Term):
        return None
    size, before = call.shape[axis], place[axis] - shifts
    once = place[axis] == 0 and call.places.at_least(shifts, 1) and call.places.at_least(size + before, 0)
    return call.at(_moved(place, axis, size + before if once else before % size))


def _tiled(call: PlacedCall, place: Place) -> Tensor | None:
    inner = place[len(place) - len(call.shape) :]
    return call.at(tuple([0 if at == 0 else at % n for n, at in zip(call.shape, inner, strict=True)]))


def _repeated(call: PlacedCall, place: Place) -> Tensor | None:
    """With k times each, element p of a vector is element p // k of the input."""
    times = call.args.get("repeats")
    if not isinstance(times, int | Term) or len(call.shape) != 1 or not call.places.at_least(times, 1):
        return None
    return call.at((place[0] // times,))


def _sliced_axis(call: PlacedCall, size: Dim, item: Slice, at: Dim) -> Dim | None:
    """Returns the index before a slice, which has an element at the index after it."""
    start, step = (0 if item.start is None else item.start), (1 if item.step is None else item.step)
    if not isinstance(start, int | Term) or not isinstance(step, int | Term) or isinstance(start, bool):
        return None
    if isinstance(start, int) and start < 0:
        start = size + start if call.places.at_least(size + start, 0) else maximum(size + start, 0)
    return start + step * at if call.places.at_least(start, 0) and call.places.at_least(step, 1) else None


def _items(call: PlacedCall, place: Place) -> Tensor | None:
    """The element under numbers, slices, None, an ellipsis and at most one tensor of indices."""
    index = call.args.get("index", call.args.get("indices"))
    items: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
    tensors = [item for item in items if isinstance(item, Ref)]
    if call.tensor("input") is None or len(tensors) > 1 or items.count(Dots) > 1:
        return None
    if any(isinstance(i, bool | tuple) for i in items):
        return None
    if any(_is_mask(call.places.program.value(ref.id)) for ref in tensors):
        return _first_picked(call, tensors[0], place) if len(items) == 1 else None
    spoken = sum(item is not None and item is not Dots for item in items)
    at = next((k for k, item in enumerate(items) if item is Dots), len(items))
    filled = (*items[:at], *(Slice() for _ in range(len(call.shape) - spoken)), *items[at + 1 :])
    if tensors and any(isinstance(i, int | Term) for i in filled):  # a number is a tensor of indices, too
        return None
    rest, found, sizes, counted = iter(place), list[Dim](), iter(call.shape), list[int]()
    for item in filled:
        if item is None:
            next(rest)
            continue
        size = next(sizes)
        match item:
            case Slice():
                here = _sliced_axis(call, size, item, next(rest))
            case Ref():
                there = tuple([next(rest) for _ in call.size_of(item)])
                here = _index(call.at(there, item))
                counted.append(len(found))
            case int() | Term():
                here = item
                counted.append(len(found))
            case _:
                here = None
        if here is None:
            return None
        found.append(here)
    return _wrapped(call, tuple(found), counted)


def _first_picked(call: PlacedCall, mask: Ref, place: Place) -> Tensor | None:
    """The first element that a mask picks is the first of all, where the mask is true there."""
    first = (0,) * len(call.shape)
    found = call.at(first, mask) if place == (0,) and call.size_of(mask) == call.shape else None
    true = None if found is None else _truth(found)
    return call.at(first) if true is not None and call.places.certain(true) else None


def _wrapped(call: PlacedCall, place: Place, axes: Sequence[int]) -> Tensor | None:
    """The element at a place. Along the given axes, negative indices count from the end."""
    if not axes:
        return call.at(place)
    axis, *rest = axes
    from_end = _moved(place, axis, call.shape[axis] + place[axis])
    return call.if_(
        ge(place[axis], 0), lambda: _wrapped(call, place, rest), lambda: _wrapped(call, from_end, rest)
    )


def _assigned(call: PlacedCall, place: Place) -> Tensor | None:
    """The number that is written into the part of a vector up to some place, or the element from before."""
    match call.args.get("index"):
        case Slice(None | 0, int() | Term() as stop, None | 1):
            value = call.args.get("value")
            if len(place) == 1 and not isinstance(value, Ref):
                from_end = all_of((ge(-1, stop), ge(call.shape[0] + stop - 1, place[0])))
                inside = any_of((ge(stop - 1, place[0]), from_end))
                return call.if_(inside, lambda: call.constant(value), lambda: call.at(place))
    return None


def _is_mask(value: Value) -> bool:
    return not isinstance(value, Tensor) or value.dtype in ("bool", "uint8")


def _index(found: Tensor | None) -> Dim | None:
    """Returns the index that an element is, where it is one at all sizes."""
    return None if found is None or not isinstance(found.elements, Affine) else found.elements.start


def _selected(call: PlacedCall, place: Place) -> Tensor | None:
    axis, index = _axis(call.args.get("dim", 0), len(call.shape)), call.args.get("index")
    if axis is None or not isinstance(index, int | Term):
        return None
    return _wrapped(call, (*place[:axis], index, *place[axis:]), (axis,))


def _sliced(call: PlacedCall, place: Place) -> Tensor | None:
    axis = _axis(call.args.get("dim", 0), len(call.shape))
    if axis is None:
        return None
    bounds: list[Any] = [call.args.get(name) for name in ("start", "end", "step")]
    at = _sliced_axis(call, call.shape[axis], Slice(*bounds), place[axis])
    return None if at is None else call.at(_moved(place, axis, at))


def _chosen(call: PlacedCall, place: Place) -> Tensor | None:
    """The element at the index that a vector of indices names."""
    axis, index = _axis(call.args.get("dim", 0), len(call.shape)), call.args.get("index")
    if axis is None or len(call.size_of(index)) != 1:
        return None
    at = _index(call.at((place[axis],), index))
    return None if at is None else _wrapped(call, _moved(place, axis, at), (axis,))


# --- several tensors, and elements beside others -----------------------------------------------------------


def _joined(call: PlacedCall, place: Place) -> Tensor | None:
    """The element of the first of several tensors that reaches as far along an axis."""
    axis, several = _axis(call.args.get("dim", 0), len(place)), call.args.get("tensors")
    if axis is None or not isinstance(several, tuple) or not several:
        return None

    def among(k: int, at: Dim) -> Tensor | None:
        there = _moved(place, axis, at)
        if k == len(several) - 1:
            return call.at(there, several[k])
        shape = call.size_of(several[k])
        if len(shape) != len(place):
            return None
        here = ge(shape[axis] - 1, at)
        return call.if_(here, lambda: call.at(there, several[k]), lambda: among(k + 1, at - shape[axis]))

    return among(0, place[axis])


def _stacked(call: PlacedCall, place: Place) -> Tensor | None:
    axis, several = _axis(call.args.get("dim", 0), len(place)), call.args.get("tensors")
    number = None if axis is None else place[axis]
    if axis is None or not isinstance(several, tuple) or not isinstance(number, int):
        return None
    return call.at((*place[:axis], *place[axis + 1 :]), several[number])


def _padded(call: PlacedCall, place: Place) -> Tensor | None:
    """The element, where the place lies within the part that is not padding; else a number."""
    sides: Any = call.args.get("pad")
    if not isinstance(sides, tuple) or not all(type(side) is int for side in sides):
        return None
    if call.args.get("mode", "constant") not in (None, "constant"):
        return None
    value = call.args.get("value")
    around = partial(call.constant, 0 if value is None else value)
    found, inside = [*place], []
    for k, side in enumerate(sides[::2]):
        axis = len(place) - 1 - k
        found[axis] = place[axis] - side
        inside += [ge(found[axis], 0), ge(call.shape[axis] - 1, found[axis])]
    return call.if_(all_of(inside), lambda: call.at(tuple(found)), around)


def _triangle(call: PlacedCall, place: Place) -> Tensor | None:
    """The element, where it lies on this side of a diagonal; else 0."""
    apart, diagonal = place[-1] - place[-2], call.args.get("diagonal", 0)
    if not isinstance(diagonal, int | Term):
        return None
    within = ge(diagonal, apart) if call.op == "tril" else ge(apart, diagonal)
    return call.if_(within, lambda: call.at(place), lambda: call.constant(0))


def _diagonal(call: PlacedCall, place: Place) -> Tensor | None:
    """For a vector, its element on the diagonal, and 0 elsewhere; for a matrix its element there."""
    if call.args.get("diagonal", 0) != 0:
        return None
    if len(place) == 1:
        return call.at((place[0], place[0]))
    return call.if_(eq(*place), lambda: call.at(place[:1]), lambda: call.constant(0))


def _identity(call: PlacedCall, place: Place) -> Tensor | None:
    return call.if_(eq(*place), lambda: call.constant(1), lambda: call.constant(0))


def _hot(call: PlacedCall, place: Place) -> Tensor | None:
    """1 where the number is that of the class, else 0."""
    found = call.at(place[:-1])
    if found is None or not isinstance(found.elements, Affine):
        return None
    same = eq(found.elements.start, place[-1])
    return call.if_(same, lambda: call.constant(1), lambda: call.constant(0))


def _several(call: PlacedCall) -> tuple[Argument, ...] | None:
    """Returns the tensors of a call, which are given one by one or as a list."""
    given = call.args.get("tensors")
    if isinstance(given, tuple) and len(given) == 1 and isinstance(given[0], tuple):
        return given[0]
    return given if isinstance(given, tuple) else None


def _grid(call: PlacedCall, place: Place) -> Tensor | None:
    """Of `meshgrid`, the element of the vector that runs along this axis: of the first two axes, the other
    one for `xy`.
    """
    several = _several(call)
    if several is None or len(several) != len(place):
        return None
    crossed = call.args.get("indexing") == "xy" and len(place) > 1 and call.part < 2
    at = place[1 - call.part if crossed else call.part]
    return call.at((at,) if call.size_of(several[call.part]) else (), several[call.part])


def _of_product(call: PlacedCall, place: Place) -> Tensor | None:
    """Of the first row of `cartesian_prod`, the first element of a vector."""
    several = _several(call)
    if several is None or place[0] != 0:
        return None
    if len(several) == 1:
        return call.at(place, several[0])
    return call.at((0,), several[place[1]]) if isinstance(place[1], int) else None


def _in_progression(call: PlacedCall, place: Place) -> Tensor | None:
    """A number of a range of integers, as floats hold it, too."""
    start, step = call.args.get("start", 0), call.args.get("step", 1)
    start = 0 if call.args.get("end") is None else start
    if isinstance(start, bool) or not isinstance(start, int | Term):
        return None
    if isinstance(step, bool) or not isinstance(step, int | Term):
        return None
    held = fitted(of_number(start + step * place[0]), call.result.dtype, call.places.at_least)
    return None if held is None else call.single(held)


def _combined(call: PlacedCall, place: Place) -> Tensor | None:
    """Of the first row of `combinations`, the elements from the first on."""
    if place[0] != 0:
        return None
    return call.at((0 if call.args.get("with_replacement") else place[1],))


def _corner(call: PlacedCall, place: Place) -> Tensor | None:
    """The row and the column of the first and the last entry on one side of a diagonal, row by row."""
    offset, rows, columns = call.args.get("offset", 0), call.args.get("row"), call.args.get("col")
    if not isinstance(offset, int | Term) or not isinstance(place[0], int):
        return None
    below = call.op == "tril_indices"
    if place[1] == 0:
        moved = place[0] == (0 if below else 1)
        return call.constant(maximum(-offset if below else offset, 0) if moved else 0)
    if place[1] != call.result.shape[1] - 1 or not isinstance(rows, int | Term):
        return None
    if not isinstance(columns, int | Term):
        return None
    if below:
        return call.constant(minimum(rows - 1 + offset, columns - 1) if place[0] else rows - 1)
    return call.constant(columns - 1 if place[0] else minimum(rows - 1, columns - 1 - offset))


def _first_found(call: PlacedCall, place: Place) -> Tensor | None:
    """The indices of the first element that is not 0 are zeros, if it is the first of all."""
    found = call.at((0,) * len(call.shape))
    true = None if found is None or place[:1] != (0,) else _truth(found)
    return call.constant(0) if true is not None and call.places.certain(true) else None


def _truth(found: Tensor) -> Formula | None:
    match found.elements:
        case Affine(start):
            return negate(eq(start, 0))
        case Truths(some, every) if some == every:
            return some
    return None


def _least(call: PlacedCall, place: Place) -> Tensor | None:
    """The least element is the first of those that are sorted."""
    source = call.tensor("input")
    span = None if source is None or source.rank != 1 or call.part else extremes(source)
    plain = not call.args.get("descending") and place == (0,)
    if span is None or not plain or not span.attained or span.by_data:
        return None
    return call.constant(span.low)


def _converted(call: PlacedCall, place: Place) -> Tensor | None:
    """The element in another dtype; where random numbers times a size are cut, any integer below the size."""
    found = _by_element(call, place)
    source = call.args.get("input")
    times = call.places.program.made(source.id) if isinstance(source, Ref) else None
    if found is not None or times is None or times.op != "mul":
        return found
    factor = dict(times.node.args).get("input")
    made = call.places.program.made(factor.id) if isinstance(factor, Ref) else None
    return _drawn(call, place) if made is not None and made.op == "rand" else None


def _drawn(call: PlacedCall, place: Place) -> Tensor | None:
    """Any of the numbers of a range, where each may come to lie at any place."""
    match call.result.elements:
        case Span(by_data=True, attained=True) as known:
            return Tensor((), call.result.dtype, elements=known)
        case Pieces((Piece(attained=True),), by_data=True) as known:
            return Tensor((), call.result.dtype, elements=known)
    each = call.op == "topk" and call.part and call.shape == call.result.shape
    return _ordered(call, place) if each else None


def _ordered(call: PlacedCall, place: Place) -> Tensor | None:
    """Any place, where a random order is asked for, or that of numbers that the user gives."""
    if call.op == "sort" and not call.part:
        return _least(call, place)
    source, ref = call.tensor("input"), call.args.get("input")
    given = isinstance(ref, Ref) and call.places.program.made(ref.id) is None
    free = given and source is not None and source.elements is None and source.dtype in DIGITS
    axis = _axis(call.args.get("dim", -1), len(place))
    if axis is None or not (free or call.op == "randperm"):
        return None
    span = Span(0, call.result.shape[axis] - 1, attained=True, by_data=True, dense=True)
    return Tensor((), call.result.dtype, elements=span)


def _first_kept(call: PlacedCall, place: Place) -> Tensor | None:
    return call.at(place) if place == (0,) and len(call.shape) == 1 and not call.part else None


def _first_extreme(call: PlacedCall, place: Place) -> Tensor | None:
    """The first of running extremes is at index 0, and is the first element."""
    axis = _axis(call.args.get("dim"), len(place))
    if axis is None or place[axis] != 0:
        return None
    return call.constant(0) if call.part else call.at(place)


def _first_sum(call: PlacedCall, place: Place) -> Tensor | None:
    """The first of running sums, or products, is the first element."""
    axis, source = _axis(call.args.get("dim"), len(place)), call.tensor("input")
    same = source is not None and source.dtype == call.result.dtype
    return call.at(place) if axis is not None and same and place[axis] == 0 else None


def _apart(call: PlacedCall, place: Place) -> Tensor | None:
    """The difference of an element and the one before."""
    axis = _axis(call.args.get("dim", -1), len(place))
    alone = all(call.args.get(name) is None for name in ("prepend", "append"))
    if axis is None or not alone or call.args.get("n", 1) != 1:
        return None
    pair = [call.at(_moved(place, axis, place[axis] + k)) for k in (1, 0)]
    if None in pair:
        return None
    named = dict(zip(("input", "other"), pair, strict=True))
    bare = Tensor((), call.result.dtype)
    made: Tensor = with_elements("sub", named, bare, call.places.at_least, lambda tensor: False)
    return made


def _spaced(call: PlacedCall, place: Place) -> Tensor | None:
    """The first of evenly spaced numbers is the start, and the last of several the end; of their powers, the
    power of it.
    """
    start, end, count = call.args.get("start"), call.args.get("end"), call.result.shape[0]
    if place == (0,):
        return _spaced_end(call, start)
    if place == (count - 1,):
        return call.if_(ge(count, 2), lambda: _spaced_end(call, end), lambda: _spaced_end(call, start))
    return None


def _spaced_end(call: PlacedCall, end: Argument) -> Tensor | None:
    if call.op == "logspace":
        return call.constant(1) if end == 0 and not isinstance(end, bool) else None
    if isinstance(end, bool) or not isinstance(end, int | Term):
        return None
    held = fitted(of_number(end), call.result.dtype, call.places.at_least)
    return None if held is None else call.single(held)


def _digit(call: PlacedCall, place: Place) -> Tensor | None:
    """Number 0 has index 0 along every dim."""
    found = call.at(place, "indices" if "indices" in call.args else "input")
    return found if found is not None and found.elements == Affine(0) else None


LAWS: Final[Mapping[str, Law]] = {
    **dict.fromkeys(
        "add sub rsub mul div floor_divide remainder fmod pow neg abs clamp clamp_min clamp_max "
        "sign bitwise_and bitwise_or bitwise_xor lshift rshift maximum minimum ceil floor trunc "
        "round sqrt bucketize searchsorted".split(),
        _by_element,
    ),
    **dict.fromkeys(NAMES, _chosen_by_mask),
    **dict.fromkeys((*COMPARISONS, *CONNECTIVES, *NEGATIONS), _by_element),
    **dict.fromkeys(CASTS, _converted),
    **dict.fromkeys("clone contiguous detach alias lift_fresh_copy cpu".split(), _kept),
    **dict.fromkeys("expand expand_as broadcast_to".split(), _expanded),
    **dict.fromkeys(
        "unsqueeze squeeze view reshape view_as reshape_as flatten unflatten ravel".split(), _reshaped
    ),
    "transpose": _permuted(_swapped),
    "permute": _permuted(_given_order),
    **dict.fromkeys(("T", "t"), _permuted(_reversed)),
    **dict.fromkeys("flip fliplr flipud".split(), _flipped),
    "roll": _rolled,
    **dict.fromkeys(("repeat", "tile"), _tiled),
    "repeat_interleave": _repeated,
    **dict.fromkeys(("getitem", "index"), _items),
    "setitem": _assigned,
    "select": _selected,
    **dict.fromkeys("slice narrow".split(), _sliced),
    "index_select": _chosen,
    "cat": _joined,
    "stack": _stacked,
    **dict.fromkeys(("pad", "constant_pad_nd"), _padded),
    **dict.fromkeys(("tril", "triu"), _triangle),
    "diag": _diagonal,
    "eye": _identity,
    "one_hot": _hot,
    "meshgrid": _grid,
    "arange": _in_progression,
    "cartesian_prod": _of_product,
    "combinations": _combined,
    **dict.fromkeys("tril_indices triu_indices".split(), _corner),
    **dict.fromkeys("nonzero argwhere".split(), _first_found),
    **dict.fromkeys(
        "randint randint_like multinomial argmax argmin topk kthvalue median mode max min".split(), _drawn
    ),
    **dict.fromkeys("randperm argsort sort".split(), _ordered),
    **dict.fromkeys("msort unique unique2 _unique _unique2".split(), _least),
    **dict.fromkeys(("unique_consecutive", "_unique_consecutive"), _first_kept),
    **dict.fromkeys("cumsum cumprod".split(), _first_sum),
    **dict.fromkeys("cummax cummin".split(), _first_extreme),
    "diff": _apart,
    **dict.fromkeys("linspace logspace".split(), _spaced),
    "unravel_index": _digit,
}
"""For each operator the element at a place of its result; of other operators it is not known."""


def referring(value: Any, name_of: Callable[[Tensor], int | None]) -> Any:
    """Returns an argument of a call with references in place of tensors that have a name."""
    if isinstance(value, Tensor):
        name = name_of(value)
        return value if name is None else Ref(name)
    if isinstance(value, Slice):
        return Slice(*(referring(part, name_of) for part in (value.start, value.stop, value.step)))
    return tuple([referring(part, name_of) for part in value]) if isinstance(value, tuple) else value
