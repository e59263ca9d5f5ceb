"""What rules have answered is asked once: with answers kept and without any, a model is recorded alike."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.constraints.engine.known import Known
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import System
from anyshape.constraints.rules import default_rules
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.recording import repeats
from anyshape.tracer.recording.record import record

from .entry import Entry
from .zoo import ZOO


class Forgetful(dict[Any, Any]):
    """Keeps nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


class Aliases(nn.Module):
    """Equal calls of the same tensors and of others, on both sides of branches, and of views written into."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        a = x * x
        b = x * y
        c = y * y
        d = torch.cat([x, y]) + torch.cat([y, x]) + torch.cat([x, x])
        if x.shape[0] == 3:
            b = b.view(y.shape[0], -1)
        e = x * y
        held = x[:1]
        held += 1
        f = torch.where(input=x, condition=x > 0, other=y) + x[:1]
        g = [part * 2 for part in x.split(1, dim=1)[:2]]
        return a, b, c, d, e, f, *g, x[..., None] * y[None, ..., 0]


class Writes(nn.Module):
    """Equal calls that write: into tensors of their own, into views and what they are views of, into masks
    and into places.
    """

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        a, b, c = x + 1, x + 2, x.clone()
        part = a[:1]
        a.relu_()
        doubled = part * 2
        b.relu_()
        c.relu_()
        c.relu_()
        chained = (x + 1).relu_().add_(1).add_(1)
        flat = c.view(-1)
        flat.relu_()
        c.relu_()
        c.t_()
        some, others = x > 0, x > 0
        some.logical_not_()
        kept = x[some], x[others.logical_not_()]
        places, same = torch.arange(x.shape[0]), torch.arange(x.shape[0])
        places.mul_(1)
        rows = x[places], x[same.mul_(1)]
        return a, b, c, doubled, chained, flat, *kept, *rows


WRITES = Entry("writes", Writes, "x: float32[a, 2]", None, "refined")
ALIASES = Entry("aliases", Aliases, "x: float32[a, 2]; y: float32[b, 2]", None, "refined")


def recorded(entry: Entry, model: nn.Module) -> System:
    spec = parse_spec(entry.inputs, entry.assume)
    return record(model, spec, default_rules, DomainOracle(spec.domain))[0]


def forget(patched: pytest.MonkeyPatch) -> None:
    begin = Known.__init__

    def nothing_kept(self: Known, before: Known | None = None) -> None:
        begin(self, before)
        self.answered, self.repeated = Forgetful(), Forgetful()

    patched.setattr(Known, "__init__", nothing_kept)


def both(entry: Entry) -> tuple[System, System]:
    """The model recorded with answers kept, and without."""
    model = entry.build()
    with pytest.MonkeyPatch.context() as patched:
        forget(patched)
        without = recorded(entry, model)
    return recorded(entry, model), without


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", [ALIASES, WRITES, *ZOO], ids=lambda e: e.name)
def test_a_model_is_recorded_alike(entry: Entry) -> None:
    kept, without = both(entry)
    assert kept == without


def test_answers_are_kept_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = repeats.FinishedCall.arguments_of

    def counted(self: repeats.FinishedCall, operands: Any) -> Any:
        asked.append(self.op)
        return real(self, operands)

    monkeypatch.setattr(repeats.FinishedCall, "arguments_of", counted)
    recorded(ALIASES, Aliases())
    assert asked.count("mul") >= 2


def test_a_key_that_tells_too_little_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = repeats.CallKey._told

    def careless(self: repeats.CallKey, run: Any, value: Any) -> object:
        told = real(self, run, value)
        return list if type(value) is list else told

    monkeypatch.setattr(repeats.CallKey, "_told", careless)
    kept, without = both(ALIASES)
    assert kept != without


def test_one_operand_twice_is_no_pattern_for_two(monkeypatch: pytest.MonkeyPatch) -> None:
    def slots(self: repeats.CallKey) -> dict[int, repeats.OperandSlot]:
        return {id(value): repeats.OperandSlot(place) for place, value in enumerate(self.values)}

    monkeypatch.setattr(repeats.CallKey, "slots", property(slots))
    kept, without = both(Entry("squares", Squares, "x: [a]; y: [a]", None, "proved"))
    assert kept != without


class Squares(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * x + x * y
