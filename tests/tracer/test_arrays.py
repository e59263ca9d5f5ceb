"""Arrays of NumPy that hold sizes: what a program makes of them at every small size is what NumPy makes of
numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import evaluate
from anyshape.constraints.terms.formula import holds
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.recording.record import record


def shapes(target: Callable[..., Any]) -> Callable[[int, int], tuple[int, ...]]:
    """What the program returns as its output's shape for an input of such a shape."""
    spec = parse_spec("x: [a, b]")
    system, _ = record(target, spec, default_rules, DomainOracle(spec.domain))

    def at(a: int, b: int) -> tuple[int, ...]:
        values = {"a": a, "b": b}
        (path,) = [p for p in system.paths if holds(p.premise, values)]
        assert path.end.how == "returned", path.end
        assert not path.notes, path.notes
        ((_, output),) = path.program.outputs
        shape = path.values[output.id].shape  # type: ignore[union-attr]
        return tuple(evaluate(d, values) for d in shape)

    return at


def kind(array: Any) -> int:
    """A number for the dtype: what a program can ask."""
    return {"i": 1, "f": 2, "b": 3, "O": 4}[array.dtype.kind]


def written(table: Any) -> Any:
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[0] += 1
    return table.reshape(-1)


PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "sizes": lambda x: x.new_zeros(tuple(np.array(x.shape) * 2 + 1)),
    "a size": lambda x: x.new_zeros(int(np.asarray(x.shape[0])), int(np.array(3) + x.shape[1])),
    "mixed": lambda x: x.new_zeros(tuple(np.array([3, x.shape[0], *x.shape]))),
    "table": lambda x: x.new_zeros(tuple(np.array([x.shape, (2, 3)]).T.sum(axis=1))),
    "dtypes": lambda x: x.new_zeros(
        kind(np.array(x.shape)), kind(np.array(x.shape) / 2), kind(np.array(x.shape) > 2)
    ),
    "is integer": lambda x: x.new_zeros(1 + np.issubdtype(np.asarray(x.shape).dtype, np.integer)),
    "running": lambda x: x.new_zeros((*(np.cumsum(x.shape) // 2), int(np.prod(np.array(x.shape))))),
    "greatest": lambda x: x.new_zeros(int(np.max(x.shape)), int(np.array(x.shape).min())),
    "rounded up": lambda x: x.new_zeros(tuple(np.ceil(np.array(x.shape) / 2).astype(int))),
    "rounded": lambda x: x.new_zeros(int(np.rint(x.shape[0] / 2)), int(np.floor(x.shape[1] / 3))),
    "root": lambda x: x.new_zeros(int(np.sqrt(x.shape[0])), int(np.sqrt(x.numel()))),
    "logarithm": lambda x: x.new_zeros(3 if np.log2(x.shape[0]) >= 2 else 2),
    "divided by zero": lambda x: x.new_zeros(int((np.array([4]) // (np.array(x.shape[:1]) - 2)).max()) % 5),
    "of few bits": lambda x: x.new_zeros(int(np.array(x.shape[0] % 3 + 254).astype("uint8")) % 7),
    "float": lambda x: x.new_zeros(int(float(x.shape[0]) * 0.5), int(np.float64(1.5) * x.shape[1])),
    "joined": lambda x: x.new_zeros(tuple(np.concatenate([np.array(x.shape), [3]])[::-1])),
    "sorted": lambda x: x.new_zeros(tuple(np.sort(x.shape))),
    "chosen": lambda x: x.new_zeros(int((np.array(x.shape) > 2).sum()) + 1),
    "as a tensor": lambda x: torch.tensor(np.array(x.shape)) + torch.zeros(1, 2),
    "numbers": lambda x: x.new_zeros(len(np.arange(min(x.shape[0], 3)))),
    "rows": lambda x: torch.from_numpy(np.zeros((x.shape[0], 3), dtype=np.float32))[1:],
    "blocks": lambda x: torch.tensor(
        np.stack([np.zeros((x.shape[0] + 2, np.sum([1, 2])), dtype=np.int32)[1 : x.shape[0]] for _ in "ab"])
    ),
    "positions": lambda x: torch.from_numpy(np.arange(x.shape[0])[:, None] * np.array([1.0, 2.0, 3.0])),
    "some positions": lambda x: torch.tensor(np.arange(x.shape[1], 2 * x.shape[0], 3)),
    "between": lambda x: torch.as_tensor(np.linspace(0, 1, x.shape[0]))[::2],
    "broadcast": lambda x: torch.tensor(np.ones((x.shape[0], 1)) + np.ones(x.shape[1])).T,
    "kinds": lambda x: x.new_zeros(kind(np.ones(x.shape[0]) > 0), kind(np.arange(x.shape[0]) / 2)),
    "is array": lambda x: x.new_zeros(1 + isinstance(np.zeros(x.shape[0]), np.ndarray)),
    "copied": lambda x: torch.tensor(np.asarray(np.array(np.zeros(x.shape)), dtype=np.float32)),
    "beside a tensor": lambda x: x + torch.from_numpy(np.arange(x.shape[1])),
    "written": lambda x: torch.from_numpy(written(np.zeros(x.shape))),
    "reduced": lambda x: torch.tensor(np.concatenate([np.ones(x.shape), np.zeros((2, x.shape[1]))]).sum(0)),
    "others": lambda x: x.new_zeros(int(np.array([3, 4]).astype(int).sum()), np.prod([2, 3])),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_arrays_of_sizes_are_those_of_numpy(program: Callable[[Tensor], Tensor]) -> None:
    told = shapes(program)
    for a, b in itertools.product(range(1, 6), repeat=2):
        assert told(a, b) == tuple(program(torch.zeros(a, b)).shape), (a, b)


def test_a_wrong_answer_is_seen() -> None:
    told = shapes(lambda x: x.new_zeros(int(np.sum(x.shape))))
    assert any(told(a, 2) != (int(np.prod([a, 2])),) for a in range(1, 6))


def test_arrays_that_do_not_broadcast_are_refused() -> None:
    spec = parse_spec("x: [a, b]")
    program = lambda x: torch.from_numpy(np.ones(x.shape[0]) + np.ones(x.shape[1]))  # noqa: E731
    system, _ = record(program, spec, default_rules, DomainOracle(spec.domain))
    for a, b in itertools.product(range(1, 4), repeat=2):
        (path,) = [p for p in system.paths if holds(p.premise, {"a": a, "b": b})]
        runs = all(holds(c.formula, {"a": a, "b": b}) for c in path.constraints)
        assert runs == (a == b or 1 in (a, b))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.from_numpy(np.zeros(x.shape)[::-1].copy()),  # torch has no slices backwards
        lambda x: x.new_zeros(len(np.frombuffer(np.zeros(x.shape)))),  # not a function of shapes
        lambda x: np.zeros(x.shape) + x,  # what that is depends on both libraries
        lambda x: torch.tensor(np.linalg.svd(np.zeros(x.shape))[1]),  # not known to be the same
    ],
)
def test_what_is_not_known_of_arrays_without_data_is_not_claimed(program: Callable[[Tensor], Tensor]) -> None:
    spec = parse_spec("x: [a, b]")
    system, _ = record(program, spec, default_rules, DomainOracle(spec.domain))
    assert {path.end.how for path in system.paths} == {"gave-up"}


def test_numpy_is_itself_again_after_a_recording() -> None:
    before = np.array, np.prod, np.cumsum
    shapes(lambda x: x.new_zeros(int(np.prod(np.array(x.shape)))))
    assert (np.array, np.prod, np.cumsum) == before
    assert type(np.array([1, 2])) is np.ndarray
