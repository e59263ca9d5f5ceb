"""The elements that the iterations of a loop add to lists: one element represents those of many iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...constraints.ir.system import Answer
from ...constraints.terms.counting import chosen
from ...constraints.terms.dims import Dim, symbols
from ...constraints.terms.formula import Formula, all_of, free_symbols, ge, rewrite
from ..recorder import Recorder
from ..values.sequences import Repeated, refill
from .active import Stage
from .cells import Cell, alike, runs
from .families import Families, Gathered, PathElements
from .laws import Appends, Law
from .plans import Turn
from .summarised import Summarised

_Filled: TypeAlias = tuple[int, tuple[Any, ...]]
"""The members given to a list, with the identity of its law."""


@dataclass(frozen=True, slots=True)
class BodyPath:
    """A finished path through the body."""

    given: dict[int, Cell]
    """The elements that it adds to lists that gather, by the identity of their laws."""
    data: tuple[str, ...]
    """The sizes that the data decide on it."""
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class LoopElements:
    """The facts about the iterations of a loop, known once its body has run for all of them."""

    loop: Summarised
    index: str
    """The symbol of the number of the iteration that represents all."""
    first: int
    """The number of iterations that run as they are before that one."""
    last: int
    """The number of iterations that run as they are after it."""
    count: Dim
    """The number of all iterations."""
    every: Formula
    """The facts about the number of the iteration that represents all, and about numbers that grow."""
    iterations: Sequence[tuple[Stage, tuple[str, ...]]]
    """For each iteration its purpose, and the sizes that the data decided in it."""
    paths: Sequence[BodyPath]
    """The finished paths through the body."""
    counts: frozenset[str]
    """The names of all stand-ins for numbers that grow."""
    data: frozenset[str]
    """The sizes that the data decide in the body."""

    @property
    def run(self) -> Recorder:
        return self.loop.run

    @property
    def families(self) -> Families:
        return self.loop.loops.families

    @property
    def until(self) -> Dim:
        """The law holds before iterations up to this one."""
        return self.count - self.last

    def whole(self, law: Law) -> dict[int, tuple[Any, ...]]:
        """Returns, by the identity of the law of each list that gathers, the members that all iterations give
        it.

        Lists that get elements on the same paths have equally many.
        """
        together: dict[tuple[bool, tuple[bool, ...]], list[Appends]] = {}
        for one in lists_in(law):
            by_paths = tuple(id(one) in path.given for path in self.paths)
            together.setdefault((one.perhaps, by_paths), []).append(one)
        filled: dict[int, tuple[Any, ...]] = {}
        for (perhaps, by_paths), lists in together.items():
            added = [
                PathElements(tuple(path.given[id(one)] for one in lists), path.data, self._known(path))
                for path, gives in zip(self.paths, by_paths, strict=True)
                if gives
            ]
            filled.update(self._some(lists, added) if perhaps else self._one_each(lists, added))
        return filled

    def _known(self, path: BodyPath) -> Formula:
        """Returns the facts that hold in an iteration that takes this path."""
        return all_of((self.every, *(turn.known for turn in path.turns)))

    def _one_each(self, lists: Sequence[Appends], added: Sequence[PathElements]) -> Iterator[_Filled]:
        """Yields the members of lists that get an element in each iteration."""
        data = [data for _, data in self.iterations[: self.first]]
        others = [
            [Gathered(i, *own) for i, own in enumerate(zip(cells, data, strict=False))]
            for cells in (one.cell.children[-self.first :] for one in lists)
        ]
        for one, (whole, fits) in zip(lists, self._families(self.until, added, others), strict=True):
            same = fits and len(one.cell.children) >= self.first  # the first ones may have given it nothing
            kept = one.cell.children[: -self.first] if same else one.cell.children
            all_of_them = whole if same else whole.between(self.first)
            yield id(one), (*(member.held for member in kept), all_of_them)

    def _some(self, lists: Sequence[Appends], added: Sequence[PathElements]) -> Iterator[_Filled]:
        """Yields the members of lists where the data decide which iterations add an element."""
        run = self.run
        if added and self._branch_on_sizes:
            yield from self._chosen_by_sizes(lists, added)
            return
        if not added:
            yield from ((id(one), tuple(member.held for member in one.cell.children)) for one in lists)
            return
        count = run.generator.fresh("count", 0, self.until - self.first)
        made = self.families.joined(run.index("kept"), count, added, self.index)
        if made is None:
            self.loop.fail("the elements that a list gathers differ in more than their shape")
        body, cells = made
        for one, cell in zip(lists, cells, strict=True):
            several = self.families.gathered(body, cell)
            yield id(one), (*(member.held for member in one.cell.children), several)

    def _chosen_by_sizes(self, lists: Sequence[Appends], added: Sequence[PathElements]) -> Iterator[_Filled]:
        """Yields the members of lists where the number of an iteration decides whether it adds an element."""
        laws = {id(one) for one in lists}
        turns = [path.turns[0] for path in self.paths if path.turns and path.given.keys() & laws]
        several = self._of_those(turns[0].known if turns else None, added)
        for one, all_of_them in zip(lists, several, strict=True):
            yield id(one), (*(member.held for member in one.cell.children), all_of_them)

    def _of_those(self, formula: Formula | None, added: Sequence[PathElements]) -> Iterator[Repeated]:
        """Yields for each list the elements from those iterations that the law describes whose number
        satisfies the formula. It is the only branch in the body.
        """
        run, families = self.run, self.families
        asked = {turn.formula for path in self.paths for turn in path.turns}
        single = len(added) == 1 and len(self.paths) == 2 and len(asked) == 1
        single = single and self.counts.issuperset(self.data)
        found = None if formula is None or not single else chosen(formula, self.index, self.first, self.until)
        made = None if found is None else families.joined(self.index, self.until, added)
        if found is None or made is None:
            self.loop.fail("sizes decide how many elements a list has")
        body, cells = made
        for cell in cells:
            whole, count = families.gathered(body, cell), run.simplified(found.count)
            if whole.alike:
                yield Repeated.each(run, count, whole.one)
            elif (at := found.at) is not None:
                yield whole.moved(count, at)
            else:
                self.loop.fail("no size says which iterations give an element")

    @property
    def _branch_on_sizes(self) -> bool:
        """Returns whether sizes alone decide some branch in the body."""
        asked = (turn.formula for path in self.paths for turn in path.turns)
        return any(one is not None and free_symbols(one).isdisjoint(self.data) for one in asked)

    # ---- list comprehensions

    def close(self, gathered: list[Any], kept: Formula | None) -> None:
        """Changes the result of a list comprehension so that one element represents those of all iterations
        that one iteration represents. `kept` is the condition on the iteration's number under which the
        comprehension keeps an element, if it has one.
        """
        if not gathered or not any(stage is Stage.ALL for stage, _ in self.iterations):
            return None  # no path through the body gives an element, or none stands for several
        if kept is not None:
            return self._close_filtered(gathered, kept)
        if len(gathered) != len(self.iterations):
            self.loop.fail("not every iteration gives an element")
        stages = [(element, *made) for element, made in zip(gathered, self.iterations, strict=True)]
        elements = [element for element, stage, _ in stages if stage is Stage.ITSELF]
        of_all = [element for element, stage, _ in stages if stage is Stage.ALL]
        place = len(elements) - self.last
        if of_all:
            elements.insert(place, Repeated.each(self.run, self.count - len(elements), of_all[-1]))
        cells = self._look_at([*elements, *of_all])
        added = cells[len(elements) :]
        sized_by_data = any(made for _, stage, made in stages if stage is Stage.ALL)
        same = all(alike(added[-1], cell, self.run.simplified) for cell in added)
        if sized_by_data or not same or any(_mentions(cell, self.index) for cell in added):
            return self._close_family(gathered)
        self._refill(gathered, members(self.run, runs(cells[: len(elements)], self.run.simplified)))

    def _close_filtered(self, gathered: list[Any], formula: Formula) -> None:
        """As `close`, for a comprehension that keeps an element where the formula holds of the iteration's
        number.

        The formula is also evaluated for the iterations that run as they are. The path that is taken first is
        the one that adds an element.
        """
        *answers, guess = (self._asked_at(formula, i) for i in range(self.first + 1))
        own = [answer for answer in answers if answer is Answer.ALWAYS]
        supposed = guess is not Answer.NEVER
        gives = [path for path in self.paths if path.turns and path.turns[0].known == formula]
        known = Answer.SOMETIMES not in answers and not self.last and len(gives) == 1
        if not known or len(gathered) != len(own) + supposed + 1:
            self.loop.fail("not every iteration gives an element")
        cells = self._look_at([*gathered[: len(own)], gathered[-1]])
        added = PathElements((cells[-1],), gives[0].data, self._known(gives[0]))
        (several,) = self._of_those(formula, [added])
        self._refill(gathered, [*gathered[: len(own)], several])

    def _asked_at(self, formula: Formula, i: int) -> Answer:
        """Returns whether the formula holds for iteration i, if it exists."""
        return self.run.judged(rewrite(formula, {self.index: i}), (ge(self.count, i + 1),))

    def _close_family(self, gathered: list[Any]) -> None:
        """As `close`, for elements that have sizes of their own, which the data decide."""
        cells = self._look_at(gathered)
        numbers, paths = self._numbers(), iter(self.paths)
        added: list[PathElements] = []
        others: list[Gathered] = []
        for cell, (stage, data) in zip(cells, self.iterations, strict=True):
            if stage is Stage.ALL:
                added.append(PathElements((cell,), data, self._known(next(paths))))
            elif stage is Stage.ITSELF:
                others.append(Gathered(next(numbers), cell, data))
        ((whole, same),) = self._families(self.count, added, [others])
        if same:
            return self._refill(gathered, [whole])
        held = [one.cell.held for one in others]
        first, last = held[: self.first], held[self.first :]
        return self._refill(gathered, [*first, whole.between(len(first), len(last)), *last])

    def _refill(self, gathered: list[Any], elements: Iterable[Any]) -> None:
        self.loop.loops.remember_list(gathered)
        refill(gathered, elements)

    def _look_at(self, elements: list[Any]) -> list[Cell]:
        """Returns the cell of each element."""
        return [self.loop.look_at(element) for element in elements]

    def _families(
        self, n: Dim, added: Sequence[PathElements], others: Sequence[Sequence[Gathered]]
    ) -> list[tuple[Repeated, bool]]:
        """Returns, for each list, the `Repeated` that represents the elements of all n iterations, and
        whether it also fits the elements that other iterations added.
        """
        families = self.families
        if self._branch_on_sizes and any(not families.alike(added[0].cells, one.cells) for one in added):
            self.loop.fail("sizes decide which of several shapes the elements of a list have")
        made = families.joined(self.index, n, added)
        if made is None:
            self.loop.fail("the elements that a list gathers differ in more than their shape")
        body, cells = made
        pairs = zip(cells, others, strict=True)
        return [(families.gathered(body, one), families.stands_for(body, one, own)) for one, own in pairs]

    def _numbers(self) -> Iterator[Dim]:
        """Yields the numbers of the iterations that run as they are."""
        yield from range(self.first)
        yield from (self.count - behind for behind in range(self.last, 0, -1))


def lists_in(law: Law) -> Iterator[Appends]:
    """Yields the laws of lists that gather."""
    if isinstance(law, Appends):
        yield law
    for child in law.children:
        yield from lists_in(child)


def given_in(law: Law, found: Cell, before: Mapping[int, int]) -> Iterator[tuple[int, Cell]]:
    """Yields the elements that an iteration added to lists that gather, by the identity of their laws.

    `before` has the former number of members of each list.
    """
    if isinstance(law, Appends):
        if len(found.children) > before[id(law)]:
            yield id(law), found.children[-1]
        return
    for child, member in zip(law.children, found.children, strict=True):
        yield from given_in(child, member, before)


def members(run: Recorder, found: list[tuple[Dim, Cell]]) -> Iterator[Any]:
    """Yields the members of a list, given the numbers of equal neighbours."""
    for count, one in found:
        element = one.value if one.place is None else one.place.read()
        if isinstance(count, int):
            yield from [element] * count
        else:
            yield Repeated.each(run, count, element)


def _mentions(cell: Cell, k: str) -> bool:
    return any(k in symbols(d) for d in cell.dims) or any(_mentions(child, k) for child in cell.children)


