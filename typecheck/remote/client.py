"""A client of the service: traces here, sends the program, and gets the report.

    from anyshape import Client

    with Client("http://127.0.0.1:8765") as client:
        report = client.check(UNet(), "x: float32[batch, 3, h, w]")

`AsyncClient` is the same with `await`. Both need `anyshape[service]`, for httpx.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias, TypeVar

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
    method: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pause:
    seconds: float


# What is asked of the service is said once, as a generator of requests that is sent their responses. Each
# client runs it in its own way.

_Talk: TypeAlias = Generator["_Request | _Pause", "httpx.Response | httpx.TransportError | None", T]


def _ask(method: str, path: str, **options: Any) -> _Talk[httpx.Response]:
    """One request, again where the service is busy or away. Raises ServiceError."""
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


def _submit(
    sent: Package,
    budget_s: float | None,
    replay: bool,
    suspect: Iterable[str],
    second_solver: str | None,
    priority: Priority | None,
) -> _Talk[Submitted]:
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
    return _submitted((yield from _ask("POST", "/v1/checks", files=files, data=fields)))


def _submitted(answer: httpx.Response) -> Submitted:
    data = answer.json()
    return Submitted(data["id"], data["state"], data["verdict"], data)


def _state(id: str, wait: float) -> _Talk[Submitted]:
    return _submitted((yield from _ask("GET", f"/v1/checks/{id}", params={"wait": wait} if wait else {})))


def _ended(id: str) -> _Talk[Submitted]:
    while not (now := (yield from _state(id, WAIT_S))).ended:
        pass
    return now


def _report(id: str) -> _Talk[Report]:
    now = yield from _ended(id)
    if now.state == "failed":
        failure = now.data["failure"]
        raise ServiceError(failure["problem"], failure["hint"])
    if now.state == "cancelled":
        raise ServiceError("the check was cancelled")
    return Report.from_json((yield from _ask("GET", f"/v1/checks/{id}/report")).json())


def _written(id: str, form: str) -> _Talk[str]:
    return (yield from _ask("GET", f"/v1/checks/{id}/report", params={"format": form})).text


def _json(method: str, path: str, **options: Any) -> _Talk[Any]:
    answer = yield from _ask(method, path, **options)
    return answer.json() if answer.content else None


def _list(filters: Mapping[str, Any]) -> _Talk[list[Submitted]]:
    data = yield from _json("GET", "/v1/checks", params=dict(filters))
    return [Submitted(one["id"], one["state"], one["verdict"], one) for one in data["checks"]]


def _compared(first: str, second: str) -> _Talk[dict[str, Any]]:
    for id in (first, second):
        yield from _ended(id)
    asked = yield from _ask("POST", "/v1/comparisons", json={"first": first, "second": second})
    now = yield from _ended(asked.json()["id"])
    comparison: dict[str, Any] = now.data["comparison"]
    return comparison


def _variant(id: str, asked: Mapping[str, Any]) -> _Talk[Submitted]:
    return _submitted((yield from _ask("POST", f"/v1/checks/{id}/variants", json=dict(asked))))


def _asked_further(id: str, kind: str, path: str) -> _Talk[Any]:
    """Runs a variant of a check, of another kind, and returns the extra result of that kind once it has
    ended.
    """
    asked = yield from _variant(id, {"kind": kind})
    yield from _report(asked.id)
    return (yield from _json("GET", f"/v1/checks/{asked.id}/{path}"))


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

    def check(
        self,
        target: Any,
        inputs: Inputs | None = None,
        assume: str | Iterable[str] = (),
        *,
        budget_s: float | None = None,
        source: bool = True,
        priority: Priority | None = None,
    ) -> Report:
        """`check`, by the service: traces here, sends the program, waits, and gives the report.

        Without `source`, no text of a line of the program is sent.
        """
        asked = self.submit(target, inputs, assume, budget_s=budget_s, source=source, priority=priority)
        return self.report(asked.id)

    def submit(
        self,
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
    ) -> Submitted:
        """Asks for a check, and does not wait for it."""
        sent = package(target, inputs, assume, source=source)
        return self.send(
            sent, budget_s=budget_s, replay=replay, suspect=suspect,
            second_solver=second_solver, priority=priority,
        )  # fmt: skip

    def send(
        self,
        sent: Package,
        *,
        budget_s: float | None = None,
        replay: bool = True,
        suspect: Iterable[str] = (),
        second_solver: str | None = None,
        priority: Priority | None = None,
    ) -> Submitted:
        """Asks for a check of a program that is packed already."""
        return self._run(_submit(sent, budget_s, replay, suspect, second_solver, priority))

    def state(self, id: str, *, wait: float = 0.0) -> Submitted:
        """Where a check stands; with `wait`, at its end or after so many seconds."""
        return self._run(_state(id, wait))

    def report(self, id: str) -> Report:
        """The report of a check, once it has ended."""
        return self._run(_report(id))

    def written(self, id: str, form: str = "text") -> str:
        """The report of a check that is done, in one of the forms of `anyshape check --format`."""
        return self._run(_written(id, form))

    def spec(self, id: str) -> dict[str, Any]:
        """Returns the accepted sizes as a spec for `torch.export`: `json` and `python`."""
        found: dict[str, Any] = self._run(_json("GET", f"/v1/checks/{id}/spec"))
        return found

    def variant(self, id: str, **asked: Any) -> Submitted:
        """Another question about the same program: `inputs`, `assume`, `kind="refine"`, `finite=64`."""
        return self._run(_variant(id, asked))

    def branches(self, id: str) -> list[dict[str, Any]]:
        """Returns the conditions on sizes and their outcomes for the inputs of a check, in the form of
        `branches`.
        """
        found: list[dict[str, Any]] = self._run(_asked_further(id, "branches", "branches"))
        return found

    def migration(self, id: str) -> dict[str, Any]:
        """Which types fit the program of a check: `static`, `principal`, `types`, as `migrate` has them."""
        found: dict[str, Any] = self._run(_asked_further(id, "migrate", "migration"))
        return found

    def compare(self, first: str, second: str) -> dict[str, Any]:
        """Returns the relation between the sets that two checks accept, once both have ended."""
        return self._run(_compared(first, second))

    def checks(self, **filters: Any) -> list[Submitted]:
        """Checks that were asked for, latest first: `state=`, `verdict=`, `name=`, `before=`, `limit=`."""
        return self._run(_list(filters))

    def cancel(self, id: str) -> None:
        self._run(_json("POST", f"/v1/checks/{id}/cancel"))

    def delete(self, id: str) -> None:
        self._run(_json("DELETE", f"/v1/checks/{id}"))

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

    def _run(self, talk: _Talk[T]) -> T:
        answer: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(step, _Pause):
                time.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = self._http.request(step.method, step.path, **step.options)
            except httpx.TransportError as error:
                answer = error


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

    async def check(
        self,
        target: Any,
        inputs: Inputs | None = None,
        assume: str | Iterable[str] = (),
        *,
        budget_s: float | None = None,
        source: bool = True,
        priority: Priority | None = None,
    ) -> Report:
        """See `Client.check`."""
        asked = await self.submit(
            target, inputs, assume, budget_s=budget_s, source=source, priority=priority
        )
        return await self.report(asked.id)

    async def submit(
        self,
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
    ) -> Submitted:
        """See `Client.submit`."""
        sent = await asyncio.to_thread(package, target, inputs, assume, source=source)
        return await self.send(
            sent, budget_s=budget_s, replay=replay, suspect=suspect,
            second_solver=second_solver, priority=priority,
        )  # fmt: skip

    async def send(
        self,
        sent: Package,
        *,
        budget_s: float | None = None,
        replay: bool = True,
        suspect: Iterable[str] = (),
        second_solver: str | None = None,
        priority: Priority | None = None,
    ) -> Submitted:
        """See `Client.send`."""
        return await self._run(_submit(sent, budget_s, replay, suspect, second_solver, priority))

    async def state(self, id: str, *, wait: float = 0.0) -> Submitted:
        """See `Client.state`."""
        return await self._run(_state(id, wait))

    async def report(self, id: str) -> Report:
        """See `Client.report`."""
        return await self._run(_report(id))

    async def written(self, id: str, form: str = "text") -> str:
        """See `Client.written`."""
        return await self._run(_written(id, form))

    async def spec(self, id: str) -> dict[str, Any]:
        """See `Client.spec`."""
        found: dict[str, Any] = await self._run(_json("GET", f"/v1/checks/{id}/spec"))
        return found

    async def variant(self, id: str, **asked: Any) -> Submitted:
        """See `Client.variant`."""
        return await self._run(_variant(id, asked))

    async def branches(self, id: str) -> list[dict[str, Any]]:
        """See `Client.branches`."""
        found: list[dict[str, Any]] = await self._run(_asked_further(id, "branches", "branches"))
        return found

    async def migration(self, id: str) -> dict[str, Any]:
        """See `Client.migration`."""
        found: dict[str, Any] = await self._run(_asked_further(id, "migrate", "migration"))
        return found

    async def compare(self, first: str, second: str) -> dict[str, Any]:
        """See `Client.compare`."""
        return await self._run(_compared(first, second))

    async def checks(self, **filters: Any) -> list[Submitted]:
        """See `Client.checks`."""
        return await self._run(_list(filters))

    async def cancel(self, id: str) -> None:
        await self._run(_json("POST", f"/v1/checks/{id}/cancel"))

    async def delete(self, id: str) -> None:
        await self._run(_json("DELETE", f"/v1/checks/{id}"))

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

    async def _run(self, talk: _Talk[T]) -> T:
        answer: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(step, _Pause):
                await asyncio.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = await self._http.request(step.method, step.path, **step.options)
            except httpx.TransportError as error:
                answer = error
