"""The kinds of findings. Each has a heading in `docs/findings.md`; a test compares the two."""

from __future__ import annotations

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


ERROR, WARNING, NOTE = Severity
ASKED: Final = "asked"
UNASKED: Final = "unasked"


class Code(StrEnum):
    """The kinds of findings, by the name that reports show."""

    severity: Severity
    summary: str
    """The meaning in one line."""
    suspected: str
    """Of code that runs and is probably a mistake: UNASKED if correct programs hardly ever raise it, else
    ASKED. Empty for others.
    """

    # Type checkers take a look-up, `Code(name)`, for a call of this function; hence the defaults.
    def __new__(cls, name: str, severity: Severity = ERROR, summary: str = "", suspected: str = "") -> Code:
        code = str.__new__(cls, name)
        code._value_, code.severity, code.summary, code.suspected = name, severity, summary, suspected
        return code

    SHAPE_MISMATCH = "shape-mismatch", ERROR, "a call that fails for every declared input"
    DTYPE = "dtype", ERROR, "a declared dtype that the program refuses"
    CONDITION = "condition", WARNING, "a call that fails for some of the declared inputs"
    RAISES = "raises", WARNING, "an assert or a raise of the program that depends on sizes"
    ANNOTATION = "annotation", WARNING, "a value whose shape or dtype is not as annotated"
    APPROXIMATE = "approximate", WARNING, "an operator whose law is not known exactly"
    NO_RULE = "no-rule", WARNING, "an operator without a rule"
    TRACE_LIMIT = "trace-limit", WARNING, "a limit of the trace that the operators of the program do not have"
    BOUNDED_RANK = "bounded-rank", WARNING, "a rank that is examined only up to a bound"
    INCOMPLETE = "incomplete", WARNING, "a part of the program that was not examined"
    DATA = "data", NOTE, "an error that depends on data alone"
    CHANGED_STATE = "changed-state", NOTE, "attributes of the model that a run assigns"
    CONTRADICTED = "contradicted", WARNING, "a run of the program that contradicts the verdict"
    NOT_REPLAYED = "not-replayed", NOTE, "an example that could not be tried on the program"
    REVEALED = "revealed", NOTE, "the shape of a value that the program asks for"
    UNREAD_ANNOTATION = "unread-annotation", NOTE, "an annotation of a shape that is not compared"
    ROW_COLUMN = "row-column", WARNING, "a column and a row that broadcast to a square", UNASKED
    LOSS_BROADCAST = "loss-broadcast", WARNING, "a loss of two tensors of different shapes", UNASKED
    SWAPPED_SIZES = (
        "swapped-sizes", WARNING, "two sizes of one input with different names that must be equal",
        UNASKED,
    )  # fmt: skip
    FIXED_SYMBOL = "fixed-symbol", WARNING, "a declared symbol that has one value left", ASKED
    BATCH_SOFTMAX = "batch-softmax", WARNING, "a softmax over the batch", UNASKED
    MIXED_BATCH = "mixed-batch", WARNING, "a view in which samples of the batch share a row", ASKED
    IDLE_BRANCH = "idle-branch", NOTE, "a branch on sizes that always goes one way", ASKED
    LOST_PRECISION = (
        "lost-precision", NOTE, "an operator after which shapes are unknown, or not exact", ASKED
    )  # fmt: skip
    GUESSED = "guessed", NOTE, "inputs that nothing declares, and what was checked in their place"
    RAISED_AT_IMPORT = "raised-at-import", ERROR, "an error about sizes while the file is imported"
    RAN_AT_IMPORT = "ran-at-import", NOTE, "code that runs when the file is imported"
    UNTESTED_TORCH = "untested-torch", NOTE, "a torch that is newer than every tested one"
    UNTESTED_PYTHON = "untested-python", NOTE, "a Python that is newer than every tested one"
    UNUSED_SUPPRESSION = "unused-suppression", WARNING, "a suppression that matches no finding"
    INTERNAL_ERROR = "internal-error", ERROR, "a defect of anyshape; please report it"


SUSPICIONS: Final = tuple(code for code in Code if code.suspected)
ON: Final = frozenset(code for code in Code if code.suspected == UNASKED)
"""The suspicions that are looked for unasked."""
