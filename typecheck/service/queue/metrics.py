"""The metrics of the service, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from sqlalchemy.exc import SQLAlchemyError

from .store import Store
from .tables import State

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The counters of one service."""

    def __init__(self, store: Store) -> None:
        self.registry = CollectorRegistry()
        self.submissions = Counter(
            "anyshape_submissions", "Checks asked for", ["result"], registry=self.registry
        )
        self.checks = Counter(
            "anyshape_checks",
            "Checks ended, by verdict or by the reason for having none",
            ["verdict"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "anyshape_check_seconds", "Seconds of a check", buckets=_SECONDS, registry=self.registry
        )
        self.restarts = Counter(
            "anyshape_worker_ends",
            "Workers that were stopped or died, by reason",
            ["why"],
            registry=self.registry,
        )
        self.requests = Histogram(
            "anyshape_request_seconds",
            "Seconds until a request was answered",
            ["method", "route", "status"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.busy = Gauge("anyshape_workers_busy", "Checks that run here", registry=self.registry)
        self.streams = Gauge("anyshape_event_streams", "Clients that follow a check", registry=self.registry)
        self.registry.register(_Queue(store))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Queue:
    """The works in each state, counted when they are asked for."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily("anyshape_works", "Checks that are kept, by state", labels=["state"])
        try:
            counts = self.store.counts()
        except SQLAlchemyError:  # the database is away, which /readyz tells
            return
        for state in State:
            family.add_metric([state.value], counts.get(state.value, 0))
        yield family
