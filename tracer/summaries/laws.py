"""The law of a loop: the state of the program before each iteration, as a function of the iteration's number.

A law is guessed from two states, one iteration apart, and checked against the state that any iteration
leaves, which may weaken it. There are four laws of a cell: `Stated` gives its dims, `Runs` the numbers of
equal neighbours in a list, `Grows` bounds of a number, and `Appends` states of a list only that iterations
add elements at its end. `Stated` takes dims whose changes rise evenly as quadratic in k, and sizes that fall
to 0 as the greater of 0 and a linear dim; it drops strides that differ from it, and a number whose changes
are not understood, which the program must not use then. A number that grows by different amounts in different
iterations, such as a count of matches, becomes `Grows`; a list that is no longer made of runs, `Appends`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ...constraints.terms.dims import Apply, Dim, Term, maximum, substitute, sym, symbols
from .cells import REAL, SEQUENCES, Cell, runs, weakened


class Unlike(Exception):
    """Raised where two states differ in more than a law can describe."""


@dataclass(frozen=True, slots=True)
class Things:
    """The objects that existed before the loop, and those that exist before iteration p, by identity.

    The program may hold an object from before the loop in locations that the body does not see, so the
    position of each one in the state matters. Of the objects that an iteration creates, it only matters that
    they are new.
    """

    at_start: Mapping[int, Any]
    before: Mapping[int, Any]

    def same(self, before: Any, found: Any) -> bool:
        if before is found:
            return True
        is_new = id(found) not in self.before and id(found) not in self.at_start
        return is_new and id(before) not in self.at_start


@dataclass(frozen=True, slots=True)
class Rate:
    """A number that is `start` before iteration `first`, and grows in each iteration by at least `least` and
    at most `most`.
    """

    start: Dim
    first: int
    least: int | None
    most: int | None
    """None where there is no bound."""

    def between(self, k: Dim) -> tuple[Dim | None, Dim | None]:
        """Returns the least and the greatest possible value before iteration k."""
        steps = k - self.first
        low, high = (None if by is None else self.start + by * steps for by in (self.least, self.most))
        return low, high

    def bounds(self, n: Dim) -> tuple[Dim | None, Dim | None]:
        """Returns the least and the greatest possible value before any iteration up to n."""
        low, high = self.between(n)
        rises, falls = self.least is not None and self.least >= 0, self.most is not None and self.most <= 0
        return self.start if rises else low, self.start if falls else high

    def also(self, least: int | None, most: int | None) -> Rate:
        """Returns the growth, extended so that it allows these increments, too."""
        lows, highs = (self.least, least), (self.most, most)
        return replace(
            self,
            least=None if None in lows else min(low for low in lows if low is not None),
            most=None if None in highs else max(high for high in highs if high is not None),
        )


@dataclass(frozen=True, slots=True)
class Law:
    """A cell before iteration k, as a function of k: its dims, with k in them, and the laws of its members.
    """

    cell: Cell
    """The cell found before iteration p, perhaps weakened."""
    dims: tuple[Dim | None, ...] = ()
    """None for a dim about which the law states nothing."""
    children: tuple[Law, ...] = ()

    def seen(self, found: Cell) -> Cell:
        """Returns a cell reduced to the parts that the law describes."""
        return found

    def at(self, k: str, value: Dim) -> tuple[Dim | None, ...]:
        return tuple(None if d is None else substitute(d, {k: value}) for d in self.dims)

    def without(self, names: frozenset[str]) -> Law:
        """Returns the law without statements that contain these symbols.

        Raises Unlike where that is impossible.
        """
        silent = {i for i, d in enumerate(self.dims) if d is not None and symbols(d) & names}
        law = self.saying_nothing_of(silent) if silent else self
        return replace(law, children=tuple(child.without(names) for child in law.children))

    def saying_nothing_of(self, places: set[int]) -> Law:
        """Returns the law of a number, or of a tensor, without the dims at these positions.

        Raises Unlike for other laws.
        """
        raise Unlike(self.cell.trail)


@dataclass(frozen=True, slots=True)
class Stated(Law):
    """The law of a cell whose dims change by fixed amounts, or not at all."""

    weak: bool = False
    """Whether it is a tensor whose strides, or elements, the law does not state."""

    def seen(self, found: Cell) -> Cell:
        return weakened(found, self.cell.fixed[-1] is not None) if self.weak else found

    def saying_nothing_of(self, places: set[int]) -> Law:
        is_tensor = self.cell.fixed[0] == "tensor"
        if self.cell.fixed != ("int",) and not is_tensor:
            raise Unlike(self.cell.trail)
        cell = weakened(self.cell)
        dims = tuple(None if i in places else d for i, d in enumerate(self.dims[: len(cell.dims)]))
        return replace(self, dims=dims, cell=cell, weak=self.weak or is_tensor)


@dataclass(frozen=True, slots=True)
class Runs(Law):
    """The law of a list that grows: `dims` are the numbers of equal neighbours, `children` one element of
    each run.
    """


@dataclass(frozen=True, slots=True)
class Appends(Law):
    """The law of a list to whose end iterations add one element each; it states nothing more of the list."""

    perhaps: bool = False
    """Whether some iterations add no element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grows(Law):
    """The law of a number whose growth alone is known."""

    growth: Rate


class Knowledge(Protocol):
    """The facts about dims used where two states are compared."""

    def simplified(self, dim: Dim) -> Dim:
        """Returns the dim, rewritten by known equations."""

    def equal(self, a: Dim, b: Dim) -> bool:
        """Returns whether the two dims are certainly equal."""

    def between(self, dim: Dim) -> tuple[int | None, int | None] | None:
        """Returns bounds of a dim that only the data decide; None for another dim."""


@dataclass(frozen=True, slots=True)
class AsWritten:
    """Knowledge in which dims are equal only if they are the same after rewriting by known equations."""

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
    """Returns the law whose state is `before` for k = first and `after` for first + 1, and the latter as the
    law describes it.

    A number d that has become e is d + (e - d) * (k - first) before iteration k. A number that has grown by a
    size that the data decided in the iteration grows by another amount in each iteration.
    """
    if before.fixed == after.fixed == ("int",):
        step = known.simplified(after.dims[0]) - known.simplified(before.dims[0])
        by = known.between(step) if symbols(step) & data else None
        if by is not None:
            return Grows(before, (None,), growth=Rate(before.dims[0], first, *by)), after
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
            return Appends(before), after
        raise Unlike(before.trail)
    pairs = (guess(a, b, k, first, known, data) for a, b in zip(old.children, new.children, strict=True))
    children, seen = tuple(zip(*pairs, strict=True)) or ((), ())
    is_size = before.fixed[0] == "tensor"
    dims = tuple(
        d if known.equal(d, e) else _line(known.simplified(d), known.simplified(e), sym(k) - first, is_size)
        for d, e in zip(old.dims, new.dims, strict=True)
    )
    law = Runs(before, dims, children) if by_runs else Stated(before, dims, children, weak)
    return law, replace(new, children=seen)


def begins(law: Law, before: Cell, k: str, first: int, known: Knowledge) -> bool:
    """Returns whether the law's state for k = first is the one that it was guessed from, by what is known
    where no further iteration need follow.
    """
    if isinstance(law, Appends | Grows):
        return True
    cell = gathered(before, known) if isinstance(law, Runs) else law.seen(before)
    expected = law.at(k, first)
    return (len(expected), len(law.children)) == (len(cell.dims), len(cell.children)) and all((
        *(d is None or known.equal(d, e) for d, e in zip(expected, cell.dims, strict=True)),
        *(begins(a, b, k, first, known) for a, b in zip(law.children, cell.children, strict=True)),
    ))


def _line(d: Dim, e: Dim, steps: Dim, is_size: bool) -> Dim:
    """Returns d + (e - d) * steps; of a size that falls to 0 and stays there, max(u + c * steps, 0)."""
    u, v = _unclamped(d), _unclamped(e)
    falls = (u != d or is_size) and v != e and isinstance(v - u, int)
    return maximum(u + (v - u) * steps, 0) if falls else d + (e - d) * steps


def _unclamped(dim: Dim) -> Dim:
    """Returns u for the dim max(u, 0); any other dim as it is."""
    match dim:
        case Term(terms=(((Apply(op="max", args=(u, v)),), 1),)) if 0 in (u, v):
            return v if u == 0 else u
    return dim


def gathered(cell: Cell, known: Knowledge) -> Cell:
    """Returns a list's cell as numbers of equal neighbours, and one element of each run."""
    found = runs(cell.children, known.simplified)
    return replace(cell, dims=tuple(n for n, _ in found), children=tuple(one for _, one in found))


def _has_one_more(before: Cell, after: Cell) -> bool:
    """Returns whether the list has its old members, and one more behind them."""
    old, new = before.children, after.children
    return len(new) == len(old) + 1 and new[-1].movable and all(map(_is_still, old, new))


def _is_still(before: Cell, found: Cell) -> bool:
    """Returns whether the same value is still there."""
    same = found.held is before.held and (found.fixed, found.dims) == (before.fixed, before.dims)
    if not found.movable or not same or len(found.children) != len(before.children):
        return False
    return all(map(_is_still, before.children, found.children))


@dataclass(frozen=True, slots=True)
class LawCheck:
    """Checks a state against a law for k = value; returns the law or a weaker one that the state satisfies.
    """

    k: str
    first: int
    value: Dim
    things: Things
    known: Knowledge
    numbers: Mapping[int, Dim]
    """By the identity of the law of each number that grows, the stand-in for the number before the iteration.
    """
    filled: Mapping[int, Sequence[Any]]
    """By the identity of the law of each list that gathers, the members that it was given before the
    iteration.
    """
    own: frozenset[str]
    """The symbols that exist in the body only. No law contains them."""
    made: bool = False
    """Whether the state was constructed from the law, and not by an iteration."""

    def __call__(self, law: Law, found: Cell) -> tuple[Law, Cell]:
        """Returns the law, if the cell satisfies it, or a weaker law that it satisfies; and the cell as the
        law describes it.

        Raises Unlike where there is no such law.
        """
        law, found = self._reduced(law, law.seen(found))
        if law.cell.fixed != found.fixed or not self.things.same(law.cell.itself, found.itself):
            raise Unlike(found.trail)
        match law:
            case Appends():
                return self._gathering(law, found), found
            case Grows():
                return self._growing(law, found), found
            case Runs():
                return self._runs(law, found)
        return self._stated(law, found)

    def _reduced(self, law: Law, found: Cell) -> tuple[Law, Cell]:
        """Returns both without strides and elements, if they are those of a tensor and differ in them only.
        """
        if law.cell.fixed == found.fixed or weakened(law.cell).fixed[:-1] != weakened(found).fixed[:-1]:
            return law, found
        cell = weakened(law.cell, found.fixed[-1] is not None)
        law = Stated(cell, law.dims[: len(cell.dims)], law.children, weak=True)
        return law, law.seen(found)

    def _stated(self, law: Law, found: Cell) -> tuple[Law, Cell]:
        expected = law.at(self.k, self.value)
        if (len(expected), len(law.children)) != (len(found.dims), len(found.children)):
            return self._gathers_now(law, found, perhaps=True), found
        if differing := self._differing(expected, found.dims):
            law, others = self._curved(law, found, differing)
            if others:
                law = self._grown(law, found) or law.saying_nothing_of(others)
            found = law.seen(found)
        return self._members(law, found)

    def _curved(self, law: Law, found: Cell, places: set[int]) -> tuple[Law, set[int]]:
        """Returns the law with dims of these positions that grow by s + t * k in iteration k, where the law
        made them grow by a fixed amount; and the positions of the others.

        A size that falls to 0 and stays there is the greater of 0 and the linear one. Any other
        such dim is d + s * (k - p) + t * (k * (k - 1) - p * (p - 1)) / 2 before iteration k, with d before
        iteration p. Whether the next iteration satisfies that is checked when it has run.
        """
        if self.made:
            return law, places
        k, p, dims = sym(self.k), self.first, [*law.dims]
        starts, before = law.at(self.k, p), law.at(self.k, self.value - 1)
        for i in places:
            start, old, linear = starts[i], before[i], dims[i]
            assert start is not None and old is not None and linear is not None
            if law.cell.fixed[0] == "tensor" and self._falls(linear, found.dims[i]):
                dims[i] = maximum(linear, 0)
                continue
            grown = self.known.simplified(found.dims[i]) - old
            s, t = substitute(grown, {self.k: 0}), self._change(grown)
            fixed = self.k not in symbols(self._change(linear)) | symbols(t)
            if fixed and t != 0 and self.own.isdisjoint(symbols(s) | symbols(t)):
                dims[i] = start + s * (k - p) + t * (k * (k - 1) - p * (p - 1)) // 2
        return replace(law, dims=(*dims,)), {i for i in places if dims[i] is law.dims[i]}

    def _falls(self, linear: Dim, found: Dim) -> bool:
        """Returns whether a size is what a dim says, or 0 where that is negative."""
        return self.known.equal(found, maximum(substitute(linear, {self.k: self.value}), 0))

    def _runs(self, law: Law, found: Cell) -> tuple[Law, Cell]:
        by_runs, expected = gathered(found, self.known), law.at(self.k, self.value)
        if len(expected) != len(by_runs.dims) or self._differing(expected, by_runs.dims):
            return self._gathers_now(law, found), found
        return self._members(law, by_runs)

    def _change(self, dim: Dim) -> Dim:
        """Returns the difference between a dim for k + 1 and for k."""
        return substitute(dim, {self.k: sym(self.k) + 1}) - dim

    def _members(self, law: Law, found: Cell) -> tuple[Law, Cell]:
        """Checks the members of a cell whose dims satisfy the law."""
        pairs = zip(law.children, found.children, strict=True)
        checked = [self(child, member) for child, member in pairs]
        children = tuple(child for child, _ in checked)
        if any(a is not b for a, b in zip(children, law.children, strict=True)):
            law = replace(law, children=children)
        return law, replace(found, children=tuple(member for _, member in checked))

    def _differing(self, expected: Sequence[Dim | None], found: Sequence[Dim]) -> set[int]:
        """Returns the positions at which a dim is not what the law states."""
        pairs = enumerate(zip(expected, found, strict=True))
        return {i for i, (a, b) in pairs if a is not None and not self.known.equal(a, b)}

    def _gathers_now(self, law: Law, found: Cell, perhaps: bool = False) -> Law:
        """Returns the law of a list that gathers. The members that it gets are checked later.

        Raises Unlike where it cannot be such a list.
        """
        is_list = law.cell.fixed in SEQUENCES and len(found.children) >= len(law.cell.children)
        if self.made or not is_list:
            raise Unlike(found.trail)
        return Appends(law.cell, perhaps=perhaps)

    def _gathering(self, law: Appends, found: Cell) -> Law:
        """Returns the law, if the list has the members that it was given and one more; a law with `perhaps`
        if it has no more.

        Raises Unlike where its members differ.
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
        """Returns whether it is a value, or an object that the iteration created and that is referenced
        nowhere else.
        """
        own = cell.itself is None or cell.fixed[0] == REAL
        met = id(cell.itself) in self.things.before or id(cell.itself) in self.things.at_start
        return cell.movable and (own or not met) and (cell.plain or all(map(self._is_new, cell.children)))

    def _grown(self, law: Law, found: Cell) -> Law | None:
        """Returns the law of a number that did not change as the law requires, but by another amount; else
        None.
        """
        if self.made or law.cell.fixed != ("int",):
            return None
        (before,), (expected,) = law.at(self.k, self.value - 1), law.at(self.k, self.value)
        assert before is not None and expected is not None
        usual, step = self._step(before, expected), self._step(before, found.dims[0])
        if usual is None or step is None:
            return None
        (start,) = law.at(self.k, self.first)
        assert start is not None
        return Grows(law.cell, (None,), growth=Rate(start, self.first, *usual).also(*step))

    def _growing(self, law: Grows, found: Cell) -> Law:
        """Returns the law of a number that grows, extended by its growth in this iteration.

        Raises Unlike where the growth has no known bounds, or where a constructed state shows any growth.
        """
        step = self._step(self.numbers[id(law)], found.dims[0])
        if step is None or (self.made and step != (0, 0)):
            raise Unlike(found.trail)
        grown = law.growth if self.made else law.growth.also(*step)
        return law if grown == law.growth else replace(law, growth=grown)

    def _step(self, before: Dim, after: Dim) -> tuple[int | None, int | None] | None:
        """Returns the least and the greatest possible growth; None where sizes decide it."""
        step = self.known.simplified(after) - self.known.simplified(before)
        return (step, step) if isinstance(step, int) else self.known.between(step)
