"""Parts that routes share: the caller's identity, the token in the document, and the documented answers."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Form, Query, Request
from fastapi import Path as InPath
from fastapi.security import HTTPBearer

from ...render.formats import FORMATS
from .auth import Who
from .core import Service
from .schemas import Check, Problem


def _who(request: Request) -> Who:
    who: Who = request.state.who
    return who


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(_service)]
Asking = Annotated[Who, Depends(_who)]
ReportForm = Annotated[str, Query(pattern=f"^({'|'.join(FORMATS)})$", description="format of the report")]
Id = Annotated[str, InPath(pattern="^[0-9a-f]{20}$", description="id of the check")]
Lines = Annotated[list[str] | None, Form(max_length=200)]
_PROBLEM: Final = Problem.model_json_schema()
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": told, "content": {"application/problem+json": {"schema": _PROBLEM}}}
    for status, told in (
        (400, "the body cannot be read"),
        (401, "no valid token"), (403, "not allowed with this token, or from this page"),
        (404, "no such check"), (409, "there is no such answer, or it is not ready"), (413, "too large"),
        (421, "another service's name"),
        (422, "the request is not valid"), (429, "too many requests; Retry-After says how long to wait"),
        (503, "the store does not answer, or is full"),
    )
}  # fmt: skip
REPORTS: Final = PROBLEMS | {
    200: {"description": "the report", "content": {f.media.partition(";")[0]: {} for f in FORMATS.values()}},
    304: {"description": "the report is still the one of If-None-Match"},
}
EVENTS: Final = PROBLEMS | {200: {"description": "events", "content": {"text/event-stream": {}}}}
KNOWN: Final = PROBLEMS | {200: {"model": Check, "description": "the answer is known already"}}


BEARER: Final = [Depends(HTTPBearer(auto_error=False, description="`anyshape token create NAME`"))]
"""So that the document says it; the gate has asked for the token before."""
