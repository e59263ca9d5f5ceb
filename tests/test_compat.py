"""The runs on other releases: what is installed, what is read from a report of pytest, and the page."""

from __future__ import annotations

import json
from pathlib import Path

import compat
import pytest

REPORT = """<testsuites><testsuite>
<testcase classname="tests.rules.test_a" name="test_b[1]"/>
<testcase classname="tests.rules.test_a" name="test_c"><failure message="no"/></testcase>
<testcase classname="tests.rules.test_a" name="test_d"><skipped message="no network"/></testcase>
<testcase classname="tests.rules.test_a" name="test_e"><error message="no"/></testcase>
</testsuite></testsuites>"""


def test_the_outcome_of_a_run(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    found = compat.outcome(report)
    assert (found["passed"], found["failed"], found["skipped"]) == (1, 2, 1)
    assert found["failures"] == ["tests/rules/test_a::test_c", "tests/rules/test_a::test_e"]


def test_the_page_is_in_the_order_of_releases_and_names_failures() -> None:
    row = {"passed": 3, "failed": 0, "skipped": 1, "failures": [], "date": "2026-01-02"}
    many = [f"tests/a::test_{n:02}" for n in range(30)]
    text = compat.page({"2.14 3.11": row, "2.9 3.13": {**row, "failed": 30, "failures": many}})
    rows = [line for line in text.splitlines() if line.startswith("| 2.")]
    assert rows == ["| 2.9 | 3.13 | 3 | 30 | 1 | 2026-01-02 |", "| 2.14 | 3.11 | 3 | 0 | 1 | 2026-01-02 |"]
    assert "## Failures with torch 2.9 and Python 3.13" in text and "and 10 more" in text
    assert "torch 2.14 and" not in text


def test_only_torch_is_another_release() -> None:
    before = (compat.ROOT / "pins.txt").read_text().splitlines()
    after = "".join(compat.pinned("2.14")).splitlines()
    assert [line for line in after if line not in before] == ["torch==2.14.*"]
    assert len(after) == len(before)


def test_the_page_is_that_of_the_results() -> None:
    if not compat.RESULTS.exists():
        pytest.skip("no run has been written yet")
    assert compat.PAGE.read_text() == compat.page(json.loads(compat.RESULTS.read_text()))


def test_a_python_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compat, "ENVIRONMENTS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no python3\.99 on the PATH"):
        compat.made("2.13", "3.99")
