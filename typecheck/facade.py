"""The report that users hold: its data, and the methods that render it.

Each method imports what it calls when it is called, so a report that is only read costs no import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .report.report import ReportData

if TYPE_CHECKING:
    import networkx as nx

    from .dim_specs.dynamic_shapes import DynamicShapes


@dataclass(frozen=True, slots=True)
class Report(ReportData):
    """The inputs for which a program runs, and all that was found on the way."""

    @property
    def dynamic_shapes(self) -> DynamicShapes | None:
        """The largest spec for `torch.export` within the accepted sizes; None where none are accepted. It is
        computed at each access, in some milliseconds to seconds.
        """
        from .dim_specs.dynamic_shapes import of_report

        return of_report(self)

    def to_json(self) -> dict[str, Any]:
        """The report as plain data for `json.dump`."""
        from .render.json import to_json

        return to_json(self)

    @staticmethod
    def from_json(data: Any) -> Report:
        """The inverse of `to_json`. Raises ValueError on anything else."""
        from .render.json import from_json

        return from_json(data, Report)

    def graph(self) -> nx.MultiDiGraph[Any]:
        """The calls as a graph of networkx, annotated with symbolic shapes, lines and findings."""
        from .render.graph import to_graph

        return to_graph(self)

    def to_text(
        self, *, width: int = 100, colour: bool = False, shapes: bool = False, verbose: bool = False
    ) -> str:
        """Returns the report for people. `shapes` adds a table of all intermediate shapes; `verbose` tells
        all of each finding, with the calls on the way to it.
        """
        from .render.text import to_text

        return to_text(self, width=width, colour=colour, shapes=shapes, verbose=verbose)

    def to_html(self) -> str:
        """The report as a page of its own that needs no network, with the graph of the program to explore."""
        from .render.html import to_html

        return to_html([self])

    def _repr_html_(self) -> str:
        """Returns the report for a notebook: without a script, and shortened if there are very many calls."""
        from .render.html import summary

        return summary(self)

    def __str__(self) -> str:
        return self.to_text()


Answered = Callable[[Report], None]
"""Is called with a report whose verdict is known, while repairs are still looked for."""
