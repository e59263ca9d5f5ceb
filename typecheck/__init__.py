"""The public interface: `check` answers for which input shapes a PyTorch program runs.

    from anyshape import check

    report = check(UNet(), "x: float32[batch, 3, h, w]")
    report.verdict               # "refined"
    str(report.accepts)          # "h % 64 == 0 and w % 64 == 0"
    report.accepts.holds(batch=2, h=128, w=64)

`anyshape` has the same names. They are imported when they are first used: importing this package imports
neither torch nor z3.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..constraints.ir.language import Fact
    from ..constraints.ir.program import Origin
    from ..constraints.ir.spec_text import SpecError, parse_spec
    from .checking.api import check
    from .checking.inference import Inferred, InferredRelation, infer
    from .checking.inline import assert_shape, reveal_shape
    from .checking.releases import ReleaseError
    from .dim_specs.dynamic_shapes import DynamicShapes, GivenUp
    from .exporting.export import Exported, ExportError, export
    from .exporting.refining import refine
    from .exporting.samples import sample_shapes
    from .facade import Report
    from .gradual.branching import BranchOn, OpenBranch, branches, eliminate
    from .gradual.migrating import Migration, Migrations, infer_symbolic, migrate
    from .remote.client import AsyncClient, Client, ServiceError
    from .report.codes import Code, Severity
    from .report.report import Accepts, Branch, Finding, Link, Output, Shape, Verdict
    from .report.values import SymbolicValue
    from .targets.target_error import TargetError
    from .testing.asserting import ShapesError, assert_shapes

_HOMES = {
    "..constraints.ir.language": "Fact",
    "..constraints.ir.program": "Origin",
    "..constraints.ir.spec_text": "SpecError parse_spec",
    ".checking.api": "check",
    ".checking.inference": "Inferred InferredRelation infer",
    ".checking.inline": "assert_shape reveal_shape",
    ".checking.releases": "ReleaseError",
    ".targets.target_error": "TargetError",
    ".dim_specs.dynamic_shapes": "DynamicShapes GivenUp",
    ".exporting.export": "Exported ExportError export",
    ".exporting.refining": "refine",
    ".exporting.samples": "sample_shapes",
    ".facade": "Report",
    ".gradual.branching": "BranchOn OpenBranch branches eliminate",
    ".gradual.migrating": "Migration Migrations infer_symbolic migrate",
    ".remote.client": "AsyncClient Client ServiceError",
    ".report.codes": "Code Severity",
    ".report.report": "Accepts Branch Finding Link Output Shape Verdict",
    ".report.values": "SymbolicValue",
    ".testing.asserting": "ShapesError assert_shapes",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Accepts",
    "AsyncClient",
    "Branch",
    "BranchOn",
    "Client",
    "Code",
    "DynamicShapes",
    "ExportError",
    "Exported",
    "Fact",
    "Finding",
    "GivenUp",
    "Inferred",
    "InferredRelation",
    "Link",
    "Migration",
    "Migrations",
    "OpenBranch",
    "Origin",
    "Output",
    "ReleaseError",
    "Report",
    "ServiceError",
    "Severity",
    "Shape",
    "ShapesError",
    "SpecError",
    "SymbolicValue",
    "TargetError",
    "Verdict",
    "assert_shape",
    "assert_shapes",
    "branches",
    "check",
    "eliminate",
    "export",
    "infer",
    "infer_symbolic",
    "migrate",
    "parse_spec",
    "refine",
    "reveal_shape",
    "sample_shapes",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .checking.releases import known_release

    with known_release():
        value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
