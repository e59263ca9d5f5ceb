"""Packages that only a part of anyshape needs, and the extra of `pyproject.toml` that brings each."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

from .target_error import TargetError

_PACKAGES: Final = {
    "torch": "torch",
    "client": "httpx",
    "service": "fastapi starlette anyio uvicorn pydantic pydantic_settings sqlalchemy alembic "
    "python_multipart prometheus_client",
    "postgresql": "psycopg",
    "ray": "ray",
    "telemetry": "opentelemetry",
    "cvc5": "cvc5",
}
EXTRAS: Final = {package: extra for extra, names in _PACKAGES.items() for package in names.split()}
"""By the name under which a package is imported, the extra that brings it."""


class MissingPackage(TargetError, ModuleNotFoundError):
    """A package that is needed for what was asked, and is not installed."""

    def __init__(self, package: str) -> None:
        if package == "torch":
            problem = "torch is not installed; programs in Python need it, saved .pt2 files do not"
        else:
            problem = f"{package} is not installed"
        super().__init__(problem, hint_for(package))


def hint_for(package: str) -> str:
    """Returns what to install for a package; "" for one that no extra brings."""
    extra = EXTRAS.get(package)
    return f"install anyshape with the extra that brings it: anyshape[{extra}]" if extra else ""


def missing(error: ModuleNotFoundError) -> MissingPackage | None:
    """Returns the error to report where a package of an extra is not installed; None for any other module."""
    package = (error.name or "").partition(".")[0]
    return MissingPackage(package) if package in EXTRAS and not is_installed(package) else None


def require(package: str) -> None:
    """Raises MissingPackage where a package of an extra is not installed. Does not import it."""
    if not is_installed(package):
        raise MissingPackage(package)


def is_installed(package: str) -> bool:
    """Returns whether a package can be imported. Does not import it."""
    if package in sys.modules:
        return sys.modules[package] is not None  # None forbids the import
    return find_spec(package) is not None
