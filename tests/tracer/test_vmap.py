"""`vmap`: its function is recorded with one row, and what torch may do otherwise is in doubt."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from anyshape.tracer.host.operators import INSTALLED
from anyshape.tracer.patches.vmap import (
    OF_NO_ROWS,
    TAKES_MORE,
    UNLIKE,
    WITH_FORMATS,
    WITH_NUMBERS,
    WITH_TENSORS,
)
from anyshape.typecheck import check

STORED = torch.zeros(2)
REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "writes as out": lambda row: torch.add(row, 1, out=torch.zeros(2)),
    "writes as out of a row": lambda row: torch.add(row, 1, out=row + 1),
    "writes as out of what is stored": lambda row: torch.mul(row, 2, out=STORED),
    "writes into what is stored": lambda row: (STORED.add_(row), row)[1],
    "writes into a new tensor": lambda row: torch.zeros(2).copy_(row),
    "lists its numbers": lambda row: row + len(row.tolist()),
    "asks for a number": lambda row: row + row.sum().item(),
    "branches": lambda row: row if row.sum() > 0 else -row,
    "finds places": lambda row: row.nonzero(),
    "draws numbers": lambda row: row + torch.rand(2),
    "draws as many": lambda row: torch.rand_like(row),
    "drops some": lambda row: torch.nn.functional.dropout(row),
    "drops weights": lambda row: torch.nn.functional.scaled_dot_product_attention(
        *[row[None]] * 3, dropout_p=0.5
    ),
    "leaks at random": lambda row: torch.nn.functional.rrelu(row, training=True),
    "makes a layer": lambda row: torch.nn.Linear(2, 2)(row),
    "updates statistics alone": lambda row: torch.nn.BatchNorm1d(2, affine=False)(row[None].expand(3, 2)),
    "updates statistics": lambda row: torch.nn.BatchNorm1d(2)(row[None].expand(3, 2)),
    "flips a number": lambda row: row.sum().flip(0),
    "compares": lambda row: row if torch.equal(row, row) else -row,
    "cuts at a tensor": lambda row: torch.narrow(row, 0, torch.tensor(0), 1),
}
"""Functions of a row `[2]` that `vmap` refuses."""
TAKEN: dict[str, Callable[[Tensor], Any]] = {
    "a triangle of a vector": lambda row: row.tril(),
    "calls after a triangle": lambda row: row.triu(1).masked_fill(row > 1, 0.0) @ torch.ones(2),
    "more dims are padded": lambda row: torch.constant_pad_nd(row, (1, 1, 1, 1)),
}
"""Functions of a row that `vmap` takes, but torch does not with one row alone."""


def mapped(name: str) -> Callable[[Tensor], Any]:
    function = {**REFUSED, **TAKEN}[name]
    return lambda x: torch.vmap(function)(x)


@pytest.mark.parametrize("name", REFUSED)
def test_what_vmap_refuses_is_not_proved(name: str) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        mapped(name)(torch.ones(3, 2))
    assert check(mapped(name), "x: float32[n, 2]", ["n >= 1"], replay=False).verdict == "unknown"


@pytest.mark.parametrize("name", TAKEN)
def test_what_vmap_takes_is_not_refuted(name: str) -> None:
    mapped(name)(torch.ones(3, 2))
    assert check(mapped(name), "x: float32[n, 2]", ["n >= 1"], replay=False).verdict == "unknown"


@pytest.mark.parametrize("join", [
    lambda row: torch.cat([row, row]), lambda row: torch.hstack([row, row[:0]]),
])  # fmt: skip
def test_rows_without_elements_are_not_joined(join: Callable[[Tensor], Tensor]) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.vmap(join, in_dims=1, out_dims=1)(x)

    program(torch.ones(2, 3))
    try:
        program(torch.ones(0, 3))
        runs = True
    except RuntimeError:
        runs = False
    assert runs == (INSTALLED >= (2, 15))
    report = check(program, "x: float32[m, n]", ["n >= 1", "m >= 0"], replay=False)
    assert report.accepts.certain.holds(n=3, m=2)
    assert report.accepts.certain.holds(n=3, m=0) == runs


@pytest.mark.parametrize("options", [{"p": 0.0}, {"training": False}])
def test_dropout_that_drops_nothing_is_proved(options: dict[str, Any]) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.vmap(lambda row: torch.nn.functional.dropout(row, **options))(x)

    program(torch.ones(3, 2))
    assert check(program, "x: float32[n, 2]", ["n >= 1"], replay=False).verdict == "proved"


LYING: dict[str, Callable[[Tensor], Any]] = {
    "a row itself": lambda x: torch.vmap(lambda row: row, in_dims=1)(x).view(-1),
    "a product of columns": lambda x: torch.vmap(lambda row: row * 2, in_dims=1)(x).view(-1),
    "rows of a transposed": lambda x: torch.vmap(lambda row: row * 2)(x.t()).view(-1),
    "a part of a row": lambda x: torch.vmap(lambda row: row[1:])(torch.cat([x, x], 1)).view(-1),
    "an expanded row": lambda x: torch.vmap(lambda row: row.expand(2, 2))(x).view(-1),
    "columns beside rows": lambda x: torch.vmap(torch.mul, in_dims=(1, 0))(x.t().contiguous(), x).view(-1),
    "a constant": lambda x: torch.vmap(lambda row: torch.ones(2))(x).add_(1),
    "what is around": lambda x: torch.vmap(lambda row: x)(x).add_(1),
}
"""Programs that torch refuses for the strides of what `vmap` returns."""


@pytest.mark.parametrize("name", LYING)
def test_results_lie_anywhere(name: str) -> None:
    with pytest.raises(RuntimeError):
        LYING[name](torch.ones(3, 2))
    assert check(LYING[name], "x: float32[n, 2]", ["n >= 2"], replay=False).verdict == "unknown"


WITHIN: dict[str, Callable[[Tensor], Any]] = {
    "a column beside the whole": lambda x: torch.vmap(lambda r: (r * x).view(-1), in_dims=1)(x),
    "middle rows": lambda x: torch.vmap(lambda r: (r * 2).view(-1), in_dims=1)(x.expand(2, -1, -1).clone()),
    "a row of a transposed": lambda x: torch.vmap(lambda r: (r[:, None] * x).view(-1))(x.t()),
    "rows of columns": lambda x: torch.vmap(torch.vmap(lambda r: (r[:, None] * r).view(-1)), in_dims=2)(
        x.expand(2, -1, -1)
    ),
}
"""Programs that torch refuses for the strides of what is computed under `vmap`."""


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_computed_under_vmap_lies_anywhere(name: str) -> None:
    with pytest.raises(RuntimeError):
        WITHIN[name](torch.ones(3, 3))
    report = check(WITHIN[name], "x: float32[n, n]", ["n >= 2", "n <= 4"], replay=False)
    assert report.verdict != "proved" and not report.accepts.certain.holds(n=3), report.to_text()


@pytest.mark.parametrize("function", [
    lambda row: (row[:, None] * row).view(-1), lambda row: row.repeat(2).view(1, -1),
    lambda row: (row[:, None] * torch.ones(2, 2).t()).contiguous().view(-1),
    lambda row: torch.vmap(lambda r: (r * row).view(2, -1))(row[:, None]).flatten(),
])  # fmt: skip
def test_rows_without_gaps_are_viewed(function: Callable[[Tensor], Tensor]) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.vmap(function)(x)

    program(torch.ones(3, 2))
    report = check(program, "x: float32[n, 2]", ["n >= 1"], replay=False)
    assert report.verdict == "proved", report.to_text()


def test_a_row_is_a_row_the_second_time() -> None:
    """A call that is made again gives rows again, which may not be written into what is no row."""

    def program(x: Tensor) -> Any:
        total = torch.zeros(2)
        torch.vmap(lambda row: row * 2)(x)
        return torch.vmap(lambda row: (total.add_(row * 2), row)[1])(x)

    with pytest.raises(RuntimeError):
        program(torch.ones(3, 2))
    assert check(program, "x: float32[n, 2]", ["n >= 1"], replay=False).verdict == "unknown"


@pytest.mark.parametrize("randomness, function", [
    ("different", lambda row: torch.nn.Linear(2, 2)(row)),
    ("different", lambda row: torch.zeros(2).uniform_() + row),
    ("same", lambda row: torch.bernoulli(row.sigmoid())),
    ("same", lambda row: row.clone().bernoulli_(row.sigmoid())),
    ("same", lambda row: torch.normal(row, 1.0)),
    ("same", lambda row: torch.multinomial(row.exp(), 1)),
    ("same", lambda row: torch.poisson(row.exp())),
])  # fmt: skip
def test_some_draws_are_refused_with_any_randomness(
    randomness: str, function: Callable[[Tensor], Any]
) -> None:
    def program(x: Tensor) -> Any:
        return torch.vmap(function, randomness=randomness)(x)

    with pytest.raises(RuntimeError):
        program(torch.ones(3, 2))
    assert check(program, "x: float32[n, 2]", ["n >= 1"], replay=False).verdict == "unknown"


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("function", [
    lambda row: row + torch.rand(2), lambda row: torch.nn.functional.dropout(row), torch.rand_like,
    lambda row: torch.nn.functional.alpha_dropout(row, training=True), lambda row: row[torch.randperm(2)],
])  # fmt: skip
def test_other_draws_are_taken(function: Callable[[Tensor], Any], randomness: str) -> None:
    def program(x: Tensor) -> Any:
        return torch.vmap(function, randomness=randomness)(x)

    program(torch.ones(3, 2))
    assert check(program, "x: float32[n, 2]", ["n >= 1"], replay=False).verdict == "proved"


OVER_NONE: list[Callable[[Tensor], Any]] = [
    lambda row: row * 2,
    lambda row: row * torch.tensor(2.0),
    lambda row: row.sum(),
    lambda row: row.softmax(-1).sum(0),
    lambda row: torch.nn.functional.linear(row, torch.ones(3, 3)),
    lambda row: row @ row,
    lambda row: row[:, None].expand(3, 2).t().unbind(0)[0],
    lambda row: (row.new_zeros(row.shape) + row.std(0, keepdim=True)).sort().values,
    lambda row: row.where(row > 0, row.exp()).tril(),
    lambda row: row.amax(0, True).repeat(2).chunk(2)[0],
    lambda row: torch.addmm(torch.ones(3), row[None], torch.ones(3, 3)).flip(0).roll(1).permute(1, 0),
    lambda row: row.sum() * row,  # torch asks for the first number
    lambda row: row.view(-1),
    lambda row: row[torch.arange(2)],
    lambda row: torch.cat([row, row]),
    lambda row: torch.vmap(torch.exp)(row),
    lambda row: torch.func.grad(lambda r: (r * r).sum())(row),
    lambda row: torch.nn.functional.pad(row, (1, 1)),
    lambda row: row.index_fill(0, torch.tensor(5), 1.0),  # which torch only refuses of some rows
]
"""Functions of a row `[3]`, which `vmap` may call with no rows."""


@pytest.mark.parametrize("function", OVER_NONE)
def test_what_is_claimed_over_no_rows_is_true(function: Callable[[Tensor], Any]) -> None:
    def program(x: Tensor) -> Any:
        return torch.vmap(function)(x)

    runs = outcome(lambda: program(torch.ones(0, 3)))[0]
    report = check(program, "x: float32[n, 3]", ["n >= 0"], replay=False)
    certain = report.accepts.certain
    assert runs or not certain.holds(n=0)
    assert not runs or report.verdict != "refuted"
    if OVER_NONE.index(function) < 8:
        assert certain.holds(n=0)


@pytest.mark.parametrize("function, shape", [
    (lambda row: row.long().softmax(-1), (4, 0)),  # no kernel says that it takes no integers
    (lambda row: row.split(4)[-1].index_fill(0, torch.tensor(1), 1.0), (0, 0)),  # nor that 1 is no index
])  # fmt: skip
def test_no_kernel_refuses_no_rows(function: Callable[[Tensor], Any], shape: tuple[int, int]) -> None:
    def program(x: Tensor) -> Any:
        return torch.vmap(function, in_dims=1, out_dims=1)(x)

    assert program(torch.ones(shape)).shape == shape
    report = check(program, "x: float32[m, n]", ["n >= 0", "m >= 0"], replay=False)
    assert report.verdict == "unknown"


def test_no_rows_make_no_chunk() -> None:
    def program(x: Tensor) -> Any:
        return torch.vmap(torch.exp, chunk_size=5)(x)

    program(torch.ones(7, 3))
    with pytest.raises(AssertionError):
        program(torch.ones(0, 3))
    certain = check(program, "x: float32[n, 3]", ["n >= 0"], replay=False).accepts.certain
    assert certain.holds(n=7) and not certain.holds(n=0)


# --- the tables, against torch ---------------------------------------------------------------------------

NAMES = {
    "nn.functional.pad": "pad",
    "nn.functional.rrelu": "rrelu",
    "nn.functional.batch_norm": "batch_norm",
    "nn.functional.instance_norm": "instance_norm",
    "nn.functional.layer_norm": "layer_norm",
}
ASKING = frozenset({"item", "unique", "unique_consecutive", "nonzero"})
"""Operators whose results depend on data, which `vmap` refuses: they are in doubt as such."""
SAMPLES = 12
SECONDS = 12


def ranks(x: Tensor) -> Iterator[Tensor]:
    """Yields the tensor, and parts of it of other ranks."""
    yield x
    if x.dim() and x.shape[0]:
        yield x[0]
        if x.dim() > 1 and x.shape[1]:
            yield x[0, 0]
    yield x[None]
    if x.numel():
        yield x.reshape(-1)[0]


def outcome(call: Callable[[], Any]) -> tuple[bool, Any]:
    """Returns whether a call runs, and the shape of its result if it is a tensor."""
    try:
        result = call()
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return False, None
    return True, result.shape if isinstance(result, Tensor) else None


def differs(op: Any) -> bool:
    """Returns whether `vmap` takes other samples of an operator than the operator does with one row."""
    for sample in list(op.sample_inputs("cpu", torch.float32))[:SAMPLES]:
        if not isinstance(sample.input, Tensor) or sample.input.layout is not torch.strided:
            continue
        for row in ranks(sample.input):
            one = row.detach().clone()

            def function(x: Tensor, sample: Any = sample) -> Any:
                return op.op(x, *sample.args, **sample.kwargs)

            alone = outcome(lambda one=one: function(one.clone()))
            rows = torch.stack([one, one])
            together = outcome(lambda rows=rows: torch.vmap(function, randomness="different")(rows))
            if alone[0] != together[0]:
                return True
            if alone[1] is not None and together[1] is not None and alone[1] != together[1][1:]:
                return True
    return False


def differs_over_none(op: Any) -> bool:
    """Returns whether `vmap` treats some samples of an operator otherwise over no rows than over two."""
    for sample in list(op.sample_inputs("cpu", torch.float32))[:SAMPLES]:
        if not isinstance(sample.input, Tensor) or sample.input.layout is not torch.strided:
            continue
        for row in (part for one in ranks(sample.input) if one.dim() for part in (one, one[:1], one[:0])):

            def function(x: Tensor, sample: Any = sample) -> Any:
                return op.op(x, *sample.args, **sample.kwargs)

            for dim in (0, row.dim()):
                two = torch.stack([row.detach()] * 2, dim)
                mapped = torch.vmap(function, in_dims=dim, randomness="different")
                some = outcome(lambda mapped=mapped, two=two: mapped(two))
                none = outcome(lambda mapped=mapped, two=two, dim=dim: mapped(two.narrow(dim, 0, 0)))
                if some[0] != none[0] or (some[1] and none[1] and some[1][1:] != none[1][1:]):
                    return True
    return False


def in_a_child(op: Any, differs: Callable[[Any], bool] = differs) -> bool | None:
    """Returns what `differs` does, in a process of its own; None where that takes too long, or crashes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(SECONDS)
            os.write(write, json.dumps(differs(op)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return json.loads(told) if told else None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_tables_have_what_differs_under_vmap() -> None:
    """An operator that is in no table is treated under `vmap` as it is with one row."""
    from torch.testing._internal.common_methods_invocations import op_db

    known = UNLIKE | WITH_NUMBERS | WITH_TENSORS.keys() | WITH_FORMATS | TAKES_MORE | ASKING
    ops = [op for op in op_db if torch.float32 in op.supported_dtypes("cpu")]
    names = {NAMES.get(op.name, op.name.replace(".", "_").removesuffix("_")): in_a_child(op) for op in ops}
    found = {name for name, unlike in names.items() if unlike}
    assert found <= known, found - known
    assert len(found) > 30 and sum(unlike is False for unlike in names.values()) > 400


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_operators_are_treated_alike_over_no_rows() -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    names = [(op.name.replace(".", "_").removeprefix("nn_functional_"), op) for op in op_db]
    named = [(name, op) for name, op in names if name in OF_NO_ROWS]
    assert [name for name, op in named if in_a_child(op, differs_over_none)] == []
    assert len(named) > 130
