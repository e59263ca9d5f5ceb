"""Names of `torch.export` and of the tracer of torch.fx: dims, conditions of exported programs."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from torch.export import ExportedProgram
from torch.export.dynamic_shapes import _DerivedDim as DerivedDim
from torch.export.dynamic_shapes import _DimHint as DimHint
from torch.export.dynamic_shapes import _IntWrapper as IntWrapper
from torch.export.dynamic_shapes import _StaticDim as StaticDim
from torch.fx._symbolic_trace import _maybe_revert_all_patches
from torch.fx.experimental import _config

from ...constraints.ir.release import is_since
from .operators import INSTALLED

__all__ = ["DerivedDim", "DimHint", "IntWrapper", "StaticDim"]

without_fx_patches: Final = _maybe_revert_all_patches
"""Inside, what a tracer of torch.fx has replaced is as it was."""
READS_INDICES: Final = is_since(INSTALLED, (2, 13))
"""Whether a trace reads the number of a tensor that is an index. Always, once torch 2.12 is gone."""


def sizes_like_0_and_1(alike: bool) -> contextlib.AbstractContextManager[None]:
    """Inside, if `alike`, a trace treats the sizes 0 and 1 like all others."""
    made: contextlib.AbstractContextManager[None]
    made = _config.patch(backed_size_oblivious=alike)  # type: ignore[attr-defined]
    return made


def guards_of(program: ExportedProgram) -> tuple[str, ...]:
    """The conditions on its inputs that a program checks, as Python over `L['x'].size()[0]`."""
    return tuple(program._guards_code)


def checks_of(program: ExportedProgram) -> tuple[list[str], dict[Any, Any]]:
    """Returns the conditions and the ranges that `set_checks` would have to set for the program as it is."""
    return program._guards_code, program._range_constraints


def set_checks(program: ExportedProgram, guards: list[str], ranges: dict[Any, Any]) -> None:
    """Makes a program check other conditions, and other ranges of its symbols."""
    program._guards_code, program._range_constraints = guards, ranges
