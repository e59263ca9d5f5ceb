"""Finds numbers that make a program right: its literals may change, as few of them and by as little as
possible.

With a symbol in place of a literal, the program's requirements concern the sizes of its inputs and the
symbol. The goal is a value of the symbol for which all inputs are accepted: exists k, for all s: needs(k, s).
It is found by examples that refute it: a value that suits the examples so far is put to the solver, which
proves it or finds sizes that it does not suit, one more example. So every result is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..constraints.ir.system import Domain
from ..constraints.terms.dims import sym
from ..constraints.terms.formula import Formula, all_of, any_of, ne, negate, rewrite
from .tactics.judge import Judge

ROUNDS: Final = 24
"""At most this many values are put to the solver."""


def fillings(
    needs: Sequence[Formula], domain: Domain, holes: Mapping[str, int], judge: Judge
) -> Iterator[dict[str, int]]:
    """Yields values of the holes for which every input of the domain meets all needs, the smallest change
    first.

    `holes` maps the symbols to their values in the program; `domain` is about inputs alone.
    """
    from .backends.z3_backend import nearest

    if judge.satisfiable(domain.assumptions, domain.symbols) != "sat":
        return
    examples = [{name: judge.model[name] for name in domain.symbols}]
    excluded: list[Formula] = []
    for _ in range(ROUNDS):
        try:
            instances = [rewrite(need, example) for example in examples for need in needs]
        except ZeroDivisionError:  # a size of these inputs is divided by
            return
        found = nearest([*instances, *excluded], holes, judge.budget.units)
        if found is None or judge.exhausted:
            return
        try:
            filled = all_of(rewrite(need, found) for need in needs)
        except ZeroDivisionError:  # the value leaves a divisor of zero
            return
        answer = judge.satisfiable((*domain.assumptions, negate(filled)), domain.symbols)
        if answer == "unsat":
            yield found
        if answer == "sat":
            examples.append({name: judge.model[name] for name in domain.symbols})
        else:
            excluded.append(any_of(ne(sym(name), value) for name, value in found.items()))
