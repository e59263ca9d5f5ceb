"""torch.fx graphs as targets: annotations in every form, claims inside programs, and the tracer."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, symbolic_trace
from torch.fx.tensor_type import Dyn, TensorType

from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.readers.fx import ShapeTracer, TracedPath
from anyshape.tracer.readers.tensor_types import from_torch, to_torch
from anyshape.tracer.recording.binding import NotCallable
from anyshape.typecheck import Code, Report, Verdict, assert_shape, check, reveal_shape
from anyshape.typecheck.checking.api import default_rules


def found(report: Report, code: Code) -> list[str]:
    return [f.message for f in report.findings if f.code is code]


# ---- annotations


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 6, 5)
        self.norm = torch.nn.BatchNorm2d(6).eval()

    def forward(self, x):
        return self.norm(self.conv(x)) * 2


def annotated(module: torch.nn.Module, types: dict[str, object]) -> GraphModule:
    graph_module = symbolic_trace(module)
    for node in graph_module.graph.nodes:
        node.type = types.get(node.name, node.type)
    return graph_module


def test_tensor_types_on_inputs() -> None:
    report = check(annotated(Block(), {"x": TensorType((4, 3, Dyn, Dyn))}))
    assert report.verdict is Verdict.REFINED
    assert str(report.accepts) == "5 <= _1 and 5 <= _2"
    assert str(report.outputs[0].value) == "float32[4, 6, _1 - 4, _2 - 4]"


@pytest.mark.parametrize("text", ["float32[b, 3, h, w]", 'Float[Tensor, "b 3 h w"]'])
def test_texts_on_inputs(text: str) -> None:
    report = check(annotated(Block(), {"x": text}))
    assert str(report.accepts) == "5 <= h and 5 <= w"


def test_an_inner_annotation_is_a_requirement() -> None:
    sizes = TensorType((Dyn, 3, Dyn, Dyn))
    report = check(annotated(Block(), {"x": sizes, "conv": TensorType((Dyn, 6, Dyn, 8))}))
    assert report.verdict is Verdict.REFINED
    assert report.accepts.holds(_1=2, _2=9, _3=12) and not report.accepts.holds(_1=2, _2=9, _3=13)
    assert report.replayed  # the claim is checked where examples are tried
    wrong = check(annotated(Block(), {"x": sizes, "conv": TensorType((Dyn, 6, Dyn))}))
    assert wrong.verdict is Verdict.REFUTED
    of_output = check(annotated(Block(), {"x": sizes, "output": TensorType((Dyn, 7, Dyn, Dyn))}))
    assert of_output.verdict is Verdict.REFUTED


@pytest.mark.parametrize("text, verdict", [
    ("float32[_, 6, _, _]", Verdict.REFINED), ('Float[Tensor, "b 6 h w"]', Verdict.REFINED),
    ("[b, 7, h, w]", Verdict.REFUTED), ("torch.Tensor", Verdict.REFINED), ("list[int]", Verdict.REFINED),
])  # fmt: skip
def test_inner_annotations_as_texts(text: str, verdict: Verdict) -> None:
    types = {"x": TensorType((Dyn, 3, Dyn, Dyn)), "conv": text}
    assert check(annotated(Block(), types)).verdict is verdict


@pytest.mark.parametrize("annotation", [Dyn, None, torch.Tensor])
def test_what_says_nothing_is_a_tensor_of_any_rank(annotation: object) -> None:
    report = check(annotated(Block(), {"x": annotation}))
    assert report.inputs == ("x: float32[*x]",)
    assert report.verdict is Verdict.REFINED and report.accepts.formula is not True
    assert "6, x[-2] - 4, x[-1] - 4]" in str(report.outputs[-1].value)


def test_annotations_of_a_module_without_a_graph() -> None:
    class Annotated(Block):
        def forward(self, x: TensorType((Dyn, 3, 9, Dyn))):
            return super().forward(x)

    Annotated.forward.__annotations__["x"] = TensorType((Dyn, 3, 9, Dyn))
    assert str(check(Annotated()).accepts) == "5 <= _2"


def test_indices_and_masks_get_their_dtype() -> None:
    class Lookup(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(10, 4)

        def forward(self, x, mask):
            return self.table(x.view(-1, x.size(1))).masked_fill(mask, 0.0)

    report = check(annotated(Lookup(), {"x": TensorType((Dyn, 3)), "mask": TensorType((Dyn, 3, 1))}))
    assert report.inputs == ("x: int64[_1, 3]", "mask: bool[_2, 3, 1]")
    assert report.accepts.holds(_1=4, _2=4) and not report.accepts.holds(_1=4, _2=3)


@pytest.mark.parametrize("annotation", [
    TensorType((1, 2, Dyn)), TensorType(()), Dyn, int, float, bool, tuple[TensorType((1,)), Dyn],
])  # fmt: skip
def test_types_go_there_and_back(annotation: object) -> None:
    assert to_torch(from_torch(annotation)) == annotation


def test_what_a_graph_raises_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    class Fails(torch.nn.Module):
        def forward(self, x):
            return torch.bmm(x, x)

    report = check(symbolic_trace(Fails()), "x: [b, h, w]")
    assert str(report.accepts) == "h == w" and report.findings[0].evidence
    assert not capfd.readouterr().err


def test_hooks_of_a_graph_run() -> None:
    sizes = {"input": {0: torch.export.Dim("b", min=2, max=9)}}
    exported = torch.export.export(torch.nn.ReLU(), (torch.ones(4, 2),), dynamic_shapes=sizes)
    report = check(exported.module(), "input: [b, h]")
    assert report.accepts.holds(b=9, h=2) and not report.accepts.holds(b=4, h=3)
    assert not found(report, Code.INTERNAL_ERROR)


# ---- claims in a program


def test_a_claim_is_a_requirement_and_names_are_those_of_the_spec() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = assert_shape(x.flatten(1), "b n")
        return assert_shape(y, "n ...").sum() + x.sum()

    report = check(program, "x: [b, c, h]; y: [m, k]")
    assert report.verdict is Verdict.REFINED
    assert report.accepts.holds(b=2, c=3, h=4, m=12, k=1)
    assert not report.accepts.holds(b=2, c=3, h=4, m=11, k=1)
    assert report.replayed and not found(report, Code.INTERNAL_ERROR)


@pytest.mark.parametrize("claim, accepted", [
    ("b c h", "True"), ("b, c, h", "True"), ("[b, _, ?]", "True"), ("b ...", "True"), ("... h", "True"),
    ("b c", "False"), ("b ... c h w", "False"), ("b 3 h", "c == 3"), ("b c 2*c", "2*c == h"),
    ("b n n", "c == h"),
    ("c ...", "b == c"), ("...", "True"), ("b _ c+1", "c + 1 == h"),
])  # fmt: skip
def test_claims(claim: str, accepted: str) -> None:
    report = check(lambda x: assert_shape(x, claim), "x: [b, c, h]")
    assert str(report.accepts) == accepted
    assert not found(report, Code.INTERNAL_ERROR)


@pytest.mark.parametrize("claim, runs, fails", [
    ("b h", (2, 3), (2, 3, 4)), ("b 3", (2, 3), (2, 4)), ("... 3", (4, 2, 3), (2, 4)), ("", (), (1,)),
    ("b ... b", (3, 1, 3), (3, 1, 2)), ("2 3 ...", (2, 3), (3, 2)), ("n n", (4, 4), (4, 5)),
])  # fmt: skip
def test_claims_on_tensors_of_any_rank(claim: str, runs: tuple[int, ...], fails: tuple[int, ...]) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return assert_shape(x, claim) * 2

    report = check(program, "x: [...]")
    assert report.verdict is Verdict.REFINED and not found(report, Code.INTERNAL_ERROR), report
    assert report.replayed
    for sizes, verdict in ((runs, Verdict.PROVED), (fails, Verdict.REFUTED)):
        assert check(program, f"x: [{', '.join(map(str, sizes))}]").verdict is verdict
        dims = [f"x[{i}] == {n}" for i, n in enumerate(sizes)]
        assert check(program, "x: [...]", [f"rank(x) == {len(sizes)}", *dims]).verdict is verdict


def test_a_claim_is_the_identity_when_the_program_runs() -> None:
    x = torch.ones(2, 3)
    assert assert_shape(x, "b 7") is x and reveal_shape(x) is x


@pytest.mark.parametrize("claim", ["b h +", "... b ...", "b n+1", "b;h"])
def test_a_claim_that_is_none_is_told(claim: str) -> None:
    """The program raises it, and is refused for that."""
    (message,) = found(check(lambda x: assert_shape(x, claim), "x: [b, c]"), Code.RAISES)
    assert message.startswith("SpecError") and claim in message


def test_a_shape_is_revealed_at_its_line() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return reveal_shape(x.view(x.shape[0], -1, 2)) + 1

    report = check(program, "x: [b, 2*h]")
    (told,) = [f for f in report.findings if f.code is Code.REVEALED]
    assert told.message == "the value is float32[b, h, 2]"
    assert "reveal_shape" in told.origin.code
    assert report.verdict is Verdict.PROVED


def test_claims_are_imported_without_torch() -> None:
    code = (
        "import sys; from anyshape.typecheck import assert_shape, reveal_shape; assert_shape(1, 'b h'); "
        "assert not {'torch', 'z3', 'sympy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- the tracer


def traced(target: object, inputs: str, assume: str = "") -> TracedPath:
    spec = parse_spec(inputs, assume)
    return ShapeTracer(spec, default_rules(), DomainOracle(spec.domain)).trace_all(target)  # type: ignore[arg-type]


class Shapely(torch.nn.Module):
    """All that torch's own tracer refuses, or freezes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)
        self.rnn = torch.nn.LSTM(4, 4)

    def forward(self, x):
        b, t, c = x.shape
        assert len(x.shape) == 3 and c == 8
        y = self.linear(x) if b > 0 else x
        if t > 4:
            y = y.view(b * t, -1)
        for i in range(x.size(2)):
            y = y + i
        if isinstance(b, int):
            y = torch.relu(y)
        if y.dim() == 5:
            y = y.sum()
        rows, _ = self.rnn(y)
        return rows.reshape(b, -1)


def test_the_tracer_follows_what_a_program_asks_of_shapes() -> None:
    way = traced(Shapely(), "x: [b, t, 8]")
    assert [(str(c.formula), c.taken, c.forced) for c in way.conditions] == [
        ("1 <= b", True, True), ("5 <= t", True, False),
    ]  # fmt: skip
    assert str(way.premise) == "5 <= t" and len(way.open) == 1
    assert all("test_fx.py" in c.origin.file for c in way.conditions)
    original = Shapely()
    original.load_state_dict(way.graph_module.state_dict())
    for sizes in ((2, 5, 8), (3, 7, 8), (1, 9, 8)):
        x = torch.randn(sizes)
        assert torch.equal(original(x), way.graph_module(x))


def test_a_branch_that_the_domain_decides_is_gone() -> None:
    way = traced(Shapely(), "x: [b, t, 8]", "t <= 3")
    assert not way.open and "view" not in way.graph_module.code and way.premise is True


def test_in_place_calls_stay_though_nothing_uses_their_results() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        y.add_(2)
        if y.shape[0] > 3:
            y.mul_(3)
        return y

    way = traced(program, "x: [b]", "b >= 4")
    x = torch.randn(5)
    assert torch.equal(way.graph_module(x), program(x))


def _asks_what_things_are(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    if mask is not None:
        x = x * mask
    if not isinstance(x, torch.Tensor) or not torch.is_tensor(x):
        return x
    if x.dtype is not torch.float32 or not isinstance(x.shape, torch.Size | tuple):
        return -x
    return x + 1 if isinstance(x.shape[0], int) and not isinstance(x, torch.nn.Parameter) else x - 1


class _Buffered(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(5, 5) for _ in range(2)])
        self.register_buffer("table", torch.arange(10.0).view(2, 5))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        self.seen = x
        return x + self.table[:1, : x.shape[1]]


@pytest.mark.parametrize("program, inputs", [
    (lambda x: x + torch.arange(x.shape[1]), "x: [b, t]"),
    (lambda x: x + torch.zeros(x.shape[0], x.shape[1]), "x: [b, t]"),
    (lambda x: x + torch.ones((x.shape[0], 1)) + torch.full(x.shape, 2.0), "x: [b, t]"),
    (lambda x: torch.cat([-row for row in x]), "x: [3, t]"),
    (lambda x: x.new_zeros(x.shape[0], 2), "x: [b, t]"),
    (lambda x: x[:, : x.shape[1] // 2], "x: [b, t]"),
    (lambda x: torch.softmax(x, -1) * (x.shape[-1] ** -0.5), "x: [b, t]"),
    (lambda x: x.transpose(*range(x.dim())).reshape(-1), "x: [b, t]"),
    (_asks_what_things_are, "x: [b, t]"), (_asks_what_things_are, "x: [b, t]; mask=None"),
    (_Buffered(), "x: [b, 5]"),
])  # fmt: skip
def test_graphs_compute_what_the_program_does(program: Any, inputs: str) -> None:
    way = traced(program, inputs)
    assert not way.open
    x = torch.randn(3, 5)
    given = (x, None) if "mask" in inputs else (x,)
    assert not hasattr(program, "seen")  # the model is left as it was
    assert torch.equal(way.graph_module(*given), program(x))


def test_what_cannot_be_traced_is_told() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("size")

    with pytest.raises(NotCallable, match="program cannot be traced: KeyError: 'size'"):
        traced(program, "x: [b]")


def test_cond_on_sizes_is_a_branch() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.shape[0] > 2, lambda x: x + 1, lambda x: x - 1, (x,))

    exported = torch.export.export(
        _Called(program), (torch.ones(5, 2),), dynamic_shapes={"x": {0: torch.export.Dim("b", min=3)}}
    )
    way = traced(exported.module(), "x: [b, 2]", "b >= 3")
    assert "cond" not in way.graph_module.code


class _Called(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_cond_in_a_program_is_a_branch() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.shape[0] > 2, torch.relu, torch.tanh, (x,))

    assert "tanh" in traced(program, "x: [b]", "b <= 2").graph_module.code
