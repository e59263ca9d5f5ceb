# ruff: noqa: C408  # options read as keyword arguments
"""Models of public packages, built small from their configurations: no network, no weights.

Nothing is imported before a model is built. The extra `zoo` brings the packages.
"""

from dataclasses import replace
from importlib import import_module
from typing import Any

from torch import nn

from .entry import Entry, always, broadcast, conv

TEXT = dict(
    vocab_size=60,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=64,
)
TRANSLATION = dict(
    vocab_size=60,
    d_model=16,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=32,
    decoder_ffn_dim=32,
    max_position_embeddings=64,
    pad_token_id=1,
    bos_token_id=0,
    eos_token_id=2,
    decoder_start_token_id=2,
    forced_eos_token_id=2,
)
IMAGE = dict(
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    image_size=32,
    patch_size=8,
)
T5 = dict(vocab_size=60, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
PYRAMID = dict(hidden_sizes=[4, 8, 8, 16], depths=[1, 1, 1, 1])


def hugging_face(model: str, *settings: dict[str, Any], **more: Any) -> nn.Module:
    """`transformers` by the stem of a model's name: Bert, or Bert:ForMaskedLM where the head is not
    `Model`.
    """
    package = import_module("transformers")
    stem, _, head = model.partition(":")
    options = {key: value for setting in (*settings, more) for key, value in setting.items()}
    config = getattr(package, f"{stem}Config")(**options)
    return getattr(package, f"{stem}{head or 'Model'}")(config).eval()


def diffusers(model: str, **options: Any) -> nn.Module:
    return getattr(import_module("diffusers"), model)(layers_per_block=1, norm_num_groups=4, **options).eval()


def monai(model: str, **options: Any) -> nn.Module:
    return getattr(import_module("monai.networks.nets"), model)(
        in_channels=1, out_channels=2, **options
    ).eval()


def unet2d() -> nn.Module:
    return diffusers(
        "UNet2DModel",
        sample_size=8,
        block_out_channels=(8, 16, 16),
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    )


def unet2d_condition() -> nn.Module:
    return diffusers(
        "UNet2DConditionModel",
        sample_size=8,
        block_out_channels=(8, 16, 16),
        attention_head_dim=4,
        cross_attention_dim=12,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    )


def autoencoder(model: str, depth: int, **options: Any) -> nn.Module:
    return diffusers(
        model,
        block_out_channels=(8, 16, 16)[:depth],
        latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * depth,
        up_block_types=("UpDecoderBlock2D",) * depth,
        **options,
    )


def monai_unet_side(size: int) -> int:
    """The size at the bottom, 0 where the skip does not fit: two strides by 2, of which the inner one must
    be met.
    """
    half = conv(size, 3, 2, 1)
    return half // 2 if half % 2 == 0 else 0


def monai_unet_accepts(b: int, h: int, w: int) -> bool:
    """An instance norm wants more than one pixel, in evaluation too."""
    return monai_unet_side(h) * monai_unet_side(w) > 1


def monai_basic_unet_accepts(b: int, h: int, w: int) -> bool:
    """Four pools by 2, the skips padded to; at the bottom the instance norm wants more than one pixel."""
    return h >= 16 and w >= 16 and (h // 16) * (w // 16) > 1


def doubling_side(size: int, levels: int) -> bool:
    """Strided convolutions down, doubled and added on the way up, where a size of 1 broadcasts."""
    sizes = [size]
    for _ in range(levels):
        sizes.append(conv(sizes[-1], 3, 2, 1))
    up: int | None = sizes.pop()
    while sizes and up is not None:
        up = broadcast(2 * up, sizes.pop())
    return up is not None


def whisper_accepts(b: int, n: int, c: int, t: int) -> bool:
    """The encoder's 20 positions a sample are viewed with the decoder's batch, whether or not they are its
    samples.
    """
    return n == 40 and t <= 12 and 20 * b % c == 0


def divides(divisor: int, *sizes: int) -> bool:
    return all(size % divisor == 0 for size in sizes)


IDS = "input_ids: int64[b, t]"
MASKED = "input_ids: int64[b, t]; attention_mask: int64[b, t]"
PAIR = "input_ids: int64[b, s]; decoder_input_ids: int64[c, t]"
PIXELS = "pixel_values: float32[b, 3, h, w]"
AROUND_64 = {"b": (1, 2), "t": (1, 2, 16, 61, 62, 63, 64, 65, 66, 100)}
PAIRS = {"b": (1, 2, 3), "c": (1, 2, 3), "s": (1, 5, 64, 65), "t": (1, 4, 64, 65)}
PATCHES = {"b": (1, 2), "h": (1, 7, 8, 9, 16, 24, 31, 32, 33, 64), "w": (7, 8, 16, 31, 32, 33, 64)}
SIDES = {"b": (1, 2), "h": (1, 28, 29, 30, 31, 32, 33, 48), "w": (1, 28, 29, 31, 32, 33)}
SMALL = {"b": (1, 2), "h": (1, 2, 3, 4, 5, 6, 7, 8, 12, 16), "w": (1, 2, 4, 5, 6, 8, 16)}


def up_to_64(b: int, t: int) -> bool:
    return t <= 64


def encoder_batch_fits(b: int, s: int, c: int, t: int) -> bool:
    """One encoded sample serves all decoders; otherwise each has its own."""
    return b in (1, c)


def encoder_batch_fits_up_to_64(b: int, s: int, c: int, t: int) -> bool:
    return b in (1, c) and s <= 64 and t <= 64


MODELS = (
    # transformers: encoders
    Entry("hf_bert", lambda: hugging_face("Bert", TEXT), IDS, up_to_64, "refined", probe=AROUND_64),
    Entry("hf_bert_masked", lambda: hugging_face("Bert", TEXT), MASKED, up_to_64, "refined", probe=AROUND_64),
    Entry(
        "hf_bert_short",
        lambda: hugging_face("Bert", TEXT),
        MASKED,
        always,
        "proved",
        ("t <= 64",),
        probe=AROUND_64,
    ),
    Entry(
        "hf_bert_masked_lm",
        lambda: hugging_face("Bert:ForMaskedLM", TEXT),
        "input_ids: int64[b, t]; labels: int64[c, s]",
        lambda b, t, c, s: t <= 64 and b * t == c * s,
        "refined",
        probe={"b": (1, 2, 3), "t": (1, 2, 64, 65), "c": (1, 2, 3), "s": (1, 2, 3, 64)},
    ),
    Entry(
        "hf_bert_classifier",
        lambda: hugging_face("Bert:ForSequenceClassification", TEXT, num_labels=3),
        "input_ids: int64[b, t]; labels: int64[c]",
        lambda b, t, c: t <= 64 and b == c,
        "refined",
        probe={"b": (1, 2, 3), "t": (1, 2, 64, 65), "c": (1, 2, 3)},
    ),
    # Positions count from the padding's index up, so that two of the 64 are never used. They come from the
    # ids: a row of padding alone would be accepted at any length.
    Entry(
        "hf_roberta",
        lambda: hugging_face("Roberta", TEXT),
        IDS,
        lambda b, t: t <= 62,
        "refined",
        probe=AROUND_64,
    ),
    Entry(
        "hf_electra",
        lambda: hugging_face("Electra", TEXT, embedding_size=16),
        IDS,
        up_to_64,
        "refined",
        probe=AROUND_64,
    ),
    Entry(
        "hf_albert",
        lambda: hugging_face("Albert", TEXT, embedding_size=16),
        IDS,
        up_to_64,
        "refined",
        probe=AROUND_64,
    ),
    Entry(
        "hf_mobilebert",
        lambda: hugging_face("MobileBert", TEXT, embedding_size=16, intra_bottleneck_size=16),
        IDS,
        up_to_64,
        "refined",
        probe=AROUND_64,
    ),
    Entry(
        "hf_megatron_bert",
        lambda: hugging_face("MegatronBert", TEXT),
        IDS,
        up_to_64,
        "refined",
        probe=AROUND_64,
    ),
    Entry(
        "hf_distilbert",
        lambda: hugging_face(
            "DistilBert",
            vocab_size=60,
            dim=16,
            hidden_dim=32,
            n_layers=2,
            n_heads=2,
            max_position_embeddings=64,
        ),
        MASKED,
        up_to_64,
        "refined",
        probe=AROUND_64,
    ),
    Entry(
        "hf_deberta",
        lambda: hugging_face("DebertaV2", TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"]),
        IDS,
        up_to_64,
        "refined",
        probe=AROUND_64,
    ),
    Entry("hf_fnet", lambda: hugging_face("FNet", TEXT), IDS, up_to_64, "refined", probe=AROUND_64),
    Entry(
        "hf_t5_encoder",
        lambda: hugging_face("T5:EncoderModel", T5),
        MASKED,
        always,
        "proved",
        probe=AROUND_64,
    ),
    # transformers: decoders
    Entry(
        "hf_gpt2",
        lambda: hugging_face(
            "GPT2:LMHeadModel", vocab_size=60, n_embd=16, n_layer=2, n_head=2, n_positions=64
        ),
        IDS,
        up_to_64,
        "refined",
        probe=AROUND_64,
    ),
    Entry(
        "hf_gpt2_short",
        lambda: hugging_face(
            "GPT2:LMHeadModel", vocab_size=60, n_embd=16, n_layer=2, n_head=2, n_positions=64
        ),
        "input_ids: int64[b, t]; attention_mask: int64[b, t]; use_cache=False",
        always,
        "proved",
        ("t <= 64",),
        probe=AROUND_64,
    ),
    Entry(
        "hf_opt",
        lambda: hugging_face(
            "OPT",
            vocab_size=60,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            ffn_dim=32,
            max_position_embeddings=64,
            word_embed_proj_dim=16,
        ),
        IDS,
        up_to_64,
        "refined",
        probe=AROUND_64,
    ),
    Entry(
        "hf_llama",
        lambda: hugging_face("Llama:ForCausalLM", TEXT, num_key_value_heads=1),
        MASKED,
        always,
        "proved",
        probe=AROUND_64,
    ),
    Entry(
        "hf_llama_loss",
        lambda: hugging_face("Llama:ForCausalLM", TEXT, num_key_value_heads=1),
        "input_ids: int64[b, t]; labels: int64[b, t]",
        always,
        "proved",
        probe=AROUND_64,
    ),
    Entry(
        "hf_mistral",
        lambda: hugging_face("Mistral", TEXT, num_key_value_heads=1, sliding_window=8),
        IDS,
        always,
        "proved",
        probe=AROUND_64,
    ),
    Entry(
        "hf_qwen2",
        lambda: hugging_face("Qwen2", TEXT, num_key_value_heads=1),
        IDS,
        always,
        "proved",
        probe=AROUND_64,
    ),
    Entry("hf_gpt_neox", lambda: hugging_face("GPTNeoX", TEXT), IDS, always, "proved", probe=AROUND_64),
    Entry("hf_phi", lambda: hugging_face("Phi", TEXT), IDS, always, "proved", probe=AROUND_64),
    Entry(
        "hf_bloom",
        lambda: hugging_face("Bloom", vocab_size=60, hidden_size=16, n_layer=2, n_head=2),
        IDS,
        always,
        "proved",
        probe=AROUND_64,
    ),
    # The table of sinusoids grows with the longest input seen.
    Entry(
        "hf_xglm",
        lambda: hugging_face(
            "XGLM",
            vocab_size=60,
            max_position_embeddings=64,
            d_model=16,
            ffn_dim=32,
            num_layers=2,
            attention_heads=2,
        ),
        IDS,
        always,
        "proved",
        probe=AROUND_64,
    ),
    Entry(
        "hf_mamba",
        lambda: hugging_face("Mamba", vocab_size=60, hidden_size=16, num_hidden_layers=2, state_size=4),
        IDS,
        always,
        "proved",
        probe={"b": (1, 2), "t": (1, 2, 3, 4, 5, 9)},
    ),
    # transformers: encoders with decoders
    Entry("hf_t5", lambda: hugging_face("T5", T5), PAIR, encoder_batch_fits, "refined", probe=PAIRS),
    Entry(
        "hf_bart",
        lambda: hugging_face("Bart", TRANSLATION),
        PAIR,
        encoder_batch_fits_up_to_64,
        "refined",
        probe=PAIRS,
    ),
    Entry(
        "hf_marian",
        lambda: hugging_face("Marian", TRANSLATION),
        PAIR,
        encoder_batch_fits_up_to_64,
        "refined",
        probe=PAIRS,
    ),
    Entry(
        "hf_blenderbot_small",
        lambda: hugging_face("BlenderbotSmall", TRANSLATION),
        PAIR,
        encoder_batch_fits_up_to_64,
        "refined",
        probe=PAIRS,
    ),
    Entry(
        "hf_m2m100",
        lambda: hugging_face("M2M100", TRANSLATION),
        PAIR,
        encoder_batch_fits,
        "refined",
        probe=PAIRS,
    ),
    # transformers: images and sound
    Entry(
        "hf_vit",
        lambda: hugging_face("ViT", IMAGE),
        PIXELS,
        lambda b, h, w: h == 32 and w == 32,
        "refined",
        probe=PATCHES,
    ),
    Entry(
        "hf_vit_fixed",
        lambda: hugging_face("ViT", IMAGE),
        "pixel_values: float32[b, 3, 32, 32]",
        always,
        "proved",
        probe={"b": (1, 2, 5)},
    ),
    Entry(
        "hf_vit_interpolated",
        lambda: hugging_face("ViT", IMAGE),
        PIXELS + "; interpolate_pos_encoding=True",
        lambda b, h, w: h >= 8 and w >= 8,
        "refined",
        probe=PATCHES,
    ),
    Entry(
        "hf_dinov2",
        lambda: hugging_face("Dinov2", IMAGE),
        PIXELS,
        lambda b, h, w: h >= 8 and w >= 8,
        "refined",
        probe=PATCHES,
    ),
    Entry(
        "hf_clip_vision",
        lambda: hugging_face("CLIPVision", IMAGE),
        PIXELS,
        lambda b, h, w: h == 32 and w == 32,
        "refined",
        probe=PATCHES,
    ),
    # A stage with a side below the window shrinks the window, and its table of biases stays as it was. It
    # shrinks for good: one small image, and this model refuses every later one.
    Entry(
        "hf_swin",
        lambda: hugging_face(
            "Swin", image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4
        ),
        PIXELS,
        lambda b, h, w: h >= 13 and w >= 13,
        "refined",
        probe={"b": (1, 2), "h": (1, 2, 8, 12, 13, 14, 16, 17, 30), "w": (2, 8, 12, 13, 16, 20)},
    ),
    Entry(
        "hf_convnext",
        lambda: hugging_face("ConvNext", PYRAMID),
        PIXELS,
        lambda b, h, w: h >= 32 and w >= 32,
        "refined",
        probe=SIDES,
    ),
    Entry(
        "hf_segformer",
        lambda: hugging_face(
            "Segformer:ForSemanticSegmentation",
            PYRAMID,
            num_attention_heads=[1, 2, 2, 4],
            decoder_hidden_size=8,
        ),
        PIXELS,
        lambda b, h, w: h >= 29 and w >= 29,
        "refined",
        probe=SIDES,
    ),
    Entry(
        "hf_resnet",
        lambda: hugging_face("ResNet", PYRAMID, embedding_size=4),
        PIXELS,
        always,
        "proved",
        probe=SIDES,
    ),
    Entry(
        "hf_wav2vec2",
        lambda: hugging_face(
            "Wav2Vec2",
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            conv_dim=[4] * 7,
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=2,
        ),
        "input_values: float32[b, n]",
        lambda b, n: n >= 400,
        "refined",
        probe={"b": (1, 2), "n": (1, 10, 399, 400, 401, 719, 720, 1000)},
    ),
    Entry(
        "hf_whisper",
        lambda: hugging_face(
            "Whisper", TRANSLATION, num_mel_bins=8, max_source_positions=20, max_target_positions=12
        ),
        "input_features: float32[b, 8, n]; decoder_input_ids: int64[c, t]",
        whisper_accepts,
        "refined",
        probe={"b": (1, 2, 3), "n": (39, 40, 41), "c": (1, 2, 3, 5), "t": (1, 12, 13)},
    ),
    # diffusers
    Entry(
        "diffusers_unet2d",
        unet2d,
        "sample: float32[b, 3, h, w]; timestep=3",
        lambda b, h, w: divides(4, h, w),
        "refined",
        probe=SMALL,
    ),
    Entry(
        "diffusers_unet2d_steps",
        unet2d,
        "sample: float32[b, 3, h, w]; timestep: int64[c]",
        # One sample meets several steps only until its skips are concatenated with what the steps made of it.
        lambda b, h, w, c: divides(4, h, w) and c in (1, b),
        "refined",
        probe={"b": (1, 2, 3), "h": (4, 6, 8), "w": (4, 8), "c": (1, 2, 3)},
    ),
    Entry(
        "diffusers_unet2d_condition",
        unet2d_condition,
        "sample: float32[b, 4, h, w]; timestep=3; encoder_hidden_states: float32[c, t, 12]",
        lambda b, h, w, c, t: b == c,
        "refined",
        probe={"b": (1, 2, 3), "h": (1, 2, 5, 8), "w": (1, 4, 7), "c": (1, 2, 3), "t": (1, 2, 3)},
    ),
    Entry(
        "diffusers_autoencoder_kl",
        lambda: autoencoder("AutoencoderKL", 3),
        "sample: float32[b, 3, h, w]",
        lambda b, h, w: h >= 4 and w >= 4,
        "refined",
        probe=SMALL,
    ),
    Entry(
        "diffusers_vq",
        lambda: autoencoder("VQModel", 2, num_vq_embeddings=10),
        "sample: float32[b, 3, h, w]",
        lambda b, h, w: h >= 2 and w >= 2,
        "refined",
        probe=SMALL,
    ),
    # monai
    Entry(
        "monai_unet",
        lambda: monai("UNet", spatial_dims=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1),
        "x: float32[b, 1, h, w]",
        monai_unet_accepts,
        "refined",
        probe=SMALL,
    ),
    Entry(
        "monai_unet3d",
        lambda: monai("UNet", spatial_dims=3, channels=(4, 8, 16), strides=(2, 2)),
        "x: float32[b, 1, d, h, w]",
        lambda b, d, h, w: monai_unet_side(d) * monai_unet_side(h) * monai_unet_side(w) > 1,
        "refined",
        probe={"b": (1, 2), "d": (1, 2, 3, 4, 8), "h": (2, 4, 6, 8), "w": (4, 5, 8)},
    ),
    Entry(
        "monai_basic_unet",
        lambda: monai("BasicUNet", spatial_dims=2, features=(4, 4, 8, 8, 8, 4)),
        "x: float32[b, 1, h, w]",
        monai_basic_unet_accepts,
        "refined",
        probe={"b": (1, 2), "h": (1, 8, 15, 16, 17, 31, 32, 33), "w": (15, 16, 17, 32, 33)},
    ),
    Entry(
        "monai_segresnet",
        lambda: monai("SegResNet", spatial_dims=2, init_filters=8),
        "x: float32[b, 1, h, w]",
        # Eight groups of eight channels: a single pixel of a single image is one value a group, which is
        # refused.
        lambda b, h, w: doubling_side(h, 3) and doubling_side(w, 3) and b * h * w > 1,
        "refined",
        probe={"b": (1, 2), "h": (1, 2, 4, 7, 8, 9, 16, 24), "w": (1, 2, 8, 12, 16)},
    ),
    Entry(
        "monai_swin_unetr",
        lambda: monai(
            "SwinUNETR", spatial_dims=2, feature_size=12, depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 2)
        ),
        "x_in: float32[b, 1, h, w]",
        # Checked by the model, but for the instance norm, which wants more than the one pixel that 32 by 32
        # leaves.
        lambda b, h, w: divides(32, h, w) and h * w > 32 * 32,
        "refined",
        probe={"b": (1, 2), "h": (1, 16, 31, 32, 33, 48, 64, 96), "w": (32, 48, 64)},
        needs=("einops",),
    ),
    Entry(
        "monai_unetr",
        lambda: monai(
            "UNETR", spatial_dims=2, img_size=32, feature_size=4, hidden_size=16, mlp_dim=32, num_heads=2
        ),
        "x_in: float32[b, 1, h, w]",
        lambda b, h, w: h == 32 and w == 32,
        "refined",
        probe={"b": (1, 2), "h": (1, 15, 16, 31, 32, 33, 64), "w": (16, 31, 32, 33, 64)},
        needs=("einops",),
    ),
)

PACKAGE = {"hf": "transformers", "diffusers": "diffusers", "monai": "monai"}
PACKAGES: tuple[Entry, ...] = tuple(
    replace(entry, needs=(PACKAGE[entry.name.split("_")[0]], *entry.needs)) for entry in MODELS
)
