"""What all tests have in common."""

from __future__ import annotations

import gc
import itertools
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Tensors here have a few elements: threads wait for each other, in this process and in those it starts, and
a recurrent layer takes ten times as long on a busy machine. torch reads this when it is imported.
"""

settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("exploring")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the cases as slow that a sample leaves out."""
    seen: Counter[str] = Counter()
    for item in items:
        if (sampled := item.get_closest_marker("sampled")) is not None:
            table = item.nodeid.partition("[")[0]
            if seen[table] % sampled.args[0]:
                item.add_marker("slow")
            seen[table] += 1


def pytest_collection_finish() -> None:
    """Keeps the million objects of collected tests out of each later collection of garbage."""
    gc.collect()
    gc.freeze()


OFTEN = 50
"""After so many tests, what is left is kept out of later collections: modules that were imported, tables."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Keeps what the last tests have left behind out of each later collection of garbage."""
    if next(_STARTED) % OFTEN == OFTEN - 1:
        gc.collect()
        gc.freeze()


_STARTED = itertools.count()


@pytest.fixture(autouse=True)
def validated_distributions() -> None:
    """Distributions validate what they are given, as they do until something is compiled in the process."""
    if "torch" in sys.modules:
        sys.modules["torch"].distributions.Distribution.set_default_validate_args(True)


@pytest.fixture(autouse=True)
def no_module_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Modules from the folder of a test are forgotten at its end: the next may write other files."""
    own = "tmp_path" in request.fixturenames
    folder = os.path.join(request.getfixturevalue("tmp_path"), "") if own else None
    yield
    for name, module in [*sys.modules.items()] if folder is not None else ():
        if f"{getattr(module, '__file__', '')}".startswith(folder):
            del sys.modules[name]


@pytest.fixture(scope="session")
def new_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths of folders that do not exist yet: few tests write into their cache."""
    root = tmp_path_factory.mktemp("caches")
    return (root / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_cache(new_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test finds what another, or the user, has left in the cache."""
    folder = next(new_folders)
    monkeypatch.setenv("ANYSHAPE_CACHE_DIR", str(folder))
    return folder
