"""Conditions on sizes that the data decide, where what is known of the other sizes settles them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ShapeGuardPythonPrinter

from ....tracer.host.patches import Patch
from ....tracer.host.symbolic_shapes import EVALUATED, ValueRanges, range_of
from .broadcasting import Certain


@contextlib.contextmanager
def settled_by_other_sizes(certain: Certain) -> Iterator[None]:
    """While this lasts `n + u == 0`, for n nodes and as many edges as the data decide, is false where n is at
    least 1 for all sizes that the model takes. torch takes sizes of inputs for 0 where 0 is like other sizes.
    """


    def make(evaluate: Callable[..., Any]) -> Callable[..., Any]:
        def evaluated(self: ShapeEnv, condition: Any, *, unbacked_only: bool = False, **options: Any) -> Any:
            found = evaluate(self, condition, unbacked_only=unbacked_only, **options)
            if unbacked_only and found is not None and found.free_symbols - self.backed_var_to_val.keys():
                answer = _settled(self, condition, certain)
                return found if answer is None else answer
            return found

        return evaluated

    # Inside of `evaluate_expr`, which looks through the frames above it for an assert of the user's.
    with Patch(*EVALUATED, make, "other sizes settle conditions").in_force():
        yield


def _settled(env: ShapeEnv, condition: sympy.Basic, certain: Certain) -> sympy.Basic | None:
    """The truth of a condition for sizes of inputs of at least 1, if they are, by intervals."""
    ranges = {symbol: env.var_to_range[symbol] for symbol in condition.free_symbols}
    sources = env.var_to_sources
    printer = ShapeGuardPythonPrinter(sources, lambda s: s.name, sources)
    for symbol in ranges.keys() & sources.keys():
        if certain(f"{printer.doprint(symbol)} >= 1"):
            ranges[symbol] &= ValueRanges(1, ranges[symbol].upper)
    found = range_of(condition, ranges)
    return found.lower if found.is_singleton() else None
