"""Numbers that a program of Python's computes from elements of tensors, and conditions on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Final, NamedTuple

from ...ir.language import Between, Cases
from ...terms.formula import Formula, free_symbols, holds

MOST: Final = 4
"""Conditions on at most so many elements are tried."""


class Sizes(NamedTuple):
    """Sizes that are tried: 1 for some symbols, and one number for all others."""

    common: int
    ones: frozenset[str] = frozenset()

    def of(self, names: Iterable[str]) -> dict[str, int]:
        """Returns the numbers that these symbols are."""
        return {name: 1 if name in self.ones else self.common for name in names}


@dataclass(frozen=True, slots=True)
class Computed:
    """How a number is computed from the only elements of tensors, given by reference, and from sizes."""

    refs: tuple[int, ...]
    compute: Callable[[Sequence[float], Sizes], float]
    """Returns the number, from these elements and the numbers that the symbols of sizes are."""

    def then(self, function: Callable[[float], float]) -> Computed:
        """Returns the result of a function of the number."""
        return Computed(self.refs, lambda numbers, sizes: function(self.compute(numbers, sizes)))

    def beside(self, other: Computed, function: Callable[[float, float], float]) -> Computed:
        """Returns the result of a function of both numbers."""
        count = len(self.refs)

        def computed(numbers: Sequence[float], sizes: Sizes) -> float:
            return function(self.compute(numbers[:count], sizes), other.compute(numbers[count:], sizes))

        return Computed((*self.refs, *other.refs), computed)


def holding(formula: Formula, names: Sequence[str], known: Mapping[str, Computed]) -> Computed:
    """Returns the truth of a formula on numbers with these names."""
    others = free_symbols(formula).difference(names)

    def computed(numbers: Sequence[float], sizes: Sizes) -> float:
        values, given = sizes.of(others), iter(numbers)
        for name in names:
            one = known[name]
            values[name] = math.trunc(one.compute([*islice(given, len(one.refs))], sizes))
        return holds(formula, values)

    return Computed(tuple([ref for name in names for ref in known[name].refs]), computed)


def of_elements(
    known: Sequence[Cases], sizes: Sizes, compute: Callable[[Sequence[float], Sizes], float]
) -> Cases:
    """Returns the case of a condition on the only elements of tensors, if all numbers tried for those
    between two bounds agree: the bounds, and the middle.
    """
    numbers = [cases[0][1] for cases in known if cases]
    if len(numbers) < len(known) or None in numbers or len(numbers) > MOST:
        return ()
    tried = [
        (n.low, (n.low + n.high) / 2, n.high) if isinstance(n, Between) else (n,)
        for n in numbers
        if n is not None
    ]
    try:
        found = {int(bool(compute(chosen, sizes))) for chosen in product(*tried)}
    except (ArithmeticError, ValueError, TypeError):  # there the program raises an error of its own
        return ()
    return ((True, found.pop()),) if len(found) == 1 else ()
