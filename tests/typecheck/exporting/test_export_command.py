"""`anyshape export`: what is saved, and what is said of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from anyshape.typecheck import check
from anyshape.typecheck.cli.main import main

SOURCE = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.down = nn.Conv2d(3, width, 2, stride=2)
        self.up = nn.ConvTranspose2d(width, 3, 2, stride=2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return torch.cat([x, self.drop(self.up(self.down(x)))], dim=1)

def mean(x):
    total, n = torch.zeros(x.shape[0]), 0
    for step in x.unbind(1):
        total, n = total + step, n + 1
    return total / n

def never(x):
    return x @ torch.zeros(x.shape[1] + 1, 2)
"""


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "net.py").write_text(SOURCE)


def test_the_file_takes_what_the_model_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "net.py:Net", "--args", "8", "-i", "x: [b, 3, h, w]", "-o", "net.pt2"]) == 0
    told = capsys.readouterr().out
    assert "exported: net.py:Net(8) to net.pt2 (" in told
    assert "It takes exactly the sizes that the model takes\n  h % 2 == 0 and w % 2 == 0\n" in told
    module = torch.export.load("net.pt2").module()
    for sizes in ((1, 3, 2, 2), (3, 3, 6, 4)):
        x = torch.rand(sizes)
        assert torch.equal(module(x), module(x))  # dropout is off
        assert module(x).shape == (sizes[0], 6, *sizes[2:])
    with pytest.raises(AssertionError):
        module(torch.rand(2, 3, 3, 4))
    report = check("net.pt2")
    names = [name for name in report.accepts.symbols if name.startswith("s")]
    assert [report.dims[name].divisor for name in names].count(2) == 2


def test_what_is_given_up_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["export", "net.py:mean", "-i", "x: [b, t]", "-o", "mean.pt2"]
    assert main(asked) == 1
    told = capsys.readouterr().out
    assert "It takes the sizes\n  t == 2\n" in told
    assert "The model takes more\n  the trace holds only where t == 2" in told
    assert main([*asked, "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["exact"], data["accepts"], data["file"]) == (False, "t == 2", "mean.pt2")
    assert data["given_up"]
    assert all(at["t"] == 2 for at in data["tried"])
    assert all(at["t"] != 2 for at in data["refused"])


REFUSED = {
    ("net.py:mean", "-i", "x: [b, t]", "-o", "mean.bin"): "did you mean mean.pt2?",
    ("net.py:mean", "-i", "x: [b, t]", "-o", "nowhere/mean.pt2"): "cannot be written",
    ("net.py:never", "-i", "x: [b, t]", "-o", "never.pt2"): "runs for none of the declared inputs",
    ("net.py:Net", "-o", "net.pt2"): "needs width: int",
    ("other.pt2", "-o", "net.pt2"): "this is exported already",
}


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_what_cannot_be_exported(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *arguments]) == 2
    assert REFUSED[arguments] in capsys.readouterr().err
    assert not [*Path().glob("*.pt2")]
