"""What some supported releases of torch do not have."""

from __future__ import annotations

from typing import Any, Final

import pytest
import torch

from anyshape.tracer.host.operators import INSTALLED

RELEASE: Final = ".".join(torch.__version__.split(".")[:2])
SINCE: Final = {
    "_foreach_mm": (2, 13),
    "linalg_matrix_sqrth": (2, 14),
    "linalg_polar": (2, 14),
    "torch_nn::_linear_cross_entropy_batch_chunked": (2, 13),
    "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction": (2, 13),
}
"""The first release of torch that has an operator, of those that not all supported releases have."""
NEWER: Final = frozenset(op for op, first in SINCE.items() if INSTALLED < first)
"""The operators that the installed release has not."""


def found(home: Any, name: str) -> Any:
    """Returns the attribute; where this release lacks it, a function that skips the test by which it is
    called.
    """

    def absent(*args: Any, **kwargs: Any) -> Any:
        pytest.skip(f"torch {RELEASE} has no {name}")

    absent.__name__ = name
    return getattr(home, name, absent)
