"""What all tests have in common."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test finds what another, or the user, has left in the cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ANYSHAPE_CACHE_DIR", str(folder))
    return folder
