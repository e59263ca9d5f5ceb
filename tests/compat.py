"""Runs the fast tests on one release of torch and of Python, in an environment of their own, and writes what
came out into docs/compatibility.md.

    python tests/compat.py --torch 2.14 --python 3.13 [PYTEST ARGUMENT…]

Run by `make compat TORCH=2.14 PYTHON=3.13`. It needs no package. The environment is made in build/compat/
with the pins of pins.txt, that of torch aside, by the `python3.13` on the PATH. `--index URL` is the index
that torch is installed from, such as that of its wheels for the CPU; `--torch nightly` takes the newest there
is. `--again` runs only the tests that failed in the last run in this environment, such as after a mend, and
writes the row of both runs; it runs all tests if there was none. Arguments for pytest choose among the tests;
their outcome is printed and not written, and neither is that of a nightly. The exit code is that of pytest.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
ENVIRONMENTS: Final = ROOT / "build" / "compat"
RESULTS: Final = ROOT / "docs" / "data" / "compatibility.json"
PAGE: Final = ROOT / "docs" / "compatibility.md"
EXTRAS: Final = "dev,torch,client,service,postgresql,telemetry,zoo,bench"
NIGHTLY: Final = "nightly"
MOST_FAILURES: Final = 20
"""At most this many failed tests of a pair are named on the page."""

HEAD: Final = """# Which torch, which Python

Each row is one run of the fast tests, by `make compat TORCH=x.y PYTHON=3.z`. Tests that failed may have been
run again after a mend, by `COMPAT=--again`; the date is that of the last run. A pair without failures is
supported. Development and CI use the releases in [pins.txt](../pins.txt). A torch that is older than all of
these is refused with an error; with a newer torch or Python reports have a note,
[untested-torch](findings.md#untested-torch) or [untested-python](findings.md#untested-python).

What a check costs on the newest release stands in
[results-torch-2.15.md](../benchmarks/results-torch-2.15.md).

All runs are on Linux, with CPython as it is usually built. Not tested are free-threaded builds, systems
that cannot fork, where `anyshape watch` starts its processes by `spawn`, and programs that start others
by `spawn`.

| torch | Python | passed | failed | skipped | date |
| --- | --- | --- | --- | --- | --- |
"""


def made(torch: str, python: str, index: str | None = None) -> Path:
    """Returns the interpreter of the environment for the pair, made and filled if it is not there yet."""
    folder = ENVIRONMENTS / f"torch-{torch}-python-{python}"
    inside = folder / "bin" / "python"
    if (folder / "installed").exists():
        return inside
    base = shutil.which(f"python{python}")
    if base is None:
        sys.exit(f"compat: there is no python{python} on the PATH")
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([base, "-m", "venv", "--clear", folder], check=True)
    pins = folder / "pins.txt"
    pins.write_text("".join(pinned(torch)))
    install = [inside, "-m", "pip", "install", "-q"]
    if index is not None:  # which may have nothing but torch
        subprocess.run([*install, *wanted(torch), "--index-url", index], check=True)
    subprocess.run([*install, "-c", pins, "-e", f"{ROOT}[{EXTRAS}]"], check=True)
    (folder / "installed").touch()
    return inside


def wanted(torch: str) -> list[str]:
    """Returns the arguments of pip for this release of torch."""
    return ["--pre", "torch"] if torch == NIGHTLY else [f"torch=={torch}.*"]


def pinned(torch: str) -> Iterator[str]:
    """Yields the lines of pins.txt, with this release of torch; a nightly is not pinned."""
    for line in (ROOT / "pins.txt").read_text().splitlines(keepends=True):
        if not line.startswith("torch=="):
            yield line
        elif torch != NIGHTLY:
            yield f"torch=={torch}.*\n"


def outcome(report: Path) -> dict[str, Any]:
    """Returns the numbers of tests that passed, failed and were skipped, the names of those that failed, and
    how many were skipped for which reason, from pytest's report in XML.
    """
    counts: Counter[str] = Counter()
    failures: list[str] = []
    reasons: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        counts["passed" if not kinds else "skipped" if kinds == {"skipped"} else "failed"] += 1
        if kinds - {"skipped"}:
            failures.append(f"{case.get('classname', '').replace('.', '/')}::{case.get('name')}")
        reasons.update(child.get("message", "") for child in case if kinds == {child.tag} == {"skipped"})
    return {
        **{kind: counts[kind] for kind in ("passed", "failed", "skipped")},
        "failures": sorted(failures),
        "reasons": dict(sorted(reasons.items())),
        "date": datetime.date.today().isoformat(),
    }


def updated(row: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """Returns the outcome of a whole run, of which the failed tests were run again with this outcome; some
    may be gone.

    ValueError: these are more tests than had failed.
    """
    if sum(again[kind] for kind in ("passed", "failed", "skipped")) > row["failed"]:
        raise ValueError(f"{row['failed']} tests had failed, and others were run: run all of them")
    reasons = Counter(row["reasons"]) + Counter(again["reasons"])
    sums = {kind: row[kind] + again[kind] for kind in ("passed", "skipped")}
    return {**again, **sums, "reasons": dict(sorted(reasons.items()))}


def page(results: dict[str, dict[str, Any]]) -> str:
    """Returns the page of all results."""
    rows, told = [], []
    skipped: dict[str, list[str]] = {}
    for pair, found in sorted(results.items(), key=lambda item: [*map(int, re.findall(r"\d+", item[0]))]):
        torch, python = pair.split()
        counts = " | ".join(str(found[kind]) for kind in ("passed", "failed", "skipped"))
        rows.append(f"| {torch} | {python} | {counts} | {found['date']} |\n")
        for reason, count in found["reasons"].items():
            skipped.setdefault(reason, []).append(f"{count} with {torch} and {python}")
        if found["failures"]:
            named = "".join(f"- `{name}`\n" for name in found["failures"][:MOST_FAILURES])
            more = len(found["failures"]) - MOST_FAILURES
            told.append(f"\n## Failures with torch {torch} and Python {python}\n\n{named}")
            told += [f"- and {more} more\n"] if more > 0 else []
    if skipped:
        named = "".join(f"- {reason}: {', '.join(pairs)}\n" for reason, pairs in sorted(skipped.items()))
        told.append(f"\n## Why tests are skipped\n\nThe number of tests for each reason, by run.\n\n{named}")
    return HEAD + "".join((*rows, *told))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--torch", required=True, help="the release, as 2.14, or nightly")
    parser.add_argument("--python", required=True, help="the release, as 3.13")
    parser.add_argument("--index", metavar="URL", help="the index that torch is installed from")
    parser.add_argument("--again", action="store_true", help="run only the tests that failed in the last run")
    arguments, chosen = parser.parse_known_args()
    interpreter = made(arguments.torch, arguments.python, arguments.index)
    folder = interpreter.parent.parent
    report, cache = folder / "report.xml", folder / "cache"
    again = arguments.again and (cache / "v" / "cache" / "lastfailed").exists()
    tests = ["-q", "-n", "auto", "--dist", "worksteal", "-m", "not slow", f"--junitxml={report}"]
    tests += ["-o", f"cache_dir={cache}", *(["--last-failed"] if again else [])]
    path = os.pathsep.join((str(interpreter.parent), os.environ.get("PATH", "")))
    ran = subprocess.run(
        [interpreter, "-m", "pytest", *tests, *chosen], cwd=ROOT, env={**os.environ, "PATH": path}
    )
    if not chosen and report.exists() and arguments.torch != NIGHTLY:
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        pair, found = f"{arguments.torch} {arguments.python}", outcome(report)
        results[pair] = updated(results[pair], found) if again else found
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(page(results))
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
