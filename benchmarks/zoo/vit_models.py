# ruff: noqa: C408  # options read as keyword arguments
"""`vit_pytorch`: forty ways to write a vision transformer, by one author, with einops throughout."""

from __future__ import annotations

from typing import Any

from .row import ONLY_32, Row, build

SMALL: dict[str, Any] = dict(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32)
IMG = "img: float32[b, 3, h, w]"
X = "x: float32[b, 3, h, w]"
LEVELS: dict[str, Any] = dict(num_classes=5, mlp_mult=2)
CVT: dict[str, Any] = {
    f"s{i}_{name}": value
    for i, dim in ((1, 8), (2, 16), (3, 16))
    for name, value in (("emb_dim", dim), ("heads", 1), ("depth", 1))
}

TABLE: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("vit:ViT", SMALL, IMG),
    ("simple_vit:SimpleViT", SMALL, IMG),
    ("deepvit:DeepViT", SMALL, IMG),
    ("cait:CaiT", SMALL | dict(cls_depth=1), IMG),
    ("rvt:RvT", SMALL, IMG),
    ("parallel_vit:ViT", SMALL | dict(num_parallel_branches=2), IMG),
    ("vit_for_small_dataset:ViT", SMALL, IMG),
    ("vit_with_patch_merger:ViT", SMALL | dict(patch_merge_layer=1, patch_merge_num_tokens=4), IMG),
    ("vit_with_patch_dropout:ViT", SMALL | dict(patch_dropout=0.25), IMG),
    ("learnable_memory_vit:ViT", SMALL, IMG),
    ("simple_vit_with_register_tokens:SimpleViT", SMALL, IMG),
    ("simple_vit_with_qk_norm:SimpleViT", SMALL, IMG),
    ("simple_vit_with_patch_dropout:SimpleViT", SMALL, IMG),
    ("simple_vit_with_value_residual:SimpleViT", SMALL, IMG),
    ("simple_vit_with_hyper_connections:SimpleViT", SMALL | dict(num_residual_streams=2), IMG),
    ("simple_vit_with_fft:SimpleViT", SMALL | dict(freq_patch_size=8), IMG),
    ("simple_uvit:SimpleUViT", SMALL, IMG),
    ("normalized_vit:nViT", SMALL, "images: float32[b, 3, h, w]"),
    ("jumbo_vit:JumboViT", SMALL | dict(num_jumbo_cls=1, jumbo_cls_k=2, jumbo_ff_mult=2), IMG),
    ("ats_vit:ViT", SMALL | dict(max_tokens_per_depth=(12, 6)), IMG),
    ("pit:PiT", SMALL | dict(depth=(1, 1)), IMG),
    ("levit:LeViT", dict(image_size=32, num_classes=5, dim=16, stages=1, depth=2, heads=2, mlp_mult=2), IMG),
    (
        "t2t:T2TViT",
        dict(image_size=32, num_classes=5, dim=16, depth=1, heads=2, mlp_dim=32, t2t_layers=((3, 2), (3, 2))),
        IMG,
    ),
    (
        "cct:CCT",
        dict(img_size=32, embedding_dim=16, num_layers=2, num_heads=2, n_conv_layers=1, num_classes=5),
        X,
    ),
    ("cvt:CvT", CVT | dict(num_classes=5), X),
    (
        "twins_svt:TwinsSVT",
        LEVELS_TWINS := {
            f"s{i}_{name}": value
            for i in (1, 2, 3, 4)
            for name, value in (
                ("emb_dim", 8),
                ("patch_size", 2),
                ("local_patch_size", 2),
                ("global_k", 2),
                ("depth", 1),
            )
        }
        | dict(num_classes=5),
        X,
    ),
    (
        "crossformer:CrossFormer",
        dict(
            num_classes=5,
            dim=(32, 32, 32, 32),
            depth=(1, 1, 1, 1),
            global_window_size=(2, 2, 1, 1),
            local_window_size=2,
        ),
        X,
    ),
    ("regionvit:RegionViT", dict(num_classes=5, dim=(8, 16, 16, 32), depth=(1, 1, 1, 1), window_size=2), X),
    (
        "scalable_vit:ScalableViT",
        dict(
            num_classes=5,
            dim=8,
            heads=(1, 2, 2, 2),
            depth=(1, 1, 1, 1),
            ssa_dim_key=(8, 8, 8, 8),
            reduction_factor=(2, 2, 1, 1),
            window_size=(8, 4, None, None),
        ),
        IMG,
    ),
    ("sep_vit:SepViT", dict(num_classes=5, dim=8, dim_head=8, heads=(1, 2), depth=(1, 1), window_size=7), X),
    (
        "max_vit:MaxViT",
        dict(num_classes=5, dim=8, depth=(1, 1), dim_conv_stem=8, dim_head=8, window_size=4),
        X,
    ),
    (
        "nest:NesT",
        dict(
            image_size=32,
            patch_size=4,
            num_classes=5,
            dim=8,
            heads=2,
            num_hierarchies=2,
            block_repeats=(1, 1),
        ),
        IMG,
    ),
    (
        "mobile_vit:MobileViT",
        dict(
            image_size=(64, 64),
            dims=[8, 8, 8],
            channels=[4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 16],
            num_classes=5,
            depths=(1, 1, 1),
        ),
        X,
    ),
    ("xcit:XCiT", SMALL | dict(cls_depth=1, local_patch_kernel_size=3), IMG),
    (
        "cross_vit:CrossViT",
        dict(
            image_size=32,
            num_classes=5,
            sm_dim=8,
            lg_dim=16,
            sm_patch_size=4,
            lg_patch_size=8,
            sm_enc_depth=1,
            lg_enc_depth=1,
            sm_enc_heads=2,
            lg_enc_heads=2,
            sm_enc_mlp_dim=16,
            lg_enc_mlp_dim=16,
            cross_attn_heads=2,
            depth=1,
            cross_attn_depth=1,
        ),
        IMG,
    ),
)
SEQUENCE: dict[str, Any] = dict(seq_len=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32)
VOLUME: dict[str, Any] = SMALL | dict(image_patch_size=8, frames=4, frame_patch_size=2)
VOLUME.pop("patch_size")
SERIES = "series: float32[b, 3, t]"
VIDEO = "video: float32[b, 3, f, h, w]"
FRAMES = {"b": (1, 2), "f": (2, 3, 4, 5), "h": (31, 32, 33), "w": (31, 32, 33)}


def vit(factory: str, options: dict[str, Any], inputs: str) -> Row:
    name = factory.partition(":")[0]
    return Row(f"lucid_{name}", "vit_pytorch", build(f"vit_pytorch.{factory}", **options), inputs, ONLY_32)


ROWS = (
    *(vit(*row) for row in TABLE),
    Row(
        "lucid_vit_1d",
        "vit_pytorch",
        build("vit_pytorch.vit_1d:ViT", **SEQUENCE),
        SERIES,
        {"t": (8, 31, 32, 33)},
    ),
    Row(
        "lucid_simple_vit_1d",
        "vit_pytorch",
        build("vit_pytorch.simple_vit_1d:SimpleViT", **SEQUENCE),
        SERIES,
        {"t": (8, 31, 32, 33)},
    ),
    Row("lucid_vit_3d", "vit_pytorch", build("vit_pytorch.vit_3d:ViT", **VOLUME), VIDEO, FRAMES),
    Row(
        "lucid_simple_vit_3d",
        "vit_pytorch",
        build("vit_pytorch.simple_vit_3d:SimpleViT", **VOLUME),
        VIDEO,
        FRAMES,
    ),
    Row(
        "lucid_vivit",
        "vit_pytorch",
        build(
            "vit_pytorch.vivit:ViViT",
            **{k: v for k, v in VOLUME.items() if k != "depth"},
            spatial_depth=1,
            temporal_depth=1,
        ),
        VIDEO,
        FRAMES,
    ),
)
