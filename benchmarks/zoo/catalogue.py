"""All tables together. The models of `tests/models/packages.py`, whose accepted sets are worked out by hand,
are among them.
"""

from __future__ import annotations

from models.packages import PACKAGES

from . import (
    audio_models,
    diffusion_models,
    efficientnet_models,
    graph_models,
    language_models,
    medical_models,
    pytorchcv_models,
    segmentation_models,
    timm_models,
    torch_models,
    torchvision_models,
    vision_models,
    vit_models,
    x_models,
)
from .row import Row

BY_HAND = tuple(
    Row(entry.name, entry.needs[0], entry.build, entry.inputs, entry.probe, entry.assume)
    for entry in PACKAGES
)
TABLES = (
    language_models,
    vision_models,
    diffusion_models,
    medical_models,
    timm_models,
    pytorchcv_models,
    torchvision_models,
    segmentation_models,
    efficientnet_models,
    vit_models,
    x_models,
    graph_models,
    audio_models,
    torch_models,
)
CATALOGUE: tuple[Row, ...] = (*BY_HAND, *(row for table in TABLES for row in table.ROWS))
