"""Lets packages be imported that build on torchvision or torchaudio, whose compiled parts need CUDA.

The wheels of both are built against CUDA, and where its libraries are missing, importing them fails: some of
their Python code speaks to operators that the compiled part would have declared. No model of the catalogue
calls one, so here the operators are declared, by schema alone, and the compiled part is not loaded. This has
to happen before anything else imports the two. transformers and diffusers import torchvision where it is
installed, which is why it stands in an environment of its own (`make zoo`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

# The operators for which torchvision registers fake kernels at import, with its own schemas.
DECLARED = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_library: list[torch.library.Library] = []  # a library's schemas live as long as it does


def install() -> None:
    """Makes torchvision and torchaudio importable without their compiled parts; once is enough."""
    if _library:
        return
    _stand_in(
        "torchvision.extension",
        _has_ops=lambda: False,
        _assert_has_ops=_no_operators,
        _check_cuda_version=lambda: -1,
        _load_library=lambda name: False,
    )
    _stand_in(
        "torchaudio._extension",
        _IS_TORCHAUDIO_EXT_AVAILABLE=False,
        _IS_ALIGN_AVAILABLE=False,
        fail_if_no_align=_same,
    )
    _library.append(torch.library.Library("torchvision", "DEF"))
    for schema in DECLARED:
        _library[0].define(schema)


def _stand_in(name: str, **attributes: Any) -> None:
    module = ModuleType(name)
    vars(module).update(attributes)
    sys.modules[name] = module


def _no_operators() -> None:
    raise RuntimeError("the compiled operators of torchvision are not loaded")


def _same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function
