# ruff: noqa: C408  # options read as keyword arguments
"""`torchvision`: classifiers, segmentation, video and optical flow."""

from __future__ import annotations

from typing import Any

from .row import AROUND_32, IMAGE, ONLY_32, Row, build, sides

CLASSIFIERS: dict[str, dict[str, Any]] = {
    "alexnet": {},
    "vgg11": {},
    "resnet18": {},
    "resnext50_32x4d": {},
    "squeezenet1_1": {},
    "densenet121": {},
    "googlenet": dict(aux_logits=False, init_weights=False),
    "shufflenet_v2_x0_5": {},
    "mobilenet_v2": {},
    "mobilenet_v3_small": {},
    "mnasnet0_5": {},
    "efficientnet_b0": {},
    "efficientnet_v2_s": {},
    "regnet_y_400mf": {},
    "convnext_tiny": {},
}
SEGMENTATION: dict[str, dict[str, Any]] = {
    "fcn_resnet50": dict(weights_backbone=None),
    "deeplabv3_mobilenet_v3_large": dict(weights_backbone=None),
}
VIDEO: dict[str, dict[str, Any]] = {"r3d_18": {}, "mc3_18": {}, "r2plus1d_18": {}}
CLIP = "x: float32[b, 3, t, h, w]"
CLIPS = {"b": (1, 2), "t": (1, 4, 9, 14, 16), "h": (1, 32, 64, 65), "w": (32, 64)}

ROWS = (
    *(
        Row(f"tv_{name}", "torchvision", build(f"torchvision.models:{name}", **options), IMAGE, AROUND_32)
        for name, options in CLASSIFIERS.items()
    ),
    *(
        Row(
            f"tv_{name}",
            "torchvision",
            build(f"torchvision.models.segmentation:{name}", **options),
            IMAGE,
            AROUND_32,
        )
        for name, options in SEGMENTATION.items()
    ),
    *(
        Row(f"tv_{name}", "torchvision", build(f"torchvision.models.video:{name}", **options), CLIP, CLIPS)
        for name, options in VIDEO.items()
    ),
    Row(
        "tv_inception_v3",
        "torchvision",
        build("torchvision.models:inception_v3", aux_logits=False, init_weights=False),
        IMAGE,
        sides(32, 74, 75, 76, 96),
    ),
    Row(
        "tv_lraspp_mobilenet_v3_large",
        "torchvision",
        build("torchvision.models.segmentation:lraspp_mobilenet_v3_large", weights_backbone=None),
        "input: float32[b, 3, h, w]",
        AROUND_32,
    ),
    Row(
        "tv_swin",
        "torchvision",
        build("torchvision.models:SwinTransformer", [2, 2], 8, [2, 2], [2, 2], [4, 4], num_classes=5),
        IMAGE,
        sides(1, 2, 7, 8, 9, 16, 32),
    ),
    Row(
        "tv_vit",
        "torchvision",
        build("torchvision.models:VisionTransformer", 32, 8, 2, 2, 16, 32),
        IMAGE,
        ONLY_32,
    ),
    Row(
        "tv_maxvit",
        "torchvision",
        build("torchvision.models:MaxVit", (64, 64), 8, 4, [8, 16], [1, 1], 4, 0.0),
        IMAGE,
        sides(32, 63, 64, 65, 128),
    ),
    Row(
        "tv_raft_small",
        "torchvision",
        build("torchvision.models.optical_flow:raft_small"),
        "image1: float32[b, 3, h, w]; image2: float32[b, 3, h, w]; num_flow_updates=2",
        sides(64, 120, 127, 128, 129, 136),
    ),
)
