# ruff: noqa: C408  # options read as keyword arguments
"""`monai`: segmentation, registration, generation and classification of medical images, beside those of
`tests/models/packages.py`.
"""

from __future__ import annotations

from typing import Any

from .row import Probe, Row, build, sides

PLANE = "x: float32[b, 1, h, w]"
SOLID = "x: float32[b, 1, d, h, w]"
AROUND_32 = sides(1, 8, 16, 31, 32, 33, 64)
CUBES: Probe = {"b": (1, 2), "d": (8, 16, 17, 32), "h": (8, 16, 17, 32), "w": (8, 16, 32)}
ONE: dict[str, Any] = dict(spatial_dims=2, in_channels=1, out_channels=2)
DYN: dict[str, Any] = ONE | dict(
    kernel_size=[3, 3, 3], strides=[1, 2, 2], upsample_kernel_size=[2, 2], filters=[4, 8, 8]
)
CODER: dict[str, Any] = ONE | dict(
    out_channels=1, channels=(8, 16), num_res_blocks=1, norm_num_groups=4, attention_levels=(False, True)
)
DIFFUSION: dict[str, Any] = ONE | dict(
    out_channels=1,
    channels=(8, 16),
    num_res_blocks=1,
    norm_num_groups=4,
    attention_levels=(False, True),
    num_head_channels=4,
)

TABLE: tuple[tuple[str, str, dict[str, Any], str, Probe], ...] = (
    ("attention_unet", "AttentionUnet", ONE | dict(channels=(4, 8, 16), strides=(2, 2)), PLANE, AROUND_32),
    ("basic_unetpp", "BasicUNetPlusPlus", ONE | dict(features=(4, 4, 8, 8, 8, 4)), PLANE, AROUND_32),
    ("dynunet", "DynUNet", DYN, PLANE, AROUND_32),
    ("dynunet_deep", "DynUNet", DYN | dict(res_block=True, deep_supervision=False), PLANE, AROUND_32),
    (
        "flexible_unet",
        "FlexibleUNet",
        ONE | dict(in_channels=3, backbone="efficientnet-b0"),
        "inputs: float32[b, 3, h, w]",
        AROUND_32,
    ),
    (
        "segresnet_vae",
        "SegResNetVAE",
        ONE | dict(init_filters=8, input_image_size=(32, 32)),
        PLANE,
        AROUND_32,
    ),
    ("segresnet_ds", "SegResNetDS", ONE | dict(init_filters=8, blocks_down=(1, 1, 1)), PLANE, AROUND_32),
    ("vnet", "VNet", ONE, PLANE, AROUND_32),
    ("highresnet", "HighResNet", ONE, PLANE, AROUND_32),
    ("mednext", "MedNeXt", ONE | dict(init_filters=4), PLANE, AROUND_32),
    (
        "densenet121",
        "DenseNet121",
        ONE | dict(init_features=8, growth_rate=4, block_config=(1, 1, 2, 1)),
        PLANE,
        AROUND_32,
    ),
    (
        "resnet",
        "ResNet",
        dict(
            block="basic",
            layers=[1, 1, 1, 1],
            block_inplanes=[4, 8, 8, 16],
            n_input_channels=1,
            num_classes=2,
        ),
        SOLID,
        CUBES,
    ),
    ("seresnet50", "SEResNet50", dict(spatial_dims=2, in_channels=1, num_classes=2), PLANE, AROUND_32),
    (
        "efficientnet",
        "EfficientNetBN",
        dict(model_name="efficientnet-b0", pretrained=False, spatial_dims=2, in_channels=1, num_classes=2),
        "inputs: float32[b, 1, h, w]",
        AROUND_32,
    ),
    (
        "vit",
        "ViT",
        dict(
            in_channels=1,
            img_size=(32, 32),
            patch_size=(8, 8),
            hidden_size=16,
            mlp_dim=32,
            num_layers=2,
            num_heads=2,
            spatial_dims=2,
            classification=True,
        ),
        PLANE,
        AROUND_32,
    ),
    (
        "vit_autoenc",
        "ViTAutoEnc",
        dict(
            in_channels=1,
            img_size=(32, 32),
            patch_size=(4, 4),
            out_channels=1,
            hidden_size=16,
            mlp_dim=32,
            num_layers=1,
            num_heads=2,
            spatial_dims=2,
        ),
        PLANE,
        AROUND_32,
    ),
    ("autoencoder", "AutoEncoder", ONE | dict(channels=(4, 8), strides=(2, 2)), PLANE, AROUND_32),
    (
        "var_autoencoder",
        "VarAutoEncoder",
        dict(
            spatial_dims=2,
            in_shape=(1, 32, 32),
            out_channels=1,
            latent_size=4,
            channels=(4, 8),
            strides=(2, 2),
        ),
        PLANE,
        AROUND_32,
    ),
    (
        "regressor",
        "Regressor",
        dict(in_shape=(1, 32, 32), out_shape=(2,), channels=(4, 8), strides=(2, 2)),
        PLANE,
        AROUND_32,
    ),
    (
        "classifier",
        "Classifier",
        dict(in_shape=(1, 32, 32), classes=3, channels=(4, 8), strides=(2, 2)),
        PLANE,
        AROUND_32,
    ),
    (
        "discriminator",
        "Discriminator",
        dict(in_shape=(1, 32, 32), channels=(4, 8), strides=(2, 2)),
        PLANE,
        AROUND_32,
    ),
    (
        "generator",
        "Generator",
        dict(latent_shape=(6,), start_shape=(4, 8, 8), channels=(4, 1), strides=(2, 2)),
        "x: float32[b, 6]",
        {"b": (1, 2, 5)},
    ),
    (
        "patch_discriminator",
        "PatchDiscriminator",
        dict(spatial_dims=2, channels=4, in_channels=1, num_layers_d=2),
        PLANE,
        AROUND_32,
    ),
    ("autoencoder_kl", "AutoencoderKL", CODER | dict(latent_channels=4), PLANE, AROUND_32),
    (
        "vqvae",
        "VQVAE",
        ONE
        | dict(
            out_channels=1,
            channels=(4, 8),
            num_res_channels=(4, 8),
            num_res_layers=1,
            num_embeddings=8,
            downsample_parameters=((2, 4, 1, 1), (2, 4, 1, 1)),
            upsample_parameters=((2, 4, 1, 1, 0), (2, 4, 1, 1, 0)),
            embedding_dim=4,
        ),
        "images: float32[b, 1, h, w]",
        AROUND_32,
    ),
    (
        "diffusion_unet",
        "DiffusionModelUNet",
        DIFFUSION,
        PLANE + "; timesteps: int64[c]",
        AROUND_32 | {"c": (1, 2)},
    ),
    (
        "regunet",
        "RegUNet",
        dict(spatial_dims=2, in_channels=1, num_channel_initial=4, depth=2, out_channels=2),
        PLANE,
        AROUND_32,
    ),
    (
        "localnet",
        "LocalNet",
        dict(
            spatial_dims=2,
            in_channels=1,
            num_channel_initial=4,
            extract_levels=[0, 2],
            out_channels=2,
            out_kernel_initializer="kaiming_uniform",
            out_activation=None,
        ),
        PLANE,
        AROUND_32,
    ),
    (
        "voxelmorph",
        "VoxelMorphUNet",
        dict(
            spatial_dims=2,
            in_channels=2,
            unet_out_channels=8,
            channels=(4, 4, 8, 8, 8, 8),
            final_conv_channels=(4,),
        ),
        "concatenated_pairs: float32[b, 2, h, w]",
        AROUND_32,
    ),
    (
        "fully_connected",
        "FullyConnectedNet",
        dict(in_channels=6, out_channels=2, hidden_channels=[8]),
        "input: float32[b, 6]",
        {"b": (1, 2, 5)},
    ),
    (
        "ahnet",
        "AHNet",
        dict(layers=(1, 1, 1, 1), spatial_dims=2, in_channels=1, out_channels=2, psp_block_num=0),
        PLANE,
        AROUND_32,
    ),
    (
        "spade_autoencoder",
        "SPADEAutoencoderKL",
        CODER | dict(label_nc=2, latent_channels=4, num_res_blocks=(1, 1)),
        PLANE + "; seg: float32[b, 2, h, w]",
        AROUND_32,
    ),
)
ROWS = tuple(
    Row(f"monai_{name}", "monai", build(f"monai.networks.nets:{model}", **options), inputs, probe)
    for name, model, options, inputs, probe in TABLE
)
