"""Families: sizes that the data decide anew in each iteration of a loop, where it gathers what has them.

Of `[torch.unique(row) for row in rows]` the k-th element has a size n(k) of its own, of which the loop says
the same for every k. So a list that stands for all of them (`sequences.Repeated`) makes its k-th element with
a symbol for n(k), always the same one for the same k: where a program goes through several such lists side by
side, what belongs together has one size. Symbols for different places are different numbers, as far as is
known. No more is claimed, so what is proved of any such numbers holds of the program's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..constraints.dims import Dim, Term, substitute, sym, symbols
from ..constraints.formula import Formula, all_of, free_symbols, le, rewrite
from ..constraints.program import Node
from .cells import Cell, sizes_of, with_sizes
from .numbers import size
from .origins import here
from .sequences import Repeated, another

if TYPE_CHECKING:
    from .record import Recording


@dataclass(frozen=True, slots=True)
class Body:
    """The iteration k of a loop of n, with the sizes that the data decide in it, as they come up."""

    k: str
    n: Dim
    data: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What another iteration has given, or another way through the body."""

    place: Dim
    cell: Cell
    data: tuple[str, ...]


class Families:
    """The families of a run. A family goes by the name of its symbol in the iteration that stands for all."""

    def __init__(self, run: Recording) -> None:
        self.run = run
        self._bodies: dict[str, Body] = {}
        """By family, where it comes from."""
        self._places: dict[str, tuple[str, Dim]] = {}
        """Of which family a symbol is a member, and at which place."""
        self._members: dict[tuple[str, Dim], Dim] = {}
        self._greatest: dict[str, str] = {}

    def close(self) -> None:
        """Lets go of the run."""
        del self.run

    def gathered(self, body: Body, one: Cell, others: Iterable[Gathered]) -> Repeated | None:
        """A list of n elements as `one` is of iteration k; None where it does not stand for the others."""
        if not one.plain:
            return None
        for name in body.data:
            if name not in self._places:
                self._bodies[name], self._places[name] = body, (name, sym(body.k))
        if not all(self._is_member(body, one, other) for other in others):
            return None
        named = _data_in(one)
        data = [name for name in body.data if name in named]
        made: dict[Any, Any] = {}

        def at(k: Dim) -> Any:
            sizes = {d: self._member(d, {body.k: k}) for d in data}
            key = self.run.simplified(k), *sizes.values()
            if key not in made:
                made[key] = self._element(one, sizes)
            return made[key]

        return Repeated.of(self.run, body.n, at, most=lambda: self._most(body, data, one))

    # ---- members

    def _is_member(self, body: Body, one: Cell, other: Gathered) -> bool:
        """Is the other element what `one` is at its place? More may be known of its sizes.

        The sizes that the body makes itself come up in the same order; what it was given has its place.
        """
        run, unbacked = self.run, self.run.generator.said.unbacked
        own = [sym(name) for name in other.data if name not in self._places]
        made = [name for name in body.data if self._places[name][0] == name]
        if len(own) != len(made):
            return False
        sizes: dict[str, Dim] = dict(zip(made, own, strict=True))
        sizes.update((d, self._member(d, {body.k: other.place})) for d in body.data if d not in sizes)
        for a, b in _pairs(one, other.cell):
            if b is None or not run.equal(substitute(a, sizes), b):
                return False
        if not all(run.certain(rewrite(unbacked[name], sizes)) for name in made):
            return False
        for name in made if other.place != sym(body.k) else ():
            self._keep(name, other.place, sizes[name])
        return True

    def _keep(self, family: str, place: Dim, size: Dim) -> None:
        self._places[_alone(size)] = family, place
        self._members[family, place] = size

    def _at(self, name: str, moved: Mapping[str, Dim]) -> tuple[str, Dim]:
        """The family of a symbol, and a place of it that is moved."""
        family, place = self._places[name]
        return family, self.run.simplified(substitute(place, moved))

    def _member(self, name: str, moved: Mapping[str, Dim]) -> Dim:
        """The size in the place of this one elsewhere."""
        run = self.run
        family, place = self._at(name, moved)
        found = self._members.get((family, place))
        if found is not None and symbols(found) <= run.generator.said.unbacked.keys():
            return found
        made = self._made(family, {self._bodies[family].k: place})
        self._keep(family, place, made)
        return made

    def _made(self, family: str, moved: Mapping[str, Dim]) -> Term:
        """A size of which the same is known as of the family, elsewhere."""
        unbacked, most = self.run.generator.said.unbacked, self._greatest.get(family)
        known = unbacked[family]
        beside = (free_symbols(known) & self._places.keys()) - {family}
        sizes = {other: self._member(other, moved) for other in sorted(beside)}

        def also(own: Term) -> Formula:
            upto: Formula = le(own, sym(most)) if most in unbacked and most is not None else True
            return all_of((rewrite(known, {**sizes, family: own}), upto))

        return self.run.generator.fresh(family.rstrip("0123456789_"), None, None, also)

    # ---- elements

    def _element(self, one: Cell, sizes: Mapping[str, Dim]) -> Any:
        """What `one` is with other sizes. Tensors are others, too."""
        run = self.run
        if one.ref is not None:
            found = another(run, one.value)
            fixed, before = sizes_of(found.value)
            dims = tuple(substitute(dim, sizes) for dim in before)
            if dims != before:
                found.value = with_sizes(fixed, dims)
                found.ref = run.new_value(found.value)
                run.nodes.append(Node("carried", (("input", one.ref),), (found.ref.id,), here(run.names)))
            return found
        dims = tuple(substitute(dim, sizes) for dim in one.dims)
        if one.fixed == ("int",):
            return size(run, dims[0])
        if one.fixed == ("sequence", tuple):
            return tuple(self._element(child, sizes) for child in one.children)
        return one.value

    def _most(self, body: Body, data: Sequence[str], one: Cell) -> Any:
        """The element with the greatest of all sizes in the place of its own; None where it is not known that
        the list goes through all members of their families, or where some size does not stand alone.
        """
        families = {name: self._places[name][0] for name in data}
        whole = all(
            self._places[name][1] == sym(body.k) and self._bodies[family].n == body.n
            for name, family in families.items()
        )
        alone = all(_alone(dim) or symbols(dim).isdisjoint(data) for dim in _dims(one))
        if not whole or not alone:
            return None
        return self._element(one, {name: self._greatest_of(family) for name, family in families.items()})

    def _greatest_of(self, family: str) -> Dim:
        """The greatest member, which is one of them: of the symbols that are made from here on, none is
        greater.
        """
        found = self._greatest.get(family)
        if found is None or found not in self.run.generator.said.unbacked:
            self._greatest.pop(family, None)
            which = sym(self.run.index("which"))
            greatest = self._made(family, {self._bodies[family].k: which})
            found = self._greatest[family] = _alone(greatest)
            self._members = {key: of for key, of in self._members.items() if key[0] != family}
        return sym(found)


def _alone(dim: Dim) -> str:
    """The name of the symbol that the dim is; of another dim an empty one."""
    names = symbols(dim)
    name = next(iter(names), "")
    return name if len(names) == 1 and dim == sym(name) else ""


def _dims(cell: Cell) -> Iterator[Dim]:
    yield from cell.dims
    for child in cell.children:
        yield from _dims(child)


def _data_in(cell: Cell) -> frozenset[str]:
    return frozenset().union(*map(symbols, _dims(cell)))


def _pairs(one: Cell, other: Cell) -> Iterator[tuple[Dim, Dim | None]]:
    """The sizes of one thing beside those of another; None where there is no such other."""
    same = one.fixed == other.fixed and len(one.dims) == len(other.dims)
    if not same or len(one.children) != len(other.children):
        yield 0, None
        return
    yield from zip(one.dims, other.dims, strict=True)
    for a, b in zip(one.children, other.children, strict=True):
        yield from _pairs(a, b)
