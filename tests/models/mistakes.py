"""Small models with mistakes that people often make, five of each kind, as the text of a file."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import cleandoc
from textwrap import indent


@dataclass(frozen=True, slots=True)
class Mistake:
    """A model with a mistake, and the repair that its author is meant to see first."""

    name: str
    source: str
    """The file, whose class `Net` is the model."""
    inputs: str
    line: str
    """The line that refuses."""
    repair: str
    """The first repair, in words."""


def net(built: str, run: str, before: str = "") -> str:
    """Returns the text of a file with a class `Net`: the lines of its constructor, and of its forward method
    with the head of the latter.
    """
    head, _, body = cleandoc(run).partition("\n")
    return (
        "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
        f"{cleandoc(before)}\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n{indent(cleandoc(built), ' ' * 8)}\n\n"
        f"    def forward(self, {head}):\n{indent(body.strip(), ' ' * 8)}\n"
    )


MASKS = [
    (net("self.embed = nn.Embedding(100, 16)",
         """tokens, mask
         x = self.embed(tokens)
         return x.masked_fill(mask[..., None], 0.0)"""),
     "tokens: int64[b, t]; mask: bool[b, s]", "return x.masked_fill(mask[..., None], 0.0)",
     "declare s == t"),
    (net("""self.embed = nn.Embedding(100, 16)
            self.q = nn.Linear(16, 16)
            self.k = nn.Linear(16, 16)""",
         """tokens, mask
         x = self.embed(tokens)
         scores = self.q(x) @ self.k(x).transpose(1, 2)
         scores = scores.masked_fill(mask[:, None, :], float("-inf"))
         return scores.softmax(-1) @ x"""),
     "tokens: int64[b, t]; mask: bool[b, s]", "scores = scores.masked_fill(",
     "declare s == t"),
    (net("""self.embed = nn.Embedding(100, 16)
            self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)""",
         """tokens, mask
         x = self.embed(tokens)
         return self.layer(x, src_key_padding_mask=mask)"""),
     "tokens: int64[b, t]; mask: bool[b, s]", "return self.layer(x, src_key_padding_mask=mask)",
     "declare s == t"),
    (net("self.embed = nn.Embedding(100, 16)\nself.out = nn.Linear(16, 3)",
         """tokens, mask
         x = self.embed(tokens) * mask.unsqueeze(-1)
         return self.out(x.sum(1) / mask.sum(1, keepdim=True))"""),
     "tokens: int64[b, t]; mask: bool[b, s]", "x = self.embed(tokens) * mask.unsqueeze(-1)",
     "declare s == t"),
    (net("self.embed = nn.Embedding(100, 16)\nself.out = nn.Linear(16, 7)",
         """tokens, tags
         logits = self.out(self.embed(tokens))
         return F.cross_entropy(logits.flatten(0, 1), tags.flatten())"""),
     "tokens: int64[b, t]; tags: int64[b, s]", "return F.cross_entropy(logits.flatten(0, 1), tags.flatten())",
     "declare s == t"),
]
VITS = [
    (net("""self.patch = nn.Conv2d(3, 32, 4, 4)
            self.pos = nn.Parameter(torch.zeros(1, 64, 32))
            self.head = nn.Linear(32, 10)""",
         """x
         x = self.patch(x).flatten(2).transpose(1, 2)
         x = x + self.pos
         return self.head(x.mean(1))"""),
     "x: [b, 3, h, w]", "x = x + self.pos",
     "declare h == 32 and w == 32"),
    (net("""self.patch = nn.Conv2d(3, 32, 8, 8)
            self.cls = nn.Parameter(torch.zeros(1, 1, 32))
            self.pos = nn.Parameter(torch.zeros(1, 65, 32))
            self.head = nn.Linear(32, 10)""",
         """x
         x = self.patch(x).flatten(2).transpose(1, 2)
         x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1)
         return self.head((x + self.pos)[:, 0])"""),
     "x: [b, 3, s, s]", "return self.head((x + self.pos)[:, 0])",
     "declare s == 64"),
    (net("""self.patch = nn.Conv2d(3, 32, 16, 16)
            self.cls = nn.Parameter(torch.zeros(1, 1, 32))
            self.register_buffer("pos", torch.zeros(1, 197, 32))
            self.head = nn.Linear(32, 10)""",
         """x
         x = self.patch(x).flatten(2).transpose(1, 2)
         x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1)
         return self.head((x + self.pos)[:, 0])"""),
     "x: [b, 3, 256, 256]", "return self.head((x + self.pos)[:, 0])",
     "declare x: float32[b, 3, 224, 224], if that is what comes"),
    (net("""self.patch = nn.Conv2d(1, 24, 7, 7)
            self.pos = nn.Embedding(16, 24)
            self.head = nn.Linear(24, 10)""",
         """x
         x = self.patch(x).flatten(2).transpose(1, 2)
         x = x + self.pos(torch.arange(16))
         return self.head(x.mean(1))"""),
     "x: [b, 1, h, w]", "x = x + self.pos(torch.arange(16))",
     "declare h == 28 and w == 28"),
    (net("""self.patch = nn.Conv2d(3, 32, 4, 4)
            self.pos = nn.Parameter(torch.zeros(1, 32, 8, 8))
            self.head = nn.Linear(32, 10)""",
         """x
         x = self.patch(x)
         x = x + self.pos
         return self.head(x.mean((2, 3)))"""),
     "x: [b, 3, h, w]", "x = x + self.pos",
     "change self.pos to torch.nn.functional.interpolate(self.pos, size=x.shape[2:])"),
]
CONSTRUCTORS = [
    (net("self.net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(128, 10))",
         """x
         return self.net(x.flatten(1))"""),
     "x: [b, 1, 28, 28]", "return self.net(x.flatten(1))",
     "change 128 to 256 (in_features of net.2)"),
    (net("self.a = nn.Linear(784, 256)\nself.b = nn.Linear(128, 10)",
         """x
         return self.b(torch.relu(self.a(x)))"""),
     "x: [b, 784]", "return self.b(torch.relu(self.a(x)))",
     "change 128 to 256 (in_features of b)"),
    (net("""self.c1 = DoubleConv(3, 32)
            self.c2 = DoubleConv(64, 32)
            self.c3 = nn.Conv2d(32, 2, 1)""",
         """x
         return self.c3(self.c2(self.c1(x)))""",
         """
         class DoubleConv(nn.Module):
             def __init__(self, fed, out):
                 super().__init__()
                 self.conv = nn.Sequential(
                     nn.Conv2d(fed, out, 3, padding=1),
                     nn.ReLU(),
                     nn.Conv2d(out, out, 3, padding=1),
                 )

             def forward(self, x):
                 return self.conv(x)
         """),
     "x: [b, 3, h, w]", "return self.conv(x)",
     "change 64 to 32 (fed of c2)"),
    (net("""self.embed = nn.Embedding(1000, 48)
            self.block = Block(width=64)
            self.out = nn.Linear(48, 1000)""",
         """x
         return self.out(self.block(self.embed(x)))""",
         """
         class Block(nn.Module):
             def __init__(self, width, wider=4):
                 super().__init__()
                 self.norm = nn.LayerNorm(width)
                 self.up = nn.Linear(width, wider * width)
                 self.down = nn.Linear(wider * width, width)

             def forward(self, x):
                 return x + self.down(F.gelu(self.up(self.norm(x))))
         """),
     "x: int64[b, t]", "return x + self.down(F.gelu(self.up(self.norm(x))))",
     "change 64 to 48 (width of block)"),
    (net("""self.conv = nn.Conv2d(3, 16, 3, padding=1)
            self.bn = nn.BatchNorm2d(32)
            self.fc = nn.Linear(16, 10)""",
         """x
         x = torch.relu(self.bn(self.conv(x)))
         return self.fc(x.mean((2, 3)))"""),
     "x: [b, 3, h, w]", "x = torch.relu(self.bn(self.conv(x)))",
     "change 32 to 16 (num_features of bn)"),
]
DTYPES = [
    (net("self.embed = nn.Embedding(100, 16)\nself.out = nn.Linear(16, 100)",
         """idx
         return self.out(self.embed(idx))"""),
     "idx: float32[b, t]", "return self.out(self.embed(idx))",
     "declare idx: int64[b, t]"),
    (net("self.fc = nn.Linear(16, 10)",
         """x, y
         return F.cross_entropy(self.fc(x), y)"""),
     "x: [b, 16]; y: float32[b]", "return F.cross_entropy(self.fc(x), y)",
     "declare y: int64[b]"),
    (net("self.fc = nn.Linear(16, 10)",
         """x, index
         return self.fc(x).gather(1, index)"""),
     "x: [b, 16]; index: float32[b, 1]", "return self.fc(x).gather(1, index)",
     "declare index: int64[b, 1]"),
    (net("self.fc = nn.Linear(16, 16)",
         """x, mask
         return self.fc(x).masked_fill(mask[..., None], 0.0)"""),
     "x: [b, t, 16]; mask: float32[b, t]", "return self.fc(x).masked_fill(mask[..., None], 0.0)",
     "declare mask: bool[b, t]"),
    (net("self.conv = nn.Conv2d(3, 8, 3)\nself.out = nn.Conv2d(8, 1, 1)",
         """x
         return self.out(self.conv(x).relu())"""),
     "x: uint8[b, 3, 32, 32]", "return self.out(self.conv(x).relu())",
     "declare x: float32[b, 3, 32, 32]"),
]
FLATTENS = [
    (net("self.conv = nn.Conv2d(1, 8, 3, padding=1)\nself.fc = nn.Linear(8 * 14 * 14, 10)",
         """x
         x = F.max_pool2d(torch.relu(self.conv(x)), 2)
         return self.fc(x)"""),
     "x: [b, 1, 28, 28]", "return self.fc(x)",
     "change x to x.flatten(1)"),
    (net("self.fc1 = nn.Linear(784, 64)\nself.fc2 = nn.Linear(64, 10)",
         """x
         return self.fc2(torch.relu(self.fc1(x)))"""),
     "x: [b, 1, 28, 28]", "return self.fc2(torch.relu(self.fc1(x)))",
     "change x to x.flatten(1)"),
    (net("""self.features = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2))
            self.head = nn.Sequential(nn.Linear(6 * 14 * 14, 32), nn.ReLU(), nn.Linear(32, 10))""",
         """x
         x = self.features(x)
         return self.head(x)"""),
     "x: [b, 3, 32, 32]", "return self.head(x)",
     "change x to x.flatten(1)"),
    (net("""self.conv = nn.Conv2d(3, 16, 3, stride=2)
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(16, 10)""",
         """x
         x = self.pool(torch.relu(self.conv(x)))
         return self.fc(x)"""),
     "x: [b, 3, 32, 32]", "return self.fc(x)",
     "change x to x.flatten(1)"),
    (net("self.conv = nn.Conv1d(4, 8, 3, padding=1)\nself.fc = nn.Linear(8 * 50, 2)",
         """x
         x = torch.relu(self.conv(x))
         return self.fc(x)"""),
     "x: [b, 4, 50]", "return self.fc(x)",
     "change x to x.flatten(1)"),
]
MATMULS = [
    (net("self.w = nn.Parameter(torch.zeros(32, 16))",
         """x
         return x @ self.w"""),
     "x: [b, 16]", "return x @ self.w",
     "change self.w to self.w.transpose(-2, -1)"),
    (net("self.q = nn.Linear(16, 16)\nself.k = nn.Linear(16, 16)\nself.v = nn.Linear(16, 16)",
         """x
         q, k, v = self.q(x), self.k(x), self.v(x)
         scores = q @ k / 4.0
         return scores.softmax(-1) @ v"""),
     "x: [b, t, 16]", "scores = q @ k / 4.0",
     "change k to k.transpose(-2, -1)"),
    (net("self.embed = nn.Linear(64, 32)",
         """image, text
         a = F.normalize(self.embed(image), dim=-1)
         b = F.normalize(self.embed(text), dim=-1)
         return torch.matmul(a, b)"""),
     "image: [n, 64]; text: [m, 64]", "return torch.matmul(a, b)",
     "change b to b.transpose(-2, -1)"),
    (net("self.q = nn.Linear(24, 24)\nself.k = nn.Linear(24, 24)",
         """x, y
         q = self.q(x)
         k = self.k(y)
         return torch.bmm(q, k).softmax(-1)"""),
     "x: [b, n, 24]; y: [b, m, 24]", "return torch.bmm(q, k).softmax(-1)",
     "change k to k.transpose(-2, -1)"),
    (net("self.embed = nn.Embedding(100, 16)\nself.fc = nn.Linear(16, 16)",
         """idx
         x = torch.tanh(self.fc(self.embed(idx)))
         return x @ self.embed.weight"""),
     "idx: int64[b, t]", "return x @ self.embed.weight",
     "change self.embed.weight to self.embed.weight.transpose(-2, -1)"),
]
VIEWS = [
    (net("self.conv = nn.Conv2d(3, 16, 5)\nself.fc = nn.Linear(16 * 14 * 14, 10)",
         """x
         x = F.max_pool2d(torch.relu(self.conv(x)), 2)
         x = x.view(-1, 16 * 5 * 5)
         return self.fc(x)"""),
     "x: [b, 3, 32, 32]", "return self.fc(x)",
     "change 16 * 5 * 5 to 3136"),
    (net("self.qkv = nn.Linear(64, 192)",
         """x
         b, t, c = x.shape
         q, k, v = self.qkv(x).chunk(3, -1)
         q = q.view(b, t, 8, 16).transpose(1, 2)
         k = k.view(b, t, 8, 8).transpose(1, 2)
         return q @ k.transpose(-2, -1)"""),
     "x: [b, t, 64]", "q = q.view(b, t, 8, 16).transpose(1, 2)",
     "change 16 to 8"),
    (net("self.fc = nn.Linear(16, 128 * 7 * 7)\nself.up = nn.ConvTranspose2d(128, 1, 4, 2, 1)",
         """z
         x = self.fc(z).view(-1, 128, 8, 8)
         return self.up(x)"""),
     "z: [b, 16]", "x = self.fc(z).view(-1, 128, 8, 8)",
     "change self.fc(z).view(-1, 128, 8, 8) to self.fc(z).view(-1, 128, 7, 7)"),
    (net("self.fc = nn.Linear(32, 12)",
         """x
         return self.fc(x).view(x.shape[0], 4, 4).softmax(-1)"""),
     "x: [b, 32]", "return self.fc(x).view(x.shape[0], 4, 4).softmax(-1)",
     "change 4 to 3"),
    (net("self.heads = 4\nself.proj = nn.Linear(32, 32)",
         """x
         b, t, c = x.shape
         x = self.proj(x).view(b, t, self.heads, c // self.heads).transpose(1, 2)
         return x.view(b, t, c)"""),
     "x: [b, t, 32]", "return x.view(b, t, c)",
     "change x.view(b, t, c) to x.reshape(b, t, c)"),
]
UNSQUEEZES = [
    (net("self.lstm = nn.LSTM(8, 16, batch_first=True)\nself.att = nn.Linear(16, 1)",
         """x
         h, _ = self.lstm(x)
         w = self.att(h).squeeze(-1).softmax(-1)
         return (h * w).sum(1)"""),
     "x: [b, t, 8]", "return (h * w).sum(1)",
     "change w to w.unsqueeze(-1)"),
    (net("self.fc = nn.Linear(16, 16)",
         """x, scale
         return self.fc(x) * scale"""),
     "x: [b, t, 16]; scale: [b, t]", "return self.fc(x) * scale",
     "change scale to scale.unsqueeze(-1)"),
    (net("self.conv = nn.Conv1d(1, 8, 3, padding=1)",
         """x
         return self.conv(x).relu().mean(-1)"""),
     "x: [b, 100]", "return self.conv(x).relu().mean(-1)",
     "change x to x.unsqueeze(1)"),
    (net("self.conv = nn.Conv2d(3, 8, 3, padding=1)\nself.se = nn.Linear(8, 8)",
         """x
         x = self.conv(x)
         gate = torch.sigmoid(self.se(x.mean((2, 3))))
         return x * gate[:, :, None]"""),
     "x: [b, 3, h, w]", "return x * gate[:, :, None]",
     "change gate[:, :, None] to gate[:, :, None].unsqueeze(-1)"),
    (net("self.embed = nn.Embedding(50, 16)\nself.time = nn.Linear(1, 16)",
         """tokens, when
         return self.embed(tokens) + self.time(when)"""),
     "tokens: int64[b, t]; when: [b, 1]", "return self.embed(tokens) + self.time(when)",
     "change self.time(when) to self.time(when).unsqueeze(1)"),
]
CATS = [
    (net("self.a = nn.Conv2d(3, 8, 1)\nself.b = nn.Conv2d(3, 4, 1)\nself.out = nn.Conv2d(12, 2, 1)",
         """x
         return self.out(torch.cat([self.a(x), self.b(x)], dim=0))"""),
     "x: [b, 3, h, w]", "return self.out(torch.cat([self.a(x), self.b(x)], dim=0))",
     "change 0 to 1"),
    (net("self.a = nn.Linear(4, 8)\nself.b = nn.Linear(6, 8)\nself.out = nn.Linear(16, 1)",
         """x, y
         both = torch.cat((self.a(x), self.b(y)))
         return self.out(both)"""),
     "x: [b, 4]; y: [b, 6]", "return self.out(both)",
     "change torch.cat((self.a(x), self.b(y))) to torch.cat((self.a(x), self.b(y)), dim=1)"),
    (net("self.down = nn.Conv2d(3, 8, 2, 2)\nself.up = nn.ConvTranspose2d(8, 5, 2, 2)\n"
         "self.out = nn.Conv2d(8, 1, 1)",
         """x
         y = self.up(self.down(x))
         y = torch.cat([x, y], 2)
         return self.out(y)"""),
     "x: [b, 3, 2*h, 2*w]", "y = torch.cat([x, y], 2)",
     "change 2 to 1"),
    (net("self.embed = nn.Embedding(10, 6)\nself.out = nn.Linear(10, 2)",
         """x, kind
         return self.out(torch.cat([x, self.embed(kind)], dim=1))"""),
     "x: [b, t, 4]; kind: int64[b, t]", "return self.out(torch.cat([x, self.embed(kind)], dim=1))",
     "change 1 to -1"),
    (net("self.token = nn.Parameter(torch.zeros(1, 1, 16))\nself.out = nn.Linear(16, 2)",
         """x
         token = self.token.expand(x.shape[0], -1, -1)
         x = torch.cat([token, x], dim=-1)
         return self.out(x)"""),
     "x: [b, t, 16]", "return self.out(x)",
     "change -1 to 1"),
]
CHANNELS_LAST = [
    (net("self.conv = nn.Conv2d(3, 8, 3)",
         """x
         return self.conv(x).relu()"""),
     "x: [b, h, w, 3]", "return self.conv(x).relu()",
     "change x to x.permute(0, 3, 1, 2)"),
    (net("self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2))\n"
         "self.fc = nn.Linear(16, 10)",
         """x
         x = self.net(x).mean((2, 3))
         return self.fc(x)"""),
     "x: [b, 64, 64, 3]", "x = self.net(x).mean((2, 3))",
     "change x to x.permute(0, 3, 1, 2)"),
    (net("self.bn = nn.BatchNorm2d(3)\nself.conv = nn.Conv2d(3, 8, 3)",
         """x
         return self.conv(self.bn(x))"""),
     "x: [b, h, w, 3]", "return self.conv(self.bn(x))",
     "change x to x.permute(0, 3, 1, 2)"),
    (net("self.conv = nn.Conv1d(12, 8, 3, padding=1)",
         """x
         return self.conv(x).relu()"""),
     "x: [b, t, 12]", "return self.conv(x).relu()",
     "change x to x.transpose(-2, -1)"),
    (net("self.conv = nn.Conv2d(1, 4, 5)\nself.fc = nn.Linear(4 * 24 * 24, 10)",
         """x
         x = self.conv(x)
         return self.fc(x.flatten(1))"""),
     "x: [b, 28, 28, 1]", "x = self.conv(x)",
     "change x to x.permute(0, 3, 1, 2)"),
]
POOLINGS = [
    (net("self.pool = nn.MaxPool2d(2, ceil_mode=True)\nself.up = nn.Upsample(scale_factor=2)\n"
         "self.down = nn.AvgPool2d(2)",
         """x
         a = self.pool(x)
         b = self.down(x)
         return a + b"""),
     "x: [b, 3, 33, 33]", "return a + b",
     "change True to False (ceil_mode of pool)"),
    (net("self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)\nself.pool = nn.MaxPool2d(2)",
         """x
         return torch.cat([self.conv(x), self.pool(x)], dim=1)"""),
     "x: [b, 3, 15, 15]", "return torch.cat([self.conv(x), self.pool(x)], dim=1)",
     "add ceil_mode=True (pool)"),
    (net("self.pool = nn.MaxPool2d(2, ceil_mode=True)\nself.fc = nn.Linear(3 * 7 * 7, 10)",
         """x
         return self.fc(self.pool(x).flatten(1))"""),
     "x: [b, 3, 15, 15]", "return self.fc(self.pool(x).flatten(1))",
     "change True to False (ceil_mode of pool)"),
    (net("self.pool = nn.MaxPool2d(3, 2)\nself.conv = nn.Conv2d(3, 3, 3, 2, 1)",
         """x
         short = self.pool(x)
         return self.conv(x) + short"""),
     "x: [b, 3, h, w]", "return self.conv(x) + short",
     "add padding=1 (pool)"),
    (net("self.pool = nn.AvgPool1d(2)\nself.conv = nn.Conv1d(4, 4, 3, 2, 1)",
         """x
         return self.pool(x) + self.conv(x)"""),
     "x: [b, 4, t]", "return self.pool(x) + self.conv(x)",
     "add ceil_mode=True (pool)"),
]

KINDS = {
    "mask": MASKS, "vit": VITS, "constructor": CONSTRUCTORS, "dtype": DTYPES, "flatten": FLATTENS,
    "matmul": MATMULS, "view": VIEWS, "unsqueeze": UNSQUEEZES, "cat": CATS, "channels_last": CHANNELS_LAST,
    "pooling": POOLINGS,
}  # fmt: skip
MISTAKES = [
    Mistake(f"{kind}_{index}", *entry)
    for kind, entries in KINDS.items()
    for index, entry in enumerate(entries)
]
