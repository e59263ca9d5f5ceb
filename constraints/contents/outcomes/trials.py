"""Conditions on two results of the same data, which may have one outcome only: no x equals x + 1, and none is
above and below 0.

Their outcomes are tried on data: all elements of an input are one number. An outcome found is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, permutations, product
from typing import Any, Final, Protocol, TypeAlias

from msgspec import structs

from ...ir.language import Cases, Tensor, Value
from ...terms.dims import evaluate, symbols
from ...terms.formula import Formula
from ..laws.masks import COMPARISONS, CONNECTIVES
from .constancy import ProgramValues
from .fixed import cases, held, of_constant, outcomes

NUMBERS: Final = (1, 0, -1, 2, 0.5, -3, 7, 0.25)
"""The numbers with which all elements of an input are filled in trials."""
SIZES: Final = (2, 3)
"""The numbers that all symbols of sizes are tried to be."""
DEPTH: Final = 12
"""At most so many calls back relations and inputs are looked for."""
FOLLOWED: Final = 24
"""At most so many calls numbers are followed through."""
RELATIONS: Final = COMPARISONS.keys() | CONNECTIVES.keys() | {"sub", "rsub", "isclose", "logical_xor"}
"""Operators whose result may be the same for all data if both operands are made of the same data."""
PICKING: Final = frozenset("getitem select narrow unbind split chunk tensor_split diagonal".split())
"""Operators that return a part of their first operand."""
Datum: TypeAlias = int | tuple[Any, ...]
"""A value that data decide, by its reference, or the call that picks a part of one."""
BOTH: Final = frozenset((True, False))
Truth: TypeAlias = Callable[[Sequence[Cases]], Cases]
"""Returns the cases of a condition, from those of the values that it is about."""


class TriedValues(ProgramValues, Protocol):
    """The calls and values of a program, and what they are made of."""

    def sources(self, ref: int) -> Sequence[int]: ...

    def is_overwritten(self, ref: int) -> bool: ...

    def is_data(self, ref: int) -> bool: ...

    def is_certain(self, formula: Formula) -> bool: ...


def possible(program: TriedValues, values: Sequence[int], truth: Truth) -> frozenset[bool]:
    """Returns outcomes that a condition on values has for some data: both where no relation of two results of
    the same data is in it, else those that are found.
    """
    if not is_related(program, values):
        return BOTH
    found: set[bool] = set()
    data_of = [*dict.fromkeys(d for ref in values for d in _data(program, ref, FOLLOWED))]
    near = {n for ref in values for number in _compared(program, ref, DEPTH) for n in _around(number)}
    for size, data in product(SIZES, _trials(data_of, sorted(near.difference(NUMBERS)))):
        numbers = _Numbers(program, data, size)
        true, false = outcomes(truth([numbers.of(ref) for ref in values]))
        found |= {outcome for outcome, where in ((True, true), (False, false)) if where is True}
        if len(found) == 2:
            break
    return frozenset(found)


def is_related(program: TriedValues, values: Sequence[int]) -> bool:
    """Returns whether the values, or operands of a relation from which they are computed, share data."""
    pairs = [*pairwise(values), *(pair for ref in values for pair in _relations(program, ref, DEPTH))]
    return any(not _data(program, one).keys().isdisjoint(_data(program, other)) for one, other in pairs)


def _relations(program: TriedValues, ref: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yields the operands of relations from which a condition is computed, one operand at a time."""
    made = program.made(ref)
    if made is None or not depth:
        return
    sources = program.sources(ref)
    if made.op in RELATIONS:
        yield from pairwise(sources)
    if len(sources) == 1 or made.op in CONNECTIVES:
        for source in sources:
            yield from _relations(program, source, depth - 1)


def _data(program: TriedValues, ref: int, depth: int = DEPTH) -> dict[Datum, None]:
    """Returns the data that a value is made of: inputs, random numbers, and parts of such."""
    found: dict[Datum, None] = {}
    met, last = {ref}, [ref]
    for _ in range(depth):
        data = {back: datum for back in last if (datum := _datum(program, back)) is not None}
        found |= dict.fromkeys(data.values())
        sources = (source for back in last if back not in data for source in program.sources(back))
        last = [*dict.fromkeys(source for source in sources if source not in met)]
        met.update(last)
    return found


def _datum(program: TriedValues, ref: int) -> Datum | None:
    """Returns the value itself if it is data, and for a part of another value the call that picks it: two
    parts count as independent, unless they are picked alike.
    """
    if program.is_data(ref):
        return ref
    made = program.made(ref)
    if made is None or made.op not in PICKING:
        return None
    by_data = any(_data(program, back) for back in program.sources(ref))
    return (made.op, made.node.args, made.place) if by_data else None


def _compared(program: TriedValues, ref: int, depth: int) -> Iterator[float]:
    """Yields the numbers with which values are compared that a condition is computed from."""
    made = program.made(ref)
    if made is None or not depth:
        return
    if made.op in COMPARISONS:
        yield from (n for _, n in made.node.args if isinstance(n, int | float))
    for source in program.sources(ref):
        yield from _compared(program, source, depth - 1)


def _around(number: float) -> tuple[float, ...]:
    return number - 1, number, number + 1


def _trials(data: Sequence[Datum], more: Sequence[float]) -> Iterator[Mapping[Datum, float]]:
    """Yields numbers for inputs: one for all of them, of these or of `more`, then one for the first and
    another for the rest.
    """
    for number in (*NUMBERS, *more):
        yield dict.fromkeys(data, number)
    for first, rest in permutations(NUMBERS, 2) if len(data) > 1 else ():
        yield {**dict.fromkeys(data, rest), data[0]: first}


class _Numbers:
    """The numbers of a program's values, where each element of an input is the same."""

    def __init__(self, program: TriedValues, data: Mapping[Datum, float], size: int) -> None:
        self._program, self._data, self._size = program, data, size
        self._found: dict[int, Cases] = {}

    def of(self, ref: int, depth: int = FOLLOWED) -> Cases:
        """Returns the number that each element of a value is, in the form of a case."""
        if ref not in self._found:
            self._found[ref] = ()
            found = self._cases(ref, depth) if depth else ()
            certain = ((True, number) for where, number in found if self._program.is_certain(where))
            self._found[ref] = tuple(case for case in certain if case[1] is not None)[:1]
        return self._found[ref]

    def _value(self, ref: int) -> Value:
        """Returns a value at the size that is tried; None where it has none."""
        value = self._program.value(ref)
        if not isinstance(value, Tensor):
            return value
        names = {name for dim in value.shape for name in symbols(dim)}
        try:
            shape = tuple(evaluate(dim, dict.fromkeys(names, self._size)) for dim in value.shape)
        except ZeroDivisionError:
            return None
        return structs.replace(value, shape=shape)

    def _cases(self, ref: int, depth: int) -> Cases:
        value, made = self._value(ref), self._program.made(ref)
        if self._program.is_overwritten(ref) or not isinstance(value, Tensor):
            return ()
        datum = _datum(self._program, ref)
        if datum is not None and datum in self._data:
            return held([(True, self._data[datum])], value)
        known = of_constant(value)
        if known or made is None:
            return known
        values = {value: self._value(value) for value in (*self._program.sources(ref), *made.node.results)}
        return cases(replace(made, values=values), value, lambda source: self.of(source, depth - 1))
