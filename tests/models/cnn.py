"""Image classifiers, in the structure of their papers and with few channels."""

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry, always, conv, fits


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes: int, planes: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or in_planes != planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return F.relu(out, inplace=True)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, in_planes: int, planes: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, 4 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or in_planes != 4 * planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_planes, 4 * planes, 1, stride, bias=False), nn.BatchNorm2d(4 * planes)
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + identity)


class ResNet(nn.Module):
    def __init__(self, block: type[BasicBlock] | type[Bottleneck], layers: tuple[int, ...], width: int = 4):
        super().__init__()
        self.in_planes = width
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, width, layers[0], 1)
        self.layer2 = self._make_layer(block, 2 * width, layers[1], 2)
        self.layer3 = self._make_layer(block, 4 * width, layers[2], 2)
        self.layer4 = self._make_layer(block, 8 * width, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width * block.expansion, 10)

    def _make_layer(
        self, block: type[BasicBlock] | type[Bottleneck], planes: int, blocks: int, stride: int
    ) -> nn.Sequential:
        layers = []
        for i in range(blocks):
            layers.append(block(self.in_planes, planes, stride if i == 0 else 1))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.maxpool(x)
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.fc(x)


def resnet18() -> nn.Module:
    return ResNet(BasicBlock, (2, 2, 2, 2))


def resnet50() -> nn.Module:
    return ResNet(Bottleneck, (3, 4, 6, 3))


class VGG16(nn.Module):
    """`pooled` is the later form with an adaptive pool; the paper's form flattens what 224 by 224 gives."""

    plan = (4, 4, "M", 8, 8, "M", 8, 8, 8, "M", 16, 16, 16, "M", 16, 16, 16, "M")

    def __init__(self, pooled: bool = True):
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for step in self.plan:
            if isinstance(step, str):
                layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            else:
                layers += [nn.Conv2d(channels, step, 3, padding=1), nn.ReLU(inplace=True)]
                channels = step
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7)) if pooled else nn.Identity()
        self.classifier = nn.Sequential(
            nn.Linear(16 * 7 * 7, 32),
            nn.ReLU(True),
            nn.Dropout(),
            nn.Linear(32, 32),
            nn.ReLU(True),
            nn.Linear(32, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.classifier(x)


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.log_softmax(self.fc3(x), dim=1)


def lenet_side(size: int) -> int:
    return conv(size // 2, 5) // 2 if size // 2 >= 5 else 0


class InvertedResidual(nn.Module):
    def __init__(self, inp: int, oup: int, stride: int, expand: int):
        super().__init__()
        hidden = inp * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers += [nn.Conv2d(inp, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True)]
        layers += [
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, oup, 1, bias=False),
            nn.BatchNorm2d(oup),
        ]
        self.conv = nn.Sequential(*layers)
        self.use_res_connect = stride == 1 and inp == oup

    def forward(self, x: Tensor) -> Tensor:
        if self.use_res_connect:
            return x + self.conv(x)
        return self.conv(x)


class MobileNetV2(nn.Module):
    settings = (
        (1, 4, 1, 1),
        (6, 4, 2, 2),
        (6, 8, 3, 2),
        (6, 8, 4, 2),
        (6, 12, 3, 1),
        (6, 16, 3, 2),
        (6, 20, 1, 1),
    )

    def __init__(self) -> None:
        super().__init__()
        channels = 4
        features: list[nn.Module] = [
            nn.Sequential(nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU6())
        ]
        for expand, out, repeats, stride in self.settings:
            for i in range(repeats):
                features.append(InvertedResidual(channels, out, stride if i == 0 else 1, expand))
                channels = out
        features.append(nn.Sequential(nn.Conv2d(channels, 32, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(32, 10))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = x.mean([2, 3])
        return self.classifier(x)


class DenseLayer(nn.Module):
    def __init__(self, channels: int, growth: int):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, features: list[Tensor]) -> Tensor:
        x = torch.cat(features, 1)
        x = self.conv1(F.relu(self.norm1(x)))
        return self.conv2(F.relu(self.norm2(x)))


class DenseBlock(nn.ModuleDict):
    def __init__(self, layers: int, channels: int, growth: int):
        super().__init__()
        for i in range(layers):
            self.add_module(f"denselayer{i + 1}", DenseLayer(channels + i * growth, growth))

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for _, layer in self.items():
            features.append(layer(features))
        return torch.cat(features, 1)


class DenseNet121(nn.Module):
    def __init__(self, growth: int = 2, layers: tuple[int, ...] = (6, 12, 24, 16)):
        super().__init__()
        channels = 2 * growth
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(channels))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(3, stride=2, padding=1))
        for i, count in enumerate(layers):
            self.features.add_module(f"denseblock{i + 1}", DenseBlock(count, channels, growth))
            channels += count * growth
            if i != len(layers) - 1:
                transition = nn.Sequential(
                    nn.BatchNorm2d(channels),
                    nn.ReLU(inplace=True),
                    nn.Conv2d(channels, channels // 2, 1, bias=False),
                    nn.AvgPool2d(2, 2),
                )
                self.features.add_module(f"transition{i + 1}", transition)
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, 10)

    def forward(self, x: Tensor) -> Tensor:
        features = self.features(x)
        out = F.relu(features, inplace=True)
        out = F.adaptive_avg_pool2d(out, (1, 1))
        out = torch.flatten(out, 1)
        return self.classifier(out)


class Fire(nn.Module):
    def __init__(self, channels: int, squeeze: int, expand: int):
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.expand1x1(x)), F.relu(self.expand3x3(x))], 1)


class SqueezeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, kernel_size=3, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(8, 2, 4),
            Fire(8, 2, 4),
            nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(8, 2, 6),
            Fire(12, 2, 6),
            nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(12, 4, 8),
        )
        final = nn.Conv2d(16, 10, kernel_size=1)
        self.classifier = nn.Sequential(nn.Dropout(), final, nn.ReLU(), nn.AdaptiveAvgPool2d((1, 1)))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = self.classifier(x)
        return torch.flatten(x, 1)


def squeezenet_side(size: int) -> int:
    """Each pool of 3 by 2 rounds up: n -> ceil((n - 3) / 2) + 1 = n // 2, so it takes 2 and refuses 1."""
    return conv(size, 3, 2) // 2 // 2 // 2


class ShuffleUnit(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(),
            nn.Conv2d(half, half, 3, 1, 1, groups=half, bias=False),
            nn.BatchNorm2d(half),
        )

    def forward(self, x: Tensor) -> Tensor:
        x1, x2 = x.chunk(2, dim=1)
        out = torch.cat((x1, self.branch(x2)), dim=1)
        return self.channel_shuffle(out, 2)

    @staticmethod
    def channel_shuffle(x: Tensor, groups: int) -> Tensor:
        batch, channels, height, width = x.size()
        x = x.view(batch, groups, channels // groups, height, width)
        x = torch.transpose(x, 1, 2).contiguous()
        return x.view(batch, channels, height, width)


class ShuffleNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.stage = nn.Sequential(ShuffleUnit(8), ShuffleUnit(8))
        self.fc = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stage(self.stem(x))
        return self.fc(x.mean(dim=(2, 3)))


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(1e-6 * torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        residual = x
        x = self.dwconv(x)
        x = x.permute(0, 2, 3, 1)
        x = self.norm(x)
        x = self.pwconv2(self.act(self.pwconv1(x)))
        x = self.gamma * x
        x = x.permute(0, 3, 1, 2)
        return residual + x


class ConvNeXt(nn.Module):
    def __init__(self, dims: tuple[int, ...] = (4, 8, 16)):
        super().__init__()
        self.stem = nn.Conv2d(3, dims[0], kernel_size=4, stride=4)
        self.stages = nn.ModuleList([ConvNeXtBlock(dim) for dim in dims])
        self.downsample = nn.ModuleList([nn.Conv2d(a, b, kernel_size=2, stride=2) for a, b in pairwise(dims)])
        self.norm = nn.LayerNorm(dims[-1])
        self.head = nn.Linear(dims[-1], 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages[0](self.stem(x))
        for i in range(len(self.downsample)):
            x = self.downsample[i](x)
            x = self.stages[i + 1](x)
        return self.head(self.norm(x.mean([-2, -1])))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, reduction: int = 4):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(channels, channels // reduction),
            nn.ReLU(inplace=True),
            nn.Linear(channels // reduction, channels),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        b, c, _, _ = x.size()
        y = self.pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)


class CBAM(nn.Module):
    """Channel attention, then spatial attention over the mean and the largest channel."""

    def __init__(self, channels: int):
        super().__init__()
        self.channel = SqueezeExcite(channels)
        self.conv = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.channel(x)
        avg_out = torch.mean(x, dim=1, keepdim=True)
        max_out, _ = torch.max(x, dim=1, keepdim=True)
        scale = torch.sigmoid(self.conv(torch.cat([avg_out, max_out], dim=1)))
        return x * scale


class SeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2)
        self.bn = nn.GroupNorm(4, 8)
        self.att = CBAM(8)
        self.conv2 = nn.Conv2d(8, 8, 3, dilation=2)
        self.head = nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8, 10))

    def forward(self, x: Tensor) -> Tensor:
        x = self.att(F.silu(self.bn(self.conv1(x))))
        return self.head(self.conv2(x))


class LoneGroups(nn.Module):
    """A group for each channel: F.group_norm refuses a single value a group, in evaluation too."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1, stride=2)
        self.norm = nn.GroupNorm(4, 4)
        self.last = nn.Conv2d(4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.relu(self.norm(self.conv(x))))


class SppNet(nn.Module):
    """A pyramid of pools, of 4, 2 and 1 cells a side for pictures of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.fc = nn.Linear(4 * (16 + 4 + 1), 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv(x))
        h, w = x.shape[-2:]
        cells = []
        for n in (4, 2, 1):
            kernel = math.ceil(h / n), math.ceil(w / n)
            padding = (kernel[0] * n - h + 1) // 2, (kernel[1] * n - w + 1) // 2
            cells.append(F.max_pool2d(x, kernel, stride=kernel, padding=padding).flatten(1))
        return self.fc(torch.cat(cells, dim=1))


def spp_fits(side: int) -> bool:
    """Does every pool have a padding of half its kernel at most? Then it leaves its number of cells."""
    return all(2 * ((-(-side // n) * n - side + 1) // 2) <= -(-side // n) for n in (4, 2, 1))


class PooledBySevenths(nn.Module):
    """Pictures of 7 by 7 cells, of a seventh of their height each."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3 * 49, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(F.avg_pool2d(x, x.shape[2] // 7).flatten(1))


IMAGE = "x: float32[b, 3, h, w]"
SMALL = {"b": (1, 2), "h": (1, 2, 3, 17, 33, 64), "w": (1, 2, 5, 32, 40)}
AROUND_32 = {"b": (1, 3), "h": (1, 16, 31, 32, 33, 63, 64), "w": (2, 31, 32, 33, 47, 64)}
VGG_SIDES = {
    "b": (1, 2),
    "h": (31, 32, 63, 64, 223, 224, 255, 256),
    "w": (32, 224, 230, 255, 256, 1567, 1568, 1599, 1600),
}

ENTRIES = (
    Entry("resnet18", lambda: resnet18().eval(), IMAGE, always, "proved", probe=SMALL),
    Entry("resnet50", lambda: resnet50().eval(), IMAGE, always, "proved", probe=SMALL),
    # A batch norm in training mode wants two values a channel, and the last stage sees ceil(h / 32) by
    # ceil(w / 32).
    Entry(
        "resnet18_training",
        resnet18,
        IMAGE,
        lambda b, h, w: b * ((h - 1) // 32 + 1) * ((w - 1) // 32 + 1) > 1,
        "refined",
        probe=AROUND_32,
    ),
    Entry(
        "vgg16",
        lambda: VGG16().eval(),
        IMAGE,
        lambda b, h, w: h >= 32 and w >= 32,
        "refined",
        probe=AROUND_32,
    ),
    Entry(
        "vgg16_large",
        lambda: VGG16().eval(),
        IMAGE,
        always,
        "proved",
        ("h >= 32", "w >= 32"),
        probe=AROUND_32,
    ),
    Entry(
        "vgg16_paper",
        lambda: VGG16(pooled=False).eval(),
        IMAGE,
        lambda b, h, w: (h // 32) * (w // 32) == 49,
        "refined",
        probe=VGG_SIDES,
    ),
    Entry(
        "lenet",
        LeNet,
        "x: float32[b, 1, h, w]",
        lambda b, h, w: lenet_side(h) * lenet_side(w) == 25,
        "refined",
        probe={
            "b": (1, 2),
            "h": (1, 9, 11, 12, 15, 16, 27, 28, 31, 32, 108, 111),
            "w": (12, 13, 28, 29, 31, 107, 108, 111, 112),
        },
    ),
    Entry("mobilenet_v2", lambda: MobileNetV2().eval(), IMAGE, always, "proved", probe=SMALL),
    # 7 by 2 and 3 by 2, both padded, leave ceil(h / 4), and three pools by 2 want 8 of it.
    Entry(
        "densenet121",
        lambda: DenseNet121().eval(),
        IMAGE,
        lambda b, h, w: h >= 29 and w >= 29,
        "refined",
        probe={"b": (1, 2), "h": (1, 27, 28, 29, 30, 32, 61), "w": (4, 28, 29, 32, 33)},
    ),
    Entry(
        "squeezenet_ceil_mode",
        SqueezeNet,
        IMAGE,
        lambda b, h, w: h >= 3 and w >= 3 and squeezenet_side(h) >= 1 and squeezenet_side(w) >= 1,
        "refined",
        probe={"b": (1, 2), "h": (1, 2, 3, 5, 14, 16, 17, 18, 19, 33), "w": (2, 16, 17, 18, 23, 40)},
    ),
    Entry(
        "shufflenet",
        lambda: ShuffleNet().eval(),
        "x: float32[N, 3, H, W]",
        always,
        "proved",
        probe={"N": (1, 2), "H": (1, 2, 3, 17, 33), "W": (1, 4, 32)},
    ),
    Entry(
        "convnext",
        ConvNeXt,
        IMAGE,
        lambda b, h, w: h >= 16 and w >= 16,
        "refined",
        probe={"b": (1, 2), "h": (1, 3, 15, 16, 17, 31), "w": (8, 15, 16, 19, 32)},
    ),
    Entry(
        "senet_cbam",
        SeNet,
        IMAGE,
        lambda b, h, w: all(fits(side, (3, 2), (3, 1, 0, 2)) for side in (h, w)),
        "refined",
        probe={"b": (1, 2), "h": (1, 2, 3, 9, 10, 11, 12, 20), "w": (5, 10, 11, 13)},
    ),
    Entry(
        "groups_of_one_value",
        lambda: LoneGroups().eval(),
        IMAGE,
        lambda b, h, w: b > 1 or h > 2 or w > 2,
        "refined",
        probe={"b": (1, 2), "h": (1, 2, 3), "w": (1, 2, 3, 4)},
    ),
    Entry(
        "spp_net",
        lambda: SppNet().eval(),
        IMAGE,
        lambda b, h, w: spp_fits(h) and spp_fits(w),
        "refined",
        probe={"b": (1, 2), "h": (1, 3, 4, 5, 6, 8, 9, 10, 13, 14, 33), "w": (2, 4, 5, 7, 9, 10, 17, 21)},
    ),
    Entry(
        "pooled_by_sevenths",
        lambda: PooledBySevenths().eval(),
        "x: float32[b, 3, h, h]",
        lambda b, h: h >= 7 and h // (h // 7) == 7,
        "refined",
        probe={"b": (1, 2), "h": (6, 7, 8, 13, 14, 15, 16, 20, 21, 27, 34, 41, 42, 47, 48, 49, 55, 56)},
    ),
)
