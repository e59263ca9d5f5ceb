"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

import logging
import re

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from ....constraints.ir.spec_text import SpecError
from ..ops.logs import log
from ..queue.database import is_full
from .gate import Refusal, problem
from .uploads import UploadError


def _fits(template: str, path: str) -> bool:
    """Returns whether the path has the form of the template: `/v1/checks/{id}`."""
    return re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)), path) is not None


def add_handlers(app: FastAPI) -> None:
    """Makes the app answer errors with problem documents."""

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
        if isinstance(error.__cause__, OSError):  # of the file that an upload goes to
            log("an upload cannot be kept", logging.ERROR, error=error.__cause__.strerror)
            return told(503, "there is no room for the upload; nothing was stored", **{"retry-after": "5"})
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
        return told(503, f"{detail}; nothing was stored", **{"retry-after": "5"})
