"""Guesses: branches that sizes decide, but whose outcome is not tracked, so that both sides are followed, as
for a branch on data.

A guess is an approximation only if the two sides differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

from ...constraints.ir.program import Ref
from ...constraints.ir.system import Answer, Oracle, Path
from ...constraints.terms.formula import Formula


def without_idle(
    paths: Sequence[Path], guessed: Mapping[int, frozenset[int]], oracle: Oracle
) -> list[Path]:
    """The paths without the notes of guesses that make no difference: all ways that the same sizes may take
    say the same.

    `guessed` has the nodes of the guesses of each path, by its index.
    """
    if not any(guessed.values()):
        return [*paths]
    ways: dict[Formula, list[Path]] = defaultdict(list)
    for path in paths:
        ways[path.premise].append(path)
    if len(ways) > MOST:
        return [*paths]
    idle = {premise for premise, group in ways.items() if _say_the_same(group, oracle)}
    for (premise, (one, *_)), (other, (another, *_)) in combinations(ways.items(), 2):
        if idle.isdisjoint((premise, other)) or oracle.decide(premise, (other,)) is Answer.NEVER:
            continue
        if not idle >= {premise, other} or not _say_the_same((one, another), oracle):
            idle -= {premise, other}
    return [
        replace(path, notes=tuple(n for n in path.notes if n.node not in guessed.get(place, ())))
        if path.premise in idle
        else path
        for place, path in enumerate(paths)
    ]


MOST: Final = 32
"""If there are more paths than this, every guess counts as relevant."""


def _say_the_same(paths: Sequence[Path], oracle: Oracle) -> bool:
    """Whether paths require and return the same at sizes that may take each of them."""
    first, *others = map(_returned, paths)
    if any(other != first for other in others):
        return False
    required = [{c.formula for c in path.constraints if c.formula is not True} for path in paths]
    common = set.intersection(*required)
    given = (*(path.premise for path in paths), *common)
    more = set.union(*required) - common
    return all(formula is not False and oracle.decide(formula, given) is Answer.ALWAYS for formula in more)


def _returned(path: Path) -> Any:
    results = [path.values[out.id] if isinstance(out, Ref) else out for _, out in path.program.outputs]
    return path.end.how, [name for name, _ in path.program.outputs], results, path.unbacked
