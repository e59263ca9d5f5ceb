"""What a program writes into its model's parameters and buffers: a check leaves them as they were, and takes
what changes their shape for what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.tracer.recording import held
from anyshape.tracer.recording.writes import Writes
from anyshape.typecheck import check


class Model(nn.Module):
    u: Tensor

    def __init__(self, program: Callable[[Model, Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.w = nn.Linear(4, 3), nn.Parameter(torch.ones(2, 2))
        self.register_buffer("u", torch.ones(3))
        self.program = program

    def forward(self, x: Tensor) -> Tensor:
        return self.program(self, x)


def clamped(model: Model, x: Tensor) -> Tensor:
    for parameter in model.parameters():
        parameter.data.clamp_(-0.01, 0.01)
    return model.linear(x)  # type: ignore[no-any-return]


def assigned(model: Model, x: Tensor) -> Tensor:
    model.linear.weight.data = model.linear.weight.data * 2
    return model.linear(x)  # type: ignore[no-any-return]


def swapped(model: Model, x: Tensor) -> Tensor:
    before, model.linear.weight.data = model.linear.weight.data, torch.zeros(5, 4)[:3]
    result = model.linear(x)
    model.linear.weight.data = before
    return result  # type: ignore[no-any-return]


def out_of_an_operator(model: Model, x: Tensor) -> Tensor:
    with torch.no_grad():
        torch.div(model.u, 3.0, out=model.u)
        F.normalize(model.u, dim=0, out=model.u)
    return model.linear(x) + model.u.sum()  # type: ignore[no-any-return]


def of_a_list(model: Model, x: Tensor) -> Tensor:
    torch._foreach_add_([model.u], 1.0)
    return model.linear(x)  # type: ignore[no-any-return]


def in_numpy(model: Model, x: Tensor) -> Tensor:
    numbers = model.u.numpy()
    numbers += 1
    return model.linear(x)  # type: ignore[no-any-return]


def moving_average(model: Model, x: Tensor) -> Tensor:
    model.u.data.mul_(0.9).add_(x.sum())
    model.w.data[0] = x.mean()
    return model.linear(x)  # type: ignore[no-any-return]


def through_a_view(model: Model, x: Tensor) -> Tensor:
    model.u.view(-1)[0] = 9
    model.w.data.view(-1)[:2].fill_(5)
    nn.init.constant_(model.linear.weight, 3.0)
    return model.linear(x)  # type: ignore[no-any-return]


def resized(model: Model, x: Tensor) -> Tensor:
    model.u.resize_(2)
    return x.view(-1, model.u.numel())


def of_another_shape(model: Model, x: Tensor) -> Tensor:
    model.w.data = torch.zeros(7)
    return x.view(-1, model.w.shape[0])


PROGRAMS = [
    *((program, "h == 4") for program in (clamped, assigned, swapped, out_of_an_operator, of_a_list)),
    *((program, "h == 4") for program in (in_numpy, moving_average, through_a_view)),
    (resized, "b*h % 2 == 0"),
    (of_another_shape, "b*h % 7 == 0"),
]


def differences(model: nn.Module, before: dict[str, Tensor]) -> Iterator[str]:
    for name, tensor in model.state_dict().items():
        was = before[name]
        if tensor.device != was.device or tensor.shape != was.shape or not torch.equal(tensor, was):
            yield name


@pytest.mark.parametrize("program, accepted", PROGRAMS, ids=[p.__name__ for p, _ in PROGRAMS])
def test_a_check_leaves_the_model_as_it_was(program: Any, accepted: str) -> None:
    model = Model(program)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    report = check(model, "x: [b, h]")
    assert str(report.accepts) == accepted and report.verdict == "refined", report.to_text()
    assert [*differences(model, before)] == []


def test_spectral_norms_are_as_they_were() -> None:
    for norm in (nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm):
        model = nn.Sequential(norm(nn.Linear(4, 3)))
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        assert str(check(model, "input: [b, h]").accepts) == "h == 4"
        assert [*differences(model, before)] == []


def test_what_is_not_undone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writes, "undo", lambda self: None)
    monkeypatch.setattr(held.StandIns, "of", lambda self, tensor: tensor)
    model = Model(of_another_shape)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    check(model, "x: [b, h]")
    assert "w" in differences(model, before)
