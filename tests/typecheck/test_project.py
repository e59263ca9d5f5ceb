"""`anyshape check` of a whole project, the forms of its report, and `anyshape explain`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from anyshape.typecheck import Code
from anyshape.typecheck import cli as package
from anyshape.typecheck.cli.main import COMMANDS, main
from anyshape.typecheck.render.formats import FORMATS

MODELS = """\
import torch


def good(x):
    return torch.relu(x)


def halves(x):
    return x.view(x.shape[0], 2, -1)


def wrong(x):
    return x @ torch.zeros(5, 5)
"""
PROJECT = """\
[tool.anyshape]
SETTINGS

[[tool.anyshape.targets]]
target = "models.py:good"
inputs = "x: float32[b, h]"

[[tool.anyshape.targets]]
target = "models.py:halves"
inputs = "x: float32[b, h]"
"""
WRONG = """
[[tool.anyshape.targets]]
target = "models.py:wrong"
inputs = "x: float32[b, 8]"
"""
MISSING = """
[[tool.anyshape.targets]]
target = "models.py:nothing"
inputs = "x: float32[b]"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "models.py").write_text(MODELS)
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, settings: str = "", more: str = "") -> None:
    (folder / "pyproject.toml").write_text(PROJECT.replace("SETTINGS", settings) + more)


def read(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_a_bare_check_checks_all_targets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 1
    text = read(capsys)
    assert text.startswith("targets\n") and "proved: models.py:good" not in text
    assert "refined: models.py:halves" in text
    assert "targets\n  proved   models.py:good\n  refined  models.py:halves  1 finding\n" in text


def test_it_does_so_from_below(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert main(["check", "--output", "report.txt"]) == 1
    assert read(capsys) == ""
    assert "    models.py:9" in (folder / "below/report.txt").read_text()
    assert Path.cwd() == folder / "below"


@pytest.mark.parametrize("settings, more, code", [
    ('ignore = ["condition"]', "", 0), ("", WRONG, 1), ('ignore = ["condition"]', WRONG, 1), ("", MISSING, 2),
])  # fmt: skip
def test_exit_codes(folder: Path, settings: str, more: str, code: int) -> None:
    configure(folder, settings, more)
    assert main(["check"]) == code


def test_one_bad_target_does_not_stop_the_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(folder, "", MISSING + WRONG)
    assert main(["check"]) == 2
    captured = capsys.readouterr()
    assert "models.py:nothing:\nanyshape: models.py has no 'nothing'" in captured.err
    assert "refuted  models.py:wrong" in captured.out


def test_a_target_by_name_has_the_inputs_of_the_project(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "models.py:halves"]) == 1
    assert "h % 2 == 0" in read(capsys)
    assert main(["check", "models.py:halves", "-i", "x: [b, 4]"]) == 0


BAD = [
    (("check", "-i", "x: [b]"), "to one TARGET"),
    (("check", "--write-baseline"), "--baseline FILE"),
    (("check", "--baseline", "none.json"), "cannot be read"),
    (("check", "-o", "no/such/folder/file"), "cannot be written"),
    (("explain", "conditon"), "did you mean 'condition'"),
    (("explain", "xyzzy"), "`anyshape explain` lists them"),
]


@pytest.mark.parametrize("arguments, part", BAD)
def test_bad_usage(
    folder: Path, arguments: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert part in capsys.readouterr().err


def test_nothing_to_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 2
    assert "list targets in pyproject.toml" in capsys.readouterr().err


def test_a_misspelt_key_is_told_with_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(folder, "budgte = 3")
    assert main(["check"]) == 2
    told = capsys.readouterr().err
    assert "no key 'budgte'" in told
    assert "pyproject.toml:2" in told
    assert "budgte = 3" in told
    assert "did you mean 'budget'?" in told


# ---- suppression


def test_a_comment_suppresses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "models.py").write_text(MODELS.replace("2, -1)", "2, -1)  # anyshape: ignore[condition]"))
    assert main(["check"]) == 0
    text = read(capsys)
    assert "refined  models.py:halves  1 suppressed" in text
    assert "refined  models.py:halves  1 suppressed" in text
    assert "condition:" not in text


def test_an_idle_comment_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "models.py").write_text(MODELS.replace("relu(x)", "relu(x)  # anyshape: ignore"))
    assert main(["check", "--format", "github"]) == 1
    assert "file=models.py,line=5,col=27,endColumn=44,title=unused-suppression" in read(capsys)


def test_a_baseline_from_writing_to_growing_idle(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(folder, 'baseline = "known.json"')
    assert main(["check"]) == 2  # it is not there yet
    assert main(["check", "--write-baseline"]) == 0
    assert "1 finding known in" in read(capsys)
    assert main(["check"]) == 0
    configure(folder, 'baseline = "known.json"', WRONG)
    assert main(["check"]) == 1
    assert main(["check", "models.py:wrong", "--write-baseline"]) == 0
    assert main(["check"]) == 0
    (folder / "models.py").write_text(MODELS.replace("x.view(x.shape[0], 2, -1)", "x"))
    capsys.readouterr()
    assert main(["check"]) == 0
    told = read(capsys).replace("\n  ", " ")
    assert "unused-suppression: condition at models.py: `return x.view(x.shape[0], 2, -1)` is gone" in told


# ---- forms


def test_json_of_a_project_lists_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--format", "json"])
    project = json.loads(read(capsys))
    assert [report["verdict"] for report in project["reports"]] == ["proved", "refined"]
    main(["check", "models.py:good", "--format", "json"])
    assert json.loads(read(capsys))["target"] == "models.py:good"


SIGNS = {
    "text": "refined", "concise": "models.py:9:", "json": '"schema": 1', "sarif": '"version": "2.1.0"',
    "github": "::warning file=models.py,line=9,",
    "junit": "<testsuite ", "html": "<!DOCTYPE html>", "dot": "digraph ",
    "markdown": "models.py:halves",
}  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_every_form_of_a_project(folder: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--format", form, "-o", "out"]) == 1
    assert read(capsys) == ""
    text = (folder / "out").read_text(encoding="utf-8")
    assert SIGNS[form] in text
    if form == "junit":
        assert len(ET.fromstring(text).findall(".//testcase")) == 2


# ---- explain


@pytest.mark.parametrize("code", Code)
def test_every_code_is_explained(code: Code, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", code.value]) == 0
    text = read(capsys)
    assert text.startswith(f"{code.value}\n\n*{code.severity}*: ")
    assert "\nFinding:\n    " in text
    assert "\nRepaired:\n    " in text
    assert "```" not in text
    assert "##" not in text


def test_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    assert [line.split()[0] for line in read(capsys).splitlines()] == [code.value for code in Code]


# ---- commands


def test_every_command_has_a_file_and_every_file_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(package.__file__).parent
    files = {path.stem for path in (folder / "commands").glob("*.py")} - {"__init__"}
    assert {name.replace("_", "-") for name in files} == set(COMMANDS)
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    listed = [line.split()[0] for line in read(capsys).splitlines() if re.match(r" {4}\S", line)]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
