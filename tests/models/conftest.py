"""The models are small, and what they warn of (sizes that broadcast, slow packages) is not what is tested."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _quiet(recwarn: pytest.WarningsRecorder) -> None:
    """Collects warnings in place of printing them."""


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """On tensors this small, threads cost more than they bring, and much more on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
