"""Examples on torch's kernels for tensors without data: what is tried there, what not, and what it finds."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from serving import FIXTURES

from anyshape.constraints.ir.language import Context, Slice, Tensor
from anyshape.constraints.ir.program import Argument, Input, Node, Origin, Program, Ref
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import sym
from anyshape.tracer.readers import archive
from anyshape.typecheck.checking.api import Examined, check, examine, recorded
from anyshape.typecheck.checking.recorded import Recorded
from anyshape.typecheck.checking.sources import TracedSource
from anyshape.typecheck.remote.sending import package
from anyshape.typecheck.replay.replay import RULES, Inconclusive, Ran, RunRefused
from anyshape.typecheck.report.codes import Code
from anyshape.typecheck.service.http import jobs
from anyshape.typecheck.service.ops.settings import Settings
from anyshape.typecheck.service.work import kernels
from anyshape.typecheck.service.work.kernels import HOW, LENIENT, OnKernels, by_kernels
from anyshape.typecheck.service.work.questions import Question, traced
from anyshape.typecheck.service.work.workers import CheckLimits, Worker, WorkerAnswer
from anyshape.typecheck.targets.target import Target

B, H = sym("b"), sym("h")


def one_call(op: str, *more: tuple[str, Argument], results: int = 1) -> Program:
    """A program of one call of `op` with an input [b, h]."""
    made = tuple(range(1, results + 1))
    node = Node(op, (("self", Ref(0)), *more), made, Origin("m.py", 3))
    return Program((Input(0, "x", Tensor((B, H))),), (node,), (("0", Ref(1)),))


HALVES = one_call("view", ("size", (B, 2, H // 2)))


def tried(given: Program, rules: object = default_rules, *, on_kernels: bool = True) -> Examined:
    target = Target("m", "traced", traced(given))
    return examine(target, rules=rules, trying=OnKernels if on_kernels else None)  # type: ignore[arg-type]


def at(given: Program, **sizes: int) -> object:
    """What the kernels do with a program at these sizes, told by its rules or not."""
    source = TracedSource(Target("m", "traced", traced(given)), None, ())
    source.rules = default_rules
    return by_kernels(source.at(sizes), sizes)


def test_an_input_that_cannot_be_made_is_not_tried() -> None:
    huge = Program((Input(0, "x", Tensor((B, 1 << 62))),), (), (("0", Ref(0)),))
    found = at(huge, b=8)
    assert isinstance(found, Inconclusive)
    assert "cannot be made" in found.reason


def test_a_right_rule_is_confirmed() -> None:
    report = tried(HALVES).report
    assert (report.verdict, report.replayed) == ("refined", HOW)


def too_generous(c: Context, input: Tensor, size: tuple[object, ...]) -> Tensor:
    return Tensor(size, input.dtype)  # type: ignore[arg-type]


def too_strict(c: Context, input: Tensor) -> Tensor:
    c.refuse("no tensor at all is taken")
    return input


def test_a_rule_that_accepts_too_much_is_found_out() -> None:
    wrong = default_rules + {"view": too_generous}
    assert tried(HALVES, wrong, on_kernels=False).report.verdict == "proved"
    report = tried(HALVES, wrong).report
    assert report.verdict == "unknown"
    (finding,) = [f for f in report.findings if f.code is Code.INTERNAL_ERROR]
    told = "should run, but it is refused (on torch's kernels for tensors without data): RuntimeError"
    assert told in finding.message
    assert finding.origin.line == 3


def test_a_rule_that_refuses_too_much_is_doubted() -> None:
    """The kernels check less than others do, so that this is no proof."""
    report = tried(one_call("relu"), default_rules + {"relu": too_strict}).report
    assert report.verdict == "refuted"
    doubts = [f.message for f in report.findings if f.code is Code.NOT_REPLAYED]
    assert doubts
    assert all(LENIENT in doubt for doubt in doubts)


@pytest.mark.parametrize(
    "op", ["mylib::relu", "from_file", "save", "__class__", "overloads", "os.system", "aten.relu", "__name__"]
)
def test_names_of_a_program_are_looked_up_in_the_table_alone(op: str) -> None:
    outcome = at(one_call(op), b=2, h=3)
    assert isinstance(outcome, Inconclusive)
    assert "is not an operator of ATen" in outcome.reason


def test_what_reaches_for_more_than_tensors_is_not_in_the_table() -> None:
    names = {name for named in kernels.kernels().values() for name in named}
    assert len(names) > 1000
    assert names.isdisjoint({"from_file", "save"})
    assert {"add", "conv2d", "softmax", "aten_embedding", "sym_size"} <= kernels.kernels().keys()


def test_what_is_not_tried_is_told() -> None:
    report = tried(one_call("mylib::relu"), default_rules + {"mylib::relu": lambda c, self: self}).report
    assert report.verdict == "proved"
    assert report.replayed.startswith(RULES)
    assert "mylib::relu is not an operator of ATen" in report.replayed


@pytest.mark.parametrize(
    "given, sizes, expected",
    [
        (HALVES, {"b": 2, "h": 4}, Ran),
        (HALVES, {"b": 2, "h": 3}, RunRefused),
        (one_call("mul", ("other", 2)), {"b": 2, "h": 3}, Ran),
        (one_call("cat_of_none"), {"b": 2, "h": 3}, Inconclusive),
        (one_call("sum", ("dim", -1), ("keepdim", True)), {"b": 2, "h": 3}, Ran),
        (one_call("sum", ("dim", 2)), {"b": 2, "h": 3}, RunRefused),
        (one_call("to", ("dtype", "float16")), {"b": 2, "h": 3}, Ran),
        (one_call("to", ("dtype", "__class__")), {"b": 2, "h": 3}, Inconclusive),
        (one_call("getitem", ("index", (Slice(None, None, 2), -1))), {"b": 2, "h": 3}, Ran),
        (one_call("getitem", ("index", (0, 3))), {"b": 2, "h": 3}, RunRefused),
        (one_call("chunk", ("chunks", 2), results=2), {"b": 2, "h": 3}, Ran),
        (one_call("chunk", ("chunks", 2), results=2), {"b": 1, "h": 3}, Inconclusive),
        (one_call("item"), {"b": 1, "h": 1}, Inconclusive),
        (one_call("unflatten", ("dim", 1), ("sizes", (-1, 2))), {"b": 2, "h": 3}, RunRefused),
    ],
)
def test_calls(given: Program, sizes: dict[str, int], expected: type) -> None:
    assert isinstance(at(given, **sizes), expected)


def test_a_recorded_program_is_tried_along_the_way_that_it_takes() -> None:
    def target(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 3:
            raise ValueError("too many")
        return torch.nn.functional.linear(x, torch.ones(4, 8))

    report = examine(recorded(target, "x: float32[b, h]").target("m"), trying=OnKernels).report  # type: ignore[arg-type]
    assert (report.verdict, report.replayed) == ("refined", HOW)
    assert report.stats["replays"] > 4


@pytest.mark.parametrize(
    "given, expected", [({}, True), ({"memory_mb": 512}, False), ({"kernels": False}, False)]
)
def test_they_are_a_setting_and_need_memory(given: dict[str, int], expected: bool) -> None:
    settings = Settings(**given)  # type: ignore[arg-type]
    assert jobs.question(settings).kernels is expected
    assert jobs.question(settings, replay=False).kernels is False


# ---- in the process of a check


def asked(worker: Worker, **more: object) -> dict[str, object]:
    with (FIXTURES / "bert.pt2").open("rb") as file:
        content = zlib.compress(archive.read_bytes(file, "model", "bert.pt2"))
    question = Question(**more).to_json()  # type: ignore[arg-type]
    outcome = worker.ask("pt2", content, question, CheckLimits(120.0, 2048), lambda step: True)
    assert isinstance(outcome, WorkerAnswer)
    return outcome.data["report"]  # type: ignore[no-any-return]


@pytest.mark.skipif(not Path("/proc").exists(), reason="what a process has loaded is read from /proc")
def test_the_process_of_a_check_loads_torch_for_this_alone() -> None:
    worker = Worker()
    try:
        report = asked(worker)
        assert "libtorch" not in Path(f"/proc/{worker.pid}/maps").read_text()
        assert report["replayed"] == RULES
        report = asked(worker, kernels=True)
        assert "libtorch" in Path(f"/proc/{worker.pid}/maps").read_text()
        assert report["replayed"] == HOW
    finally:
        worker.close()


@pytest.mark.parametrize("name", ["bert.pt2", "resnet.pt2", "unet.pt2", "bert_decomposed.pt2"])
def test_saved_models_are_confirmed(name: str) -> None:
    found = examine(FIXTURES / name, trying=OnKernels).report  # type: ignore[arg-type]
    expected = examine(FIXTURES / name).report
    assert (found.verdict, found.accepts, found.replayed) == (expected.verdict, expected.accepts, HOW)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: F.adaptive_avg_pool2d(x, 1),
        lambda x: F.adaptive_max_pool2d(x, 3),
        lambda x: F.avg_pool2d(x, 2, stride=1),
        lambda x: F.max_pool2d(x, 3, padding=1),
        lambda x: F.conv2d(x, torch.ones(2, 3, 3, 3), padding=1, stride=2),
        lambda x: F.unfold(x, 2),
        lambda x: F.pixel_shuffle(F.pad(x, (1, 1))[:, :1].expand(-1, 4, -1, -1), 2),
    ],
)
def test_one_number_for_several_axes_is_repeated(program: Callable[[torch.Tensor], torch.Tensor]) -> None:
    sent = json.loads(package(program, "x: float32[b, 3, h, w]").content)
    target = Recorded.from_json(sent).target("program")
    found = examine(target, trying=OnKernels).report  # type: ignore[arg-type]
    expected = check(program, "x: float32[b, 3, h, w]")
    assert (found.verdict, found.accepts, found.replayed) == (expected.verdict, expected.accepts, HOW)
