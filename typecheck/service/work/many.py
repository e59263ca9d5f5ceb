"""Checks a list of targets, several at a time, each in a process with limits: a zoo in one go."""

from __future__ import annotations

import json
import queue
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...facade import Report
from ...project.config import ConfiguredJob
from .questions import Question
from .workers import CheckLimits, Executor, WorkerAnswer

ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job: a report, or the reason why it has no report."""

    index: int
    job: ConfiguredJob
    report: Report | None
    problem: str = ""


def check_many(
    jobs: Sequence[ConfiguredJob], executors: Sequence[Executor], memory_mb: int, grace_s: float,
    cache: bool = True,
) -> Iterator[JobEnd]:
    """Yields the end of each job, in the order in which they end. A process that breaks is tried again once.

    With `cache`, the workers read and extend the cache on disk.
    """
    waiting: queue.SimpleQueue[tuple[int, ConfiguredJob]] = queue.SimpleQueue()
    ended: queue.SimpleQueue[JobEnd] = queue.SimpleQueue()
    stopped = threading.Event()
    for item in enumerate(jobs):
        waiting.put(item)

    def goes_on(step: str) -> bool:
        return not stopped.is_set()

    def work(executor: Executor) -> None:
        try:
            while not stopped.is_set():
                index, job = waiting.get_nowait()
                content = zlib.compress(json.dumps({"target": job.target, "cache": cache}).encode())
                ended.put(_checked(index, job, content, executor, memory_mb, grace_s, goes_on))
        except queue.Empty:
            pass
        finally:
            executor.close()

    threads = [threading.Thread(target=work, args=(executor,), daemon=True) for executor in executors]
    for thread in threads:
        thread.start()
    try:
        for _ in jobs:
            yield ended.get()
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def _checked(
    index: int, job: ConfiguredJob, content: bytes, executor: Executor, memory_mb: int, grace_s: float,
    watch: Callable[[str], bool],
) -> JobEnd:
    asked = Question(
        "check", job.inputs, job.assume, job.budget_s, job.replay,
        suspect=job.suspect, second_solver=job.second_solver, device=job.device,
    )  # fmt: skip
    question = asked.to_json()
    limits = CheckLimits(job.budget_s + grace_s, memory_mb)
    problem = ""
    for _ in range(ATTEMPTS):
        outcome = executor.ask("target", content, question, limits, watch)
        if isinstance(outcome, WorkerAnswer):
            failed = outcome.data.get("failed")
            if failed is None:
                report = Report.from_json(outcome.data["report"])
                return JobEnd(index, job, replace(report, target=job.target))
            problem = "; ".join(filter(None, (failed["problem"], failed["hint"])))
            if failed["kind"] == "input":
                break
        else:
            problem = outcome.reason
    return JobEnd(index, job, None, problem)
