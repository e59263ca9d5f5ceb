"""Compares two reports, size by size: whether one program accepts the sizes that the other one accepts.

Sizes are compared by the names of their symbols, so two models can be compared where the same inputs are
declared for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....constraints.ir.program import IllFormed
from ....constraints.terms.formula import Formula, all_of, free_symbols, negate
from ....constraints.terms.formula_text import parse_formula
from ....constraints.terms.syntax import DimSyntaxError
from ....solver.tactics.judge import Budget, Judge

FORM: Final = "pair"


@dataclass(frozen=True, slots=True)
class Pair:
    """The sizes that two programs accept, over the symbols of both."""

    first: Formula
    second: Formula
    exact: bool
    """False where of one of them it is not known for certain."""

    @staticmethod
    def from_json(data: Any) -> Pair:
        """Of two `accepts` of reports. Raises IllFormed."""
        try:
            first, second = (
                all_of((parse_formula(one["domain"]), parse_formula(one["condition"]))) for one in data
            )
            return Pair(first, second, all(one["exact"] is True for one in data))
        except (DimSyntaxError, KeyError, TypeError, ValueError) as error:
            raise IllFormed(f"these are not two reports: {error}") from error


def compare(pair: Pair, budget_s: float) -> dict[str, Any]:
    """Returns the relation between the two accepted sets, and sizes that show it.

    `same`, `narrower` (the first lies within the second), `wider`, `disjoint`, `overlapping`, or `unknown`.
    """
    judge = Judge(Budget(budget_s))
    names = sorted(free_symbols(pair.first) | free_symbols(pair.second))

    def some(*formulas: Formula) -> tuple[str, Mapping[str, int] | None]:
        answer = judge.satisfiable(formulas, names)
        return answer, dict(judge.model) if answer == "sat" else None

    only_first, in_first = some(pair.first, negate(pair.second))
    only_second, in_second = some(pair.second, negate(pair.first))
    shared, in_both = some(pair.first, pair.second)
    apart = "disjoint" if shared == "unsat" else "overlapping"
    relation = _RELATIONS.get((only_first, only_second), apart)
    if "unknown" in (only_first, only_second, shared):
        relation = "unknown"
    return {
        "relation": relation,
        "exact": pair.exact,
        "only_first": in_first,
        "only_second": in_second,
        "both": in_both,
    }


_RELATIONS: Final = {
    ("unsat", "unsat"): "same",
    ("unsat", "sat"): "narrower",
    ("sat", "unsat"): "wider",
}
