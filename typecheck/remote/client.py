"""A client of the service: traces here, sends the program, and gets the report.

    from anyshape import Client

    with Client("http://127.0.0.1:8765") as client:
        report = client.check(UNet(), "x: float32[batch, 3, h, w]")

`AsyncClient` is the same with `await`. Each method is written once, there; `Client` runs the coroutines of a
client that blocks, and thus needs no event loop. Both need the extra `anyshape[client]`, for httpx.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar

import httpx

from ...constraints.ir.spec_text import Inputs
from ..facade import Report
from ..targets.target_error import TargetError
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
    """A check as the service reports it."""

    id: str
    state: str
    """`queued`, `running`, `done`, `failed` or `cancelled`."""
    verdict: str | None
    data: Mapping[str, Any]
    """All that the service says."""

    @property
    def ended(self) -> bool:
        return self.state not in GOING_ON


def _problem(answer: httpx.Response) -> ServiceError:
    try:
        data = json.loads(answer.read())
        detail, hint = str(data["detail"]), str(data.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"the service answers {answer.status_code}", status=answer.status_code)
    if answer.status_code == 401:
        hint = "--token-file, ANYSHAPE_TOKEN or Client(token=…) identifies the client"
    return ServiceError(detail, hint, answer.status_code)


def _submitted(data: Mapping[str, Any]) -> Submitted:
    return Submitted(data["id"], data["state"], data["verdict"], data)


def _settings(url: str | None, token: str | None) -> dict[str, Any]:
    token = token or os.environ.get(TOKEN, "")
    return {
        "base_url": url or os.environ.get(URL) or DEFAULT_URL,
        "headers": {"authorization": f"Bearer {token}"} if token else {},
        "timeout": httpx.Timeout(60.0, connect=10.0),
        "follow_redirects": False,
    }


class AsyncClient:
    """Asks a service. `url` and `token` are ANYSHAPE_SERVER and ANYSHAPE_TOKEN where they are left out.

    Every method raises ServiceError where the service cannot be reached or does not answer. What is asked for
    while the service is busy is asked again, after the time that the service says. Tracing happens in a
    thread.
    """

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self._http: Any = self._connected(**_settings(url, token))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def check(
        self, target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *,
        budget_s: float | None = None, source: bool = True, priority: Priority | None = None,
    ) -> Report:
        """Returns the report of a check by the service: traces here, sends the program, and waits.

        Without `source`, no text of a line of the program is sent.
        """
        asked = await self.submit(target, inputs, assume, budget_s=budget_s, source=source, priority=priority)
        return await self.report(asked.id)

    async def submit(
        self, target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *,
        budget_s: float | None = None, source: bool = True, replay: bool = True, suspect: Iterable[str] = (),
        second_solver: str | None = None, device: str | None = None, priority: Priority | None = None,
    ) -> Submitted:
        """Submits a check, and does not wait for it."""
        sent = await self._call(partial(package, target, inputs, assume, source=source, device=device))
        return await self.send(
            sent, budget_s=budget_s, replay=replay, suspect=suspect,
            second_solver=second_solver, device=device, priority=priority,
        )  # fmt: skip

    async def send(
        self, sent: Package, *, budget_s: float | None = None, replay: bool = True,
        suspect: Iterable[str] = (), second_solver: str | None = None, device: str | None = None,
        priority: Priority | None = None,
    ) -> Submitted:
        """Asks for a check of a program that is packed already."""
        name, suspicions = sent.name[-200:], [*suspect]
        fields: dict[str, Any] = {"name": name, "replay": str(replay).lower(), "suspect": suspicions}
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
        if device is not None:
            fields["device"] = device
        files = {"model": ("model", sent.content, "application/octet-stream")}
        return _submitted(await self._json("POST", "/v1/checks", files=files, data=fields))

    async def state(self, id: str, *, wait: float = 0.0) -> Submitted:
        """Returns the state of a check; with `wait`, at its end or after so many seconds."""
        params = {"wait": wait} if wait else {}
        return _submitted(await self._json("GET", f"/v1/checks/{id}", params=params))

    async def _ended(self, id: str) -> Submitted:
        while not (now := (await self.state(id, wait=WAIT_S))).ended:
            pass
        return now

    async def report(self, id: str) -> Report:
        """Returns the report of a check, once it has ended."""
        now = await self._ended(id)
        if now.state == "failed":
            failure = now.data["failure"]
            raise ServiceError(failure["problem"], failure["hint"])
        if now.state == "cancelled":
            raise ServiceError("the check was cancelled")
        return Report.from_json(await self._json("GET", f"/v1/checks/{id}/report"))

    async def written(self, id: str, form: str = "text") -> str:
        """Returns the report of a check that is done, in one of the forms of `anyshape check --format`."""
        return (await self._ask("GET", f"/v1/checks/{id}/report", params={"format": form})).text

    async def spec(self, id: str) -> dict[str, Any]:
        """Returns the accepted sizes as a spec for `torch.export`: `json` and `python`."""
        found: dict[str, Any] = await self._json("GET", f"/v1/checks/{id}/spec")
        return found

    async def variant(self, /, id: str, **asked: Any) -> Submitted:
        """Asks another question about the same program: `inputs`, `assume`, `kind="refine"`, `finite=64`."""
        return _submitted(await self._json("POST", f"/v1/checks/{id}/variants", json=asked))

    async def _further(self, id: str, kind: str, path: str) -> Any:
        """Runs a variant of a check, of another kind, and returns the extra result of that kind once it has
        ended.
        """
        asked = await self.variant(id, kind=kind)
        await self.report(asked.id)
        return await self._json("GET", f"/v1/checks/{asked.id}/{path}")

    async def branches(self, id: str) -> list[dict[str, Any]]:
        """Returns the conditions on sizes and their outcomes for the inputs of a check, in the form of
        `branches`.
        """
        found: list[dict[str, Any]] = await self._further(id, "branches", "branches")
        return found

    async def migration(self, id: str) -> dict[str, Any]:
        """Returns the types that fit the program of a check, in the form of `migrate`: `static`, `principal`,
        `types`.
        """
        found: dict[str, Any] = await self._further(id, "migrate", "migration")
        return found

    async def compare(self, first: str, second: str) -> dict[str, Any]:
        """Returns the relation between the sets that two checks accept, once both have ended."""
        for id in (first, second):
            await self._ended(id)
        asked = await self._json("POST", "/v1/comparisons", json={"first": first, "second": second})
        comparison: dict[str, Any] = (await self._ended(asked["id"])).data["comparison"]
        return comparison

    async def checks(self, /, **filters: Any) -> list[Submitted]:
        """Returns the checks that were asked for, latest first, narrowed by `state`, `verdict`, `name`,
        `before` and `limit`.
        """
        return [*map(_submitted, (await self._json("GET", "/v1/checks", params=filters))["checks"])]

    async def cancel(self, id: str) -> None:
        """Stops a check that has not ended."""
        await self._json("POST", f"/v1/checks/{id}/cancel")

    async def delete(self, id: str) -> None:
        """Removes a check from the list of the tenant."""
        await self._json("DELETE", f"/v1/checks/{id}")

    async def follow(self, id: str) -> AsyncGenerator[dict[str, Any], None]:
        """`state`, `step` and `verdict` after each change, until the check has ended.

        Where the connection breaks, it is followed anew.
        """
        attempt = 0
        while attempt < ATTEMPTS:
            with suppress(httpx.TransportError):
                async with aclosing(self._lines(f"/v1/checks/{id}/events")) as lines:
                    async for line in lines:
                        if line.startswith("data: "):
                            attempt, now = 0, json.loads(line[6:])
                            yield now
                            if now["state"] not in GOING_ON:
                                return
            await self._pause(0.2 * 2**attempt)
            attempt += 1
        raise ServiceError("the service cannot be reached any more", "ask again later, by the check's id")

    async def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Sends a request, and sends it again where the service is busy or away. Raises ServiceError."""
        told = "the service does not answer"
        for attempt in range(ATTEMPTS):
            try:
                answer: httpx.Response = await self._request(method, path, **options)
            except httpx.TransportError as error:
                pause, told = 0.2 * 2**attempt, f"the service cannot be reached: {error}"
            else:
                if answer.status_code < 400:
                    return answer
                problem = _problem(answer)
                if answer.status_code not in BUSY:
                    raise problem
                pause, told = float(answer.headers.get("retry-after", 2**attempt)), problem.problem
            if attempt + 1 < ATTEMPTS:
                await self._pause(min(pause, 30.0))
        raise ServiceError(told, "is `anyshape serve` running there? --server and ANYSHAPE_SERVER name it")

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        answer = await self._ask(method, path, **options)
        return answer.json() if answer.content else None

    # ---- what takes time

    _connected: Callable[..., Any] = httpx.AsyncClient

    async def close(self) -> None:
        await self._http.aclose()

    async def _request(self, method: str, path: str, **options: Any) -> Any:
        return await self._http.request(method, path, **options)

    async def _lines(self, path: str) -> AsyncGenerator[str, None]:
        async with self._http.stream("GET", path) as stream:
            if stream.status_code >= 400 and stream.status_code not in BUSY:
                await stream.aread()
                raise _problem(stream)
            async for line in stream.aiter_lines():
                yield line

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.to_thread(call)


class _Blocking(AsyncClient):
    """A client whose coroutines never wait for an event loop."""

    _connected = httpx.Client

    async def close(self) -> None:
        self._http.close()

    async def _request(self, method: str, path: str, **options: Any) -> Any:
        return self._http.request(method, path, **options)

    async def _lines(self, path: str) -> AsyncGenerator[str, None]:
        with self._http.stream("GET", path) as stream:
            if stream.status_code >= 400 and stream.status_code not in BUSY:
                raise _problem(stream)
            for line in stream.iter_lines():
                yield line

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def _call(self, call: Callable[[], T]) -> T:
        return call()


def _result(awaitable: Awaitable[T]) -> T:
    """Returns the result of a coroutine of a client that blocks."""
    try:
        next(iter(awaitable.__await__()))
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a client that blocks has waited for an event loop")


def _plain(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    @wraps(method)
    def plain(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _result(method(self._blocking, *args, **kwargs))

    return plain


class Client:
    """`AsyncClient`, without `await`."""

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self._blocking = _Blocking(url, token)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        _result(self._blocking.close())

    def follow(self, id: str) -> Iterator[dict[str, Any]]:
        """See `AsyncClient.follow`."""
        events = self._blocking.follow(id)
        try:
            while True:
                yield _result(anext(events))
        except StopAsyncIteration:
            return
        finally:
            _result(events.aclose())

    check = _plain(AsyncClient.check)
    submit = _plain(AsyncClient.submit)
    send = _plain(AsyncClient.send)
    state = _plain(AsyncClient.state)
    report = _plain(AsyncClient.report)
    written = _plain(AsyncClient.written)
    spec = _plain(AsyncClient.spec)
    variant = _plain(AsyncClient.variant)
    branches = _plain(AsyncClient.branches)
    migration = _plain(AsyncClient.migration)
    compare = _plain(AsyncClient.compare)
    checks = _plain(AsyncClient.checks)
    cancel = _plain(AsyncClient.cancel)
    delete = _plain(AsyncClient.delete)
