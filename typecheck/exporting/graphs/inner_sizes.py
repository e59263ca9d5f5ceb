"""Reports the known facts about sizes inside a program, for consumers that need a bound on each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ....constraints.ir.language import Fact, tensors
from ....constraints.ir.spec_text import SpecError
from ....constraints.ir.system import Path, System
from ....constraints.terms.dims import Dim, Term, substitute, sym
from ....constraints.terms.formula import Formula, conjuncts
from ....solver.facts.facts import fact
from ....solver.tactics.judge import Judge
from ...facade import Report


def inner_sizes(system: System, judge: Judge, accepted: Formula) -> dict[str, Fact]:
    """A fact for each size of a tensor that is no number, by its term, on the paths that these sizes take.

    One that always equals an earlier one says so.
    """
    given = (*system.domain.assumptions, *conjuncts(accepted))
    stepped = {name: _stepped(name, fact(judge, given, sym(name))) for name in system.domain.symbols}
    first: dict[Dim, Dim] = {}
    found: dict[str, Fact] = {}
    for path in paths_of(system, judge, accepted):
        for value in path.values.values():
            for dim in (d for tensor in tensors(value) for d in tensor.shape):
                if isinstance(dim, Term) and str(dim) not in found:
                    same = first.setdefault(substitute(dim, stepped), dim)
                    found[str(dim)] = replace(fact(judge, given, dim), equals=None if same is dim else same)
    return found


def _stepped(name: str, known: Fact) -> Dim:
    """The symbol as `m*n + r`, if that is known of it, so that terms that are equal become the same."""
    return known.divisor * sym(f"_{name}") + known.remainder


def paths_of(system: System, judge: Judge, sizes: Formula) -> list[Path]:
    """Returns the paths that return and that some of these sizes take."""
    given = (*system.domain.assumptions, sizes)
    returned = [path for path in system.paths if path.end.how == "returned"]
    return [path for path in returned if judge.satisfiable((*given, path.premise)) != "unsat"]


def bounding(report: Report, finite: int | Mapping[str, int]) -> list[str]:
    """Assumptions that give each symbol an upper bound: `b <= 64`.

    `finite` is the bound of all symbols that have none, or a bound for each by name. Raises SpecError if one
    is missing, or names no symbol.
    """
    open_ended = [name for name, known in report.dims.items() if known.max is None]
    bounds = dict.fromkeys(open_ended, finite) if isinstance(finite, int) else dict(finite)
    if unknown := [name for name in bounds if name not in report.dims]:
        known = f"the symbols are {', '.join(report.dims)}" if report.dims else "the inputs have no symbols"
        raise SpecError(f"no input mentions the symbol {unknown[0]!r}", hint=known)
    if missing := [name for name in open_ended if name not in bounds]:
        raise SpecError(f"{missing[0]} has no upper bound", hint=f"give one: {missing[0]} <= 64, for example")
    return [f"{name} <= {bound}" for name, bound in bounds.items()]
