"""Evaluation and training: which mode a check looks at, and what it says of the other one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.typecheck import check
from anyshape.typecheck.checking import api
from anyshape.typecheck.checking.guessing import guessed
from anyshape.typecheck.checking.modes import depends_on_mode, in_mode
from anyshape.typecheck.checking.recorded import Recorded
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.remote.sending import package
from anyshape.typecheck.render.text import training_text

SOURCE = '''\
import torch
from torch import nn

class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(0.1))
    def forward(self, x): return self.layers(x)

class Plain(nn.Module):
    def forward(self, x): return x.view(-1, 3)

class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
    def forward(self, x): return self.drop(x)

class Split(nn.Module):
    def forward(self, x):
        return x.view(-1, 7) if self.training else x

class Bad(nn.Module):
    def forward(self, x):
        return x @ torch.zeros(x.shape[1] + 1, 2) if self.training else x

class Vague(nn.Module):
    def forward(self, x):
        return x[x > 0].view(2, -1) if self.training else x

class Never(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.norm = nn.LSTM(5, 3), nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(self.rnn(x)[0])


class Easier(nn.Module):
    def forward(self, x):
        return x if self.training else x.view(-1, 7)

def make(): return Normed()
def evaluated(): return Normed().eval()
instance = Normed()
'''


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "net.py").write_text(SOURCE)


# what is checked: verdict and condition in evaluation, and what is otherwise in training
BOTH: dict[str, tuple[str, str, str | None]] = {
    "Normed": ("proved", "True", "also needs 2 <= b (net.py:8 in layers.1)"),
    "make": ("proved", "True", "also needs 2 <= b (net.py:8 in layers.1)"),
    "evaluated": ("proved", "True", "also needs 2 <= b (net.py:8 in layers.1)"),
    "instance": ("refined", "2 <= b", None),
    "Plain": ("proved", "True", None),
    "Dropped": ("proved", "True", None),
    "Split": ("proved", "True", "also needs b % 7 == 0 (net.py:21)"),
    "Bad": ("proved", "True", "runs for none of these inputs: the contracted sizes must agree"),
    "Vague": ("proved", "True", "may or may not run: it depends on a size that the data decides (net.py:29)"),
    "Easier": ("refined", "b % 7 == 0", "runs for every declared input"),
    "Never": ("refuted", "False", None),
}


@pytest.mark.parametrize("name", BOTH)
def test_both_modes(name: str) -> None:
    verdict, condition, training = BOTH[name]
    report = check(f"net.py:{name}", "x: [b, 6]")
    assert (report.verdict.value, str(report.accepts)) == (verdict, condition)
    told = None if report.training is None else training_text(report.training)
    assert told == training or (told and training and told.startswith(f"In training it {training}")), told


def test_the_text_tells_what_training_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "net.py:Normed", "-i", "x: [b, 6]"]) == 0
    assert "In training it also needs 2 <= b (net.py:8 in layers.1)." in capsys.readouterr().out


def test_training_is_looked_at_with_the_inputs_that_were_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(api, "guessed", lambda *given: tried.append("") or guessed(*given))
    normed, split = check("net.py:Normed", assume="b <= 99"), check("net.py:Split")
    assert normed.inputs == ("x: float32[b, 6]",)
    assert split.inputs == ("x: float32[*x]",)
    for report in (normed, split):
        assert report.training is not None
        assert {*report.accepts.symbols} <= {*report.training.accepts.symbols}
        assert report.training.adds
    assert len(tried) == 2


@pytest.mark.parametrize("name", ["Normed", "make", "instance"])
def test_one_mode(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"net.py:{name}", "-i", "x: [b, 6]", "--train"]) == 1
    assert "2 <= b" in capsys.readouterr().out
    assert main(["check", f"net.py:{name}", "-i", "x: [b, 6]", "--eval"]) == 0
    assert "training" not in capsys.readouterr().out


def test_the_mode_of_what_is_dumped_or_sent(capsys: pytest.CaptureFixture[str]) -> None:
    spec = "x: float32[b, 6]"
    for mode, refuses in (("--train", True), ("--eval", False)):
        assert main(["check", "net.py:Normed", "-i", spec, "--dump", "constraints", mode]) == 0
        assert ("Expected more than 1 value" in capsys.readouterr().out) == refuses
        sent = package("net.py:Normed", spec, training=refuses)
        report = check(Recorded.from_json(json.loads(sent.content)).target("sent"))
        assert str(report.accepts) == ("2 <= b" if refuses else "True")


def test_a_project_says_which_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = '[[tool.anyshape.targets]]\ntarget = "net.py:Normed"\ninputs = "x: [b, 6]"\n'
    (tmp_path / "pyproject.toml").write_text(f"{target}training = true\n")
    assert main(["check"]) == 1
    assert main(["check", "--eval"]) == 0
    (tmp_path / "pyproject.toml").write_text(f"[tool.anyshape]\ntraining = true\n{target}")
    assert main(["check"]) == 1
    (tmp_path / "pyproject.toml").write_text(f"[tool.anyshape]\ntraining = true\n{target}training = false\n")
    assert main(["check"]) == 0
    assert "training" not in capsys.readouterr().out.splitlines()[-1]


def test_an_object_is_looked_at_as_it_stands_and_left_so() -> None:
    net = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))
    net[0].eval()
    modes = [module.training for module in net.modules()]
    assert str(check(net, "input: [b, 6]").accepts) == "2 <= b"
    assert str(check(net, "input: [b, 6]", training=False).accepts) == "True"
    assert [module.training for module in net.modules()] == modes == [True, False, True]
    assert str(check(net.eval(), "input: [b, 6]").accepts) == "True"
    assert str(check(net, "input: [b, 6]", training=True).accepts) == "2 <= b"
    assert not any(module.training for module in net.modules())


def test_the_mode_is_restored_where_a_block_fails() -> None:
    net = nn.BatchNorm1d(4)
    mode = in_mode(net, False)
    mode.__enter__()
    assert not net.training
    assert not mode.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert net.training


def test_which_modules_depend_on_the_mode() -> None:
    modules: list[Any] = [nn.BatchNorm1d(4), nn.Sequential(nn.ReLU(), nn.Dropout()), nn.LSTM(3, 4)]
    assert all(map(depends_on_mode, modules))
    assert not any(map(depends_on_mode, [nn.Linear(3, 4), nn.Sequential(nn.ReLU()), torch.relu, len]))
