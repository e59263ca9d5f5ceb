"""Generators, discriminators, autoencoders, flows, diffusion."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry, always, broadcast


class DCGANGenerator(nn.Module):
    def __init__(self, nz: int = 8, ngf: int = 2):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 8),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 8, ngf * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, 3, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z: Tensor) -> Tensor:
        return self.main(z)


class DCGANDiscriminator(nn.Module):
    """Halves four times, then a valid convolution of 4: any side from 64 up."""

    def __init__(self, ndf: int = 2):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 4),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 4, ndf * 8, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 8),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input: Tensor) -> Tensor:
        return self.main(input).view(-1, 1).squeeze(1)


class DiscriminatorLoss(nn.Module):
    """One label an image: true only while the discriminator gives one number an image."""

    def __init__(self) -> None:
        super().__init__()
        self.discriminator = DCGANDiscriminator()

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return F.binary_cross_entropy(self.discriminator(images), labels)


def discriminator_loss_accepts(b: int, h: int, w: int, n: int) -> bool:
    """Numbers an image times images; unlike most losses this one does not broadcast."""
    return h >= 64 and w >= 64 and b * (h // 16 - 3) * (w // 16 - 3) == n


class ESPCN(nn.Module):
    def __init__(self, upscale: int = 3):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, padding=2)
        self.conv2 = nn.Conv2d(8, 4, 3, padding=1)
        self.conv3 = nn.Conv2d(4, upscale**2, 3, padding="same")
        self.pixel_shuffle = nn.PixelShuffle(upscale)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.conv1(x))
        x = torch.tanh(self.conv2(x))
        return torch.sigmoid(self.pixel_shuffle(self.conv3(x)))


class SuperResolutionLoss(nn.Module):
    """Compares with an image of twice the size; the mean squared error broadcasts where sizes are 1."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 12, 3, padding=1)

    def forward(self, low: Tensor, high: Tensor) -> Tensor:
        out = F.pixel_shuffle(self.body(low), 2)
        base = F.interpolate(low, scale_factor=2, mode="bicubic", align_corners=False)
        return F.mse_loss(out + base, high)


def super_resolution_accepts(b: int, h: int, w: int, c: int, big_h: int, big_w: int) -> bool:
    pairs = ((b, c), (2 * h, big_h), (2 * w, big_w))
    return all(broadcast(mine, theirs) is not None for mine, theirs in pairs)


class UnshuffleNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.PixelUnshuffle(4)
        self.conv = nn.Conv2d(48, 48, 3, padding=1, groups=4)
        self.up = nn.PixelShuffle(4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.up(self.conv(self.down(x)))


class VAE(nn.Module):
    """Flattens 4 by 4 features, and views 4 by 4 again on the way up."""

    def __init__(self, latent: int = 4):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 4, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(4, 8, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(8, 8, 4, 2, 1),
            nn.ReLU(),
        )
        self.fc_mu = nn.Linear(8 * 4 * 4, latent)
        self.fc_var = nn.Linear(8 * 4 * 4, latent)
        self.fc_up = nn.Linear(latent, 8 * 4 * 4)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(8, 8, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 4, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(4, 3, 4, 2, 1),
        )

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = torch.flatten(self.encoder(x), start_dim=1)
        mu, logvar = self.fc_mu(h), self.fc_var(h)
        z = self.reparameterize(mu, logvar)
        up = self.fc_up(z).view(-1, 8, 4, 4)
        recon = self.decoder(up)
        loss = F.mse_loss(recon, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return recon, mu, loss + kld


def vae_accepts(b: int, h: int, w: int) -> bool:
    """16 cells after three halvings, and then the loss compares with 32 by 32: no side here is 1."""
    return h == 32 and w == 32


class VectorQuantizer(nn.Module):
    def __init__(self, codes: int = 10, dim: int = 4):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, z.shape[-1])
        distances = (
            torch.sum(flat**2, dim=1, keepdim=True)
            + torch.sum(self.codebook.weight**2, dim=1)
            - 2 * torch.matmul(flat, self.codebook.weight.t())
        )
        indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(indices.shape[0], self.codebook.num_embeddings)
        encodings.scatter_(1, indices, 1)
        quantized = torch.matmul(encodings, self.codebook.weight).view(z.shape)
        loss = F.mse_loss(quantized.detach(), z) + F.mse_loss(quantized, z.detach())
        quantized = z + (quantized - z).detach()
        return quantized.permute(0, 3, 1, 2).contiguous(), loss


class VQVAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv2d(3, 4, 4, stride=4)
        self.vq = VectorQuantizer()
        self.decoder = nn.ConvTranspose2d(4, 3, 4, stride=4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        quantized, loss = self.vq(self.encoder(x))
        return self.decoder(quantized), loss


class Coupling(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(channels // 2, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, channels, 3, padding=1)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x.chunk(2, 1)
        log_s, t = self.net(a).chunk(2, 1)
        s = torch.sigmoid(log_s + 2)
        return torch.cat([a, (b + t) * s], 1), s.log().flatten(1).sum(1)


class Glow(nn.Module):
    """Squeezes 2 by 2 into channels twice, and keeps half each time."""

    def __init__(self) -> None:
        super().__init__()
        self.flow1 = Coupling(12)
        self.flow2 = Coupling(24)

    @staticmethod
    def squeeze(x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        x = x.view(b, c, h // 2, 2, w // 2, 2)
        x = x.permute(0, 1, 3, 5, 2, 4).contiguous()
        return x.view(b, c * 4, h // 2, w // 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x, logdet1 = self.flow1(self.squeeze(x))
        keep, x = x.chunk(2, 1)
        x, logdet2 = self.flow2(self.squeeze(x))
        log_p = -0.5 * (keep.pow(2).flatten(1).sum(1) + x.pow(2).flatten(1).sum(1))
        return x, log_p + logdet1 + logdet2


class TimeEmbedding(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, time: Tensor) -> Tensor:
        half = self.dim // 2
        freqs = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
        args = time[:, None].float() * freqs[None, :]
        return self.mlp(torch.cat((args.sin(), args.cos()), dim=-1))


class ResidualBlock(nn.Module):
    def __init__(self, channels: int, time_dim: int):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(2, channels), nn.GroupNorm(2, channels)
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(time_dim, 2 * channels)

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        scale, shift = self.time(F.silu(emb))[:, :, None, None].chunk(2, dim=1)
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.norm2(h) * (scale + 1) + shift
        return x + self.conv2(F.silu(h))


class DenoisingNet(nn.Module):
    """A step a sample; one step serves all samples, and one sample takes any number of steps."""

    def __init__(self, channels: int = 4, dim: int = 8):
        super().__init__()
        self.time = TimeEmbedding(dim)
        self.inp = nn.Conv2d(3, channels, 3, padding=1)
        self.block1 = ResidualBlock(channels, dim)
        self.down = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.block2 = ResidualBlock(channels, dim)
        self.up = nn.ConvTranspose2d(channels, channels, 4, 2, 1)
        self.out = nn.Conv2d(2 * channels, 3, 1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        emb = self.time(t)
        h1 = self.block1(self.inp(x), emb)
        h2 = self.block2(self.down(h1), emb)
        return self.out(torch.cat((h1, self.up(h2)), dim=1))


class SpatialAttention(nn.Module):
    """Attention over all pixels, in channels-first layout."""

    def __init__(self, channels: int = 4):
        super().__init__()
        self.norm = nn.GroupNorm(2, channels)
        self.q, self.k, self.v, self.proj = (nn.Conv2d(channels, channels, 1) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        q, k, v = self.q(y), self.k(y), self.v(y)
        b, c, h, w = q.shape
        q = q.reshape(b, c, h * w).permute(0, 2, 1)
        k = k.reshape(b, c, h * w)
        attn = torch.bmm(q, k) * (int(c) ** (-0.5))
        attn = F.softmax(attn, dim=2).permute(0, 2, 1)
        y = torch.bmm(v.reshape(b, c, h * w), attn).reshape(b, c, h, w)
        return x + self.proj(y)


IMAGE = "x: float32[b, 3, h, w]"
FOURS = {"b": (1, 2), "h": (1, 2, 4, 5, 6, 7, 8, 12), "w": (1, 4, 8, 9, 10, 16)}

ENTRIES = (
    Entry(
        "dcgan_generator",
        lambda: DCGANGenerator().eval(),
        "z: float32[b, 8, 1, 1]",
        always,
        "proved",
        probe={"b": (1, 2, 5)},
    ),
    Entry(
        "dcgan_generator_training",
        DCGANGenerator,
        "z: float32[b, 8, h, w]",
        always,
        "proved",
        probe={"h": (1, 2), "w": (1, 3)},
    ),
    Entry(
        "dcgan_discriminator",
        lambda: DCGANDiscriminator().eval(),
        "input: float32[b, 3, h, w]",
        lambda b, h, w: h >= 64 and w >= 64,
        "refined",
        probe={"b": (1, 2), "h": (1, 32, 63, 64, 65, 71, 72, 79, 80), "w": (16, 63, 64, 72, 100)},
    ),
    Entry(
        "dcgan_loss",
        lambda: DiscriminatorLoss().eval(),
        "images: float32[b, 3, h, w]; labels: float32[n]",
        discriminator_loss_accepts,
        "refined",
        probe={"b": (1, 2), "h": (63, 64, 79, 80, 96), "w": (64, 80), "n": (1, 2, 4, 6, 12)},
    ),
    Entry("espcn", ESPCN, "x: float32[b, 1, h, w]", always, "proved", probe=FOURS),
    Entry(
        "super_resolution_loss",
        SuperResolutionLoss,
        "low: float32[b, 3, h, w]; high: float32[c, 3, big_h, big_w]",
        super_resolution_accepts,
        "refined",
        probe={
            "b": (1, 2),
            "h": (1, 2, 3),
            "w": (1, 2),
            "c": (1, 2, 3),
            "big_h": (1, 2, 4, 5, 6),
            "big_w": (1, 2, 4),
        },
    ),
    Entry(
        "pixel_unshuffle",
        UnshuffleNet,
        IMAGE,
        lambda b, h, w: h % 4 == 0 and w % 4 == 0,
        "refined",
        probe=FOURS,
    ),
    Entry(
        "vae",
        VAE,
        IMAGE,
        vae_accepts,
        "refined",
        probe={"b": (1, 2), "h": (16, 31, 32, 33, 39, 40, 64), "w": (16, 31, 32, 33, 39, 64)},
    ),
    Entry(
        "vqvae",
        VQVAE,
        IMAGE,
        lambda b, h, w: h >= 4 and w >= 4,
        "refined",
        probe={"h": (1, 3, 4, 7, 8), "w": (3, 4, 5)},
    ),
    Entry("glow", Glow, IMAGE, lambda b, h, w: h % 4 == 0 and w % 4 == 0, "refined", probe=FOURS),
    # Samples and steps broadcast together; the transposed convolution gives back 2 * ceil(h / 2).
    Entry(
        "diffusion",
        DenoisingNet,
        "x: float32[b, 3, h, w]; t: int64[c]",
        lambda b, h, w, c: h % 2 == 0 and w % 2 == 0 and broadcast(b, c) is not None,
        "refined",
        probe={"b": (1, 2, 3), "h": (1, 2, 3, 4, 6), "w": (2, 4, 5), "c": (1, 2, 3)},
    ),
    Entry("spatial_attention", SpatialAttention, "x: float32[b, 4, h, w]", always, "proved", probe=FOURS),
)
