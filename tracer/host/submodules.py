"""The modules of a model with their paths."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from .modules import children_of

Modules: TypeAlias = list[tuple[str, torch.nn.Module]]
"""The modules of a model with their paths, the model first."""


def submodules(target: Any) -> Modules:
    """Returns the result of `named_modules`: each module once, with its path, before the modules that it
    contains.
    """
    found: dict[torch.nn.Module, str] = {}
    waiting: list[tuple[str, torch.nn.Module | None]]
    waiting = [("", target)] if isinstance(target, torch.nn.Module) else []
    while waiting:
        path, module = waiting.pop()
        if module is not None and module not in found:
            found[module] = path
            prefix = f"{path}." if path else ""
            waiting += [(prefix + name, held) for name, held in reversed(children_of(module).items())]
    return [(path, module) for module, path in found.items()]
