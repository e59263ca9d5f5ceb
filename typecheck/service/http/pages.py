"""The files of the page, with what a browser may do with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse

PAGE: Final = Path(__file__).parents[1] / "page"
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
"""A report has its scripts within it, and runs as a page of nobody's: it reaches no token and no network."""


def add_pages(app: FastAPI) -> None:
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
