"""Releases of torch, between which some rules differ."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Release: TypeAlias = tuple[int, int]

_RELEASE: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(?!\d)")


def release_of(version: object) -> Release | None:
    """Returns `(2, 13)` for `"2.13.0+cpu"`; None for what is no version."""
    found = _RELEASE.match(version) if isinstance(version, str) else None
    return found and (int(found[1]), int(found[2]))


def is_since(release: Release | None, first: tuple[int, ...]) -> bool:
    """Returns whether a release is `first` or a later one; None means the newest known release."""
    return release is None or release >= first
