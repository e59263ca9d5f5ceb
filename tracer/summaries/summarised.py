"""The engine of loops and merged calls: a part of the program that is run once for each path through it, from
one state of the program (`heap.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from ...constraints.terms.formula import Formula
from ..host.tensors import overrides_off
from ..recorder import Recorder
from .active import Active
from .cells import Cell
from .heap import Function, Opaque, look
from .plans import NotSummarised, Site, Turn


class Summarised:
    """A part of the program that is recorded once in place of several executions, or paths."""

    most_paths: ClassVar[int]
    """At most this many paths are followed."""
    where: ClassVar[str]
    """The part, as a reason names it."""

    def __init__(self, run: Recorder, site: Site) -> None:
        self.run, self.site = run, site
        self.loops: Active = run.loops
        self.called: dict[Function, dict[str, Any]] = {}
        """The functions that the part is known to call, with their global variables."""
        self.turns: list[Turn] = []
        """The branch decisions of the current path."""
        self._planned: tuple[Turn, ...] = ()
        """The decisions with which the current path begins."""
        self._paths: list[tuple[Turn, ...]] = []
        """The beginnings of paths that are still to be followed."""
        self._followed = 0
        self._around = run.calls.depth
        """The number of calls and loops over numbers that contain the part."""

    # ---- failure

    def fail(self, reason: str) -> NoReturn:
        """Restarts the recording, for this reason."""
        raise self.loops.fails(self.failed(reason))

    def failed(self, reason: str) -> NotSummarised:
        """Returns the exception that restarts the recording, for this reason."""
        return NotSummarised(self.site, reason, self._calls())

    def _calls(self) -> Mapping[Function, dict[str, Any]]:
        """Returns the functions whose state counts in the next attempt."""
        return self.called

    # ---- the state

    def seen(self, look_at: Callable[[], Cell]) -> Cell:
        """Returns a state, or the cell of a value; fails where it cannot be looked into."""
        try:
            with overrides_off():
                return look_at()
        except Opaque as reason:
            self.fail(f"{reason} cannot be seen")

    def look_at(self, value: Any) -> Cell:
        """Returns the cell of one value."""
        return self.seen(lambda: look(self.run, value))

    def put(self, cell: Cell, value: Any) -> None:
        """Writes another value where the cell's was found."""
        if cell.place is None:
            self.fail(f"{cell.trail} changes where it cannot be written to")
        self.loops.remember(cell.place)
        cell.place.write(value)

    # ---- the paths

    def next_path(self) -> None:
        """Begins the next of the paths that are still to be followed."""
        self._planned, self.turns = self._paths.pop(), []

    def way(self, formula: Formula | None) -> bool:
        """Returns the outcome of a branch that is followed on both sides: this time one of the two."""
        step, taken = len(self.turns), True
        if step < len(self._planned):
            taken = self._planned[step].taken
        else:
            self._paths.append((*self.turns, Turn(formula, False, 0)))
            self._followed += 1
            if self._followed >= self.most_paths:
                self.run.calls.summarise(self._around)
                self.fail(f"there are too many paths through {self.where}")
        turn = Turn(formula, taken, self.run.position.constraints)
        self.turns.append(turn)
        if formula is not None:
            self.run.assume(turn.known)
        return taken
