"""The files of the user's that a check reads: the modules that it imports, and all other files that are
opened.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, Final

_STARTED: Final = time.time()
_OWN: Final = Path(__file__).parents[2]


class Reading:
    """While it lasts, files that Python opens are noted.

        with Reading() as reading:
            …
        reading.files
    """

    def __init__(self) -> None:
        self.opened: set[str] = set()

    def __enter__(self) -> Reading:
        self.before, self.started = set(_imported()), time.time()
        _listening.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _listening.remove(self)
        found = {*self.opened, *_imported()}
        self.files = tuple(sorted(filter(is_users, found)))
        """The user's files among the imported modules and the opened files, as far as they still exist."""

    @property
    def unchanged(self) -> bool:
        """Returns whether all files are as they were when they were read. A file that was saved in the
        meantime counts as changed, since it may have been read before it was saved.

        A file of a module that was imported before counts as unchanged if it was last saved before the module
        was first run.
        """
        for file in self.files:
            imported_before = file in self.before and file not in self.opened
            try:
                changed = os.stat(file).st_mtime
            except OSError:
                return False
            if changed >= (_run.get(file, _STARTED) if imported_before else self.started):
                return False
        return True


_listening: list[Reading] = []
_run: Final[dict[str, float]] = {}
"""When each file was first run as a module, for as long as the hook has been there."""


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes the files that are opened while a check listens, and always those that are run as modules. A
    module that was written and imported in this very process is no obstacle to later checks.
    """
    if event == "exec":
        code = arguments[0]
        if isinstance(code, CodeType) and code.co_name == "<module>" and code.co_filename[:1] != "<":
            _run.setdefault(os.path.abspath(code.co_filename), time.time())
    elif event == "open" and _listening and isinstance(arguments[0], str):
        path, mode = arguments[:2]
        if not isinstance(mode, str) or not set(mode) & set("wax"):
            for reading in [*_listening]:
                reading.opened.add(os.path.abspath(path))


sys.addaudithook(_heard)  # once in the life of the process: it stays


def _imported() -> Iterator[str]:
    for module in [*sys.modules.values()]:
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield os.path.abspath(file)


_NOT_USERS: Final = tuple(
    os.path.join(os.path.abspath(folder), "")
    for folder in (
        os.path.dirname(os.__file__),
        *(str(_OWN / part) for part in ("constraints", "solver", "tracer", "typecheck")),
        "/proc",
        "/sys",
        "/dev",
    )
)


def is_users(file: str) -> bool:
    """Returns whether the file belongs to the user: not to Python, a package or anyshape, and not compiled
    code.
    """
    parts = Path(file).parts
    installed = not {"site-packages", "dist-packages", "__pycache__"}.isdisjoint(parts)
    return not installed and not file.startswith(_NOT_USERS) and os.path.isfile(file)
