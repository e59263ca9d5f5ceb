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


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * 4
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.downsample(x))


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem = [
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        ]
        blocks: list[nn.Module] = []
        inputs = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                blocks.append(Bottleneck(inputs, width, stride if i == 0 else 1))
                inputs = width * 4
        self.features = nn.Sequential(*stem, *blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.flatten(self.pool(self.features(x)), 1))


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

MEASURED = (
    Measured(
        "resnet50",
        ResNet50,
        "x: float32[batch, 3, h, w]",
        {"x": ((2, 3, 224, 224), torch.float32)},
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
