# ruff: noqa: C408  # options read as keyword arguments
"""`timm`: image classifiers. The smallest variant of each family, and where its width and depth can be set,
less than that.
"""

from __future__ import annotations

from typing import Any

from .row import AROUND_32, IMAGE, ONLY_32, Row, build, sides

ANY_SIZE: dict[str, dict[str, Any]] = {
    "resnet10t": {},
    "resnetv2_18": {},
    "resnest14d": {},
    "skresnet18": {},
    "legacy_seresnet18": {},
    "gcresnext26ts": {},
    "eca_resnext26ts": {},
    "regnetx_002": {},
    "regnety_002": {},
    "regnetz_005": {},
    "res2net50_26w_4s": {},
    "densenet121": dict(growth_rate=4, block_config=(1, 1, 2, 1)),
    "dla46_c": {},
    "dpn48b": {},
    "vgg11_bn": {},
    "selecsls42": {},
    "ese_vovnet19b_slim_dw": {},
    "cspresnet50": {},
    "cspdarknet53": {},
    "darknet53": {},
    "hrnet_w18_small": {},
    "xception41": {},
    "efficientnet_lite0": {},
    "tf_efficientnetv2_b0": {},
    "mixnet_s": {},
    "mobilenetv2_035": {},
    "mobilenetv3_small_050": {},
    "mobilenetv4_conv_small_050": {},
    "lcnet_035": {},
    "tinynet_e": {},
    "mnasnet_small": {},
    "spnasnet_100": {},
    "fbnetc_100": {},
    "hardcorenas_a": {},
    "ghostnet_050": {},
    "ghostnetv2_100": {},
    "repghostnet_050": {},
    "rexnet_100": {},
    "repvgg_a0": {},
    "mobileone_s0": {},
    "nf_resnet26": {},
    "eca_nfnet_l0": {},
    "hgnetv2_b0": {},
    "convnext_atto": {},
    "convnextv2_atto": {},
    "inception_next_atto": {},
    "edgenext_xx_small": {},
    "poolformer_s12": {},
    "convformer_s18": {},
    "mambaout_femto": {},
    "rdnet_tiny": dict(num_init_features=16, growth_rates=(8, 8, 8, 8, 8, 8, 8)),
    "repvit_m0_9": {},
    "starnet_s050": {},
    "fasternet_t0": {},
    "shvit_s1": {},
    "swiftformer_xs": {},
    "efficientvit_b0": {},
    "fastvit_t8": {},
    "mobilevit_xxs": {},
    "mobilevitv2_050": {},
    "nextvit_small": {},
    "pvt_v2_b0": {},
    "davit_tiny": dict(depths=(1, 1, 1, 1), embed_dims=(8, 16, 32, 64), num_heads=(1, 2, 4, 8)),
    "focalnet_tiny_srf": {},
    "lambda_resnet26t": {},
    "sequencer2d_s": dict(layers=(1, 1, 1, 1), embed_dims=(16, 32, 32, 32), hidden_sizes=(4, 8, 8, 8)),
}
AROUND_75 = sides(32, 74, 75, 76, 96)
SMALL_VIT: dict[str, Any] = dict(img_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2)
SIZE_32: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": SMALL_VIT,
    "vit_relpos_small_patch16_224": SMALL_VIT,
    "deit_tiny_distilled_patch16_224": SMALL_VIT,
    "beit_base_patch16_224": SMALL_VIT,
    "eva02_tiny_patch14_224": SMALL_VIT,
    "cait_xxs24_224": SMALL_VIT,
    "convit_tiny": SMALL_VIT | dict(local_up_to_layer=1),
    "xcit_nano_12_p8_224": SMALL_VIT,
    "mixer_s16_224": dict(img_size=32),
    "gmlp_ti16_224": dict(img_size=32),
    "resmlp_12_224": dict(img_size=32),
    "tnt_s_patch16_224": dict(
        img_size=32, embed_dim=16, inner_dim=8, depth=2, num_heads_inner=2, num_heads_outer=2
    ),
    "visformer_tiny": dict(img_size=32, embed_dim=32, depth=(1, 1, 1), num_heads=2),
    "swin_tiny_patch4_window7_224": dict(
        img_size=32, window_size=4, embed_dim=8, depths=(2, 2), num_heads=(2, 2)
    ),
    "swinv2_tiny_window8_256": dict(img_size=32, window_size=4, embed_dim=8, depths=(2, 2), num_heads=(2, 2)),
    "crossvit_tiny_240": {},
    "levit_128s": dict(img_size=64),
    "twins_pcpvt_small": {},
    "pit_ti_224": dict(img_size=32),
    "tiny_vit_5m_224": {},
    "nest_tiny": dict(img_size=32),
    "coatnet_pico_rw_224": dict(img_size=64),
    "maxvit_rmlp_pico_rw_256": dict(img_size=64),
    "coat_lite_tiny": dict(img_size=32),
    "gcvit_xxtiny": dict(img_size=64),
    "hiera_tiny_224": dict(img_size=32),
    "efficientformerv2_s0": dict(img_size=64),
    "mvitv2_tiny": {},
    "volo_d1_224": dict(img_size=64),
}

LARGE: dict[str, dict[str, Any]] = {
    "inception_v3": dict(aux_logits=False),
    "inception_v4": {},
    "convmixer_768_32": {},
}

ROWS = (
    *(
        Row(
            f"timm_{name}",
            "timm",
            build("timm:create_model", name, num_classes=5, **options),
            IMAGE,
            AROUND_75,
        )
        for name, options in LARGE.items()
    ),
    *(
        Row(
            f"timm_{name}",
            "timm",
            build("timm:create_model", name, num_classes=5, **options),
            IMAGE,
            AROUND_32,
        )
        for name, options in ANY_SIZE.items()
    ),
    *(
        Row(
            f"timm_{name}", "timm", build("timm:create_model", name, num_classes=5, **options), IMAGE, ONLY_32
        )
        for name, options in SIZE_32.items()
    ),
)
