"""The routes: submitting checks, and all that can be asked of one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import StreamingResponse

from ...facade import Report
from ...render.formats import FORMATS, written
from ..ops.settings import MB
from ..queue.events import Progress
from ..queue.store import Entry, Submission, answer_of
from ..queue.tables import State
from ..work import comparing
from . import jobs, schemas
from .auth import Who
from .contract import BEARER, EVENTS, KNOWN, PROBLEMS, REPORTS, Asking, Id, Lines, ReportForm, Serving
from .core import Service
from .gate import Refusal
from .pages import REPORT_POLICY
from .schemas import NO_NUL, Check, Checks, Priority, Spec, Variant, check_of
from .uploads import Upload, received

SILENCE_S: Final = 15.0
LONGEST_WAIT_S: Final = 60.0

router = APIRouter(dependencies=BEARER)


def _found(service: Service, who: Who, id: str, *, answer: bool = False) -> Entry:
    """Raises Refusal where the tenant has no such check."""
    entry = service.store.job(who.tenant, id, answer=answer)
    if entry is None:
        raise Refusal(404, f"there is no check {id}")
    return entry


def _shown(service: Service, entry: Entry) -> Check:
    waiting = service.store.position(entry.work) if entry.state is State.QUEUED else None
    comparison = None
    if entry.state is State.DONE and json.loads(entry.work.question)["kind"] == "compare":
        comparison = service.store.answer(entry.work.digest).get("comparison")
    return check_of(entry, waiting, comparison)


def _accepted(service: Service, asked: Submission, response: Response) -> Check:
    """Submits a check and returns the answer to the request. Raises Refusal where the queue is full."""
    entry = service.submit(asked)
    response.status_code = 200 if entry.state.final else 202
    response.headers["location"] = f"/v1/checks/{entry.job.id}"
    return _shown(service, entry)


@router.post("/v1/checks", status_code=202, tags=["checks"], responses=KNOWN)
def submit(
    response: Response,
    service: Serving,
    who: Asking,
    model: Annotated[UploadFile, File(description="a .pt2, or the JSON of a program")],
    name: Annotated[
        str, Form(max_length=200, pattern=NO_NUL, description="the name of the check")
    ] = "",
    inputs: Lines = None,
    assume: Lines = None,
    budget_s: Annotated[float | None, Form(gt=0)] = None,
    replay: Annotated[bool, Form()] = True,
    suspect: Lines = None,
    second_solver: Annotated[
        str | None, Form(max_length=20, description="a second solver to ask: `cvc5`")
    ] = None,
    device: Annotated[
        str | None, Form(max_length=20, description="the device to run on: `cpu` or `cuda`")
    ] = None,
    priority: Annotated[Priority | None, Form(description="default: at most normal")] = None,
) -> Check:
    """Asks for which inputs a program runs. The same question about the same program is solved once."""
    asked = jobs.question(
        service.settings,
        inputs=inputs,
        assume=assume or (),
        budget_s=budget_s,
        replay=replay,
        suspect=suspect or (),
        second_solver=second_solver,
        device=device,
    )
    content = received(model.file, int(service.settings.max_program_mb * MB))
    file = (model.filename or "").replace("\0", "").replace("\\", "/")
    called = name or file.rpartition("/")[2][:200] or "model"
    number = jobs.priority(who, priority)
    submission = jobs.submission(who, called, content, content.digest, asked, number)
    return _accepted(service, submission, response)


@router.get("/v1/checks", tags=["checks"], responses=PROBLEMS)
def history(
    service: Serving, who: Asking, state: Annotated[list[schemas.StateName] | None, Query()] = None,
    verdict: Annotated[list[schemas.VerdictName] | None, Query()] = None,
    name: Annotated[str, Query(max_length=200, pattern=NO_NUL, description="a part of the name")] = "",
    before: Annotated[str, Query(pattern="^([0-9a-f]{20})?$", description="`next` of a page")] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Checks:
    """Returns the checks that were submitted, latest first."""
    try:
        entries = service.store.jobs(
            who.tenant, states=state or (), verdicts=verdict or (), name=name, before=before, limit=limit
        )
    except LookupError as gone:
        raise Refusal(404, f"{gone}; start again without `before`") from None
    after = entries[-1].job.id if len(entries) == limit else None
    return Checks(checks=[check_of(entry) for entry in entries], next=after)


@router.get("/v1/checks/{id}", tags=["checks"], responses=PROBLEMS)
async def state(
    service: Serving, who: Asking, id: Id,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, description="seconds to wait for its end")] = 0,
) -> Check:
    """Where a check stands. With `wait`, the answer comes when it has ended, or the time has."""
    entry = await asyncio.to_thread(_found, service, who, id)
    if wait and not entry.state.final:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                async for progress in service.hub.follow(entry.work.digest, LONGEST_WAIT_S):
                    if progress is None and (await asyncio.to_thread(_found, service, who, id)).state.final:
                        break
        entry = await asyncio.to_thread(_found, service, who, id)
    return await asyncio.to_thread(_shown, service, entry)


@router.delete("/v1/checks/{id}", status_code=204, tags=["checks"], responses=PROBLEMS)
def forget(service: Serving, who: Asking, id: Id) -> None:
    """Deletes a check, its report, and its program where no other check is about it."""
    entry = _found(service, who, id)
    if not service.store.forget(who.tenant, id):
        raise Refusal(404, f"there is no check {id}")
    service.hub.look(entry.work.digest)


@router.post("/v1/checks/{id}/cancel", tags=["checks"], responses=PROBLEMS)
def cancel(service: Serving, who: Asking, id: Id) -> Check:
    """Gives a check up. One that has ended stays as it is."""
    entry = service.store.cancel(who.tenant, id)
    if entry is None:
        raise Refusal(404, f"there is no check {id}")
    service.hub.tell(entry.work.digest, "")
    service.hub.look(entry.work.digest)
    return _shown(service, entry)


@router.post("/v1/checks/{id}/variants", status_code=202, tags=["checks"], responses=KNOWN)
def variant(service: Serving, who: Asking, id: Id, asked: Variant, response: Response) -> Check:
    """Asks another question about the same program: other inputs, other assumptions, another kind."""
    entry = _found(service, who, id)
    before = json.loads(entry.work.question)
    changed = jobs.question(
        service.settings,
        kind=asked.kind,
        inputs=before["inputs"] if asked.inputs is None else asked.inputs,
        assume=before["assume"] if asked.assume is None else asked.assume,
        budget_s=before["budget_s"] if asked.budget_s is None else asked.budget_s,
        replay=before["replay"],
        finite=asked.finite,
        suspect=before.get("suspect", ()),
        second_solver=None if asked.kind == "migrate" else before.get("second_solver"),
        device=before.get("device"),
    )
    name, number = asked.name or entry.job.name, jobs.priority(who, asked.priority)
    if entry.form == comparing.FORM:
        raise Refusal(409, "a comparison of two checks has no variants")
    content = Upload(entry.form, b"")  # which the store has
    submission = jobs.submission(who, name, content, entry.work.model, changed, number)
    return _accepted(service, submission, response)


def _answered(service: Service, who: Who, id: str) -> tuple[Entry, dict[str, Any]]:
    """Raises Refusal where there is no answer."""
    entry = _found(service, who, id, answer=True)
    if entry.state is State.FAILED:
        failure = entry.problem or {}
        raise Refusal(409, f"the check failed: {failure.get('problem')}")
    if entry.state is not State.DONE:
        raise Refusal(409, f"the check is {entry.state.value}, and has no answer yet")
    answer = answer_of(entry.work)
    if "report" not in answer:
        raise Refusal(409, "this is a comparison of two checks, which has no report of its own")
    return entry, answer


@router.post("/v1/comparisons", status_code=202, tags=["checks"], responses=KNOWN)
def compare(service: Serving, who: Asking, asked: schemas.Comparison, response: Response) -> Check:
    """Asks how what two programs accept lies to each other, symbol by symbol of the same name."""
    entries = [_answered(service, who, id) for id in (asked.first, asked.second)]
    accepts = [answer["report"]["accepts"] for _, answer in entries]
    content = Upload(comparing.FORM, json.dumps(accepts, sort_keys=True).encode())
    question = jobs.question(service.settings, kind="compare")
    name = " and ".join(entry.job.name for entry, _ in entries)[:200]
    number = jobs.priority(who, None)
    submission = jobs.submission(who, name, content, content.digest, question, number)
    return _accepted(service, submission, response)


@router.get("/v1/checks/{id}/report", tags=["answers"], responses=REPORTS, response_class=Response)
def report(
    request: Request, service: Serving, who: Asking, id: Id, format: ReportForm = "json",
    shapes: Annotated[bool, Query(description="for text: include all intermediate shapes")] = False,
) -> Response:
    """The report of a check that is done, in one of the forms that `anyshape check` has."""
    entry, answer = _answered(service, who, id)
    tag = f'"{entry.work.digest[:24]}-{format}-{int(shapes)}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"etag": tag})
    answer["report"]["target"] = entry.job.name
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if format == "html":
        headers["content-security-policy"] = REPORT_POLICY
    if format == "json":
        text = json.dumps(answer["report"])
    else:
        told = Report.from_json(answer["report"])
        text = told.to_text(shapes=shapes) if format == "text" else written(format, [told], project=False)
    return Response(text.encode(errors="backslashreplace"), media_type=FORMATS[format].media, headers=headers)


@router.get("/v1/checks/{id}/spec", tags=["answers"], responses=PROBLEMS)
def spec(service: Serving, who: Asking, id: Id) -> Spec:
    """Returns the accepted sizes, as far as `torch.export` can express them."""
    _, answer = _answered(service, who, id)
    if not answer.get("spec"):
        raise Refusal(409, "there is no spec: no declared input is known to run")
    return Spec(**answer["spec"], inner_sizes=answer.get("inner_sizes", {}))


@router.get("/v1/checks/{id}/branches", tags=["answers"], responses=PROBLEMS)
def branches(service: Serving, who: Asking, id: Id) -> list[dict[str, Any]]:
    """The branches of the program on sizes, and which way the declared inputs take.

    Of a variant of the kind `branches`: what each condition is for them, and for which it is true and false.
    """
    _, answer = _answered(service, who, id)
    told: list[dict[str, Any]] = answer.get("branches", answer["report"]["branches"])
    return told


@router.get("/v1/checks/{id}/migration", tags=["answers"], responses=PROBLEMS)
def migration(service: Serving, who: Asking, id: Id) -> schemas.Migration:
    """Of a variant of the kind `migrate`: a static migration, and the types of all values."""
    _, answer = _answered(service, who, id)
    if "migration" not in answer:
        raise Refusal(409, "this check has no types: request a variant of the kind migrate")
    return schemas.Migration(**answer["migration"])


@router.get("/v1/checks/{id}/events", tags=["checks"], responses=EVENTS, response_class=StreamingResponse)
async def events(service: Serving, who: Asking, id: Id) -> StreamingResponse:
    """Server-sent events: `progress` after each change, until it has ended."""
    entry = await asyncio.to_thread(_found, service, who, id)
    return StreamingResponse(
        _stream(service, who, entry), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _stream(service: Service, who: Who, entry: Entry) -> AsyncIterator[str]:
    with service.metrics.streams.track_inprogress():
        async for progress in service.hub.follow(entry.work.digest, SILENCE_S):
            now = await asyncio.to_thread(service.store.job, who.tenant, entry.job.id)
            if now is None or now.job.cancelled:
                progress = Progress(State.CANCELLED)
            if progress is None:
                yield ": still there\n\n"
                continue
            data = {
                "id": entry.job.id,
                "state": progress.state.value,
                "step": progress.step,
                "verdict": progress.verdict or None,
            }
            yield f"event: progress\ndata: {json.dumps(data)}\n\n"
            if progress.state.final:
                return
