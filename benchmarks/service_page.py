"""Writes the measurements of benchmarks/service.py, in words, between two marks of docs/service.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parent.parent / "docs/service.md"
BEGIN: Final = "<!-- written by python -m benchmarks.service --write -->\n"
END: Final = "<!-- until here -->\n"
WIDTH: Final = 120


def write(found: Mapping[str, Any]) -> None:
    """Puts the figures into the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{figures(found)}{END}{rest.partition(END)[2]}")


def figures(found: Mapping[str, Any]) -> str:
    """All parts as Markdown."""
    items = (
        _clients(found["clients"]),
        f"**A soak** on SQLite: {_soak(found['soak'])}",
        f"**A soak** on PostgreSQL: {_soak(found['postgres'])}",
        _disk(found["disk"]),
    )
    listed = "".join(_paragraph(f"* {item}", indent="  ") for item in items)
    meaning = "A figure is the time from the upload to the report in hand: three requests.\n"
    return f"{_paragraph(_where(found.values()))}\n{_table(found['latency'])}\n{meaning}\n{listed}"


def _paragraph(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False) + "\n"


def _where(parts: Iterable[Mapping[str, Any]]) -> str:
    parts = [*parts]
    days = " and ".join(sorted({part["day"] for part in parts}))
    loads = [part["load"] for part in parts]
    return (
        f"On {days}, on {parts[0]['cpus']} processors with a load of {min(loads):.1f} to {max(loads):.1f}"
        " before each part, with two workers, the clients on the same machine, and `kernels` off:"
    )


def _table(latency: Mapping[str, Any]) -> str:
    large = f"a transformer of 24 layers, {latency['large_kb']} kB"
    rows = {
        "answered before, 4 clients": "cached",
        "new question, small program (a BERT of 2 layers), 4 clients": "small",
        f"new question, large program ({large}), 2 clients": "large",
    }
    lines = ["| | per second | p50 | p95 | p99 |", "| --- | --- | --- | --- | --- |"]
    for name, key in rows.items():
        one = latency[key]
        times = " | ".join(f"{one[f'p{n}_ms']:.0f} ms" for n in (50, 95, 99))
        lines.append(f"| {name} | {one['per_second']:.1f} | {times} |")
    return "\n".join(lines) + "\n"


def _clients(one: Mapping[str, Any]) -> str:
    refused = one["refused_for_a_while"]
    told = f"{refused} times one was told to come back later, and did" if refused else "none was refused"
    return (
        f"**{one['clients']:,} clients at once**, each with a connection of its own, on 100 questions: all"
        f" submitted, followed the events and had their reports within {one['seconds']:.0f} s; {told}; the"
        f" service (without its workers) took {one['memory_mb']:.0f} MB."
    )


def _soak(one: Mapping[str, Any]) -> str:
    ended = one.get("services killed", 0) + one.get("services stopped", 0)
    dropped = one.get("times all connections to the database were dropped", 0)
    faults = [
        f"{one.get('workers killed', 0)} workers killed",
        f"a service killed or stopped and started again {ended} times",
        *([f"all connections to the database dropped {dropped} times"] if dropped else ()),
        f"{one['damaged uploads']} damaged uploads",
        f"{one.get('connections that broke', 0)} connections broken thereby",
    ]
    return (
        f"{one['minutes']:g} minutes with six clients that never stop: {one['accepted']} checks accepted,"
        f" {', '.join(faults)}. Lost: {one['lost']}. Wrong: {one['wrong']}, by comparison with `check`."
        f" {one.get('given up after two kills', 0)} ended as `failed` because of two killed workers."
        f" The service took {one['memory_mb_early']:.0f} MB early and {one['memory_mb_late']:.0f} MB late."
    )


def _disk(one: Mapping[str, Any]) -> str:
    refused = {int(code): count for code, count in one["codes"].items()}.get(503, 0)
    return (
        f"**A full disk**: {one['accepted']} checks were accepted until there was no room, {refused} refused"
        f" with 503; when there was room again, {one['answered in the end']} were answered."
    )
