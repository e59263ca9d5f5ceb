"""The decisions of a run: its branches on sizes and on data, and the sizes that it needs as numbers.

A branch whose outcome is not the same for the whole domain forks the path: this run takes one side, and notes
the decisions of another run that takes the other.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NoReturn

import torch

from ...constraints.contents.outcomes.ranges import CLEAR, Outlook
from ...constraints.contents.outcomes.scalars import Computed
from ...constraints.contents.requirements.indices import NO_DATA, SAME_DATA
from ...constraints.engine.generate import Generator
from ...constraints.engine.kernels import kernels_of
from ...constraints.engine.lifting import bounded
from ...constraints.ir.language import Direction, NumericalError, Tensor, Value
from ...constraints.ir.program import Node, Origin
from ...constraints.ir.system import Answer, Condition
from ...constraints.terms.dims import Dim, Term, evaluate, symbols
from ...constraints.terms.formula import Formula, all_of, any_of, eq, free_symbols, ge, holds, le, negate
from ...constraints.terms.intervals import interval
from ...constraints.terms.rows import Deeper, rank_of
from ..bytecode.handlers import is_guarded
from ..bytecode.operands import MOST
from ..bytecode.origins import caller, here, is_inner, is_installed
from ..host.operators import INSTALLED
from ..patches.stand_ins import AnotherSource, calls_builtins
from ..recorder import Recorder
from ..summaries.active import Calling
from ..summaries.loops import Loops
from ..summaries.merging import Calls
from ..values.floats import element
from ..values.keys import beside, digits, length, meets_numbers, missing, names_module
from ..values.numbers import Real, Size
from ..values.sequences import Lazy, iterate, lazy, makes_list, takes_blocks, times
from ..values.symbolic import SymbolicTensor
from ..values.texts import Message, matters
from .subject import Assignment, BranchDecision

FEW = 8
"""The greatest divisor whose values are distinguished."""
MAX_VALUES = 16
"""At most this many values of a size that is needed as a number are tried, each on a path of its own."""
MOST_SKIPPED = 64
"""Numbers of elements from this one on are tried as examples of them come."""
GREATEST = 1 << 20
"""A greater value is not tried: a program that repeats something so often would be run for hours."""

OTHER_ERRORS = RuntimeError, NotImplementedError, IndexError, ValueError, TypeError
"""The types of errors by which torch may refuse a call where that of the operator is not caught."""
ERRORS: Mapping[type[Exception], type[Exception]] = {
    NumericalError: torch.linalg.LinAlgError,  # type: ignore[attr-defined]
}
"""torch's own types of errors, by the types of rules that stand for them."""
NOT_AGAIN = "the program behaves differently when it is run again"


_HASHES = frozenset({"hash", "__hash__"})


def _asks_of_library() -> bool:
    """Returns whether a line of torch's asks, as one that checks a sample of a distribution of its own."""
    frame = caller()
    return frame is not None and is_inner(frame.f_code.co_filename)


def _calls_hash(frame: FrameType) -> bool:
    return not _HASHES.isdisjoint(frame.f_code.co_names)


class GaveUp(BaseException):
    """Raised where the run cannot go on.

    It does not derive from Exception, so that a model's own `except Exception` does not swallow it.
    """


class Decisions(Recorder):
    """A run along one path, with the branch decisions that it has taken."""

    def __init__(self, assigned: Assignment) -> None:
        subject, spec, plans = assigned.subject, assigned.spec, assigned.plans
        generator = Generator(
            assigned.rules,
            spec.domain,
            count=self._count,
            chooser=self.truth,
            deeper=self._deeper,
            nothing=subject.nothing,
        )
        super().__init__(spec.domain, assigned.oracle, generator)
        self.subject, self.spec = subject, spec
        self.device, self.names = subject.device, subject.names
        own = "cpu" if subject.device.type == "meta" else subject.device.type
        self.kernels = assigned.device or own
        """The type of the device whose kernels run the program; the CPU for a model without data."""
        self.generator.kernels = kernels_of(self.kernels, INSTALLED)
        self.loops: Loops = Loops(self, plans)
        self.calls: Calls = Calls(self, isinstance(subject.target, torch.nn.Module))
        self.decided, self.until, self.along = assigned.decided, assigned.until, assigned.along
        self.forks: list[tuple[BranchDecision, ...]] = []
        self._over = False
        self._catching = False
        """Whether the requirements of a call are being examined whose refusal the program would catch."""
        self._stopped: BaseException | None = None
        """The reason why the run has to end, whatever the program catches."""
        self._made: list[BranchDecision] = []
        self.turns: list[Condition] = []
        """The branches in calls whose paths are merged."""
        self.guessed: list[int] = []
        """The nodes of branches that sizes decide, but whose outcome is not tracked."""
        self.dataless_floats = False
        self.keys: dict[Dim, Dim] = {}
        """Sizes that were keys, each with the first key that is equal to it."""
        self.uses_texts = False
        """Whether the program uses a text that differs from that of an eager run."""
        self.hashed: dict[CodeType, dict[Dim, None]] = {}
        """Sizes that were keys, by the code that hashed them."""
        self.limits: dict[str, tuple[int, Origin]] = {}
        """Ranks that are examined up to a bound, and the call that needs them."""
        self.is_narrowed = False
        """Whether a rank was bounded after a branch was taken. Then fewer paths may exist from the start."""

    def _deeper(self, wanted: Deeper) -> None:
        """Declares more of the rows and goes on; during a loop that is being summarised everything starts
        again.
        """
        if self.loops.summarising is not None or self.loops.supposing or self.loops.calls:
            raise self.stopping(wanted)
        self.deepen(wanted)

    def deepen(self, wanted: Deeper) -> None:
        """Declares more of the rows, for this run and those after it."""
        self.is_narrowed |= bool(wanted.bounded) and not all(made.forced for made in self._made)
        self.limits.update((name, (most, here(self.names))) for name, most in wanted.bounded.items())
        self.declare(self.domain.deepened(wanted))
        self.spec = dataclasses.replace(self.spec, domain=self.domain)
        self.oracle.domain = self.domain

    def truth(self, formula: Formula) -> bool:
        if self._over:
            self.give_up("the program keeps a size of an earlier run")
        formula = self.generator.equations.simplify_formula(formula)
        if self.loops.plans.repetitions and (goes_on := self.loops.repeats(formula, self._asked)) is not None:
            return goes_on
        return self._asked(formula)

    def _asked(self, formula: Formula) -> bool:
        if isinstance(formula, bool):
            return formula
        self.loops.forget_none(names := free_symbols(formula))
        if (fails := self.fails_on(names)) is not None and self.judged(formula) is Answer.SOMETIMES:
            self.supposes = fails
        if formula in self.settled:
            self.loops.ends(formula)
            return self.settled[formula]
        before, outcome = len(self.conditions), self._branch(formula, None)
        if len(self.conditions) > before and outcome not in self.generator.outcomes_of_numbers(formula):
            self._approximate(SAME_DATA, may="accept")
        return outcome

    def varies(self, dim: Dim) -> bool:
        return self.loops.varies(dim)

    def number(self, term: Term) -> int:
        self.loops.forget_none(symbols(term))
        if (fails := self.fails_on(symbols(term))) is not None:
            fails()
        bounded(self.generator, term)
        if self.loops.supposing:
            return self._suppose_number(term)
        if self.loops.varies(term):
            self.give_up(f"{term} is needed as a number")
        for _ in range(MAX_VALUES):
            step = len(self._made)
            if step < len(self.decided):
                value = self.decided[step].value
                if value is None:
                    self.give_up(NOT_AGAIN)
            else:
                value = self._example_of(term)
            if value > GREATEST:
                self.give_up(f"{term} is needed as a number, and may be {value}")
            equal = eq(term, value)
            if isinstance(equal, bool) or self._branch(equal, value):
                return value
        return self.give_up(f"{term} is needed as a number; only {MAX_VALUES} of its values were followed")

    def few(self, term: Term) -> tuple[int, bool]:
        """Returns the value of a number of elements, 0 for a negative one, and True; or a less number, and
        False, on the last path. Each value is tried on a path of its own.
        """
        low = max(interval(term, self.generator.bounds.ranges)[0], 0)
        if self.loops.supposing or self.loops.varies(term) or low > MAX_VALUES:
            return self.number(term), True
        self.loops.forget_none(symbols(term))
        if (fails := self.fails_on(symbols(term))) is not None:
            fails()
        bounded(self.generator, term)
        value, tried = int(low), 0
        while tried < MAX_VALUES and value < MOST_SKIPPED:
            here, step = eq(term, value) if value else le(term, 0), len(self._made)
            if here is True or (here is not False and self._branch(here, value)):
                return value, True
            tried += len(self._made) > step and not self._made[-1].forced
            value += 1
        return (value, False) if tried == MAX_VALUES else (self.number(term), True)

    def place(self, term: Term, frame: FrameType) -> int:
        """Returns the value of a size where this frame needs it.

        Where it is an index of a list, one number beyond each end represents all others there.
        """
        if makes_list(frame) or takes_blocks(frame):
            return 0
        most = None if self.loops.supposing or self.loops.varies(term) else length(frame)
        if most is not None and self.truth(ge(term, most)):
            return most + 1
        if most is not None and self.truth(le(term, -1 - most)):
            return -2 - most
        return self.number(term)

    def between(self, dim: Dim) -> tuple[int | None, int | None] | None:
        """Returns bounds of a dim that only the data decide; None for another dim."""
        names = symbols(dim)
        if not names or not names <= self.generator.said.unbacked.keys():
            return None
        low, high = interval(dim, self.generator.bounds.ranges)
        return None if low == -math.inf else int(low), None if high == math.inf else int(high)

    def divisor(self, term: Term) -> Dim:
        """Returns the divisor, where paths of calls are merged and it has few values as a number on each
        path: divisions by numbers are easy to reason about.
        """
        if not self.loops.plans.merging:
            return term
        with self.loops.unwatched():
            if not self.certain(all_of((ge(term, 1), le(term, FEW)))):
                return term
        value = next((value for value in range(1, FEW) if self.truth(eq(term, value))), FEW)
        self.assume(eq(term, value))  # also where it is no news: sizes are rewritten by it
        return value

    def _example_of(self, term: Term) -> int:
        example = self.along or self.oracle.example(self.known())
        if example is None:
            self.give_up(f"{term} is needed as a number, and no example of it was found")
        return evaluate(term, {**dict.fromkeys(free_symbols(eq(term, 0)), 1), **example})

    def insists(self, frame: FrameType) -> None:
        """Called where a part of Python needs a number.

        Restarts the recording if the frame's module is the user's and has no stand-ins for Python's names
        yet.
        """
        module = calls_builtins(frame)
        if module is not None and module not in self.subject.sources:
            self._over = True
            raise self.stopping(AnotherSource(module))

    def writes(self, frame: FrameType) -> None:
        if not self._over and matters(frame, type(self).run.__code__):
            self.uses_texts = True
            self._approximate("the use of a text that contains a size is not followed")

    def text(self, size: Size, frame: FrameType) -> str:
        """Returns the text of a size: its digits, where a key of the container in which this frame looks the
        text up contains them.
        """
        term = size.written()
        if isinstance(term, Term) and self.generator.is_data(term) and names_module(frame):
            return str(term)  # any of the modules whose names fit
        numbers = None if isinstance(term, int) else digits(frame)
        if numbers is None:
            self.writes(frame)
            return str(term)
        if len(numbers) > MOST:
            return str(int(size))
        found = next((number for number in numbers if self.truth(eq(term, number))), None)
        return missing(term) if found is None else str(found)

    def _approximate(
        self, reason: str, where: Formula = True, may: Direction = "both", at: Origin | None = None
    ) -> None:
        """Marks a point outside of any operator as approximate, by a node of its own."""
        self.generator.node = len(self.nodes)
        self.nodes.append(Node("require", (("condition", True),), (), at or here(self.names)))
        self.generator.approximate(reason, may, where)

    def hashes_values(self, frame: FrameType) -> bool:
        return _calls_hash(frame) or meets_numbers(frame)

    def hash(self, size: Size, frame: FrameType) -> int:
        """Returns the hash of a key: equal keys have that of the first of them.

        What a program does with the result of `hash` is not followed, so there the size is tried value by
        value.
        """
        key = size.written()
        self._no_ended(key)
        if isinstance(key, Term) and _calls_hash(frame):
            return hash(self.number(key))
        others = None if isinstance(key, int) else beside(frame)
        if others is None and isinstance(key, Term) and not is_installed(frame.f_code.co_filename):
            return hash((id(self), Size))  # a cache of results compares those that it meets
        if others is not None and isinstance(key, Term):
            if not others.are_all:
                self._approximate("a size is looked up among keys that are not all known")
            keys = [o for o in others.keys if type(o) is int or o.run is self]
            key = self._first_of(key, keys, frame.f_code)
        key = self.keys.get(key, key)
        return hash(key) if isinstance(key, int) else hash((id(self), key))

    def _first_of(self, key: Term, others: list[Any], code: CodeType) -> Dim:
        """Returns the first of these keys, and of those that the code has hashed before, that equals this
        one.
        """
        before = self.hashed.setdefault(code, {})
        if len(others) > MOST:
            return self.number(key)
        for other in (*(o if type(o) is int else o.written() for o in others), *before):
            if other != key and self.truth(eq(key, other)):
                first = self.keys.get(other, other)
                if self.keys.setdefault(key, first) != first:
                    self.give_up(f"{key} and {first} are equal here, and were different keys before")
        before[key] = None
        return self.keys.setdefault(key, key)

    def coin(self, outlook: Outlook = CLEAR) -> bool:
        for known, where in ((True, outlook.true), (False, outlook.false)):
            if self.truth(where):
                return known
        before, unknown = len(self.conditions), outlook.unknown
        if unknown is not False and self.certain(negate(unknown)):
            unknown = False
        outcome = self._branch(None, None) if unknown is False else self.guess(NO_DATA, unknown)
        if outcome not in outlook.possible and not (outlook.drawn and _asks_of_library()):
            self._approximate(SAME_DATA, may="accept")  # perhaps no data get here
        settled = outlook.usual.always if outcome else outlook.usual.never
        if settled is not False and len(self.conditions) > before:
            self.conditions[-1] = dataclasses.replace(self.conditions[-1], settled=settled)
        return outcome

    def times(self, members: list[Any] | tuple[Any, ...], count: Term) -> Any:
        if self.domain.rows:
            return members * self.number(count)
        return times(self, members, count)

    def guess(self, reason: str, where: Formula = True, outlook: Outlook = CLEAR) -> bool:
        self.guessed.append(len(self.nodes))
        self._approximate(reason, where)
        return self.coin(outlook)

    def require(
        self, formula: Formula, reason: str, error: type[Exception] | None = RuntimeError, op: str = "require"
    ) -> None:
        """Adds a requirement outside of any operator (a division of sizes, a `torch._check`) as a node of its
        own, so that it has an origin. With `error` None, nothing is raised in an eager run (a claim).
        """
        if formula is True:
            return
        self.loops.forget_none(free_symbols(formula))
        self.generator.node = len(self.nodes)
        self.nodes.append(Node(op, (("condition", formula),), (), here(self.names)))
        before = len(self.generator.said.constraints)
        self.generator.require(formula, reason, error or RuntimeError)
        if error is not None:
            self._raise_if_caught(before)

    def give_up(self, reason: str) -> NoReturn:
        """Ends the run; in a loop that is summarised, or a call that is merged, only the attempt at that."""
        loop = self.loops.summarising
        if loop is not None:
            loop.fail(reason)
        call = next((call for call in reversed(self.loops.calls) if call.turns), None)
        if call is not None:
            call.give_up(reason)
        self.end(reason)

    def end(self, reason: str) -> NoReturn:
        """Ends the run, and all attempts within it."""
        raise self.stopping(GaveUp(reason))

    def stopping(self, error: BaseException) -> BaseException:
        """Notes why the run has to end, so that it is raised again if the program catches everything."""
        self._stopped = self._stopped or error
        return error

    def raise_stopped(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    def datum(
        self,
        dtype: str | None,
        dataless: Formula = False,
        about: Callable[[str, float], Outlook] | None = None,
        of: int | Computed | None = None,
    ) -> Any:
        """A number that the data decides: an integer is a fresh size, a float a Real, with what is known
        `about` comparisons of it. It is an element `of` the tensor of this reference, or is computed so.
        """
        if dtype == "bool":
            return self.coin(self.generator.outlook(of) if isinstance(of, int) else Outlook(unknown=dataless))
        computed = element(of) if isinstance(of, int) else of
        if dtype is not None and dtype.startswith(("int", "uint")):
            if dataless is not False:
                self._approximate(NO_DATA, dataless)
            number = self.generator.fresh("data", None, None)
            if computed is not None:
                self.generator.computed_numbers["".join(symbols(number))] = computed
            return Size(self, number)
        self.dataless_floats = any_of((self.dataless_floats, dataless))
        found = Real(self, None, None)
        found.about, found.data = about, computed
        return found

    def _branch(self, formula: Formula | None, value: int | None) -> bool:
        with self.loops.unwatched():
            return self._way(formula, value)

    def _way(self, formula: Formula | None, value: int | None) -> bool:
        loops = self.loops
        loops.raise_failure()
        self.raise_stopped()
        if loops.supposing:
            return self._suppose(formula)
        turning: Calling | None = loops.turning(formula) or self.calls.turning
        step = len(self._made)
        known = Answer.SOMETIMES
        if formula is not None and (turning is not None or step >= len(self.decided)):
            known = self.oracle.decide(formula, self.known())
        forced = known in (Answer.ALWAYS, Answer.NEVER)
        if turning is not None and not forced:
            return turning.way(formula)
        if step < len(self.decided):
            decision = self.decided[step]
            if decision.asked != formula:
                self.give_up(NOT_AGAIN)
        else:
            if time.monotonic() > self.until:
                self.give_up(f"the budget ran out, after {step} branches")
            taken = known is not Answer.NEVER if forced or self.along is None else self._at(formula)
            decision = BranchDecision(taken, forced, value, formula)
            if not forced and self.along is None:
                if value is None:
                    self.calls.fork()
                    loops.notes_test(formula)
                self.forks.append((*self._made, BranchDecision(False, False, value, formula)))
            elif forced and value is None:
                loops.notes_test(formula, is_news=False)
        self._made.append(decision)
        condition = Condition(
            formula, decision.taken, here(self.names), decision.forced, caught=self._catching
        )
        self.branch(condition)
        if loops.calls:
            self.calls.note(condition)
        return decision.taken

    def _at(self, formula: Formula | None) -> bool:
        """Returns whether the formula holds at the sizes whose path is taken; True where the data decide."""
        if formula is None or not free_symbols(formula) <= (along := self.along or {}).keys():
            return True
        return holds(formula, along)

    def _suppose(self, formula: Formula | None) -> bool:
        """Returns some possible outcome of a branch that only a guess depends on."""
        if formula is None:
            return True
        answer = self.judged(formula)
        for loop in self.loops.guessing if answer is Answer.SOMETIMES else ():
            loop.suspects_last(formula)
        taken = answer is not Answer.NEVER
        self.assume(formula if taken else negate(formula))
        return taken

    def _suppose_number(self, term: Term) -> int:
        value = self._example_of(term)
        self.assume(eq(term, value))
        return value

    def _count(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self.number(dim)

    def iterator(self, value: Lazy, frame: FrameType) -> Iterator[Any]:
        return self.loops.iterator(value, frame)

    def iterate(self, tensor: SymbolicTensor, frame: FrameType) -> Iterator[Any]:
        """Returns the rows of a tensor, for the code that the frame runs."""
        if isinstance(tensor.value, Tensor):
            scalar = "a scalar has no rows to iterate over"
            self.require(ge(rank_of(tensor.value.shape), 1), scalar, TypeError)
        rows = lazy(tensor)
        return iterate(rows, frame) if rows is not None else iter(tensor.unbind(0))

    def doubt(self, reason: str, may: Direction = "accept", where: Formula = True) -> None:
        """Marks a call of no operator as approximate."""
        noted = len(self.generator.said.notes)
        self.generator.approximate(reason, may, where)
        self._raise_if_unsure("a call", noted, ())

    def may_raise(self, error: type[Exception], reason: str) -> None:
        """Takes both paths where the program would catch an error that a float of the data raises in Python.
        """
        if self._catches(error) and not self.datum("bool", self.dataless_floats):
            raise error(Message.of(reason, self))

    def _raise_if_unsure(
        self, what: str, noted: int, refusals: Iterable[tuple[Formula, type[Exception]]]
    ) -> None:
        """Takes both paths where the program would catch the refusal of a call, and more than sizes decides
        whether it is refused: the data, or what approximations leave open, the notes from this number on.
        """
        generator, notes = self.generator, self.generator.said.notes
        doubts = [note for note in notes[noted:] if note.doubts_call and note.reason != SAME_DATA]
        if not doubts and not refusals:
            return
        node = generator.node
        unclear = any_of(note.where for note in doubts)
        refusals = [(where, ERRORS.get(error, error)) for where, error in refusals]
        types = dict.fromkeys(error for _, error in refusals)
        if doubts:
            known = (*types, *(ERRORS.get(error, error) for _, error in generator.errors()))
            types = dict.fromkeys(known if any(map(self._catches, known)) else OTHER_ERRORS)
        if not (caught := [*filter(self._catches, types)]):
            return
        moved = [note for note in doubts if note.may == "accept"]  # of others the result is inexact, too
        notes[noted:] = [note for note in notes[noted:] if note not in moved]
        for error in caught:
            if not self.truth(any_of((unclear, *(where for where, kind in refusals if kind is error)))):
                continue
            for note in moved:
                self.guessed.append(len(self.nodes))
                self._approximate(note.reason, note.where, note.may)
            moved = []
            if not self.coin():
                told = f"{what} is refused for some data, or in a way that is not known"
                raise error(Message.of(told, self))
        generator.node = node

    def _catches(self, error: type[Exception]) -> bool:
        """Returns whether the program may catch an error of this type."""
        return is_guarded(type(self).run.__code__, error)

    def _raise_if_caught(self, before: int) -> None:
        """Makes the requirements of a call a branch where the program would catch the refusal: one path
        raises torch's exception.
        """
        said = self.generator.said
        fresh = said.constraints[before:]
        types = {ERRORS.get(constraint.error, constraint.error) for constraint in fresh}
        if fresh and is_guarded(type(self).run.__code__, *types):
            branched = self._seen_constraints > before
            fresh = self.generator.retract(before)
            self.learn_anew()
            if branched:
                self.give_up("a call that branches on sizes is made where its refusal is caught")
            if any(constraint.error is Exception for constraint in fresh):
                self.give_up("the effect of an exception depends on its type, which is not known")
            for constraint in fresh:
                self._catching = True
                try:
                    accepted = self.truth(constraint.formula)
                finally:
                    self._catching = False
                if not accepted and not (constraint.by_data and self.coin()):
                    raise ERRORS.get(constraint.error, constraint.error)(Message.of(constraint.reason, self))

    def _no_ended(self, value: Value) -> None:
        """Checks that no value depends on the iterations of a loop that is over."""
        if self.loops.ended:
            dims = value.shape if isinstance(value, Tensor) else (value,)
            for dim in dims:
                if isinstance(dim, Term):
                    self.loops.forget_none(symbols(dim))
