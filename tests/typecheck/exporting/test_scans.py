"""Loops over a size become scans that compute what the loops compute, for any number of iterations."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.typecheck import Exported, export
from anyshape.typecheck.exporting.scans import loop_rows, scans
from anyshape.typecheck.exporting.scans.loop_bodies import GATHER, LOOP, loops_run_by

SEQUENCE = "x: [b, t, 4]"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell = nn.GRUCell(4, 4)
        self.fc = nn.Linear(4, 4)
        self.log: list[Tensor] = []

    def start(self, x: Tensor) -> Tensor:
        return torch.zeros(x.shape[0], 4)


# ---- loops that are scans


class Steps(Model):
    def forward(self, x: Tensor) -> Tensor:
        h = self.start(x)
        for step in x.unbind(1):
            h = self.cell(step, h)
        return h


class Numbers(Model):
    """Slices by their number, and what the last iteration leaves behind."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.start(x)
        for i in range(x.size(1)):
            h = self.cell(x[:, i], h) + x[:, i : i + 1].squeeze(1)
            y = self.fc(h)
        return h, y


class Backwards(Model):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, forth, back = self.start(x), [], []
        for i in reversed(range(x.size(1))):
            h = self.cell(x[:, i, :], h)
            back.append(h)
        for i in range(x.size(1) - 1, -1, -1):
            h = self.cell(x[..., i, :], h)
            forth.append(h)
        return torch.stack(back, 1), torch.cat(forth)


class Layers(Model):
    """A list that is carried, one that begins with something else, and a loop over numbers within."""

    def forward(self, x: Tensor) -> Tensor:
        hidden, outputs = [self.start(x) for _ in range(2)], [x[:, 0]]
        for i, step in enumerate(x.unbind(1)):
            for layer in range(2):
                step = hidden[layer] = self.cell(step, hidden[layer])
            if self.training:
                outputs.append(step + x[:, i])
                continue
            outputs.append(step)
        return torch.stack(outputs, dim=1) + len(outputs)


class Pairs(Model):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        h, outputs = self.start(x), []
        for a, b in zip(x.split(1, 1), y.unbind(1), strict=True):
            h = self.cell(a.squeeze(1) + b, h)
            outputs.append(h.unsqueeze(1))
        return torch.cat(outputs, dim=1)


class Rows(Model):
    """A loop in a loop."""

    def forward(self, x: Tensor) -> Tensor:
        outputs = []
        for row in x:
            h = torch.zeros(1, 4)
            for step in row:
                h = self.cell(step[None], h)
            outputs.append(h)
        return torch.cat(outputs)


class Filled(Model):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(x.shape)
        for i in range(x.shape[1]):
            y[:, i] = self.fc(x[:, i]).to(y.device, y.dtype)
        return y


class Comprehension(Model):
    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.fc(x[:, i]) for i in range(x.shape[1])], 1)


class EveryOther(Model):
    """Some of the slices, in either direction."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, some = self.start(x), [self.fc(x[:, i]) for i in range(0, x.shape[1], 2)]
        for i in range(x.shape[1] - 1, -1, -3):
            h = self.cell(x[:, i], h)
        return torch.stack(some, 1), h


class Interleaved(Model):
    """Every place of the result is written once: the even ones, then the odd ones, from behind."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(x.shape[0], 2 * x.shape[1], 4)
        for i in range(x.shape[1]):
            y[:, 2 * i] = self.fc(x[:, i])
        for i in range(x.shape[1]):
            y[:, 2 * x.shape[1] - 1 - i * 2] = x[:, x.shape[1] - 1 - i]
        return y


class Swapped(Model):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = b = self.start(x)
        for step in x.unbind(1):
            a, b = b + 1, a + step
        return a, b


class Initial(Model):
    """What is carried begins with what is the same throughout, in another place, too."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.fc.bias
        for step in x.mean(0):
            h = h * self.fc.bias + step
        return h


class Again(Model):
    """A loop over what a loop has gathered."""

    def forward(self, x: Tensor) -> Tensor:
        outputs, total = [], self.start(x)
        for step in x.unbind(1):
            outputs.append(self.fc(step))
        for output in outputs:
            total = total / 2 + output
        return total


class Times(Model):
    def forward(self, x: Tensor, n: int) -> Tensor:
        h = torch.zeros(x.shape[0], 4)
        for _ in range(n):
            h = self.cell(x, h)
        return h


def sequence(b: int, t: int) -> tuple[Any, ...]:
    return (torch.randn(b, t, 4),)


SCANS = [
    (Steps(), SEQUENCE, sequence),
    (Numbers(), SEQUENCE, sequence),
    (Backwards(), SEQUENCE, sequence),
    pytest.param(Layers(), SEQUENCE, sequence, marks=pytest.mark.slow),  # as in evaluation
    (Layers().eval(), SEQUENCE, sequence),
    (Pairs(), SEQUENCE + "; y: [b, t, 4]", lambda b, t: (*sequence(b, t), *sequence(b, t))),
    (Rows(), SEQUENCE, sequence),
    (Filled(), SEQUENCE, sequence),
    pytest.param(Comprehension(), SEQUENCE, sequence, marks=pytest.mark.slow),  # as `Filled`
    (EveryOther(), SEQUENCE, sequence),
    pytest.param(Interleaved(), SEQUENCE, sequence, marks=pytest.mark.slow),  # as `EveryOther`
    (Swapped(), SEQUENCE, sequence),
    (Initial(), "x: [b, t, 4]", sequence),
    (Again(), SEQUENCE, sequence),
    (Times(), "x: [b, 4]; n: int", lambda b, t: (torch.randn(b, 4), t)),
]


def count(found: Exported) -> int:
    return sum(str(node.target) == "scan" for node in found.program.graph.nodes)


def same(one: Any, other: Any) -> bool:
    left, right = torch.utils._pytree.tree_leaves(one), torch.utils._pytree.tree_leaves(other)
    return len(left) == len(right) and all(
        a.shape == b.shape and torch.allclose(a, b, rtol=1e-5, atol=1e-7)
        for a, b in zip(left, right, strict=True)
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize("model, inputs, given", SCANS, ids=lambda case: type(case).__name__)
def test_a_loop_is_a_scan(model: nn.Module, inputs: str, given: Callable[..., Any]) -> None:
    found = export(model, inputs)
    assert [a.error for a in found.attempts] == [""], "at the first try"
    assert found.exact and count(found) >= 1
    module = found.program.module()
    with torch.no_grad():
        for b in (1, 2, 3):
            for t in (1, 2, 3, 7, 12):
                args = given(b, t)
                assert same(module(*args), model(*args)), (b, t)


def test_no_iteration_is_refused_and_told() -> None:
    """A scan has one at least, where Python's loop has none."""
    found = export(Steps(), SEQUENCE, "0 <= t")
    assert str(found.accepts) == "1 <= t" and not found.exact
    assert {g.cause for g in found.given_up} == {"trace"}
    assert torch.equal(Steps()(torch.zeros(2, 0, 4)), torch.zeros(2, 4))
    with pytest.raises(AssertionError, match="Guard failed"):
        found.program.module()(torch.zeros(2, 0, 4))


def test_slices_have_to_be_there() -> None:
    class Weighted(Model):
        def forward(self, x: Tensor, w: Tensor) -> Tensor:
            h = self.start(x)
            for i in range(x.shape[1]):
                h = h + x[:, i] * w[i]
            return h

    found = export(Weighted(), SEQUENCE + "; w: [k]")
    assert found.exact and str(found.accepts) == "t <= k"
    with pytest.raises(AssertionError, match="Guard failed"):
        found.program.module()(torch.zeros(2, 3, 4), torch.zeros(2))


class Windows(Model):
    """Two steps at a time three slices, of which it needs one such at least."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.fc(x[:, i : i + 3]).amax(1) for i in range(0, x.shape[1] - 2, 2)], 1)


class Blocks(Model):
    """Blocks of three, each for itself; what is left goes."""

    def forward(self, x: Tensor) -> Tensor:
        outputs = []
        for i in range(x.shape[1] // 3):
            block = x[:, i * 3 : (i + 1) * 3]
            outputs.append(torch.softmax(block @ block.mT, -1) @ block)
        return torch.cat(outputs, 1)


class FromTheEnd(Model):
    """Pairs from the last on, carried along."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.cell(x[:, 0], self.start(x))
        for i in range(x.shape[1] - 2, -1, -2):
            h = self.cell(x[:, i : i + 2].sum(1), h)
        return h


@pytest.mark.parametrize("model, least", [
    (Windows(), 3),
    pytest.param(Blocks(), 3, marks=pytest.mark.slow),
    pytest.param(FromTheEnd(), 2, marks=pytest.mark.slow),
])
def test_windows_of_several_slices(model: nn.Module, least: int) -> None:
    found = export(model, SEQUENCE)
    assert count(found) == 1 and str(found.accepts) == f"{least} <= t"
    module = found.program.module()
    with torch.no_grad():
        for t in range(1, 14):
            x = torch.randn(2, t, 4)
            if t < least:
                with pytest.raises(AssertionError, match="Guard failed"):
                    module(x)
            else:
                assert same(module(x), model(x)), t


class Pieces(Model):
    def forward(self, x: Tensor) -> Tensor:
        h, outputs = self.start(x), []
        for piece in x.split(3, 1):
            h = self.cell(piece.sum(1), h)
            outputs.append(torch.softmax(piece @ piece.mT, -1) @ piece + h.unsqueeze(1))
        return torch.cat(outputs, 1)


def test_pieces_of_one_size_are_windows() -> None:
    """Where nothing is left for a shorter one."""
    found = export(Pieces(), SEQUENCE, "t % 3 == 0")
    assert found.exact and count(found) == 1
    buffer = io.BytesIO()
    torch.export.save(found.program, buffer)
    module = torch.export.load(io.BytesIO(buffer.getvalue())).module()
    for t in (3, 6, 21):
        x = torch.randn(2, t, 4)
        with torch.no_grad():
            assert same(module(x), Pieces()(x)), t
    found = export(Pieces(), SEQUENCE)
    assert count(found) == 0 and str(found.accepts) == f"t == {found.example['t']}"


class Wraps(nn.Module):
    """A module around a function of another file."""

    def __init__(self, run: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x) * 2


def test_loops_of_functions_of_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a module holds, or a function of its own encloses."""
    (tmp_path / "elsewhere.py").write_text(
        "import torch\n\n\ndef run(x):\n    h = torch.zeros(x.shape[0], 4)\n"
        "    for i in range(x.shape[1]):\n        h = torch.tanh(h + x[:, i])\n    return h\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = importlib.import_module("elsewhere").run
    for model in (Wraps(run), Wraps(lambda x: run(x) + 1)):
        found = export(model, SEQUENCE)
        assert found.exact and count(found) == 1
        x = torch.randn(3, 9, 4)
        assert same(found.program.module()(x), model(x))


def test_windows_cut_at_another_place_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = loop_rows.IterationIndex.cut
    monkeypatch.setattr(
        loop_rows.IterationIndex, "cut", lambda index, tensor, axis: right(index, tensor, axis).flip(0)
    )
    found = export(FromTheEnd(), SEQUENCE)
    assert "the exported program differs from the model" in found.attempts[0].error and count(found) == 0


def test_scans_survive_saving_and_decompositions() -> None:
    model, x = Layers().eval(), torch.randn(2, 9, 4)
    found = export(model, SEQUENCE)
    buffer = io.BytesIO()
    torch.export.save(found.program, buffer)
    loaded = torch.export.load(io.BytesIO(buffer.getvalue())).module()
    with torch.no_grad():
        assert same(loaded(x), model(x))
        assert same(found.program.run_decompositions().module()(x), model(x))


# ---- loops that are none


class Counts(Model):
    def forward(self, x: Tensor) -> Tensor:
        h, n = self.start(x), 0
        for step in x.unbind(1):
            h, n = h + step, n + 1
        return h / n


class Grows(Model):
    def forward(self, x: Tensor) -> Tensor:
        h = x[:, :1]
        for step in x.unbind(1):
            h = torch.cat([h, step[:, None]], 1)
        return h


class WritesInto(Model):
    """What is written into is seen under another name."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.start(x)
        seen = h
        for step in x.unbind(1):
            h += step
        return seen


class ReadsWhatItWrites(Model):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(x.shape[0], x.shape[1] + 1, 4)
        for i in range(x.shape[1]):
            y[:, i + 1] = y[:, i] + x[:, i]
        return y


class Logs(Model):
    """Lists that are gathered in by another name."""

    def forward(self, x: Tensor) -> Tensor:
        h, self.log = self.start(x), []
        for step in x.unbind(1):
            h = h + step
            self.log.append(h)
        return torch.stack(self.log)


class Keeps(Model):
    """Something that nobody looks into holds what one iteration leaves to the next."""

    def forward(self, x: Tensor) -> Tensor:
        class Held:
            value = torch.zeros(x.shape[0], 4)

        held = Held()
        for step in x.unbind(1):
            held.value = held.value + step
        return held.value + 1


class AsksForNumbers(Model):
    def forward(self, x: Tensor) -> Tensor:
        h = self.start(x)
        for i in range(x.shape[1]):
            h = h + x[:, i] if i > 2 else h * 2
        return h


class NothingFirst(Model):
    def forward(self, x: Tensor) -> Tensor:
        h = None
        for step in x.unbind(1):
            h = self.cell(step, h)
        assert h is not None
        return h


class Left(Model):
    def forward(self, x: Tensor) -> Tensor:
        h = self.start(x)
        for i in range(x.shape[1]):
            if i == 3:
                break
            h = h + x[:, i]
        return h


NONE = [Counts, Grows, WritesInto, ReadsWhatItWrites, Logs, Keeps, AsksForNumbers, NothingFirst, Left]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", NONE)
def test_other_loops_have_the_steps_of_the_example(kind: type[Model]) -> None:
    model = kind()
    found = export(model, SEQUENCE)
    assert count(found) == 0
    t = found.example["t"]
    module = found.program.module()
    for steps in range(1, 6):
        x = torch.randn(2, steps, 4)
        if steps == t:
            with torch.no_grad():
                assert same(module(x), model(x))
        else:
            with pytest.raises(AssertionError, match="Guard failed"):
                module(x)


def test_a_scan_that_computes_something_else_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a counter is taken for something that stays the same, program and model differ."""
    monkeypatch.setattr(scans, "_unchanged", lambda old, new: old is new or not isinstance(old, Tensor))
    found = export(Counts(), SEQUENCE)
    assert "the exported program differs from the model" in found.attempts[0].error
    assert count(found) == 0 and found.attempts[1].error == ""


# ---- the bodies of loops


def test_functions_are_left_as_they_were() -> None:
    model = Steps()
    before = Steps.forward.__code__
    with loops_run_by(lambda *args: None, lambda *args: None, model):
        assert Steps.forward.__code__ is not before and LOOP in Steps.forward.__globals__
    assert Steps.forward.__code__ is before and not {LOOP, GATHER} & Steps.forward.__globals__.keys()
    export(model, SEQUENCE)
    assert Steps.forward.__code__ is before


def test_loops_run_by_python_do_what_they_did() -> None:
    """The other form of a loop, run step by step, is the loop."""

    def run(body: Any, iterable: Any, names: Any, read: Any, *values: Any) -> Any:
        now = [scans._value(get) for get in values]
        for element in iterable:
            now = [*body(element, *now)]
        return now

    def gather(of: Any, iterable: Any) -> list[Any]:
        return [of(element) for element in iterable]

    for row in SCANS:
        model, _, given = getattr(row, "values", row)  # those that are slow are marked
        args = given(2, 3)
        expected = model(*args)
        with loops_run_by(run, gather, model):
            assert same(model(*args), expected), type(model)
