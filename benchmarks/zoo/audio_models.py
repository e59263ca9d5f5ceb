# options read as keyword arguments
"""`torchaudio`: recognition, separation and synthesis of speech, and the transforms before them."""

from __future__ import annotations

from .row import Row, build

WAVE = "waveform: float32[b, n]"
AROUND_400 = {"b": (1, 2), "n": (1, 200, 201, 400, 401, 600)}

ROWS = (
    Row(
        "audio_wav2letter",
        "torchaudio",
        build("torchaudio.models:Wav2Letter", 5, "mfcc", 8),
        "x: float32[b, 8, t]",
        {"t": (1, 6, 10, 40)},
    ),
    Row(
        "audio_deepspeech",
        "torchaudio",
        build("torchaudio.models:DeepSpeech", 8, 16, 5),
        "x: float32[b, 1, t, 8]",
        {"t": (1, 2, 5)},
    ),
    Row(
        "audio_conv_tasnet",
        "torchaudio",
        build(
            "torchaudio.models:ConvTasNet",
            enc_kernel_size=8,
            enc_num_feats=16,
            msk_num_feats=8,
            msk_num_hidden_feats=8,
            msk_num_layers=2,
            msk_num_stacks=1,
        ),
        "input: float32[b, 1, n]",
        {"n": (1, 4, 7, 8, 9, 40)},
    ),
    Row(
        "audio_wavernn",
        "torchaudio",
        build(
            "torchaudio.models:WaveRNN",
            upsample_scales=[2, 2],
            n_classes=8,
            hop_length=4,
            n_res_block=1,
            n_rnn=8,
            n_fc=8,
            kernel_size=3,
            n_freq=8,
            n_hidden=8,
            n_output=8,
        ),
        "waveform: float32[b, 1, n]; specgram: float32[b, 1, 8, t]",
        {"n": (4, 8, 12, 13), "t": (3, 4, 5)},
    ),
    Row(
        "audio_hdemucs",
        "torchaudio",
        build("torchaudio.models:hdemucs_low", ["vocals"]),
        "input: float32[b, 2, n]",
        {"b": (1,), "n": (1024, 4096, 5000)},
    ),
    Row(
        "audio_wav2vec2",
        "torchaudio",
        build(
            "torchaudio.models:wav2vec2_model",
            "group_norm",
            [(8, 10, 5), (8, 3, 2)],
            False,
            16,
            0.0,
            4,
            2,
            1,
            2,
            0.0,
            32,
            0.0,
            0.0,
            False,
            0.0,
            5,
        ),
        "waveforms: float32[b, n]",
        {"n": (1, 19, 20, 21, 100)},
    ),
    Row("audio_spectrogram", "torchaudio", build("torchaudio.transforms:Spectrogram"), WAVE, AROUND_400),
    Row(
        "audio_mel_spectrogram",
        "torchaudio",
        build("torchaudio.transforms:MelSpectrogram", n_mels=8),
        WAVE,
        AROUND_400,
    ),
    Row("audio_mfcc", "torchaudio", build("torchaudio.transforms:MFCC", n_mfcc=8), WAVE, AROUND_400),
    Row("audio_resample", "torchaudio", build("torchaudio.transforms:Resample", 8, 6), WAVE, AROUND_400),
)
