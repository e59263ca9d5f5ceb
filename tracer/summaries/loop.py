"""Loops over a size: the body runs once for all iterations, if it provably represents them.

**The argument.** The loop makes elements 0 to N - 1, N a dim. The first p iterations run as they are (p is 1,
or 2 where the second still differs). Then a *law* is guessed: the state of the program (`heap.py`) before
iteration k, for p <= k <= N. It may vary with k in sizes and numbers only, by k times a fixed amount; the
amount is taken from one more iteration, which is run for the guess alone and leaves no trace. What is known
where that iteration exists may not hold for N = p, for which the law is compared with the state once more.
Then the state is set to the law's for a new symbol k, the body runs with element k, with only p <= k < N
known of k, and afterwards the state has to satisfy the law for k + 1. The law holds for k = p, so by
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
number of an iteration decides whether it adds an element to a list, `loop_elements.py` gives the number of
elements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from types import FrameType
from typing import Any, NoReturn, TypeVar

from ...constraints.ir.language import Constraint, Dynamic, Tensor
from ...constraints.ir.program import Iteration, Node, Ref
from ...constraints.ir.system import Answer, Condition, in_order
from ...constraints.terms.dims import Dim, Term, sym, symbols
from ...constraints.terms.forall import for_all
from ...constraints.terms.formula import (
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
from ..bytecode.loops import comprehension, driven_by, is_kept_where, target
from ..bytecode.origins import here, is_of_package
from ..bytecode.stack import filled
from ..host.interpreter import frame_above
from ..ledger import Mark, Position
from ..recorder import Recorder
from ..values import sequences
from ..values.numbers import Real, size
from ..values.sequences import Handle, Lazy, Repeated, RepeatingTuple, refill
from ..values.symbolic import SymbolicTensor
from .active import Stage
from .cells import Cell, with_sizes
from .heap import Function, function_of, walk
from .laws import (
    Appends,
    AsWritten,
    Grows,
    Knowledge,
    Law,
    LawCheck,
    Rate,
    Runs,
    Things,
    Unlike,
    begins,
    guess,
)
from .loop_elements import BodyPath, LoopElements, given_in, members
from .plans import MANY, Site
from .summarised import Summarised

T = TypeVar("T")


class Loop(Summarised):
    """One execution of a `for` over a symbolic sequence."""

    most_paths = 8
    where = "the body"

    def __init__(self, run: Recorder, sequence: Lazy, site: Site, frame: FrameType) -> None:
        super().__init__(run, site)
        self.sequence = sequence
        self.count = run.simplified(sequence.count)
        self.index = ""
        self.stage: Stage | None = None
        self._own: set[Function] = set()
        """The functions that contain the loop itself."""
        self._things = Things({}, {})
        self._numbers: dict[int, Dim] = {}
        """By the identity of the law of each number that grows, its stand-in."""
        self._counts: frozenset[str] = frozenset()
        """The names of all stand-ins for numbers that grow."""
        self._within: list[Formula] = []
        """Bounds of these numbers."""
        self._filled: dict[int, tuple[Any, ...]] = {}
        """By the identity of the law of each list that gathers, the members that it was last given."""
        self._ended: list[BodyPath] = []
        """The finished paths through the body."""
        self._maker: FrameType | None = frame
        self._frames: tuple[FrameType, ...] = ()
        self._elements: Iterator[Any] | None = None
        self._iterated: Any = None
        """The iterator that the list comprehension is stepping, or the frame of that iterator."""
        self.gathers: FrameType | None = None
        """The frame that runs the list comprehension which consumes the loop, and whose list no code can
        access until it ends.
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

    @property
    def varying(self) -> frozenset[str]:
        return frozenset((self.index, *self._data))

    @property
    def _until(self) -> Dim:
        """The law holds before iterations up to this one."""
        return self.count - self._last

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

    def _calls(self) -> Mapping[Function, dict[str, Any]]:
        return {function: space for function, space in self.called.items() if function not in self._own}

    def _begin(self, handle: Handle, frame: FrameType) -> Iterator[Any]:
        maker, self._maker = self._maker, None
        peeled = self.loops.plans.peeled(self.site)
        frames = maker and driven_by(handle, self.site.offset, maker, frame, sequences.__file__)
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
        self.gathers = frames[-1] if comprehension(frames[-1]) else None
        if self.gathers is not None:  # else a `break` has to release the handle
            self._iterated = frames[-2] if len(frames) > 1 else handle
        self.index = self.run.index(target(frame))
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
        self._frames, self.gathers, self._iterated = (), None, None

    def _completed(self) -> None:
        """Ends the loop after its last iteration."""
        if self.gathers is not None:
            self._close(self.gathers)
        self._end()

    # ---- the iterations

    def _iterations(self, n: Dim, first: int) -> Iterator[Any]:
        run, k = self.run, self.index
        self.loops.enter(self)
        start, self._first = self._look(), first
        for i in range(first):
            if not run.truth(ge(n, i + 1)):
                return self._completed()
            yield from self._element(i, Stage.ITSELF)
        if self._last and not run.truth(ge(n, first + 1)):
            return self._completed()
        n = n - self._last  # the law holds before iterations up to this one
        if run.judged(ge(n, first + 1)) is not Answer.NEVER:
            law, found, calls = yield from self._guess(n, first)
            self._things = Things(start.value, law.cell.value)
            whole = run.mark()
            self._first_datum = whole.position.unbacked
            self._paths = [()]
            while self._paths:
                self.next_path()
                begun = run.position
                self._make(law, found, sym(k), carry=True)
                mark = run.mark()
                for known in self._every_iteration():
                    run.assume(known)
                yield from self._element(sym(k), Stage.ALL)
                weaker, found = self._check(law, sym(k) + 1, run)
                if weaker is not law:
                    law, self._paths, self._followed, self._ended = weaker, [()], 0, []
                    self._gathered[first:] = [(Stage.GUESS, ())] * (len(self._gathered) - first)
                    run.start_again(whole)
                    continue
                nested = run.position.iterations > mark.position.iterations
                if not self.turns and not nested and calls != run.calls_since(mark):
                    self.fail("one iteration calls what another does not")
                given = dict(given_in(law, found, {key: len(kept) for key, kept in self._filled.items()}))
                self._ended.append(BodyPath(given, run.data_since(begun), tuple(self.turns)))
                self._conclude(mark, begun, found)
            self._filled = self._lists().whole(law)
            self._make(law, found, n, carry=False)
            self.loops.met |= _tensors(found)
            self.loops.ended[k] = self.site
        if self._last:
            yield from self._element(n, Stage.ITSELF)
        return self._completed()

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
        if not begins(law, before, self.index, first, run):
            self.fail("what is guessed of it does not hold where it ends at once")
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
        with self.loops.unwatched():
            return self.seen(lambda: walk(self.run, self._frames, self.called))

    def _check(self, law: Law, value: Dim, known: Knowledge, made: bool = False) -> tuple[Law, Cell]:
        """Compares the state with the law. Returns the law, or a weaker one that holds, and the state."""
        found = self._look()
        own = frozenset((*self._data, *self.loops.ended))
        check = LawCheck(
            self.index, self._first, value, self._things, known, self._numbers, self._filled, own, made
        )
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
        if isinstance(law, Appends):
            return
        for child, member in zip(law.children, cell.children, strict=True):
            self._write(child, member, value, carry)
        if isinstance(law, Runs):
            return
        if isinstance(law, Grows):
            dims: tuple[Dim, ...] = (self._number(law, law.growth, value),)
        else:
            found = enumerate(law.at(self.index, value))
            dims = tuple(self._unknown(law, i) if d is None else d for i, d in found)
        if dims != cell.dims or law.cell.fixed != cell.fixed:
            self.put(cell, self._made(law, law.seen(cell), dims, carry))
        elif carry and cell.ref != law.cell.ref:
            cell.value.ref = self._carried(law.cell, cell.value.value)

    def _number(self, law: Law, growth: Rate, value: Dim) -> Term:
        """Returns the stand-in for a number that grows, which the data decide."""
        low, high = growth.between(value)
        varies = self.index in symbols(value)
        known = growth.bounds(self._until) if varies else (low, high)
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
        match law:
            case Runs():
                counts = (count for count in law.at(self.index, value) if count is not None)
                elements = [*members(self.run, [*zip(counts, cell.children, strict=True)])]
            case Appends(perhaps=perhaps):
                if carry:
                    count = self._number(law, self._filling, value) if perhaps else value - self._first
                    out_of_sight = Repeated.of(self.run, count, self._not_yet)
                    self._filled[id(law)] = *(one.held for one in law.cell.children), out_of_sight
                elements = [*self._filled[id(law)]]
            case _:
                for child, member in zip(law.children, cell.children, strict=True):
                    self._grow(child, member, value, carry)
                return
        if isinstance(cell.value, list):
            self.loops.remember_list(cell.value)
            refill(cell.value, elements)
        else:
            self.put(cell, RepeatingTuple(elements))

    def _not_yet(self, place: Dim) -> NoReturn:
        self.fail("an iteration looks at what others have gathered")

    @property
    def _filling(self) -> Rate:
        """Returns the growth of the length of a list that perhaps gathers."""
        return Rate(0, self._first, 0, 1)

    # ---- what the body has said

    def way(self, formula: Formula | None) -> bool:
        if formula is not None:
            self.suspects_last(formula)
            self._notes_filter(formula)
        return super().way(formula)

    def suspects_last(self, formula: Formula) -> None:
        now = self._first if self.stage is Stage.GUESS else sym(self.index)
        if self._last or symbols(self.count).isdisjoint(free_symbols(formula)):
            return
        if self.run.judged(formula, (le(now, self.count - 2),)) is not Answer.SOMETIMES:
            self.loops.plans.suspect(self.site)

    def _conclude(self, mark: Mark, start: Position, found: Cell) -> None:
        """Turns the requirements of the body on k into requirements for all k; forgets the facts about k."""
        run = self.run
        unbacked = run.generator.said.unbacked
        if any(self.index in free_symbols(unbacked[name]) for name in self._data):
            self.fail("the data decides a size in the body, within bounds that differ")
        run.drop_unused(start, mark.position, {*_refs(found)})
        said, conditions = run.said_since(mark)
        run.forget(mark)
        for place, step in in_order(conditions, said):
            if isinstance(step, Condition):
                run.branch(step)
                continue
            guards = [turn.known for turn in self.turns if turn.after <= place]
            formula = implies(all_of(guards), step.formula)
            run.require_instead(step, self._for_all(formula, step))
        end = run.position.nodes
        run.iterations.append(Iteration(self.index, self._first, self._until, start.nodes, end))

    def _every_iteration(self) -> tuple[Formula, ...]:
        """Returns the facts about the number of the iteration that represents all, and about numbers that
        grow.
        """
        k = sym(self.index)
        return ge(k, self._first), le(k, self._until - 1), *self._within

    def _for_all(self, formula: Formula, of: Constraint) -> Formula:
        """Returns the formula for all k with first <= k < until, an interval that may be empty.

        Where it holds for k = first - 1 as well, it suffices to require it for all k from there on. That
        interval is not empty, so no case has to be distinguished.
        """
        run, k, n, first = self.run, self.index, self._until, self._first
        if not free_symbols(formula).isdisjoint(self._data):
            if k in free_symbols(formula):
                return self._certain(formula, of)
            if run.judged(formula, self._every_iteration()) is Answer.ALWAYS:
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
        return self._certain(formula, of)

    def _certain(self, formula: Formula, of: Constraint) -> Formula:
        """Returns True for a formula that holds in any case; any other formula fails the loop."""
        if self.run.judged(formula, self._every_iteration()) is Answer.ALWAYS:
            return True
        self.fail(f"{of.reason}: not understood for all iterations")

    # ---- lists

    def _lists(self) -> LoopElements:
        return LoopElements(
            self,
            self.index,
            self._first,
            self._last,
            self.count,
            all_of(self._every_iteration()),
            self._gathered,
            self._ended,
            self._counts,
            frozenset(self._data),
        )

    def _close(self, frame: FrameType) -> None:
        """Changes the list that a comprehension has filled so that one element represents those of all
        iterations.
        """
        with self.loops.unwatched():
            gathered = filled(frame, self._iterated)
            if gathered is None:
                self.fail("the list of a comprehension is not found")
            self._lists().close(gathered, self._filter)

    def _notes_filter(self, formula: Formula) -> None:
        """Notes if the branch is the `if` of the list comprehension that the loop is."""
        frame: FrameType | None = frame_above(1)
        while frame is not None and is_of_package(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None or frame is not self.gathers:
            return
        if (kept := is_kept_where(frame)) is not None:
            self._filter = formula if kept else negate(formula)


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
