"""The models are small, and what they warn of (sizes that broadcast, slow packages) is not what is tested."""

import pytest


@pytest.fixture(autouse=True)
def _quiet(recwarn: pytest.WarningsRecorder) -> None:
    """Collects warnings in place of printing them."""
