"""The HTTP API, and the service that stands behind it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, File, Form, Query, Request, Response, UploadFile
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from fastapi.security import HTTPBearer
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from ...constraints.spec_text import SpecError
from ..render.formats import WRITERS, written
from ..report import Report
from . import comparing, jobs, schemas
from .auth import Tokens, Who
from .database import Database, is_full
from .events import Hub, Progress
from .gate import Gate, Refusal, problem
from .logs import log
from .metrics import Metrics
from .runner import Runner
from .schemas import Check, Checks, Health, Priority, Problem, Spec, Variant, check_of
from .settings import MB, Settings
from .store import Entry, QueueFull, Store, Submission, answer_of
from .tables import State
from .uploads import Content, UploadError, received
from .workers import Executor, Worker

PAGE: Final = Path(__file__).parent / "page"
VERSION: Final = "1.0"
THREADS: Final = 64
"""Requests that are worked on at a time; others wait."""
SILENCE_S: Final = 15.0
LONGEST_WAIT_S: Final = 60.0
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
"""A report has its scripts within it, and runs as a page of nobody's: it reaches no token and no network."""

MEDIA: Final = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "sarif": "application/sarif+json",
    "junit": "application/xml",
    "github": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
}
assert {*MEDIA} == {"text", *WRITERS}
Form_ = Literal["json", "text", "html", "sarif", "junit", "github", "dot"]


class Service:
    """Everything that belongs together: the store, the workers, and who is told."""

    def __init__(self, settings: Settings, make: Callable[[], Executor] = Worker) -> None:
        self.settings = settings
        self.database = Database(settings.url)
        self.store = Store(self.database)
        self.tokens = Tokens(self.database)
        self.metrics = Metrics(self.store)
        self.hub = Hub(self.store)
        self.runner = Runner(self.store, settings, make, self.metrics, self.hub.tell)

    async def start(self) -> None:
        await asyncio.to_thread(self.database.migrate)
        # An embedded database is one service's own, so that nobody else can be at work on it.
        resumed = await asyncio.to_thread(self.store.resume, self.database.embedded)
        log("service starts", workers=len(self.runner.executors), resumed=resumed)
        await self.hub.start()
        self.runner.start()

    async def stop(self) -> None:
        await self.hub.stop()
        await asyncio.to_thread(self.runner.stop)
        self.database.close()
        log("service ends")

    def submit(self, asked: Submission) -> tuple[Entry, bool]:
        """Raises Refusal where the queue is full."""
        try:
            entry, new = self.store.submit(asked, self.settings.queue_limit, self.settings.client_queue_limit)
        except LookupError as gone:
            raise Refusal(404, str(gone)) from None
        except QueueFull as full:
            self.metrics.submissions.labels("refused").inc()
            wait = min(60, 1 + full.waiting // (4 * self.settings.workers))
            raise Refusal(429, f"{full}; try again later", **{"retry-after": str(wait)}) from None
        known = entry.state is not State.QUEUED
        self.metrics.submissions.labels("known" if known else "new" if new else "again").inc()
        if not known:
            self.runner.wake()
        return entry, new


def create_app(settings: Settings, make: Callable[[], Executor] = Worker) -> FastAPI:
    """The application of one service. Raises ConfigError where the database cannot be used."""
    service = Service(settings, make)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = FastAPI(
        title="anyshape",
        version=VERSION,
        summary="Proves for which input shapes a PyTorch program runs.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    _handlers(app)
    checks = APIRouter(dependencies=BEARER)
    _checks(checks, service)
    app.include_router(checks)
    _health(app, service)
    _pages(app)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=settings.cors_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["authorization", "content-type", "x-request-id"],
        expose_headers=["location", "retry-after", "x-request-id"],
    )
    app.add_middleware(Gate, settings=settings, tokens=service.tokens, metrics=service.metrics)
    return app


def _who(request: Request) -> Who:
    who: Who = request.state.who
    return who


Asking = Annotated[Who, Depends(_who)]
Id = Annotated[str, InPath(pattern="^[0-9a-f]{20}$", description="of a check")]
Lines = Annotated[list[str] | None, Form(max_length=200)]
_PROBLEM: Final = Problem.model_json_schema()
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": told, "content": {"application/problem+json": {"schema": _PROBLEM}}}
    for status, told in (
        (400, "no body that can be read"),
        (401, "no valid token"), (403, "not for this token, or not from this page"), (404, "no such check"),
        (409, "there is no such answer, or not yet"), (413, "too large"), (421, "another service's name"),
        (422, "what was asked cannot be used"), (429, "too much at a time; Retry-After says for how long"),
        (503, "the store is away or full"),
    )
}  # fmt: skip
REPORTS: Final = PROBLEMS | {
    200: {"description": "the report", "content": {media.partition(";")[0]: {} for media in MEDIA.values()}},
    304: {"description": "it is the report of If-None-Match"},
}
EVENTS: Final = PROBLEMS | {200: {"description": "events", "content": {"text/event-stream": {}}}}
KNOWN: Final = PROBLEMS | {200: {"model": Check, "description": "it has an answer already"}}


BEARER: Final = [Depends(HTTPBearer(auto_error=False, description="`anyshape token create NAME`"))]
"""So that the document says it; the gate has asked for the token before."""


def _checks(app: APIRouter, service: Service) -> None:
    """Submitting checks, and all that can be asked of one."""
    settings, store = service.settings, service.store

    def found(who: Who, id: str, *, answer: bool = False) -> Entry:
        entry = store.job(who.tenant, id, answer=answer)
        if entry is None:
            raise Refusal(404, f"there is no check {id}")
        return entry

    def shown(entry: Entry) -> Check:
        waiting = store.position(entry.work) if entry.state is State.QUEUED else None
        comparison = None
        if entry.state is State.DONE and json.loads(entry.work.question)["kind"] == "compare":
            comparison = store.answer(entry.work.digest).get("comparison")
        return check_of(entry, waiting, comparison)

    def accepted(entry: Entry, new: bool, response: Response) -> Check:
        response.status_code = 200 if entry.state.final else 202
        response.headers["location"] = f"/v1/checks/{entry.job.id}"
        return shown(entry)

    @app.post("/v1/checks", status_code=202, tags=["checks"], responses=KNOWN)
    def submit(
        response: Response,
        who: Asking,
        model: Annotated[UploadFile, File(description="a .pt2, or the JSON of a program")],
        name: Annotated[str, Form(max_length=200, description="what it is to be called")] = "",
        inputs: Lines = None,
        assume: Lines = None,
        budget_s: Annotated[float | None, Form(gt=0)] = None,
        replay: Annotated[bool, Form()] = True,
        priority: Annotated[Priority, Form()] = "normal",
    ) -> Check:
        """Asks for which inputs a program runs. The same question about the same program is solved once."""
        asked = jobs.question(
            settings, inputs=inputs, assume=assume or (), budget_s=budget_s, replay=replay
        )
        content = received(model.file, int(settings.max_program_mb * MB))
        called = name or (model.filename or "").replace("\\", "/").rpartition("/")[2][:200] or "model"
        number = jobs.priority(who, priority)
        entry, new = service.submit(jobs.submission(who, called, content, content.digest, asked, number))
        return accepted(entry, new, response)

    @app.get("/v1/checks", tags=["checks"], responses=PROBLEMS)
    def history(
        who: Asking,
        state: Annotated[list[schemas.StateName] | None, Query()] = None,
        verdict: Annotated[list[schemas.VerdictName] | None, Query()] = None,
        name: Annotated[
            str, Query(max_length=200, pattern=r"^[^\x00]*$", description="a part of the name")
        ] = "",
        before: Annotated[str, Query(pattern="^([0-9a-f]{20})?$", description="`next` of a page")] = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> Checks:
        """The checks that were asked for, latest first."""
        entries = store.jobs(
            who.tenant, states=state or (), verdicts=verdict or (), name=name, before=before, limit=limit
        )
        after = entries[-1].job.id if len(entries) == limit else None
        return Checks(checks=[check_of(entry) for entry in entries], next=after)

    @app.get("/v1/checks/{id}", tags=["checks"], responses=PROBLEMS)
    async def state(
        who: Asking,
        id: Id,
        wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, description="seconds for it to end")] = 0,
    ) -> Check:
        """Where a check stands. With `wait`, the answer comes when it has ended, or the time has."""
        entry = await asyncio.to_thread(found, who, id)
        if wait and not entry.state.final:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    async for _ in service.hub.follow(entry.work.digest, LONGEST_WAIT_S):
                        pass
            entry = await asyncio.to_thread(found, who, id)
        return await asyncio.to_thread(shown, entry)

    @app.delete("/v1/checks/{id}", status_code=204, tags=["checks"], responses=PROBLEMS)
    def forget(who: Asking, id: Id) -> None:
        """Deletes a check, its report, and its program where no other check is about it."""
        if not store.forget(who.tenant, id):
            raise Refusal(404, f"there is no check {id}")

    @app.post("/v1/checks/{id}/cancel", tags=["checks"], responses=PROBLEMS)
    def cancel(who: Asking, id: Id) -> Check:
        """Gives a check up. One that has ended stays as it is."""
        entry = store.cancel(who.tenant, id)
        if entry is None:
            raise Refusal(404, f"there is no check {id}")
        service.hub.tell(entry.work.digest, "")
        return shown(entry)

    @app.post("/v1/checks/{id}/variants", status_code=202, tags=["checks"], responses=KNOWN)
    def variant(who: Asking, id: Id, asked: Variant, response: Response) -> Check:
        """Asks another question about the same program: other inputs, other assumptions, another kind."""
        entry = found(who, id)
        before = json.loads(entry.work.question)
        changed = jobs.question(
            settings,
            kind=asked.kind,
            inputs=before["inputs"] if asked.inputs is None else asked.inputs,
            assume=before["assume"] if asked.assume is None else asked.assume,
            budget_s=before["budget_s"] if asked.budget_s is None else asked.budget_s,
            replay=before["replay"],
            finite=asked.finite,
        )
        form = store.model_form(entry.work.model)
        name, number = asked.name or entry.job.name, jobs.priority(who, asked.priority)
        content = Content(form, b"")
        return accepted(
            *service.submit(jobs.submission(who, name, content, entry.work.model, changed, number)), response
        )

    def answered(who: Who, id: str) -> tuple[Entry, dict[str, Any]]:
        """Raises Refusal where there is no answer."""
        entry = found(who, id, answer=True)
        if entry.state is State.FAILED:
            failure = entry.problem or {}
            raise Refusal(409, f"the check failed: {failure.get('problem')}")
        if entry.state is not State.DONE:
            raise Refusal(409, f"the check is {entry.state.value}, and has no answer yet")
        answer = answer_of(entry.work)
        if "report" not in answer:
            raise Refusal(409, "this is a comparison of two checks, which has no report of its own")
        return entry, answer

    @app.post("/v1/comparisons", status_code=202, tags=["checks"], responses=KNOWN)
    def compare(who: Asking, asked: schemas.Comparison, response: Response) -> Check:
        """Asks how what two programs accept lies to each other, symbol by symbol of the same name."""
        entries = [answered(who, id) for id in (asked.first, asked.second)]
        accepts = [answer["report"]["accepts"] for _, answer in entries]
        content = Content(comparing.FORM, json.dumps(accepts, sort_keys=True).encode())
        question = jobs.question(settings, kind="compare")
        name = " and ".join(entry.job.name for entry, _ in entries)[:200]
        return accepted(
            *service.submit(jobs.submission(who, name, content, content.digest, question, 0)), response
        )

    @app.get("/v1/checks/{id}/report", tags=["answers"], responses=REPORTS, response_class=Response)
    def report(
        request: Request,
        who: Asking,
        id: Id,
        format: Form_ = "json",
        shapes: Annotated[bool, Query(description="of text: with all intermediate shapes")] = False,
    ) -> Response:
        """The report of a check that is done, in one of the forms that `anyshape check` has."""
        entry, answer = answered(who, id)
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
        return Response(text.encode(errors="backslashreplace"), media_type=MEDIA[format], headers=headers)

    @app.get("/v1/checks/{id}/spec", tags=["answers"], responses=PROBLEMS)
    def spec(who: Asking, id: Id) -> Spec:
        """What `torch.export` can be told of the accepted sizes."""
        _, answer = answered(who, id)
        if not answer.get("spec"):
            raise Refusal(409, "there is no spec: no declared input is known to run")
        return Spec(**answer["spec"], inner_sizes=answer.get("inner_sizes", {}))

    @app.get("/v1/checks/{id}/branches", tags=["answers"], responses=PROBLEMS)
    def branches(who: Asking, id: Id) -> list[dict[str, Any]]:
        """The branches of the program on sizes, and which way the declared inputs take."""
        _, answer = answered(who, id)
        told: list[dict[str, Any]] = answer["report"]["branches"]
        return told

    @app.get("/v1/checks/{id}/events", tags=["checks"], responses=EVENTS, response_class=StreamingResponse)
    async def events(who: Asking, id: Id) -> StreamingResponse:
        """Server-sent events: `progress` after each change, until it has ended."""
        entry = await asyncio.to_thread(found, who, id)
        return StreamingResponse(
            stream(who, entry), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
        )

    async def stream(who: Who, entry: Entry) -> AsyncIterator[str]:
        with service.metrics.streams.track_inprogress():
            async for progress in service.hub.follow(entry.work.digest, SILENCE_S):
                now = await asyncio.to_thread(store.job, who.tenant, entry.job.id)
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


def _health(app: FastAPI, service: Service) -> None:
    """For whoever looks after the service."""

    @app.get("/healthz", tags=["service"])
    async def healthz() -> Health:
        """The process answers."""
        return Health(status="ok")

    @app.get("/readyz", tags=["service"], responses={503: {"model": Health}})
    def readyz(response: Response) -> Health:
        """The database answers, and the workers take works."""
        problems = []
        try:
            service.store.counts()
        except SQLAlchemyError:
            problems.append("the database does not answer")
        if not service.runner.alive:
            problems.append("the workers take no works")
        if problems:
            response.status_code = 503
        return Health(status="not ready" if problems else "ok", problems=problems)

    @app.get(
        "/metrics",
        tags=["service"],
        dependencies=BEARER,
        response_class=Response,
        responses={401: PROBLEMS[401], 200: {"description": "counts", "content": {"text/plain": {}}}},
    )
    def metrics() -> Response:
        """What is counted, for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _pages(app: FastAPI) -> None:
    """The files of the page, each by its name: no path leads anywhere else."""
    for file in sorted(PAGE.iterdir()):
        policy = REPORT_POLICY if file.name == "frame.html" else PAGE_POLICY
        headers = {"cache-control": "no-cache", "content-security-policy": policy}
        answer = partial(FileResponse, file, headers=headers)
        path = "/" if file.name == "index.html" else f"/{file.name}"
        app.add_route(path, _answering(answer), methods=["GET"], include_in_schema=False)


def _answering(answer: Callable[[], Response]) -> Callable[[Request], Awaitable[Response]]:
    async def route(request: Request) -> Response:
        return answer()

    return route


def _fits(template: str, path: str) -> bool:
    """Is it a path of that form: `/v1/checks/{id}`?"""
    return re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)), path) is not None


def _handlers(app: FastAPI) -> None:
    """What goes wrong, as problem documents."""

    def told(status: int, detail: str, hint: str = "", **headers: str) -> JSONResponse:
        body = problem(status, detail, hint)
        return JSONResponse(body, status, headers, media_type="application/problem+json")

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> Response:
        return told(error.status, error.problem, **error.headers)

    @app.exception_handler(UploadError)
    async def not_usable(request: Request, error: UploadError) -> Response:
        return told(error.status, str(error))

    @app.exception_handler(SpecError)
    async def no_spec(request: Request, error: SpecError) -> Response:
        where = f" at column {error.column} of {error.text!r}" if error.text and error.column else ""
        return told(422, f"{error.problem}{where}", error.hint)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        return told(422, f"{where}: {first['msg']}" if where else first["msg"])

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        if error.status_code == 405:  # the first route of the path has answered, for itself alone
            headers = {"allow": ", ".join(methods(request.scope["path"]))}
        return told(error.status_code, str(error.detail), **headers)

    def methods(path: str) -> list[str]:
        document = app.openapi()["paths"]
        found = [one for template, one in document.items() if _fits(template, path)]
        return sorted({method.upper() for one in found for method in one} or {"GET"})

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Response:
        log("a request failed", logging.ERROR, error=type(error).__name__, path=request.scope["path"])
        hint = f"please report it, with the request {request.state.request}"
        return told(500, "the service failed to answer", hint)

    @app.exception_handler(SQLAlchemyError)
    async def no_store(request: Request, error: SQLAlchemyError) -> Response:
        log("the store does not answer", logging.ERROR, error=type(error).__name__, exc=str(error.__cause__))
        detail = "the store is full" if is_full(error) else "the store does not answer"
        return told(503, f"{detail}; nothing was taken in", **{"retry-after": "5"})


