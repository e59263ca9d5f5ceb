"""How results lie in memory, by torch itself: operators over layouts of their input and sizes.

Each operator is called on images that are contiguous, transposed, with their channels innermost, expanded and
cut with steps, of sizes 0 to 3. The rule is asked of the same tensor, with its very strides, and what it says
of the layout of the result has to be so. Where it says that it does not know, nothing is claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.constraints.engine.memory import strides_of
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Layout
from anyshape.constraints.ir.language import Tensor as Type
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules
from anyshape.typecheck.testing.differential import REFUSALS, compare_results, lower, run_rule

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "made channels last": lambda x: x.clone(memory_format=torch.channels_last),
    "images of channels last": lambda x: x.permute(0, 2, 3, 1),
    "channels first": lambda x: x.permute(0, 3, 1, 2),
    "transposed": lambda x: x.transpose(1, 2),
    "batch second": lambda x: x.transpose(0, 1),
    "expanded": lambda x: x[:, :1].expand(-1, 3, -1, -1),
    "every second row": lambda x: x[:, :, ::2],
    "without the first column": lambda x: x[..., 1:],
    "one channel": lambda x: x.clone(memory_format=torch.channels_last)[:, :1],
    "one pixel": lambda x: x.clone(memory_format=torch.channels_last)[:, :, :1, :1],
}
OPERATORS: dict[str, tuple[Callable[..., Any], Callable[[Tensor], tuple[Any, ...]]]] = {
    "relu": (torch.relu, lambda x: (x,)),
    "add": (torch.add, lambda x: (x, torch.zeros(x.shape[-1]))),
    "mul": (torch.mul, lambda x: (x, 2)),
    "where": (torch.where, lambda x: (x > 0, x, 0.0)),
    "clone": (torch.clone, lambda x: (x,)),
    "gelu": (F.gelu, lambda x: (x,)),
    "clamp": (torch.clamp, lambda x: (x, 0, 1)),
    "masked_fill": (torch.masked_fill, lambda x: (x, x > 0, 0.0)),
    "zeros_like": (torch.zeros_like, lambda x: (x,)),
    "interpolate": (lambda x, s: F.interpolate(x, s), lambda x: (x, (4, 2))),
    "adaptive_avg_pool2d": (F.adaptive_avg_pool2d, lambda x: (x, 2)),
    "adaptive_max_pool2d": (
        lambda x, size: F.adaptive_max_pool2d(x, size, return_indices=True),
        lambda x: (x, 1),
    ),
    "avg_pool2d": (F.avg_pool2d, lambda x: (x, 1)),
    "max_pool2d": (F.max_pool2d, lambda x: (x, 1)),
    "pad": (F.pad, lambda x: (x, (1, 1))),
    "constant_pad_nd": (F.pad, lambda x: (x.flatten(1, 2), (0, 0, -1, 1))),
    "pixel_shuffle": (F.pixel_shuffle, lambda x: (x, 1)),
    "roll": (torch.roll, lambda x: (x, 1, 2)),
    "flip": (torch.flip, lambda x: (x, (1,))),
    "cat": (torch.cat, lambda x: ((x, x), 1)),
    "stack": (torch.stack, lambda x: ((x, x), 1)),
    "softmax": (torch.softmax, lambda x: (x, 1)),
    "log_softmax": (torch.log_softmax, lambda x: (x, 2)),
    "cumsum": (torch.cumsum, lambda x: (x, 1)),
    "sum": (torch.sum, lambda x: (x, 1, True)),
    "mean": (torch.mean, lambda x: (x, (2, 3), True)),
    "amax": (torch.amax, lambda x: (x, 1)),
    "prod": (torch.prod, lambda x: (x, 2, True)),
    "sort": (torch.sort, lambda x: (x, 1)),
    "topk": (torch.topk, lambda x: (x, 1, 1)),
    "argmax": (torch.argmax, lambda x: (x, 1)),
    "layer_norm": (F.layer_norm, lambda x: (x, (x.shape[-1],))),
    "group_norm": (F.group_norm, lambda x: (x, 1)),
    "instance_norm": (F.instance_norm, lambda x: (x,)),
    "batch_norm": (
        lambda x, *rest: torch.batch_norm(x, *rest),
        lambda x: (x, None, None, None, None, True, 0.1, 1e-5, False),
    ),
    "normalize": (F.normalize, lambda x: (x,)),
    "repeat": (Tensor.repeat, lambda x: (x, 1, 2, 1, 1)),
    "index_select": (torch.index_select, lambda x: (x, 1, torch.zeros(2, dtype=torch.long))),
    "gather": (torch.gather, lambda x: (x, 1, torch.zeros_like(x, dtype=torch.long))),
    "getitem": (Tensor.__getitem__, lambda x: (x, (slice(None), torch.zeros(2, dtype=torch.long)))),
    "tril": (torch.tril, lambda x: (x,)),
    "matmul": (torch.matmul, lambda x: (x, x.transpose(-1, -2))),
    "conv2d": (F.conv2d, lambda x: (x, torch.zeros(2, x.shape[1], 1, 1))),
    "linear": (F.linear, lambda x: (x, torch.zeros(2, x.shape[-1]))),
    "dropout": (torch.dropout, lambda x: (x, 0.5, True)),
    "reshape": (torch.reshape, lambda x: (x, (-1, x.shape[1]))),
    "flatten": (torch.flatten, lambda x: (x, 2)),
    "contiguous": (Tensor.contiguous, lambda x: (x,)),
    "double": (Tensor.double, lambda x: (x,)),
    "unfold": (Tensor.unfold, lambda x: (x, 2, 1, 1)),
    "index_add": (torch.index_add, lambda x: (x, 1, torch.zeros(1, dtype=torch.long), x[:, :1])),
    "fft_rfft": (torch.fft.rfft, lambda x: (x, None, 1)),
    "fft_irfft": (torch.fft.irfft, lambda x: (x, 4, 2)),
    "fft_fft": (torch.fft.fft, lambda x: (x, 1, 0)),
    "fft_ifft": (torch.fft.ifft, lambda x: (x, None, 3)),
    "fft_hfft": (torch.fft.hfft, lambda x: (x, 3, 1)),
    "fft_ihfft": (torch.fft.ihfft, lambda x: (x, None, 2)),
    "scatter": (torch.scatter, lambda x: (x, 1, torch.zeros_like(x, dtype=torch.long), 0.0)),
}
SOME = [*product((1, 2), repeat=4), (2, 3, 1, 3), (3, 2, 3, 1), (1, 3, 2, 2), (2, 3, 0, 2), (2, 0, 2, 3)]
ALL = [*product((0, 1, 2, 3), repeat=4)]
Sizes = list[tuple[int, ...]]


def inputs(sizes: Sizes) -> Iterator[tuple[str, Tensor]]:
    for size in sizes:
        for name, lay_out in LAYOUTS.items():
            try:
                yield f"{name} of {size}", lay_out(torch.rand(size))
            except REFUSALS:
                continue


def compared(op: str, rules: Rules, sizes: Sizes) -> Counter[bool]:
    """How many results there were of which the rule knows the layout, and of which it does not."""
    call, arguments = OPERATORS[op]
    seen: Counter[bool] = Counter()
    for where, tensor in inputs(sizes):
        try:
            args = arguments(tensor)
            real = call(*args)
        except REFUSALS:
            continue
        accepted, result, _ = run_rule(rules, op, tuple(map(lower, args)), {}, Domain())
        if accepted is not True:
            continue
        compare_results(result, real, {}, f"{op} of {where}, strides {tensor.stride()}")
        parts = result if isinstance(result, tuple) else (result,)
        seen.update(part.layout is not Layout.UNKNOWN for part in parts if isinstance(part, Type))
    return seen


@pytest.mark.parametrize("op", OPERATORS)
def test_results_lie_as_they_are_said_to(op: str) -> None:
    seen = compared(op, default_rules, SOME)
    assert seen[True] > 50


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_results_lie_as_they_are_said_to_whatever_the_sizes(op: str) -> None:
    assert compared(op, default_rules, ALL)[True] > 500


@pytest.mark.parametrize("name", LAYOUTS)
def test_slices_and_new_dims_have_the_strides_of_torch(name: str) -> None:
    """Also along dims of size 1."""
    x = LAYOUTS[name](torch.rand(2, 3, 4, 5))
    for index in product([None, ..., slice(None), slice(1, None, 2), slice(0, 1), 0], repeat=3):
        if index.count(...) < 2:
            _, result, _ = run_rule(default_rules, "getitem", (lower(x), lower(index)), {}, Domain())
            assert strides_of(result) == x[index].stride(), index


def test_wrong_layouts_are_seen() -> None:
    def row_major(c: Any, input: Type, *others: Any) -> Type:
        return Type(input.shape, input.dtype)

    with pytest.raises(AssertionError, match="rule says contiguous"):
        compared("flip", default_rules + {"flip": row_major}, SOME)
