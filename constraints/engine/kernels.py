"""The dtypes that operators have no CPU kernel for, where only the missing kernel refuses the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..ir.language import Context, Tensor
from ..ir.release import Release
from ..terms.formula import le
from ..terms.rows import row_of

_SMALL: Final = "uint8 int8 int16 int32"
_SIGNED: Final = "int8 int16 int32 int64"
_WHOLE: Final = f"{_SMALL} int64"
_COMPLEX: Final = "complex64 complex128"
_HALF: Final = "float16 bfloat16"

_ROWS: Final[Mapping[str, str]] = {
    "max_pool1d": f"bool {_WHOLE} {_COMPLEX}",
    "max_pool2d max_pool3d": f"bool {_COMPLEX}",
    "avg_pool1d avg_pool2d": f"bool {_SMALL} {_COMPLEX}",
    "avg_pool3d": f"bool {_SMALL} {_HALF} {_COMPLEX}",
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d": f"bool {_WHOLE} {_COMPLEX}",
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d": f"bool {_WHOLE}",
    "max_unpool2d": f"bool {_WHOLE} {_COMPLEX}",
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d": f"bool {_SIGNED} {_COMPLEX}",
    "_upsample_nearest_exact2d": f"bool {_SIGNED} {_COMPLEX}",
    "upsample_linear1d upsample_trilinear3d": f"bool {_WHOLE} {_COMPLEX}",
    "upsample_bilinear2d upsample_bicubic2d": f"bool {_SIGNED} {_COMPLEX}",
    "grid_sampler": f"bool {_WHOLE} {_COMPLEX}",
    "conv1d conv2d": "bool",
    "conv_transpose1d": f"bool {_SMALL}",
    "im2col col2im": _WHOLE,
    "cdist quantile fft_fft fft_ifft fft_rfft": _HALF,
    "_unique2 _unique_consecutive dropout alpha_dropout": _COMPLEX,
    "searchsorted bucketize": f"bool {_COMPLEX}",
    "cross": "bool",
    "lerp": f"bool {_WHOLE}",
    "hardtanh": "uint8",
}

WITHOUT: Final[Mapping[str, frozenset[str]]] = {
    op: frozenset(dtypes.split()) for ops, dtypes in _ROWS.items() for op in ops.split()
}
"""For each operator, the dtypes of its first tensor that no kernel accepts."""
_UNTIL: Final[Mapping[str, Release]] = dict.fromkeys(("dropout", "alpha_dropout", "hardtanh"), (2, 15))
"""The operators among them that have these kernels since a release of torch."""
_MAKERS: Final[Mapping[str, tuple[str, int]]] = {
    "rand rand_like": (f"bool {_WHOLE}", -1),
    "randn randn_like normal": (f"bool {_WHOLE}", 0),
    "randint randint_like": (_COMPLEX, -1),
    "randperm arange": (f"bool {_COMPLEX}", -1),
    "linspace logspace": ("bool", 1),
    "tril_indices triu_indices": (f"bool uint8 int8 int16 {_HALF} float32 float64 {_COMPLEX}", -1),
}
MADE_WITHOUT: Final[Mapping[str, tuple[frozenset[str], int]]] = {
    op: (frozenset(dtypes.split()), few)
    for ops, (dtypes, few) in _MAKERS.items()
    for op in ops.split()
}
"""Operator -> the dtypes of results that no kernel makes, and how many elements need none, if any do."""
_NO_KERNEL: Final[Mapping[str, type[Exception]]] = dict.fromkeys(("randint", "randint_like"), RuntimeError)


def require_maker(c: Context, op: str, result: Any) -> None:
    """Refuses a result of a dtype that no kernel makes."""
    without, few = MADE_WITHOUT.get(op, (frozenset(), 0))
    if isinstance(result, Tensor) and result.dtype in without:
        told = f"{op} has no kernel for {result.dtype}"
        c.require(le(result.numel, few), told, _NO_KERNEL.get(op, NotImplementedError))


def require_kernel(c: Context, op: str, named: Mapping[str, Any]) -> None:
    """Refuses a tensor whose dtype no kernel accepts, unless it may be empty, when no kernel may be called.
    """
    without = WITHOUT.get(op)
    if without is None or (op in _UNTIL and c.since(*_UNTIL[op])):
        return
    tensor = next(value for value in named.values() if isinstance(value, Tensor))
    if tensor.dtype not in without:
        return
    if not all(row_of(size) is not None or c.at_least(size, 1) for size in tensor.shape):
        c.approximate(f"{op} has no kernel for {tensor.dtype}; empty tensors may not need one", "accept")
        return
    c.require(False, f"{op} has no kernel for {tensor.dtype}", NotImplementedError)
