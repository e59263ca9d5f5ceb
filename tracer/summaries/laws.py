"""The law of a loop: what the state of the program is before each iteration, as a function of its number.

A law is guessed from two states, one iteration apart, and checked against the state that any iteration
leaves. What it says may grow less: where it turns out that strides differ from what it said of them, it says
nothing of them; nor of a number that goes on in no way that is understood, which then may not be looked at.
Of a number that grows in some iterations by more than in others, as a count of what has been found does, or
by as much as the data say, it says between what it lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ...constraints.terms.dims import Dim, substitute, sym, symbols
from .cells import REAL, SEQUENCES, Cell, runs, weakened


class Unlike(Exception):
    """Two states differ in what may not differ."""


@dataclass(frozen=True, slots=True)
class Things:
    """What there was before the loop, and what there is before iteration p, by identity.

    The program may hold a thing from before the loop in places that the body does not see, so it matters
    which of them stands where. Of what an iteration makes itself, only that it is new.
    """

    at_start: Mapping[int, Any]
    before: Mapping[int, Any]

    def same(self, before: Any, found: Any) -> bool:
        if before is found:
            return True
        is_new = id(found) not in self.before and id(found) not in self.at_start
        return is_new and id(before) not in self.at_start


@dataclass(frozen=True, slots=True)
class Growth:
    """A number that is `start` before iteration `first`, and from each to the next grows by so much, at least
    and at most.
    """

    start: Dim
    first: int
    least: int | None
    most: int | None
    """None where there is no bound."""

    def between(self, k: Dim) -> tuple[Dim | None, Dim | None]:
        """What it is before iteration k, at least and at most."""
        steps = k - self.first
        low, high = (None if by is None else self.start + by * steps for by in (self.least, self.most))
        return low, high

    def bounds(self, n: Dim) -> tuple[Dim | None, Dim | None]:
        """What it is before any iteration up to n, at least and at most."""
        low, high = self.between(n)
        rises, falls = self.least is not None and self.least >= 0, self.most is not None and self.most <= 0
        return self.start if rises else low, self.start if falls else high

    def also(self, least: int | None, most: int | None) -> Growth:
        """It may grow by this, too."""
        lows, highs = (self.least, least), (self.most, most)
        return replace(
            self,
            least=None if None in lows else min(low for low in lows if low is not None),
            most=None if None in highs else max(high for high in highs if high is not None),
        )


@dataclass(frozen=True, slots=True)
class Law:
    """What a cell is before iteration k: its dims, with k in them, and what it holds."""

    dims: tuple[Dim | None, ...]
    """None where nothing is said."""
    children: tuple[Law, ...]
    cell: Cell
    """As it was found before iteration p, or less than that."""
    by_runs: bool = False
    """A list that grows: `dims` are how many equal elements stand side by side, `children` one of each."""
    gathers: bool = False
    """A list that each iteration puts one element behind, of which the law says nothing more."""
    perhaps: bool = False
    """A list that gathers, but not in each iteration."""
    weak: bool = False
    """A tensor whose strides, or elements, are not said."""
    grows: Growth | None = None
    """How a number goes on of which `dims` say nothing."""

    def seen(self, found: Cell) -> Cell:
        """A cell as far as the law speaks of it."""
        return weakened(found, self.cell.fixed[-1] is not None) if self.weak else found

    def at(self, k: str, value: Dim) -> tuple[Dim | None, ...]:
        return tuple(None if d is None else substitute(d, {k: value}) for d in self.dims)

    def without(self, names: frozenset[str]) -> Law:
        """The law, where it says nothing with these symbols. Raises Unlike where it has to."""
        law, silent = self, {i for i, d in enumerate(self.dims) if d is not None and symbols(d) & names}
        if silent:
            law = self.saying_nothing_of(silent)
        return replace(law, children=tuple(child.without(names) for child in law.children))

    def saying_nothing_of(self, places: set[int]) -> Law:
        """The law of a number, or of a tensor, without these of its dims. Raises Unlike where there is none.
        """
        if self.by_runs or (self.cell.fixed != ("int",) and self.cell.fixed[0] != "tensor"):
            raise Unlike(self.cell.trail)
        cell = weakened(self.cell)
        dims = self.dims[: len(cell.dims)]
        weak = self.weak or cell.fixed[0] == "tensor"
        dims = tuple(None if i in places else d for i, d in enumerate(dims))
        return replace(self, dims=dims, cell=cell, weak=weak)


class Knowledge(Protocol):
    """What is known of dims where two states are compared."""

    def simplified(self, dim: Dim) -> Dim:
        """The dim, rewritten by what is known to be equal."""

    def equal(self, a: Dim, b: Dim) -> bool:
        """Are the two certainly equal?"""

    def between(self, dim: Dim) -> tuple[int | None, int | None] | None:
        """Between what numbers a dim lies that only the data decide; None for another dim."""


@dataclass(frozen=True, slots=True)
class AsWritten:
    """What is equal is written in one way, rewritten by what is known to be equal."""

    known: Knowledge

    def simplified(self, dim: Dim) -> Dim:
        return self.known.simplified(dim)

    def equal(self, a: Dim, b: Dim) -> bool:
        return a == b or self.simplified(a) == self.simplified(b)

    def between(self, dim: Dim) -> tuple[int | None, int | None] | None:
        return self.known.between(dim)


def guess(
    before: Cell, after: Cell, k: str, first: int, known: Knowledge, data: frozenset[str]
) -> tuple[Law, Cell]:
    """The law of which `before` is the state for k = first, and `after` the one for first + 1; and the latter
    as the law sees it.

    A number d that has become e is d + (e - d) * (k - first) before iteration k. One that has grown by a size
    that the data decided in the iteration grows by another in each.
    """
    if before.fixed == after.fixed == ("int",):
        step = known.simplified(after.dims[0]) - known.simplified(before.dims[0])
        by = known.between(step) if symbols(step) & data else None
        if by is not None:
            return Law((None,), (), before, grows=Growth(before.dims[0], first, *by)), after
    weak = before.fixed != after.fixed
    if weak:
        tracked = before.fixed[-1] is not None, after.fixed[-1] is not None
        before, after = weakened(before, tracked[1]), weakened(after, tracked[0])
    if before.fixed != after.fixed:
        raise Unlike(before.trail)
    by_runs = before.fixed in SEQUENCES and len(before.children) != len(after.children)
    old, new = (gathered(before, known), gathered(after, known)) if by_runs else (before, after)
    if (len(old.dims), len(old.children)) != (len(new.dims), len(new.children)):
        if by_runs and _has_one_more(before, after):
            return Law((), (), before, gathers=True), after
        raise Unlike(before.trail)
    pairs = (guess(a, b, k, first, known, data) for a, b in zip(old.children, new.children, strict=True))
    children, seen = tuple(zip(*pairs, strict=True)) or ((), ())
    dims = tuple(
        d if known.equal(d, e) else d + (known.simplified(e) - known.simplified(d)) * (sym(k) - first)
        for d, e in zip(old.dims, new.dims, strict=True)
    )
    return Law(dims, children, before, by_runs, weak=weak), replace(new, children=seen)


def gathered(cell: Cell, known: Knowledge) -> Cell:
    """A list as how many equal members stand side by side, and one of each."""
    found = runs(cell.children, known.simplified)
    return replace(cell, dims=tuple(n for n, _ in found), children=tuple(one for _, one in found))


def _has_one_more(before: Cell, after: Cell) -> bool:
    """Has the list what it had, and one more element behind it?"""
    old, new = before.children, after.children
    return len(new) == len(old) + 1 and new[-1].movable and all(map(_is_still, old, new))


def _is_still(before: Cell, found: Cell) -> bool:
    """Does the same value stand there?"""
    same = found.held is before.held and (found.fixed, found.dims) == (before.fixed, before.dims)
    if not found.movable or not same or len(found.children) != len(before.children):
        return False
    return all(map(_is_still, before.children, found.children))


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a state is what a law says of k = value, or another law that says less."""

    k: str
    first: int
    value: Dim
    things: Things
    known: Knowledge
    numbers: Mapping[int, Dim]
    """By the identity of the law of each number that grows, what stands for it before the iteration."""
    filled: Mapping[int, Sequence[Any]]
    """By the identity of the law of each list that gathers, what it was filled with before the iteration."""
    made: bool = False
    """Was the state made what the law says, and not by an iteration?"""

    def __call__(self, law: Law, found: Cell) -> tuple[Law, Cell]:
        """The law, if it says what was found, or one that says less, if that does; and what was found, as the
        law sees it.

        Raises Unlike where there is no such law.
        """
        found = law.seen(found)
        if law.cell.fixed != found.fixed and weakened(law.cell).fixed[:-1] == weakened(found).fixed[:-1]:
            cell = weakened(law.cell, found.fixed[-1] is not None)
            law = replace(law, dims=law.dims[: len(cell.dims)], cell=cell, weak=True)
            found = law.seen(found)
        if law.cell.fixed != found.fixed or not self.things.same(law.cell.itself, found.itself):
            raise Unlike(found.trail)
        if law.gathers:
            return self._gathering(law, found), found
        by_ones = found
        if law.by_runs:
            found = gathered(found, self.known)
        expected = law.at(self.k, self.value)
        if (len(expected), len(law.children)) != (len(found.dims), len(found.children)):
            if self._may_gather(law, by_ones):
                return Law((), (), law.cell, gathers=True, perhaps=not law.by_runs), by_ones
            raise Unlike(found.trail)
        if law.grows is not None:
            law = self._growing(law, law.grows, self.numbers[id(law)], found)
        pairs_of_dims = enumerate(zip(expected, found.dims, strict=True))
        if other := {i for i, (a, b) in pairs_of_dims if a is not None and not self.known.equal(a, b)}:
            if law.by_runs and self._may_gather(law, by_ones):
                return Law((), (), law.cell, gathers=True), by_ones
            law = self._grown(law, found) or law.saying_nothing_of(other)
            found = law.seen(found)
        pairs = zip(law.children, found.children, strict=True)
        checked = [self(child, member) for child, member in pairs]
        children = tuple(child for child, _ in checked)
        if any(a is not b for a, b in zip(children, law.children, strict=True)):
            law = replace(law, children=children)
        return law, replace(found, children=tuple(member for _, member in checked))

    def _may_gather(self, law: Law, found: Cell) -> bool:
        """May it be a list that gathers? What it is filled with then is looked at when it is."""
        return not self.made and law.cell.fixed in SEQUENCES and len(found.children) >= len(law.cell.children)

    def _gathering(self, law: Law, found: Cell) -> Law:
        """The law, if the list has what it was filled with, and one more element; or that it has perhaps one
        more. Raises Unlike where it has not.
        """
        kept, cells = self.filled[id(law)], found.children
        same = all(cell.held is one for cell, one in zip(cells, kept, strict=False))
        news = len(cells) - len(kept)
        if not same or news not in ((0,) if self.made else (0, 1)):
            raise Unlike(found.trail)
        for before, cell in zip(law.cell.children, cells, strict=False):
            if cell.held is before.held and not _is_still(before, cell):
                raise Unlike(cell.trail)
        if news and not self._is_new(cells[-1]):
            raise Unlike(found.trail)
        return law if news or self.made or law.perhaps else replace(law, perhaps=True)

    def _is_new(self, cell: Cell) -> bool:
        """Is it a value, or a thing that the iteration has made, and put nowhere else?"""
        own = cell.itself is None or cell.fixed[0] == REAL
        met = id(cell.itself) in self.things.before or id(cell.itself) in self.things.at_start
        return cell.movable and (own or not met) and (cell.plain or all(map(self._is_new, cell.children)))

    def _grown(self, law: Law, found: Cell) -> Law | None:
        """The law of a number that has not grown as it should, but by another number."""
        if self.made or law.cell.fixed != ("int",):
            return None
        (before,), (expected,) = law.at(self.k, self.value - 1), law.at(self.k, self.value)
        assert before is not None and expected is not None
        usual, step = self._step(before, expected), self._step(before, found.dims[0])
        if usual is None or step is None:
            return None
        (start,) = law.at(self.k, self.first)
        assert start is not None
        return replace(law, dims=(None,), grows=Growth(start, self.first, *usual).also(*step))

    def _growing(self, law: Law, growth: Growth, before: Dim, found: Cell) -> Law:
        """The law of a number that grows, by as much as it has here at least. Raises Unlike where it does not
        stand for what it should.
        """
        step = self._step(before, found.dims[0])
        if step is None or (self.made and step != (0, 0)):
            raise Unlike(found.trail)
        grown = growth if self.made else growth.also(*step)
        return law if grown == growth else replace(law, grows=grown)

    def _step(self, before: Dim, after: Dim) -> tuple[int | None, int | None] | None:
        """By how much it has grown, at least and at most; None where sizes decide that."""
        step = self.known.simplified(after) - self.known.simplified(before)
        return (step, step) if isinstance(step, int) else self.known.between(step)
