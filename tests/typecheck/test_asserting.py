"""`assert_shapes`, the fixture of pytest, and the test that shows what is wrong: it fails as it says."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import anyshape as package
from anyshape import ShapesError, Verdict, assert_shapes
from anyshape.constraints.ir.spec_text import SpecError


class Halves(nn.Module):
    def __init__(self, parts: int = 2) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, x: Any) -> Any:
        return x.view(x.shape[0], self.parts, -1)


class Known(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.view(x.shape[0], 2, -1)  # anyshape: ignore[condition]


def test_what_is_proved_passes_and_is_reported() -> None:
    report = assert_shapes(Halves(), "x: float32[b, h]", "h % 2 == 0")
    assert report.verdict is Verdict.PROVED
    assert assert_shapes(Known(), "x: float32[b, h]").passes


def test_the_fixture_is_the_package(anyshape: Any) -> None:
    assert anyshape is package
    anyshape.assert_shapes(torch.relu, "input: float32[b]")


def told(error: ShapesError) -> str:
    """The test that the message has."""
    return textwrap.dedent(str(error).partition("A test that shows it:\n\n")[2])


def caught(run: Any, *arguments: Any) -> ShapesError:
    with pytest.raises(ShapesError) as raised:
        run(*arguments)
    return raised.value


def test_a_failure_tells_the_findings_and_a_test() -> None:
    def test_halves() -> None:
        """Of two."""
        model = Halves(3)
        assert_shapes(model, "x: float32[b, h]")

    error = caught(test_halves)
    assert "condition: " in str(error)
    assert "requires h % 3 == 0" in str(error)
    assert error.report.verdict is Verdict.REFINED
    finding = error.report.findings[0]
    assert finding.witness is not None
    b, h = finding.witness["b"], finding.witness["h"]
    assert told(error).endswith(f"test_asserting.py:{finding.origin.line}: {finding.message}\n")
    assert told(error).startswith(
        f'def test_halves_at_b{b}_h{h}() -> None:\n    """Of two."""\n    model = Halves(3)\n'
        f"    model(torch.zeros({b}, {h}))  # "
    )


RETURNS: list[tuple[str, str, str]] = [
    ("y: float32[b, 2, h]", "x: float32[b, 2*h]", ""),
    ("y: [b, 2, n]", "x: float32[b, 2*h]", ""),
    ("output: [b, ..., h]", "x: float32[b, 2*h]", ""),
    ("y: float32[b, 3, h]", "x: float32[b, 2*h]",
     "y is float32[b, 2, h], claimed float32[b, 3, h]: another at b=2, h=3"),
    ("y: float32[b, 2, b]", "x: float32[b, 2*b]", ""),
    ("y: float32[b, 2, b]", "x: float32[b, 2*h]",
     "y is float32[b, 2, h], claimed float32[b, 2, b]: another at b=2, h=3"),
    ("y: int64[b, 2, h]", "x: float32[b, 2*h]", "y is float32[b, 2, h], claimed int64[b, 2, h]"),
]  # fmt: skip
"""What is claimed of the result, the inputs, and what is said against it."""


@pytest.mark.parametrize("returns, inputs, expected", RETURNS)
def test_results_are_claimed(returns: str, inputs: str, expected: str) -> None:
    if not expected:
        assert assert_shapes(Halves(), inputs, returns=returns).passes
        return
    with pytest.raises(ShapesError) as raised:
        assert_shapes(Halves(), inputs, returns=returns)
    assert str(raised.value) == f"Halves returns other than claimed\n{expected}"


def test_results_hold_on_every_path() -> None:
    def cut(x: Any) -> Any:
        return x[:4] if x.shape[0] > 4 else x

    assert_shapes(cut, "x: float32[n]", "n <= 4", returns="y: float32[n]")
    with pytest.raises(ShapesError, match=r"y is float32\[4\], claimed float32\[n\]: another at n=5"):
        assert_shapes(cut, "x: float32[n]", returns="y: float32[n]")


def test_claims_have_to_fit_the_results() -> None:
    with pytest.raises(SpecError, match="a, b are not the results: it returns output"):
        assert_shapes(Halves(), "x: float32[b, 2*h]", returns="a: [b]; b: [b]")
    with pytest.raises(SpecError, match="claimed by its name and type"):
        assert_shapes(Halves(), "x: float32[b, 2*h]", returns="b, 2, h")


def test_a_failure_is_short() -> None:
    def test_halves() -> None:
        assert_shapes(Halves(3), "x: float32[b, h]")

    assert len(str(caught(test_halves)).splitlines()) <= 11


def several(model: nn.Module) -> None:
    if model is not None:
        pass
    assert_shapes(
        model,
        "x: float32[b, h]",
    )


def keywords() -> None:
    report = assert_shapes(inputs="x: float32[b, h]; y: int64[h]", model=lambda x, *, y: x.view(-1, 2) + y)
    assert report


def of_a_class() -> None:
    assert_shapes(Halves, "x: float32[b, h]")


def nested_inputs() -> None:
    def f(batch: Any, scale: float, flag: bool) -> Any:
        return batch["a"] + batch["b"][0] if flag else batch

    assert_shapes(f, 'batch["a"]: float32[b, 3]; batch["b"][0]: int32[h, 3]; scale: float; flag=True')


FORMS = [
    (several, (Halves(),), r"def several_at_b\d+_h\d+\(model: nn.Module\) -> None:\n    if .*\n.*pass\n"
                           r"    model\(torch.zeros\(\d+, \d+\)\)  # "),
    (keywords, (), r"    \(lambda x, \*, y: x.view\(-1, 2\) \+ y\)\("
                   r"torch.zeros\(\d+, \d+\), y=torch.zeros\(\d+, dtype=torch.int64\)\)"),
    (of_a_class, (), r"    Halves\(\)\(torch.zeros\(\d+, \d+\)\)"),
    (nested_inputs, (), r"    f\(\{'a': torch.zeros\(\d+, 3\), "
                        r"'b': \[torch.zeros\(\d+, 3, dtype=torch.int32\)\]\}, 0.5, True\)"),
]  # fmt: skip


@pytest.mark.parametrize("test, arguments, pattern", FORMS)
def test_forms_of_the_test(test: Any, arguments: tuple[Any, ...], pattern: str) -> None:
    error = caught(test, *arguments)
    assert re.search(pattern, told(error)), str(error)


@pytest.mark.parametrize("test, arguments, pattern", FORMS)
def test_the_test_fails_as_it_says(test: Any, arguments: tuple[Any, ...], pattern: str) -> None:
    text = told(caught(test, *arguments))
    names = {**globals()}
    exec("from __future__ import annotations\n" + text, names)
    name = re.search(r"def (\w+)", text)[1]  # type: ignore[index]
    with pytest.raises(RuntimeError):
        names[name](*arguments)


def test_no_test_where_there_is_nothing_to_run() -> None:
    exported = torch.export.export(Halves(), (torch.zeros(2, 4),))
    assert "A test that shows it" not in str(caught(assert_shapes, exported, "x: float32[b, h]"))
    assert "A test that shows it" not in str(caught(lambda: assert_shapes(Halves(), "x: float32[b, h]")))


TEST = """\
from torch import nn


class Halves(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0], 2, -1)


def test_right(anyshape):
    anyshape.assert_shapes(Halves(), "x: float32[b, 2*k]")


def test_wrong(anyshape, tmp_path):
    net = Halves()
    anyshape.assert_shapes(net, "x: float32[b, h]")
"""


OTHERS = ("cacheprovider", "schemathesis", "hypothesispytest", "xdist", "xdist.looponfail", "anyio")
"""Plugins that are installed for other tests: to import them takes longer than the test."""


def pytest_run(folder: Path, *options: str) -> str:
    without = (part for plugin in OTHERS for part in ("-p", f"no:{plugin}"))
    command = [sys.executable, "-m", "pytest", *without, *options]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=180, check=False
    ).stdout


def test_in_a_project_with_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_net.py").write_text(TEST)
    said = pytest_run(tmp_path)
    assert "1 failed, 1 passed" in said
    assert re.search(r'^> +anyshape.assert_shapes\(net, "x: float32\[b, h\]"\)$', said, re.MULTILINE)
    assert "ShapesError: refined: Halves runs for some of the declared inputs" in said
    assert "asserting.py" not in said  # the traceback ends at the line of the test
    lines = [line.removeprefix("E   ") for line in said.splitlines() if line.startswith("E")]
    shown = textwrap.dedent("\n".join(lines).partition("A test that shows it:\n")[2])
    assert "def test_wrong_at_" in shown
    (tmp_path / "test_net.py").write_text(TEST.partition("def test_wrong")[0] + textwrap.dedent(shown))
    said = pytest_run(tmp_path)
    assert "1 failed, 1 passed" in said, shown
    assert re.search(r"E +RuntimeError: shape '\[\d+, 2, -1\]' is invalid", said)


def test_the_plugin_weighs_nothing(tmp_path: Path) -> None:
    test = "import sys\ndef test_it():\n    assert 'torch' not in sys.modules\n"
    (tmp_path / "test_no.py").write_text(test)
    assert "1 passed" in pytest_run(tmp_path)
    assert "anyshape" in pytest_run(tmp_path, "--fixtures")
