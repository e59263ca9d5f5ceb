"""Specs of dynamic shapes: as data, as JSON, as torch's `Dim`s, and as what is chosen of the accepted sizes.

Specs are read, written and lowered without torch; `torch_dims.py` leads to and from torch's objects.
"""

from .lowering import Lowered, lower, to_torch_json
from .specs import DimSpec, DimSpecError, from_json, loads, to_json

__all__ = ["DimSpec", "DimSpecError", "Lowered", "from_json", "loads", "lower", "to_json", "to_torch_json"]
