"""The service without its HTTP: the store, the workers, and the listeners to its events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..ops.logs import log
from ..ops.settings import Settings
from ..ops.telemetry import Traces, traces_to
from ..queue.database import Database
from ..queue.events import Hub
from ..queue.metrics import Metrics
from ..queue.store import Entry, QueueFull, Store, Submission
from ..queue.tables import State
from ..work.runner import Runner
from ..work.workers import Executor, Worker
from .auth import TokenTable
from .gate import Refusal


class Service:
    """The service's parts together: the store, the workers, and the listeners to its events."""

    def __init__(
        self, settings: Settings, make: Callable[[], Executor] = Worker, traces: Traces | None = None
    ) -> None:
        self.settings = settings
        self.traces = traces or traces_to(settings.traces)
        self.database = Database(settings.url)
        self.store = Store(self.database)
        self.tokens = TokenTable(self.database)
        self.metrics = Metrics(self.store)
        self.hub = Hub(self.store)
        self.runner = Runner(self.store, settings, make, self.metrics, self.traces, self.hub.tell)

    async def start(self) -> None:
        await asyncio.to_thread(self.database.migrate)
        # An embedded database is one service's own, so that nobody else can be at work on it.
        resumed = await asyncio.to_thread(self.store.resume, self.database.embedded)
        log("service starts", workers=len(self.runner.executors), resumed=resumed)
        await self.hub.start()
        self.runner.start()

    async def stop(self) -> None:
        await self.hub.stop()
        await asyncio.to_thread(self.runner.stop)
        self.database.close()
        await asyncio.to_thread(self.traces.close)
        log("service ends")

    def submit(self, asked: Submission) -> Entry:
        """Raises Refusal where the queue is full."""
        try:
            entry, new = self.store.submit(asked, self.settings.queue_limit, self.settings.client_queue_limit)
        except LookupError as gone:
            raise Refusal(404, str(gone)) from None
        except QueueFull as full:
            self.metrics.submissions.labels("refused").inc()
            wait = min(60, 1 + full.waiting // (4 * self.settings.workers))
            raise Refusal(429, f"{full}; try again later", **{"retry-after": str(wait)}) from None
        known = entry.state is not State.QUEUED
        self.metrics.submissions.labels("known" if known else "new" if new else "again").inc()
        if not known:
            self.traces.asked(entry.work.digest)
            self.runner.wake()
        return entry
