"""What a judge's budget counts."""

from __future__ import annotations

import pytest

from anyshape.solver.tactics import judge as judging
from anyshape.solver.tactics.judge import Budget, Judge


def test_seconds_of_rest_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(judging.time, "monotonic", lambda: now[0])
    judge = Judge(Budget(seconds=10))
    with judge.resting():
        now[0] += 50
        with judge.resting():
            now[0] += 50
        assert not judge.exhausted and judge.stats.seconds == 0
    now[0] += 9
    assert not judge.exhausted and judge.stats.seconds == 9
    now[0] += 2
    assert judge.exhausted and judge.stats.seconds == 11
