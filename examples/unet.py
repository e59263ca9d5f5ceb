"""A U-Net for image segmentation: six levels down, six levels up, a skip connection at each.

Each level halves the image and later doubles it again, so the skip connections fit only where no
halving loses a pixel: height and width have to be multiples of 2**6 = 64.

    anyshape check examples/unet.py:UNet --input "x: float32[batch, 3, h, w]"
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CHANNELS = (16, 32, 48, 64, 96, 128, 192)  # of the six levels and of the bottom
CLASSES = 21


class Block(nn.Sequential):
    """Two convolutions that keep the size of the image."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False),
            nn.GroupNorm(8, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, kernel_size=3, padding=1, bias=False),
            nn.GroupNorm(8, outputs),
            nn.SiLU(),
        )


class Up(nn.Module):
    """Doubles the image, then merges it with what the encoder saw at that size."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.enlarge = nn.ConvTranspose2d(inputs, outputs, kernel_size=2, stride=2)
        self.merge = Block(2 * outputs, outputs)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.enlarge(x)
        return self.merge(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    """Pixelwise class scores: [batch, 3, h, w] -> [batch, 21, h, w]."""

    def __init__(self) -> None:
        super().__init__()
        *levels, bottom = CHANNELS
        self.encoder = nn.ModuleList(Block(a, b) for a, b in pairwise([3, *levels]))
        self.bottom = Block(levels[-1], bottom)
        self.decoder = nn.ModuleList(Up(a, b) for a, b in pairwise([bottom, *reversed(levels)]))
        self.head = nn.Conv2d(levels[0], CLASSES, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for block in self.encoder:
            x = block(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, skip in zip(self.decoder, reversed(skips), strict=True):
            x = up(x, skip)
        return self.head(x)
