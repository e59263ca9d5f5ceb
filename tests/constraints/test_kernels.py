"""Which dtypes have kernels: torch itself is asked for each operator of the table, with all dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.constraints.engine.kernels import WITHOUT
from anyshape.typecheck import check

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


def resized(mode: str, dims: int) -> Callable[[Tensor], Tensor]:
    return lambda x: F.interpolate(x[(None,) * dims], size=3, mode=mode)


PLACES = torch.zeros(1, 2, 4, dtype=torch.int64)
CALLS: dict[str, Callable[[Tensor], Any]] = {
    "max_pool1d": lambda x: F.max_pool1d(x, 1),
    "max_pool2d": lambda x: F.max_pool2d(x[None], 1),
    "max_pool3d": lambda x: F.max_pool3d(x[None, None], 1),
    "avg_pool1d": lambda x: F.avg_pool1d(x, 1),
    "avg_pool2d": lambda x: F.avg_pool2d(x[None], 1),
    "avg_pool3d": lambda x: F.avg_pool3d(x[None, None], 1),
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x, 1),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x[None], 1),
    "adaptive_max_pool3d": lambda x: F.adaptive_max_pool3d(x[None, None], 1),
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x, 1),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x[None], 1),
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x[None, None], 1),
    "max_unpool2d": lambda x: F.max_unpool1d(x[None], PLACES, 1),
    "upsample_nearest1d": resized("nearest", 1),
    "upsample_nearest2d": resized("nearest", 2),
    "upsample_nearest3d": resized("nearest", 3),
    "_upsample_nearest_exact2d": resized("nearest-exact", 2),
    "upsample_linear1d": resized("linear", 1),
    "upsample_trilinear3d": resized("trilinear", 3),
    "upsample_bilinear2d": resized("bilinear", 2),
    "upsample_bicubic2d": resized("bicubic", 2),
    "grid_sampler": lambda x: F.grid_sample(x[None, None], x[None, :1, :1, None][..., [0, 0]]),
    "conv1d": lambda x: F.conv1d(x, x[None, :, :1].expand(1, x.shape[0], 1)),
    "conv2d": lambda x: F.conv2d(x[None], x[:1, :1][None, None]),
    "conv_transpose1d": lambda x: F.conv_transpose1d(x, x[:, None, :1]),
    "im2col": lambda x: F.unfold(x[None, None], 1),
    "col2im": lambda x: F.fold(x[None, :1], (2, 2), 1),
    "cdist": lambda x: torch.cdist(x, x),
    "quantile": lambda x: torch.quantile(x, 0.5),
    "fft_fft": torch.fft.fft,
    "fft_ifft": torch.fft.ifft,
    "fft_rfft": torch.fft.rfft,
    "_unique2": lambda x: torch.unique(x),
    "_unique_consecutive": lambda x: torch.unique_consecutive(x),
    "dropout": lambda x: F.dropout(x),
    "alpha_dropout": lambda x: F.alpha_dropout(x, training=True),
    "searchsorted": lambda x: torch.searchsorted(x[0], x[0]),
    "bucketize": lambda x: torch.bucketize(x, x[0]),
    "cross": lambda x: torch.cross(x[:, :3], x[:, :3], 1),
    "lerp": lambda x: torch.lerp(x, x, 0.5),
    "hardtanh": lambda x: F.hardtanh(x),
}


def runs(call: Callable[[Tensor], Any], dtype: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(torch.ones(2, 4, dtype=getattr(torch, dtype)))
        except (RuntimeError, TypeError):
            return False
    return True


@pytest.mark.parametrize("op", sorted(WITHOUT))
def test_dtypes_are_taken_where_there_are_kernels(op: str) -> None:
    """The table refuses none that torch takes, and takes none that torch refuses."""
    for dtype in DTYPES:
        report = check(CALLS[op], f"x: {dtype}[2, 4]", replay=False)
        assert (report.verdict == "proved") == runs(CALLS[op], dtype), f"{dtype}: {report.to_text()}"


def test_what_may_have_no_elements_is_told() -> None:
    report = check(lambda x: torch.lerp(x, x, 0.5), "x: int64[n]", "0 <= n", replay=False)
    assert "approximate" in {finding.code for finding in report.findings}
