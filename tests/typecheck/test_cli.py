"""The command line: what is printed, where, and the exit code, for good input and for bad."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from anyshape.tracer.readers.archive import MAX_BYTES
from anyshape.typecheck.cli.main import COMMANDS, main
from anyshape.typecheck.facade import Report

ROOT = Path(__file__).parent.parent.parent
ARCHIVES = ROOT / "tests/tracer/fixtures"

SOURCE = '''\
import time

import torch
from torch import nn


class Halves(nn.Module):
    def forward(self, x):
        print("user code prints")
        return x.view(x.shape[0], 2, -1)


class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        return self.linear(x)


class Convolves(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x)


def same(x):
    return torch.relu(x)


def misspelt(x):
    return x.veiw(-1)


def other_reason(x):
    raise KeyError("no such thing")


def looked_up(batch):
    return batch["feat"] + 1


def sleeps(x):
    print("asleep", flush=True)
    time.sleep(60)
    return x


def needs_two(x, y):
    return x + y
'''


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "models.py").write_text(SOURCE)
    return tmp_path


SCHEMA = Path(__file__).parent.parent.parent / "docs" / "schema" / "report.schema.json"


def check(*arguments: str) -> int:
    return main(["check", *arguments])


# arguments, exit code, parts of what is printed
GOOD = [
    (("models.py:same", "-i", "x: [b, c]"), 0, ("proved: models.py:same runs for every declared input",)),
    (("models.py:same",), 0, ("proved", "x: float32[*x]", 'guessed: ', '--input "x: float32[*x]"')),
    (("models.py:Halves", "-i", "x: [b, h]"), 1, (
        "refined", "h % 2 == 0", "even, at least 2", "models.py:10", "return x.view(x.shape[0], 2, -1)",
        "returns", "float32[b, 2, h//2]",
    )),
    (("models.py:Halves", "-i", "x: [b, h]", "-a", "h % 2 == 0"), 0, ("proved", "where h % 2 == 0")),
    (("models.py:Wrong", "-i", "x: [b, 16]"), 1, (
        "refuted", "shape-mismatch", "models.py:19", "self.linear(x)",
    )),
    (("models.py:Convolves", "-i", "x: [b, 3]"), 1, ("refuted", "rank", "self.conv(x)")),  # too few dims
    (("models.py:same", "-i", "x: [b]", "--shapes"), 0, ("shapes", "relu")),
]  # fmt: skip


@pytest.mark.parametrize("arguments, code, parts", GOOD)
def test_answers(
    arguments: tuple[str, ...], code: int, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(*arguments) == code
    printed = capsys.readouterr().out
    assert all(part in printed for part in parts), printed
    assert "\x1b" not in printed, "colour belongs on a terminal"


def test_json_is_the_report_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("models.py:Halves", "-i", "x: [b, h]", "--format", "json") == 1
    printed = capsys.readouterr()
    report = Report.from_json(json.loads(printed.out))
    assert report.verdict == "refined"
    assert report.accepts.holds(b=1, h=4) and not report.accepts.holds(b=1, h=5)
    assert "user code prints" in printed.err


# arguments, parts of the message
BAD: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("models.py:same", "-i", "x: [batch]", "-a", "bacth > 1"), ("'bacth'", "did you mean 'batch'?", "^")),
    (("models.py:same", "-i", "x: floot32[b]"), ("'floot32' is not a dtype", "^")),
    (("models.py:same", "-i", "x: [b"), ("expected",)),
    (("models.py:same", "-i", "x: [b]", "-a", "b < 1"), ("no input meets the assumptions", "b <= 0")),
    (("models.py:same", "-i", "y: [b]"), ("x",)),
    (("models.py:same", "-i", "X: [b]"), ("no parameter 'X'", "did you mean 'x'?")),
    (("models.py:looked_up", "-i", 'batch["feta"]: [b]'), ("'feat'", "did you mean 'feat'?")),
    (("models.py:looked_up", "-i", 'batch["other"]: [b]'), ('looks up batch["feat"]; declare it, too',)),
    (("models.py:needs_two", "-i", "x: [b]"), ("'y'", "x, y")),
    (("models.py:misspelt",), ("no usual shape of x runs", "veiw", "declare them, as in --input")),
    (("absent.py:Name", "-i", "x: [b]"), ("absent.py does not exist",)),
    (("models.py:Absent", "-i", "x: [b]"), ("has no 'Absent'",)),
    (("models.py:misspelt", "-i", "x: [b]"), ("veiw", "models.py:36", "return x.veiw(-1)")),
    (("models.py:other_reason", "-i", "x: [b]"), ("KeyError", "no such thing", "models.py:40")),
    (("absent.pt2",), ("absent.pt2 does not exist",)),
    (("empty.pt2",), ("empty.pt2", "not a complete zip file")),
    (("truncated.pt2",), ("truncated.pt2", "not a complete zip file")),
    (("bomb.pt2",), ("bomb.pt2",)),
    (("other.pt2",), ("other.pt2",)),
    ((str(ARCHIVES / "resnet.pt2"), "-i", "x: [b, 3, h]"), ("x",)),
    ((str(ARCHIVES / "resnet.pt2"), "-i", "y: [b, 3, h, w]"), ("x",)),
]


ARCHIVED: dict[str, Callable[[Path], object]] = {
    "empty.pt2": Path.touch,
    "truncated.pt2": lambda path: _truncated(path),
    "bomb.pt2": lambda path: _bomb(path),
    "other.pt2": lambda path: _without_a_model(path),
}


@pytest.mark.parametrize("arguments, parts", BAD, ids=lambda value: str(value)[:60])
def test_bad_input_is_one_clear_message(
    arguments: tuple[str, ...], parts: tuple[str, ...], models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[0] in ARCHIVED:
        ARCHIVED[arguments[0]](models / arguments[0])
    assert check(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    unwrapped = " ".join(printed.err.split())
    assert all(part in printed.err or part in unwrapped for part in parts), printed.err
    assert printed.err.startswith("anyshape: ")
    assert "Traceback" not in printed.err


def _truncated(path: Path) -> None:
    whole = (ARCHIVES / "resnet.pt2").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def _bomb(path: Path) -> None:
    """More blanks than any model has bytes, in few bytes."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("m/models/model.json", "w", force_zip64=True) as entry,
    ):
        for _ in range((MAX_BYTES >> 20) + 1):
            entry.write(b" " * (1 << 20))


def _without_a_model(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "not a model")


def test_an_operator_without_a_rule_is_unknown(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = zipfile.ZipFile(ARCHIVES / "resnet.pt2")
    with zipfile.ZipFile(models / "strange.pt2", "w") as archive:
        for entry in source.namelist():
            data = source.read(entry)
            if entry.endswith("models/model.json"):
                data = data.replace(b"torch.ops.aten.relu.default", b"torch.ops.mylib.strange.default")
            archive.writestr(entry, data)
    check("strange.pt2")
    printed = " ".join(capsys.readouterr().out.split())
    assert "mylib::strange" in printed
    assert printed.startswith("unknown") or "as far as is known" in printed


@pytest.mark.parametrize("arguments, part", [
    ((), "required"),
    (("frobnicate",), "invalid choice"),
    (("chek", "models.py:same"), "did you mean 'check'?"),
    (("check", "models.py:same", "--input", "x", "y"), "one TARGET too many: 'y'"),
    (("check", "models.py:same", "--budget", "soon"), "seconds"),
    (("check", "models.py:same", "--budget", "-1"), "seconds"),
    (("check", "models.py:same", "--format", "xml"), "invalid choice"),
    (("check", "models.py:same", "--inputt", "x"), "did you mean '--input'?"),
    (("check", "models.py:same", "--frobnicate=3"), "no option '--frobnicate' of check"),
    (("completion", "csh"), "invalid choice"),
])  # fmt: skip
def test_bad_usage(arguments: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert part in capsys.readouterr().err


def test_the_versions_that_decide_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    told = capsys.readouterr().out
    parts = "anyshape 0", f"torch {version('torch')}", "z3-solver ", "Python 3."
    assert all(part in told for part in parts)


FAILURES: dict[tuple[str, ...], dict[str, object]] = {
    ("models.py:same", "-i", "x: [b"): {"text": "x: [b", "column": 6},
    ("models.py:sam", "-i", "x: [b]"): {"hint": "did you mean 'same'?", "line": 0},
    ("broken.py:Net", "-i", "x: [b]"): {"line": 1, "code": "import no_such_dependency"},
    ("models.py:same", "-i", "x: [b]", "-o", "nowhere/report"): {"hint": "name another file by --output"},
}


@pytest.mark.parametrize("arguments", FAILURES, ids=" ".join)
def test_failures_as_json(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.py").write_text("import no_such_dependency\n")
    assert check(*arguments, "--format", "json") == 2
    told = capsys.readouterr()
    data = json.loads(told.out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    assert data["error"].items() >= FAILURES[arguments].items()
    assert told.err == ""


def test_the_file_for_the_report_is_tried_first(capsys: pytest.CaptureFixture[str]) -> None:
    Path("loud.py").write_text("print('loaded')\ndef f(x): return x\n")
    assert check("loud.py:f", "-i", "x: [b]", "-o", "nowhere/report") == 2
    assert "loaded" not in capsys.readouterr().err
    Path("report").write_text("before")
    assert check("loud.py:g", "-i", "x: [b]", "-o", "report") == 2
    assert Path("report").read_text() == "before"
    assert check("loud.py:g", "-i", "x: [b]", "-o", "other") == 2
    assert not Path("other").exists()


def test_arguments_of_a_class(capsys: pytest.CaptureFixture[str]) -> None:
    Path("needs.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, width: int):\n"
        "        super().__init__()\n"
        "        self.layer = nn.Linear(width, 2)\n"
        "    def forward(self, x): return self.layer(x)\n"
    )
    assert check("needs.py:Net", "-i", "x: [b, 8]") == 2
    assert "needs.py:Net needs width: int" in capsys.readouterr().err
    assert check("needs.py:Net", "--args", "8", "-i", "x: [b, 8]") == 0
    assert "needs.py:Net(8) runs for every declared input" in capsys.readouterr().out
    assert check("needs.py:Net(width=4)", "-i", "x: [b, 8]") == 1
    assert check("--args", "8") == 2
    assert "none is named" in capsys.readouterr().err
    assert check("model.pt2", "--args", "8") == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in (*COMMANDS, "--assume", "second-solver"))
    if installed := shutil.which(shell):
        subprocess.run([installed, "-n"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_files() -> None:
    script = run("-m", "anyshape.typecheck", "completion", "bash").stdout
    wanted = {"ch": "check", "check --ass": "--assume", "check mod": "models.py", "spec --to t": "torch"}
    for words, one in wanted.items():
        given = f"COMP_WORDS=(anyshape {words}); COMP_CWORD={len(words.split())}"
        asked = f'{script}\ncompopt() {{ :; }}\n{given}\n_shtab_anyshape; printf "%s\\n" "${{COMPREPLY[@]}}"'
        found = subprocess.run(["bash"], input=asked, capture_output=True, text=True, check=True)
        assert one in found.stdout.split(), (words, found)


def test_debug_shows_the_traceback() -> None:
    from anyshape.typecheck import SpecError

    with pytest.raises(SpecError):
        check("models.py:same", "-i", "x: [b", "--debug")


# ---- as a process


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_process_exits_with_the_code(models: Path) -> None:
    done = run("-m", "anyshape.typecheck", "check", "models.py:Wrong", "-i", "x: [b, 16]")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("refuted")


def test_an_archive_needs_neither_torch_nor_z3() -> None:
    done = run("-X", "importtime", "-m", "anyshape.typecheck", "check", str(ARCHIVES / "resnet.pt2"))
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert done.returncode == 0, done.stderr[-2000:]
    assert "anyshape" in imported
    assert not imported & {"torch", "z3", "sympy", "numpy", "tqdm"}


def test_ctrl_c_ends_with_one_line(models: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "anyshape.typecheck", "check", "models.py:sleeps", "-i", "x: [b]"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell lets what it starts in the background ignore SIGINT, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    assert [process.stderr.readline() for _ in range(2)] == [
        "output of the program itself:\n", "  | asleep\n",
    ]  # fmt: skip
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines() == ["anyshape: interrupted; nothing was decided"]


def on_terminal(*arguments: str, stream: str, **environment: str) -> str:
    """What a process prints on one of its streams, if that is a terminal."""
    import pty
    import termios

    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: slave}
    process = subprocess.Popen(
        [sys.executable, "-m", "anyshape.typecheck", "check", *arguments],
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **environment}, **streams,  # type: ignore[call-overload]
    )  # fmt: skip
    os.close(slave)
    printed = b""
    with contextlib.suppress(OSError):  # raised when the process has closed its side
        while chunk := os.read(master, 65536):
            printed += chunk
    os.close(master)
    process.communicate(timeout=60)
    return printed.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
@pytest.mark.parametrize("no_colour", ["", "1"])
def test_colour_on_a_terminal_only(no_colour: str) -> None:
    printed = on_terminal(str(ARCHIVES / "resnet.pt2"), stream="stdout", NO_COLOR=no_colour)
    assert "proved" in printed
    assert ("\x1b[" in printed) == (not no_colour)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
def test_a_progress_bar_once_it_takes_long(models: Path) -> None:
    (models / "slow.py").write_text("import time\ndef f(x):\n    time.sleep(4)\n    return x\n")
    assert "tracing: " in on_terminal("slow.py:f", "-i", "x: [b]", "--no-run", stream="stderr")
    assert on_terminal(str(ARCHIVES / "resnet.pt2"), stream="stderr") == ""


def test_github_gets_a_summary_of_the_job(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    arguments = ("models.py:Halves", "-i", "x: [b, h]", "--format")
    assert check(*arguments, "markdown") == 1
    text = capsys.readouterr().out
    assert summary.read_text() == "before\n"
    assert check(*arguments, "github") == 1
    assert capsys.readouterr().out.startswith("::warning file=")
    assert summary.read_text() == f"before\n{text}" and "`h % 2 == 0`" in text
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    assert check(*arguments, "github") == 2
    assert "GITHUB_STEP_SUMMARY" in capsys.readouterr().err
