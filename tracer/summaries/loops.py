"""Loops over a size: the body runs once for all iterations, if it provably represents them.

**The argument.** The loop makes elements 0 to N - 1, N a dim. The first p iterations run as they are (p is 1,
or 2 where the second still differs). Then a *law* is guessed: the state of the program (`heap.py`) before
iteration k, for p <= k <= N. It may vary with k in sizes and numbers only, by k times a fixed amount; the
amount is taken from one more iteration, which is run for the guess alone and leaves no trace. Then the state
is set to the law's for a new symbol k, the body runs with element k, with only p <= k < N known of k, and
afterwards the state has to satisfy the law for k + 1. The law holds for k = p by construction, so by
induction it holds throughout: each iteration does what the recorded one does, with its own k, and after the
last the state is the law's for N, also where N is p.

**Requirements on the body.** It has to take the same path for every k. A branch on k that the oracle decides
for all k does. One that it does not decide is followed on both sides, each in a run of the body of its own,
and either has to lead to the law for k + 1; so is a branch on data. A branch on sizes alone forks the path,
as everywhere. A requirement of an operator on k becomes a requirement for all k: `forall.py` states it
without k. Facts that hold in the body only are forgotten after it. A size that the data decide in the body
differs from iteration to iteration; a requirement on it there, without k, applies to all of them. A number
that the iterations leave different, and whose changes are not understood, must not be used any more.

**When it fails**, for whatever reason, `NotSummarised` ends the run, and the recording starts again, with two
iterations before the law, with the last one after it, where that alone seems to take another path, or with
the values of N one by one, as for any number that a program needs. So a loop that is left by `break`, whose
state does not fit a law, or cannot be seen, is no worse off than without this.

**Which loops.** A `for` over a size, and a `while` whose test changes by the same amount in each iteration.
Loops over five numbers or more are summarised, too, where their branches would multiply the paths. If the
number of an iteration decides whether it adds an element to a list, `counting.py` gives the number of
elements.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import CodeType, FrameType
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from ...constraints.ir.language import Constraint, Dynamic, Tensor
from ...constraints.ir.program import Iteration, Node, Ref
from ...constraints.ir.system import Answer
from ...constraints.terms.counting import chosen
from ...constraints.terms.dims import Dim, Term, floordiv, sym, symbols
from ...constraints.terms.forall import for_all
from ...constraints.terms.formula import (
    Compare,
    Formula,
    all_of,
    any_of,
    conjuncts,
    eq,
    free_symbols,
    ge,
    implies,
    le,
    negate,
    rewrite,
)
from ..bytecode.codes import instruction, instructions
from ..bytecode.origins import here, is_inner, is_of_package
from ..host import patches
from ..host.interpreter import frame_above
from ..host.tensors import overrides_off
from ..ledger import Mark, Position
from ..patches import control, higher_order
from ..recorder import Recorder
from ..values import numbers, sequences
from ..values.numbers import Real, size
from ..values.sequences import Handle, Lazy, Repeated, RepeatingTuple, physical, refill
from ..values.symbolic import SymbolicTensor
from .cells import LASTING, Cell, Location, alike, runs, with_sizes
from .families import Families, Gathered, PathElements
from .heap import Function, Opaque, function_of, look, walk
from .laws import AsWritten, Check, Growth, Knowledge, Law, Things, Unlike, guess
from .plans import NotSummarised, Plans, Repetition, Site, Turn

T = TypeVar("T")

_Filled: TypeAlias = tuple[int, tuple[Any, ...]]
"""The members given to a list, with the identity of its law."""
MAX_WAYS: Final = 8
"""At most this many paths through a body are followed."""
MANY: Final = 5
"""Loops over at least this many numbers may be summarised."""


MANY_TIMES: Final = 1000
"""A `while` is taken for one without end if its test holds so often, at all sizes of a path."""


class Stage(Enum):
    """The purpose of the current iteration of the body."""

    ITSELF = auto()
    GUESS = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True)
class _BodyPath:
    """A finished path through the body."""

    given: dict[int, Cell]
    """The elements that it adds to lists that gather, by the identity of their laws."""
    data: tuple[str, ...]
    """The sizes that the data decide on it."""
    turns: tuple[Turn, ...]


# --- one loop --------------------------------------------------------------------------------------------


class Loop:
    """One execution of a `for` over a symbolic sequence."""

    def __init__(self, run: Recorder, sequence: Lazy, site: Site, frame: FrameType) -> None:
        self.run, self.sequence, self.site = run, sequence, site
        self.loops: Loops = run.loops
        self.count = run.simplified(sequence.count)
        self.index = ""
        self.stage: Stage | None = None
        """None before the first iteration and after the last."""
        self.called: dict[Function, dict[str, Any]] = {}
        self._own: set[Function] = set()
        """The functions that contain the loop itself."""
        self.turns: list[Turn] = []
        self._planned: list[bool] = []
        self._ways: list[list[bool]] = []
        self._looked_at = 0
        self._things = Things({}, {})
        self._numbers: dict[int, Dim] = {}
        """By the identity of the law of each number that grows, its stand-in."""
        self._counts: frozenset[str] = frozenset()
        """The names of all stand-ins for numbers that grow."""
        self._within: list[Formula] = []
        """Bounds of these numbers."""
        self._filled: dict[int, tuple[Any, ...]] = {}
        """By the identity of the law of each list that gathers, the members that it was last given."""
        self._ended: list[_BodyPath] = []
        """The finished paths through the body."""
        self._end_of_law: Dim = 0
        """The law holds before iterations up to this one."""
        self._maker: FrameType | None = frame
        self._frames: tuple[FrameType, ...] = ()
        self._elements: Iterator[Any] | None = None
        self.gathers: FrameType | None = None
        """The frame of the list comprehension that the loop is, whose list no code can access until it ends.
        """
        self._filter: Formula | None = None
        """The condition on the iteration's number under which a list comprehension keeps an element."""
        self._gathered: list[tuple[Stage, tuple[str, ...]]] = []
        """For each iteration its purpose, and the sizes that the data decided in it."""
        self._first_datum = 0
        """The number of sizes that the data had decided before the iteration that represents all."""
        self._last = 0
        """The number of iterations that run as they are after the law."""
        self._first = 0
        """The number of iterations that run as they are before the law."""
        self._around = run.calls.depth
        """The number of calls and loops over numbers that contain this loop."""

    @property
    def varying(self) -> frozenset[str]:
        """Returns the symbols that are different numbers in different iterations."""
        return frozenset((self.index, *self._data))

    @property
    def _data(self) -> list[str]:
        """Returns the sizes that the data decide in the body."""
        return [*self.run.generator.said.unbacked][self._first_datum :]

    # ---- what Python asks

    def step(self, handle: Handle, frame: FrameType) -> Any:
        """Returns the next element. Raises StopIteration after the last."""
        if self._elements is None:
            self._elements = self._begin(handle, frame)
        elif self._frames and frame is not self._frames[0]:
            self.fail("its iterator is used elsewhere")
        return next(self._elements)

    def left(self) -> None:
        """Called when the program has released the iterator."""
        if self.stage in (Stage.GUESS, Stage.ALL):
            self.loops.fails(self.failed("the loop is left before its end"))
        self._end()

    def fail(self, reason: str) -> NoReturn:
        raise self.loops.fails(self.failed(reason))

    def failed(self, reason: str) -> NotSummarised:
        """Returns the exception that restarts the recording, for this reason."""
        called = {function: space for function, space in self.called.items() if function not in self._own}
        return NotSummarised(self.site, reason, called)

    def _begin(self, handle: Handle, frame: FrameType) -> Iterator[Any]:
        maker, self._maker = self._maker, None
        peeled = self.loops.plans.peeled(self.site)
        frames = maker and _driven_by(handle, self.site, maker, frame)
        if isinstance(self.count, int) and not self.loops.plans.summarises(self.site):
            return self._one_by_one() if self.count >= MANY else self.sequence.all()
        self._last = self.loops.plans.peeled_behind(self.site)
        few = peeled is None or (isinstance(self.count, int) and self.count <= peeled + self._last + 1)
        if not frames or few or peeled is None:
            return self.sequence.all()
        self._frames = frames
        self._own = {function_of(f.f_code) for f in frames}
        self.called = {function_of(f.f_code): f.f_globals for f in frames}
        self.called.update(self.loops.plans.called(self.site))
        self.gathers = frames[-1] if frames[-1].f_code.co_name == "<listcomp>" else None
        self.index = self.run.index(_target(frame))
        return self._iterations(self.count, peeled)

    def repeats(self, frame: FrameType, peeled: int) -> None:
        """Begins the loop as a `while` in the frame."""
        self._maker, self._frames = None, (frame,)
        self._own = {function_of(frame.f_code)}
        self.called = {function_of(frame.f_code): frame.f_globals}
        self.called.update(self.loops.plans.called(self.site))
        self.index = self.run.index("step")
        self._elements = self._iterations(self.count, peeled)

    def goes_on(self, test: Formula) -> bool:
        """Returns the outcome of a `while` test after an iteration: whether there is another one.

        The test must hold there exactly if the number of the next iteration is less than `count`; else the
        loop fails.
        """
        assert self._elements is not None
        if self.stage is not None:
            done = sym(self.index) if self.stage is Stage.ALL else len(self._gathered)
            following, last = le(done + 1, self.count - 1), eq(done + 1, self.count)
            judged = self.run.judged
            goes_on = judged(following) is Answer.NEVER or judged(test, (following,)) is Answer.ALWAYS
            ends = judged(last) is Answer.NEVER or judged(test, (last,)) is Answer.NEVER
            if test != following and not (goes_on and ends):
                self.fail("a `while` does not end where it was thought to")
        return next(self._elements, None) is not None

    def _one_by_one(self) -> Iterator[Any]:
        with self.run.calls.within(self.site):
            yield from self.sequence.all()

    def _end(self) -> None:
        self.stage = None
        self.loops.leave(self)
        self._frames, self.gathers = (), None

    # ---- the iterations

    def _iterations(self, n: Dim, first: int) -> Iterator[Any]:
        run, k = self.run, self.index
        self.loops.enter(self)
        start, self._first = self._look(), first
        for i in range(first):
            if not run.truth(ge(n, i + 1)):
                return self._end()
            yield from self._element(i, Stage.ITSELF)
        if self._last and not run.truth(ge(n, first + 1)):
            return self._end()
        n = self._end_of_law = n - self._last
        if run.judged(ge(n, first + 1)) is not Answer.NEVER:
            law, found, calls = yield from self._guess(n, first)
            self._things = Things(start.value, law.cell.value)
            whole = run.mark()
            self._first_datum = whole.position.unbacked
            self._ways = [[]]
            while self._ways:
                self._planned, self.turns = self._ways.pop(), []
                begun = run.position
                self._make(law, found, sym(k), carry=True)
                mark = run.mark()
                for known in self._every_iteration(n, first):
                    run.assume(known)
                yield from self._element(sym(k), Stage.ALL)
                weaker, found = self._check(law, sym(k) + 1, run)
                if weaker is not law:
                    law, self._ways, self._looked_at, self._ended = weaker, [[]], 0, []
                    self._gathered[first:] = [(Stage.GUESS, ())] * (len(self._gathered) - first)
                    run.start_again(whole)
                    continue
                nested = run.position.iterations > mark.position.iterations
                if not self.turns and not nested and calls != run.calls_since(mark):
                    self.fail("one iteration calls what another does not")
                given = dict(_given(law, found, {key: len(kept) for key, kept in self._filled.items()}))
                self._ended.append(_BodyPath(given, run.data_since(begun), tuple(self.turns)))
                self._conclude(mark, begun, found, n, first)
            self._filled = self._whole(law, n)
            self._make(law, found, n, carry=False)
            self.loops.met |= _tensors(found)
            self.loops.ended[k] = self.site
        if self._last:
            yield from self._element(n, Stage.ITSELF)
        return self._end()

    def _guess(self, n: Dim, first: int) -> Generator[Any, None, tuple[Law, Cell, tuple[str, ...]]]:
        """Runs one more iteration and yields its element; returns the law, the state, and the functions that
        were called.

        Nothing else of that iteration is kept.
        """
        run = self.run
        before, mark = self._look(), run.mark()
        run.assume(ge(n, first + 1))
        yield from self._element(first, Stage.GUESS)
        after = self._look()
        calls, data = run.calls_since(mark), frozenset(run.data_since(mark.position))
        law, found = self._attempt(lambda: guess(before, after, self.index, first, run, data))
        run.erase(mark)
        run.forget(mark)
        return self._attempt(lambda: law.without(data)), found, calls

    def _element(self, k: Dim, stage: Stage) -> Iterator[Any]:
        """Yields element k, for which the body then runs."""
        self.stage = stage
        mark = self.run.position
        yield self.sequence.at(k)
        self._gathered.append((stage, self.run.data_since(mark)))
        self.stage = Stage.ITSELF

    def _look(self) -> Cell:
        """Returns the state of the program, as far as the body can access it."""
        try:
            with overrides_off(), self.loops.unwatched():
                return walk(self.run, self._frames, self.called)
        except Opaque as reason:
            self.fail(f"{reason} cannot be seen")

    def _check(self, law: Law, value: Dim, known: Knowledge, made: bool = False) -> tuple[Law, Cell]:
        """Checks the state against the law; returns the law or a weaker one that it satisfies, and the state.
        """
        found = self._look()
        check = Check(self.index, self._first, value, self._things, known, self._numbers, self._filled, made)
        return self._attempt(lambda: check(law, found))

    def _attempt(self, compare: Callable[[], T]) -> T:
        try:
            with self.loops.unwatched():
                return compare()
        except Unlike as trail:
            self.fail(f"{trail} goes on in a way that is not understood")

    # ---- making the state what the law says

    def _make(self, law: Law, found: Cell, value: Dim, carry: bool) -> None:
        """Changes the state, as it was last found, into the law's for k = value, and checks the result.

        With `carry`, each tensor that an iteration passes to the next gets a node of its own.
        """
        self._numbers, self._within = {}, []
        self._write(law, found, value, carry)
        self._grow(law, found, value, carry)
        if self._check(law, value, AsWritten(self.run), made=True)[0] is not law:
            self.fail("the state cannot be made what it should be")

    def _write(self, law: Law, cell: Cell, value: Dim, carry: bool) -> None:
        if law.gathers:
            return
        for child, member in zip(law.children, cell.children, strict=True):
            self._write(child, member, value, carry)
        if law.by_runs:
            return
        if law.grows is not None:
            dims: tuple[Dim, ...] = (self._number(law, law.grows, value),)
        else:
            found = enumerate(law.at(self.index, value))
            dims = tuple(self._unknown(law, i) if d is None else d for i, d in found)
        if dims != cell.dims or law.cell.fixed != cell.fixed:
            self._put(cell, self._made(law, law.seen(cell), dims, carry))
        elif carry and cell.ref != law.cell.ref:
            cell.value.ref = self._carried(law.cell, cell.value.value)

    def _number(self, law: Law, growth: Growth, value: Dim) -> Term:
        """Returns the stand-in for a number that grows, which the data decide."""
        low, high = growth.between(value)
        varies = self.index in symbols(value)
        known = growth.bounds(self._end_of_law) if varies else (low, high)
        number = self.run.generator.fresh("count", *known)
        self._within += [] if low is None else [ge(number, low)]
        self._within += [] if high is None else [le(number, high)]
        self._numbers[id(law)] = number
        self._counts |= symbols(number)
        return number

    def _unknown(self, law: Law, place: int) -> Dim:
        """Returns the stand-in for a number about which its law says nothing: the program must not use it.
        """
        name = self.run.index("some")
        self.loops.ended[name] = self.site
        return sym(name)

    def _put(self, cell: Cell, value: Any) -> None:
        if cell.place is None:
            self.fail(f"{cell.trail} changes where it cannot be written to")
        self.loops.remember(cell.place)
        cell.place.write(value)

    def _made(self, law: Law, cell: Cell, dims: tuple[Dim, ...], carry: bool) -> Any:
        """Returns the value of the cell with other numbers in it."""
        run, old = self.run, cell.value
        match cell.fixed[0]:
            case "int":
                return size(run, dims[0])
            case "quotient of sizes":
                p, q = dims
                return Real(run, (p, q), lambda: int(size(run, p)) / int(size(run, q)))
            case "tensor":
                tensor = with_sizes(cell.fixed, dims)
                ref = self._carried(law.cell if carry else cell, tensor)
                return SymbolicTensor(run, tensor, ref, old.dtype)
            case "repeated":
                return Repeated.each(run, dims[0], old.one)
        self.fail(f"{cell.trail} changes in a way that is not understood")

    def _carried(self, first: Cell, value: Tensor | Dynamic) -> Ref:
        """Returns a tensor that the loop carries from one iteration to the next; `first` is its initial
        value.
        """
        assert first.ref is not None
        ref = self.run.new_value(value)
        self.run.nodes.append(Node("carried", (("input", first.ref),), (ref.id,), here(self.run.names)))
        return ref

    def _grow(self, law: Law, cell: Cell, value: Dim, carry: bool) -> None:
        """Fills lists that grow, after all their members have been written."""
        members: Iterable[Any]
        if law.by_runs:
            counts = (count for count in law.at(self.index, value) if count is not None)
            members = _members(self.run, [*zip(counts, cell.children, strict=True)])
        elif law.gathers:
            if carry:
                count = self._number(law, self._filling, value) if law.perhaps else value - self._first
                out_of_sight = Repeated.of(self.run, count, self._not_yet)
                self._filled[id(law)] = *(one.held for one in law.cell.children), out_of_sight
            members = self._filled[id(law)]
        else:
            for child, member in zip(law.children, cell.children, strict=True):
                self._grow(child, member, value, carry)
            return
        if isinstance(cell.value, list):
            self.loops.remember_list(cell.value)
            refill(cell.value, members)
        else:
            self._put(cell, RepeatingTuple(members))

    def _not_yet(self, place: Dim) -> NoReturn:
        self.fail("an iteration looks at what others have gathered")

    @property
    def _filling(self) -> Growth:
        """Returns the growth of the length of a list that perhaps gathers."""
        return Growth(0, self._first, 0, 1)

    def _whole(self, law: Law, n: Dim) -> dict[int, tuple[Any, ...]]:
        """Returns, by the identity of the law of each list that gathers, the members that all iterations give
        it.

        Lists that get elements on the same paths have equally many.
        """
        together: dict[tuple[bool, tuple[bool, ...]], list[Law]] = {}
        for one in _gathering(law):
            by_ways = tuple(id(one) in way.given for way in self._ended)
            together.setdefault((one.perhaps, by_ways), []).append(one)
        filled: dict[int, tuple[Any, ...]] = {}
        for (perhaps, by_ways), lists in together.items():
            ways = [
                PathElements(tuple(way.given[id(one)] for one in lists), way.data, self._known(way, n))
                for way, gives in zip(self._ended, by_ways, strict=True)
                if gives
            ]
            filled.update(self._some(lists, ways, n) if perhaps else self._one_each(lists, ways, n))
        return filled

    def _known(self, way: _BodyPath, n: Dim) -> Formula:
        """Returns the facts that hold in an iteration that takes this path."""
        return all_of((*self._every_iteration(n, self._first), *(turn.known for turn in way.turns)))

    def _one_each(self, lists: Sequence[Law], ways: Sequence[PathElements], n: Dim) -> Iterator[_Filled]:
        """Yields the members of lists that get an element in each iteration."""
        data = [data for _, data in self._gathered[: self._first]]
        others = [
            [Gathered(i, *own) for i, own in enumerate(zip(cells, data, strict=False))]
            for cells in (one.cell.children[-self._first :] for one in lists)
        ]
        for one, (whole, fits) in zip(lists, self._families(n, ways, others), strict=True):
            same = fits and len(one.cell.children) >= self._first  # the first ones may have given it nothing
            kept = one.cell.children[: -self._first] if same else one.cell.children
            all_of_them = whole if same else whole.between(self._first)
            yield id(one), (*(member.held for member in kept), all_of_them)

    def _some(self, lists: Sequence[Law], ways: Sequence[PathElements], n: Dim) -> Iterator[_Filled]:
        """Yields the members of lists where the data decide which iterations add an element."""
        run = self.run
        if ways and any(self._is_of_sizes(turn) for way in self._ended for turn in way.turns):
            yield from self._chosen_by_sizes(lists, ways, n)
            return
        if not ways:
            yield from ((id(one), tuple(member.held for member in one.cell.children)) for one in lists)
            return
        count = run.generator.fresh("count", 0, n - self._first)
        made = self.loops.families.joined(run.index("kept"), count, ways, self.index)
        if made is None:
            self.fail("the elements that a list gathers differ in more than their shape")
        body, cells = made
        for one, cell in zip(lists, cells, strict=True):
            several = self.loops.families.gathered(body, cell)
            yield id(one), (*(member.held for member in one.cell.children), several)

    def _chosen_by_sizes(
        self, lists: Sequence[Law], ways: Sequence[PathElements], n: Dim
    ) -> Iterator[_Filled]:
        """Yields the members of lists where the number of an iteration decides whether it adds an element."""
        given = [bool(way.given.keys() & {id(one) for one in lists}) for way in self._ended]
        turns = [way.turns[0] for way, gives in zip(self._ended, given, strict=True) if gives and way.turns]
        several = self._of_those(turns[0].known if turns else None, ways, self._first, n)
        for one, all_of_them in zip(lists, several, strict=True):
            yield id(one), (*(member.held for member in one.cell.children), all_of_them)

    def _of_those(
        self, formula: Formula | None, ways: Sequence[PathElements], first: int, n: Dim
    ) -> Iterator[Repeated]:
        """Yields for each list the elements from those iterations, from the first on, whose number satisfies
        the formula. It is the only branch in the body.
        """
        run, families = self.run, self.loops.families
        asked = {turn.formula for way in self._ended for turn in way.turns}
        single = len(ways) == 1 and len(self._ended) == 2 and len(asked) == 1
        single = single and self._counts.issuperset(self._data)
        found = None if formula is None or not single else chosen(formula, self.index, first, n)
        made = None if found is None else families.joined(self.index, n, ways)
        if found is None or made is None:
            self.fail("sizes decide how many elements a list has")
        body, cells = made
        for cell in cells:
            whole, count = families.gathered(body, cell), run.simplified(found.count)
            if whole.alike:
                yield Repeated.each(run, count, whole.one)
            elif (at := found.at) is not None:
                yield whole.moved(count, at)
            else:
                self.fail("no size says which iterations give an element")

    def _is_of_sizes(self, turn: Turn) -> bool:
        """Returns whether sizes alone decide the branch."""
        return turn.formula is not None and free_symbols(turn.formula).isdisjoint(self._data)

    # ---- what the body has said

    def way(self, formula: Formula | None) -> bool:
        """Returns the outcome of a branch that differs between iterations: this time one of the two."""
        if formula is not None:
            self.suspects_last(formula)
            self._notes_filter(formula)
        step = len(self.turns)
        taken = self._planned[step] if step < len(self._planned) else True
        if step >= len(self._planned):
            self._ways.append([*(turn.taken for turn in self.turns), False])
            self._looked_at += 1
            if self._looked_at >= MAX_WAYS:
                self.run.calls.summarise(self._around)
                self.fail("there are too many ways through the body")
        turn = Turn(formula, taken, self.run.position.constraints)
        self.turns.append(turn)
        if formula is not None:
            self.run.assume(turn.known)
        return taken

    def suspects_last(self, formula: Formula) -> None:
        """Notes if a branch would have one outcome were it not for the last iteration."""
        now = self._first if self.stage is Stage.GUESS else sym(self.index)
        if self._last or symbols(self.count).isdisjoint(free_symbols(formula)):
            return
        if self.run.judged(formula, (le(now, self.count - 2),)) is not Answer.SOMETIMES:
            self.loops.plans.suspect(self.site)

    def _conclude(self, mark: Mark, start: Position, found: Cell, n: Dim, first: int) -> None:
        """Turns the requirements of the body on k into requirements for all k; forgets the facts about k."""
        run = self.run
        unbacked = run.generator.said.unbacked
        if any(self.index in free_symbols(unbacked[name]) for name in self._data):
            self.fail("the data decides a size in the body, within bounds that differ")
        run.drop_unused(start, mark.position, {*_refs(found)})
        said, conditions = run.said_since(mark)
        run.forget(mark)
        for place, constraint in said:
            while conditions and conditions[0].after <= place:
                run.branch(conditions.pop(0))
            guards = [turn.known for turn in self.turns if turn.after <= place]
            formula = implies(all_of(guards), constraint.formula)
            run.require_instead(constraint, self._for_all(formula, n, first, constraint))
        for condition in conditions:
            run.branch(condition)
        run.iterations.append(Iteration(self.index, first, n, start.nodes, run.position.nodes))

    def _every_iteration(self, n: Dim, first: int) -> tuple[Formula, ...]:
        """Returns the facts about the number of the iteration that represents all, and about numbers that
        grow.
        """
        k = sym(self.index)
        return ge(k, first), le(k, n - 1), *self._within

    def _for_all(self, formula: Formula, n: Dim, first: int, of: Constraint) -> Formula:
        """Returns the formula for all k with first <= k <= n - 1, an interval that may be empty.

        Where it holds for k = first - 1 as well, it suffices to require it for all k from there on. That
        interval is not empty, so no case has to be distinguished.
        """
        run, k = self.run, self.index
        if not free_symbols(formula).isdisjoint(self._data):
            if k in free_symbols(formula):
                return self._certain(formula, n, first, of)
            if run.judged(formula, self._every_iteration(n, first)) is Answer.ALWAYS:
                return True
        none: Formula = run.judged(le(n, first)) is not Answer.NEVER and le(n, first)
        before = rewrite(formula, {k: first - 1})
        whole: Formula | None
        if run.judged(before) is Answer.ALWAYS:
            if before == formula:
                return True
            whole = for_all(formula, k, first - 1, n - 1)
        else:
            whole = for_all(formula, k, first, n - 1)
            whole = None if whole is None else any_of((none, whole))
        if whole is not None:
            return all_of(part for part in conjuncts(whole) if run.judged(part) is not Answer.ALWAYS)
        return self._certain(formula, n, first, of)

    def _certain(self, formula: Formula, n: Dim, first: int, of: Constraint) -> Formula:
        """Returns True for a formula that holds in any case; any other formula fails the loop."""
        if self.run.judged(formula, self._every_iteration(n, first)) is Answer.ALWAYS:
            return True
        self.fail(f"{of.reason}: not understood for all iterations")

    # ---- list comprehensions

    def close(self, gathered: list[Any]) -> None:
        """Changes the result of a list comprehension so that one element represents those of all iterations
        that one iteration represents.
        """
        if not gathered or not any(stage is Stage.ALL for stage, _ in self._gathered):
            return None  # no way through the body gives an element, or none stands for several
        if self._filter is not None:
            return self._close_filtered(gathered, self._filter)
        if len(gathered) != len(self._gathered):
            self.fail("not every iteration gives an element")
        stages = [(element, *made) for element, made in zip(gathered, self._gathered, strict=True)]
        members = [element for element, stage, _ in stages if stage is Stage.ITSELF]
        of_all = [element for element, stage, _ in stages if stage is Stage.ALL]
        place = len(members) - self._last
        if of_all:
            members.insert(place, Repeated.each(self.run, self.count - len(members), of_all[-1]))
        cells = self._look_at([*members, *of_all])
        ways = cells[len(members) :]
        sized_by_data = any(made for _, stage, made in stages if stage is Stage.ALL)
        same = all(alike(ways[-1], cell, self.run.simplified) for cell in ways)
        if sized_by_data or not same or any(_mentions(cell, self.index) for cell in ways):
            return self._close_family(gathered)
        self.loops.remember_list(gathered)
        refill(gathered, _members(self.run, runs(cells[: len(members)], self.run.simplified)))

    def _close_filtered(self, gathered: list[Any], formula: Formula) -> None:
        """As `close`, for a comprehension that keeps an element where the formula holds of the iteration's
        number.

        The formula is also evaluated for the iterations that run as they are. The path that is taken first is
        the one that adds an element.
        """
        *answers, guess = (self._asked_at(formula, i) for i in range(self._first + 1))
        own = [answer for answer in answers if answer is Answer.ALWAYS]
        supposed = guess is not Answer.NEVER
        gives = [way for way in self._ended if way.turns and way.turns[0].known == formula]
        known = Answer.SOMETIMES not in answers and not self._last and len(gives) == 1
        if not known or len(gathered) != len(own) + supposed + 1:
            self.fail("not every iteration gives an element")
        cells = self._look_at([*gathered[: len(own)], gathered[-1]])
        ways = [PathElements((cells[-1],), gives[0].data, self._known(gives[0], self.count))]
        (several,) = self._of_those(formula, ways, self._first, self.count)
        self.loops.remember_list(gathered)
        refill(gathered, [*gathered[: len(own)], several])

    def _asked_at(self, formula: Formula, i: int) -> Answer:
        """Returns whether the formula holds for iteration i, if it exists."""
        return self.run.judged(rewrite(formula, {self.index: i}), (ge(self.count, i + 1),))

    def _notes_filter(self, formula: Formula) -> None:
        """Notes if the branch is the `if` of the list comprehension that the loop is.

        Such a branch goes back to the `for` where no element is kept.
        """
        frame: FrameType | None = frame_above(1)
        while frame is not None and is_of_package(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None or frame is not self.gathers:
            return
        following = (i for at, i in instructions(frame.f_code).items() if at >= frame.f_lasti)
        jump = next((i for i in following if i.opname.startswith("POP_JUMP")), None)
        if jump is not None and instructions(frame.f_code)[jump.argval].opname == "FOR_ITER":
            self._filter = formula if jump.opname.endswith("FALSE") else negate(formula)

    def _look_at(self, elements: list[Any]) -> list[Cell]:
        """Returns the cell of each element."""
        try:
            with overrides_off():
                return [look(self.run, element) for element in elements]
        except Opaque as reason:
            self.fail(f"{reason} cannot be seen")

    def _close_family(self, gathered: list[Any]) -> None:
        """As `close`, for elements that have sizes of their own, which the data decide."""
        cells = self._look_at(gathered)
        places, ways, others = self._places(), [], []
        known = (self._known(way, self._end_of_law) for way in self._ended)
        for cell, (stage, data) in zip(cells, self._gathered, strict=True):
            if stage is Stage.ALL:
                ways.append(PathElements((cell,), data, next(known)))
            elif stage is Stage.ITSELF:
                others.append(Gathered(next(places), cell, data))
        ((whole, same),) = self._families(self.count, ways, [others])
        first, last = others[: self._first], others[self._first :]
        if not same:
            whole = whole.between(len(first), len(last))
        members = [whole] if same else [*(m.cell.held for m in first), whole, *(m.cell.held for m in last)]
        self.loops.remember_list(gathered)
        refill(gathered, members)

    def _families(
        self, n: Dim, ways: Sequence[PathElements], others: Sequence[Sequence[Gathered]]
    ) -> list[tuple[Repeated, bool]]:
        """Returns, for each list, the `Repeated` that represents the elements of all n iterations, and
        whether it also fits the elements that other iterations added.
        """
        families = self.loops.families
        by_sizes = any(self._is_of_sizes(turn) for way in self._ended for turn in way.turns)
        if by_sizes and any(not families.alike(ways[0].cells, way.cells) for way in ways):
            self.fail("sizes decide which of several shapes the elements of a list have")
        made = families.joined(self.index, n, ways)
        if made is None:
            self.fail("the elements that a list gathers differ in more than their shape")
        body, cells = made
        pairs = zip(cells, others, strict=True)
        return [(families.gathered(body, one), families.stands_for(body, one, own)) for one, own in pairs]

    def _places(self) -> Iterator[Dim]:
        """Yields the numbers of the iterations that run as they are."""
        yield from range(self._first)
        yield from (self.count - behind for behind in range(self._last, 0, -1))


def _gathering(law: Law) -> Iterator[Law]:
    """Yields the laws of lists that gather."""
    if law.gathers:
        yield law
    for child in law.children:
        yield from _gathering(child)


def _given(law: Law, found: Cell, before: Mapping[int, int]) -> Iterator[tuple[int, Cell]]:
    """Yields the elements that an iteration added to lists that gather, by the identity of their laws.

    `before` has the former number of members of each list.
    """
    if law.gathers:
        if len(found.children) > before[id(law)]:
            yield id(law), found.children[-1]
        return
    for child, member in zip(law.children, found.children, strict=True):
        yield from _given(child, member, before)


def _members(run: Recorder, found: list[tuple[Dim, Cell]]) -> Iterator[Any]:
    """Yields the members of a list, given the numbers of equal neighbours."""
    for count, one in found:
        element = one.value if one.place is None else one.place.read()
        if isinstance(count, int):
            yield from [element] * count
        else:
            yield Repeated.each(run, count, element)


def _mentions(cell: Cell, k: str) -> bool:
    return any(k in symbols(d) for d in cell.dims) or any(_mentions(child, k) for child in cell.children)


def _tensors(cell: Cell) -> dict[int, SymbolicTensor]:
    """Returns the tensors in a state, by identity."""
    own = {id(cell.value): cell.value} if cell.ref is not None else {}
    return own | {key: t for child in cell.children for key, t in _tensors(child).items()}


def _refs(cell: Cell) -> Iterator[int]:
    """Yields the ids of the tensors in a state."""
    if cell.ref is not None:
        yield cell.ref.id
    for child in cell.children:
        yield from _refs(child)


def _target(frame: FrameType) -> str:
    """Returns the variable that a `for` assigns to; a fixed word if it assigns to several."""
    code = instructions(frame.f_code)
    following = next(i for i in code.values() if i.offset > frame.f_lasti and i.opname != "EXTENDED_ARG")
    name = str(following.argval) if following.opname.startswith("STORE_") else ""
    return name if name.isascii() and name.isidentifier() and name not in _WORDS else "step"


_WORDS: Final = {"min", "max", "isqrt", "and", "or", "not"}
"""Words with a meaning in the text of a dim."""


def _driven_by(
    handle: Handle, site: Site, maker: FrameType, frame: FrameType
) -> tuple[FrameType, ...] | None:
    """Returns the frames whose code is the body of the loop; None where it is not known to be a `for`, or not
    by itself.

    `for` makes an iterator and steps it at once, in one frame; a comprehension is given it as its argument. A
    generator expression is part of the loop that consumes it, which has to be one of this package's own: one
    in C, or one that consumes other iterators as well, has state of its own.
    """
    code = frame.f_code
    if instruction(frame).opname != "FOR_ITER":
        return None
    loops = [i.offset for i in instructions(code).values() if i.opname == "FOR_ITER"]
    if frame is maker:
        following = (i for i in instructions(code).values() if i.offset > site.offset)
        if next(i.offset for i in following if i.opname != "EXTENDED_ARG") != frame.f_lasti:
            return None
    elif frame.f_locals.get(".0") is not handle or frame.f_lasti != loops[0]:
        return None
    frames = [frame]
    while frames[-1].f_code.co_flags & inspect.CO_GENERATOR:
        outer = frames[-1].f_back
        if outer is None or outer.f_code.co_filename != sequences.__file__:
            return None
        if instruction(outer).opname != "FOR_ITER":
            return None
        frames.append(outer)
    code = frames[-1].f_code
    suspended = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    gathers = code.co_name in ("<setcomp>", "<dictcomp>") or (code.co_name == "<listcomp>" and len(loops) > 1)
    return None if code.co_flags & suspended or gathers else tuple(frames)


_PACKAGE: Final = __name__.partition(".")[0] + "."
_GOING_THROUGH: Final = {control.__name__, higher_order.__name__, patches.__name__, f"{__package__}.merging"}
_CONSUMING: Final = ("symbolic_list", "symbolic_sum", "_reduce", "<listcomp>", "__torch_function__")
"""Modules and functions of this package that call functions of the program."""


def _is_ours(frame: FrameType) -> bool:
    """Returns whether it is a function of this package."""
    name: str = frame.f_globals.get("__name__", "")
    return name.startswith(_PACKAGE)


def _is_programs(frame: FrameType, run: CodeType) -> bool:
    """Returns whether the program makes the call, and not this package in order to record one.

    `run` is the code that called the program.
    """
    outer = frame.f_back
    while outer is not None:
        code = outer.f_code
        through = outer.f_globals.get("__name__") in _GOING_THROUGH or code.co_name in _CONSUMING
        if is_of_package(code.co_filename) and not through:
            return code is run
        outer = outer.f_back
    return True


def _asking() -> FrameType | None:
    """Returns the frame of the program that is comparing sizes; None where the rule of an operator compares
    them.
    """
    frame: FrameType | None = frame_above(2)
    while frame is not None and is_of_package(frame.f_code.co_filename):
        if frame.f_globals.get("__name__") not in _COMPARING:
            return None
        frame = frame.f_back
    return frame


_COMPARING: Final = {__name__, numbers.__name__, f"{_PACKAGE}tracer.recording.record"}
"""Modules whose code runs when the program compares sizes."""


def _begins_while(frame: FrameType) -> tuple[int, bool] | None:
    """Returns where the body of a `while` begins whose test the frame is evaluating, and whether an iteration
    precedes it; or None.
    """
    code = instructions(frame.f_code)
    at = [i for i in code.values() if i.offset >= frame.f_lasti and i.opname != "EXTENDED_ARG"]
    jump = at[0] if at[0].opname.startswith("POP_JUMP") else at[1] if len(at) > 1 else at[0]
    if jump.opname == "POP_JUMP_BACKWARD_IF_TRUE":
        return int(jump.argval), True
    if jump.opname == "POP_JUMP_FORWARD_IF_FALSE":
        following = next((i.offset for i in at if i.offset > jump.offset), None)
        return None if following is None else (following, False)
    return None


def _continues_while(frame: FrameType) -> int | None:
    """Returns where the body of a `while` begins, if the frame is evaluating a part of its test after an
    iteration, and not the last part: `while a and b`.
    """
    ends: list[int] = []
    for i in (i for i in instructions(frame.f_code).values() if i.offset >= frame.f_lasti):
        if i.opname == "POP_JUMP_BACKWARD_IF_TRUE":
            return int(i.argval) if ends and min(ends) > i.offset else None
        if i.opname == "POP_JUMP_FORWARD_IF_FALSE":
            ends.append(int(i.argval))
        elif i.opname.startswith(_STATEMENTS):
            return None
    return None


_STATEMENTS: Final = ("STORE_", "POP_", "JUMP_", "FOR_", "RETURN_", "RAISE_", "DELETE_", "SEND")
"""What instructions begin with that occur between expressions."""


# --- all loops of a run ----------------------------------------------------------------------------------


_NOTHING: Final = contextlib.nullcontext()


@contextlib.contextmanager
def _paused() -> Iterator[None]:
    """Stops the profiler inside the block."""
    profiler = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(profiler)


class Loops:
    """The active loops of one run."""

    def __init__(self, run: Recorder, plans: Plans, descent: type[Any]) -> None:
        self.run, self.plans = run, plans
        self.descent = descent
        self.failure: NotSummarised | None = None
        """The reason why the run has to end, where that could not be raised at once."""
        self.ended: dict[str, Site] = {}
        """Indices of loops that are over: no later size should mention them."""
        self.families = Families(run)
        self.met: dict[int, SymbolicTensor] = {}
        """Tensors that loops have left behind, by identity."""
        self.calls: list[Any] = []
        """The calls whose paths are being merged, the innermost last."""
        self._active: list[Loop] = []
        self._within_test = False
        """Whether the test of a `while` is being answered."""
        self._whiles: dict[int, dict[Site, Loop]] = {}
        """The loop of a `while`, by the identity of its frame and the site where its body begins."""
        self._tests: dict[tuple[int, Site], Dim] = {}
        """The term that a `while` last tested after an iteration."""
        self._again: Counter[Formula] = Counter()
        """How often conditions were asked whose outcome was known."""
        self._closing: list[tuple[FrameType, Loop]] = []
        self._undo: dict[tuple[int, Any], Callable[[], object]] = {}
        self._kept: list[Any] = []
        self._profiler: Any = None
        self._noted: dict[int, CodeType] = {}
        """Code, by identity, that all active loops know to be called, or that is not the program's."""

    def close(self) -> None:
        """Releases the run."""
        del self.run
        self.families.close()

    def ranges(self, *args: Any) -> Any:
        """Returns a `range`, called by the program through the function that picks the run."""
        return sequences.counting_range(self.run, frame_above(3), *args)

    def repeats(self, test: Formula, asking: Callable[[Formula], bool]) -> bool | None:
        """Returns the outcome of a `while` test if the loop is summarised, else None.

        With t(0) = t >= 0 and t(k) = t - k*d, d >= 1, it has t // d + 1 iterations, which is assumed and then
        checked.
        """
        frame = None if self._within_test else _asking()
        place = None if frame is None else _begins_while(frame)
        if frame is None or place is None:
            return None
        self._within_test = True
        try:
            return self._while(test, asking, frame, place)
        finally:
            self._within_test = False

    def _while(
        self, test: Formula, asking: Callable[[Formula], bool], frame: FrameType, place: tuple[int, bool]
    ) -> bool | None:
        plans = self.plans
        site, is_behind = Site(frame.f_code, place[0]), place[1]
        loop = self._whiles.get(id(frame), {}).get(site)
        if loop is None and (whole := self._descent(frame)) is not None:
            return bool(whole.part(test))
        if loop is not None and is_behind:
            goes_on = loop.goes_on(test)
            if not goes_on:
                del self._whiles[id(frame)][site]
            return goes_on
        if loop is not None:
            loop.left()
            del self._whiles[id(frame)][site]
        if not is_behind and plans.descends(site):
            whole = self.descent(self.run, Lazy(self.run, 1, lambda k: True), site, frame)
            return asking(test) and self._begin(whole, frame, 1).goes_on(True)
        step, peeled = plans.repetitions.get(site), plans.peeled(site)
        if is_behind or step is None or peeled is None or not isinstance(test, Compare) or test.op != ">=":
            return None
        if not asking(test):
            return False
        count = self.run.simplified(floordiv(test.term, -step) + 1) if self.run.certain(ge(-step, 1)) else 0
        if isinstance(count, int):
            return True
        loop = Loop(self.run, Lazy(self.run, count, lambda k: True), site, frame)
        return self._begin(loop, frame, peeled).goes_on(True)

    def _begin(self, loop: Loop, frame: FrameType, peeled: int) -> Loop:
        self._whiles.setdefault(id(frame), {})[loop.site] = loop
        loop.repeats(frame, peeled)
        return loop

    def _descent(self, frame: FrameType) -> Any:
        """Returns the descent whose test consists of several parts, of which the frame evaluates one that is
        not the last.
        """
        body = _continues_while(frame) if id(frame) in self._whiles else None
        loop = None if body is None else self._whiles[id(frame)].get(Site(frame.f_code, body))
        return loop if isinstance(loop, self.descent) else None

    def notes_test(self, test: Formula | None) -> None:
        """Notes if a `while` tests, after an iteration, a term that has changed as it did in the iteration
        before.
        """
        if not isinstance(test, Compare) or self.watches:
            return
        frame = _asking()
        place = None if frame is None else _begins_while(frame)
        if frame is None or place is None:
            return
        body = place[0] if place[1] else _continues_while(frame)
        if body is None:
            return
        site = Site(frame.f_code, body)
        before = self._tests.get((id(frame), site))
        self._tests[id(frame), site] = test.term
        step = 0 if before is None else test.term - before
        alone = place[1] and test.op == ">="
        if before is not None and site not in self.plans.repetitions and (alone or isinstance(step, Term)):
            raise self.fails(Repetition(site, step))

    def ends(self, test: Formula) -> None:
        """Ends the run in a `while` whose iterations change nothing of what its test asks of sizes."""
        self._again[test] += 1
        if self._again[test] % MANY_TIMES:
            return
        frame = _asking()
        place = None if frame is None else _begins_while(frame)
        if frame is not None and ((place is not None and place[1]) or _continues_while(frame) is not None):
            reason = f"a `while` has not ended after {MANY_TIMES} iterations, which leave its test as it is"
            self.run.end(reason)

    def iterator(self, value: Lazy, frame: FrameType) -> Handle:
        """Returns the iterator of a `for` that begins in the frame."""
        return Handle(Loop(self.run, value, Site(frame.f_code, frame.f_lasti), frame))

    @property
    def summarising(self) -> Loop | None:
        """Returns the innermost loop whose body is running for more than one iteration, or None."""
        return next((loop for loop in reversed(self._active) if loop.stage in (Stage.GUESS, Stage.ALL)), None)

    @property
    def guessing(self) -> Iterator[Loop]:
        """Yields the loops whose body is running for a guess."""
        return (loop for loop in self._active if loop.stage is Stage.GUESS)

    @property
    def supposing(self) -> bool:
        """Returns whether the current code is running for a guess only."""
        return any(loop.stage is Stage.GUESS for loop in self._active)

    def turning(self, formula: Formula | None) -> Loop | None:
        """Returns the loop in whose iterations a branch may have different outcomes, or None."""
        loop = next((loop for loop in reversed(self._active) if loop.stage is Stage.ALL), None)
        if loop is None or formula is None:
            return loop
        return loop if self._varies(free_symbols(formula)) else None

    def varies(self, dim: Dim) -> bool:
        """Returns whether the dim differs from iteration to iteration."""
        return self._varies(symbols(dim))

    def _varies(self, names: frozenset[str]) -> bool:
        within = (loop for loop in self._active if loop.stage is Stage.ALL)
        return any(not names.isdisjoint(loop.varying) for loop in within)

    def fails(self, failure: NotSummarised) -> NotSummarised:
        """Notes why the run has to end, so that it is raised again if the program catches everything."""
        self.failure = failure
        return failure

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def forget_none(self, names: frozenset[str]) -> None:
        """Fails where a hidden object depends on the iterations of a loop."""
        for name in names & self.ended.keys():
            raise NotSummarised(self.ended[name], "the body has left something behind that was not seen", {})

    # ---- what is called while a loop is under way

    def enter(self, loop: Loop) -> None:
        self._watch()
        self._active.append(loop)

    def enter_call(self, call: Any) -> None:
        self._watch()
        self.calls.append(call)

    def leave_call(self, call: Any) -> None:
        self.calls.remove(call)
        self._rest()

    def leave(self, loop: Loop) -> None:
        if loop in self._active:
            self._active.remove(loop)
            if loop.gathers is not None:
                self._closing.append((loop.gathers, loop))
            self._rest()

    def _watch(self) -> None:
        self._noted.clear()
        if not self.watches:
            self._profiler = sys.getprofile()
            sys.setprofile(self._seen)

    def _rest(self) -> None:
        if not self.watches and sys.getprofile() == self._seen:
            sys.setprofile(self._profiler)

    def unwatched(self) -> contextlib.AbstractContextManager[None]:
        """Stops the profiler for a block that calls none of the program's functions."""
        return _paused() if self.watches else _NOTHING

    @property
    def watches(self) -> bool:
        """Returns whether a loop or a call is active that may have to be run differently."""
        return bool(self._active or self._closing or self.calls)

    def _seen(self, frame: FrameType, event: str, result: Any) -> None:
        """Notes, as a profiler's function, the functions called and the results of list comprehensions."""
        if event == "call":
            code = frame.f_code
            if id(code) in self._noted:
                return
            function = function_of(code)
            watching: tuple[Any, ...] = (*self._active, *self.calls)
            news = [one for one in watching if function not in one.called]
            never = is_inner(code.co_filename) or _is_ours(frame)
            if news and not never and _is_programs(frame, type(self.run).run.__code__):
                for one in news:
                    one.called[function] = frame.f_globals
                news = []
            if never or not news:
                self._noted[id(code)] = code
        elif event == "return" and self._closing and self._closing[-1][0] is frame:
            _, loop = self._closing.pop()
            self._rest()
            try:
                loop.close(result)
            except NotSummarised as failure:
                self.failure = failure

    # ---- what is undone at the end

    def remember(self, place: Location) -> None:
        """Saves the value at a location that is about to be overwritten, to restore it when the run ends."""
        if isinstance(place, LASTING):
            key = id(place.holder), place.name
            if key not in self._undo:
                self._kept.append(place.holder)
                self._undo[key] = functools.partial(place.write, place.read())

    def remember_list(self, target: list[Any]) -> None:
        key = id(target), refill
        if key not in self._undo:
            self._kept.append(target)
            self._undo[key] = functools.partial(refill, target, physical(target))

    def finish(self) -> NotSummarised | None:
        """Ends all loops, and restores what they overwrote; changes by the program itself stay.

        Returns the reason if the run does not count, else None.
        """
        left = self.summarising
        if left is not None and self.failure is None:
            self.failure = left.failed("the loop is left before its end")
        for loop in self._active:
            loop.stage = None
        self._active.clear()
        self._closing.clear()
        self.calls.clear()
        self._rest()
        for undo in reversed(self._undo.values()):
            undo()
        self._undo.clear()
        return self.failure
