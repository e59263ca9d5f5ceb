"""Higher-order operators: recorded from Python, read from live exports and from archives, by one law."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from anyshape.constraints.engine.generate import generate
from anyshape.constraints.ir.language import Number
from anyshape.constraints.ir.language import Tensor as Known
from anyshape.constraints.ir.program import Input, Node, Origin, Program, Ref, from_json, to_json
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import Domain, System
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.formula import holds
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.host.operators import INSTALLED
from anyshape.tracer.readers import export, pt2
from anyshape.tracer.readers.graph import system
from anyshape.tracer.recording.record import record

SIZES = range(1, 5)


@dataclass(frozen=True)
class Case:
    """A program over `x: float32[n, m]`, where it runs, and the shape of its first result there."""

    program: Callable[[Tensor], Any]
    runs: Callable[[int, int], bool]
    shape: Callable[[int, int], tuple[int, ...]] | None
    exports: bool = True


def add(carry: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
    return carry + row, carry * row


CASES = {
    "cond": Case(
        lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x @ torch.ones(3, 3), (x,)),
        lambda n, m: m == 3, lambda n, m: (n, m),
    ),
    "cond of other sizes": Case(
        lambda x: torch.cond(x.sum() > 0, lambda x: x[:2] + 1, lambda x: x - 1, (x,)),
        lambda n, m: True, None, exports=False,
    ),
    "cond of other ranks": Case(
        lambda x: torch.cond(x.sum() > 0, lambda x: x.sum(0), lambda x: x - 1, (x,)),
        lambda n, m: False, None, exports=False,
    ),
    "cond of other dtypes": Case(
        lambda x: torch.cond(x.sum() > 0, lambda x: x.double(), lambda x: x - 1, (x,)),
        lambda n, m: False, None, exports=False,
    ),
    "cond on a size": Case(
        lambda x: torch.cond(x.shape[0] > 2, lambda x: x.sum(0), lambda x: x.reshape(2, -1).sum(0), (x,)),
        lambda n, m: n > 2 or n * m % 2 == 0, None, exports=False,
    ),
    "while_loop": Case(
        lambda x: while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, x + torch.ones(x.shape[0], 3)), (torch.tensor(0), x)
        )[1],
        lambda n, m: m == 3, lambda n, m: (n, m),
    ),
    "while_loop that grows": Case(
        lambda x: while_loop(
            lambda i, x: i.sum() < 3, lambda i, x: (i + 1, torch.cat([x, x])), (torch.tensor(0), x)
        ),
        lambda n, m: False, None, exports=False,
    ),
    "while_loop of every second row": Case(
        lambda x: while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, y.clone(memory_format=torch.contiguous_format)),
            (torch.tensor(0), torch.cat([x, x])[::2]),
        )[1],
        lambda n, m: False, None, exports=False,
    ),
    "scan that carries columns": Case(
        lambda x: scan(lambda carry, row: (carry + row[:2], row + 1), torch.ones(2, 2)[:, 0], x)[1],
        lambda n, m: False, None, exports=False,
    ),
    "scan that carries a row": Case(
        lambda x: scan(lambda carry, row: (carry + row[:2], row + 1), torch.ones(2, 2)[0], x)[1],
        lambda n, m: True, lambda n, m: (n, m), exports=False,
    ),
    "while_loop with a number": Case(
        lambda x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.T @ x + 0), (0, x))[1],
        lambda n, m: n == m, lambda n, m: (n, m), exports=False,
    ),
    "while_loop on many": Case(
        lambda x: while_loop(lambda i, x: x > 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x)),
        lambda n, m: False, None, exports=False,
    ),
    "scan": Case(
        lambda x: scan(add, torch.zeros(3), x)[1],
        lambda n, m: m in (1, 3), lambda n, m: (n, 3), exports=False,
    ),
    "scan with a static row": Case(
        lambda x: scan(add, torch.zeros(1, 3), x.reshape(-1, 1, 3))[1],
        lambda n, m: n * m % 3 == 0, lambda n, m: (n * m // 3, 1, 3), exports=False,
    ),
    "scan along another dim": Case(
        lambda x: scan(lambda c, row: (c + row.sum(), row[:2] * 1), torch.zeros(4), x, dim=1)[1],
        lambda n, m: True, lambda n, m: (min(n, 2), m)[:: 1 if INSTALLED >= (2, 13) else -1], exports=False,
    ),
    "scan whose carry grows": Case(
        lambda x: scan(add, torch.zeros(1), x),
        lambda n, m: m == 1, lambda n, m: (1,), exports=False,
    ),
    "map": Case(
        lambda x: torch_map(lambda row, y: row + y, x, torch.ones(3)),
        lambda n, m: m in (1, 3), lambda n, m: (n, 3), exports=False,
    ),
    "map of two": Case(
        lambda x: torch_map(lambda rows: rows[0] + rows[1], (x, torch.ones(3, 2))),
        lambda n, m: n == 3 and m in (1, 2), lambda n, m: (n, 2), exports=False,
    ),
    "associative_scan": Case(
        lambda x: associative_scan(lambda a, b: a + b, x, 1, combine_mode="generic"),
        lambda n, m: True, lambda n, m: (n, m), exports=False,
    ),
    "associative_scan of products": Case(
        lambda x: associative_scan(lambda a, b: a * b, x.unsqueeze(-1), 0, combine_mode="generic"),
        lambda n, m: True, lambda n, m: (n, m, 1), exports=False,
    ),
    "vmap": Case(
        lambda x: torch.vmap(lambda row, y: row @ y, in_dims=(0, None))(x, torch.ones(3, 2)),
        lambda n, m: m == 3, lambda n, m: (n, 2),
    ),
    "vmap to another dim": Case(
        lambda x: torch.func.vmap(lambda a, b: a + b, in_dims=(1, 0), out_dims=1)(x, torch.ones(3, 2)),
        lambda n, m: m == 3 and n in (1, 2), lambda n, m: (2, 3), exports=False,
    ),
}  # fmt: skip
if INSTALLED >= (2, 14):
    from torch._higher_order_ops.switch import switch

    CASES |= {
        "switch": Case(
            lambda x: switch(
                (x > 0).sum(), (lambda x: x + 1, lambda x: x @ torch.ones(3, 3), lambda x: x * 2), (x,)
            ),
            lambda n, m: m == 3, lambda n, m: (n, m),
        ),
        "switch of other sizes": Case(
            lambda x: switch((x > 0).sum(), [lambda x: x[:2] + 1, lambda x: x - 1], (x,)),
            lambda n, m: True, None, exports=False,
        ),
        "switch of other ranks": Case(
            lambda x: switch((x > 0).sum(), [lambda x: x.sum(0), lambda x: x - 1], (x,)),
            lambda n, m: False, None, exports=False,
        ),
        "switch on many": Case(
            lambda x: switch((x > 0).long(), [lambda x: x + 1, lambda x: x - 1], (x,)),
            lambda n, m: n * m == 1, lambda n, m: (n, m), exports=False,
        ),
        "switch on a size": Case(
            lambda x: switch(x.shape[0], [torch.sin, torch.cos, lambda x: x.reshape(2, -1)], (x,)),
            lambda n, m: n < 2 or n * m % 2 == 0, None, exports=False,
        ),
    }  # fmt: skip


def recorded(program: Callable[[Tensor], Any]) -> System:
    spec = parse_spec("x: float32[n, m]")
    result, _ = record(program, spec, default_rules, DomainOracle(spec.domain))
    for path in result.paths:
        path.program.verify()
    return result


def accepted(result: System, n: int, m: int) -> bool:
    """Every path that is taken there, of which there are several where data decide, has to agree."""
    values = {"n": n, "m": m}
    answers = set()
    for path in (p for p in result.paths if holds(p.premise, values)):
        assert path.end.how != "gave-up", path.end
        assert not path.notes, path.notes
        runs = path.end.how == "returned" and all(holds(c.formula, values) for c in path.constraints)
        answers.add(runs)
    (answer,) = answers
    return answer


def shape(result: System, n: int, m: int) -> tuple[Any, ...]:
    from anyshape.constraints.terms.dims import evaluate

    values = {"n": n, "m": m}
    path = next(p for p in result.paths if holds(p.premise, values))
    value = path.values[path.program.outputs[0][1].id]  # type: ignore[union-attr]
    assert isinstance(value, Known)
    return tuple(evaluate(dim, values) for dim in value.shape)


def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[:, :1], x[:, 1:]


STORED = torch.zeros(2)


def chosen(x: Tensor, act: Callable[[Tensor], object]) -> Tensor:
    """Acts on the input, or not, in one of two functions of an operator that returns a new tensor."""

    def acting(x: Tensor) -> Tensor:
        act(x)
        return x + 1

    return torch.cond(x.sum() > 0, acting, lambda x: x - 1, (x,))


def with_constant(x: Tensor, act: Callable[[Tensor, Tensor], object]) -> Tensor:
    made = torch.zeros(2)
    return chosen(x, lambda x: act(made, x))


def of_its_own(x: Tensor, act: Callable[[Tensor, Tensor], object]) -> Tensor:
    return chosen(x, lambda x: act(torch.zeros(2), x))


APART = {
    "returns an operand": lambda x: torch.cond(x.sum() > 0, lambda x: x, lambda x: x + 1, (x,)),
    "returns a view": lambda x: torch.cond(x.sum() > 0, lambda x: x[:1], lambda x: x[:1] + 1, (x,)),
    "returns a closure's": lambda x: torch.cond(x.sum() > 0, lambda y: x, lambda y: y + 1, (x,)),
    "returns one twice": lambda x: torch.cond(
        x.sum() > 0, lambda x: (lambda y: (y, y.view(-1)))(x + 1), lambda x: (x + 1, (x + 2).view(-1)), (x,)
    ),
    "returns parts": lambda x: torch.cond(
        x.sum() > 0, lambda x: halves(x + 1), lambda x: halves(x + 2), (x,)
    ),
    "swaps": lambda x: while_loop(
        lambda i, x, y: i < 3, lambda i, x, y: (i + 1, y, x), (torch.tensor(0), x, x + 1)
    ),
    "goes on while": lambda x: while_loop(
        lambda d, x: d, lambda d, x: (d & False, x + 1), (torch.tensor(True), x)
    ),
    "is contiguous": lambda x: while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x.contiguous()), (torch.tensor(0), x)
    ),
    "keeps rows": lambda x: scan(lambda carry, row: (carry + 1, row), torch.zeros(2), x),
    "keeps its carry": lambda x: scan(lambda carry, row: (carry, row + 1), torch.zeros(2), x),
    "maps to rows": lambda x: torch_map(lambda row: row[None], x),
    "writes": lambda x: torch.cond(x.sum() > 0, lambda x: x.add_(1).clone(), lambda x: x + 1, (x.clone(),)),
    "writes a part": lambda x: while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, (x[0].zero_(), x + 1)[1]), (torch.tensor(0), x)
    ),
    "writes as out": lambda x: while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, (torch.add(x, 1, out=x), x + 1)[1]), (torch.tensor(0), x)
    ),
    "writes as out of another": lambda x: (lambda y: chosen(x, lambda x: torch.add(y, 1, out=y)))(x.clone()),
    "writes as out of a view": lambda x: (lambda y: chosen(x, lambda x: torch.add(x, 1, out=y.view(-1, 2))))(
        x.clone()
    ),
    "writes into what is stored": lambda x: chosen(x, lambda x: STORED.add_(1)),
    "stores a number": lambda x: chosen(x, lambda x: STORED.__setitem__(0, 1.0)),
    "stores as out": lambda x: chosen(x, lambda x: torch.add(STORED, 1, out=STORED)),
    "stores what it is given": lambda x: chosen(x, lambda x: STORED.add_(x.sum())),
    "stores in a view": lambda x: chosen(x, lambda x: STORED.view(2, 1).zero_()),
    "writes into a constant": lambda x: with_constant(x, lambda made, x: made.add_(1)),
    "writes an element of a constant": lambda x: with_constant(x, lambda made, x: made.__setitem__(0, 1.0)),
    "writes data into a constant": lambda x: with_constant(x, lambda made, x: made.add_(x.sum())),
    "counts without weights": lambda x: torch.cond(
        x.sum() > 0, torch.nn.BatchNorm1d(2, affine=False), lambda x: x + 1, (x,)
    ),
    "counts a batch": lambda x: torch.cond(x.sum() > 0, torch.nn.BatchNorm1d(2), lambda x: x + 1, (x,)),
}
"""Programs over `x: float32[n, 2]`: a function returns memory of another tensor, or writes into it."""
OWN = {
    "clones": lambda x: torch.cond(
        x.sum() > 0, lambda x: x.clone().view(-1), lambda x: x.flatten() + 1, (x,)
    ),
    "copies": lambda x: scan(lambda carry, row: (carry + 1, row.clone()), torch.zeros(2), x),
    "two of its own": lambda x: torch_map(lambda row: (row + 1, row * 2), x),
    "writes into its own": lambda x: torch.cond(
        x.sum() > 0, lambda x: (x + 1).add_(2), lambda x: x + 1, (x,)
    ),
    "writes into a constant of its own": lambda x: of_its_own(x, lambda made, x: made.add_(1)),
    "writes an element of its own": lambda x: of_its_own(x, lambda made, x: made.__setitem__(0, 1.0)),
    "writes data into its own": lambda x: of_its_own(x, lambda made, x: made.add_(x.sum())),
    "writes into a view of its own": lambda x: of_its_own(x, lambda made, x: made.view(2, 1).zero_()),
    "writes as out of its own": lambda x: of_its_own(x, lambda made, x: torch.add(made, x.sum(), out=made)),
    "counts its own batch": lambda x: chosen(
        x, lambda x: torch.nn.functional.batch_norm(x, torch.zeros(2), torch.ones(2), training=True)
    ),
    "takes one twice": lambda x: torch.cond(x.sum() > 0, torch.add, torch.sub, (x, x)),
    "chooses": lambda x: associative_scan(lambda a, b: b, x, 0, combine_mode="generic"),
}


@pytest.mark.parametrize("name", [*APART, *OWN])
def test_functions_return_memory_of_their_own_and_write_into_no_other(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    program, runs = {**APART, **OWN}[name], name in OWN
    assert accepted(recorded(program), 3, 2) == runs
    torch._dynamo.reset()
    with contextlib.nullcontext() if runs else pytest.raises(RuntimeError):
        program(torch.ones(3, 2))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_recorded(case: Case) -> None:
    result = recorded(case.program)
    for n, m in itertools.product(SIZES, SIZES):
        assert accepted(result, n, m) == case.runs(n, m), (n, m)
        if case.shape is not None and case.runs(n, m):
            assert shape(result, n, m) == case.shape(n, m)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_table_is_that_of_eager_runs(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """The judge of the table above: torch, which compiles each operator anew."""
    caplog.set_level(logging.CRITICAL)
    for n, m in itertools.product(SIZES, SIZES):
        torch._dynamo.reset()
        try:
            result = case.program(torch.ones(n, m))
        except (RuntimeError, ValueError, IndexError):
            assert not case.runs(n, m), (n, m)
            continue
        assert case.runs(n, m), (n, m)
        if case.shape is not None:
            first = result[0] if isinstance(result, tuple) else result
            assert first.shape == case.shape(n, m)


class Module(torch.nn.Module):
    def __init__(self, program: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.program = program

    def forward(self, x: Tensor) -> Any:
        return self.program(x)


@pytest.mark.parametrize("name", ["cond", "while_loop", *["switch"] * (INSTALLED >= (2, 14))])
def test_exported(name: str, tmp_path: Path) -> None:
    """What a graph says of sizes beside the trace's own limits is what the program says."""
    free = {0: torch.export.Dim.DYNAMIC}
    program = torch.export.export(Module(CASES[name].program), (torch.ones(5, 3),), dynamic_shapes=(free,))
    read = [export.read(program)]
    if name != "switch":  # which torch 2.15 does not save
        torch.export.save(program, tmp_path / "saved.pt2")
        read.append(pt2.read(tmp_path / "saved.pt2"))
    for traced in read:
        traced.program.verify()
        assert from_json(to_json(traced.program)) == traced.program
        spec = parse_spec("x: float32[n, 3]")
        for n in SIZES:
            assert accepted(system(traced, default_rules, spec), n, 3) == CASES[name].runs(n, 3)


def branches(x: Tensor) -> Tensor:
    return torch.cond(x.shape[0] > 4, lambda x: x.sum(0), lambda x: x.reshape(2, -1, 3).sum((0, 1)), (x,))


def test_exported_branch_on_a_size_requires_under_its_condition() -> None:
    """Both branches stand in the graph; what one needs is needed where its condition holds."""
    free = {0: torch.export.Dim.DYNAMIC}
    program = torch.export.export(Module(branches), (torch.ones(6, 3),), dynamic_shapes=(free,))
    traced = export.read(program)
    assert {given for node in traced.program.nodes for _, given in node.given} == {True, False}
    assert from_json(to_json(traced.program)) == traced.program
    (path,) = system(traced, default_rules, parse_spec("x: float32[n, 3]")).paths
    model = [c.formula for c in path.constraints if c.kind == "model"]
    assert [all(holds(f, {"n": n}) for f in model) for n in range(1, 9)] == [False, True, False] + [True] * 5


def test_condition_that_data_decides_requires_both_sides() -> None:
    """A branch under a truth that nothing is known of is required whole."""
    x, flag = Known(("n",), "float32"), Number("bool")  # type: ignore[arg-type]
    x = parse_spec("x: float32[n]").inputs[0].type  # type: ignore[assignment]
    node = Node("view", (("input", Ref(0)), ("size", (2, -1))), (2,), Origin(), ((Ref(1), True),))
    program = Program((Input(0, "x", x), Input(1, "flag", flag)), (node,), (("output", Ref(2)),))
    said = generate(program, default_rules, Domain())
    assert [holds(c.formula, {"n": 3}) for c in said.constraints] == [False]


def test_graph_of_other_inputs_is_refused() -> None:
    from anyshape.tracer.readers.exported import (
        ExportedCall,
        ExportedGraph,
        ExportedParts,
        Given,
        GraphError,
        Name,
        build,
    )

    inner = ExportedGraph("inner", (Name("a"), Name("b")), (), (Name("a"),), {})
    call = ExportedCall(
        "torch.ops.higher_order.map_impl", (("", inner), ("", (Name("x"),)), ("", ())), ("y",)
    )
    outer = ExportedGraph("", (Name("x"),), (call,), (Name("y"),), {"x": lambda: Known((2, 3), "float32")})
    with pytest.raises(GraphError, match="map_impl"):
        build(ExportedParts(outer, (Given(Name("x"), ("x",), True),), (("y", Name("y")),), {}, ()))
