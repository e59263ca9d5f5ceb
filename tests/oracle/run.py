"""Holds every operator to torch itself: `python tests/oracle/run.py --help`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from oracle import coverage
from oracle.exemptions import LEFT_OUT, complaints, unexpected
from oracle.judge import Remark
from oracle.pool import Options, Row, run, totals
from oracle.samples import entries
from tqdm import tqdm

SHOWN = 300
"""Letters of a message that are shown."""

MOST = 20
"""Operators that are listed for having the most results whose strides are not told."""


def show(entry: str, first: Remark, count: int) -> None:
    print(f"{entry}: {first.kind} ({count} times, rule {first.rule or 'none'})")
    told = {"": first.sample, "at ": first.point, "torch: ": first.torch, "ours: ": first.ours}
    for label, text in told.items():
        if text:
            print(f"    {label}{' '.join(text.split())[:SHOWN]}")


def alike(remarks: Iterable[Remark]) -> list[tuple[Remark, int]]:
    """The first of each kind of remark, and how many are like it."""
    found: dict[tuple[str, ...], tuple[Remark, int]] = {}
    for remark in remarks:
        said = remark.torch if remark.kind == "accepts" else remark.ours
        key = (remark.kind, remark.rule, said[:40])
        first, count = found.get(key, (remark, 0))
        found[key] = first, count + 1
    return list(found.values())


def report(rows: list[Row], family: str | None, exempt_too: bool) -> None:
    for row in sorted(rows, key=lambda row: row.entry):
        remarks = row.remarks if exempt_too else unexpected(row.entry, row.remarks)
        for first, count in alike(remarks):
            if family in (None, coverage.family_of(first.rule)):
                show(row.entry, first, count)
    told = ", ".join(f"{n:,} {what}" for what, n in totals(rows).items())
    for row in sorted(rows, key=lambda row: -row.layouts.get("untold", 0))[:MOST]:
        if row.layouts:
            print(f"{row.entry}: {', '.join(f'{n:,} {what}' for what, n in sorted(row.layouts.items()))}")
    print(f"{len(rows)} operators and modules: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Holds every operator to torch itself.")
    parser.add_argument("--op", action="append", help="only this entry of the databases; may be repeated")
    parser.add_argument("--family", help="show only remarks on rules of this file of constraints/rules/")
    parser.add_argument("--form", action="append", help="only samples of this form; may be repeated")
    parser.add_argument("--number", type=int, help="only samples of this number")
    parser.add_argument("--samples", type=int, help="at most so many samples of each form of an entry")
    parser.add_argument("--points", type=int, help="at most so many points of a sample")
    parser.add_argument("--layouts", action="store_true", help="how results lie, of operands laid out anew")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--exempt", action="store_true", help="show what is exempt, too")
    parser.add_argument("--json", type=Path, help="a file to write the rows to, as lines of JSON")
    parser.add_argument("--write", action="store_true", help="write docs/coverage.md and its figures")
    given = parser.parse_args()
    names = given.op or [name for name in entries() if name not in LEFT_OUT]
    if unknown := [name for name in names if name not in entries()]:
        near = [n for n in entries() if any(u.lower() in n.lower() for u in unknown)]
        sys.exit(f"no entry {', '.join(unknown)} in torch's databases; similar: {', '.join(near) or 'none'}")
    forms = given.form and frozenset(given.form)
    options = Options(given.samples, given.points, forms, given.number, given.layouts)
    whole = given.op is None and options == Options()
    if given.write and not whole:
        sys.exit("docs/coverage.md tells of whole runs: --write goes with no other option but --jobs")
    rows = []
    tqdm.monitor_interval = 0  # its thread would be forked along
    with contextlib.ExitStack() as stack:
        written = stack.enter_context(given.json.open("w")) if given.json else None
        for row in tqdm(run(names, options, given.jobs), total=len(names), unit="operator", smoothing=0):
            rows.append(row)
            if written:
                print(json.dumps(asdict(row)), file=written, flush=True)
    report(rows, given.family, given.exempt)
    wrong = complaints(rows, whole)
    if given.write:
        coverage.write(rows)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
