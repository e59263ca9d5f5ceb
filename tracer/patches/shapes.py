"""Stand-ins for functions of torch that say what shapes broadcast to, without tensors.

torch's own take symbolic sizes apart one by one, with a branch for each, or not at all in C++ code. The rule
of `broadcast_shapes` states one requirement for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import broadcast_shapes

from ...constraints.terms.formula import all_of, ge
from ..bytecode.operations import hands_on
from ..host.broadcasts import OF_TWO_SIZES, infer_size
from ..recorder import Recorder
from ..values.numbers import Size, dim_of
from ..values.symbolic import Sizes


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


FUNCTIONS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("torch", "broadcast_shapes"): _broadcast_shapes,
    OF_TWO_SIZES: _infer_size,
}
"""By module and name, the stand-ins for functions of shapes."""
