"""Nets over waveforms and other long sequences: the shortest input, and what strides leave."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry, always, broadcast, conv, fits

WAV2VEC = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))


class FeatureExtractor(nn.Module):
    """The seven convolutions of wav2vec 2.0: 400 samples at least."""

    def __init__(self, dim: int = 4):
        super().__init__()
        layers = []
        for i, (kernel, stride) in enumerate(WAV2VEC):
            layers.append(
                nn.Sequential(
                    nn.Conv1d(1 if i == 0 else dim, dim, kernel, stride, bias=False),
                    nn.GroupNorm(dim, dim) if i == 0 else nn.Identity(),
                    nn.GELU(),
                )
            )
        self.conv_layers = nn.ModuleList(layers)
        self.layer_norm = nn.LayerNorm(dim)
        self.project = nn.Linear(dim, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = x.unsqueeze(1)
        for layer in self.conv_layers:
            x = layer(x)
        return self.project(self.layer_norm(x.transpose(1, 2)))


class M5(nn.Module):
    """Raw waveforms to words, four convolutions and four pools."""

    def __init__(self, channels: int = 4):
        super().__init__()
        self.conv1 = nn.Conv1d(1, channels, kernel_size=80, stride=4)
        self.bn1 = nn.BatchNorm1d(channels)
        self.pool1 = nn.MaxPool1d(4)
        self.conv2 = nn.Conv1d(channels, channels, kernel_size=3)
        self.bn2 = nn.BatchNorm1d(channels)
        self.pool2 = nn.MaxPool1d(4)
        self.conv3 = nn.Conv1d(channels, 2 * channels, kernel_size=3)
        self.bn3 = nn.BatchNorm1d(2 * channels)
        self.pool3 = nn.MaxPool1d(4)
        self.fc1 = nn.Linear(2 * channels, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool1(F.relu(self.bn1(self.conv1(x))))
        x = self.pool2(F.relu(self.bn2(self.conv2(x))))
        x = self.pool3(F.relu(self.bn3(self.conv3(x))))
        x = F.avg_pool1d(x, x.shape[-1])
        x = x.permute(0, 2, 1)
        return F.log_softmax(self.fc1(x), dim=2)


class CausalConv1d(nn.Conv1d):
    def forward(self, input: Tensor) -> Tensor:
        left = (self.kernel_size[0] - 1) * self.dilation[0]
        return super().forward(F.pad(input, (left, 0)))


class WaveNet(nn.Module):
    """Gated dilated convolutions; padded on the left, or valid with residuals and skips cropped."""

    def __init__(self, causal: bool = True, channels: int = 4):
        super().__init__()
        kind = CausalConv1d if causal else nn.Conv1d
        self.start = nn.Conv1d(1, channels, 1)
        self.dilated = nn.ModuleList([kind(channels, 2 * channels, 2, dilation=2**i) for i in range(5)])
        self.residual = nn.ModuleList([nn.Conv1d(channels, channels, 1) for _ in range(5)])
        self.skip = nn.ModuleList([nn.Conv1d(channels, channels, 1) for _ in range(5)])
        self.end = nn.Conv1d(channels, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.start(x)
        skip: Tensor | int = 0
        for dilated, residual_conv, skip_conv in zip(self.dilated, self.residual, self.skip, strict=True):
            filter, gate = dilated(x).chunk(2, dim=1)
            y = torch.tanh(filter) * torch.sigmoid(gate)
            s = skip_conv(y)
            if isinstance(skip, Tensor):
                skip = skip[:, :, -s.size(2) :]
            skip = s + skip
            x = residual_conv(y) + x[:, :, -y.size(2) :]
        return self.end(F.relu(skip))


class Chomp1d(nn.Module):
    def __init__(self, chomp_size: int):
        super().__init__()
        self.chomp_size = chomp_size

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, : -self.chomp_size].contiguous()


class TCN(nn.Module):
    def __init__(self, inputs: int = 3, channels: int = 6, levels: int = 3):
        super().__init__()
        blocks = []
        for i in range(levels):
            dilation = 2**i
            blocks.append(
                nn.Sequential(
                    nn.Conv1d(
                        inputs if i == 0 else channels, channels, 3, padding=2 * dilation, dilation=dilation
                    ),
                    Chomp1d(2 * dilation),
                    nn.ReLU(),
                )
            )
        self.downsample = nn.Conv1d(inputs, channels, 1)
        self.network = nn.Sequential(*blocks)
        self.linear = nn.Linear(channels, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.network(x) + self.downsample(x))
        return self.linear(y[:, :, -1])


class Frames(nn.Module):
    """Overlapping frames by unfold, a window, a matrix in place of a transform."""

    def __init__(self, size: int = 32, hop: int = 10, mels: int = 6):
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))
        self.register_buffer("mel", torch.zeros(size, mels))

    def forward(self, wave: Tensor) -> Tensor:
        wave = wave - wave.mean(dim=-1, keepdim=True)
        frames = wave.unfold(-1, self.size, self.hop) * self.window
        spectrum = (frames @ self.mel).clamp_min(1e-6).log()
        return (spectrum - spectrum.mean(1, keepdim=True)).transpose(1, 2)


class ReflectFrames(nn.Module):
    """Centred frames: reflection padding wants more samples than it pads."""

    def __init__(self, size: int = 16):
        super().__init__()
        self.size = size

    def forward(self, wave: Tensor) -> Tensor:
        half = self.size // 2
        wave = F.pad(wave.unsqueeze(1), (half, half), mode="reflect").squeeze(1)
        return wave.unfold(1, self.size, self.size // 4).abs().amax(-1)


class Demucs(nn.Module):
    """Pads to a length that survives every stride, and trims the result."""

    def __init__(self, depth: int = 3, kernel: int = 8, stride: int = 4, channels: int = 4):
        super().__init__()
        self.depth, self.kernel, self.stride = depth, kernel, stride
        self.encoder = nn.ModuleList(
            [nn.Conv1d(1 if i == 0 else channels, channels, kernel, stride) for i in range(depth)]
        )
        self.lstm = nn.LSTM(channels, channels)
        self.decoder = nn.ModuleList(
            [
                nn.ConvTranspose1d(channels, 1 if i == 0 else channels, kernel, stride)
                for i in reversed(range(depth))
            ]
        )

    def valid_length(self, length: int) -> int:
        for _ in range(self.depth):
            length = math.ceil((length - self.kernel) / self.stride) + 1
            length = max(length, 1)
        for _ in range(self.depth):
            length = (length - 1) * self.stride + self.kernel
        return int(length)

    def forward(self, mix: Tensor) -> Tensor:
        length = mix.shape[-1]
        x = F.pad(mix, (0, self.valid_length(length) - length))
        skips = []
        for encode in self.encoder:
            x = F.relu(encode(x))
            skips.append(x)
        x = x.permute(2, 0, 1)
        x, _ = self.lstm(x)
        x = x.permute(1, 2, 0)
        for decode in self.decoder:
            x = x + skips.pop(-1)[..., : x.shape[-1]]
            x = decode(x)
        return x[..., :length]


class SpeechUNet(nn.Module):
    """A one-dimensional U-Net whose transposed convolutions miss odd lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Conv1d(2, 4, 5, stride=2, padding=2)
        self.down2 = nn.Conv1d(4, 8, 5, stride=2, padding=2)
        self.up2 = nn.ConvTranspose1d(8, 4, 4, stride=2, padding=1)
        self.up1 = nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y1 = F.relu(self.down1(x))
        y2 = F.relu(self.down2(y1))
        y = self.up2(y2) + y1
        return self.up1(y) + x


def speech_unet_accepts(b: int, n: int) -> bool:
    half = conv(n, 5, 2, 2)
    middle = broadcast(2 * conv(half, 5, 2, 2), half)
    return middle is not None and broadcast(2 * middle, n) is not None


class TextCNN(nn.Module):
    """Filters over 3, 4 and 5 words, the largest of each over time."""

    def __init__(self, sizes: tuple[int, ...] = (3, 4, 5)):
        super().__init__()
        self.embed = nn.Embedding(50, 6)
        self.convs = nn.ModuleList([nn.Conv2d(1, 4, (k, 6)) for k in sizes])
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(4 * len(sizes), 2)

    def forward(self, words: Tensor) -> Tensor:
        x = self.embed(words).unsqueeze(1)
        x = [F.relu(conv(x)).squeeze(3) for conv in self.convs]
        x = [F.max_pool1d(i, i.size(2)).squeeze(2) for i in x]
        x = torch.cat(x, 1)
        return self.fc(self.dropout(x))


def m5_accepts(b: int, n: int) -> bool:
    return fits(n, (80, 4), (4, 4), (3, 1), (4, 4), (3, 1), (4, 4))


ENTRIES = (
    Entry(
        "wav2vec_features",
        FeatureExtractor,
        "x: float32[b, n]",
        lambda b, n: n >= 400,
        "refined",
        probe={"b": (1, 2), "n": (1, 10, 398, 399, 400, 401, 719, 720, 1000)},
    ),
    Entry(
        "m5",
        lambda: M5().eval(),
        "x: float32[b, 1, n]",
        m5_accepts,
        "refined",
        probe={"b": (1, 2), "n": (80, 300, 484, 488, 490, 491, 492, 493, 494, 500, 748, 800)},
    ),
    Entry(
        "wavenet_causal",
        WaveNet,
        "x: float32[b, 1, n]",
        always,
        "proved",
        probe={"b": (1, 2), "n": (1, 2, 31, 32, 50)},
    ),
    Entry(
        "wavenet_valid",
        lambda: WaveNet(causal=False),
        "x: float32[b, 1, n]",
        lambda b, n: n >= 32,
        "refined",
        probe={"b": (1, 2), "n": (1, 2, 16, 31, 32, 33, 50)},
    ),
    Entry("tcn", TCN, "x: float32[b, 3, n]", always, "proved", probe={"b": (1, 2), "n": (1, 2, 9, 30)}),
    Entry(
        "frames",
        Frames,
        "wave: float32[b, n]",
        lambda b, n: n >= 32,
        "refined",
        probe={"b": (1, 2), "n": (1, 31, 32, 33, 41, 42, 100)},
    ),
    Entry(
        "frames_reflected",
        ReflectFrames,
        "wave: float32[b, n]",
        lambda b, n: n > 8,
        "refined",
        probe={"b": (1, 2), "n": (1, 7, 8, 9, 10, 16, 40)},
    ),
    Entry(
        "demucs",
        Demucs,
        "mix: float32[b, 1, n]",
        always,
        "proved",
        probe={"b": (1, 2), "n": (1, 2, 7, 8, 9, 148, 149, 500)},
    ),
    Entry(
        "speech_unet",
        SpeechUNet,
        "x: float32[b, 2, n]",
        speech_unet_accepts,
        "refined",
        probe={"b": (1, 2), "n": (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 20)},
    ),
    Entry(
        "text_cnn",
        TextCNN,
        "words: int64[b, t]",
        lambda b, t: t >= 5,
        "refined",
        probe={"b": (1, 2), "t": (1, 3, 4, 5, 6, 20)},
    ),
)
