"""Sequences whose length is a size: `range(n)`, the rows of a tensor, a list that a summarised loop has
filled.

Python's own take a number for their length, so that a symbolic one would have to be tried value by value.
These have a dim as their length and make their elements on demand. A `for` over one is handed to the
recording (`loop.py`), which may run its body once for all iterations; any other use that needs a number gets
one, on a path of its own.

A list that a summarised loop has filled stays the object that it was, since the program may refer to it from
many locations: it becomes a `Repeating`, whose members are single elements and `Repeated` ones, which
represent many elements each.
"""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import inspect
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, GeneratorType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import torch
from msgspec import structs

from ...constraints.engine.generate import anew
from ...constraints.engine.lifting import reached
from ...constraints.ir.language import UNTRACKED, Layout, Tensor
from ...constraints.ir.program import Node
from ...constraints.ir.system import Answer
from ...constraints.terms.dims import Dim, Term, ceildiv, maximum, minimum, sym, total
from ...constraints.terms.forall import for_all, slope
from ...constraints.terms.formula import Formula, all_of, divides, eq, free_symbols, ge, le, lt
from ...constraints.terms.rows import place_of
from ...constraints.terms.sums import summed
from ..bytecode.codes import instruction, instructions
from ..bytecode.operands import expression, key_of_pairs
from ..bytecode.operations import called, hands_on
from ..bytecode.origins import here
from ..host.interpreter import frame_above, set_type
from ..host.operators import pad_sequence
from ..host.tensors import make_wrapper
from ..recorder import Recorder
from .numbers import Size, dim_of, size
from .symbolic import Sizes, SymbolicTensor

At: TypeAlias = Callable[[Dim], Any]
"""Makes the element at an index, which is 0 for the first."""
ShapeAt: TypeAlias = Callable[[Dim], tuple[Dim, ...] | None]

MOST: Final = 1 << 14
"""More iterations than this are not followed one by one: they would take minutes."""


# --- sequences that are made on demand -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Lazy:
    """A sequence of `count` elements, empty where `count` is negative."""

    run: Recorder
    count: Dim
    at: At
    same: bool = False
    """Whether the elements are known to be tensors of one shape."""
    paired_from: Dim | None = None
    """The number in the first of the pairs that `enumerate` makes; None for other elements."""

    def __iter__(self) -> Iterator[Any]:
        return iterate(self, frame_above(1))

    def __reversed__(self) -> Lazy:
        return Lazy(self.run, self.count, lambda k: self.at(self.count - 1 - k), self.same)

    def between(self, first: int, last: int = 0) -> Lazy:
        """Returns the elements without so many at the front and at the end."""
        return Lazy(self.run, self.count - first - last, lambda k: self.at(k + first), self.same)

    def __len__(self) -> int:
        return int(length(self))

    def __bool__(self) -> bool:
        return self.run.truth(ge(self.count, 1))

    def __getitem__(self, key: Any) -> Any:
        return [*self.all()][key] if type(key) is slice else self.at(_index(self.run, key, self.count))

    def all(self) -> Iterator[Any]:
        """Yields the elements, after `count` has become a number of at most MOST.

        On a path where it is greater than the numbers that are tried, the first elements are yielded: the
        program may refuse one of them, or `break`.
        """
        whole = self.run.simplified(self.count)
        count, is_all = (whole, True) if isinstance(whole, int) else self.run.few(whole)
        if count > MOST:
            self.run.give_up(f"{count} iterations are too many to follow")
        yield from (self.at(k) for k in builtins.range(count))
        if not is_all:
            self.run.give_up(f"{whole} is needed as a number; only {count} of its values were followed")


@dataclass(frozen=True, slots=True, eq=False)
class SizeRange(Lazy):
    """A `range` of sizes, with a step that is not 0."""

    bounds: tuple[Dim, Dim, Dim] = (0, 0, 1)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return builtins.range

    @property
    def start(self) -> Any:
        return size(self.run, self.bounds[0])

    @property
    def stop(self) -> Any:
        return size(self.run, self.bounds[1])

    @property
    def step(self) -> Any:
        return size(self.run, self.bounds[2])

    def __contains__(self, value: Any) -> bool:
        """Returns whether a number is one of low, low + step, …, before high."""
        at, (low, high, by) = dim_of(value), self.bounds
        if at is None or not isinstance(by, int):
            return value in [*self.all()]
        inside = all_of((ge(at, low), lt(at, high)) if by > 0 else (le(at, low), lt(high, at)))
        return self.run.truth(all_of((inside, divides(by, at - low))))

    def __repr__(self) -> str:
        by = "" if self.bounds[2] == 1 else f", {self.step}"
        return f"range({self.start}, {self.stop}{by})"

    @hands_on
    def index(self, value: Any) -> Any:
        if value not in self:
            raise ValueError(f"{value} is not in range")
        return (value - self.start) // self.step


def length(lazy: Lazy) -> Any:
    """Returns the number of elements, as the program sees it."""
    negative = not lazy.run.certain(ge(lazy.count, 0))
    return size(lazy.run, maximum(lazy.count, 0) if negative else lazy.count)


@hands_on
def _index(run: Recorder, key: Any, count: Dim) -> Dim:
    """Returns an index counted from the front, which is required to be in range.

    Raises IndexError, as the program would, where it is certainly not.
    """
    at = dim_of(key)
    if at is None:
        raise TypeError(f"list indices must be integers or slices, not {type(key).__name__}")
    if not run.truth(ge(at, 0)):
        at = at + count
    _requires(run, all_of((ge(at, 0), lt(at, count))), "list index out of range", IndexError)
    return at


@hands_on
def _requires(run: Recorder, formula: Formula, reason: str, error: type[Exception]) -> None:
    """Requires the formula, and raises the error where it certainly does not hold."""
    if run.judged(formula) is Answer.NEVER:
        raise error(reason)
    run.require(formula, reason, error)


@hands_on
def _pair(value: Lazy, start: Dim, key: int) -> Iterator[Any]:
    """Yields the one pair that a dict of the pairs is made for."""
    _requires(value.run, all_of((le(start, key), lt(key - start, value.count))), str(key), KeyError)
    yield value.at(key - start)


def lazy(value: Any) -> Lazy | None:
    """Returns the sequence that an iteration over the value visits, if only a dim gives its length; else
    None.
    """
    if isinstance(value, Lazy):
        return value
    if type(value) is Iterating:
        return value.rest()
    if type(value) in (Repeating, RepeatingTuple):
        several: _Members = value
        return several.visited()
    where = _axis(value, 0) if type(value) is SymbolicTensor else None
    return None if where is None else _slices(value, *where)


class Counted:
    """`range(7)` in `for i in range(7)`, which may be summarised as if its length were a size."""

    def __init__(self, run: Recorder, numbers: range) -> None:
        self._run, self._numbers = run, numbers

    def __iter__(self) -> Iterator[Any]:
        whole = Lazy(self._run, builtins.len(self._numbers), self._at)
        return self._run.iterator(whole, frame_above(1))

    def _at(self, k: Dim) -> Any:
        return size(self._run, self._numbers.start + self._numbers.step * k)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numbers, name)

    def __len__(self) -> int:
        return builtins.len(self._numbers)

    def __getitem__(self, key: Any) -> Any:
        return self._numbers[key]

    def __contains__(self, value: Any) -> bool:
        return value in self._numbers

    def __eq__(self, other: object) -> bool:
        return self._numbers == (other._numbers if type(other) is Counted else other)

    def __hash__(self) -> int:
        return hash(self._numbers)


def iterate(value: Lazy, frame: FrameType) -> Iterator[Any]:
    """Returns the iterator for the code that `frame` runs.

    A `for` may be summarised; `a, b = x` determines the number of elements; the lists of `[*x]` and
    `a, *b = x` become `Repeating`.
    """
    step = instruction(frame)
    if step.opname == "GET_ITER":
        return value.run.iterator(value, frame)
    if makes_list(frame):
        return _into_list(value)
    if takes_blocks(frame):
        return itertools.chain.from_iterable(map(_blocks, physical(symbolic_list(value))))
    if step.opname == "UNPACK_SEQUENCE":
        if not value.run.truth(eq(value.count, step.argval)):
            raise ValueError(f"{step.argval} values are unpacked from {value.count}")
        return (value.at(k) for k in builtins.range(step.argval))
    if value.paired_from is not None and (key := key_of_pairs(frame)) is not None:
        return _pair(value, value.paired_from, key)
    if step.opname == "UNPACK_EX":
        return _unpacked(value, step.argval % 256, step.argval // 256)
    return value.all()


def _unpacked(value: Lazy, before: int, behind: int) -> Iterator[Any]:
    """Yields the elements for `a, *b, c = x`, with so many names on either side."""
    if not value.run.truth(ge(value.count, before + behind)):
        raise ValueError(f"{before + behind} values at least are unpacked from {value.count}")
    yield from (value.at(k) for k in builtins.range(before))
    yield from _into_list(value.between(before, behind))
    yield from (value.at(value.count - k) for k in builtins.range(behind, 0, -1))


def makes_list(frame: FrameType) -> bool:
    """Returns whether the frame is making a list of all that it iterates over: `[*x]`. Then Python takes the
    length for a hint.
    """
    if instruction(frame).opname != "LIST_EXTEND":
        return False
    return type(expression(frame.f_code, frame.f_lasti)) is ast.List


def takes_blocks(frame: FrameType) -> bool:
    """Returns whether the elements are exactly the arguments that the frame passes to a call, as in
    `torch.block_diag(*x)`. Python then uses the length as a hint only.
    """
    return instruction(frame).opname == "CALL_FUNCTION_EX" and called(frame) is torch.block_diag


def _into_list(value: Lazy) -> Iterator[Any]:
    """Yields all elements as one member, for a list that Python is making; then changes the list's type."""
    for member in physical(symbolic_list(value)):
        yield member
        young = [o for o in gc.get_objects(0) if type(o) is list and o and o[-1] is member]
        for made in young or gc.get_referrers(member):  # which takes long
            if type(made) is list:
                set_type(made, Repeating)


class Iterating:
    """The iterator `iter(x)` of a sequence whose length is a size. Each `next` decides whether there is
    another element.
    """

    def __init__(self, elements: Lazy) -> None:
        self._elements: Lazy | None = elements
        self._run = elements.run
        self._taken = 0
        self._numbered: Iterator[Any] | None = None
        """The elements that are left, after their count has become a number."""

    def __iter__(self) -> Iterator[Any]:
        return self._numbered or iterate(self.rest(), frame_above(1))

    def rest(self) -> Lazy:
        """Returns the elements that are left, for a loop after which the iterator cannot be used any more."""
        rest, self._elements = self._elements, None
        return self._run.give_up("an iterator is used again after a loop over it") if rest is None else rest

    def __next__(self) -> Any:
        if self._taken == FEW:
            self._numbered = self._numbered or self.rest().all()
            return next(self._numbered)
        rest = self.rest()
        self._elements = rest
        if not rest.run.truth(ge(rest.count, 1)):
            raise StopIteration
        self._taken += 1
        self._elements = rest.between(1)
        return rest.at(0)


@hands_on
def symbolic_iter(*args: Any) -> Any:
    """Returns `iter(x)`."""
    found = lazy(args[0]) if len(args) == 1 else None
    return builtins.iter(*args) if found is None else Iterating(found)


def is_gone_through(frame: FrameType) -> bool:
    """Returns whether the frame's only use of the result of the current call is to iterate over it."""
    following = (i for at, i in instructions(frame.f_code).items() if at > frame.f_lasti)
    return next(i.opname for i in following if i.opname != "EXTENDED_ARG") == "GET_ITER"


# --- slices of a tensor ----------------------------------------------------------------------------------


def _slices(tensor: SymbolicTensor, dim: int, count: Dim) -> Lazy:
    """`[*a, n, *z]` as n of `[*a, *z]`"""
    run = tensor.run


    def at(k: Dim) -> Any:
        return _one_of_several(run.operator("select", (tensor, dim, size(run, k)), {}))

    return Lazy(run, count, at, same=True)


def _one_of_several(view: SymbolicTensor) -> SymbolicTensor:
    view.memory.is_kept_from_gradients = True
    return view


def _pieces(tensor: SymbolicTensor, dim: int, n: Dim, width: int) -> Lazy:
    """Returns `[*a, n, *z]` as ⌈n / width⌉ pieces `[*a, width, *z]`; the last piece is the rest."""
    run = tensor.run

    def at(k: Dim) -> Any:
        left = n - k * width
        whole, last = run.certain(ge(left, width)), run.certain(le(left, width))
        piece = width if whole else left if last else minimum(width, left)
        part = (tensor, dim, size(run, k * width), size(run, piece))
        return _one_of_several(run.operator("narrow", part, {}))

    return Lazy(run, ceildiv(n, width), at)


def unbound(x: Any, dim: Any = 0) -> RepeatingTuple | None:
    """Returns `x.unbind(dim)`, where only a dim gives the number of results; else None."""
    where = _axis(x, dim)
    if where is None:
        return None
    return RepeatingTuple([repeated(_slices(x, *where))])


def split(x: Any, split_size_or_sections: Any, dim: Any = 0) -> RepeatingTuple | None:
    """Returns `x.split(k, dim)`, where only a dim gives the number of results; else None."""
    where, width = _axis(x, dim), split_size_or_sections
    if where is None or type(width) is not int or width < 1 or not x.run.truth(ge(where[1], 1)):
        return None
    (at, n), value = where, x.value
    assert isinstance(value, Tensor)
    shape = reached(x.run.generator, value, max(at + 1, 0), max(-at, 0)).shape

    def shape_at(k: Dim) -> tuple[Dim, ...] | None:
        known = place_of(shape) is None
        return (*shape[:at], minimum(width, n - k * width), *shape[at + 1 :]) if known else None

    return _tuple(_pieces(x, at, n, width), lambda axis: n if axis == at else None, shape_at)


def _axis(x: Any, dim: Any) -> tuple[int, Dim] | None:
    """Returns the axis and its size, if that is symbolic.

    In a tensor of unknown rank the axis is counted from the end that the program counted from.
    """
    if type(x) is not SymbolicTensor or not isinstance(x.value, Tensor) or type(dim) is not int:
        return None
    value = reached(x.run.generator, x.value, max(dim + 1, 0), max(-dim, 0))
    if not -value.rank <= dim < value.rank:
        return None
    n = x.run.simplified(value.shape[dim])
    axis = dim if place_of(value.shape) is not None else dim % value.rank
    return (axis, n) if isinstance(n, Term) else None


def _tuple(of: Lazy, total: Callable[[int], Dim | None], shape_at: ShapeAt) -> RepeatingTuple:
    return RepeatingTuple([Repeated.of(of.run, of.count, of.at, total=total, shape_at=shape_at)])


def by_signature(make: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Returns a function of the arguments of a call, by position and by name, that hands them to another; it
    returns None where they do not fit.
    """

    signature = inspect.signature(make)

    def several(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return None
        return make(*bound.args, **bound.kwargs)

    return several


# --- lists and tuples with more members than they hold ---------------------------------------------------


class Repeated(SymbolicTensor):
    """A member of a list that represents `count` consecutive elements; `one` is the element where all are
    alike.

    It is a tensor only so that torch's C++ code, which checks the members of a list first, accepts the list.
    """

    count: Dim
    at: At
    alike: bool
    one: Any
    most: Callable[[], Any]
    """Makes the element with the greatest sizes, each the greatest of all on its axis; None where it is not
    known.
    """
    total: Callable[[int], Dim | None]
    """Returns the sum of the sizes along an axis; None where it is not known."""
    shape_at: ShapeAt
    """Returns the shape of the element at an index; None where it is not known as a function of the index."""
    same: bool = False
    """Whether all elements have one shape, though they are not alike."""
    vector: SymbolicTensor | None = None
    """The tensor whose integers these elements are, in order."""
    single: bool = False
    """Whether elements are known one by one, and not as a function of their index."""

    @classmethod
    def of(
        cls, run: Recorder, count: Dim, at: At, alike: bool = False, one: Any = None,
        most: Callable[[], Any] = lambda: None, total: Callable[[int], Dim | None] = lambda axis: None,
        shape_at: ShapeAt = lambda k: None,
    ) -> Repeated:
        self: Repeated = make_wrapper(cls, [], device=run.device)
        self.run, self.count, self.at, self.alike, self.one = run, count, at, alike, one
        self.most, self.total, self.shape_at = most, total, shape_at
        return self

    @classmethod
    def times(cls, run: Recorder, count: Dim, one: Any) -> Repeated:
        return cls.of(run, count, lambda k: one, True, one, lambda: one)

    @classmethod
    def each(cls, run: Recorder, count: Dim, one: Any) -> Repeated:
        """Returns elements that are alike, each with tensors of its own: the data may decide differently for
        each.
        """
        made: dict[Dim, Any] = {}

        def at(k: Dim) -> Any:
            place = run.simplified(k)
            if place not in made:
                made[place] = another(run, one)
            return made[place]

        return cls.of(run, count, at, True, one, lambda: another(run, one))

    def of_one_shape(self) -> Repeated:
        """Returns the same elements, which are known to be tensors of one shape."""
        self.same = True
        self.most = lambda: self.at(0)
        self.total = self._equal_sizes
        return self

    def moved(self, count: Dim, place: Callable[[Dim], Dim]) -> Repeated:
        """Returns some of these elements, with other indices: `place` gives the one that each has here."""
        at, shape_at = (lambda k: self.at(place(k))), (lambda k: self.shape_at(place(k)))
        some = Repeated.of(self.run, count, at, self.alike, self.one, shape_at=shape_at)
        some.most = self.most if self.alike else some.most
        some.single = self.single
        return some.of_one_shape() if self.same else some

    def _equal_sizes(self, axis: int) -> Dim | None:
        value = self.at(0).value
        return self.count * value.shape[axis] if isinstance(value, Tensor) else None

    def between(self, first: int, last: int = 0) -> Repeated:
        """Returns the elements without so many at the front and at the end."""
        count = self.count - first - last
        own = [*builtins.range(first), *(self.count - behind for behind in builtins.range(last, 0, -1))]

        def without(axis: int) -> Dim | None:
            whole, parts = self.total(axis), [self.at(k).value for k in own]
            if whole is None or not all(isinstance(part, Tensor) for part in parts):
                return None
            return whole - total(part.shape[axis] for part in parts)

        rest = self.moved(count, lambda k: k + first)
        rest.total = without
        return rest

    @property
    def value(self) -> NoReturn:  # type: ignore[override]
        self.run.give_up("the elements that a loop has put into a list are used in an unknown way")

    ref = value

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"{self.count} × {self.one}"


def repeated(of: Lazy) -> Repeated:
    """Returns all elements of the sequence as a member of a list."""
    member = Repeated.of(of.run, of.count, of.at)
    return member.of_one_shape() if of.same else member


def another(run: Recorder, element: Any) -> Any:
    """Returns a new element like this one."""
    if type(element) is SymbolicTensor:
        value: Any = anew(element.value)
        tensor = SymbolicTensor(run, value, element.ref, element.dtype)
        tensor.lies_in(element.memory)
        run.loops.met[id(tensor)] = tensor
        return tensor
    if isinstance(element, tuple) and type(element) not in (torch.Size, Sizes):
        make = getattr(element, "_make", type(element))
        return make([another(run, part) for part in physical(element)])
    return element


_SUBSCRIPTS: Final = frozenset({"BINARY_SUBSCR", "STORE_SUBSCR"})


class _Members:
    """Base of lists and tuples with members that may represent many elements."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, members: Iterable[Any]) -> None: ...

    def lazy(self) -> Lazy | None:
        """Returns the lazy sequence; None where a number gives the number of elements after all."""
        members = physical(self)
        runs = [m for m in members if type(m) is Repeated]
        if not runs:
            return None
        run = runs[0].run
        return Lazy(run, total(map(count_of, members)), functools.partial(_element, run, members))

    def visited(self) -> Lazy | None:
        """Returns the lazy sequence for an iteration, which needs each element as a function of its index:
        None where a number gives the number of elements after all.
        """
        if isinstance(self, list) and any(type(m) is Repeated and m.single for m in physical(self)):
            refill(self, settled(self))
            return None
        return self.lazy()

    def __iter__(self) -> Iterator[Any]:
        whole = self.visited()
        return iter(physical(self)) if whole is None else iterate(whole, frame_above(1))

    def __reversed__(self) -> Iterator[Any]:
        whole = self.lazy()
        return iter(physical(self)[::-1]) if whole is None else iter(reversed(whole))

    def __len__(self) -> int:
        if instruction(frame_above(1)).opname in _SUBSCRIPTS:
            return 0  # torch's C++ code looks whether a list that is an index holds tensors
        whole = self.lazy()
        return builtins.len(physical(self)) if whole is None else builtins.len(whole)

    def __bool__(self) -> bool:
        whole = self.lazy()
        return bool(physical(self)) if whole is None else bool(whole)

    def __getitem__(self, key: Any) -> Any:
        whole, members = self.lazy(), physical(self)
        if type(key) is not slice:
            return members[key] if whole is None else whole[key]
        return type(self)(members[key] if whole is None else _sliced(whole.run, members, key))

    def __add__(self, other: Any) -> Any:
        return type(self)((*physical(self), *physical(other)))

    def __radd__(self, other: Any) -> Any:
        return type(self)((*physical(other), *physical(self)))


def physical(several: Any) -> tuple[Any, ...]:
    """Returns the members as they are stored."""
    return (*(list if isinstance(several, list) else tuple).__iter__(several),)


def count_of(member: Any) -> Dim:
    return member.count if type(member) is Repeated else 1


def _element(run: Recorder, members: Sequence[Any], k: Dim) -> Any:
    """Returns the element at index k, which is known to be in range."""
    for member in members[:-1]:
        n = count_of(member)
        if _whether(run, lt(k, n)):
            return _at(member, k)
        k = k - n
    return _at(members[-1], k)


class ManyPlaces(Exception):
    """Elements at different places are not one function of the place."""


def _whether(run: Recorder, formula: Formula) -> bool:
    """Returns whether the formula holds. Raises ManyPlaces for an index without a name in programs."""
    if any(name.startswith("#") for name in free_symbols(formula)):
        raise ManyPlaces
    return run.truth(formula)


def _at(member: Any, k: Dim) -> Any:
    return member.at(k) if type(member) is Repeated else member


def _sliced(run: Recorder, members: tuple[Any, ...], key: slice) -> Iterable[Any]:
    """Returns `[::-1]`, `[a:]`, `[:-b]` or `[a:-b]` of the members, and `[::s]` of a single repeated member.

    Any other slice needs numbers.
    """
    first, last = key.start or 0, -(key.stop or 0)
    if key.step == -1 and key.start is key.stop is None:
        return (_backwards(m) for m in members[::-1])
    if type(key.step) is int and key.step > 1 and key.start is key.stop is None and len(members) == 1:
        return [_every(members[0], key.step)]
    if key.step in (None, 1) and (found := _from_either_end(run, members, first, key.stop)) is not None:
        return found
    plain = type(first) is int and type(last) is int and key.step in (None, 1) and key.stop != 0
    if not plain or first < 0 or last < 0:
        return [*_one_by_one(members)][key]
    rest = _without(run, members, first)
    return _without(run, rest[::-1], last, from_behind=True)[::-1]


def _from_either_end(run: Recorder, members: tuple[Any, ...], first: Any, stop: Any) -> list[Any] | None:
    """Returns `[a:b]` or `[-a:]`, cut to the elements that exist; None for another slice."""
    count = total(map(count_of, members))
    if type(first) is int and type(stop) is int and 0 <= first and 0 < stop <= first + FEW:
        return [_element(run, members, k) for k in _while(first, stop, lambda k: run.truth(ge(count, k + 1)))]
    if type(first) is int and -FEW <= first < 0 and stop is None:
        behind = [*_while(1, 1 - first, lambda k: run.truth(ge(count, k)))]
        return [_element(run, members, count - k) for k in reversed(behind)]
    return None


FEW: Final = 16
"""Up to this many elements are tested one by one for their existence."""


def _while(first: int, stop: int, there: Callable[[int], bool]) -> Iterator[int]:
    return itertools.takewhile(there, builtins.range(first, stop))


def _every(member: Repeated, step: int) -> Repeated:
    """Returns the elements at 0, s, 2*s, …, ceil(n / s) of them, of a repeated member."""
    count = ceildiv(member.count, step)
    return member.moved(count, lambda k: step * k)


def _backwards(member: Any) -> Any:
    if type(member) is not Repeated or member.alike:
        return member
    back = member.moved(member.count, lambda k: member.count - 1 - k)
    back.most, back.total = member.most, member.total
    return back


def _without(run: Recorder, members: Sequence[Any], n: int, *, from_behind: bool = False) -> list[Any]:
    """Returns the members without the first n elements.

    If the members are given in reverse, `from_behind`, the last elements of each are dropped.
    """
    left = [*members]
    while n and left:
        member = left[0]
        if type(member) is not Repeated:
            del left[0]
            n -= 1
        elif not run.truth(ge(member.count, 1)):
            del left[0]
        else:
            first = 0 if member.alike or from_behind else 1
            left[0] = member.moved(member.count - 1, functools.partial(operator.add, first))
            n -= 1
    return left


def settled(several: Any) -> list[Any] | tuple[Any, ...]:
    """Returns every element by itself, in a list or a tuple, after the sizes have become numbers."""
    elements = [*_one_by_one(physical(several))]
    return tuple(elements) if type(several) is RepeatingTuple else elements


def _one_by_one(members: Iterable[Any]) -> Iterator[Any]:
    for member in members:
        if type(member) is Repeated:
            yield from Lazy(member.run, member.count, member.at).all()
        else:
            yield member


class RepeatingTuple(_Members, tuple[Any, ...]):
    """A tuple with members that may represent many elements."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return (*settled(self),) == other

    def __hash__(self) -> int:
        return hash((*settled(self),))


class Repeating(_Members, list[Any]):
    """A list with members that may represent many elements.

    `append`, `extend`, `insert` at the front, `pop` at either end, `reverse` and `copy` need not know the
    number of elements. All other methods choose numbers, and work on an ordinary list.
    """

    __slots__ = ()

    def copy(self) -> Repeating:
        return Repeating(physical(self))

    def __iadd__(self, other: Any) -> Any:
        self.extend(other)
        return self

    def extend(self, other: Any) -> None:
        list.extend(self, physical(other) if isinstance(other, list | tuple) else other)

    def insert(self, index: Any, value: Any) -> None:
        if index != 0:
            refill(self, settled(self))
        list.insert(self, index, value)

    def pop(self, index: Any = -1) -> Any:
        if self and type(index) is int and index in (0, -1):
            members = physical(self)
            found = self[index]
            run = next((m.run for m in members if type(m) is Repeated), None)
            if run is not None:
                step = 1 if index == 0 else -1
                refill(self, _without(run, members[::step], 1, from_behind=index == -1)[::step])
                return found
        return _after_settling("pop")(self, index)

    def reverse(self) -> None:
        refill(self, (_backwards(m) for m in physical(self)[::-1]))


def _after_settling(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    @functools.wraps(method)
    def call(self: Repeating, *args: Any, **options: Any) -> Any:
        refill(self, settled(self))
        return method(self, *args, **options)

    return call


for _name in (
    "remove index count sort clear __setitem__ __delitem__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ "
    "__ge__ __mul__ __rmul__ __imul__ __repr__"
).split():
    setattr(Repeating, _name, _after_settling(_name))


def refill(target: list[Any], members: Iterable[Any]) -> None:
    """Replaces the members of a list, and its type by the one that fits: `Repeating` if a member is
    `Repeated`.
    """
    members = [*members]
    list.__setitem__(target, slice(None), members)
    kind = Repeating if any(type(m) is Repeated for m in members) else list
    if type(target) is not kind:
        set_type(target, kind)


SEVERAL = (Repeating, RepeatingTuple)
_KINDS = frozenset[type](SEVERAL)


def times(run: Recorder, members: Sequence[Any], count: Term) -> Any:
    """Returns `members * count`, empty where the count is not positive."""
    make = Repeating if isinstance(members, list) else RepeatingTuple
    if not members or not run.truth(ge(count, 1)):
        return members[:0]
    if builtins.len(members) == 1:
        return make([Repeated.times(run, count, members[0])])
    return make([Repeated.of(run, builtins.len(members) * count, functools.partial(_in_turn, run, members))])


def _in_turn(run: Recorder, members: Sequence[Any], k: Dim) -> Any:
    """Returns the member at index k of the endlessly repeated members."""
    places = builtins.range(builtins.len(members))
    return members[next(i for i in places if _whether(run, eq(k % builtins.len(members), i)))]


def counted(
    run: Recorder, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Dim, ...]]:
    """Returns the arguments of a call with repeated members replaced, and the counts of the members if they
    are needed.

    For `cat`, `stack` and `pad_sequence` a repeated member is replaced by one tensor, with its count. For all
    other operators, and for `cat` of tensors of unknown rank, the counts become numbers.
    """
    if _KINDS.isdisjoint(map(type, args)) and _KINDS.isdisjoint(map(type, kwargs.values())):
        return args, kwargs, ()
    counts: tuple[Dim, ...] = ()
    if op in ("cat", "stack") and args and type(args[0]) in SEVERAL:
        at = args[1] if builtins.len(args) > 1 else kwargs.get("dim", 0)
        join = functools.partial(_side_by_side, dim=at) if op == "cat" else _one_for_all
        try:
            members = tuple(map(join, physical(args[0])))
        except _Differing as found:
            run.operator(op, ([found.one], *args[1:]), kwargs)  # it may refuse one alone
            raise RuntimeError(f"{op} takes tensors of equal sizes") from None
        of = [m.one if type(m) is Repeated else m for m in members]
        if all(isinstance(one, torch.Tensor) and (op == "stack" or not _has_row(one)) for one in of):
            members = tuple(m for m in members if type(m) is not Repeated or run.truth(ge(m.count, 1)))
            counts = tuple(map(count_of, members))
            args = ([m.one if type(m) is Repeated else m for m in members], *args[1:])
    if op == "pad_sequence" and args and (longest := _padded(args[0])) is not None:
        args, counts = (longest[0], *args[1:]), longest[1]
    plain = tuple(settled(a) if type(a) in SEVERAL else a for a in args)
    if op in _JOINING and args and type(args[0]) in SEVERAL:
        _take_tensors(run, plain[0])
    return plain, {k: settled(v) if type(v) in SEVERAL else v for k, v in kwargs.items()}, counts


_JOINING = frozenset("cat stack hstack vstack dstack column_stack block_diag pad_sequence".split())
"""Operators that take tensors, and nothing else, as the members of a list."""


def _take_tensors(run: Recorder, members: Iterable[Any]) -> None:
    """Ends the run if a member is no tensor: torch accepts a `Repeated` as one without a check."""
    for place, member in enumerate(members):
        if not isinstance(member, torch.Tensor):
            told = f"expected Tensor as element {place} in argument 0, but got {type(member).__name__}"
            run.give_up(f"TypeError: {told}")


def _padded(value: Any) -> tuple[list[Any], tuple[Dim, ...]] | None:
    """Returns the longest of the sequences in a repeated member, and their number.

    Only the length may differ from one sequence to the next; else None.
    """
    members = physical(value) if type(value) in SEVERAL else ()
    if builtins.len(members) != 1 or type(members[0]) is not Repeated:
        return None
    (member,) = members
    longest = _longest(member) if member.run.truth(ge(member.count, 1)) else None
    if type(longest) is not SymbolicTensor or not isinstance(longest.value, Tensor) or _has_row(longest):
        return None
    first = member.at(0).value
    alike = isinstance(first, Tensor) and first.rank == longest.value.rank
    return ([longest], (member.count,)) if alike and first.shape[1:] == longest.value.shape[1:] else None


def _longest(member: Repeated) -> Any:
    """Returns a tensor with the greatest sizes that occur among the elements; None where that is not known.

    A length that never falls, or never rises, from one to the next is greatest at one of the ends.
    """
    if (found := member.most()) is not None:
        return found
    k = member.run.index("each")
    first, shape, last = (member.shape_at(at) for at in (0, sym(k), member.count - 1))
    if not first or not shape or not last or slope(shape[0], k) is None:
        return None
    agree = _agree(member, 0)
    known = agree is not None and member.run.truth(agree)
    return _carried(member.at(0), (maximum(first[0], last[0]), *first[1:])) if known else None


class _Differing(Exception):
    """Raised where elements of a list differ in a size in which they have to agree."""

    def __init__(self, one: SymbolicTensor) -> None:
        super().__init__()
        self.one = one
        """The first element."""


def _agree(member: Repeated, but: int | None = None) -> Formula | None:
    """Returns the condition that all elements, one at least, have the sizes of the first, except along the
    axis `but`; None where it is not known.
    """
    if member.same:
        return True
    k = member.run.index("each")
    first, shape = member.shape_at(0), member.shape_at(sym(k))
    if first is None or shape is None:
        return None
    pairs = (eq(a, b) for at, (a, b) in enumerate(zip(first, shape, strict=True)) if at != but)
    return for_all(all_of(pairs), k, 0, member.count - 1)


def _take_equal(member: Repeated, one: SymbolicTensor, but: int | None = None) -> bool:
    """Returns whether it is known on which condition the elements agree in their sizes, except along the axis
    `but`.

    The condition holds from here on: raises _Differing on the path where it does not.
    """
    agree = _agree(member, but)
    if agree is not None and not member.run.truth(agree):
        raise _Differing(one)
    return agree is not None


def _one_for_all(member: Any) -> Any:
    """Returns a `Repeated` like the first tensor in place of tensors of one shape; nothing is known of their
    elements.
    """
    if type(member) is not Repeated or member.alike or not member.run.truth(ge(member.count, 1)):
        return member
    one = member.at(0)
    if type(one) is not SymbolicTensor or not isinstance(one.value, Tensor) or not _take_equal(member, one):
        return member
    return Repeated.times(member.run, member.count, _carried(one, one.value.shape))


def _carried(like: SymbolicTensor, shape: tuple[Dim, ...]) -> SymbolicTensor:
    """Returns a tensor of this shape to replace many tensors, given one of them."""
    run, value = like.run, like.value
    assert isinstance(value, Tensor)
    made = Tensor(shape, value.dtype, elements=None if value.elements is None else UNTRACKED)
    ref = run.new_value(made)
    run.nodes.append(Node("carried", (("input", like.ref),), (ref.id,), here(run.names)))
    return SymbolicTensor(run, made, ref, like.dtype)


def _side_by_side(member: Any, dim: Any) -> Any:
    """Returns, in place of tensors of different sizes, their concatenation, if they agree in all sizes but
    the one of that dim.
    """
    if type(member) is not Repeated or member.alike:
        return member
    run = member.run
    if not run.truth(ge(member.count, 1)):
        return member
    longest, one = member.most(), member.at(0)
    longest = one if longest is None else longest
    if type(longest) is not SymbolicTensor or not isinstance(longest.value, Tensor) or _has_row(longest):
        return member
    first, whole = one.value, longest.value
    if type(dim) is not int or not -whole.rank <= dim < whole.rank:
        return member
    at = dim % whole.rank
    size_there = _total(member, at) if _take_equal(member, one, at) else None
    if size_there is None:
        both = [(*t.shape[:at], *t.shape[at + 1 :]) for t in (first, whole)]
        if longest is one or both[0] != both[1]:
            return member
        size_there = run.generator.fresh("total", 0, member.count * whole.shape[at])
    return _carried(longest, (*whole.shape[:at], size_there, *whole.shape[at + 1 :]))


def _total(member: Repeated, axis: int) -> Dim | None:
    """Returns the sum of the sizes along an axis; None where it is not known."""
    if (found := member.total(axis)) is not None:
        return found
    k = member.run.index("each")
    shape = member.shape_at(sym(k))
    return None if shape is None else summed(shape[axis], k, member.count)


def _blocks(member: Any) -> Iterable[Any]:
    """Returns, in place of the blocks of a diagonal, one as high as all of them, and as wide; a number counts
    as `[1, 1]`, a vector as a row.
    """
    if type(member) is not Repeated:
        return [member]
    if not member.run.truth(ge(member.count, 1)):
        return []
    one = member.at(0)
    if type(one) is SymbolicTensor and isinstance(one.value, Tensor) and not _has_row(one):
        shape, n = one.value.shape, member.count
        if len(shape) > 2:
            return [one]  # which is refused
        sizes = (n * size if member.alike else _total(member, axis) for axis, size in enumerate(shape))
        known = (*(n,) * (2 - len(shape)), *(found for found in sizes if found is not None))
        if len(known) == 2:
            return [_carried(one, known)]
    return _one_by_one([member])


def _has_row(x: torch.Tensor) -> bool:
    """Returns whether the rank is unknown."""
    value = x.value if isinstance(x, SymbolicTensor) else None
    return isinstance(value, Tensor) and place_of(value.shape) is not None


def joined(op: str, named: Mapping[str, Any], counts: tuple[Dim, ...], once: Tensor) -> Tensor:
    """Returns the result of `cat` or `stack` for tensors that each occur `counts` times, given the result for
    one occurrence each.
    """
    if op == "pad_sequence":
        ((count,), at) = counts, 0 if named.get("batch_first") else 1
        return structs.replace(once, shape=(*once.shape[:at], count, *once.shape[at + 1 :]))
    tensors = [t for t in next(iter(named.values())) if isinstance(t, Tensor)]
    at = named.get("dim", 0) % once.rank
    parts = (t.shape[at] if op == "cat" and t.rank == once.rank else int(op == "stack") for t in tensors)
    size_there = total(count * part for count, part in zip(counts, parts, strict=True))
    layout = once.layout if once.layout is Layout.CONTIGUOUS else Layout.UNKNOWN
    return structs.replace(once, shape=(*once.shape[:at], size_there, *once.shape[at + 1 :]), layout=layout)


# --- what stands for Python's names ----------------------------------------------------------------------


@hands_on
def symbolic_range(*args: Any) -> Any:
    """Returns the `range` of sizes."""
    run: Any = next((a.run for a in args if type(a) is Size), None)
    if run is None or not 1 <= len(args) <= 3:
        return builtins.range(*args)
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    low, high = dim_of(start), dim_of(stop)
    by = _step(run, step, low, high)
    if low is None or high is None or by == 0:
        return builtins.range(*args)
    downwards = isinstance(by, int) and by < 0
    count = ceildiv(low - high, -by) if downwards else ceildiv(high - low, by)
    return SizeRange(run, count, lambda k: size(run, low + by * k), bounds=(low, high, by))


def counting_range(run: Recorder, frame: FrameType, *args: Any) -> Any:
    """Returns a `range` for a call in the frame, where loops over numbers may be summarised."""
    found = symbolic_range(*args)
    return Counted(run, found) if type(found) is builtins.range and is_gone_through(frame) else found


def _step(run: Recorder, step: Any, low: Dim | None, high: Dim | None) -> Dim:
    """Returns the step of a range: a number, unless the range has a fixed number of elements whatever the
    step is, as `range(0, n, n)` has one element. Then the step is positive.
    """
    by = dim_of(step)
    if isinstance(by, int) or by is None or low is None or high is None:
        return int(step)
    return by if isinstance(ceildiv(high - low, by), int) and run.truth(ge(by, 1)) else int(step)


@hands_on
def symbolic_len(x: Any, /) -> Any:
    """Returns `len(x)`, a size for a symbolic sequence or a tensor."""
    found = x.lazy() if type(x) in SEVERAL else lazy(x)
    if found is None and isinstance(x, torch.Tensor) and x.dim() == 0:
        raise TypeError("len() of a 0-d tensor")
    return builtins.len(x) if found is None else length(found)


@hands_on
def symbolic_enumerate(iterable: Any, start: Any = 0) -> Any:
    found = lazy(iterable)
    if found is None:
        return builtins.enumerate(iterable, start)
    run, first = found.run, dim_of(operator.index(start) if type(start) is not Size else start)
    assert first is not None
    return Lazy(run, found.count, lambda k: (size(run, k + first), found.at(k)), paired_from=first)


@hands_on
def symbolic_zip(*iterables: Any, strict: bool = False) -> Any:
    """Returns `zip`: as long as the shortest sequence; with `strict`, all must have one length."""
    found = [lazy(i) for i in iterables]
    all_lazy = [f for f in found if f is not None]
    if not found or len(all_lazy) < len(found):
        return builtins.zip(*iterables, strict=strict)
    first, *others = all_lazy
    if strict and not first.run.truth(all_of(eq(first.count, other.count) for other in others)):
        raise ValueError("zip() argument 2 is shorter or longer than argument 1")
    count = first.count if strict else minimum(*(f.count for f in all_lazy))
    return Lazy(first.run, count, lambda k: (*(f.at(k) for f in all_lazy),))


@hands_on
def symbolic_reversed(x: Any, /) -> Any:
    found = lazy(x)
    return builtins.reversed(x) if found is None else reversed(found)


@hands_on
def symbolic_list(x: Any = (), /) -> Any:
    if type(x) in (Repeating, RepeatingTuple):
        return Repeating(physical(x))
    found = lazy(x)
    if found is not None:  # beside other members a negative count would take some of those away
        many = found.run.truth(ge(found.count, 0))
        return Repeating([repeated(found)] if many else [])
    return [element for element in x] if _expression(x) else builtins.list(x)  # noqa: C416


@hands_on
def symbolic_tuple(x: Any = (), /) -> Any:
    members = symbolic_list(x)
    lasting = type(members) is Repeating and members.visited() is not None
    return RepeatingTuple(physical(members)) if lasting else builtins.tuple(members)


@hands_on
def symbolic_sum(x: Any, /, start: Any = 0) -> Any:
    """Returns `sum`, computed by a loop that can be summarised."""
    if lazy(x) is None and not _expression(x):
        return builtins.sum(x, start)
    result = start
    for element in x:
        result = result + element
    return result


@hands_on
def _reduce(function: Any, iterable: Any, *initial: Any) -> Any:
    """Returns `functools.reduce`, computed by a loop that can be summarised."""
    found = lazy(iterable)
    if found is None or builtins.len(initial) > 1:
        return _REDUCE(function, iterable, *initial)
    if not initial:
        if not found:
            raise TypeError("reduce() of empty iterable with no initial value")
        initial = (found.at(0),)
        found = found.between(1)
    (result,) = initial
    for element in found:
        result = function(result, element)
    return result


_REDUCE = functools.reduce


@hands_on
def symbolic_sorted(x: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    """Returns `sorted(x, key=len)` of tensors whose number is a size; Python's own `sorted` of anything else.
    """
    members = symbolic_list(x) if key is symbolic_len and lazy(x) is not None else x
    if type(members) is Repeating and builtins.len(physical(members)) == 1:
        (member,) = physical(members)
        sorted_ones = _by_length(member, bool(reverse))
        if sorted_ones is not None:
            return Repeating(sorted_ones)
    return builtins.sorted(members, key=key, reverse=reverse)


def _by_length(member: Any, reverse: bool) -> list[Any] | None:
    """Returns the elements of a repeated member, sorted by their sizes along the first axis, where only the
    last one is shorter than the others; else None.
    """
    run, n = member.run, member.count
    if member.same or not run.truth(ge(n, 1)):
        return [member]
    k = run.index("each")
    first, shape, last = (member.shape_at(at) for at in (0, sym(k), n - 1))
    if not first or not shape or not last:
        return None
    between = ge(sym(k), 0), le(sym(k), n - 2)
    if run.judged(eq(shape[0], first[0]), between) is not Answer.ALWAYS:
        return None
    if run.truth(eq(last[0], first[0])):
        return [member]
    if not run.certain(le(last[0], first[0])):
        return None
    return [member] if reverse else [member.at(n - 1), member.between(0, 1).of_one_shape()]


@hands_on
def symbolic_max(*args: Any, **kwargs: Any) -> Any:
    """Returns `max`; among sizes that the data decide, one for each iteration, it is one of them."""
    if len(args) == 1 and not kwargs and (lazy(args[0]) is not None or _expression(args[0])):
        members = physical(found) if type(found := symbolic_list(args[0])) is Repeating else ()
        if len(members) == 1 and members[0].run.truth(ge(members[0].count, 1)):
            greatest = members[0].most()
            if type(greatest) in (builtins.int, Size):
                return greatest
        return builtins.max(found)
    return builtins.max(*args, **kwargs)


@hands_on
def _pad_sequence(sequences: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns `torch.nn.utils.rnn.pad_sequence`, called with a tuple of the sequences."""
    if type(sequences) not in SEVERAL:
        return _PAD_SEQUENCE(sequences, *args, **kwargs)
    bound = _PADDING.bind(sequences, *args, **kwargs)
    bound.apply_defaults()
    return pad_sequence(*bound.args)


_PAD_SEQUENCE = torch.nn.utils.rnn.pad_sequence
_PADDING = inspect.signature(_PAD_SEQUENCE)
FUNCTIONS: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("torch.nn.utils.rnn", "pad_sequence"): _pad_sequence,
    ("functools", "reduce"): _reduce,
}
"""By module and name, the stand-ins for functions that need the number of elements."""


def _expression(x: Any) -> bool:
    """Returns whether the value is a generator expression, `(f(y) for y in ys)`, over a symbolic sequence."""
    if type(x) is not GeneratorType or x.gi_code.co_name != "<genexpr>" or x.gi_frame is None:
        return False
    return getattr(x.gi_frame.f_locals.get(".0"), "symbolic", False) is True


class Handle:
    """The iterator of a `for` over a symbolic sequence.

    It is all that the running program holds of the loop, so when it goes, the loop has been left.
    """

    symbolic = True

    def __init__(self, loop: Any) -> None:
        self.loop = loop

    def __iter__(self) -> Handle:
        return self

    def __next__(self) -> Any:
        return self.loop.step(self, frame_above(1))

    def __del__(self) -> None:
        self.loop.left()
