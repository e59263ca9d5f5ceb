"""What `anyshape check` prints by default: the answer as soon as it is known, findings in three lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anyshape import check
from anyshape.typecheck.cli.commands import check as command
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.facade import Report
from anyshape.typecheck.project.jobs import JobAnswer
from anyshape.typecheck.render.text import answer_text, details_text
from anyshape.typecheck.report.report import Verdict

SOURCE = """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(self.pool(x).flatten(1))
"""
SPEC = "x: float32[b, 1, h, w]"


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(SOURCE)


@pytest.mark.parametrize("spec", [SPEC, "x: float32[b, 1, 32, 32]"])
def test_a_finding_takes_three_lines(spec: str) -> None:
    report = check("net.py:Net", spec, repairs=True)
    (finding,) = report.findings
    told = details_text(report).split("\n\n")[0].splitlines()
    assert told[0].startswith(f"{finding.code}: {finding.message}") and len(told) == 3
    assert "net.py:10" in told[1] and "self.fc(self.pool(x).flatten(1))" in told[1]
    assert "refused at" in told[2]
    assert len(report.to_text(verbose=True).splitlines()) > len(report.to_text().splitlines()) + 3
    assert report.to_text() == f"{answer_text(report)}\n{details_text(report)}"


def test_verbose_tells_the_requirement_and_the_way_to_it() -> None:
    text = check("net.py:Net", SPEC).to_text(verbose=True)
    for part in ("= requires (h//2)*(w//2) == 64", "^^^", "= after input x", "then  max_pool2d"):
        assert part in text


def test_a_project_begins_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text(
        f'[[tool.anyshape.targets]]\ntarget = "net.py:Net"\ninputs = "{SPEC}"\n'
        '[[tool.anyshape.targets]]\ntarget = "net.py:Net"\ninputs = "x: float32[b, 1, 16, 16]"\n'
    )
    assert main(["check", "--no-cache"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("targets\n  refined  net.py:Net") and "  proved   net.py:Net" in text
    assert "proved: net.py:Net" not in text and "refined: net.py:Net" in text
    main(["check", "--no-cache", "--verbose"])
    assert "proved: net.py:Net" in capsys.readouterr().out


# ---- the answer before the findings


def test_the_answer_is_called_with_before_the_findings() -> None:
    answers: list[Report] = []
    report = check("net.py:Net", SPEC, answered=answers.append)
    (early,) = answers
    assert not early.findings and report.findings
    assert answer_text(early) == answer_text(report)


def printed(change: Callable[[Report], Report], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the command on a check whose report is changed after its answer is known."""
    whole = check("net.py:Net", SPEC)

    def answer(job: Any, cache: Any, tell: Any, answered: Callable[[Report], None]) -> JobAnswer:
        answered(whole)
        return JobAnswer(change(whole), ())

    monkeypatch.setattr(command, "answer", answer)
    main(["check", "net.py:Net", "-i", SPEC])


def test_the_answer_is_printed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(lambda report: report, monkeypatch)
    text = capsys.readouterr().out
    assert text.count("It runs exactly where") == 1
    assert text.index("It runs exactly where") < text.index("condition: ") and "withdrawn" not in text


def test_an_answer_that_more_examples_contradict_is_withdrawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(lambda report: replace(report, verdict=Verdict.UNKNOWN), monkeypatch)
    before, _, after = capsys.readouterr().out.partition("which is withdrawn.\n\n")
    assert before.startswith("refined: ") and after.startswith("unknown: ")
