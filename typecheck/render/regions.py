"""The calls of a program as nested regions: what a drawing folds and unfolds.

A region is a run of consecutive calls of one module. A module that is called in several places has a region
in each, so the regions of one level have an order in which all values flow forwards, whatever is folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import Final, TypeAlias

from ..report.report import Shape

MANY: Final = 48
"""More parts than these are put into regions of their own, of about as many parts each."""


@dataclass(frozen=True, slots=True)
class ProgramRegion:
    """Consecutive parts of the program."""

    label: str
    module: str
    parts: tuple[Part, ...]


Part: TypeAlias = "int | ProgramRegion"
"""A call, by its place in `Report.shapes`, or a region of calls."""


def regions(shapes: Sequence[Shape]) -> tuple[Part, ...]:
    """All calls in order, those of a module within its region."""
    paths = [tuple(shape.origin.module.split(".")) if shape.origin.module else () for shape in shapes]
    return _few(_parts(paths, range(len(paths)), 0), "")


def _parts(paths: Sequence[tuple[str, ...]], calls: Sequence[int], depth: int) -> list[Part]:
    """Runs of calls whose paths agree in the step at `depth`, each a region if it has several parts."""
    parts: list[Part] = []
    for step, group in groupby(calls, lambda call: paths[call][depth : depth + 1]):
        run = [*group]
        if not step:
            parts += run
            continue
        inner = _parts(paths, run, depth + 1)
        if len(inner) == 1:  # a module of one call, or one that only calls another, is not worth a box
            parts += inner
        else:
            module = ".".join(paths[run[0]][: depth + 1])
            parts.append(ProgramRegion(module, module, _few(inner, module)))
    return parts


def _few(parts: Sequence[Part], module: str) -> tuple[Part, ...]:
    """The parts, gathered into regions of similar size until there are not too many."""
    while len(parts) > MANY:
        size = ceil(len(parts) / ceil(len(parts) / MANY))
        parts = [_gathered(parts[at : at + size], module) for at in range(0, len(parts), size)]
    return tuple(parts)


def _gathered(parts: Sequence[Part], module: str) -> Part:
    calls = [*_calls(parts)]
    return (
        parts[0]
        if len(parts) == 1
        else ProgramRegion(f"calls {calls[0]} to {calls[-1]}", module, tuple(parts))
    )


def _calls(parts: Sequence[Part]) -> Iterator[int]:
    for part in parts:
        if isinstance(part, ProgramRegion):
            yield from _calls(part.parts)
        else:
            yield part
