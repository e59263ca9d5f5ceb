"""Attempts at a recording: what each has taught of the loops and of the calls that are looked at whole.

A loop is summarised (`loops.py`), and the ways of a call are merged (`merging.py`), by an argument that may
turn out not to hold. Then the recording starts again, with another plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from ...constraints.terms.dims import Dim
from ...constraints.terms.formula import Formula, negate
from .heap import Called, Function

PEELED: Final = 1
MOST_PEELED: Final = 2
"""How many iterations of a loop run as they are, before the law, at the first attempt and at the last."""


@dataclass(frozen=True, slots=True)
class Site:
    """A `for` in the program: the code, and the offset of its instruction. Or calls of modules: the code of
    their `forward`, and no offset.
    """

    code: CodeType
    offset: int = -1
    module: int = 0
    """The identity of the class of the modules that are meant, or of the one module; 0 for a `for`."""

    @property
    def is_loop(self) -> bool:
        return self.offset >= 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A branch in a loop or a call that goes either way, and the way that it went.

    A branch on data has no formula.
    """

    formula: Formula | None
    taken: bool
    after: int
    """How many constraints of the path come before it."""

    @property
    def known(self) -> Formula:
        return True if self.formula is None else self.formula if self.taken else negate(self.formula)


class NotSummarised(BaseException):
    """The recording has to start again, with another plan for this loop, or for these calls.

    No Exception: programs catch those.
    """

    def __init__(self, site: Site, reason: str, called: Called) -> None:
        super().__init__(reason)
        self.site, self.called = site, called


class Plans:
    """What earlier attempts have taught of each loop, and of the calls of each module."""

    def __init__(self) -> None:
        self.merging = False
        """Are the ways of calls merged?"""
        self.spelt_out: set[tuple[CodeType, int]] | None = None
        """Where shapes of unknown length are spelt out, though they are written out in a call (`spread.py`);
        everywhere, where it is None.
        """
        self.written: set[Site] = set()
        """Calls that make constants which loops write into, so that their elements are taken as unknown."""
        self.repetitions: dict[Site, Dim] = {}
        """Where the body of a `while` begins: by how much what it tests changes in each iteration."""
        self._calls: set[Site] = set()
        """Calls whose ways are merged, or were tried to; and loops over a number of elements that are
        summarised.
        """
        self._failed: dict[Site, int] = {}
        """How many attempts have failed."""
        self._suspected: set[Site] = set()
        self._last_differs: set[Site] = set()
        """Loops whose last iteration runs as it is."""
        self._called: dict[Site, dict[Function, dict[str, Any]]] = {}

    def peeled(self, site: Site) -> int | None:
        """How many iterations of a loop run as they are before the law; None for all of them."""
        found = PEELED + self._failed.get(site, 0)
        return found if found <= MOST_PEELED else None

    def peeled_behind(self, site: Site) -> int:
        """How many iterations run as they are after the law."""
        return int(site in self._last_differs)

    def suspect(self, site: Site) -> None:
        """The last iteration of the loop may be the only one that goes another way: that is tried, should the
        attempt fail.
        """
        self._suspected.add(site)

    def summarises(self, site: Site) -> bool:
        """Is this loop summarised though it is known how many iterations it has?"""
        return site in self._calls

    def merges(self, site: Site) -> bool:
        """Are the ways of these calls merged?"""
        return site in self._calls and site not in self._failed

    def choose(self, site: Site) -> bool:
        """From now on the ways of these calls are merged; False where that was tried before."""
        fresh = site not in self._calls
        self._calls.add(site)
        return fresh

    def called(self, site: Site) -> Called:
        """What the body is known to call."""
        return self._called.get(site, {})

    def change(self, failed: NotSummarised) -> None:
        """Another attempt: as before, if it has come out only now what the body calls, whose state counts."""
        if isinstance(failed, Written):
            self.written.add(failed.site)
            return
        if isinstance(failed, Repetition):
            self.repetitions[failed.site] = failed.step
            return
        known = self._called.setdefault(failed.site, {})
        if isinstance(failed, Chosen) and failed.site.is_loop:  # in which others may be that have failed
            self._failed = {site: n for site, n in self._failed.items() if not site.is_loop}
        if not isinstance(failed, Chosen) and failed.called.keys() <= known.keys():
            if failed.site in self._suspected - self._last_differs:
                self._last_differs.add(failed.site)
                self._failed[failed.site] = MOST_PEELED - PEELED  # the first often is another, too
            else:
                self._failed[failed.site] = self._failed.get(failed.site, 0) + 1
        known.update(failed.called)


class Written(NotSummarised):
    """A loop writes into a constant that this call has made."""


class Repetition(NotSummarised):
    """A `while` tests what changes by the same from one iteration to the next."""

    def __init__(self, site: Site, step: Dim) -> None:
        super().__init__(site, f"what it tests changes by {step}", {})
        self.step = step


class Chosen(NotSummarised):
    """The ways of these calls are to be merged from now on."""
