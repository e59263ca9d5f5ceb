"""anyshape proves for which input shapes a PyTorch program runs.

    from anyshape import check

    report = check(UNet(), "x: float32[batch, 3, h, w]")
    report.verdict               # "refined"
    str(report.accepts)          # "h % 64 == 0 and w % 64 == 0"
    report.accepts.holds(batch=2, h=128, w=64)

The names are those of `anyshape.typecheck`. Each is imported when it is first used: importing this package
imports neither torch nor z3. This folder installs as `anyshape` itself (pyproject.toml).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyshape import testing as testing
    from anyshape.typecheck import *  # noqa: F403
    from anyshape.typecheck import __all__ as __all__

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            value = import_module("importlib.metadata").version("anyshape")
        elif name == "testing":
            value = import_module("anyshape.testing")
        else:
            names = import_module("anyshape.typecheck")
            if name not in ("__all__", *names.__all__):
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
            value = getattr(names, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted((*import_module("anyshape.typecheck").__all__, "__version__", "testing"))
