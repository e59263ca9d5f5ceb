"""What rules have answered, by what was known when they were asked.

A rule's answer depends on its arguments, on the domain, and on what was learnt before it. Programs ask the
same again and again: a transformer in each of its layers, a recorder on each path up to where they part.
"""

from __future__ import annotations

from typing import Any

from ..ir.language import Refused, Slice, Tensor, Value
from ..ir.program import parts_of


class Known:
    """A state of knowledge: what has been learnt in what order. Those who learn the same share the state."""

    __slots__ = ("_after", "answered", "fitting", "repeated")

    def __init__(self) -> None:
        self.answered: dict[tuple[object, ...], Value] = {}
        """Results of calls of which nothing else was said."""
        self.repeated: dict[tuple[object, ...], Any] = {}
        """What a recorder makes of such a call when the program makes it again."""
        self.fitting: dict[tuple[object, ...], dict[int, Refused | None]] = {}
        """Ranks of rows, each with why the rule refuses it at once, if it does (lifting.py)."""
        self._after: dict[object, Known] = {}

    def after(self, learnt: object) -> Known:
        """The state after something more is learnt: a formula, or a domain."""
        found = self._after.get(learnt)
        if found is None:
            found = self._after[learnt] = Known()
        return found


def exactly(value: Value) -> object:
    """What tells an argument from every other: `1`, `1.0` and `True` are equal, and not the same."""
    kind = type(value)
    if kind is tuple or kind is Slice:
        return kind, *map(exactly, parts_of(value))
    return value if kind is Tensor or kind is int or kind is str else (kind, value)
