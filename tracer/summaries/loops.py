"""The loops of a program as it meets them: where a `for` or a `while` begins, and where one ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from ...constraints.terms.dims import Dim, Term, floordiv, substitute, sym
from ...constraints.terms.formula import Compare, Formula, ge
from ..bytecode.loops import begins_while, continues_while
from ..bytecode.origins import is_of_package
from ..host.interpreter import frame_above
from ..recorder import Recorder
from ..values import numbers, sequences
from ..values.sequences import Handle, Lazy
from .active import PACKAGE, Active
from .descents import Descent
from .loop import Loop
from .plans import Plans, Repetition, Site

MANY_TIMES: Final = 1000
"""A `while` counts as endless if its test holds this many times, at all sizes of a path."""
_UNDIVIDED: Final = "#undivided"


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


_COMPARING: Final = {
    __name__,
    numbers.__name__,
    *(
        f"{PACKAGE}tracer.recording.{name}"
        for name in "decisions stored lowering effects operators mode record".split()
    ),
}
"""Modules whose code runs when the program compares sizes."""


class Loops(Active):
    """The loops of one run, as the program asks for them."""

    def __init__(self, run: Recorder, plans: Plans) -> None:
        super().__init__(run, plans)
        self._within_test = False
        """Whether the test of a `while` is being answered."""
        self._whiles: dict[int, dict[Site, Loop]] = {}
        """The loop of a `while`, by the identity of its frame and the site where its body begins."""
        self._tests: dict[tuple[int, Site], Dim] = {}
        """The term that a `while` last tested after an iteration."""
        self._again: Counter[Formula] = Counter()
        """For conditions whose outcome was known, the number of times that they were asked."""

    def ranges(self, *args: Any) -> Any:
        """Returns a `range`, called by the program through the function that picks the run."""
        return sequences.counting_range(self.run, frame_above(3), *args)

    def repeats(self, test: Formula, asking: Callable[[Formula], bool]) -> bool | None:
        """Returns the outcome of a `while` test if the loop is summarised, else None.

        With t(0) = t >= 0 and t(k) = t - k*d, d >= 1, it has t // d + 1 iterations, which is assumed and then
        checked.
        """
        frame = None if self._within_test else _asking()
        place = None if frame is None else begins_while(frame)
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
            return whole.part(test)
        if loop is not None and is_behind:
            goes_on = loop.goes_on(test)
            if not goes_on:
                del self._whiles[id(frame)][site]
            return goes_on
        if loop is not None:
            loop.left()
            del self._whiles[id(frame)][site]
        if not is_behind and plans.descends(site):
            whole = Descent(self.run, Lazy(self.run, 1, lambda k: True), site, frame)
            return asking(test) and self._begin(whole, frame, 1).goes_on(True)
        step, peeled = plans.repetitions.get(site), plans.peeled(site)
        if is_behind or step is None or peeled is None or not isinstance(test, Compare) or test.op != ">=":
            return None
        if not asking(test):
            return False
        falls = self.run.certain(ge(-step, 1))
        count = self.run.simplified(floordiv(self._term(test), -step) + 1) if falls else 0
        if isinstance(count, int):
            return True
        loop = Loop(self.run, Lazy(self.run, count, lambda k: True), site, frame)
        return self._begin(loop, frame, peeled).goes_on(True)

    def _term(self, test: Compare) -> Dim:
        """Returns the term of a test as the program compares it: `2*n > 4` is the formula `n - 3 >= 0`, and
        has the term `2*n - 5`. A symbol with the coefficient 1 keeps it from being divided.
        """
        compared, simplified = self.run.compared, self.run.generator.equations.simplify_formula
        if compared is None or simplified(compared.formula()) != test:
            return test.term
        whole = simplified(compared.formula(sym(_UNDIVIDED)))
        return substitute(whole.term, {_UNDIVIDED: 0}) if isinstance(whole, Compare) else test.term

    def _begin(self, loop: Loop, frame: FrameType, peeled: int) -> Loop:
        self._whiles.setdefault(id(frame), {})[loop.site] = loop
        loop.repeats(frame, peeled)
        return loop

    def _descent(self, frame: FrameType) -> Descent | None:
        """Returns the descent whose test has several parts, if the frame evaluates one before the last.
        """
        body = continues_while(frame) if id(frame) in self._whiles else None
        loop = None if body is None else self._whiles[id(frame)].get(Site(frame.f_code, body))
        return loop if isinstance(loop, Descent) else None

    def notes_test(self, test: Formula | None, is_news: bool = True) -> None:
        """Notes if a `while` tests, after an iteration, a term that has changed as it did in the iteration
        before. A test whose outcome is no news counts only if an earlier one of this `while` was.
        """
        if not isinstance(test, Compare) or self.watches or not (is_news or self._tests):
            return
        frame = _asking()
        place = None if frame is None else begins_while(frame)
        if frame is None or place is None:
            return
        body = place[0] if place[1] else continues_while(frame)
        if body is None:
            return
        site = Site(frame.f_code, body)
        before, term = self._tests.get((id(frame), site)), self._term(test)
        if before is None and not is_news:
            return
        self._tests[id(frame), site] = term
        step = 0 if before is None else term - before
        alone = place[1] and test.op == ">="
        if before is not None and site not in self.plans.repetitions and (alone or isinstance(step, Term)):
            raise self.fails(Repetition(site, step))

    def ends(self, test: Formula) -> None:
        """Ends the run in a `while` whose iterations change nothing of what its test asks of sizes."""
        self.notes_test(test, is_news=False)
        self._again[test] += 1
        if self._again[test] % MANY_TIMES:
            return
        frame = _asking()
        place = None if frame is None else begins_while(frame)
        if frame is not None and ((place is not None and place[1]) or continues_while(frame) is not None):
            reason = f"a `while` has not ended after {MANY_TIMES} iterations, which leave its test as it is"
            self.run.end(reason)

    def iterator(self, value: Lazy, frame: FrameType) -> Handle:
        """Returns the iterator of a `for` that begins in the frame."""
        return Handle(Loop(self.run, value, Site(frame.f_code, frame.f_lasti), frame))
