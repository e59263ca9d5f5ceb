"""A cache of the answers of rules, by the facts that were known when they were given.

A rule's answer depends on its arguments, on the domain, and on the facts learnt before it. Programs repeat
the same calls: a transformer in each of its layers, a recorder on each path up to where they part.
"""

from __future__ import annotations

from typing import Any

from ..ir.language import Refused, Slice, Tensor, Value
from ..ir.program import parts_of


class Known:
    """A state of knowledge: the facts learnt, in order. Runs that learn the same facts share the state."""

    __slots__ = ("_after", "answered", "fitting", "repeated")

    def __init__(self) -> None:
        self.answered: dict[tuple[object, ...], Value] = {}
        """Results of calls whose rules stated nothing else."""
        self.repeated: dict[tuple[object, ...], Any] = {}
        """The recorder's data for such a call, used when the program repeats it."""
        self.fitting: dict[tuple[object, ...], dict[int, Refused | None]] = {}
        """Ranks of rows, each with the refusal of the rule if it refuses the rank at once (lifting.py)."""
        self._after: dict[object, Known] = {}

    def after(self, learnt: object) -> Known:
        """Returns the state after one more fact is learnt: a formula, or a domain."""
        found = self._after.get(learnt)
        if found is None:
            found = self._after[learnt] = Known()
        return found


def exactly(value: Value) -> object:
    """Returns a key that identifies an argument: `1`, `1.0` and `True` are equal, but not the same."""
    kind = type(value)
    if kind is tuple or kind is Slice:
        return kind, *map(exactly, parts_of(value))
    return value if kind is Tensor or kind is int or kind is str else (kind, value)
