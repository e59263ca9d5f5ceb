"""Exported programs take the sizes that eager PyTorch takes, and refuse those that it refuses."""

from __future__ import annotations

import functools
import gc
import io
import math
import operator
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import pytest
import sympy
import torch
from models.control import AssertsOfData
from torch import Tensor, nn
from torch.utils._sympy.functions import FloorDiv

from anyshape.constraints.ir.language import Fact
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.dims import Dim, evaluate, modulo, sym
from anyshape.constraints.terms.formula import Formula, eq, free_symbols, ge, holds, le
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.facts.boxes import Box, Root
from anyshape.tracer.readers.exported import GraphError
from anyshape.typecheck import Exported, ExportError, TargetError, check, export
from anyshape.typecheck.exporting import export as exporting
from anyshape.typecheck.exporting.attempts import second_traces
from anyshape.typecheck.exporting.attempts.program_needs import Needs, ProgramRequirement
from anyshape.typecheck.exporting.attempts.second_traces import SecondTraces
from anyshape.typecheck.exporting.examples.example_inputs import arguments
from anyshape.typecheck.exporting.examples.example_sizes import example_sizes, mixed_sizes
from anyshape.typecheck.exporting.graphs import same_graph
from anyshape.typecheck.exporting.graphs.program_checks import install, symbols_of
from anyshape.typecheck.exporting.tracing import sympy_work, tracing
from anyshape.typecheck.exporting.tracing.broadcasting import unsure
from anyshape.typecheck.exporting.tracing.python_calls import builtins_on_sizes

aten = torch.ops.aten
Sizes = Mapping[str, int]


def ran(target: Callable[..., Any], inputs: str, sizes: Sizes, like: Any) -> bool:
    args, kwargs = arguments(like, parse_spec(inputs), sizes, "zeros")
    try:
        target(*args, **kwargs)
    except Exception:  # noqa: BLE001 (a program refuses with anything)
        return False
    return True


def grid(**values: Iterable[int]) -> list[dict[str, int]]:
    points: list[dict[str, int]] = [{}]
    for name, choices in values.items():
        points = [{**point, name: value} for point in points for value in choices]
    return points


def wrong(found: Exported, model: Any, inputs: str, points: Iterable[Sizes]) -> list[str]:
    """Sizes at which the program and the model do not agree on whether they run."""
    module = found.program.module()
    return [
        f"{dict(sizes)}: the model {'runs' if ran(model, inputs, sizes, model) else 'refuses'}"
        for sizes in points
        if ran(module, inputs, sizes, model) != ran(model, inputs, sizes, model)
    ]


# ---- models


class View(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(-1, 4, x.shape[1])


class Holds(nn.Module):
    """Runs where a condition holds of the first sizes of its inputs."""

    def __init__(self, condition: Callable[..., bool]) -> None:
        super().__init__()
        self.condition = condition

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        if y is None:
            assert self.condition(x.shape[0])
            return torch.relu(x)
        assert self.condition(x.shape[0], y.shape[0])
        return x.sum() + y.sum()


class Unet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 2, 2, stride=2)
        self.up = nn.ConvTranspose2d(2, 1, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.up(self.down(x))], dim=1)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, bidirectional=True, num_layers=2)
        self.gru = nn.GRU(6, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.lstm(x)
        z, _ = self.gru(y.transpose(0, 1))
        return z.reshape(z.shape[0] * z.shape[1], 2)


class Pooled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.max_pool1d(x, x.shape[-1]).squeeze(-1)


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:7] if x.shape[0] > 7 else x * 2


class Repeats(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        return x.repeat(n, 1)


class Nested(nn.Module):
    def forward(self, batch: dict[str, Tensor], masks: list[Tensor], *, scale: float = 1.0) -> Tensor:
        return batch["a"] * scale + masks[0] @ masks[1]


class Counts(nn.Module):
    """A loop that is no scan: it counts."""

    def forward(self, x: Tensor) -> Tensor:
        total, n = torch.zeros(x.shape[:2]), 0
        for row in x.unbind(2):
            total, n = total * 2 + row, n + 1
        return total / n


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Scaled(nn.Module):
    """Scales by two thirds of a size: the number is written into a trace."""

    def forward(self, x: Tensor) -> Tensor:
        return x * len([*range(2 * x.shape[0] // 3)])


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    model: nn.Module
    inputs: str
    points: tuple[dict[str, int], ...]
    assume: tuple[str, ...] = ()
    exact: bool = True


def case(name: str, model: nn.Module, inputs: str, points: list[dict[str, int]], *assume: str) -> Case:
    return Case(name, model, inputs, tuple(points), assume)


B = grid(b=range(1, 24))
BC = grid(b=range(1, 9), c=range(1, 9))
CASES = [
    case("rows", View(), "x: [b, 3]", B),
    case("hole", Holds(lambda b: b != 7), "x: [b, 3]", B),
    case("residues", Holds(lambda b: b % 4 <= 2), "x: [b, 3]", B),
    case("quotient", Holds(lambda b: b // 4 == 2), "x: [b, 3]", B),
    case("square", Holds(lambda b: (b * b) % 4 == 0), "x: [b, 3]", B),
    case("sum", Holds(lambda b, c: b + c == 8), "x: [b, 3]; y: [c, 3]", BC),
    case("order", Holds(lambda b, c: b < c <= 7), "x: [b, 3]; y: [c, 3]", BC),
    case("product", Holds(lambda b, c: b * c % 4 == 0), "x: [b, 3]; y: [c, 3]", BC),
    case("ratio", Holds(lambda b, c: 2 * b == 3 * c), "x: [b, 3]; y: [c, 3]", BC),
    case("unet", Unet(), "x: [b, 1, h, w]", grid(b=(1, 2), h=range(1, 8), w=(1, 2, 3, 4))),
    case("recurrent", Tagger(), "x: [t, b, 4]", grid(t=range(1, 9), b=(1, 2, 3))),
    case("integer", Repeats(), "x: [b, 3]; n: int", grid(b=(1, 2, 5), n=range(1, 5))),
    case("nested", Nested(), 'batch["a"]: [a, c]; masks[0]: [a, b]; masks[1]: [b, c]; scale=0.5',
         grid(a=(1, 2, 3), b=(1, 2), c=(1, 2, 3))),
]  # fmt: skip


@functools.cache
def exported(case: Case) -> Exported:
    """Returns the program of a case, which tests share: none of them changes it."""
    return export(case.model, case.inputs, case.assume)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("given", CASES, ids=lambda c: c.name)
def test_takes_what_eager_takes(given: Case) -> None:
    found = exported(given)
    assert [a.error for a in found.attempts] == [""], "at the first try"
    assert found.exact and not found.given_up
    assert found.tried
    assert wrong(found, given.model, given.inputs, given.points) == []


def test_a_program_with_other_checks_is_seen() -> None:
    """The comparison above fails where the program is not what the model is."""
    model = View()
    found = export(model, "x: [b, 3]")
    found.program._guards_code = ["L['x'].size()[0] >= 9"]
    assert wrong(found, model, "x: [b, 3]", B)


def test_what_torch_leaves_out() -> None:
    """torch itself does not hold a size `4*s` to be a multiple of 4: 9 rows are taken."""
    model = nn.ReLU()
    dims = ({0: 4 * torch.export.Dim("_b", min=1, max=16)},)
    theirs = torch.export.export(model, (torch.zeros(8, 3),), dynamic_shapes=dims)
    assert ran(theirs.module(), "input: [b, 3]", {"b": 9}, model)
    found = export(model, "input: [4*k, 3]", "k <= 16")
    assert [n for n in range(70) if ran(found.program.module(), "input: [b, 3]", {"b": n}, model)] == [
        *range(4, 65, 4)
    ]


# ---- what survives


def saved(found: Exported) -> Any:
    buffer = io.BytesIO()
    torch.export.save(found.program, buffer)
    return torch.export.load(io.BytesIO(buffer.getvalue()))


@pytest.mark.parametrize("name", ["rows", "hole", "sum", "unet", "recurrent", "nested"])
def test_checks_survive_saving(name: str) -> None:
    given = next(c for c in CASES if c.name == name)
    module = saved(exported(given)).module()
    for sizes in given.points:
        eager = ran(given.model, given.inputs, sizes, given.model)
        assert ran(module, given.inputs, sizes, given.model) == eager, sizes


def test_relations_survive_decompositions() -> None:
    """Not the conditions in Python, which torch makes anew; the assertions in the graph."""
    model = Holds(lambda b, c: b + c == 8 and b != 3)
    found = export(model, "x: [b, 3]; y: [c, 3]")
    found.program._guards_code = []
    module = found.program.run_decompositions().module()
    for sizes in grid(b=range(2, 7), c=range(2, 7)):
        b, c = sizes["b"], sizes["c"]
        assert ran(module, "x: [b, 3]; y: [c, 3]", sizes, model) == (b + c == 8 and b != 3), sizes


def test_a_saved_program_says_what_it_takes() -> None:
    found = exported(CASES[0])
    report = check(found.program, "x: [b, 3]", replay=False)
    assert report.accepts.holds(b=8) and not report.accepts.holds(b=9)


# ---- ranges


def test_ranges_are_tight() -> None:
    found = export(Holds(lambda b: 3 <= b * b <= 80), "x: [b, 3]")
    ((_, known),) = found.program.range_constraints.items()
    assert (int(known.lower), int(known.upper)) == (2, 8)
    # torch itself looks at no bound below 3
    assert not ran(found.program.module(), "x: [b, 3]", {"b": 1}, Holds(bool))


def test_finite_bounds_for_every_size() -> None:
    found = export(Unet(), "x: [b, 1, h, w]", finite={"b": 4, "h": 64, "w": 32})
    bounds = {size: (known.min, known.max) for size, known in found.sizes.items()}
    assert bounds["b"] == (1, 4) and bounds["h//2"] == (1, 32)
    assert all(low is not None and high is not None for low, high in bounds.values())
    assert found.exact
    assert export(Unet(), "x: [b, 1, h, w]", finite=16).sizes["h"].max == 16


# ---- what a trace fixes


def test_what_the_trace_fixes_is_given_up_and_told() -> None:
    model = Counts()
    found = export(model, "x: [b, 3, t]")
    assert not found.exact
    assert {g.cause for g in found.given_up} == {"trace"}
    assert "for row in x.unbind(2):" in str(found.given_up[0])
    t = found.example["t"]
    module = found.program.module()
    assert [n for n in range(1, 40) if ran(module, "x: [b, 3, t]", {"b": 2, "t": n}, model)] == [t]


# ---- what torch fixes, and a trace need not


class Grid(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        side = int(x.shape[1] ** 0.5)
        return x.view(x.shape[0], side, side)


class Windows(nn.Module):
    """The batch is found again from how many windows there are."""

    def forward(self, x: Tensor) -> Tensor:
        b, h, w = x.shape
        windows = x.view(b, h // 4, 4, w // 4, 4).transpose(2, 3).reshape(-1, 16)
        batch = int(windows.shape[0] / (h * w / 4 / 4))
        return windows.view(batch, h // 4, w // 4, 4, 4).transpose(2, 3).reshape(batch, h, w)


class AtLeastOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, : max(1, x.shape[1] // 3)] + min(x.shape[0], 5)


class Twice(nn.Module):
    """Pooling makes torch guard that the size of what comes out is that of the example."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 8, stride=4)
        self.pool = nn.MaxPool1d(4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.pool(self.conv(x))
        return torch.avg_pool1d(y, y.shape[-1]).squeeze(-1)


class Column(nn.Module):
    """Rows are pooled until one is left, which goes; without that there are too many dims."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.max_pool2d(x, (4, 1)).squeeze(1).t() + x.squeeze(-1).sum()


class Columns(nn.Module):
    """Pools over all of the width, and over pairs of rows."""

    def forward(self, x: Tensor) -> Tensor:
        high = nn.functional.max_pool2d(x, kernel_size=(2, x.shape[-1]))
        return high + nn.functional.avg_pool2d(x, (2, x.shape[-1]), stride=(2, 1))


class Sum(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x.relu() + y).sum(1) * 2


class SumOfMany(nn.Module):
    """The second tensor is one row, or as many as the first has, for whose number the result is asked."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + y).view(x.shape[0], 3, 1).matmul(torch.where(y > 0, x, y).unsqueeze(1))


class Loss(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.mse_loss(x, target=y) + nn.functional.l1_loss(x, y, reduction="sum")


class Products(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(x, y, y) @ y.mT - x.mean(1, keepdim=True)[..., :1]


class Attends(nn.Module):
    """Attention of four dims has a kernel of its own where the batches are equal."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        q, k = (value.unflatten(-1, (2, 2)).transpose(1, 2) for value in (x, y))
        mask = torch.zeros(x.shape[0], 1, 5, y.shape[1])
        attended = nn.functional.scaled_dot_product_attention(q, k, value=k, attn_mask=mask)
        return attended.transpose(1, 2).flatten(2) + x


class Heads(nn.Module):
    """Attention in heads by products of matrices, as it is written by hand."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        q, k = (value.unflatten(-1, (2, 2)).transpose(1, 2) for value in (x, y))
        return torch.matmul((q @ k.transpose(2, 3)).softmax(-1), k).transpose(1, 2).flatten(2) + x


class Counted(nn.Module):
    """The length of a tensor of positions is a size."""

    def forward(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1])
        return x + torch.ones(2 * len(positions))[: len(x[0])] / len(x)


class Chunks(nn.Module):
    """The last of three chunks of 8 is as long as it happens to be."""

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        parts = [x[:, start : min(start + 8, length)].cumsum(1) for start in range(0, length, 8)]
        return torch.cat(parts, 1) + x


class Skips(nn.Module):
    """A skip of size 1 broadcasts against what upsampling has made of it."""

    def forward(self, x: Tensor) -> Tensor:
        half = nn.functional.max_pool1d(x, 3, stride=2, padding=1)
        return nn.functional.interpolate(half, scale_factor=2.0) + x


class Squares(nn.Module):
    """A square whose side is a root, however that is taken."""

    def __init__(self, side: Callable[[int], int]) -> None:
        super().__init__()
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        side = self.side(x.shape[1])
        return x.view(x.shape[0], side, x.shape[1] // side).sum(1)


class Spaced(nn.Module):
    """As many steps as there are rows, from one end to the other."""

    def forward(self, x: Tensor) -> Tensor:
        steps = torch.linspace(-1.0, 2, x.shape[0]) + torch.linspace(0, 1, steps=x.shape[0])
        return steps + torch.linspace(3, -7.5, 2 * x.shape[0] + 1, dtype=torch.float64)[: x.shape[0]]


class Shortened(nn.Module):
    """As many as a tensor says, which is made of a size; half as many where sizes are no accident."""

    def forward(self, x: Tensor) -> Tensor:
        half = nn.functional.avg_pool1d(x, 2, ceil_mode=True).repeat_interleave(2, dim=-1)
        return half[..., : torch.ceil(torch.as_tensor(3 * x.shape[-1] / 4)).long()]


def root(n: int) -> int:
    return int(sqrt(n))


class Einsum(nn.Module):
    """Letters of which the sizes broadcast."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        scores = torch.einsum("b i k, b j k -> b i j", x, y)
        return torch.einsum("bij,bjk->bik", [scores, y]).reshape(scores.shape[0], -1)


class Strided(nn.Module):
    """Nine steps of an eighth each: torch solves for n what is asked of n//8, and falls over it."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :: x.shape[1] // 8] + torch.arange(9)


class Paired(nn.Module):
    """As often as half of a size goes into it, which is to be 2."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, None].expand(-1, x.shape[1] // (x.shape[1] // 2), -1) + torch.zeros(2, 1)


TWO = "x: [b, 3]; y: [c, 3]"
FEW = (*grid(b=(1, 2, 3, 7), c=(1, 2, 3, 7)),)
FREE = [
    Case("pooling over columns", Columns(), "x: [b, 3, h, w]", (*grid(b=(2,), h=(1, 2, 5, 8), w=(1, 2, 9)),)),
    Case("a sum", Sum(), TWO, FEW),
    Case("a sum of one or many", SumOfMany(), TWO, FEW),
    Case("a loss", Loss(), TWO, FEW),
    Case("products", Products(), "x: [b, 5, 4]; y: [c, t, 4]", tuple({**p, "t": 6} for p in FEW)),
    Case("an einsum", Einsum(), "x: [b, 5, 4]; y: [c, t, 4]", tuple({**p, "t": 6} for p in FEW)),
    Case("attention", Attends(), "x: [b, 5, 4]; y: [c, t, 4]", tuple({**p, "t": 6} for p in FEW)),
    Case("heads", Heads(), "x: [b, 5, 4]; y: [c, t, 4]", tuple({**p, "t": 6} for p in FEW)),
    Case("lengths", Counted(), "x: [b, t]", (*grid(b=(1, 2, 3), t=(1, 2, 3, 8, 20)),)),
    Case("chunks", Chunks(), "x: [b, t]", (*grid(b=(1, 2), t=(17, 18, 21, 24)),), ("17 <= t <= 24",)),
    Case("a skip", Skips(), "x: [b, 2, n]", (*grid(b=(1, 2), n=(1, 2, 3, 4, 8, 9)),)),
    Case("squeeze", Column(), "x: [b, h, w]", (*grid(b=(1, 3), h=(3, 4, 5, 7, 8), w=(2, 5)),), ("w >= 2",)),
    Case("max_pool1d", Pooled(), "x: [b, 3, t]", (*grid(b=(1, 2), t=(1, 2, 9, 40)),)),
    Case("pooling twice", Twice(), "x: [b, 1, t]", (*grid(b=(1, 3), t=(19, 20, 21, 50, 99)),)),
    Case("windows", Windows(), "x: [b, h, w]", (*grid(b=(1, 3), h=(8, 9, 12), w=(8, 10, 16)),)),
    Case("strides", Strided(), "x: [b, n]", (*grid(b=(1, 2), n=(7, 8, 9, 16, 17, 18, 19, 71, 72, 73)),)),
    Case("pairs", Paired(), "x: [b, n]", (*grid(b=(1, 2), n=(1, 2, 3, 4, 5, 50)),)),
    Case("a square", Grid(), "x: [b, n]", (*grid(b=(1, 2), n=(1, 2, 3, 4, 8, 9, 10, 25, 26)),)),
    *[
        Case(f"{name} of a size", Squares(side), "x: [b, n]", (*grid(b=(1, 2), n=(1, 2, 3, 4, 6, 9, 25)),))
        for name, side in {
            "sqrt": root, "math.sqrt": lambda n: int(math.sqrt(n)), "math.isqrt": lambda n: math.isqrt(n),
            "a power": lambda n: int(n**0.5), "math.floor": lambda n: math.floor(math.sqrt(n)),
        }.items()
    ],
    Case("as_tensor", Shortened(), "x: [b, n]", (*grid(b=(1, 3), n=(1, 2, 3, 4, 9, 50)),)),
    Case("an assert", AssertsOfData(), "x: [b, n]", (*grid(b=(1, 3), n=(1, 2, 9)),)),
    Case("linspace", Spaced(), "x: [n]", (*grid(n=(1, 2, 3, 4, 9, 50)),)),
    Case("a maximum", AtLeastOne(), "x: [b, t]", (*grid(b=(1, 4, 5, 9), t=(1, 2, 3, 4, 30)),)),
]


ALIKE = {
    *("a sum of one or many", "products", "heads", "pooling twice"),
    *(f"{name} of a size" for name in ("sqrt", "math.sqrt", "a power", "math.floor")),
}
"""Slow cases that others are like: a sum, attention, max_pool1d, math.isqrt of a size."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name, marks=[pytest.mark.slow] * (c.name in ALIKE)) for c in FREE]
)
def test_sizes_stay_free(case: Case) -> None:
    found = export(case.model, case.inputs, case.assume)
    assert len(found.attempts) == 1
    assert not wrong(found, case.model, case.inputs, case.points)
    module = found.program.module()
    for sizes in case.points:
        args, _ = arguments(case.model, parse_spec(case.inputs), sizes, "random")
        if ran(case.model, case.inputs, sizes, case.model):
            assert torch.allclose(module(*args), case.model(*args), atol=1e-6), sizes


class TwoCells(nn.Module):
    """Two cells of half the width each, padded where that is odd: torch makes numbers of both."""

    def forward(self, x: Tensor) -> Tensor:
        half = math.ceil(x.shape[-1] / 2)
        padding = (2 * half - x.shape[-1] + 1) // 2
        return nn.functional.max_pool1d(x, half, stride=half, padding=padding)


def test_kernels_that_torch_makes_numbers_of_hold_their_sizes() -> None:
    found = export(TwoCells(), "x: [b, 2, n]")
    assert str(found.accepts) == "n == 4" and found.given_up
    for rows in (1, 2, 5):
        x = torch.rand(rows, 2, 4)
        assert torch.equal(found.program.module()(x), TwoCells()(x))


def test_builtins_are_pythons_own_for_all_but_sizes() -> None:
    builtins = builtins_on_sizes(unsure)
    largest, integer = builtins["max"], builtins["int"]
    assert largest([5], key=abs) == largest([5]) == largest(iter([5, 3])) == largest(5, 3) == 5
    assert largest([], default=7) == 7 and largest("ab") == "b" and largest([-5, 3], key=abs) == -5
    assert (integer(), integer("12"), integer("ff", 16), integer(2.7)) == (0, 12, 255, 2)
    with pytest.raises(TypeError):
        largest()


class Same(nn.Module):
    """Padded so that a layer halves its sizes, as TensorFlow does it: by a maximum that is never 0."""

    def __init__(self, layers: int, least: int) -> None:
        super().__init__()
        self.layers, self.least = nn.ModuleList(nn.Conv1d(2, 2, 3, 2) for _ in range(layers)), least

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            n = x.shape[-1]
            more = max((math.ceil(n / 2) - 1) * 2 + 3 - n, n // 8 * self.least)
            x = layer(nn.functional.pad(x, (more // 2, more - more // 2)))
        return x


@pytest.mark.parametrize("layers, least, compared", [(5, 0, 0), (1, 1, 1)])
def test_a_maximum_is_one_of_two_where_it_is_known_which(layers: int, least: int, compared: int) -> None:
    model = Same(layers, least)
    found = export(model, "x: float32[b, 2, n]")
    assert not wrong(found, model, "x: float32[b, 2, n]", [{"b": 2, "n": n} for n in range(1, 40)])
    functions = [node.target for node in found.program.graph.nodes]
    assert functions.count(torch.sym_max) == compared


class Greatest(nn.Module):
    """Goes the way that its data and its sizes say."""

    def forward(self, x: Tensor) -> Tensor:
        place = int(x.argmax())
        if place < 3:
            return x + 1
        if place < x.shape[0] - 2:
            return x * 2
        return x if x.shape[0] > 9 else x - 1


def test_ways_that_the_data_choose_are_told_by_sizes_alone() -> None:
    report = check(Greatest(), "x: [n]")
    assert {name for way in report.ways for name in free_symbols(way)} == {"n"}
    with pytest.raises(ExportError, match="data-dependent"):
        export(Greatest(), "x: [n]")


class Causal(nn.Module):
    """Branches at one size alone, and computes the same on either side."""

    def forward(self, x: Tensor) -> Tensor:
        causal = True if x.shape[1] > 1 else False  # noqa: SIM210 (torch takes no condition on sizes here)
        return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=causal)


class AloneOrNot(Causal):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.shape[1] > 1 else x * 2


@pytest.mark.parametrize("model, taken", [(Causal(), True), (AloneOrNot(), False)])
def test_a_branch_for_few_sizes_is_tried(model: nn.Module, taken: bool) -> None:
    found = export(model, "x: [b, t, 8]")
    assert (found.exact, {g.cause for g in found.given_up}) == ((True, set()) if taken else (False, {"way"}))
    assert ran(found.program.module(), "x: [b, t, 8]", {"b": 2, "t": 1}, model) is taken
    x = torch.randn(2, 5, 8)
    assert torch.allclose(found.program.module()(x), model(x), atol=1e-5)


ROUNDED: dict[str, Callable[[int], Any]] = {
    "math.ceil": lambda n: math.ceil(n / 3),
    "math.floor": lambda n: math.floor(5 * n / (n + 2)),
    "round": lambda n: round(n / 2) + round(n / 6),
    "a multiple": lambda n: math.ceil(n * 0.75) + math.floor(1.5 * n) + round(-0.25 * n) + n,
    "a multiple that is rounded": lambda n: math.ceil(n * 0.1),
    "a root": lambda n: math.floor(math.sqrt(n)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ROUNDED)
def test_programs_are_saved_whatever_rounds_their_sizes(name: str) -> None:
    class Rounds(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            size = ROUNDED[name](x.shape[0])
            return x.new_zeros(size + 1), size

    found = export(Rounds(), "x: [n]")
    sizes = [n for n in range(1, 41) if ran(Rounds(), "x: [n]", {"n": n}, Rounds())]
    if name != "a multiple that is rounded":  # 0.1 is no fraction of small integers
        saved = io.BytesIO()
        torch.export.save(found.program, saved)
        saved.seek(0)
        loaded = torch.export.load(saved).module()
        assert [loaded(torch.zeros(n))[1] for n in sizes] == [ROUNDED[name](n) for n in sizes]
    module = found.program.module()
    for n in sizes:
        zeros, size = module(torch.zeros(n))
        assert (zeros.shape[0], size) == (ROUNDED[name](n) + 1, ROUNDED[name](n)), n


def test_a_check_that_takes_a_root_is_saved_and_leaves_nothing_unused() -> None:
    class Square(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if int(math.sqrt(x.shape[1])) ** 2 != x.shape[1]:
                raise ValueError("no square")
            return x + 1

    found = export(Square(), "x: [b, n]")
    unused = [n for n in found.program.graph.nodes if n.op == "call_function" and not n.users]
    assert {node.target for node in unused} == {aten._assert_scalar.default}
    saved = io.BytesIO()
    torch.export.save(found.program, saved)
    saved.seek(0)
    loaded = torch.export.load(saved).module()
    squares = [n for n in range(1, 30) if ran(loaded, "x: [b, n]", {"b": 2, "n": n}, Square())]
    assert squares == [1, 4, 9, 16, 25]


def test_pooling_of_a_part_is_left_alone() -> None:
    class Part(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.avg_pool1d(x, x.shape[-1], 1, 1)

    found = export(Part(), "x: [b, 3, t]")
    targets = [str(node.target) for node in found.program.graph.nodes]
    assert "aten.avg_pool1d.default" in targets and not found.exact


def test_descriptions_of_graphs_tell_numbers_and_sizes_apart() -> None:
    def described(function: Callable[[Tensor], Tensor], n: int) -> Any:
        shapes = {"x": {0: torch.export.Dim.AUTO}}
        module = Function(function)
        program = torch.export.export(module, (torch.ones(n, 3),), dynamic_shapes=shapes)
        return same_graph.described(program)

    def adds(x: Tensor) -> Tensor:
        return x + x.shape[0]

    added, four, one = described(adds, 4), described(lambda x: x + 4, 4), described(lambda x: x + 1, 4)
    assert added == described(adds, 7)
    assert added != four
    assert described(lambda x: x + 5, 4) != four
    assert described(lambda x: x[:3], 4) != described(lambda x: x[:2], 4)
    whole = (sys.maxsize, 1), (sys.maxsize,), ()
    for rest in whole:
        assert described(lambda x, rest=rest: aten.slice(x, 0, 0, *rest) + 1, 4) == one
    def copied(x: Tensor) -> Tensor:
        return (x + 1).t().contiguous().sin()

    def written(x: Tensor) -> Tensor:
        return (x + 1).t().contiguous().sin_()

    assert described(copied, 4) == described(lambda x: (x + 1).t().sin(), 4)
    def apart(x: Tensor) -> Tensor:
        (x + 1).view(x.shape[0], -1, 1).cos_()
        return (x + 1).view(x.shape[0], -1).t().contiguous().sin()

    assert described(written, 4) == described(lambda x: (x + 1).t().sin_(), 4)  # nobody sees what is copied
    def seen(x: Tensor) -> Tensor:
        y = (x + 1).t()
        return y.contiguous().sin_() + y

    assert described(seen, 4) != described(lambda x: (y := (x + 1).t()).sin_() + y, 4)
    plain = described(lambda x: (apart(x), (x + 1).view(x.shape[0], -1).t().sin())[1], 4)
    assert described(apart, 4) == plain
    assert described(lambda x: aten.slice(x, 0, 0, sys.maxsize, 2), 4) != described(lambda x: x[:], 4)
    assert described(lambda x: x.relu().sin(), 4) != described(lambda x: x.sin().relu(), 4)


def test_mixed_sizes_are_those_at_which_all_holds() -> None:
    n, m = sym("n"), sym("m")
    found = [*mixed_sizes(["n", "m"], [ge(n, 9), eq(modulo(m, n - 11), 0)])]
    assert found == [*mixed_sizes(["n", "m"], [ge(n, 9), eq(modulo(m, n - 11), 0)])]
    assert found and all(at["n"] >= 9 and at["n"] != 11 and at["m"] % (at["n"] - 11) == 0 for at in found)


def test_graphs_agree_where_sizes_that_they_write_otherwise_are_the_same() -> None:
    def described(function: Callable[[Tensor], Tensor], n: int) -> Any:
        module = Function(function)
        dynamic = torch.export.Dim.AUTO if n > 1 else None
        shapes = {"x": {0: dynamic, 1: torch.export.Dim.AUTO}}
        program = torch.export.export(module, (torch.ones(n, 3),), dynamic_shapes=shapes)
        known = symbols_of(program, parse_spec("x: [n, k]"))
        assert {*known.values()} == {*map(sym, "nk" if n > 1 else "k")}
        names.update({name: str(dim) for name, dim in known.items()})
        return same_graph.described(program)

    def viewed(x: Tensor) -> Tensor:
        return x.view(-1, x.shape[0], 1) * (x.shape[0] + x.shape[1])

    def for_one_row(one: sympy.Expr, other: sympy.Expr) -> bool:
        rows = {symbol: 1 for symbol in one.free_symbols if names[str(symbol)] == "n"}
        return bool(one.subs(rows) == other)

    names: dict[str, str] = {}
    several, one = described(viewed, 4), described(viewed, 1)
    assert several != one and same_graph.agree(several, one, for_one_row)
    assert not same_graph.agree(several, one, lambda size, other: False)
    others = [lambda x: viewed(x) + 1, lambda x: x.view(-1, x.shape[0], 1) * (2 * x.shape[0] + x.shape[1])]
    for other in others:
        assert not same_graph.agree(several, described(other, 1), for_one_row)


def test_what_changes_nothing_is_left_out_of_a_description() -> None:
    def described(function: Callable[[Tensor], Tensor], equal: same_graph.Equal) -> Any:
        shapes = {"x": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}}
        program = torch.export.export(Function(function), (torch.ones(5, 7),), dynamic_shapes=shapes)
        return same_graph.described(program, equal=equal)

    def of_one_value(one: Any, other: Any) -> bool:
        """As if the second size were a multiple of 4."""
        return bool(one == other) or {str(one), str(other)} <= {"0", "PythonMod(-s27, 4)"}

    def pads(x: Tensor) -> Tensor:
        return nn.functional.pad(x, (0, -x.shape[1] % 4)).sin()

    def writes(x: Tensor) -> Tensor:
        y = x + 1
        z = nn.functional.pad(y, (0, -x.shape[1] % 4))
        return y.sum() + z.sin_().sum()

    def resizes(x: Tensor) -> Tensor:
        return nn.functional.interpolate(x[None], size=x.shape[1]).sin()

    plain = described(lambda x: x.sin(), operator.eq)
    assert described(pads, operator.eq) != plain and len(described(pads, of_one_value)) == len(plain)
    assert len(described(writes, of_one_value)) == len(described(writes, operator.eq))
    unchanged, larger = (
        described(lambda x, n=n: nn.functional.interpolate(x[None], size=n * x.shape[1]).sin(), operator.eq)
        for n in (1, 2)
    )
    assert len(unchanged) == len(larger) - 1
    assert described(lambda x: x[:, : x.shape[1]].sin(), operator.eq) == plain
    assert described(lambda x: x[:, : x.shape[0]].sin(), operator.eq) != plain


class Pads(nn.Module):
    """Pads what is no multiple of 4, and takes the padding away again."""

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[1:]
        below, beside = -height % 4, -width % 4
        if below > 0 or beside > 0:
            x = nn.functional.pad(x, (0, beside, 0, below))
        windows = x.view(-1, x.shape[1] // 4, 4, x.shape[2] // 4, 4)
        x = (windows - windows.mean((2, 4), keepdim=True)).reshape(x.shape)
        if below > 0 or beside > 0:
            x = x[:, :height, :width]
        return x + 1


class PadsRemainders(nn.Module):
    """As models of windows have it: what is to pad is asked of the remainder."""

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[1:]
        if width % 4 != 0:
            x = nn.functional.pad(x, (0, 4 - width % 4))
        if height % 3 != 0:
            x = nn.functional.pad(x, (0, 0, 0, 3 - height % 3))
        return x.view(-1, x.shape[1] // 3, 3, x.shape[2] // 4, 4).mean((2, 4))


@pytest.mark.parametrize("model, ways", [(Pads(), 3), (PadsRemainders(), 4)], ids=["sizes", "remainders"])
def test_a_way_that_pads_covers_one_that_does_not(model: nn.Module, ways: int) -> None:
    found = export(model, "x: [b, h, w]")
    assert len(found.report.ways) == ways and found.exact and not found.given_up
    assert found.example["w"] % 4 and found.attempts[-1].example == found.example
    points = [*grid(b=(1, 2), h=(1, 3, 4, 5, 6, 8), w=(1, 4, 8, 11))]
    assert not wrong(found, model, "x: [b, h, w]", points)
    module = found.program.module()
    for sizes in points:
        args, _ = arguments(model, parse_spec("x: [b, h, w]"), sizes, "random")
        assert torch.allclose(module(*args), model(*args), atol=1e-6), sizes


class PadsRows(nn.Module):
    """Has two ways, as few as make a wider trace of one of them."""

    def forward(self, x: Tensor) -> Tensor:
        more = -x.shape[1] % 4
        if more > 0:
            x = nn.functional.pad(x, (0, more))
        return x.view(-1, x.shape[1] // 4, 4).mean(2)


@pytest.mark.parametrize(
    "model, tried", [(PadsRows(), [True, False]), (nn.ReLU(), [True])], ids=["wider", "one way"]
)
def test_a_trace_that_was_checked_is_not_checked_again(
    model: nn.Module, tried: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own guards are gone by then. A wider trace that is not the model leaves the first as it was."""

    class Differs(exporting.Comparison):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.wrong = "everything differs"

        def agree_where(self, region: Any) -> bool:
            return True

        def at_the_ends(self, several: bool) -> None: ...

    found: list[bool] = []
    real = exporting._Exporting._widest

    def widest(self: Any, *args: Any, others: bool) -> exporting.Candidate:
        found.append(others)
        return real(self, *args, others=others)

    monkeypatch.setattr(exporting._Exporting, "_widest", widest)
    monkeypatch.setattr(exporting, "Comparison", Differs)
    with pytest.raises(ExportError, match="differs from the model: everything differs"):
        export(model, "x: [b, n]" if tried[1:] else "input: [b, n]")
    assert found == tried


class Uncovers(nn.Module):
    """What was padded is taken off again by a slice that ends before it: if that is nothing, all goes."""

    def forward(self, x: Tensor) -> Tensor:
        more = 0
        if x.shape[1] % 4 != 0:
            more = 4 - x.shape[1] % 4
            x = nn.functional.pad(x, (0, more))
        x = x.view(-1, x.shape[1] // 4, 4).cumsum(2).flatten(1)
        return x[:, :-more] if more > 0 else x


def test_a_way_that_pads_does_not_cover_what_it_would_cut_off() -> None:
    found = export(Uncovers(), "x: [b, n]")
    assert str(found.accepts) in ("n % 4 == 0", "n % 4 != 0")
    for n in range(1, 9):
        if holds(found.accepts, {"b": 2, "n": n}):
            x = torch.rand(2, n)
            assert torch.equal(found.program.module()(x), Uncovers()(x))


def test_a_remainder_from_its_divisor_is_one_again_only_where_it_is_not_nothing() -> None:
    class Remains(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.pad(x, (0, 4 - x.shape[1] % 4))

    points = [*grid(b=(1, 2), n=(1, 3, 4, 5, 8))]
    found = export(Remains(), "x: [b, n]")
    assert found.exact and not wrong(found, Remains(), "x: [b, n]", points)
    for n in (3, 4, 8):
        assert found.program.module()(torch.ones(2, n)).shape == Remains()(torch.ones(2, n)).shape


class Halves(nn.Module):
    """Branches where there is one row, into what is the same there."""

    def forward(self, x: Tensor) -> Tensor:
        rows = x.shape[0] if x.shape[0] > 1 else 1
        return x.view(rows, 2, -1).sum(1)


class Doubles(Halves):
    def forward(self, x: Tensor) -> Tensor:
        rows = x.shape[0] if x.shape[0] > 1 else 1
        return x.view(rows, 2, -1).sum(1) * (1 if x.shape[0] > 1 else 2)


@pytest.mark.parametrize("model, exact", [(Halves(), True), (Doubles(), False)])
def test_a_way_with_a_number_for_a_size_is_no_other_way(model: nn.Module, exact: bool) -> None:
    found = export(model, "x: [b, 8]")
    assert found.exact is exact
    assert ran(found.program.module(), "x: [b, 8]", {"b": 1}, model) is exact


def test_one_way_is_traced() -> None:
    model = Branches()
    found = export(model, "x: [b, 3]")
    assert [g.cause for g in found.given_up] == ["way"]
    module = found.program.module()
    assert [b for b in range(1, 20) if ran(module, "x: [b, 3]", {"b": b}, model)] == [*range(8, 20)]


class Tables(nn.Module):
    """Beyond the table there is another way, of endless many sizes, which nobody comes to."""

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(1) if x.shape[1] > 5000 else x * 2


class Padded(nn.Module):
    """Each residue of the length goes a way of its own."""

    def forward(self, x: Tensor) -> Tensor:
        over = x.shape[1] % 4
        return x if over == 0 else nn.functional.pad(x, (0, 8 - over))


@pytest.mark.parametrize(
    ("model", "taken"), [(Tables(), [1, 3, 4, 30, 5000]), (Padded(), [4, 8, 20])], ids=["tables", "padded"]
)
def test_the_usual_way_is_traced(model: nn.Module, taken: list[int]) -> None:
    module = export(model, "x: [b, t]").program.module()
    sizes = (1, 3, 4, 5, 7, 8, 20, 30, 5000, 5001)
    found = [t for t in sizes if ran(module, "x: [b, t]", {"b": 2, "t": t}, model)]
    assert set(taken) <= set(found) and (5001 in found) == (5001 in taken)


def test_numbers_in_the_graph_keep_their_guards() -> None:
    """The graph runs for all sizes, and is right for those alone whose number is in it."""
    model = Scaled()
    found = export(model, "x: [n, 3]")
    module = found.program.module()
    for n in range(1, 40):
        x = torch.ones(n, 3)
        try:
            result = module(x)
        except Exception:  # noqa: BLE001 (refused)
            continue
        assert torch.equal(result, model(x)), n


def test_a_guard_that_matters_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is taken for one that does not, the results of program and model differ, and it comes back."""
    model = Scaled()
    real = exporting.needs

    def careless(*args: Any) -> Needs:
        found = real(*args)
        return Needs(found.graph, (ProgramRequirement(ge(sym("n"), 5), ""),))

    monkeypatch.setattr(exporting, "needs", careless)
    with pytest.raises(ExportError, match="the results differ"):
        export(model, "x: [n, 3]")


def test_bounds_that_leave_one_size_are_an_equation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the two alone could be dropped: the graph of a ReLU needs neither."""
    real = exporting.needs

    def bounded(*args: Any) -> Needs:
        found = real(*args)
        return Needs(
            found.graph, (ProgramRequirement(ge(sym("n"), 5), ""), ProgramRequirement(le(sym("n"), 5), ""))
        )

    monkeypatch.setattr(exporting, "needs", bounded)
    assert export(nn.ReLU(), "input: [n, 3]").exact  # a second trace shows that no number is in the graph
    monkeypatch.setattr(same_graph, "described", lambda module, *how: object())
    assert str(export(nn.ReLU(), "input: [n, 3]").accepts) == "n == 5"


@pytest.mark.parametrize(
    ("regions", "accepts"),
    [([le(sym("n"), 4), ge(sym("n"), 6)], "True"), ([le(sym("n"), 4), ge(sym("n"), 7)], "n <= 5")],
    ids=["everywhere", "not at 6"],
)
def test_several_traces_show_that_an_equation_is_an_accident(
    regions: list[Formula], accepts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is the same graph where its own guards hold, and together they hold wherever the first fails."""
    real, same_where = exporting.needs, SecondTraces.same_where
    together = SecondTraces._same_together

    def bounded(trace: exporting.Trace, *args: Any) -> Needs:
        found = real(trace, *args)
        n = next(iter(trace.program.graph.nodes)).meta["val"].shape[0].node.hint
        five = ProgramRequirement(ge(sym("n"), 5), ""), ProgramRequirement(le(sym("n"), 5), "")
        return Needs(found.graph, (ProgramRequirement(regions[n > 5], ""),) if in_force else five)

    def several(self: Any, *args: Any) -> bool:
        in_force.append(True)
        shown = together(self, *args)
        in_force.clear()
        return shown

    in_force: list[bool] = []
    monkeypatch.setattr(exporting, "needs", bounded)
    monkeypatch.setattr(second_traces, "same", lambda one, other: False)
    monkeypatch.setattr(SecondTraces, "_same_together", several)
    monkeypatch.setattr(
        SecondTraces, "same_where", lambda self, *args: bool(in_force) and same_where(self, *args)
    )
    found = export(nn.ReLU(), "input: [n, 3]")
    assert str(found.accepts) == accepts


def test_bounds_that_nothing_needs_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    real = exporting.needs

    def bounded(*args: Any) -> Needs:
        found = real(*args)
        return Needs(
            found.graph, (ProgramRequirement(ge(sym("n"), 2), ""), ProgramRequirement(le(sym("n"), 63), ""))
        )

    monkeypatch.setattr(exporting, "needs", bounded)
    found = export(nn.ReLU(), "input: [n, 3]")
    assert found.exact and {1, 64} <= {sizes["n"] for sizes in found.tried}


@pytest.mark.parametrize("asked", [check, export])
def test_weights_are_freed_with_their_model(asked: Callable[..., object]) -> None:
    """Sweeps over many models keep the weights of one: Python collects knots of references far too rarely."""
    gc.collect()
    gc.disable()
    try:
        model = Unet()
        left = weakref.ref(model.down.weight)
        asked(model, "x: float32[b, 1, h, w]")
        del model
        assert left() is None
    finally:
        gc.enable()


# ---- what cannot be exported


class Result:
    def __init__(self, value: Tensor) -> None:
        self.value = value


class Wraps(nn.Module):
    def forward(self, x: Tensor) -> Result:
        return Result(torch.relu(x))


class OfData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if bool((x > 0).all()) else x


@pytest.mark.parametrize("model, part", [(Wraps(), "Result"), (OfData(), "data-dependent")])
def test_what_torch_cannot_trace(model: nn.Module, part: str) -> None:
    with pytest.raises(ExportError, match="cannot trace") as caught:
        export(model, "x: [b, 3]")
    assert part in str(caught.value)


def test_what_never_runs() -> None:
    with pytest.raises(TargetError, match="none of the declared inputs"):
        export(Holds(lambda b: b > 9), "x: [b, 3]", "b <= 8")


def test_what_is_exported_already() -> None:
    program = torch.export.export(nn.ReLU(), (torch.zeros(3),))
    with pytest.raises(TargetError, match="already"):
        export(program)


# ---- examples


def test_examples_are_nothing_special() -> None:
    box = Box({"b": sym("b"), "h": 16 * sym("_h")}, (Root("b", 1, None), Root("_h", 1, 9)))
    spec = parse_spec("x: [b, 3, h]")
    sizes = example_sizes(box, spec, [])
    assert sizes["b"] >= 2 and sizes["h"] % 16 == 0 and 16 < sizes["h"] < 144
    assert len({*sizes.values(), 3}) == 3


def test_examples_on_which_inner_sizes_coincide_are_avoided() -> None:
    from anyshape.typecheck.checking.api import examine

    class Windows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(2, 2, 5)

        def forward(self, x: Tensor) -> Tensor:
            return self.conv(self.conv(x))

    examined = examine(Windows(), "x: [b, 2, t]", replay=False)
    shapes = examined.report.dynamic_shapes
    assert shapes is not None
    sizes = example_sizes(shapes.box, examined.spec, examined.system.paths)
    b, t = sizes["b"], sizes["t"]
    assert len({b, 2, t, t - 4, t - 8}) == 5 and t - 8 >= 2


def test_an_example_may_lie_outside_the_box() -> None:
    """Where all sizes of the box are an accident, and others are accepted."""
    box = Box({"n": 1}, ())
    assert example_sizes(box, parse_spec("x: [n, 3]"), [], [{"n": 7}]) == {"n": 1}
    narrow = Box({"n": sym("n")}, (Root("n", 1, 2),))
    assert example_sizes(narrow, parse_spec("x: [n, 3]"), [], [{"n": 7}]) == {"n": 7}


def test_an_example_may_have_to_be_special() -> None:
    assert example_sizes(Box({"b": 1}, ()), parse_spec("x: [b]"), []) == {"b": 1}


def test_a_condition_as_python() -> None:
    found = export(Holds(lambda b, c: b == c or c == 1), "x: [b, 3]; y: [c, 3]", ["b >= 2", "c >= 2"])
    assert "L['x'].size()[0] == L['y'].size()[0]" in found.checks or eq(sym("b"), sym("c")) == found.accepts
    assert parse_formula(str(found.accepts)) == found.accepts
    assert math.isfinite(len(found.tried))


class EverySecond(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, ::2].view(x.shape[0], 16) + 1


def test_what_sympy_cannot_solve_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch falls over such a constraint, or does not, by the order in which symbols come out of a set."""

    def unsolved(*args: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr("sympy.solvers.inequalities.reduce_inequalities", unsolved)
    found = export(EverySecond(), "x: float32[b, h]")
    assert (found.exact, found.given_up, len(found.attempts)) == (True, (), 1)
    for b, h in ((1, 31), (2, 31), (3, 32)):
        assert found.program.module()(torch.zeros(b, h)).shape == (b, 16)
    for h in (30, 33):
        with pytest.raises((AssertionError, RuntimeError)):
            found.program.module()(torch.zeros(2, h))


def test_a_quotient_in_which_nothing_is_divided_is_not_simplified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two sizes that have a factor in common; sympy's search for a shorter form takes minutes at times."""
    x, y, z = sympy.symbols("x y z", integer=True, positive=True)
    simplify, asked = sympy.simplify, list[sympy.Expr]()

    def noted(quotient: sympy.Expr) -> sympy.Expr:
        asked.append(quotient)
        return simplify(quotient)

    monkeypatch.setattr(sympy, "simplify", noted)
    with sympy_work.plain_quotients():
        assert FloorDiv(6 * x * (y + 1), 4 * (z + 1) * (y + 1)) == FloorDiv(3 * x, 2 * (z + 1))
        assert asked == []
        assert FloorDiv(x * y + 3 * x, x * z) == FloorDiv(y + 3, z)
        assert len(asked) == 1
    assert FloorDiv(6 * z * (y + 1), 4 * (x + 1) * (y + 1)) == FloorDiv(3 * z, 2 * (x + 1))
    assert 3 * z in asked, "torch simplifies whatever is left"


def test_a_trace_may_take_so_long_and_no_longer() -> None:
    model, given = EverySecond(), ((torch.zeros(2, 32),), {})
    assert tracing.traced(model, given, None, True, seconds=60).program.module()(*given[0]).shape == (2, 16)
    with pytest.raises(TimeoutError, match="too long"):
        tracing.traced(model, given, None, True, seconds=0)


class Edges(nn.Module):
    """With a loop at each node, there is always an edge."""

    def forward(self, x: Tensor, kept: Tensor) -> Tensor:
        edges = torch.cat([kept.nonzero()[:, 0], torch.arange(x.shape[0])])
        return x if edges.numel() == 0 else edges + 1


class Longest(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        found = [row.nonzero()[:, 0] for row in (x[0], x[1])]
        return x.new_zeros(2, max(places.shape[0] for places in found))


class Picked(nn.Module):
    """Each row is of a size of its own, which no scan has."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([row[row > 0].sum() for row in x])


DECIDED_BY_DATA: dict[str, tuple[nn.Module, str, Callable[[], Iterable[tuple[Tensor, ...]]]]] = {
    "a condition": (
        Edges(), "x: float32[n, 8]; kept: bool[e]",
        lambda: ((torch.ones(n, 8), torch.rand(e) > 0.5) for n, e in ((1, 1), (3, 1), (1, 4), (5, 9))),
    ),
    "the largest": (Longest(), "x: float32[2, n]", lambda: ((torch.rand(2, n) - 0.5,) for n in (1, 2, 9))),
    "in a loop": (Picked(), "x: float32[b, n]", lambda: ((torch.randn(3, n),) for n in (1, 2, 9))),
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED_BY_DATA)
def test_sizes_that_the_data_decide_export_at_the_first_try(name: str) -> None:
    model, inputs, points = DECIDED_BY_DATA[name]
    found = export(model, inputs)
    assert [attempt.how for attempt in found.attempts] == ["no size is special"]
    for given in points():
        told, expected = found.program.module()(*given), model(*given)
        assert told.shape == expected.shape and torch.equal(told, expected)


def test_a_condition_that_other_sizes_leave_open_is_no_less_open() -> None:
    """Of no nodes and no edges, and of one or several: torch cannot know, and nothing is made up."""

    class Anything(nn.Module):
        def forward(self, x: Tensor, kept: Tensor) -> Tensor:
            edges = kept.nonzero()[:, 0]
            return x if edges.numel() == x.shape[0] else x + 1

    with pytest.raises(ExportError, match="data-dependent"):
        export(Anything(), "x: float32[n, 8]; kept: bool[e]")


class Digit(nn.Module):
    """One of two ways, by a binary digit of the length."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if (x.shape[0] // 2**self.place) % 2 else x + 1


class Digits(nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.digits = nn.ModuleList(map(Digit, range(count)))

    def forward(self, x: Tensor) -> Tensor:
        for digit in self.digits:
            x = digit(x)
        return x


def test_of_too_many_ways_the_usual_one_is_told_alone() -> None:
    model = Digits(9)  # 512 ways
    found = export(model, "x: float32[n]")
    assert len(found.attempts) == 1 and found.shapes.way == parse_formula("n % 512 == 0")
    assert found.accepts == parse_formula("n % 512 == 0") and not found.exact
    assert [given_up.cause for given_up in found.given_up] == ["way"]
    x = torch.rand(1024)
    assert torch.equal(found.program.module()(x), model(x))
    for n in (1, 256, 513):
        with pytest.raises((AssertionError, RuntimeError)):
            found.program.module()(torch.rand(n))


# --- conditions that hold many copies of a part


def shrunk(times: int) -> Dim:
    """A size that holds twice as many copies of the height each time."""
    dim: Dim = sym("h")
    for _ in range(times):
        dim = (3 * dim + 1) // 2 + (5 * dim + 2) // 7
    return dim


def checked(condition: Formula) -> torch.export.ExportedProgram:
    """A program that only checks its input."""
    shapes = {"x": {0: torch.export.Dim.AUTO}}
    program = torch.export.export(Tripled(), (torch.ones(7),), dynamic_shapes=shapes)
    install(program, parse_spec("x: float32[h]"), condition, lambda dim: Fact(0, None))
    return program


class Tripled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 3 * x


def test_a_part_that_is_there_many_times_is_computed_once() -> None:
    program = checked(ge(shrunk(6), 500))
    assert sum(node.target is operator.floordiv for node in program.graph.nodes) == 12
    module = program.module()
    passed = [h for h in range(1, 9) if not raises(module, torch.ones(h))]
    assert passed == [h for h in range(1, 9) if evaluate(shrunk(6), {"h": h}) >= 500] != []


def raises(function: Callable[..., object], *args: object) -> bool:
    try:
        function(*args)
    except (RuntimeError, AssertionError):
        return True
    return False


def test_a_condition_that_nobody_could_write_is_told() -> None:
    with pytest.raises(GraphError, match="too long"):
        checked(ge(shrunk(40), 5))
