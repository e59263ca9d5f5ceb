"""Traces by OpenTelemetry, where the setting `traces` names a collector: OTLP over HTTP.

A request is a span, and part of the trace that its header `traceparent` names. What it asks for gets two more
beneath it: `queue`, while it waits, and `decide`, each time that it is worked on. Where another service than
the one that was asked does the work, they are a trace of their own. Spans say what logs say, and no more.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from ...targets.extras import MissingPackage

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

NAME: Final = "anyshape"
MOST_ASKED: Final = 10_000
"""Checks whose request is remembered."""
Answered: TypeAlias = Callable[[str, int], None]
"""Told the route and the status of a request."""
Decided: TypeAlias = Callable[[str], None]
"""Called with a verdict, or with the reason why there is no verdict."""


class Traces:
    """Makes the spans of one service; none where there is no provider."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._asked: dict[str, Context] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[Answered]:
        """The span of a request."""
        if self._provider is None:
            yield lambda route, status: None
            return
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        given = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        with self._provider.get_tracer(NAME).start_as_current_span(
            method,
            TraceContextTextMapPropagator().extract(given),
            trace.SpanKind.SERVER,
            record_exception=False,  # its message may say more than logs do
            set_status_on_exception=False,
        ) as span:

            def answered(route: str, status: int) -> None:
                span.update_name(f"{method} {route}")
                span.set_attributes(
                    {"http.request.method": method, "http.route": route, "http.response.status_code": status}
                )
                if status >= 500:
                    span.set_status(trace.StatusCode.ERROR)

            yield answered

    def asked(self, digest: str) -> None:
        """The request that is being answered asks for this work."""
        if self._provider is None:
            return
        from opentelemetry import trace
        from opentelemetry.context import Context

        with self._lock:
            self._asked[digest] = trace.set_span_in_context(trace.get_current_span(), Context())
            if len(self._asked) > MOST_ASKED:
                del self._asked[next(iter(self._asked))]

    @contextlib.contextmanager
    def deciding(self, digest: str, attempt: int, queued: float) -> Iterator[Decided]:
        """The span of an attempt at a work; before the first, that of its wait since `queued` (Unix time)."""
        if self._provider is None:
            yield lambda how: None
            return
        tracer = self._provider.get_tracer(NAME)
        about: dict[str, str | int] = {"anyshape.work": digest[:12], "anyshape.attempt": attempt}
        with self._lock:
            context = self._asked.get(digest)
        if attempt == 1:
            tracer.start_span("queue", context, attributes=about, start_time=int(queued * 1e9)).end(
                time.time_ns()
            )
        with tracer.start_as_current_span("decide", context, attributes=about) as span:
            yield lambda how: span.set_attribute("anyshape.how", how)

    def close(self) -> None:
        """Sends what is left to be sent."""
        if self._provider is not None:
            self._provider.shutdown()


def traces_to(collector: str) -> Traces:
    """Traces that a collector gets; none where none is named.

    Raises MissingPackage without OpenTelemetry, of which a part may be installed.
    """
    if not collector:
        return Traces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        raise MissingPackage("opentelemetry") from None
    provider = TracerProvider(resource=Resource.create({"service.name": NAME}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=collector)))
    return Traces(provider)
