"""The sizes of outputs, as far as the condition on the inputs decides them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...constraints.terms.dims import Dim, Symbol, evaluate, lone_atom, symbols
from ...constraints.terms.formula import conjuncts, eq
from ...solver.tactics.judge import Judge
from ..report.report import Output, ReportData

MOST: Final = 20
"""The outputs after so many are left as they are."""


def with_numbers(report: ReportData, judge: Judge) -> tuple[Output, ...]:
    """Returns the outputs with numbers for the sizes that are the same wherever the program runs, such as 197
    for `(h//16)*(w//16) + 1` where `(h//16)*(w//16) == 196`. Those of some sizes only are left as they are.
    """
    example = report.runs_at
    if example is None or not report.accepts.exact:
        return report.outputs
    given = [*conjuncts(report.accepts.domain), *conjuncts(report.accepts.formula)]

    def number(dim: Dim) -> Dim:
        if isinstance(dim, int) or isinstance(lone_atom(dim), Symbol) or not symbols(dim) <= example.keys():
            return dim
        try:
            size = evaluate(dim, example)
        except ZeroDivisionError:  # the size is one of another path
            return dim
        return size if judge.follows(eq(dim, size), given) else dim

    shown, others = report.outputs[:MOST], report.outputs[MOST:]
    changed = (one if one.when else replace(one, value=one.value.with_sizes(number)) for one in shown)
    return (*changed, *others)
