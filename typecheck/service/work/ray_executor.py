"""Checks on a Ray cluster: an actor for each worker of the service, which has a process of its own as here.

So limits, retries and crashes are the same as on one machine; a node that is lost is a crash of the check.
Every node needs anyshape installed, in the same version.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

import ray
from ray.exceptions import RayError

from ...project.config import ConfigError
from .workers import LOOK_S, Broke, CheckLimits, Outcome, Watch, Worker, WorkerAnswer

START_S: Final = 120.0


class Seat:
    """The actor: a worker on some node of the cluster. `ask` runs beside `look` and `stop`."""

    def __init__(self, targets: bool) -> None:
        self._worker = Worker(targets=targets)
        self._step, self._stopped = "", threading.Event()

    def ask(
        self, form: str, content: bytes, question: Mapping[str, Any], limits: tuple[float, int]
    ) -> dict[str, Any]:
        """The outcome as plain data."""
        self._step = ""
        self._stopped.clear()
        outcome = self._worker.ask(form, content, question, CheckLimits(*limits), self._watch)
        if isinstance(outcome, WorkerAnswer):
            return {"data": outcome.data}
        return {"kind": outcome.kind, "reason": outcome.reason}

    def look(self) -> str:
        """The step that the check is at."""
        return self._step

    def stop(self) -> None:
        """Ends the check."""
        self._stopped.set()

    def _watch(self, step: str) -> bool:
        self._step = step
        return not self._stopped.is_set()


class RayExecutor:
    """A seat in the cluster, taken when it is first needed and again after its node was lost."""

    def __init__(self, *, targets: bool = False) -> None:
        self.targets = targets
        self._seat: Any = None

    def ask(
        self, form: str, content: bytes, question: Mapping[str, Any], limits: CheckLimits, watch: Watch
    ) -> Outcome:
        try:
            if self._seat is None:
                remote: Any = ray.remote(Seat)
                self._seat = remote.options(num_cpus=1, max_concurrency=3).remote(self.targets)
            asked = self._seat.ask.remote(form, content, question, (limits.seconds, limits.memory_mb))
            look, step, stopped, heard = self._seat.look.remote(), "", False, time.monotonic()
            while not ray.wait([asked], timeout=LOOK_S)[0]:
                if ray.wait([look], timeout=0)[0]:
                    step, look, heard = ray.get(look), self._seat.look.remote(), time.monotonic()
                if time.monotonic() - heard > START_S:
                    self.close()
                    return Broke("crash", f"its node did not answer within {START_S:.0f} s")
                if not stopped and not watch(step):
                    self._seat.stop.remote()
                    stopped = True
            said = ray.get(asked)
        except RayError as error:
            self.close()
            return Broke("crash", f"its node was lost: {type(error).__name__}")
        return WorkerAnswer(said["data"]) if "data" in said else Broke(said["kind"], said["reason"])

    def close(self) -> None:
        seat, self._seat = self._seat, None
        if seat is not None:
            ray.kill(seat)


def connect(address: str = "", **options: Any) -> None:
    """Joins the cluster at an address; without one, that of RAY_ADDRESS, or a new one on this machine.

    Raises ConfigError where no cluster can be joined.
    """
    try:
        ray.init(
            address=address or None,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **options,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        hint = "start one with `ray start --head`"
        raise ConfigError(f"the Ray cluster cannot be joined: {error}", hint) from None
