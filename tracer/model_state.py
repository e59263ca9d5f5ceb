"""Leaves a model as it was found: what a run assigns is put back, and told."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, compress, filterfalse
from typing import Any, Final

import torch

_CONTAINERS: Final = frozenset({list, dict, set, OrderedDict})


def submodules(target: Any) -> list[tuple[str, torch.nn.Module]]:
    """What `named_modules` gives: each module once, with its path, those that it holds behind it."""
    found: dict[torch.nn.Module, str] = {}
    waiting: list[tuple[str, torch.nn.Module | None]]
    waiting = [("", target)] if isinstance(target, torch.nn.Module) else []
    while waiting:
        path, module = waiting.pop()
        if module is not None and module not in found:
            found[module] = path
            prefix = f"{path}." if path else ""
            waiting += [(prefix + name, held) for name, held in reversed(module._modules.items())]
    return [(path, module) for module, path in found.items()]


class ModelState:
    """The attributes of a model's modules, containers in them by content, as they stand when this is made."""

    def __init__(self, target: Any) -> None:
        self._modules: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        """The path of a module, its attributes, and what they were."""
        self._filled: list[tuple[str, str, Any, Any]] = []
        """Of a container the path of its module, its name there, itself, and what was in it."""
        self._empty: list[Any] = []
        """Containers with nothing in them, as most have."""
        for path, module in submodules(target):
            attributes = vars(module)
            self._modules.append((path, attributes, attributes.copy()))
            are_containers = [*map(_CONTAINERS.__contains__, map(type, attributes.values()))]
            containers = [*compress(attributes.values(), are_containers)]
            filled = compress(compress(attributes.items(), are_containers), containers)
            self._filled += [(path, key, value, value.copy()) for key, value in filled]
            self._empty += filterfalse(None, containers)
        self._before = self._members()

    def _members(self) -> list[Any]:
        """What is told at a glance: how much there is in each module and container, and its identity."""
        attributes = [now for _, now, _ in self._modules]
        containers = [now for _, _, now, _ in self._filled]
        held = [*attributes, *containers]
        dicts = [*attributes, *(c for c in containers if isinstance(c, dict))]
        return [
            [*map(len, held)],
            [*map(id, chain.from_iterable(held))],
            [*map(id, chain.from_iterable(map(dict.values, dicts)))],
        ]

    def restore(self) -> list[str]:
        """Puts every attribute back; returns the names of those that the run had changed."""
        if self._members() == self._before and not any(self._empty):
            return []
        changed: list[str] = []
        for path, now, attributes in self._modules:
            changed += [_name(path, key) for key in _put_back(now, attributes)]
        for path, key, value, before in self._filled:
            if _differs(value, before):
                changed.append(_name(path, key))
                _refill(value, before)
        filled = {id(value) for value in self._empty if value}
        for path, _, attributes in self._modules:
            changed += [_name(path, key) for key, value in attributes.items() if id(value) in filled]
        for value in self._empty:
            value.clear()
        return changed


def _name(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


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
    """By identity of the members, in order: tensors have no truth to compare."""
    if isinstance(now, set):
        return bool(now != before)
    if len(now) != len(before) or not all(map(operator.is_, now, before)):
        return True
    return isinstance(now, dict) and not all(map(operator.is_, now.values(), before.values()))


def _refill(container: Any, contents: Any) -> None:
    container.clear()
    if isinstance(container, list):
        container.extend(contents)
    else:
        container.update(contents)
