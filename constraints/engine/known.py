"""A cache of the answers of rules, by the facts that were known when they were given.

A rule's answer depends on its arguments, on the domain, and on the facts learnt before it. Programs repeat
the same calls: a transformer in each of its layers, a recorder on each path up to where they part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..ir.language import LOOSE, Context, Refused, Slice, Tensor, Value
from ..ir.program import parts_of

Rule = Callable[[Context, dict[str, Any]], Value]


@dataclass(frozen=True, slots=True)
class Made:
    """The call that made a tensor whose layout its rule could not determine: the rule, its arguments, and the
    index of the tensor among several results.
    """

    rule: Rule
    named: Mapping[str, Any]
    place: int | None


class Known:
    """A state of knowledge: the facts learnt, in order. Runs that learn the same facts share the state."""

    __slots__ = ("_after", "_earlier", "_in_cases", "answered", "fitting", "made", "repeated")

    def __init__(self, before: Known | None = None) -> None:
        self.answered: dict[tuple[object, ...], Value] = {}
        """Results of calls whose rules stated nothing else."""
        self.repeated: dict[tuple[object, ...], Any] = {}
        """The recorder's data for such a call, used when the program repeats it."""
        self.fitting: dict[tuple[object, ...], dict[int, Refused | None]] = {}
        """Ranks of rows, each with the refusal of the rule if it refuses the rank at once (lifting.py)."""
        self.made: dict[int, tuple[Tensor, Made]] = {} if before is None else before.made
        """Tensors of a layout that is not known for all sizes at once, by identity, with the calls that made
        them. All states share them, as an answer that is repeated is made by the call of another run.
        """
        self._in_cases: dict[object, dict[int, Tensor]] = {}
        self._earlier: Any = before and (before._in_cases, before._earlier)
        """Those of the state before, and of the ones before it, without the states: these refer to this one.
        """
        self._after: dict[object, Known] = {}

    def after(self, learnt: object) -> Known:
        """Returns the state after one more fact is learnt: a formula, or a domain."""
        found = self._after.get(learnt)
        if found is None:
            found = self._after[learnt] = Known(self)
        return found

    def origins(self, operands: Sequence[Value]) -> tuple[int, ...]:
        """Returns a key of the calls that made those of the operands whose layout is open: equal tensors with
        equal origins have the same layout in every case of sizes. It is empty where no call has made any.
        """
        if not (made := self.made) or made.keys().isdisjoint(map(id, operands)):
            return ()
        loose = [t for t in operands if type(t) is Tensor and t.layout in LOOSE]
        return tuple([id(made.get(id(t), _GIVEN)[1]) for t in loose]) if loose else ()

    def in_case(self, case: object) -> dict[int, Tensor]:
        """Returns the tensors whose layout is known in a case of sizes (unit_sizes.py), by the identity of
        the tensor that represents all sizes. What fewer facts imply remains true.
        """
        if case not in self._in_cases:
            earlier = self._earlier
            while earlier is not None and case not in earlier[0]:
                earlier = earlier[1]
            self._in_cases[case] = {} if earlier is None else earlier[0][case].copy()
        return self._in_cases[case]


_GIVEN: Final = None, None
"""The entry of a tensor that no call has made."""


def exactly(value: Value) -> object:
    """Returns a key that identifies an argument: `1`, `1.0` and `True` are equal, but not the same."""
    kind = type(value)
    if kind is tuple or kind is Slice:
        return kind, *map(exactly, parts_of(value))
    return value if kind is Tensor or kind is int or kind is str else (kind, value)
