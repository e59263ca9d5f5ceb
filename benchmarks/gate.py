"""Has the package become slower? Counts of instructions, against those that `benchmarks/baseline.json` keeps.

    make bench-check                      fails where a case costs 15 % more, or grows beyond its program
    python -m benchmarks.gate --update    writes the counts of today as the new baseline

A count is exact and the same on every machine, but for the version of Python: the baseline has one of each.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from anyshape.typecheck import check

from . import programs
from .growth import checked
from .instructions import instructions

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "benchmarks" / "baseline.json"
FIXTURES = ROOT / "tests" / "tracer" / "fixtures"
ALLOWED = 1.15
GROWTH = 11.0
"""The limit of instructions for a program of ten times the nodes, as a multiple."""
SHORT, LONG = 30, 300
MAKERS = {
    name: programs.MAKERS[name]
    for name in (
        "perceptron", "transformer", "wide", "hourglasses", "divisors", "windows", "strided",
        "joined, 20 symbols", "equated, 20 symbols", "unknown rank",
    )
}
"""Those of which the fast path decides all that is asked: how far z3 gets is not counted in instructions."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that costs too much, and how much it may."""

    case: str
    count: int
    allowed: float
    why: str

    def __str__(self) -> str:
        more = self.count / self.allowed - 1
        return f"{self.case}: {self.count:,} instructions, {more:+.0%} over {self.why}"


def cases() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yields the cases that are counted: saved programs, generated ones at two lengths, recorded ones."""
    for path in ("resnet.pt2", "bert.pt2", "unet.pt2"):
        yield f"file {path}", lambda path=path: check(str(FIXTURES / path)).to_text()  # type: ignore[misc]
    for maker, make in MAKERS.items():
        for length in (SHORT, LONG):
            made = make(length)
            yield f"{maker} {length}", lambda made=made: checked(made)  # type: ignore[misc]
    yield from recorded()


def recorded() -> Iterator[tuple[str, Callable[[], object]]]:
    """Python models, checked without replay."""
    import torch

    from .models import RESNET18, build

    image = build(RESNET18)
    yield "record resnet18", lambda: check(image, RESNET18.inputs, RESNET18.assume, replay=False)
    with torch.device("meta"):
        layers = torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(64, 4, batch_first=True), 4, enable_nested_tensor=False
        ).eval()
    yield "record transformer", lambda: check(layers, "src: float32[b, t, 64]", replay=False)


def count() -> dict[str, int]:
    """Instructions by case."""
    checked(MAKERS["perceptron"](10))
    return {name: instructions(work) for name, work in cases()}


def compared(counts: Counts, baseline: Counts) -> list[Failure]:
    """The cases that cost too much: more than they did, or more than their length accounts for."""
    found = []
    for case, n in counts.items():
        if case in baseline and n > ALLOWED * baseline[case]:
            found.append(Failure(case, n, baseline[case], f"the baseline, {baseline[case]:,}"))
    for maker in MAKERS:
        short, long = counts.get(f"{maker} {SHORT}"), counts.get(f"{maker} {LONG}")
        if short is not None and long is not None and long > GROWTH * short:
            why = f"{GROWTH:g} times those of {SHORT} nodes"
            found.append(Failure(f"{maker} {LONG}", long, GROWTH * short, why))
    return found


def version() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def read(path: Path) -> dict[str, int]:
    """The baseline of this version of Python; empty where there is none."""
    kept: dict[str, dict[str, int]] = json.loads(path.read_text()) if path.exists() else {}
    return kept.get(version(), {})


def write(path: Path, counts: Counts) -> None:
    """Puts the counts in the place of those that the baseline has for this version of Python."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(kept | {version(): dict(counts)}, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="make the counts of today the baseline")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts are walked in an order that depends on it
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.gate", *sys.argv[1:]])
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    counts, baseline = count(), read(BASELINE)
    for case, n in counts.items():
        was = f"{n / baseline[case] - 1:+7.1%}" if case in baseline else "    new"
        print(f"{n:12,} {was}  {case}")
    if options.update:
        write(BASELINE, counts)
        return 0
    if not baseline:
        print(f"no baseline for Python {version()}: python -m benchmarks.gate --update")
        return 1
    failures = compared(counts, baseline)
    for failure in failures:
        print(f"slower: {failure}")
    print(f"{len(counts) - len({f.case for f in failures})} passed, {len({f.case for f in failures})} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
