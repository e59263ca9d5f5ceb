"""`refine`: the sizes that run as a spec for `torch.export`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.spec_text import Inputs
from ..checking.api import examine
from ..dim_specs.dynamic_shapes import DynamicShapes


def refine(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    rules: Rules | None = None, traced: bool = True,
) -> DynamicShapes | None:
    """The largest spec for `torch.export` within the sizes for which a target runs; None if it runs for none.

    The arguments are those of `check`, and so is what is raised. A program in Python is traced by torch, and
    the spec is one that torch takes, unless `traced` is false.
    """
    examined = examine(target, inputs, assume, budget_s=budget_s, rules=rules)
    shapes = examined.report.dynamic_shapes
    if shapes is None or not traced or examined.target.kind != "python":
        return shapes
    from .plain import taken_shapes

    return taken_shapes(examined, rules, budget_s)
