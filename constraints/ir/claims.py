"""The notation in which a program asserts a shape in a line of its own: `b h w`, `b, 3, _`, `2*n ...`.

    claim = size*                       separated by blanks, or by commas; brackets around it are allowed
    size  = "_" | "?" | "..." | dim     `_` and `?` are any size, `...` any number of sizes, once at most

The names are those of the input spec. A new name is bound to the size where it is first written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ..terms.dims import Dim, Term, substitute, symbols
from ..terms.formula import Formula, all_of, any_of, eq
from ..terms.formula_text import defined
from ..terms.rows import place_of
from ..terms.syntax import DimSyntaxError, parse_dim
from .language import Shape
from .spec_text import SpecError

Listener: TypeAlias = Callable[[str, Any, Any], None]
"""`listener(kind, value, claim)` is called for each claim while a program runs. The kinds `assert` and
`reveal` have a text, those of tracer/patches/annotated.py an annotation.
"""

LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Passes the claims made inside the block to the listener. Elsewhere a claim does nothing."""
    token = LISTENER.set(listener)
    try:
        yield
    finally:
        LISTENER.reset(token)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a claim, or with `row` any number of them."""

    size: str = ""
    """A name, a number or a term; empty where any size will do."""
    row: bool = False
    broadcasts: bool = False
    """Whether a size of 1 will do as well; for a row, whether it may also have fewer axes."""
    per_leaf: bool = False
    """Whether the name stands for another size at each leaf of a tree."""


ANY_ROW: Final = Axis(row=True)


@dataclass(frozen=True, slots=True)
class Claim:
    """The axes that a tensor is claimed to have, with at most one row among them, and its dtype."""

    text: str
    axes: tuple[Axis, ...]
    dtypes: frozenset[str] | None = None
    """The dtypes that are allowed; None where all are."""

    @property
    def lead(self) -> tuple[Axis, ...]:
        """Returns the axes in front of the row; all of them where there is none."""
        return self.axes if self.row is None else self.axes[: self.axes.index(self.row)]

    @property
    def trail(self) -> tuple[Axis, ...]:
        """Returns the axes behind the row."""
        return () if self.row is None else self.axes[self.axes.index(self.row) + 1 :]

    @property
    def row(self) -> Axis | None:
        """Returns the axis that stands for any number of axes, or None."""
        return next((axis for axis in self.axes if axis.row), None)


@lru_cache(maxsize=1024)
def parse_claim(text: str) -> Claim:
    """Returns the claim that a text makes. Raises SpecError."""
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    words = [w.strip() for w in inner.split(",")] if "," in inner else inner.split()
    if words.count("...") > 1:
        raise SpecError("`...` occurs twice", text, hint="a shape has at most one `...`")
    return Claim(text, tuple(_axis(word, text) for word in words))


def _axis(word: str, text: str) -> Axis:
    if word == "...":
        return ANY_ROW
    if word in ("_", "?"):
        return Axis()
    size_of(word, text)
    return Axis(word)


@lru_cache(maxsize=1024)
def size_of(word: str, text: str) -> Dim:
    """Returns the size that a word of the text denotes. Raises SpecError."""
    try:
        return parse_dim(word)
    except DimSyntaxError as error:
        column = text.find(word) + error.column if word else 0
        hint = "a size is a name, a number or a term, `_` is any size"
        raise SpecError(error.problem, text, column, hint) from None


class RanksOpen(Exception):
    """Raised where a comparison depends on how many dims there are, which is not known."""


class BoundNames:
    """The sizes that names stand for, and the rows of sizes, as far as they have been met.

    A name without `#` is bound to the size, or the row, at which it first occurs. Before that, the sizes at
    which it occurs with `#` have to broadcast with one another.
    """

    def __init__(self, sizes: Mapping[str, Dim] = MappingProxyType({})) -> None:
        self._bound: dict[tuple[str, bool], Shape] = {(name, False): (dim,) for name, dim in sizes.items()}
        self._broadcast: dict[tuple[str, bool], tuple[Shape, ...]] = {}

    def copy(self) -> BoundNames:
        """Returns the same names, to be bound further."""
        made = BoundNames()
        made._bound, made._broadcast = dict(self._bound), dict(self._broadcast)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundNames) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def sizes(self) -> dict[str, Dim]:
        """Returns the names that stand for one size."""
        return {name: shape[0] for (name, row), shape in self._bound.items() if not row}

    def meet(self, axis: Axis, shape: Shape, leaf: str = "") -> Formula:
        """Returns the condition that the name of an axis stands for these sizes. Raises RanksOpen."""
        key = leaf + axis.size, axis.row
        bound, earlier = self._bound.get(key), self._broadcast.get(key, ())
        if bound is not None:
            return _expands(shape, bound) if axis.broadcasts else _equal(shape, bound)
        if axis.broadcasts:
            self._broadcast[key] = (*earlier, shape)
            return all_of(_broadcast(one, shape) for one in earlier)
        self._bound[key] = shape
        return all_of(_expands(one, shape) for one in earlier)


def _equal(shape: Shape, other: Shape) -> Formula:
    _written_out(shape, other)
    if len(shape) != len(other):
        return False
    return all_of(eq(size, goal) for size, goal in zip(shape, other, strict=True))


def _expands(shape: Shape, goal: Shape) -> Formula:
    """Returns the condition that the shape broadcasts to the goal."""
    _written_out(shape, goal)
    if len(shape) > len(goal):
        return False
    pairs = zip(reversed(shape), reversed(goal), strict=False)
    return all_of(any_of((eq(size, 1), eq(size, wanted))) for size, wanted in pairs)


def _broadcast(shape: Shape, other: Shape) -> Formula:
    """Returns the condition that two shapes broadcast with each other."""
    _written_out(shape, other)
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return all_of(any_of((eq(a, 1), eq(b, 1), eq(a, b))) for a, b in pairs)


def _written_out(shape: Shape, other: Shape) -> None:
    if shape != other and (place_of(shape), place_of(other)) != (None, None):
        raise RanksOpen


def claimed(claim: Claim, shape: Shape, names: BoundNames, leaf: str = "") -> Formula:
    """Returns the condition that the claim is true of a shape. New names are added to `names`; those of
    axes that are `per_leaf` begin with `leaf`.

    Raises SpecError where a name occurs in a term and nowhere before, RanksOpen where the number of dims of a
    row matters and is not known.
    """
    lead, trail, row = claim.lead, claim.trail, claim.row
    count = len(lead) + len(trail)
    if len(shape) < count or (len(shape) > count and row is None):
        return False
    behind = len(shape) - len(trail)
    pairs = [*zip(lead, shape, strict=False), *zip(trail, shape[behind:], strict=True)]
    named = [(axis, size) for axis, size in pairs if _is_name(axis.size)]
    terms = [(axis, size) for axis, size in pairs if axis.size and not _is_name(axis.size)]
    parts = [names.meet(axis, (size,), leaf if axis.per_leaf else "") for axis, size in named]
    for axis, size in terms:
        wanted = _valued(claim, axis, names)
        is_wanted = all_of((defined(wanted), eq(size, wanted)))
        parts.append(any_of((is_wanted, *([eq(size, 1)] if axis.broadcasts else []))))
    if row is not None and row.size:
        parts.append(names.meet(row, shape[len(lead) : behind], leaf if row.per_leaf else ""))
    return all_of(parts)


def _is_name(size: str) -> bool:
    return size.isidentifier()


def _valued(claim: Claim, axis: Axis, names: BoundNames) -> Dim:
    wanted, known = size_of(axis.size, claim.text), names.sizes()
    if isinstance(wanted, Term) and (new := symbols(wanted) - known.keys()):
        raise SpecError(f"{min(new)} is not defined", claim.text, hint="write it alone first")
    return substitute(wanted, known)
