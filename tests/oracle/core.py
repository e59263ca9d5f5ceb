"""Calls of those core ATen operators that nothing in torch's databases comes down to.

`torch.Tag.core` marks the operators that a graph has after `run_decompositions()`. Most arrive here by
themselves, as what an operator's sample calls; the rest are written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch

aten = torch.ops.aten
ALL = [True, True, True]
"""Every gradient is asked for."""


def calls() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Operator, arguments, named arguments."""

    def call(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return op, args, kwargs

    def f(*sizes: int) -> torch.Tensor:
        return torch.rand(sizes)

    def ints(*sizes: int) -> torch.Tensor:
        return torch.randint(3, sizes)

    bags = torch.tensor([0, 2, 5])
    yield call(aten._adaptive_avg_pool2d_backward.default, f(2, 3, 2, 2), f(2, 3, 5, 7))
    yield call(aten._embedding_bag.default, f(5, 3), ints(8), bags)
    yield call(aten._embedding_bag.default, f(5, 3), ints(8), bags, False, 1)
    yield call(aten._native_batch_norm_legit.no_stats, f(4, 3, 5), f(3), f(3), True, 0.1, 1e-5)
    yield call(
        aten._native_batch_norm_legit_no_training.default, f(4, 3, 5), f(3), f(3), f(3), f(3), 0.1, 1e-5
    )
    yield call(aten.adaptive_avg_pool1d.default, f(2, 3, 7), [4])
    yield call(aten.any.dims, f(2, 3, 4), [0, 2])
    yield call(aten.any.dims, f(2, 3, 4), [1], True)
    yield call(aten.atan2.out, f(2, 3), f(3), out=f(0))
    yield call(aten.avg_pool1d.default, f(2, 3, 9), [3], [2], [1])
    yield call(
        aten.avg_pool2d_backward.default, f(2, 3, 3, 4), f(2, 3, 6, 8), [2, 2], [2, 2], [0, 0], False, True, 3
    )
    yield call(aten.bitwise_and.Scalar, ints(2, 3), 1)
    yield call(aten.bitwise_or.Scalar, ints(2, 3), 1)
    yield call(aten.bitwise_xor.Scalar, ints(2, 3), 1)
    yield call(aten.col2im.default, f(2, 12, 20), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1])
    grad, image, weight = f(2, 4, 5, 6), f(2, 3, 7, 8), f(4, 3, 3, 3)
    yield call(
        aten.convolution_backward.default, grad, image, weight, [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
        ALL,
    )
    yield call(aten.copy.default, f(2, 3), f(3))
    yield call(aten.div.Scalar_mode, f(2, 3), 2, rounding_mode="floor")
    yield call(aten.embedding_dense_backward.default, f(4, 3), ints(4), 5, -1, False)
    yield call(aten.fmod.Scalar, f(2, 3), 2)
    yield call(aten.gt.Scalar, f(2, 3), 2)
    yield call(aten.native_dropout.default, f(2, 3), 0.5, True)
    yield call(
        aten.native_group_norm_backward.default, f(2, 6, 5), f(2, 6, 5), f(2, 3), f(2, 3), f(6), 2, 6, 5, 3,
        ALL,
    )
    image, mean = f(2, 3, 4), f(2, 3, 1)
    yield call(aten.native_layer_norm_backward.default, image, image, [4], mean, mean, f(4), f(4), ALL)
    yield call(aten.pow.Scalar, 2, f(2, 3))
    yield call(aten.randperm.default, 5, device="cpu", pin_memory=False)
    yield call(aten.reflection_pad2d.default, f(2, 3, 4), [1, 2, 0, 1])
    yield call(aten.reflection_pad3d.default, f(2, 3, 4, 5), [1, 2, 0, 1, 1, 1])
    yield call(aten.replication_pad3d.default, f(2, 3, 4, 5), [1, 2, 0, 1, 1, 1])
    yield call(aten.scatter.value, f(4, 5), 1, ints(4, 2), 1.0)
    yield call(aten.sym_numel.default, f(2, 3))
    yield call(aten.sym_is_contiguous.default, f(2, 3).mT)
    yield call(aten.sym_size.int, f(2, 3), 1)
    yield call(aten.sym_stride.int, f(2, 3), 0)
    yield call(aten.sym_storage_offset.default, f(2, 3))
    yield call(aten.upsample_bilinear2d.vec, f(1, 2, 4, 5), None, False, [2.0, 2.0])
    yield call(aten.upsample_nearest2d.vec, f(1, 2, 4, 5), [7, 3], None)
    yield call(aten.var.dim, f(2, 3, 4), [1])


@cache
def overloads() -> tuple[str, ...]:
    """The names of all core operators: `aten.add.Tensor`."""
    names = {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    packets = [getattr(aten, name.removeprefix("aten::")) for name in names if name.startswith("aten::")]
    found = [getattr(packet, overload) for packet in packets for overload in packet.overloads()]
    return tuple(sorted(str(op) for op in found if torch.Tag.core in op.tags))
