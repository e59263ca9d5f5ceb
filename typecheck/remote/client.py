"""A client of the service: traces here, sends the program, and gets the report.

    from anyshape import Client

    with Client("http://127.0.0.1:8765") as client:
        report = client.check(UNet(), "x: float32[batch, 3, h, w]")

`AsyncClient` is the same with `await`. Each method of theirs is written once, as a generator of steps that is
sent the outcome of each; a client takes the steps in its own way. Both need `anyshape[service]`, for httpx.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar

import httpx

from ...constraints.ir.spec_text import Inputs
from ..checking.target import TargetError
from ..facade import Report
from .sending import Package, package

URL: Final = "ANYSHAPE_SERVER"
TOKEN: Final = "ANYSHAPE_TOKEN"
"""Variables of the environment."""
DEFAULT_URL: Final = "http://127.0.0.1:8765"
WAIT_S: Final = 20.0
"""For how long one request waits for a check to end."""
ATTEMPTS: Final = 6
BUSY: Final = (429, 503)
GOING_ON: Final = ("queued", "running")
Priority: TypeAlias = Literal["low", "normal", "high"]
T = TypeVar("T")
P = ParamSpec("P")


class ServiceError(TargetError):
    """The service cannot be reached, or does not answer what was asked; `status` is that of HTTP, or 0."""

    def __init__(self, problem: str, hint: str = "", status: int = 0) -> None:
        self.status = status
        super().__init__(problem, hint)


@dataclass(frozen=True, slots=True)
class Submitted:
    """A check as the service tells of it."""

    id: str
    state: str
    """`queued`, `running`, `done`, `failed` or `cancelled`."""
    verdict: str | None
    data: Mapping[str, Any]
    """All that the service says."""

    @property
    def ended(self) -> bool:
        return self.state not in GOING_ON


@dataclass(frozen=True, slots=True)
class _Request:
    """A request, whose outcome is its response, or the error of a connection that broke."""

    method: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class _LocalCall:
    """A call that takes long on this machine; its outcome is what it returns."""

    call: Callable[[], Any]


_Steps: TypeAlias = Generator["_Request | _Pause | _LocalCall", Any, T]


def _ask(method: str, path: str, **options: Any) -> _Steps[httpx.Response]:
    """Sends a request, and sends it again where the service is busy or away. Raises ServiceError."""
    told = "the service does not answer"
    for attempt in range(ATTEMPTS):
        answer = yield _Request(method, path, options)
        if isinstance(answer, httpx.Response):
            if answer.status_code < 400:
                return answer
            problem = _problem(answer)
            if answer.status_code not in BUSY:
                raise problem
            pause, told = float(answer.headers.get("retry-after", 2**attempt)), problem.problem
        else:
            pause, told = 0.2 * 2**attempt, f"the service cannot be reached: {answer}"
        if attempt + 1 < ATTEMPTS:
            yield _Pause(min(pause, 30.0))
    raise ServiceError(told, "is `anyshape serve` running there? --server and ANYSHAPE_SERVER name it")


def _problem(answer: httpx.Response) -> ServiceError:
    try:
        data = json.loads(answer.read())
        detail, hint = str(data["detail"]), str(data.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"the service answers {answer.status_code}", status=answer.status_code)
    if answer.status_code == 401:
        hint = "--token-file, ANYSHAPE_TOKEN or Client(token=…) says who asks"
    return ServiceError(detail, hint, answer.status_code)


def _json(method: str, path: str, **options: Any) -> _Steps[Any]:
    answer = yield from _ask(method, path, **options)
    return answer.json() if answer.content else None


def _submitted(data: Mapping[str, Any]) -> Submitted:
    return Submitted(data["id"], data["state"], data["verdict"], data)


# ---- the methods of both clients


def _check(
    target: Any,
    inputs: Inputs | None = None,
    assume: str | Iterable[str] = (),
    *,
    budget_s: float | None = None,
    source: bool = True,
    priority: Priority | None = None,
) -> _Steps[Report]:
    """Returns the report of a check by the service: traces here, sends the program, and waits.

    Without `source`, no text of a line of the program is sent.
    """
    asked = yield from _submit(target, inputs, assume, budget_s=budget_s, source=source, priority=priority)
    return (yield from _report(asked.id))


def _submit(
    target: Any,
    inputs: Inputs | None = None,
    assume: str | Iterable[str] = (),
    *,
    budget_s: float | None = None,
    source: bool = True,
    replay: bool = True,
    suspect: Iterable[str] = (),
    second_solver: str | None = None,
    priority: Priority | None = None,
) -> _Steps[Submitted]:
    """Asks for a check, and does not wait for it."""
    sent = yield _LocalCall(partial(package, target, inputs, assume, source=source))
    return (yield from _send(
        sent, budget_s=budget_s, replay=replay, suspect=suspect,
        second_solver=second_solver, priority=priority,
    ))  # fmt: skip


def _send(
    sent: Package,
    *,
    budget_s: float | None = None,
    replay: bool = True,
    suspect: Iterable[str] = (),
    second_solver: str | None = None,
    priority: Priority | None = None,
) -> _Steps[Submitted]:
    """Asks for a check of a program that is packed already."""
    fields: dict[str, Any] = {"name": sent.name[-200:], "replay": str(replay).lower(), "suspect": [*suspect]}
    if priority is not None:
        fields["priority"] = priority
    if sent.inputs is not None:
        fields["inputs"] = list(sent.inputs)
    if sent.assume:
        fields["assume"] = list(sent.assume)
    if budget_s is not None:
        fields["budget_s"] = str(budget_s)
    if second_solver is not None:
        fields["second_solver"] = second_solver
    files = {"model": ("model", sent.content, "application/octet-stream")}
    return _submitted((yield from _json("POST", "/v1/checks", files=files, data=fields)))


def _state(id: str, *, wait: float = 0.0) -> _Steps[Submitted]:
    """Returns the state of a check; with `wait`, at its end or after so many seconds."""
    params = {"wait": wait} if wait else {}
    return _submitted((yield from _json("GET", f"/v1/checks/{id}", params=params)))


def _ended(id: str) -> _Steps[Submitted]:
    while not (now := (yield from _state(id, wait=WAIT_S))).ended:
        pass
    return now


def _report(id: str) -> _Steps[Report]:
    """Returns the report of a check, once it has ended."""
    now = yield from _ended(id)
    if now.state == "failed":
        failure = now.data["failure"]
        raise ServiceError(failure["problem"], failure["hint"])
    if now.state == "cancelled":
        raise ServiceError("the check was cancelled")
    return Report.from_json((yield from _json("GET", f"/v1/checks/{id}/report")))


def _written(id: str, form: str = "text") -> _Steps[str]:
    """Returns the report of a check that is done, in one of the forms of `anyshape check --format`."""
    return (yield from _ask("GET", f"/v1/checks/{id}/report", params={"format": form})).text


def _spec(id: str) -> _Steps[dict[str, Any]]:
    """Returns the accepted sizes as a spec for `torch.export`: `json` and `python`."""
    found: dict[str, Any] = yield from _json("GET", f"/v1/checks/{id}/spec")
    return found


def _variant(id: str, **asked: Any) -> _Steps[Submitted]:
    """Asks another question about the same program: `inputs`, `assume`, `kind="refine"`, `finite=64`."""
    return _submitted((yield from _json("POST", f"/v1/checks/{id}/variants", json=asked)))


def _further(id: str, kind: str, path: str) -> _Steps[Any]:
    """Runs a variant of a check, of another kind, and returns the extra result of that kind once it has
    ended.
    """
    asked = yield from _variant(id, kind=kind)
    yield from _report(asked.id)
    return (yield from _json("GET", f"/v1/checks/{asked.id}/{path}"))


def _branches(id: str) -> _Steps[list[dict[str, Any]]]:
    """Returns the conditions on sizes and their outcomes for the inputs of a check, in the form of
    `branches`.
    """
    found: list[dict[str, Any]] = yield from _further(id, "branches", "branches")
    return found


def _migration(id: str) -> _Steps[dict[str, Any]]:
    """Returns the types that fit the program of a check, in the form of `migrate`: `static`, `principal`,
    `types`.
    """
    found: dict[str, Any] = yield from _further(id, "migrate", "migration")
    return found


def _compare(first: str, second: str) -> _Steps[dict[str, Any]]:
    """Returns the relation between the sets that two checks accept, once both have ended."""
    for id in (first, second):
        yield from _ended(id)
    asked = yield from _json("POST", "/v1/comparisons", json={"first": first, "second": second})
    comparison: dict[str, Any] = (yield from _ended(asked["id"])).data["comparison"]
    return comparison


def _checks(**filters: Any) -> _Steps[list[Submitted]]:
    """Returns the checks that were asked for, latest first. Filters: `state`, `verdict`, `name`, `before`,
    `limit`.
    """
    return [*map(_submitted, (yield from _json("GET", "/v1/checks", params=filters))["checks"])]


def _cancel(id: str) -> _Steps[None]:
    """Stops a check that has not ended."""
    yield from _json("POST", f"/v1/checks/{id}/cancel")


def _delete(id: str) -> _Steps[None]:
    """Removes a check from the list of the tenant."""
    yield from _json("DELETE", f"/v1/checks/{id}")


def _told(line: str) -> dict[str, Any] | None:
    """Returns the event in a line of a stream of events; None where the line holds no event."""
    if not line.startswith("data: "):
        return None
    event: dict[str, Any] = json.loads(line[6:])
    return event


def _settings(url: str | None, token: str | None) -> dict[str, Any]:
    token = token or os.environ.get(TOKEN, "")
    return {
        "base_url": url or os.environ.get(URL) or DEFAULT_URL,
        "headers": {"authorization": f"Bearer {token}"} if token else {},
        "timeout": httpx.Timeout(60.0, connect=10.0),
        "follow_redirects": False,
    }


def _plain(steps: Callable[P, _Steps[T]]) -> Callable[Concatenate[Client, P], T]:
    """Returns a method of `Client` that takes the steps and returns their result."""

    @wraps(steps)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(steps(*args, **kwargs))

    method.__name__ = steps.__name__.removeprefix("_")
    return method


def _awaited(steps: Callable[P, _Steps[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Returns a method of `AsyncClient` that takes the steps and returns their result."""

    @wraps(steps)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(steps(*args, **kwargs))

    method.__name__ = steps.__name__.removeprefix("_")
    return method


class Client:
    """Asks a service. `url` and `token` are ANYSHAPE_SERVER and ANYSHAPE_TOKEN where they are left out.

    Every method raises ServiceError where the service cannot be reached or does not answer. What is asked for
    while the service is busy is asked again, after the time that the service says.
    """

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self._http = httpx.Client(**_settings(url, token))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    check = _plain(_check)
    submit = _plain(_submit)
    send = _plain(_send)
    state = _plain(_state)
    report = _plain(_report)
    written = _plain(_written)
    spec = _plain(_spec)
    variant = _plain(_variant)
    branches = _plain(_branches)
    migration = _plain(_migration)
    compare = _plain(_compare)
    checks = _plain(_checks)
    cancel = _plain(_cancel)
    delete = _plain(_delete)

    def follow(self, id: str) -> Iterator[dict[str, Any]]:
        """`state`, `step` and `verdict` after each change, until the check has ended.

        Where the connection breaks, it is followed anew.
        """
        attempt = 0
        while attempt < ATTEMPTS:
            try:
                with self._http.stream("GET", f"/v1/checks/{id}/events") as stream:
                    if stream.status_code >= 400 and stream.status_code not in BUSY:
                        raise _problem(stream)
                    for now in filter(None, map(_told, stream.iter_lines())):
                        attempt = 0
                        yield now
                        if now["state"] not in GOING_ON:
                            return
            except httpx.TransportError:
                pass
            time.sleep(0.2 * 2**attempt)
            attempt += 1
        raise ServiceError("the service cannot be reached any more", "ask later with the id of the check")

    def _run(self, steps: _Steps[T]) -> T:
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                value: T = end.value
                return value
            outcome = self._taken(step)

    def _taken(self, step: _Request | _Pause | _LocalCall) -> Any:
        """Returns the outcome of a step."""
        if isinstance(step, _Pause):
            time.sleep(step.seconds)
            return None
        if isinstance(step, _LocalCall):
            return step.call()
        try:
            return self._http.request(step.method, step.path, **step.options)
        except httpx.TransportError as error:
            return error


class AsyncClient:
    """`Client`, with `await`. Tracing happens in a thread."""

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self._http = httpx.AsyncClient(**_settings(url, token))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    check = _awaited(_check)
    submit = _awaited(_submit)
    send = _awaited(_send)
    state = _awaited(_state)
    report = _awaited(_report)
    written = _awaited(_written)
    spec = _awaited(_spec)
    variant = _awaited(_variant)
    branches = _awaited(_branches)
    migration = _awaited(_migration)
    compare = _awaited(_compare)
    checks = _awaited(_checks)
    cancel = _awaited(_cancel)
    delete = _awaited(_delete)

    async def follow(self, id: str) -> AsyncIterator[dict[str, Any]]:
        """See `Client.follow`."""
        attempt = 0
        while attempt < ATTEMPTS:
            try:
                async with self._http.stream("GET", f"/v1/checks/{id}/events") as stream:
                    if stream.status_code >= 400 and stream.status_code not in BUSY:
                        await stream.aread()
                        raise _problem(stream)
                    async for line in stream.aiter_lines():
                        if now := _told(line):
                            attempt = 0
                            yield now
                            if now["state"] not in GOING_ON:
                                return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2 * 2**attempt)
            attempt += 1
        raise ServiceError("the service cannot be reached any more", "ask later with the id of the check")

    async def _run(self, steps: _Steps[T]) -> T:
        outcome: Any = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                value: T = end.value
                return value
            outcome = await self._taken(step)

    async def _taken(self, step: _Request | _Pause | _LocalCall) -> Any:
        """Returns the outcome of a step."""
        if isinstance(step, _Pause):
            await asyncio.sleep(step.seconds)
            return None
        if isinstance(step, _LocalCall):
            return await asyncio.to_thread(step.call)
        try:
            return await self._http.request(step.method, step.path, **step.options)
        except httpx.TransportError as error:
            return error
