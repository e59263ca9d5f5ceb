"""The catalogue's entry for a model: how to build it small, and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any

import torch
from torch import nn

Probe = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Row:
    """One architecture of a public package, built from its configuration: random weights, no network.

    `inputs` and `assume` are spec texts; `probe` names sizes worth trying besides those next to what the
    checker finds.
    """

    name: str
    package: str  # the top-level module that has to be installed
    build: Callable[[], nn.Module]
    inputs: str
    probe: Probe = field(default_factory=dict)
    assume: tuple[str, ...] = ()

    def copies(self) -> Callable[[], nn.Module]:
        """Makes the model, the same each time and as if it had never run: some remember what they saw."""

        def built() -> nn.Module:
            torch.manual_seed(0)
            return self.build()

        model = built()
        try:
            deepcopy(model)
        except RuntimeError:  # a parametrisation that cannot be copied
            return built
        return lambda: deepcopy(model)


def make(factory: str, *arguments: Any, **options: Any) -> nn.Module:
    """`timm:create_model` called with the arguments, in evaluation mode. Nothing is imported before."""
    module, _, name = factory.partition(":")
    model: nn.Module = attrgetter(name)(import_module(module))(*arguments, **options)
    return model.eval()


def build(factory: str, *arguments: Any, **options: Any) -> Callable[[], nn.Module]:
    """`make`, later."""
    return partial(make, factory, *arguments, **options)


def sides(*sizes: int) -> Probe:
    """Images with these heights and widths, one or two of them."""
    return {"b": (1, 2), "h": sizes, "w": sizes}


IMAGE = "x: float32[b, 3, h, w]"
AROUND_32 = sides(1, 31, 32, 33, 64)
"""For models that take images of any size from some size up."""
ONLY_32 = sides(16, 31, 32, 33, 64)
"""For models built for images of 32 by 32."""
