"""`anyshape check-many LIST`: checks a whole list of programs, several at a time."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...facade import Report
from ...project.config import ConfigError
from ...render.formats import FORMATS, written
from ..common import (
    BAD_INPUT,
    Commands,
    add_format,
    add_output,
    command,
    exit_code,
    names_file,
    put,
    require_writable,
    seconds,
)

if TYPE_CHECKING:
    from ...service.work.many import JobEnd

_EPILOG: Final = """\
LIST is a file with a target on each line, and after tabs its inputs and its assumptions:
  models/unet.py:UNet<tab>x: float32[b, 3, h, w]<tab>h % 64 == 0 and w % 64 == 0
or TOML with [[tool.anyshape.targets]], as in a pyproject.toml. Every target is traced and decided in a
process of its own, within limits of time and memory; one that crashes is tried once more. Results are cached
like those of `anyshape check`.

With --executor ray the processes are those of a Ray cluster: that of --ray-address or RAY_ADDRESS, or one
that is started for this command. The current folder goes to the nodes, where anyshape has to be installed.

Exit codes: 0 all proved, 1 some refined or refuted, 2 some could not be checked, 3 some unknown,
130 interrupted.
"""
_SEVERITY: Final = (0, 3, 1, BAD_INPUT)


def add(commands: Commands) -> None:
    parser = command(commands, "check-many", "check a list of programs, several at a time", _EPILOG)
    names_file(parser.add_argument("list", metavar="LIST", type=Path, help="a file of targets"))
    parser.add_argument(
        "--jobs",
        "-j",
        type=int,
        metavar="N",
        default=os.cpu_count() or 2,
        help="programs checked at a time (default: number of processors)",
    )
    parser.add_argument(
        "--executor", choices=("local", "ray"), default="local", help="where the checks run (default: local)"
    )
    parser.add_argument("--ray-address", metavar="ADDRESS", default="", help="address of a running cluster")
    parser.add_argument("--budget", type=seconds, metavar="S", help="seconds for each program (default: 30)")
    parser.add_argument(
        "--memory-mb", type=int, metavar="MB", default=8192, help="memory for each program (default: 8192)"
    )
    parser.add_argument(
        "--grace",
        type=seconds,
        metavar="S",
        default=60.0,
        help="further seconds to load each program (default: 60)",
    )
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write the cache of results")
    add_format(parser, "reports", FORMATS)
    add_output(parser, "reports")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    require_writable(options.output)
    from ...project.listing import listed
    from ...service.work.many import check_many

    jobs = listed(options.list)
    if options.budget is not None:
        jobs = tuple(replace(job, budget_s=options.budget) for job in jobs)
    if options.jobs < 1:
        raise ConfigError(f"--jobs is {options.jobs}, and at least 1 is needed")
    make = _executor(options)
    executors = [make() for _ in range(min(options.jobs, len(jobs)))]
    ended = check_many(jobs, executors, options.memory_mb, options.grace, not options.no_cache)
    found = _shown(ended, len(jobs))
    reports = [one.report for one in found if one.report is not None]
    if options.format != "text" or options.output is not None:
        _write(reports, options)
    codes = [BAD_INPUT if one.report is None else exit_code(one.report) for one in found]
    return max(codes, key=_SEVERITY.index)


def _executor(options: argparse.Namespace) -> Callable[[], Any]:
    from ...service.work.workers import Worker

    if options.executor == "local":
        return partial(Worker, targets=True)
    from ...service.work.ray_executor import RayExecutor, connect

    connect(options.ray_address, runtime_env={"working_dir": os.getcwd()})
    return partial(RayExecutor, targets=True)


def _shown(ended: Iterable[JobEnd], count: int) -> list[JobEnd]:
    """All that came of it, in the order of the list; a line each on stderr as they end, under a bar."""
    from tqdm import tqdm

    found: list[JobEnd] = []
    with tqdm(total=count, file=sys.stderr, disable=not sys.stderr.isatty(), leave=False, unit="") as bar:
        for one in ended:
            word = "failed" if one.report is None else one.report.verdict.value
            told = f": {one.problem}" if one.problem else ""
            told += " (kept)" if one.report is not None and one.report.stats.get("cached") else ""
            bar.write(f"{word.ljust(8)} {one.job.target}{told}", file=sys.stderr)
            bar.update()
            found.append(one)
    counts = dict.fromkeys(("proved", "refined", "refuted", "unknown", "failed"), 0)
    for one in found:
        counts["failed" if one.report is None else one.report.verdict.value] += 1
    told = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    print(f"{count} {'program' if count == 1 else 'programs'}: {told}", file=sys.stderr)
    return sorted(found, key=lambda one: one.index)


def _write(reports: Sequence[Report], options: argparse.Namespace) -> None:
    if options.format == "text":
        text = "\n".join(report.to_text() for report in reports)
    else:
        text = written(options.format, reports, project=True)
    put(text, options.output)
