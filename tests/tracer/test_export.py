"""Live exported programs: read as their archives are, and judged by eager runs."""

from __future__ import annotations

import collections
import dataclasses
import operator
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from msgspec import structs
from torch import nn
from torch.export import Dim, ExportedProgram, export
from torch.utils import _pytree as pytree

from anyshape.constraints.ir.language import Constraint, Tensor
from anyshape.constraints.ir.program import Node, Origin, Program
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import Path as WayThrough
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import free_symbols, holds, le
from anyshape.tracer.host.operators import INSTALLED
from anyshape.tracer.readers import export as live
from anyshape.tracer.readers import pt2
from anyshape.tracer.readers.exported import GraphError, origin
from anyshape.tracer.readers.graph import Traced, retype, system
from anyshape.typecheck import Code, Verdict, check

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "fixtures"))
import releases
from make import PROGRAMS, UNet
from noted_sizes import disagreements

FIXTURES = Path(__file__).parent / "fixtures"
AUTO = Dim.AUTO


@cache
def exported(name: str) -> ExportedProgram:
    return PROGRAMS[name].export()


def read(model: nn.Module, args: tuple[Any, ...], dynamic: Any = None, **kwargs: Any) -> Traced:
    traced = live.read(export(model, args, kwargs, dynamic_shapes=dynamic))
    traced.program.verify()
    return traced


def saved(program: ExportedProgram, folder: Path) -> Traced:
    torch.export.save(program, folder / "saved.pt2")
    return pt2.read(folder / "saved.pt2")


def same(a: Traced, b: Traced) -> None:
    """Node by node, so that a failure says where."""
    for mine, theirs in zip(a.program.nodes, b.program.nodes, strict=True):
        assert mine == theirs
    assert a.program == b.program
    assert (a.spec, a.limits, a.unread, a.example) == (b.spec, b.limits, b.unread, b.example)
    assert a.recorded.keys() == b.recorded.keys()
    for id, noted in a.recorded.items():
        assert noted() == b.recorded[id]()


# ---- the two readers agree


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_archive_is_read_as_the_live_program_is(name: str, tmp_path: Path) -> None:
    same(live.read(exported(name)), saved(exported(name), tmp_path))


def test_the_readers_can_disagree(tmp_path: Path) -> None:
    program = live.read(exported("unet"))
    other = structs.replace(program.program.nodes[3], op="other")
    changed = replace(program.program, nodes=(*program.program.nodes[:3], other, *program.program.nodes[4:]))
    with pytest.raises(AssertionError):
        same(replace(program, program=changed), saved(exported("unet"), tmp_path))


def unplaced(program: Program) -> Program:
    """Without folders and line numbers, so that the script's layout does not matter."""

    def short(node: Node) -> Node:
        where = replace(node.origin, file=Path(node.origin.file).name, line=0)
        return structs.replace(node, origin=where)

    return replace(program, nodes=tuple(map(short, program.nodes)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fixtures_are_what_their_script_makes(name: str) -> None:
    fixture = pt2.read(FIXTURES / f"{name}.pt2")
    if "decomposed" in name and fixture.release != INSTALLED:
        pytest.skip("another release decomposes into other operators")
    assert unplaced(live.read(exported(name)).program) == unplaced(fixture.program)


@pytest.mark.parametrize("name", releases.PROGRAMS)
def test_the_fixtures_of_a_release_are_what_it_writes(name: str, tmp_path: Path) -> None:
    path = releases.archive(name, ".".join(torch.__version__.split(".")[:2]))
    if not path.exists():
        pytest.skip(f"no archives of torch {torch.__version__} are kept")
    program = releases.PROGRAMS[name].export()
    same(live.read(program), saved(program, tmp_path))
    assert unplaced(live.read(program).program) == unplaced(pt2.read(path).program)


# ---- what eager does


def model_accepts(way: WayThrough, values: dict[str, int]) -> bool:
    return all(
        holds(c.formula, values)
        for c in way.constraints
        if c.kind == "model" and free_symbols(c.formula) <= values.keys()
    )


def eager_accepts(model: nn.Module, *sizes: tuple[int, ...]) -> bool:
    try:
        model(*(torch.zeros(size) for size in sizes))
    except RuntimeError:
        return False
    return True


def both_seen(pairs: Iterator[tuple[bool, bool]]) -> None:
    """The two sides of each pair agree, and both answers occur."""
    seen = collections.Counter(pairs)
    assert seen.keys() == {(True, True), (False, False)}, seen


def test_the_model_needs_what_eager_needs() -> None:
    (way,) = system(live.read(exported("unet")), default_rules, parse_spec("x: [b, 3, h, w]", "0 <= b")).paths
    model = UNet()
    both_seen(
        (model_accepts(way, {"b": b, "h": h, "w": w}), eager_accepts(model, (b, 3, h, w)))
        for b, w, hs in ((1, 16, range(1, 42)), (0, 8, (7, 8, 16)), (2, 12, (8, 12)))
        for h in hs
    )


def test_a_static_export_needs_no_more_where_nothing_is_written_out() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.pool = nn.Conv2d(3, 4, 5, 2), nn.MaxPool2d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.pool(self.conv(x)).mean((2, 3))

    (way,) = system(
        read(Net(), (torch.zeros(2, 3, 64, 64),)), default_rules, parse_spec("x: [b, 3, h, w]")
    ).paths
    model = Net()
    both_seen(
        (model_accepts(way, {"b": 1, "h": h, "w": w}), eager_accepts(model, (1, 3, h, w)))
        for h in range(1, 20)
        for w in (8, 9, 13)
    )
    assert {str(c.formula) for c in way.constraints if c.kind == "trace"} == {"b == 2", "h == 64", "w == 64"}


def test_the_export_refuses_what_its_limits_refuse() -> None:
    """A batch of 1 is refused by neither: that torch takes 1 apart is no limit."""

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[1] % 4 == 0 and x.shape[1] > 8:
                return x * 2
            return x + 1

    program = export(Net(), (torch.zeros(3, 16),), dynamic_shapes={"x": {0: AUTO, 1: Dim.AUTO(max=40)}})
    traced = retype(live.read(program), parse_spec("x: [b, t]"))
    runs = program.module()

    def allowed(b: int, t: int) -> bool:
        try:
            runs(torch.zeros(b, t))
        except (AssertionError, RuntimeError):
            return False
        return True

    both_seen(
        (all(holds(c.formula, {"b": b, "t": t}) for c in traced.limits), allowed(b, t))
        for b in (1, 2, 7)
        for t in range(1, 60)
    )


# ---- operators that torch alone knows


@torch.library.custom_op("anyshape_tests::halve", mutates_args=())
def halve(x: torch.Tensor, times: int) -> torch.Tensor:
    return x[: x.shape[0] // 2].clone()


@halve.register_fake
def _(x: torch.Tensor, times: int) -> torch.Tensor:
    return x.new_empty(x.shape[0] // 2, *x.shape[1:])


class Custom(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.anyshape_tests.halve(x, 1) * 2


def test_torchs_own_result_stands_in_for_a_rule() -> None:
    traced = read(Custom(), (torch.zeros(8, 3),), {"x": {0: AUTO}})
    (way,) = system(traced, default_rules, parse_spec("x: [n, 3]")).paths
    assert [(note.code, note.reason.split()[0]) for note in way.notes] == [
        ("approximate", "anyshape_tests::halve")
    ]
    assert str(way.values[traced.program.nodes[-1].results[0]]) == "float32[n//2, 3]"


def test_a_rule_of_the_users_is_taken() -> None:
    def rule(c: object, x: Tensor, times: int) -> Tensor:
        return Tensor((x.shape[0] // 2, *x.shape[1:]), x.dtype)

    traced = read(Custom(), (torch.zeros(8, 3),), {"x": {0: AUTO}})
    (way,) = system(traced, default_rules + {"anyshape_tests::halve": rule}, parse_spec("x: [n, 3]")).paths
    assert not way.notes


# ---- inputs and outputs of all kinds


class Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


@dataclasses.dataclass
class Fields:
    u: torch.Tensor
    v: torch.Tensor | None = None


pytree._register_namedtuple(Pair, serialized_type_name="anyshape_tests.Pair")
torch.export.register_dataclass(Fields, serialized_type_name="anyshape_tests.Fields")


class Nested(nn.Module):
    def forward(self, p: Pair, d: dict[Any, torch.Tensor], o: list[Any], c: Fields) -> Any:
        return Pair(p.a + 1, p.b), collections.OrderedDict(k=d[3] + 1), Fields(c.u + 1)


class Variadic(nn.Module):
    def forward(self, x: torch.Tensor, *xs: torch.Tensor, n: int, **kw: torch.Tensor) -> Any:
        return x + xs[0] + n, kw["z"], {"a": xs[1].sum()}


def test_nested_inputs_and_outputs_are_named_by_their_places(tmp_path: Path) -> None:
    one = torch.ones(2)
    args = (Pair(one, one), {3: one, "x y": one}, [one, (one, None)], Fields(one))
    program = export(Nested(), args)
    traced = live.read(program)
    same(traced, saved(program, tmp_path))
    assert [d.path for d in traced.spec.inputs] == [
        ("p", "a"),
        ("p", "b"),
        ("d", 3),
        ("d", "x y"),
        ("o", 0),
        ("o", 1, 0),
        ("o", 1, 1),
        ("c", "u"),
    ]
    assert [name for name, _ in traced.program.outputs] == ["0.a", "0.b", "1.k", "2.u"]
    assert traced.spec.inputs[6].type is None


def test_variadic_inputs_are_declared_as_the_recorder_has_them(tmp_path: Path) -> None:
    one = torch.ones(3)
    program = export(Variadic(), (one, one, one), {"n": 4, "z": one})
    traced = live.read(program)
    same(traced, saved(program, tmp_path))
    spec = parse_spec("x: [3]; xs[0]: [3]; xs[1]: [3]; n=4; z: [k]")
    assert {str(c.formula) for c in retype(traced, spec).limits} == {"k == 3"}


def test_containers_that_cannot_be_saved_are_read_live() -> None:
    class Top(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x.topk(2)

    assert [name for name, _ in read(Top(), (torch.ones(5),)).program.outputs] == ["0", "1"]


def test_no_result_at_all() -> None:
    class Nothing(nn.Module):
        def forward(self, x: torch.Tensor) -> None:
            x + 1

    assert [argument for _, argument in read(Nothing(), (torch.ones(5),)).program.outputs] in ([None], [])


def test_results_that_nothing_uses_and_some_that_are_used_twice(tmp_path: Path) -> None:
    class Split(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            parts = x.split(2)
            values, _ = x.sort()
            return parts[1] + parts[1], values

    program = export(Split(), (torch.ones(7),))
    traced = live.read(program)
    same(traced, saved(program, tmp_path))
    assert [len(node.results) for node in traced.program.nodes] == [4, 2, 1]


def test_in_place_operators_and_buffers(tmp_path: Path) -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen.add_(1)
            y = x.clone().unsqueeze_(0)
            y.mul_(2).relu_()
            return y + self.seen

    for program in (
        export(Counter(), (torch.ones(4, 3),)),
        export(Counter(), (torch.ones(4, 3),)).run_decompositions(),
    ):
        traced = live.read(program)
        same(traced, saved(program, tmp_path))
        assert len(traced.program.outputs) == 1
        compared, found = disagreements(traced, default_rules)
        assert compared and not found


def test_a_branch_on_a_size_that_an_operator_takes_goes_the_way_of_the_trace() -> None:
    class Squeeze(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.squeeze(0).sum(-1)

    for size, rank, limit in ((1, 1, "b == 1"), (4, 2, "b != 1")):
        traced = read(Squeeze(), (torch.zeros(size, 3, 5),))
        (way,) = system(traced, default_rules, parse_spec("x: [b, 3, 5]")).paths
        assert not way.notes
        result = way.values[traced.program.nodes[-1].results[0]]
        assert isinstance(result, Tensor) and result.rank == rank
        assert limit in {str(c.formula) for c in way.constraints if c.kind == "trace"}


def test_as_many_results_as_the_trace_took() -> None:
    class Chunks(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x.split(3)

    (way,) = system(read(Chunks(), (torch.zeros(7),)), default_rules, parse_spec("x: [n]")).paths
    traced = [c for c in way.constraints if c.kind == "trace"]
    assert any("the graph takes 3 results" in c.reason for c in traced)


def test_weights_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter without storage is read like any other."""
    with torch.device("meta"):
        traced = read(nn.Linear(100_000, 100_000), (torch.zeros(1, 100_000),))
    weight = next(i for i in traced.program.inputs if i.name == "weight")
    assert weight.type == Tensor((100_000, 100_000)) and weight.parameter


def test_a_layout_that_is_not_contiguous_is_kept() -> None:
    traced = read(nn.Conv2d(3, 4, 3), (torch.zeros(2, 3, 8, 8).to(memory_format=torch.channels_last),))
    (x,) = traced.spec.inputs
    assert isinstance(x.type, Tensor) and x.type.layout == (192, 1, 24, 3)


def test_a_signature_that_does_not_fit_is_refused() -> None:
    program = export(nn.ReLU(), (torch.zeros(2),))
    program.graph_signature.input_specs.append(program.graph_signature.input_specs[0])
    with pytest.raises(GraphError):
        live.read(program)


# ---- origins

TRACE = """File "/home/me/model.py", line 7, in forward
    return self.net(x)
  File "/env/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)"""
ORIGINS: list[tuple[str, Origin]] = [
    (TRACE, Origin("/home/me/model.py", 7, "forward", "net", "return self.net(x)")),
    (TRACE.split("\n", 2)[2], Origin(module="net")),
    ('File "torch/fx/passes/runtime_assert.py", line 24, in insert', Origin(module="net")),
    ('File "a.py", line 3, in f\n  File "b.py", line 4, in g', Origin("b.py", 4, "g", "net")),
    ("nonsense", Origin(module="net")),
    ("", Origin(module="net")),
]


@pytest.mark.parametrize("stack_trace, expected", ORIGINS)
def test_the_innermost_line_of_the_users(stack_trace: str, expected: Origin) -> None:
    assert origin(stack_trace, "net") == expected


# ---- what no formula says is told, and not taken to hold


def relu() -> ExportedProgram:
    return export(nn.ReLU(), (torch.zeros(4, 3),), dynamic_shapes=({0: Dim.DYNAMIC},))


def findings(program: ExportedProgram) -> tuple[Verdict, dict[Code, str]]:
    report = check(program)
    return report.verdict, {finding.code: finding.message for finding in report.findings}


def test_a_guard_that_no_formula_says_is_a_limit_of_the_trace() -> None:
    program = relu()
    assert findings(program) == (Verdict.PROVED, {})
    program._guards_code = ["math.isqrt(L['input'].size()[0]) == 2"]
    verdict, told = findings(program)
    assert verdict is Verdict.PROVED and "math.isqrt(input.shape[0]) == 2" in told[Code.TRACE_LIMIT]
    program._guards_code = ["L['input'].stride()[0] == 7"]
    verdict, told = findings(program)
    assert verdict is Verdict.UNKNOWN and "cannot be written as a formula" in told[Code.TRACE_LIMIT]


def test_a_limit_on_a_size_that_the_spec_does_not_speak_of_is_told() -> None:
    """The trace bounds a, of which the spec tells the square only."""
    traced = live.read(relu())
    (given,) = traced.spec.inputs
    (a,) = traced.spec.domain.symbols
    squares = replace(given, type=Tensor((sym(a) * sym(a), 3)))
    limit = Constraint(le(sym(a), 7), "a <= 7", -1, "trace")
    traced = replace(traced, spec=replace(traced.spec, inputs=(squares,)), limits=(limit,))
    fitted = retype(traced, parse_spec("input: [n, 3]"))
    assert fitted.lost == ("a <= 7",)
    (path,) = system(fitted, default_rules).paths
    assert [note.code for note in path.notes] == ["trace-limit"]


@pytest.mark.parametrize("on_data", [False, True])
def test_an_assertion_about_sizes_that_no_formula_says_leaves_the_verdict_open(on_data: bool) -> None:
    program = relu()
    graph = program.graph_module.graph
    (x,) = (node for node in graph.nodes if node.op == "placeholder")
    aten = torch.ops.aten
    with graph.inserting_before(next(node for node in graph.nodes if node.op == "call_function")):
        if on_data:
            total = graph.call_function(aten.sum.default, (x,))
            total.meta["val"] = x.meta["val"].sum()
            number = graph.call_function(aten.item.default, (total,))
            number.meta["val"] = 1.5
        else:
            number = graph.call_function(aten.sym_size.int, (x, 0))
            number.meta["val"] = x.meta["val"].shape[0]
        root = graph.call_function(torch._sym_sqrt, (number,))
        small = graph.call_function(operator.lt, (root, 3.5))
        root.meta["val"], small.meta["val"] = 1.5, True
        graph.call_function(aten._assert_scalar.default, (small, "too many")).meta["val"] = None
    verdict, told = findings(program)
    assert verdict is (Verdict.PROVED if on_data else Verdict.UNKNOWN)
    open_ = any("its assertion is not a formula over sizes" in reason for reason in told.values())
    assert open_ is not on_data
