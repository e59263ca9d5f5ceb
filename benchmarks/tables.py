"""Tables of results: as text, as JSON, and as the page that shows them all."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .timing import Spread

PAGE = """\
# Benchmarks

Written by `make bench`. Times are processor time, medians of interleaved repetitions on a shared machine
with two cores: they differ from machine to machine, ratios much less. A ratio is the median over the rounds,
with the least and the greatest in parentheses.
"""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with the same columns, or with fewer; a column is a ratio where its values are `Spread`s."""

    name: str
    about: str
    rows: Sequence[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        rows = [{k: asdict(v) if isinstance(v, Spread) else v for k, v in r.items()} for r in self.rows]
        return {
            "name": self.name,
            "about": self.about,
            "rows": rows,
            "python": platform.python_version(),
            "torch": version("torch"),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Table:
        """The inverse of `to_json`, the versions aside."""
        rows = [{k: Spread(**v) if isinstance(v, dict) else v for k, v in r.items()} for r in data["rows"]]
        return Table(data["name"], data["about"], rows)

    def text(self) -> str:
        """In Markdown, which a terminal shows as well."""
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        cells = [[str(row.get(column, "")) for column in columns] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        rule = ["-" * width for width in widths]
        lines = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
            for line in (columns, rule, *cells)
        ]
        return "\n".join([f"## {self.about}", "", *lines, ""])


def results(folder: Path, names: Sequence[str], page: Path) -> None:
    """Writes the page from the tables that the folder has."""
    found = [json.loads(path.read_text()) for name in names if (path := folder / f"{name}.json").exists()]
    versions = {f"Python {data['python']}, torch {data['torch']}." for data in found}
    tables = [Table.from_json(data).text() for data in found]
    page.write_text("\n".join([PAGE, " ".join(sorted(versions)), "", *tables]))
