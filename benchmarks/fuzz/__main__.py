"""Writes programs, checks them, and lets eager PyTorch judge.

    make fuzz
    make fuzz FUZZ="--programs 20000 --seed 7 --jobs 2 --only contents"

The results go to build/fuzz: results.json, FAILURES.md, and a test file for each failure in failures/.
The exit code is 1 where the checker was wrong, 0 else.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from . import campaign, failures
from .campaign import Bench, Effort, Row, Statistics
from .failures import Failure
from .families import FAMILIES, named
from .program import Program
from .shrinking import shrunk

FOLDER = Path("build/fuzz")


def main(arguments: Sequence[str]) -> int:
    options = _parsed(arguments)
    effort = Effort(points=options.points, budget_s=options.budget, replay=not options.no_replay)
    families = options.only.split(",") if options.only else list(FAMILIES)
    numbers = range(options.start, options.start + options.programs)
    folder = Path(options.out)
    statistics, wrong, undecided = Statistics(), [], []
    if options.names:
        rows = campaign.examined([(named(n), n.split()[0]) for n in options.names.split(",")], effort)
    else:
        rows = campaign.rows(numbers, options.seed, families, effort, options.jobs)
    for row in tqdm(rows, total=len(numbers), disable=not sys.stderr.isatty(), unit="program"):
        statistics.add(row)
        if row.wrong:
            wrong.append(row)
        elif not row.decided:
            undecided.append(row)
        if statistics.programs % 100 == 0:
            _write(folder, statistics, wrong, undecided)
    _write(folder, statistics, wrong, undecided)
    share = statistics.decided / max(1, statistics.programs)
    print(
        f"{statistics.programs} programs, {statistics.points} points judged: {statistics.wrong} wrong, "
        f"{statistics.decided} decided ({share:.1%})"
    )
    found: list[Failure] = []
    for failure in _shrunk(wrong[: options.shrink], effort, options.shrink_seconds):
        found.append(failure)
        failures.write(failure, folder / "failures")
        (folder / "FAILURES.md").write_text(failures.page(found))
    if found:
        print(f"{folder}/FAILURES.md: {len(failures.grouped(found))} groups")
    return 1 if wrong else 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="the number of the first program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", "-j", type=int, default=1)
    parser.add_argument("--only", default="", help=f"families, separated by commas: {', '.join(FAMILIES)}")
    parser.add_argument("--names", default="", help="only these programs: 'contents 7/12,memory 7/13'")
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of a check, of its process")
    parser.add_argument("--no-replay", action="store_true", help="verdicts as the proofs alone give them")
    parser.add_argument("--shrink", type=int, default=60, help="how many failures are shrunk, at most")
    parser.add_argument("--shrink-seconds", type=float, default=60.0, help="of one failure")
    parser.add_argument("--out", default=str(FOLDER))
    return parser.parse_args(arguments)


def _write(folder: Path, statistics: Statistics, wrong: list[Row], undecided: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        **statistics.to_json(),
        "wrong_programs": [_row(row) for row in wrong],
        "undecided_programs": [_row(row) for row in undecided[:500]],
    }
    (folder / "results.json").write_text(json.dumps(data, indent=1))


def _row(row: Row) -> dict[str, object]:
    assert row.program is not None
    return {
        "name": row.name, "verdict": row.verdict, "reasons": row.reasons,
        "wrong": [[w.kind, w.sizes, w.said, w.eager] for w in row.wrong],
        "inputs": row.program.spec, "assume": row.program.assume, "source": row.program.source,
    }  # fmt: skip


def _shrunk(rows: Sequence[Row], effort: Effort, seconds: float) -> Iterator[Failure]:
    """The smallest program of each wrong row."""
    with Bench(replace(effort, points=8)) as bench:
        for row in tqdm(rows, disable=not sys.stderr.isatty(), unit="failure"):
            failure = shrunk_failure(bench, row, seconds)
            if failure is not None:
                yield failure


def shrunk_failure(bench: Bench, row: Row, seconds: float) -> Failure | None:
    """None where the contradiction does not come back."""
    assert row.program is not None
    wanted = row.wrong[0]
    if wanted.said.startswith("no answer"):  # each try would take as long
        return Failure(row.program, wanted, row.name)

    def same(program: Program) -> bool:
        return any(_alike(w, wanted) for w in bench.row(program).wrong)

    if not same(row.program):
        return None
    program = shrunk(row.program, same, seconds)
    wrong = next(w for w in bench.row(program).wrong if _alike(w, wanted))
    return Failure(program, wrong, row.name)


def _alike(one: object, other: object) -> bool:
    """Contradictions of one kind, with an error of one type."""
    kind = lambda w: (w.kind, w.eager.split(":")[0])  # noqa: E731
    return kind(one) == kind(other)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
