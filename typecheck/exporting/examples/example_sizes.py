"""Example sizes that a trace does not mistake for something special.

A tracer makes a constant, or an equation, of what the example happens to have: a size of 1 or 0, two sizes
that are the same, a size on the bound of its range. The sizes inside the program are known as terms over
those of its inputs, so an example is chosen for which none of them is like that, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import prod
from random import Random
from typing import Final

from ....constraints.ir.language import Tensor, tensors
from ....constraints.ir.spec import Spec
from ....constraints.ir.system import Path
from ....constraints.terms.dims import Dim, Term, evaluate, symbols
from ....constraints.terms.formula import Formula, holds
from ....solver.facts.boxes import Box, Root

NUMBERS: Final = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 3, 6, 10, 12, 14, 15, 4, 2)
"""Values of a root, best first: primes, so that sums and products of different ones differ."""
MIXED: Final = (2, 3, 5, 7, 8, 11, 13, 16, 32, 48, 64, 96, 128)
"""Values of a size where none is known."""
STEPS: Final = (1, 2, 3, 4, 5, 7, 10, 13, 16)
"""A root is tried this far above its least value, and above twice and three times that value."""
ATTEMPTS: Final = 200
TERMS: Final = 400
"""ATTEMPTS examples are tried, and TERMS sizes inside the program are considered for each."""
LARGE: Final = 2_000_000
"""Elements of all inputs together that an example should not exceed."""


def example_sizes(
    box: Box, spec: Spec, paths: Iterable[Path], others: Iterable[Mapping[str, int]] = ()
) -> dict[str, int]:
    """A value for each symbol: within the box, or one of the others if that is less of an accident."""
    pools = {root.name: [*_pool(root)] for root in box.roots}
    inner = [*dict.fromkeys(dim for path in paths for dim in _sizes(path))]
    inputs = [d.type.shape for d in spec.inputs if isinstance(d.type, Tensor)]
    terms = _terms(inner, spec)
    constants = {dim for dim in inner if isinstance(dim, int)}
    best: tuple[tuple[int, int], dict[str, int]] | None = None
    for values in (*(box.at(roots) for roots in _assignments(pools)), *map(dict, others)):
        elements = sum(prod(evaluate(dim, values) for dim in shape) for shape in inputs)
        on_bounds = sum(values[name] in ends for name, ends in _ends(box).items())
        score = 8 * (elements > LARGE) + on_bounds + _special(terms, constants, values), elements
        if best is None or score < best[0]:
            best = score, values
    return best[1] if best is not None else box.at({})


def mixed_sizes(names: Sequence[str], asked: Sequence[Formula]) -> Iterator[dict[str, int]]:
    """Small numbers and powers of two, a repeatable random mixture of those at which all that is asked holds:
    where a formula is too hard for the solver to find any.
    """
    random = Random(0)
    for _ in range(ATTEMPTS if names else 0):
        sizes = {name: random.choice(MIXED) for name in names}
        with suppress(ZeroDivisionError):
            if all(holds(formula, sizes) for formula in asked):
                yield sizes


def inner_terms(spec: Spec, paths: Iterable[Path]) -> list[Term]:
    """Returns the sizes inside the program, and of its inputs, that are terms and not decided by data."""
    return _terms(dict.fromkeys(dim for path in paths for dim in _sizes(path)), spec)


def _terms(inner: Iterable[Dim], spec: Spec) -> list[Term]:
    names = {*spec.domain.symbols}
    return [dim for dim in inner if isinstance(dim, Term) and symbols(dim) <= names][:TERMS]


def _ends(box: Box) -> dict[str, tuple[int, ...]]:
    """The least and the greatest size of each symbol that varies."""
    lows = {r.name: r.low for r in box.roots}
    highs = {r.name: r.low if r.high is None else r.high for r in box.roots}
    return {
        name: (evaluate(size, lows), evaluate(size, highs))
        for name, size in box.sizes.items()
        if isinstance(size, Term)
    }


def _pool(root: Root) -> Iterator[int]:
    """Numbers within the range of a root, away from its ends as far as it is wide enough."""
    high = root.high if root.high is not None else max(3 * root.low + STEPS[-1], max(NUMBERS))
    above = (k * root.low + step for k in (1, 2, 3) for step in STEPS)
    wanted = (*NUMBERS, *above, high - 1, root.low, high)
    yield from dict.fromkeys(n for n in wanted if root.low <= n <= high)


def _sizes(path: Path) -> Iterator[Dim]:
    for value in path.values.values():
        for tensor in tensors(value):
            yield from tensor.shape


def _assignments(pools: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """Distinct values by rank first, then a repeatable random mixture."""
    names = [*pools]
    for shift in range(4):
        yield {n: pools[n][(i + shift) % len(pools[n])] for i, n in enumerate(names)}
    random = Random(0)
    for _ in range(ATTEMPTS if names else 0):
        yield {n: random.choice(pool) for n, pool in pools.items()}


def _special(terms: Sequence[Term], constants: set[int], values: Mapping[str, int]) -> int:
    """Returns a score of how special the sizes inside the program are: those of 0 and 1 count most, then
    those that are equal to one another or to a constant of the program.
    """
    try:
        found = [evaluate(term, values) for term in terms]
    except ZeroDivisionError:
        return 0
    small = sum(size <= 1 for size in found)
    return 6 * small + 2 * (len(found) - len({*found})) + sum(size in constants for size in found)
