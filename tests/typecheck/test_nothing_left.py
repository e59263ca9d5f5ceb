"""Nothing is left behind: whatever is asked of a program, and however that ends, everything is as it was.

What is compared is in `whole_state.py`. Programs write into all that they get at.
"""

from __future__ import annotations

import builtins
import copy
import cProfile
import functools
import gc
import logging
import math
import os
import pstats
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import pytest
import torch
import whole_state as states
from torch import Tensor, nn
from torch._ops import HigherOrderOperator
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from whole_state import differences, whole_state
from zoo.catalogue import CATALOGUE
from zoo.row import Row

from anyshape.solver.tactics.judge import Budget, Judge
from anyshape.tracer.host import surroundings
from anyshape.tracer.recording import held
from anyshape.typecheck import ExportError, TargetError, branches, check, export, infer, migrate
from anyshape.typecheck.checking.api import examine
from anyshape.typecheck.exporting.graphs.inner_sizes import bounding, inner_sizes

# ---- programs that write


class Cache(nn.Module):
    """A buffer that is written into what has been computed: the model's own one may not come to require a
    gradient by that.
    """

    cache: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Linear(4, 8)
        self.register_buffer("cache", torch.zeros(16, 32, 8))

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        self.cache[:b, :t] = self.p(x)
        return self.cache[:b, :t]


LATE: list[Any] = [torch.ones(3), {"calls": 0}]
COUNT = 0
FRESH: int


class Everywhere(nn.Module):
    """Writes into everything else, and ends as it is told to."""

    seen: list[Any] = []  # noqa: RUF012 (of the class, on purpose)
    total: Tensor

    def __init__(self, ends: Callable[[Tensor], Tensor] = lambda x: x.view(-1, 2)) -> None:
        super().__init__()
        self.norm, self.p = nn.BatchNorm1d(3, momentum=None), nn.Linear(3, 3)
        self.tied = self.p.weight
        self.p.weight.grad = torch.ones(3, 3)
        self.register_buffer("total", torch.zeros(3))
        self.plain, self.deep = torch.zeros(3), [(torch.zeros(3), "k"), {"a": torch.ones(2, 3)}]
        self.made = self.p(torch.ones(1, 3))
        self.array, self.generator = np.zeros(3), torch.Generator()
        self.calls, self.names = 0, {"a"}
        self.p.weight.register_hook(lambda gradient: gradient)
        self.ends = ends

    def forward(self, x: Tensor) -> Tensor:
        global COUNT, FRESH
        COUNT += 1
        FRESH = 1
        LATE[0] += 1
        LATE[1]["calls"] += 1
        type(self).seen.append(x)
        self.calls += 1
        self.names.add("b")
        self.new = x
        y = self.p(self.norm(x))
        with torch.no_grad():
            self.p.weight.mul_(0.5)
            self.p.weight.data.clamp_(0, 1)
            self.tied += 1
        self.total += y.sum(0)
        self.total.add_(1)
        self.plain += y.sum(0)
        self.plain.zero_()
        self.deep[0][0].copy_(y.mean(0))
        self.deep[0][0].add_(1)
        self.deep[1]["a"] = y
        self.made += 1
        self.array += 1
        torch.rand(3, generator=self.generator), torch.rand(1), random.random(), np.random.rand()
        self.register_forward_hook(lambda *args: None)
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(True)
        torch.set_grad_enabled(False)
        warnings.simplefilter("ignore")
        os.environ["LEFT_BEHIND"] = "1"
        return self.ends(y)


def in_a_closure() -> Callable[[Tensor], Tensor]:
    total, calls = torch.zeros(()), 0

    def added(x: Tensor, cache: dict[int, Tensor] = {}) -> Tensor:  # noqa: B006 (on purpose)
        nonlocal calls
        calls += 1
        total.add_(x.sum())
        total.add_(1)
        cache[calls] = total
        return x.view(-1, 2) + total

    return added


def raises(x: Tensor) -> Tensor:
    raise KeyError("a defect")


def refuses(x: Tensor) -> Tensor:
    if x.shape[0] > 0:
        raise ValueError("never")
    return x


def interrupted(x: Tensor) -> Tensor:
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, as it does unless a shell has started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def signalled(x: Tensor) -> Tensor:
    os.kill(os.getpid(), signal.SIGINT)
    return x.view(-1, 2)


ENDS: Final[dict[str, Any]] = {
    "success": (lambda x: x.view(-1, 2), ExportError),
    "refusal": (refuses, (TargetError, ExportError)),
    "exception": (raises, (TargetError, ExportError)),
    "interrupted": (interrupted, KeyboardInterrupt),
    "signalled": (signalled, KeyboardInterrupt),
}
QUESTIONS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "check": lambda model, inputs: check(model, inputs),
    "check with repairs": lambda model, inputs: check(model, inputs, repairs=True),
    "infer": lambda model, inputs: infer(model, [(torch.ones(2, 3),), (torch.ones(4, 3),)]),
    "export": lambda model, inputs: export(model, inputs),
    "refine": lambda model, inputs: refine(model, inputs),
    "branches": lambda model, inputs: branches(model, inputs),
    "migrate": lambda model, inputs: migrate(model, inputs),
}


def left(model: Any, ask: Callable[[], Any], errors: Any = ()) -> list[str]:
    """What asking has left behind. What it imports, and caches for good, is imported before."""
    with states.looking_at(__name__), suppress(*([errors] if isinstance(errors, type) else errors)):
        before = whole_state(model, LATE, Everywhere.seen)
        ask()
    with states.looking_at(__name__):
        return differences(before, whole_state(model, LATE, Everywhere.seen))


@pytest.fixture(scope="module", autouse=True)
def warmed_up() -> None:
    for name, ask in QUESTIONS.items():
        ask(nn.Linear(3, 4), "input: [n, 3]" if name != "migrate" else "input: [2, 3]")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("question", QUESTIONS)
def test_after_a_cache(question: str) -> None:
    if question == "infer":
        pytest.skip("its examples have two dimensions")
    model = Cache()
    assert left(model, lambda: QUESTIONS[question](model, "x: [b, t, 4]")) == []
    copy.deepcopy(model)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_after_writes_everywhere(question: str, end: str) -> None:
    ends, errors = ENDS[end]
    model = Everywhere(ends)
    assert left(model, lambda: QUESTIONS[question](model, "x: [n, 3]"), errors) == []


def test_in_a_closure() -> None:
    added = in_a_closure()
    assert left(added, lambda: check(added, "x: [n]")) == []


def test_of_lazy_modules() -> None:
    model = nn.Sequential(nn.LazyLinear(4))
    before = [type(m) for m in model.modules()]
    with suppress(TargetError):
        check(model, "input: [n, 3]")
    assert [type(m) for m in model.modules()] == before
    assert model(torch.ones(2, 5)).shape == (2, 4), "it has not seen any input"


@pytest.mark.parametrize("number", ["2", "n"])
def test_under_a_profiler(number: str) -> None:
    def rows(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([nn.Linear(4, 3)(row) for row in x]).sum()

    profiler = cProfile.Profile()
    profiler.enable()
    try:
        report = check(rows, f"x: [{number}, 4]")
        sum(map(abs, [1]))
    finally:
        profiler.disable()
    assert report.verdict == "proved"
    seen = {name for _, _, name in pstats.Stats(profiler).stats}  # type: ignore[attr-defined]
    assert {"check", "<built-in method builtins.sum>"} <= seen


def test_two_threads() -> None:
    models = [Everywhere() for _ in range(4)]
    with ThreadPoolExecutor(2) as threads:
        found = left(models, lambda: [*threads.map(lambda m: check(m, "x: [n, 3]").verdict, models)])
    assert found == []


def test_a_thread_that_runs_the_model_meanwhile() -> None:
    """It may see a stand-in, and gets what the model gives."""
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval(), torch.ones(5, 3)
    expected, wrong, done = model(x), list[Any](), threading.Event()

    def run() -> None:
        while not done.is_set():
            if not torch.equal(model(x), expected):
                wrong.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(5):
            check(model, "input: [n, d]")
    finally:
        done.set()
        thread.join()
    assert wrong == []


# ---- models of public packages


@functools.cache
def _public() -> tuple[Row, ...]:
    """A hundred models of the packages that can be imported, from all over the catalogue."""
    installed = [row for row in CATALOGUE if _is_there(row.package)]
    return tuple(installed[:: max(len(installed) // 100, 1)][:100])


@functools.cache
def _is_there(package: str) -> bool:
    with suppress(ImportError):
        return find_spec(package) is not None and bool(import_module(package))
    return False


def refine(model: Any, inputs: str, assume: Any = (), **options: Any) -> None:
    """As `anyshape refine --finite 64`."""
    examined = examine(model, inputs, assume, **options)
    bounded = (*assume, *bounding(examined.report, 64))
    examined = examine(model, inputs, bounded, **options)
    if (shapes := examined.report.dynamic_shapes) is not None:
        inner_sizes(examined.system, Judge(Budget(5.0)), shapes.formula)


@pytest.mark.slow
@pytest.mark.parametrize("asking", [check, refine, export], ids=lambda asking: asking.__name__)
@pytest.mark.parametrize("number", range(100))
def test_of_public_models(number: int, asking: Callable[..., Any]) -> None:
    if number >= len(_public()):
        pytest.skip(f"{len(_public())} models are installed")
    row = _public()[number]
    model = row.copies()()

    def ask() -> None:
        with suppress(ExportError, TargetError):
            asking(model, row.inputs, row.assume, budget_s=5.0)

    ask()  # packages import modules when they first need them
    assert left(model, ask) == []


# ---- the oracle sees each kind of change


CHANGES: Final[dict[str, Callable[[Any], object]]] = {
    "elements": lambda m: m.p.weight.data.add_(1),
    "elements of a plain tensor": lambda m: m.plain.data.add_(1),
    "elements in a tuple": lambda m: m.deep[0][0].data.add_(1),
    "version": lambda m: m.total.add_(0),
    "requires_grad": lambda m: m.plain.requires_grad_(),
    "grad_fn": lambda m: m.total.add_(m.p.weight.sum()),
    "gradient": lambda m: m.p.weight.grad.add_(1),
    "another gradient": lambda m: setattr(m.p.weight, "grad", torch.ones(3, 3)),
    "no gradient": lambda m: setattr(m.p.weight, "grad", None),
    "hook of a tensor": lambda m: m.p.bias.register_hook(print),
    "hook of a module": lambda m: m.p.register_forward_hook(print),
    "attribute": lambda m: setattr(m, "calls", 7),
    "new attribute": lambda m: setattr(m, "more", 7),
    "order of attributes": lambda m: vars(m).update(calls=vars(m).pop("calls")),
    "set": lambda m: m.names.add("z"),
    "list of the class": lambda m: type(m).seen.append(1),
    "class": lambda m: setattr(m.p, "__class__", nn.Module),
    "another parameter": lambda m: setattr(m.p, "bias", nn.Parameter(m.p.bias.detach().clone())),
    "data": lambda m: setattr(m.p.bias, "data", m.p.bias.data.clone()),
    "attribute of a parameter": lambda m: setattr(m.p.bias, "note", 1),
    "array": lambda m: m.array.__iadd__(1),
    "generator": lambda m: torch.rand(1, generator=m.generator),
    "global": lambda m: globals().update(COUNT=99),
    "random numbers of torch": lambda m: torch.rand(1),
    "random numbers of Python": lambda m: random.random(),
    "random numbers of NumPy": lambda m: np.random.rand(),
    "grad mode": lambda m: torch._C._set_grad_enabled(False),
    "default dtype": lambda m: torch.set_default_dtype(torch.float64),
    "default device": lambda m: torch.set_default_device("cpu"),
    "deterministic": lambda m: torch.use_deterministic_algorithms(True),
    "autocast": lambda m: torch.set_autocast_enabled("cpu", True),
    "threads": lambda m: torch.set_num_threads(torch.get_num_threads() + 1),
    "precision": lambda m: torch.set_float32_matmul_precision("medium"),
    "mode of functions": lambda m: torch.overrides._push_mode(torch.utils._device.DeviceContext("cpu")),
    "warning filters": lambda m: warnings.simplefilter("ignore"),
    "trace function": lambda m: sys.settrace(lambda *args: None),
    "profile function": lambda m: sys.setprofile(lambda *args: None),
    "recursion limit": lambda m: sys.setrecursionlimit(sys.getrecursionlimit() + 1),
    "environment": lambda m: os.environ.update(LEFT_BEHIND="1"),
    "garbage collection": lambda m: gc.disable(),
    "logging": lambda m: logging.disable(logging.root.manager.disable + 1),
    "hook of a gradient": lambda m: m.p.bias.register_post_accumulate_grad_hook(print),
    "hook of a gradient's function": lambda m: m.p.register_full_backward_hook(print),
    "fast path": lambda m: torch.backends.mha.set_fastpath_enabled(False),
    "anomalies": lambda m: torch.set_anomaly_enabled(True),
    "name of a thread's": lambda m: threading.settrace(print),
    "name of mathematics": lambda m: setattr(math, "sqrt", math.sqrt.__call__),
    "name of NumPy": lambda m: setattr(np, "sum", np.sum.__call__),
    "method of operators": lambda m: setattr(HigherOrderOperator, "__call__", print),
    "method of containers": lambda m: setattr(nn.ModuleList, "__getitem__", print),
    "vmap": lambda m: setattr(torch.func, "vmap", print),
    "method of ShapeEnvs": lambda m: setattr(ShapeEnv, "_log_guard", print),
    "name of torch": lambda m: setattr(torch, "relu", torch.relu.__call__),
    "name of a functional": lambda m: setattr(nn.functional, "relu", torch.relu),
    "method of tensors": lambda m: setattr(torch.Tensor, "relu", torch.relu),
    "name of Python": lambda m: setattr(builtins, "abs", lambda x: x),
    "new name of Python": lambda m: setattr(builtins, "length", len),
}


@pytest.fixture
def undone() -> Iterator[None]:
    """What a planted change does to torch and Python, by hand."""
    names = [
        (torch, "relu"), (nn.functional, "relu"), (torch.Tensor, "relu"), (builtins, "abs"), (math, "sqrt"),
        (np, "sum"), (HigherOrderOperator, "__call__"), (nn.ModuleList, "__getitem__"), (torch.func, "vmap"),
        (ShapeEnv, "_log_guard"), (threading, "_trace_hook"),
    ]  # fmt: skip
    saved = [(holder, name, getattr(holder, name)) for holder, name in names]
    with surroundings.surroundings_kept():
        yield
    for holder, name, value in saved:
        setattr(holder, name, value)
    vars(builtins).pop("length", None)
    Everywhere.seen.clear()
    globals().update(COUNT=0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.usefixtures("undone")
def test_a_planted_change_is_seen(change: str) -> None:
    model = Everywhere()
    found = left(model, lambda: CHANGES[change](model))
    sys.settrace(None)
    sys.setprofile(None)
    assert found != []


def test_no_change_is_seen_where_there_is_none() -> None:
    model = Everywhere()
    assert left(model, lambda: None) == []


def test_without_stand_ins_writes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held.StandIns, "of", lambda self, tensor: tensor)
    model = Cache()
    found = left(model, lambda: check(model, "x: [b, t, 4]"))
    assert any("autograd" in name for name in found) and any("version" in name for name in found)


# ---- every setting that is kept


@pytest.mark.parametrize("setting", surroundings.SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_that_is_written_is_what_was_read(setting: surroundings.Surrounding) -> None:
    before = setting.read()
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        setting.write(before)  # other tests may have frozen the flags of back ends
    assert setting.read() == before
