"""A module that the data choose: `self[f"expert_{i}"]`, `self.experts[i]`, where `i` is a datum.

The choice matters to shapes only where the modules differ in more than their weights. So the first one
represents all that the datum may name, if they are alike; a datum that names no module is a matter of data,
not of sizes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ...constraints.terms.dims import Dim, Term, symbols
from ..host.modules import children_of
from ..host.patches import Function, Patch, together
from ..host.tensors import overrides_off
from ..recorder import Recorder
from ..values.numbers import Size
from ..values.symbolic import SymbolicTensor, item


@contextlib.contextmanager
def chosen_modules(run: Recorder) -> Iterator[None]:
    """Makes containers of modules accept data as keys inside the block."""

    def of_dict(by_name: Function) -> Function:
        def found(self: nn.ModuleDict, key: Any) -> Any:
            named = children_of(self)
            if not isinstance(key, str) or key in named or not (pattern := _pattern(run, key)):
                return by_name(self, key)
            return _one_of(run, [module for name, module in named.items() if pattern.fullmatch(name)], key)

        return found

    def of_list(by_place: Function) -> Function:
        def found(self: nn.ModuleList, index: Any) -> Any:
            if type(index) is SymbolicTensor and not index.dtype.is_floating_point:
                index = item(run, index)
            if type(index) is Size and _data(run, index.term):
                return _one_of(run, [*children_of(self).values()], index.term)
            return by_place(self, index)

        return found

    made = ((nn.ModuleDict, of_dict), (nn.ModuleList, of_list))
    with together(Patch(kind, "__getitem__", make, "data are keys of modules") for kind, make in made):
        yield


def _data(run: Recorder, place: Dim) -> bool:
    """Returns whether the data alone decide the index."""
    return isinstance(place, Term) and symbols(place) <= run.generator.said.unbacked.keys()


def _pattern(run: Recorder, text: str) -> re.Pattern[str] | None:
    """Returns a pattern of the texts that result from a text with an integer for each datum in it; None for a
    text without data.
    """
    names = [name for name in run.generator.said.unbacked if name in text]
    if not names:
        return None
    data = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    parts = re.split(rf"(?<![A-Za-z0-9])({data})(?![0-9_])", text)
    return re.compile("".join(r"\d+" if i % 2 else re.escape(part) for i, part in enumerate(parts)))


def _one_of(run: Recorder, modules: list[nn.Module | None], key: object) -> nn.Module:
    """Returns the first of the modules, which represents all of them; gives up if they differ."""
    first = next((module for module in modules if module is not None), None)
    if first is None:
        raise KeyError(key)
    if not all(alike(first, module) for module in modules):
        run.give_up(f"the data decide which of {len(modules)} modules is called, which differ")
    return first


def alike(one: Any, other: Any) -> bool:
    """Returns whether two modules have the same effect on shapes: they are the same but for the numbers in
    their weights.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return _same_kind(one, other)
    if isinstance(one, nn.Module):
        return alike(vars(one), vars(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return isinstance(one, int | float | str | torch.dtype | set | frozenset) and bool(one == other)


def _same_kind(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether the tensors have one shape; tensors of integers and bools, which may decide sizes, must
    have the same elements, too.
    """
    with overrides_off():
        if (one.shape, one.dtype, one.stride()) != (other.shape, other.dtype, other.stride()):
            return False
        return one.is_floating_point() or (not one.is_meta and torch.equal(one, other))
