"""The figures of the service, from what was measured to docs/service.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import service_page

AROUND = {"day": "2026-01-02", "cpus": 2, "load": 0.5}
TIMED = {"checks": 400, "per_second": 34.21, "p50_ms": 111.4, "p95_ms": 155.0, "p99_ms": 171.0}
SOAK = {
    "minutes": 4.0, "accepted": 506, "workers killed": 42, "services killed": 3, "services stopped": 2,
    "damaged uploads": 418, "connections that broke": 801, "wrong": 0, "lost": 0,
    "given up after two kills": 9, "memory_mb_early": 96.6, "memory_mb_late": 96.7, **AROUND,
}  # fmt: skip
DROPS = "times all connections to the database were dropped"
FOUND = {
    "latency": {"large_kb": 258, "cached": TIMED, "small": TIMED, "large": TIMED, **AROUND},
    "clients": {"clients": 1000, "seconds": 88.1, "refused_for_a_while": 0, "memory_mb": 152.0, **AROUND},
    "soak": SOAK,
    "postgres": {**SOAK, DROPS: 17, "lost": 3, "load": 1.5},
    "disk": {"accepted": 9, "answered in the end": 9, "codes": {"202": 9, "503": 10}, **AROUND},
}


def test_figures_are_those_that_were_found() -> None:
    told = " ".join(service_page.figures(FOUND).split())
    for part in (
        "a load of 0.5 to 1.5", "| 34.2 | 111 ms | 155 ms | 171 ms |", "**1,000 clients at once**",
        "within 88 s", "none was refused", "506 checks accepted, 42 workers killed",
        "a service killed or stopped and started again 5 times",
        "dropped 17 times", "Lost: 3. Wrong: 0", "9 checks were accepted", "10 refused with 503",
    ):  # fmt: skip
        assert part in told, part


def test_the_page_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = service_page.PAGE.read_text().split(service_page.BEGIN)[0], "\n* **Generated requests**"
    page = tmp_path / "service.md"
    page.write_text(service_page.PAGE.read_text())
    monkeypatch.setattr(service_page, "PAGE", page)
    for _ in range(2):
        service_page.write(FOUND)
        text = page.read_text()
        assert text.startswith(before)
        assert text.split(service_page.END)[1].startswith(after)
        assert text.count("506 checks accepted") == 2
