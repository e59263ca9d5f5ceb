"""The application: its routes, the checks that every request passes first, and the service behind them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

import anyio.to_thread
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from .http import health, routes
from .http.core import Service
from .http.gate import Gate
from .http.pages import add_pages
from .http.problems import add_handlers
from .ops.settings import Settings
from .ops.telemetry import Traces
from .work.workers import Executor, Worker

VERSION: Final = "1.0"
THREADS: Final = 64
"""Requests that are worked on at a time; others wait."""


def create_app(
    settings: Settings, make: Callable[[], Executor] = Worker, traces: Traces | None = None
) -> FastAPI:
    """The application of one service. Raises ConfigError where the database cannot be used."""
    service = Service(settings, make, traces)

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
    add_handlers(app)
    app.include_router(routes.router)
    app.include_router(health.router)
    add_pages(app)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=settings.cors_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["authorization", "content-type", "x-request-id"],
        expose_headers=["location", "retry-after", "x-request-id"],
    )
    app.add_middleware(
        Gate, settings=settings, tokens=service.tokens, metrics=service.metrics, traces=service.traces
    )
    return app
