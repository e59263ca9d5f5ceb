# options read as keyword arguments
"""torch's own models and layers that are models by themselves: nothing has to be installed for them."""

from __future__ import annotations

from torch import nn

from .row import Row, build

SEQUENCE = {"b": (1, 2, 3), "t": (1, 2, 3, 5)}
TWO = {"b": (1, 2, 3), "c": (1, 2, 3), "s": (1, 2, 5), "t": (1, 2, 5)}


def encoder(**options: object) -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, **options)  # type: ignore[arg-type]
    return nn.TransformerEncoder(layer, 2).eval()


def decoder(**options: object) -> nn.Module:
    layer = nn.TransformerDecoderLayer(16, 2, 32, **options)  # type: ignore[arg-type]
    return nn.TransformerDecoder(layer, 2).eval()


ROWS = (
    Row("torch_rnn", "torch", build("torch.nn:RNN", 8, 16, 2), "input: float32[t, b, 8]", SEQUENCE),
    Row(
        "torch_lstm",
        "torch",
        build("torch.nn:LSTM", 8, 16, 2, batch_first=True, bidirectional=True),
        "input: float32[b, t, 8]",
        SEQUENCE,
    ),
    Row(
        "torch_lstm_projected",
        "torch",
        build("torch.nn:LSTM", 8, 16, proj_size=4),
        "input: float32[t, b, 8]; hx[0]: float32[1, c, 4]; hx[1]: float32[1, c, 16]",
        SEQUENCE,
    ),
    Row(
        "torch_gru",
        "torch",
        build("torch.nn:GRU", 8, 16, 2),
        "input: float32[t, b, 8]; hx: float32[2, c, 16]",
        {**SEQUENCE, "c": (1, 2, 3)},
    ),
    Row("torch_lstm_cell", "torch", build("torch.nn:LSTMCell", 8, 16), "input: float32[b, 8]", SEQUENCE),
    Row(
        "torch_attention",
        "torch",
        build("torch.nn:MultiheadAttention", 16, 2, batch_first=True),
        "query: float32[b, t, 16]; key: float32[c, s, 16]; value: float32[c, s, 16]",
        TWO,
    ),
    Row("torch_encoder", "torch", encoder, "src: float32[t, b, 16]", SEQUENCE),
    Row(
        "torch_encoder_masked",
        "torch",
        lambda: encoder(batch_first=True),
        "src: float32[b, t, 16]; src_key_padding_mask: bool[c, s]",
        TWO,
    ),
    Row(
        "torch_encoder_norm_first",
        "torch",
        lambda: encoder(norm_first=True, activation="gelu"),
        "src: float32[t, b, 16]; mask: bool[s, s]",
        TWO,
    ),
    Row("torch_decoder", "torch", decoder, "tgt: float32[t, b, 16]; memory: float32[s, c, 16]", TWO),
    Row(
        "torch_transformer",
        "torch",
        build("torch.nn:Transformer", 16, 2, 1, 1, 32, batch_first=True),
        "src: float32[b, s, 16]; tgt: float32[c, t, 16]",
        TWO,
    ),
    Row(
        "torch_adaptive_softmax",
        "torch",
        build("torch.nn:AdaptiveLogSoftmaxWithLoss", 8, 20, cutoffs=[5, 10]),
        "input_: float32[b, 8]; target_: int64[c]",
        {"b": (1, 2, 3), "c": (1, 2, 3)},
    ),
    Row(
        "torch_embedding_bag",
        "torch",
        build("torch.nn:EmbeddingBag", 20, 8),
        "input: int64[n]; offsets: int64[b]",
        {"n": (1, 2, 3, 5), "b": (1, 2, 3)},
    ),
)
