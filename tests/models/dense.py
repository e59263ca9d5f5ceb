"""Detection and segmentation: pyramids, pooled context, heads over several levels."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry, always, broadcast, conv


class Backbone(nn.Module):
    """Three levels of features, each half the size of the one before, rounded up."""

    def __init__(self, channels: int = 4):
        super().__init__()
        self.c3 = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.c4 = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.c5 = nn.Conv2d(2 * channels, 4 * channels, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> list[Tensor]:
        c3 = F.relu(self.c3(x))
        c4 = F.relu(self.c4(c3))
        c5 = F.relu(self.c5(c4))
        return [c3, c4, c5]


class FPN(nn.Module):
    """Top-down by a factor of 2, or to the size of the level below."""

    def __init__(self, by_size: bool, channels: int = 4):
        super().__init__()
        self.by_size = by_size
        self.backbone = Backbone(channels)
        self.lateral = nn.ModuleList([nn.Conv2d(channels * 2**i, 8, 1) for i in range(3)])
        self.smooth = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(3)])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        laterals = [lateral(c) for lateral, c in zip(self.lateral, self.backbone(x), strict=True)]
        for i in range(len(laterals) - 1, 0, -1):
            if self.by_size:
                top = F.interpolate(laterals[i], size=laterals[i - 1].shape[-2:], mode="nearest")
            else:
                top = F.interpolate(laterals[i], scale_factor=2, mode="nearest")
            laterals[i - 1] = laterals[i - 1] + top
        return tuple(smooth(lateral) for smooth, lateral in zip(self.smooth, laterals, strict=True))


def fpn_side(size: int) -> bool:
    """Sides p3, p4, p5; a lateral of side 1 broadcasts against the 2 that comes from above."""
    p3 = conv(size, 3, 2, 1)
    p4 = conv(p3, 3, 2, 1)
    p5 = conv(p4, 3, 2, 1)
    p4 = broadcast(p4, 2 * p5) or 0
    return p4 > 0 and broadcast(p3, 2 * p4) is not None


class ASPP(nn.Module):
    """Dilated branches and the mean of the image, upsampled to the features' size."""

    def __init__(self, channels: int = 4, rates: tuple[int, ...] = (2, 4)):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(channels, 4, 1)])
        self.convs.extend(nn.Conv2d(channels, 4, 3, padding=rate, dilation=rate) for rate in rates)
        self.pooling = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1, bias=False), nn.ReLU()
        )
        self.project = nn.Conv2d(4 * (len(rates) + 2), 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        res = [conv(x) for conv in self.convs]
        pooled = F.interpolate(self.pooling(x), size=x.shape[-2:], mode="bilinear", align_corners=False)
        res.append(pooled)
        return self.project(torch.cat(res, dim=1))


class DeepLab(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.aspp = ASPP(16)
        self.low = nn.Conv2d(4, 2, 1)
        self.head = nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        input_shape = x.shape[-2:]
        low, _, high = self.backbone(x)
        y = F.interpolate(self.aspp(high), size=low.shape[2:], mode="bilinear", align_corners=False)
        y = self.head(torch.cat((y, self.low(low)), dim=1))
        return {"out": F.interpolate(y, size=input_shape, mode="bilinear", align_corners=False)}


class PSPNet(nn.Module):
    def __init__(self, sizes: tuple[int, ...] = (1, 2, 3, 6)):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.stages = nn.ModuleList(
            [
                nn.Sequential(nn.AdaptiveAvgPool2d((size, size)), nn.Conv2d(8, 2, 1, bias=False))
                for size in sizes
            ]
        )
        self.bottleneck = nn.Conv2d(16, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        feats = self.stem(x)
        h, w = feats.size(2), feats.size(3)
        priors = [F.interpolate(stage(feats), size=(h, w), mode="bilinear") for stage in self.stages] + [
            feats
        ]
        return self.bottleneck(torch.cat(priors, 1))


class SSD(nn.Module):
    """Boxes and classes of three levels, flattened and concatenated."""

    def __init__(self, anchors: int = 3, classes: int = 5):
        super().__init__()
        self.classes = classes
        self.backbone = Backbone()
        self.loc = nn.ModuleList([nn.Conv2d(4 * 2**i, anchors * 4, 3, padding=1) for i in range(3)])
        self.conf = nn.ModuleList([nn.Conv2d(4 * 2**i, anchors * classes, 3, padding=1) for i in range(3)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        loc, conf = [], []
        for feature, loc_head, conf_head in zip(self.backbone(x), self.loc, self.conf, strict=True):
            loc.append(loc_head(feature).permute(0, 2, 3, 1).contiguous())
            conf.append(conf_head(feature).permute(0, 2, 3, 1).contiguous())
        loc_all = torch.cat([o.view(o.size(0), -1) for o in loc], 1)
        conf_all = torch.cat([o.view(o.size(0), -1) for o in conf], 1)
        return loc_all.view(loc_all.size(0), -1, 4), conf_all.view(conf_all.size(0), -1, self.classes)


class YOLOHead(nn.Module):
    """Predictions on a grid made from the features' size; the first layer takes every second pixel."""

    def __init__(self, anchors: int = 2, outputs: int = 7):
        super().__init__()
        self.na, self.no = anchors, outputs
        self.stem = nn.Conv2d(12, 8, 3, padding=1)
        self.pools = nn.ModuleList([nn.MaxPool2d(k, stride=1, padding=k // 2) for k in (5, 9, 13)])
        self.detect = nn.Conv2d(32, anchors * outputs, 1)
        self.register_buffer("anchors", torch.ones(anchors, 2))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
        x = F.silu(self.stem(x))
        x = torch.cat([x] + [pool(x) for pool in self.pools], 1)
        x = self.detect(x)
        bs, _, ny, nx = x.shape
        x = x.view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        yv, xv = torch.meshgrid([torch.arange(ny), torch.arange(nx)], indexing="ij")
        grid = torch.stack((xv, yv), 2).expand((1, self.na, ny, nx, 2)).float()
        anchor_grid = self.anchors.view((1, self.na, 1, 1, 2)).expand((1, self.na, ny, nx, 2))
        xy, wh, conf = x.sigmoid().split((2, 2, self.no - 4), 4)
        xy = (xy * 2 + grid) * 2
        wh = (wh * 2) ** 2 * anchor_grid
        return torch.cat((xy, wh, conf), 4).view(bs, self.na * nx * ny, self.no)


class DETR(nn.Module):
    """Queries attend to all positions of the features; positions in rows and columns from tables of 50."""

    def __init__(self, dim: int = 8, queries: int = 5):
        super().__init__()
        self.backbone = nn.Conv2d(3, dim, 4, 4)
        self.transformer = nn.Transformer(dim, 2, 1, 1, 16)
        self.query_pos = nn.Parameter(torch.rand(queries, dim))
        self.row_embed = nn.Parameter(torch.rand(50, dim // 2))
        self.col_embed = nn.Parameter(torch.rand(50, dim // 2))
        self.linear_bbox = nn.Linear(dim, 4)

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        h = self.backbone(inputs)
        H, W = h.shape[-2:]
        pos = torch.cat(
            [
                self.col_embed[:W].unsqueeze(0).repeat(H, 1, 1),
                self.row_embed[:H].unsqueeze(1).repeat(1, W, 1),
            ],
            dim=-1,
        )
        pos = pos.flatten(0, 1).unsqueeze(1)
        src = pos + 0.1 * h.flatten(2).permute(2, 0, 1)
        queries = self.query_pos.unsqueeze(1).repeat(1, h.shape[0], 1)
        out = self.transformer(src, queries).transpose(0, 1)
        return {"pred_boxes": self.linear_bbox(out).sigmoid()}


class NonLocal(nn.Module):
    def __init__(self, channels: int = 4):
        super().__init__()
        self.theta, self.phi, self.g = (nn.Conv2d(channels, channels // 2, 1) for _ in range(3))
        self.out = nn.Conv2d(channels // 2, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch_size = x.size(0)
        g = F.max_pool2d(self.g(x), 2).view(batch_size, 2, -1).permute(0, 2, 1)
        phi = F.max_pool2d(self.phi(x), 2).view(batch_size, 2, -1)
        theta = self.theta(x).view(batch_size, 2, -1).permute(0, 2, 1)
        f = F.softmax(torch.matmul(theta, phi), dim=-1)
        y = torch.matmul(f, g).permute(0, 2, 1).contiguous()
        y = y.view(batch_size, 2, *x.size()[2:])
        return self.out(y) + x


class HRModule(nn.Module):
    """Two resolutions that exchange features by strides and by nearest upsampling."""

    def __init__(self) -> None:
        super().__init__()
        self.high = nn.Conv2d(3, 4, 3, padding=1)
        self.low = nn.Conv2d(3, 4, 3, stride=4, padding=1)
        self.down = nn.Sequential(nn.Conv2d(4, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, 2, 1))
        self.up = nn.Sequential(nn.Conv2d(4, 4, 1), nn.Upsample(scale_factor=4, mode="nearest"))

    def forward(self, x: Tensor) -> list[Tensor]:
        high, low = self.high(x), self.low(x)
        return [F.relu(high + self.up(low)), F.relu(low + self.down(high))]


def hr_side(size: int) -> bool:
    """Low features have ceil((size - 1) / 4) + ... = (size - 1) // 4 + 1 pixels, as the two strides by 2
    give.
    """
    low = conv(size, 3, 4, 1)
    down = conv(conv(size, 3, 2, 1), 3, 2, 1)
    return broadcast(size, 4 * low) is not None and broadcast(low, down) is not None


class SegmentationLoss(nn.Module):
    """Pixel-wise cross entropy against a map of labels of the image's size."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv2d(3, 6, 3, stride=2)
        self.classifier = nn.Conv2d(6, 4, 1)

    def forward(self, image: Tensor, label: Tensor) -> Tensor:
        logits = self.classifier(F.relu(self.encoder(image)))
        logits = F.interpolate(logits, size=label.shape[-2:], mode="bilinear", align_corners=True)
        return F.cross_entropy(logits, label, ignore_index=255)


IMAGE = "x: float32[b, 3, h, w]"
EIGHTS = {"b": (1, 2), "h": (1, 2, 3, 4, 7, 8, 9, 15, 16, 24), "w": (1, 2, 6, 8, 10, 16)}

ENTRIES = (
    Entry(
        "fpn_scale",
        lambda: FPN(by_size=False),
        IMAGE,
        lambda b, h, w: fpn_side(h) and fpn_side(w),
        "refined",
        probe=EIGHTS,
    ),
    Entry("fpn_size", lambda: FPN(by_size=True), IMAGE, always, "proved", probe=EIGHTS),
    Entry("deeplab", DeepLab, IMAGE, always, "proved", probe=EIGHTS),
    Entry("pspnet", PSPNet, IMAGE, always, "proved", probe=EIGHTS),
    Entry("ssd", SSD, IMAGE, always, "proved", probe=EIGHTS),
    Entry("yolo", YOLOHead, IMAGE, lambda b, h, w: h % 2 == 0 and w % 2 == 0, "refined", probe=EIGHTS),
    Entry(
        "detr",
        lambda: DETR().eval(),
        "inputs: float32[b, 3, h, w]",
        lambda b, h, w: 4 <= h < 204 and 4 <= w < 204,
        "refined",
        probe={"b": (1, 2), "h": (3, 4, 5, 8, 203, 204), "w": (3, 4, 9, 203, 204)},
    ),
    Entry(
        "non_local",
        NonLocal,
        "x: float32[b, 4, h, w]",
        lambda b, h, w: h >= 2 and w >= 2,
        "refined",
        probe={"h": (1, 2, 3, 6), "w": (1, 2, 5)},
    ),
    Entry(
        "hrnet_exchange", HRModule, IMAGE, lambda b, h, w: hr_side(h) and hr_side(w), "refined", probe=EIGHTS
    ),
    Entry(
        "segmentation_loss",
        SegmentationLoss,
        "image: float32[b, 3, h, w]; label: int64[c, y, x]",
        lambda b, h, w, c, y, x: b == c and h >= 3 and w >= 3,
        "refined",
        probe={"b": (1, 2), "h": (2, 3, 8), "w": (3, 4), "c": (1, 2), "y": (1, 8), "x": (1, 5)},
    ),
)
