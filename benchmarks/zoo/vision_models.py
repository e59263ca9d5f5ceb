# ruff: noqa: C408  # options read as keyword arguments
"""`transformers`: images, video, sound, series and pairs of image and text."""

from __future__ import annotations

from functools import partial
from typing import Any

from models.packages import IMAGE, PIXELS, PYRAMID, TEXT, hugging_face

from .row import ONLY_32, Probe, Row, sides

SMALL: dict[str, Any] = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
ENCODERS: dict[str, dict[str, Any]] = {  # images of 32 by 32, patches of 8 by 8
    "Beit": dict(use_relative_position_bias=True),
    "Data2VecVision": dict(use_shared_relative_position_bias=True),
    "DeiT": {},
    "Dinov2WithRegisters": {},
    "DINOv3ViT": dict(num_register_tokens=2),
    "IJepa": {},
    "ViTMAE": dict(
        mask_ratio=0.5,
        decoder_hidden_size=16,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=16,
    ),
    "ViTMSN": {},
    "VitDet": dict(pretrain_image_size=32, window_size=2, window_block_indices=[0]),
    "Yolos": dict(num_detection_tokens=3, image_size=[32, 32]),
    "SiglipVision": {},
    "AltCLIPVision": {},
    "CLIPSegVision": {},
    "BlipVision": {},
    "Aimv2Vision": {},
    "MLCDVision": {},
    "OwlViTVision": {},
    "GroupViTVision": dict(depths=[1, 1], num_group_tokens=[4, 0], num_output_groups=[4, 4], image_size=32),
    "PixtralVision": dict(head_dim=8),
    "InternVLVision": dict(image_size=[32, 32], patch_size=[8, 8]),
}
BACKBONES: dict[str, dict[str, Any]] = {  # images of any size from some size up
    "Bit": dict(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], embedding_size=8, num_groups=4),
    "ConvNextV2": PYRAMID,
    "Cvt": dict(embed_dim=[8, 16, 16], num_heads=[1, 2, 2], depth=[1, 2, 3]),
    "DINOv3ConvNext": PYRAMID,
    "EfficientNet": dict(width_coefficient=0.25, depth_coefficient=0.25, hidden_dim=320),
    "FocalNet": dict(
        embed_dim=8, depths=[1, 1], focal_levels=[1, 1], focal_windows=[3, 3], hidden_sizes=[8, 16]
    ),
    "GLPN": dict(PYRAMID, num_encoder_blocks=4, num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=8),
    "HGNetV2:ForImageClassification": {},
    "MobileNetV1": dict(depth_multiplier=0.25),
    "MobileNetV2": dict(depth_multiplier=0.25),
    "MobileViT": dict(
        hidden_sizes=[16, 16, 16], neck_hidden_sizes=[4, 4, 8, 8, 8, 8, 16], num_attention_heads=2
    ),
    "MobileViTV2": dict(width_multiplier=0.25),
    "PoolFormer": dict(hidden_sizes=[4, 8, 8, 16], depths=[1, 1, 1, 1]),
    "PvtV2": dict(hidden_sizes=[4, 8, 8, 16], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]),
    "RegNet": dict(PYRAMID, embedding_size=4, groups_width=4),
    "SwiftFormer": dict(embed_dims=[8, 8, 16, 16], depths=[1, 1, 1, 1]),
    "Swin2SR": dict(image_size=16, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4),
    "Swinv2": dict(image_size=32, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4),
    "SuperPoint:ForKeypointDetection": dict(
        encoder_hidden_sizes=[8, 8, 8, 8],
        decoder_hidden_size=8,
        keypoint_decoder_dim=65,
        descriptor_decoder_dim=8,
    ),
    "TextNet": {},
}
AROUND_32 = sides(1, 31, 32, 33, 48, 64)
VIDEO = "pixel_values: float32[b, f, 3, h, w]"
FRAMES: Probe = {"b": (1, 2), "f": (1, 2, 3, 4, 5), "h": (31, 32, 33), "w": (31, 32, 33)}
WAVE = "input_values: float32[b, n]"
WAVES: Probe = {"b": (1, 2), "n": (1, 10, 399, 400, 401, 720, 1000)}
SOUND: dict[str, Any] = SMALL | dict(
    conv_dim=[4] * 7, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, num_hidden_layers=1
)
RECOGNISERS: dict[str, dict[str, Any]] = {
    "Hubert": {},
    "WavLM": {},
    "UniSpeech": {},
    "UniSpeechSat": {},
    "Wav2Vec2Conformer": dict(position_embeddings_type="relative", conv_depthwise_kernel_size=3),
    "Data2VecAudio": dict(conv_pos_kernel_size=3, num_conv_pos_embeddings=2),
    "SEW": dict(conv_dim=[4] * 13, squeeze_factor=2),
}
SERIES: dict[str, Any] = dict(
    prediction_length=4,
    context_length=12,
    lags_sequence=[1, 2],
    d_model=16,
    encoder_layers=1,
    decoder_layers=1,
    encoder_ffn_dim=16,
    decoder_ffn_dim=16,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    num_time_features=1,
)
PAST = (
    "past_values: float32[b, n]; past_time_features: float32[b, n, 1]; past_observed_mask: float32[b, n];"
    " future_values: float32[b, m]; future_time_features: float32[b, m, 1]"
)
PASTS: Probe = {"b": (1, 2), "n": (13, 14, 15, 16), "m": (1, 3, 4, 5)}
PATCHED: dict[str, Any] = dict(
    num_input_channels=3,
    context_length=16,
    patch_length=4,
    patch_stride=4,
    d_model=16,
    num_hidden_layers=1,
    num_layers=1,
    num_attention_heads=2,
    ffn_dim=16,
)
TOWERS: dict[str, Any] = dict(text_config=TEXT, vision_config=IMAGE, projection_dim=8)
BOTH = "input_ids: int64[b, t]; pixel_values: float32[c, 3, h, w]"
BOTH_SIZES: Probe = {"b": (1, 2, 3), "t": (1, 5, 64, 65), "c": (1, 2, 3), "h": (31, 32, 33), "w": (31, 32)}


def row(model: str, options: dict[str, Any], inputs: str, probe: Probe) -> Row:
    name = f"hf_{model.replace(':', '_').lower()}"
    return Row(name, "transformers", partial(hugging_face, model, options), inputs, probe)


ROWS = (
    *(row(model, IMAGE | options, PIXELS, ONLY_32) for model, options in ENCODERS.items()),
    *(row(model, options, PIXELS, AROUND_32) for model, options in BACKBONES.items()),
    row(
        "Pvt",
        dict(PYRAMID, image_size=32, num_encoder_blocks=4, num_attention_heads=[1, 2, 2, 4]),
        PIXELS,
        ONLY_32,
    ),
    row(
        "Levit",
        dict(
            image_size=32,
            hidden_sizes=[16, 16, 16],
            num_attention_heads=[2, 2, 2],
            depths=[1, 1, 1],
            key_dim=[8, 8, 8],
        ),
        PIXELS,
        ONLY_32,
    ),
    row(
        "Hiera",
        dict(
            image_size=[32, 32],
            patch_stride=[4, 4],
            embed_dim=8,
            depths=[1, 1],
            num_heads=[1, 2],
            query_stride=[2, 2],
            num_query_pool=1,
            masked_unit_size=[4, 4],
            masked_unit_attention=[True, False],
        ),
        PIXELS,
        ONLY_32,
    ),
    row(
        "DPT:ForDepthEstimation",
        IMAGE
        | dict(
            num_hidden_layers=4,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[4, 8, 8, 8],
            fusion_hidden_size=8,
        ),
        PIXELS,
        ONLY_32,
    ),
    row(
        "ImageGPT",
        dict(vocab_size=60, n_positions=64, n_embd=16, n_layer=2, n_head=2),
        "input_ids: int64[b, t]",
        {"b": (1, 2), "t": (1, 2, 63, 64, 65)},
    ),
    row("Timesformer", IMAGE | dict(num_frames=4), VIDEO, FRAMES),
    row("VideoMAE", IMAGE | dict(num_frames=4, tubelet_size=2), VIDEO, FRAMES),
    row("Vivit", IMAGE | dict(num_frames=4, tubelet_size=[2, 8, 8]), VIDEO, FRAMES),
    row(
        "AST",
        SMALL | dict(patch_size=4, frequency_stride=4, time_stride=4, max_length=16, num_mel_bins=8),
        "input_values: float32[b, t, m]",
        {"t": (8, 15, 16, 17), "m": (7, 8, 9)},
    ),
    *(row(model, SOUND | options, WAVE, WAVES) for model, options in RECOGNISERS.items()),
    row(
        "Wav2Vec2Bert",
        SMALL | dict(feature_projection_input_dim=8, conv_depthwise_kernel_size=3),
        "input_features: float32[b, t, 8]",
        {"t": (1, 2, 5, 9)},
    ),
    row(
        "Speech2Text",
        dict(
            vocab_size=60,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            conv_channels=8,
            input_feat_per_channel=8,
            max_source_positions=20,
            max_target_positions=12,
        ),
        "input_features: float32[b, n, 8]; decoder_input_ids: int64[c, t]",
        {"b": (1, 2), "n": (1, 4, 79, 80, 81), "c": (1, 2), "t": (1, 12, 13)},
    ),
    row(
        "Moonshine",
        dict(
            vocab_size=60,
            hidden_size=16,
            intermediate_size=16,
            encoder_num_hidden_layers=1,
            decoder_num_hidden_layers=1,
            encoder_num_attention_heads=2,
            decoder_num_attention_heads=2,
        ),
        "input_values: float32[b, n]; decoder_input_ids: int64[c, t]",
        {"b": (1, 2), "n": (100, 894, 895, 896, 1300), "c": (1, 2), "t": (1, 5)},
    ),
    row(
        "Encodec",
        dict(
            num_filters=4,
            hidden_size=8,
            codebook_size=8,
            codebook_dim=8,
            upsampling_ratios=[2, 2],
            num_lstm_layers=1,
            target_bandwidths=[24.0],
        ),
        "input_values: float32[b, 1, n]",
        {"n": (1, 2, 3, 4, 15, 16, 40)},
    ),
    row(
        "Dac",
        dict(
            encoder_hidden_size=8,
            downsampling_ratios=[2, 2],
            decoder_hidden_size=16,
            codebook_size=8,
            codebook_dim=4,
            n_codebooks=2,
            upsampling_ratios=[2, 2],
        ),
        "input_values: float32[b, 1, n]",
        {"n": (1, 2, 3, 4, 15, 16, 40)},
    ),
    row("TimeSeriesTransformer", SERIES, PAST, PASTS),
    row("Informer", SERIES, PAST, PASTS),
    row("Autoformer", SERIES | dict(moving_average=3), PAST, PASTS),
    row("PatchTST", PATCHED, "past_values: float32[b, t, 3]", {"t": (8, 15, 16, 17)}),
    row("PatchTSMixer", PATCHED, "past_values: float32[b, t, 3]", {"t": (8, 15, 16, 17)}),
    row(
        "DecisionTransformer",
        dict(state_dim=4, act_dim=3, hidden_size=16, n_layer=1, n_head=2, max_ep_len=64),
        "states: float32[b, t, 4]; actions: float32[b, t, 3]; rewards: float32[b, t, 1];"
        " returns_to_go: float32[b, t, 1]; timesteps: int64[b, t]; attention_mask: int64[b, t]",
        {"t": (1, 2, 5)},
    ),
    row("CLIP", TOWERS, BOTH, BOTH_SIZES),
    row("Siglip", TOWERS, BOTH, BOTH_SIZES),
    row("ChineseCLIP", TOWERS, BOTH, BOTH_SIZES),
    row(
        "Blip:ForImageTextRetrieval",
        dict(text_config=TEXT | dict(encoder_hidden_size=16), vision_config=IMAGE, image_text_hidden_size=8),
        BOTH,
        BOTH_SIZES,
    ),
    row("Vilt", TEXT | dict(image_size=32, patch_size=8), BOTH, BOTH_SIZES),
    row("Git", TEXT | dict(vision_config=IMAGE, num_image_with_embedding=None), BOTH, BOTH_SIZES),
    row(
        "LayoutLM",
        TEXT | dict(max_2d_position_embeddings=64),
        "input_ids: int64[b, t]; bbox: int64[c, s, 4]",
        {"b": (1, 2), "t": (1, 5, 64, 65), "c": (1, 2), "s": (1, 5, 64)},
    ),
)
