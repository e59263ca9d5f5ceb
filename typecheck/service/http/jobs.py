"""From a request to a submission: what is asked is read, bounded, and given the digest it is known by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from ....constraints.ir.spec_text import SpecError, parse_spec
from ....constraints.terms.formula_text import parse_formula
from ....constraints.terms.syntax import DimSyntaxError
from ...checking.second_solver import named
from ...checking.suspicions import wanted
from ...targets.target import known_device
from ...targets.target_error import TargetError
from ..ops.settings import Settings
from ..queue.store import Submission
from ..work.questions import Question
from .auth import PRIORITIES, Who
from .gate import Refusal
from .uploads import Upload

TORCH_MB: Final = 768
"""Memory of a check from which on there is room for torch."""
MOST_TEXT: Final = 20_000
"""Characters of a spec and its assumptions."""


@cache
def own_version() -> str:
    """A digest of the code that answers: another version's answers are not its own."""
    root = Path(__file__).parents[3]
    digest = hashlib.sha256()
    for part in ("constraints", "solver", "tracer", "typecheck"):
        for file in sorted((root / part).rglob("*.py")):
            digest.update(str(file.relative_to(root)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def question(
    settings: Settings, *, kind: str = "check", inputs: Sequence[str] | None = None,
    assume: Sequence[str] = (), budget_s: float | None = None, replay: bool = True, finite: int | None = None,
    suspect: Sequence[str] = (), second_solver: str | None = None, device: str | None = None,
) -> Question:
    """Returns the question of a request, checked as far as possible without the model. Raises SpecError,
    Refusal.
    """
    budget_s = settings.budget_s if budget_s is None else budget_s
    if not 0 < budget_s <= settings.max_budget_s:
        raise Refusal(422, f"budget_s is {budget_s}, and may be at most {settings.max_budget_s}")
    lines = None if inputs is None else _lines(inputs)
    assume = _lines(assume)
    if sum(map(len, (*(lines or ()), *assume))) > MOST_TEXT:
        raise Refusal(422, f"the spec and its assumptions are longer than {MOST_TEXT} characters")
    _readable(lines, assume)
    try:
        wanted(suspect)
        if second_solver is not None:
            named(second_solver)
        known_device(device)
    except TargetError as error:
        raise Refusal(422, str(error)) from None
    kernels = replay and settings.kernels and settings.memory_mb >= TORCH_MB
    return Question(
        kind, lines, assume, budget_s, replay, finite, tuple(suspect), kernels, second_solver, device
    )


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns all lines of the texts that are not empty, since a form may have several in one field."""
    return tuple(line.strip() for text in texts for line in text.splitlines() if line.strip())


def _readable(lines: Sequence[str] | None, assume: Sequence[str]) -> None:
    """Raises SpecError where the spec cannot be read, or an assumption is no condition.

    Powers of sums alone cost more to read than to write. They are left to the worker, which has limits.
    """
    if any("**" in text for text in (*(lines or ()), *assume)):
        return
    if lines is not None:
        parse_spec(lines, assume)
        return
    for text in assume:
        try:
            parse_formula(text)
        except DimSyntaxError as error:
            raise SpecError(error.problem, error.text, error.column) from None


def priority(who: Who, name: str | None) -> int:
    """Left out: normal, or what the token allows. Raises Refusal where it does not allow it."""
    number = min(PRIORITIES["normal"], who.priority) if name is None else PRIORITIES[name]
    if number > who.priority:
        raise Refusal(403, f"this token does not allow the priority {name}")
    return number


def submission(
    who: Who, name: str, content: Upload, model: str, asked: Question, priority: int
) -> Submission:
    """Returns the entry for the store that this request makes."""
    everything = json.dumps([own_version(), model, asked.to_json()], sort_keys=True)
    return Submission(
        tenant=who.tenant,
        name=name,
        form=content.form,
        content=content.content,
        model=model,
        digest=hashlib.sha256(everything.encode()).hexdigest(),
        question=asked.to_json(),
        priority=priority,
        token=who.token,
    )
