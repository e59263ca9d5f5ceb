"""Strides that a program asks for, compared with those of an eager run, with and without elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape import check
from anyshape.constraints.terms.dims import evaluate
from anyshape.constraints.terms.formula import holds
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import parse_dim

MAKERS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x,
    lambda x: x + 1,
    lambda x: x > 0,
    lambda x: x[:, None] + x,
    lambda x: x.clone(),
    lambda x: torch.zeros(x.shape),
    lambda x: x.softmax(1),
    lambda x: torch.cat([x, x], 1),
    lambda x: F.pad(x, (1, 0)),
    lambda x: F.pad(x, (-2, -2)),
    lambda x: F.pad(x, (-4, 0)),
    lambda x: F.pad(x, (-4, 0)) * 2,
    lambda x: F.pad(x, (0, 0, 0, -1)),
    lambda x: x[1:],
    lambda x: x.t(),
]


@pytest.mark.parametrize("make", MAKERS)
def test_strides_are_those_of_an_eager_run_or_not_known(make: Callable[[Tensor], Tensor]) -> None:
    """So are the offset of a view, and whether the channels of images lie innermost."""

    def outer(x: Tensor) -> tuple[int, ...]:
        return make(x).stride()

    for a, b in itertools.product((0, 1, 2, 3), (1, 4, 5)):
        report = check(outer, f"x: float32[a, {b}]", [f"a == {a}"], replay=False)
        try:
            made = make(torch.zeros(a, b))
        except (RuntimeError, IndexError):
            assert report.verdict in ("refuted", "unknown")
            continue
        if report.verdict == "proved":
            assert [int(str(output.value)) for output in report.outputs] == [*made.stride()], (a, b)
        else:
            assert report.verdict == "unknown" and min(made.shape) < 2, (a, b, report.to_text())


ASKED: list[Callable[[Tensor], int]] = [
    lambda x: x[1:, 1:].storage_offset(),
    lambda x: x[:, 1:].storage_offset(),
    lambda x: x.t()[1:].storage_offset(),
    lambda x: x.chunk(2)[-1].storage_offset(),
    lambda x: x.is_contiguous(memory_format=torch.channels_last),
    lambda x: x.new_zeros(2, 1, *x.shape).is_contiguous(memory_format=torch.channels_last),
    lambda x: x.new_zeros(*x.shape, 3, 1).is_contiguous(memory_format=torch.channels_last),
    lambda x: x.new_zeros(2, 1, 3, *x.shape).is_contiguous(memory_format=torch.channels_last_3d),
    lambda x: x[:, None, None].is_contiguous(memory_format=torch.channels_last),
    lambda x: x.new_zeros(2, 3, *x.shape)[:, :1].is_contiguous(memory_format=torch.channels_last),
    lambda x: x.new_zeros(1, x.shape[1]).expand(x.shape[0], -1).stride(0),
    lambda x: x.new_zeros(1, x.shape[1]).expand(x.shape[0], -1).t().stride(1),
    lambda x: x.new_zeros(1, x.shape[1]).expand(x.shape[0], -1)[1:].stride(0),
    lambda x: x.new_zeros(x.shape[1], 1).t().expand(x.shape[0], -1).stride(0),
    lambda x: x.new_zeros(x.shape[1]).expand(x.shape[0], -1).stride(0),
    lambda x: x.sum().expand(x.shape).stride(0),
    lambda x: x.expand(x.shape[1], -1, -1).stride(0),
    lambda x: torch.broadcast_tensors(x.new_zeros(1, x.shape[1]), x)[0].stride(0),
]


@pytest.mark.parametrize("ask", ASKED)
def test_places_and_formats_are_those_of_an_eager_run_or_not_known(ask: Callable[[Tensor], int]) -> None:
    decided = 0
    for a, b in itertools.product((0, 1, 2, 3), (0, 1, 4)):
        assumed = [f"{a} <= a <= {a + 4}", f"{b} <= b <= {b + 4}"]
        report = check(lambda x: x.new_zeros(int(ask(x))), "x: float32[a, b]", assumed, replay=False)
        if report.verdict == "unknown":
            continue
        decided += 1
        told = [o for o in report.outputs if not o.when or holds(parse_formula(o.when), {"a": a, "b": b})]
        size = evaluate(parse_dim(str(told[0].value)[8:-1]), {"a": a, "b": b})
        assert len(told) == 1 and size == int(ask(torch.zeros(a, b))), (a, b, report.to_text())
    assert decided


BEYOND: list[Callable[[Tensor], Tensor]] = [
    lambda x: x[2:2].view(5, 0)[2:].as_strided((1,), (1,)),
    lambda x: x.view(x[2:2].view(5, 0)[2:].storage_offset() + 1, -1),
]


@pytest.mark.parametrize("refused", BEYOND)
def test_where_a_view_without_elements_begins_in_the_elements_of_another(
    refused: Callable[[Tensor], Tensor],
) -> None:
    with pytest.raises(RuntimeError, match=r"out of bounds|invalid for input"):
        refused(torch.zeros(3, 1))
    report = check(refused, "x: float32[a, b]", replay=False)
    assert not report.accepts.exact and not report.accepts.certain.holds(a=3, b=1), report.to_text()


LAID_BY_SIZES: list[Callable[[Tensor], Tensor]] = [
    lambda x: x.t().contiguous(),
    lambda x: x.t() + x.new_ones(x.shape[0]),
    lambda x: torch.zeros(1, x.shape[0]).expand(x.shape[0], -1).flip(0),
]
"""Tensors whose layout depends on which sizes are 1."""
TURNED_IN_PLACE: list[Callable[[Tensor], Tensor]] = [
    lambda y: y.t_(),
    lambda y: y.swapdims_(-1, -2),
    lambda y: y.unsqueeze_(0).squeeze_(0).transpose_(0, 1),
    lambda y: y.squeeze_(0).transpose_(0, -1),
    lambda y: y.as_strided_((y.shape[0], y.shape[-1]), (1, y.shape[0])),
    lambda y: y.add_(1),
]
VIEWED: list[Callable[[Tensor], Tensor]] = [
    lambda y: y.view(-1),
    lambda y: y.reshape(y.shape[0], -1).t().view(-1),
]


@pytest.mark.parametrize("turn", range(len(TURNED_IN_PLACE)))
@pytest.mark.parametrize("made", range(len(LAID_BY_SIZES)))
def test_a_tensor_whose_dims_are_turned_in_place_lies_otherwise(made: int, turn: int) -> None:
    for view in VIEWED:

        def viewed(x: Tensor, view: Callable[[Tensor], Tensor] = view) -> Tensor:
            y = LAID_BY_SIZES[made](x)
            TURNED_IN_PLACE[turn](y)
            return view(y)

        report = check(viewed, "x: float32[a, b]", replay=False)
        for a, b in itertools.product(range(1, 4), repeat=2):
            try:
                viewed(torch.zeros(a, b))
            except RuntimeError:
                assert not report.accepts.certain.holds(a=a, b=b), (a, b, report.to_text())
            else:
                assert report.accepts.holds(a=a, b=b) or not report.accepts.exact, (a, b, report.to_text())
