"""Checks whether another solver agrees: it gets all questions, then the parts of those that it leaves open.

A conclusion needs few of its assumptions, and cvc5 is a decision procedure where symbols are not multiplied:
so each question is first asked with fewer of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, TypeAlias

from .backends import cvc5_backend
from .backends.cvc5_backend import Reply
from .second_opinion import OpinionQuestion, Questions
from .smtlib import as_script

PARTS: Final = 200
"""A question is split into at most this many parts; each contains all assumptions that precede it."""
Outcome: TypeAlias = Literal["agreed", "not-decided", "disagreed"]


@dataclass(frozen=True, slots=True)
class Opinion:
    """The other solver's judgement of a verdict."""

    outcome: Outcome
    asked: int = 0
    """The number of questions that the solver was asked."""
    reason: str = ""
    """The claim that the solver contradicts or leaves open; empty where it agrees with all."""
    script: str = ""
    """The SMT-LIB text of that claim's question."""


def opinion(questions: Questions, seconds: float) -> Opinion:
    """Returns cvc5's judgement of the questions; any that takes longer than these seconds is not decided."""
    asking = _Asking(time.monotonic() + seconds)
    left = asking.ask(questions.asked, cvc5_backend.FEW)
    if asking.contradicted is None and left:
        split = [part for question in left for part in _parts(question)]
        left = asking.ask(split, cvc5_backend.UNITS, all_or_none=True)
    if asking.contradicted is not None:
        question, reply = asking.contradicted
        part = next((p for p in question.parts() if p.holds(reply.values)), question)
        return Opinion("disagreed", asking.asked, f"{part.claim}{_at(reply)}", as_script(question))
    if left:
        return Opinion("not-decided", asking.asked, left[0].claim, as_script(left[0]))
    return Opinion("not-decided" if questions.uncovered else "agreed", asking.asked, questions.uncovered)


def _parts(question: OpinionQuestion) -> list[OpinionQuestion]:
    """Returns the parts of a question, or the question itself where it has at most one part, or too many."""
    parts = [*islice(question.parts(), PARTS + 1)]
    return parts if 2 <= len(parts) <= PARTS else [question]


class _Asking:
    """Questions to cvc5, counted, until an answer contradicts the expected one."""

    def __init__(self, until: float) -> None:
        self.asked = 0
        self.contradicted: tuple[OpinionQuestion, Reply] | None = None
        self._until = until

    def ask(
        self, questions: Sequence[OpinionQuestion], units: int, *, all_or_none: bool = False
    ) -> list[OpinionQuestion]:
        """Returns the questions that get no answer, each tried with few assumptions first and then in full.
        """
        left = [(question, [*question.relaxed]) for question in questions]
        while any(relaxed for _, relaxed in left):
            replies = iter(self._replies([relaxed[0] for _, relaxed in left if relaxed], units))
            known = [bool(relaxed) and next(replies).answer == "unsat" for _, relaxed in left]
            left = [(question, r[1:]) for (question, r), k in zip(left, known, strict=True) if not k]
        full = [question for question, _ in left]
        found = [*zip(full, self._replies(full, units, all_or_none=all_or_none), strict=True)]
        self.contradicted = next((each for each in found if _contradicts(*each)), None)
        return [question for question, reply in found if reply.answer != question.expected]

    def _replies(
        self, questions: Sequence[OpinionQuestion], units: int, *, all_or_none: bool = False
    ) -> list[Reply]:
        self.asked += len(questions)
        left = max(self._until - time.monotonic(), 0.1)
        scripts = [as_script(question) for question in questions]
        return cvc5_backend.replies(scripts, left, units, all_or_none=all_or_none)


def _contradicts(question: OpinionQuestion, reply: Reply) -> bool:
    """Returns whether the reply refutes the claim.

    Values that do not satisfy the question by Python's arithmetic refute nothing: a division by zero may be
    anything to a solver, and no rows of some ranks exist.
    """
    if question.expected == "sat":
        return reply.answer == "unsat"
    return reply.answer == "sat" and question.holds(reply.values)


def _at(reply: Reply) -> str:
    values = ", ".join(f"{name}={value}" for name, value in reply.values.items())
    return f", but not for {values}" if values else ""
