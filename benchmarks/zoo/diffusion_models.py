# ruff: noqa: C408  # options read as keyword arguments
"""`diffusers`: denoisers and autoencoders of images, video and sound, beside those of
`tests/models/packages.py`.
"""

from __future__ import annotations

from typing import Any

from .row import Probe, Row, build, sides

LATENTS = "hidden_states: float32[b, 4, h, w]; timestep: int64[c]"
TEXTS = "encoder_hidden_states: float32[d, t, 16]"
AROUND_8: Probe = {
    "b": (1, 2, 3),
    "c": (1, 2, 3),
    "d": (1, 2, 3),
    "t": (1, 2, 5),
    "h": (2, 4, 7, 8, 9),
    "w": (2, 4, 7, 8, 9),
}
HEADS: dict[str, Any] = dict(num_attention_heads=2, attention_head_dim=8, num_layers=1)
CODECS = sides(1, 4, 7, 8, 9, 16)

TABLE: tuple[tuple[str, dict[str, Any], str, Probe], ...] = (
    (
        "UNet1DModel",
        dict(sample_size=16, block_out_channels=(32, 32, 64), extra_in_channels=64, layers_per_block=1),
        "sample: float32[b, 2, n]; timestep=3",
        {"n": (8, 15, 16, 17, 32)},
    ),
    (
        "UNet3DConditionModel",
        dict(
            sample_size=8,
            block_out_channels=(8, 16),
            layers_per_block=1,
            norm_num_groups=4,
            down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
            up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
            cross_attention_dim=16,
            attention_head_dim=4,
        ),
        "sample: float32[b, 4, f, h, w]; timestep=3; encoder_hidden_states: float32[c, t, 16]",
        {"b": (1, 2), "f": (1, 2), "h": (7, 8), "w": (7, 8), "c": (1, 2), "t": (1, 3)},
    ),
    (
        "UVit2DModel",
        dict(
            hidden_size=16,
            cond_embed_dim=8,
            micro_cond_encode_dim=4,
            micro_cond_embed_dim=20,
            encoder_hidden_size=16,
            vocab_size=20,
            codebook_size=16,
            in_channels=8,
            block_out_channels=8,
            num_res_blocks=1,
            block_num_heads=1,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            downsample=True,
            upsample=True,
            sample_size=8,
        ),
        "input_ids: int64[b, h, w]; encoder_hidden_states: float32[c, t, 16]; pooled_text_emb: float32[d, 8];"
        " micro_conds: float32[e, 5]",
        {"b": (1, 2), "h": (3, 4), "w": (3, 4), "c": (1, 2), "t": (1, 2), "d": (1, 2), "e": (1, 2)},
    ),
    (
        "DiTTransformer2DModel",
        HEADS
        | dict(
            in_channels=4,
            out_channels=8,
            sample_size=8,
            patch_size=2,
            norm_num_groups=4,
            num_embeds_ada_norm=10,
        ),
        LATENTS + "; class_labels: int64[e]",
        AROUND_8 | {"e": (1, 2)},
    ),
    (
        "PixArtTransformer2DModel",
        HEADS
        | dict(
            sample_size=8,
            in_channels=4,
            out_channels=8,
            patch_size=2,
            cross_attention_dim=16,
            caption_channels=16,
            norm_num_groups=4,
            use_additional_conditions=False,
        ),
        f"{LATENTS}; {TEXTS}",
        AROUND_8,
    ),
    (
        "Transformer2DModel",
        HEADS | dict(in_channels=8, norm_num_groups=4, cross_attention_dim=16),
        f"hidden_states: float32[b, 8, h, w]; {TEXTS}",
        AROUND_8,
    ),
    (
        "SD3Transformer2DModel",
        HEADS
        | dict(
            sample_size=8,
            patch_size=2,
            in_channels=4,
            joint_attention_dim=16,
            caption_projection_dim=16,
            pooled_projection_dim=8,
            out_channels=4,
            pos_embed_max_size=8,
        ),
        f"{LATENTS}; {TEXTS}; pooled_projections: float32[e, 8]",
        AROUND_8 | {"e": (1, 2)},
    ),
    (
        "FluxTransformer2DModel",
        HEADS
        | dict(
            patch_size=1,
            in_channels=4,
            num_single_layers=1,
            joint_attention_dim=16,
            pooled_projection_dim=8,
            axes_dims_rope=(2, 2, 4),
            guidance_embeds=False,
        ),
        "hidden_states: float32[b, n, 4]; encoder_hidden_states: float32[c, t, 16];"
        " pooled_projections: float32[d, 8];"
        " timestep: float32[e]; img_ids: float32[m, 3]; txt_ids: float32[s, 3]",
        {
            "b": (1, 2),
            "n": (1, 3),
            "c": (1, 2),
            "t": (1, 3),
            "d": (1, 2),
            "e": (1, 2),
            "m": (1, 3),
            "s": (1, 3),
        },
    ),
    (
        "AuraFlowTransformer2DModel",
        dict(
            sample_size=8,
            patch_size=2,
            in_channels=4,
            num_mmdit_layers=1,
            num_single_dit_layers=1,
            attention_head_dim=8,
            num_attention_heads=2,
            joint_attention_dim=16,
            caption_projection_dim=16,
            out_channels=4,
            pos_embed_max_size=16,
        ),
        f"hidden_states: float32[b, 4, h, w]; {TEXTS}; timestep: float32[c]",
        AROUND_8,
    ),
    (
        "CogVideoXTransformer3DModel",
        HEADS
        | dict(
            in_channels=4,
            out_channels=4,
            time_embed_dim=8,
            text_embed_dim=16,
            sample_width=8,
            sample_height=8,
            sample_frames=5,
            patch_size=2,
            temporal_compression_ratio=4,
            max_text_seq_length=4,
        ),
        "hidden_states: float32[b, f, 4, h, w]; encoder_hidden_states: float32[c, t, 16]; timestep: int64[d]",
        {"b": (1, 2), "f": (1, 2, 3), "h": (7, 8, 10), "w": (7, 8), "c": (1, 2), "t": (3, 4, 5), "d": (1, 2)},
    ),
    (
        "LatteTransformer3DModel",
        HEADS
        | dict(
            sample_size=8,
            in_channels=4,
            out_channels=8,
            patch_size=2,
            cross_attention_dim=16,
            caption_channels=16,
            video_length=2,
        ),
        "hidden_states: float32[b, 4, f, h, w]; timestep: int64[c]; encoder_hidden_states: float32[d, t, 16]",
        AROUND_8 | {"f": (1, 2, 3)},
    ),
    (
        "SanaTransformer2DModel",
        HEADS
        | dict(
            patch_size=1,
            in_channels=4,
            out_channels=4,
            num_cross_attention_heads=2,
            cross_attention_head_dim=8,
            cross_attention_dim=16,
            caption_channels=16,
            sample_size=8,
        ),
        f"hidden_states: float32[b, 4, h, w]; {TEXTS}; timestep: int64[c]",
        AROUND_8,
    ),
    (
        "LTXVideoTransformer3DModel",
        HEADS | dict(in_channels=4, out_channels=4, cross_attention_dim=16, caption_channels=16),
        "hidden_states: float32[b, n, 4]; encoder_hidden_states: float32[d, t, 16]; timestep: int64[c]; "
        "encoder_attention_mask: int64[e, s]; num_frames=1; height=2; width=2",
        {"b": (1, 2), "n": (3, 4, 5), "d": (1, 2), "t": (1, 3), "c": (1, 2), "e": (1, 2), "s": (1, 3)},
    ),
    (
        "PriorTransformer",
        HEADS | dict(embedding_dim=16, num_embeddings=3, additional_embeddings=4),
        "hidden_states: float32[b, 16]; timestep=3; proj_embedding: float32[c, 16];"
        " encoder_hidden_states: float32[d, t, 16]",
        {"b": (1, 2, 3), "c": (1, 2), "d": (1, 2), "t": (2, 3, 4)},
    ),
    (
        "StableAudioDiTModel",
        dict(
            sample_size=4,
            in_channels=4,
            num_layers=1,
            attention_head_dim=8,
            num_attention_heads=2,
            num_key_value_attention_heads=2,
            out_channels=4,
            cross_attention_dim=8,
            time_proj_dim=8,
            global_states_input_dim=8,
            cross_attention_input_dim=8,
        ),
        "hidden_states: float32[b, 4, n]; timestep: float32[c]; encoder_hidden_states: float32[d, t, 8];"
        " global_hidden_states: float32[e, 1, 8]",
        {"b": (1, 2), "n": (1, 4, 5), "c": (1, 2), "d": (1, 2), "t": (1, 3), "e": (1, 2)},
    ),
    (
        "AutoencoderTiny",
        dict(
            encoder_block_out_channels=(8, 8),
            decoder_block_out_channels=(8, 8),
            num_encoder_blocks=(1, 1),
            num_decoder_blocks=(1, 1),
        ),
        "sample: float32[b, 3, h, w]",
        CODECS,
    ),
    (
        "AsymmetricAutoencoderKL",
        dict(
            down_block_out_channels=(8, 16),
            up_block_out_channels=(8, 16),
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            norm_num_groups=4,
        ),
        "sample: float32[b, 3, h, w]",
        CODECS,
    ),
    (
        "AutoencoderDC",
        dict(
            in_channels=3,
            latent_channels=4,
            attention_head_dim=2,
            encoder_block_types="ResBlock",
            decoder_block_types="ResBlock",
            encoder_block_out_channels=(8, 8),
            decoder_block_out_channels=(8, 8),
            encoder_qkv_multiscales=((), ()),
            decoder_qkv_multiscales=((), ()),
            encoder_layers_per_block=(1, 1),
            decoder_layers_per_block=(1, 1),
            downsample_block_type="conv",
            upsample_block_type="interpolate",
            decoder_norm_types="rms_norm",
            decoder_act_fns="silu",
        ),
        "sample: float32[b, 3, h, w]",
        CODECS,
    ),
    (
        "AutoencoderOobleck",
        dict(
            encoder_hidden_size=8,
            downsampling_ratios=[2, 2],
            decoder_channels=8,
            decoder_input_channels=4,
            channel_multiples=[1, 2],
        ),
        "sample: float32[b, 2, n]",
        {"n": (1, 2, 3, 4, 5, 8, 16)},
    ),
    (
        "T2IAdapter",
        dict(channels=[8, 16], num_res_blocks=1, downscale_factor=8),
        "x: float32[b, 3, h, w]",
        sides(1, 8, 15, 16, 17, 24, 32),
    ),
    (
        "ControlNetModel",
        dict(
            block_out_channels=(8, 16),
            layers_per_block=1,
            norm_num_groups=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            cross_attention_dim=16,
            conditioning_embedding_out_channels=(4, 8),
            attention_head_dim=4,
        ),
        "sample: float32[b, 4, h, w]; timestep=3; encoder_hidden_states: float32[c, t, 16];"
        " controlnet_cond: float32[d, 3, g, k]",
        {
            "b": (1, 2),
            "h": (7, 8),
            "w": (7, 8),
            "c": (1, 2),
            "t": (1, 2),
            "d": (1, 2),
            "g": (15, 16),
            "k": (15, 16),
        },
    ),
)
ROWS = tuple(
    Row(f"diffusers_{name.lower()}", "diffusers", build(f"diffusers:{name}", **options), inputs, probe)
    for name, options, inputs, probe in TABLE
)
