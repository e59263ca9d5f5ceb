"""Leaves a model as it was found: what a run assigns is put back, and told."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

import torch

_CONTAINERS: Final = frozenset({list, dict, set, OrderedDict})


class ModelState:
    """The attributes of a model's modules, containers in them by content, as they stand when this is made."""

    def __init__(self, target: Any) -> None:
        self._modules: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        """The prefix of a module's names, its attributes, and what they were."""
        self._containers: list[tuple[str, Any, Any]] = []
        """A container's name, itself, and what was in it."""
        if isinstance(target, torch.nn.Module):
            for name, module in target.named_modules():
                prefix, attributes = f"{name}." if name else "", vars(module)
                self._modules.append((prefix, attributes, attributes.copy()))
                for key, value in attributes.items():
                    if type(value) in _CONTAINERS:  # most are empty
                        self._containers.append((prefix + key, value, value.copy() if value else ()))

    def restore(self) -> list[str]:
        """Puts every attribute back; returns the names of those that the run had changed."""
        changed: list[str] = []
        for prefix, now, attributes in self._modules:
            if not _same(now, attributes):
                changed += [prefix + key for key in _put_back(now, attributes)]
        for name, value, before in self._containers:
            if (value or before) and _differs(value, before):
                changed.append(name)
                _refill(value, before)
        return changed


def _same(now: dict[str, Any], before: dict[str, Any]) -> bool:
    """The same names in the same order, and the same objects."""
    if len(now) != len(before):
        return False
    return all(map(operator.is_, now, before)) and all(map(operator.is_, now.values(), before.values()))


def _put_back(now: dict[str, Any], attributes: dict[str, Any]) -> Iterator[str]:
    """Makes the attributes what they were; yields the names of those that were not."""
    for key in now.keys() - attributes.keys():
        yield key
        del now[key]
    for key, value in attributes.items():
        if key not in now or now[key] is not value:
            yield key
            now[key] = value


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
