"""`anyshape watch`: what is saved is checked again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anyshape.typecheck.project.watching import changed, look, until_changed

PROVED = "from part import same\n\n\ndef f(x):\n    return same(x)\n"
SAME = "def same(x):\n    return x\n"
HALVES = "def same(x):\n    return x.view(-1, 2)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(PROVED)
    (tmp_path / "part.py").write_text(SAME)
    return tmp_path


# ---- looking


def test_changes_that_are_seen(folder: Path) -> None:
    model, absent = str(folder / "model.py"), str(folder / "absent.json")
    before = look([model, absent])
    assert changed(before, look([model, absent])) == []
    (folder / "absent.json").write_text("{}")
    (folder / "part.py").write_text(HALVES)  # beside the model
    (folder / "new.py").write_text("")
    (folder / "notes.txt").write_text("")
    os.utime(model, (1, 1))
    names = [Path(file).name for file in changed(before, look([model, absent]))]
    assert names == ["absent.json", "model.py", "new.py", "part.py"]


def test_files_that_go_are_seen(folder: Path) -> None:
    model = str(folder / "model.py")
    before = look([model])
    (folder / "model.py").unlink()
    assert changed(before, look([model])) == [model]
    (folder / "part.py").unlink()
    folder.rmdir()
    assert len(changed(before, look([model]))) == 2


def test_several_writes_are_one_change(folder: Path) -> None:
    model = folder / "model.py"

    def write() -> None:
        for n in range(4):
            time.sleep(0.15)
            model.write_text(f"# {n}\n{PROVED}")

    before = look([str(model)])
    writer = threading.Thread(target=write)
    writer.start()
    assert until_changed([str(model)], before) == [str(model)]
    assert model.read_text().startswith("# 3")
    writer.join()


def test_waiting_ends_when_it_may(folder: Path) -> None:
    turns = iter([True, True, False])
    file = str(folder / "model.py")
    assert until_changed([file], look([file]), lambda: next(turns)) == []


# ---- the command


def _hears_interrupts() -> None:
    """A shell's background jobs ignore them, and so would what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Watch:
    """A running `anyshape watch`, and what it has said."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process: Any = subprocess.Popen(
            [sys.executable, "-m", "anyshape.typecheck", "watch", *arguments],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            preexec_fn=_hears_interrupts,
        )  # fmt: skip
        self.said = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.said += line

    def hears(self, *parts: str) -> None:
        """Waits until these were said since the last time."""
        until = time.monotonic() + 90
        while not all(part in self.said for part in parts):
            assert time.monotonic() < until, self.said
            assert self.process.poll() is None, self.said
            time.sleep(0.05)
        self.said = ""


@pytest.fixture
def watched(folder: Path) -> Iterator[Watch]:
    watch = Watch(folder, "model.py:f", "-i", "x: float32[b, h]")
    yield watch
    if watch.process.poll() is None:
        os.killpg(watch.process.pid, signal.SIGKILL)
    watch.process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_saving_checks_again(folder: Path, watched: Watch) -> None:
    watched.hears("proved: model.py:f", "watching ")
    (folder / "part.py").write_text(HALVES)
    watched.hears("part.py changed", "refined: model.py:f", "watching ")
    (folder / "model.py").write_text("def f(x:\n")
    watched.hears("model.py changed", "cannot be imported: SyntaxError", "watching ")
    (folder / "model.py").write_text(PROVED)
    (folder / "part.py").write_text(SAME)
    watched.hears("changed", "proved: model.py:f", "watching ")
    os.killpg(watched.process.pid, signal.SIGINT)
    assert watched.process.wait(120) == 0
    assert "Traceback" not in watched.said
