"""Models of public packages, checked and compared with eager PyTorch: one row per model.

    python benchmarks/zoo.py [--only PATTERN] [--every 7] [-j 2] [--json build/zoo.json [--resume]]

Run by `make zoo`, which brings the packages. The file is written after each model, and `--resume` measures
those that it lacks. Columns: whether every way through the program was followed, nodes recorded (all paths
together), operators without a rule, the verdict, sampled assignments at which eager PyTorch does what the
accepted set says, seconds to trace, and seconds of the whole check. Samples stand on and around the boundary
of the accepted set, and batch 1 is among them.

The exit code is 1 where a sample disagrees, or a model could not be measured.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]  # `models` is what tests/ calls by that name

import torch  # noqa: E402
from tqdm import tqdm  # noqa: E402
from zoo import workers  # noqa: E402
from zoo.catalogue import CATALOGUE  # noqa: E402
from zoo.measure import Result, measure  # noqa: E402

HEAD = f"{'model':38} traced  nodes no-rule verdict  samples   trace   check"


def line(result: Result) -> str:
    """One row of the table, with a line below for each thing that is wrong."""
    if result.failure:
        return f"{result.name:38} failed: {result.failure[:200]}"
    agreed = f"{result.agreed}/{result.sampled}" if result.sampled else "-"
    told = (
        f"{result.name:38} {'yes' if result.traced else 'no':6} {result.nodes:6} {len(result.no_rule):7}"
        f" {result.verdict:8} {agreed:>7} {result.trace_s:7.2f} {result.check_s:7.2f}"
    )
    below = [f"disagrees at {text}" for text in result.disagreements[:3]]
    below += [f"no rule: {text[:180]}" for text in result.no_rule[:5]]
    below += [text[:240] for text in (*result.reasons, *result.approximate)[:3]]
    if not result.runs:
        below.append("eager PyTorch refuses every sample")
    return "\n".join([told, *(f"    {text}" for text in below)])


def totals(results: Sequence[Result]) -> dict[str, float]:
    """The last row."""
    measured = [r for r in results if not r.failure]
    verdicts = {v: sum(r.verdict == v for r in measured) for v in ("proved", "refined", "refuted", "unknown")}
    return {
        "models": len(results),
        "measured": len(measured),
        "run eagerly": sum(r.runs for r in measured),
        "traced": sum(r.traced for r in measured),
        "every node ruled": sum(not r.no_rule for r in measured),
        "exact": sum(r.exact for r in measured),
        **verdicts,
        "in full agreement": sum(r.sampled > 0 and r.agreed == r.sampled for r in measured),
        "samples": sum(r.sampled for r in measured),
        "samples that agree": sum(r.agreed for r in measured),
        "median seconds to trace": round(median(r.trace_s for r in measured), 3) if measured else 0.0,
        "median seconds to check": round(median(r.check_s for r in measured), 3) if measured else 0.0,
    }


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Of the packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", help="models whose name this regular expression finds")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there too")
    parser.add_argument("--resume", action="store_true", help="keep what FILE has, and add to it")
    parser.add_argument("--every", metavar="N", type=int, default=1, help="each N-th of the models")
    parser.add_argument("--samples", type=int, default=12, help="eager runs per model")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of one check")
    parser.add_argument(
        "--timeout", type=float, default=180.0, help="seconds for one model, eager runs included"
    )
    parser.add_argument("--memory", type=float, default=6.0, help="GiB for one model")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    if options.resume and not options.json:
        parser.error("--resume needs --json")
    kept = read(options.json) if options.resume and options.json.exists() else {}
    rows = [row for row in CATALOGUE if re.search(options.only or "", row.name)][:: options.every]
    rows = [row for row in rows if row.name not in kept]
    missing = workers.preload(rows)
    for package, why in missing.items():
        print(f"{package} is left out: {why[:160]}")
    rows = [row for row in rows if row.package not in missing]
    if not rows:
        print("no model is left to measure")
        return 1
    work = partial(measure, samples=options.samples, budget_s=options.budget)
    print(HEAD, flush=True)
    tqdm.monitor_interval = 0  # its thread would be forked along
    limits = workers.Limits(options.timeout, options.memory)
    with tqdm(total=len(rows), unit="model", disable=None) as bar:
        for result in workers.run(rows, options.jobs, limits, work):
            kept[result.name] = result
            tqdm.write(line(result))
            sys.stdout.flush()
            bar.update()
            if options.json:
                write(options.json, kept, missing)
    results = list(kept.values())
    print()
    for what, number in totals(results).items():
        print(f"{what:26} {number}")
    return int(any(r.failure or r.disagreements for r in results))


def read(file: Path) -> dict[str, Result]:
    """The results in a file, by name; without those that failed, which are measured again."""
    rows = (Result(**row) for row in json.loads(file.read_text())["rows"])
    return {row.name: row for row in rows if not row.failure}


def write(file: Path, found: Mapping[str, Result], missing: Mapping[str, str]) -> None:
    """All that is known, in the order of the catalogue."""
    results = [found[row.name] for row in CATALOGUE if row.name in found]
    told = {
        "torch": torch.__version__,
        "python": sys.version,
        "packages": versions(sorted({result.package for result in results})),
        "left_out": dict(missing),
        "catalogue": len(CATALOGUE),
        "totals": totals(results),
        "rows": [asdict(result) for result in results],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    raise SystemExit(main())
