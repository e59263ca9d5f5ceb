"""`promote` against torch.result_type: every pair of dtypes, with dims, without, and with numbers."""
from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

from anyshape.constraints.ir.language import Number, Tensor
from anyshape.constraints.rules.common import CATEGORY, COMPLEX_OF, COMPLEX_SINCE_2_14, promote
from anyshape.constraints.terms.dims import sym
from anyshape.tracer.host.operators import INSTALLED

LONELY = {"uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"}
"""Dtypes that torch promotes with nothing but themselves and numbers."""

COMPLEX = COMPLEX_SINCE_2_14 if INSTALLED >= (2, 14) else COMPLEX_OF
DTYPES = [*CATEGORY, "float8_e4m3fn", "float8_e5m2"]
SHAPES: tuple[tuple[int, ...], ...] = ((2,), ())
TENSORS = [(torch.empty(s, dtype=getattr(torch, d)), Tensor(s, d)) for d in DTYPES for s in SHAPES]
NUMBERS = [(number, number) for number in (True, 1, 1.0, 1j)]


def joined(a: Any, b: Any) -> str | None:
    """torch's answer; None where it promotes nothing."""
    try:
        return str(torch.result_type(a, b)).removeprefix("torch.")
    except RuntimeError:
        return None


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("real, tensor", TENSORS, ids=[str(tensor) for _, tensor in TENSORS])
def test_every_pair(real: torch.Tensor, tensor: Tensor) -> None:
    for other_real, other in TENSORS + NUMBERS:
        for expected, got in (
            (joined(real, other_real), promote((tensor, other), complex_of=COMPLEX)),
            (joined(other_real, real), promote((other, tensor), complex_of=COMPLEX)),
        ):
            if expected is None:
                assert {tensor.dtype, getattr(other, "dtype", None)} & LONELY, f"{tensor} with {other}"
            else:
                assert got == expected, f"{tensor} with {other}: {got}, torch {expected}"


@pytest.mark.parametrize("a, b", [*product((True, 1, 1.0, 1j), repeat=2)])
def test_numbers_alone(a: Any, b: Any) -> None:
    assert promote((a, b)) == joined(torch.tensor(a), torch.tensor(b))


def test_the_judge_catches_a_wrong_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMPLEX, "float64", "complex64")
    with pytest.raises(AssertionError, match="complex128"):
        test_every_pair(*TENSORS[DTYPES.index("float64") * len(SHAPES)])


def test_three_operands_join_like_sums() -> None:
    chosen = [t for t in TENSORS if t[1].dtype not in LONELY and not t[1].dtype.startswith("complex32")][::4]
    for (x, a), (y, b), (z, c) in product(chosen, repeat=3):
        # Grouping does not matter where all three have dims, or all three have none.
        if len({a.rank, b.rank, c.rank}) == 1:
            assert promote((a, b, c)) == joined(torch.empty(x.shape, dtype=torch.result_type(x, y)), z)


def test_sizes_and_unknown_numbers_count_as_numbers() -> None:
    assert promote((Tensor((2,), "int32"), sym("h"))) == "int32"
    assert promote((Tensor((2,), "bool"), sym("h"))) == "int64"
    assert promote((Tensor((2,), "int32"), Number("float"))) == "float32"
    assert promote((Tensor((2,), "float16"), Number("float"))) == "float16"
    assert promote((sym("h"), 2.0)) == "float32"


def test_an_unknown_dtype_makes_the_result_unknown() -> None:
    assert promote((Tensor((2,), None), Tensor((2,), "float32"))) is None
