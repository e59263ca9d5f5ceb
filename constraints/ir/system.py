"""The constraint system of a target: the declared domain, and the requirements of each path through the
program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Literal, Protocol

from ..terms.dims import Symbol
from ..terms.formula import Compare, Formula, all_of, free_symbols, le, negate
from ..terms.intervals import Interval, Ranges, narrow
from ..terms.parts import rank
from ..terms.rows import Deeper, axioms, deepened, names
from .language import Constraint, Note, Value
from .program import Origin, Program


@dataclass(frozen=True)
class Domain:
    """The user's declaration: the symbols of the inputs, in order of appearance, and the assumptions about
    them.
    """

    symbols: tuple[str, ...] = ()
    assumptions: tuple[Formula, ...] = ()

    @cached_property
    def ranges(self) -> Ranges:
        """Returns the interval of each symbol that the assumptions about it alone leave."""
        return ranges_of(self.assumptions)

    @cached_property
    def beyond_ranges(self) -> tuple[Formula, ...]:
        """Returns the assumptions of which the ranges do not tell all: those on several symbols, and those
        on one that has a single value.
        """
        return tuple(a for a in self.assumptions if not self._is_a_range(a))

    def _is_a_range(self, assumption: Formula) -> bool:
        """Returns whether the assumption is a bound of a symbol that has other values, too."""
        if not isinstance(assumption, Compare) or assumption.op != ">=":
            return False
        (mono, factor), *rest = assumption.term.terms
        if abs(factor) != 1 or len(mono) != 1 or any(other for other, _ in rest):
            return False
        low, high = self.ranges[mono[0].text]
        return isinstance(mono[0], Symbol) and low < high

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The rows (rows.py) of inputs of unknown rank."""
        return names(self.symbols)

    @cached_property
    def axioms(self) -> frozenset[Formula]:
        """Returns the assumptions that the user did not make: the axioms about the symbols of rows."""
        return frozenset(axioms(self.symbols))

    @property
    def declared(self) -> tuple[Formula, ...]:
        """Returns the assumptions without the axioms."""
        return tuple(a for a in self.assumptions if a not in self.axioms) if self.rows else self.assumptions

    def deepened(self, wanted: Deeper) -> Domain:
        """Returns the domain with more symbols of its rows, bounds on their ranks, and the axioms of all."""
        symbols = deepened(self.symbols, wanted)
        bounds = (le(rank(name), most) for name, most in wanted.bounded.items())
        declared = (*self.declared, *bounds, *axioms(symbols))
        return Domain(symbols, (*dict.fromkeys(declared),))


def ranges_of(formulas: tuple[Formula, ...]) -> Ranges:
    """Returns the interval of each symbol that the formulas over it alone leave."""
    ranges: dict[str, Interval] = {}
    for formula in formulas:
        narrow(ranges, formula)
    return ranges


class Answer(Enum):
    """The truth of a formula over all assignments that satisfy the given conditions, as far as it is known.
    """

    ALWAYS = "always"
    NEVER = "never"
    SOMETIMES = "sometimes"
    UNKNOWN = "unknown"


class Oracle(Protocol):
    """Decides branches while a program is recorded: the solver, passed in from outside."""

    domain: Domain
    """The assumptions that apply to every question, in addition to those given with it."""

    def decide(self, formula: Formula, given: Sequence[Formula]) -> Answer:
        """Returns whether the formula holds for all assignments that satisfy the given conditions, for none,
        or for some.
        """

    def example(self, given: Sequence[Formula]) -> dict[str, int] | None:
        """Returns a small assignment that satisfies the given conditions; None where none was found or
        exists.
        """


@dataclass(frozen=True, slots=True)
class Condition:
    """A branch decision: the condition on sizes, and the outcome that the path took.

    `forced` means that the domain and the path so far allowed no other outcome. A condition on data has no
    formula.
    """

    formula: Formula | None
    taken: bool
    origin: Origin
    forced: bool = False
    after: int = 0
    """The number of constraints of the path that come before it."""
    given: Formula = True
    """For a branch in a call whose paths were merged: the sizes at which the path reaches the branch."""
    caught: bool = False
    """Whether this is the requirement of an operator whose refusal the program catches."""
    settled: Formula = False
    """For a branch on data: the sizes at which no data, NaN and infinity aside, have another outcome."""

    @property
    def known(self) -> Formula:
        """Returns what the outcome says of sizes."""
        return True if self.formula is None else self.formula if self.taken else negate(self.formula)


def premise(conditions: Iterable[Condition]) -> Formula:
    """Returns the condition on sizes under which these decisions are made."""
    return all_of(c.known for c in conditions if not c.forced)


def in_order(
    conditions: Iterable[Condition], constraints: Iterable[tuple[int, Constraint]]
) -> list[tuple[int, Condition | Constraint]]:
    """Returns the branches and the requirements of a path, those with their places among all requirements, in
    the order in which the program comes to them.
    """
    steps: list[tuple[int, bool, Condition | Constraint]] = [(c.after, False, c) for c in conditions]
    steps += [(place, True, constraint) for place, constraint in constraints]
    return [(place, step) for place, _, step in sorted(steps, key=lambda step: step[:2])]


@dataclass(frozen=True, slots=True)
class End:
    """The end of a path: it returned, the model raised an error of its own, or the recorder had to give up.
    """

    how: Literal["returned", "raised", "gave-up"] = "returned"
    reason: str = ""
    origin: Origin = field(default_factory=Origin)
    by_library: bool = False
    """Whether a library of torch's raised the error, and no line of the model's."""


@dataclass(frozen=True, slots=True)
class Path:
    """One path through the target: its conditions, the program recorded along it, and the requirements of its
    nodes.
    """

    program: Program
    values: dict[int, Value]
    constraints: tuple[Constraint, ...]
    notes: tuple[Note, ...] = ()
    conditions: tuple[Condition, ...] = ()
    end: End = End()
    unbacked: tuple[tuple[str, Formula], ...] = ()
    """Sizes that the data decides, each with the known condition on it."""
    turns: tuple[Condition, ...] = ()
    """Branches in calls whose paths were merged: this path continues whatever their outcome."""

    @property
    def premise(self) -> Formula:
        """Returns the condition on sizes under which this path is taken."""
        return premise(self.conditions)

    @property
    def on_data(self) -> bool:
        """Returns whether the data decided a branch."""
        return any(c.formula is None for c in self.conditions)


def that_matter(notes: Iterable[Note], asked: Iterable[Formula]) -> tuple[Note, ...]:
    """Returns the notes but those on a number that none of the formulas contains.

    A requirement is decided for all that a number may be, so that only branches ask for the one that it is.
    """
    used = frozenset[str]().union(*map(free_symbols, asked))
    return tuple(note for note in notes if not note.number or note.number in used)


@dataclass(frozen=True, slots=True)
class System:
    """All paths of a target over its domain. `complete` is the reason why paths are missing, or empty."""

    domain: Domain
    paths: tuple[Path, ...]
    incomplete: str = ""
