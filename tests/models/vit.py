# ruff: noqa: RUF059  # as users write it
"""Vision transformers, mixers and window attention: images cut into patches."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """A class token and learnt positions for an image of 32 by 32 in patches of 8."""

    def __init__(self, image: int = 32, patch: int = 8, dim: int = 16, depth: int = 2):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        cls = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat((cls, x), dim=1)
        x = x + self.pos_embed
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0])


class ViTPooled(nn.Module):
    """No class token: a single patch broadcasts over all sixteen positions."""

    def __init__(self, patch: int = 8, dim: int = 16):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, patch, patch)
        self.pos_embed = nn.Parameter(torch.zeros(1, 16, dim))
        self.block = Block(dim)
        self.head = nn.Linear(dim, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = self.block(x + self.pos_embed)
        return self.head(x.mean(dim=1))


class StrictViT(nn.Module):
    """Compares the size of the image with the one it was built for, as timm does."""

    def __init__(self, img_size: tuple[int, int] = (32, 16), patch: int = 8, dim: int = 16):
        super().__init__()
        self.img_size = img_size
        self.proj = nn.Conv2d(3, dim, patch, patch)
        self.block = Block(dim)
        self.head = nn.Linear(dim, 10)

    def forward(self, x: Tensor) -> Tensor:
        B, C, H, W = x.shape
        assert H == self.img_size[0] and W == self.img_size[1], (
            f"Input image size ({H}*{W}) doesn't match model"
        )
        x = self.proj(x).flatten(2).transpose(1, 2)
        return self.head(self.block(x).mean(1))


class SimpleViT(nn.Module):
    """Patches by view and permute, positions computed from the size of the image."""

    def __init__(self, patch: int = 8, dim: int = 16):
        super().__init__()
        self.patch = patch
        self.dim = dim
        self.to_patch_embedding = nn.Sequential(
            nn.LayerNorm(3 * patch * patch), nn.Linear(3 * patch * patch, dim), nn.LayerNorm(dim)
        )
        self.block = Block(dim)
        self.head = nn.Linear(dim, 10)

    def posemb_sincos_2d(self, h: int, w: int) -> Tensor:
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        omega = torch.arange(self.dim // 4) / (self.dim // 4 - 1)
        omega = 1.0 / (10000**omega)
        y = y.flatten()[:, None] * omega[None, :]
        x = x.flatten()[:, None] * omega[None, :]
        return torch.cat((x.sin(), x.cos(), y.sin(), y.cos()), dim=1)

    def forward(self, img: Tensor) -> Tensor:
        b, c, height, width = img.shape
        p = self.patch
        h, w = height // p, width // p
        x = img.view(b, c, h, p, w, p).permute(0, 2, 4, 3, 5, 1).reshape(b, h * w, p * p * c)
        x = self.to_patch_embedding(x)
        x = x + self.posemb_sincos_2d(h, w).unsqueeze(0)
        return self.head(self.block(x).mean(dim=1))


class InterpolatedViT(nn.Module):
    """Learnt positions for 4 by 4 patches, resized to the patches at hand."""

    def __init__(self, patch: int = 8, dim: int = 16):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, patch, patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, 17, dim))
        self.block = Block(dim)

    def interpolate_pos_encoding(self, h: int, w: int) -> Tensor:
        class_pos, patch_pos = self.pos_embed[:, :1], self.pos_embed[:, 1:]
        side = int(math.sqrt(patch_pos.shape[1]))
        patch_pos = patch_pos.reshape(1, side, side, -1).permute(0, 3, 1, 2)
        patch_pos = F.interpolate(patch_pos, size=(h, w), mode="bicubic", align_corners=False)
        return torch.cat((class_pos, patch_pos.permute(0, 2, 3, 1).view(1, h * w, -1)), dim=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x)
        h, w = x.shape[-2:]
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.repeat(x.size(0), 1, 1), x), dim=1)
        x = self.block(x + self.interpolate_pos_encoding(h, w))
        return x[:, 0]


class MixerBlock(nn.Module):
    def __init__(self, patches: int, dim: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(patches, 8), nn.GELU(), nn.Linear(8, patches))
        self.norm2 = nn.LayerNorm(dim)
        self.channels = nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, dim))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x).transpose(1, 2)
        x = x + self.tokens(y).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, patches: int = 12, dim: int = 8):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, 4, 4)
        self.blocks = nn.ModuleList([MixerBlock(patches, dim) for _ in range(2)])
        self.head = nn.Linear(dim, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = x.reshape(*x.shape[:2], -1).mT
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=-2))


def window_partition(x: Tensor, window_size: int) -> Tensor:
    B, H, W, C = x.shape
    x = x.view(B, H // window_size, window_size, W // window_size, window_size, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window_size, window_size, C)


def window_reverse(windows: Tensor, window_size: int, H: int, W: int) -> Tensor:
    B = int(windows.shape[0] / (H * W / window_size / window_size))
    x = windows.view(B, H // window_size, W // window_size, window_size, window_size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


class WindowAttention(nn.Module):
    """Attention in windows with a learnt bias for each relative position."""

    def __init__(self, dim: int, window_size: int, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.window_size = window_size
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window_size - 1) ** 2, heads))
        coords = torch.stack(
            torch.meshgrid(torch.arange(window_size), torch.arange(window_size), indexing="ij")
        )
        coords = torch.flatten(coords, 1)
        relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous() + window_size - 1
        self.register_buffer(
            "relative_position_index", relative[..., 0] * (2 * window_size - 1) + relative[..., 1]
        )
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        B_, N, C = x.shape
        qkv = self.qkv(x).reshape(B_, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = q @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        bias = bias.view(self.window_size**2, self.window_size**2, -1).permute(2, 0, 1).contiguous()
        attn = (attn + bias.unsqueeze(0)).softmax(-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B_, N, C))


class SwinBlock(nn.Module):
    def __init__(self, dim: int, window_size: int, shift: int):
        super().__init__()
        self.window_size = window_size
        self.shift = shift
        self.norm = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, window_size)
        self.mlp = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        B, H, W, C = x.shape
        shortcut = x
        x = self.norm(x)
        if self.shift > 0:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        windows = window_partition(x, self.window_size).view(-1, self.window_size * self.window_size, C)
        windows = self.attn(windows).view(-1, self.window_size, self.window_size, C)
        x = window_reverse(windows, self.window_size, H, W)
        if self.shift > 0:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        x = shortcut + x
        return x + self.mlp(x)


class PatchMerging(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x0 = x[:, 0::2, 0::2, :]
        x1 = x[:, 1::2, 0::2, :]
        x2 = x[:, 0::2, 1::2, :]
        x3 = x[:, 1::2, 1::2, :]
        return self.reduction(torch.cat([x0, x1, x2, x3], -1))


class Swin(nn.Module):
    """Patches of 2, windows of 4, one merging: sides of 16k, or of 16k + 1, whose last row the patches
    drop.
    """

    def __init__(self, dim: int = 8, window_size: int = 4):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, 2, 2)
        self.stage1 = nn.Sequential(
            SwinBlock(dim, window_size, 0), SwinBlock(dim, window_size, window_size // 2)
        )
        self.merge = PatchMerging(dim)
        self.stage2 = nn.Sequential(SwinBlock(2 * dim, window_size, 0), SwinBlock(2 * dim, window_size, 2))
        self.head = nn.Linear(2 * dim, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x).permute(0, 2, 3, 1).contiguous()
        x = self.stage1(x)
        x = self.merge(x)
        x = self.stage2(x)
        return self.head(x.mean(dim=(1, 2)))


class PaddedSwin(nn.Module):
    """Pads to whole windows and crops afterwards."""

    def __init__(self, dim: int = 8, window_size: int = 4):
        super().__init__()
        self.window_size = window_size
        self.block = SwinBlock(dim, window_size, 2)

    def forward(self, x: Tensor) -> Tensor:
        B, H, W, C = x.shape
        pad_r = (self.window_size - W % self.window_size) % self.window_size
        pad_b = (self.window_size - H % self.window_size) % self.window_size
        x = F.pad(x, (0, 0, 0, pad_r, 0, pad_b))
        x = self.block(x)
        if pad_r > 0 or pad_b > 0:
            x = x[:, :H, :W, :].contiguous()
        return x


class MaskedAutoencoderHead(nn.Module):
    """Turns tokens back into a square image, so that their number must be a square."""

    def __init__(self, dim: int = 8, patch: int = 4):
        super().__init__()
        self.patch = patch
        self.decoder_pred = nn.Linear(dim, patch * patch * 3)

    def unpatchify(self, x: Tensor) -> Tensor:
        p = self.patch
        h = w = int(x.shape[1] ** 0.5)
        assert h * w == x.shape[1]
        x = x.reshape(shape=(x.shape[0], h, w, p, p, 3))
        x = torch.einsum("nhwpqc->nchpwq", x)
        return x.reshape(shape=(x.shape[0], 3, h * p, w * p))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.unpatchify(self.decoder_pred(tokens))


class AxialAttention(nn.Module):
    """Attends along rows, then along columns, with batch and the other axis folded together."""

    def __init__(self, dim: int = 8):
        super().__init__()
        self.row = Attention(dim)
        self.column = Attention(dim)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        x = x.permute(0, 2, 3, 1).reshape(b * h, w, c)
        x = self.row(x).view(b, h, w, c)
        x = x.permute(0, 2, 1, 3).reshape(b * w, h, c)
        x = self.column(x).view(b, w, h, c)
        return x.permute(0, 3, 2, 1)


def patches(h: int, w: int, patch: int) -> int:
    return (h // patch) * (w // patch)


IMAGE = "x: float32[b, 3, h, w]"
SIDES_8 = {
    "b": (1, 2),
    "h": (1, 7, 8, 15, 16, 31, 32, 39, 40, 64, 128),
    "w": (8, 15, 16, 23, 32, 40, 64, 128, 135),
}

ENTRIES = (
    Entry("vit", ViT, IMAGE, lambda b, h, w: patches(h, w, 8) == 16, "refined", probe=SIDES_8),
    Entry(
        "vit_square",
        ViT,
        "x: float32[b, 3, s, s]",
        lambda b, s: 32 <= s < 40,
        "refined",
        probe={"s": (1, 8, 31, 32, 33, 39, 40)},
    ),
    Entry("vit_fixed", ViT, "x: float32[b, 3, 32, 32]", lambda b: True, "proved", probe={"b": (1, 2, 3, 7)}),
    Entry(
        "vit_pooled", ViTPooled, IMAGE, lambda b, h, w: patches(h, w, 8) in (1, 16), "refined", probe=SIDES_8
    ),
    Entry("vit_strict", StrictViT, IMAGE, lambda b, h, w: (h, w) == (32, 16), "refined", probe=SIDES_8),
    Entry(
        "vit_simple",
        SimpleViT,
        "img: float32[b, 3, h, w]",
        lambda b, h, w: h % 8 == 0 and w % 8 == 0,
        "refined",
        probe=SIDES_8,
    ),
    Entry(
        "vit_interpolated",
        InterpolatedViT,
        IMAGE,
        lambda b, h, w: h >= 8 and w >= 8,
        "refined",
        probe=SIDES_8,
    ),
    Entry(
        "mixer",
        Mixer,
        IMAGE,
        lambda b, h, w: patches(h, w, 4) == 12,
        "refined",
        probe={"b": (1, 2), "h": (4, 8, 11, 12, 15, 16, 19, 48), "w": (3, 4, 12, 15, 16, 19, 24, 27, 48)},
    ),
    Entry(
        "swin",
        Swin,
        IMAGE,
        lambda b, h, w: h >= 16 and w >= 16 and h % 16 <= 1 and w % 16 <= 1,
        "refined",
        probe={"b": (1, 2), "h": (1, 8, 15, 16, 17, 18, 24, 32, 33), "w": (16, 17, 24, 32, 47, 48)},
    ),
    Entry(
        "swin_padded",
        PaddedSwin,
        "x: float32[b, h, w, 8]",
        lambda b, h, w: True,
        "proved",
        probe={"b": (1, 2), "h": (1, 3, 4, 5, 9), "w": (1, 2, 4, 8, 11)},
    ),
    Entry(
        "unpatchify",
        MaskedAutoencoderHead,
        "tokens: float32[b, n, 8]",
        lambda b, n: math.isqrt(n) ** 2 == n,
        "refined",
        ("n <= 64",),
        probe={"n": (1, 2, 3, 4, 8, 9, 15, 16, 17, 48, 49, 63, 64)},
    ),
    Entry(
        "axial_attention",
        AxialAttention,
        "x: float32[b, 8, h, w]",
        lambda b, h, w: True,
        "proved",
        probe={"h": (1, 2, 5), "w": (1, 3)},
    ),
)
