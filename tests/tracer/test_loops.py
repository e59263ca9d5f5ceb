"""Loops over a size, program by program: each is compared with eager runs at every small length, zero
included: which sizes are accepted, and the shapes of what is returned.
"""

from __future__ import annotations

import collections
import functools
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from eager_runs import agreed
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from anyshape.constraints.ir.language import Tensor as Known
from anyshape.constraints.ir.program import Ref, from_json, to_json
from anyshape.constraints.ir.spec import Declared
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import Path, System
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import Term, evaluate, symbols
from anyshape.constraints.terms.formula import free_symbols, holds
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.recording.binding import bind
from anyshape.tracer.recording.record import record
from anyshape.tracer.summaries.families import Families
from anyshape.typecheck import check
from benchmarks.fuzz.program import Program

UPTO = 8
REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError, ZeroDivisionError, TypeError)


def trace(target: Any, inputs: str, *assume: str) -> System:
    spec = parse_spec(inputs, assume)
    system, _ = record(target, spec, default_rules, DomainOracle(spec.domain))
    for path in system.paths:
        path.program.verify()
        assert from_json(to_json(path.program)) == path.program
    return system


@functools.cache
def parameters(inputs: str) -> tuple[Declared, ...]:
    return parse_spec(inputs, ()).inputs


def eager(target: Any, inputs: str, values: dict[str, int]) -> list[tuple[int, ...]] | None:
    """The shapes that the program returns at these sizes; None where it refuses them."""
    def build(declared: Any) -> Any:
        kind = declared.type
        if isinstance(kind, Known):
            dtype = getattr(torch, kind.dtype or "float32")
            return torch.ones([evaluate(d, values) for d in kind.shape], dtype=dtype)
        return evaluate(kind, values) if isinstance(kind, Term) else kind

    bound = bind(target, parameters(inputs), build)
    try:
        result = target(*bound.args, **bound.kwargs)
    except (*REFUSALS, KeyError):
        return None
    return [tuple(t.shape) for t in leaves(result)]


def leaves(result: Any) -> Iterator[Tensor]:
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, list | tuple):
        for part in result:
            yield from leaves(part)


def recorded(path: Path, values: dict[str, int]) -> list[tuple[int, ...]] | None:
    """What the path says of these sizes."""
    if path.end.how == "raised" or not all(holds(c.formula, values) for c in path.constraints):
        return None
    results = (path.values[a.id] for _, a in path.program.outputs if isinstance(a, Ref))
    return [tuple(evaluate(d, values) for d in r.shape) for r in results if isinstance(r, Known)]


def by_data(path: Path) -> bool:
    """Does the path say anything of a size that the data decide?"""
    names = {name for name, _ in path.unbacked}
    results = [path.values[a.id] for _, a in path.program.outputs if isinstance(a, Ref)]
    said = [symbols(d) for r in results if isinstance(r, Known) for d in r.shape]
    return not names.isdisjoint(set().union(*said, *(free_symbols(c.formula) for c in path.constraints)))


@dataclass(frozen=True)
class Case:
    """A program, and whether its loop is summarised; if not, some lengths may be left open."""

    target: Any
    inputs: str = "x: [b, n, 4]"
    assume: tuple[str, ...] = ("0 <= n",)
    summarised: bool = True
    refuses: bool = False
    """Are there lengths that the program refuses?"""
    upto: int = UPTO

    @property
    def name(self) -> str:
        return getattr(self.target, "__name__", type(self.target).__name__)


def disagreements(case: Case) -> list[str]:
    """Where the recording and eager runs differ; and whether the loop is summarised as it should be."""
    system = trace(case.target, case.inputs, *case.assume)
    found = []
    open_paths = [p for p in system.paths if p.end.how == "gave-up"]
    iterated = any(p.program.iterations for p in system.paths)
    if case.summarised and (open_paths or system.incomplete or not iterated):
        found.append(f"not summarised: {[p.end.reason for p in open_paths]} {system.incomplete}")
    if not case.summarised and iterated:
        found.append("summarised, and should not be")
    names = system.domain.symbols
    sizes = [range(case.upto + 1) if name == "n" else (1, 2, 3) for name in names]
    paths = [(p.premise, p) for p in system.paths]
    for combination in itertools.product(*sizes):
        values = dict(zip(names, combination, strict=True))
        if not all(holds(a, values) for a in system.domain.assumptions):
            continue
        taken = [p for premise, p in paths if holds(premise, values)]
        if not taken or any(p.end.how == "gave-up" or by_data(p) for p in taken):
            if case.summarised:
                found.append(f"{values} takes no path, or an open one")
            continue
        expected = eager(case.target, case.inputs, values)
        if len({str(p.premise) for p in taken}) > 1:
            found.append(f"{values} takes several paths: {[str(p.premise) for p in taken]}")
        said = [recorded(path, values) for path in taken]
        if any(s != expected for s in said):
            found.append(f"{values}: eager says {expected}, the recording {said}")
        if expected is None and not case.refuses:
            found.append(f"{values} is refused by eager")
    return found


# --- recurrent nets as people write them -----------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 6)
        self.lstm = nn.LSTMCell(4, 6)
        self.linear = nn.Linear(6, 4)
        self.mix = nn.Linear(4, 4)


class Stacked(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.size(0), 6)
        outs = []
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
            outs.append(h)
        return torch.stack(outs, dim=1)


class Concatenated(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], 6)
        c = torch.zeros_like(h)
        outs = []
        for t in range(x.shape[1]):
            h, c = self.lstm(x[:, t, :], (h, c))
            outs += [h.unsqueeze(1)]
        return torch.cat(outs, 1)


class InPlace(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros(x.size(0), x.size(1), 6)
        h = torch.zeros(x.size(0), 6)
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
            out[:, t] = h
        return out


class Unbound(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        h, outs = None, []
        for row in x.unbind(1):
            h = self.cell(row, h)
            outs.append(h)
        return torch.stack(outs, 1)


class Enumerated(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        h, out = None, torch.zeros(x.size(0), x.size(1), 6)
        for t, row in enumerate(x.transpose(0, 1)):
            h = self.cell(row, h)
            out[:, t, :] = h
        return out


class Zipped(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        h, outs = None, []
        for a, b in zip(x.unbind(1), self.mix(x).unbind(1), strict=True):
            h = self.cell(a + b, h)
            outs.append(h)
        return torch.stack(outs, 1)


class Bidirectional(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        h = g = None
        forth, back = [], []
        for t in range(n):
            h = self.cell(x[:, t], h)
            forth.append(h)
        for t in reversed(range(n)):
            g = self.cell(x[:, t], g)
            back.append(g)
        back = back[::-1]
        return torch.cat([torch.stack(forth, 1), torch.stack(back, 1)], -1)


class BackwardsInFront(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        h, outs = None, []
        for t in range(x.size(1) - 1, -1, -1):
            h = self.cell(x[:, t], h)
            outs.insert(0, h)
        return torch.stack(outs, 1)


class Layers(nn.Module):
    """Loops over time within a loop over layers."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(4, 4) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        for cell in self.cells:
            h, outs = torch.zeros(x.size(0), 4), []
            for t in range(x.size(1)):
                h = cell(x[:, t], h)
                outs.append(h)
            x = torch.stack(outs, 1)
        return x


class LayersInside(nn.Module):
    """A loop over layers within one over time, with a list of states."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(4, 4) for _ in range(3)])

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        states = [x.new_zeros(x.size(0), 4) for _ in self.cells]
        outs = []
        for t in range(x.size(1)):
            h = x[:, t]
            for i, cell in enumerate(self.cells):
                h = states[i] = cell(h, states[i])
            outs.append(h)
        return torch.stack(outs, 1), states


def comprehension(x: Tensor) -> Tensor:
    return torch.stack([x[:, t].relu() for t in range(x.size(1))], dim=1)


def generator_expression(x: Tensor) -> Tensor:
    return torch.stack(tuple(row.tanh() for row in x.unbind(1)), dim=1)


def summed(x: Tensor) -> Tensor:
    return sum(x[:, t] * 2 for t in range(x.size(1)))


def summed_rows(x: Tensor) -> Tensor:
    return sum(x.unbind(1), start=x.new_zeros(4))


def over_rows(x: Tensor) -> Tensor:
    total = torch.zeros(4)
    for row in x:
        total = total + row.sum(0)
    return total


def splits(x: Tensor) -> Tensor:
    return torch.cat([part * 2 for part in torch.split(x, 1, dim=1)], dim=1)


def to_tuple(x: Tensor) -> Tensor:
    outs = ()
    for row in x.unbind(1):
        outs = outs + (row.exp(),)  # noqa: RUF005
    return torch.stack(outs)


def tuple_of_list(x: Tensor) -> Tensor:
    outs = []
    for t in range(x.size(1)):
        outs.append(x[:, t : t + 1])
    return torch.cat(tuple(outs), dim=1).view(x.shape)


def scan(x: Tensor) -> Tensor:
    """A selective scan, as Mamba's."""
    n = x.shape[1]
    state, outs = torch.zeros(x.shape[0], 4, 4), []
    for i in range(n):
        state = x[:, i, :, None] * state + x[:, i, None, :]
        y = torch.matmul(state, x[:, i, :].unsqueeze(-1))
        outs.append(y[:, :, 0])
    return torch.stack(outs, dim=-1).transpose(1, 2) + x


def two_lists(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = [], []
    for t in range(x.size(1)):
        a.append(x[:, t])
        b.append((x[:, t], x[:, t, :2]))
    return torch.stack(a), b[-1][1]


def slstm(x: Tensor) -> Tensor:
    """States in a dict, and a step in a function of its own."""
    def step(row: Tensor, state: dict[str, Tensor]) -> dict[str, Tensor]:
        m = torch.maximum(row + state["m"], row)
        return {"c": state["c"] * m.exp() + row, "n": state["n"] + 1, "m": m}

    state = {k: torch.zeros(x.size(0), 4) for k in "cnm"}
    out = torch.empty_like(x)
    for t in range(x.size(1)):
        state = step(x[:, t], state)
        out[:, t] = state["c"] / state["n"]
    return out


RECURRENT = [
    *(Case(kind(), refuses=True) for kind in (
        Stacked, Concatenated, Unbound, Zipped, Bidirectional, BackwardsInFront, Layers, LayersInside)),
    *(Case(kind()) for kind in (InPlace, Enumerated)),
    *(Case(f, refuses=True) for f in (
        comprehension, generator_expression, splits, to_tuple, tuple_of_list, scan, two_lists)),
    Case(summed_rows),
    Case(slstm),
    Case(over_rows, "x: [n, b, 4]"),
    Case(over_rows, "x: [n, b, 3]", refuses=True),
]


@pytest.mark.parametrize("case", RECURRENT, ids=lambda c: c.name)
def test_recurrent(case: Case) -> None:
    assert disagreements(case) == []


# --- ranges and indices ----------------------------------------------------------------------------------


def from_one(x: Tensor) -> Tensor:
    h = x[:, 0]
    for t in range(1, x.size(1)):
        h = h + x[:, t]
    return h


def every_second(x: Tensor) -> Tensor:
    outs = []
    for t in range(0, x.size(1), 2):
        outs.append(x[:, t])
    return torch.stack(outs, 1)


def every_second_pair(x: Tensor) -> Tensor:
    """Fails where the length is odd."""
    outs = []
    for t in range(0, x.size(1), 2):
        outs.append(x[:, t] + x[:, t + 1])
    return torch.stack(outs, 1)


def windows(x: Tensor) -> Tensor:
    return torch.stack([x[:, t : t + 3].sum(1) for t in range(x.size(1) - 2)], 1)


def halves(x: Tensor) -> Tensor:
    total = x.new_zeros(())
    for t in range(x.size(1) // 2):
        total = total + (x[:, t] * x[:, t + x.size(1) // 2]).sum()
    return total


def causal(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    for i in range(x.size(1)):
        scores = torch.einsum("bd,btd->bt", x[:, i], x[:, : i + 1]).softmax(-1)
        out[:, i] = torch.einsum("bt,btd->bd", scores, x[:, : i + 1])
    return out


def one_too_far(x: Tensor) -> Tensor:
    total = 0
    for i in range(x.size(1)):
        total = total + x[:, i + 1]
    return total


def looks_ahead(x: Tensor) -> Tensor:
    """The index is off by one from the second iteration on."""
    h = x[:, 0]
    for i in range(x.size(1)):
        if i > 0:
            h = h + x[:, i + 1]
    return h


def table(x: Tensor, y: Tensor) -> Tensor:
    """Rows of y, of which there may be too few."""
    total = x.new_zeros(4)
    for i in range(x.size(1)):
        total = total + y[i]
    return total


def in_groups(x: Tensor) -> Tensor:
    """The body asks that something is divisible."""
    h = x.new_zeros(x.size(0), 2, x.size(2) // 2)
    for t in range(x.size(1)):
        h = h + x[:, t].view(x.size(0), 2, -1)
    return h


def skips_the_first(x: Tensor) -> Tensor:
    previous, total = None, torch.zeros(x.size(0), 4)
    for t, row in enumerate(x.unbind(1)):
        if t > 0:
            total = total + row * previous
        previous = row
    return total


def first_is_other(x: Tensor) -> Tensor:
    h = None
    for t in range(x.size(1)):
        h = x[:, t] if h is None else torch.maximum(h, x[:, t])
    return h if h is not None else x


def length_after(x: Tensor) -> Tensor:
    outs = []
    for t in range(x.size(1)):
        outs.append(x[:, t])
    assert len(outs) == x.size(1)
    return torch.cat(outs, -1).view(x.size(0), len(outs), -1)


def last_of_list(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    outs = []
    for t in range(x.size(1)):
        outs.append(x[:, t] * 2)
    return outs[-1], outs[0], outs[1]


def pieces_of_list(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    outs = [x[:, :0].sum(1)]
    for t in range(x.size(1)):
        outs.append(x[:, t] * 2)
    return torch.stack(outs[1:], 1), torch.stack(outs[:-1], 1), torch.stack(outs, 1)


def list_in_loop(x: Tensor) -> Tensor:
    """A second loop goes over the list that the first has filled."""
    outs = []
    for t in range(x.size(1)):
        outs.append(x[:, t].relu())
    total = 0
    for out in outs:
        total = total + out
    for t in range(x.size(1)):
        total = total + outs[t]
    return total


def popped(x: Tensor) -> Tensor:
    outs = []
    for t in range(x.size(1)):
        outs.append(x[:, t])
    outs.pop()
    return torch.stack(outs)


def nested_ranges(x: Tensor) -> Tensor:
    total = x.new_zeros(x.size(0))
    for i in range(x.size(1)):
        for j in range(x.size(2)):
            total = total + x[:, i, j]
    return total


def triangle(x: Tensor) -> Tensor:
    total = x.new_zeros(x.size(0), 4)
    for i in range(x.size(1)):
        for j in range(i):
            total = total + x[:, i] * x[:, j]
    return total


def dynamic_programme(x: Tensor) -> Tensor:
    """Rows of a table, each from the one above."""
    n, m = x.shape
    above = x.new_zeros(m + 1)
    for i in range(n):
        row = [x.new_zeros(())]
        for j in range(m):
            row.append(torch.maximum(above[j + 1], row[-1]) + x[i, j])
        above = torch.stack(row)
    return above


def modulo(x: Tensor) -> Tensor:
    h = x.new_zeros(x.size(0), 4)
    for i in range(x.size(1)):
        if i % 3 == 0:
            h = h + x[:, i]
        else:
            h = h - x[:, i]
    return h


def first_ones_differ(x: Tensor) -> Tensor:
    h = x.new_zeros(x.size(0), 4)
    for i in range(x.size(1)):
        if i < 4:
            continue
        h = h + x[:, i - 4]
    return h


def counts(x: Tensor) -> Tensor:
    seen = 0
    for t in range(x.size(1)):
        seen += x[:, t].size(1)
    return x.new_zeros(seen)


def two_steps_per_iteration(x: Tensor) -> Tensor:
    at, outs = 0, []
    for _ in range(x.size(1) // 2):
        outs.append(x[:, at : at + 2].sum(1))
        at += 2
    return torch.stack(outs, 1)


def grows(x: Tensor) -> Tensor:
    out = x[:, :0]
    for t in range(x.size(1)):
        out = torch.cat([out, x[:, t : t + 1]], dim=1)
    return out


def grows_by_two(x: Tensor) -> Tensor:
    memory = x[:, :1]
    for t in range(x.size(1)):
        memory = torch.cat([memory, x[:, t : t + 1], memory[:, -1:]], dim=1)
    return memory


def grows_by_more(x: Tensor) -> Tensor:
    """1, 3, 6, …: no multiple of the index."""
    out = x[:, :0]
    for t in range(x.size(1)):
        out = torch.cat([out, x[:, : t + 1]], dim=1)
    return out


def grows_by_less(x: Tensor) -> Tensor:
    out = x
    for t in range(1, x.size(1)):
        out = torch.cat([out, x[:, t:]], dim=1)
    return out


def adds_up(x: Tensor) -> Tensor:
    total, columns = 0, 3
    for t in range(0, 3 * x.size(1), 4):
        total += t
        columns -= 5 * t * x.size(0) - 1
    return x.new_zeros(total, abs(columns))


def adds_up_backwards(x: Tensor) -> Tensor:
    total = 0
    for t in reversed(range(x.size(1))):
        total += 2 * t + 1
    return x.new_zeros(x.size(0), total).view(x.size(0), x.size(1), -1)


def adds_up_what_grows(x: Tensor) -> Tensor:
    """No quadratic law holds of the second number."""
    first = second = 0
    for t in range(x.size(1)):
        first += t
        second += first
    return x.new_zeros(first, second)


def adds_up_squares(x: Tensor) -> Tensor:
    total = 0
    for t in range(x.size(1)):
        total += t * t
    return x.new_zeros(total)


def adds_up_at_first(x: Tensor) -> Tensor:
    total = 0
    for t in range(x.size(1)):
        total += t if t < 5 else 1
    return x.new_zeros(total)


def doubles(x: Tensor) -> Tensor:
    for _ in range(x.size(1)):
        x = torch.cat([x, x], dim=2)
    return x


def turns(x: Tensor) -> Tensor:
    for _ in range(x.size(0)):
        x = x.t()
    return x


def turns_and_needs(x: Tensor) -> Tensor:
    """Fails in the third iteration, if at all: where the matrix is not square."""
    y = x
    for i in range(x.size(0)):
        y = y.t()
        if i == 2:
            y = y + torch.zeros(x.size(0), x.size(1))
    return y


def over_places(x: Tensor) -> Tensor:
    h = x[:, 0]
    for t in torch.arange(x.size(1)).tolist():
        h = h + x[:, t]
    return h


def cut_to_eight(x: Tensor) -> Tensor:
    while x.numel() > 8:
        x = x[:-1]
    return x


def leaves_early(x: Tensor) -> Tensor:
    h = x[:, 0]
    for t in range(x.size(1)):
        if t == 3:
            break
        h = h + x[:, t]
    return h


def returns_early(x: Tensor) -> Tensor:
    for t in range(x.size(1)):
        if t == 2:
            return x[:, t]
    return x[:, 0]


def leaves_at_once(x: Tensor) -> Tensor:
    h = x[:, :1].sum(1)
    for t in range(x.size(1)):
        h = h + x[:, t]
        break
    else:
        h = h.sum(1)
    return h


def otherwise(x: Tensor) -> Tensor:
    for _t in range(x.size(1)):
        x = x + 1
    else:
        x = x.flatten()
    return x


def raises_late(x: Tensor) -> Tensor:
    for t in range(x.size(1)):
        if t >= 1:
            raise ValueError("one step only")
    return x


def raises_for_long(x: Tensor) -> Tensor:
    for t in range(x.size(1)):
        assert t < 5, "at most five steps"
    return x


def refuses_all(x: Tensor) -> Tensor:
    for t in range(x.size(1)):
        x = x @ x[0, t]
    return x


def tries(x: Tensor) -> Tensor:
    total = x.new_zeros(x.size(0), 4)
    for t in range(x.size(1)):
        try:
            total = total + x[:, t + 2]
        except IndexError:
            total = total + 1
    return total


def on_data(x: Tensor) -> Tensor:
    h = x.new_zeros(x.size(0), 4)
    for t in range(x.size(1)):
        if x[:, t].sum() > 0:
            h = h + x[:, t]
        else:
            h = h * 2
    return h


def every_second_gathered(x: Tensor) -> Tensor:
    """A size decides how many there are, and not the data."""
    out = []
    for t in range(x.size(1)):
        if t % 2 == 0:
            out.append(x[:, t])
    return torch.cat(out, -1) + x[:, ::2].flatten(1)


def third_and_others(x: Tensor) -> tuple[Tensor, Tensor]:
    some, others = [x[:, 0]], []
    for t in range(x.size(1)):
        if t % 3 == 1:
            some.append(x[:, t])
        else:
            others.append(x[:1, 0])
    return torch.stack(some), torch.cat(others)


def up_to_another(x: Tensor) -> Tensor:
    some = []
    for t in range(x.size(0)):
        if t < x.size(1):
            continue
        some.append(x[t : t + 1])
    return torch.cat(some)


def kept_by_numbers(x: Tensor) -> Tensor:
    return torch.stack([row for t, row in enumerate(x) if t % 2 == 0])


def kept_from_three_on(x: Tensor) -> Tensor:
    return torch.cat([x[t : t + 1] for t in range(x.size(0)) if t > 2])


def kept_below_another(x: Tensor) -> Tensor:
    return torch.cat([x[t : t + 1] for t in range(x.size(0)) if t < x.size(1)])


def kept_and_taken(x: Tensor) -> Tensor:
    return [x[t:] for t in range(x.size(0)) if t % 2][1]


def growing_constants(x: Tensor) -> Tensor:
    return torch.cat([torch.zeros(t + 1, 2) for t in range(x.size(0))])


def reduced(x: Tensor) -> Tensor:
    return functools.reduce(lambda a, b: torch.cat([a, b]), x.unbind(0))


def shortened(x: Tensor) -> Tensor:
    while x.shape[0] > 2:
        x = x[1:]
    return x


def counted_up(x: Tensor) -> Tensor:
    y, t = x, 0
    while t < x.size(1):
        y = torch.cat([y, x[:1]])
        t += 1
    return y


def counted_down(x: Tensor) -> Tensor:
    y, t = x, x.size(1)
    while t > 1:
        t = t - 1
        y = y + x[t]
    return y


def left_early(x: Tensor) -> Tensor:
    while x.shape[0] > 2:
        x = x[1:]
        if x.shape[0] == 4:
            break
    return x


def doubled_and_shortened(x: Tensor) -> Tensor:
    x = torch.cat([x, x])
    while x.shape[0] > 4:
        x = x[1:]
    return x


def shortened_after_a_break(x: Tensor) -> Tensor:
    for _ in range(x.shape[1]):
        if x.shape[1] > 2:
            break
    while x.shape[0] > 2:
        x = x[1:]
    return x


def rows_by_number(x: Tensor) -> Tensor:
    y = x[:1].sum()
    for i in range(x.shape[1]):
        y = y + x.unbind(0)[i].sum() + x.unbind(0)[-i]
    return y


def left_at_three(x: Tensor) -> Tensor:
    y = x
    for i in range(x.shape[1]):
        y = y[..., None]
        if i == 3:
            break
    return y


def refused_from_three_on(x: Tensor) -> Tensor:
    y = x[:2].sum(1)
    for i in range(x.shape[0]):
        y = y[..., None] + x[:2].unbind(0)[i].sum()
    return y


def third_of_a_dict(x: Tensor) -> Tensor:
    return dict(enumerate(x.unbind(1)))[2] + dict(enumerate(x, 1))[2].sum()


def first_of_a_dict_from_one_on(x: Tensor) -> Tensor:
    return x[0] if x.shape[0] < 3 else dict(enumerate(x, 1))[0]


def third_of_a_dict_or_none(x: Tensor) -> Tensor:
    try:
        return dict(enumerate(x))[2]
    except KeyError:
        return x.reshape(3, -1)


def shortened_to_nothing(x: Tensor) -> Tensor:
    y = x[0]
    for _ in range(x.shape[0]):
        y = y[1:]
    for _ in x:
        y = y[:-2]
    return y.view(3, -1)


def shortened_twice(x: Tensor) -> Tensor:
    y = x
    for _ in range(x.shape[1]):
        y = y[1:]
        y = y[1:] + y[:-1]
    return y[0]


def pieces_but_one(x: Tensor) -> Tensor:
    parts = []
    for i in range(0, x.shape[1], 2):
        parts.append(x[i : i + 3])
    return torch.cat(parts[1:]).view(4, -1)


def rows_on_the_diagonal(x: Tensor) -> Tensor:
    return torch.block_diag(*x).view(3, -1)


def blocks_of_blocks(x: Tensor) -> Tensor:
    return torch.block_diag(*torch.block_diag(*x[1:]))


def from_nothing_on(x: Tensor) -> Any:
    parts = []
    for i in range(x.shape[1]):
        parts.append(torch.zeros(i, 2))
    return torch.cat(parts).view(-1, 3), torch.stack(parts[::2])


def scalars_padded(x: Tensor) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence([x[i].sum() for i in range(x.shape[0])])


SHORT = "x: [n, m]"
RANGES = [
    Case(every_second_gathered, "x: [b, n, 2]", refuses=True),
    *(Case(f, refuses=True) for f in (third_and_others,)),
    *(Case(f, SHORT, refuses=True) for f in (
        up_to_another, kept_by_numbers, kept_from_three_on, kept_below_another, kept_and_taken,
        growing_constants, reduced,
    )),
    *(Case(f, SHORT, ("1 <= n",)) for f in (
        shortened, counted_up, doubled_and_shortened, shortened_after_a_break,
    )),
    *(Case(f, SHORT, refuses=True) for f in (
        rows_by_number, shortened_to_nothing, shortened_twice, pieces_but_one, from_nothing_on,
        scalars_padded,
    )),
    Case(blocks_of_blocks, SHORT, summarised=False),
    *(Case(rows_on_the_diagonal, f"x: [{sizes}]", summarised=False, refuses=True) for sizes in (
        "n", "n, m", "n, m, 2", "n, m, 2, 2",
    )),
    *(Case(f, SHORT, summarised=False, refuses=True) for f in (
        third_of_a_dict, first_of_a_dict_from_one_on, third_of_a_dict_or_none,
    )),
    Case(left_at_three, SHORT, summarised=False),
    Case(refused_from_three_on, SHORT, ("1 <= n",), summarised=False, refuses=True),
    Case(counted_down, SHORT, ("1 <= n",), refuses=True),
    Case(left_early, SHORT, ("1 <= n <= 30",), summarised=False, upto=6),
    Case(from_one, refuses=True),
    Case(every_second, refuses=True),
    Case(every_second_pair, refuses=True),
    Case(windows, refuses=True),
    Case(halves),
    Case(causal),
    Case(one_too_far, refuses=True),
    Case(looks_ahead, refuses=True),
    Case(table, "x: [b, n, 4]; y: [m, 4]", ("0 <= n", "0 <= m"), refuses=True),
    Case(in_groups, "x: [b, n, d]", refuses=True),
    *map(Case, (skips_the_first, first_is_other, modulo, first_ones_differ, counts, nested_ranges)),
    Case(triangle),
    *(Case(f, refuses=True) for f in (length_after, last_of_list, two_steps_per_iteration)),
    Case(pieces_of_list, refuses=True),
    Case(list_in_loop, assume=("1 <= n",)),
    Case(popped, refuses=True),
    Case(nested_ranges, "x: [b, n, m]", ("0 <= n", "0 <= m")),
    Case(dynamic_programme, "x: [n, m]", ("0 <= n", "0 <= m")),
    Case(grows),
    Case(grows_by_two, refuses=True),
    Case(grows_by_more),
    Case(grows_by_less),
    Case(adds_up),
    Case(adds_up_backwards, refuses=True),
    Case(adds_up_what_grows, summarised=False),
    Case(adds_up_squares, summarised=False),
    Case(adds_up_at_first, summarised=False),
    Case(doubles, summarised=False, upto=5),
    Case(turns, "x: [n, m]", summarised=False),
    Case(turns_and_needs, "x: [n, m]", summarised=False, refuses=True),
    Case(over_places, assume=("1 <= n",)),
    Case(cut_to_eight, "x: [n, m]", ("1 <= n",), upto=20),
    Case(leaves_early, refuses=True, summarised=False),
    Case(returns_early, refuses=True, summarised=False),
    Case(leaves_at_once, summarised=False),
    Case(otherwise),
    Case(raises_late, refuses=True, summarised=False),
    Case(raises_for_long, refuses=True, summarised=False),
    Case(refuses_all, refuses=True),
    Case(tries),
    Case(on_data),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", RANGES, ids=lambda c: c.name)
def test_ranges(case: Case) -> None:
    assert disagreements(case) == []


def test_a_while_without_an_end_ends_with_the_budget() -> None:
    def doubled(x: Tensor) -> Tensor:
        while x.shape[0] < 9:
            x = torch.cat([x, x])
        return x

    report = check(doubled, "x: [n]", ["0 <= n"], budget_s=2, replay=False)
    assert report.verdict == "unknown"
    assert any("the budget ran out" in finding.message for finding in report.findings)


def slices_all(x: Tensor) -> Tensor:
    while x.shape[0] > 3:
        x = x[::1]
    return x


def adds_one(x: Tensor) -> Tensor:
    while x.shape[0] > 3:
        x = x + 1
    return x


def counts(x: Tensor) -> Tensor:
    n = 0
    while 3 < x.shape[0] and n >= 0:
        n += 1
    return x


@pytest.mark.parametrize("target", [slices_all, adds_one, counts], ids=lambda f: f.__name__)
def test_a_while_that_leaves_its_test_as_it_is_ends_with_a_reason(target: Any) -> None:
    report = check(target, "x: [n]", replay=False)
    (finding,) = (f for f in report.findings if f.code == "incomplete")
    assert "a `while` has not ended after 1000 iterations" in finding.message
    assert report.verdict == "unknown"


@pytest.mark.parametrize("target", [
    lambda x: torch.stack(list(x.unbind(0))[::-1]),
    lambda x: torch.stack(x.unbind(0)[1:]),
    lambda x: torch.stack(list(x)[1:3]),
    lambda x: torch.stack(tuple(x)[-2:]),
], ids=["backwards", "from one", "two", "the last two"])  # fmt: skip
def test_slices_of_rows(target: Any) -> None:
    system = trace(target, "x: [n, m]")
    for n in range(1, UPTO):
        (path,) = (p for p in system.paths if holds(p.premise, {"n": n, "m": 2}))
        assert recorded(path, {"n": n, "m": 2}) == eager(target, "x: [n, m]", {"n": n, "m": 2})


# --- pieces, the last of which is what is left -----------------------------------------------------------


def blocks(x: Tensor) -> Tensor:
    """Whole blocks alone, of what is left nothing."""
    outs = []
    for i in range(x.size(1) // 3):
        block = x[:, i * 3 : (i + 1) * 3]
        outs.append(torch.softmax(block @ block.mT, -1) @ block)
    return torch.cat(outs, 1)


def pieces(x: Tensor) -> Tensor:
    return torch.cat([x[:, i : i + 3] * 2 for i in range(0, x.size(1), 3)], 1)


def pieces_up_to_the_end(x: Tensor) -> Tensor:
    outs = []
    for i in range((x.size(1) + 2) // 3):
        outs.append(x[:, i * 3 : min((i + 1) * 3, x.size(1))])
    return torch.cat(outs, dim=1)


def pieces_of_a_split(x: Tensor) -> Tensor:
    outs = []
    for piece in x.split(3, 1):
        outs.append(piece.repeat(1, 2, 1) @ piece.mT @ piece)
    return torch.cat(outs, dim=1) + torch.zeros(2 * x.size(1), 1)


def pieces_and_one(x: Tensor) -> Tensor:
    return torch.cat([nn.functional.pad(piece, (0, 0, 0, 1)) for piece in torch.split(x, 3, dim=1)], 1)


def pieces_joined(x: Tensor) -> Tensor:
    return torch.cat(x.split(3, 1), 1) - torch.cat(torch.split(x, 2, 1), dim=1)


def pieces_backwards(x: Tensor) -> Tensor:
    return torch.cat([piece.flip(1) for piece in reversed(x.split(3, 1))], 1)


def piece_by_piece(x: Tensor) -> Tensor:
    last = x.split(3, 1)[-1]
    total = last.sum(1)
    for piece in x.split(3, 1):
        total = total + piece.mean(1)
    return torch.stack([piece.amax(1) for piece in x.split(3, 1)]) + total


def pieces_by_length(x: Tensor) -> Tensor:
    first, *_ = sorted(x.transpose(0, 1).split(3), key=len)
    return torch.cat(sorted(x.transpose(0, 1).split(3), key=len, reverse=True)) + first[:1]


def two_pieces(x: Tensor) -> Tensor:
    a, b = x.split(3, 1)
    return a + b


PIECES = [
    *(Case(f, assume=("1 <= n",)) for f in (
        pieces, pieces_up_to_the_end, pieces_of_a_split, pieces_and_one, pieces_backwards, piece_by_piece)),
    Case(pieces_joined, assume=("1 <= n",), summarised=False),
    Case(pieces_by_length, assume=("1 <= n",), summarised=False),
    Case(blocks, refuses=True, upto=13),
    Case(two_pieces, refuses=True, summarised=False),
]


@pytest.mark.parametrize("case", PIECES, ids=lambda c: c.name)
def test_pieces(case: Case) -> None:
    assert disagreements(case) == []


def test_pieces_that_add_up_to_something_else_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Families._cut
    wrong = lambda families, body, atom: (found := right(families, body, atom)) and found + 1  # noqa: E731
    monkeypatch.setattr(Families, "_cut", wrong)
    assert disagreements(Case(pieces, assume=("1 <= n",)))


# --- loops that shrink something, by how much differs ----------------------------------------------------


def every_second(x: Tensor) -> Tensor:
    while x.shape[0] > 3:
        x = x[::2]
    return x


def halves_while_even(x: Tensor) -> Tensor:
    while x.shape[-1] % 2 == 0 and x.shape[-1]:
        x = x[..., : x.shape[-1] // 2]
    return x + 1


def one_after_another(x: Tensor) -> Tensor:
    while x.shape[0] > 5:
        x = x[::2]
    while x.shape[0] > 2:
        x = x[1::2]
    return x[0]


def narrows_what_is_left(x: Tensor) -> Tensor:
    while x.shape[0] > 3:
        part = x.narrow(0, 1, 2)
        x = x[::2] + part[:1]
    return x


def columns_are_required(x: Tensor) -> Tensor:
    return every_second(x).sum(0).view(2, -1)


def a_refusal_is_caught(x: Tensor) -> Tensor:
    try:
        return every_second(x)[2]
    except IndexError:
        return x


def adds_halves(x: Tensor) -> Tensor:
    while x.shape[0] > 1:
        x = x[: x.shape[0] // 2] + x[x.shape[0] // 2 :]
    return x


def adds_halves_of_many(x: Tensor) -> Tensor:
    while x.shape[0] > 5:
        x = x[: x.shape[0] // 2] + x[x.shape[0] // 2 :]
    return x


def adds_halves_of_copies(x: Tensor) -> Tensor:
    return adds_halves(x.repeat(5, 1))


def adds_halves_of_both(x: Tensor) -> Tensor:
    return adds_halves(adds_halves(x).T)


def multiplies_neighbours(x: Tensor) -> Tensor:
    while x.shape[0] > 1:
        x = x[::2] * x[1::2]
    return x


def sums_pairs(x: Tensor) -> Tensor:
    while x.shape[0] > 1:
        x = x.view(-1, 2, x.shape[1]).sum(1)
    return x


def sums_thirds(x: Tensor) -> Tensor:
    while x.shape[0] > 4:
        x = x.unflatten(0, (3, -1)).sum(0)
    return x


def refuses_two(x: Tensor) -> Tensor:
    part = x
    while part.shape[0] > 1:
        part = part[::2]
    if x.shape[0] == 2:
        raise ValueError
    return x


def refuses_two_after_halves(x: Tensor) -> Tensor:
    adds_halves(x)
    if x.shape[0] == 2:
        raise ValueError
    return x


def refuses_five(x: Tensor) -> Tensor:
    part = x
    while part.shape[0] > 2:
        part = part[1::2]
    if x.shape[0] == 5:
        raise ValueError
    return x


def one_is_left(x: Tensor) -> Tensor:
    return adds_halves(x).squeeze(0).view(-1, x.shape[1])


def two_are_left(x: Tensor) -> Tensor:
    while x.shape[0] > 2:
        x = x[: x.shape[0] // 2] + x[x.shape[0] // 2 :]
    return x[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target, condition", [
    (every_second, True), (halves_while_even, True), (one_after_another, True), (narrows_what_is_left, True),
    (a_refusal_is_caught, True), (columns_are_required, "m % 2 == 0"),
    (adds_halves, f"{3 << 62} % n == 0"),
    pytest.param(adds_halves_of_copies, "False", marks=pytest.mark.slow),
    (adds_halves_of_many, f"{3 << 62} % n == 0 or {5 << 62} % n == 0"),
    (adds_halves_of_both, f"{3 << 62} % n == 0 and {3 << 62} % m == 0"),
    (multiplies_neighbours, f"{3 << 62} % n == 0"), (sums_pairs, f"{1 << 62} % n == 0"),
    (sums_thirds, f"{2 * 3**39} % n == 0 or (n % 4 == 0 and {4 * 3**39} % n == 0)"),
    # At these sizes there is one iteration: what holds in a second one says nothing about them.
    (refuses_two, "n != 2"), (refuses_five, "n != 5"),
    (refuses_two_after_halves, f"{3 << 62} % n == 0 and n != 2"),
    (one_is_left, f"{3 << 62} % n == 0"), (two_are_left, f"{3 << 62} % n == 0 and 2 <= n"),
], ids=lambda p: getattr(p, "__name__", ""))  # fmt: skip
def test_a_while_that_shrinks_its_state(target: Any, condition: Any) -> None:
    report = check(target, "x: [n, m]")
    assert report.verdict == {True: "proved", "False": "refuted"}.get(condition, "refined")
    assert str(report.accepts) == str(condition)
    for n, m in itertools.product(range(1, 50), range(1, 5)):
        runs = eager(target, "x: [n, m]", {"n": n, "m": m}) is not None
        assert report.accepts.holds(n=n, m=m) is runs


def needs_three(x: Tensor) -> Tensor:
    return every_second(x)[2]


def needs_columns_where_three_are_left(x: Tensor) -> Tensor:
    return x.view(-1, 2) if every_second(x).shape[0] == 3 else x


def raises_where_three_are_left(x: Tensor) -> Tensor:
    if every_second(x).shape[0] == 3:
        raise ValueError
    return x


def narrows_too_much(x: Tensor) -> Tensor:
    while x.shape[0] > 3:
        part = x.narrow(0, 4, 2)
        x = x[::2] + part[:1]
    return x


def never_ends(x: Tensor) -> Tensor:
    while x.shape[0] > 3:
        x = x[: x.shape[0] // 2 * 2]
    return x


def ends_at_a_branch(x: Tensor) -> Tensor:
    while x.shape[0] > 3:
        x = x[::2] if x.shape[0] % 2 else x[: x.shape[0] // 2 + 1]
    return x


@pytest.mark.parametrize("target", [
    needs_three, needs_columns_where_three_are_left, raises_where_three_are_left, narrows_too_much,
    never_ends, ends_at_a_branch,
], ids=lambda f: f.__name__)  # fmt: skip
def test_bounds_that_do_not_suffice_prove_nothing(target: Any) -> None:
    report = check(target, "x: [n, m]", budget_s=1, replay=False)
    assert report.verdict == "unknown"


# --- numbers in place of tensors -------------------------------------------------------------------------


def sum_of_none(x: Tensor) -> Any:
    rows = [x[i] for i in range(x.shape[0]) if i > 3]
    return dict(enumerate(sum(rows)))[0]


def sum_of_none_is_transposed(x: Tensor) -> Any:
    return sum([x[i] for i in range(x.shape[0]) if i > 3]).relu()


def number(x: Tensor) -> Any:
    return 0 if x.shape[0] > 3 else x


def number_is_indexed(x: Tensor) -> Any:
    found = number(x)
    return found[..., None]


@pytest.mark.parametrize("target", [
    sum_of_none, sum_of_none_is_transposed,
    lambda x: next(zip(number(x), x, strict=True))[0], lambda x: sum(number(x)),
    number_is_indexed,
    lambda x: len(number(x)) * x, lambda x: len(x.squeeze()) * x,
    lambda x: list(x.shape[0] if x.shape[0] > 3 else x),
    lambda x: nn.functional.glu(number(x), 0), lambda x: functools.reduce(torch.add, number(x)),
])  # fmt: skip
def test_a_number_in_place_of_a_tensor_is_the_programs_error(target: Any) -> None:
    report = check(target, "x: [n, m]", budget_s=6, replay=False)
    assert not [f for f in report.findings if f.code.value == "internal-error"]
    assert any(f.code.value == "raises" for f in report.findings)
    for n, m in itertools.product(range(1, 9), (1, 2)):
        try:
            target(torch.ones(n, m))
        except (TypeError, AttributeError, *REFUSALS):
            assert not report.accepts.certain.holds(n=n, m=m)
        else:
            assert report.verdict == "unknown" or report.accepts.holds(n=n, m=m)


# --- lists of slices, which have to agree in their sizes -------------------------------------------------


def windows_of(x: Tensor, n: int) -> Tensor:
    return torch.stack([x[i : i + 3] for i in range(n)])


def every_other_tail(x: Tensor, n: int) -> Tensor:
    parts = []
    for i in range(n - 1, -1, -1):
        parts.append(x[i:])
    return torch.stack(parts[::2], dim=1)


def tails_side_by_side(x: Tensor, n: int) -> Tensor:
    return torch.cat([x[i:] for i in range(n)], -1)


def heads_padded(x: Tensor, n: int) -> Tensor:
    return pad_sequence([x[:i] for i in range(n)][::-1])


def heads_at_no_place(x: Tensor, n: int) -> Tensor:
    return torch.stack([x[:i] for i in range(n)], 7)


def tails_at_even_places(x: Tensor, n: int) -> Tensor:
    return torch.cat([x[i:] for i in range(n) if i % 2 == 0], 1)


def shorter_and_longer(x: Tensor, n: int) -> Tensor:
    return torch.cat([torch.zeros(n - i, i) for i in range(n)], -1)


def all_but_the_first(x: Tensor, n: int) -> Tensor:
    parts = []
    for i in range(n):
        if i < 1:
            continue
        parts.append(x * i)
    return torch.stack(parts)


def all_but_the_first_padded(x: Tensor, n: int) -> Tensor:
    parts = []
    for i in range(n):
        if i < 1:
            continue
        parts.append(x * i)
    return pad_sequence(parts)


def windows_in_a_row(x: Tensor, n: int) -> Tensor:
    return torch.cat([x[i : i + 3] for i in range(n)]).view(-1, 5)


def spaced_windows_in_a_row(x: Tensor, n: int) -> Tensor:
    return torch.cat([x[i : i + 2] for i in range(0, n, 3)]).view(-1, 3)


def rows_backwards_in_a_row(x: Tensor, n: int) -> Tensor:
    return torch.cat([x[i : i + 1] for i in range(n - 1, -1, -1)]).view(-1, 3)


def tails_in_a_row(x: Tensor, n: int) -> Tensor:
    return torch.cat([x[i:] for i in range(n)])


def heads_in_a_row(x: Tensor, n: int) -> Tensor:
    return torch.cat([x[: 2 * i + 1] for i in range(n)])


def without_ends_in_a_row(x: Tensor, n: int) -> Tensor:
    return torch.cat([x[:, :-i] for i in range(1, n)], 1)


def tails_or_the_whole(x: Tensor, n: int) -> Tensor:
    try:
        return torch.stack([x[i:] for i in range(n)])
    except RuntimeError:
        return x


@pytest.mark.parametrize("case", [
    *(Case(f, "x: [a, c]; n: int", refuses=True) for f in (
        windows_of, every_other_tail, tails_side_by_side, heads_padded, tails_at_even_places,
        all_but_the_first, all_but_the_first_padded, shorter_and_longer, windows_in_a_row,
        spaced_windows_in_a_row, rows_backwards_in_a_row, tails_in_a_row, heads_in_a_row,
        without_ends_in_a_row)),
    Case(heads_at_no_place, "x: [a, c]; n: int", refuses=True),
    Case(tails_or_the_whole, "x: [a, c]; n: int"),
], ids=lambda c: c.name)
def test_slices_that_are_joined(case: Case) -> None:
    assert disagreements(case) == []


@pytest.mark.parametrize("target, condition", [
    (lambda x: torch.stack(x.split(3)), "a == 1 or a == 2 or a % 3 == 0"),
    (lambda x: torch.cat(x.split(3), 1), "a == 1 or a == 2 or a % 3 == 0"),
    (lambda x: torch.stack(x.split(2)[1:]), "a == 3 or (a % 2 == 0 and a != 2)"),
], ids=["stacked", "side by side", "from one"])  # fmt: skip
def test_pieces_that_have_to_be_whole(target: Any, condition: str) -> None:
    report = check(target, "x: [a, c]")
    assert (report.verdict, str(report.accepts)) == ("refined", condition)


# --- lists of places, in slices --------------------------------------------------------------------------


def pooled_places(x: Tensor) -> list[Tensor]:
    front = [-1]
    kept = front + list(range(x.size(1)))[1:-1][::2]
    return [torch.arange(kept[0], kept[-1] + 1), x.new_zeros(len(kept))]


def all_but_two(x: Tensor) -> list[Tensor]:
    kept = list(range(x.size(1)))[2:]
    return [x[:, kept[0]], torch.arange(kept[0], kept[-1] + 1), x.new_zeros(len(kept))]


def all_but_the_last_two(x: Tensor) -> list[Tensor]:
    kept = list(range(x.size(1)))[:-2][::-1]
    return [torch.arange(kept[-1], kept[0] + 1), x.new_zeros(len(kept))]


def every_third(x: Tensor) -> list[Tensor]:
    kept = list(range(1, x.size(1)))[::3]
    return [torch.arange(kept[0], kept[-1] + 1), x.new_zeros(len(kept))]


def popped_places(x: Tensor) -> list[Tensor]:
    places = list(range(x.size(1)))
    places.pop(0)
    places.pop()
    return [torch.arange(places[0], places[-1] + 1), x.new_zeros(len(places))]


def beside_none(x: Tensor) -> list[Tensor]:
    front = [7]
    places = front + list(range(x.size(1) - 3))
    return [x.new_zeros(len(places)), torch.arange(places[-1])]


def by_number(x: Tensor) -> Tensor:
    front, places = [0], list(range(x.size(1)))
    return x.new_zeros(len(front + places[1::2][::2]))


def in_one_step(x: Tensor) -> list[Tensor]:
    """Chunks as long as the whole are one chunk; of nothing, none can be taken."""
    n = x.size(1)
    return [x[:, at : at + n] for at in range(0, n, n)]


def in_three_steps(x: Tensor) -> list[Tensor]:
    n = x.size(1)
    return [x.new_zeros(at) for at in range(n, 4 * n, n)]


@pytest.mark.parametrize("case, followed", [
    (Case(in_one_step, summarised=False, refuses=True), True),
    (Case(in_three_steps, summarised=False, refuses=True), True),
    (Case(pooled_places, summarised=False), True),
    (Case(all_but_two, summarised=False, refuses=True), True),
    (Case(all_but_the_last_two, summarised=False, refuses=True), True),
    (Case(every_third, summarised=False, refuses=True), True),
    (Case(popped_places, summarised=False, refuses=True), True),
    (Case(beside_none, summarised=False), True),
    (Case(by_number, summarised=False), False),  # up to the bound on lengths that are tried
], ids=lambda value: getattr(value, "name", ""))  # fmt: skip
def test_slices_of_places(case: Case, followed: bool) -> None:
    assert disagreements(case) == []
    system = trace(case.target, case.inputs, *case.assume)
    assert all(path.end.how != "gave-up" for path in system.paths) is followed


def ends_differ(x: Tensor) -> Tensor:
    n, out = x.size(1), []
    for t in range(n):
        if t == 0:
            out.append(x[:, t, :-1])
        elif t == n - 1:
            out.append(x[:, t, 1:])
        else:
            out.append(x[:, t, 1:-1])
    return torch.cat(out, -1)


def last_is_shorter(x: Tensor) -> Tensor:
    out = []
    for t in range(x.size(1)):
        out.append(x[:, t] if t < x.size(1) - 1 else x[:, t, 1:])
    return torch.cat(out, -1)


def gathers_a_shorter_last(x: Tensor) -> Tensor:
    n = x.size(1)
    return torch.cat([x[:, t, 1:] if t + 1 == n else x[:, t] for t in range(n)], -1)


def last_needs_more(x: Tensor) -> Tensor:
    h = x.new_zeros(x.size(0), 4)
    for t in range(x.size(1)):
        h = h + x[:, t] if t < x.size(1) - 1 else (h @ x[0])[:, :4]
    return h


def last_two_differ(x: Tensor) -> Tensor:
    n, out = x.size(1), []
    for t in range(n):
        out.append(x[:, t, 1:] if t >= n - 2 else x[:, t])
    return torch.cat(out, -1)


def sizes_of_ends(x: Tensor) -> Tensor:
    """The sizes that the data decide are of the same kind throughout."""
    n = x.size(0)
    found = [x[k][x[k] > 0] if k < n - 1 else x[k][x[k] < 9] for k in range(n)]
    return pad_sequence(found, batch_first=True)[:, :4]


@pytest.mark.parametrize("case", [
    Case(ends_differ, refuses=True),
    Case(last_is_shorter, refuses=True),
    Case(gathers_a_shorter_last, refuses=True),
    Case(last_needs_more, refuses=True),
    Case(last_two_differ, refuses=True, summarised=False),
], ids=lambda c: c.name)  # fmt: skip
def test_last_iterations(case: Case) -> None:
    assert disagreements(case) == []


# --- what the data decide in a loop ----------------------------------------------------------------------


def peaks(x: Tensor) -> Tensor:
    """The body's own numbers are left behind, and nobody looks at them."""
    y = x.clone()
    for t in range(x.size(1)):
        at = x[0, t, 0].long().item()
        if 0 < at < x.size(2) - 1:
            y[0, t, 0] += x[0, t, at + 1] - x[0, t, at - 1]
    return y


def positive_rows(x: Tensor) -> Tensor:
    y = x.new_zeros(x.size(0), x.size(1))
    for t in range(x.size(1)):
        row = x[:, t]
        kept = row[row > 0]
        y[:, t] = kept.sum()
    return y


def remainders(x: Tensor) -> Tensor:
    """No law says how `rest` goes on, and nothing has to."""
    y = x.new_zeros(x.size(0), 4)
    for t in range(x.size(1)):
        rest = t * t % 3
        y = y + x[:, t] * float(rest)
    return y


def over_channels(x: Tensor) -> Tensor:
    """So many ways through so many rounds that each cannot be looked at."""
    y = x.clone()
    for t in range(x.size(1)):
        for c in range(1, 13):
            at = (x[0, t, 0] * c).long().item()
            if 0 < at < x.size(2) - 1:
                y[0, t, 0] += x[0, t, at + 1]
    return y


def branches_in_rounds(x: Tensor) -> Tensor:
    y = x.new_zeros(x.size(0), 6)
    for c in range(9):
        if x.sum() > c:
            y = y + x[:, : c + 1].sum(1)
    return y


def kept_remainder(x: Tensor) -> Tensor:
    rest = 0
    for t in range(x.size(1)):
        rest = t * t % 3
    return x.new_zeros(rest + 1)


def kept_shape(x: Tensor) -> Tensor:
    y = x
    for t in range(x.size(1)):
        y = x.new_zeros(t * t % 3 + 1)
    return y


def kept_in_dict(x: Tensor) -> list[Tensor]:
    rest, found = 0, {0: 1, 1: 2}
    for t in range(x.size(1)):
        rest = t * t % 3
    return [x.new_zeros(found[rest])]


def told_in_list(x: Tensor) -> Tensor:
    rest = 0
    for t in range(x.size(1)):
        rest = t * t % 3
    return torch.zeros([1, rest + 1])


def ranges_as_values(x: Tensor) -> Tensor:
    """What is gone through is a list of ranges, of which each is one still."""
    total = 0
    for r in list(map(range, [6, 7])):
        total += len(r) + r[-1] + r.stop + sum(i for i in r if i in r) + (r == range(6)) + next(reversed(r))
    return x.new_zeros(x.size(1) + total)


def test_ranges_as_values() -> None:
    system = trace(ranges_as_values, "x: [b, n, 4]")
    (path,) = system.paths
    assert recorded(path, {"b": 1, "n": 2}) == eager(ranges_as_values, "x: [b, n, 4]", {"b": 1, "n": 2})


@pytest.mark.parametrize("case", [
    Case(remainders),
    Case(kept_remainder, summarised=False),
    Case(kept_shape, summarised=False),
    Case(kept_in_dict, summarised=False),
    Case(told_in_list, summarised=False),
], ids=lambda c: c.name)  # fmt: skip
def test_numbers_that_no_law_says(case: Case) -> None:
    assert disagreements(case) == []


@pytest.mark.parametrize("target, verdict", [
    (peaks, "proved"),
    (positive_rows, "proved"),
    (over_channels, "proved"),
    (branches_in_rounds, "proved"),
], ids=lambda value: getattr(value, "__name__", value))  # fmt: skip
def test_what_the_data_decide(target: Any, verdict: str) -> None:
    report = check(target, "x: [b, n, 6]", budget_s=60)
    assert report.verdict == verdict, report.findings
    for b, n in itertools.product((1, 2), (1, 2, 5)):
        for fill in (-1.0, 1.0, 4.0, 9.0):
            target(torch.full((b, n, 6), fill))


def writes_what_is_kept(x: Tensor) -> Tensor:
    """Runs where as many are kept as there is room for: that is for the data to say."""
    y = x.new_zeros(x.size(1), 6)
    for t in range(x.size(1)):
        y[t] = x[0, t][x[0, t] > 0]
    return y


def counts_up_to(x: Tensor) -> Tensor:
    y = x.new_zeros(6)
    for t in range(x.size(1)):
        y = y + x[0, x[0, t, 0].long().item()]
    return y


def stacks_what_is_kept(x: Tensor) -> Tensor:
    return torch.stack([x[0, t][x[0, t] > 0] for t in range(x.size(1))])


def last_that_is_kept(x: Tensor) -> Tensor:
    kept = x[0, 0]
    for t in range(x.size(1)):
        kept = x[0, t][x[0, t] > 0]
    return kept + x[0, 0]


def needs_one_number(x: Tensor) -> Tensor:
    y = x.new_zeros(6)
    for t in range(x.size(1)):
        at = x[0, t, 0].long().item()
        if at == 2:
            y = y @ x[0, : x.size(1)]
    return y


def by_what_came_before(x: Tensor) -> Tensor:
    """In the next iteration it is another number."""
    at, y = 0, x.new_zeros(6)
    for t in range(x.size(1)):
        if at > 7:
            y = y.reshape(5)
        at = x[0, t, 0].long().item()
    return y


@pytest.mark.parametrize("target", [
    writes_what_is_kept, counts_up_to, stacks_what_is_kept, last_that_is_kept, needs_one_number,
    by_what_came_before,
], ids=lambda f: f.__name__)  # fmt: skip
def test_what_fails_for_some_data(target: Any) -> None:
    """Some data are refused, and others run: neither may be proved of any size that it is not true of."""
    report = check(target, "x: [b, n, 6]", ["n >= 2", "n <= 5"], budget_s=60)
    assert report.verdict in ("unknown", "refined"), report.verdict
    for n in (2, 3, 5):
        x = torch.zeros(1, n, 6)
        x[0, :, 0] = torch.tensor([9.0, -3.0, 2.0, 1.0, 0.0])[:n]
        try:
            target(x)
        except REFUSALS:
            continue
        assert holds(report.accepts.formula, {"b": 1, "n": n})


# --- lists of what the data have sized -------------------------------------------------------------------


def kept(x: Tensor) -> list[Tensor]:
    return [row[row > 0] for row in x]


def kept_and_places(x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    found = [(row[mask], torch.nonzero(mask)) for row, mask in zip(x, x > 0, strict=True)]
    return [values for values, _ in found], [places for _, places in found]


def padded(x: Tensor) -> Tensor:
    found = pad_sequence(kept(x), batch_first=True)
    return found @ found.new_zeros(found.size(1), 3)


def padded_behind(x: Tensor) -> Tensor:
    return pad_sequence(kept_and_places(x)[1]).expand(-1, x.size(0), 1)


def filled(x: Tensor) -> Tensor:
    values, places = kept_and_places(x)
    most = max(len(v) for v in values)
    y, z = x.new_zeros(x.size(0), most), x.new_zeros((x.size(0), most, 1))
    for k, (value, place) in enumerate(zip(values, places, strict=True)):
        y[k, : len(value)] = value
        z[k, : len(place)] = place.float()
    return y.unsqueeze(-1) + z


def side_by_side(x: Tensor) -> list[Tensor]:
    values, places = kept_and_places(x)
    return [value + place.squeeze(1) for value, place in zip(values, places, strict=True)]


def twice(x: Tensor) -> list[Tensor]:
    found = kept(x)
    return [a * b for a, b in zip(found, found, strict=True)]


def of_every_second(x: Tensor) -> list[Tensor]:
    found = kept(x)
    return [a * b for a, b in zip(found[::2], found[::2], strict=True)]


def narrowed_twice(x: Tensor) -> list[Tensor]:
    """Of what is kept once, some is kept again: no more than before."""
    found = [row[row > 0] for row in x]
    again = [row[row < 1] for row in found]
    most = max(row.size(0) for row in found)
    return [row.new_zeros(most)[: row.size(0)] + row for row in found] + again


def each_beside_the_last(x: Tensor) -> list[Tensor]:
    found = kept(x)
    return [a + b for a, b in zip(found, found[::-1], strict=True)]


def each_beside_the_next(x: Tensor) -> list[Tensor]:
    found = kept(x)
    return [a + b for a, b in zip(found[1:], found[:-1], strict=True)]


def each_beside_the_first(x: Tensor) -> list[Tensor]:
    found = kept(x)
    return [a + found[0] for a in found]


def beside_another(x: Tensor) -> list[Tensor]:
    """What is kept of other rows are others."""
    return [a + b for a, b in zip(kept(x), kept(-x), strict=True)]


def most_of_some(x: Tensor) -> Tensor:
    """The longest of every second row need not be the longest."""
    found = kept(x)
    y = x.new_zeros(x.size(0), max(len(row) for row in found[::2]))
    for k, row in enumerate(found):
        y[k, : len(row)] = row
    return y


def most_of_others(x: Tensor) -> Tensor:
    most = max(len(row) for row in kept(-x))
    y = x.new_zeros(x.size(0), most)
    for k, row in enumerate(kept(x)):
        y[k, : len(row)] = row
    return y


def first_kept_otherwise(x: Tensor) -> Tensor:
    found = [row[row > 0] if k > 0 else row[1:] for k, row in enumerate(x)]
    return found[0] + found[-1]


def stacked(x: Tensor) -> Tensor:
    return torch.stack(kept(x))


def one_way_or_another(x: Tensor) -> Tensor:
    found = [row[row > 0] if row.sum() > 2 else row[row > 1] for row in x]
    return pad_sequence(found, batch_first=True)[:, :7]


def padded_squares(x: Tensor) -> Tensor:
    """Only the first size may be another."""
    return pad_sequence([row[row > 0][None] for row in x], batch_first=True)


def one_mask_twice(x: Tensor) -> Tensor:
    masks = [row > 0 for row in x]
    return x[0][masks[0]] + x[-1][masks[0]]


def two_masks(x: Tensor) -> Tensor:
    """Masks of one shape need not have as many true elements."""
    masks = [row > 0 for row in x]
    return x[0][masks[0]] + x[0][masks[1]]


def two_masks_that_are_appended(x: Tensor) -> Tensor:
    masks = []
    for row in x:
        masks.append(row > 0)
    return x[0][masks[0]] + x[0][masks[1]]


def two_masks_in_pairs(x: Tensor) -> Tensor:
    pairs = [(row > 0, row[row > 0]) for row in x]
    return x[0][pairs[0][0]] + x[0][pairs[1][0]]


def kept_by_masks(x: Tensor) -> Tensor:
    masks = [row > 0 for row in x]
    found = [x[0][mask] for mask in masks]
    return found[0] + found[1]


def two_numbers(x: Tensor) -> Tensor:
    sums = [(row > 0).long().sum() for row in x]
    return x[0, : sums[0].item()] + x[0, : sums[1].item()]


def written_places(x: Tensor) -> Tensor:
    places = [torch.arange(row[row > 0].size(0)) for row in x]
    first = places[0]
    first += 5
    return x[0, places[0]]


def appended(x: Tensor) -> Tensor:
    values, places = [], []
    for row in x:
        mask = row > 0
        values.append(row[mask])
        places.append(torch.nonzero(mask).squeeze(1))
    most = max(len(v) for v in values)
    y = x.new_zeros(x.size(0), most)
    for k, (value, place) in enumerate(zip(values, places, strict=True)):
        y[k, : len(place)] = value
    return y


def appended_behind_others(x: Tensor) -> list[Tensor]:
    found = [x[0, 1:2], x[0]]
    for row in x:
        found.append(row[row > 0])
    return [row.new_zeros(6)[: row.size(0)] + row for row in found]


def nothing_or_places(x: Tensor) -> Tensor:
    """An iteration of either kind gives to both lists equally much."""
    boxes, scores = [], []
    for row in x:
        places = torch.nonzero(row > 0).squeeze(1)
        if places.numel() == 0:
            boxes.append(torch.zeros(0, 4))
            scores.append(torch.zeros(0))
        else:
            boxes.append(torch.zeros(places.size(0), 4))
            scores.append(row[places])
    for box, score in zip(boxes, scores, strict=True):
        _ = box * score.unsqueeze(1)
    return torch.cat(boxes) @ torch.zeros(4, 2)


def at_most_two(x: Tensor) -> Tensor:
    found = []
    for row in x:
        kept = row[row > 0]
        if kept.size(0) > 2:
            kept = kept[:2]
        found.append(kept)
    return pad_sequence(found, batch_first=True)[:, :2] @ torch.zeros(max(len(row) for row in found), 1)


def a_growing_tuple(x: Tensor) -> list[Tensor]:
    found: tuple[Tensor, ...] = ()
    for row in x:
        found = found + (row[row > 0],)  # noqa: RUF005
    return [a * b for a, b in zip(found, found, strict=True)]


def data_decide_the_size(x: Tensor) -> Tensor:
    outs = []
    for t in range(x.size(1)):
        outs.append(x[:, t][x[:, t] > 0])
    return torch.cat(outs)[: x.numel()]


def together_with_others(x: Tensor) -> Tensor:
    return torch.cat([x[0]] + kept(x) + [x[-1]])[: x.numel() + 12]  # noqa: RUF005


def pairs_of_one_kind(x: Tensor) -> Tensor:
    found = []
    for row in x:
        mask = row > 0
        found.append((row[mask], mask))
    values, masks = [v for v, _ in found], [m for _, m in found]
    return torch.cat(values).sum() + torch.cat(masks).float() @ torch.ones(x.numel())


def suppressed(x: Tensor) -> list[Tensor]:
    """As detectors do: a loop over what was found, in a loop over images."""
    found = []
    for row in x:
        places, chosen, count = torch.nonzero(row > 0).squeeze(1), torch.zeros(6, dtype=torch.long), 0
        for place in places:
            if row[place] > 0.5:
                last = place
                chosen[count] = last
                count += 1
        found.append(row[chosen[:count]])
    return [row.new_zeros(6)[: row.size(0)] + row for row in found]


def appended_beside_another(x: Tensor) -> list[Tensor]:
    some, others = [], []
    for row in x:
        some.append(row[row > 0])
        others.append(row[row < 0])
    return [a + b for a, b in zip(some, others, strict=True)]


def one_way_gives_other_sizes(x: Tensor) -> list[Tensor]:
    some, others = [], []
    for row in x:
        some.append(row[row > 0])
        others.append(row[:3] if row.sum() > 2 else row[row > 0])
    return [a + b for a, b in zip(some, others, strict=True)]


def two_of_either_way(x: Tensor) -> Tensor:
    found = []
    for row in x:
        found.append(row[:3] if row.sum() > 2 else row[:4])
    return found[0] + found[1]


def two_totals(x: Tensor) -> Tensor:
    return torch.cat(kept(x)) + torch.cat(kept(-x))


def behind_a_start(x: Tensor) -> Tensor:
    """The element at place k + 1 is of iteration k."""
    some, others = [x[0]], []
    for row in x:
        some.append(row[row > 0])
        others.append(row[row > 0])
    return some[1] + others[1]


def described(x: Tensor) -> list[Tensor]:
    found = []
    for row in x:
        mask = row > 0
        found.append({"places": torch.nonzero(mask), "values": row[mask], "label": "row"})
    return [one["values"] * one["places"][:, 0] for one in found]


def sorted_rows(x: Tensor) -> list[Tensor]:
    found = []
    for row in x:
        found.append(row[row > -9].sort())
    return [one.values * one.indices for one in found]


def in_pairs(x: Tensor) -> list[Tensor]:
    found = []
    for row in x:
        found.append([row[row > 0], row])
    return [some.sum() + whole for some, whole in found]


def of_some_rows(x: Tensor) -> tuple[list[Tensor], Tensor]:
    """Not every iteration gives something, but to both lists or to none."""
    values, places = [], []
    for row in x:
        mask = row > 0
        if not mask.any():
            continue
        values.append(row[mask])
        places.append(torch.nonzero(mask)[:, 0])
    together = torch.cat(values) if values else x[0, :0]
    return [value * place for value, place in zip(values, places, strict=True)], together[: x.numel()]


def numbers_of_some_rows(x: Tensor) -> list[Tensor]:
    found = []
    for i, row in enumerate(x):
        if row.sum() > 0:
            found.append(i)
    return [x[i] for i in found]


def up_to_some_rows(x: Tensor) -> list[Tensor]:
    found = []
    for i, row in enumerate(x):
        if row.sum() > 0:
            found.append(x[: i + 1])
    return [part.sum(0) + x[0] for part in found]


def as_many_as_some(x: Tensor) -> Tensor:
    found = []
    for row in x:
        if row.sum() > 0:
            found.append(row)
    return x[: len(found)] + x.new_zeros(len(found), 6)


def chosen_places(x: Tensor) -> Tensor:
    out = []
    for row in x:
        kept = []
        for i in torch.nonzero(row > 0)[:, 0]:
            if row[i] > 0.5:
                kept.append(i)
        out.append(row[torch.stack(kept)] if kept else row[:0])
    return torch.cat(out)


def all_in_all(x: Tensor) -> Tensor:
    """Each row adds as many as the data say, six at most."""
    found = []
    for row in x:
        found.append(row[row > 0])
    count = sum(len(each) for each in found)
    return x.new_zeros(x.numel())[:count] + x.new_zeros(count)


def one_behind_the_other(x: Tensor) -> Tensor:
    out, at = x.new_zeros(x.numel()), 0
    for row in x:
        kept = row[row > 0]
        out[at : at + kept.shape[0]] = kept
        at += kept.shape[0]
    return out[:at] + x.new_zeros(at)


def two_at_least(x: Tensor) -> Tensor:
    at = 0
    for row in x:
        at += 2 + row[row > 0].shape[0]
    return x.new_zeros(at)[: 2 * x.shape[0]] + x.new_zeros(2 * x.shape[0])


def more_than_all(x: Tensor) -> Tensor:
    at = 0
    for row in x:
        at += row[row > 0].shape[0]
    return x.new_zeros(at) + x.new_zeros(x.shape[0])


def one_too_many(x: Tensor) -> Tensor:
    """Not every row adds six."""
    at = 0
    for row in x:
        at += row[row > 0].shape[0]
    return x.new_zeros(at)[: 6 * x.shape[0]] + x.flatten()


def of_other_rows(x: Tensor) -> list[Tensor]:
    some, others = [], []
    for row in x:
        mask = row > 0
        if mask.any():
            some.append(row[mask])
        if row.sum() > 1:
            others.append(row[mask])
    return [a * b for a, b in zip(some, others, strict=False)]


def more_than_some(x: Tensor) -> Tensor:
    found = []
    for row in x:
        if row.sum() > 0:
            found.append(row)
    return x[: len(found)] + x


def numbers_behind_some_rows(x: Tensor) -> list[Tensor]:
    found = []
    for i, row in enumerate(x):
        if row.sum() > 0:
            found.append(i + 1)
    return [x[i] for i in found]


def beside_what_is_up_to_some(x: Tensor) -> list[Tensor]:
    found = []
    for i, row in enumerate(x):
        if row.sum() > 0:
            found.append(x[: i + 1])
    return [part + x for part in found]


def two_sorted(x: Tensor) -> Tensor:
    found = []
    for row in x:
        found.append(row[row > 0].sort())
    return found[0].values + found[1].values


def two_slices(x: Tensor) -> Tensor:
    found = []
    for row in x:
        found.append(slice(0, row[row > 0].shape[0]))
    return x[0][found[0]] + x[0][found[1]]


def two_pairs(x: Tensor) -> Tensor:
    found = []
    for row in x:
        found.append([row[row > 0], row])
    return found[0][0] + found[1][0]


def one_dict(x: Tensor) -> list[Tensor]:
    """It is the same in every iteration, and holds what the last has put into it."""
    found, one = [], {"row": x[0]}
    for row in x:
        one["row"] = row[row > 0]
        found.append(one)
    return [x[0] + each["row"] for each in found]


def places_before_some_rows(x: Tensor) -> list[Tensor]:
    """They are 1 - i and -i, of which the least is no index from the seventh row on."""
    found = []
    for i, row in enumerate(x):
        if row.sum() > 0:
            found.append(torch.arange(2) - i)
    return [x[0][places] for places in found]


def test_what_is_known_of_elements_is_not_joined() -> None:
    report = check(places_before_some_rows, "x: [n, 6]", ["3 <= n", "n <= 12"], budget_s=10)
    assert any(finding.code == "approximate" for finding in report.findings), report.findings
    with pytest.raises(IndexError):
        places_before_some_rows(torch.ones(12, 6))


def stacks_pairs(x: Tensor) -> Any:
    found = []
    for row in x:
        found.append((row[row > 0], row))
    return torch.stack(found) if found else 0  # type: ignore[arg-type]


def test_what_stands_for_many_need_not_be_tensors() -> None:
    report = check(stacks_pairs, "x: [n, 6]", ["0 <= n"], budget_s=10)
    assert report.verdict == "unknown"
    told = [finding.message for finding in report.findings]
    assert "TypeError: expected Tensor as element 0 in argument 0, but got tuple" in told, told


def rows_of_data(n: int) -> Iterator[Tensor]:
    """Rows of which none, one, two or all elements are positive, in every combination."""
    for counts in itertools.product((0, 1, 2, 6), repeat=n):
        yield torch.tensor([[1.0] * count + [-1.0] * (6 - count) for count in counts])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", [
    padded, padded_behind, filled, side_by_side, twice, of_every_second, narrowed_twice, one_way_or_another,
    sizes_of_ends, one_mask_twice, appended, appended_behind_others, nothing_or_places, at_most_two,
    a_growing_tuple, data_decide_the_size, together_with_others, pairs_of_one_kind, suppressed, described,
    sorted_rows, in_pairs, of_some_rows, numbers_of_some_rows, up_to_some_rows, as_many_as_some,
    chosen_places, all_in_all, one_behind_the_other, two_at_least,
], ids=lambda f: f.__name__)  # fmt: skip
def test_lists_of_what_the_data_have_sized(target: Any) -> None:
    report = check(target, "x: [n, 6]", budget_s=60)
    assert report.verdict == "proved", report.findings
    for n in (1, 2, 3):
        for x in rows_of_data(n):
            target(x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", [
    each_beside_the_last, each_beside_the_next, each_beside_the_first, beside_another, most_of_some,
    most_of_others, first_kept_otherwise, stacked, padded_squares, two_masks, two_masks_that_are_appended,
    two_masks_in_pairs, kept_by_masks, two_numbers, written_places, appended_beside_another,
    one_way_gives_other_sizes, two_of_either_way, two_totals, behind_a_start, of_other_rows, more_than_some,
    numbers_behind_some_rows, beside_what_is_up_to_some, two_sorted, two_slices, two_pairs, one_dict,
    more_than_all, one_too_many,
], ids=lambda f: f.__name__)  # fmt: skip
def test_lists_that_fail_for_some_data(target: Any) -> None:
    """Some data are refused from three rows on, so that it is proved of no more than of others."""
    report = check(target, "x: [n, 6]", ["3 <= n", "n <= 5"], budget_s=60)
    assert report.verdict == "unknown", report.verdict

    def runs(x: Tensor) -> bool:
        try:
            target(x)
        except REFUSALS:
            return False
        return True

    assert {runs(x) for x in rows_of_data(3)} == {False, True}


# --- programs that hide state ----------------------------------------------------------------------------
#
# Each does something else in the third or the fourth iteration, by a state that is kept somewhere. The
# recording has to see it, or to try length by length.


def odd(x: Tensor) -> Tensor:
    """What the programs below do in one iteration: nothing for 4 columns, and for others a refusal."""
    return x @ torch.zeros(4, 4)


class InSelf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count = 0
        for _ in range(x.size(1)):
            self.count += 1
            if self.count == 3:
                x = odd(x)
        return x


class InBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.state = {"history": [0]}

    def forward(self, x: Tensor) -> Tensor:
        self.state["history"] = [0]
        for _ in range(x.size(1)):
            self.state["history"][0] += 1
            if self.state["history"][0] % 4 == 3:
                x = odd(x)
        return x


class InPrivateSlot:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def __call__(self) -> int:
        self.n += 1
        return self.n


def in_slot(x: Tensor) -> Tensor:
    tick = InPrivateSlot()
    for _ in range(x.size(1)):
        if tick() == 3:
            x = odd(x)
    return x


def in_closure(x: Tensor) -> Tensor:
    n = 0

    def tick() -> int:
        nonlocal n
        n += 1
        return n

    for _ in range(x.size(1)):
        if tick() == 3:
            x = odd(x)
    return x


def _maker() -> Callable[[], int]:
    n = 0

    def tick() -> int:
        nonlocal n
        n += 1
        return n

    return tick


TICKS: dict[str, Callable[[], int]] = {}


def in_foreign_closure(x: Tensor) -> Tensor:
    TICKS["one"] = _maker()
    for _ in range(x.size(1)):
        if TICKS["one"]() == 3:
            x = odd(x)
    return x


COUNT = 0


def in_global(x: Tensor) -> Tensor:
    global COUNT
    COUNT = 0
    for _ in range(x.size(1)):
        COUNT += 1
        if COUNT == 3:
            x = odd(x)
    return x


def _counting(to: list[int] = []) -> int:  # noqa: B006
    to.append(len(to))
    return len(to)


def in_default(x: Tensor) -> Tensor:
    _counting.__defaults__[0].clear()
    for _ in range(x.size(1)):
        if _counting() == 3:
            x = odd(x)
    return x


def _marked() -> int:
    _marked.calls = getattr(_marked, "calls", 0) + 1  # type: ignore[attr-defined]
    return _marked.calls  # type: ignore[attr-defined,no-any-return]


def in_function_attribute(x: Tensor) -> Tensor:
    _marked.calls = 0  # type: ignore[attr-defined]
    for _ in range(x.size(1)):
        if _marked() == 3:
            x = odd(x)
    return x


class InClass(nn.Module):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        InClass.calls = 0
        for _ in range(x.size(1)):
            type(self).calls += 1
            if self.calls == 3:
                x = odd(x)
        return x


def by_index(x: Tensor) -> Tensor:
    seen: dict[int, Tensor] = {}
    for t in range(x.size(1)):
        seen[t] = x[:, t]
        if len(seen) == 3:
            x = odd(x)
    return x


def among_indices(x: Tensor) -> Tensor:
    for t in range(x.size(1)):
        if t in {2, 5}:
            x = odd(x)
    return x


def by_name(x: Tensor) -> Tensor:
    for t in range(x.size(1)):
        if f"step {t}" == "step 2":
            x = odd(x)
    return x


def by_length(x: Tensor) -> Tensor:
    outs = []
    for _ in range(x.size(1)):
        outs.append(x)
        if len(outs) == 3:
            x = odd(x)
    return x


def in_generator(x: Tensor) -> Tensor:
    def ticks() -> Iterator[bool]:
        yield False
        yield False
        yield True
        while True:
            yield False

    tick = ticks()
    for _ in range(x.size(1)):
        if next(tick):
            x = odd(x)
    return x


def in_iterator(x: Tensor) -> Tensor:
    ticks = itertools.count()
    for _ in range(x.size(1)):
        if next(ticks) == 2:
            x = odd(x)
    return x


def beside_it(x: Tensor) -> Tensor:
    """The counter runs in an iterator of C code around the range."""
    for _, tick in itertools.zip_longest(range(x.size(1)), [1, 2], fillvalue=0):
        if tick == 0:
            x = odd(x)
    return x


def in_iterator_of_list(x: Tensor) -> Tensor:
    ticks = iter([1, 2, 3, 4, 5, 6, 7, 8, 9])
    for _ in range(x.size(1)):
        if next(ticks) == 3:
            x = odd(x)
    return x


def in_deque(x: Tensor) -> Tensor:
    ticks = collections.deque([0, 0, 1, 0])
    for _ in range(x.size(1)):
        ticks.rotate(-1)
        if ticks[0]:
            x = odd(x)
    return x


def in_random_state(x: Tensor) -> Tensor:
    source = random.Random(0)
    for _ in range(x.size(1)):
        if source.random() > 0.8:
            x = odd(x)
    return x


def in_bytes(x: Tensor) -> Tensor:
    ticks = bytearray(1)
    for _ in range(x.size(1)):
        ticks[0] += 1
        if ticks[0] == 3:
            x = odd(x)
    return x


def in_set(x: Tensor) -> Tensor:
    seen: set[int] = set()
    for _ in range(x.size(1)):
        seen.add(len(seen))
        if len(seen) == 3:
            x = odd(x)
    return x


def in_text(x: Tensor) -> Tensor:
    seen = ""
    for _ in range(x.size(1)):
        seen += "."
        if seen == "...":
            x = odd(x)
    return x


def in_tensor(x: Tensor) -> Tensor:
    count = torch.zeros((), dtype=torch.long)
    for _ in range(x.size(1)):
        count += 1
        if count == 3:
            x = odd(x)
    return x


def in_new_tensors(x: Tensor) -> Tensor:
    count = torch.zeros(())
    for _ in range(x.size(1)):
        count = count + 1
        if float(count) == 3:
            x = odd(x)
    return x


def in_float(x: Tensor) -> Tensor:
    share = 1.0
    for _ in range(x.size(1)):
        share /= 2
        if share == 0.125:
            x = odd(x)
    return x


@functools.cache
def _remembered(key: int) -> list[int]:
    return [key]


def in_cache(x: Tensor) -> Tensor:
    _remembered.cache_clear()
    for t in range(x.size(1)):
        _remembered(t)
        if _remembered.cache_info().currsize == 3:
            x = odd(x)
    return x


def in_partial(x: Tensor) -> Tensor:
    count = functools.partial(_counting, [])
    for _ in range(x.size(1)):
        if count() == 3:
            x = odd(x)
    return x


class Squares:
    """Its length is no multiple of the index."""

    def __init__(self) -> None:
        self.items = [0]

    def grow(self) -> int:
        self.items = self.items + self.items
        return len(self.items)


def in_growing_list(x: Tensor) -> Tensor:
    items = Squares()
    for _ in range(x.size(1)):
        if items.grow() == 8:
            x = odd(x)
    return x


def in_swapped_variables(x: Tensor) -> Tensor:
    a, b, c = 1, 0, 0
    for _ in range(x.size(1)):
        a, b, c = c, a, b
        if c == 1:
            x = odd(x)
    return x


def fibonacci(x: Tensor) -> Tensor:
    a, b = 0, 1
    for _ in range(x.size(1)):
        a, b = b, a + b
        if b == 5:
            x = odd(x)
    return x


def turned_around(x: Tensor) -> Tensor:
    y = x[0]
    for _ in range(x.size(1)):
        y = y.t()
    return y @ torch.zeros(4, 4)


def by_identity(x: Tensor) -> Tensor:
    a, b, c = [0], [1], [2]
    third = c
    for _ in range(x.size(1)):
        a, b, c = b, c, a
        if a is third:
            x = odd(x)
    return x


def in_exception(x: Tensor) -> Tensor:
    error = ValueError(0)
    for _ in range(x.size(1)):
        error.args = (error.args[0] + 1,)
        if error.args == (3,):
            x = odd(x)
    return x


def in_attribute_of_tensor(x: Tensor) -> Tensor:
    x.count = 0  # type: ignore[attr-defined]
    y = x
    for _ in range(x.size(1)):
        x.count += 1  # type: ignore[attr-defined]
        if x.count == 3:  # type: ignore[attr-defined]
            y = odd(y)
    return y


def in_array(x: Tensor) -> Tensor:
    numpy = pytest.importorskip("numpy")
    ticks = numpy.zeros(1, dtype=int)
    for _ in range(x.size(1)):
        ticks[0] += 1
        if int(ticks[0]) == 3:
            x = odd(x)
    return x


def left_behind(x: Tensor) -> Tensor:
    """A function keeps the index of the last iteration."""
    last: list[Callable[[], int]] = [lambda: 0]
    for t in range(x.size(1)):
        last[0] = (lambda kept: lambda: kept)(t)
    return x.new_zeros(last[0]() + 1)


def kept_prefix(x: Tensor) -> Tensor:
    """What one iteration leaves to the next has a size of its own."""
    kept = x[:, :1]
    for t in range(x.size(1)):
        kept = kept.sum(1, keepdim=True) * x[:, : t + 1]
    return kept


def two_back(x: Tensor) -> Tensor:
    """Refused from three columns on: what an iteration is given is the one before the last."""
    a = b = x[:, :1]
    for t in range(x.size(1)):
        a, b = b, x[:, : t + 1]
        x = x + (a.size(1) - b.size(1) + 1) * 0
        a = a.expand(-1, b.size(1), -1)
    return a


def in_try(x: Tensor) -> Tensor:
    table = [1, 2]
    for t in range(x.size(1)):
        try:
            table[t]
        except IndexError:
            x = odd(x)
    return x


class Stateful(nn.Module):
    """An object of another kind in the third iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.step: Any = None

    def forward(self, x: Tensor) -> Tensor:
        self.step = self.first
        for _ in range(x.size(1)):
            x = self.step(x)
        return x

    def first(self, x: Tensor) -> Tensor:
        self.step = self.second
        return x

    def second(self, x: Tensor) -> Tensor:
        self.step = self.third
        return x

    def third(self, x: Tensor) -> Tensor:
        return odd(x)


class Hooked(nn.Module):
    """The state is in a hook of a module that the body calls."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()
        self.inner.register_forward_hook(self)  # type: ignore[arg-type]
        self.calls: list[int] = []

    def __call__(self, *args: Any) -> Any:
        if len(args) == 3:
            self.calls.append(0)
            return odd(args[2]) if sum(1 for _ in self.calls) == 3 else None
        return super().__call__(*args)

    def forward(self, x: Tensor) -> Tensor:
        self.calls = []
        for _ in range(x.size(1)):
            x = self.inner(x)
        return x


HIDING = [
    InSelf(), InBuffer(), in_slot, in_closure, in_foreign_closure, in_global, in_default,
    in_function_attribute, InClass(), by_index, among_indices, by_name, by_length, in_generator, in_iterator,
    beside_it, in_iterator_of_list, in_deque, in_random_state, in_bytes, in_set, in_text, in_tensor,
    in_new_tensors, in_float, in_cache, in_partial, in_growing_list, in_swapped_variables, fibonacci,
    turned_around, by_identity, in_exception, in_attribute_of_tensor, in_array, left_behind, kept_prefix,
    two_back, in_try, Stateful(), Hooked(),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("program", HIDING, ids=lambda p: getattr(p, "__name__", type(p).__name__))
@pytest.mark.parametrize("columns", [4, 3])
def test_hidden_state(program: Any, columns: int) -> None:
    """Right, or left open: what is said of a length is what eager does there."""
    case = Case(program, f"x: [b, n, {columns}]", refuses=True)
    found = disagreements(case)
    assert [line for line in found if not line.startswith("not summarised") and "open" not in line] == []


PARTS = """
def f(y):
    parts = []
    for e in range(y.size(0) - 1, -1, -1):
        if e > 1:
            continue
        parts.append(torch.zeros(e, 3))
    return {}
"""


RETURNED = ("sum(parts)", "sum(p.sum(1) for p in parts)", "torch.cat(parts)", "parts")


@pytest.mark.parametrize("returned", RETURNED)
@pytest.mark.parametrize("assume", [(), ("c <= 2",)])
def test_a_loop_that_ends_at_once_is_that_of_its_law(returned: str, assume: tuple[str, ...]) -> None:
    """That there is one more iteration tells that c is 2, which it is not where the loop ends before it."""
    program = Program.of("found", PARTS.format(returned), "y: float32[c]", assume)
    points = [{"c": c} for c in range(1, 3 if assume else 9)]
    assert agreed(program, points) == "proved"
