"""The dtype of floats for which a program names none is torch's default dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.typecheck import check
from anyshape.typecheck.checking.api import recorded
from anyshape.typecheck.targets.target_error import TargetError

PROGRAMS: list[Callable[[Tensor], Any]] = [
    lambda x: torch.zeros(len(x)), lambda x: torch.rand(len(x)), lambda x: torch.arange(len(x)) / 2,
    lambda x: torch.tensor([len(x) / 2]), lambda x: torch.tensor([])[: len(x)], lambda x: x.int().sin(),
    lambda x: torch.linspace(0, 1, len(x)), lambda x: torch.eye(len(x)), lambda x: torch.full((len(x),), 2.0),
    lambda x: torch.full((len(x),), 2j), lambda x: x.int().float().mean(),
    lambda x: torch.arange(0.0, len(x)),
    lambda x: x.int() * 0.5, lambda x: x.int() * 1j, lambda x: x * 1j, lambda x: torch.Tensor(len(x), 2),
    lambda x: torch.hann_window(len(x)), lambda x: torch.normal(0.0, 1.0, (len(x),)), lambda x: x * 0.5,
    lambda x: torch.fft.fftfreq(len(x)), lambda x: x.int() ** -0.5,
    lambda x: torch.where(x > 0, 1.0, 2), lambda x: x.type(torch.Tensor), lambda x: torch.empty_like(x),
    lambda x: torch.logspace(0, 1, len(x)), lambda x: torch.scalar_tensor(len(x)), lambda x: x.new_zeros(2),
    lambda x: x.double() @ torch.ones(4, 2), lambda x: nn.Linear(4, 2)(x.double()),
    lambda x: x.int() / x.int(),
    lambda x: x @ torch.ones(4, 2), lambda x: x.bool().softmax(0, dtype=torch.float32),
]  # fmt: skip


@pytest.fixture(params=[torch.float64, torch.float32, torch.bfloat16], ids=str)
def default(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_dtypes_are_those_of_an_eager_run(program: Callable[[Tensor], Any], default: torch.dtype) -> None:
    report = check(program, "x: float32[n, 4]")
    try:
        ran = program(torch.ones(3, 4, dtype=torch.float32))
    except (RuntimeError, NotImplementedError):
        assert report.verdict == "refuted"
        return
    assert report.verdict == "proved"
    assert report.outputs[0].value.dtype == str(ran.dtype).removeprefix("torch.")


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16], indirect=True)
def test_transforms_of_integers(default: torch.dtype) -> None:
    report = check(lambda x: torch.fft.fft(x.int()), "x: float32[n, 4]")
    assert report.verdict == ("proved" if default is torch.float64 else "unknown")
    assert report.outputs[0].value.dtype == "complex128" or default is not torch.float64


def changes_it(x: Tensor) -> Any:
    before = torch.zeros(len(x))
    torch.set_default_dtype(torch.float64)
    y = torch.zeros(len(x))
    torch.set_default_dtype(torch.float32)
    return before, y, torch.zeros(len(x))


def test_a_program_that_changes_it() -> None:
    report = check(changes_it, "x: float32[n]")
    assert report.verdict == "proved"
    assert [str(output.value) for output in report.outputs] == ["float32[n]", "float64[n]", "float32[n]"]
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize("default", [torch.float64], indirect=True)
def test_a_program_with_another_one_is_decided_where_it_is(default: torch.dtype) -> None:
    with pytest.raises(TargetError, match="float64"):
        recorded(lambda x: x, "x: float32[n]")
