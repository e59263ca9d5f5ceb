"""Three hundred programs of all families, about none of which the checker is wrong."""

from __future__ import annotations

import pytest

from benchmarks.fuzz import campaign
from benchmarks.fuzz.campaign import Effort
from benchmarks.fuzz.families import FAMILIES

SEED, PROGRAMS, PARTS = 2026, 300, 6
EFFORT = Effort(points=8, budget_s=1.5, replay=False)
"""Without replays, which would turn a wrong proof into `unknown`."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_verdict_is_wrong(part: int) -> None:
    numbers = range(part, PROGRAMS, PARTS)
    for row in campaign.rows(numbers, SEED, list(FAMILIES), EFFORT):
        source = row.program.source if row.program else ""
        assert not row.wrong, f"{row.name}: {row.wrong}\n{source}"
