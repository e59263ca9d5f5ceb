"""The plugin of pytest: the fixture `anyshape`.

    def test_shapes(anyshape):
        anyshape.assert_shapes(UNet(), "x: float32[b, 3, h, w]", "h % 64 == 0 and w % 64 == 0")

pytest loads this file whenever it runs, so it imports nothing of weight.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def anyshape() -> ModuleType:
    """The package `anyshape`: `anyshape.assert_shapes(…)`, `anyshape.check(…)`."""
    return import_module("anyshape")
