"""Runs of programs by eager PyTorch, for tests of claims about sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.fuzz.comparing import checked, wrongs
from benchmarks.fuzz.eager import outcomes
from benchmarks.fuzz.program import Program, Sizes

REFUSALS = (RuntimeError, ValueError, IndexError, TypeError)


def runs(target: Callable[[Tensor], Any], size: int, x: Tensor | None = None) -> bool:
    """Returns whether the program takes so many zeros, or the tensor x instead."""
    try:
        target(torch.zeros(size) if x is None else x)
    except REFUSALS:
        return False
    return True


def agreed(program: Program, points: Sequence[Sizes], seconds: float = 10.0) -> str:
    """Returns the verdict on a program, without a replay, and fails where an eager run contradicts it."""
    said = checked(program, seconds, replay=False)
    assert wrongs(said, points, outcomes(program, points)) == []
    return said.verdict
