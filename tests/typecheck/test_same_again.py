"""The same check gives the same report, to the byte: in one process, and in processes with other hashes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import same_again
import torch
from same_again import FAST, PROGRAMS

from anyshape.tracer.host import surroundings
from anyshape.tracer.recording import record
from anyshape.typecheck import check


def in_a_process(seed: int, times: int, *names: str) -> dict[str, list[str]]:
    """The reports of a process in which hashes of texts are others."""
    script = Path(same_again.__file__)
    found = subprocess.run(
        [sys.executable, str(script), str(times), *names],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    reports: dict[str, list[str]] = json.loads(found.stdout)
    return reports


def test_in_one_process() -> None:
    found = same_again.repeated(3, FAST)
    assert {name: len(reports) for name, reports in found.items()} == dict.fromkeys(FAST, 1)


def test_in_two_processes() -> None:
    assert in_a_process(0, 1, *FAST) == in_a_process(1, 1, *FAST)


@pytest.mark.slow
def test_twenty_times_in_four_processes() -> None:
    """Each in an order of hashes of its own."""
    first, *others = (in_a_process(seed, 20) for seed in range(4))
    assert {name: len(reports) for name, reports in first.items()} == dict.fromkeys(PROGRAMS, 1)
    assert all(other == first for other in others)


def test_without_seeds_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (record, surroundings):
        monkeypatch.setattr(module, "seed", lambda: None)
    torch.manual_seed(0), random.seed(0), np.random.seed(0)
    found = same_again.repeated(6, ("dice",))
    assert len(found["dice"]) > 1


def test_imports_of_the_program_decide_nothing() -> None:
    """The first import of a module may add a filter of warnings, those after it add none."""
    imported = [False]

    def edges(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if not imported[0]:
            imported[0] = True
            warnings.filterwarnings("ignore", "a module that is imported once")
        return torch.histogramdd(x, [a, b])[0]

    def said(first: bool) -> str:
        imported[0] = not first
        with warnings.catch_warnings(record=True):
            report = check(edges, "x: [n, 2]; a: [k]; b: [m]", ["k >= 2", "m >= 2"], replay=False)
        return f"{report.verdict} {report.accepts} {[str(f.message) for f in report.findings]}"

    assert said(True) == said(False)
    assert said(False).startswith("proved")


def test_times_are_left_out() -> None:
    stats: dict[str, Any] = same_again.report("coin")["stats"]
    assert stats and not any(name.endswith("_s") for name in stats)
