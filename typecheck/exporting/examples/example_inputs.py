"""Inputs of concrete sizes for a Python program, and a run of it that leaves the program as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final, TypeAlias

import torch

from ....constraints.ir.language import Number, Tensor, Value
from ....constraints.ir.spec import Declared, Spec
from ....constraints.terms.dims import Term, evaluate
from ....tracer.host.alone import alone
from ....tracer.host.surroundings import SEED, surroundings_kept
from ....tracer.recording.binding import bind
from ....tracer.recording.held import Held

Arguments: TypeAlias = "tuple[tuple[Any, ...], dict[str, Any]]"
FILLS: Final = ("random", "zeros", "ones")
"""The contents of tensors: numbers around 0, and 0 or 1 where they are integers; or the same number
throughout.
"""


@alone  # another thread may have rebound what draws numbers
def arguments(target: Callable[..., Any], spec: Spec, sizes: Mapping[str, int], fill: str) -> Arguments:
    """The arguments that a spec declares, at these sizes. The same sizes and fill give the same values."""
    generator = torch.Generator().manual_seed(SEED)
    bound = bind(target, spec.inputs, lambda declared: _built(declared, sizes, fill, generator))
    return bound.args, bound.kwargs


@alone
def run(target: Callable[..., Any], given: Arguments, model: Any = None) -> Any:
    """Returns the result of the target. Restores everything that it and the model hold, and their
    surroundings.
    """
    with surroundings_kept(), Held((target, model)).lent(copied=True), torch.no_grad():
        return target(*given[0], **given[1])


def elements(spec: Spec, sizes: Mapping[str, int]) -> int:
    """Returns the number of elements of all input tensors together."""
    shapes = [d.type.shape for d in spec.inputs if isinstance(d.type, Tensor)]
    return sum(prod(evaluate(dim, sizes) for dim in shape) for shape in shapes)


def _built(declared: Declared, sizes: Mapping[str, int], fill: str, generator: torch.Generator) -> Any:
    value = declared.type
    if isinstance(value, Tensor):
        dtype = getattr(torch, value.dtype or "float32")
        return _tensor([evaluate(dim, sizes) for dim in value.shape], dtype, fill, generator)
    if isinstance(value, Number):
        return 0.5 if value.kind == "float" else 1
    return _at(value, sizes)


def _tensor(sizes: list[int], dtype: torch.dtype, fill: str, generator: torch.Generator) -> torch.Tensor:
    if fill != "random":
        varies = dtype.is_floating_point or dtype is torch.bool
        return torch.full(sizes, int(fill == "ones" and varies), dtype=dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(sizes, generator=generator).to(dtype)
    return torch.randint(0, 2, sizes, generator=generator).to(dtype)


def _at(value: Value, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_at(part, sizes) for part in value)
    return evaluate(value, sizes) if isinstance(value, Term) else value
