"""The models that are measured: full-size architectures on the meta device, so that no weights are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Measured:
    """A model, the spec of its inputs, the same inputs at one example, and what is assumed of the symbols."""

    name: str
    build: Callable[[], nn.Module]
    inputs: str
    example: dict[str, tuple[tuple[int, ...], torch.dtype]]
    assume: tuple[str, ...] = ()
    keywords: dict[str, object] = field(default_factory=dict)


class Residual(nn.Module):
    """The common part of both blocks of a ResNet: the shortcut, projected where sizes change."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def shortcut(self, x: Tensor) -> Tensor:
        return x if self.downsample is None else self.downsample(x)


class Basic(Residual):
    widening = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width, stride)
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Bottleneck(Residual):
    widening = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width * 4, stride)
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", CVPR 2016."""

    def __init__(self, block: type[Basic] | type[Bottleneck], counts: tuple[int, ...]) -> None:
        super().__init__()
        stem = [
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        ]
        blocks: list[nn.Module] = []
        inputs = 64
        for stage, count in enumerate(counts):
            width = 64 << stage
            for i in range(count):
                blocks.append(block(inputs, width, 2 if stage and i == 0 else 1))
                inputs = width * block.widening
        self.features = nn.Sequential(*stem, *blocks)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.flatten(self.pool(self.features(x)), 1))


def resnet18() -> nn.Module:
    return ResNet(Basic, (2, 2, 2, 2))


def resnet50() -> nn.Module:
    return ResNet(Bottleneck, (3, 4, 6, 3))


def bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig())


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=False))


def llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=32, use_cache=False))


def vit() -> nn.Module:
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig())


def diffusion_unet() -> nn.Module:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(cross_attention_dim=768, sample_size=64)


TOKENS = {"input_ids": ((2, 64), torch.int64)}

IMAGE = {"x": ((2, 3, 224, 224), torch.float32)}

RESNET18 = Measured("resnet18", resnet18, "x: float32[batch, 3, h, w]", IMAGE, ("h >= 32", "w >= 32"))
"""Small enough for torch's own checker."""

MEASURED = (
    Measured(
        "resnet50",
        resnet50,
        "x: float32[batch, 3, h, w]",
        IMAGE,
        ("h >= 32", "w >= 32"),
    ),
    Measured(
        "vit",
        vit,
        "pixel_values: float32[batch, 3, 224, 224]",
        {"pixel_values": ((2, 3, 224, 224), torch.float32)},
    ),
    Measured("bert", bert, "input_ids: int64[batch, t]", TOKENS, ("t <= 512",)),
    Measured("gpt2", gpt2, "input_ids: int64[batch, t]", TOKENS, ("t <= 1024",)),
    Measured("llama32", llama, "input_ids: int64[batch, t]", TOKENS),
    Measured(
        "sd-unet",
        diffusion_unet,
        "sample: float32[batch, 4, 8*h, 8*w]; timestep: int64[];"
        " encoder_hidden_states: float32[batch, 77, 768]",
        {
            "sample": ((2, 4, 64, 64), torch.float32),
            "timestep": ((), torch.int64),
            "encoder_hidden_states": ((2, 77, 768), torch.float32),
        },
    ),
)


def build(measured: Measured) -> nn.Module:
    """The model on the meta device, in evaluation mode."""
    with torch.device("meta"):
        return measured.build().eval()


def example_inputs(measured: Measured) -> dict[str, Tensor]:
    """The inputs at the example's sizes, on the meta device."""
    return {
        name: torch.empty(size, dtype=dtype, device="meta")
        for name, (size, dtype) in measured.example.items()
    }


def named(name: str) -> Measured:
    """The model of this name. Raises ValueError where there is none."""
    known = {measured.name: measured for measured in (RESNET18, *MEASURED)}
    if name not in known:
        raise ValueError(f"no model {name!r}; there are {', '.join(known)}")
    return known[name]
