"""Models with control flow: checks, branches, loops and arithmetic on sizes, and inputs and outputs of many
kinds.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry, always, broadcast


class CheckedByAssert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        _, _, h, w = x.shape
        assert h % 8 == 0 and w % 8 == 0, f"expected multiples of 8, got {h}x{w}"
        return self.conv(x)


class CheckedByRaise(nn.Module):
    def __init__(self, smallest: int = 10):
        super().__init__()
        self.smallest = smallest
        self.pool = nn.AdaptiveAvgPool2d(4)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2], x.shape[-1]
        if min(height, width) < self.smallest:
            raise ValueError(f"image of {height}x{width} is smaller than {self.smallest}")
        if max(height, width) > 3 * min(height, width):
            raise ValueError("image is too narrow")
        return self.pool(x).flatten(1)


class LongAndShort(nn.Module):
    """Short sequences go through a projection, long ones are strided first."""

    def __init__(self) -> None:
        super().__init__()
        self.short = nn.Linear(6, 6)
        self.long = nn.Conv1d(6, 6, kernel_size=8, stride=4)

    def forward(self, x: Tensor) -> Tensor:
        t = x.size(1)
        if t > 7:
            x = self.long(x.transpose(1, 2)).transpose(1, 2)
        return self.short(x).sum(dim=1)


class BranchesThatDiffer(nn.Module):
    """Each side of the branch has its own demand: up to 7 any length, beyond it whole blocks of 4."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        if t > 7:
            x = x.view(b, t // 4, 4, c).mean(dim=2)
        else:
            x = x * torch.sigmoid(self.gate(x))
        return x.sum(1)


class PadToMultiple(nn.Module):
    def __init__(self, multiple: int = 8):
        super().__init__()
        self.multiple = multiple
        self.encode = nn.Conv2d(3, 4, 4, stride=4)
        self.mid = nn.Conv2d(4, 4, 2, stride=2)
        self.decode = nn.ConvTranspose2d(4, 3, multiple, stride=multiple)

    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        pad_h = (self.multiple - h % self.multiple) % self.multiple
        pad_w = -w % self.multiple
        padded = F.pad(x, (0, pad_w, 0, pad_h), mode="replicate")
        y = self.decode(self.mid(F.relu(self.encode(padded))))
        return (y + padded)[..., :h, :w] + x


class ReflectPadToMultiple(nn.Module):
    """Reflection pads by less than the size: small images cannot be padded far enough."""

    def forward(self, x: Tensor) -> Tensor:
        _, _, h, w = x.size()
        mod_pad_h = (16 - h % 16) % 16
        mod_pad_w = (16 - w % 16) % 16
        x = F.pad(x, (0, mod_pad_w, 0, mod_pad_h), "reflect")
        return F.pixel_unshuffle(x, 16)


def reflect_side(size: int) -> bool:
    return (16 - size % 16) % 16 < size


class DeepMLP(nn.Module):
    """Layers in a loop, a skip to every third, names looked up by number."""

    def __init__(self, n_layers: int = 9, dim: int = 8):
        super().__init__()
        self.n_layers = n_layers
        for i in range(n_layers):
            setattr(self, f"fc{i}", nn.Linear(dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        skip = x
        for i in range(self.n_layers):
            x = torch.relu(getattr(self, f"fc{i}")(x))
            if i % 3 == 2:
                x = x + skip
                skip = x
        return x


class Halving(nn.Module):
    """Merges neighbours until one is left: as many rounds as the length has bits."""

    def __init__(self, dim: int = 4):
        super().__init__()
        self.merge = nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        while x.shape[1] > 1:
            if x.shape[1] % 2 == 1:
                x = F.pad(x, (0, 0, 0, 1))
            b, n, d = x.shape
            x = self.merge(x.reshape(b, n // 2, 2 * d))
        return x.squeeze(1)


class Butterfly(nn.Module):
    """A butterfly by recursion, whose halves must meet: powers of two, and what broadcasting adds to them."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        if n == 1:
            return x
        even = self.forward(x[..., ::2])
        odd = self.forward(x[..., 1::2])
        return torch.stack((even + odd, even - odd), dim=-2).flatten(-2)


def butterfly(n: int) -> int | None:
    """The length that n elements become, None where the halves do not meet. Three become four: their halves
    are a pair and a single one, which broadcasts.
    """
    if n == 1:
        return 1
    even, odd = butterfly((n + 1) // 2), butterfly(n // 2)
    half = None if even is None or odd is None else broadcast(even, odd)
    return None if half is None else 2 * half


class ChunkLoop(nn.Module):
    """Works through a sequence in pieces of 16, the last of them shorter."""

    def __init__(self, chunk: int = 16):
        super().__init__()
        self.chunk = chunk
        self.fc = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        outputs = [self.fc(piece) for piece in x.split(self.chunk, dim=1)]
        return torch.cat(outputs, dim=1) + self.fc(x)


class Portrait(nn.Module):
    """Turns landscape images, and scales by the shorter side."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, (5, 3))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[3] > x.shape[2]:
            x = x.transpose(2, 3)
        x = self.conv(x)
        return F.avg_pool2d(x, kernel_size=(1, x.shape[-1]))


class FloatSizes(nn.Module):
    """Sizes that go through floating point on their way."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        half = int(n * 0.5)
        keep = max(1, math.ceil(n / 3))
        window = round(n / 4)
        a = x[:, :half].sum(1)
        b = torch.topk(x, keep, dim=1).values.sum(1)
        c = x.narrow(1, 0, window + 1).mean(1)
        return a + b + c


class IntegerInput(nn.Module):
    """Takes the first n steps, in groups of k."""

    def forward(self, x: Tensor, n: int, k: int) -> Tensor:
        x = x[:, :n]
        return x.reshape(x.shape[0], -1, k)


class Repeats(nn.Module):
    def forward(self, x: Tensor, times: int) -> Tensor:
        tiled = x.repeat(1, times)
        return tiled.view(x.shape[0], times, -1).sum(1) + x


class Options(nn.Module):
    """Keyword arguments with defaults, flags, and an optional tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(
        self, x: Tensor, *, context: Tensor | None = None, scale: float = 1.0, pool: bool = False
    ) -> Tensor:
        y = self.fc(x) * scale
        if context is not None:
            y = torch.cat((y, context), dim=1)
        return y.mean(1) if pool else y


class NestedInputs(nn.Module):
    """A dict of features, as a data loader gives them, and a list of masks."""

    def __init__(self) -> None:
        super().__init__()
        self.vision = nn.Linear(12, 8)
        self.text = nn.Embedding(20, 8)

    def forward(self, batch: dict[str, Tensor], masks: list[Tensor]) -> dict[str, Any]:
        pixels = self.vision(batch["pixels"])
        words = self.text(batch["words"])
        tokens = torch.cat([pixels, words], dim=1)
        mask = torch.cat(masks, dim=1).unsqueeze(-1)
        pooled = tokens.masked_fill(mask, 0.0).mean(dim=1)
        return {"tokens": tokens, "pooled": {"mean": pooled, "count": [tokens.shape[1]]}}


def nested_accepts(b: int, p: int, c: int, t: int, d: int, m: int, e: int, k: int) -> bool:
    """Masks cover all tokens, or a single mask covers every token or every sample."""
    return b == c and d == e and (d == b or d == 1 or b == 1) and (m + k == p + t)


@dataclass
class Prediction:
    logits: Tensor
    hidden: Tensor | None = None
    loss: Tensor | None = None


class State(NamedTuple):
    h: Tensor
    step: int


class DataclassOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(6, 6)
        self.fc2 = nn.Linear(6, 2)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Prediction:
        hidden = torch.tanh(self.fc1(x))
        logits = self.fc2(hidden)
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return Prediction(logits=logits, hidden=hidden, loss=loss)


class NamedTupleState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: Tensor) -> State:
        state = State(torch.zeros(x.shape[0], 4), 0)
        for _ in range(3):
            state = State(self.cell(x, state.h), state.step + 1)
        return state


class InPlace(nn.Module):
    """Writes into views: masks a border, adds a row to all rows, fills a diagonal."""

    def forward(self, x: Tensor, row: Tensor) -> Tensor:
        y = x.clone()
        y[:, 0] = 0
        y[:, -1].mul_(2)
        y += row
        y[..., 1:] -= x[..., :-1]
        z = torch.zeros(x.shape[0], x.shape[1], x.shape[2])
        z.copy_(y)
        z.clamp_(min=0).add_(1)
        return z


class RunningMean(nn.Module):
    """Buffers that change, an attribute that is set, a module in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("count", torch.tensor(0))
        self.last_size: torch.Size | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.last_size = x.shape
        if self.training:
            self.count += 1
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(dim=0)
        return x - self.mean


class CausalBuffer(nn.Module):
    """A boolean mask cut from a buffer; single positions of the scores may meet it too."""

    def __init__(self, max_len: int = 128):
        super().__init__()
        self.qk = nn.Linear(8, 16)
        self.register_buffer(
            "mask", torch.tril(torch.ones(max_len, max_len, dtype=torch.bool)), persistent=False
        )

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[-2]
        q, k = self.qk(x).chunk(2, -1)
        scores = q @ k.transpose(-1, -2)
        return torch.where(self.mask[:t, :t], scores, float("-inf")).softmax(-1) @ x


class MixtureOfExperts(nn.Module):
    """Routes tokens by top two of four experts; each expert sees all tokens, weighted."""

    def __init__(self, dim: int = 6, experts: int = 4):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.w1 = nn.Parameter(torch.zeros(experts, dim, 12))
        self.w2 = nn.Parameter(torch.zeros(experts, 12, dim))

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        flat = x.reshape(-1, d)
        weights, chosen = self.gate(flat).softmax(-1).topk(2, dim=-1)
        combine = torch.zeros(flat.shape[0], 4).scatter(1, chosen, weights)
        hidden = torch.einsum("nd,edh->enh", flat, self.w1).relu()
        out = torch.einsum("enh,ehd->end", hidden, self.w2)
        return torch.einsum("end,ne->nd", out, combine).reshape(b, t, d)


class Wrapped(nn.Module):
    """Partials, lambdas, hooks, no_grad and autocast around plain layers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 4)
        self.act = partial(F.leaky_relu, negative_slope=0.2)
        self.norms = nn.ModuleDict({"a": nn.LayerNorm(4), "b": nn.Identity()})
        self.fc.register_forward_hook(lambda module, args, output: output * 2)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-3)
        with torch.autocast("cpu", enabled=False):
            y = self.act(self.fc(x / scale))
        for name in ("a", "b"):
            y = self.norms[name](y)
        return y


class RankDependent(nn.Module):
    """Takes one image or a batch of them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 5)

    def forward(self, image: Tensor) -> Tensor:
        single = image.dim() == 3
        if single:
            image = image.unsqueeze(0)
        out = self.conv(image).mean((2, 3))
        return out.squeeze(0) if single else out


class GroupedHeads(nn.Module):
    """The width is an input size too: it must divide into heads and match the weights."""

    def __init__(self, heads: int = 4):
        super().__init__()
        self.heads = heads

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        b, n, c = q.shape
        q = q.view(b, n, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, -1, self.heads, c // self.heads).transpose(1, 2)
        return (q @ k.mT).softmax(-1)


def grouped_accepts(b: int, n: int, c: int, d: int, m: int, e: int) -> bool:
    """k is viewed with q's batch and width: its elements must make whole rows of them."""
    return c % 4 == 0 and (d * m * e) % (b * c) == 0


class DataDependent(nn.Module):
    """Asks the data once: both answers run, and both give the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if mask.all():
            return self.fc(x)
        return self.fc(x.masked_fill(~mask, 0.0))


class AssertsOfData(nn.Module):
    """What is asserted of the data is so whatever they are."""

    def forward(self, x: Tensor) -> Tensor:
        longest = (x != 0).sum(1).max().item()
        assert longest <= x.shape[1]
        return x.cumsum(1) * 2


class TwoCrops(nn.Module):
    """Views that overlap: the first and last k columns, which need not be apart."""

    def __init__(self, k: int = 5):
        super().__init__()
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        return x[:, : self.k] * x[:, -self.k :] + x[:, [0, 2]].sum(dim=1, keepdim=True)


IMAGE = "x: float32[b, 3, h, w]"
STEPS = "x: float32[b, t, 6]"
SQUARES = {"b": (1, 2), "h": (1, 7, 8, 9, 10, 12, 16, 24), "w": (1, 8, 10, 16, 29, 30, 31, 48)}

ENTRIES = (
    Entry(
        "assert_multiple",
        CheckedByAssert,
        IMAGE,
        lambda b, h, w: h % 8 == 0 and w % 8 == 0,
        "refined",
        probe=SQUARES,
    ),
    Entry(
        "assert_multiple_given",
        CheckedByAssert,
        IMAGE,
        always,
        "proved",
        ("h % 8 == 0", "w % 16 == 0"),
        probe=SQUARES,
    ),
    Entry(
        "raise_on_size",
        CheckedByRaise,
        IMAGE,
        lambda b, h, w: min(h, w) >= 10 and max(h, w) <= 3 * min(h, w),
        "refined",
        probe=SQUARES,
    ),
    Entry("branch_on_length", LongAndShort, STEPS, always, "proved", probe={"t": (1, 2, 7, 8, 9, 20)}),
    Entry(
        "branches_that_differ",
        BranchesThatDiffer,
        STEPS,
        lambda b, t: t <= 7 or t % 4 == 0,
        "refined",
        probe={"b": (1, 2), "t": (1, 4, 6, 7, 8, 9, 10, 12, 14)},
    ),
    Entry("pad_to_multiple", PadToMultiple, IMAGE, always, "proved", probe=SQUARES),
    Entry(
        "pad_by_reflection",
        ReflectPadToMultiple,
        IMAGE,
        lambda b, h, w: reflect_side(h) and reflect_side(w),
        "refined",
        probe=SQUARES,
    ),
    Entry("deep_mlp", DeepMLP, "x: float32[b, 8]", always, "proved", probe={"b": (1, 2, 3)}),
    Entry(
        "halving",
        Halving,
        "x: float32[b, n, 4]",
        always,
        "proved",
        ("n <= 16",),
        probe={"n": (1, 2, 3, 5, 8, 9, 16)},
    ),
    Entry(
        "butterfly",
        Butterfly,
        "x: float32[b, n]",
        lambda b, n: butterfly(n) is not None,
        "refined",
        ("n <= 16",),
        probe={"b": (1, 2), "n": tuple(range(1, 17))},
    ),
    Entry(
        "chunk_loop",
        ChunkLoop,
        "x: float32[b, t, 5]",
        always,
        "proved",
        ("t <= 64",),
        probe={"t": (1, 15, 16, 17, 32, 33, 64)},
    ),
    Entry(
        "portrait",
        Portrait,
        "x: float32[b, 1, h, w]",
        lambda b, h, w: max(h, w) >= 5 and min(h, w) >= 3,
        "refined",
        probe={"b": (1, 2), "h": (1, 2, 3, 4, 5, 9), "w": (1, 2, 3, 4, 5, 6)},
    ),
    Entry(
        "float_sizes",
        FloatSizes,
        "x: float32[b, n]",
        lambda b, n: round(n / 4) + 1 <= n,
        "proved",
        probe={"b": (1, 2), "n": (1, 2, 3, 4, 5, 6, 9, 10, 11, 40)},
    ),
    Entry(
        "integer_input",
        IntegerInput,
        "x: float32[b, t]; n: int; k: int",
        lambda b, t, n, k: b * min(n, t) % (b * k) == 0,
        "refined",
        probe={"b": (1, 2), "t": (1, 4, 6), "n": (1, 2, 3, 4, 8), "k": (1, 2, 3)},
    ),
    Entry(
        "integer_repeats",
        Repeats,
        "x: float32[b, d]; times: int",
        always,
        "proved",
        probe={"d": (1, 4), "times": (1, 2, 7)},
    ),
    Entry(
        "keyword_inputs",
        Options,
        "x: float32[b, t, 6]; context: float32[c, s, 6]; scale=0.5; pool=True",
        lambda b, t, c, s: b == c,
        "refined",
        probe={"b": (1, 2, 3), "t": (1, 2), "c": (1, 2, 3), "s": (1, 4)},
    ),
    Entry("keyword_defaults", Options, "x: float32[b, t, 6]", always, "proved", probe={"t": (1, 2)}),
    Entry(
        "nested_inputs",
        NestedInputs,
        """
        batch["pixels"]: float32[b, p, 12]
        batch["words"]: int64[c, t]
        masks[0]: bool[d, m]
        masks[1]: bool[e, k]
        """,
        nested_accepts,
        "refined",
        probe={
            "b": (1, 2),
            "p": (1, 3),
            "c": (1, 2),
            "t": (1, 2),
            "d": (1, 2, 3),
            "m": (1, 2, 3),
            "e": (1, 2, 3),
            "k": (1, 2),
        },
    ),
    Entry(
        "dataclass_output",
        DataclassOutput,
        "x: float32[b, 6]; labels: int64[c]",
        lambda b, c: b == c,
        "refined",
        probe={"b": (1, 2, 3), "c": (1, 2, 3)},
    ),
    Entry("namedtuple_output", NamedTupleState, "x: float32[b, 4]", always, "proved", probe={"b": (1, 2, 3)}),
    Entry(
        "in_place",
        InPlace,
        "x: float32[b, n, d]; row: float32[r, s]",
        lambda b, n, d, r, s: r in (1, n) and s in (1, d),
        "refined",
        probe={"b": (1, 2), "n": (1, 2, 3), "d": (1, 2, 3), "r": (1, 2, 3), "s": (1, 2, 3)},
    ),
    Entry("running_mean", RunningMean, "x: float32[b, 6]", always, "proved", probe={"b": (1, 2, 3)}),
    Entry(
        "causal_buffer",
        CausalBuffer,
        "x: float32[b, t, 8]",
        lambda b, t: t <= 128,
        "refined",
        probe={"b": (1, 2), "t": (1, 2, 100, 127, 128, 129, 300)},
    ),
    Entry(
        "mixture_of_experts",
        MixtureOfExperts,
        "x: float32[b, t, 6]",
        always,
        "proved",
        probe={"t": (1, 2, 7)},
    ),
    Entry("wrapped", Wrapped, "x: float32[b, 6]", always, "proved", probe={"b": (1, 2, 3)}),
    Entry(
        "single_image",
        RankDependent,
        "image: float32[3, h, w]",
        lambda h, w: h >= 5 and w >= 5,
        "refined",
        probe={"h": (1, 4, 5, 6), "w": (4, 5, 9)},
    ),
    Entry(
        "batch_of_images",
        RankDependent,
        "image: float32[b, 3, h, w]",
        lambda b, h, w: h >= 5 and w >= 5,
        "refined",
        probe={"h": (1, 4, 5, 6), "w": (4, 5, 9)},
    ),
    Entry(
        "grouped_heads",
        GroupedHeads,
        "q: float32[b, n, c]; k: float32[d, m, e]",
        grouped_accepts,
        "refined",
        probe={"b": (1, 2), "n": (1, 3), "c": (2, 4, 8, 12), "d": (1, 2), "m": (1, 2, 3), "e": (2, 4, 8, 12)},
    ),
    Entry(
        "data_dependent",
        DataDependent,
        "x: float32[b, t, 4]; mask: bool[b, t, 1]",
        always,
        "proved",
        probe={"t": (1, 2, 5)},
    ),
    Entry(
        "asserts_of_data",
        AssertsOfData,
        "x: float32[b, n]",
        always,
        "proved",
        probe={"b": (1, 3), "n": (1, 2, 5)},
    ),
    Entry(
        "two_crops",
        TwoCrops,
        "x: float32[b, n]",
        lambda b, n: n >= 3,
        "refined",
        probe={"b": (1, 2), "n": (1, 2, 3, 4, 5, 6, 12)},
    ),
)
