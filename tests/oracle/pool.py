"""Entries judged in parallel, by workers that may die: what kills its process is told as a crash of one call,
and the run goes on.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection, wait
from typing import TypeAlias

import torch

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.rules import default_rules

from .judge import Judgement, Points, Remark, judge, judge_error
from .layouts import FEW, judge_layout, layouts_of
from .samples import Entry, Sample, entries

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
    agreed: int = 0
    accepted: int = 0
    refused: int = 0
    unjudged: int = 0
    seconds: float = 0.0
    forms: dict[str, int] = field(default_factory=dict)
    overloads: dict[str, int] = field(default_factory=dict)
    """ATen overloads that were called, with how many of their samples something is remarked of."""
    layouts: dict[str, int] = field(default_factory=dict)
    """How many results there are whose strides are told, and whose are not, and the like."""
    remarks: list[Remark] = field(default_factory=list)

    def add(self, sample: Sample, made: Judgement) -> None:
        self.samples += made.points > 0
        self.points += made.points
        self.agreed += made.agreed
        self.accepted += made.accepted
        self.refused += made.refused
        self.unjudged += made.unjudged
        self.forms[sample.form] = self.forms.get(sample.form, 0) + (made.points > 0)
        self.remarks += made.remarks
        self.layouts = dict(made.layouts + Counter(self.layouts))
        if isinstance(sample.call, torch._ops.OpOverload) and (made.points or made.remarks):
            name = str(sample.call)
            self.overloads[name] = self.overloads.get(name, 0) + bool(made.remarks)


@dataclass(frozen=True)
class Options:
    """How much is looked at."""

    samples: int | None = None
    """At most so many samples of each form of an entry, spread evenly; all where None."""
    points: int | None = None
    """At most so many points beside each sample; all where None."""
    forms: frozenset[str] | None = None
    number: int | None = None
    layouts: bool = False
    """Whether the layouts of results are judged, with operands laid out anew, in place of acceptance."""


WHOLE = Options()


def chosen(entry: Entry, options: Options) -> list[Sample]:
    if options.layouts:
        return layouts_of(entry, options.samples)
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
    """Every sample of the entry. `enter` is told each place before torch gets there; places to `skip` are
    those where the process has died.
    """
    started = time.monotonic()
    row = Row(entry.name)
    for place, sample in enumerate(chosen(entry, options)):
        enter((place, -1))
        if (place, -1) in skip:
            made = Judgement(remarks=[Remark("crash", str(sample), "", "the process dies", "")])
        elif sample.form == "error":
            made = judge_error(sample, rules)
        else:
            skipped = frozenset(point for where, point in skip if where == place)
            limit = FEW.limit if options.layouts and options.points is None else options.points
            looked_at = Points(limit, skipped, lambda point, place=place: enter((place, point)))
            made = (judge_layout if options.layouts else judge)(sample, rules, looked_at)
        row.add(sample, made)
    row.seconds = time.monotonic() - started
    return row


def _work(pipe: Connection, options: Options) -> None:
    gc.freeze()  # a collection would look at, and copy, all that the two processes share
    with open(os.devnull, "w") as nowhere:  # torch warns from C++, once per call and more
        os.dup2(nowhere.fileno(), 2)
    while True:
        name, skip = pipe.recv()
        try:
            row = judge_entry(entries()[name], options, skip=skip, enter=pipe.send)
        except Exception:  # noqa: BLE001 - a defect of the harness is told as one, with its place
            row = Row(name, remarks=[Remark("failed", name, "", "", traceback.format_exc(limit=-3))])
        pipe.send(row)


class Worker:
    """A process that judges one entry after another."""

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
    busy = [Worker(options) for _ in range(min(jobs, len(todo)))]
    try:
        for worker in busy:
            worker.take(todo.pop())
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
    finally:
        for worker in busy:
            worker.process.terminate()


def totals(rows: Iterable[Row]) -> Counter[str]:
    total = Counter[str]()
    for row in rows:
        total.update(samples=row.samples, points=row.points, unjudged=row.unjudged, agreed=row.agreed)
        total.update(accepted=row.accepted, refused=row.refused)
        total.update({f"{what} layouts": n for what, n in row.layouts.items()})
    return total
