"""Fourier transforms against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Layout, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import spectral
from anyshape.tracer.host.operators import INSTALLED
from anyshape.typecheck.testing.differential import Case, D, T, check_case, run_rule

RULES = Rules(spectral.RULES)
f64, i64, c64 = torch.float64, torch.int64, torch.complex64


def fft(name: str, shape: str, *args: Any, dtype: torch.dtype = torch.float32, **kwargs: Any) -> Case:
    return Case(f"fft_{name}", getattr(torch.fft, name), (T(shape, dtype), *args), kwargs)


def stft(shape: str, n_fft: Any, dtype: torch.dtype = torch.float32, **kwargs: Any) -> Case:
    usual = {"center": True, "pad_mode": "reflect", "return_complex": True}
    return Case("stft", torch.stft, (T(shape, dtype), n_fft), {**usual, **kwargs})


def istft(shape: str, n_fft: Any, **kwargs: Any) -> Case:
    return Case("istft", torch.istft, (T(shape, c64), n_fft), kwargs)


# Every row can be accepted and refused.
OF_EMPTY = [
    Case("_fft_c2c", torch.ops.aten._fft_c2c.default, (T("a n", c64), [0, 1], 0, True)),
    Case("_fft_c2r", torch.ops.aten._fft_c2r.default, (T("a 3", c64), [1], 0, 5)),
    stft("b n+4", 4, pad_mode="circular", dtype=c64),
]
"""Before torch 2.15, only tensors without elements were refused here."""
REFUSABLE = [
    *OF_EMPTY * (INSTALLED < (2, 15)),
    fft("fft", "a n"),
    fft("fft", "a n b", dim=1, dtype=f64),
    fft("ifft", "a n", D("m - 2"), 0, dtype=c64),
    fft("rfft", "a n"),
    fft("rfft", "a n", D("m"), norm="ortho", dtype=i64),
    fft("ihfft", "n"),
    fft("irfft", "a n", dtype=c64),
    fft("irfft", "a n", D("m"), dtype=c64),
    fft("hfft", "a n b", dim=-2),
    fft("fft2", "a m n"),
    fft("fft2", "a m n", (D("k"), -1)),
    fft("ifft2", "a m n", dim=(0, 2)),
    fft("rfft2", "a m n"),
    fft("irfft2", "a m n", (D("k"), D("l")), dtype=c64),
    fft("fftn", "a m n"),
    fft("fftn", "a m n", (D("k"),), dtype=c64),
    fft("rfftn", "a m n", dim=(1, 0)),
    fft("irfftn", "a m n", (D("k"), -1)),
    fft("hfft2", "a m n"),
    fft("ihfftn", "m n"),
    Case("fft_fftfreq", torch.fft.fftfreq, (D("n - 2"),)),
    Case("_fft_r2c", torch.ops.aten._fft_r2c.default, (T("a n"), [1], 0, True)),
    stft("b n", 4),
    stft("n", 5, hop_length=2, center=False),
    stft("b n+4", D("k"), hop_length=D("h"), pad_mode="constant"),
    stft("b n+4", 6, win_length=D("w"), window=T("v"), pad_mode="replicate"),
    stft("b n+4", 4, onesided=False, dtype=f64),
    stft("b n+4", 4, return_complex=False),
    Case("stft", torch.ops.aten.stft.default, (T("b n"), 4, 2, 4, None, False, False, True)),
    istft("b f t", 4),
    istft("3 t", 4, length=D("l")),
    istft("b 3 t", 5, hop_length=D("h"), center=False),
    istft("b f t", D("k"), onesided=True),
    istft("b f t", D("k"), onesided=False, return_complex=True),
    istft("b 5 t", 8, win_length=D("w"), hop_length=2),
    istft("b 5 t", 8, win_length=D("w"), hop_length=2, length=D("l")),
    istft("b 5 t", 8, window=T("w", fill=1), length=D("l")),
    Case("fft_rfftfreq", torch.fft.rfftfreq, (D("n-6"),)),
    Case("fft_fftfreq", torch.fft.fftfreq, (D("n-6"),)),
    Case("view_as_complex", torch.view_as_complex, (T("a b"),)),
    Case("view_as_complex_copy", torch.view_as_complex_copy, (T("a b"),)),
    Case("view_as_complex", torch.view_as_complex, (T("a+1 2", f64, strides="s 1"),)),
]

ALWAYS = [
    *OF_EMPTY * (INSTALLED >= (2, 15)),
    fft("fftshift", "a b"),
    *(fft(name, "a b", dim=()) for name in ("fftn", "ifftn")),
    fft("fftn", "a b", ()),
    fft("fft2", "", (), ()),
    fft("ifftshift", "a b", 1, dtype=i64),
    Case("fft_rfftfreq", torch.fft.rfftfreq, (D("n"),)),
    Case("view_as_real", torch.view_as_real, (T("a b", c64),)),
    Case("view_as_real_copy", torch.view_as_real_copy, (T("a b", c64, permute=(1, 0)),)),
    Case("view_as_real", torch.view_as_real, (T("a b c", torch.complex128, permute=(2, 0, 1)),)),
    Case("view_as_complex", torch.view_as_complex, (T("a b 2", permute=(1, 0, 2)),)),
]

NEVER = [
    fft("fft", ""),
    fft("fft", "a", dim=1),
    fft("fft", "a", norm="none"),
    fft("rfft", "a", dtype=c64),
    fft("fft2", "a"),
    fft("fft2", "a b", (2,)),
    fft("fft2", "a b", dim=(0, 0)),
    fft("fftn", "a b", (2, 2, 2)),
    fft("rfftn", "a b", dim=()),
    fft("fftshift", "a b", dim=()),
    fft("ifftshift", ""),
    *(
        Case(f"fft_{name}", getattr(torch.fft, name), (D("n"),), {"dtype": dtype})
        for name in ("fftfreq", "rfftfreq")
        for dtype in (i64, c64)
    ),
    stft("a b n", 4),
    stft("n", 4, return_complex=None),
    stft("n", 4, dtype=i64),
    stft("n", 4, dtype=c64, onesided=True),
    stft("n", 3),
    Case("istft", torch.istft, (T("f t"), 4)),
    Case("view_as_real", torch.view_as_real, (T("a"),)),
]


@pytest.mark.parametrize("case", REFUSABLE, ids=str)
def test_accepts_and_refuses_what_torch_does(case: Case) -> None:
    accepted, refused = check_case(case, RULES)
    assert accepted and refused


@pytest.mark.parametrize("case", ALWAYS, ids=str)
def test_accepts_what_torch_does(case: Case) -> None:
    assert check_case(case, RULES)[1] == 0


@pytest.mark.parametrize("case", NEVER, ids=str)
def test_refuses_what_torch_does(case: Case) -> None:
    assert check_case(case, RULES, count=5)[0] == 0


def test_values_of_windows_are_noted() -> None:
    """A Hann window is 0 at one end: with little overlap it leaves gaps, which torch refuses."""
    signal, window = torch.zeros(5, 3, dtype=c64), torch.hann_window(8)
    with pytest.raises(RuntimeError):
        torch.istft(signal, 8, hop_length=8, window=window)
    for hop, notes in ((4, 0), (8, 1)):
        args = (Tensor((5, 3), "complex64"), 8, hop, None, Tensor((8,)))
        assert len(run_rule(RULES, "istft", args, {}, Domain())[2].said.notes) == notes


def test_unknown_strides_are_noted() -> None:
    args = (Tensor((3, 2), "float32", Layout.UNKNOWN),)
    assert len(run_rule(RULES, "view_as_complex", args, {}, Domain())[2].said.notes) == 1


def test_the_judge_refutes_wrong_rules() -> None:
    def not_halved(c: Any, input: Tensor) -> Tensor:
        return Tensor(input.shape, "complex64")

    def odd(c: Any, input: Tensor) -> Tensor:
        return Tensor((*input.shape[:-1], 2 * input.shape[-1] - 1))

    wrong = Rules({"fft_rfft": not_halved, "fft_irfft": odd})
    for case in (fft("rfft", "n"), fft("irfft", "n", dtype=c64)):
        check_case(case, RULES)
        with pytest.raises(AssertionError):
            check_case(case, wrong)
