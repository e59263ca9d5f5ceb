"""Stand-ins for functions of torch that are no operators: those that say what shapes broadcast to, and those
that hand on the memory of a tensor.

torch's own find what shapes broadcast to from the sizes one by one, with a branch for each; those in C++ take
no symbolic ones. The rule of `broadcast_shapes` states one requirement for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import broadcast_shapes

from ...constraints.terms.formula import all_of, ge
from ..bytecode.operations import hands_on
from ..host.broadcasts import OF_TWO_SIZES, infer_size
from ..host.tensors import HANDING_ON
from ..recorder import Recorder
from ..values.numbers import Size, dim_of
from ..values.symbolic import Sizes, SymbolicTensor, without_elements


@hands_on
def _broadcast_shapes(*shapes: Any) -> Any:
    """Returns `torch.broadcast_shapes`, by its rule where no size is negative."""
    given = [tuple(s) if isinstance(s, tuple | list) else (s,) for s in shapes if s is not None]
    found = _by_rule(given)
    return broadcast_shapes(*shapes) if found is None else found  # type: ignore[no-untyped-call]


@hands_on
def _infer_size(*shapes: Any) -> Any:
    """Returns what two sizes broadcast to, by the rule; torch's own function takes no other tuples."""
    if not all(isinstance(shape, torch.Size) for shape in shapes):
        return infer_size(*shapes)
    found = _by_rule([*map(tuple, shapes)])
    return infer_size(*map(torch.Size, shapes)) if found is None else found


def _by_rule(shapes: list[tuple[Any, ...]]) -> Sizes | None:
    sizes = [n for shape in shapes for n in shape]
    run: Recorder | None = next((n.run for n in sizes if type(n) is Size), None)
    dims = [dim for n in sizes if (dim := dim_of(n)) is not None]
    if run is None or len(dims) < len(sizes) or not run.certain(all_of(ge(dim, 0) for dim in dims)):
        return None
    if len(shapes) == 1:
        return Sizes(shapes[0])
    return Sizes(run.operator("broadcast_shapes", tuple(shapes), {}))


def _handing_on(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that returns the memory of a tensor for other libraries, if it has any."""

    def handed_on(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensor, SymbolicTensor):
            without_elements(tensor.run, tensor)
        return plain(tensor, *args, **kwargs)

    return handed_on


FUNCTIONS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("torch", "broadcast_shapes"): _broadcast_shapes,
    OF_TWO_SIZES: _infer_size,
    **{place: _handing_on(plain) for place, plain in HANDING_ON.items()},
}
"""By module and name, the stand-ins."""
