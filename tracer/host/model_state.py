"""Leaves a model unchanged: attributes that a run assigns are restored and reported."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, compress, filterfalse, islice
from typing import Any, Final, TypeAlias

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from .modules import buffers_of, children_of, parameters_of

_CONTAINERS: Final = frozenset({list, dict, set, OrderedDict})


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


class ModelState:
    """The attributes of a model's modules, containers by content, when this object is made."""

    def __init__(self, target: Any, modules: Modules | None = None) -> None:
        modules = submodules(target) if modules is None else modules
        self._paths = [path for path, _ in modules]
        self._attributes = [vars(module) for _, module in modules]
        self._lengths = [*map(len, self._attributes)]
        self._names = [*chain.from_iterable(self._attributes)]
        self._values = [*chain.from_iterable(map(dict.values, self._attributes))]
        """The attributes of all modules one after another: a copy for each would be most of the work."""
        containers = [*compress(self._values, map(_CONTAINERS.__contains__, map(type, self._values)))]
        self._filled = [(container, container.copy()) for container in filter(None, containers)]
        """Containers, with their contents."""
        self._empty = [*filterfalse(None, containers)]
        """Empty containers, the most frequent ones."""
        held = [container for container, _ in self._filled]
        self._held = [*held, *(c.values() for c in held if isinstance(c, dict))]
        self._sizes, self._members = [*map(len, held)], [*chain.from_iterable(self._held)]
        """How much there is in each container, and what it is: keys, members, and the values of dicts."""
        lazy = [module for _, module in modules if isinstance(module, LazyModuleMixin)]
        self._lazy = [*lazy, *chain.from_iterable(map(_tensors_of, lazy))]
        self._kinds = [*map(type, self._lazy)]
        """The classes of lazy modules and of their tensors, which change with the first input."""

    def _is_same(self) -> bool:
        """Returns whether nothing has changed, by identity, since tensors have no truth to compare; names are
        texts.
        """
        if [*map(len, self._attributes)] != self._lengths or any(self._empty):
            return False
        if [*map(type, self._lazy)] != self._kinds:
            return False
        if [*map(len, self._held[: len(self._filled)])] != self._sizes:
            return False
        if [*chain.from_iterable(self._attributes)] != self._names:
            return False
        values = chain.from_iterable(map(dict.values, self._attributes))
        if not all(map(operator.is_, values, self._values)):
            return False
        return all(map(operator.is_, chain.from_iterable(self._held), self._members))

    def restore(self) -> list[str]:
        """Restores every attribute; returns the names of those that the run had changed."""
        if self._is_same():
            return []
        for lazy, kind in zip(self._lazy, self._kinds, strict=True):
            if type(lazy) is not kind:
                lazy.__class__ = kind
        names, values = iter(self._names), iter(self._values)
        before = [dict(zip(islice(names, n), islice(values, n), strict=True)) for n in self._lengths]
        changed: list[str] = []
        for path, now, attributes in zip(self._paths, self._attributes, before, strict=True):
            changed += [_name(path, key) for key in _put_back(now, attributes)]
        refilled = {id(filled) for filled, content in self._filled if _refill(filled, content)}
        refilled |= {id(empty) for empty in self._empty if _refill(empty, ())}
        for path, attributes in zip(self._paths, before, strict=True):
            changed += [_name(path, key) for key, value in attributes.items() if id(value) in refilled]
        return changed


def _tensors_of(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    held = chain(parameters_of(module).values(), buffers_of(module).values())
    return (tensor for tensor in held if tensor is not None)


def _name(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _put_back(now: dict[str, Any], attributes: dict[str, Any]) -> Iterator[str]:
    """Restores the attributes; yields the names of those that had changed."""
    for key in now.keys() - attributes.keys():
        yield key
        del now[key]
    for key, value in attributes.items():
        if key not in now or now[key] is not value:
            yield key
            now[key] = value


def _differs(now: Any, before: Any) -> bool:
    """Returns whether the members differ, in order and by identity: tensors have no truth to compare."""
    if not before:
        return bool(now)
    if isinstance(now, set):
        return bool(now != before)
    if len(now) != len(before) or not all(map(operator.is_, now, before)):
        return True
    return isinstance(now, dict) and not all(map(operator.is_, now.values(), before.values()))


def _refill(container: Any, contents: Any) -> bool:
    """Restores the contents of a container; returns whether they had changed."""
    if not _differs(container, contents):
        return False
    container.clear()
    if isinstance(container, list):
        container.extend(contents)
    else:
        container.update(contents)
    return True
