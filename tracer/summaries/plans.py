"""Attempts at a recording: the lessons of each for the loops and calls that are summarised as a whole.

A loop is summarised (`loop.py`), and the paths of a call are merged (`merging.py`), by an argument that may
turn out not to hold. Then the recording starts again, with another plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from ...constraints.terms.dims import Apply, Dim, Term
from ...constraints.terms.formula import Formula, negate
from .heap import Called, Function

PEELED: Final = 1
MOST_PEELED: Final = 2
"""At most this many iterations of a loop run as they are before the law; the number grows from attempt to
attempt.
"""


MANY: Final = 5
"""Loops over at least this many numbers may be summarised."""


@dataclass(frozen=True, slots=True)
class Site:
    """A `for` in the program, given by the code and the offset of its instruction; or calls of modules, given
    by the code of their `forward` without an offset.
    """

    code: CodeType
    offset: int = -1
    module: int = 0
    """The identity of the modules' class, or of the only module; 0 for a `for`."""

    @property
    def is_loop(self) -> bool:
        return self.offset >= 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A branch in a loop or a call that is followed on both sides, and its outcome.

    A branch on data has no formula.
    """

    formula: Formula | None
    taken: bool
    after: int
    """The number of constraints of the path before the branch."""

    @property
    def known(self) -> Formula:
        return True if self.formula is None else self.formula if self.taken else negate(self.formula)


class NotSummarised(BaseException):
    """Raised to restart the recording with another plan for this loop, or for these calls.

    It is no Exception, since programs catch those.
    """

    def __init__(self, site: Site, reason: str, called: Called) -> None:
        super().__init__(reason)
        self.site, self.called = site, called


class Plans:
    """The lessons of earlier attempts for each loop, and for the calls of each module."""

    def __init__(self) -> None:
        self.merging = False
        """Whether the paths of calls are merged."""
        self.spelt_out: set[tuple[CodeType, int]] | None = None
        """The sites where star arguments are written one by one (`spread.py`); None means everywhere."""
        self.written: set[Site] = set()
        """Calls that make constants which loops write into, so that their elements count as unknown."""
        self.repetitions: dict[Site, Dim] = {}
        """For the site where the body of a `while` begins, the change of its tested term in one iteration.
        """
        self._calls: set[Site] = set()
        """Calls whose paths are merged, or for which that was tried; and loops over a number of elements that
        are summarised.
        """
        self._failed: dict[Site, int] = {}
        """The number of failed attempts by site."""
        self._suspected: set[Site] = set()
        self._last_differs: set[Site] = set()
        """Loops whose last iteration runs as it is."""
        self._called: dict[Site, dict[Function, dict[str, Any]]] = {}

    def peeled(self, site: Site) -> int | None:
        """Returns how many iterations of a loop run as they are before the law; None for all of them."""
        found = PEELED + self._failed.get(site, 0)
        return found if found <= MOST_PEELED else None

    def descends(self, site: Site) -> bool:
        """Returns whether a `while` is tried as a descent (`descents.py`): what it tests changes by an amount
        with a quotient or a remainder in it, which differs from iteration to iteration.
        """
        step = self.repetitions.get(site, 0)
        uneven = isinstance(step, Term) and any(isinstance(a, Apply) for mono, _ in step.terms for a in mono)
        return uneven and site not in self._failed

    def peeled_behind(self, site: Site) -> int:
        """Returns how many iterations run as they are after the law."""
        return int(site in self._last_differs)

    def suspect(self, site: Site) -> None:
        """Notes that the last iteration of the loop may be the only one that takes another path, which is
        tried if the attempt fails.
        """
        self._suspected.add(site)

    def summarises(self, site: Site) -> bool:
        """Returns whether this loop is summarised though the number of its iterations is known."""
        return site in self._calls

    def merges(self, site: Site) -> bool:
        """Returns whether the paths of these calls are merged."""
        return site in self._calls and site not in self._failed

    def choose(self, site: Site) -> bool:
        """Has the paths of these calls merged from now on; returns False where that was tried before."""
        fresh = site not in self._calls
        self._calls.add(site)
        return fresh

    def called(self, site: Site) -> Called:
        """Returns the functions that the body is known to call."""
        return self._called.get(site, {})

    def change(self, failed: NotSummarised) -> None:
        """Prepares another attempt: the same plan, if the failure only revealed further functions that the
        body calls, whose state counts.
        """
        if isinstance(failed, Written):
            self.written.add(failed.site)
            return
        if isinstance(failed, Repetition):
            self.repetitions[failed.site] = failed.step
            return
        known = self._called.setdefault(failed.site, {})
        if isinstance(failed, MergeChosen) and failed.site.is_loop:  # in which others may be that have failed
            self._failed = {site: n for site, n in self._failed.items() if not site.is_loop}
        if not isinstance(failed, MergeChosen) and failed.called.keys() <= known.keys():
            if failed.site in self._suspected - self._last_differs:
                self._last_differs.add(failed.site)
                self._failed[failed.site] = MOST_PEELED - PEELED  # the first often is another, too
            else:
                self._failed[failed.site] = self._failed.get(failed.site, 0) + 1
        known.update(failed.called)


class Written(NotSummarised):
    """Raised where a loop writes into a constant that this call has made."""


class Repetition(NotSummarised):
    """Raised where a `while` tests a term that changes from iteration to iteration."""

    def __init__(self, site: Site, step: Dim) -> None:
        super().__init__(site, f"what it tests changes by {step}", {})
        self.step = step


class MergeChosen(NotSummarised):
    """Raised to have the paths of these calls merged from now on."""
