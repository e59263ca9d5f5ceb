"""`anyshape init`: the models of a project are found by reading, tried, and written as settings."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from anyshape.typecheck.cli.main import main
from anyshape.typecheck.project import config
from anyshape.typecheck.project.discovery import FoundModel, found_models

MODELS = """
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return torch.relu(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.conv = Block(), nn.Conv2d(3, 8, 3)
    def forward(self, x):
        return self.block(self.conv(x))

class Base(nn.Module):
    def __init__(self, size: int, *, depth=1, width):
        super().__init__()
        self.out = nn.Linear(size, width)
    def forward(self, batch):
        return self.out(batch["x"])

class Derived(Base):
    pass

class Unbuilt(nn.Module):
    def __init__(self, size: int, *, depth=1, width):
        super().__init__()
    def forward(self, x):
        return x

class Odd(nn.Module):
    def forward(self, x):
        return x.no_such_method()

class NoModel:
    def forward(self, x):
        return x
"""
TRAIN = """
from net import Derived
raise SystemExit("this file is not imported")
model = Derived(5, width=7)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("tests", ".venv", "env/lib"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "other.py").write_text(MODELS)
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    (tmp_path / "net.py").write_text(MODELS)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "broken.py").write_text("class (")
    return tmp_path


def test_models_are_found_and_their_parts_left_out(project: Path) -> None:
    assert found_models(project) == [
        FoundModel("net.py", "Net"),
        FoundModel("net.py", "Derived", ("size: int", "width"), "5, width=7"),
        FoundModel("net.py", "Unbuilt", ("size: int", "width")),
        FoundModel("net.py", "Odd"),
    ]


def test_the_settings_are_written_and_can_be_checked(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    (project / "pyproject.toml").write_text('[project]\nname = "mine"')
    assert main(["init"]) == 0
    assert "4 models; for 2 no inputs were found" in capsys.readouterr().out
    text = (project / "pyproject.toml").read_text()
    assert tomllib.loads(text)["project"] == {"name": "mine"}
    found = config.read(project / "pyproject.toml")
    assert found is not None
    assert [(job.target, job.inputs) for job in found.jobs] == [
        ("net.py:Net", ("x: float32[b, 3, h, w]",)),
        ("net.py:Derived(5, width=7)", ('batch["x"]: float32[b, 5]',)),
    ]
    assert "# runs where 3 <= h and 3 <= w\n" in text
    assert "# Unbuilt: its constructor needs size: int, width\n" in text
    assert "has no attribute 'no_such_method'" in " ".join(text.split())
    assert main(["check", "--no-cache", "--quiet"]) == 1
    assert capsys.readouterr().out.count("\n") == 1


def test_a_table_that_is_there_stays(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    for text in ("[tool.anyshape]\nbudget = 5\n", "[tool.anyshape.targets]\n", "not TOML"):
        (project / "pyproject.toml").write_text(text)
        assert main(["init"]) == 2
        assert (project / "pyproject.toml").read_text() == text
    assert "is not valid TOML" in capsys.readouterr().err


def test_a_dry_run_writes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert main(["init", "--dry-run"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["tool"]["anyshape"]["targets"]
    assert not (project / "pyproject.toml").exists()


def test_a_folder_without_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path)]) == 2
    assert main(["init", str(tmp_path / "absent")]) == 2
    err = capsys.readouterr().err
    assert "no class in" in err
    assert "is not a folder" in err
