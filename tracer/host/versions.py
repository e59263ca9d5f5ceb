"""Releases of torch that are treated differently, each with what is deleted once the older ones are gone."""

from __future__ import annotations

from typing import Final

import torch

_RELEASE: Final = tuple(int(part) for part in torch.__version__.split(".")[:2])

AT_LEAST_2_10: Final = _RELEASE >= (2, 10)
"""The name of a source is an attribute, and no method. Once 2.9 is gone: `symbolic_shapes.name_of` becomes
`source.name`, and `symbolic_shapes._attribute` becomes `property`.
"""
