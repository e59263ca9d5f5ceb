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
<testcase classname="tests.rules.test_a" name="test_f"><skipped message="no network"/></testcase>
<testcase classname="tests.rules.test_a" name="test_g"><skipped message="no display"/></testcase>
</testsuite></testsuites>"""


def test_the_outcome_of_a_run(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    found = compat.outcome(report)
    assert (found["passed"], found["failed"], found["skipped"]) == (1, 2, 3)
    assert found["failures"] == ["tests/rules/test_a::test_c", "tests/rules/test_a::test_e"]
    assert found["reasons"] == {"no display": 1, "no network": 2}


def test_the_page_is_in_the_order_of_releases_and_names_failures() -> None:
    row = {"passed": 3, "failed": 0, "skipped": 1, "failures": [], "reasons": {}, "date": "2026-01-02"}
    many = [f"tests/a::test_{n:02}" for n in range(30)]
    text = compat.page({"2.14 3.11": row, "2.9 3.13": {**row, "failed": 30, "failures": many}})
    rows = [line for line in text.splitlines() if line.startswith("| 2.")]
    assert rows == ["| 2.9 | 3.13 | 3 | 30 | 1 | 2026-01-02 |", "| 2.14 | 3.11 | 3 | 0 | 1 | 2026-01-02 |"]
    assert "## Failures with torch 2.9 and Python 3.13" in text and "and 10 more" in text
    assert "torch 2.14 and" not in text


def test_the_page_has_reasons_of_skips_once() -> None:
    row = {"passed": 3, "failed": 0, "skipped": 3, "failures": [], "date": "2026-01-02"}
    few, more = {"no network": 1}, {"no display": 2, "no network": 1}
    text = compat.page({"2.14 3.11": {**row, "reasons": few}, "2.15 3.13": {**row, "reasons": more}})
    reasons = [line for line in text.splitlines() if line.startswith("- ")]
    assert reasons == [
        "- no display: 2 with 2.15 and 3.13", "- no network: 1 with 2.14 and 3.11, 1 with 2.15 and 3.13",
    ]  # fmt: skip


def test_failed_tests_that_are_run_again_change_the_row() -> None:
    row = {
        "passed": 3, "failed": 2, "skipped": 1, "failures": ["a::b", "a::c"], "reasons": {"no network": 1},
        "date": "2026-01-02",
    }  # fmt: skip
    again = {**row, "passed": 1, "failed": 0, "failures": [], "date": "2026-01-03"}
    assert compat.updated(row, again) == {
        "passed": 4, "failed": 0, "skipped": 2, "failures": [], "reasons": {"no network": 2},
        "date": "2026-01-03",
    }  # fmt: skip
    with pytest.raises(ValueError, match="run all of them"):
        compat.updated(row, {**again, "passed": 2})


def test_a_nightly_is_not_pinned() -> None:
    assert not [line for line in compat.pinned("nightly") if line.startswith("torch==")]
    assert compat.wanted("nightly") == ["--pre", "torch"] and compat.wanted("2.14") == ["torch==2.14.*"]


def test_torch_may_come_from_an_index_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(compat, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(compat.shutil, "which", lambda name: name)

    def run(command: list[object], check: bool) -> None:
        ran.append([*map(str, command)])
        (tmp_path / "torch-2.14-python-3.11").mkdir(exist_ok=True)

    monkeypatch.setattr(compat.subprocess, "run", run)
    compat.made("2.14", "3.11", "https://example.org/cpu")
    assert ran[1][-3:] == ["torch==2.14.*", "--index-url", "https://example.org/cpu"]
    assert "--index-url" not in ran[2] and ran[2][-1].endswith(f"[{compat.EXTRAS}]") and len(ran) == 3


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
