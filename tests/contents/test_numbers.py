"""Numbers that operators convert to the dtype of their result, which has to hold them, judged by torch."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape import TargetError, check

PUTTING: dict[str, Callable[[Tensor, Any], Any]] = {
    "masked_fill": lambda x, v: x.masked_fill(x > 0, v),
    "fill_": lambda x, v: x.fill_(v),
    "full": lambda x, v: torch.full((2,), v, dtype=x.dtype),
    "full_like": lambda x, v: torch.full_like(x, v),
    "full_like of one": lambda x, v: torch.full_like(x[:1], v),
    "new_full of one": lambda x, v: x.new_full((), v),
    "index_fill": lambda x, v: x.index_fill(0, torch.tensor([0]), v),
    "scatter": lambda x, v: x.scatter(0, torch.tensor([0]), v),
    "scatter of none": lambda x, v: x.scatter(0, torch.zeros(0, dtype=torch.int64), v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "setitem": lambda x, v: x.__setitem__(slice(None), v),
    "where": lambda x, v: torch.where(x > 0, x, v),
    "clamp": lambda x, v: x.clamp(max=v),
    "threshold": lambda x, v: F.threshold(x, 0, v),
    "tensor": lambda x, v: torch.tensor([v], dtype=x.dtype),
    "scalar_tensor": lambda x, v: torch.scalar_tensor(v, dtype=x.dtype),
    "add": lambda x, v: torch.add(x, x, alpha=v),
    "pow": lambda x, v: x.pow(v),
    "fill_diagonal_": lambda x, v: x[None].fill_diagonal_(v),
}
NUMBERS: dict[str, tuple[Any, ...]] = {
    "float16": (65504, 65505, 65504.5, -1e9, inf, nan),
    "bfloat16": (float.fromhex("0x1.fep127"), 3.39e38, -1e39, -inf),
    "float32": (float.fromhex("0x1.fffffep127"), 3.41e38, -1e39, inf, nan),
    "float64": (1e308, 1j),
    "int8": (127, 128, -129, 127.0, 127.5, 128.0, 1.5, inf, nan, 1j),
    "int32": ((1 << 31) - 1, 1 << 31, 2.0**31),
    "int64": (1 << 40, 2.0**63, -(2.0**63), 1e19, inf),
    "uint8": (255, 256, -1, -255, -1.0, 255.5),
    "bool": (2, 300.0, inf),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", PUTTING)
def test_a_dtype_holds_the_number(name: str, dtype: str) -> None:
    put, refused = PUTTING[name], 0
    for number in NUMBERS[dtype]:

        def program(x: Tensor, number: Any = number) -> Any:
            return put(x, number)

        try:
            program(torch.ones(2, dtype=getattr(torch, dtype)))
            expected = "proved"
        except (RuntimeError, TypeError, ValueError):
            expected, refused = "refuted", refused + 1
        try:
            verdict = check(program, f"x: {dtype}[2]", replay=False).verdict
        except TargetError:
            verdict = "refuted"
        assert verdict == expected, number
    assert refused or name not in ("masked_fill", "fill_") or dtype == "bool"
