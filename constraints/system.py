"""The constraint system of a target: the declared domain, and what each path through the program asks of its
inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from math import inf
from typing import Literal, Protocol

from .dims import Symbol
from .formula import Compare, Formula, all_of, conjuncts, implies
from .intervals import Ranges
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


def ranges_of(formulas: tuple[Formula, ...]) -> Ranges:
    """Intervals from the conjuncts `c*s + d >= 0` and `c*s + d == 0` with one symbol s; every other is left
    aside.
    """
    ranges: dict[str, tuple[int | float, int | float]] = {}
    for formula in conjuncts(all_of(formulas)):
        if not isinstance(formula, Compare) or formula.op == "!=":
            continue
        (mono, factor), *rest = formula.term.terms
        if len(mono) != 1 or not isinstance(mono[0], Symbol) or any(m for m, _ in rest):
            continue
        constant = rest[0][1] if rest else 0
        low, high = ranges.get(mono[0].name, (-inf, inf))
        if formula.op == "==":
            low, high = max(low, -constant // factor), min(high, -(constant // factor))
        elif factor > 0:
            low = max(low, -(constant // factor))  # s >= -d/c, rounded up
        else:
            high = min(high, constant // -factor)  # s <= d/-c, rounded down
        ranges[mono[0].name] = low, high
    return ranges


class Answer(Enum):
    """What is known of a formula over all assignments that satisfy what is given."""

    ALWAYS = "always"
    NEVER = "never"
    SOMETIMES = "sometimes"
    UNKNOWN = "unknown"


class Oracle(Protocol):
    """Who decides branches while a program is recorded: the solver, handed in from outside."""

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

    @property
    def premise(self) -> Formula:
        """The sizes that take this path."""
        return all_of(
            c.formula if c.taken else _not(c.formula)
            for c in self.conditions
            if c.formula is not None and not c.forced
        )

    @property
    def on_data(self) -> bool:
        """Did the data decide a branch?"""
        return any(c.formula is None for c in self.conditions)


def _not(formula: Formula) -> Formula:
    return implies(formula, False)


@dataclass(frozen=True, slots=True)
class System:
    """All paths of a target over its domain. `complete` is the reason why paths are missing, or empty."""

    domain: Domain
    paths: tuple[Path, ...]
    incomplete: str = ""
