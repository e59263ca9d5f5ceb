"""Leaves a model as it was found: what a run assigns is put back, and told."""

from __future__ import annotations

import copy
from typing import Any

import torch

_CONTAINERS = (list, dict, set)


class ModelState:
    """The attributes of a model's modules, containers in them by content, as they stand when this is made."""

    def __init__(self, target: Any) -> None:
        self._saved: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = []
        if isinstance(target, torch.nn.Module):
            for name, module in target.named_modules():
                attributes = dict(vars(module))
                contents = {
                    k: copy.copy(v) for k, v in attributes.items() if type(v) in _CONTAINERS or _is_ordered(v)
                }
                self._saved.append((name, module, attributes, contents))

    def restore(self) -> list[str]:
        """Puts every attribute back; returns the names of those that the run had changed."""
        changed: list[str] = []
        for name, module, attributes, contents in self._saved:
            prefix = f"{name}." if name else ""
            now = vars(module)
            for key in now.keys() - attributes.keys():
                changed.append(prefix + key)
                del now[key]
            for key, value in attributes.items():
                if key not in now or now[key] is not value:
                    changed.append(prefix + key)
                    now[key] = value
                if key in contents and _differs(value, contents[key]):
                    changed.append(prefix + key)
                    _refill(value, contents[key])
        return changed


def _is_ordered(value: Any) -> bool:
    return isinstance(value, dict) and type(value).__name__ == "OrderedDict"


def _differs(now: Any, before: Any) -> bool:
    """By identity of the members: tensors have no truth to compare."""
    if isinstance(now, dict):
        return len(now) != len(before) or any(
            a is not b or now[a] is not before[b] for a, b in zip(now, before, strict=True)
        )
    if isinstance(now, set):
        return bool(now != before)
    return len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True))


def _refill(container: Any, contents: Any) -> None:
    container.clear()
    if isinstance(container, list):
        container.extend(contents)
    else:
        container.update(contents)
