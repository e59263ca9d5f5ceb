"""Releases of torch and Python that are too old, lack a name, or are newer than what was tested."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import anyshape
from anyshape.tracer.host import releases
from anyshape.typecheck import Code, ReleaseError, Report, TargetError, check
from anyshape.typecheck.checking import releases as told
from anyshape.typecheck.cli.main import main

ARCHIVE = Path(__file__).parent.parent / "tracer/fixtures/sizes.pt2"
NOTES = {
    "NEWEST": (Code.UNTESTED_TORCH, torch.__version__),
    "NEWEST_PYTHON": (Code.UNTESTED_PYTHON, releases.python_version()),
}


def double(x: torch.Tensor) -> torch.Tensor:
    return x + x


def notes(report: Report) -> list[tuple[Code, str]]:
    codes = [code for code, _ in NOTES.values()]
    return [(f.code, f.message) for f in report.findings if f.code in codes]


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text("import torch\ndef double(x):\n    return x + x\n")
    return f"{path}:double"


# ---- the release of a version


@pytest.mark.parametrize(
    "version, release",
    [("2.13.0+cpu", (2, 13)), ("2.9.1", (2, 9)), ("2.16.0.dev20261101+cpu", (2, 16)),
     ("2.12.0a0+git1", (2, 12)), ("2.0", (2, 0)), ("3.11.7", (3, 11))],
)  # fmt: skip
def test_the_release_of_a_version(version: str, release: tuple[int, int]) -> None:
    assert releases.number(version) == release


def test_releases_are_compared_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "torch_version", lambda: "2.9.1")
    assert releases.too_old() and not [what for what, *_ in releases.untested() if what == "torch"]
    monkeypatch.setattr(releases, "torch_version", lambda: f"{releases.OLDEST}.0")
    assert not releases.too_old()


# ---- too old


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.8.0+cpu")


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize(
    "call, given",
    [*((call, "x: float32[n]") for call in (check, anyshape.refine, anyshape.export, anyshape.branches)),
     (anyshape.migrate, "x: float32[?]"), (anyshape.infer, [torch.zeros(2), torch.zeros(3)])],
)  # fmt: skip
def test_an_old_torch_is_refused_with_both_releases(call: Callable[..., object], given: object) -> None:
    with pytest.raises(ReleaseError) as refused:
        call(double, given)
    assert f"torch {releases.OLDEST} or newer" in str(refused.value)
    assert "torch 2.8.0+cpu" in str(refused.value)
    assert isinstance(refused.value, TargetError)


@pytest.mark.usefixtures("old")
def test_the_command_line_refuses_an_old_torch(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", model, "--input", "x: float32[n]"]) == 2
    said = capsys.readouterr().err
    assert releases.OLDEST in said and "2.8.0" in said and "Traceback" not in said


@pytest.mark.usefixtures("old")
def test_archives_are_read_whatever_the_torch() -> None:
    assert str(check(str(ARCHIVE)).verdict) == "proved"


# ---- newer than what was tested


@pytest.mark.parametrize("constant", NOTES)
def test_a_newer_release_is_noted_once(constant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = check(double, "x: float32[n]")
    monkeypatch.setattr(releases, constant, "2.0")
    report = check(double, "x: float32[n]")
    code, version = NOTES[constant]
    (note,) = (message for found, message in notes(report) if found is code)
    assert version in note and "2.0" in note and not notes(before)
    assert (report.verdict, report.passes) == (before.verdict, True)
    assert code.value in [finding["code"] for finding in json.loads(json.dumps(report.to_json()))["findings"]]
    assert code.value in str(report)


def test_what_needs_no_torch_has_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    for constant in NOTES:
        monkeypatch.setattr(releases, constant, "2.0")
    assert not notes(check(str(ARCHIVE)))
    assert len(notes(check(torch.export.export(nn.ReLU(), (torch.ones(3),))))) == 2


def test_a_note_that_is_dropped_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "untested", lambda: iter(()))
    with pytest.raises(ValueError), contextlib.suppress(AssertionError):
        test_a_newer_release_is_noted_once("NEWEST", monkeypatch)


# ---- names that are missing


LACKING = {
    "at import": (
        "import torch; del torch.utils._python_dispatch._disable_current_modes", "_disable_current_modes"
    ),
    "at use": (
        "import torch; from torch._higher_order_ops import utils; del utils._hop_compile_and_call",
        "_hop_compile_and_call",
    ),
    "of Python": ("import sys, torch; del sys._getframe", "_getframe"),
}  # fmt: skip


@pytest.mark.parametrize("lacking", LACKING)
def test_a_missing_name_is_no_failure_of_the_model(lacking: str, model: str) -> None:
    remove, name = LACKING[lacking]
    code = f"{remove}\nfrom anyshape.typecheck.cli.main import main\n"
    code += f"raise SystemExit(main(['check', {model!r}, '--input', 'x: float32[n]']))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    of_python = lacking == "of Python"
    release = f"Python {releases.python_version()}" if of_python else f"torch {torch.__version__}"
    assert f"anyshape does not know {release}: " in ran.stderr and name in ran.stderr, ran.stderr
    assert ran.returncode == 2 and "Traceback" not in ran.stderr


def test_names_of_the_package_come_with_the_same_words() -> None:
    remove = "import torch.export.dynamic_shapes as d; del d._DerivedDim"
    ran = subprocess.run(
        [sys.executable, "-c", f"{remove}\nfrom anyshape import export"], capture_output=True, text=True
    )
    last = ran.stderr.splitlines()[-1]
    assert "ReleaseError: anyshape does not know torch" in last and "_DerivedDim" in last, ran.stderr


class Forgotten(nn.Module):
    """Has none of the attributes that `nn.Module` makes."""

    def __init__(self) -> None:
        pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def users_attribute(x: torch.Tensor) -> torch.Tensor:
    return torch._C._disable_current_modes(x)  # type: ignore[attr-defined, no-any-return]


def users_import(x: torch.Tensor) -> torch.Tensor:
    from torch._ops import no_such_name

    return no_such_name(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("target", [Forgotten(), users_attribute, users_import])
def test_what_the_program_lacks_is_the_programs(target: Callable[..., object]) -> None:
    with pytest.raises((TargetError, AttributeError)) as failed:
        check(target, "x: float32[n]")
    assert not isinstance(failed.value, ReleaseError)


def test_other_errors_pass() -> None:
    with pytest.raises(ImportError, match="no_such"), told.known_release():
        from torch import no_such  # noqa: F401
