"""Remarks on releases of torch and Python: too old, not known, or newer than what was tested."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ...constraints.ir.program import Origin
from ...tracer.host import releases
from ..report.codes import Code
from ..report.report import Finding
from ..targets.extras import missing
from ..targets.target import Target
from ..targets.target_error import TargetError


class ReleaseError(TargetError):
    """A release of torch or Python on which anyshape does not run."""


@contextlib.contextmanager
def known_release() -> Iterator[None]:
    """Inside, an error for a name that the installed release lacks is raised as ReleaseError, and one for a
    package that is not installed as MissingPackage.
    """
    try:
        yield
    except (ImportError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and (absent := missing(error)):
            raise absent from error
        if problem := releases.unknown(error):
            raise ReleaseError(problem, _hint()) from error
        raise


def require_known(target: Target) -> None:
    """Raises ReleaseError where torch is too old for the target."""
    if _needs_torch(target) and (problem := releases.too_old()):
        raise ReleaseError(problem, _hint())


def untested(target: Target) -> Iterator[Finding]:
    """Yields the notes on releases that are newer than what was tested, for a target that depends on them."""
    if _needs_torch(target):
        for what, version, newest in releases.untested():
            message = f"anyshape was not tested with {what} {version}, but only up to {newest}"
            yield Finding(_CODES[what], message, _CODES[what].severity, Origin())


_CODES = {"torch": Code.UNTESTED_TORCH, "Python": Code.UNTESTED_PYTHON}


def _needs_torch(target: Target) -> bool:
    """Returns whether anyshape needs torch to check the target; archives and records are data."""
    return target.kind in ("python", "exported")


def _hint() -> str:
    return f"install torch {releases.OLDEST} to {releases.NEWEST}, or a newer anyshape"
