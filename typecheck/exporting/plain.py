"""The dims that `torch.export.export` takes as they are printed.

torch gives a size up where its trace has decided something with it: a loop over it, a comparison with a size
of 1. Such decisions are found by tracing, in the way in which the reader of the dims traces: with nothing of
torch's replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ...constraints.engine.ruleset import Rules
from ...constraints.terms.formula import Formula, all_of, conjuncts
from ...solver.tactics.judge import Budget, Judge
from ...tracer.host.releases import unknown
from ..checking.api import Examined, default_rules
from ..dim_specs.dynamic_shapes import DynamicShapes, of_report, tree_of
from ..dim_specs.specs import DimSpec, Hint, Size
from ..dim_specs.torch_dims import to_torch
from .attempts.program_needs import needs
from .examples import example_inputs
from .examples.example_sizes import example_sizes
from .graphs.inner_sizes import paths_of
from .tracing.tracing import Trace, traced_as_it_is

ATTEMPTS: Final = 3
"""Traces with named dims: each takes what the one before it has decided into account."""
SECONDS: Final = 20.0
"""The time limit of a batch of questions to the solver."""


def taken_shapes(
    examined: Examined, rules: Rules | None = None, seconds: float = 60.0
) -> DynamicShapes | None:
    """Returns the largest spec that was found whose dims torch.export takes as they are, for a model in
    Python. None where no declared sizes run.

    A note says why if torch takes none that was tried, or if a trace takes longer than `seconds`.
    """
    given: list[Formula] = []
    shapes, judge = of_report(examined.report), Judge(Budget(4 * SECONDS))
    refused = ""
    for _ in range(ATTEMPTS):
        if shapes is None:
            break
        try:
            limits, refused = _limits(examined, shapes, judge, rules or default_rules(), seconds)
        except Exception as error:  # torch raises anything; it is told
            if unknown(error):
                raise
            return _remarked(shapes, f"torch.export cannot trace this: {_line(error)}")
        described = [*conjuncts(shapes.formula), *conjuncts(shapes.way)]
        if not refused and judge.follows(all_of(limits), described):
            return replace(shapes, notes=())
        given += [limit for limit in limits if not judge.follows(limit, described)]
        narrower = of_report(examined.report, given)
        if narrower is None or not given:
            break
        shapes = narrower
    return shapes and _remarked(shapes, f"torch.export refuses these dims: {refused or 'it decides more'}")


def _limits(
    examined: Examined, shapes: DynamicShapes, judge: Judge, rules: Rules, seconds: float
) -> tuple[Sequence[Formula], str]:
    """Returns the conditions on the sizes of a trace of torch's, and its error if it refuses the dims.

    Where it does, the trace is one that may decide which of the sizes vary.
    """
    model, spec = examined.target.value, examined.spec
    example = example_sizes(shapes.box, spec, paths_of(examined.system, judge, shapes.formula))
    given = example_inputs.arguments(model, spec, example, example_inputs.FILLS[0])
    refused = ""
    try:
        program = traced_as_it_is(model, given, to_torch(shapes.spec, *given, model)[0], seconds)
    except Exception as error:  # torch raises anything; if it is no refusal, the second call raises it again
        if unknown(error) or isinstance(error, TimeoutError):
            raise
        refused = _line(error)

        def varies(size: object) -> Size:
            return None if isinstance(size, int) else Hint("AUTO")

        open_shapes = DimSpec(tree_of(spec, varies, varies))
        program = traced_as_it_is(model, given, to_torch(open_shapes, *given, model)[0], seconds)
    with judge.resting():  # it has a judge and a budget of its own
        found = needs(Trace(program, {}), spec, conjuncts(examined.report.supposed), rules, SECONDS)
    return [part for r in (*found.graph, *found.checks) for part in conjuncts(r.formula)], refused


def _remarked(shapes: DynamicShapes, remark: str) -> DynamicShapes:
    return replace(shapes, notes=(*shapes.notes, remark))


def _line(error: Any) -> str:
    """Returns the lines of torch's error that say which size it is about."""
    lines = [line.strip(" -") for line in f"{error}".splitlines()]
    said = [line for line in lines[1:3] if line] if "For more information" in lines[0] else lines[:1]
    return " ".join(said)
