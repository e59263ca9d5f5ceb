"""Tests that what a run does to a model's attributes is told and put back, wherever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.tracer.host.submodules import submodules
from anyshape.tracer.recording.held import Held


def model() -> nn.Module:
    shared = nn.Linear(2, 2)
    made = nn.Sequential(shared, nn.BatchNorm1d(2), nn.Sequential(shared, nn.ReLU()))
    made.register_module("none", None)
    made[1].seen, made[1].cache, made[1].names = [torch.ones(2)], {}, {"a"}
    made[1].mode = "plain"
    return made


CHANGES: dict[str, Callable[[Any], object]] = {
    "1.mode": lambda norm: setattr(norm, "mode", "other"),
    "1.new": lambda norm: setattr(norm, "new", 1),
    "1.seen": lambda norm: norm.seen.append(1),
    "1.cache": lambda norm: norm.cache.setdefault(3, torch.ones(3)),
    "1.names": lambda norm: norm.names.add("b"),
    "1._buffers": lambda norm: setattr(norm, "running_mean", torch.zeros(3)),
    "1._parameters": lambda norm: norm._parameters.update(weight=nn.Parameter(torch.ones(2))),
    "1._forward_hooks": lambda norm: norm.register_forward_hook(print),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_told_and_put_back(name: str) -> None:
    found = model()
    state, key = Held(found), name.removeprefix("1.")
    before = {k: v.copy() if isinstance(v, dict | list | set) else v for k, v in vars(found[1]).items()}
    CHANGES[name](found[1])
    assert state.restore() == [name]
    now = vars(found[1])
    assert now.keys() == before.keys()
    assert str(now.get(key)) == str(before.get(key)), "as it was"
    assert state.restore() == []


def test_a_member_that_is_equal_is_not_the_same() -> None:
    found = model()
    state, first = Held(found), found[1].seen[0]
    found[1].seen[0] = torch.ones(2)
    assert state.restore() == ["1.seen"] and found[1].seen[0] is first


def test_what_is_deleted_comes_back() -> None:
    found = model()
    state = Held(found)
    del found[1].mode
    found[1].names = set()
    assert sorted(state.restore()) == ["1.mode", "1.names"]
    assert (found[1].mode, found[1].names) == ("plain", {"a"})


def test_modules_are_named_as_torch_names_them() -> None:
    for made in (model(), nn.Transformer(8, 2, 1, 1, batch_first=True)):
        assert submodules(made) == [*made.named_modules()]
    assert submodules(torch.relu) == []
