"""The constraint system of a target: the declared domain, and what each path through the program asks of its
inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Literal, Protocol

from ..terms.formula import Formula, all_of, le, negate
from ..terms.intervals import Interval, Ranges, narrow
from ..terms.parts import rank
from ..terms.rows import Deeper, axioms, deepened, names
from .language import Constraint, Note, Value
from .program import Origin, Program


@dataclass(frozen=True)
class Domain:
    """What the user declared: the symbols of the inputs, in order of appearance, and what is assumed of them.
    """

    symbols: tuple[str, ...] = ()
    assumptions: tuple[Formula, ...] = ()

    @cached_property
    def ranges(self) -> Ranges:
        """The interval that assumptions over a single symbol leave to it."""
        return ranges_of(self.assumptions)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The rows (rows.py) of inputs of unknown rank."""
        return names(self.symbols)

    @cached_property
    def axioms(self) -> frozenset[Formula]:
        """The assumptions that nobody made: what holds of the symbols of rows whatever the input."""
        return frozenset(axioms(self.symbols))

    @property
    def declared(self) -> tuple[Formula, ...]:
        """The assumptions without the axioms."""
        return tuple(a for a in self.assumptions if a not in self.axioms) if self.rows else self.assumptions

    def deepened(self, wanted: Deeper) -> Domain:
        """The domain with more symbols of its rows, bounds on their ranks, and the axioms of all."""
        symbols = deepened(self.symbols, wanted)
        bounds = (le(rank(name), most) for name, most in wanted.bounded.items())
        declared = (*self.declared, *bounds, *axioms(symbols))
        return Domain(symbols, (*dict.fromkeys(declared),))


def ranges_of(formulas: tuple[Formula, ...]) -> Ranges:
    """The intervals that formulas over a single symbol leave to it."""
    ranges: dict[str, Interval] = {}
    for formula in formulas:
        narrow(ranges, formula)
    return ranges


class Answer(Enum):
    """What is known of a formula over all assignments that satisfy what is given."""

    ALWAYS = "always"
    NEVER = "never"
    SOMETIMES = "sometimes"
    UNKNOWN = "unknown"


class Oracle(Protocol):
    """Who decides branches while a program is recorded: the solver, handed in from outside."""

    domain: Domain
    """What is given on top of what is asked with a question."""

    def decide(self, formula: Formula, given: Sequence[Formula]) -> Answer:
        """Does the formula hold for all assignments that satisfy what is given, for none, or for some?"""

    def example(self, given: Sequence[Formula]) -> dict[str, int] | None:
        """A small assignment that satisfies what is given; None where there is none or none was found."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A branch: the condition on sizes that was asked, and the way the path went.

    `forced` says that the domain and the path so far left no other way. A condition on data has no formula.
    """

    formula: Formula | None
    taken: bool
    origin: Origin
    forced: bool = False
    after: int = 0
    """How many constraints of the path come before it."""
    given: Formula = True
    """Of a branch in a call whose ways were merged: the sizes of the path that come so far."""
    caught: bool = False
    """It is what an operator requires that is called where the program catches its refusal."""


@dataclass(frozen=True, slots=True)
class End:
    """How a path ended: it returned, the model raised an error of its own, or the recorder had to give up."""

    how: Literal["returned", "raised", "gave-up"] = "returned"
    reason: str = ""
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True, slots=True)
class Path:
    """One way through the target: its conditions, the program recorded along it and what its nodes require.
    """

    program: Program
    values: dict[int, Value]
    constraints: tuple[Constraint, ...]
    notes: tuple[Note, ...] = ()
    conditions: tuple[Condition, ...] = ()
    end: End = End()
    unbacked: tuple[tuple[str, Formula], ...] = ()
    """Sizes that the data decides, each with what is known of it."""
    turns: tuple[Condition, ...] = ()
    """Branches in calls whose ways were merged: the path goes on whichever way they go."""

    @property
    def premise(self) -> Formula:
        """The sizes that take this path."""
        return all_of(
            c.formula if c.taken else negate(c.formula)
            for c in self.conditions
            if c.formula is not None and not c.forced
        )

    @property
    def on_data(self) -> bool:
        """Did the data decide a branch?"""
        return any(c.formula is None for c in self.conditions)


@dataclass(frozen=True, slots=True)
class System:
    """All paths of a target over its domain. `complete` is the reason why paths are missing, or empty."""

    domain: Domain
    paths: tuple[Path, ...]
    incomplete: str = ""
