"""Sizes nested too deeply for Python's stack end in `unknown`, and in no traceback."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from anyshape.constraints.ir.language import Constraint
from anyshape.constraints.ir.program import Node, Origin, Program
from anyshape.constraints.ir.system import Domain, Path, System
from anyshape.constraints.terms.dims import Dim, applications, maximum, sym
from anyshape.constraints.terms.formula import ge
from anyshape.constraints.terms.formula_text import defined
from anyshape.solver.decide import decide
from anyshape.solver.facts.shorten import simplify
from anyshape.solver.tactics.examples import constants
from anyshape.solver.tactics.judge import Judge
from anyshape.solver.theory import quasi_polynomials


def asking(dim: Dim) -> System:
    node = Node("relu", (), (), Origin("model.py", 1))
    path = Path(Program((), (node,), ()), {}, (Constraint(ge(dim, 5), "for the test", 0),))
    return System(Domain(("h",), (ge(sym("h"), 1),)), (path,))


def shrunk(times: int) -> Dim:
    dim: Dim = sym("h")
    for _ in range(times):
        dim = (2 * dim) // 3
    return dim


def test_a_few_levels_are_decided() -> None:
    assert decide(asking(shrunk(4))).verdict == "refined"


def test_thousands_of_levels_are_told() -> None:
    decision = decide(asking(shrunk(3000)))
    assert decision.verdict == "unknown"
    assert "nested too deeply" in decision.reasons[0].reason


def doubled(times: int) -> Dim:
    """A size that holds twice as many copies of a symbol each time."""
    dim: Dim = sym("h")
    for _ in range(times):
        dim = (3 * dim + 1) // 2 + (5 * dim + 2) // 7
    return dim


@pytest.mark.parametrize("look", [
    applications,
    defined,
    lambda dim: constants([ge(dim, 5)]),
    lambda dim: simplify(Judge(), Domain(("h",)), [ge(dim, 5)]),
    lambda dim: quasi_polynomials.plain_period(maximum(dim, 5)),
    quasi_polynomials.degree,
])
def test_copies_are_looked_at_once(look: Callable[[Dim], object]) -> None:
    """There are more than anybody could look at."""
    look(doubled(60))


def test_applications_come_after_those_inside_them() -> None:
    found = applications(doubled(2))
    assert len(found) == 4
    assert all(found.index(inner) < n for n, a in enumerate(found) for inner in applications(*a.args))
