"""Traces of requests and checks."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest
from serving import FIXTURES, ended
from starlette.testclient import TestClient

from anyshape.typecheck.service.app import create_app
from anyshape.typecheck.service.ops.settings import Settings
from anyshape.typecheck.service.ops.telemetry import Traces, traces_to
from anyshape.typecheck.service.work.workers import Broke, CheckLimits, Outcome, Watch
from anyshape.typecheck.targets.extras import MissingPackage

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Breaks:
    """A worker whose process ends each time."""

    def ask(
        self, form: str, content: bytes, question: Mapping[str, Any], limits: CheckLimits, watch: Watch
    ) -> Outcome:
        return Broke("crash", "it ended by SIGSEGV")

    def close(self) -> None:
        pass


def spans_of(settings: Settings, *make: Any) -> list[Any]:
    """The spans of one check."""
    reason = "OpenTelemetry is not installed: the extra anyshape[telemetry]"
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason=reason)
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = create_app(settings, *make, traces=Traces(provider))
    with TestClient(app, base_url="http://localhost") as client:
        files = {"model": ("my-secret-model.pt2", (FIXTURES / "sizes.pt2").read_bytes())}
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        id = client.post("/v1/checks", files=files, data={"replay": "false"}, headers=headers).json()["id"]
        ended(client, id)
        assert client.get(f"/v1/checks/{id[::-1]}").status_code == 404
        time.sleep(0.1)  # a span ends after what it is about
    return [*exporter.get_finished_spans()]


def test_a_request_and_the_check_that_it_asks_for_are_one_trace(settings: Settings) -> None:
    spans = spans_of(settings)
    (request,) = [s for s in spans if s.name == "POST /v1/checks"]
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == PARENT
    assert request.attributes["http.response.status_code"] == 202
    (queue,), (decide,) = ([s for s in spans if s.name == name] for name in ("queue", "decide"))
    for span in (queue, decide):
        assert span.context.trace_id == request.context.trace_id
        assert span.parent.span_id == request.context.span_id
    assert queue.start_time <= queue.end_time <= decide.start_time < decide.end_time
    assert decide.attributes["anyshape.how"] in ("refined", "proved")
    (missing,) = [s for s in spans if s.attributes.get("http.response.status_code") == 404]
    assert missing.name == "GET /v1/checks/{id}"
    assert missing.context.trace_id != request.context.trace_id
    assert "my-secret-model" not in "".join(span.to_json() for span in spans)


def test_each_attempt_is_a_span(settings: Settings) -> None:
    spans = spans_of(settings, Breaks)
    attempts = [s.attributes for s in spans if s.name == "decide"]
    assert [(a["anyshape.attempt"], a["anyshape.how"]) for a in attempts] == [(1, "crash"), (2, "crash")]
    assert len([s for s in spans if s.name == "queue"]) == 1


def test_there_are_none_unless_a_collector_is_named(settings: Settings) -> None:
    traces = traces_to(settings.traces)
    with traces.request("GET", {}) as answered, traces.deciding("0" * 64, 1, 0.0) as decided:
        answered("/", 200)
        decided("proved")
        traces.asked("0" * 64)
    assert traces._asked == {}
    traces.close()


def test_a_collector_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    with pytest.raises(MissingPackage) as error:
        traces_to("http://127.0.0.1:4318/v1/traces")
    assert "telemetry" in error.value.hint


def test_a_collector_gets_the_spans() -> None:
    """By the protocol, over HTTP."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra anyshape[telemetry]")
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *told: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        traces = traces_to(f"http://127.0.0.1:{server.server_port}/v1/traces")
        with traces.request("GET", {}) as answered:
            answered("/v1/checks", 200)
        traces.close()
    finally:
        server.shutdown()
        server.server_close()
    assert any(b"GET /v1/checks" in body for body in bodies)
