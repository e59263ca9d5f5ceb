"""Takes works from the queue and runs them: one thread per worker, with retries, leases and an orderly end.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlalchemy.exc import SQLAlchemyError

from ...facade import Report
from ...report import findings
from ...report.codes import Code
from ...report.report import Accepts, Verdict
from ..ops.logs import log
from ..ops.settings import Settings
from ..ops.telemetry import Traces
from ..queue.database import hostname
from ..queue.metrics import Metrics
from ..queue.store import Store, Taken
from .questions import NAME
from .workers import Broke, CheckLimits, Executor, Outcome, WorkerAnswer

POLL_S: Final = 1.0
"""The interval, in seconds, at which the queue is searched for works that another service took in."""
RENEW_S: Final = 1.0
"""The interval, in seconds, at which a running work is marked as alive and checked for being still wanted."""
SWEEP_S: Final = 10.0
ATTEMPTS: Final = 2

Tell = Callable[[str, str], None]
"""Told of a work and what has become of it: its step, or nothing where its state has changed."""


class Runner:
    """The workers of one service."""

    def __init__(
        self, store: Store, settings: Settings, make: Callable[[], Executor], metrics: Metrics,
        traces: Traces, tell: Tell,
    ) -> None:
        self.store, self.settings, self.metrics, self.traces, self.tell = (
            store, settings, metrics, traces, tell,
        )  # fmt: skip
        self.owner = f"{hostname()[:32]}-{os.getpid()}-{secrets.token_hex(4)}"
        self.executors = [make() for _ in range(settings.workers)]
        self._threads: list[threading.Thread] = []
        self._work = threading.Condition()
        self._stopping = threading.Event()
        """Set when no further work is begun."""
        self._aborting = threading.Event()
        """Set when works in progress are put back into the queue."""

    def start(self) -> None:
        for executor in self.executors:
            self._threads.append(threading.Thread(target=self._slot, args=(executor,), daemon=True))
        self._threads.append(threading.Thread(target=self._sweep, daemon=True))
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There is something to do."""
        with self._work:
            self._work.notify()

    def stop(self) -> None:
        """Lets running works end for a while, puts the others back, and ends the workers."""
        self._stopping.set()
        with self._work:
            self._work.notify_all()
        until = time.monotonic() + self.settings.drain_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._aborting.set()
        for thread in self._threads:
            thread.join(5.0)

    @property
    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads) and not self._stopping.is_set()

    # ---- a worker's thread

    def _slot(self, executor: Executor) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    taken = self.store.take(self.owner, self.settings.lease_s)
                except SQLAlchemyError as error:
                    log("the queue cannot be read", logging.ERROR, error=_told(error))
                    self._stopping.wait(POLL_S)
                    continue
                if taken is None:
                    with self._work:
                        self._work.wait(POLL_S)
                else:
                    self._do(executor, taken)
        finally:
            executor.close()

    def _do(self, executor: Executor, taken: Taken) -> None:
        self.tell(taken.digest, "")
        watch = _Watch(self, taken)
        started = time.monotonic()
        spans = self.traces.deciding(taken.digest, taken.failures + 1, taken.created)
        with self.metrics.busy.track_inprogress(), spans as decided:
            limits = CheckLimits(taken.question["budget_s"] + self.settings.grace_s, self.settings.memory_mb)
            outcome = executor.ask(taken.form, taken.content, taken.question, limits, watch)
            kind, _, ended = _read(outcome)
            decided(kind or ended["verdict"])
        seconds = time.monotonic() - started
        self.metrics.seconds.observe(seconds)
        if isinstance(outcome, Broke):
            self.metrics.restarts.labels(outcome.kind).inc()
        self._settle(taken, outcome, seconds)
        self.tell(taken.digest, "")

    def _settle(self, taken: Taken, outcome: Outcome, seconds: float) -> None:
        """Stores the answer, or puts the work back, or stores the reason why there is no answer."""
        store, owner, digest = self.store, self.owner, taken.digest
        kind, reason, ended = _read(outcome)
        if kind == "stopped":
            self._kept(lambda: self._aborting.is_set() and store.release(owner, digest, failed=False))
            return
        again = kind in ("time", "memory", "crash") and taken.failures + 1 < ATTEMPTS
        how = kind or ended["verdict"]
        log("check ended", work=digest[:12], how=how, seconds=round(seconds, 3), again=again)
        if again:
            self._kept(lambda: store.release(owner, digest, failed=True))
        elif kind in ("time", "memory"):
            ended = _unknown(taken.question, f"{reason}, in each of {ATTEMPTS} attempts")
            self._kept(lambda: store.finish(owner, digest, ended["verdict"], ended))
        elif kind:
            problem = {"kind": kind, "problem": reason, "hint": ended.get("hint", "")}
            self._kept(lambda: store.fail(owner, digest, problem))
        else:
            self._kept(lambda: store.finish(owner, digest, ended["verdict"], ended))
        if not again:
            self.metrics.checks.labels(kind if kind in ("input", "crash") else ended["verdict"]).inc()

    def _kept(self, change: Callable[[], bool]) -> None:
        """Makes a change, as often as it takes while the database is away or full. What it was about comes
        back by its lease where that is not until the end of the service.
        """
        pause = 0.1
        while True:
            try:
                change()
                return
            except SQLAlchemyError as error:
                log("an answer waits for the database", logging.ERROR, error=_told(error))
                if self._aborting.wait(pause):
                    return
                pause = min(pause * 2, 5.0)

    # ---- what is done now and then

    def _sweep(self) -> None:
        due = 0.0
        while not self._stopping.wait(min(SWEEP_S, self.settings.lease_s / 2)):
            try:
                if resumed := self.store.resume():
                    log("checks of a service that has stopped are queued again", works=resumed)
                    self.wake()
                if time.monotonic() > due:
                    while not self._stopping.is_set() and self.store.expire(self.settings.retention_days):
                        pass
                    due = time.monotonic() + 3600
            except SQLAlchemyError as error:
                log("the store cannot be swept", logging.ERROR, error=_told(error))


class _Watch:
    """Looks after a work while it runs."""

    def __init__(self, runner: Runner, taken: Taken) -> None:
        self.runner, self.taken = runner, taken
        self.step, self.renewed = "", time.monotonic()

    def __call__(self, step: str) -> bool:
        runner, now = self.runner, time.monotonic()
        if runner._aborting.is_set():
            return False
        if step != self.step:
            self.step = step
            runner.tell(self.taken.digest, step)
        if now - self.renewed < RENEW_S:
            return True
        try:
            lease_s = runner.settings.lease_s
            wanted = runner.store.renew(runner.owner, self.taken.digest, lease_s, step[:64])
        except SQLAlchemyError as error:
            log("a lease cannot be renewed", logging.WARNING, error=_told(error))
            return True  # whoever takes the work over meanwhile comes to the same answer
        self.renewed = now
        return wanted


def _read(outcome: Outcome) -> tuple[str, str, Mapping[str, Any]]:
    """Returns the kind and the text of an error, both empty without an error, and the answer."""
    if isinstance(outcome, Broke):
        return outcome.kind, outcome.reason, {}
    assert isinstance(outcome, WorkerAnswer)
    failed = outcome.data.get("failed")
    return (failed["kind"], failed["problem"], failed) if failed else ("", "", outcome.data)


def _unknown(question: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """The answer where the process of a check had to be ended."""
    finding = findings.make(Code.INCOMPLETE, f"nothing was decided: {reason}")
    inputs = tuple(question["inputs"] or ())
    report = Report(NAME, inputs, Verdict.UNKNOWN, Accepts(True, True, (), False), {}, (finding,))
    return {"verdict": report.verdict.value, "report": report.to_json(), "spec": None}


def _told(error: SQLAlchemyError) -> str:
    """Returns the message of a database error, without the statement and its values."""
    with contextlib.suppress(AttributeError):
        return str(error.orig)  # type: ignore[attr-defined]
    return type(error).__name__
