"""The data of requests and answers: with `app.py`, the contract that OpenAPI publishes."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from ..queue.store import Entry
from ..queue.tables import State
from .auth import PRIORITIES

Priority = Literal["low", "normal", "high"]
StateName = Literal["queued", "running", "done", "failed", "cancelled"]
FormName = Literal["pt2", "recorded", "program", "pair"]
VerdictName = Literal["proved", "refined", "refuted", "unknown"]
NO_NUL: Final = r"^[^\x00]*$"
"""PostgreSQL keeps no text with that character in it."""
_PRIORITY_NAMES: dict[int, Priority] = {-1: "low", 0: "normal", 1: "high"}
assert {name: number for number, name in _PRIORITY_NAMES.items()} == PRIORITIES


class Problem(BaseModel):
    """The reason why a request has no answer (RFC 9457), with a hint on what to do."""

    status: int
    detail: str
    hint: str = ""


class QuestionAsked(BaseModel):
    """The question about a model."""

    kind: str = Field(description="the kind of check")
    inputs: list[str] | None = Field(description="lines of the spec; null means those sent with the model")
    assume: list[str]
    budget_s: float
    replay: bool
    suspect: list[str] = Field([], description="suspicions to look for in addition to the usual ones")
    finite: int | None = Field(None, description="for refine: bound of unbounded symbols")
    second_solver: str | None = Field(None, description="a second solver that checks the verdict")
    device: str | None = Field(None, description="the device to run on; null for that of the program")


class Failure(BaseModel):
    """The reason why a check has no report."""

    kind: Literal["input", "crash"] = Field(description="why the check failed")
    problem: str
    hint: str = ""


class Check(BaseModel):
    """A check that was asked for."""

    id: str
    name: str
    state: StateName
    verdict: VerdictName | None = None
    step: str = Field("", description="the current step while it runs")
    waiting: int | None = Field(None, description="number of checks ahead of it in the queue")
    model: str = Field(description="digest of the program")
    form: FormName = Field(description="`recorded` was traced for its inputs; `pair` is a comparison")
    asked: QuestionAsked
    priority: Priority
    created: float = Field(description="seconds since 1970")
    started: float | None = None
    finished: float | None = None
    failure: Failure | None = None
    comparison: dict[str, Any] | None = Field(None, description="for a comparison: its findings")


class Checks(BaseModel):
    """A page of a list, latest first."""

    checks: list[Check]
    next: str | None = Field(None, description="`before` of the next page, where there is one")


class Variant(BaseModel):
    """Another question about a model that was sent before. What is left out stays as it was."""

    kind: Literal["check", "refine", "branches", "migrate"] = "check"
    inputs: list[str] | None = Field(None, max_length=200)
    assume: list[str] | None = Field(None, max_length=200)
    budget_s: float | None = Field(None, gt=0)
    finite: int | None = Field(None, ge=1, le=1 << 40, description="for refine: bound of unbounded symbols")
    name: str | None = Field(None, min_length=1, max_length=200, pattern=NO_NUL)
    priority: Priority | None = Field(None, description="default: the highest allowed up to normal")


class Comparison(BaseModel):
    """Two checks that are done."""

    first: str = Field(pattern="^[0-9a-f]{20}$", description="id of a check")
    second: str = Field(pattern="^[0-9a-f]{20}$", description="id of a check")


class Spec(BaseModel):
    """The accepted sizes, as far as `torch.export` can express them."""

    json_: dict[str, Any] = Field(alias="json", description="the spec, and what it could not express")
    python: str = Field(description="the same as Python to paste")
    inner_sizes: dict[str, Any] = Field({}, description="for refine: facts about each inner size")


class Migration(BaseModel):
    """The types that fit the program. A type is a text such as `float32[b, 2, h//2]`."""

    static: dict[str, Any] | None = Field(description="`sizes` and `types` of one; null where none is known")
    principal: dict[str, str] = Field(description="the type of each value that all static migrations share")
    types: dict[str, str] = Field(description="the type of each value, sizes as terms over the symbols")


class Health(BaseModel):
    """Whether the service works, part by part."""

    status: Literal["ok", "not ready"]
    problems: list[str] = []


def check_of(entry: Entry, waiting: int | None = None, comparison: dict[str, Any] | None = None) -> Check:
    """Returns the public data of a job."""
    job, work, state = entry.job, entry.work, entry.state
    question = json.loads(work.question)
    return Check(
        id=job.id,
        name=job.name,
        state=state.value,
        verdict=work.verdict or None if state is State.DONE else None,  # type: ignore[arg-type]
        step=work.step if state is State.RUNNING else "",
        waiting=waiting,
        model=work.model,
        form=entry.form,  # type: ignore[arg-type]
        asked=QuestionAsked(**{key: question[key] for key in QuestionAsked.model_fields if key in question}),
        priority=_PRIORITY_NAMES[work.priority],
        created=job.created,
        started=work.started,
        finished=work.finished,
        failure=None if entry.problem is None else Failure(**entry.problem),  # type: ignore[arg-type]
        comparison=comparison,
    )
