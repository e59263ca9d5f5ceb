"""Sparse tensors: programs that run eagerly at all small sizes, on several draws of data, and what they give
back is compared with what is said of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor as Type
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.rules import default_rules, sparse
from anyshape.constraints.terms.dims import evaluate
from anyshape.typecheck import check

REFUSALS = (RuntimeError, IndexError, NotImplementedError)
Program = tuple[Callable[..., Any], str]
GRAPH = "e: int64[2, k]; w: float32[m]; x: float32[n, c]"


def square(e: Tensor, w: Tensor, n: int) -> Tensor:
    return torch.sparse_coo_tensor(e, w, (n, n))


def graph_convolution(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    return torch.sparse.mm(square(e, w, x.shape[0]), x)


def in_operators(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    return square(e, w, x.shape[0]).coalesce() @ x + torch.mm(square(e, w, x.shape[0]), x)


def of_vectors(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    return square(e, w, 4) @ x[:, 0]


def not_coalesced(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    return square(e, w, x.shape[0]).indices()


def parts(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    a = square(e, w, x.shape[0]).coalesce()
    return a.indices()[0] + a.values()


def parts_of_others(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    n = x.shape[0]
    return square(e, w, n).coalesce().values() + square(e, 2 * w, n).coalesce().values()


def as_given(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    a = square(e, w, x.shape[0])
    return a._indices() + e + a._values() * w


def squared(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    a = square(e, w, x.shape[0]).coalesce()
    b = a @ a
    return b.values() * b.indices()[1]


def of_rows(e: Tensor, w: Tensor, x: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(e, x, (4, 4, 3)).to_dense()


def of_a_size_alone(x: Tensor) -> Tensor:
    return torch.sparse_coo_tensor((4, 3)) @ x


def rows_and_columns(x: Tensor) -> tuple[Tensor, Tensor]:
    a = x.to_sparse_csr()
    assert a.layout is torch.sparse_csr and not a.is_sparse
    return a.crow_indices() * torch.ones(x.shape[0] + 1), a.col_indices() + a.values()


def there_and_back(x: Tensor) -> Tensor:
    a = (x.to_sparse() * 2).neg().to_sparse_csr().to_sparse()
    assert a.is_sparse and a.is_coalesced()
    return a.to_dense() + x + a.sum()


def dense_parts(x: Tensor) -> Tensor:
    return x.indices()


def pointers(x: Tensor) -> Tensor:
    return torch._convert_indices_from_coo_to_csr(torch.zeros_like(x[0]).long(), x.shape[1]) + torch.zeros(4)


def compressed_by_hand(x: Tensor) -> Tensor:
    n = x.shape[0]
    ends = torch.arange(n + 1)
    return torch.sparse_csr_tensor(ends, torch.zeros(n, dtype=torch.int64), torch.ones(n), (n, n)) @ x


class Adjacency(nn.Module):
    """A buffer that is sparse."""

    a: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.eye(4).to_sparse())

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.a @ x)


MATRIX = "x: float32[n, m]"
PROGRAMS: list[Program] = [
    *((f, GRAPH) for f in (graph_convolution, in_operators, of_vectors, not_coalesced)),
    *((f, GRAPH) for f in (parts, as_given, squared, of_rows)),
    *((f, MATRIX) for f in (of_a_size_alone, rows_and_columns, there_and_back, dense_parts, pointers)),
    *((f, MATRIX) for f in (compressed_by_hand, Adjacency())),
]


def eager(target: Callable[..., Any], declared: list[str], values: dict[str, int], draw: int) -> Any:
    """What the program returns at these sizes; None where it refuses them."""
    torch.default_generator.manual_seed(draw)
    given = []
    for one in parse_spec(declared).inputs:
        assert isinstance(one.type, Type)
        shape = [evaluate(n, values) for n in one.type.shape]
        most = values.get("n", 1)
        given.append(torch.randint(0, most, shape) if one.type.dtype == "int64" else torch.randn(shape))
    try:
        result = target(*given)
    except REFUSALS:
        return None
    return [tuple(t.shape) for t in (result if isinstance(result, tuple) else (result,))]


def disagreements(program: Program, rules: Rules = default_rules, upto: int = 4) -> list[str]:
    target, inputs = program
    declared = inputs.split("; ")
    report = check(target, declared, rules=rules)
    if report.verdict not in ("proved", "refined", "refuted"):
        return [report.to_text()]
    symbols = parse_spec(declared).domain.symbols
    found = []
    for point in itertools.product(range(1, upto + 1), repeat=len(symbols)):
        values = dict(zip(symbols, point, strict=True))
        said = report.accepts.holds(**values)
        for draw in range(2):
            shapes = eager(target, declared, values, draw)
            if said != (shapes is not None):
                found.append(f"{values}: said {said}, eager {shapes}\n{report.to_text()}")
    return found


def name_of(program: Program) -> str:
    return getattr(program[0], "__name__", type(program[0]).__name__)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_programs_run_where_it_is_said(program: Program) -> None:
    assert disagreements(program) == []


def test_what_two_tensors_store_is_not_taken_for_equal() -> None:
    """They are as many here, since the places are the same, which is not followed."""
    assert check(parts_of_others, GRAPH.split("; ")).verdict == "unknown"


def unfit(x: Tensor) -> Tensor:
    """torch would read beyond its memory."""
    rows = torch.zeros(x.shape[0], dtype=torch.int64)
    return torch.sparse_csr_tensor(rows, rows, rows.float(), (3, 3))


@pytest.mark.parametrize(
    "target",
    [
        lambda x: x.to_sparse().view(-1),
        lambda x: x.to_sparse_csr() @ x.to_sparse(),
        lambda x: x.to_sparse().t_(),
        lambda x: x.to_sparse_csc(),
        unfit,
    ],
    ids=["view", "two layouts", "in place", "another layout", "unfit"],
)
def test_calls_without_a_rule_for_sparse_tensors(target: Callable[..., Any]) -> None:
    report = check(target, [MATRIX])
    assert report.verdict == "unknown"
    assert [f.code for f in report.findings] == ["no-rule"]


def test_sparse_buffers_are_as_they_were() -> None:
    model = Adjacency()
    before, version = model.a, model.a._version
    assert check(model, [MATRIX]).verdict == "refined"
    assert model.a is before and model.a._version == version
    assert torch.equal(model.a.to_dense(), torch.eye(4))


@pytest.mark.parametrize("op", ["matmul", "sparse_coo_tensor"])
def test_a_wrong_rule_is_caught(op: str) -> None:
    """One that requires nothing."""

    def careless(c: Any, *args: Any, **named: Any) -> Any:
        class Careless:
            def require(self, *said: object) -> None:
                pass

            def __getattr__(self, name: str) -> Any:
                return getattr(c, name)

        function = sparse.OF_SPARSE.get(op) or sparse.RULES[op]
        return function(Careless(), *args, **named)  # type: ignore[arg-type]

    if op in sparse.OF_SPARSE:
        rules = default_rules.taking_sparse({**sparse.OF_SPARSE, op: careless})
    else:
        rules = default_rules + {op: careless}
    assert disagreements((in_operators, GRAPH), rules, upto=3)
