"""Checks every request before any of it is read: its sender, the rate of its requests, and its length.

It also gives each request an id, and each answer its headers. A refusal is a problem document (RFC 9457).
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

from fastapi import HTTPException
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..ops.logs import REQUEST, log
from ..ops.settings import MB, Settings
from ..ops.telemetry import Traces
from ..queue.metrics import Metrics
from .auth import LOCAL, Rates, TokenTable, Who

OPEN: Final = ("/healthz", "/readyz")
"""For whoever looks after the service; nothing of any tenant is there."""
SMALL: Final = MB
"""The size limit of a request without an upload."""
UPLOADS: Final = ("/v1/checks",)
METHODS: Final = frozenset({"GET", "POST", "DELETE", "OPTIONS", "HEAD"})
HEADERS: Final[Mapping[str, str]] = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
"""Of every answer that does not say otherwise."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class Refusal(Exception):
    """Raised where a request is refused, with the answer to it."""

    def __init__(self, status: int, problem: str, **headers: str) -> None:
        self.status, self.problem, self.headers = status, problem, headers
        super().__init__(problem)


def problem(status: int, detail: str, hint: str = "", **more: Any) -> dict[str, Any]:
    """A problem document."""
    return {"status": status, "detail": detail, **({"hint": hint} if hint else {}), **more}


class Gate:
    """The outermost layer of the application."""

    def __init__(
        self, app: ASGIApp, settings: Settings, tokens: TokenTable, metrics: Metrics, traces: Traces
    ) -> None:
        self.app, self.settings, self.tokens, self.metrics = app, settings, tokens, metrics
        self.traces = traces
        self.rates = Rates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        with self.traces.request(_method(scope), headers) as answered:
            status = await self._answer(scope, headers, receive, send)
            answered(_route(scope), status)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> int:
        """The status code of the answer."""
        given = headers.get("x-request-id", "")
        request = given if _ID.fullmatch(given) else secrets.token_hex(8)
        token = REQUEST.set(request)
        started, answer = time.monotonic(), _AnswerWithHeaders(send, request)
        scope.setdefault("state", {})["request"] = request
        try:
            who = await self._who(scope, headers)
            scope["state"]["who"] = who
            limited = _Limited(receive, self._most(scope, headers, who))
            await self.app(scope, limited, answer)
        except Refusal as refusal:
            await answer.refuse(refusal)
        except SQLAlchemyError as error:  # of the look for tokens: all else is told within
            if answer.status:
                raise
            log("the store does not answer", logging.ERROR, error=type(error).__name__)
            await answer.refuse(Refusal(503, "the store does not answer", **{"retry-after": "5"}))
        finally:
            self._done(scope, answer.status, time.monotonic() - started)
            REQUEST.reset(token)
        return answer.status

    async def _who(self, scope: Scope, headers: Headers) -> Who:
        """Raises Refusal where this request is not to be answered."""
        path = scope["path"]
        await self._from_where(headers)
        if path in OPEN or not path.startswith(("/v1/", "/metrics")) or path == "/v1/openapi.json":
            return LOCAL
        if scope["method"] == "OPTIONS":  # what a browser asks first carries no token
            return LOCAL
        if not self.settings.require_tokens and not await run_in_threadpool(self.tokens.exist):
            return LOCAL
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        who = await run_in_threadpool(self.tokens.who, secret.strip()) if scheme.lower() == "bearer" else None
        if who is None:
            told = "a valid token is needed: Authorization: Bearer …"
            raise Refusal(401, told, **{"www-authenticate": 'Bearer realm="anyshape"'})
        wait = self.rates.wait(who.token, who.per_minute or self.settings.requests_per_minute)
        if wait:
            told = "too many requests with this token"
            raise Refusal(429, told, **{"retry-after": str(int(wait) + 1)})
        return who

    async def _from_where(self, headers: Headers) -> None:
        """A page of another site may make a browser call us: its name or its origin give it away."""
        host = _name(headers.get("host", ""))
        allowed = {*self.settings.allowed_hosts}
        if not allowed and self.settings.loopback and not await run_in_threadpool(self.tokens.exist):
            allowed = {*_LOOPBACK, self.settings.host}
        if allowed and host not in allowed:
            raise Refusal(421, f"this service does not answer to the name {host!r}")
        origin = headers.get("origin")
        if origin and origin not in self.settings.cors_origins and _host_of(origin) != host:
            raise Refusal(403, "pages of other origins may not call this service")

    def _most(self, scope: Scope, headers: Headers, who: Who) -> int:
        """Bytes that this request may bring. Raises Refusal where it announces more."""
        upload = scope["path"] in UPLOADS and scope["method"] == "POST"
        most = int((who.upload_mb or self.settings.max_upload_mb) * MB) if upload else SMALL
        announced = headers.get("content-length", "0")
        if announced.isdecimal() and (len(announced) > 20 or int(announced) > most):
            raise Refusal(413, f"the request is larger than the {most} bytes that are accepted")
        return most

    def _done(self, scope: Scope, status: int, seconds: float) -> None:
        route, method = _route(scope), _method(scope)
        self.metrics.requests.labels(method, route, status).observe(seconds)
        if route not in (*OPEN, "/metrics"):
            log("request", method=method, route=route, status=status, seconds=round(seconds, 4))


class _Limited:
    """Counts what a request brings while it arrives."""

    def __init__(self, receive: Receive, most: int) -> None:
        self.receive, self.left = receive, most

    async def __call__(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request":
            self.left -= len(message.get("body", b""))
            if self.left < 0:
                raise HTTPException(413, "the request is larger than is accepted", {"connection": "close"})
        return message


class _AnswerWithHeaders:
    """Passes an answer on, with the headers that all have."""

    def __init__(self, send: Send, request: str) -> None:
        self.send, self.request = send, request
        self.status = 0

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", []))
            present = {name.lower() for name, _ in headers}
            more = {**HEADERS, "x-request-id": self.request}
            headers += [(n.encode(), v.encode()) for n, v in more.items() if n.encode() not in present]
            message = {**message, "headers": headers}
        await self.send(message)

    async def refuse(self, refusal: Refusal) -> None:
        body = json.dumps(problem(refusal.status, refusal.problem)).encode()
        headers = {"content-type": "application/problem+json", "content-length": str(len(body))}
        # What is left of the request is not read, so the connection cannot serve another.
        headers |= {"connection": "close", **refusal.headers} if refusal.status == 413 else refusal.headers
        start = {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        await self(start)
        await self.send({"type": "http.response.body", "body": body})


def _route(scope: Scope) -> str:
    """The form of the path, without ids."""
    return getattr(scope.get("route"), "path", "") or ("/" if scope["path"] == "/" else "other")


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in METHODS else "other"


def _host_of(origin: str) -> str | None:
    """None where it is no origin."""
    try:
        return _name(urlsplit(origin).netloc)
    except ValueError:
        return None


def _name(netloc: str) -> str:
    """The host of `host:port`, of `[::1]:80`, too."""
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0]
    return netloc.partition(":")[0].lower()
