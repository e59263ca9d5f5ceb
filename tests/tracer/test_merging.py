"""Calls whose ways are merged, program by program: each is compared with eager runs at all small sizes, and
with the same program recorded path by path.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.constraints.ir.language import Tensor as Known
from anyshape.constraints.ir.program import Ref
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import System
from anyshape.constraints.ir.system_json import paths_from_json, paths_to_json
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import evaluate
from anyshape.constraints.terms.formula import holds
from anyshape.solver.decide import DomainOracle
from anyshape.solver.tactics.judge import Budget
from anyshape.tracer.recording import record as recorder
from anyshape.typecheck import check
from anyshape.typecheck.checking.clock import Clock
from anyshape.typecheck.gradual.branching import branches_of

REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError, ZeroDivisionError)


def trace(target: Callable[..., Any], inputs: str, monkeypatch: pytest.MonkeyPatch) -> System:
    """Recorded with the ways of calls merged from the first fork on."""
    monkeypatch.setattr(recorder, "MANY_PATHS", 1)
    spec = parse_spec(inputs, ())
    oracle = DomainOracle(spec.domain, Budget(300.0))  # no answer here depends on how fast the machine is
    system, _ = recorder.record(target, spec, default_rules, oracle, budget_s=300.0)
    for path in system.paths:
        path.program.verify()
    return system


def eager(target: Any, inputs: str, sizes: dict[str, int]) -> list[tuple[int, ...]] | None:
    """The shapes that the program returns at these sizes; None where it refuses them."""
    given = [d.type for d in parse_spec(inputs, ()).inputs]
    try:
        result = target(*(torch.ones([evaluate(d, sizes) for d in t.shape]) for t in given))
    except REFUSALS:
        return None
    return [tuple(t.shape) for t in (result if isinstance(result, tuple | list) else [result])]


def recorded(system: System, sizes: dict[str, int]) -> list[tuple[int, ...]] | None:
    """The same as the system says it. Exactly one path is taken at any sizes."""
    (path,) = (p for p in system.paths if holds(p.premise, sizes))
    if path.end.how != "returned" or not all(holds(c.formula, sizes) for c in path.constraints):
        return None
    return [
        tuple(evaluate(d, sizes) for d in value.shape)
        for _, out in path.program.outputs
        if isinstance(out, Ref) and isinstance(value := path.values[out.id], Known)
    ]


def points(inputs: str, upto: int) -> Iterator[dict[str, int]]:
    names = parse_spec(inputs, ()).domain.symbols
    for values in itertools.product(range(1, upto + 1), repeat=len(names)):
        yield dict(zip(names, values, strict=True))


class Chain(nn.Module):
    """The module, several times over."""

    def __init__(self, make: Callable[[], nn.Module], times: int = 3) -> None:
        super().__init__()
        self.parts = nn.ModuleList(make() for _ in range(times))

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        for part in self.parts:
            x = part(x) if y is None else part(x, y)
        return x


class SamePadding(nn.Module):
    """Of TensorFlow: as many results as there are strides in the length."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        pad = max(3 - 2, 0) if n % 2 == 0 else max(3 - n % 2, 0)
        return F.avg_pool1d(F.pad(x, (pad // 2, pad - pad // 2)), 3, 2)


class PadsToFour(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        if n % 4:
            x = F.pad(x, (0, 4 - n % 4))
        return (x.unflatten(-1, (-1, 4)).sum(-1, keepdim=True) + torch.zeros(4)).flatten(-2)[..., :n].clone()


class Refuses(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] == 3:
            raise ValueError("three are too many")
        if x.shape[0] > 5:
            x = x.reshape(2, -1).flatten()
        return x + 1


class RefusesInOneWay(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] % 2 == 0:
            return x.view(-1, 2).flatten() + torch.ones(4)
        return x + torch.ones(5)


class Itself(nn.Module):
    """In one way it returns what it was given: who writes into that, writes into the input."""

    def forward(self, x: Tensor) -> Tensor:
        return x if x.shape[0] % 2 else x + 1


class ItselfWrittenTo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Itself()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = self.part(x)
        z.unsqueeze_(0)
        return x + y


class Writes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 2:
            x.unsqueeze_(0)
            x.squeeze_(0)
        return x + 1


class Leaves(nn.Module):
    """It leaves a number behind that depends on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.width = 4

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] <= self.width:
            self.width = x.shape[0]
        return x + 1


class Reads(nn.Module):
    """It reads what was left behind, perhaps."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self.part, self.whole = Leaves(), whole

    def forward(self, x: Tensor) -> Tensor:
        x = self.part(x)
        return x.view(self.part.width, -1).flatten() if self.whole else x


class Divides(nn.Module):
    """It leaves a number behind that means nothing in the other way."""

    def __init__(self) -> None:
        super().__init__()
        self.ratio = 2

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if y.shape[0] > 2:
            self.ratio = x.shape[0] // (y.shape[0] - 2)
        return x + 1


class LeavesQuotient(nn.Module):
    def __init__(self, read: bool) -> None:
        super().__init__()
        self.part, self.read = Divides(), read

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.part(x, y)
        return x.expand(self.part.ratio + 1, -1) if self.read else x


class Gathers(nn.Module):
    """It puts something into a list of another's."""

    def __init__(self, found: list[int]) -> None:
        super().__init__()
        self.found = found

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] % 2:
            self.found.append(x.shape[0])
        return x + 1


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[int] = []
        self.parts = nn.ModuleList([Gathers(self.found), Gathers(self.found)])

    def forward(self, x: Tensor) -> Tensor:
        self.found.clear()
        for part in self.parts:
            x = part(x)
        return x.view(1 + len(self.found), -1)


class OtherRank(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if x.shape[0] % 2 else x[None] + 1


class Squeezes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(-1)


class Alternates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.Sequential(OtherRank(), Squeezes(), OtherRank(), Squeezes())

    def forward(self, x: Tensor) -> Tensor:
        return self.parts(x)


class Transposed(nn.Module):
    """The strides differ from way to way, and `view` is about strides."""

    def forward(self, x: Tensor) -> Tensor:
        return x.t().contiguous().t() if x.shape[0] % 2 else x.clone()


class ViewsIt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Transposed()

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x).view(-1)


class Several(nn.Module):
    """A list, a size and the same tensor twice."""

    def forward(self, x: Tensor) -> tuple[Tensor, list[Any]]:
        n = x.shape[0] + x.shape[0] % 2
        y = x.new_zeros(n) if x.shape[0] % 2 else x * 2
        return y, [y, n // 2]


class TakesSeveral(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([Several(), Several()])

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            y, (z, half) = part(x)
            y.unsqueeze_(0)
            x = (z[0].view(half, 2).sum(1) + 1).repeat(2)[1:]
        return x


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Chain(SamePadding, 2)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] % 3 == 0:
            x = F.pad(x, (0, 1))
        return self.inner(x)


class Looping(nn.Module):
    """It branches in a loop over a size."""

    def forward(self, x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[1])
        for row in x:
            if x.shape[1] % 2:
                row = row * 2
            total = total + row
        return total.expand(x.shape[0], -1) + x


class Window(nn.Module):
    """A window as wide as what it slides over, where that is narrow."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        width = 4
        if n <= width:
            width = n
        pad = (width - n % width) % width
        x = F.pad(x, (0, pad))
        return x.view(x.shape[0], -1, width).flatten(1)[:, :n].clone()


class Extremes(nn.Module):
    """Neither of the sizes that the ways return is equal to the other's."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + 1 if x.shape[0] <= y.shape[0] else y + 1


class Expands(nn.Module):
    """In one way the rows that it returns are one row, into which torch refuses to write."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:1].expand(x.shape[0], -1) if x.shape[0] % 2 else x.clone()


class WritesIntoIt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Expands()

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x).add_(1)


class CountsItself(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + 1 if x.shape[0] > 3 else x + 2


class ReadsTheCount(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = CountsItself()

    def forward(self, x: Tensor) -> Tensor:
        return self.part(self.part(x)).view(self.part.calls, -1)


class Hooked(nn.Module):
    """A hook of the part's notes each call of it."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.seen = CountsItself(), list[int]()
        self.part.register_forward_hook(lambda module, given, returned: self.seen.append(1))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.clear()
        return self.part(self.part(x)).view(len(self.seen), -1)


class Fills(nn.Module):
    def forward(self, x: Tensor, found: dict[str, Tensor]) -> Tensor:
        if x.shape[0] > 2:
            found["wide"] = x
        return x + 1


class CountsWhatIsFilled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Fills()

    def forward(self, x: Tensor) -> Tensor:
        found: dict[str, Tensor] = {}
        return self.part(x, found).view(len(found) + 1, -1)


class Tries(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        try:
            return x.view(2, -1)
        except RuntimeError:
            return x.view(1, -1)


class TriesAgain(nn.Module):
    """What is refused after the call is caught, and so is what is refused in it."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Tries()

    def forward(self, x: Tensor) -> Tensor:
        try:
            return self.part(x) + torch.ones(4)
        except RuntimeError:
            return x.view(-1, 3)


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    inputs: str
    upto: int = 12
    paths: int | None = 1
    """How many there are when calls are merged; None where that does not matter."""

    @property
    def name(self) -> str:
        module = self.make()
        parts = dict.fromkeys(type(part).__name__ for part in getattr(module, "parts", ()))
        return "-".join((type(module).__name__, *parts))


CASES = [
    Case(lambda: Chain(SamePadding, 4), "x: [2, n]", 40),
    Case(lambda: Chain(PadsToFour), "x: [2, n]", 20),
    Case(lambda: Chain(Refuses), "x: [n]"),
    Case(lambda: Chain(RefusesInOneWay), "x: [n]"),
    Case(lambda: Chain(Itself), "x: [n]", paths=None),
    Case(ItselfWrittenTo, "x: [n]; y: [m]", 5, paths=2),
    Case(lambda: Chain(Writes), "x: [n]", paths=None),
    Case(lambda: Reads(False), "x: [n]"),
    Case(lambda: Reads(True), "x: [n]"),
    Case(lambda: LeavesQuotient(False), "x: [n]; y: [m]", 8),
    Case(lambda: LeavesQuotient(True), "x: [n]; y: [m]", 8, paths=2),
    Case(Counts, "x: [n]", paths=None),
    Case(Alternates, "x: [n]", paths=None),
    Case(ViewsIt, "x: [n, m]", 6, paths=None),
    Case(TakesSeveral, "x: [n]", 20),
    Case(lambda: Chain(Outer, 2), "x: [2, n]", 30),
    Case(lambda: Chain(Looping, 2), "x: [n, m]", 6, paths=None),
    Case(lambda: Chain(Window), "x: [2, n]", 20),
    Case(lambda: Chain(Extremes), "x: [n]; y: [m]", 8),
    Case(WritesIntoIt, "x: [n, m]", 6, paths=None),
    Case(ReadsTheCount, "x: [n]", paths=None),
    Case(Hooked, "x: [n]", paths=None),
    Case(CountsWhatIsFilled, "x: [n]", paths=None),
    Case(TriesAgain, "x: [n]", paths=None),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_merged_ways_say_what_eager_runs_do(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    system = trace(case.make(), case.inputs, monkeypatch)
    assert not system.incomplete
    if case.paths is not None:
        assert len(system.paths) == case.paths
    wrong = []
    for sizes in points(case.inputs, case.upto):
        told, found = recorded(system, sizes), eager(case.make(), case.inputs, sizes)
        if told != found:
            wrong.append(f"{sizes}: {told}, and eager {found}")
    assert not wrong, wrong[:5]


def test_branches_in_merged_calls_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    system = trace(Chain(Extremes, 1), "x: [n]; y: [m]", monkeypatch)
    (path,) = system.paths
    assert {(str(c.formula), c.forced) for c in path.turns} == {("n <= m", False)} and not path.conditions
    found = branches_of(system, Clock(lambda step: None, 30.0))
    assert [(b.text, b.outcome, str(b.when_true), str(b.when_false)) for b in found] == [
        ("x.shape[0] <= y.shape[0]", None, "n <= m", "m < n")
    ]
    assert paths_from_json(paths_to_json(system.paths), system.domain.symbols) == system.paths


def test_a_way_that_raises_is_refused_at_the_line_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MANY_PATHS", 1)
    report = check(Chain(Refuses, 1), "x: [n]")
    (finding,) = (f for f in report.findings if "three are too many" in f.message)
    assert finding.origin.code == 'raise ValueError("three are too many")' and finding.witness == {"n": 3}
    assert str(report.accepts) == "n == 1 or n == 5 or n % 2 == 0"


class Outgrows(nn.Module):
    """One way fails for a reason that is no matter of sizes, another asks the data for a number."""

    def __init__(self, asks: bool) -> None:
        super().__init__()
        self.asks = asks

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 4:
            if self.asks:
                return x.view(int(math.fmod(float(x.abs().sum()), 2.0)), -1)
            return no_such_name  # type: ignore[name-defined]  # noqa: F821
        return x + 1


@pytest.mark.parametrize("asks", [False, True])
def test_a_way_that_cannot_be_followed_leaves_the_others_as_they_are(
    asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = trace(Chain(lambda: Outgrows(asks), 1), "x: [n]", monkeypatch)
    ends = {str(path.premise): path.end.how for path in system.paths}
    assert ends.pop("n <= 4") == "returned" and "gave-up" in ends.values()
