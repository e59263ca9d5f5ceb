"""Which dtypes have kernels: torch itself is asked for each operator of the table, with all dtypes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from oracle import dtypes
from oracle.judge import DISAGREEMENTS
from oracle.samples import entries
from torch import Tensor

from anyshape.constraints.engine import kernels
from anyshape.constraints.engine.kernels import Kernels, kernels_of
from anyshape.constraints.ir.release import Release, release_of
from anyshape.constraints.rules import default_rules
from anyshape.tracer.host.operators import INSTALLED
from anyshape.tracer.readers import graph, pt2
from anyshape.typecheck import check
from anyshape.typecheck.targets.target_error import TargetError

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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", sorted(CALLS))
def test_dtypes_are_taken_where_there_are_kernels(op: str) -> None:
    """No call is proved to run that torch refuses, and none refused that it runs."""
    for dtype in DTYPES:
        report = check(CALLS[op], f"x: {dtype}[2, 4]", replay=False)
        assert (report.verdict == "proved") == runs(CALLS[op], dtype), f"{dtype}: {report.to_text()}"


def test_what_may_have_no_elements_is_told() -> None:
    report = check(lambda x: torch.lerp(x, x, 0.5), "x: int64[n]", "0 <= n", replay=False)
    assert report.verdict == "refuted"  # torch refuses an empty one, too
    with pytest.raises(NotImplementedError):
        torch.lerp(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64), 0.5)


# ---- the table


def test_rows_are_of_all_dtypes_and_known_letters() -> None:
    data = json.loads(files(kernels.__package__).joinpath("kernels.json").read_text())
    for device in kernels.DEVICES:
        for rows in (data[device]["rows"], *data[device]["changed"].values()):
            for kind, row in rows.items():
                assert len(row) == len(kernels.DTYPES), kind
                assert set(row) <= {kernels.RUNS, *kernels.REFUSALS}, kind
    assert set(data["cpu"]["changed"]) <= set(kernels.releases())


def test_a_release_without_rows_goes_by_the_one_before_it() -> None:
    first, last = kernels.releases()[0], kernels.releases()[-1]
    assert kernels_of("cpu") is kernels_of("cpu", release_of(last)) is kernels_of("cpu", (99, 0))
    assert kernels_of("cpu", (1, 0)) is kernels_of("cpu", release_of(first))
    assert kernels_of("mps") is None


REFUSED_ITSELF = """cdist count_nonzero cov dist einsum index_reduce_prod index_select linalg_ldl_solve
linalg_lu_solve linalg_tensorinv lu_solve max_binary max_reduction_with_dim nansum
nn_functional_cross_entropy nn_functional_feature_alpha_dropout_with_train
nn_functional_hinge_embedding_loss nn_functional_relu6 nn_functional_soft_margin_loss
quantile round_decimals_0 std tensordot trapezoid zeros"""
SAMPLED = [
    *dtypes.operators()[::23], "nn_functional_interpolate_nearest", "special_erfcx", "lu_unpack",
    *REFUSED_ITSELF.split(),
]  # fmt: skip
@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [name for name in SAMPLED if name != dtypes.OTHERS])
def test_the_rules_and_torch_agree_on_dtypes(name: str) -> None:
    wrong = [
        (dtype, *way) for dtype, *way in dtypes.compared(entries()[name]) if way[0] in DISAGREEMENTS
    ]
    assert wrong == []


@pytest.mark.parametrize("planted, kind", [("N" * len(kernels.DTYPES), "refuses"), ("", "accepts")])
def test_a_wrong_row_does_not_go_unnoticed(planted: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Kernels.of("cpu", {"special_airy_ai": planted} if planted else {})
    monkeypatch.setattr("anyshape.tracer.recording.decisions.kernels_of", lambda device, release: wrong)
    assert kind in {way for _, way, *_ in dtypes.compared(entries()["special_airy_ai"])}


# ---- devices


def bits(x: Tensor) -> Tensor:
    return torch.special.airy_ai(x)


def test_another_device_takes_other_dtypes() -> None:
    def pooled(x: Tensor) -> Tensor:
        return F.avg_pool3d(x, 1)

    half = "x: float16[1, 2, 2, 2]"
    assert check(pooled, half, replay=False).verdict == "refuted"
    assert check(pooled, half, device="cuda", replay=False).verdict == "proved"
    assert check(bits, "x: float16[n]", device="cuda", replay=False).verdict == "refuted"


def test_what_is_not_known_of_a_device_is_approximate() -> None:
    report = check(bits, "x: uint16[n]", device="cuda", replay=False)
    assert report.verdict != "proved"
    assert "approximate" in {finding.code for finding in report.findings}


def test_an_unknown_device_is_told() -> None:
    with pytest.raises(TargetError, match="no device"):
        check(bits, "x: [n]", device="gpu")


# ---- releases


def test_a_saved_program_goes_by_the_release_that_wrote_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, Release | None]] = []

    def of(device: str, release: Release | None = None) -> Kernels | None:
        asked.append((device, release))
        return kernels_of(device, release)

    class Airy(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.special.airy_ai(x)

    monkeypatch.setattr("anyshape.tracer.readers.graph.kernels_of", of)
    exported = torch.export.export(Airy(), (torch.ones(3),))
    torch.export.save(exported, tmp_path / "airy.pt2")
    traced = pt2.read(tmp_path / "airy.pt2")
    assert (traced.device, traced.release) == ("cpu", INSTALLED)
    graph.system(traced, default_rules)
    graph.system(traced, default_rules, device="cuda")
    assert asked == [("cpu", INSTALLED), ("cuda", INSTALLED)]


SHORT_CUTS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "one along the dim": (lambda x: x.argmax(0), "uint16"),
    "one along another dim": (lambda x: x.argmin(1), "uint32"),
    "of all": (lambda x: x.argmax(), "uint16"),
    "a number": (lambda x: torch.linspace(0, 1, x.shape[0], dtype=x.dtype), "uint16"),
    "a mean": (lambda x: F.adaptive_avg_pool1d(x[None], 1), "complex64"),
    "averages": (lambda x: F.adaptive_avg_pool1d(x[None], 2), "complex64"),
}
"""Calls that need no kernel at some sizes, and a dtype that has none."""


@pytest.mark.parametrize("name", SHORT_CUTS)
def test_some_sizes_need_no_kernel(name: str) -> None:
    target, dtype = SHORT_CUTS[name]
    report = check(target, f"x: {dtype}[a, 3]", assume="a >= 0", replay=False)
    for a in range(5):
        try:
            target(torch.zeros(a, 3).to(getattr(torch, dtype)))
        except (RuntimeError, IndexError):
            assert not report.accepts.certain.holds(a=a), a
        else:
            assert report.accepts.holds(a=a), a


@pytest.mark.parametrize("dtype", ["uint16", "bool", "complex64", "float32"])
@pytest.mark.parametrize("sizes", [(), (1,)])
@pytest.mark.parametrize("op", ["kthvalue", "topk", "median", "mode", "sort", "cummax", "max"])
def test_a_tensor_without_dims_may_need_no_kernel(op: str, sizes: tuple[int, ...], dtype: str) -> None:
    def target(x: Tensor) -> Any:
        return getattr(x, op)(*{"kthvalue": (1,), "topk": (1,), "cummax": (0,), "max": (0,)}.get(op, ()))

    try:
        target(torch.ones(sizes).to(getattr(torch, dtype)))
    except (RuntimeError, TypeError):
        wrong = "proved"
    else:
        wrong = "refuted"
    assert check(target, f"x: {dtype}[{', '.join(map(str, sizes))}]", replay=False).verdict != wrong


def test_the_rank_may_decide_whether_there_is_a_dim_of_one() -> None:
    report = check(lambda x: x.argmax(0), "x: uint16[...]", replay=False)
    assert report.verdict in ("refined", "unknown") and not report.accepts.exact
