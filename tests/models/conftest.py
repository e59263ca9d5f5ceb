"""Models in the corpus warn of sizes that broadcast and of packages that are slow; what they accept is what
counts.
"""

import pytest


@pytest.fixture(autouse=True)
def _quiet(recwarn: pytest.WarningsRecorder) -> None:
    """Collects warnings in place of printing them."""
