"""Conditions on sizes that the data decide, where what is known of the other sizes settles them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    ShapeGuardPythonPrinter,
)
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from .broadcasting import Certain


@contextlib.contextmanager
def settled_by_other_sizes(certain: Certain) -> Iterator[None]:
    """While this lasts `n + u == 0`, for n nodes and as many edges as the data decide, is false where n is at
    least 1 for all sizes that the model takes. torch takes sizes of inputs for 0 where 0 is like other sizes.
    """
    evaluate = ShapeEnv.evaluate_expr

    def evaluated(self: ShapeEnv, condition: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return evaluate(self, condition, *args, **kwargs)
        except GuardOnDataDependentSymNode:
            answer = _settled(self, condition, certain)
            if answer is None:
                raise
            return answer

    ShapeEnv.evaluate_expr = evaluated  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        ShapeEnv.evaluate_expr = evaluate  # type: ignore[method-assign]


def _settled(env: ShapeEnv, condition: sympy.Basic, certain: Certain) -> sympy.Basic | None:
    """The truth of a condition for sizes of inputs of at least 1, if they are, by intervals."""
    ranges = {symbol: env.var_to_range[symbol] for symbol in condition.free_symbols}
    sources = env.var_to_sources
    printer = ShapeGuardPythonPrinter(sources, lambda s: s.name, sources)
    for symbol in ranges.keys() & sources.keys():
        if certain(f"{printer.doprint(symbol)} >= 1"):
            ranges[symbol] &= ValueRanges(1, ranges[symbol].upper)
    found = bound_sympy(condition, ranges)
    return found.lower if found.is_singleton() else None
