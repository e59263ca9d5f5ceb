"""Checks jobs one after the other, from the cache where it has the answer."""

from __future__ import annotations

from dataclasses import dataclass

from ..checking.clock import Progress
from ..checking.reading import Reading
from ..facade import Answered, Report
from .cache import Cache, CacheQuestion, worth_keeping
from .config import ConfiguredJob


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """The report of a job, and the user's files that it was made from."""

    report: Report
    files: tuple[str, ...]


def answer(
    job: ConfiguredJob, cache: Cache | None, tell: Progress | None = None, answered: Answered | None = None
) -> JobAnswer:
    """Returns the cached answer of this job, or that of a new check, which is then cached. Raises what
    `check` raises. `answered` is called in a new check, as `check` does.

    torch is imported for a new check only.
    """
    asked = CacheQuestion(job)
    if cache is not None and (kept := cache.get(asked)) is not None:
        return JobAnswer(kept.report, kept.files)
    from ..checking.api import check

    with Reading() as reading:
        report = check(
            job.target,
            job.inputs,
            job.assume,
            budget_s=job.budget_s,
            replay=job.replay,
            repairs=job.replay,
            suspect=job.suspect,
            second_solver=job.second_solver,
            device=job.device,
            training=job.training,
            progress=tell,
            answered=answered,
        )
    if cache is not None and reading.unchanged and worth_keeping(report):
        cache.put(asked, report, reading.files)
    return JobAnswer(report, reading.files)
