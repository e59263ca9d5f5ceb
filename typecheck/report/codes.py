"""The kinds of findings. Each has a heading in `docs/findings.md`; a test compares the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """The program does not run as declared, or this checker failed."""
    WARNING = "warning"
    """The program runs for some of the declared inputs only, or an answer is less than exact."""
    NOTE = "note"
    """Nothing is wrong; it is good to know."""


class Code(StrEnum):
    """The kinds of findings, by the name that reports show."""

    SHAPE_MISMATCH = "shape-mismatch"
    CONDITION = "condition"
    RAISES = "raises"
    APPROXIMATE = "approximate"
    NO_RULE = "no-rule"
    TRACE_LIMIT = "trace-limit"
    BOUNDED_RANK = "bounded-rank"
    INCOMPLETE = "incomplete"
    DATA = "data"
    CHANGED_STATE = "changed-state"
    CONTRADICTED = "contradicted"
    NOT_REPLAYED = "not-replayed"
    REVEALED = "revealed"
    ROW_COLUMN = "row-column"
    LOSS_BROADCAST = "loss-broadcast"
    SWAPPED_SIZES = "swapped-sizes"
    FIXED_SYMBOL = "fixed-symbol"
    BATCH_SOFTMAX = "batch-softmax"
    MIXED_BATCH = "mixed-batch"
    IDLE_BRANCH = "idle-branch"
    LOST_PRECISION = "lost-precision"
    UNUSED_SUPPRESSION = "unused-suppression"
    INTERNAL_ERROR = "internal-error"

    @property
    def severity(self) -> Severity:
        return MEANINGS[self].severity


@dataclass(frozen=True, slots=True)
class Meaning:
    """The severity of a code and its summary in one line."""

    severity: Severity
    summary: str


MEANINGS: Final[Mapping[Code, Meaning]] = {
    Code.SHAPE_MISMATCH: Meaning(Severity.ERROR, "a call that no declared input gets through"),
    Code.CONDITION: Meaning(Severity.WARNING, "a call that some of the declared inputs do not get through"),
    Code.RAISES: Meaning(Severity.WARNING, "an assert or a raise of the program itself that sizes decide"),
    Code.APPROXIMATE: Meaning(
        Severity.WARNING, "an operator whose law is not known exactly"
    ),
    Code.NO_RULE: Meaning(Severity.WARNING, "an operator of which nothing is known"),
    Code.TRACE_LIMIT: Meaning(
        Severity.WARNING, "a bound of the trace that the model does not need"
    ),
    Code.BOUNDED_RANK: Meaning(Severity.WARNING, "a rank that is looked at up to a bound"),
    Code.INCOMPLETE: Meaning(Severity.WARNING, "a part of the program that was not looked at"),
    Code.DATA: Meaning(Severity.NOTE, "an error that the data alone decide"),
    Code.CHANGED_STATE: Meaning(Severity.NOTE, "attributes of the model that a run assigns"),
    Code.CONTRADICTED: Meaning(Severity.WARNING, "a run of the program that is not what was claimed"),
    Code.NOT_REPLAYED: Meaning(Severity.NOTE, "an example that could not be tried on the program"),
    Code.REVEALED: Meaning(Severity.NOTE, "the shape of a value that the program asks to be told"),
    Code.ROW_COLUMN: Meaning(Severity.WARNING, "a column and a row that broadcast to a square"),
    Code.LOSS_BROADCAST: Meaning(Severity.WARNING, "a loss of two tensors of different shapes"),
    Code.SWAPPED_SIZES: Meaning(
        Severity.WARNING, "two sizes of one input that are declared apart and have to be equal"
    ),
    Code.FIXED_SYMBOL: Meaning(Severity.WARNING, "a declared symbol that has one value left"),
    Code.BATCH_SOFTMAX: Meaning(Severity.WARNING, "a softmax over the batch"),
    Code.MIXED_BATCH: Meaning(Severity.WARNING, "a view in which samples of the batch share a row"),
    Code.IDLE_BRANCH: Meaning(Severity.NOTE, "a branch on sizes that always goes one way"),
    Code.LOST_PRECISION: Meaning(
        Severity.NOTE, "an operator that leaves later shapes unknown, or less than exact"
    ),
    Code.UNUSED_SUPPRESSION: Meaning(Severity.WARNING, "a suppression of findings that there are none of"),
    Code.INTERNAL_ERROR: Meaning(Severity.ERROR, "this checker is wrong here; please report it"),
}

SUSPICIONS: Final = (
    Code.ROW_COLUMN,
    Code.LOSS_BROADCAST,
    Code.SWAPPED_SIZES,
    Code.FIXED_SYMBOL,
    Code.BATCH_SOFTMAX,
    Code.MIXED_BATCH,
    Code.IDLE_BRANCH,
    Code.LOST_PRECISION,
)
"""Code that runs and is probably a mistake."""
ON: Final = frozenset({Code.ROW_COLUMN, Code.LOSS_BROADCAST, Code.SWAPPED_SIZES, Code.BATCH_SOFTMAX})
"""The suspicions that are looked for unasked: correct programs raise them hardly ever."""
