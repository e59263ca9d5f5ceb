"""`dynamic_shapes` for exporters that take a model and sample inputs, such as those of transformers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ...constraints.ir.language import tensors
from ...constraints.ir.system import System
from ...constraints.terms.dims import Term, sym
from ...constraints.terms.formula import Formula, eq, ge
from ...solver.tactics.examples import satisfies
from ..checking.api import examine
from ..dim_specs.dynamic_shapes import of_report
from ..report.findings import main_path
from ..targets.target_error import TargetError


def sample_shapes(model: Any, sample_inputs: Mapping[str, Any], *, budget_s: float = 30.0) -> Any:
    """Returns `dynamic_shapes` for `torch.export`: each size of the samples is dynamic, within the sizes that
    the model accepts, and static where the model needs that very size.

    As for torch's `Dim.AUTO`, sizes that are equal in the samples are one dim, and a size of 1 is static: the
    sizes of samples that may differ should. Sizes at which a size inside the model would be 0 or 1 are left
    out, since torch traces those apart.

    Raises TargetError where the model is not known to run on the samples.
    """
    example: dict[str, int] = {}
    lines = [line for name, value in sample_inputs.items() for line in _declared(name, value, example)]
    found = examine(model, lines, budget_s=budget_s)
    report = found.report
    if not report.accepts.certain.holds(**example):
        why = report.findings[0].message if report.findings else f"the verdict is {report.verdict}"
        raise TargetError(f"the model is not known to run on the sample inputs: {why}")
    for given in (_traced_as_one(found.system), [eq(sym(name), size) for name, size in example.items()]):
        shapes = of_report(report, given)
        if shapes is not None and satisfies((shapes.formula,), example):
            return shapes.to_torch((), sample_inputs)
    raise TargetError("no Dim can express the sizes of the sample inputs")


def _declared(name: str, value: Any, example: dict[str, int]) -> Iterator[str]:
    """Yields the line of a spec for a sample, and enters its symbols with their sizes."""
    if isinstance(value, torch.Tensor):
        sizes = [f"s{size}" if size > 1 else str(size) for size in value.shape]
        example.update((text, size) for text, size in zip(sizes, value.shape, strict=True) if size > 1)
        yield f"{name}: {str(value.dtype).removeprefix('torch.')}[{', '.join(sizes)}]"
    elif isinstance(value, str | bool | int | float | None):
        yield f"{name}={value!r}"
    else:
        kind = type(value).__name__
        raise TargetError(f"the sample input {name} is a {kind}, and a tensor or a constant is expected")


def _traced_as_one(system: System) -> list[Formula]:
    """Returns the condition that no size inside the program is 0 or 1."""
    path = main_path(system)
    values = path.values.values() if path is not None else ()
    inner = dict.fromkeys(d for value in values for tensor in tensors(value) for d in tensor.shape)
    return [ge(dim, 2) for dim in inner if isinstance(dim, Term)]
