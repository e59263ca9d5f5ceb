"""Files that run code when they are imported."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path

import pytest

from anyshape.typecheck import Code, Verdict, check
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.cli.terminal import ProgramOutput
from anyshape.typecheck.targets import at_import

NET = """\
import torch
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        return self.out(x)

print("hello")
"""
WRONG = f"{NET}net = Net()\nnet(torch.randn(2, 16))\nlate = Net()\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(WRONG)
    return tmp_path / "net.py"


def test_what_is_defined_before_the_error_is_checked(script: Path) -> None:
    report = check(f"{script}:Net", "x: [b, 8]")
    first, *_, last = report.findings
    assert (report.verdict, first.code, last.code) == (
        Verdict.PROVED, Code.RAISED_AT_IMPORT, Code.RAN_AT_IMPORT,
    )  # fmt: skip
    assert first.origin.code == "return self.out(x)"
    assert "by line 15: `net(torch.randn(2, 16))`" in first.message
    assert (last.origin.line, "1 more statement" in last.message) == (13, True)
    assert not report.passes


def test_of_what_is_not_defined_nothing_is_claimed(script: Path) -> None:
    report = check(f"{script}:late", "x: [b, 8]")
    assert (report.verdict, report.accepts.certain.formula) == (Verdict.UNKNOWN, False)
    assert [finding.code for finding in report.findings] == [Code.RAISED_AT_IMPORT]


@pytest.mark.parametrize("name", ["Net", "late"])
@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "junit", "html", "concise"])
def test_every_format_has_it_and_the_exit_code_is_1(
    script: Path, name: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["check", f"{script}:{name}", "-i", "x: [b, 8]", "--no-cache", "--format", form]
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert "raised-at-import" in out
    assert "hello" not in out.replace('print("hello")', "").replace("print(\\\"hello\\\")", "")
    assert err == "output of the program itself:\n  | hello\n"
    if form in ("json", "sarif"):
        json.loads(out)


def test_another_error_is_one_of_loading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text(f"{NET}raise RuntimeError('set DATA_DIR')\n")
    assert main(["check", f"{tmp_path / 'net.py'}:Net", "-i", "x: [b, 8]", "--no-cache"]) == 2
    assert "cannot be imported: RuntimeError: set DATA_DIR" in capsys.readouterr().err


STATEMENTS = {
    "print(1)": True,
    "main()": True,
    "for x in range(3): pass": True,
    "with torch.no_grad():\n    net(x)": True,
    "torch.manual_seed(0)": False,
    "sys.path.insert(0, '.')": False,
    "warnings.filterwarnings('ignore')": False,
    "x = net(1)": False,
    "'''A text.'''": False,
    "if __name__ == '__main__':\n    main()": False,
    "try:\n    import x\nexcept ImportError:\n    x = None": False,
}


@pytest.mark.parametrize("code", STATEMENTS)
def test_which_statements_do_more_than_define(code: str) -> None:
    (statement,) = ast.parse(code).body
    assert at_import._works(statement) is STATEMENTS[code]


@pytest.mark.parametrize(
    ("error", "is_of_sizes"),
    [
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x100 and 784x256)"), True),
        (RuntimeError("Given groups=1, weight of size [8, 3, 3, 3], expected input[1, 1, 8, 8]"), True),
        (IndexError("Dimension out of range (expected to be in range of [-2, 1], but got 2)"), True),
        (RuntimeError("CUDA error: no device"), False),
        (FileNotFoundError("no file of this size"), False),
        (KeyError("shape"), False),
    ],
)
def test_which_errors_are_about_sizes(error: Exception, is_of_sizes: bool) -> None:
    assert at_import.is_of_sizes(error) is is_of_sizes


def test_output_is_marked_line_by_line() -> None:
    stream = io.StringIO()
    out = ProgramOutput(stream)
    assert stream.getvalue() == ""
    print("a", 1, file=out)
    print("b\nc", end="", file=out)
    print("d", file=out)
    assert stream.getvalue() == "output of the program itself:\n  | a 1\n  | b\n  | cd\n"
