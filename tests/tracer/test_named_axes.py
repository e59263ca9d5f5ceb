"""Operations on named axes, description by description, against einx itself at every small size: which sizes
it takes, the shapes, dtypes and strides of what it returns.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from anyshape.constraints.ir.language import Layout
from anyshape.constraints.ir.language import Tensor as Known
from anyshape.constraints.ir.program import Ref
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import System
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import evaluate
from anyshape.constraints.terms.formula import holds
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.plugins import named_axes
from anyshape.tracer.recording.binding import bind
from anyshape.tracer.recording.record import record
from anyshape.typecheck import TargetError, check

einx = pytest.importorskip("einx", reason="needs einx: the extra anyshape[zoo]")

REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError, ZeroDivisionError, einx.errors.EinxError)


@dataclass(frozen=True)
class Case:
    """A call `function(description, *inputs, *numbers, **parameters)`: inputs of these shapes."""

    function: str
    description: str
    shapes: tuple[str, ...]
    numbers: tuple[float, ...] = ()
    parameters: str = ""
    """Axes that the call tells by name: `a=n b=2`."""
    dtypes: str = ""
    followed: bool = True

    def __str__(self) -> str:
        return f"{self.function} {self.description}"

    @property
    def inputs(self) -> str:
        dtypes = self.dtypes.split() or ["float32"] * len(self.shapes)
        pairs = zip(self.shapes, dtypes, strict=True)
        tensors = [f"x{place}: {dtype}[{shape}]" for place, (shape, dtype) in enumerate(pairs)]
        sizes = [value for _, value in self.named if not value.isdigit()]
        return "; ".join([*tensors, *(f"{name}: int" for name in dict.fromkeys(sizes))])

    @property
    def named(self) -> list[tuple[str, str]]:
        return [(name, value) for name, _, value in (t.partition("=") for t in self.parameters.split())]

    def __call__(self, **given: Any) -> Any:
        tensors = [value for name, value in given.items() if name.startswith("x")]
        parameters = {n: int(value) if value.isdigit() else given[value] for n, value in self.named}
        function = getattr(einx, self.function)
        return function(self.description, *tensors, *self.numbers, **parameters)


C = Case
BOOL = "bool float32"
CASES = [
    C("subtract", "j, i -> i j", ("n", "m")),
    C("subtract", "j, i -> 1 i j", ("n", "m"), dtypes="int64 int64"),
    C("add", "b n d, s d -> (b s) n d", ("b, n, 4", "2, d")),
    C("where", "b n, b n d, -> b n d", ("b, n", "b, m, d"), (0.0,), dtypes=BOOL),
    C("where", "i j, j,", ("n, m", "k"), (-1,), dtypes="bool int64"),
    C("subtract", "... j, ... i -> ... i j", ("b, n", "c, m")),
    C("subtract", "... j, ... i -> ... i j", ("n", "m")),
    C("subtract", "b h i, b h j -> b h i j", ("b, 2, n", "c, h, m")),
    C("multiply", "b n h, b h n d ->b h n d", ("b, n, 2", "b, h, m, 3")),
    C("multiply", "a b, a b, a b", ("n, m", "n, k", "n, m")),
    C("maximum", "a, b, a b", ("n", "m", "k, 3")),
    C("logical_and", "a b, b", ("n, m", "k"), dtypes="bool bool"),
    C("less", "j, i -> i j", ("n", "m")),
    C("equal", "a b, -> b a", ("n, m",), (1.5,), dtypes="int64"),
    C("add", "a, 1", ("n", "m")),
    C("add", "a 1, 1 a -> a", ("n, m", "k, 3")),
    C("add", "a, -> a", ("n",), (1.5,), dtypes="float64"),
    C("add", "a, -> a", ("n",), (True,), dtypes="int64"),
    C("add", ", -> 1", ("", "")),
    C("divide", "(a b) c, a -> a b c", ("n, m", "k")),
    C("divide", "(a b) c, c -> a b c", ("n, m", "m"), parameters="a=k"),
    C("add", "(a b), (b c), a -> a b c", ("n", "m", "k")),
    C("add", "a, b -> a b c", ("n", "m"), parameters="c=k"),
    C("add", "a..., b... -> a... b...", ("n, m", "k")),
    C("id", "a (b c) -> c (a b)", ("n, m",), parameters="b=2"),
    C("id", "a (b c) -> c (a b)", ("n, m",), parameters="b=k unused=3"),
    C("id", "((a b) c) -> a b c", ("n",), parameters="a=2 b=k"),
    C("id", "a b -> a b 1", ("n, m",)),
    C("id", "a b -> b c a", ("n, m",), parameters="c=k"),
    C("id", "b ... -> b (...)", ("n, m, k",)),
    C("id", "b a... -> (b a...)", ("n, m, k",)),
    C("id", "b h w c -> b c h w", ("n, m, k, 2",)),
    C("sum", "... c -> ...", ("n, m, 3",)),
    C("sum", "a [b] c", ("n, m, k",)),
    C("sum", "a [b] c -> c a", ("n, m, k",)),
    C("mean", "a b c -> c", ("n, m, k",)),
    C("max", "a ([b] c) -> c a", ("n, m",), parameters="c=2"),
    C("logsumexp", "a ([b])", ("n, m",)),
    C("any", "a [...]", ("n, m, k",), dtypes="bool"),
    C("count_nonzero", "a [s]...", ("n, m, k",)),
    C("prod", "a [b]", ("n, m",)),
    C("var", "a b -> b c", ("n, m",), parameters="c=2"),
    C("softmax", "a [b] c -> c [b] a", ("n, m, 2",)),
    C("log_softmax", "(a [b]) c", ("n, m",), parameters="a=k"),
    C("dot", "(a b) k, k c -> a (b c)", ("n, m", "k, 2"), parameters="a=2"),
    C("dot", "... [k], [k] c -> ... c", ("n, 2, m", "k, 3")),
    C("dot", "b q h d, b k h d -> b q k h", ("b, n, 2, 3", "b, m, h, d")),
    C("dot", "a b, b c -> a c d", ("n, m", "k, 2"), parameters="d=2"),
    # What einx refuses whatever the sizes, what it does in another way, and what is not known of here. The
    # first two have another dtype where all sizes are 1.
    C("add", "a, -> a", ("n",), (1.5,), dtypes="float16", followed=False),
    C("where", "i j, j, -> i j", ("n, m", "m"), (-1,), dtypes="bool int32", followed=False),
    C("add", "a, b", ("n", "m"), followed=False),
    C("add", "a b, b -> a", ("n, m", "m"), followed=False),
    C("add", "a b, a", ("n, m, k", "n"), followed=False),
    C("add", "a(b), a", ("n, m", "n"), followed=False),
    C("add", "a b a, b", ("n, m, n", "m"), followed=False),
    C("add", "a [b], b", ("n, m", "m"), followed=False),
    C("id", "(a b) -> a b", ("n",), followed=False),
    C("id", "b (...) -> b ...", ("n, m",), followed=False),
    C("id", "(a + b) -> a, b", ("n",), parameters="a=1", followed=False),
    C("id", "a b -> a", ("n, m",), followed=False),
    C("id", "a -> a a", ("n",), followed=False),
    C("prod", "a [...]", ("n, m, k",), followed=False),
    C("sum", "a b -> a b", ("n, m",), followed=False),
    C("dot", "a b, b c, b d -> a c d", ("n, m", "m, k", "m, 2"), followed=False),
    C("dot", "a [b], b c -> a c", ("n, m", "m, k"), followed=False),
    C("softmax", "a [b c]", ("n, m, k",), followed=False),
]


def trace(case: Case) -> System:
    spec = parse_spec(case.inputs, [f"0 <= {name}" for name in parse_spec(case.inputs).domain.symbols])
    system, _ = record(program(case), spec, default_rules, DomainOracle(spec.domain))
    return system


def program(case: Case) -> Callable[..., Any]:
    """The case as a function that has its parameters by name."""
    names = [part.partition(":")[0] for part in case.inputs.split("; ")]
    scope: dict[str, Any] = {"case": case}
    exec(f"def call({', '.join(names)}): return case({', '.join(f'{n}={n}' for n in names)})", scope)
    found: Callable[..., Any] = scope["call"]
    return found


def eager(case: Case, values: dict[str, int]) -> Any:
    """What einx returns at these sizes; None where it refuses them."""

    def build(declared: Any) -> Any:
        kind = declared.type
        if isinstance(kind, Known):
            dtype = getattr(torch, kind.dtype or "float32")
            return torch.ones([evaluate(d, values) for d in kind.shape], dtype=dtype)
        return evaluate(kind, values)

    bound = bind(program(case), parse_spec(case.inputs).inputs, build)
    try:
        return program(case)(*bound.args, **bound.kwargs)
    except REFUSALS:
        return None


def assignments(case: Case, accepts: Callable[[dict[str, int]], bool], many: int) -> list[dict[str, int]]:
    """Small sizes of which some are accepted and some are not: einx takes its time with each of them."""
    names = parse_spec(case.inputs).domain.symbols
    points = [*itertools.product((0, 1, 2, 3, 6), repeat=len(names))]
    random.Random(0).shuffle(points)
    every = [dict(zip(names, point, strict=True)) for point in points]
    good, bad = [v for v in every if accepts(v)], [v for v in every if not accepts(v)]
    return good[:many] + bad[:many]


def disagreements(case: Case, many: int = 12) -> list[str]:
    (path,) = trace(case).paths
    assert path.end.how == "returned" and not path.notes
    found = []

    def accepts(values: dict[str, int]) -> bool:
        return all(holds(c.formula, values) for c in path.constraints)

    for values in assignments(case, accepts, many):
        expected, accepted = eager(case, values), accepts(values)
        if accepted != (expected is not None):
            found.append(f"{values}: accepted {accepted}, einx {expected is not None}")
        elif expected is not None:
            ((_, ref),) = path.program.outputs
            assert isinstance(ref, Ref)
            known = path.values[ref.id]
            assert isinstance(known, Known)
            shape = tuple(evaluate(d, values) for d in known.shape)
            told = (shape, known.dtype, strides(known, shape, values))
            real = (tuple(expected.shape), str(expected.dtype).removeprefix("torch."), expected.stride())
            if told[:2] != real[:2] or (told[2] is not None and not same_strides(shape, told[2], real[2])):
                found.append(f"{values}: {told}, einx {real}")
    return found


def strides(known: Known, shape: tuple[int, ...], values: dict[str, int]) -> tuple[int, ...] | None:
    if known.layout is Layout.UNKNOWN:
        return None
    if isinstance(known.layout, tuple):
        return tuple(evaluate(d, values) for d in known.layout)
    return torch.empty(shape, device="meta").stride()


def same_strides(shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Of an axis with one element the stride says nothing."""
    return all(n <= 1 or s == t for n, s, t in zip(shape, a, b, strict=True))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("many", [4, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", [c for c in CASES if c.followed], ids=str)
def test_agrees_with_einx(case: Case, many: int) -> None:
    assert disagreements(case, many) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", [c for c in CASES if not c.followed], ids=str)
def test_what_is_not_understood_is_left_open(case: Case) -> None:
    """einx itself has the word, which may fail at sizes that are no numbers: nothing is claimed then. What it
    refuses by its words alone runs nowhere.
    """
    try:
        report = check(program(case), case.inputs, replay=False, budget_s=1.0)
    except TargetError:
        assert all(eager(case, values) is None for values in assignments(case, lambda values: True, 4))
        return
    if report.verdict != "unknown":
        for values in assignments(case, lambda values: report.accepts.holds(**values), 4):
            if min(values.values()) > 0:
                assert report.accepts.holds(**values) == (eager(case, values) is not None)


@pytest.mark.parametrize(
    "wrong, case",
    [
        ("_permuted", "id a b -> b c a"),
        ("require_equal", "subtract b h i, b h j -> b h i j"),
        ("_matters_how_taken", "where i j, j, -> i j"),
    ],
)
def test_a_wrong_law_is_seen(wrong: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    laws: dict[str, Any] = {
        "_permuted": lambda tensor, names, order: tensor,
        "require_equal": lambda *given: None,
        "_matters_how_taken": lambda numbers, tensors: False,
    }
    (chosen,) = (c for c in CASES if str(c) == case)
    monkeypatch.setattr(named_axes, wrong, laws[wrong])
    assert disagreements(chosen) != []


def test_sizes_that_do_not_fit_are_told_at_the_users_line() -> None:
    def differences(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return einx.subtract("n d, m d -> n m d", x, y)

    report = check(differences, "x: [a, b]; y: [c, d]")
    assert (report.verdict, str(report.accepts)) == ("refined", "b == d")
    (finding,) = (f for f in report.findings if f.code == "condition")
    assert "einx.subtract" in finding.origin.code
    assert "n d, m d -> n m d" in finding.message
    assert report.replayed and not [f for f in report.findings if f.code == "not-replayed"]


def test_a_refusal_that_is_caught_is_a_branch() -> None:
    def either(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        try:
            return einx.add("a, a", x, y)
        except einx.errors.EinxError:
            return einx.add("a, b -> a b", x, y)

    report = check(either, "x: [n]; y: [m]")
    assert report.verdict == "proved"


def test_the_functions_are_given_back() -> None:
    before = {name: getattr(einx, name) for name in named_axes._FOLLOWED}
    trace(replace(CASES[0]))
    assert {name: getattr(einx, name) for name in before} == before
