"""Finds the paths of a model, since a graph holds one, and its loops, which a graph may hold for any length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final

from ....constraints.engine.ruleset import Rules
from ....constraints.ir.language import tensors
from ....constraints.ir.program import Node
from ....constraints.ir.system import Path
from ....constraints.terms.dims import modulo, sym, symbols
from ....constraints.terms.formula import Formula, conjuncts, eq, free_symbols
from ....solver.decide import DomainOracle
from ....solver.facts.refine import simplify
from ....solver.tactics.judge import Budget
from ....tracer.recording.record import record
from .goal import Goal

WAYS: Final = 128
"""The paths of a model are kept separate up to this number."""
EVEN: Final = (1024, 64, 16)
"""Sizes that are multiples of these usually take the most common path."""
SECONDS: Final = 20.0
"""The time limit of following one path, in seconds."""


def ways_apart(
    model: Callable[..., Any], goal: Goal, rules: Rules, sizes: Mapping[str, int]
) -> tuple[Formula, ...]:
    """Returns some paths, for a model with too many paths to list: the path of these sizes, and the paths of
    sizes that are multiples of a power of two.
    """
    known = (*goal.domain, *goal.accepted)
    even = ([eq(modulo(sym(name), step), 0) for name in goal.spec.domain.symbols] for step in EVEN)
    usual = chain.from_iterable(goal.some((*known, *multiples)) for multiples in even)
    found = (_way_of(model, goal, rules, at) for at in (*usual, sizes))
    return tuple(dict.fromkeys(way for way in found if way is not None))


def _way_of(model: Callable[..., Any], goal: Goal, rules: Rules, sizes: Mapping[str, int]) -> Formula | None:
    """Returns the condition of all sizes that take the same path of the model as these; None where it does
    not return.
    """
    spec = goal.spec
    oracle = DomainOracle(spec.domain, Budget(SECONDS))
    system, _ = record(model, spec, rules, oracle, budget_s=SECONDS, along=sizes)
    (path,) = system.paths
    names = {*spec.domain.symbols}
    of_sizes = [part for part in conjuncts(path.premise) if free_symbols(part) <= names]
    returned = path.end.how == "returned"
    return simplify(goal.judge, spec.domain, of_sizes) if returned else None


def may_scan(path: Path) -> bool:
    """Returns whether the path loops over a size, and each iteration could be the same graph.

    It is not where the data decide new sizes in each iteration.
    """
    decided, nodes = {name for name, _ in path.unbacked}, path.program.nodes

    def sizes(some: Iterable[Node]) -> set[str]:
        values = (path.values[id] for node in some for id in node.results)
        shapes = (tensor.shape for value in values for tensor in tensors(value))
        return decided & {name for shape in shapes for dim in shape for name in symbols(dim)}

    loops = path.program.iterations
    return bool(loops) and all(
        not decided or sizes(nodes[loop.start : loop.stop]) <= sizes(nodes[: loop.start]) for loop in loops
    )
