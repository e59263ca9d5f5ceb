"""Symbols of an iteration: sizes that the data decide anew in each iteration of a loop that collects objects
with these sizes.

In `[torch.unique(row) for row in rows]` the k-th element has a size n(k) of its own, for which the loop gives
the same bounds for every k. So a list that represents all of them (`sequences.Repeated`) makes its k-th
element with a symbol for n(k), the same symbol for the same k: where a program iterates over several such
lists side by side, elements of the same index have the same size. Symbols for different indices are different
numbers, as far as is known. Nothing more is assumed, so a proof for any such numbers holds for the program's.
The symbols for one size of a loop are a family (Skolem functions of the number of the iteration).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Final

from ...constraints.ir.language import Layout, Tensor
from ...constraints.ir.program import Node
from ...constraints.terms.dims import (
    Apply,
    Atom,
    Dim,
    Term,
    ceildiv,
    floordiv,
    linear_parts,
    lone,
    lone_atom,
    maximum,
    minimum,
    substitute,
    sym,
    symbols,
    total,
)
from ...constraints.terms.forall import affine
from ...constraints.terms.formula import Formula, all_of, any_of, conjuncts, eq, free_symbols, ge, le, rewrite
from ...constraints.terms.projection import forgetting
from ...constraints.terms.rows import place_of
from ...constraints.terms.sums import triangle
from ..bytecode.origins import here
from ..recorder import Recorder
from ..values.numbers import size
from ..values.sequences import Repeated, Repeating, RepeatingTuple, another
from .cells import REAL, REPEATED, Cell, alike, sizes_of, weakened, with_sizes
from .heap import look


@dataclass(frozen=True, slots=True)
class Body:
    """The iteration k of a loop of n iterations, with the sizes that the data decide in it, in order of
    appearance.
    """

    k: str
    n: Dim
    data: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathElements:
    """The elements that one path through the body adds to each of several lists."""

    cells: tuple[Cell, ...]
    data: tuple[str, ...]
    known: Formula
    """A condition that holds where the program takes this path."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The element that another iteration adds to a list."""

    place: Dim
    cell: Cell
    data: tuple[str, ...]


class Families:
    """The families of symbols of a run.

    A family has the name of its symbol in the iteration that represents all.
    """

    def __init__(self, run: Recorder) -> None:
        self.run = run
        self._bodies: dict[str, Body] = {}
        """For each family, the loop body that it comes from."""
        self._places: dict[str, tuple[str, Dim]] = {}
        """For each symbol, its family and the index of its iteration."""
        self._members: dict[tuple[str, Dim], Dim] = {}
        self._greatest: dict[str, str] = {}

    def close(self) -> None:
        """Releases the run."""
        del self.run

    def alike(self, some: Sequence[Cell], others: Sequence[Cell]) -> bool:
        """Returns whether these values are equal, one by one."""
        pairs = zip(map(self._symbolic, some), map(self._symbolic, others), strict=True)
        return all(alike(a, b, self.run.simplified) for a, b in pairs)

    def joined(
        self, k: str, n: Dim, ways: Sequence[PathElements], iteration: str = ""
    ) -> tuple[Body, tuple[Cell, ...]] | None:
        """Returns the element that iteration k adds to each list, whatever its path; None where the paths
        differ in more than sizes.

        A size that differs between paths becomes a symbol, the same symbol for sizes that agree on each path.
        If not every iteration adds an element, `iteration` is its number, and k is the index in the list.
        """
        varying = {iteration or k, *(name for way in ways for name in way.data)}
        given = [cell for way in ways for cell in way.cells]
        if not all(cell.movable and _is_made_anew(cell, varying) for cell in given):
            return None
        lists = [*zip(*(map(self._symbolic, way.cells) for way in ways), strict=True)]
        if len(ways) == 1 and not iteration:
            return self._body(k, n, ways[0].data), tuple(cell for (cell,) in lists)
        join = _Join(self.run, iteration or k, ways, {iteration})
        cells = tuple(map(join, lists))
        if None in cells:
            return None
        return self._body(k, n, tuple(join.made)), tuple(cell for cell in cells if cell is not None)

    def _symbolic(self, cell: Cell) -> Cell:
        """Returns the cell with a real tensor replaced by a symbolic one."""
        if cell.fixed[0] == REAL:
            return look(self.run, self.run.lifted(cell.itself))
        return cell if cell.plain else replace(cell, children=tuple(map(self._symbolic, cell.children)))

    def _body(self, k: str, n: Dim, data: tuple[str, ...]) -> Body:
        body = Body(k, n, data)
        for name in data:
            if name not in self._places:
                self._bodies[name], self._places[name] = body, (name, sym(k))
        return body

    def stands_for(self, body: Body, one: Cell, others: Iterable[Gathered]) -> bool:
        """Returns whether the elements that other iterations add are instances of `one`, which the body adds.
        """
        return all(self._is_member(body, one, replace(g, cell=self._symbolic(g.cell))) for g in others)

    def gathered(self, body: Body, one: Cell) -> Repeated:
        """Returns a list of n elements, where `one` is the element of iteration k."""
        named = _symbols_in(one)
        data = [name for name in body.data if name in named]
        if not data and body.k not in named and one.plain:
            return Repeated.each(self.run, body.n, one.value)
        made: dict[Any, Any] = {}

        def at(k: Dim) -> Any:
            place = self.run.simplified(k)
            sizes = {body.k: place, **{d: self._member(d, {body.k: k}) for d in data}}
            key = *sizes.values(),
            if key not in made:
                made[key] = self._element(one, sizes)
            return made[key]

        return Repeated.of(
            self.run, body.n, at, most=lambda: self._most(body, data, one),
            total=lambda axis: None if data else self._total(body, one, axis),
            shape_at=lambda k: None if data else _shape_at(body, one, k),
        )  # fmt: skip

    def _total(self, body: Body, one: Cell, axis: int) -> Dim | None:
        """Returns the sum of the tensors' sizes along an axis; None where it is not known."""
        value = None if one.ref is None else one.value.value
        parts = linear_parts(value.shape[axis]) if isinstance(value, Tensor) else None
        if parts is None:
            return None
        found: Dim = body.n * parts[1]
        for atom, times in parts[0]:
            each = body.n * lone(atom) if body.k not in symbols(lone(atom)) else self._cut(body, atom)
            if lone(atom) == sym(body.k):
                each = triangle(body.n)
            each = _clipped(body, atom) if each is None else each
            if each is None:
                return None
            found = found + times * each
        return found

    def _cut(self, body: Body, atom: Atom) -> Dim | None:
        """Returns T, where the atom is min(c, T - c*k) and k runs up to ⌈T/c⌉, for pieces of T and the rest;
        else None.
        """
        if not isinstance(atom, Apply) or atom.op != "min" or len(atom.args) != 2:
            return None
        for piece, left in permutations(atom.args):
            whole = substitute(left, {body.k: 0})
            if left == whole - piece * sym(body.k) and self.run.equal(body.n, ceildiv(whole, piece)):
                return whole
        return None

    # ---- members

    def _is_member(self, body: Body, one: Cell, other: Gathered) -> bool:
        """Returns whether the other element is the instance of `one` for its iteration.

        More may be known about its sizes.
        """
        run, unbacked = self.run, self.run.generator.said.unbacked
        pairs = [*_pairs(one, other.cell)]
        if None in pairs:
            return False
        sizes = self._sizes_at(body, other, [pair for pair in pairs if pair is not None])
        for pair in pairs:
            assert pair is not None
            if not run.equal(substitute(pair[0], sizes), pair[1]):
                return False
        own = [name for name in body.data if self._places[name][0] == name and name in sizes]
        if not all(run.certain(rewrite(unbacked[name], sizes)) for name in own):
            return False
        for name in own:
            self._keep(name, other.place, sizes[name])
        return True

    def _sizes_at(self, body: Body, other: Gathered, pairs: Iterable[tuple[Dim, Dim]]) -> dict[str, Dim]:
        """Returns the sizes of another iteration, by the names of the corresponding sizes in the body.

        A size that the body reads is found by its index; a size that it makes may be known from another list.
        A size that occurs by itself is matched to the size in the same position; the others are matched in
        order of appearance.
        """
        sizes: dict[str, Dim] = {body.k: other.place}
        for name in body.data:
            at = self._at(name, {body.k: other.place})
            if at[0] != name:
                sizes[name] = self._member(name, {body.k: other.place})
            elif at in self._members:
                sizes[name] = self._members[at]
        for a, b in pairs:
            if (name := _alone(a)) in body.data:
                sizes.setdefault(name, b)
        made = [name for name in body.data if self._places[name][0] == name]
        own = [name for name in other.data if self._places.get(name, (name,))[0] in (name, *made)]
        if len(own) == len(made):
            for name, size in zip(made, map(sym, own), strict=True):
                sizes.setdefault(name, size)
        return sizes

    def _keep(self, family: str, place: Dim, size: Dim) -> None:
        self._members[family, place] = size
        if name := _alone(size):
            self._places[name] = family, place

    def _at(self, name: str, moved: Mapping[str, Dim]) -> tuple[str, Dim]:
        """Returns the family of a symbol, and its index, shifted by the replacement."""
        family, place = self._places[name]
        return family, self.run.simplified(substitute(place, moved))

    def _member(self, name: str, moved: Mapping[str, Dim]) -> Dim:
        """Returns the size that corresponds to this one in another iteration."""
        run = self.run
        family, place = self._at(name, moved)
        found = self._members.get((family, place))
        if found is not None and symbols(found) <= run.generator.said.unbacked.keys():
            return found
        made = self._made(family, {self._bodies[family].k: place})
        self._keep(family, place, made)
        return made

    def _made(self, family: str, moved: Mapping[str, Dim]) -> Term:
        """Returns a new size with the same known bounds as the family's, for another iteration."""
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
        """Returns the instance of `one` with other sizes. Its tensors are new."""
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
        parts = [self._element(child, sizes) for child in one.children]
        if one.fixed == REPEATED:
            return Repeated.each(run, dims[0], parts[0])
        return _holding(one, parts)

    def _most(self, body: Body, data: Sequence[str], one: Cell) -> Any:
        """Returns the element with every size replaced by the greatest of its family.

        None where the list is not known to contain all members of the families, or where some size does not
        occur by itself.
        """
        families = {name: self._places[name][0] for name in data}
        whole = all(
            self._places[name][1] == sym(body.k) and self._bodies[family].n == body.n
            for name, family in families.items()
        )
        alone = all(_alone(dim) in data or symbols(dim).isdisjoint((body.k, *data)) for dim in _dims(one))
        if not whole or not alone:
            return None
        return self._element(one, {name: self._greatest_of(family) for name, family in families.items()})

    def _greatest_of(self, family: str) -> Dim:
        """Returns the greatest member, which is one of the members: no symbol made from here on is greater.
        """
        found = self._greatest.get(family)
        if found is None or found not in self.run.generator.said.unbacked:
            self._greatest.pop(family, None)
            which = sym(self.run.index("which"))
            greatest = self._made(family, {self._bodies[family].k: which})
            found = self._greatest[family] = _alone(greatest)
            self._members = {key: of for key, of in self._members.items() if key[0] != family}
        return sym(found)


def _clipped(body: Body, atom: Atom) -> Dim | None:
    """Returns the sum of max(min(c + s*k, w), 0) over all k, where the atom is that; else None.

    It is the number of the k with j <= c + s*k, summed up for j from 1 to w.
    """
    match atom:
        case Apply(op="max", args=(0, inner) | (inner, 0)):
            low = lone_atom(inner)
        case _:
            return None
    match low:
        case Apply(op="min", args=(int(w), left) | (left, int(w))) if 0 < w <= WIDEST:
            parts = affine(left, body.k)
        case _:
            return None
    match parts:
        case (int(s), c) if s < 0:
            counts = [floordiv(c - j, -s) + 1 for j in range(1, w + 1)]
        case (int(s), c) if s > 0:
            counts = [body.n - ceildiv(j - c, s) for j in range(1, w + 1)]
        case _:
            return None
    return total(maximum(minimum(count, body.n), 0) for count in counts)


def _shape_at(body: Body, one: Cell, k: Dim) -> tuple[Dim, ...] | None:
    """Returns the shape of the tensor of iteration k, where `one` is what the body makes; None where it is
    not known.
    """
    value = None if one.ref is None else one.value.value
    if not isinstance(value, Tensor) or place_of(value.shape) is not None:
        return None
    return tuple(substitute(dim, {body.k: k}) for dim in value.shape)


def _holding(one: Cell, parts: Sequence[Any]) -> Any:
    """Returns a container of the same kind with other members."""
    match one.fixed:
        case ("sequence", kind):
            several = any(type(part) is Repeated for part in parts)
            make = {list: Repeating, tuple: RepeatingTuple}.get(kind, kind) if several else kind
            return getattr(make, "_make", make)(parts)
        case ("dict", _, keys, _):
            return {key: part for (_, key), part in zip(keys, parts, strict=True)}
        case ("slice",):
            return slice(*parts)
    return one.value


def _is_made_anew(one: Cell, varying: Collection[str]) -> bool:
    """Returns whether the value can be rebuilt with other sizes, as far as it contains any of these."""
    known = one.ref is not None or one.fixed in (("int",), ("slice",), REPEATED) or one.fixed[0] in _HOLDING
    if not known and not _symbols_in(one).isdisjoint(varying):
        return False
    return all(_is_made_anew(child, varying) for child in one.children)


WIDEST: Final = 8
"""Pieces up to this width are summed up element by element."""
_HOLDING: Final = ("sequence", "dict")


def _alone(dim: Dim) -> str:
    """Returns the name of the symbol if the dim is one, else an empty text."""
    names = symbols(dim)
    name = next(iter(names), "")
    return name if len(names) == 1 and dim == sym(name) else ""


def _dims(cell: Cell) -> Iterator[Dim]:
    yield from cell.dims
    for child in cell.children:
        yield from _dims(child)


def _symbols_in(cell: Cell) -> frozenset[str]:
    return frozenset().union(*map(symbols, _dims(cell)))


def _pairs(one: Cell, other: Cell) -> Iterator[tuple[Dim, Dim] | None]:
    """Yields the sizes of one object with the corresponding ones of another; None where the objects do not
    correspond. Whatever is known of the elements of one holds of another without elements.
    """
    if _is_empty(other) and one.fixed[:-1] == other.fixed[:-1]:
        yield from zip(_shape(one), _shape(other), strict=True)
        return
    if one.fixed != other.fixed and one.fixed[0] == "tensor":
        other = weakened(other, one.fixed[-1] is not None)
    same = one.fixed == other.fixed and len(one.dims) == len(other.dims)
    if not same or len(one.children) != len(other.children):
        yield None
        return
    yield from zip(one.dims, other.dims, strict=True)
    for a, b in zip(one.children, other.children, strict=True):
        yield from _pairs(a, b)


def _is_empty(cell: Cell) -> bool:
    """Returns whether it is a contiguous tensor without elements."""
    return cell.fixed[0] == "tensor" and cell.fixed[3] is Layout.CONTIGUOUS and 0 in _shape(cell)


def _shape(cell: Cell) -> tuple[Dim, ...]:
    """Returns the shape in the cell of a tensor."""
    return cell.dims[: cell.fixed[2]]


class _Join:
    """Joins several cells to one, in which sizes that differ are symbols."""

    def __init__(self, run: Recorder, k: str, ways: Sequence[PathElements], unknown: Collection[str]) -> None:
        self.run, self._k, self._ways = run, k, ways
        self._data = frozenset((*unknown, *(name for way in ways for name in way.data)))
        """Symbols that force a size which depends on them to be joined."""
        self._symbols: dict[tuple[Dim, ...], Dim] = {}
        self.made: list[str] = []

    def __call__(self, cells: Sequence[Cell]) -> Cell | None:
        """Returns the joined cell; None where the cells differ in more than sizes."""
        if any(cell.ref is not None for cell in cells):
            return self._tensor(cells)
        first = cells[0]
        if any(c.fixed != first.fixed or len(c.children) != len(first.children) for c in cells):
            return None
        dims = tuple(self._size(d, None) for d in zip(*(cell.dims for cell in cells), strict=True))
        found = [self(parts) for parts in zip(*(cell.children for cell in cells), strict=True)]
        parts = tuple(part for part in found if part is not None)
        if len(parts) < len(found) or (dims != first.dims and first.fixed != ("int",)):
            return None
        value = size(self.run, dims[0]) if first.fixed == ("int",) else first.value
        return replace(first, dims=dims, children=parts, value=value)

    def _tensor(self, cells: Sequence[Cell]) -> Cell | None:
        """Returns the joined tensor: only sizes are joined, while strides and facts about elements are kept
        where they agree.
        """
        rank = len(weakened(cells[0]).dims)
        varies = any(not symbols(dim).isdisjoint(self._data) for dim in cells[0].dims[rank:])
        if varies or any(cell.dims != cells[0].dims or cell.fixed != cells[0].fixed for cell in cells):
            tracked = any(cell.fixed[-1] is not None for cell in cells)
            cells = [weakened(cell, tracked) for cell in cells]
        first = cells[0]
        if any(cell.fixed != first.fixed for cell in cells):
            return None
        dims = tuple(self._size(d, 0) for d in zip(*(cell.dims for cell in cells), strict=True))
        value = another(self.run, first.value)
        value.value = with_sizes(first.fixed, dims)
        value.ref = self.run.new_value(value.value)
        arguments = (("input", first.ref),)
        self.run.nodes.append(Node("carried", arguments, (value.ref.id,), here(self.run.names)))
        return replace(first, dims=dims, value=value, ref=value.ref)

    def _size(self, dims: tuple[Dim, ...], least: int | None) -> Dim:
        if all(self.run.equal(dims[0], dim) for dim in dims) and symbols(dims[0]).isdisjoint(self._data):
            return dims[0]
        if dims not in self._symbols:

            def one_of_them(own: Term) -> Formula:
                return any_of(self._is(own, dim, way) for dim, way in zip(dims, self._ways, strict=True))

            self._symbols[dims] = made = self.run.generator.fresh("either", least, None, one_of_them)
            self.made.append(_alone(made))
        return self._symbols[dims]

    def _is(self, own: Term, dim: Dim, way: PathElements) -> Formula:
        """Returns the facts about the symbol where it equals this dim, as it does if the program takes this
        path.
        """
        varying, unbacked = {self._k, *self._data}, self.run.generator.said.unbacked
        if symbols(dim).isdisjoint(varying):
            return eq(own, dim)
        known = [*conjuncts(way.known), *(part for data in way.data for part in conjuncts(unbacked[data]))]
        if name := _alone(dim):
            known = [rewrite(part, {name: own}) for part in known]
        about, linked = [*_between(own, dim)], {*symbols(own), *(symbols(dim) & varying)}
        for part in reversed(known):  # what came up later is said by what came before
            if not linked.isdisjoint(free_symbols(part)):
                linked |= free_symbols(part) & varying
                about.append(part)
        return all_of(forgetting(about, linked - symbols(own)))


def _between(own: Dim, dim: Dim) -> tuple[Formula, ...]:
    """Returns the linear consequences of `own == dim`."""
    match lone_atom(dim):
        case Apply(op="min", args=args):
            return tuple(le(own, arg) for arg in args)
        case Apply(op="max", args=args):
            return tuple(ge(own, arg) for arg in args)
    return (eq(own, dim),)
