"""Repairs that `--fix` makes in files: which, in what order, and what is left alone."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from anyshape.typecheck import check
from anyshape.typecheck.cli import fixing
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.facade import Report
from anyshape.typecheck.project.fixing import Plan, plan
from anyshape.typecheck.report.report import Verdict

TWO = """\
import torch
from torch import nn


class Half(nn.Module):
    def __init__(self, fed, out):
        super().__init__()
        self.layer = nn.Linear(fed, out)

    def forward(self, x):
        return torch.relu(self.layer(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Half(784, 256)
        self.b = Half(fed=128, out=64)
        self.c = nn.Linear(32, 10)

    def forward(self, x):
        return self.c(self.b(self.a(x)))
"""
TABLE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.position = nn.Parameter(torch.zeros(65, 8))

    def forward(self, x):
        return x + self.position
"""


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "two.py"
    file.write_text(TWO)
    return file


def reported(file: Path, inputs: str = "x: [b, 784]") -> Report:
    return check(f"{file}:Net", inputs, repairs=True)


def planned(report: Report, file: Path, unsafe: bool = False, since: float | None = None) -> Plan:
    return plan([report], unsafe, [file.parent.resolve()], time.time() if since is None else since)


# ---- the command


def test_a_diff_is_printed_and_nothing_written(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "two.py:Net", "-i", "x: [b, 784]", "--diff"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "--- a/two.py", "+++ b/two.py", "@@ -15,7 +15,7 @@", "     def __init__(self):",
        "         super().__init__()", "         self.a = Half(784, 256)",
        "-        self.b = Half(fed=128, out=64)", "+        self.b = Half(fed=256, out=64)",
        "         self.c = nn.Linear(32, 10)", " ", "     def forward(self, x):",
    ]  # fmt: skip
    assert two.read_text() == TWO


def test_rounds_until_it_runs(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second mistake is repaired in the second round; the exit code is that of the last check."""
    assert main(["check", "two.py:Net", "-i", "x: [b, 784]", "--fix"]) == 0
    out, err = capsys.readouterr()
    assert two.read_text() == TWO.replace("fed=128", "fed=256").replace("Linear(32", "Linear(64")
    assert out.startswith("--- a/two.py")
    assert out.index("+        self.c = nn.Linear(64, 10)") < out.index("proved: two.py:Net")
    assert "2 repairs made" in err
    assert main(["check", "two.py:Net", "-i", "x: [b, 784]", "--fix"]) == 0
    assert "0 repairs made" in capsys.readouterr().err


def test_what_may_change_the_meaning_is_asked_for(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two.write_text(TABLE)
    arguments = ["check", "two.py:Net", "-i", "x: [t, 8]", "--no-cache"]
    assert main([*arguments, "--fix"]) == 1
    out, err = capsys.readouterr()
    assert "declare t == 65" in out
    assert "0 repairs made" in err
    assert two.read_text() == TABLE
    assert main([*arguments, "--fix", "--unsafe-fixes"]) == 0
    assert two.read_text() == TABLE.replace("65", "1")


@pytest.mark.parametrize(
    "options, message",
    [
        (["--unsafe-fixes"], "--unsafe-fixes needs --fix or --diff"),
        (["--fix", "--no-run"], "cannot be combined with --no-run"),
        (["--diff", "--dump", "smt2"], "cannot be combined with --dump"),
    ],
)
def test_options_that_do_not_go_together(
    two: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["check", "two.py:Net", "-i", "x: [b, 784]", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_round_that_makes_it_worse_is_undone(
    two: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a repair not do in the file what was proved, the file is as before."""
    seen: list[str] = []

    def worse(jobs: Sequence[object], cached: bool) -> list[Report | str]:
        seen.append(two.read_text())
        return ["it cannot be imported"] * len(jobs)

    monkeypatch.setattr(fixing, "_checked_elsewhere", worse)
    assert main(["check", "two.py:Net", "-i", "x: [b, 784]", "--fix"]) == 1
    err = capsys.readouterr().err
    assert [text != TWO for text in seen] == [True] * len(seen)
    assert "undone, since the check does worse with it: change 128 to 256" in err
    assert "0 repairs made" in err
    assert two.read_text() == TWO


# ---- what is planned


def test_the_meaning_of_worse(two: Path) -> None:
    report = reported(two)
    repairs = [finding.repairs[0] for finding in report.findings]
    fine = replace(report, verdict=Verdict.PROVED, findings=())
    assert not fixing._is_worse(report, fine, repairs)
    assert fixing._is_worse(report, report, repairs)
    assert fixing._is_worse(fine, report, [])


def test_one_repair_of_a_report_in_a_round(two: Path) -> None:
    report = reported(two)
    assert len(report.findings) == 2
    (edit,) = planned(report, two).edits
    assert [repair.message for repair in edit.repairs] == ["change 128 to 256 (fed of b)"]


def test_repairs_that_overlap_wait(two: Path) -> None:
    report = reported(two)
    repair = report.findings[0].repairs[0]
    other = replace(repair, new="512")
    changed = replace(report, findings=(replace(report.findings[0], repairs=(other,)),))
    (edit,) = plan([report, changed], False, [two.parent.resolve()], time.time()).edits
    assert edit.repairs == (repair,)
    assert edit.after == TWO.replace("128", "256")


def test_repairs_of_several_reports_go_together(two: Path) -> None:
    report = reported(two)
    rest = replace(report, findings=report.findings[1:])
    (edit,) = plan([report, rest], False, [two.parent.resolve()], time.time()).edits
    assert edit.after == TWO.replace("fed=128", "fed=256").replace("Linear(32", "Linear(64")


def test_a_file_that_was_saved_meanwhile_is_left(two: Path) -> None:
    report = reported(two)
    (edit,) = planned(report, two).edits
    two.write_text(f"# new\n{TWO}")
    assert not edit.write()
    assert two.read_text() == f"# new\n{TWO}"
    ((_, why),) = planned(report, two).left[:1]
    assert why == "the file has changed since it was read"
    two.write_text(TWO)
    os.utime(two, (time.time() + 60, time.time() + 60))
    assert not planned(report, two).edits


def test_files_of_others_are_left(two: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site-packages/net.py"
    installed.parent.mkdir()
    installed.write_text(TWO)
    found = planned(reported(installed), installed)
    assert not found.edits
    assert {why for _, why in found.left} == {"the file does not belong to the project"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert not plan([reported(two)], False, [elsewhere.resolve()], time.time()).edits


def test_suppressed_findings_are_left(two: Path) -> None:
    report = reported(two)
    known = tuple(replace(finding, suppressed="baseline") for finding in report.findings)
    assert planned(replace(report, findings=known), two) == Plan((), ())


@pytest.mark.parametrize("encoding, ends", [("utf-8", "\r\n"), ("latin-1", "\n"), ("utf-8-sig", "\n")])
def test_encodings_and_line_ends_are_kept(two: Path, encoding: str, ends: str) -> None:
    text = TWO.replace("self.b = Half(", "self.b = Half(  # é\n            ")
    if encoding == "latin-1":
        text = f"# coding: latin-1\n{text}"
    two.write_bytes(text.replace("\n", ends).encode(encoding))
    (edit,) = planned(reported(two), two).edits
    assert edit.write()
    assert two.read_bytes() == text.replace("fed=128", "fed=256").replace("\n", ends).encode(encoding)
    assert edit.undo()
    assert two.read_bytes() == text.replace("\n", ends).encode(encoding)
