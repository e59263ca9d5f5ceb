# ruff: noqa: C408  # options read as keyword arguments
"""`transformers`: language models, beside those of `tests/models/packages.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from models.packages import AROUND_64, IDS, PAIR, PAIRS, TEXT, TRANSLATION, hugging_face
from torch import nn

from .row import Row

# Options by the name of a model's configuration, added to TEXT: width 16, two layers, 64 positions.
ENCODERS: dict[str, dict[str, Any]] = {
    "BertGeneration:Encoder": {},
    "BigBird": dict(block_size=2, num_random_blocks=1, attention_type="original_full"),
    "BigBird:ForMaskedLM": dict(block_size=2, num_random_blocks=1, attention_type="block_sparse"),
    "Camembert": {},
    "Canine": dict(
        local_transformer_stride=8, downsampling_rate=2, num_hash_functions=2, num_hash_buckets=20
    ),
    "ConvBert": dict(embedding_size=16, conv_kernel_size=3, head_ratio=1),
    "Data2VecText": {},
    "Deberta": dict(relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "Ernie": {},
    "Esm": dict(pad_token_id=1, position_embedding_type="rotary"),
    "EuroBert": dict(pad_token_id=0),
    "IBert": {},
    "Lilt": dict(hidden_size=24, pad_token_id=1),
    "Longformer": dict(attention_window=[4, 4]),
    "Luke": dict(entity_vocab_size=10, entity_emb_size=8),
    "MarkupLM": dict(pad_token_id=1),
    "ModernBert": dict(global_attn_every_n_layers=2, local_attention=4, pad_token_id=0),
    "MPNet": {},
    "Mra": {},
    "NomicBert": {},
    "Nystromformer": dict(segment_means_seq_len=16, num_landmarks=4, conv_kernel_size=3),
    "RemBert": dict(input_embedding_size=16, output_embedding_size=16),
    "RobertaPreLayerNorm": {},
    "RoCBert": dict(
        enable_pronunciation=False, enable_shape=False, shape_vocab_size=10, pronunciation_vocab_size=10
    ),
    "RoFormer": dict(embedding_size=16),
    "Splinter": {},
    "SqueezeBert": dict(
        embedding_size=16,
        q_groups=1,
        k_groups=1,
        v_groups=1,
        post_attention_groups=1,
        intermediate_groups=1,
        output_groups=1,
    ),
    "Tapas": {},
    "VisualBert": dict(visual_embedding_dim=8),
    "XLMRoberta": {},
    "XLMRobertaXL": {},
    "Xmod": dict(languages=["en_XX"], default_language="en_XX"),
    "Yoso": dict(use_expectation=True),
}
DECODERS: dict[str, dict[str, Any]] = {
    "Apertus": {},
    "Arcee": {},
    "BioGpt": {},
    "BitNet": {},
    "Cohere": {},
    "Cohere2": dict(sliding_window=8),
    "Cwm": dict(sliding_window=8),
    "DiffLlama": dict(num_key_value_heads=2),
    "Doge": {},
    "Ernie4_5": {},
    "Exaone4": dict(sliding_window=8),
    "Falcon": {},
    "Gemma": dict(head_dim=8),
    "Gemma2": dict(head_dim=8, sliding_window=8),
    "Gemma3Text": dict(head_dim=8, sliding_window=8),
    "Glm": dict(head_dim=8, pad_token_id=0),
    "Glm4": dict(head_dim=8, pad_token_id=0),
    "GPTBigCode": dict(n_embd=16, n_layer=2, n_head=2, n_positions=64),
    "GPTNeoXJapanese": {},
    "Granite": {},
    "Helium": dict(head_dim=8),
    "HunYuanDenseV1": dict(head_dim=8),
    "Lfm2": dict(full_attn_idxs=[1]),
    "Nemotron": {},
    "Olmo": {},
    "Olmo2": {},
    "Olmo3": dict(sliding_window=8),
    "Persimmon": {},
    "Phi3": dict(pad_token_id=0),
    "Qwen3": dict(head_dim=8),
    "SeedOss": dict(head_dim=8),
    "SmolLM3": dict(pad_token_id=0),
    "StableLm": {},
    "Starcoder2": dict(sliding_window=8),
    "VaultGemma": dict(head_dim=8, sliding_window=8),
    # experts
    "Mixtral": dict(num_local_experts=4),
    "Qwen2Moe": dict(num_experts=4, moe_intermediate_size=8, shared_expert_intermediate_size=8),
    "Qwen3Moe": dict(num_experts=4, moe_intermediate_size=8, head_dim=8, num_experts_per_tok=2),
    "Olmoe": dict(num_experts=4, num_experts_per_tok=2),
    "GraniteMoe": dict(num_local_experts=4),
    "Jamba": dict(
        num_experts=2, mamba_d_state=4, attn_layer_period=2, attn_layer_offset=1, use_mamba_kernels=False
    ),
    "GptOss": dict(num_local_experts=4, head_dim=8, sliding_window=8),
    # recurrences
    "Mamba2": dict(num_heads=4, head_dim=8, state_size=4, n_groups=1, chunk_size=4),
    "FalconMamba": dict(state_size=4),
    "RecurrentGemma": dict(lru_width=16, attention_window_size=8, head_dim=8, use_cache=False),
    "Rwkv": dict(attention_hidden_size=16, context_length=64),
}
# Configurations with names of their own for width and depth.
OWN: dict[str, tuple[dict[str, Any], str]] = {
    "CTRL": (dict(vocab_size=60, n_positions=64, n_embd=16, dff=32, n_layer=2, n_head=2), IDS),
    "CodeGen": (dict(vocab_size=60, n_positions=64, n_embd=16, n_layer=2, n_head=4, rotary_dim=4), IDS),
    "GPTJ": (dict(vocab_size=60, n_positions=64, n_embd=16, n_layer=2, n_head=2, rotary_dim=4), IDS),
    "GPTNeo": (
        dict(
            vocab_size=60,
            max_position_embeddings=64,
            hidden_size=16,
            num_layers=2,
            num_heads=2,
            attention_types=[[["global", "local"], 1]],
            window_size=8,
        ),
        IDS,
    ),
    "OpenAIGPT": (dict(vocab_size=60, n_positions=64, n_embd=16, n_layer=2, n_head=2), IDS),
    "Mpt": (dict(vocab_size=60, d_model=16, n_heads=2, n_layers=2, max_seq_len=64, expansion_ratio=2), IDS),
    "Flaubert": (dict(vocab_size=60, emb_dim=16, n_layers=2, n_heads=2, max_position_embeddings=64), IDS),
    "XLM": (dict(vocab_size=60, emb_dim=16, n_layers=2, n_heads=2, max_position_embeddings=64), IDS),
    "XLNet": (dict(vocab_size=60, d_model=16, n_layer=2, n_head=2, d_inner=32), IDS),
    "Funnel": (
        dict(
            vocab_size=60,
            d_model=16,
            n_head=2,
            d_head=8,
            d_inner=32,
            block_sizes=[1, 1],
            num_decoder_layers=1,
        ),
        IDS,
    ),
    "Reformer": (
        dict(
            vocab_size=60,
            hidden_size=16,
            axial_pos_shape=[8, 8],
            axial_pos_embds_dim=[8, 8],
            attn_layers=["local"],
            num_attention_heads=2,
            attention_head_size=8,
            feed_forward_size=32,
            local_attn_chunk_length=4,
            max_position_embeddings=64,
            is_decoder=True,
        ),
        IDS,
    ),
    "Perceiver": (
        dict(
            d_model=16,
            d_latents=16,
            num_latents=8,
            num_blocks=1,
            num_self_attends_per_block=1,
            num_self_attention_heads=2,
            num_cross_attention_heads=2,
        ),
        "inputs: float32[b, t, 16]",
    ),
    "MT5": (dict(vocab_size=60, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2), PAIR),
    "UMT5": (dict(vocab_size=60, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2), PAIR),
    "LongT5": (
        dict(
            vocab_size=60,
            d_model=16,
            d_kv=8,
            d_ff=32,
            num_layers=2,
            num_heads=2,
            local_radius=3,
            encoder_attention_type="local",
        ),
        PAIR,
    ),
    "SwitchTransformers": (
        dict(
            vocab_size=60,
            d_model=16,
            d_kv=8,
            d_ff=32,
            num_layers=2,
            num_heads=2,
            num_experts=2,
            num_sparse_encoder_layers=1,
            num_sparse_decoder_layers=1,
        ),
        PAIR,
    ),
    "ProphetNet": (
        dict(
            vocab_size=60,
            hidden_size=16,
            encoder_ffn_dim=32,
            num_encoder_layers=1,
            num_decoder_layers=1,
            num_encoder_attention_heads=2,
            num_decoder_attention_heads=2,
            decoder_ffn_dim=32,
            max_position_embeddings=64,
            ngram=2,
        ),
        PAIR,
    ),
    "FSMT": (
        dict(
            src_vocab_size=60,
            tgt_vocab_size=60,
            langs=["en", "de"],
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            max_position_embeddings=64,
        ),
        PAIR,
    ),
}
TRANSLATORS: dict[str, dict[str, Any]] = {
    "Blenderbot": {},
    "BigBirdPegasus": dict(attention_type="original_full"),
    "LED": dict(attention_window=4, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64),
    "MBart": {},
    "Mvp": {},
    "NllbMoe": dict(num_experts=2, encoder_sparse_step=1, decoder_sparse_step=1),
    "Pegasus": {},
    "PegasusX": dict(block_size=4, num_global_tokens=2),
    "PLBart": {},
}
NAMES = {"hf_deberta": "hf_deberta_v1"}  # tests/models/packages.py calls the second version so


def row(model: str, builder: Callable[[], nn.Module], inputs: str) -> Row:
    probe = PAIRS if inputs is PAIR else AROUND_64
    name = f"hf_{model.replace(':', '_').lower()}"
    return Row(NAMES.get(name, name), "transformers", builder, inputs, probe)


ROWS = (
    *(row(model, partial(hugging_face, model, TEXT, **options), IDS) for model, options in ENCODERS.items()),
    *(
        row(model, partial(hugging_face, model, TEXT, **dict(num_key_value_heads=1) | options), IDS)
        for model, options in DECODERS.items()
    ),
    *(row(model, partial(hugging_face, model, options), inputs) for model, (options, inputs) in OWN.items()),
    *(
        row(model, partial(hugging_face, model, TRANSLATION, **options), PAIR)
        for model, options in TRANSLATORS.items()
    ),
)
