"""Sizes nested too deeply for Python's stack end in `unknown`, and in no traceback."""

from __future__ import annotations

from anyshape.constraints.dims import Dim, sym
from anyshape.constraints.formula import ge
from anyshape.constraints.language import Constraint
from anyshape.constraints.program import Node, Origin, Program
from anyshape.constraints.system import Domain, Path, System
from anyshape.solver.decide import decide


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
