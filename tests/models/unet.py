"""U-Nets: what must divide, what must merely be large enough, and what broadcasting lets through."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry, always, broadcast


class DoubleConv(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, padding: int = 1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 3, padding=padding),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, 3, padding=padding),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class UNet(nn.Module):
    """Pools by 2 on the way down, transposed convolutions by 2 on the way up, skips concatenated."""

    def __init__(self, depth: int = 4, width: int = 2):
        super().__init__()
        sizes = [width * min(2**i, 8) for i in range(depth + 1)]
        self.inc = DoubleConv(3, sizes[0])
        self.downs = nn.ModuleList([DoubleConv(sizes[i], sizes[i + 1]) for i in range(depth)])
        self.ups = nn.ModuleList(
            [nn.ConvTranspose2d(sizes[i + 1], sizes[i], 2, stride=2) for i in reversed(range(depth))]
        )
        self.merges = nn.ModuleList([DoubleConv(2 * sizes[i], sizes[i]) for i in reversed(range(depth))])
        self.outc = nn.Conv2d(sizes[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inc(x)
        skips = []
        for down in self.downs:
            skips.append(x)
            x = down(F.max_pool2d(x, 2))
        for up, merge in zip(self.ups, self.merges, strict=True):
            x = up(x)
            x = torch.cat([x, skips.pop()], dim=1)
            x = merge(x)
        return self.outc(x)


class NestedUNet(nn.Module):
    """A U-Net that is a block around a smaller one, as in pix2pix: strided convolutions of 4 by 2."""

    def __init__(self, depth: int, channels: int = 4):
        super().__init__()
        self.down = nn.Conv2d(channels, channels, 4, stride=2, padding=1)
        self.inner = NestedUNet(depth - 1, channels) if depth > 1 else None
        self.up = nn.ConvTranspose2d(channels * (2 if depth > 1 else 1), channels, 4, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = F.leaky_relu(self.down(x), 0.2)
        if self.inner is not None:
            y = self.inner(y)
        y = F.relu(self.up(y))
        return torch.cat([x, y], 1)


class PaddedUp(nn.Module):
    """Upsamples, pads to the size of the skip, and merges."""

    def __init__(self, channels: int, skip_channels: int):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv = DoubleConv(channels + skip_channels, skip_channels)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        x1 = self.up(x1)
        diff_y = x2.size()[2] - x1.size()[2]
        diff_x = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2])
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)


class PaddedUNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inc = DoubleConv(1, 2)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(2, 4))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.down3 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 8))
        self.up1 = PaddedUp(8, 8)
        self.up2 = PaddedUp(8, 4)
        self.up3 = PaddedUp(4, 2)
        self.outc = nn.Conv2d(2, 1, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(x4, x3)
        x = self.up2(x, x2)
        x = self.up3(x, x1)
        return self.outc(x)


class ValidUNet(nn.Module):
    """The paper's own: convolutions without padding, skips cropped at the centre."""

    def __init__(self) -> None:
        super().__init__()
        self.enc1 = DoubleConv(1, 2, padding=0)
        self.enc2 = DoubleConv(2, 4, padding=0)
        self.bottom = DoubleConv(4, 8, padding=0)
        self.up2 = nn.ConvTranspose2d(8, 4, 2, 2)
        self.dec2 = DoubleConv(8, 4, padding=0)
        self.up1 = nn.ConvTranspose2d(4, 2, 2, 2)
        self.dec1 = DoubleConv(4, 2, padding=0)

    @staticmethod
    def center_crop(layer: Tensor, target_size: torch.Size) -> Tensor:
        _, _, height, width = layer.size()
        diff_y = (height - target_size[0]) // 2
        diff_x = (width - target_size[1]) // 2
        return layer[:, :, diff_y : diff_y + target_size[0], diff_x : diff_x + target_size[1]]

    def forward(self, x: Tensor) -> Tensor:
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        x = self.bottom(F.max_pool2d(e2, 2))
        x = self.up2(x)
        x = self.dec2(torch.cat([self.center_crop(e2, x.shape[2:]), x], 1))
        x = self.up1(x)
        return self.dec1(torch.cat([self.center_crop(e1, x.shape[2:]), x], 1))


def valid_unet_side(size: int) -> bool:
    """Follows one side: each double convolution takes 4, each pool halves, each upsampling doubles."""
    side = size - 4
    for _ in range(2):
        if side < 2:
            return False
        side = side // 2 - 4
    for _ in range(2):
        if side < 1:
            return False
        side = 2 * side - 4
    return side >= 1


class AdditiveUNet(nn.Module):
    """Skips are added, so a skip of size 1 broadcasts against what upsampling made of it."""

    def __init__(self, channels: int = 4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.down1 = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.down2 = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x0 = self.stem(x)
        x1 = F.relu(self.down1(x0))
        x2 = F.relu(self.down2(x1))
        y = self.up(x2) + x1
        y = self.up(y) + x0
        return self.head(y)


def additive_unet_side(size: int) -> bool:
    half = (size - 1) // 2 + 1
    quarter = (half - 1) // 2 + 1
    middle = broadcast(2 * quarter, half)
    return middle is not None and broadcast(2 * middle, size) is not None


class InterpolatedUNet(nn.Module):
    """Upsamples to the size of the skip, whatever it is."""

    def __init__(self, depth: int = 3, channels: int = 4):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.downs = nn.ModuleList([nn.Conv2d(channels, channels, 3, 2, 1) for _ in range(depth)])
        self.ups = nn.ModuleList([nn.Conv2d(2 * channels, channels, 3, 1, 1) for _ in range(depth)])

    def forward(self, x: Tensor) -> Tensor:
        features = [self.stem(x)]
        for down in self.downs:
            features.append(torch.relu(down(features[-1])))
        y = features.pop()
        for up in self.ups:
            skip = features.pop()
            y = F.interpolate(y, size=skip.shape[-2:], mode="bilinear", align_corners=False)
            y = torch.relu(up(torch.cat((y, skip), dim=1)))
        return y


class UNet3d(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc1 = nn.Sequential(nn.Conv3d(1, 2, 3, padding=1), nn.InstanceNorm3d(2), nn.LeakyReLU())
        self.enc2 = nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.InstanceNorm3d(4), nn.LeakyReLU())
        self.pool = nn.MaxPool3d((1, 2, 2))
        self.up = nn.ConvTranspose3d(4, 2, (1, 2, 2), stride=(1, 2, 2))
        self.dec = nn.Conv3d(4, 2, 3, padding=1)

    def forward(self, volume: Tensor) -> Tensor:
        e1 = self.enc1(volume)
        e2 = self.enc2(self.pool(e1))
        return self.dec(torch.cat([e1, self.up(e2)], dim=1))


def unet3d_accepts(b: int, d: int, h: int, w: int) -> bool:
    """An instance norm in training mode wants more than one voxel a channel, also below the pool."""
    return h % 2 == 0 and w % 2 == 0 and d * (h // 2) * (w // 2) > 1


def divides(divisor: int, *sizes: int) -> bool:
    return all(size % divisor == 0 for size in sizes)


IMAGE = "x: float32[b, 3, h, w]"
GRAY = "x: float32[b, 1, h, w]"
SIXTEENS = {"b": (1, 2), "h": (1, 8, 15, 16, 17, 24, 32, 48, 80), "w": (16, 31, 32, 33, 48)}

ENTRIES = (
    Entry(
        "unet_depth4",
        lambda: UNet(4).eval(),
        IMAGE,
        lambda b, h, w: divides(16, h, w),
        "refined",
        probe=SIXTEENS,
    ),
    Entry(
        "unet_depth6",
        lambda: UNet(6).eval(),
        IMAGE,
        lambda b, h, w: divides(64, h, w),
        "refined",
        probe={"b": (1, 2), "h": (1, 32, 63, 64, 65, 96, 128, 192), "w": (48, 64, 127, 128, 129)},
    ),
    Entry(
        "unet_depth4_multiples",
        lambda: UNet(4).eval(),
        "x: float32[b, 3, 16*h, 16*w]",
        always,
        "proved",
        probe={"b": (1, 2), "h": (1, 2, 3, 7), "w": (1, 2, 5)},
    ),
    Entry(
        "unet_depth4_odd",
        lambda: UNet(4).eval(),
        "x: float32[b, 3, 2*h + 1, w]",
        lambda b, h, w: False,
        "refuted",
        probe={"h": (1, 7, 8, 16), "w": (1, 16, 32)},
    ),
    # A convolution of 4 by 2 padded by 1 halves downwards, and its transpose doubles: as a pool by 2.
    Entry(
        "unet_pix2pix",
        lambda: NestedUNet(4),
        "x: float32[b, 4, h, w]",
        lambda b, h, w: divides(16, h, w),
        "refined",
        probe=SIXTEENS,
    ),
    Entry(
        "unet_padded",
        lambda: PaddedUNet().eval(),
        GRAY,
        lambda b, h, w: h >= 8 and w >= 8,
        "refined",
        probe={"b": (1, 2), "h": (1, 7, 8, 9, 11, 16, 23), "w": (4, 7, 8, 13, 31)},
    ),
    Entry(
        "unet_valid_cropped",
        lambda: ValidUNet().eval(),
        GRAY,
        lambda b, h, w: valid_unet_side(h) and valid_unet_side(w),
        "refined",
        probe={"b": (1, 2), "h": (1, 8, 30, 36, 40, 41, 42, 43, 44, 45, 60), "w": (20, 40, 41, 44, 45, 61)},
    ),
    Entry(
        "unet_additive",
        AdditiveUNet,
        IMAGE,
        lambda b, h, w: additive_unet_side(h) and additive_unet_side(w),
        "refined",
        probe={"b": (1, 2), "h": (1, 2, 3, 4, 5, 6, 8, 12, 13), "w": (1, 2, 3, 4, 7, 16)},
    ),
    Entry(
        "unet_interpolated",
        InterpolatedUNet,
        GRAY,
        always,
        "proved",
        probe={"h": (1, 2, 7, 33), "w": (1, 8, 20)},
    ),
    Entry(
        "unet3d",
        UNet3d,
        "volume: float32[b, 1, d, h, w]",
        unet3d_accepts,
        "refined",
        probe={"b": (1, 2), "d": (1, 2, 3), "h": (1, 2, 3, 4, 6), "w": (2, 4, 5, 8)},
    ),
)
