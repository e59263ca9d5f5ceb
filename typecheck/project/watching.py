"""Waits until files change, by checking them several times a second.

That works on every file system, remote ones included, and needs no package. There are only few such files:
those that an answer depends on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

PERIOD: Final = 0.25
"""Seconds between two looks."""
Look: TypeAlias = Mapping[str, tuple[int, int] | None]
"""Time of change and size of each file; None for a file that does not exist."""


def look(files: Iterable[str]) -> Look:
    """At the files, and at all Python files beside them: a new one may be imported."""
    seen: dict[str, tuple[int, int] | None] = {file: _status(file) for file in files}
    for folder in {os.path.dirname(file) for file in seen}:
        try:
            with os.scandir(folder or ".") as entries:
                beside = [entry.path for entry in entries if entry.name.endswith(".py")]
        except OSError:
            continue
        seen |= {file: _status(file) for file in beside}
    return seen


def _status(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def changed(before: Look, after: Look) -> list[str]:
    """Returns the files that differ, in order."""
    return sorted(file for file in before.keys() | after.keys() if before.get(file) != after.get(file))


def until_changed(files: Iterable[str], before: Look, go_on: Callable[[], bool] = lambda: True) -> list[str]:
    """Waits until some of the files differ from an earlier look, and then until they stay as they are.

    Ends with nothing when `go_on` says so.
    """
    watched = list(files)
    while go_on():
        now = look(watched)
        if found := changed(before, now):
            while True:  # editors write in several steps
                time.sleep(PERIOD)
                later = look(watched)
                if not changed(now, later):
                    return found
                now = later
        time.sleep(PERIOD)
    return []
