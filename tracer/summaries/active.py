"""The loops and calls of one run that are being summarised, and what they need of it: the functions that they
call, the values that they overwrite, and the reason why one has failed.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from enum import Enum, auto
from types import CodeType, FrameType
from typing import Any, Final, NoReturn, Protocol

from ...constraints.terms.dims import Dim, symbols
from ...constraints.terms.formula import Formula, free_symbols
from ..bytecode.origins import is_inner, is_of_package
from ..host import patches
from ..host.interpreter import replace_profiler
from ..host.jumps import forget_jumps
from ..patches import control, gradients, higher_order
from ..recorder import Recorder
from ..values.sequences import physical, refill
from ..values.symbolic import SymbolicTensor
from .cells import LASTING, Location
from .families import Families
from .heap import Function, function_of
from .plans import NotSummarised, Plans, Site, Turn

PACKAGE: Final = __name__.partition(".")[0] + "."
_GOING_THROUGH: Final = {
    *(module.__name__ for module in (control, gradients, higher_order, patches)), f"{__package__}.merging"
}  # fmt: skip
_CONSUMING: Final = ("symbolic_list", "symbolic_sum", "_reduce", "<listcomp>", "__torch_function__")
"""Modules and functions of this package that call functions of the program."""
_NOTHING: Final = contextlib.nullcontext()


class Stage(Enum):
    """The purpose of the current iteration of the body."""

    ITSELF = auto()
    GUESS = auto()
    ALL = auto()


class Calling(Protocol):
    """A loop or a call under way."""

    called: dict[Function, dict[str, Any]]
    """The functions that the body is known to call, with their global variables."""
    turns: list[Turn]
    """The branch decisions of the current path."""

    def way(self, formula: Formula | None) -> bool:
        """Returns the outcome of a branch that is followed on both sides: this time one of the two."""

    def fail(self, reason: str) -> NoReturn:
        """Restarts the recording, for this reason."""

    def failed(self, reason: str) -> NotSummarised:
        """Returns the exception that restarts the recording, for this reason."""


class Merging(Calling, Protocol):
    """A call under way whose paths are merged."""

    begun: int
    """The number of constraints of the path before the call."""

    def give_up(self, reason: str) -> NoReturn:
        """Ends a path that cannot be followed any further; it counts only if it is refused before that."""


class Looping(Calling, Protocol):
    """A loop under way."""

    stage: Stage | None
    """None before the first iteration and after the last."""

    @property
    def varying(self) -> frozenset[str]:
        """Returns the symbols that are different numbers in different iterations."""

    def suspects_last(self, formula: Formula) -> None:
        """Notes if a branch would have one outcome were it not for the last iteration."""


def _is_ours(frame: FrameType) -> bool:
    """Returns whether it is a function of this package."""
    name: str = frame.f_globals.get("__name__", "")
    return name.startswith(PACKAGE)


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


@contextlib.contextmanager
def _paused() -> Iterator[None]:
    """Stops the profiler inside the block."""
    profiler = replace_profiler(None)
    try:
        yield
    finally:
        replace_profiler(profiler)


class Active:
    """The loops and calls of one run that are under way."""

    def __init__(self, run: Recorder, plans: Plans) -> None:
        self.run, self.plans = run, plans
        self.failure: NotSummarised | None = None
        """The reason why the run has to end, where that could not be raised at once."""
        self.ended: dict[str, Site] = {}
        """Indices of loops that are over: no later size should mention them."""
        self.families = Families(run)
        self.met: dict[int, SymbolicTensor] = {}
        """Tensors that loops have left behind, by identity."""
        self.calls: list[Merging] = []
        """The calls whose paths are being merged, the innermost last."""
        self._active: list[Looping] = []
        self._undo: dict[tuple[int, Any], Callable[[], object]] = {}
        self._kept: list[Any] = []
        self._profiler: Any = None
        self._noted: dict[int, CodeType] = {}
        """Code, by identity, that all active loops know to be called, or that is not the program's."""

    def close(self) -> None:
        """Releases the run."""
        del self.run
        self.families.close()

    @property
    def summarising(self) -> Looping | None:
        """Returns the innermost loop whose body is running for more than one iteration, or None."""
        return next((loop for loop in reversed(self._active) if loop.stage in (Stage.GUESS, Stage.ALL)), None)

    @property
    def guessing(self) -> Iterator[Looping]:
        """Yields the loops whose body is running for a guess."""
        return (loop for loop in self._active if loop.stage is Stage.GUESS)

    @property
    def supposing(self) -> bool:
        """Returns whether the current code is running for a guess only."""
        return any(loop.stage is Stage.GUESS for loop in self._active)

    def turning(self, formula: Formula | None) -> Looping | None:
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

    def enter(self, loop: Looping) -> None:
        self._watch()
        self._active.append(loop)

    def enter_call(self, call: Merging) -> None:
        self._watch()
        self.calls.append(call)

    def leave_call(self, call: Merging) -> None:
        self.calls.remove(call)
        self._rest()

    def leave(self, loop: Looping) -> None:
        if loop in self._active:
            self._active.remove(loop)
            self._rest()

    def _watch(self) -> None:
        self._noted.clear()
        if not self.watches:
            self._profiler = replace_profiler(self._seen)

    def _rest(self) -> None:
        if not self.watches and sys.getprofile() == self._seen:
            replace_profiler(self._profiler)

    def unwatched(self) -> contextlib.AbstractContextManager[None]:
        """Stops the profiler for a block that calls none of the program's functions."""
        return _paused() if self.watches else _NOTHING

    @property
    def watches(self) -> bool:
        """Returns whether a loop or a call is active that may have to be run differently."""
        return bool(self._active or self.calls)

    def _seen(self, frame: FrameType, event: str, result: Any) -> None:
        """Notes, as a profiler's function, the functions called."""
        if event != "call" or id(code := frame.f_code) in self._noted:
            return
        function = function_of(code)
        watching: tuple[Calling, ...] = (*self._active, *self.calls)
        news = [one for one in watching if function not in one.called]
        never = is_inner(code.co_filename) or _is_ours(frame)
        if news and not never and _is_programs(frame, type(self.run).run.__code__):
            for one in news:
                one.called[function] = frame.f_globals
            news = []
        if never or not news:
            self._noted[id(code)] = code

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
        forget_jumps()
        left = self.summarising
        if left is not None and self.failure is None:
            self.failure = left.failed("the loop is left before its end")
        for loop in self._active:
            loop.stage = None
        self._active.clear()
        self.calls.clear()
        self._rest()
        for undo in reversed(self._undo.values()):
            undo()
        self._undo.clear()
        return self.failure
