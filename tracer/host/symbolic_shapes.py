"""Names of torch's sizes in sympy, and of the ShapeEnv, which knows conditions on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sympy
from torch._guards import ChainedSource, GuardSource
from torch.fx.experimental.symbolic_shapes import DimConstraints, ShapeEnv
from torch.utils._sympy.functions import FloorDiv as FloorDiv
from torch.utils._sympy.functions import Max as Max
from torch.utils._sympy.functions import Min as Min
from torch.utils._sympy.functions import Mod as Mod
from torch.utils._sympy.functions import PythonMod as PythonMod
from torch.utils._sympy.numbers import int_oo as int_oo
from torch.utils._sympy.value_ranges import ValueRanges as ValueRanges
from torch.utils._sympy.value_ranges import bound_sympy
from torch.utils._traceback import CapturedTraceback

# ---- questions

EVALUATED: Final = ShapeEnv, "_maybe_evaluate_static"
"""The owner and the name of the function that answers questions on sizes from the knowledge of a ShapeEnv."""
LOGGED: Final = ShapeEnv, "_log_guard"
"""The place of what is called with each new guard."""
_CACHED: Final = "_maybe_evaluate_static", "_inner_evaluate_expr", "simplify", "replace", "_find"


def forget_answers() -> None:
    """Clears the answers that ShapeEnvs have cached, since the caches do not notice a change of ranges."""
    for cached in _CACHED:
        getattr(ShapeEnv, cached).cache_clear()


def refuse_contradictions(constraints: DimConstraints) -> None:
    """Raises what torch raises where constraints on dims contradict each other."""
    constraints._raise_inconsistencies()


def range_of(expression: sympy.Basic, ranges: dict[sympy.Symbol, Any]) -> Any:
    """The interval of an expression over those of its symbols."""
    return bound_sympy(expression, ranges)


# ---- facts


def drops_guards(env: ShapeEnv) -> bool:
    """Whether this thread makes torch leave new guards out."""
    return env._suppress_guards_tls()


def note_order(env: ShapeEnv, condition: Any) -> None:
    """Makes a ShapeEnv keep an inequality, from which others follow."""
    env._maybe_guard_rel(condition)


def replace(env: ShapeEnv, symbol: Any, term: Any, reason: str) -> None:
    """Makes a ShapeEnv write a term in place of a symbol."""
    env._set_replacement(symbol, term, reason)


def assertions_have_changed(env: ShapeEnv) -> None:
    """Makes a ShapeEnv, whose list of assertions has grown by one, forget what followed from the list."""
    env.num_deferred_runtime_asserts += 1
    env._update_version_counter()


def stack_of_caller() -> Any:
    """The stack above the function that calls this."""
    return CapturedTraceback.extract(skip=2)  # type: ignore[no-untyped-call]


# ---- sources

@dataclass(frozen=True)
class QuotientOrigin(ChainedSource):
    """Where the k of m*k + r comes from, in a guard."""

    divisor: int = 1

    @property
    def name(self) -> str:
        return f"({self.base.name} // {self.divisor})"

    @property
    def guard_source(self) -> GuardSource:
        return self.base.guard_source
