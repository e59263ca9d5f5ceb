"""Mistakes that people have reported in public, each rebuilt as a small model of our own.

`source` is the address of the report, `fix` says in a few words what its author or a maintainer did about it.
Sizes are smaller than there, and everything that the mistake does not need is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Reported:
    """A model with a reported mistake. `line` is a piece of the one line that a person would point at."""

    name: str
    source: str
    fix: str
    build: Callable[[], nn.Module]
    inputs: str
    line: str
    repair: str
    """The first repair that is told."""
    kind: Literal["same", "better", "other"]
    """How it compares with the fix: it does the same, it is as good or better, or it is another way."""
    assume: tuple[str, ...] = ()


class MissizedHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(1, 8, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(2))
        self.last = nn.Sequential(nn.Conv2d(8, 16, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(2))
        self.out = nn.Linear(1050, 10)

    def forward(self, image: Tensor) -> Tensor:
        maps = self.last(self.block(image))
        rows = maps.view(maps.size(0), -1)
        return self.out(rows)


class GuessedFeatures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(10, 16)

    def forward(self, table: Tensor) -> Tensor:
        return torch.relu(self.hidden(table))


class GreyFilter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 5)

    def forward(self, photo: Tensor) -> Tensor:
        return torch.relu(self.first(photo))


class MiddleChannels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(1, 32, 3)
        self.expand = nn.Conv2d(64, 64, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.squeeze(x))
        return self.expand(x)


class FaceEmbedding(nn.Module):
    """Made for images of 28; four times smaller maps go into the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1))
        self.embed = nn.Linear(8 * 7 * 7, 16)

    def forward(self, face: Tensor) -> Tensor:
        maps = self.body(face)
        return self.embed(torch.flatten(maps, 1))


class Pairs(nn.Module):
    """Siamese towers whose layers were sized for smaller images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 5)
        self.fc = nn.Linear(64, 2)

    def embed(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1)
        return self.fc(x)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return (self.embed(a) - self.embed(b)).norm(dim=1)


class DeepSkips(nn.Module):
    """Two poolings, so that sizes have to be multiples of 4."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.inner = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.grow = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.leave = nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        near = torch.relu(self.enter(x))
        far = torch.relu(self.inner(F.max_pool2d(near, 2)))
        back = self.grow(far)
        return self.leave(torch.cat((near, back), dim=1))


class GrownSkip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, 4, 3, padding=1)
        self.up = nn.Upsample(scale_factor=4)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.enter(x)
        out = self.up(F.max_pool2d(skip, 4))
        return torch.cat([out, skip], dim=1)


class TwoWayReader(nn.Module):
    """The state is that of a batch first, the layer was not told."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = nn.LSTM(input_size=6, hidden_size=5, num_layers=2, bidirectional=True)

    def forward(self, words: Tensor) -> Tensor:
        h0 = torch.zeros(4, words.size(0), 5)
        c0 = torch.zeros(4, words.size(0), 5)
        out, _ = self.reader(words, (h0, c0))
        return out


class VideoAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(embed_dim=12, num_heads=4)

    def forward(self, query: Tensor, frames: Tensor) -> Tensor:
        out, _ = self.attend(query, frames, frames)
        return out


class PaddedEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(20, 5)

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        out, _ = self.attend(x, x, x, key_padding_mask=pad)
        return out


class JoinedHeads(nn.Module):
    def forward(self, attention: Tensor) -> Tensor:
        t, b = attention.size(1), attention.size(0)
        swapped = attention.transpose(0, 1)
        return swapped.view(t, b * 8)


class AlignedWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, query: Tensor, context: Tensor) -> Tensor:
        batch, length, _ = query.shape
        mixed = torch.bmm(context, query.transpose(1, 2)).transpose(1, 2)
        flat = mixed.view(batch * length, context.shape[1])
        return flat.softmax(-1)


class WarpRegression(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, features: Tensor) -> Tensor:
        x = self.conv(features).permute(0, 2, 3, 1)
        x = x.view(x.size(0), -1)
        return x.tanh()


class TopAccuracy(nn.Module):
    def forward(self, correct: Tensor) -> Tensor:
        first = correct.t()[:5].view(-1)
        return first.float().sum()


class BeamScores(nn.Module):
    def forward(self, scores: Tensor) -> Tensor:
        b = scores.size(0)
        best, _ = torch.sort(scores.transpose(1, 2).view(b, -1), -1, descending=True)
        return best


class WindowHeads(nn.Module):
    """64 features in 3 heads."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 3
        self.qkv = nn.Linear(64, 192)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.num_heads, c // self.num_heads)
        return qkv.permute(2, 0, 3, 1, 4)


class DeepGPT(nn.Module):
    """Layers taken for heads."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = 48
        self.query = nn.Linear(50, 50)

    def forward(self, x: Tensor) -> Tensor:
        b, t, width = x.shape
        q = self.query(x).view(b, t, self.heads, width // self.heads)
        return q.transpose(1, 2)


class AnswerSpan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(6, 1)

    def forward(self, passage: Tensor) -> Tensor:
        start = self.score(passage).squeeze()
        return start.log_softmax(dim=1)


class CurveWalk(nn.Module):
    def forward(self, start_index: Tensor, x: Tensor) -> Tensor:
        start = start_index.squeeze()
        b, curves = start.shape
        return x[:, :, :1].expand(b, -1, curves)


class StopToken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 1)

    def forward(self, mel: Tensor) -> Tensor:
        gate = self.gate(mel).squeeze()
        return gate.transpose(0, 1)


class Sentiment(nn.Module):
    """A dimension is squeezed that is there only with one sample."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 5, batch_first=True)
        self.fc = nn.Linear(5, 1)

    def forward(self, text: Tensor) -> Tensor:
        _, hidden = self.rnn(text)
        last = hidden[-1].squeeze(0)
        logits = self.fc(last)
        return logits.flatten(1)


class Captions(nn.Module):
    """Pictures come in tens, the last batch does not."""

    def __init__(self) -> None:
        super().__init__()
        self.features = 12

    def forward(self, pictures: Tensor) -> Tensor:
        grouped = pictures.view(-1, 10, self.features)
        return grouped.mean(1)


class FixedBatchScores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.classify = nn.Conv2d(3, 10, 1)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.classify(x).mean((2, 3))
        return scores.view(64, 10)


class TokenLabels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True)
        self.head = nn.Linear(6, 9)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        out, _ = self.lstm(x)
        logits = self.head(out)
        return F.cross_entropy(logits, labels)


class TimeSeries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(in_channels=3, out_channels=8, kernel_size=1)

    def forward(self, series: Tensor) -> Tensor:
        return self.conv(series).relu()


class PatchPositions(nn.Module):
    """A token for the class was added, its position was not."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, stride=4)
        self.cls = nn.Parameter(torch.zeros(1, 1, 8))
        self.position = nn.Parameter(torch.zeros(1, 16, 8))

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patch(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(x.shape[0], -1, -1), tokens], dim=1)
        return tokens + self.position


class ChannelNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Conv1d(3, 16, 1)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        features = self.project(x)
        return self.norm(features)


class LogitColumn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(20, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        logits = self.dense(x)
        return F.binary_cross_entropy_with_logits(logits, y)


class ShortSound(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 4, kernel_size=5)

    def forward(self, sound: Tensor) -> Tensor:
        return self.conv(sound).amax(-1)


class GroupedShuffle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 24, 3, padding=1)
        self.norm = nn.GroupNorm(8, 32)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.norm(x)


class NarrowDecoder(nn.Module):
    """The encoder goes both ways, and the decoder's state is as wide as one."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(4, 6, batch_first=True)
        self.decoder = nn.GRU(5, 1, batch_first=True)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        _, state = self.encoder(src)
        out, _ = self.decoder(tgt, state)
        return out


class BridgedDecoder(nn.Module):
    """The context is wider than the cell was told."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.cell = nn.GRUCell(14, 6)

    def forward(self, token: Tensor, context: Tensor, state: Tensor) -> Tensor:
        step = torch.cat([self.embed(token), context], dim=-1)
        return self.cell(step, state)


class PaperAttention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.matmul(q, k).softmax(-1)
        return torch.matmul(weights, v)


PUBLIC = (
    Reported(
        "missized_head",
        "https://androidkt.com/fix-runtimeerror-mat1-and-mat2-shapes-cannot-be-multiplied/",
        "in_features of the last layer",
        MissizedHead, "image: [b, 1, 28, 28]", "self.out(rows)",
        "change 1050 to 784 (in_features of out)", "same",
    ),
    Reported(
        "guessed_features",
        "https://scientyficworld.org/fix-hidden-layer-shape-mismatches-in-pytorch/",
        "in_features",
        GuessedFeatures, "table: [b, 12]", "self.hidden(table)",
        "change 10 to 12 (in_features of hidden)", "same",
    ),
    Reported(
        "grey_filter",
        "https://duoke360.com/post/34762",
        "in_channels of the first convolution",
        GreyFilter, "photo: [b, 3, h, w]", "self.first(photo)",
        "change 1 to 3 (in_channels of first)", "same", ("h >= 5", "w >= 5"),
    ),
    Reported(
        "middle_channels",
        "https://www.iiask.com/34l58747.html",
        "in_channels of the second convolution",
        MiddleChannels, "x: [b, 1, h, w]", "self.expand(x)",
        "change 64 to 32 (in_channels of expand)", "same", ("h >= 5", "w >= 5"),
    ),
    Reported(
        "face_embedding",
        "https://github.com/deepinsight/insightface/issues/1638",
        "images are resized to those that the last layer was made for",
        FaceEmbedding, "face: [b, 3, 32, 32]", "self.embed(torch.flatten(maps, 1))",
        "change 8 * 7 * 7 to 512 (in_features of embed)",
        "better",
    ),
    Reported(
        "siamese_pairs",
        "https://github.com/adambielski/siamese-triplet/issues/29",
        "in_features",
        Pairs, "a: [n, 1, 16, 16]; b: [n, 1, 16, 16]", "return self.fc(x)",
        "change 64 to 144 (in_features of fc)", "same",
    ),
    Reported(
        "nested_unet",
        "https://github.com/bigmb/Unet-Segmentation-Pytorch-Nest-of-Unets/issues/55",
        "sizes are multiples of the strides",
        DeepSkips, "x: [b, 1, h, w]", "torch.cat((near, back), dim=1)",
        "change self.grow(far) to self.grow(far, output_size=x.shape[2:])",
        "better", ("h >= 2", "w >= 2"),
    ),
    Reported(
        "unet_scag",
        "https://github.com/lbktrinh/UNet_scAG/issues/1",
        "sizes are multiples of the strides",
        GrownSkip, "x: [b, 3, h, w]", "torch.cat([out, skip], dim=1)",
        "change out to torch.nn.functional.interpolate(out, size=skip.shape[2:])",
        "better", ("h >= 4", "w >= 4"),
    ),
    Reported(
        "two_way_reader",
        "https://programmerah.com/runtimeerror-expected-hidden0-size-x-x-x-gotx-x-x-39265/",
        "batch_first=True",
        TwoWayReader, "words: [b, t, 6]", "self.reader(words, (h0, c0))",
        "add batch_first=True (reader)", "same",
    ),
    Reported(
        "video_attention",
        "https://github.com/pytorch/pytorch/issues/122959",
        "batch_first=True",
        VideoAttention, "query: [b, 1, 12]; frames: [b, t, 12]", "self.attend(query, frames, frames)",
        "add batch_first=True (attend)", "same",
    ),
    Reported(
        "padded_encoder",
        "https://github.com/pytorch/pytorch/issues/25129",
        "the mask is that of a batch first",
        PaddedEncoder, "x: [b, t, 20]; pad: bool[b, t]", "key_padding_mask=pad",
        "add batch_first=True (attend)", "same",
    ),
    Reported(
        "joined_heads",
        "https://github.com/facebookresearch/fairseq/issues/2598",
        "reshape for view",
        JoinedHeads, "attention: [b, t, 8]", "swapped.view(t, b * 8)",
        "change swapped.view(t, b * 8) to swapped.reshape(t, b * 8)", "same",
    ),
    Reported(
        "aligned_words",
        "https://github.com/PetrochukM/PyTorch-NLP/pull/90",
        "reshape for view",
        AlignedWords, "query: [b, t, 8]; context: [b, s, 8]", "mixed.view(batch * length",
        "change mixed.view(batch * length, context.shape[1]) to "
        "mixed.reshape(batch * length, context.shape[1])", "same",
    ),
    Reported(
        "warp_regression",
        "https://github.com/sergeywong/cp-vton/issues/30",
        "reshape for view",
        WarpRegression, "features: [b, 4, h, w]", "x.view(x.size(0), -1)",
        "change x.view(x.size(0), -1) to x.reshape(x.size(0), -1)", "same",
    ),
    Reported(
        "top_accuracy",
        "https://github.com/open-mmlab/mmpretrain/pull/104",
        "reshape for view",
        TopAccuracy, "correct: bool[n, 10]", "correct.t()[:5].view(-1)",
        "change correct.t()[:5].view(-1) to correct.t()[:5].reshape(-1)", "same",
    ),
    Reported(
        "beam_scores",
        "https://github.com/aimagelab/show-control-and-tell/issues/23",
        "reshape for view",
        BeamScores, "scores: [b, beam, words]", "scores.transpose(1, 2).view(b, -1)",
        "change scores.transpose(1, 2).view(b, -1) to scores.transpose(1, 2).reshape(b, -1)", "same",
    ),
    Reported(
        "window_heads",
        "https://github.com/dingmyu/davit/issues/7",
        "a number of heads that divides the features",
        WindowHeads, "x: [b, n, 64]", "self.qkv(x).reshape(b, n, 3, self.num_heads",
        "change self.num_heads from 3 to 4",
        "same",
    ),
    Reported(
        "layers_for_heads",
        "https://github.com/rasbt/LLMs-from-scratch/issues/444",
        "the number of heads",
        DeepGPT, "x: [b, t, 50]", "self.query(x).view(b, t, self.heads",
        "change self.heads from 48 to 50",
        "other",
    ),
    Reported(
        "answer_span",
        "https://github.com/galsang/BiDAF-pytorch/pull/26",
        "squeeze with a dimension",
        AnswerSpan, "passage: [b, t, 6]", "start.log_softmax(dim=1)",
        "change self.score(passage).squeeze() to self.score(passage).squeeze(-1)",
        "same",
    ),
    Reported(
        "curve_walk",
        "https://github.com/tiangexiang/CurveNet/pull/25",
        "squeeze(1)",
        CurveWalk, "start_index: int64[b, 1, c]; x: [b, 3, n]", "b, curves = start.shape",
        "change start_index.squeeze() to start_index.squeeze(1)", "same",
    ),
    Reported(
        "stop_token",
        "https://github.com/NVIDIA/tacotron2/pull/303",
        "squeeze with a dimension",
        StopToken, "mel: [b, t, 4]", "gate.transpose(0, 1)",
        "change self.gate(mel).squeeze() to self.gate(mel).squeeze(-1)",
        "same",
    ),
    Reported(
        "squeezed_sentiment",
        "https://github.com/bentrevett/pytorch-sentiment-analysis/issues/41",
        "no squeeze",
        Sentiment, "text: [b, t, 4]", "logits.flatten(1)",
        "change hidden[-1].squeeze(0) to hidden[-1]",
        "same",
    ),
    Reported(
        "pictures_in_tens",
        "https://github.com/thecharm/Mega/issues/18",
        "none is told; the last batch is what is left",
        Captions, "pictures: [n, 12]", "pictures.view(-1, 10, self.features)",
        "declare n % 10 == 0",
        "better",
    ),
    Reported(
        "fixed_batch",
        "https://github.com/gsp-27/pytorch_Squeezenet/issues/2",
        "the size of the batch itself",
        FixedBatchScores, "x: [b, 3, h, w]", "scores.view(64, 10)",
        "change 64 to x.shape[0]",
        "same",
    ),
    Reported(
        "token_labels",
        "https://whosebug.com/question/6539086/How-to-compute-Cross-Entropy-Loss-for-sequences",
        "classes into the second place",
        TokenLabels, "x: [b, t, 4]; labels: int64[b, t]", "F.cross_entropy(logits, labels)",
        "change logits to logits.transpose(-2, -1)", "same",
    ),
    Reported(
        "time_series",
        "https://runebook.dev/en/articles/pytorch/generated/torch.nn.conv1d",
        "channels into the second place",
        TimeSeries, "series: [b, t, 3]", "self.conv(series)",
        "change series to series.transpose(-2, -1)", "same",
    ),
    Reported(
        "patch_positions",
        "https://github.com/Beckschen/TransUNet/issues/13",
        "as many positions as tokens",
        PatchPositions, "x: [b, 3, 16, 16]", "tokens + self.position",
        "change 16 to 17 (size 1 of position)",
        "same",
    ),
    Reported(
        "channel_norm",
        "https://github.com/svip-lab/AS-MLP/issues/6",
        "a norm over the channels",
        ChannelNorm, "x: [b, 3, t]", "self.norm(features)",
        "change self.norm(features) to self.norm(features.transpose(1, 2)).transpose(1, 2)", "same",
    ),
    Reported(
        "logit_column",
        "https://github.com/FernandoLpz/Text-Classification-LSTMs-PyTorch/issues/9",
        "y.unsqueeze(1)",
        LogitColumn, "x: [b, 20]; y: [b]", "F.binary_cross_entropy_with_logits(logits, y)",
        "change logits to logits.squeeze(-1)", "same",
    ),
    Reported(
        "short_sound",
        "https://github.com/ksanjeevan/crnn-audio-classification/issues/15",
        "padding, or a smaller kernel",
        ShortSound, "sound: [b, 1, n]", "self.conv(sound)",
        "add padding=2 (conv)", "same",
    ),
    Reported(
        "grouped_norm",
        "https://github.com/jaxony/ShuffleNet/issues/5",
        "the number of channels",
        GroupedShuffle, "x: [b, 3, h, w]", "self.norm(x)",
        "change 32 to 24 (num_channels of norm)", "same",
    ),
    Reported(
        "narrow_decoder",
        "https://github.com/IBM/pytorch-seq2seq/pull/184",
        "hidden_size of the decoder",
        NarrowDecoder, "src: [b, s, 4]; tgt: [b, t, 5]", "self.decoder(tgt, state)",
        "change 1 to 6 (hidden_size of decoder)", "same",
    ),
    Reported(
        "bridged_decoder",
        "https://github.com/clovaai/FocusSeq2Seq/issues/6",
        "input_size of the cell",
        BridgedDecoder, "token: int64[b]; context: [b, 12]; state: [b, 6]", "self.cell(step, state)",
        "change 14 to 20 (input_size of cell)", "same",
    ),
    Reported(
        "paper_attention",
        "https://github.com/huggingface/pytorch-openai-transformer-lm/issues/2",
        "the keys transposed",
        PaperAttention, "q: [b, t, 4]; k: [b, s, 4]; v: [b, s, 5]", "torch.matmul(q, k)",
        "change k to k.transpose(-2, -1)", "same",
    ),
)  # fmt: skip
