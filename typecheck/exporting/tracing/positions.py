"""`range(n)` up to a size, and lists of its numbers, as they are while a model is traced.

Python would make a number of the size as soon as the range is made. Positions that are cut, joined and asked
for their ends and their length, as by models that count positions in lists, need no number of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import torch

Run: TypeAlias = tuple[Any, Any, Any]
"""Numbers at the same distance: the first, the distance, and how many there are, which may be sizes."""


class Positions(Sequence[Any]):
    """Runs of numbers, one after the other, as a `range` or a `list`. Whoever asks for all members makes
    numbers of the sizes among them.
    """

    def __init__(self, runs: Sequence[Run], kind: type) -> None:
        self.runs, self.kind = runs, kind

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Returns the class that `isinstance` sees."""
        return self.kind

    @property
    def count(self) -> Any:
        return sum(count for _, _, count in self.runs)

    def __len__(self) -> int:
        return int(self.count)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(map(_members, self.runs))

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return self._at(key)
        if key.step is not None and (type(key.step) is not int or key.step < 1):
            return [*self][key]
        runs, count = self.runs, self.count
        if key.stop is not None:
            left_out = -key.stop if key.stop < 0 else count - key.stop
            runs = _backwards(_without(left_out, _backwards(runs)))
        if key.start is not None:
            runs = _without(count + key.start if key.start < 0 else key.start, runs)
        return Positions(_every(key.step or 1, runs), self.kind)

    def _at(self, place: Any) -> Any:
        runs, place = (self.runs, place) if place >= 0 else (_backwards(self.runs), -1 - place)
        for first, _, count in _without(place, runs):
            if count > 0:
                return first
        raise IndexError(f"{self.kind.__name__} index out of range")

    def __add__(self, other: Any) -> Any:
        runs = _runs(other)
        return [*self, *other] if runs is None else Positions((*self.runs, *runs), list)

    def __radd__(self, other: Any) -> Any:
        runs = _runs(other)
        return [*other, *self] if runs is None else Positions((*runs, *self.runs), list)

    def __iadd__(self, other: Any) -> Any:
        raise TypeError("a list that is followed is not changed: others may hold it")

    def __eq__(self, other: object) -> bool:
        alike: Any = other
        return isinstance(other, self.kind) and [*self] == [*alike]

    __hash__ = None  # type: ignore[assignment]


def positions(start: Any, stop: Any, step: int) -> Positions:
    """`range(start, stop, step)` for a step of at least 1."""
    return Positions([(start, step, torch.sym_max((stop - start + step - 1) // step, 0))], range)  # type: ignore[no-untyped-call]


def _members(run: Run) -> Iterator[Any]:
    first, step, count = run
    return (first + place * step for place in range(int(count)))


def _runs(members: Any) -> Sequence[Run] | None:
    """Returns the members of a list as runs; None if some member is not a number."""
    if type(members) is Positions:
        return members.runs
    numbers = all(type(member) in (int, torch.SymInt) for member in members)
    return [(member, 0, 1) for member in members] if numbers else None


def _backwards(runs: Sequence[Run]) -> Sequence[Run]:
    return [(first + (count - 1) * step, -step, count) for first, step, count in reversed(runs)]


def _without(several: Any, runs: Sequence[Run]) -> Sequence[Run]:
    """All but so many at the beginning."""
    kept: list[Run] = []
    for first, step, count in runs:
        if several <= 0:
            kept.append((first, step, count))
        elif several < count:
            kept.append((first + several * step, step, count - several))
            several = 0
        else:
            several = several - count
    return kept


def _every(stride: int, runs: Sequence[Run]) -> Sequence[Run]:
    """Every so manyth of them, from the first on."""
    kept: list[Run] = []
    skipped: Any = 0
    for first, step, count in runs if stride > 1 else ():
        if skipped < count:
            kept.append((first + skipped * step, step * stride, (count - skipped + stride - 1) // stride))
        skipped = (skipped - count) % stride
    return kept if stride > 1 else runs
