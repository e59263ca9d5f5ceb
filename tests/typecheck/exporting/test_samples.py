"""`dynamic_shapes` from a model and sample inputs: torch.export takes them at the first try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape import TargetError, sample_shapes


class Down(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return self.pool(self.conv(x)) * scale


class Pair(nn.Module):
    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return (ids * mask).sum(1)


def bounds(shapes: Any) -> dict[str, list[Any]]:
    return {
        name: [size if isinstance(size, int) else (size.__name__, size.min) for size in sizes]
        for name, sizes in shapes.items()
        if sizes is not None
    }


def test_sizes_of_samples_are_dims_within_what_the_model_accepts() -> None:
    shapes = sample_shapes(Down(), {"x": torch.zeros(2, 3, 32, 48), "scale": 2.0})
    assert bounds(shapes) == {"x": [("s2", 2), 3, ("s32", 7), ("s48", 7)]}
    ids = torch.ones(2, 7, dtype=torch.int64)
    assert bounds(sample_shapes(Pair(), {"ids": ids, "mask": ids.bool()})) == {
        "ids": [("s2", 2), ("s7", 2)], "mask": [("s2", 2), ("s7", 2)],
    }  # fmt: skip


def test_torch_takes_them_and_the_program_takes_those_sizes() -> None:
    samples = {"x": torch.zeros(2, 3, 32, 48)}
    program = torch.export.export(Down(), (), samples, dynamic_shapes=sample_shapes(Down(), samples))
    for sizes in ((2, 3, 7, 7), (5, 3, 64, 9)):
        assert program.module()(x=torch.zeros(sizes)).shape[0] == sizes[0]
    with pytest.raises((AssertionError, RuntimeError)):
        program.module()(x=torch.zeros(2, 3, 3, 48))


def test_samples_that_the_model_refuses_are_refused() -> None:
    with pytest.raises(TargetError, match="not known to run on the sample inputs"):
        sample_shapes(Down(), {"x": torch.zeros(2, 4, 32, 48)})
    with pytest.raises(TargetError, match="the sample input x is a list"):
        sample_shapes(Down(), {"x": [torch.zeros(2)]})


# ---- the exporters of transformers


def tokens() -> dict[str, Any]:
    ids = torch.arange(21).reshape(3, 7) + 2
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def pixels(*sizes: int) -> Callable[[], dict[str, Any]]:
    return lambda: {"pixel_values": torch.zeros(2, 3, *sizes)}


SMALL = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 37,
}  # fmt: skip
VISION = {**SMALL, "image_size": 32, "patch_size": 8}
DECODER = {**SMALL, "num_key_value_heads": 2, "use_cache": False}
MODELS: dict[str, tuple[str, dict[str, Any], Callable[[], dict[str, Any]]]] = {
    "BertModel": ("BertConfig", SMALL | {"max_position_embeddings": 64}, tokens),
    "RobertaModel": ("RobertaConfig", SMALL | {"max_position_embeddings": 64}, tokens),
    "DistilBertModel": (
        "DistilBertConfig",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37},
        tokens,
    ),
    "GPT2LMHeadModel": (
        "GPT2Config",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "use_cache": False},
        tokens,
    ),
    "LlamaForCausalLM": ("LlamaConfig", DECODER, tokens),
    "Qwen2ForCausalLM": ("Qwen2Config", DECODER, tokens),
    "T5EncoderModel": (
        "T5Config",
        {"vocab_size": 99, "d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 37, "d_kv": 8},
        tokens,
    ),
    "ViTModel": ("ViTConfig", {k: v for k, v in VISION.items() if k != "vocab_size"}, pixels(32, 32)),
    "CLIPVisionModel": (
        "CLIPVisionConfig", {k: v for k, v in VISION.items() if k != "vocab_size"}, pixels(32, 32),
    ),
    "ResNetModel": (
        "ResNetConfig", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}, pixels(32, 48),
    ),
    "SegformerModel": (
        "SegformerConfig",
        {"hidden_sizes": [8, 16, 16, 16], "depths": [1] * 4, "num_attention_heads": [1] * 4},
        pixels(64, 96),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_exporter_of_transformers_takes_them(name: str) -> None:
    import transformers
    from transformers.exporters.exporter_dynamo import DynamoConfig, DynamoExporter

    config, options, inputs = MODELS[name]
    model = getattr(transformers, name)(getattr(transformers, config)(**options)).eval()
    shapes = sample_shapes(model, inputs(), budget_s=60.0)
    assert any(not isinstance(size, int) for sizes in shapes.values() for size in sizes)
    made = DynamoExporter().export(model, inputs(), config=DynamoConfig(dynamic_shapes=shapes))
    program = getattr(made, "program", made)
    assert program.range_constraints
