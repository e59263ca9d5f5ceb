"""The cache: an answer is found again while all that it was made from is the same, and only then."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rendered import report

from anyshape.typecheck import Code, Report, Verdict
from anyshape.typecheck.checking.reading import Reading
from anyshape.typecheck.project import cache as caching
from anyshape.typecheck.project.cache import Cache, CacheQuestion, default_folder, worth_keeping
from anyshape.typecheck.project.config import ConfiguredJob
from anyshape.typecheck.project.jobs import answer
from anyshape.typecheck.report.findings import make

MODEL = """\
import helper


def f(x):
    return helper.same(x)
"""
JOB = ConfiguredJob("model.py:f", ("x: float32[b, h]",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of two modules, long finished."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text("def same(x):\n    return x\n")
    for path in tmp_path.iterdir():
        os.utime(path, (time.time() - 9999, time.time() - 9999))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def cli(*arguments: str) -> dict[str, Any]:
    """What a process of its own reports, and which modules it imported for that."""
    program = (
        "import json, sys; from anyshape.typecheck.cli.main import main; code = main(sys.argv[1:]); "
        "print(json.dumps([code, sorted({n.partition('.')[0] for n in sys.modules})]), file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, "check", *arguments, "--format", "json"]
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    code, modules = json.loads(done.stderr.splitlines()[-1])
    data = json.loads(done.stdout)
    cached, verdict = "cached" in data["stats"], data["verdict"]
    return {"code": code, "modules": modules, "cached": cached, "verdict": verdict, "seconds": seconds}


ARGUMENTS = ("model.py:f", "-i", "x: float32[b, h]")


def twice() -> tuple[dict[str, Any], dict[str, Any]]:
    """Two runs, and not a moment in which somebody was at work on anyshape itself."""
    for attempt in range(5):
        before = caching._own_files.__wrapped__()
        found = cli(*ARGUMENTS, "--budget", f"{30 + attempt}"), cli(*ARGUMENTS, "--budget", f"{30 + attempt}")
        if caching._own_files.__wrapped__() == before:
            return found
    raise AssertionError("the files of anyshape keep changing")


def test_a_second_run_is_answered_without_torch_in_little_time(folder: Path) -> None:
    """Under 0.3 s on a machine that does nothing else. On one that does, seconds of the processor count."""
    first, second = twice()
    assert (first["cached"], second["cached"]) == (False, True)
    assert "torch" in first["modules"]
    assert not {"torch", "z3", "sympy", "numpy", "networkx"} & {*second["modules"]}
    assert {first["verdict"], second["verdict"]} == {"proved"}
    assert second["seconds"] < 0.6
    assert not cli(*ARGUMENTS, "--no-cache")["cached"]


# what is done between two runs, and whether the answer of the first still stands
EDITS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda p: None, True),
    "a file is touched": (lambda p: os.utime(p / "model.py"), True),
    "a text beside": (lambda p: (p / "notes.txt").write_text("…"), True),
    "the target": (lambda p: (p / "model.py").write_text(MODEL.replace("(x)\n", "(x).view(-1, 2)\n")), False),
    "what it imports": (lambda p: (p / "helper.py").write_text("def same(x):\n    return 3\n"), False),
    "a module goes": (lambda p: (p / "helper.py").rename(p / "model_of_old.py"), False),
    "a module comes, which may hide another": (lambda p: (p / "torch.py").write_text(""), False),
    "a package comes": (lambda p: (p / "numpy").mkdir(), False),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_has_changed_is_checked_anew(folder: Path, edit: str) -> None:
    do, stands = EDITS[edit]
    cache, asked = Cache(default_folder()), CacheQuestion(JOB)
    cache.put(asked, report("proved"), [str(folder / "model.py"), str(folder / "helper.py")])
    assert cache.get(asked) is not None
    do(folder)
    assert (cache.get(asked) is not None) is stands


QUESTIONS = [
    replace(JOB, target="model.py:g"), replace(JOB, inputs=("x: float32[b, 3]",)), replace(JOB, inputs=None),
    replace(JOB, assume=("b < 3",)), replace(JOB, budget_s=3.0), replace(JOB, replay=False),
]  # fmt: skip


@pytest.mark.parametrize("other", QUESTIONS, ids=str)
def test_another_question_has_another_answer(folder: Path, other: ConfiguredJob) -> None:
    cache = Cache(default_folder())
    cache.put(CacheQuestion(JOB), report("proved"), [])
    assert cache.get(CacheQuestion(JOB)) is not None
    assert cache.get(CacheQuestion(other)) is None


def test_who_answers_and_where_belongs_to_the_question(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(default_folder())
    cache.put(CacheQuestion(JOB), report("proved"), [])
    for name in ("_own_files", "_packages"):
        with monkeypatch.context() as patch:
            patch.setattr(caching, name, lambda: "another version")
            assert cache.get(CacheQuestion(JOB)) is None
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert cache.get(CacheQuestion(JOB)) is None
    monkeypatch.undo()
    assert cache.get(CacheQuestion(JOB)) is None  # in another folder


def test_a_report_is_kept_as_it_is(folder: Path) -> None:
    cache, asked = Cache(default_folder()), CacheQuestion(JOB)
    for name in ("proved", "refined", "refuted", "two-ways"):
        cache.put(asked, report(name), [])
        kept = cache.get(asked)
        assert kept is not None
        assert replace(kept.report, stats=report(name).stats) == report(name)
        assert kept.report.stats == {**report(name).stats, "cached": 1.0}
        assert "unchanged since a check that took" in kept.report.to_text()


def entry(folder: Path) -> Path:
    (path,) = default_folder().glob("*.json")
    return path


def spoilt(path: Path, *steps: Any) -> str:
    """The entry with another value at the path of keys that ends in it."""
    data = json.loads(path.read_text())
    part = data
    *keys, last, value = steps
    for key in keys:
        part = part[key]
    part[last] = value
    return json.dumps(data)


DAMAGE: dict[str, Callable[[Path], str | bytes]] = {
    "empty": lambda p: "",
    "cut off": lambda p: p.read_text()[:100],
    "no text": lambda p: b"\xff\x00\xfe",
    "a pickle": lambda p: b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtin\x94.",
    "a list": lambda p: "[]",
    "null": lambda p: "null",
    "another form": lambda p: spoilt(p, "form", 2),
    "another question": lambda p: spoilt(p, "question", "target", "model.py:other"),
    "no report": lambda p: spoilt(p, "report", None),
    "an unknown verdict": lambda p: spoilt(p, "report", "verdict", "certainly"),
    "a formula that runs": lambda p: spoilt(p, "report", "accepts", "condition", "__import__('os').x == 1"),
    "files that are none": lambda p: spoilt(p, "files", 3),
    "folders that are none": lambda p: spoilt(p, "folders", ["a"]),
    "deeply nested": lambda p: "[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_foreign_entry_is_made_anew(folder: Path, damage: str) -> None:
    cache, asked = Cache(default_folder()), CacheQuestion(JOB)
    cache.put(asked, report("proved"), [str(folder / "model.py")])
    content = DAMAGE[damage](entry(folder))
    entry(folder).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert cache.get(asked) is None
    found = answer(JOB, cache)
    assert found.report.verdict is Verdict.PROVED
    assert "cached" not in found.report.stats
    kept = cache.get(asked)
    assert kept is not None
    assert {Path(file).name for file in kept.files} >= {"model.py", "helper.py"}


def test_a_folder_that_cannot_be_written_is_no_obstacle(folder: Path) -> None:
    (folder / "file").write_text("")
    cache = Cache(folder / "file" / "cache")
    cache.put(CacheQuestion(JOB), report("proved"), [])
    assert cache.get(CacheQuestion(JOB)) is None


def test_old_entries_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "MAX_ENTRIES", 3)
    cache = Cache(default_folder())
    jobs = [replace(JOB, target=f"model.py:f{n}") for n in range(6)]
    for n, job in enumerate(jobs):
        cache.put(CacheQuestion(job), report("proved"), [])
        os.utime(cache.folder / CacheQuestion(job).file, (n, n))
    assert [cache.get(CacheQuestion(job)) is not None for job in jobs] == [False] * 3 + [True] * 3


# ---- what is worth keeping, and what was read


@pytest.mark.parametrize("verdict, code, kept", [
    (Verdict.PROVED, Code.APPROXIMATE, True), (Verdict.REFUTED, Code.INCOMPLETE, True),
    (Verdict.UNKNOWN, Code.NO_RULE, True), (Verdict.UNKNOWN, Code.INCOMPLETE, False),
    (Verdict.UNKNOWN, Code.INTERNAL_ERROR, False),
])  # fmt: skip
def test_what_another_run_may_know_better_is_not_kept(verdict: Verdict, code: Code, kept: bool) -> None:
    one: Report = replace(report("proved"), verdict=verdict, findings=(make(code, "told"),))
    assert worth_keeping(one) is kept


def test_reading_notes_modules_and_files(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "unread.json").write_text("{}")
    with Reading() as reading:
        (folder / "config.json").read_text()
        (folder / "written.json").write_text("{}")
        (folder / "gone.json").write_text("{}")
        (folder / "gone.json").read_text()
        (folder / "gone.json").unlink()
        Path("/proc/self/stat").read_text()
        os.listdir(folder)
    names = {Path(file).name for file in reading.files if Path(file).parent == folder}
    assert names == {"config.json"}
    assert __file__ in reading.files  # modules that were imported before
    assert not [file for file in reading.files if "site-packages" in file or "/typecheck/api.py" in file]
    (folder / "unread.json").read_text()
    assert "unread.json" not in str(reading.files)


def test_a_file_that_is_saved_meanwhile_may_have_been_read_before(folder: Path) -> None:
    def reads(change: Callable[[Path], object]) -> bool:
        with Reading() as reading:
            (folder / "model.py").read_text()
            change(folder / "model.py")
        reading.files = tuple(file for file in reading.files if file.startswith(str(folder)))
        return reading.unchanged

    assert reads(lambda path: None)
    assert not reads(lambda path: path.write_text(MODEL + "\n"))
    assert not reads(lambda path: os.utime(path, (time.time() + 9, time.time() + 9)))


@pytest.mark.parametrize("edited", [False, True])
def test_a_module_that_was_imported_before_is_an_obstacle_if_it_was_saved_since(
    folder: Path, edited: bool
) -> None:
    """Whoever imported it, into a process that lives on: another check, a test, a notebook."""
    name = f"written_in_this_process_{edited}"
    (folder / f"{name}.py").write_text("N = 3\n")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        importlib.import_module(name)
        if edited:
            (folder / f"{name}.py").write_text("N = 4\n")
            os.utime(folder / f"{name}.py", (time.time() + 1, time.time() + 1))
        cache = Cache(default_folder())
        found = answer(JOB, cache)
    finally:
        del sys.modules[name]
    assert str(folder / f"{name}.py") in found.files
    assert (cache.get(CacheQuestion(JOB)) is None) is edited


def test_a_check_while_its_file_is_saved_is_not_kept(folder: Path) -> None:
    saved = "import os\n\n\ndef f(x):\n    os.utime(__file__, (4e9, 4e9))\n    return x\n"
    (folder / "model.py").write_text(saved)
    cache = Cache(default_folder())
    assert answer(JOB, cache).report.verdict is Verdict.PROVED
    assert cache.get(CacheQuestion(JOB)) is None


@pytest.mark.parametrize("platform, variables, folder", [
    ("linux", {"ANYSHAPE_CACHE_DIR": "/a/b"}, "/a/b"),
    ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/anyshape"),
    ("linux", {"HOME": "/home/u"}, "/home/u/.cache/anyshape"),
    ("darwin", {"HOME": "/Users/u"}, "/Users/u/Library/Caches/anyshape"),
    ("win32", {"LOCALAPPDATA": "/L"}, "/L/anyshape"),
])  # fmt: skip
def test_where_the_cache_lies(
    platform: str, variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANYSHAPE_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert default_folder().as_posix() == folder
