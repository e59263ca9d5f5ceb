"""Where torch says in Python what shape a broadcast has."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import _meta_registrations, _refs
from torch._prims_common import compute_elementwise_output_logical_to_physical_perm
from torch._refs import _conversions
from torch._subclasses import fake_impls

OF_SHAPES: Final = (
    (_refs, "_broadcast_shapes"), (_meta_registrations, "_broadcast_shapes"),
    (_conversions, "_broadcast_shapes"), (fake_impls, "infer_size"),
)  # fmt: skip
"""Places of functions that take shapes and say what they broadcast to."""
infer_size: Final = torch._C._infer_size
"""The shape that two of type `torch.Size` broadcast to."""
OF_TWO_SIZES: Final = torch._C.__name__, infer_size.__name__
"""The place of that function: the names of its module and its own."""
OF_RESULTS: Final = (_refs, "_maybe_broadcast"), (_meta_registrations, "_maybe_broadcast")
"""Functions that expand tensors to a common shape in order to find out what an operator returns, as owners
and names.
"""


def order_in_memory(tensor: torch.Tensor) -> Any:
    """The dims of a tensor, the outermost in memory first."""
    return compute_elementwise_output_logical_to_physical_perm(tensor)[0]
