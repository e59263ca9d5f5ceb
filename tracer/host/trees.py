"""torch's trees: containers that are flattened to their leaves and built again."""

from __future__ import annotations

from torch.utils import _pytree as pytree

__all__ = ["pytree"]
