"""The releases of torch and Python that anyshape is for, whether those installed are among them, and which
errors are those of a release that it does not know. Nothing here imports torch before it is asked.

What differs between releases asks `operators.INSTALLED` in the host, and `c.since(2, 14)` in a rule.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Final

from ...constraints.ir.release import Release, release_of
from .names import NAMES

OLDEST: Final = "2.12"
"""The lower bound in `pyproject.toml`. In 2.9 to 2.11 there is no `_hop_compile_and_call`."""
NEWEST: Final = "2.15"
"""The last release with which the tests were run; with a newer one, reports say so."""
NEWEST_PYTHON: Final = "3.14"
"""The same of Python. `requires-python` in `pyproject.toml` has the oldest."""

_HOST: Final = Path(__file__).parent
_LAST: Final = frozenset(name.rpartition(".")[2] for name in NAMES)
_OWNERS: Final = frozenset(name.partition(".")[0] for name in NAMES)


def number(version: str) -> Release:
    """Returns the release of a version: (2, 13) of `2.13.0+cpu`."""
    release = release_of(version)
    assert release is not None, version
    return release


def torch_version() -> str:
    """Returns the version of the installed torch."""
    import torch

    return str(torch.__version__)


@cache
def torch_folder() -> Path:
    """Returns the folder of the installed torch."""
    import torch

    return Path(torch.__file__).parent


def python_version() -> str:
    """Returns the version of the running Python."""
    return ".".join(map(str, sys.version_info[:3]))


def too_old() -> str:
    """Returns the reason why anyshape does not run on the installed torch; "" where it may."""
    version = torch_version()
    if number(version) >= number(OLDEST):
        return ""
    return f"anyshape needs torch {OLDEST} or newer, and torch {version} is installed"


def untested() -> Iterator[tuple[str, str, str]]:
    """Yields `torch` and `Python` where the installed one is newer than every tested one, with its version
    and the newest release that was tested.
    """
    yield from (
        (what, installed, newest)
        for what, installed, newest in (
            ("torch", torch_version(), NEWEST),
            ("Python", python_version(), NEWEST_PYTHON),
        )
        if number(installed) > number(newest)
    )


def unknown(error: BaseException) -> str:
    """Returns the words for an error that the host raised since the installed release lacks a name that the
    host uses; "" for any other error, those of the user's program above all.
    """
    owner = _owner(error)
    if owner not in _OWNERS or not _of_host(error):
        return ""
    release = f"torch {torch_version()}" if owner == "torch" else f"Python {python_version()}"
    return too_old() or f"anyshape does not know {release}: {error}"


def _owner(error: BaseException) -> str:
    """Returns the package whose name is missing; "" where nothing of the kind is said."""
    match error:
        case ModuleNotFoundError(name=str(name)) if "." not in name:
            return ""  # it is not installed at all
        case ImportError(name=str(name)):
            return name.partition(".")[0]
        case AttributeError(name=str(name), obj=obj) if name in _LAST:
            # Objects of the user's lack such names, too: a module whose class calls no `super().__init__`.
            kind = obj if isinstance(obj, type) else type(obj)
            return (obj.__name__ if isinstance(obj, ModuleType) else kind.__module__).partition(".")[0]
    return ""


def _of_host(error: BaseException) -> bool:
    """Returns whether a file of the host asked for the name, which is looked up in Python's and the owner's
    own files.
    """
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    asking = [file for file in files if not _looks_up(file)]
    return bool(asking) and Path(asking[-1]).parent == _HOST


def _looks_up(file: str) -> bool:
    """Returns whether the file is torch's, or of Python's imports."""
    return file.startswith(("<frozen importlib", importlib.__file__, str(torch_folder())))
