"""Cells: the record of each object in a state of the running program, and the locations of values in the
state.

The numbers in an object are kept apart from the rest of its cell, so that a loop can describe how they
continue. The value at a location can be replaced by another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Final, Protocol, TypeAlias

import torch

from ...constraints.ir.language import UNTRACKED, Affine, Elements, Layout, Span, Subscripts, Tensor
from ...constraints.ir.program import Ref
from ...constraints.terms.dims import Dim
from ..host.interpreter import set_variable
from ..host.tensors import is_fake, overrides_off, writes_into
from ..values.sequences import physical

CONTENT: Final = 1 << 16
"""Real tensors of at most this many elements are compared by content."""


# --- places ----------------------------------------------------------------------------------------------


class Location(Protocol):
    """A location of a value, where another value can be written."""

    def read(self) -> Any:
        """Returns the value at this location."""

    def write(self, value: Any) -> None:
        """Writes another value to this location."""


@dataclass(frozen=True, slots=True)
class Local:
    """A variable of a running function."""

    frame: FrameType
    name: str

    def read(self) -> Any:
        return self.frame.f_locals[self.name]

    def write(self, value: Any) -> None:
        set_variable(self.frame, self.name, value)


@dataclass(frozen=True, slots=True)
class Item:
    """A member of a list, or the value of a key in a dict: also a global variable, or an attribute."""

    holder: Any
    name: Any

    def read(self) -> Any:
        return physical(self.holder)[self.name] if isinstance(self.holder, list) else self.holder[self.name]

    def write(self, value: Any) -> None:
        if isinstance(self.holder, list):
            list.__setitem__(self.holder, self.name, value)
        else:
            self.holder[self.name] = value


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute that is in no dict, or a variable that a closure shares."""

    holder: Any
    name: str

    def read(self) -> Any:
        return getattr(self.holder, self.name)

    def write(self, value: Any) -> None:
        object.__setattr__(self.holder, self.name, value)


@dataclass(frozen=True, slots=True)
class ClassAttribute:
    """An attribute of a class."""

    holder: type
    name: str

    def read(self) -> Any:
        return vars(self.holder)[self.name]

    def write(self, value: Any) -> None:
        setattr(self.holder, self.name, value)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a tuple; changing it creates a new tuple."""

    place: Location
    index: int

    def read(self) -> Any:
        return physical(self.place.read())[self.index]

    def write(self, value: Any) -> None:
        whole = self.place.read()
        members = [*physical(whole)]
        members[self.index] = value
        make: Callable[[Any], Any] = getattr(whole, "_make", type(whole))
        self.place.write(make(members))


LASTING = (Item, Slot, ClassAttribute)
"""Locations that still exist when the program has ended."""


# --- cells -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """The record of one object."""

    trail: str
    """The expression by which the object was reached, for people: `self.count`."""
    fixed: Any
    """Everything that has to stay the same, except its members, which have cells of their own."""
    dims: tuple[Dim, ...] = ()
    """The numbers in it, which may change from iteration to iteration."""
    children: tuple[Cell, ...] = ()
    value: Any = None
    place: Location | None = None
    ref: Ref | None = None
    """The id of a symbolic tensor at that time."""
    plain: bool = False
    """Whether it is a value without an identity: two equal ones are interchangeable."""
    itself: Any = None
    """The object, if it has an identity."""

    @property
    def held(self) -> Any:
        """Returns the value or the object."""
        return self.value if self.itself is None else self.itself

    @property
    def movable(self) -> bool:
        """Returns whether it is a value, or an object that can be treated as one while nothing else refers to
        it: a real tensor, or a list or a dict of such objects.
        """
        if self.plain or self.fixed[0] == REAL:
            return self.plain or not self.children
        holds = self.fixed == SEQUENCES[0] or (self.fixed[0] == "dict" and _is_plain_dict(*self.fixed))
        return holds and all(child.movable for child in self.children)


def _is_plain_dict(_: str, kind: type, keys: tuple[Any, ...], default: Any) -> bool:
    return kind is dict and default is None and all(key[0] in (str, int) for key in keys)


REAL: Final = "real tensor"
REPEATED: Final = ("repeated",)
SEQUENCES: Final = (("sequence", list), ("sequence", tuple))
"""The fixed parts of the cells of lists and tuples that may grow."""

Simplified: TypeAlias = Callable[[Dim], Dim]


def alike(a: Cell, b: Cell, simplified: Simplified) -> bool:
    """Returns whether the two are equal values, with equal numbers in them."""
    return (
        a.plain
        and b.plain
        and a.fixed == b.fixed
        and len(a.dims) == len(b.dims)
        and all(simplified(d) == simplified(e) for d, e in zip(a.dims, b.dims, strict=True))
        and len(a.children) == len(b.children)
        and all(alike(c, d, simplified) for c, d in zip(a.children, b.children, strict=True))
    )


def runs(members: Sequence[Cell], simplified: Simplified) -> list[tuple[Dim, Cell]]:
    """Returns the members of a list or a tuple with equal neighbours grouped: their number, and one of them.
    """
    found: list[tuple[Dim, Cell]] = []
    for member in members:
        many = member.fixed == REPEATED
        count, one = (member.dims[0], member.children[0]) if many else (1, member)
        if found and alike(found[-1][1], one, simplified):
            found[-1] = found[-1][0] + count, found[-1][1]
        else:
            found.append((count, one))
    return found


# --- tensors ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The content of a real tensor, equal to other content with the same numbers; after a write to the tensor
    it equals nothing.
    """

    tensor: torch.Tensor
    version: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Content:
        return cls(tensor, _version(tensor))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content) or self.version != _version(self.tensor):
            return False
        a, b = self.tensor, other.tensor
        if a is b or other.version != _version(b):
            return a is b and self.version == other.version
        same = (a.dtype, a.shape, a.device, a.layout) == (b.dtype, b.shape, b.device, b.layout)
        if not same or a.layout is not torch.strided or a.stride() != b.stride():
            return False
        return a.device.type == "meta" or (a.numel() <= CONTENT and _same_numbers(a, b))


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else writes_into(tensor)


def _same_numbers(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Returns whether the numbers agree, where NaN equals NaN."""
    if is_fake(a) or is_fake(b):
        return False
    with overrides_off():
        return bool(((a == b) | ((a != a) & (b != b))).all())


def sizes_of(value: Any) -> tuple[Any, tuple[Dim, ...]]:
    """Returns a rule's value without its sizes, and the sizes from left to right."""
    if not isinstance(value, Tensor):
        return ("nothing known",), ()
    strides = value.layout if isinstance(value.layout, tuple) else ()
    kind, more = _of_elements(value.elements)
    layout = len(strides) or value.layout
    return ("tensor", value.dtype, value.rank, layout, kind), (*value.shape, *strides, *more)


def _of_elements(elements: Elements) -> tuple[Any, tuple[Dim, ...]]:
    match elements:
        case Affine(start, steps):
            return ("affine", steps), (start,)
        case Span(low, high, attained, by_data, dense):
            return ("span", attained, by_data, dense), (low, high)
        case Subscripts(shape, added):
            return ("subscripts", len(shape), added), shape
    return elements, ()


def with_sizes(fixed: Any, dims: Sequence[Dim]) -> Tensor:
    """Returns the tensor with these sizes; the inverse of `sizes_of`."""
    _, dtype, rank, layout, kind = fixed
    rest = iter(dims)
    shape = tuple(itertools.islice(rest, rank))
    strides = tuple(itertools.islice(rest, layout)) if isinstance(layout, int) else layout
    elements = kind
    match kind:
        case ("affine", steps):
            elements = Affine(next(rest), steps)
        case ("span", *known):
            elements = Span(next(rest), next(rest), *known)
        case ("subscripts", count, added):
            elements = Subscripts(tuple(itertools.islice(rest, count)), added)
    return Tensor(shape, dtype, strides, elements)


def weakened(cell: Cell, tracked: bool = False) -> Cell:
    """Returns the cell of a tensor without its strides and the facts about its elements: they become
    UNTRACKED, unless the data decide them and `tracked` is False.
    """
    if cell.fixed[0] != "tensor":
        return cell
    _, dtype, rank, _, elements = cell.fixed
    kind = UNTRACKED if tracked or elements is not None else None
    return replace(cell, fixed=("tensor", dtype, rank, Layout.UNKNOWN, kind), dims=cell.dims[:rank])
