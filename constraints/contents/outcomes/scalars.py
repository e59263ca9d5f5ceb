"""Numbers that a program of Python's computes from elements of tensors, and conditions on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ...ir.language import Between, Cases
from ...terms.formula import Formula, free_symbols, holds


@dataclass(frozen=True, slots=True)
class Computed:
    """How a number is computed from the only elements of tensors, given by reference, and from sizes."""

    refs: tuple[int, ...]
    compute: Callable[[Sequence[float], int], float]
    """Returns the number, from these elements and the number that all symbols of sizes are."""

    def then(self, function: Callable[[float], float]) -> Computed:
        """Returns the result of a function of the number."""
        return Computed(self.refs, lambda numbers, size: function(self.compute(numbers, size)))

    def beside(self, other: Computed, function: Callable[[float, float], float]) -> Computed:
        """Returns the result of a function of both numbers."""
        count = len(self.refs)

        def computed(numbers: Sequence[float], size: int) -> float:
            return function(self.compute(numbers[:count], size), other.compute(numbers[count:], size))

        return Computed((*self.refs, *other.refs), computed)


def holding(formula: Formula, names: Sequence[str], known: Mapping[str, Computed]) -> Computed:
    """Returns the truth of a formula on numbers with these names."""
    others = free_symbols(formula).difference(names)

    def computed(numbers: Sequence[float], size: int) -> float:
        values, given = dict.fromkeys(others, size), iter(numbers)
        for name in names:
            one = known[name]
            values[name] = math.trunc(one.compute([*islice(given, len(one.refs))], size))
        return holds(formula, values)

    return Computed(tuple([ref for name in names for ref in known[name].refs]), computed)


def of_elements(
    known: Sequence[Cases], size: int, compute: Callable[[Sequence[float], int], float]
) -> Cases:
    """Returns the case of a condition on the only elements of tensors. An element between two bounds may be
    any number between them; that in the middle is taken.
    """
    numbers = [cases[0][1] for cases in known if cases]
    if len(numbers) < len(known) or None in numbers:
        return ()
    chosen = [(n.low + n.high) / 2 if isinstance(n, Between) else n for n in numbers if n is not None]
    try:
        return ((True, int(bool(compute(chosen, size)))),)
    except (ArithmeticError, ValueError, TypeError):  # there the program raises an error of its own
        return ()
