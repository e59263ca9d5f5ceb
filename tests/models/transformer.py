# ruff: noqa: RUF059, C408  # as users write it
"""Encoders and decoders over sequences: masks, positions, heads, losses."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.tracer.host.operators import INSTALLED

from .entry import Entry, always, broadcast


class SentenceEncoder(nn.Module):
    """nn.TransformerEncoder with learnt positions for at most 64 tokens."""

    def __init__(self, vocab: int = 50, dim: int = 16, max_len: int = 64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(max_len, dim))
        layer = nn.TransformerEncoderLayer(dim, nhead=4, dim_feedforward=32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.pos[: tokens.size(1)]
        return self.head(self.encoder(x)[:, 0])


class MaskedEncoder(nn.Module):
    """Padding mask beside the features, in the sequence-first layout."""

    def __init__(self, dim: int = 8):
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, nhead=2, dim_feedforward=16, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        x = self.encoder(x, src_key_padding_mask=pad)
        return x.transpose(0, 1)


class SinusoidalEncoding(nn.Module):
    def __init__(self, dim: int, max_len: int = 100):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        pe = torch.zeros(max_len, 1, dim)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[: x.size(0)]


class Translator(nn.Module):
    """nn.Transformer with a causal mask for the target, sequence first."""

    def __init__(self, dim: int = 8):
        super().__init__()
        self.src_embed = nn.Embedding(20, dim)
        self.tgt_embed = nn.Embedding(30, dim)
        self.position = SinusoidalEncoding(dim)
        self.transformer = nn.Transformer(dim, 2, 1, 1, 16)
        self.generator = nn.Linear(dim, 30)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        tgt_mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[0])
        src = self.position(self.src_embed(src))
        tgt = self.position(self.tgt_embed(tgt))
        return self.generator(self.transformer(src, tgt, tgt_mask=tgt_mask))


class CausalSelfAttention(nn.Module):
    """Written by hand, with the mask in a buffer of the largest block."""

    def __init__(self, n_embd: int, n_head: int, block_size: int):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head = n_head
        self.n_embd = n_embd
        mask = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", mask.view(1, 1, block_size, block_size))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class SdpaSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.n_head, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class GPTBlock(nn.Module):
    def __init__(self, attn: nn.Module, n_embd: int):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = attn
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.ModuleDict(
            dict(c_fc=nn.Linear(n_embd, 4 * n_embd), act=nn.GELU(), c_proj=nn.Linear(4 * n_embd, n_embd))
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        m = self.mlp
        return x + m.c_proj(m.act(m.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    """The decoder with an explicit check of the block size, and a loss when targets are given."""

    def __init__(
        self, block_size: int = 128, n_layer: int = 2, n_head: int = 2, n_embd: int = 16, vocab: int = 65
    ):
        super().__init__()
        self.block_size = block_size
        blocks = [GPTBlock(CausalSelfAttention(n_embd, n_head, block_size), n_embd) for _ in range(n_layer)]
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocab, n_embd),
                wpe=nn.Embedding(block_size, n_embd),
                drop=nn.Dropout(0.1),
                h=nn.ModuleList(blocks),
                ln_f=nn.LayerNorm(n_embd),
            )
        )
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        device = idx.device
        b, t = idx.size()
        assert t <= self.block_size, (
            f"Cannot forward sequence of length {t}, block size is only {self.block_size}"
        )
        pos = torch.arange(0, t, dtype=torch.long, device=device).unsqueeze(0)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


class UncheckedGPT(nn.Module):
    """No assertion: the table of positions or the mask ends the story at 128."""

    def __init__(self, positions: int = 128, mask: int = 128):
        super().__init__()
        self.wte = nn.Embedding(40, 8)
        self.wpe = nn.Embedding(positions, 8)
        self.block = GPTBlock(CausalSelfAttention(8, 2, mask), 8)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(positions)
        return self.block(x) @ self.wte.weight.T


class SdpaGPT(nn.Module):
    def __init__(self, n_layer: int = 2):
        super().__init__()
        self.wte = nn.Embedding(40, 12)
        self.blocks = nn.Sequential(*[GPTBlock(SdpaSelfAttention(12, 3), 12) for _ in range(n_layer)])
        self.norm = nn.RMSNorm(12)
        self.head = nn.Linear(12, 40)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.wte(tokens))))


class SliceBufferGPT(nn.Module):
    """Adds a causal mask cut from a buffer; past the buffer's end the slice is short, and only size 1
    broadcasts.
    """

    def __init__(self, max_len: int = 128, dim: int = 8):
        super().__init__()
        self.to_qkv = nn.Linear(dim, 3 * dim)
        self.register_buffer("mask", torch.triu(torch.full((max_len, max_len), float("-inf")), diagonal=1))

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[1]
        q, k, v = torch.split(self.to_qkv(x), x.shape[-1], -1)
        scores = torch.bmm(q, k.transpose(1, 2)) / x.size(-1) ** 0.5
        scores = scores + self.mask[:t, :t]
        return torch.bmm(scores.softmax(-1), v)


class RMSNorm(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate_half(x: Tensor) -> Tensor:
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def repeat_kv(x: Tensor, n_rep: int) -> Tensor:
    bs, n_kv_heads, slen, head_dim = x.shape
    if n_rep == 1:
        return x
    x = x[:, :, None, :, :].expand(bs, n_kv_heads, n_rep, slen, head_dim)
    return x.reshape(bs, n_kv_heads * n_rep, slen, head_dim)


class LlamaAttention(nn.Module):
    """Rotary positions, grouped queries, and an optional cache of earlier keys and values."""

    def __init__(self, dim: int = 16, heads: int = 4, kv_heads: int = 2):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.wq = nn.Linear(dim, heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(heads * self.head_dim, dim, bias=False)
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, self.head_dim, 2) / self.head_dim))

    def forward(
        self, x: Tensor, past_k: Tensor | None = None, past_v: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        b, t, _ = x.shape
        start = past_k.shape[2] if past_k is not None else 0
        q = self.wq(x).view(b, t, self.heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(b, t, self.kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(b, t, self.kv_heads, self.head_dim).transpose(1, 2)
        freqs = torch.outer(torch.arange(start, start + t), self.inv_freq)
        angles = torch.cat((freqs, freqs), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        if past_k is not None and past_v is not None:
            k = torch.cat([past_k, k], dim=2)
            v = torch.cat([past_v, v], dim=2)
        cache = (k, v)
        k = repeat_kv(k, self.heads // self.kv_heads)
        v = repeat_kv(v, self.heads // self.kv_heads)
        mask = torch.full((t, start + t), float("-inf")).triu(diagonal=start + 1)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim) + mask
        out = torch.matmul(F.softmax(scores.float(), dim=-1).type_as(q), v)
        return self.wo(out.transpose(1, 2).contiguous().view(b, t, -1)), cache


class Llama(nn.Module):
    def __init__(self, dim: int = 16):
        super().__init__()
        self.tok = nn.Embedding(50, dim)
        self.norm1 = RMSNorm(dim)
        self.attn = LlamaAttention(dim)
        self.norm2 = RMSNorm(dim)
        self.w1, self.w3 = nn.Linear(dim, 24, bias=False), nn.Linear(dim, 24, bias=False)
        self.w2 = nn.Linear(24, dim, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.tok(tokens)
        h = h + self.attn(self.norm1(h))[0]
        y = self.norm2(h)
        h = h + self.w2(F.silu(self.w1(y)) * self.w3(y))
        return F.linear(h, self.tok.weight)


class AlibiAttention(nn.Module):
    """A bias that grows with the distance, computed from the length."""

    def __init__(self, dim: int = 8, heads: int = 4):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.heads = heads
        self.register_buffer("slopes", torch.tensor([2.0 ** -(i + 1) for i in range(heads)]))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        distance = (torch.arange(n)[None, :] - torch.arange(n)[:, None]).abs()
        bias = -distance[None] * self.slopes[:, None, None]
        out, _ = self.attn(x, x, x, attn_mask=bias.repeat(x.shape[0], 1, 1), need_weights=False)
        return out


class RelativeBias(nn.Module):
    """Attention by einsum, with a table of biases for distances up to 15."""

    def __init__(self, dim: int = 8, heads: int = 2, longest: int = 16):
        super().__init__()
        self.heads, self.longest = heads, longest
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.table = nn.Embedding(2 * longest - 1, heads)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _, h = *x.shape, self.heads
        q, k, v = self.to_qkv(x).view(b, n, 3, h, -1).permute(2, 0, 3, 1, 4)
        sim = torch.einsum("b h i d, b h j d -> b h i j", q, k)
        position = torch.arange(n)
        relative = position[:, None] - position[None, :] + self.longest - 1
        sim = sim + self.table(relative).permute(2, 0, 1)
        out = torch.einsum("bhij,bhjd->bhid", sim.softmax(dim=-1), v)
        return out.permute(0, 2, 1, 3).flatten(2)


class LocalAttention(nn.Module):
    """Attention in blocks of 8 tokens, each of which sees the block before it too."""

    def __init__(self, window: int = 8):
        super().__init__()
        self.window = window

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        b, t, d = q.shape
        w = self.window
        bq, bk, bv = (z.reshape(b, t // w, w, d) for z in (q, k, v))
        bk = torch.cat((F.pad(bk, (0, 0, 0, 0, 1, 0))[:, :-1], bk), dim=2)
        bv = torch.cat((F.pad(bv, (0, 0, 0, 0, 1, 0))[:, :-1], bv), dim=2)
        sim = torch.einsum("bhie,bhje->bhij", bq, bk) * d**-0.5
        out = torch.einsum("bhij,bhje->bhie", sim.softmax(-1), bv)
        return out.reshape(b, -1, d)


class Perceiver(nn.Module):
    """Latents attend to inputs of any length."""

    def __init__(self, dim: int = 8, latents: int = 4):
        super().__init__()
        self.latents = nn.Parameter(torch.zeros(latents, dim))
        self.cross = nn.MultiheadAttention(dim, 2, kdim=5, vdim=5, batch_first=True)
        self.out = nn.Linear(latents * dim, 3)

    def forward(self, data: Tensor) -> Tensor:
        x = self.latents.unsqueeze(0).repeat(data.shape[0], 1, 1)
        x, _ = self.cross(x, data, data)
        return self.out(x.flatten(1))


class CrossAttention(nn.Module):
    """Queries from one sequence, keys from another, values from a third."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        out = F.scaled_dot_product_attention(self.norm(query), self.norm(key), value)
        return out + query


class LanguageModelLoss(nn.Module):
    """Shifts logits against labels, as training scripts do: one token alone leaves nothing to predict."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.head = nn.Linear(8, 30)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        logits = self.head(self.embed(tokens))
        shift_logits = logits[..., :-1, :].contiguous()
        shift_labels = labels[..., 1:].contiguous()
        return self.loss(shift_logits.view(-1, 30), shift_labels.view(-1))


class ClassifierLoss(nn.Module):
    """Cross entropy over time, classes in the second place."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, features: Tensor, target: Tensor) -> Tensor:
        logits = self.head(features).transpose(1, 2)
        return self.criterion(logits, target)


class ContrastiveLoss(nn.Module):
    """Image i belongs to text i: as many texts as images, told by the loss alone."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Linear(12, 8)
        self.text = nn.Linear(6, 8)

    def forward(self, images: Tensor, texts: Tensor) -> Tensor:
        i = F.normalize(self.image(images), dim=-1)
        t = F.normalize(self.text(texts), dim=-1)
        logits = i @ t.t()
        labels = torch.arange(images.shape[0])
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


TOKENS = "tokens: int64[b, t]"
AROUND_128 = {"b": (1, 2, 3), "t": (1, 2, 64, 126, 127, 128, 129, 130, 200)}


def cross_attention_accepts(a: int, b: int, c: int, q: int, k: int, v: int) -> bool:
    """Batches broadcast together, and every key has its value; the fused kernel, which since torch 2.14 takes
    rank 3 too, does not compare their numbers.
    """
    pair = broadcast(a, b)
    fused = INSTALLED >= (2, 14) and b == c and b in (a, 1)
    return (k == v or fused) and pair is not None and broadcast(pair, c) is not None


ENTRIES = (
    Entry(
        "encoder",
        lambda: SentenceEncoder().eval(),
        TOKENS,
        lambda b, t: t <= 64,
        "refined",
        probe={"b": (1, 2), "t": (1, 2, 32, 63, 64, 65, 100)},
    ),
    Entry(
        "encoder_training",
        SentenceEncoder,
        TOKENS,
        always,
        "proved",
        ("t <= 64",),
        probe={"b": (1, 2), "t": (1, 2, 32, 64)},
    ),
    Entry(
        "encoder_padding_mask",
        lambda: MaskedEncoder().eval(),
        "x: float32[b, t, 8]; pad: bool[c, s]",
        lambda b, t, c, s: b == c and t == s,
        "refined",
        probe={"b": (1, 2, 3), "t": (1, 2, 4), "c": (1, 2, 3), "s": (1, 2, 4)},
    ),
    Entry(
        "translator",
        lambda: Translator().eval(),
        "src: int64[s, b]; tgt: int64[t, c]",
        lambda s, b, t, c: b == c and s <= 100 and t <= 100,
        "refined",
        probe={"s": (1, 2, 99, 100, 101), "t": (1, 3, 100, 101), "b": (1, 2, 3), "c": (1, 2, 3)},
    ),
    Entry(
        "gpt", lambda: GPT().eval(), "idx: int64[b, t]", lambda b, t: t <= 128, "refined", probe=AROUND_128
    ),
    Entry("gpt_short", GPT, "idx: int64[b, t]", always, "proved", ("1 <= t <= 128",), probe=AROUND_128),
    Entry("gpt_long", GPT, "idx: int64[b, t]", lambda b, t: False, "refuted", ("t > 128",), probe=AROUND_128),
    # The loss flattens both, so that only the number of targets counts.
    Entry(
        "gpt_loss",
        GPT,
        "idx: int64[b, t]; targets: int64[c, s]",
        lambda b, t, c, s: t <= 128 and b * t == c * s,
        "refined",
        probe={"b": (1, 2, 3, 6), "t": (1, 2, 64, 128, 129), "c": (1, 2, 3, 4), "s": (1, 2, 3, 64, 128, 256)},
    ),
    Entry(
        "gpt_loss_same",
        GPT,
        "idx: int64[b, t]; targets: int64[b, t]",
        always,
        "proved",
        ("t <= 128",),
        probe=AROUND_128,
    ),
    Entry("gpt_positions", UncheckedGPT, TOKENS, lambda b, t: t <= 128, "refined", probe=AROUND_128),
    Entry(
        "gpt_mask",
        lambda: UncheckedGPT(positions=500),
        TOKENS,
        lambda b, t: t <= 128,
        "refined",
        probe=AROUND_128,
    ),
    Entry("gpt_sdpa", SdpaGPT, TOKENS, always, "proved", probe=AROUND_128),
    Entry(
        "gpt_added_mask",
        SliceBufferGPT,
        "x: float32[b, t, 8]",
        lambda b, t: t <= 128,
        "refined",
        probe=AROUND_128,
    ),
    # A buffer of a single position broadcasts over any length.
    Entry(
        "gpt_added_mask_of_one",
        lambda: SliceBufferGPT(max_len=1),
        "x: float32[b, t, 8]",
        always,
        "proved",
        probe=AROUND_128,
    ),
    Entry("llama", Llama, TOKENS, always, "proved", probe=AROUND_128),
    Entry(
        "llama_cache",
        LlamaAttention,
        "x: float32[b, t, 16]; past_k: float32[c, 2, p, 4]; past_v: float32[c, 2, r, 4]",
        lambda b, t, c, p, r: b == c and p == r,
        "refined",
        ("p >= 0", "r >= 0"),
        probe={"b": (1, 2), "t": (1, 3), "c": (1, 2), "p": (0, 1, 4), "r": (0, 1, 4)},
    ),
    Entry(
        "alibi",
        AlibiAttention,
        "x: float32[b, t, 8]",
        always,
        "proved",
        probe={"b": (1, 2, 3), "t": (1, 2, 7)},
    ),
    Entry(
        "relative_bias",
        RelativeBias,
        "x: float32[b, n, 8]",
        lambda b, n: n <= 16,
        "refined",
        probe={"b": (1, 2), "n": (1, 8, 15, 16, 17, 32)},
    ),
    Entry(
        "local_attention",
        LocalAttention,
        "q: float32[b, t, 4]; k: float32[b, t, 4]; v: float32[b, t, 4]",
        lambda b, t: t % 8 == 0,
        "refined",
        probe={"b": (1, 2, 4), "t": (1, 4, 7, 8, 9, 16, 20, 24)},
    ),
    Entry(
        "perceiver",
        Perceiver,
        "data: float32[b, n, 5]",
        always,
        "proved",
        probe={"b": (1, 2), "n": (1, 2, 50)},
    ),
    Entry(
        "cross_attention",
        CrossAttention,
        "query: float32[a, q, 8]; key: float32[b, k, 8]; value: float32[c, v, 8]",
        cross_attention_accepts,
        "refined",
        probe={"a": (1, 2, 3), "b": (1, 2, 3), "c": (1, 2), "q": (1, 4), "k": (1, 2, 3), "v": (1, 2, 3)},
    ),
    Entry(
        "language_model_loss",
        LanguageModelLoss,
        "tokens: int64[b, t]; labels: int64[c, s]",
        lambda b, t, c, s: b * (t - 1) == c * (s - 1),
        "refined",
        probe={"b": (1, 2, 3), "t": (1, 2, 3, 5), "c": (1, 2, 3), "s": (1, 2, 3, 5)},
    ),
    Entry(
        "classifier_loss",
        ClassifierLoss,
        "features: float32[b, t, 6]; target: int64[c, s]",
        lambda b, t, c, s: b == c and t == s,
        "refined",
        probe={"b": (1, 2, 3), "t": (1, 2), "c": (1, 2, 3), "s": (1, 2)},
    ),
    Entry(
        "contrastive_loss",
        ContrastiveLoss,
        "images: float32[b, 12]; texts: float32[c, 6]",
        lambda b, c: b == c,
        "refined",
        probe={"b": (1, 2, 3, 4, 5), "c": (1, 2, 3, 4, 6)},
    ),
)
