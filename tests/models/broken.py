"""Models with one mistake each, of the kinds that people make, and their repaired twins.

Most mistakes are not wrong everywhere: broadcasting, a size of 1 or a lucky coincidence lets a few sizes
through, and those are the accepted set of the broken model.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Broken

# Numbers of features that do not fit ------------------------------------------------------------------------


class DigitNet(nn.Module):
    def __init__(self, in_features: int):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(in_features, 20)
        self.fc2 = nn.Linear(20, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = F.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        digits = torch.relu(self.fc1(x))
        return self.fc2(digits)


class ConvChain(nn.Module):
    def __init__(self, second: int):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(second, 16, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        second = self.second(x)
        return torch.relu(second)


class NormalisedConv(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 1)
        self.bn = nn.BatchNorm2d(features)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        normal = self.bn(y)
        return torch.relu(normal)


class NormalisedGroups(nn.Module):
    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups
        self.conv = nn.Conv2d(3, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        grouped = F.group_norm(y, self.groups)
        return torch.relu(grouped)


class NoFlatten(nn.Module):
    def __init__(self, flatten: bool):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.flatten = nn.Flatten() if flatten else nn.Identity()
        self.classifier = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.flatten(self.features(x))
        classes = self.classifier(x)
        return classes.log_softmax(-1)


class FlattenedBatch(nn.Module):
    """Flattens the batch too, which shows only with more than one image."""

    def __init__(self, start: int):
        super().__init__()
        self.start = start
        self.net = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(self.start)
        flattened = self.net(x)
        return flattened


class LSTMInput(nn.Module):
    def __init__(self, input_size: int):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.lstm = nn.LSTM(input_size, 8, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        hidden, _ = self.lstm(x)
        return hidden


class EmbeddingMixup(nn.Module):
    """The projection takes the size of the vocabulary for the size of the embedding."""

    def __init__(self, vocab: int = 100, dim: int = 16, mixed: bool = True):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.project = nn.Linear(vocab if mixed else dim, dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        projected = self.project(self.embed(tokens))
        return self.head(projected)


class TwoTowers(nn.Module):
    def __init__(self, joint: int):
        super().__init__()
        self.user = nn.Linear(6, 16)
        self.head = nn.Linear(joint, 1)

    def forward(self, user: Tensor, extra: Tensor) -> Tensor:
        both = torch.cat([self.user(user), extra], dim=-1)
        joint = self.head(both)
        return joint.squeeze(-1)


class DenseSkips(nn.Module):
    """Counts one growth too few in the third layer."""

    def __init__(self, third: int):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 4), nn.Linear(12, 4), nn.Linear(third, 4)])

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, dim=1)))
        return features[-1]


# Tensors that do not go together ----------------------------------------------------------------------------


class Inception(nn.Module):
    def __init__(self, padding: int):
        super().__init__()
        self.one = nn.Conv2d(3, 4, 1)
        self.three = nn.Conv2d(3, 4, 3, padding=padding)

    def forward(self, x: Tensor) -> Tensor:
        one, three = self.one(x), self.three(x)
        branches = torch.cat([one, three], dim=1)
        return torch.relu(branches)


class StridedBranches(nn.Module):
    def __init__(self, stride: int):
        super().__init__()
        self.fine = nn.Conv2d(3, 4, 3, padding=1, stride=stride)
        self.coarse = nn.Conv2d(3, 4, 3, padding=1, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        maps = torch.cat((self.fine(x), self.coarse(x)), dim=1)
        return maps.mean((2, 3))


class OddUNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.bottom = nn.Conv2d(4, 4, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2)
        self.merge2, self.merge1 = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 1, 1)

    def join(self, y: Tensor, skip: Tensor) -> Tensor:
        return torch.cat([skip, self.up(y)], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        skip1 = torch.relu(self.down1(x))
        skip2 = torch.relu(self.down2(F.max_pool2d(skip1, 2, ceil_mode=True)))
        y = self.bottom(F.max_pool2d(skip2, 2, ceil_mode=True))
        y = self.merge2(self.join(y, skip2))
        return self.merge1(self.join(y, skip1))


class OddUNetRepaired(OddUNet):
    def join(self, y: Tensor, skip: Tensor) -> Tensor:
        return torch.cat([skip, F.interpolate(y, size=skip.shape[-2:])], dim=1)


class TransposedSkip(nn.Module):
    """A transposed convolution of 3 by 2 gives odd sizes alone, unless it is told the size."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(torch.relu(self.down(x)))
        return torch.cat((x, y), 1)


class TransposedSkipRepaired(TransposedSkip):
    def forward(self, x: Tensor) -> Tensor:
        y = self.up(torch.relu(self.down(x)), output_size=x.shape[-2:])
        return torch.cat((x, y), dim=1)


class WideResidual(nn.Module):
    def __init__(self, project: bool):
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, padding=1)
        self.shortcut = nn.Conv2d(8, 16, 1) if project else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        widened = self.conv(x) + self.shortcut(x)
        return torch.relu(widened)


class StridedResidual(nn.Module):
    """Halves the image on one side of the sum alone: 1 and 1 are equal, and 1 and 2 broadcast."""

    def __init__(self, project: bool):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.shortcut = nn.Conv2d(4, 4, 1, stride=2) if project else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        strided = self.conv(x) + self.shortcut(x)
        return torch.relu(strided)


class StackedHeads(nn.Module):
    def __init__(self, second: int):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8), nn.Linear(5, second)

    def forward(self, x: Tensor) -> Tensor:
        heads = torch.stack([self.a(x), self.b(x)], dim=1)
        return heads.amax(1)


class SquareInterpolate(nn.Module):
    """Takes the height for both sides."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 4, stride=4, padding=2)

    def forward(self, x: Tensor) -> Tensor:
        h = x.shape[2]
        y = F.interpolate(self.down(x), size=(h, h), mode="bilinear")
        return torch.cat((x, y), dim=-3)


class SquareInterpolateRepaired(SquareInterpolate):
    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[2:]
        y = F.interpolate(self.down(x), size=(h, w), mode="bilinear")
        return torch.cat([x, y], dim=-3)


class HardCodedBatch(nn.Module):
    """A class token expanded for the two samples of the example."""

    def __init__(self) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 6))

    def forward(self, x: Tensor) -> Tensor:
        cls = self.cls_token.expand(2, -1, -1)
        return torch.cat([cls, x], dim=1)


class HardCodedBatchRepaired(HardCodedBatch):
    def forward(self, x: Tensor) -> Tensor:
        cls = self.cls_token.expand(x.shape[0], -1, -1)
        return torch.cat((cls, x), dim=1)


# Attention --------------------------------------------------------------------------------------------------


class SplitHeads(nn.Module):
    def __init__(self, heads: int, dim: int = 10):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def shape(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.heads, self.head_dim).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k = self.shape(self.q(x)), self.shape(self.k(x))
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.head_dim), dim=-1)


class MergedHeads(nn.Module):
    """Merges the heads by a view of a transposed tensor."""

    def merge(self, y: Tensor) -> Tensor:
        b, h, t, d = y.shape
        return y.transpose(1, 2).view(b, t, h * d)

    def forward(self, x: Tensor) -> Tensor:
        q = x.unflatten(-1, (4, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, q, q).contiguous()
        return self.merge(y)


class MergedHeadsRepaired(MergedHeads):
    def merge(self, y: Tensor) -> Tensor:
        b, h, t, d = y.shape
        return y.transpose(1, 2).contiguous().view(b, t, h * d)


class NoTranspose(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = (q @ k) / 4.0
        return scores.softmax(dim=-1) @ v


class NoTransposeRepaired(NoTranspose):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = (q @ k.mT) / 4.0
        return scores.softmax(dim=-1) @ v


class EinsumScores(nn.Module):
    def __init__(self, equation: str):
        super().__init__()
        self.equation = equation

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        similarity = torch.einsum(self.equation, q, k)
        return similarity.softmax(-1)


class EinsumWeight(nn.Module):
    """A weight of [out, in], contracted over the first of the two."""

    def __init__(self, equation: str):
        super().__init__()
        self.equation = equation
        self.weight = nn.Parameter(torch.zeros(8, 6))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.einsum(self.equation, x, self.weight)
        return y.relu()


class PaddingMask(nn.Module):
    """A mask of [batch, keys] against scores of [batch, heads, queries, keys]."""

    def forward(self, q: Tensor, pad: Tensor) -> Tensor:
        scores = q @ q.transpose(-2, -1)
        masked = scores.masked_fill(pad, -1e9)
        return masked.softmax(-1)


class PaddingMaskRepaired(PaddingMask):
    def forward(self, q: Tensor, pad: Tensor) -> Tensor:
        scores = q @ q.transpose(-2, -1)
        masked = scores.masked_fill(pad[:, None, None, :], -1e9)
        return masked.softmax(-1)


class HeadDim(nn.Module):
    def __init__(self, key_dim: int):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, key_dim), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        attended = F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))
        return attended + x


class PositionTable(nn.Module):
    """Learnt positions run out after 32 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(20, 8)
        self.pos = nn.Embedding(32, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.tok(tokens) + self.pos(torch.arange(tokens.size(1)))


class PositionTableRepaired(PositionTable):
    def forward(self, tokens: Tensor) -> Tensor:
        return self.tok(tokens) + self.pos(torch.arange(tokens.size(1)).clamp(max=31))


class SequenceFirstAttention(nn.Module):
    """Padding masks are [batch, keys] in either layout, so a wrong layout shows there."""

    def __init__(self, batch_first: bool):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=batch_first)

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        out, _ = self.attn(x, x, x, key_padding_mask=pad)
        return out


# Layouts ----------------------------------------------------------------------------------------------------


class ViewAfterTranspose(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        rows = x.transpose(1, 2).view(x.size(0), -1)
        return rows.cumsum(1)


class ViewAfterTransposeRepaired(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        rows = x.transpose(1, 2).reshape(x.size(0), -1)
        return rows.cumsum(1)


class BatchFirst(nn.Module):
    """A state for the batch, an LSTM that takes the first dimension for time."""

    def __init__(self, batch_first: bool):
        super().__init__()
        self.lstm = nn.LSTM(5, 8, batch_first=batch_first)

    def forward(self, x: Tensor) -> Tensor:
        h0 = torch.zeros(1, x.size(0), 8)
        steps, _ = self.lstm(x, (h0, torch.zeros_like(h0)))
        return steps[:, -1]


class BidirectionalState(nn.Module):
    """Hands both directions of the encoder to a decoder of one."""

    def __init__(self, bidirectional: bool):
        super().__init__()
        self.encoder = nn.GRU(5, 6, bidirectional=bidirectional)
        self.decoder = nn.GRU(4, 6)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        _, state = self.encoder(src)
        decoded, _ = self.decoder(tgt, state)
        return decoded


class NoUnsqueeze(nn.Module):
    """Weights of [batch, time] on features of [batch, time, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.score(x).squeeze(-1).softmax(-1)
        weighted = x * weights
        return weighted.sum(dim=1)


class NoUnsqueezeRepaired(NoUnsqueeze):
    def forward(self, x: Tensor) -> Tensor:
        weights = self.score(x).squeeze(-1).softmax(-1)
        scaled = x * weights.unsqueeze(-1)
        return scaled.sum(dim=1)


class ChannelsLastNorm(nn.Module):
    """Normalises time in place of the features."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 16, 3, padding=1)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        features = self.conv(x)
        return self.norm(features)


class ChannelsLastNormRepaired(ChannelsLastNorm):
    def forward(self, x: Tensor) -> Tensor:
        features = self.conv(x)
        return self.norm(features.transpose(1, 2)).transpose(1, 2)


class TimeAsChannels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(16, 8, kernel_size=3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.conv(x)
        return mixed.relu()


class TimeAsChannelsRepaired(TimeAsChannels):
    def forward(self, x: Tensor) -> Tensor:
        local = self.conv(x.permute(0, 2, 1))
        return local.relu()


class SqueezedBatch(nn.Module):
    """Squeezes every dimension of size 1: with one sample, or one step, the rank is not what the next line
    expects.
    """

    def forward(self, x: Tensor) -> Tensor:
        x = x.squeeze()
        batch, time, features = x.shape
        return x.reshape(batch * time, features)


class SqueezedBatchRepaired(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x.squeeze(1)
        b, t, f = x.shape
        return x.reshape(b * t, f)


class WrongMean(nn.Module):
    """Averages over channels where it means the image."""

    def __init__(self, dims: tuple[int, ...]):
        super().__init__()
        self.dims = dims
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        pooled = x.mean(self.dims)
        logits = self.head(pooled)
        return logits.sigmoid()


# Constants that do not fit ----------------------------------------------------------------------------------


class WrongReshape(nn.Module):
    """Folds what is left into the batch: fourteen samples happen to fit."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        folded = x.reshape(self.shape)
        return folded.sum(0)


class FixedReshape(nn.Module):
    def __init__(self, side: int):
        super().__init__()
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        image = x.view(x.shape[0], 3, self.side, self.side)
        return image.flip(-1)


class WrongSplit(nn.Module):
    def __init__(self, sizes: list[int]):
        super().__init__()
        self.sizes = sizes
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = torch.split(self.qkv(x), self.sizes, dim=-1)
        return q * k + v


class WrongShuffle(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        upscaled = F.pixel_shuffle(y, 2)
        return upscaled.tanh()


class LongKernel(nn.Module):
    def __init__(self, padding: int):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, kernel_size=9, padding=padding)

    def forward(self, wave: Tensor) -> Tensor:
        filtered = self.conv(wave)
        return filtered.abs().mean(-1)


class EighthStep(nn.Module):
    """Takes the last step of the example's eight."""

    def __init__(self, step: int):
        super().__init__()
        self.step = step

    def forward(self, x: Tensor) -> Tensor:
        last = x[:, self.step]
        return last.exp()


class FoldedBack(nn.Module):
    """Cuts into patches of 4 and folds them to a size of its own."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        columns = F.unfold(x, kernel_size=4, stride=4)
        folded = F.fold(columns, output_size=(self.size, self.size), kernel_size=4, stride=4)
        return folded + 1


# Losses -----------------------------------------------------------------------------------------------------


class TokenLoss(nn.Module):
    """Cross entropy wants the classes in the second place."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        logits = self.head(x)
        return F.cross_entropy(logits, target)


class TokenLossRepaired(TokenLoss):
    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        logits = self.head(x)
        return F.cross_entropy(logits.transpose(1, 2), target)


class BinaryLoss(nn.Module):
    """One logit a sample in a column, labels in a row."""

    def __init__(self, squeeze: bool):
        super().__init__()
        self.fc = nn.Linear(6, 1)
        self.squeeze = nn.Flatten(0) if squeeze else nn.Identity()

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        logits = self.squeeze(self.fc(x))
        return F.binary_cross_entropy_with_logits(logits, labels)


IMAGE = "x: float32[b, 3, h, w]"
SEQUENCE = "x: float32[b, t, 16]"
TOKENS = "tokens: int64[b, t]"
SIDES = {"b": (1, 2), "h": (1, 2, 3, 4, 7, 8, 12), "w": (1, 2, 4, 5, 8)}
AROUND_16 = {"b": (1, 2), "t": (1, 2, 15, 16, 17, 32)}

BROKEN = (
    Broken(
        "wrong_in_features",
        lambda: DigitNet(400),
        lambda: DigitNet(256),
        "x: float32[b, 1, 28, 28]",
        "self.fc1(x)",
        "refuted",
    ),
    Broken(
        "wrong_conv_channels", lambda: ConvChain(16), lambda: ConvChain(8), IMAGE, "self.second(x)", "refuted"
    ),
    Broken(
        "wrong_norm_features",
        lambda: NormalisedConv(16).eval(),
        lambda: NormalisedConv(8).eval(),
        IMAGE,
        "self.bn(y)",
        "refuted",
    ),
    Broken(
        "groups_do_not_divide",
        lambda: NormalisedGroups(3),
        lambda: NormalisedGroups(4),
        IMAGE,
        "F.group_norm(y",
        "refuted",
    ),
    Broken(
        "missing_flatten",
        lambda: NoFlatten(False),
        lambda: NoFlatten(True),
        IMAGE,
        "self.classifier(x)",
        "refuted",
    ),
    Broken(
        "flattened_batch",
        lambda: FlattenedBatch(0),
        lambda: FlattenedBatch(1),
        "x: float32[b, 4, 4, 4]",
        "self.net(x)",
        "refined",
        lambda b: b == 1,
    ),
    Broken(
        "wrong_lstm_input", lambda: LSTMInput(10), lambda: LSTMInput(12), TOKENS, "self.lstm(x)", "refuted"
    ),
    Broken(
        "embedding_mixup",
        EmbeddingMixup,
        lambda: EmbeddingMixup(mixed=False),
        TOKENS,
        "self.project(self.embed(tokens))",
        "refuted",
    ),
    Broken(
        "towers_miscounted",
        lambda: TwoTowers(16),
        lambda: TwoTowers(20),
        "user: float32[b, 6]; extra: float32[b, 4]",
        "self.head(both)",
        "refuted",
    ),
    Broken(
        "dense_skips_miscounted",
        lambda: DenseSkips(12),
        lambda: DenseSkips(16),
        "x: float32[b, 8]",
        "features.append(layer(",
        "refuted",
    ),
    Broken(
        "mismatched_cat",
        lambda: Inception(0),
        lambda: Inception(1),
        IMAGE,
        "torch.cat([one, three], dim=1)",
        "refuted",
        assume=("h >= 3", "w >= 3"),
        probe={"h": (3, 4, 9), "w": (3, 8)},
    ),
    Broken(
        "strided_cat",
        lambda: StridedBranches(1),
        lambda: StridedBranches(2),
        IMAGE,
        "torch.cat((self.fine(x), self.coarse(x)), dim=1)",
        "refined",
        lambda b, h, w: h == 1 and w == 1,
        probe=SIDES,
    ),
    Broken(
        "odd_sizes_into_unet",
        OddUNet,
        OddUNetRepaired,
        "x: float32[b, 1, h, w]",
        "torch.cat([skip, self.up(y)], dim=1)",
        "refined",
        lambda b, h, w: h % 4 == 0 and w % 4 == 0,
        probe=SIDES,
    ),
    Broken(
        "transposed_conv_misses_one",
        TransposedSkip,
        TransposedSkipRepaired,
        "x: float32[b, 2, h, w]",
        "torch.cat((x, y), 1)",
        "refined",
        lambda b, h, w: h % 2 == 1 and w % 2 == 1,
        probe=SIDES,
    ),
    Broken(
        "wrong_residual_channels",
        lambda: WideResidual(False),
        lambda: WideResidual(True),
        "x: float32[b, 8, h, w]",
        "widened = self.conv(x) +",
        "refuted",
    ),
    Broken(
        "wrong_residual_stride",
        lambda: StridedResidual(False),
        lambda: StridedResidual(True),
        "x: float32[b, 4, h, w]",
        "strided = self.conv(x) +",
        "refined",
        lambda b, h, w: h <= 2 and w <= 2,
        probe=SIDES,
    ),
    Broken(
        "stack_of_different_shapes",
        lambda: StackedHeads(6),
        lambda: StackedHeads(8),
        "x: float32[b, 5]",
        "torch.stack([self.a(x), self.b(x)]",
        "refuted",
    ),
    Broken(
        "interpolated_to_a_square",
        SquareInterpolate,
        SquareInterpolateRepaired,
        IMAGE,
        "torch.cat((x, y), dim=-3)",
        "refined",
        lambda b, h, w: h == w,
        probe={"h": (1, 2, 5, 8), "w": (1, 2, 5, 8)},
    ),
    Broken(
        "hard_coded_batch",
        HardCodedBatch,
        HardCodedBatchRepaired,
        "x: float32[b, t, 6]",
        "torch.cat([cls, x], dim=1)",
        "refined",
        lambda b, t: b == 2,
    ),
    Broken(
        "heads_do_not_divide",
        lambda: SplitHeads(4),
        lambda: SplitHeads(5),
        "x: float32[b, t, 10]",
        "x.view(x.size(0), x.size(1), self.heads",
        "refuted",
    ),
    Broken(
        "view_of_transposed_heads",
        MergedHeads,
        MergedHeadsRepaired,
        "x: float32[b, t, 8]",
        "y.transpose(1, 2).view(b, t, h * d)",
        "refined",
        lambda b, t: t == 1,
    ),
    Broken(
        "missing_transpose",
        NoTranspose,
        NoTransposeRepaired,
        SEQUENCE,
        "(q @ k) / 4.0",
        "refined",
        lambda b, t: t == 16,
        probe=AROUND_16,
    ),
    Broken(
        "einsum_scores",
        lambda: EinsumScores("bid,bdj->bij"),
        lambda: EinsumScores("bid,bjd->bij"),
        "q: float32[b, t, 4]; k: float32[b, s, 4]",
        "torch.einsum(self.equation, q, k)",
        "refined",
        lambda b, t, s: s in (1, 4),  # einsum broadcasts a named dimension of size 1
        probe={"b": (1, 2), "t": (1, 4, 5), "s": (1, 2, 3, 4, 5)},
    ),
    Broken(
        "einsum_weight",
        lambda: EinsumWeight("bnd,dk->bnk"),
        lambda: EinsumWeight("bnd,kd->bnk"),
        "x: float32[b, n, 6]",
        "torch.einsum(self.equation, x, self.weight)",
        "refuted",
    ),
    Broken(
        "mask_without_heads",
        PaddingMask,
        PaddingMaskRepaired,
        "q: float32[b, 3, t, 4]; pad: bool[b, t]",
        "scores.masked_fill(pad, -1e9)",
        "refined",
        lambda b, t: b == 1 or t == 1 or b == t,
    ),
    Broken(
        "head_dims_differ",
        lambda: HeadDim(6),
        lambda: HeadDim(8),
        "x: float32[b, t, 8]",
        "F.scaled_dot_product_attention(self.q(x)",
        "refuted",
    ),
    Broken(
        "positions_run_out",
        PositionTable,
        PositionTableRepaired,
        TOKENS,
        "self.pos(torch.arange(tokens.size(1)))",
        "refined",
        lambda b, t: t <= 32,
        probe={"b": (1, 2), "t": (1, 2, 31, 32, 33, 34, 64)},
    ),
    Broken(
        "attention_batch_first",
        lambda: SequenceFirstAttention(False),
        lambda: SequenceFirstAttention(True),
        "x: float32[b, t, 8]; pad: bool[b, t]",
        "self.attn(x, x, x, key_padding_mask=pad)",
        "refined",
        lambda b, t: b == t,
    ),
    Broken(
        "view_after_transpose",
        ViewAfterTranspose,
        ViewAfterTransposeRepaired,
        "x: float32[b, t, 6]",
        "x.transpose(1, 2).view(x.size(0), -1)",
        "refined",
        lambda b, t: t == 1,
    ),
    Broken(
        "lstm_batch_first",
        lambda: BatchFirst(False),
        lambda: BatchFirst(True),
        "x: float32[b, t, 5]",
        "self.lstm(x, (h0,",
        "refined",
        lambda b, t: b == t,
    ),
    Broken(
        "bidirectional_state",
        lambda: BidirectionalState(True),
        lambda: BidirectionalState(False),
        "src: float32[s, b, 5]; tgt: float32[t, b, 4]",
        "self.decoder(tgt, state)",
        "refuted",
    ),
    Broken(
        "missing_unsqueeze",
        NoUnsqueeze,
        NoUnsqueezeRepaired,
        "x: float32[b, t, 8]",
        "weighted = x * weights",
        "refined",
        lambda b, t: t == 1 or (t == 8 and b in (1, 8)),
        probe={"b": (1, 2, 7, 8, 9), "t": (1, 2, 7, 8, 9)},
    ),
    Broken(
        "norm_over_time",
        ChannelsLastNorm,
        ChannelsLastNormRepaired,
        "x: float32[b, 4, t]",
        "self.norm(features)",
        "refined",
        lambda b, t: t == 16,
        probe=AROUND_16,
    ),
    Broken(
        "time_as_channels",
        TimeAsChannels,
        TimeAsChannelsRepaired,
        SEQUENCE,
        "mixed = self.conv(x)",
        "refined",
        lambda b, t: t == 16,
        probe=AROUND_16,
    ),
    Broken(
        "squeezed_batch",
        SqueezedBatch,
        SqueezedBatchRepaired,
        "x: float32[b, 1, t, 6]",
        "batch, time, features = x.shape",
        "refined",
        lambda b, t: b > 1 and t > 1,
    ),
    Broken(
        "mean_over_channels",
        lambda: WrongMean((1,)),
        lambda: WrongMean((2, 3)),
        "x: float32[b, 8, h, w]",
        "self.head(pooled)",
        "refined",
        lambda b, h, w: w == 8,
        probe={"h": (1, 2, 8), "w": (1, 7, 8, 9)},
    ),
    Broken(
        "reshape_into_batch",
        lambda: WrongReshape((-1, 7, 16)),
        lambda: WrongReshape((-1, 6, 20)),
        "x: float32[b, 12, 10]",
        "x.reshape(self.shape)",
        "refined",
        lambda b: b % 14 == 0,
        probe={"b": (1, 2, 7, 13, 14, 15, 21, 28, 42)},
    ),
    Broken(
        "wrong_view_constant",
        lambda: FixedReshape(6),
        lambda: FixedReshape(5),
        "x: float32[b, 75]",
        "x.view(x.shape[0], 3, self.side",
        "refuted",
    ),
    Broken(
        "wrong_split_sizes",
        lambda: WrongSplit([8, 8, 6]),
        lambda: WrongSplit([8, 8, 8]),
        "x: float32[b, t, 8]",
        "torch.split(self.qkv(x), self.sizes",
        "refuted",
    ),
    Broken(
        "pixel_shuffle_channels",
        lambda: WrongShuffle(10),
        lambda: WrongShuffle(12),
        IMAGE,
        "F.pixel_shuffle(y, 2)",
        "refuted",
    ),
    Broken(
        "kernel_larger_than_input",
        lambda: LongKernel(0),
        lambda: LongKernel(4),
        "wave: float32[b, 1, n]",
        "self.conv(wave)",
        "refined",
        lambda b, n: n >= 9,
        probe={"b": (1, 2), "n": (1, 2, 8, 9, 10, 30)},
    ),
    Broken(
        "index_of_the_example",
        lambda: EighthStep(7),
        lambda: EighthStep(-1),
        "x: float32[b, t, 3]",
        "x[:, self.step]",
        "refined",
        lambda b, t: t >= 8,
        probe={"b": (1, 2), "t": (1, 6, 7, 8, 9, 20)},
    ),
    Broken(
        "folded_to_wrong_size",
        lambda: FoldedBack(12),
        lambda: FoldedBack(16),
        "x: float32[b, 2, 16, 16]",
        "F.fold(columns, output_size=",
        "refuted",
    ),
    Broken(
        "classes_in_last_place",
        TokenLoss,
        TokenLossRepaired,
        "x: float32[b, t, 6]; target: int64[b, t]",
        "F.cross_entropy(logits, target)",
        "refined",
        lambda b, t: t == 5,
        probe={"b": (1, 2, 5), "t": (1, 2, 4, 5, 6)},
    ),
    Broken(
        "labels_in_a_row",
        lambda: BinaryLoss(False),
        lambda: BinaryLoss(True),
        "x: float32[b, 6]; labels: float32[b]",
        "F.binary_cross_entropy_with_logits(logits, labels)",
        "refuted",
    ),
)
