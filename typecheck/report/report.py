"""The report of a check as plain data: a verdict, the accepted set, facts, findings and symbolic shapes.

Everything here is frozen and imports nothing that renders it. `render/` and `dim_specs/` have functions of a
report, `facade.py` the methods by which users call them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from ...constraints.ir.language import Fact
from ...constraints.ir.program import Origin
from ...constraints.terms.formula import Formula, all_of, holds
from ...constraints.terms.rows import axioms
from .codes import Code, Severity
from .values import SymbolicValue


class Verdict(StrEnum):
    """For which of the declared inputs the program runs."""

    PROVED = "proved"
    """For each of them."""
    REFINED = "refined"
    """For those that `Report.accepts` describes, which are some, not all."""
    REFUTED = "refuted"
    """For none."""
    UNKNOWN = "unknown"
    """It is not known; the findings say which part of the program, and why."""


@dataclass(frozen=True, slots=True)
class Accepts:
    """The inputs for which the program runs, as a condition on the symbols of the input spec."""

    formula: Formula
    """Over the inputs in the domain; `str` prints it, and `parse_formula` reads it back."""
    domain: Formula
    """The declared inputs: the bounds of the symbols and the assumptions."""
    symbols: tuple[str, ...]
    """The symbols of the input spec, in order of appearance."""
    exact: bool = True
    """False where the condition is not known in full: with the verdict `unknown`, or if something on which it
    rests is approximate.
    """
    sure: Formula | None = None
    """The part of the condition that is proved whatever is not exact; None where that is all of it."""

    @property
    def certain(self) -> Accepts:
        """Returns the inputs for which the program provably runs, whether or not the accepted set is exact.
        """
        return replace(self, formula=self.formula if self.sure is None else self.sure, exact=True, sure=None)

    def holds(self, **values: int) -> bool:
        """Returns whether the input of these sizes is declared and accepted. Every symbol needs a value.

        Raises TypeError if a symbol has no value, or if a value belongs to no symbol.
        """
        return self._holds(all_of((self.domain, *axioms(self.symbols), self.formula)), values)

    def declared(self, **values: int) -> bool:
        """Returns whether the input of these sizes is declared, whether it is accepted or not."""
        return self._holds(all_of((self.domain, *axioms(self.symbols))), values)

    def _holds(self, formula: Formula, values: Mapping[str, int]) -> bool:
        if missing := [name for name in self.symbols if name not in values]:
            raise TypeError(f"no value for {', '.join(missing)}")
        if unknown := [name for name in values if name not in self.symbols]:
            raise TypeError(f"no symbol {', '.join(unknown)}; the symbols are {', '.join(self.symbols)}")
        try:
            return holds(formula, values)
        except ZeroDivisionError:  # a partial term is asked where it has no value: nothing runs there
            return False

    def __str__(self) -> str:
        return str(self.formula)


@dataclass(frozen=True, slots=True)
class Link:
    """A call on the way to a finding: its operator, what it gave, and where it stands."""

    op: str
    result: str
    origin: Origin
    node: int | None = None
    """The call in `Report.shapes`, where it is one of these."""
    passed: bool = False
    """True if the call hands the sizes in question on unchanged: short explanations leave it out."""
    axes: tuple[int, ...] = ()
    """The axes of the result whose sizes are in question."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change after which the finding is gone: tried on the program, proved, and replayed."""

    message: str
    """`change 400 to 256 (in_features of fc1)`."""
    origin: Origin
    """The line to change; `old` is its text from `start` to `stop`. Without a line the message describes the
    change.
    """
    old: str = ""
    new: str = ""
    safe: bool = True
    """False if the change may give the program another meaning: it drops data, or gives other outputs for
    inputs for which another repair keeps them.
    """
    outputs: tuple[str, ...] = ()
    """The outputs that the change gives other shapes, as `output: float32[b, 10] -> float32[b, 12]`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the user should know."""

    code: Code
    message: str
    severity: Severity
    origin: Origin = field(default_factory=Origin)
    """The line of the program that it is about."""
    op: str = ""
    """The operator whose call it is about."""
    condition: str = ""
    """The requirement of this line, over the symbols of the input spec; empty where it has none."""
    count: int = 1
    """The number of this line's requirements that the finding covers; the message is that of the first."""
    chain: tuple[Link, ...] = ()
    """The origin of the sizes in question: inputs and parameters, then calls, nearest last."""
    conflict: tuple[Link, ...] = ()
    """Other requirements that contradict this one, each needed for that: `result` is what it requires."""
    witness: Mapping[str, int] | None = None
    """Sizes that show it, replayed if `Report.replayed` says so."""
    evidence: str = ""
    """The error that the replay of the witness raised."""
    node: int | None = None
    """The index in `Report.shapes` of the call that it is about, if that is listed there."""
    repairs: tuple[Repair, ...] = ()
    """Changes after which it is gone: those that keep the meaning of the program come first, and of these
    the most likely.
    """
    built: Origin | None = None
    """The line that gave numbers to the constructor of the module in which the finding is, if it is known."""
    suppressed: Literal["", "source", "project", "baseline"] = ""
    """The source of the declaration that this finding is known and not to be shown, if there is one."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor or size that a call takes, and where it comes from."""

    value: str
    """The value, with symbolic sizes."""
    node: int | None = None
    """The call in `Report.shapes` that made it; None for an input of the program."""
    name: str = ""
    """The name of the input."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The results of one call, with symbolic sizes."""

    node: int
    op: str
    results: tuple[str, ...]
    origin: Origin
    operands: tuple[Operand, ...] = ()
    """Without parameters and literals."""


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the program. `when` is the condition on sizes under which the program returns it, empty if
    it always does.
    """

    name: str
    value: SymbolicValue
    when: str = ""
    operands: tuple[Operand, ...] = ()
    """The origins of its tensors, if `Report.shapes` has the calls."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of the program on sizes, or on data; then `condition` is empty. `eliminated`: for all declared
    inputs the condition is `taken`. `explored`: both sides were followed.
    """

    origin: Origin
    condition: str
    outcome: Literal["eliminated", "explored"]
    taken: bool | None = None


@dataclass(frozen=True, slots=True)
class ConditionPart:
    """A part of the condition of a refined report: `Accepts.formula` is the conjunction of them."""

    condition: str
    imposed: tuple[Link, ...]
    """A minimal set of calls that impose it; `result` of each is its requirement."""
    refused: Mapping[str, int] | None = None
    """Sizes that meet all other parts, and not this one, where there are any."""


@dataclass(frozen=True, slots=True)
class InTraining:
    """What is otherwise for a module in training, where a report is on its evaluation."""

    verdict: Verdict
    accepts: Accepts
    adds: tuple[ConditionPart, ...] = ()
    """What training needs besides what evaluation needs, where that is all that differs."""
    why: Finding | None = None
    """The finding that says why nothing runs, or why it is not known."""


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """Another solver's opinion on all answers on which the verdict rests."""

    solver: str
    """Its name and version."""
    outcome: Literal["agreed", "not-decided", "disagreed"]
    asked: int
    """The number of questions that it was asked."""
    reason: str = ""
    """The reason why the solver does not decide, or disagrees."""
    query: str = ""
    """The path of a file with the question that this is about, in SMT-LIB 2; of a service's report the
    question itself.
    """


@dataclass(frozen=True, slots=True)
class ReportData:
    """The inputs for which a program runs, and what was found on the way; `facade.Report` adds methods."""

    target: str
    inputs: tuple[str, ...]
    """The input spec, one line per input."""
    verdict: Verdict
    accepts: Accepts
    dims: Mapping[str, Fact]
    """The known facts about each symbol, over the accepted inputs."""
    findings: tuple[Finding, ...] = ()
    shapes: Sequence[Shape] = ()
    """The shape of every intermediate value, along the first path through the program that returns."""
    outputs: tuple[Output, ...] = ()
    branches: tuple[Branch, ...] = ()
    runs_at: Mapping[str, int] | None = None
    """An example of accepted sizes."""
    fails_at: Mapping[str, int] | None = None
    """An example of declared sizes that are refused."""
    replayed: str = ""
    """The method by which the examples were run; empty where they were not."""
    stats: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each step (`trace_s`, `generate_s`, `solve_s`, `replay_s`), and counts."""
    ways: Sequence[Formula] = ()
    """The sizes that take each path through the program that returns, if there are several."""
    parts: tuple[ConditionPart, ...] = ()
    """The parts of the condition with the lines that impose them, with the verdict `refined`."""
    second_opinion: SecondOpinion | None = None
    """Another solver's opinion, where one was asked."""
    training: InTraining | None = None
    """What is otherwise in training, where the report is on evaluation and training was looked at, too."""

    @property
    def supposed(self) -> Formula:
        """The sizes to work with: where no condition is known, those that are certain, if any are."""
        accepts = self.accepts
        certain = accepts.certain.formula
        vague = self.verdict is Verdict.UNKNOWN and accepts.formula is True
        return certain if vague and certain is not False else accepts.formula

    @property
    def open_findings(self) -> tuple[Finding, ...]:
        """Returns the findings, apart from notes, that are not suppressed."""
        return tuple(f for f in self.findings if not f.suppressed and f.severity is not Severity.NOTE)

    @property
    def passes(self) -> bool:
        """Returns whether the verdict is proved and no error is found, or every finding against it is
        suppressed.
        """
        idle = Code.UNUSED_SUPPRESSION
        against = [f for f in self.findings if f.severity is not Severity.NOTE and f.code is not idle]
        known = bool(against) and all(f.suppressed for f in against)
        errors = any(f.severity is Severity.ERROR and not f.suppressed for f in self.findings)
        return (self.verdict is Verdict.PROVED and not errors) or known
