"""Routes for the operators of the service: its health and its metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response
from sqlalchemy.exc import SQLAlchemyError

from .contract import BEARER, PROBLEMS, Serving
from .schemas import Health

router = APIRouter(tags=["service"])


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"model": Health}})
def readyz(service: Serving, response: Response) -> Health:
    """The database answers, and the workers take works."""
    problems = []
    try:
        service.store.counts()
    except SQLAlchemyError:
        problems.append("the database does not answer")
    if not service.runner.alive:
        problems.append("the workers take no checks")
    if problems:
        response.status_code = 503
    return Health(status="not ready" if problems else "ok", problems=problems)


@router.get(
    "/metrics",
    dependencies=BEARER,
    response_class=Response,
    responses={401: PROBLEMS[401], 200: {"description": "counts", "content": {"text/plain": {}}}},
)
def metrics(service: Serving) -> Response:
    """Returns the counters, for Prometheus."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
