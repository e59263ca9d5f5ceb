"""Tensors and modules that a module holds, under its own names for them. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch

PARAMETERS: Final = "_parameters"
"""The attribute of a module in which it holds its parameters, by their names."""
BUFFERS: Final = "_buffers"
"""The attribute of a module in which it holds its buffers, by their names."""
MODULES: Final = "_modules"
"""The attribute of a module in which it holds its children, by their names."""
FLAT_WEIGHTS: Final = "_flat_weights"
NOTED_BY_LAYERS: Final = frozenset({FLAT_WEIGHTS, "_flat_weight_refs"})
"""Attributes in which recurrent layers note their weights when they are called."""
"""The attribute in which a recurrent module holds its weights once more, in the order of its operator."""


def parameters_of(module: torch.nn.Module) -> dict[str, torch.nn.Parameter | None]:
    """The module's own parameters, None for those that it does without."""
    return module._parameters


def buffers_of(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """The module's own buffers, None for those that it does without."""
    return module._buffers


def children_of(module: torch.nn.Module) -> dict[str, torch.nn.Module | None]:
    """The modules that a module holds itself, None for those that it does without."""
    return module._modules


def flat_weights(module: torch.nn.RNNBase, held: Callable[[str], Any]) -> list[Any]:
    """Returns the value of `FLAT_WEIGHTS`, where `held` gives the value of a weight by name."""
    return [held(name) for name in module._flat_weights_names]


def find_flat_weights(module: torch.nn.RNNBase) -> None:
    """Makes a recurrent module look up its weights, as it does in a call."""
    module._update_flat_weights()
