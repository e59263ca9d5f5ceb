"""Makes repairs for `anyshape check --fix`, a round at a time, and checks again after each."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from ...constraints.ir.spec_text import SpecError
from ..facade import Report
from ..project.cache import Cache, default_folder
from ..project.config import ConfiguredJob
from ..project.fixing import FileEdit, plan
from ..project.jobs import answer
from ..render.text import repair_text
from ..report.report import Repair, Verdict
from ..targets.target_error import TargetError
from .errors import told

MAX_ROUNDS: Final = 20
"""The most rounds of repairs, each of which ends with a check."""
_RANK: Final = (Verdict.PROVED, Verdict.REFINED, Verdict.UNKNOWN, Verdict.REFUTED)


@dataclass(frozen=True, slots=True)
class Fixing:
    """What the command line asks of repairs."""

    write: bool
    unsafe: bool
    cached: bool
    folders: Sequence[Path]
    """The folders whose files may be changed."""
    known: Callable[[Sequence[Report]], Sequence[Report]]
    """Returns reports with those findings marked that are suppressed."""
    show: Callable[[str], None]
    """Prints a diff."""


def fixed(
    jobs: Sequence[ConfiguredJob], reports: Sequence[Report], asked: Fixing, since: float
) -> Sequence[Report]:
    """Makes repairs, of each report one in a round; returns the reports of the last check.

    `since` is the time at which the files were read. A round after which a target does worse is undone, and
    its repairs are not tried again.
    """
    failed: list[Repair] = []
    made = 0
    for _ in range(MAX_ROUNDS):
        planned = plan(asked.known(reports), asked.unsafe, asked.folders, since, failed)
        for edit in planned.edits:
            asked.show(edit.diff)
        if not planned.edits or not asked.write:
            for repair, why in planned.left:
                _say(f"not repaired, since {why}: {repair_text(repair)}")
            break
        written = []
        for edit in planned.edits:
            if edit.write():
                written.append(edit)
                continue
            failed += edit.repairs
            _say(f"{edit.file} is left, since it has changed since it was read, or cannot be written")
        since = time.time()
        if not written:
            continue
        now = _checked_elsewhere(jobs, asked.cached)
        again = [report for report in now if isinstance(report, Report)]
        repairs = [repair for edit in written for repair in edit.repairs]
        if len(again) == len(now) and not any(map(_is_worse, reports, again, [repairs] * len(again))):
            reports, made = again, made + len(repairs)
        else:
            failed += _undone(written)
            since = time.time()
    if asked.write:
        _say(f"{made} {'repair' if made == 1 else 'repairs'} made")
    return reports


def _is_worse(before: Report, now: Report, repairs: Sequence[Repair]) -> bool:
    """Returns whether a finding that was repaired is there still, or a verdict is worse than before."""
    repaired = {(f.code, f.message) for f in before.findings if not set(repairs).isdisjoint(f.repairs)}
    still = any((f.code, f.message) in repaired for f in now.findings)
    return still or _RANK.index(now.verdict) > _RANK.index(before.verdict)


def _undone(written: Sequence[FileEdit]) -> list[Repair]:
    """Undoes the repairs of a round, and returns them."""
    for edit in written:
        done = "undone, since the check does worse with it" if edit.undo() else "not undone"
        for repair in edit.repairs:
            _say(f"{done}: {repair_text(repair)}")
    return [repair for edit in written for repair in edit.repairs]


def _checked_elsewhere(jobs: Sequence[ConfiguredJob], cached: bool) -> list[Report | str]:
    """Returns the report of each job, or why there is none, from a process that imports the repaired files
    anew.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return [*pool.map(_answer, jobs, [cached] * len(jobs))]
        except BrokenProcessPool:
            return ["the process that checks ended early"]


def _answer(job: ConfiguredJob, cached: bool) -> Report | str:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return answer(job, Cache(default_folder()) if cached else None).report
    except (SpecError, TargetError) as error:
        return told(error)


def _say(text: str) -> None:
    print(text, file=sys.stderr)
