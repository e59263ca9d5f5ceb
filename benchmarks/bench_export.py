"""Models exported at the first try, beside torch's own loop of named dims and suggested fixes.

    python benchmarks/bench_export.py [--only PATTERN] [--catalogue] [--seconds 400] [--fresh] [--older HOURS]
                                      [--table]

Each model of `tests/models` (with `--catalogue` those of the catalogue, as far as their packages are
installed) is exported both ways in a process of its own, and both programs are run next to the model at the
ends of their ranges. Results are kept in `build/bench_export/`, and what is there is not measured again
unless `--fresh` says so, or `--older HOURS` of what was measured before that: with it, a measurement of
everything goes on where it was stopped. `docs/data/exports.json` has the last result of each model, whoever
measured it, and `benchmarks/export.md` is written from that; `--table` does only that.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]  # `models` is what tests/ calls by that name

import torch  # noqa: E402
from exports import Outcome, Side, measure  # noqa: E402
from models.zoo import ZOO  # noqa: E402
from tqdm import tqdm  # noqa: E402
from zoo import workers  # noqa: E402
from zoo.catalogue import BY_HAND, CATALOGUE  # noqa: E402
from zoo.row import Row  # noqa: E402

from anyshape.typecheck import export  # noqa: E402

RESULTS = HERE.parent / "build" / "bench_export"
DATA = HERE.parent / "docs" / "data" / "exports.json"
PAGE = HERE / "export.md"
OWN = tuple(
    Row(e.name, "torch", e.build, e.inputs, e.probe, e.assume) for e in ZOO if e.verdict != "refuted"
)
GIB = 6.0

ABOUT = """\
# Exported at the first try

Written by `python benchmarks/bench_export.py`. Each model is exported by `anyshape.typecheck.export`, and by
torch itself: with a named `Dim` for each symbol, and then with the fixes that torch suggests
(`refine_dynamic_shapes_from_suggested_fixes`), until it exports or is stuck, in at most six attempts
and 100 s. Both get the same example, whose sizes anyshape has chosen. Models that torch cannot export at
fixed sizes, either, are listed at the end.

*At the boundary*: both programs are run next to the eager model at up to 32 sizes each, at the ends of what
either claims to take and just beyond, one size at a time and several at once. `exact` says that the program
takes what eager takes there and refuses what eager refuses; `2 tighter` that it refused two that eager runs,
`1 looser` that it took one that eager refuses. `3 on other ways`: that it refused three at which the model
takes another way than at the example, by a branch of Python's: a graph holds one way. `4 given up`: that it
refused four, and `Exported.accepts`, the formula of what the program takes, says so: a scan has at least one
step, for example, and all its steps the same shapes. torch says nothing of the kind, and its programs have
only the others.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", default="", help="of names, as a regular expression")
    parser.add_argument("--catalogue", action="store_true", help="the models of public packages, too")
    parser.add_argument("--seconds", type=float, default=400.0, help="that a model may take (400)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    parser.add_argument("--older", metavar="HOURS", type=float, help="measure again what is older than that")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = (*OWN, *(CATALOGUE if options.catalogue else BY_HAND))
    chosen = [row for row in rows if re.search(options.only, row.name)]
    if not options.table:
        before = time.time() - 3600 * options.older if options.older is not None else 0.0
        _measure([row for row in chosen if options.fresh or not _is_measured(row, before)], options.seconds)
    data = json.loads(DATA.read_text())
    kept = {one["name"]: _outcome(one) for one in data["models"]}
    rows = (*OWN, *CATALOGUE)
    kept |= {row.name: _outcome(json.loads(_file(row).read_text())) for row in rows if _file(row).exists()}
    outcomes = [kept[row.name] for row in rows if row.name in kept]
    measured = [o for o in outcomes if not o.failure and not o.unexportable]
    if all(o.spec_exports is not None for o in measured):
        data["plain"] = [sum(not o.spec_exports for o in measured), len(measured)]
    DATA.write_text(json.dumps({**data, "models": [*map(_brief, outcomes)]}, indent=0) + "\n")
    PAGE.write_text(page(outcomes, data["plain"], [row.name for row in rows if row.name not in kept]))
    print(f"{PAGE}: {len(outcomes)} models")


def _file(row: Row) -> Path:
    return RESULTS / f"{row.name}.json"


def _is_measured(row: Row, since: float) -> bool:
    return _file(row).exists() and _file(row).stat().st_mtime >= since


def _outcome(data: dict[str, Any]) -> Outcome:
    known = [side for side in ("ours", "torch") if side in data]
    sides = {side: Side(**{k: _tuple(v) for k, v in data[side].items()}) for side in known}
    return Outcome(**{**data, **sides})


def _brief(one: Outcome | Side) -> dict[str, Any]:
    """As plain data, without what is as it is by default."""
    found = {}
    for field in fields(one):
        value = getattr(one, field.name)
        if value != field.default:
            found[field.name] = _brief(value) if isinstance(value, Side) else _nameless(value)
    return found


def _nameless(value: Any) -> Any:
    """Texts without the folders in which files lie: those of packages and tests by their own names."""
    if isinstance(value, tuple):
        return tuple(map(_nameless, value))
    if not isinstance(value, str):
        return value
    text = re.sub(r"/\S*/(?=tests/)|/\S*/site-packages/", "", value)
    return re.sub(r"(?<=[(\s])/[A-Za-z.][\w.-]*(/[\w.-]*)*", "…", text)  # one that is cut off


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _measure(rows: Sequence[Row], seconds: float) -> None:
    torch.set_num_threads(1)  # a process that is forked does not inherit threads
    export(torch.nn.ReLU(), "input: [b, 3]")  # imports what every worker needs
    missing = workers.preload(rows)
    there = [row for row in rows if row.package not in missing]
    limits = workers.Limits(seconds, GIB)
    with tqdm(total=len(there)) as bar:
        for result in workers.run(there, 1, limits, measure):  # type: ignore[arg-type]
            outcome = result if isinstance(result, Outcome) else _failed(result)
            (RESULTS / f"{outcome.name}.json").write_text(json.dumps(asdict(outcome), indent=1))
            bar.set_description(outcome.name)
            bar.update()


def _failed(result: Any) -> Outcome:
    return Outcome(result.name, result.package, failure=result.failure)


# ---- the page


def page(outcomes: Sequence[Outcome], plain: Sequence[int], missing: Sequence[str] = ()) -> str:
    """The page, in Markdown, with the names of models that it misses. `plain`: of how many models torch took
    the spec alone, when all were measured last.
    """
    measured = [o for o in outcomes if not o.failure and not o.unexportable]
    lines = [ABOUT, *_summary(measured, plain), "", *_table(measured), "", *_details(measured), ""]
    lines += _list("Not exported by torch at fixed sizes, either", ((o, o.unexportable) for o in outcomes))
    lines += _list("Not measured", ((o, o.failure) for o in outcomes))
    text: str = _nameless("\n".join(lines))
    return text + (f"\nNobody has measured {', '.join(missing)} yet.\n" if missing else "")


def _summary(outcomes: Sequence[Outcome], plain: Sequence[int]) -> list[str]:
    count = len(outcomes)
    sides = {"anyshape": [o.ours for o in outcomes], "torch's loop": [o.torch for o in outcomes]}
    lines = [
        f"torch {torch.__version__}, {count} models.", "",
        "| | anyshape | torch's loop |", "| --- | --- | --- |",
    ]  # fmt: skip
    told = {
        "exported": lambda s: s.exported,
        "at the first try": lambda s: s.exported and s.attempts == 1,
        "exact at the boundary": lambda s: s.exact,
        "exact where the model takes the way that is traced": lambda s: s.on_its_way,
        "exact where the export says that the program runs": lambda s: s.as_told,
        "tighter than eager somewhere": lambda s: bool(s.tighter or s.told),
        "tighter than the export says": lambda s: bool(s.tighter),
        "looser than eager somewhere": lambda s: bool(s.looser),
    }
    for what, holds in told.items():
        found = [sum(map(holds, side)) for side in sides.values()]
        cells = [f"{n} ({1000 * n // max(count, 1) / 10:g} %)" for n in found]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    told_of_plain = "with `report.dynamic_shapes`, and nothing else of ours but the example"
    return [*lines, "", f"Plain `torch.export.export` {told_of_plain}: {plain[0]} of {plain[1]}."]


def _table(outcomes: Iterable[Outcome]) -> list[str]:
    lines = [
        "| model | accepted sizes | attempts | at the boundary | torch: attempts | ranges | boundary |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for o in outcomes:
        ours = str(o.ours.attempts) if o.ours.exported else "none"
        theirs = str(o.torch.attempts) if o.torch.exported else f"{o.torch.attempts}, stuck"
        cells = [o.name, _code(o.accepts), ours, _boundary(o.ours)]
        cells += [theirs, _code(o.torch.takes), _boundary(o.torch)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _boundary(side: Side) -> str:
    if not side.exported:
        return "–"
    counts = {
        "tighter": len(side.tighter), "looser": len(side.looser), "given up": len(side.told),
        "on other ways": len(side.elsewhere),
    }  # fmt: skip
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n) or "exact"


def _code(text: str) -> str:
    short = text if len(text) <= 90 else text[:88] + " …"
    return f"`{short.replace('|', '∣')}`" if text else ""


def _details(outcomes: Iterable[Outcome]) -> list[str]:
    lines = ["## Where a program of ours is not what the model is", ""]
    for o in outcomes:
        if not o.ours.exported:
            lines.append(f"- {o.name}: {o.ours.error}")
        elif not o.ours.exact:
            why = "; ".join(o.ours.given_up) or "nothing was given up"
            lines.append(f"- {o.name} takes {_code(o.ours.takes)}: {why}")
    return lines


def _list(title: str, told: Iterable[tuple[Outcome, str]]) -> list[str]:
    items = [f"- {outcome.name}: {text}" for outcome, text in told if text]
    return [f"## {title}", "", *items, ""] if items else []


if __name__ == "__main__":
    main()
