"""Migrations: static, principal, maximal and counted; written into graphs and as source."""

from __future__ import annotations

import json
from itertools import islice, product
from math import inf
from typing import Any, TypeAlias

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx import GraphModule, symbolic_trace
from torch.fx.tensor_type import Dyn, TensorType

from anyshape.constraints.ir.lattice import Ranked, is_more_precise, is_static
from anyshape.tracer.readers.tensor_types import from_torch
from anyshape.typecheck import Verdict, infer_symbolic, migrate
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.targets.target_error import TargetError


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 6, 5)
        self.pool = torch.nn.MaxPool2d(2)
        self.linear = torch.nn.Linear(5, 120)

    def forward(self, x):
        return self.linear(self.pool(self.conv(x))).flatten(1)


def graph(module: torch.nn.Module, **types: Any) -> GraphModule:
    graph_module = symbolic_trace(module)
    for node in graph_module.graph.nodes:
        node.type = types.get(node.name, node.type)
    return graph_module


NET = TensorType((Dyn, 3, Dyn, Dyn))


def shape_at(module: torch.nn.Module, *sizes: int) -> tuple[int, ...]:
    with torch.no_grad():
        return tuple(module(torch.zeros(sizes)).shape)


def test_there_is_a_static_migration_and_eager_runs_agree() -> None:
    found = migrate(graph(Net(), x=NET))
    assert found.static is not None and found.is_decided and found.report.replayed
    assert all(map(is_static, found.static.types.values()))
    x, output = found.static.types["x"], found.static.types["output"]
    assert isinstance(x, Ranked) and isinstance(output, Ranked)
    assert shape_at(Net(), *x.dims) == output.dims  # type: ignore[arg-type]


def test_what_all_migrations_share() -> None:
    found = migrate(graph(Net(), x=NET))
    assert found.principal == {
        "x": Ranked((from_torch(Dyn), 3, from_torch(Dyn), from_torch(Dyn))),
        "conv": Ranked((from_torch(Dyn), 6, from_torch(Dyn), from_torch(Dyn))),
        "pool": Ranked((from_torch(Dyn), 6, from_torch(Dyn), 5)),
        "linear": Ranked((from_torch(Dyn), 6, from_torch(Dyn), 120)),
        "flatten": Ranked((from_torch(Dyn), from_torch(Dyn))),
        "output": Ranked((from_torch(Dyn), from_torch(Dyn))),
    }
    assert str(found.types["flatten"]) == "[_1, 720*(_2//2) - 1440]"


def test_there_is_none_and_it_is_told_why() -> None:
    found = migrate(graph(Net(), x=TensorType((Dyn, 4, Dyn, Dyn))))
    assert found.static is None and found.is_decided and not found.types
    assert "there is no static migration" in found.to_text() and "channels" in found.to_text()
    assert not [*found.maximal()] and found.count().number == 0


def test_maximal_migrations_are_the_inputs_that_run() -> None:
    found = migrate(graph(Net(), x=NET), assume="_1 == 2; _2 <= 9; _3 <= 20")
    listed = [(m.sizes["_2"], m.sizes["_3"]) for m in found.maximal()]
    runs = []
    for h, w in product(range(1, 10), range(1, 21)):
        try:
            shape_at(Net(), 2, 3, h, w)
        except RuntimeError:
            continue
        runs.append((h, w))
    assert sorted(listed) == sorted(runs)
    assert [m.sizes for m in found.maximal()] == [m.sizes for m in found.maximal()]  # a stable order
    assert found.count().number == len(runs)
    for one in found.maximal():
        x, output = one.types["x"], one.types["output"]
        assert isinstance(x, Ranked) and isinstance(output, Ranked)
        assert shape_at(Net(), *x.dims) == output.dims  # type: ignore[arg-type]


def test_infinitely_many_come_lazily() -> None:
    found = migrate(graph(Net(), x=NET))
    assert found.count().number == inf and str(found.count()) == "infinitely many"
    first = [m.sizes for m in islice(found.maximal(), 3)]
    assert first == [{"_1": 1, "_2": 6, "_3": 14}, {"_1": 1, "_2": 6, "_3": 15}, {"_1": 1, "_2": 7, "_3": 14}]


def test_types_are_written_to_the_nodes_and_as_source() -> None:
    original = graph(Net(), x=NET)
    found = migrate(original)
    typed = found.graph_module
    assert all(isinstance(node.type, TensorType) for node in typed.graph.nodes)
    assert [n.type for n in original.graph.nodes if n.name == "conv"] == [None]  # the target is left alone
    source = found.source
    assert 'conv: "[_1, 6, _2 - 4, _3 - 4]" = self.conv(x)' in source
    names: dict[str, Any] = {}
    exec(source, {"torch": torch}, names)
    x = torch.randn(2, 3, 8, 14)
    assert torch.equal(names["forward"](original, x), original(x))


def test_a_graph_with_types_of_tuples_compiles() -> None:
    class Several(torch.nn.Module):
        def forward(self, x):
            values, places = x.max(0)
            return torch.chunk(values, 2)[0], places, x.shape[0], x.size()

    found = migrate(graph(Several(), x=TensorType((Dyn, 4))))
    assert str(found.types["max_1"]) == "([4], [4])"
    (several,) = [n for n in found.graph_module.graph.nodes if n.name == "max_1"]
    assert from_torch(several.type) == found.types["max_1"]
    found.graph_module.recompile()
    x = torch.randn(3, 4)
    names: dict[str, Any] = {"torch": torch}
    exec(found.source, names)
    for results in (found.graph_module(x), names["forward"](found.graph_module, x)):
        assert torch.equal(results[0], x.max(0)[0][:2]) and results[2:] == (3, (3, 4))


def test_a_module_is_traced_for_its_source_alone() -> None:
    found = migrate(Net(), "x: [b, 3, h, w]", "w == 14")
    assert str(found.types["linear"]) == "[b, 6, h//2 - 2, 120]"
    assert 'def forward(self, x: "[b, 3, h, 14]"):' in found.source

    class Branching(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] > 3 else x[:, 0]

    found = migrate(Branching(), "x: [b, 7]")
    assert str(found.principal["output"]) == "[Dyn, ...]"
    with pytest.raises(TargetError, match="does not trace"):
        _ = found.source


def test_infer_symbolic_annotates_the_graph_itself() -> None:
    graph_module = graph(Net(), x=NET)
    infer_symbolic(graph_module)
    (conv,) = [n for n in graph_module.graph.nodes if n.name == "conv"]
    assert str(list(conv.type.__args__)) == "[_1, 6, _2 - 4, _3 - 4]"
    batch = {str(n.type.__args__[0]) for n in graph_module.graph.nodes}
    assert batch == {"_1"}
    with pytest.raises(TargetError, match="no static migration"):
        infer_symbolic(graph(Net(), x=TensorType((1, 1, 9, 9))))


# ---- inputs of any rank


def test_any_rank_has_its_principal_type_and_its_migrations_by_rank() -> None:
    found = migrate(torch.nn.Linear(5, 4), "input: [...]")
    assert str(found.principal["input"]) == "[..., 5]" and str(found.principal["output"]) == "[..., 4]"
    assert found.count().number == inf
    first = [str(m.types["input"]) for m in islice(found.maximal(), 7)]
    assert first == ["[5]", "[1, 5]", "[2, 5]", "[3, 5]", "[1, 1, 5]", "[4, 5]", "[1, 2, 5]"]
    for one in islice(found.maximal(), 20):
        x, output = one.types["input"], one.types["output"]
        assert isinstance(x, Ranked) and isinstance(output, Ranked)
        assert shape_at(torch.nn.Linear(5, 4), *x.dims) == output.dims  # type: ignore[arg-type]


def test_a_rank_that_all_solutions_share() -> None:
    found = migrate(lambda x: torch.bmm(x, x), "x: [...]", "x[-1] == 3")
    assert str(found.principal["x"]) == "[Dyn, 3, 3]"
    assert [str(m.types["x"]) for m in islice(found.maximal(), 2)] == ["[1, 3, 3]", "[2, 3, 3]"]


def test_finitely_many_of_a_few_ranks() -> None:
    found = migrate(lambda x: x.flatten().view(6), "x: [...]", "rank(x) <= 2")
    assert {str(m.types["x"]) for m in found.maximal()} == {"[6]", "[1, 6]", "[2, 3]", "[3, 2]", "[6, 1]"}
    assert found.count().number == 5 and found.count().exact


def test_of_ranks_that_were_not_looked_at_nothing_is_claimed() -> None:
    """A program that needs every dim is looked at up to some rank: that there is none is not known beyond."""
    found = migrate(lambda x: x.size()[-20], "x: [...]")
    assert found.static is None and not found.is_decided


dims = st.sampled_from([Dyn, Dyn, 1, 2, 3, 4])


@given(st.tuples(dims, dims), st.tuples(dims, dims), st.data())
@settings(max_examples=25, deadline=None)
def test_migration_is_monotone(x: tuple[Any, Any], y: tuple[Any, Any], data: st.DataObject) -> None:
    """A more precise annotation has fewer migrations, and what they share is more precise at every node."""

    class Add(torch.nn.Module):
        def forward(self, x, y):
            return torch.cat([x + y, y], dim=1)

    general = migrate(graph(Add(), x=TensorType(x), y=TensorType(y)))
    at = data.draw(st.integers(0, 1))
    narrower = tuple(3 if i == at and d == Dyn else d for i, d in enumerate(x))
    precise = migrate(graph(Add(), x=TensorType(narrower), y=TensorType(y)))
    assert general.static is not None or precise.static is None
    if precise.static is not None:
        for name, type in precise.principal.items():
            assert is_more_precise(type, general.principal[name])


# ---- the command


PROGRAM = """
import torch
from torch.fx import symbolic_trace
from torch.fx.tensor_type import Dyn, TensorType

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 4)

    def forward(self, x):
        return self.linear(x)

def traced():
    graph_module = symbolic_trace(Net())
    next(iter(graph_module.graph.nodes)).type = TensorType((Dyn, Dyn))
    return graph_module
"""


def test_the_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.py"
    path.write_text(PROGRAM)
    assert main(["migrate", f"{path}:traced", "--maximal", "2", "--source"]) == 0
    said = capsys.readouterr().out
    assert "infinitely many maximal" in said and 'linear: "[_1, 4]"' in said and "[Dyn, 5]" in said
    assert main(["migrate", f"{path}:Net", "-i", "x: [b, 3]"]) == 1
    assert "there is no static migration" in capsys.readouterr().out
    options = ["-i", "x: [b, c]", "-a", "b <= 3", "--format", "json", "--maximal", "9"]
    assert main(["migrate", f"{path}:Net", *options]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["count"] == "3" and data["principal"]["linear"] == "[Dyn, 4]"
    assert data["maximal"] == [{"b": b, "c": 5} for b in (1, 2, 3)]


def test_verdicts_are_those_of_the_report() -> None:
    assert migrate(graph(Net(), x=TensorType((1, 3, 8, 14)))).report.verdict is Verdict.PROVED


# ---- random programs on tensors of any rank

STEPS = (
    "x.transpose(0, 1)", "x + y", "torch.cat([x, y], 1)", "x.flatten(1)", "x.view(2, -1)", "x.unsqueeze(-1)",
    "x @ y", "x.sum(-1)", "x[..., 0]", "torch.nn.functional.linear(x, torch.ones(4, 2))", "x.squeeze(0)",
    "x.permute(1, 0)", "x.expand(3, -1)", "x.mean(0, keepdim=True)", "x.reshape(x.shape[0], -1)",
    "x.chunk(2, -1)[0]", "x * 2 if x.dim() == 2 else x[0]",
)  # fmt: skip
shapes_ = st.lists(st.integers(1, 4), max_size=4).map(tuple)


Sizes: TypeAlias = tuple[int, ...]
programs = given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=3),
    st.lists(st.tuples(shapes_, shapes_), min_size=20, max_size=40),
)


@programs
@settings(max_examples=8, deadline=None)
def test_random_programs_of_any_rank(steps: list[str], inputs: list[tuple[Sizes, Sizes]]) -> None:
    judged(steps, inputs)


@pytest.mark.slow
@programs
@settings(max_examples=60, deadline=None)
def test_many_random_programs_of_any_rank(steps: list[str], inputs: list[tuple[Sizes, Sizes]]) -> None:
    judged(steps, inputs)


def judged(steps: list[str], inputs: list[tuple[Sizes, Sizes]]) -> None:
    """Checks that each input that eager torch runs fits what is said of all migrations."""
    names: dict[str, Any] = {"torch": torch}
    body = "\n".join(f"    x = {step}" for step in steps)
    exec(f"def program(x, y):\n{body}\n    return x", names)
    found = migrate(names["program"], "x: [...]; y: [...]", "rank(x) <= 4 and rank(y) <= 4")
    refused = 0
    for x, y in inputs:
        try:
            result = names["program"](torch.zeros(x), torch.zeros(y))
        except (RuntimeError, IndexError, ValueError):
            refused += 1
            continue
        assert found.static is not None or not found.is_decided, (body, x, y)
        if found.principal:
            for name, sizes in (("x", x), ("y", y), ("output", tuple(result.shape))):
                assert is_more_precise(Ranked(sizes), found.principal[name]), (body, name, x, y)
    assert not refused or found.report.verdict is not Verdict.PROVED, body
