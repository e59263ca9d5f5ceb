"""Eight newcomers check a model that they know, as it stands: at most two commands lead to the right verdict.

A verdict is right if eager runs of the model agree with it, at sizes within and beyond its condition. The
models are written in the manner of well-known public ones.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.spec import Declared
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.formula import holds
from anyshape.constraints.terms.rows import sizes
from anyshape.tracer.recording.binding import bind
from anyshape.typecheck import Report, check, refine
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.targets.target import resolve

MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True)
class Visit:
    """What a newcomer types, and what comes of it."""

    target: str
    """The first command is `anyshape check` of this."""
    arguments: str = ""
    """What the second command adds by `--args`, if the first cannot build the model."""
    asked: str = ""
    """Words of the first answer that lead to these arguments."""
    inputs: tuple[str, ...] = ()
    """The spec that is printed."""
    code: int = 0
    """The exit code at the end: 0 if the verdict is `proved`, 1 if it is `refined`."""
    sizes: tuple[str, ...] = ()
    """Sizes at which the model is run next to the verdict, in the order of its symbols."""

    @property
    def built(self) -> str:
        """Returns the target with its arguments."""
        return f"{self.target}({self.arguments})" if self.arguments else self.target


VISITS = {
    "gpt": Visit(
        "nano_gpt.py:GPT", "config=GPTConfig()", '--args "config=GPTConfig()"',
        ("idx: int64[b, t]",), 1, ("1 1", "2 63", "1 64", "1 65", "3 100"),
    ),
    "vit": Visit(
        "vit.py:VisionTransformer", inputs=("images: float32[b, 3, h, w]",), code=1,
        sizes=("1 224 224", "2 239 224", "1 112 448", "1 240 224", "1 223 224", "1 196 256", "1 15 224"),
    ),
    "vae": Visit(
        "vae.py:VAE", inputs=("x: float32[b, 1, h, w]",), code=1,
        sizes=("1 28 28", "2 31 29", "1 4 196", "1 32 28", "1 27 28", "1 3 28"),
    ),
    "unet": Visit(
        "unet.py:UNet", "3, n_classes=21", "n_channels=…, n_classes=…", ("x: float32[b, 3, h, w]",), 1,
        ("1 8 8", "2 64 16", "1 24 40", "1 12 16", "1 4 8", "2 16 17"),
    ),
    "resnet": Visit(
        "resnet.py:ResNet10", inputs=("x: float32[b, 3, h, w]",), code=1,
        sizes=("1 32 32", "2 25 56", "1 24 32", "1 57 32", "1 64 64"),
    ),
    "tagger": Visit(
        "tagger.py:LSTMTagger", "8, 16, 40, 5", "embedding_dim=…, hidden_dim=…", ("sentence: int64[n]",), 0,
        ("1", "2", "9"),
    ),
    "detector": Visit(
        "detector.py:Detector",
        inputs=(
            "features[0]: float32[b, 16, h0, w0]", "features[1]: float32[b, 32, h1, w1]",
            "features[2]: float32[b, 64, h2, w2]",
        ),
        sizes=("1 1 1 1 1 1 1", "2 16 12 8 6 4 3", "1 3 4 5 6 7 8"),
    ),
    "seq2seq": Visit(
        "seq2seq.py:Seq2Seq", inputs=("src: int64[b, t]", "trg: int64[b2, t]"),
        sizes=("1 1 1", "2 3 4", "5 2 1"),
    ),
}  # fmt: skip
"""Every visit, by the model."""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANYSHAPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(MODELS)


@pytest.mark.parametrize("name", VISITS)
def test_two_commands_lead_to_the_right_verdict(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    visit = VISITS[name]
    commands = [["check", visit.target, "--format", "json"]]
    if visit.arguments:
        assert main(commands[0]) == 2
        assert visit.asked in " ".join(json.loads(capsys.readouterr().out)["error"]["hint"].split())
        commands.append(["check", visit.target, "--args", visit.arguments, "--format", "json"])
    assert len(commands) <= 2
    code = main(commands[-1])
    report = Report.from_json(json.loads(capsys.readouterr().out))
    assert (code, report.inputs) == (visit.code, visit.inputs)
    assert report.verdict == ("refined" if code else "proved")
    model = resolve(visit.built).value
    ran = {text: runs(model, report, values(report, text)) for text in visit.sizes}
    assert {text: report.accepts.holds(**values(report, text)) for text in visit.sizes} == ran
    assert True in ran.values()
    assert (False in ran.values()) == bool(code)


QUICK = ("tagger", "detector")
"""Models without findings, for which no repairs are sought."""
SOME_SLOW = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in VISITS]


@pytest.mark.parametrize("name", SOME_SLOW)
def test_the_printed_spec_can_be_pasted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    visit = VISITS[name]
    assert main(["check", visit.built]) == visit.code
    printed = capsys.readouterr().out.splitlines()
    (line,) = [line for line in printed if "--input" in line]
    pasted = shlex.split(line[line.index("--input") :])
    assert pasted == [part for line in visit.inputs for part in ("--input", line)]
    assert main(["check", visit.built, *pasted]) == visit.code
    assert "guessed" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", VISITS)
def test_the_exported_program_takes_exactly_the_printed_sizes(name: str, tmp_path: Path) -> None:
    visit = VISITS[name]
    file = tmp_path / "model.pt2"
    exported = printed_by("export", visit.built, "-o", str(file))
    assert "It takes exactly the sizes that the model takes" in exported
    report = Report.from_json(json.loads(printed_by("check", visit.built, "--format", "json")))
    program = torch.export.load(file).module()
    for text in visit.sizes:
        given = values(report, text)
        assert runs(program, report, given) == report.accepts.holds(**given), text


def printed_by(*command: str) -> str:
    """Returns what a command prints, run as a process of its own."""
    process = [sys.executable, "-m", "anyshape.typecheck", *command]
    return subprocess.run(process, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", VISITS)
def test_printed_dims_pasted_into_torch_export(name: str) -> None:
    """torch takes the dims, and the program takes exactly their sizes, with nothing of torch's replaced."""
    visit = VISITS[name]
    shapes = refine(visit.built)
    report = check(visit.built)
    assert shapes is not None
    pasted: dict[str, Any] = {}
    exec(f"{shapes}", pasted)
    roots = {root.name: max(root.low, 2) + at for at, root in enumerate(shapes.box.roots)}
    example = shapes.box.at(roots)
    model = resolve(visit.built).value
    bound = bind(model, parse_spec(report.inputs).inputs, lambda one: tensor(one, example))
    program = torch.export.export(
        model, bound.args, bound.kwargs, dynamic_shapes=pasted["dynamic_shapes"], strict=False
    ).module()
    for text in (*visit.sizes, " ".join(str(example[name]) for name in report.accepts.symbols)):
        given = values(report, text)
        assert runs(program, report, given) == holds(shapes.formula, given), text


def values(report: Report, text: str) -> dict[str, int]:
    """Returns a value for each symbol of a report."""
    return dict(zip(report.accepts.symbols, map(int, text.split()), strict=True))


def runs(model: Any, report: Report, given: dict[str, int]) -> bool:
    """Returns whether a model runs eagerly at these sizes."""
    bound = bind(model, parse_spec(report.inputs).inputs, lambda one: tensor(one, given))
    try:
        with torch.no_grad():
            model(*bound.args, **bound.kwargs)
    except (RuntimeError, AssertionError, ValueError, IndexError):
        return False
    return True


def tensor(one: Declared, given: dict[str, int]) -> torch.Tensor:
    """Returns a tensor of zeros for a declared input."""
    assert isinstance(one.type, Tensor)
    return torch.zeros(sizes(one.type.shape, given), dtype=getattr(torch, one.type.dtype or "float32"))
