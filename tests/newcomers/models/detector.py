"""The neck and the heads of a detector: a list of features from three levels goes in."""

import torch
from torch import nn
from torch.nn import functional as F


class FeaturePyramid(nn.Module):
    def __init__(self, widths, width):
        super().__init__()
        self.lateral = nn.ModuleList([nn.Conv2d(one, width, 1) for one in widths])
        self.smooth = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in widths])

    def forward(self, features):
        levels = [conv(one) for conv, one in zip(self.lateral, features)]
        for i in range(len(levels) - 1, 0, -1):
            levels[i - 1] = levels[i - 1] + F.interpolate(levels[i], size=levels[i - 1].shape[-2:])
        return [conv(one) for conv, one in zip(self.smooth, levels)]


class Detector(nn.Module):
    def __init__(self, widths=(16, 32, 64), width=24, classes=5, anchors=3):
        super().__init__()
        self.classes, self.anchors = classes, anchors
        self.pyramid = FeaturePyramid(widths, width)
        self.scores = nn.Conv2d(width, anchors * classes, 3, padding=1)
        self.boxes = nn.Conv2d(width, anchors * 4, 3, padding=1)

    def forward(self, features):
        scores, boxes = [], []
        for level in self.pyramid(features):
            b, _, h, w = level.shape
            score = self.scores(level).view(b, self.anchors, self.classes, h, w)
            box = self.boxes(level).view(b, self.anchors, 4, h, w)
            scores.append(score.permute(0, 3, 4, 1, 2).reshape(b, -1, self.classes))
            boxes.append(box.permute(0, 3, 4, 1, 2).reshape(b, -1, 4))
        return torch.cat(scores, 1), torch.cat(boxes, 1)
