"""docs/coverage.md: a page that is made of figures, and the figures of a whole run of the oracle.

The figures of a run stand in docs/data/oracle.json, those of runs on other releases of torch in
docs/data/oracle-releases.json, and those of the zoo of models, where there are any, in docs/data/zoo.json.
`python tests/oracle/coverage.py` writes the page anew from them and from today's rules,
`python tests/oracle/coverage.py build/zoo.json` from a new run of the zoo.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from oracle import core
from oracle.exemptions import EXEMPTIONS, LEFT_OUT, Exemption
from oracle.pool import Row, totals
from oracle.reasons import UNCHECKED, UNSAFE
from oracle.samples import CONTROL, CORE, PRIMS
from oracle.unruled import HIGHER_ORDER, REASONS

from anyshape.constraints import rules
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.rules import default_rules

DOCS = Path(__file__).parents[2] / "docs"
PAGE, FIGURES, ZOO = DOCS / "coverage.md", DOCS / "data" / "oracle.json", DOCS / "data" / "zoo.json"
RELEASES, PINS = DOCS / "data" / "oracle-releases.json", DOCS.parent / "pins.txt"


@cache
def families() -> dict[str, Rules]:
    """Returns the tables of rules by the file that contains them."""
    found = {}
    for module in iter_modules(rules.__path__):
        tables = vars(import_module(f"{rules.__name__}.{module.name}"))
        for name in ("RULES", "SIZE_RULES"):
            if name in tables:
                found[module.name] = tables[name]
    return found


def family_of(op: str) -> str:
    """Returns the name of the file that contains an operator's rule, or an empty text."""
    return next((name for name, table in families().items() if op in table or op[:-1] in table), "")


# ---- figures


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """A whole run in numbers: one line per entry, one per core operator: is it exact in some entry, or null
    where none calls it.
    """
    held: dict[str, bool] = {}
    for row in rows:
        for overload, remarked in row.overloads.items():
            held[overload] = held.get(overload, False) or not remarked
    return {
        "torch": torch.__version__.partition("+")[0],
        "entries": {row.entry: _figures_of(row) for row in sorted(rows, key=lambda row: row.entry)},
        "overloads": len(held),
        "core": {name: held.get(name) for name in core.overloads()},
    }


def _figures_of(row: Row) -> dict[str, Any]:
    kinds = Counter(remark.kind for remark in row.remarks)
    return {**totals([row]), "remarks": dict(sorted(kinds.items())), "forms": dict(sorted(row.forms.items()))}


def beside(made: dict[str, Any], pinned: dict[str, Any]) -> dict[str, Any]:
    """The figures of a run on another release than the pinned one: the totals, the entries that only one of
    both has, and those whose remarks are of other kinds, with the kinds of the pinned release first.
    """
    here, there = made["entries"], pinned["entries"]
    kinds = {e: [sorted(run[e]["remarks"]) for run in (there, here)] for e in here if e in there}
    return {
        "entries": len(here),
        "exact": sum(1 for row in here.values() if row["points"] and not row["remarks"]),
        **{name: sum(row[name] for row in here.values()) for name in ("samples", "points", "agreed")},
        "only here": [entry for entry in here if entry not in there],
        "only there": [entry for entry in there if entry not in here],
        "differ": {entry: both for entry, both in kinds.items() if both[0] != both[1]},
    }


def text_of(made: dict[str, Any]) -> str:
    """JSON with a line for each entry, so that a change of one is a change of one line."""

    def block(rows: dict[str, Any]) -> str:
        return ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items())

    parts = [f'"torch": {json.dumps(made["torch"])}', f'"overloads": {made["overloads"]}']
    parts += [f'"{name}": {{\n{block(made[name])}\n }}' for name in ("entries", "core")]
    return "{\n " + ",\n ".join(parts) + "\n}\n"


# ---- the page


def page(
    made: dict[str, Any], zoo: dict[str, Any] | None = None, releases: dict[str, Any] | None = None
) -> str:
    """The page as text. Nothing but the figures, the rules and the tables of exemptions goes into it."""
    parts = [_head(made), _families(), _left_out(), _unruled(), _exempt(), _core(made)]
    parts += [_releases(made, releases)] if releases else []
    return "\n".join(part for part in (*parts, _zoo(zoo) if zoo else "") if part)


KINDS = {
    "operator": "operators of `op_db` and the databases beside it",
    "module": "modules of `module_db`",
    "control": "higher-order operators that programs call (of `hop_db`)",
}


def kind_of(entry: str) -> str:
    if entry in (CORE, PRIMS):
        return entry
    return "module" if entry.startswith("nn.") else "control" if entry.startswith(CONTROL) else "operator"


def _head(made: dict[str, Any]) -> str:
    found = made["entries"]
    total: Counter[str] = Counter()
    forms: Counter[str] = Counter()
    for row in found.values():
        total.update({key: value for key, value in row.items() if isinstance(value, int)})
        forms.update(row["forms"])
    judged = [name for name, row in found.items() if row["points"]]
    exact = [name for name in judged if not found[name]["remarks"]]
    rows = []
    for kind, told in KINDS.items():
        of_kind = [name for name in {**found, **LEFT_OUT} if kind_of(name) == kind]
        counts = (len(of_kind), len({*of_kind} & {*judged}), len({*of_kind} & {*exact}))
        rows.append(f"| {told} | " + " | ".join(f"{n:,}" for n in counts) + " |")
    known = [exact for exact in made["core"].values() if exact is not None]
    rows.append(
        f"| core ATen operators (`torch.Tag.core`) | {len(made['core'])} | {len(known)} | {sum(known)} |"
    )
    return f"""# What is covered

Every rule is compared with torch itself. torch's own databases of operators and modules provide the samples;
each is recorded like a program, and the accepted set and the results are compared with eager runs of
torch {made["torch"]} on the CPU, at the sample's sizes, next to them, and at sizes 0 and 1 (for lists of
tensors, at some of these). `make coverage` writes this page. How results lie in memory, and whose memory it
is, is compared for operands in twelve layouts, alike and mixed, also at sizes of 0 and 1 (`make oracle`).

| | total | compared with torch | exact in every point |
| --- | --- | --- | --- |
{chr(10).join(rows)}

| in one run of the oracle | |
| --- | --- |
| samples | {total["samples"]:,} |
| points | {total["points"]:,} |
| … that torch accepts | {total["accepted"]:,} |
| … that torch refuses | {total["refused"]:,} |
| … where torch refuses the sample's data, not its sizes | {total["unjudged"]:,} |
| points in agreement | {total["agreed"]:,} |
| ATen overloads called by themselves | {made["overloads"]:,} |

Samples by form: {", ".join(f"{n:,} {form}" for form, n in sorted(forms.items()))}.
"""


def _families() -> str:
    rows = "\n".join(f"| {name} | {len(table)} |" for name, table in families().items())
    return f"""## Rules

{len(default_rules)} operators have a rule. A family is a file of `constraints/rules/`.

| family | operators |
| --- | --- |
{rows}
"""


def _left_out() -> str:
    rows = "\n".join(f"| `{name}` | {reason} |" for name, reason in LEFT_OUT.items())
    return f"""## Left out

{len(LEFT_OUT)} of torch's entries have no sample that could be compared.

| entry | reason |
| --- | --- |
{rows}
"""


def _unruled() -> str:
    def row(reason: str, names: str) -> str:
        return f"| {reason} | {' '.join(f'`{name}`' for name in names.split())} |"

    return f"""## Without a rule

The operators of ATen, the functions of torch's namespaces and the methods of tensors have rules, are answered
as questions about a tensor, or are recorded call by call, except for these.

| kind | operators |
| --- | --- |
{chr(10).join(row(*pair) for pair in REASONS.items())}

Higher-order operators without a rule:

| operator | reason |
| --- | --- |
{chr(10).join(f"| `{name}` | {reason} |" for name, reason in HIGHER_ORDER.items())}
"""


def _exempt() -> str:
    def row(exemption: Exemption) -> str:
        return f"| `{exemption.entry}` | {exemption.kind} | {exemption.reason} |"

    reasons = {**{name: reason for name, (_, reason) in UNSAFE.items()}, **UNCHECKED}
    unsafe = "\n".join(f"| `{name}` | {reason} |" for name, reason in reasons.items())
    return f"""## Known to differ

Each row names the difference and its reason. `accepts`: the rule accepts sizes that torch refuses; `refuses`:
the reverse; `shape`, `dtype`, `strides`: the result differs in these; `approximate`, `no-rule`, `gave-up`,
`incomplete`: the result is not exact, and a report says so.

| entry | difference | reason |
| --- | --- | --- |
{chr(10).join(map(row, EXEMPTIONS))}

In these calls torch reads memory that does not belong to the arguments, or ends the process, so that nothing
can be compared:

| operator | case |
| --- | --- |
{unsafe}
"""


def _core(made: dict[str, Any]) -> str:
    inexact = [f"`{name}`" for name, exact in made["core"].items() if exact is False]
    missing = [f"`{name}`" for name, exact in made["core"].items() if exact is None]
    told = {
        "Core ATen operators that a report calls `approximate`, for the reasons above": inexact,
        "Core ATen operators that no entry calls": missing,
    }
    return "\n".join(f"{what}: {', '.join(names)}.\n" for what, names in told.items() if names)


def _releases(made: dict[str, Any], releases: dict[str, Any]) -> str:
    def row(release: str, found: dict[str, Any]) -> str:
        counts = (found[name] for name in ("entries", "exact", "samples", "points", "agreed"))
        return f"| {release} | " + " | ".join(f"{n:,}" for n in counts) + " |"

    def told(kinds: list[str]) -> str:
        return ", ".join(kinds) or "exact"

    def names(entries: Iterable[str]) -> str:
        return " ".join(f"`{entry}`" for entry in entries)

    rows = [row(made["torch"], beside(made, made)), *(row(*pair) for pair in sorted(releases.items()))]
    differ = [
        f"| {release} | `{entry}` | {told(there)} | {told(here)} |"
        for release, found in sorted(releases.items())
        for entry, (there, here) in found["differ"].items()
    ]
    only = [
        f"* Entries that torch {one} has and torch {other} has not: {names(found[key])}.\n"
        for release, found in sorted(releases.items())
        for key, one, other in (("only here", release, made["torch"]), ("only there", made["torch"], release))
        if found[key]
    ]
    return f"""## Other releases of torch

The same comparison with the oldest and the newest release that are supported.

| torch | entries | exact in every point | samples | points | points in agreement |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}

The entries that differ in what is not exact:

| torch | entry | with {made["torch"]} | with this release |
| --- | --- | --- | --- |
{chr(10).join(differ)}

{"".join(only)}"""


def zoo_figures(run: dict[str, Any]) -> dict[str, Any]:
    """A run of benchmarks/zoo.py in short: of its rows those that are not exact, judged wrongly, or fail."""
    reasons: dict[str, dict[str, str]] = {}
    for row in run["rows"]:
        told = (*row["approximate"], *row["reasons"], *row["no_rule"]) if not row["exact"] else ()
        if row["failure"] or row["disagreements"] or (not row["exact"] and not told):
            told = (row["failure"] or "; ".join(row["disagreements"]) or row["verdict"], *told)
        for text in map(reason, told):
            reasons.setdefault(text, {})[row["name"]] = row["verdict"]
    kept = ("torch", "packages", "left_out", "catalogue", "totals")
    return {**{key: run[key] for key in kept}, "inexact": dict(sorted(reasons.items()))}


ABOUT_ONE_LINE = (
    (r" \[\S*:\d+ .*\]$", ""),
    (r"strides let .* be viewed as .* is not known", "strides let a tensor be viewed is not known"),
    (r"rounding of .* is not followed: it is taken to be .*?:", "rounding of a fraction is not followed:"),
    (r": (where .*, |some )sizes may be", ": sizes may be"),
    (r"^\S+ is given some of the indices .*?:", "indices are some of a range, perhaps not all of it:"),
    (r"^\S+ is given indices from .*, which floats are rounded to", "indices are rounded to from floats"),
    (r"^\S+ is given indices that", "indices are given that"),
    (r"only \d+ of at least \d+ paths were followed", "some paths were not followed"),
)
"""What of a message is about one line of one model, and what stands in its place."""


def reason(message: str) -> str:
    """A message without the line and the sizes that it is about: the same reason has one text."""
    for pattern, text in ABOUT_ONE_LINE:
        message = re.sub(pattern, text, message, flags=re.DOTALL)
    return message


def _zoo(zoo: dict[str, Any]) -> str:
    rows = "\n".join(f"| {what} | {number:,} |" for what, number in zoo["totals"].items())
    packages = ", ".join(f"{name} {version}" for name, version in zoo["packages"].items())
    out = "".join(f"\n* {name}: {why}" for name, why in zoo["left_out"].items())
    left = {name: None for models in zoo["inexact"].values() for name in models}
    inexact = "\n".join(
        f"| {text} | {', '.join(f'`{name}` ({verdict})' for name, verdict in models.items())} |"
        for text, models in sorted(zoo["inexact"].items(), key=lambda one: (-len(one[1]), one[0]))
    )
    measured, exact = zoo["totals"]["measured"], zoo["totals"]["exact"]
    return f"""## The zoo

Models of public packages, checked and compared with eager runs by `benchmarks/zoo.py`: {packages}.
{zoo["totals"]["models"]} of the {zoo["catalogue"]} rows of its catalogue were run;
{exact / measured:.1%} of the accepted sets are exact.

| | |
| --- | --- |
{rows}
{out}

{len(left)} models are not exact, decided wrongly or not measured. Each is listed with its verdict and all
reasons that its report gives. A model is not `proved` if sizes may be accepted that torch refuses.

| reason | models |
| --- | --- |
{inexact}
"""


def read(path: Path) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    return found


def write(rows: Iterable[Row]) -> None:
    """The figures of a whole run, and the page."""
    made = figures(list(rows))
    if f"torch=={made['torch']}" in PINS.read_text().splitlines():
        FIGURES.write_text(text_of(made))
    else:
        releases = {**(read(RELEASES) or {}), made["torch"]: beside(made, read(FIGURES) or made)}
        RELEASES.write_text(json.dumps(dict(sorted(releases.items())), indent=1) + "\n")
    write_page()


def write_page() -> None:
    made = read(FIGURES)
    if made is None:
        sys.exit(f"there are no figures in {FIGURES}: `make coverage` makes them")
    PAGE.write_text(page(made, read(ZOO), read(RELEASES)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ZOO.write_text(json.dumps(zoo_figures(json.loads(Path(sys.argv[1]).read_text())), indent=1) + "\n")
    write_page()
