# options read as keyword arguments
"""`efficientnet_pytorch`: EfficientNet as it was first ported, with padding computed from the image size."""

from __future__ import annotations

from .row import AROUND_32, ONLY_32, Row, build

ROWS = (
    Row(
        "enet_b0",
        "efficientnet_pytorch",
        build("efficientnet_pytorch:EfficientNet.from_name", "efficientnet-b0"),
        "inputs: float32[b, 3, h, w]",
        AROUND_32,
    ),
    Row(
        "enet_b0_fixed_size",
        "efficientnet_pytorch",
        build("efficientnet_pytorch:EfficientNet.from_name", "efficientnet-b0", image_size=32),
        "inputs: float32[b, 3, h, w]",
        ONLY_32,
    ),
)
