"""Checks a list of targets, several at a time, each in a process with limits: a zoo in one go."""

from __future__ import annotations

import json
import queue
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...constraints.ir.spec_text import suggestion
from ..facade import Report
from ..service.work.questions import Question
from ..service.work.workers import CheckLimits, Executor, WorkerAnswer
from .config import ConfigError, ConfiguredJob, read

ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job: a report, or the reason why it has no report."""

    index: int
    job: ConfiguredJob
    report: Report | None
    problem: str = ""


def listed(file: Path) -> tuple[ConfiguredJob, ...]:
    """The jobs of a list. Raises ConfigError.

    A list is TOML with `[[tool.anyshape.targets]]`, as in a `pyproject.toml`, or lines of a target and, after
    tabs, its inputs and its assumptions; a line that begins with `#` says nothing.
    """
    if file.suffix == ".toml":
        project = read(file)
        jobs = project.jobs if project is not None else ()
    else:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            hint = suggestion(file.name, _names(file))
            raise ConfigError(f"{file} cannot be read: {getattr(error, 'strerror', error)}", hint) from None
        jobs = tuple(_job(line) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if not jobs:
        raise ConfigError(f"{file} lists no targets", "a target on each line, such as models/unet.py:UNet")
    return jobs


def _names(file: Path) -> list[str]:
    return [path.name for path in file.parent.iterdir()] if file.parent.is_dir() else []


def _job(line: str) -> ConfiguredJob:
    target, inputs, assume, *rest = [*(part.strip() for part in line.split("\t")), "", ""]
    if any(rest[:-2]):
        raise ConfigError(f"{line!r} has more than a target, its inputs and its assumptions")
    return ConfiguredJob(target, (inputs,) if inputs else None, (assume,) if assume else ())


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
