"""Holds every operator to torch: `python tests/oracle/run.py --help`."""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TypeAlias

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from oracle.judge import DISAGREEMENTS, MAX_POINTS, Judgement, Remark, judge, judge_error
from oracle.samples import Entry, Sample, entries
from tqdm import tqdm

from anyshape.constraints.generate import Rules
from anyshape.constraints.rules import default_rules

SILENT_S = 40.0
"""A worker that says nothing for so long is taken for dead."""

MAX_DEATHS = 8
"""After so many the rest of the entry's samples is left out."""


Place: TypeAlias = "tuple[int, int]"
"""A sample of an entry and one of its points; -1 for what comes before the points."""


@dataclass
class Row:
    """What came of one entry of torch's databases."""

    entry: str
    samples: int = 0
    points: int = 0
    accepted: int = 0
    refused: int = 0
    unjudged: int = 0
    seconds: float = 0.0
    overloads: dict[str, bool] = field(default_factory=dict)
    """ATen overloads that were called, and whether all their samples agree."""
    remarks: list[Remark] = field(default_factory=list)

    def add(self, sample: Sample, made: Judgement) -> None:
        self.samples += 1
        self.points += made.points
        self.accepted += made.accepted
        self.refused += made.refused
        self.unjudged += made.unjudged
        self.remarks += made.remarks
        if isinstance(sample.call, torch._ops.OpOverload):
            name = str(sample.call)
            self.overloads[name] = self.overloads.get(name, True) and not made.remarks


@dataclass(frozen=True)
class Options:
    """How much is looked at."""

    samples: int | None = None
    """At most so many samples of each form of an entry, spread evenly; all where None."""
    points: int = MAX_POINTS
    forms: frozenset[str] | None = None
    number: int | None = None


def chosen(entry: Entry, options: Options) -> list[Sample]:
    forms: dict[str, list[Sample]] = defaultdict(list)
    for sample in chain(entry.samples(), entry.errors()):
        if options.forms is None or sample.form in options.forms:
            forms[sample.form].append(sample)
    found = []
    for all_of_form in forms.values():
        count = len(all_of_form)
        limit = count if options.samples is None else min(count, options.samples)
        found += [all_of_form[i * count // limit] for i in range(limit)]
    return [s for s in found if options.number is None or s.number == options.number]


def judge_entry(
    entry: Entry,
    options: Options,
    rules: Rules = default_rules,
    skip: frozenset[Place] = frozenset(),
    enter: Callable[[Place], None] = lambda place: None,
) -> Row:
    started = time.monotonic()
    row = Row(entry.name)
    for place, sample in enumerate(chosen(entry, options)):
        enter((place, -1))
        if (place, -1) in skip:
            made = Judgement(remarks=[Remark("crash", str(sample), "", "the process dies", "")])
        elif sample.form == "error":
            made = judge_error(sample, rules)
        else:
            made = judge(
                sample, rules, limit=options.points,
                skip=frozenset(point for where, point in skip if where == place),
                enter=lambda point, place=place: enter((place, point)),
            )
        row.add(sample, made)
    row.seconds = time.monotonic() - started
    return row


# ---- workers: an operator that kills its process is an operator that crashes, and the run goes on


def _work(pipe: Connection, options: Options) -> None:
    with open(os.devnull, "w") as nowhere:  # torch warns from C++, once per call and more
        os.dup2(nowhere.fileno(), 2)
    while True:
        name, skip = pipe.recv()
        try:
            row = judge_entry(entries()[name], options, skip=skip, enter=lambda place: pipe.send(place))
        except Exception:  # noqa: BLE001 - a defect of the harness is told as one, with its place
            row = Row(name, remarks=[Remark("failed", name, "", "", traceback.format_exc(limit=-3))])
        pipe.send(row)


class Worker:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.start()

    def start(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(
            target=_work, args=(theirs, self.options), daemon=True
        )
        self.process.start()
        theirs.close()
        self.name, self.skip, self.place, self.heard = "", frozenset[Place](), (0, -1), 0.0

    def take(self, name: str, skip: frozenset[Place] = frozenset()) -> None:
        self.name, self.skip, self.place, self.heard = name, skip, (0, -1), time.monotonic()
        self.pipe.send((name, skip))

    def hear(self) -> Row | None:
        """The row that the worker has finished, if it has."""
        try:
            while self.pipe.poll():
                self.heard = time.monotonic()
                told = self.pipe.recv()
                if isinstance(told, Row):
                    return told
                self.place = told
        except (EOFError, ConnectionResetError):
            self.again()
            return None
        if time.monotonic() - self.heard > SILENT_S:
            self.process.kill()
            self.again()
        return None

    def again(self) -> None:
        """Starts over without the point at which the process died."""
        self.process.join()
        name, skip = self.name, self.skip | {self.place}
        if len(skip) > MAX_DEATHS:
            skip |= {(self.place[0] + i, -1) for i in range(10**4)}
        print(f"{name}: the process died at sample and point {self.place}", file=sys.stderr)
        self.start()
        self.take(name, skip)


def run(names: Iterable[str], options: Options, jobs: int) -> Iterator[Row]:
    """The rows of the entries, as they are finished."""
    todo = list(reversed(list(names)))
    entries()  # before the workers fork, so that they share it
    workers = [Worker(options) for _ in range(min(jobs, len(todo)))]
    busy = []
    for worker in workers:
        worker.take(todo.pop())
        busy.append(worker)
    while busy:
        wait([w.pipe for w in busy], timeout=1.0)
        for worker in list(busy):
            row = worker.hear()
            if row is None:
                continue
            yield row
            if todo:
                worker.take(todo.pop())
            else:
                busy.remove(worker)
                worker.process.terminate()


# ---- what is printed


def family_of(rule: str, rules: Rules = default_rules) -> str:
    """The file in which the operator's rule stands."""
    found = rules.get(rule) or rules.get(rule.removesuffix("_"))
    return found.function.__module__.rpartition(".")[2] if found else "no rule"


def main() -> None:
    parser = argparse.ArgumentParser(description="Holds every operator to torch itself.")
    parser.add_argument("--op", action="append", help="only this entry (may be given again)")
    parser.add_argument("--family", help="only remarks on rules of this file of constraints/rules/")
    parser.add_argument("--form", action="append", help="only samples of this form")
    parser.add_argument("--number", type=int, help="only the sample of this number")
    parser.add_argument("--samples", type=int, help="at most so many samples of each form of an entry")
    parser.add_argument("--points", type=int, default=MAX_POINTS, help="at most so many points per sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="a file to write a row per entry to, as lines of JSON")
    options = parser.parse_args()
    names = options.op or list(entries())
    if unknown := [name for name in names if name not in entries()]:
        near = [n for n in entries() if any(u.lower() in n.lower() for u in unknown)]
        sys.exit(f"no entry {', '.join(unknown)} in torch's databases; similar: {', '.join(near) or 'none'}")
    how = Options(options.samples, options.points, options.form and frozenset(options.form), options.number)
    rows = []
    with contextlib.ExitStack() as stack:
        written = stack.enter_context(options.json.open("w")) if options.json else None
        for row in tqdm(run(names, how, options.jobs), total=len(names), unit="op"):
            rows.append(row)
            if written:
                print(json.dumps(asdict(row)), file=written, flush=True)
    rows.sort(key=lambda row: row.entry)
    seen: dict[tuple[str, ...], tuple[Remark, int]] = {}
    for row in rows:
        for r in row.remarks:
            if options.family and family_of(r.rule) != options.family:
                continue
            key = (row.entry, r.kind, r.rule, r.torch[:60] if r.kind == "accepts" else r.ours[:60])
            first, count = seen.get(key, (r, 0))
            seen[key] = first, count + 1
    for key, (r, count) in seen.items():
        print(f"{key[0]}: {r.kind} ({count}x; rule {r.rule})\n    {r.sample}\n    at {r.point}")
        print(f"    torch: {r.torch[:300]}\n    ours:  {r.ours[:300]}")
    total = Counter[str]()
    for row in rows:
        total.update(samples=row.samples, points=row.points, accepted=row.accepted, refused=row.refused,
                     unjudged=row.unjudged)
        total.update(r.kind for r in row.remarks)
    print(f"{len(rows)} entries; " + ", ".join(f"{n} {kind}" for kind, n in total.items()))
    if any(r.kind in DISAGREEMENTS for row in rows for r in row.remarks):
        sys.exit(1)


if __name__ == "__main__":
    main()
