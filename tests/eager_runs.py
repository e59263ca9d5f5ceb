"""Whether eager PyTorch runs a program of one tensor, for tests of claims about the size of that tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

REFUSALS = (RuntimeError, ValueError, IndexError, TypeError)


def runs(target: Callable[[Tensor], Any], size: int, x: Tensor | None = None) -> bool:
    """Returns whether the program takes so many zeros, or the tensor x instead."""
    try:
        target(torch.zeros(size) if x is None else x)
    except REFUSALS:
        return False
    return True
