"""What some supported releases of torch do not have."""

from __future__ import annotations

from typing import Any, Final

import pytest
import torch

RELEASE: Final = ".".join(torch.__version__.split(".")[:2])


def found(home: Any, name: str) -> Any:
    """Returns the attribute; where this release lacks it, a function that skips the test by which it is
    called.
    """

    def absent(*args: Any, **kwargs: Any) -> Any:
        pytest.skip(f"torch {RELEASE} has no {name}")

    absent.__name__ = name
    return getattr(home, name, absent)
